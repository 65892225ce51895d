"""Sketches of times to an event: counts in time bin × (event or censored) × score bin or class.

The order of two rows is known where their time bins differ; within a time bin every order is possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from math import erfc, inf, nan, sqrt
from typing import Any

import numpy as np

from gosta.errors import InputError
from gosta.runtime.arrays import Booleans, Floats
from gosta.sketches.definition import (
    CLEAR,
    Axis,
    Features,
    Result,
    Sketch,
    after,
    before,
    merge_starts,
    one,
    sketch,
    undefined,
)
from gosta.statistics import encode
from gosta.statistics.definition import Options

MOST_TIMES = 10  # at which a curve is shown
FLOAT_ERROR = 1e-12  # of expected events, for each event: far less than this is lost to the rounding of floats


@sketch("concordance-index")
class ConcordanceIndex(Sketch):
    """Harrell's C, the share of pairs ordered correctly by the score, from counts in bins of time and score.

    The sums: censored rows, then events; each in time bin × score bin.
    """

    encode = staticmethod(encode.survival)
    roles = ("time", "event", "score")
    features_per_row = 1
    are_counts = True
    bounds = (0.0, 1.0)

    @property
    def size(self) -> int:  # type: ignore[override]
        return 2 * self.axes[0].bins * self.axes[2].bins

    def features(self, x: Floats) -> Features:
        """Count a row by event, time and score."""
        times, scores = self.axes[0].positions(x[:, 0]), self.axes[2].positions(x[:, 2])
        positions = (x[:, 1].astype(np.int64) * self.axes[0].bins + times) * self.axes[
            2
        ].bins + scores
        return Features(positions[:, None], np.ones((len(x), 1)))

    def count(self, totals: Floats) -> float:
        """Return the sum of all counts."""
        return float(totals.sum())

    def _counts(self, totals: Floats) -> tuple[Floats, Floats]:
        """Return counts of events and of all rows: time bins × score bins."""
        censored, events = totals.reshape(2, self.axes[0].bins, -1)
        return events, censored + events

    def _ordered(self, totals: Floats) -> tuple[float, float, float]:
        """Return pairs in different time bins: ordered correctly by score bins, in the same score bin, and all."""
        events, rows = self._counts(totals)
        later = after(rows, 0)
        right, tied = (events * before(later, 1)).sum(), (events * later).sum()
        return float(right), float(tied), float((events * later.sum(axis=1, keepdims=True)).sum())

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Add to the pairs that are known those within time bins that would raise, or lower, the share."""
        events, rows = self._counts(totals)
        censored = rows - events
        right, tied, pairs = self._ordered(totals)
        # In one time bin: two events in either order, or none if tied; an event and a censored row, or neither first.
        number = events.sum(axis=1)
        both = float((number * (number - 1)).sum()) / 2
        up = both + float((events * (before(censored, 1) + censored)).sum())
        down = both + float((events * (after(censored, 1) + censored)).sum())
        won, of, _, _ = self._estimate(totals)
        if of < 0.5:
            return undefined()
        low, high = right / max(pairs + down, 1e-9), (right + tied + up) / max(pairs + up, 1e-9)
        return one(won / of, low if pairs + down else 1.0, high)

    def _estimate(self, totals: Floats) -> tuple[float, float, Floats, Floats]:
        """Return pairs ordered correctly and all that can be compared, and the derivatives of both.

        Where time bins cut a range, two events in one bin are a pair, ordered correctly half of the time and, as order
        matters less the closer times are, a sixth of the excess between neighbouring bins more; and half of the pairs
        of an event and a censored row count. Otherwise rows in one bin have the same time.
        """
        events, rows = self._counts(totals)
        censored = rows - events
        right, tied, pairs = self._ordered(totals)
        later, earlier = after(rows, 0), before(events, 0)
        is_smooth = self.axes[0].is_smooth
        share = 0.5 if is_smooth else 1.0
        number, lost = events.sum(axis=1, keepdims=True), censored.sum(axis=1, keepdims=True)
        won = (
            right + tied / 2 + share * float((events * (before(censored, 1) + censored / 2)).sum())
        )
        of = pairs + share * float((number * lost).sum())
        as_later, later_of = after(earlier, 1) + earlier / 2, earlier.sum(axis=1, keepdims=True)
        by_event = (
            as_later + before(later, 1) + later / 2 + share * (before(censored, 1) + censored / 2)
        )
        by_censored = as_later + share * (after(events, 1) + events / 2)
        event_of = later_of + later.sum(axis=1, keepdims=True) + share * lost
        if is_smooth:
            signs = before(events, 1) - after(events, 1)
            none = np.zeros((1, signs.shape[1]))
            following, preceding = np.vstack([signs[1:], none]), np.vstack([none, signs[:-1]])
            own = float((number * (number - 1)).sum()) / 2
            won, of = won + own / 2 + float((events * following).sum()) / 12, of + own
            by_event = by_event + (number - 0.5) / 2 + (following - preceding) / 12
            event_of = event_of + number - 0.5
        by_of = np.stack([later_of + share * number + 0 * events, event_of + 0 * events])
        return won, of, np.stack([by_censored, by_event]).ravel(), by_of.ravel()

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivative of a quadratic form over another."""
        won, of, by_won, by_of = self._estimate(totals)
        return (by_won - won / of * by_of) / of if of >= 0.5 else None


class TimeBins(Sketch):
    """The sums: counts in group × time bin; groups are censored rows and events, of each class if there are some."""

    groups: int
    features_per_row = 1
    are_counts = True

    def __init__(
        self, axes: Sequence[Axis], classes: int = 2, options: Options | None = None
    ) -> None:
        super().__init__(axes, classes, options)
        self.size = self.groups * axes[0].bins
        edges = np.array(axes[0].edges or (axes[0].high,))
        self.clear = axes[0].bins  # so many bins; with noise, of later ones only the sum is used
        # Those at which a curve is shown.
        self.times = edges[
            np.unique(np.linspace(0, len(edges) - 1, min(MOST_TIMES, len(edges))).astype(int))
        ]

    def features(self, x: Floats) -> Features:
        """Count a row by class, event and time."""
        group = x[:, 1].astype(np.int64)
        if self.has_classes:
            group = group + 2 * (x[:, 2] < 0)
        positions = group * self.axes[0].bins + self.axes[0].positions(x[:, 0])
        return Features(positions[:, None], np.ones((len(x), 1)))

    def count(self, totals: Floats) -> float:
        """Return the sum of all counts."""
        return float(totals.sum())

    def groups_of(self, totals: Floats) -> Floats:
        """Return the censored rows and the events, of each class if there are some."""
        return np.asarray(totals.reshape(self.groups, -1).sum(axis=1))

    def with_noise(self, totals: Floats, noise: float) -> Sketch:
        """Find the bins at whose end the rows at risk, of each class, are certainly not noise alone."""
        made = copy(self)
        leaving = totals.reshape(-1, 2, self.axes[0].bins).sum(axis=1)
        left = np.arange(self.axes[0].bins)[::-1]
        is_clear = (after(leaving) > CLEAR * np.sqrt(2 * noise * left)).all(axis=0) & (left > 0)
        made.noise, made.clear = noise, int(np.cumprod(is_clear).sum())
        made.times = self.times[self.times <= self.axes[0].bounds[made.clear]]
        return made

    def counts(self, totals: Floats) -> Floats:
        """Return the counts of each group: groups × bins, with bins that are not clear as one."""
        counts = totals.reshape(self.groups, -1)
        return np.column_stack([counts[:, : self.clear], counts[:, self.clear :].sum(axis=1)])

    def merged(self, totals: Floats, min_cell: int) -> tuple[Sketch, Floats]:
        """Merge time bins in which a group is small; the times of a curve stay those of all edges."""
        counts = totals.reshape(self.groups, -1)
        starts = merge_starts(counts, min_cell, self.axes[0].bounds)
        made = type(self)([self.axes[0].merged(starts), *self.axes[1:]], self.classes, self.options)
        made.times = self.times
        return made, np.add.reduceat(counts, starts, axis=1).ravel()


@sketch("kaplan-meier")
class KaplanMeier(TimeBins):
    """Kaplan-Meier curve, the share without an event before a time: at `times`, or up to ten edges of time bins."""

    encode = staticmethod(encode.event_times)
    roles = ("time", "event")
    groups = 2
    bounds = (0.0, 1.0)
    shows_bins = True
    trend = -1
    defaults = {"times": None}  # noqa: RUF012

    def __init__(
        self, axes: Sequence[Axis], classes: int = 2, options: Options | None = None
    ) -> None:
        super().__init__(axes, classes, options)
        if self.options["times"] is not None:
            self.times = _times(self.options["times"])

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Multiply the shares that survive bins: the most if events come first in a bin, the least if last."""
        censored, events = self.counts(totals)
        labels = tuple(f"before {time:g}" for time in self.times)
        if totals.sum() < 0.5:
            return undefined(labels)
        at_risk = after(censored + events) + censored + events
        curves = []
        for leaving in (0.5, 1.0, 0.0):
            risk = np.maximum(at_risk - leaving * censored, np.maximum(events, 1e-9))
            curves.append(np.concatenate([[1.0], np.cumprod((risk - events) / risk)]))
        value, low, high = curves
        ends, edges = self.axes[0].bounds, self.axes[0].edges
        left = np.searchsorted(
            edges, self.times, side="right"
        )  # the last end of a bin that is not after the time
        right = np.searchsorted(edges, self.times, side="left") + 1
        right = np.where(np.isin(self.times, edges), left, right)
        share = np.where(
            right > left,
            (self.times - ends[left]) / (ends[np.maximum(right, left + 1)] - ends[left]),
            0,
        )
        return Result(
            value[left] + share * (value[right] - value[left]),
            low[right],
            high[left],
            labels=labels,
        )

    def exact(self, x: Floats, weights: Floats | None = None) -> Floats:
        """Multiply over the times of events."""
        at, place = np.unique(x[:, 0], return_inverse=True)
        counts = np.ones(len(x)) if weights is None else weights
        leaving, died = (
            np.bincount(place.reshape(-1), part) for part in (counts, counts * (x[:, 1] > 0))
        )
        risk = np.cumsum(leaving[::-1])[::-1]
        factors = 1 - np.divide(died, risk, out=np.zeros(len(at)), where=died > 0)
        return np.array([np.prod(factors[at < t]) for t in self.times])


