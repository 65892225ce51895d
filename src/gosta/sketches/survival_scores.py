"""Sketches of a score by times to an event: counts in time bin × (event or censored) × score bin.

The order of two rows is known where their bins differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gosta.measures.definition import MEASURES, Measured, numbers_of
from gosta.runtime.arrays import Floats
from gosta.sketches.bins import sums_after, sums_before
from gosta.sketches.definition import Result, single, sketch, undefined
from gosta.sketches.time_bins import LEAST_ROWS, PLACES, PlacedCounts, TimeCurve, event_weights
from gosta.statistics import encode
from gosta.statistics.definition import Options


class EventScores(PlacedCounts):
    """The sums: censored rows, then events; each in time bin × score bin."""

    encode = staticmethod(encode.survival)
    sums = "event scores"
    roles = ("time", "event", "score")


class EventScoreMeasure(EventScores):
    """A measure of the rows that stand for the counts, with its derivative and standard errors."""

    def placed_options(self) -> Options:
        """Return the options of the measure, with times as places of `rows`."""
        raise NotImplementedError

    def found(self, totals: Floats) -> Measured:
        """Return the measure of the rows that stand for the counts."""
        rows, weights = self.rows(np.arange(float(self.shape[2]))), self.weights(self.table(totals))
        return MEASURES[self.name].over(rows, weights, self.placed_options())

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the influence of a row of each cell, divided by the number of rows."""
        influence = self.found(totals).influence
        if influence is None or influence.shape[1] > 1:
            return None
        return np.asarray(self.folded(influence[:, 0]) / totals.sum())

    def sampling_errors(self, totals: Floats, values: Floats) -> tuple[Floats, Floats] | None:
        """Add up the squares of the influence of all rows."""
        found = self.found(totals)
        assert found.influence is not None
        assert found.trials is not None
        squares = np.array([totals @ self.folded(part) ** 2 for part in found.influence.T])
        return np.sqrt(np.maximum(squares, 0.0)) / max(totals.sum(), 1.0), found.trials


class PairCounts(NamedTuple):
    """Pairs of rows that can be compared, those ordered correctly, and derivatives of both."""

    won: float
    comparable: float
    by_won: Floats  # derivatives by the totals
    by_comparable: Floats


@sketch("concordance-index")
class ConcordanceIndex(EventScores):
    """Harrell's C, the share of pairs ordered correctly by the score, from counts in bins of time
    and score.
    """

    bounds = (0.0, 1.0)

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


@sketch("uno-concordance")
class UnoConcordance(EventScoreMeasure):
    """Uno's C, the concordance index that does not depend on censoring, from counts in bins of time
    and score.
    """

    defaults = {"horizon": np.inf}  # noqa: RUF012

    def prepare(self) -> None:
        super().prepare()
        found = self.places("horizon", given_horizon(self.options))
        self.last = found[0] if len(found) else np.inf
        self.bins_before = int(self.last) // PLACES if len(found) else self.axes[0].bins

    @classmethod
    def cuts(cls, options: Options) -> Mapping[str, Floats]:
        return {"time": given_horizon(options)}

    def placed_options(self) -> Options:
        return {"horizon": self.last}

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Let every event count by the least or the largest weight that is possible.

        Pairs within time bins are added that would raise, or lower, the share.
        """
        censored, events = self.table(totals)
        least, most = event_weights(censored.sum(axis=1), events.sum(axis=1))
        censored, counted = censored[: self.bins_before], events[: self.bins_before]
        later = sums_after(self.table(totals).sum(axis=0), 0)[: self.bins_before]
        least, most = (end[: self.bins_before, None] ** 2 + 0 * counted for end in (least, most))
        pairs = counted * later.sum(axis=1, keepdims=True)
        right, tied = counted * sums_before(later, 1), counted * later
        number = counted.sum(axis=1)
        both = number * (number - 1) / 2
        up = both + (counted * (sums_before(censored, 1) + censored)).sum(axis=1)
        down = both + (counted * (sums_after(censored, 1) + censored)).sum(axis=1)
        sure = [float(most[:, 0] @ part) for part in (up, down)]
        high = largest_share(right + tied, pairs, least, most, sure[0])
        lost = largest_share(pairs - right, pairs, least, most, sure[1])
        if np.isnan([high, lost]).all():
            return undefined()
        value, low, high = self.found(totals).value[0], 1 - np.nan_to_num(lost), np.nan_to_num(high)
        return single(float(value), float(low), float(high))


@sketch("time-dependent-auc")
class TimeDependentAuc(TimeCurve, EventScoreMeasure):
    """Probability that a row with an event before a time has a higher score than a row without,
    from counts in bins of time and score.
    """

    def prepare(self) -> None:
        super().prepare()
        self.placed_times = self.places("times", self.times)
        self.labels = tuple(f"before {time:g}" for time in self.times)

    def placed_options(self) -> Options:
        return {"times": self.placed_times}

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Let every event count by the least or the largest weight that is possible."""
        counts = self.table(totals)
        censored, events = counts.sum(axis=2)
        weights = event_weights(censored, events)
        ends = []
        for place in self.placed_times:
            first = int(place) // PLACES
            controls = counts[:, first:].sum(axis=(0, 1))
            cases = counts[1, :first]
            least, most = (end[:first, None] + 0 * cases for end in weights)
            pairs, right = cases * controls.sum(), cases * sums_before(controls)
            high = largest_share(right + cases * controls, pairs, least, most)
            ends.append((1 - largest_share(pairs - right, pairs, least, most), high))
        low, high = np.array(ends).T
        value = np.where(np.isnan(low), np.nan, self.found(totals).value)
        return Result(value, low, high, labels=self.labels, at=self.times)


def largest_share(
    won: Floats, pairs: Floats, least: Floats, most: Floats, surely_won: float = 0.0
) -> float:
    """Return the most that Σ v·won / Σ v·pairs can be, with each v between two numbers.

    It is that of the largest v of the cells with the largest shares, and the least v of others.
    `surely_won` is added to both sums. NaN if there is no pair.
    """
    won, pairs, least, most = (part.ravel() for part in (won, pairs, least, most))
    shares = np.divide(won, pairs, out=np.zeros(len(won)), where=pairs > 0)
    order = np.argsort(-shares, kind="stable")
    sums = []
    for part in (won[order], pairs[order]):
        larger, smaller = (np.cumsum(v[order] * part) for v in (most, least))
        changed = np.append(0.0, larger) + smaller[-1] - np.append(0.0, smaller)
        sums.append(surely_won + changed)
    has_pairs = sums[1] > LEAST_ROWS
    found = np.divide(sums[0], sums[1], out=np.full(len(has_pairs), np.nan), where=has_pairs)
    return float(np.nanmax(found)) if has_pairs.any() else np.nan


def given_horizon(options: Options) -> Floats:
    """Return the horizon of options, if it is a number and finite."""
    horizon = options.get("horizon")
    return np.zeros(0) if horizon in (None, np.inf) else numbers_of("horizon", horizon)
