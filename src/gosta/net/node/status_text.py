"""A node's status as rows of text, for the terminal, the node's page and the live page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from gosta.errors import shorten
from gosta.net.node.status import REJECTED, STATES, Neighbour, Status, SumStatus
from gosta.net.protocol.records import PartReport
from gosta.sketches.estimates import differences_of
from gosta.sketches.results import StratumResult, p_text
from gosta.views import numbers

Row = tuple[str, ...]
Table = list[Row]  # the first row is the heading

MAX_NAMES = 12  # of sites that are listed
MOST_STATISTICS = 8  # whose curves and strata are shown, too, if nobody asks for all
MAX_REJECTIONS = 50  # kinds that are listed
GOOD_STATES = ("running", "converged", "complete")
NEIGHBOURS_HEADING = ("neighbour", "state", "exchanges", "last heard", "round trip", "difference")
EXCHANGE_COLUMNS = ("exchanges", "difference")  # private sums do not have these
CERTAIN = "certainly within"  # heading of brackets; left out if there is none, as with noise


def summary(status: Status) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a status, except those in tables and events."""
    yield "state", status.state
    if status.state not in GOOD_STATES and status.state in STATES:
        yield "that means", STATES[status.state]
    if status.disk_error:
        yield "disk error", status.disk_error
    if status.list_conflict and (status.sums is None or status.sums.reason != status.list_conflict):
        yield "two member lists", status.list_conflict
    if status.proposed_list:
        accept = "to be accepted with: gosta node accept FOLDER"
        yield "new member list", f"{status.proposed_list}, {accept}"
    if status.reload_error:
        yield "changed files are not in use", status.reload_error
    yield from _estimate(status) if status.sums is None else _sums(status, status.sums)
    yield "protocol", status.protocol
    yield "network", status.network
    if status.list_fingerprint:
        hint = "to be compared with other sites', on the phone"
        yield f"fingerprint of list {status.list_serial}", f"{status.list_fingerprint}, {hint}"
    if status.uptime_seconds is not None:
        yield "running for", numbers.duration(status.uptime_seconds)


def tables(status: Status, is_brief: bool = False) -> list[Table]:
    """Return the tables of a status: results, curves, neighbours and rejections.

    Brief ones have no curves, and no results of strata.
    """
    found = [results(status, is_brief)]
    if not is_brief:
        found += [*curves(status), differences(status)]
    return [table for table in (*found, neighbours(status), rejections(status)) if table]


def is_long(status: Status) -> bool:
    """Return whether there are so many statistics that brief tables are of more use."""
    found = () if status.sums is None else status.sums.results
    return len({one.statistic for one in found}) > MOST_STATISTICS


def events(status: Status) -> list[tuple[str, str]]:
    """Return the names and counts of events since the node started, except rejections."""
    counters = sorted(status.counters.items())
    return [(name, f"{count:,}") for name, count in counters if not name.startswith(REJECTED)]


# An estimate from exchanges of rows.


def _estimate(status: Status) -> Iterator[tuple[str, str]]:
    estimate = "none yet" if status.estimate is None else numbers.number(status.estimate)
    if status.statistics:
        estimate = f"{len(status.statistics)} estimates, below"
    if status.estimate is not None and status.estimate_epoch != status.epoch:
        estimate += f" (of epoch {status.estimate_epoch})"
    yield status.statistic, estimate
    if status.low is not None and status.confidence_level is not None:
        yield _interval_heading(status), numbers.interval(status.low, status.high)
    for part in status.statistics:
        if part.no_interval and status.confidence_level is not None:
            yield "no interval", part.no_interval
    yield "over the rows of", coverage(status)
    if status.expected_error is not None and not status.statistics:
        yield "expected error", numbers.error(status.value_errors or status.expected_error)
    if status.max_difference is not None:
        yield "largest difference from a neighbour", numbers.error(status.max_difference)
    yield "own rows", f"{status.rows:,}"
    yield "exchanges", f"{status.exchanges:,} in epoch {status.epoch}"
    yield _epoch(status)


def coverage(status: Status) -> str:
    """Return how many sites and rows the estimate is over, and who is missing."""
    sites, rows = f"{status.sites_seen:,}", f"{status.rows_seen:,}"
    sites += f" of {numbers.count(status.sites, 'site')}" if status.sites else " sites"
    rows += f" of {numbers.count(status.rows_declared, 'row')}" if status.rows_declared else " rows"
    missing = f"; missing: {shorten(status.missing, MAX_NAMES)}" if status.missing else ""
    return f"{sites}, {rows}{missing}"


