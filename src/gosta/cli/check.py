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
    found = check(folder)
    if report is not None:
        report.write_text(_report(folder.resolve().name, found), encoding="utf-8")
    for one in found:
        if as_json:
            print(json.dumps(one._asdict()))
            continue
        print(f"{one.level:7}  {terminal.printable(one.check)}: {terminal.printable(one.text)}")
        for more in filter(None, (one.detail, one.hint)):
            print(f"         {terminal.printable(more)}")
    if any(one.level == "error" for one in found):
        raise typer.Exit(1)


def _report(name: str, found: Sequence[Finding]) -> str:
    """Return the findings without their details, which may hold values."""
    lines = [
        f"gosta check of {name}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; it holds no value of the "
        "data",
        "",
    ]
    lines += [f"{one.level:7}  {one.check}: {one.text}" for one in found]
    return "\n".join([*lines, ""])