def _times(given: Any) -> Floats:
    """Return times given as a number, as several, or as text separated by commas."""
    try:
        texts = given.split(",") if isinstance(given, str) else np.ravel(given).tolist()
        times = np.array([float(one) for one in texts])
    except (TypeError, ValueError):
        times = np.zeros(0)
    if not len(times) or not np.isfinite(times).all():
        raise InputError(f"times = {given!r} must be numbers, such as 365,730")
    return times


@sketch("log-rank")
class LogRank(TimeBins):
    """Log-rank test of two classes: the statistic, which is chi-squared with one degree of freedom, and its p-value."""

    encode = staticmethod(encode.grouped_event_times)
    roles = ("time", "event")
    has_classes = True
    groups = 4
    bounds = (0.0, inf)
    labels = ("chi-squared", "p-value")
    no_weights = "a test depends on the number of rows, which weights are not"

    def groups_of(self, totals: Floats) -> Floats:
        """Return the rows of both classes."""
        return np.asarray(totals.reshape(2, -1).sum(axis=1))

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Bound the share of the first class among rows at risk within each bin, so the expected events."""
        censored, events = self.counts(totals).reshape(2, 2, -1).swapaxes(0, 1)
        leaving = censored + events
        start = after(leaving) + leaving  # at risk at the beginning of a bin, of each class
        if start[:, 0].min() < 0.5 or events.sum() < 0.5:
            return undefined(self.labels)
        stop = start - leaving
        died = events.sum(axis=0)
        # Of the rows at risk at an event, the first class has the least share where it has lost all that it can.
        least = stop[0] / np.maximum(stop[0] + start[1], 1e-9)
        most = start[0] / np.maximum(start[0] + stop[1], 1e-9)
        middle = (start + stop).sum(axis=0) / 2
        share = np.clip((start + stop)[0] / 2 / np.maximum(middle, 1e-9), least, most)
        observed, expected = float(events[0].sum()), float(died @ share)
        if self.noise > 0:
            variance = died @ (share * (1 - share))
            middle, bottom, top = (
                np.array([observed - died @ part, variance]) for part in (share, most, least)
            )
            return Result(middle, bottom, top, labels=self.labels)
        fewest = _least_expected(start, stop, events)
        highest = float(died.sum()) - _least_expected(start[::-1], stop[::-1], events[::-1])
        spread = share * (1 - share)
        # As products of shares of both classes: 1 less a share close to 1 has few digits.
        ends = np.array([stop[0] * start[1], start[0] * stop[1]])
        ends = ends / np.maximum(np.array([stop[0] + start[1], start[0] + stop[1]]), 1e-9) ** 2
        peak = np.where((least < 0.5) & (most > 0.5), 0.25, ends.max(axis=0))
        # Of events at one time at most all but one are lost to ties: factor (n − d)/(n − 1), n rows at risk.
        rest = stop.sum(axis=0)
        ties = np.where(died > 1, rest / np.maximum(rest + died - 1, 1.0), 1.0)
        variance, least_of, most_of = (
            float(died @ part) for part in (spread, ends.min(axis=0) * ties, peak)
        )
        room = FLOAT_ERROR * float(died.sum())
        gaps = [observed - fewest + room, observed - highest - room]
        nearest = 0.0 if gaps[0] >= 0 >= gaps[1] else min(abs(gap) for gap in gaps)
        if not variance > 0:
            return undefined(self.labels)
        chi = (observed - expected) ** 2 / variance
        least_chi = nearest**2 / most_of if most_of > 0 else 0.0
        most_chi = max(gap**2 for gap in gaps) / least_of if least_of > 0 else inf
        chis = min(max(chi, least_chi), most_chi), least_chi, most_chi
        value, low, high = ((c, erfc(sqrt(c / 2))) for c in chis)
        return Result(
            np.array(value),
            np.array([low[0], high[1]]),
            np.array([high[0], low[1]]),
            labels=self.labels,
        )

    def finished(self, found: Result, errors: Floats) -> Result:
        """Return the test by observed less expected events, whose variance is that without noise and that of noise."""
        (gap, variance), (least, least_of), (most, most_of) = found[:3]
        if not variance > 0:
            return undefined(self.labels)
        chi = gap**2 / (variance + errors[0] ** 2)
        nearest = 0.0 if least <= 0 <= most else min(least**2, most**2)
        bottom = min(chi, nearest / most_of)
        top = max(chi, max(least**2, most**2) / least_of) if least_of > 0 else inf
        value, low, high = ((c, erfc(sqrt(c / 2))) for c in (chi, bottom, top))
        return Result(
            np.array(value),
            np.array([low[0], high[1]]),
            np.array([high[0], low[1]]),
            labels=self.labels,
        )

    def exact(self, x: Floats, weights: Floats | None = None) -> Floats:
        """Return the square of z, and its p-value."""
        z = log_rank_z(x)
        return np.array([z * z, erfc(abs(z) / sqrt(2))])


def log_rank_z(x: Floats) -> float:
    """Return observed less expected events of the first class, in standard deviations; NaN without a comparison."""
    times, place = np.unique(x[:, 0], return_inverse=True)
    place, died, first = place.reshape(-1), x[:, 1] > 0, x[:, 2] > 0

    def count(rows: Booleans) -> Floats:
        return np.bincount(place[rows], minlength=len(times)).astype(np.float64)

    at_risk, of_first = (
        np.cumsum(count(rows)[::-1])[::-1] for rows in (np.ones(len(x), dtype=np.bool_), first)
    )
    events, share = count(died), of_first / at_risk
    gap = (count(died & first) - events * share).sum()
    ties = (at_risk - events) / np.maximum(at_risk - 1, 1.0)
    variance = (events * share * (1 - share) * ties).sum()
    return float(gap / sqrt(variance)) if variance > 0 else nan


def _least_expected(start: Floats, stop: Floats, events: Floats) -> float:
    """Return the least that the expected events of the first class can add up to.

    In a bin, of the first class at least those are at risk that stay, and at its m-th event from the last m more. Of
    the second class it is at most all.
    """
    whole = np.floor(events[0]).astype(np.int64)
    bins = np.repeat(np.arange(len(whole)), whole)
    own = stop[0][bins] + np.arange(len(bins)) - before(whole.astype(np.float64))[bins] + 1
    others = events.sum(axis=0) - whole
    share = stop[0] / np.maximum(stop[0] + start[1], 1e-9)
    return float((own / (own + start[1][bins])).sum() + others @ share)
