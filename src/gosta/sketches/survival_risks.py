"""Sketches of predicted risks of an event before a horizon: calibration and the Brier score.

Rows are counted in time bin × (event or censored) × group of risk, of at most ten. With that come
the sum of the risks of each group, of (1 − risk)² of events before the horizon in each time bin,
and of risk² of the rows that are still there at the horizon. Of risks for several times, the sums
of events are those of the mean over times, the others there are for each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

import numpy as np

from gosta.measures.calibration import bin_labels
from gosta.measures.definition import MEASURES, given_numbers, numbers_of
from gosta.measures.product_limit import ProductLimit
from gosta.measures.survival import horizon_of, times_of_risks, trapezoid_shares
from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.bins import merge_starts, sums_after
from gosta.sketches.definition import Features, Result, Sketch, single, sketch, undefined
from gosta.sketches.survival_scores import given_horizon
from gosta.sketches.time_bins import LEAST_ROWS, PLACES, PlacedCounts, event_weights, product_limits
from gosta.statistics import encode
from gosta.statistics.definition import Options

MOST_GROUPS = 10  # of rows by risk


class RiskSums(PlacedCounts):
    """The sums of rows with a risk for one horizon, or for each of several times."""

    encode = staticmethod(encode.survival_risk)
    sums = "event risks"
    roles = ("time", "event", "score")
    defaults = {"horizon": None, "cuts": None}  # noqa: RUF012
    are_counts = False

    def prepare(self) -> None:
        edges = np.array([edge for edge in self.axes[-1].edges if 0 < edge < 1])
        groups = min(MOST_GROUPS, len(edges) + 1)
        self.inner = edges[np.arange(1, groups) * (len(edges) + 1) // groups - 1]
        if self.options.get("cuts") is not None:
            self.inner = numbers_of("cuts", self.options["cuts"], (0.0, 1.0))
        self.find_times()
        self.bins_before = int(self.place[-1]) // PLACES
        self.features_per_row = 1 + 2 * len(self.times)
        self.lay_out()

    def find_times(self) -> None:
        """Find the times of the risks, their places, and how much each counts."""
        self.times, self.shares = np.array([horizon_of(self.options["horizon"])]), np.ones(1)
        self.place = self.places("horizon", self.times)

    def lay_out(self) -> None:
        """Find where the sums of each kind begin."""
        _, time_bins, groups = self.shape
        # Where sums of risks begin, those of squares of events, and those of squares of other rows.
        self.risks_at = 2 * time_bins * groups
        self.squares_at = self.risks_at + groups * len(self.times)
        self.left_at = self.squares_at + time_bins
        self.size = self.left_at + len(self.times)

    @classmethod
    def cuts(cls, options: Options) -> Mapping[str, Floats]:
        return {"time": given_horizon(options)}

    @property
    def key(self) -> tuple[object, ...]:
        return *super().key, tuple(self.times.tolist()), tuple(self.inner.tolist())

    @property
    def shape(self) -> tuple[int, ...]:
        return 2, self.axes[0].bins, len(self.inner) + 1

    def cell_of_score(self, scores: Floats) -> Integers:
        return np.searchsorted(self.inner, scores, side="right")

    def table(self, totals: Floats) -> Floats:
        return totals[: self.risks_at].reshape(self.shape)

    def count(self, totals: Floats) -> float:
        return float(totals[: self.risks_at].sum())

    def features(self, x: Floats) -> Features:
        """Count a row in its cell, and add its risks and its squared errors.

        An event counts once, for all times after it; no row is an event and there at the last one.
        """
        time, risks, numbers = x[:, :1], x[:, 2:], np.arange(len(self.times))
        is_left, is_case = time >= self.times, (x[:, 1:2] > 0) & (time < self.times)
        squares = np.where(is_left, risks**2, 0.0)
        squares_at = self.left_at + numbers + np.zeros(risks.shape, dtype=np.int64)
        gone = ~is_left[:, -1]
        squares_at[gone, -1] = self.squares_at + self.axes[0].positions(x[gone, 0])
        squares[gone, -1] = (is_case * (1 - risks) ** 2 @ self.shares)[gone]
        risks_at = self.risks_at + numbers * self.shape[2] + self.cell_of_score(risks[:, -1:])
        return Features(
            np.column_stack([self.cells(x), risks_at, squares_at]),
            np.column_stack([np.ones(len(x)), risks, np.minimum(squares, 1.0)]),
        )

    def risks(self, totals: Floats) -> Floats:
        """Return the mean risks of each group: times × groups; its middle if it has no row."""
        ends = np.concatenate([[0.0], self.inner, [1.0]])
        rows = self.table(totals).sum(axis=(0, 1))
        sums = totals[self.risks_at : self.squares_at].reshape(-1, len(rows))
        middle = np.tile((ends[1:] + ends[:-1]) / 2, (len(sums), 1))
        return np.asarray(np.clip(np.divide(sums, rows, out=middle, where=rows > 0.5), 0.0, 1.0))

    def influence(self, rows: Floats, weights: Floats) -> Floats:
        """Return how much each of the rows that stand for the counts moves the value."""
        influence = MEASURES[self.name].over(rows, weights, {"horizon": self.place}).influence
        assert influence is not None
        return np.asarray(influence[:, 0])

    def sampling_variance(self, totals: Floats, gradient: Floats) -> float:
        """Add up the squares of the influence of rows with the mean risks of their group."""
        table = self.table(totals)
        slopes = self.influence(self.rows(*self.risks(totals)), self.weights(table))
        return float(table.ravel() @ self.folded(slopes) ** 2) / float(table.sum()) ** 2


@sketch("survival-brier-score")
class SurvivalBrierScore(RiskSums):
    """Mean squared error of the predicted risk of an event before the `horizon`, from sums in bins
    of time.
    """

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Let every event count by the least or the largest weight that is possible."""
        censored, events = self.table(totals).sum(axis=2)
        count, last = self.count(totals), self.bins_before
        if count < 0.5:
            return undefined()
        _, low, high = product_limits(censored, events)
        if self.noise == 0 and low[last] <= 0:  # perhaps no row was followed until the horizon
            return undefined()
        places = self.place.astype(np.int64) // PLACES
        left = sums_after(censored + events)[places - 1]
        squares = totals[self.squares_at : self.squares_at + last]
        ends = []
        for weights, share, room in zip(
            event_weights(censored, events),
            (high[places], low[places]),
            (-rounding, rounding),
            strict=True,
        ):
            of_events = weights[:last] @ np.maximum(squares + room * events[:last], 0)
            of_others = np.maximum(totals[self.left_at :] + room * left, 0)
            of_others = self.shares @ (of_others / np.maximum(share, LEAST_ROWS))
            ends.append(float(of_events + of_others) / count)
        loads, _, _ = self._loads(totals)
        return single(float(loads.sum()) / count, ends[0], ends[1])

    def _loads(self, totals: Floats) -> tuple[Floats, Floats, ProductLimit]:
        """Return the squares divided by G, the places that they count at, and the curve of G.

        Half of the squares of a time bin count at the place of its first events.
        """
        weights = self.weights(self.table(totals))
        curve = ProductLimit.of_censoring(self.rows(*self.risks(totals)), weights)
        bins = np.arange(self.bins_before)
        inner = PLACES - 1 if self.axes[0].is_smooth else 0
        places = np.concatenate([PLACES * bins, PLACES * bins + inner, self.place])
        halves = totals[self.squares_at : self.squares_at + self.bins_before] / 2
        squares = np.concatenate([halves, halves, self.shares * totals[self.left_at :]])
        return squares / np.maximum(curve.before(places), LEAST_ROWS), places, curve

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivatives by counts, through G and their number, and by the squares."""
        loads, places, curve = self._loads(totals)
        count, last = self.count(totals), self.bins_before
        made = np.zeros(self.size)
        by_rows = -self.folded(curve.log_slopes(places, loads)) - loads.sum() / count
        made[: self.risks_at] = by_rows / count
        each = 1 / np.maximum(curve.before(places), LEAST_ROWS) / count
        of_events, of_others = each[: 2 * last].reshape(2, -1), each[2 * last :]
        made[self.squares_at : self.squares_at + last] = of_events.mean(axis=0)
        made[self.left_at :] = self.shares * of_others
        return made


@sketch("integrated-brier-score")
class IntegratedBrierScore(SurvivalBrierScore):
    """Mean of the Brier score over time, from sums of the risks of an event before each of `times`
    in bins of time.
    """

    repeats_role = True
    defaults = {"times": None}  # noqa: RUF012

    def find_times(self) -> None:
        self.times = times_of_risks(len(self.axes) - 2, None, self.options["times"])
        self.shares, self.place = trapezoid_shares(self.times), self.places("times", self.times)

    @classmethod
    def cuts(cls, options: Options) -> Mapping[str, Floats]:
        times = options.get("times")
        return {} if times is None else {"time": given_numbers("times", times)}

    def influence(self, rows: Floats, weights: Floats) -> Floats:
        """Return the mean over time of the influence on the Brier scores."""
        scores = MEASURES["survival-brier-score"].over(rows, weights, {"times": self.place})
        assert scores.influence is not None
        return np.asarray(scores.influence @ self.shares)


@sketch("survival-observed-expected-ratio")
class SurvivalRatio(RiskSums):
    """Share with an event before the `horizon`, by Kaplan and Meier, divided by the mean predicted
    risk, from counts in bins of time.
    """

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Divide by the mean of the risks; in a bin, events can come first or last."""
        censored, events = self.table(totals).sum(axis=2)
        expected, count = self._expected(totals), self.count(totals)
        if count < 0.5 or not expected > 0:
            return undefined()
        _, low, high = product_limits(events, censored)
        observed = 1 - self._curve(totals).before(self.place)[0]
        last, room = self.bins_before, rounding * count
        return single(
            observed * count / expected,
            (1 - high[last]) * count / (expected + room),
            (1 - low[last]) * count / max(expected - room, LEAST_ROWS),
        )

    def _expected(self, totals: Floats) -> float:
        return float(totals[self.risks_at : self.squares_at].sum())

    def _curve(self, totals: Floats) -> ProductLimit:
        return ProductLimit(self.rows(*self.risks(totals)), self.weights(self.table(totals)))

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivatives by counts, through the curve, and by the sums of risks."""
        curve, expected, count = self._curve(totals), self._expected(totals), self.count(totals)
        share = float(curve.before(self.place)[0])
        slopes = self.folded(curve.log_slopes(self.place, np.ones(1)))
        made = np.zeros(self.size)
        made[: self.risks_at] = (1 - share - share * count * slopes) / expected
        made[self.risks_at : self.squares_at] = -(1 - share) * count / expected**2
        return made


@sketch("survival-calibration")
class SurvivalCalibration(RiskSums):
    """Share with an event before the `horizon`, by Kaplan and Meier, of groups of rows by predicted
    risk, from counts in bins of time.
    """

    shows_bins = True

    @property
    def points(self) -> Options:
        return {"cuts": self.inner}

    def cases(self, totals: Floats) -> Floats:
        """Return the rows of each group with an event before the horizon, and the others."""
        table = self.table(totals)
        cases = table[1, : self.bins_before].sum(axis=0)
        return np.array([cases, table.sum(axis=(0, 1)) - cases])

    def groups_of(self, totals: Floats) -> Floats:
        return np.asarray(self.cases(totals).sum(axis=1))

    def merged(self, totals: Floats, min_cell: int) -> tuple[Sketch, Floats]:
        """Merge groups with few rows of a kind."""
        made = copy(self)
        ends = np.concatenate([[0.0], self.inner, [1.0]])
        starts = merge_starts(self.cases(totals), min_cell, ends)
        made.inner = self.inner[np.array(starts[1:], dtype=np.int64) - 1]
        made.lay_out()
        counts = np.add.reduceat(self.table(totals), starts, axis=2)
        risks = np.add.reduceat(totals[self.risks_at : self.squares_at], starts)
        return made, np.concatenate([counts.ravel(), risks, totals[self.squares_at :]])

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Compute the curve of each group; in a bin, events can come first or last."""
        censored, events = np.moveaxis(self.table(totals), 2, 1)
        value, low, high = product_limits(events, censored)
        rows, last = (censored + events).sum(axis=1), self.bins_before
        shares = [np.where(rows < 0.5, np.nan, 1 - part[:, last]) for part in (value, high, low)]
        labels = bin_labels(np.concatenate([[0.0], self.inner, [1.0]]), np.arange(len(rows)))
        at = self.risks(totals)[0]
        return Result(shares[0], shares[1], shares[2], labels=labels, at=at, counts=rows)

    def sampling_errors(self, totals: Floats, values: Floats) -> tuple[Floats, Floats] | None:
        """Return Greenwood's standard errors, and the rows of each group."""
        censored, events = np.moveaxis(self.table(totals), 2, 1)
        at_risk = sums_after(censored + events) + censored + events
        risk = np.maximum(at_risk - censored / 2, np.maximum(events, LEAST_ROWS))
        terms = events / (risk * np.maximum(risk - events, LEAST_ROWS))
        variance = np.maximum(terms[:, : self.bins_before].sum(axis=1), 0.0)
        rows = np.maximum(at_risk[:, 0], 1.0)
        return (1 - values) * np.sqrt(variance), rows
