"""``gosta network verify`` and ``gosta replay``: check a network by its journals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gosta.cli import options

NOT_CHECKED = 3  # exit code
Folder = Annotated[Path, typer.Argument(help="The network's folder; its nodes must be stopped.")]


def verify(folder: Folder, as_json: options.Json = False) -> None:
    """Check the journals of all nodes: every visitor exists once, and estimates agree with the value over all rows.

    Exits with code 1 if a check fails, and with 3 if none does but something could not be checked.
    """
    from gosta.net.audit import verify

    findings = verify.verify(verify.load_journals(folder))
    for finding in findings:
        mark = {True: "yes", False: "NO ", None: "not checked"}[finding.holds]
        print(json.dumps(finding._asdict()) if as_json else f"{mark}  {finding.claim}\n     {finding.evidence}")
    found = {finding.holds for finding in findings}
    if found != {True}:
        raise typer.Exit(1 if False in found else NOT_CHECKED)


def replay(folder: Folder, as_json: options.Json = False) -> None:
    """Compute the recorded exchanges of a network again, and compare all states bit for bit."""
    from gosta.net.audit import replay
    from gosta.net.audit.verify import load_journals

    found = replay.replay(load_journals(folder))
    if as_json:
        print(json.dumps(found._asdict()))
    else:
        differ = f"states differ at {', '.join(found.differing)}" if found.differing else ""
        print(f"{found.exchanges:,} exchanges of {found.nodes} nodes replayed")
        print(differ or "all states are the same, bit for bit")
    if found.differing:
        raise typer.Exit(1)