def cells(part: PartReport, digits: int = 6) -> tuple[str, str, str]:
    """Return estimate, interval and expected error of one of several statistics."""
    interval = numbers.interval(part.low, part.high, digits)
    return numbers.number(part.value, digits), interval, numbers.error(part.expected_error)


def _interval_heading(status: Status) -> str:
    level = status.confidence_level
    return "interval" if level is None else f"{numbers.percent(level, 'g')} interval"


def _epoch(status: Status) -> tuple[str, str]:
    return "epoch", f"{status.epoch}, started by {status.epoch_origin}: {status.epoch_reason}"


# Results of private sums.


def _sums(status: Status, sums: SumStatus) -> Iterator[tuple[str, str]]:
    if sums.reason:
        yield "because", sums.reason
    if sums.release_time is None:
        yield "result", "none yet"
    else:
        yield "result", f"of epoch {status.estimate_epoch}, {_date(sums.release_time)}"
        yield "sites in it", f"{len(sums.participants)}: {shorten(sums.participants, MAX_NAMES)}"
        yield "sites left out", shorten(sums.left_out, MAX_NAMES) or "none"
    if status.state in ("joining", "contributing"):
        yield "joined this epoch", shorten(sums.joined, MAX_NAMES) or "none"
    if sums.missing and status.state != "suppressed":
        yield "waits for", shorten(sums.missing, MAX_NAMES)
    yield "noise", noise(sums)
    if sums.epsilon:
        yield "budget", f"epsilon {sums.spent_epsilon:.3g} spent of {sums.epsilon_budget:g}"
    released = numbers.count(sums.releases, "release")
    yield "contributions of this site", f"{sums.contributions:,}; {released}"
    yield "own rows", f"{status.rows:,}; shown here, never sent"
    if sums.rows_of is not None and sums.why_older:
        why = f"the file's are not, since {sums.why_older}"
        yield "rows contributed", f"those of {_date(sums.rows_of)}; {why}"
    for name, what in sums.left_out_reasons.items():
        yield f"{name} is left out", f"it {what}"
    yield _epoch(status)
    yield "sums", f"layout {sums.layout}"


def noise(sums: SumStatus) -> str:
    """Return what a release costs, and the law of its noise."""
    if not sums.epsilon:
        return "none"
    law = f", {sums.law}" if sums.law != "none" else ""
    return f"epsilon {sums.epsilon:g}, delta {sums.delta:g} a release{law}"


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M:%S}"


def has_several(result: StratumResult) -> bool:
    """Return whether a result has values with names, which stand in a table of their own."""
    return len(result.value) > 1 or result.is_fit


def several(result: StratumResult) -> str:
    """Return how many values a result has."""
    return numbers.count(len(result.value), "coefficient" if result.is_fit else "value")


def value_of(result: StratumResult, place: int = 0, digits: int = 6) -> str:
    """Return one of a result's values, with "about" if it is not certain, as with noise."""
    return "about " * (not result.is_certified) + numbers.number(result.value[place], digits)


def bracket_of(result: StratumResult, place: int = 0, digits: int = 6) -> str:
    """Return between which numbers a value over the rows certainly is."""
    if not result.is_certified:
        return numbers.NONE
    return numbers.interval(result.low[place], result.high[place], digits)


def _rows_of(result: StratumResult, sums: SumStatus) -> str:
    return result.stratum or ("the participants" if sums.left_out else "all sites")


# Tables.


def results(status: Status, is_brief: bool = False) -> Table:
    """Return a table of several statistics, or of the results of private sums; empty: none."""
    if status.sums is not None:
        return _sum_results(status.sums, _interval_heading(status), is_brief)
    if not status.statistics:
        return []
    heading = ("statistic", "estimate", _interval_heading(status), "expected error")
    return [heading, *((part.statistic, *cells(part)) for part in status.statistics)]


def _sum_results(sums: SumStatus, interval: str, is_brief: bool) -> Table:
    """Return a table of the last release: each statistic over all rows, then in every stratum.

    Table 1 comes last; a brief table has no strata.
    """
    if not sums.results:
        return []
    heading = ("statistic", "rows of", "value", CERTAIN, interval, "rows", "beyond the range")
    shown = [result for result in sums.results if not (is_brief and result.stratum)]
    shown.sort(key=lambda result: result.statistic.partition(":")[0] == "table-one")
    where = "" if is_brief else ", below"
    table = [heading, *(_result_row(result, sums, where) for result in shown)]
    has_brackets = any(row[3] != numbers.NONE for row in table[1:])
    return table if has_brackets else [row[:3] + row[4:] for row in table]


