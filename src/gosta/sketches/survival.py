"""Sketches of times to an event: counts in time bin × (event or censored) × score bin or class.

The order of two rows is known where their time bins differ; within a time bin every order is
possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from math import erfc, inf, sqrt
from typing import NamedTuple

import numpy as np

from gosta.measures import survival  # noqa: F401
from gosta.measures.definition import numbers_of
from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.bins import Counts, GroupCounts, sums_after, sums_before
from gosta.sketches.definition import CLEAR, Result, Sketch, single, sketch, undefined
from gosta.statistics import encode
from gosta.statistics.definition import Options

MOST_TIMES = 10  # at which a curve is shown
# Of expected events, for each event: far less than this is lost to the rounding of floats.
FLOAT_ERROR = 1e-12
LEAST_ROWS = 1e-9  # a divisor in place of a number of rows that is 0, or negative by noise


class PairCounts(NamedTuple):
    """Pairs of rows that can be compared, those ordered correctly, and derivatives of both."""

    won: float
    comparable: float
    by_won: Floats  # derivatives by the totals
    by_comparable: Floats


@sketch("concordance-index")
class ConcordanceIndex(Counts):
    """Harrell's C, the share of pairs ordered correctly by the score, from counts in bins of time
    and score.

    The sums: censored rows, then events; each in time bin × score bin.
    """

    encode = staticmethod(encode.survival)
    roles = ("time", "event", "score")
    bounds = (0.0, 1.0)

    @property
    def shape(self) -> tuple[int, ...]:
        return 2, self.axes[0].bins, self.axes[2].bins

    def cells(self, x: Floats) -> Integers:
        _, time_bins, score_bins = self.shape
        times, scores = self.axes[0].positions(x[:, 0]), self.axes[2].positions(x[:, 2])
        return (x[:, 1].astype(np.int64) * time_bins + times) * score_bins + scores

    def _counts(self, totals: Floats) -> tuple[Floats, Floats, Floats]:
        """Return counts of censored rows, of events and of all rows: time bins × score bins."""
        censored, events = self.table(totals)
        rows = censored + events
        return rows - events, events, rows

    def _ordered(self, events: Floats, rows: Floats) -> tuple[float, float, float]:
        """Return pairs in different time bins: ordered correctly, in one score bin, and all."""
        later = sums_after(rows, 0)
        right, tied = (events * sums_before(later, 1)).sum(), (events * later).sum()
        return float(right), float(tied), float((events * later.sum(axis=1, keepdims=True)).sum())

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Add to the known pairs those within time bins that would raise, or lower, the share."""
        censored, events, rows = self._counts(totals)
        right, tied, pairs = self._ordered(events, rows)
        # In one time bin: two events in either order, or none if tied; an event and a censored row,
        # or neither first.
        number = events.sum(axis=1)
        both = float((number * (number - 1)).sum()) / 2
        up = both + float((events * (sums_before(censored, 1) + censored)).sum())
        down = both + float((events * (sums_after(censored, 1) + censored)).sum())
        estimate = self._estimate(totals)
        if estimate.comparable < 0.5:
            return undefined()
        low = right / max(pairs + down, LEAST_ROWS) if pairs + down else 1.0
        high = (right + tied + up) / max(pairs + up, LEAST_ROWS)
        return single(estimate.won / estimate.comparable, low, high)

    def _estimate(self, totals: Floats) -> PairCounts:
        """Return the pairs that count for the value.

        Where time bins cut a range, two events in one bin are a pair, ordered correctly half of the
        time and, as order matters less the closer times are, a sixth of the excess between
        neighbouring bins more; and half of the pairs of an event and a censored row count.
        Otherwise rows in one bin have the same time.
        """
        censored, events, rows = self._counts(totals)
        right, tied, pairs = self._ordered(events, rows)
        later, earlier = sums_after(rows, 0), sums_before(events, 0)
        is_smooth = self.axes[0].is_smooth
        share = 0.5 if is_smooth else 1.0
        event_number = events.sum(axis=1, keepdims=True)
        censored_number = censored.sum(axis=1, keepdims=True)
        # Censored rows of the same time bin that an event is ordered correctly with.
        lower = sums_before(censored, 1) + censored / 2
        won = right + tied / 2 + share * float((events * lower).sum())
        comparable = pairs + share * float((event_number * censored_number).sum())
        as_later = sums_after(earlier, 1) + earlier / 2
        won_by_event = as_later + sums_before(later, 1) + later / 2 + share * lower
        won_by_censored = as_later + share * (sums_after(events, 1) + events / 2)
        earlier_number = earlier.sum(axis=1, keepdims=True)
        by_event = earlier_number + later.sum(axis=1, keepdims=True) + share * censored_number
        by_censored = earlier_number + share * event_number
        if is_smooth:
            signs = sums_before(events, 1) - sums_after(events, 1)
            none = np.zeros((1, signs.shape[1]))
            following, preceding = np.vstack([signs[1:], none]), np.vstack([none, signs[:-1]])
            both_events = float((event_number * (event_number - 1)).sum()) / 2
            won = won + both_events / 2 + float((events * following).sum()) / 12
            comparable += both_events
            won_by_event = won_by_event + (event_number - 0.5) / 2 + (following - preceding) / 12
            by_event = by_event + event_number - 0.5
        by_comparable = np.stack([by_censored + 0 * events, by_event + 0 * events])
        by_won = np.stack([won_by_censored, won_by_event])
        return PairCounts(won, comparable, by_won.ravel(), by_comparable.ravel())

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivative of a quadratic form over another."""
        won, comparable, by_won, by_comparable = self._estimate(totals)
        if comparable < 0.5:
            return None
        return (by_won - won / comparable * by_comparable) / comparable


class TimeBins(GroupCounts):
    """The sums: counts in group × time bin.

    Groups are censored rows and events, of each class if there are classes.
    """

    def prepare(self) -> None:
        super().prepare()
        axis = self.axes[0]
        edges = np.array(axis.edges or (axis.high,))
        # How many bins are used one by one; with noise only the sum of all later ones is.
        self.clear = axis.bins
        # The times at which a curve is shown.
        shown = np.linspace(0, len(edges) - 1, min(MOST_TIMES, len(edges))).astype(int)
        self.times = edges[np.unique(shown)]

    def group(self, x: Floats) -> Integers:
        group = x[:, 1].astype(np.int64)
        return group + 2 * (x[:, 2] < 0) if self.has_classes else group

    def with_noise(self, totals: Floats, noise: float) -> Sketch:
        """Find the bins at whose end the rows at risk, of each class, are more than noise."""
        made = copy(self)
        leaving = totals.reshape(-1, 2, self.axes[0].bins).sum(axis=1)
        left = np.arange(self.axes[0].bins)[::-1]
        least = CLEAR * np.sqrt(2 * noise * left)
        is_clear = (sums_after(leaving) > least).all(axis=0) & (left > 0)
        made.noise, made.clear = noise, int(np.cumprod(is_clear).sum())
        made.times = self.times[self.times <= self.axes[0].bounds[made.clear]]
        return made

    def counts(self, totals: Floats) -> Floats:
        """Return the counts of each group: groups × bins, with bins that are not clear as one."""
        counts = self.table(totals)
        return np.column_stack([counts[:, : self.clear], counts[:, self.clear :].sum(axis=1)])

    def with_merged_bins(self, starts: Sequence[int]) -> Sketch:
        """Keep the times of a curve, which are those of all edges."""
        made = super().with_merged_bins(starts)
        assert isinstance(made, TimeBins)
        made.times = self.times
        return made


@sketch("kaplan-meier")
class KaplanMeier(TimeBins):
    """Kaplan-Meier curve, the share without an event before a time: at `times`, or up to ten edges
    of time bins.
    """

    roles = ("time", "event")
    shows_bins = True
    trend = -1
    defaults = {"times": None}  # noqa: RUF012

    def prepare(self) -> None:
        super().prepare()
        if self.options["times"] is not None:
            self.times = numbers_of("times", self.options["times"])

    @property
    def points(self) -> Options:
        return {"times": self.times}

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Multiply the shares that survive bins; in a bin, events can come first or last."""
        censored, events = self.counts(totals)
        labels = tuple(f"before {time:g}" for time in self.times)
        if totals.sum() < 0.5:
            return undefined(labels)
        at_risk = sums_after(censored + events) + censored + events
        curves = []
        for leaving in (0.5, 1.0, 0.0):  # the share of censored rows that leave before events
            risk = np.maximum(at_risk - leaving * censored, np.maximum(events, LEAST_ROWS))
            curves.append(np.concatenate([[1.0], np.cumprod((risk - events) / risk)]))
        value, low, high = curves
        ends, edges = self.axes[0].bounds, self.axes[0].edges
        # The last end of a bin that is not after the time, and the first one that is not before it.
        left = np.searchsorted(edges, self.times, side="right")
        right = np.searchsorted(edges, self.times, side="left") + 1
        right = np.where(np.isin(self.times, edges), left, right)
        width = ends[np.maximum(right, left + 1)] - ends[left]
        share = np.where(right > left, (self.times - ends[left]) / width, 0)
        middle = value[left] + share * (value[right] - value[left])
        return Result(middle, low[right], high[left], labels=labels)


