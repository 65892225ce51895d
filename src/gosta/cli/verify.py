"""``gosta network verify``: check a network by its journals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gosta.cli import options

EXAMPLES = """
gosta network verify my-network/
"""


def verify(
    folder: Annotated[Path, typer.Argument(help="The network's folder; its nodes must be stopped.")],
    as_json: options.Json = False,
) -> None:
    """Check the journals of all nodes: every visitor exists once, and estimates agree with the value over all rows.

    Exits with code 1 if a check fails.
    """
    from gosta.net.audit.verify import load_journals
    from gosta.net.audit.verify import verify as check

    findings = check(load_journals(folder))
    for finding in findings:
        mark = "yes" if finding.holds else "NO "
        print(json.dumps(finding._asdict()) if as_json else f"{mark}  {finding.claim}\n     {finding.evidence}")
    if not all(finding.holds for finding in findings):
        raise typer.Exit(1)
