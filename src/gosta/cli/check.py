"""``gosta check``: whether a node's folder is complete and right, before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gosta.cli import options
from gosta.views import terminal

if TYPE_CHECKING:
    from gosta.net.deploy.check_data import Finding


def check(
    folder: Annotated[Path, typer.Argument(help="A node's folder; the node need not run.")],
    report: Annotated[
        Path | None, "Write a report without values of the data, to send to others."
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check data, certificate, members, neighbours, disk and policy of a node.

    Nothing about rows is sent. Exits with code 1 if there is an error. What is printed may hold
    values of the data; a report does not.
    """
    from gosta.net.deploy.check import check

    if report is not None:
        options.check_writable("report", report)
    findings = check(folder)
    if report is not None:
        report.write_text(_report(folder.resolve().name, findings), encoding="utf-8")
    for finding in findings:
        if as_json:
            print(json.dumps(finding._asdict()))
            continue
        text = f"{finding.check}: {finding.text}"
        print(f"{finding.level:7}  {terminal.printable(text)}")
        for more in filter(None, (finding.detail, finding.hint)):
            print(f"         {terminal.printable(more)}")
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(1)


def _report(name: str, findings: Sequence[Finding]) -> str:
    """Return the findings without their details, which may hold values."""
    lines = [
        f"gosta check of {name}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; it holds no value of the "
        "data",
        "",
    ]
    lines += [f"{each.level:7}  {each.check}: {each.text}" for each in findings]
    return "\n".join([*lines, ""])