@sketch("log-rank")
class LogRank(TimeBins):
    """Log-rank test of two classes: the statistic, which is chi-squared with one degree of freedom,
    and its p-value.
    """

    roles = ("time", "event")
    has_classes = True
    groups = 4
    labels = ("chi-squared", "p-value")

    def groups_of(self, totals: Floats) -> Floats:
        """Return the rows of both classes."""
        return np.asarray(totals.reshape(2, -1).sum(axis=1))

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Bound the share of the first class among rows at risk, so the expected events.

        With noise, return observed less expected events and their variance, for `finished`.
        """
        censored, events = self.counts(totals).reshape(2, 2, -1).swapaxes(0, 1)
        leaving = censored + events
        start = sums_after(leaving) + leaving  # at risk at the beginning of a bin, of each class
        if start[:, 0].min() < 0.5 or events.sum() < 0.5:
            return undefined(self.labels)
        stop = start - leaving
        died = events.sum(axis=0)
        # The first class has the least share of the rows at risk where it has lost all that it can.
        least = stop[0] / np.maximum(stop[0] + start[1], LEAST_ROWS)
        most = start[0] / np.maximum(start[0] + stop[1], LEAST_ROWS)
        middle = (start + stop).sum(axis=0) / 2
        share = np.clip((start + stop)[0] / 2 / np.maximum(middle, LEAST_ROWS), least, most)
        spread = share * (1 - share)
        observed, expected = float(events[0].sum()), float(died @ share)
        if self.noise > 0:
            variance = died @ spread
            value, low, high = (
                np.array([observed - died @ part, variance]) for part in (share, most, least)
            )
            return Result(value, low, high, labels=self.labels)
        fewest = _least_expected(start, stop, events)
        highest = float(died.sum()) - _least_expected(start[::-1], stop[::-1], events[::-1])
        # As products of shares of both classes: 1 less a share close to 1 has few digits.
        ends = np.array([stop[0] * start[1], start[0] * stop[1]])
        rows = np.array([stop[0] + start[1], start[0] + stop[1]])
        ends = ends / np.maximum(rows, LEAST_ROWS) ** 2
        peak = np.where((least < 0.5) & (most > 0.5), 0.25, ends.max(axis=0))
        # Of d events at one time and n rows at risk, ties lose at most a factor (n − d)/(n − 1).
        rest = stop.sum(axis=0)
        ties = np.where(died > 1, rest / np.maximum(rest + died - 1, 1.0), 1.0)
        variance, least_variance, most_variance = (
            float(died @ part) for part in (spread, ends.min(axis=0) * ties, peak)
        )
        if not variance > 0:
            return undefined(self.labels)
        room = FLOAT_ERROR * float(died.sum())
        gaps = [observed - fewest + room, observed - highest - room]
        nearest = 0.0 if gaps[0] >= 0 >= gaps[1] else min(abs(gap) for gap in gaps)
        chi = (observed - expected) ** 2 / variance
        least_chi = nearest**2 / most_variance if most_variance > 0 else 0.0
        most_chi = max(gap**2 for gap in gaps) / least_variance if least_variance > 0 else inf
        return _test_result(min(max(chi, least_chi), most_chi), least_chi, most_chi)

    def finished(self, found: Result, errors: Floats) -> Result:
        """Return the test by observed less expected events; their variance has a part by noise."""
        (gap, variance), (least, least_variance), (most, most_variance) = found[:3]
        if not variance > 0:
            return undefined(self.labels)
        chi = gap**2 / (variance + errors[0] ** 2)
        nearest = 0.0 if least <= 0 <= most else min(least**2, most**2)
        farthest = max(least**2, most**2)
        high = max(chi, farthest / least_variance) if least_variance > 0 else inf
        return _test_result(chi, min(chi, nearest / most_variance), high)


def _test_result(chi: float, low: float, high: float) -> Result:
    """Return chi-squared between two values, and its p-value, which falls as chi-squared rises."""
    p_value, p_high, p_low = (erfc(sqrt(c / 2)) for c in (chi, low, high))
    return Result(
        np.array([chi, p_value]),
        np.array([low, p_low]),
        np.array([high, p_high]),
        labels=LogRank.labels,
    )


def _least_expected(start: Floats, stop: Floats, events: Floats) -> float:
    """Return the least that the expected events of the first class can add up to.

    In a bin, at least the rows of the first class that stay are at risk, and at its m-th event from
    the last m more. Of the second class at most all rows are.
    """
    whole = np.floor(events[0]).astype(np.int64)
    bins = np.repeat(np.arange(len(whole)), whole)
    place = np.arange(len(bins)) - sums_before(whole.astype(np.float64))[bins]  # in its bin
    first = stop[0][bins] + place + 1
    others = events.sum(axis=0) - whole
    share = stop[0] / np.maximum(stop[0] + start[1], LEAST_ROWS)
    return float((first / (first + start[1][bins])).sum() + others @ share)
