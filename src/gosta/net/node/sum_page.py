"""The status of a node of private sums as rows of text: results, participants, noise and budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from gosta.errors import shorten
from gosta.net.node.status import Status, SumStatus
from gosta.sketches.layout import StratumResult
from gosta.views import numbers

MAX_NAMES = 12  # of sites that are listed
MAX_VALUES = 8  # of a curve that are listed
HEADING = ("statistic", "rows of", "value", "certainly within", "interval", "rows", "beyond the range")


def results(sums: SumStatus, level: float | None) -> list[tuple[str, ...]]:
    """Return a table of the last release: each statistic over all rows, then in every stratum; with a heading."""
    heading = [*HEADING]
    heading[4] = f"{numbers.percent(level, 'g')} interval" if level is not None else "interval"
    return [tuple(heading), *(_row(one) for one in sums.results)]


def _row(one: StratumResult) -> tuple[str, ...]:
    name, stratum = one.statistic, one.stratum or "all sites"
    counts = f"{max(0.0, one.rows):,.0f}", f"{max(0.0, one.clipped):,.0f}" if one.clipped else numbers.NONE
    if not one.has_value:
        return name, stratum, "none: too few rows, or too much noise", numbers.NONE, numbers.NONE, *counts
    if len(one.value) > 1:
        return name, stratum, _curve(one), numbers.NONE, numbers.NONE, *counts
    bracket = numbers.interval(one.low[0], one.high[0]) if one.is_certified else numbers.NONE
    interval = numbers.interval(*one.interval) if one.interval else numbers.NONE
    return name, stratum, numbers.number(one.value[0]), bracket, interval, *counts


def _curve(one: StratumResult) -> str:
    """Return some points of a curve; all are in the JSON."""
    labels: Sequence[str] = one.labels or [str(k) for k in range(len(one.value))]
    step = -(-len(one.value) // MAX_VALUES)
    shown = [f"{labels[k]}: {numbers.number(one.value[k], 4)}" for k in range(0, len(one.value), step)]
    return ", ".join(shown) + f" (of {len(one.value)})" * (step > 1)


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
    if sums.missing:
        yield "waits for", shorten(sums.missing, MAX_NAMES)
    yield "noise", noise(sums)
    if sums.epsilon:
        budget = "no limit" if sums.epsilon_budget is None else f"of {sums.epsilon_budget:g}"
        yield "budget", f"epsilon {sums.spent_epsilon:.3g} spent, {budget}"
    yield "contributions of this site", f"{sums.contributions:,}; {numbers.count(sums.releases, 'release')}"
    yield "own rows", f"{status.rows:,}; shown here, never sent"
    yield "epoch", f"{status.epoch}, started by {status.epoch_origin}: {status.epoch_reason}"
    yield "sums", f"layout {sums.layout}"


def noise(sums: SumStatus) -> str:
    if not sums.epsilon:
        return "none"
    law = f", {sums.law}" if sums.law != "none" else ""
    return f"epsilon {sums.epsilon:g}, delta {sums.delta:g} a release{law}"