def _result_row(result: StratumResult, sums: SumStatus, where: str) -> Row:
    value = bracket = interval = numbers.NONE
    if not result.has_value:
        value = f"none: {result.why}"
    elif has_several(result):
        value = f"{several(result)}{where}"
    else:
        value, bracket = value_of(result), bracket_of(result)
        interval = numbers.interval(*result.interval) if result.interval else numbers.NONE
        interval += p_text(result)
    about = "about " * (sums.law != "none")
    counts = [
        f"{about}{max(0.0, count):,.0f}" if count else numbers.NONE
        for count in (result.rows, result.clipped)
    ]
    return result.statistic, _rows_of(result, sums), value, bracket, interval, *counts


def curves(status: Status) -> list[Table]:
    """Return a table for each result of private sums with several values: all, with brackets."""
    sums = status.sums
    if sums is None:
        return []
    interval = _interval_heading(status)
    return [
        _coefficients(one, sums, interval) if one.is_fit else _curve(one, sums)
        for one in sums.results
        if one.has_value and has_several(one)
    ]


def _coefficients(result: StratumResult, sums: SumStatus, interval: str) -> Table:
    """Return a table of the coefficients of a model."""
    heading = (f"{result.statistic}, {_rows_of(result, sums)}", "coefficient", "standard error")
    ends = result.intervals or ((None, None),) * len(result.value)
    columns = (result.labels, result.value, result.standard_errors, ends, result.p_values)
    table: Table = [(*heading, interval, "p")]
    for name, value, error, pair, p in zip(*columns, strict=True):
        shown = numbers.number(value), numbers.number(error)
        table.append((name, *shown, numbers.interval(*pair), numbers.p_value(p)))
    return table


def _curve(result: StratumResult, sums: SumStatus) -> Table:
    labels = result.labels or tuple(map(str, range(len(result.value))))
    table: Table = [
        (f"{result.statistic}, {_rows_of(result, sums)}", "value", "certainly from", "to")
    ]
    for k, label in enumerate(labels):
        low, high = numbers.number(result.low[k]), numbers.number(result.high[k])
        table.append((label, value_of(result, k), low, high))
    return table if result.is_certified else [row[:2] for row in table]


def differences(status: Status) -> Table:
    """Return a table of differences between the strata of private sums; empty: there are none."""
    if status.sums is None:
        return []
    heading = ("difference", "between", "value", _interval_heading(status), "p")
    table: Table = [heading]
    for one in differences_of(status.sums.results, status.confidence_level):
        if isinstance(one.value, float):
            value = "about " * (status.sums.law != "none") + numbers.number(one.value)
            ends, p = numbers.interval(one.low, one.high), numbers.p_value(one.p_value)
            table.append((one.statistic, str(one.group), value, ends, p))
    return table if len(table) > 1 else []


def neighbours(status: Status) -> Table:
    """Return a table of the neighbours; in private sums there are no exchanges to count."""
    rows = (neighbour_row(neighbour, status.epoch) for neighbour in status.neighbours)
    table: Table = [NEIGHBOURS_HEADING, *rows]
    if status.sums is None:
        return table
    places = [k for k, name in enumerate(NEIGHBOURS_HEADING) if name not in EXCHANGE_COLUMNS]
    return [tuple(row[k] for k in places) for row in table]


def neighbour_row(neighbour: Neighbour, epoch: int) -> Row:
    """Return a neighbour as a row of text; `epoch` is the epoch of the node that sees it."""
    return (
        neighbour.name,
        neighbour_state(neighbour, epoch),
        f"{neighbour.exchanges:,}",
        numbers.duration(neighbour.silent_seconds),
        numbers.milliseconds(neighbour.round_trip_seconds),
        numbers.error(neighbour.difference),
    )


def neighbour_state(neighbour: Neighbour, epoch: int) -> str:
    """Return the state of a neighbour for a node in an epoch."""
    if neighbour.suspended_seconds:
        return f"suspended for {numbers.duration(neighbour.suspended_seconds)}"
    if neighbour.mismatch:
        return f"{neighbour.mismatch} mismatch"
    if not neighbour.connected:
        return "not connected"
    if not neighbour.alive:
        return "silent"
    if neighbour.epoch not in (0, epoch):
        return f"in epoch {neighbour.epoch}"
    return f"connected via {neighbour.via}" if neighbour.via else "connected"


def rejections(status: Status) -> Table:
    """Return a table of what was rejected, the latest first; empty: nothing."""
    if not status.rejections:
        return []
    rows = [
        (
            rejection.neighbour or "a connection",
            rejection.reason,
            f"{rejection.count:,}",
            f"{numbers.duration(rejection.seconds)} ago",
            rejection.detail,
        )
        for rejection in status.rejections[:MAX_REJECTIONS]
    ]
    return [("rejected from", "reason", "times", "last", "the last one"), *rows]
