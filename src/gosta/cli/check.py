"""``gosta check``: whether a node's folder is complete and right, before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gosta.cli import options
from gosta.errors import InputError
from gosta.views import terminal

if TYPE_CHECKING:
    from gosta.net.deploy.findings import Finding


def check(
    folder: Annotated[
        Path, typer.Argument(help="A node's folder; the node need not run. Or invitation.json.")
    ],
    reading: options.Reading,
    data: Annotated[
        Path | None, "Another data file than that of node.toml; with an invitation, the data file."
    ] = None,
    drop_missing: options.DropMissing = False,
    report: Annotated[
        Path | None, "Write a report without values of the data, to send to others."
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check data, certificate, members, neighbours, disk and policy of a node.

    Of each column it shows what is in the file, what became of it, how many rows have no value, and
    how many are out of the range or classes that the network declares. Options try how the file
    could be read, before node.toml says so. With an invitation, only the data file is checked.

    Nothing about rows is sent. Exits with code 1 if there is an error. What is printed may hold
    values of the data; a report does not.
    """
    from gosta.net.deploy import bundles
    from gosta.net.deploy.check import Trial, check, check_file

    if report is not None:
        options.check_writable("report", report)
    tried = reading.settings()
    if folder.is_file():
        if data is None:
            raise InputError(f"{folder} is a file; to check data for it, name them with --data")
        invited = bundles.read(folder, bundles.Invitation)
        findings = check_file(invited, data, Trial(tried, drop_missing))
    else:
        tried |= {} if data is None else {"data": str(data.resolve())}
        findings = check(folder, Trial(tried, drop_missing))
    if report is not None:
        report.write_text(_report(folder.resolve().name, findings), encoding="utf-8")
    if as_json:
        print(*(json.dumps(finding.to_dict()) for finding in findings), sep="\n")
    else:
        _show(findings)
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(1)


def _show(findings: Sequence[Finding]) -> None:
    from gosta.net.deploy.column_views import table_text

    views = [finding.view for finding in findings if finding.view is not None]
    if views:
        print(table_text(views))
    for finding in findings:
        text = f"{finding.check}: {finding.text}"
        print(f"{finding.level:7}  {terminal.printable(text)}")
        for more in filter(None, (finding.detail, finding.hint)):
            print(f"         {terminal.printable(more)}")


def _report(name: str, findings: Sequence[Finding]) -> str:
    """Return the findings without their details, which may hold values."""
    lines = [
        f"gosta check of {name}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; it holds no value of the "
        "data",
        "",
    ]
    lines += [f"{each.level:7}  {each.check}: {each.text}" for each in findings]
    return "\n".join([*lines, ""])
