"""Sketches of times to an event: counts in time bin × (event or censored), and × class.

The order of two rows is known where their time bins differ; within a time bin every order is
possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from math import erfc, inf, sqrt
from typing import NamedTuple

import numpy as np

from gosta.measures import survival  # noqa: F401
from gosta.measures.definition import numbers_of
from gosta.runtime.arrays import Floats
from gosta.sketches.bins import merge_starts_of_each, sums_after, sums_before, without_edge
from gosta.sketches.definition import Result, Sketch, sketch, undefined
from gosta.sketches.time_bins import LEAST_ROWS, TimeBins, TimeCurve
from gosta.statistics.definition import Options

# Of expected events, for each event: far less than this is lost to the rounding of floats.
FLOAT_ERROR = 1e-12


class Running(NamedTuple):
    """Running sums over bins, of which only the ends are known."""

    ends: Floats  # where the first bin begins, and where each ends
    sums: Floats  # up to each of these

    def surely(self, times: Floats) -> Floats:
        """Return the sums over bins that end by times."""
        return np.asarray(self.sums[np.searchsorted(self.ends[1:-1], times, side="right")])

    def possibly(self, times: Floats) -> Floats:
        """Return the sums over bins that begin before times."""
        return np.asarray(self.sums[np.searchsorted(self.ends[1:-1], times, side="left") + 1])

    def about(self, times: Floats) -> Floats:
        """Return the sums at times as if they grew evenly in bins."""
        return np.interp(times, self.ends, self.sums)


@sketch("kaplan-meier")
class KaplanMeier(TimeCurve, TimeBins):
    """Kaplan-Meier curve, the share without an event just before `times`, or before up to ten edges
    of time bins; and at `steps` between, whose bins are merged first where they are small.
    """

    sums = "event times"
    roles = ("time", "event")
    shows_bins = True
    trend = -1
    defaults = {"times": None, "steps": ()}  # noqa: RUF012

    def prepare(self) -> None:
        super().prepare()
        given, steps = self.options["times"], self.options["steps"]
        self.asked = np.zeros(0) if given is None else self.times
        self.steps = numbers_of("steps", steps) if len(steps) else np.zeros(0)
        if len(steps):
            self.times = np.union1d(self.asked, self.steps)
        self.starts = [np.arange(self.axes[0].bins)] * 2  # of the bins of each group that are known

    @classmethod
    def cuts(cls, options: Options) -> Mapping[str, Floats]:
        steps = options.get("steps", ())
        own = {"time": numbers_of("steps", steps)} if len(steps) else {}
        both = [*super().cuts(options).values(), *own.values()]
        return {"time": np.concatenate(both)} if both else {}

    @property
    def without_edge(self) -> Floats:
        return without_edge(self.axes[0], self.asked, self.starts)

    def with_noise(self, totals: Floats, noise: float) -> Sketch:
        """Add up the bins in which there are too few rows at risk, and show no times in them."""
        made = super().with_noise(totals, noise)
        assert isinstance(made, KaplanMeier)
        made.times = self.times[self.times <= self.axes[0].bounds[made.clear]]
        made.starts = [np.arange(min(made.clear + 1, self.axes[0].bins))] * 2
        return made

    def merged(self, totals: Floats, min_cell: int) -> tuple[Sketch, Floats]:
        """Merge small bins of censored rows, and small bins of events, each on their own.

        So a few early censored rows do not hide when events are. Times keep their edges if they
        can.
        """
        made = copy(self)
        counts = self.table(totals)
        made.starts = merge_starts_of_each(counts, min_cell, self.axes[0], self.asked, self.steps)
        return made, totals

    def running(self, totals: Floats) -> tuple[Running, Running]:
        """Return the running sums of censored rows and of events."""
        bounds, found = self.axes[0].bounds, []
        for counts, starts in zip(self.table(totals), self.starts, strict=True):
            sums = np.append(0.0, np.cumsum(np.add.reduceat(counts, starts)))
            found.append(Running(np.append(bounds[starts], bounds[-1]), sums))
        return found[0], found[1]

    def curves(self, totals: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the curve at the ends of bins of events: estimate, least and largest share.

        With them come the terms of Greenwood's formula. At the events of a bin, at least those rows
        are censored whose bins have ended when it begins, at most those whose bins have begun when
        it ends.
        """
        censored, events = self.running(totals)
        starts, stops, died = events.ends[:-1], events.ends[1:], np.diff(events.sums)
        there = totals.sum() - events.sums[:-1]
        about = (censored.about(starts) + censored.about(stops)) / 2
        curves, terms = [], np.zeros(0)
        for gone in (censored.surely(starts), censored.possibly(stops), about):
            risk = np.maximum(there - gone, np.maximum(died, LEAST_ROWS))
            curves.append(np.append(1.0, np.cumprod((risk - died) / risk)))
            terms = died / (risk * np.maximum(risk - died, LEAST_ROWS))
        high, low, value = curves
        return value, low, high, terms

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Multiply the shares that survive bins; in a bin, events can come first or last."""
        labels = tuple(f"just before {time:g}" for time in self.times)
        if totals.sum() < 0.5:
            return undefined(labels)
        value, low, high, _ = self.curves(totals)
        ends = self.running(totals)[1].ends
        at = [Running(ends, curve) for curve in (value, low, high)]
        shown = self.times
        return Result(
            at[0].about(shown), at[1].possibly(shown), at[2].surely(shown), labels=labels, at=shown
        )

    def sampling_errors(self, totals: Floats, values: Floats) -> tuple[Floats, Floats] | None:
        """Return Greenwood's standard errors, and the rows at risk."""
        censored, events = self.running(totals)
        sums = np.append(0.0, np.cumsum(self.curves(totals)[3]))
        variance = Running(events.ends, sums).about(self.times)
        left = totals.sum() - censored.about(self.times) - events.about(self.times)
        return values * np.sqrt(np.maximum(variance, 0.0)), np.maximum(left, 1.0)


@sketch("numbers-at-risk")
class NumbersAtRisk(KaplanMeier):
    """Rows at risk: those without an event, and not censored, before a time."""

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Leave out rows whose bins have ended, or begun; in between the number falls evenly."""
        groups, shown = self.running(totals), self.times
        gone = np.array([[g.about(shown), g.surely(shown), g.possibly(shown)] for g in groups])
        about, most, least = totals.sum() - gone.sum(axis=0)
        labels = tuple(f"at {time:g}" for time in shown)
        return Result(about, least, most, labels=labels, at=shown)

    def sampling_errors(self, totals: Floats, values: Floats) -> tuple[Floats, Floats] | None:
        """Return none: rows are counted."""
        return None


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
