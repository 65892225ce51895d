"""A node's status as rows of text, and as a page for browsers."""

from __future__ import annotations

from collections.abc import Iterator

from gosta.net.node.status import Status
from gosta.views import html, numbers

REFRESH_SECONDS = 2


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
    if status.low is not None and status.confidence_level is not None:
        yield f"{numbers.percent(status.confidence_level, 'g')} interval", numbers.interval(status.low, status.high)
    if status.expected_error is not None:
        yield "expected error", numbers.error(status.expected_error)
    if status.max_difference is not None:
        yield "largest difference from a neighbour", numbers.error(status.max_difference)
    yield "sites", f"{status.sites_seen:,}, with {status.rows_seen:,} rows; {status.rows:,} rows are its own"
    yield "exchanges", f"{status.exchanges:,} in epoch {status.epoch}"
    yield "protocol", status.protocol
    yield "network", status.network
    if status.uptime_seconds is not None:
        yield "running for", numbers.duration(status.uptime_seconds)


def neighbours(status: Status) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("neighbour", "state", "exchanges", "last heard", "difference")]
    for one in status.neighbours:
        state = ("connected" if one.connected else "not connected") + f", {one.mismatch} mismatch" * bool(one.mismatch)
        silence, difference = numbers.duration(one.silent_seconds), numbers.error(one.difference)
        rows.append((one.name, state, f"{one.exchanges:,}", silence, difference))
    return rows


def events(status: Status) -> list[tuple[str, str]]:
    """Return the names and counts of events since the node started."""
    return [(name, f"{count:,}") for name, count in sorted(status.counters.items())]
