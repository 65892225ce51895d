"""``gosta network verify`` and ``gosta replay``: check a network by its journals.

``gosta audit``: rows that left.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gosta.cli import options
from gosta.errors import shorten
from gosta.views import terminal

if TYPE_CHECKING:
    from gosta.net.audit.disclosures import Row, Total
    from gosta.net.audit.findings import Finding
    from gosta.net.deploy.site_log import SiteLog
    from gosta.private.log import LogEntry

NOT_CHECKED = 3  # exit code
SUMS_HEADING = (
    *("time", "event", "epoch", "layout", "rows", "bytes", "noise", "sites"),
    "statistics; why nothing left",
)
SUMS_DISPENSABLE = ("layout", "bytes", "sites", "noise", "rows")  # on a narrow terminal
REASON_CHARACTERS = 20  # of the last column that fit in any case
TOTAL_HEADING = ("data", "neighbour", "samples sent", "different rows", "first", "last")
ROW_HEADING = ("data", "row", "times", "first", "last", "sent to")
Folder = Annotated[Path, typer.Argument(help="The network's folder; its nodes must be stopped.")]


def verify(folder: Folder, as_json: options.Json = False) -> None:
    """Check the journals of all nodes of a stopped network.

    Every visitor exists once, and estimates agree with the value over all rows. Of private sums:
    all report the same total, the sum over the rows that were contributed, with its noise.

    Exits with code 1 if a check fails, and with 3 if none does but something could not be checked.
    """
    from gosta.net.audit import verify, verify_sums

    def find() -> list[Finding]:
        if _is_private(folder):
            return verify_sums.verify_sums(folder)
        return verify.verify(verify.load_journals(folder))

    findings = find()
    for finding in findings:
        mark = {True: "yes", False: "NO ", None: "not checked"}[finding.holds]
        text = f"{mark}  {finding.claim}\n     {finding.evidence}"
        print(json.dumps(finding._asdict()) if as_json else text)
    found = {finding.holds for finding in findings}
    if found != {True}:
        raise typer.Exit(1 if False in found else NOT_CHECKED)


def replay(folder: Folder, as_json: options.Json = False) -> None:
    """Compute the recorded exchanges of a network again, and compare all states bit for bit."""
    from gosta.net.audit import verify

    if _is_private(folder):
        instead = "'gosta network verify' adds up the rows again"
        print(f"private sums have no exchanges to replay; {instead}")
        return
    found = verify.replay(verify.load_journals(folder))
    if as_json:
        print(json.dumps(found._asdict()))
    else:
        compared = f"the states of {found.nodes} nodes compared"
        print(f"{found.exchanges:,} exchanges replayed, and {compared}")
        if found.waiting:
            waiting = ", ".join(found.waiting)
            print(f"not compared, as they wait for the confirmation of an exchange: {waiting}")
        differ = f"states differ at {', '.join(found.differing)}" if found.differing else ""
        print(differ or "all these states are the same, bit for bit")
    if found.differing:
        raise typer.Exit(1)


def audit(
    folder: Annotated[Path, typer.Argument(help="A node's folder; the node may be running.")],
    rows: Annotated[bool, "Show every row."] = False,
    as_json: options.Json = False,
) -> None:
    """Show what left a site: its rows, how often and when.

    Of private sums, its contributions and the budget spent.

    Exits with code 1 if entries of the log of contributions were changed or removed, or if there is
    no log.
    """
    from gosta.net.audit import disclosures
    from gosta.net.config import NODE_FILE, read_node

    if read_node(folder / NODE_FILE).network.private is not None:
        _audit_sums(folder, as_json)
        return
    site = disclosures.read_site(folder)
    by_row = disclosures.total_by_row(site.ledger)
    by_neighbour = disclosures.total_by_neighbour(site.ledger)
    found = by_row if rows else by_neighbour
    if as_json:
        for disclosed in found:
            is_current = disclosed.data == site.data
            print(json.dumps({"node": site.node, **disclosed._asdict(), "is_current": is_current}))
    elif not found:
        print(f"{site.node}: no row of this site was sent to a neighbour")
    else:
        print(f"{site.node}: rows of this site that it sent to neighbours")
        if rows:
            lines = [ROW_HEADING, *(_row_line(row, site.data) for row in by_row)]
        else:
            lines = [TOTAL_HEADING, *(_total_line(total, site.data) for total in by_neighbour)]
        print(terminal.columns(lines, indent=0))
        counted = "rows are counted from 0, in the order of the file"
        print(f"data: digest of the data file's rows; {counted}")
        print("a sample counts once for a neighbour and epoch, however often it is sent again")
        members = f"all {len(site.members)} members: {shorten(site.members, 20)}"
        who = members if site.members else "all nodes"
        print(f"neighbours pass these rows on, and so do theirs: they can be seen by {who}")


def _is_private(folder: Path) -> bool:
    from gosta.net.deploy.network import Network

    return Network.read(folder).task.private is not None


def _audit_sums(folder: Path, as_json: bool) -> None:
    from gosta.net.deploy.site_log import read_site_log

    site = read_site_log(folder)
    if as_json:
        for entry in site.log:
            print(entry.line())
    elif not site.log:
        if not site.missing:
            print(f"{site.node}: nothing left this site, and nothing was asked of it")
    else:
        print(f"{site.node}: what left this site, or why nothing did")
        lines = [_entry_line(logged.entry, folder) for logged in site.log]
        print(terminal.columns(_fitting([SUMS_HEADING, *lines]), indent=0))
        never = (
            "a row, a site's own sums without a mask, "
            "or how many rows it has: members know only a bound"
        )
        entries = [("never sent", never)]
        sent = [logged.entry for logged in site.log if logged.entry.event == "contribution"]
        if sent:
            last = sent[-1]
            what = [f"columns {shorten(last.columns, 20)}"]
            what += [] if last.shown else [f"{last.bins} bins"]
            if last.rows_of:
                what.insert(0, f"rows as they were at {_time(last.rows_of)}")
            if last.strata:
                what.append(f"strata: {shorten(last.strata)}")
            entries.append(("the last one", "; ".join([*what, f"noise: {_noise(last)}"])))
            sent_to = f"{shorten(last.sent_to, 20)}; they pass it on to all members"
            entries.append(("sent to", sent_to))
        print(terminal.definitions([*entries, *_sums_entries(site)], wrap=sys.stdout.isatty()))
    if site.missing:
        print(f"{site.node}: the log is not complete: {site.missing}", file=sys.stderr)
        raise typer.Exit(1)


def _fitting(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """Leave out columns so that the beginning of the last one fits the terminal."""
    begun = [[*line[:-1], line[-1][:REASON_CHARACTERS]] for line in lines]
    kept = terminal.drop_columns(begun, SUMS_DISPENSABLE, None)[0]
    places = [place for place, name in enumerate(SUMS_HEADING[:-1]) if name in kept]
    return [[line[place] for place in (*places, -1)] for line in lines]


def _entry_line(entry: LogEntry, folder: Path) -> tuple[str, ...]:
    from gosta.net.watch.overview import with_folder

    noise = _noise(entry)
    event = f"{entry.event}, round {entry.round}" if entry.round > 1 else entry.event
    about = shorten(entry.statistics.split(","), 3)
    if entry.shown and entry.event == "contribution":
        about = f"{about}: {entry.shown}"
    if entry.reason:
        about = f"{about}: {with_folder(entry.reason, folder)}"
    if entry.event == "agreement":
        about = f"exact sums may be computed of: {entry.reason or 'no site'}"
    counted = f"{entry.rows:,}" if entry.rows else "-"  # agreements and refusals are not about rows
    counted += f" of {entry.people:,} people" if entry.people is not None else ""
    size = f"{entry.bytes:,}" if entry.bytes else "-"
    names = entry.participants
    sites = f"{len(names)}: {shorten(names, 6)}" if names else "-"
    what = _time(entry.time), event, str(entry.epoch), entry.layout
    return *what, counted, size, noise, sites, about


def _noise(entry: LogEntry) -> str:
    if entry.law == "none":
        return entry.law
    return f"{entry.law}, epsilon {entry.epsilon:.3g}, delta {entry.delta:.3g}"


def _sums_entries(site: SiteLog) -> list[tuple[str, str]]:
    policy, last = site.policy, site.log[-1]
    whose = "a row" if policy.person is None else "a person"
    # Without a policy that can be read, the default budget is not this site's.
    budget = "" if site.policy_error else f" of {policy.epsilon_budget:g}"
    spent = (
        f"epsilon {site.spent_epsilon:.3g}{budget} for {whose}, at delta {policy.delta_budget:g}"
    )
    sent = [logged.entry for logged in site.log if logged.entry.event == "contribution"]
    plain = sum(entry.law == "none" for entry in sent)
    noise = {entry.noise for entry in sent if entry.law != "none"}
    if repeated := len(sent) - plain - len(noise):
        spent += f"; {repeated} with noise that was sent before cost nothing"
    if plain:
        had = "had no noise and counts" if plain == 1 else "had no noise and count"
        count = "1 contribution" if plain == 1 else f"{plain} contributions"
        rules_alone = f"{count} {had} in no budget: only the rules of the policy protect the rows"
        spent = rules_alone if plain == len(sent) else f"{spent}; besides, {rules_alone}"
    rules = (
        f"modes {', '.join(policy.modes)}; "
        f"at least {policy.min_rows} rows, {policy.min_sites} sites, "
    )
    rules += f"{policy.min_cell} in a cell (others at most {policy.max_min_cell}), "
    rules += f"{policy.min_change} changed rows; at most {policy.max_bins} bins"
    entries = "1 entry" if len(site.log) == 1 else f"{len(site.log):,} entries"
    return [
        ("budget spent", spent),
        ("policy now", site.policy_error or rules),
        ("log", f"{entries}; note the last hash where others keep it"),
        ("last hash", last.hash.hex()),
    ]


def _row_line(row: Row, current: str) -> tuple[str, ...]:
    to = ", ".join(f"{name} {count:,} x" for name, count in row.neighbours.items())
    first, last = _time(row.first_time), _time(row.last_time)
    return _data(row.data, current), f"{row.row}", f"{row.times:,}", first, last, to


def _total_line(total: Total, current: str) -> tuple[str, ...]:
    rows = f"{total.rows:,} of {total.of:,}"
    first, last = _time(total.first_time), _time(total.last_time)
    return _data(total.data, current), total.neighbour, f"{total.samples:,}", rows, first, last


def _data(digest: str, current: str) -> str:
    is_earlier = current not in ("", digest)
    return f"{digest[:8]} (an earlier file)" if is_earlier else digest[:8]


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}"
