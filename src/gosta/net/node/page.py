"""A node's status as rows of text, and as a page for browsers."""

from __future__ import annotations

from collections.abc import Iterator

from gosta.errors import shorten
from gosta.net.node import sum_page
from gosta.net.node.status import STATES, Neighbour, Status
from gosta.net.protocol.report import PartReport
from gosta.views import html, numbers

REFRESH_SECONDS = 2
MAX_NAMES = 12  # of missing sites that are listed
MAX_REJECTIONS = 50  # kinds that are listed
GOOD_STATES = ("running", "converged", "complete")
NEIGHBOURS_HEADING = ("neighbour", "state", "exchanges", "last heard", "round trip", "difference")
OF_EXCHANGES = ("exchanges", "difference")  # columns that private sums do not have
REJECTED = "rejected: "  # prefix of counters that have a table and a metric of their own


def page(status: Status) -> str:
    """Return the status page: the estimate and its accuracy, then neighbours, rejections and counts of events."""
    tables = [
        html.table(summary(status), titles={"state": STATES.get(status.state, "")}),
        html.table(results(status), heading=True) if results(status) else "",
        *(html.table(curve, heading=True) for curve in curves(status)),
        html.table(neighbours(status), heading=True),
        html.table(rejections(status), heading=True) if status.rejections else "",
        html.table(events(status)),
    ]
    return html.page(status.node, "".join(tables), REFRESH_SECONDS)


def summary(status: Status) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a status, except neighbours, rejections and events."""
    yield "state", status.state
    if status.state not in GOOD_STATES and status.state in STATES:
        yield "that means", STATES[status.state]
    if status.disk_error:
        yield "disk error", status.disk_error
    if status.list_conflict and (status.sums is None or status.sums.reason != status.list_conflict):
        yield "two member lists", status.list_conflict
    if status.proposed_list:
        yield (
            "new member list",
            f"{status.proposed_list}, to be accepted with: gosta node accept FOLDER",
        )
    if status.reload_error:
        yield "changed files are not in use", status.reload_error
    yield from _estimate(status) if status.sums is None else sum_page.summary(status, status.sums)
    yield "protocol", status.protocol
    yield "network", status.network
    if status.list_fingerprint:
        hint = "to be compared with other sites', on the phone"
        yield f"fingerprint of list {status.list_serial}", f"{status.list_fingerprint}, {hint}"
    if status.uptime_seconds is not None:
        yield "running for", numbers.duration(status.uptime_seconds)


def results(status: Status) -> list[tuple[str, ...]]:
    """Return a table of several statistics, or of the results of private sums, with a heading; empty: none."""
    sums, level = status.sums, status.confidence_level
    if sums is not None:
        return sum_page.results(sums, level) if sums.results else []
    if not status.statistics:
        return []
    heading = "interval" if level is None else f"{numbers.percent(level, 'g')} interval"
    rows = [(one.statistic, *cells(one)) for one in status.statistics]
    return [("statistic", "estimate", heading, "expected error"), *rows]


def cells(one: PartReport, digits: int = 6) -> tuple[str, str, str]:
    """Return estimate, interval and expected error of one of several statistics."""
    value, ends = numbers.number(one.value, digits), numbers.interval(one.low, one.high, digits)
    return value, ends, numbers.error(one.expected_error)


def curves(status: Status) -> list[list[tuple[str, ...]]]:
    """Return a table for each result of private sums that has several values, with a heading."""
    return [] if status.sums is None else sum_page.curves(status.sums)


def _estimate(status: Status) -> Iterator[tuple[str, str]]:
    estimate = "none yet" if status.estimate is None else numbers.number(status.estimate)
    if status.statistics:
        estimate = f"{len(status.statistics)} estimates, below"
    if status.estimate is not None and status.estimate_epoch != status.epoch:
        estimate += f" (of epoch {status.estimate_epoch})"
    yield status.statistic, estimate
    if status.low is not None and status.confidence_level is not None:
        yield (
            f"{numbers.percent(status.confidence_level, 'g')} interval",
            numbers.interval(status.low, status.high),
        )
    for one in status.statistics:
        if one.no_interval and status.confidence_level is not None:
            yield "no interval", one.no_interval
    yield "over the rows of", coverage(status)
    if status.expected_error is not None and not status.statistics:
        yield "expected error", numbers.error(status.value_errors or status.expected_error)
    if status.max_difference is not None:
        yield "largest difference from a neighbour", numbers.error(status.max_difference)
    yield "own rows", f"{status.rows:,}"
    yield "exchanges", f"{status.exchanges:,} in epoch {status.epoch}"
    yield "epoch", f"{status.epoch}, started by {status.epoch_origin}: {status.epoch_reason}"


def coverage(status: Status) -> str:
    """Return how many sites and rows the estimate is over, and who is missing."""
    sites, rows = f"{status.sites_seen:,}", f"{status.rows_seen:,}"
    sites += f" of {numbers.count(status.sites, 'site')}" if status.sites else " sites"
    rows += f" of {numbers.count(status.rows_declared, 'row')}" if status.rows_declared else " rows"
    missing = f"; missing: {shorten(status.missing, MAX_NAMES)}" if status.missing else ""
    return f"{sites}, {rows}{missing}"


def neighbours(status: Status) -> list[tuple[str, ...]]:
    """Return a table of the neighbours, with a heading; in private sums there are no exchanges to count."""
    rows = [NEIGHBOURS_HEADING, *(neighbour_row(one, status.epoch) for one in status.neighbours)]
    if status.sums is None:
        return rows
    places = [place for place, name in enumerate(NEIGHBOURS_HEADING) if name not in OF_EXCHANGES]
    return [tuple(row[place] for place in places) for row in rows]


def neighbour_row(one: Neighbour, epoch: int) -> tuple[str, ...]:
    """Return a neighbour as a row of text; `epoch` is that of the node that sees it."""
    silence, trip = (
        numbers.duration(one.silent_seconds),
        numbers.milliseconds(one.round_trip_seconds),
    )
    return (
        one.name,
        neighbour_state(one, epoch),
        f"{one.exchanges:,}",
        silence,
        trip,
        numbers.error(one.difference),
    )


def neighbour_state(one: Neighbour, epoch: int) -> str:
    if one.suspended_seconds:
        return f"suspended for {numbers.duration(one.suspended_seconds)}"
    if one.mismatch:
        return f"{one.mismatch} mismatch"
    if not one.connected:
        return "not connected"
    if not one.alive:
        return "silent"
    if one.epoch not in (0, epoch):
        return f"in epoch {one.epoch}"
    return f"connected via {one.via}" if one.via else "connected"


def rejections(status: Status) -> list[tuple[str, ...]]:
    """Return a table of what was rejected, with a heading; the latest first."""
    rows: list[tuple[str, ...]] = [("rejected from", "reason", "times", "last", "the last one")]
    for one in status.rejections[:MAX_REJECTIONS]:
        ago = f"{numbers.duration(one.seconds)} ago"
        rows.append(
            (one.neighbour or "a connection", one.reason, f"{one.count:,}", ago, one.detail)
        )
    return rows


def events(status: Status) -> list[tuple[str, str]]:
    """Return the names and counts of events since the node started, except rejections."""
    counters = sorted(status.counters.items())
    return [(name, f"{count:,}") for name, count in counters if not name.startswith(REJECTED)]
