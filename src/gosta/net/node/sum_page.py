"""The status of a node of private sums as rows of text: results, participants, noise and budget."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from gosta.errors import shorten
from gosta.net.node.status import Status, SumStatus
from gosta.sketches.layout import StratumResult
from gosta.views import numbers

MAX_NAMES = 12  # of sites that are listed
CERTAIN = "certainly within"  # heading of brackets; left out if there is none, as with noise
HEADING = ("statistic", "rows of", "value", CERTAIN, "interval", "rows", "beyond the range")


def results(sums: SumStatus, level: float | None) -> list[tuple[str, ...]]:
    """Return a table of the last release: each statistic over all rows, then in every stratum; with a heading."""
    heading = [*HEADING]
    heading[4] = f"{numbers.percent(level, 'g')} interval" if level is not None else "interval"
    table = [tuple(heading), *(_row(one, sums) for one in sums.results)]
    has_brackets = any(row[3] != numbers.NONE for row in table[1:])
    return table if has_brackets else [row[:3] + row[4:] for row in table]


def _row(one: StratumResult, sums: SumStatus) -> tuple[str, ...]:
    name, whose = one.statistic, _rows_of(one, sums)
    about = "about " * (sums.law != "none")
    counts = [
        f"{about}{max(0.0, count):,.0f}" if count else numbers.NONE
        for count in (one.rows, one.clipped)
    ]
    if not one.has_value:
        return (
            name,
            whose,
            "none: too few rows, or too much noise",
            numbers.NONE,
            numbers.NONE,
            *counts,
        )
    if len(one.value) > 1:
        return name, whose, f"{len(one.value)} values, below", numbers.NONE, numbers.NONE, *counts
    interval = numbers.interval(*one.interval) if one.interval else numbers.NONE
    return name, whose, value_of(one), bracket_of(one), interval, *counts


def _rows_of(one: StratumResult, sums: SumStatus) -> str:
    return one.stratum or ("the participants" if sums.left_out else "all sites")


def value_of(one: StratumResult, place: int = 0, digits: int = 6) -> str:
    """Return one of a result's values, as "about" so much if nothing is certain: with noise, or a random sketch."""
    return "about " * (not one.is_certified) + numbers.number(one.value[place], digits)


def bracket_of(one: StratumResult, place: int = 0, digits: int = 6) -> str:
    """Return between which numbers a value over the rows certainly is."""
    return (
        numbers.interval(one.low[place], one.high[place], digits)
        if one.is_certified
        else numbers.NONE
    )


def curves(sums: SumStatus) -> list[list[tuple[str, ...]]]:
    """Return a table for each result of several values: all of them, with their brackets; with a heading."""
    return [_curve(one, sums) for one in sums.results if one.has_value and len(one.value) > 1]


def _curve(one: StratumResult, sums: SumStatus) -> list[tuple[str, ...]]:
    labels = one.labels or tuple(map(str, range(len(one.value))))
    width = 4 if one.is_certified else 2
    table = [(f"{one.statistic}, {_rows_of(one, sums)}", "value", "certainly from", "to")]
    for k, label in enumerate(labels):
        table.append(
            (label, value_of(one, k), numbers.number(one.low[k]), numbers.number(one.high[k]))
        )
    return [row[:width] for row in table]


def summary(status: Status, sums: SumStatus) -> Iterator[tuple[str, str]]:
    """Yield the names and values of what a node of private sums reports, except results."""
    if sums.reason:
        yield "because", sums.reason
    if sums.release_time is None:
        yield "result", "none yet"
    else:
        when = f"{datetime.fromtimestamp(sums.release_time):%Y-%m-%d %H:%M:%S}"
        yield "result", f"of epoch {status.estimate_epoch}, {when}"
        yield "sites in it", f"{len(sums.participants)}: {shorten(sums.participants, MAX_NAMES)}"
        yield "sites left out", shorten(sums.left_out, MAX_NAMES) or "none"
    if status.state in ("joining", "contributing"):
        yield "joined this epoch", shorten(sums.joined, MAX_NAMES) or "none"
    if sums.missing and status.state != "suppressed":
        yield "waits for", shorten(sums.missing, MAX_NAMES)
    yield "noise", noise(sums)
    if sums.epsilon:
        yield "budget", f"epsilon {sums.spent_epsilon:.3g} spent of {sums.epsilon_budget:g}"
    yield (
        "contributions of this site",
        f"{sums.contributions:,}; {numbers.count(sums.releases, 'release')}",
    )
    yield "own rows", f"{status.rows:,}; shown here, never sent"
    if sums.rows_of is not None and sums.why_older:
        since = f"{datetime.fromtimestamp(sums.rows_of):%Y-%m-%d %H:%M:%S}"
        yield "rows contributed", f"those of {since}; the file's are not, since {sums.why_older}"
    for name, what in sums.left_out_reasons.items():
        yield f"{name} is left out", f"it {what}"
    yield "epoch", f"{status.epoch}, started by {status.epoch_origin}: {status.epoch_reason}"
    yield "sums", f"layout {sums.layout}"


def noise(sums: SumStatus) -> str:
    if not sums.epsilon:
        return "none"
    law = f", {sums.law}" if sums.law != "none" else ""
    return f"epsilon {sums.epsilon:g}, delta {sums.delta:g} a release{law}"
