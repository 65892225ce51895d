"""``gosta network verify`` and ``gosta replay``: check a network by its journals; ``gosta audit``: rows that left."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gosta.cli import options
from gosta.errors import shorten
from gosta.views import terminal

if TYPE_CHECKING:
    from gosta.net.audit.disclosures import Row, Total

NOT_CHECKED = 3  # exit code
TOTAL_HEADING = ("data", "neighbour", "samples sent", "different rows", "first", "last")
ROW_HEADING = ("data", "row", "times", "first", "last", "sent to")
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
        print(f"{found.exchanges:,} exchanges replayed, and the states of {found.nodes} nodes compared")
        if found.waiting:
            print(f"not compared, as they wait for the confirmation of an exchange: {', '.join(found.waiting)}")
        print(differ or "all these states are the same, bit for bit")
    if found.differing:
        raise typer.Exit(1)


def audit(
    folder: Annotated[Path, typer.Argument(help="A node's folder; the node may be running.")],
    rows: Annotated[bool, "Show every row."] = False,
    as_json: options.Json = False,
) -> None:
    """Show which of a site's own rows were sent to which neighbours, how often and when."""
    from gosta.net.audit import disclosures

    site = disclosures.read_site(folder)
    by_row, by_neighbour = disclosures.total_by_row(site.ledger), disclosures.total_by_neighbour(site.ledger)
    found = by_row if rows else by_neighbour
    if as_json:
        for one in found:
            print(json.dumps({"node": site.node, **one._asdict(), "is_current": one.data == site.data}))
    elif not found:
        print(f"{site.node}: no row of this site was sent to a neighbour")
    else:
        print(f"{site.node}: rows of this site that it sent to neighbours")
        if rows:
            lines = [ROW_HEADING, *(_row_line(row, site.data) for row in by_row)]
        else:
            lines = [TOTAL_HEADING, *(_total_line(total, site.data) for total in by_neighbour)]
        print(terminal.columns(lines, indent=0))
        print("data: digest of the data file's rows; rows are counted from 0, in the order of the file")
        print("a sample counts once for a neighbour and epoch, however often it is sent again")
        who = f"all {len(site.members)} members: {shorten(site.members, 20)}" if site.members else "all nodes"
        print(f"neighbours pass these rows on, and so do theirs: they can be seen by {who}")


def _row_line(one: Row, current: str) -> tuple[str, ...]:
    to = ", ".join(f"{name} {count:,} x" for name, count in one.neighbours.items())
    return _data(one.data, current), f"{one.row}", f"{one.times:,}", _time(one.first_time), _time(one.last_time), to


def _total_line(one: Total, current: str) -> tuple[str, ...]:
    rows = f"{one.rows:,} of {one.of:,}"
    first, last = _time(one.first_time), _time(one.last_time)
    return _data(one.data, current), one.neighbour, f"{one.samples:,}", rows, first, last


def _data(digest: str, current: str) -> str:
    return digest[:8] + " (an earlier file)" * (current not in ("", digest))


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}"
