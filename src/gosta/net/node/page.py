"""A node's status as rows of text, and as a page for browsers."""

from __future__ import annotations

from collections.abc import Iterator

from gosta.net.node.status import Neighbour, Status
from gosta.views import html, numbers

REFRESH_SECONDS = 2
NEIGHBOUR_HEADING = ("neighbour", "state", "exchanges", "last heard", "difference")


def page(status: Status) -> str:
    """Return the status page: the estimate and its accuracy, then neighbours, then counts of events."""
    tables = html.table(summary(status)) + html.table(neighbours(status), heading=True) + html.table(events(status))
    return html.page(status.node, tables, REFRESH_SECONDS)


def summary(status: Status) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a status, except neighbours and events."""
    yield "state", status.state
    estimate = "none yet" if status.estimate is None else numbers.number(status.estimate)
    if status.estimate is not None and status.estimate_epoch != status.epoch:
        estimate += f" (of epoch {status.estimate_epoch})"
    yield status.statistic, estimate
    if status.low is not None and status.level is not None:
        yield f"{numbers.percent(status.level, 'g')} interval", numbers.interval(status.low, status.high)
    if status.doubt:
        yield "waiting for reply", f"from {status.doubt.to}, {numbers.duration(status.doubt.since)}"
    yield "expected error", numbers.error(status.expected_error)
    yield "largest difference from a neighbour", numbers.error(status.agreement)
    yield "nodes seen", f"{status.nodes_met:,}, with {status.rows_met:,} rows; {status.rows:,} rows are its own"
    yield "exchanges", f"{status.exchanges:,} in epoch {status.epoch}"
    yield "protocol", status.protocol
    yield "network", status.network
    yield "running for", numbers.duration(status.uptime)


def neighbours(status: Status) -> list[tuple[str, ...]]:
    """Return a heading and a row for each neighbour."""
    return [NEIGHBOUR_HEADING, *map(_neighbour, status.neighbours)]


def _neighbour(one: Neighbour) -> tuple[str, ...]:
    state = "connected" if one.connected else "not connected"
    state += f", {one.disagrees} mismatch" * bool(one.disagrees)
    return one.name, state, f"{one.meetings:,}", numbers.duration(one.silent), numbers.error(one.differs)


def events(status: Status) -> list[tuple[str, str]]:
    """Return the names and counts of events since the node started."""
    return [(name, f"{count:,}") for name, count in sorted(status.counts.items())]
