"""Sketches of two models on the same rows: the value of a first score less that of a second.

A difference of two AUCs is known as well as both of them: the bracket follows from the counts of
each score's bins, since rows that share a bin of one score can have any order in it, whatever the
other says. How both vary together, for the standard error, follows from counts in a coarser table
of both scores.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gosta.measures.definition import numbers_of
from gosta.measures.two_models import PARTS, risk_classes, squared_gaps
from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.bins import Counts
from gosta.sketches.definition import (
    SHARE_ERROR,
    Features,
    Result,
    Sketch,
    single,
    sketch,
    undefined,
)
from gosta.sketches.ranking import Auc
from gosta.sketches.survival_scores import ConcordanceIndex
from gosta.statistics import encode

LEAST_ROWS = 1e-9  # a divisor in place of a number of rows that is 0


class Difference(Sketch):
    """The sums: those of the first score, those of the second, then counts in a table of both.

    Both sums are tables whose last axis is the score; the last table has coarser bins.
    """

    of_one: ClassVar[type[Counts]]  # the sketch of one score
    shared: ClassVar[int] = 0  # columns before both scores
    # Of the table of both scores, for each axis of the sums of one.
    most_bins: ClassVar[tuple[int, ...]]
    features_per_row = 3
    are_counts = True
    bounds = (-1.0, 1.0)

    def prepare(self) -> None:
        before = self.axes[: self.shared]
        scores = self.axes[self.shared :]
        self.parts = [self.of_one([*before, score], self.classes) for score in scores]
        first, second = (self._coarse(part) for part in self.parts)
        self.joint_shape = *first, second[-1]
        self.ends = np.cumsum([part.size for part in self.parts])
        self.size = int(self.ends[-1] + np.prod(self.joint_shape))

    def _coarse(self, part: Counts) -> tuple[int, ...]:
        return tuple(map(min, part.shape, self.most_bins))

    def _coarse_bins(self, part: Counts) -> list[Integers]:
        """Return for each axis of a part's table the coarser bin of each of its bins."""
        pairs = zip(part.shape, self._coarse(part), strict=True)
        return [np.arange(bins) * fewer // bins for bins, fewer in pairs]

    def _coarse_places(self, part: Counts, cells: Integers) -> list[Integers]:
        """Return for each axis of a part's table the coarser bins in which its cells are."""
        places = np.unravel_index(cells, part.shape)
        return [bins[place] for bins, place in zip(self._coarse_bins(part), places, strict=True)]

    def features(self, x: Floats) -> Features:
        """Count a row in the cells of each score, and in the cell of both."""
        kept = [k for k in range(x.shape[1]) if not self.shared <= k < self.shared + 2]
        cells = []
        for k, part in enumerate(self.parts):
            own = np.insert(kept, self.shared, self.shared + k)
            cells.append(part.cells(x[:, own]))
        first, second = map(self._coarse_places, self.parts, cells)
        joint = np.ravel_multi_index((*first, second[-1]), self.joint_shape)
        positions = [cells[0], cells[1] + self.ends[0], joint + self.ends[1]]
        return Features(np.column_stack(positions), np.ones((len(x), 3)))

    def _split(self, totals: Floats) -> list[Floats]:
        """Return the totals of both scores, and those of the table of both."""
        return np.split(totals, self.ends)

    def count(self, totals: Floats) -> float:
        """Return the rows that the first score counts."""
        return self.parts[0].count(self._split(totals)[0])

    def groups_of(self, totals: Floats) -> Floats:
        """Return the rows of each group that the first score counts."""
        return self.parts[0].groups_of(self._split(totals)[0])

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Subtract values, and opposite ends of brackets."""
        own = zip(self.parts, self._split(totals), strict=False)
        first, second = (part.result(sums, rounding) for part, sums in own)
        return single(
            float(first.value[0] - second.value[0]),
            float(first.low[0] - second.high[0]),
            float(first.high[0] - second.low[0]),
        )

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivatives of both values; the table of both does not change them."""
        own = zip(self.parts, self._split(totals), strict=False)
        slopes = [part.gradient(sums) for part, sums in own]
        if slopes[0] is None or slopes[1] is None:
            return None
        return np.concatenate([slopes[0], -slopes[1], np.zeros(self.size - self.ends[1])])

    def sampling_variance(self, totals: Floats, gradient: Floats) -> float:
        """Return the variances of both values less twice their covariance."""
        own = list(zip(self.parts, self._split(totals), self._split(gradient), strict=False))
        variances = [max(part.sampling_variance(counts, slope), 0.0) for part, counts, slope in own]
        both = self._correlation(totals, gradient) * np.sqrt(np.prod(variances))
        return float(sum(variances) + 2 * both)

    def _correlation(self, totals: Floats, gradient: Floats) -> float:
        """Return the correlation of both values, of which the second has the opposite sign.

        Rows of one class, or of one time and event, vary together by their mean slopes, and beyond
        that as the table of both scores says: within its bins they count as independent, so that
        the correlation is rather too small.
        """
        sums = self._split(totals)
        slopes = self._split(gradient)
        joint = np.maximum(sums[2].reshape(self.joint_shape), 0.0)
        number = np.maximum(joint.sum(axis=(-2, -1), keepdims=True), LEAST_ROWS)
        place = np.ix_(*self._coarse_bins(self.parts[0])[:-1])
        shares = (joint / number)[place].reshape(-1, *self.joint_shape[-2:])
        rows = np.maximum(self.parts[0].table(sums[0]).sum(axis=-1), 0.0).ravel()
        first, second = (
            self._by_score(part, counts, slope, shares.sum(axis=axis))
            for part, counts, slope, axis in zip(self.parts, sums, slopes, (-1, -2), strict=False)
        )
        product = np.einsum("r,rij,ri,rj->", rows, shares, first, second)
        squares = [
            np.einsum("r,rij,ri->", rows, shares, first**2),
            np.einsum("r,rij,rj->", rows, shares, second**2),
        ]
        known = [np.maximum(sums[k], 0.0) @ slopes[k] ** 2 for k in (0, 1)]
        scale = np.sqrt(np.prod(np.maximum(squares, known)))
        return float(product / scale) if scale > 0 else 0.0

    def _by_score(self, part: Counts, totals: Floats, gradient: Floats, shares: Floats) -> Floats:
        """Return the slopes in coarser bins of the score, of each class, or time and event.

        `shares` of rows are in these bins; the mean slope of all rows is that of the finer bins.
        """
        counts = np.maximum(part.table(totals), 0.0)
        slopes = part.table(gradient)
        *shared, score = self._coarse_bins(part)
        place = np.ix_(*shared)
        nearby = np.zeros((*self._coarse(part)[:-1], part.shape[-1]))
        np.add.at(nearby, place, counts)
        chosen = (score[:, None] == np.arange(self._coarse(part)[-1])).astype(np.float64)
        found = (nearby[place] * slopes @ chosen) / np.maximum(nearby[place] @ chosen, LEAST_ROWS)
        mean = (counts * slopes).sum(axis=-1) / np.maximum(counts.sum(axis=-1), LEAST_ROWS)
        found = found.reshape(shares.shape)
        return np.asarray(found + (mean.ravel() - (shares * found).sum(axis=-1))[:, None])

    def degrees(self, totals: Floats, gradient: Floats) -> float:
        """Return the smaller of both values' degrees of freedom."""
        own = zip(self.parts, self._split(totals), self._split(gradient), strict=False)
        return min(part.degrees(sums, slope) for part, sums, slope in own)


@sketch("auc-difference")
class AucDifference(Difference):
    """AUC of a first score less that of a second, from counts of both classes in bins of each."""

    encode = staticmethod(encode.two_scores)
    roles = ("first", "second")
    has_classes = True
    of_one = Auc
    most_bins = (2, 32)


@sketch("concordance-difference")
class ConcordanceDifference(Difference):
    """Concordance index of a first score less that of a second, from counts in bins of time and of
    each.
    """

    encode = staticmethod(encode.survival_of_two)
    roles = ("time", "event", "first", "second")
    of_one = ConcordanceIndex
    shared = 2
    most_bins = (2, 2, 32)


class TwoRisks(Sketch):
    """The sums, of each class: rows, and sums of two numbers of a row and of their squares.

    The numbers are the first risk less the second, and the squared error by the first less that by
    the second; both are scaled from 0 to 1.
    """

    encode = staticmethod(encode.two_risks)
    sums = "two risks"
    roles = ("first", "second")
    has_classes = True
    is_binned = False
    finds_edges = False
    number: ClassVar[int]  # which of the two

    def prepare(self) -> None:
        self.features_per_row = 5
        self.size = 10

    def features(self, x: Floats) -> Features:
        """Return the count, both numbers, and both squares, at the places of the class."""
        scaled = (np.column_stack([x[:, 0] - x[:, 1], squared_gaps(x)]) + 1) / 2
        values = np.column_stack([np.ones(len(x)), scaled, scaled**2])
        first = 5 * (x[:, 2] < 0).astype(np.int64)
        return Features(first[:, None] + np.arange(5), values)

    def count(self, totals: Floats) -> float:
        return float(self.groups_of(totals).sum())

    def groups_of(self, totals: Floats) -> Floats:
        """Return the rows of each class."""
        return totals.reshape(2, 5)[:, 0]

    def moments(self, totals: Floats) -> tuple[Floats, Floats, Floats]:
        """Return rows, sums and sums of squares of the number, of each class."""
        table = totals.reshape(2, 5)
        return table[:, 0], table[:, 1 + self.number], table[:, 3 + self.number]

    def placed(self, by_rows: Floats, by_sums: Floats) -> Floats:
        """Return derivatives by all totals from those by the rows and the sums of each class."""
        table = np.zeros((2, 5))
        table[:, 0] = by_rows
        table[:, 1 + self.number] = by_sums
        return table.ravel()


@sketch("brier-difference")
class BrierDifference(TwoRisks):
    """Brier score of a first predicted risk less that of a second, from the sum of differences."""

    number = 1

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Return the mean difference, which is off by what a row is."""
        rows, sums, _ = (part.sum() for part in self.moments(totals))
        if rows < 0.5:
            return undefined()
        value = 2 * sums / rows - 1
        room = 2 * rounding + SHARE_ERROR
        return single(value, value - room, value + room)

    def gradient(self, totals: Floats) -> Floats | None:
        rows, sums, _ = (part.sum() for part in self.moments(totals))
        return self.placed(np.full(2, -2 * sums / rows**2), np.full(2, 2 / rows))

    def sampling_variance(self, totals: Floats, gradient: Floats) -> float:
        rows, sums, squares = (part.sum() for part in self.moments(totals))
        return float(4 * (squares / rows - (sums / rows) ** 2) / max(rows - 1, 1.0))


@sketch("integrated-discrimination")
class IntegratedDiscrimination(TwoRisks):
    """Integrated discrimination improvement (IDI), from the sum of both risks' differences in each
    class.
    """

    number = 0

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Subtract the mean of negative rows from that of positive ones."""
        rows, sums, _ = self.moments(totals)
        if rows.min() < 0.5:
            return undefined()
        value = float(2 * np.subtract(*(sums / rows)))
        room = 4 * rounding + 2 * SHARE_ERROR
        return single(value, value - room, value + room)

    def gradient(self, totals: Floats) -> Floats | None:
        rows, sums, _ = self.moments(totals)
        signs = np.array([2.0, -2.0])
        return self.placed(-signs * sums / rows**2, signs / rows)

    def sampling_variance(self, totals: Floats, gradient: Floats) -> float:
        """Return the sum of the variances of both means."""
        rows, sums, squares = self.moments(totals)
        variances = squares / rows - (sums / rows) ** 2
        return float((4 * variances / np.maximum(rows - 1, 1.0)).sum())

    def degrees(self, totals: Floats, gradient: Floats) -> float:
        """Return those of the smaller class."""
        return float(max(self.groups_of(totals).min() - 1, 1.0))


@sketch("net-reclassification")
class NetReclassification(Counts):
    """Net reclassification improvement (NRI) at `thresholds`, from counts in classes of both risks.

    The sums: first those of positive rows, then those of negative ones; each in class by the first
    risk × class by the second.
    """

    roles = ("first", "second")
    has_classes = True
    is_binned = False
    finds_edges = False
    defaults = {"thresholds": 0.5}  # noqa: RUF012

    def prepare(self) -> None:
        self.thresholds = numbers_of("thresholds", self.options["thresholds"], (0.0, 1.0))
        super().prepare()

    @property
    def key(self) -> tuple[object, ...]:
        return *super().key, tuple(self.thresholds.tolist())

    @property
    def shape(self) -> tuple[int, ...]:
        return 2, len(self.thresholds) + 1, len(self.thresholds) + 1

    def cells(self, x: Floats) -> Integers:
        classes = risk_classes(x, self.thresholds)
        return np.ravel_multi_index((x[:, 2] < 0, *classes.T), self.shape)

    def groups_of(self, totals: Floats) -> Floats:
        """Return the rows of each class."""
        return np.asarray(self.table(totals).sum(axis=(1, 2)))

    def moved(self, totals: Floats) -> tuple[Floats, Floats]:
        """Return of both classes the rows that moved in their direction, and the others."""
        table = self.table(totals)
        higher = np.tril(table, -1).sum(axis=(1, 2))
        lower = np.triu(table, 1).sum(axis=(1, 2))
        return np.array([higher[0], lower[1]]), np.array([lower[0], higher[1]])

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Return the net shares of both classes, and their sum."""
        rows, (right, wrong) = self.groups_of(totals), self.moved(totals)
        if rows.min() < 0.5:
            return undefined(PARTS)
        parts = (right - wrong) / rows
        values = np.array([parts.sum(), *parts])
        return Result(values, values - SHARE_ERROR, values + SHARE_ERROR, labels=PARTS)

    def sampling_errors(self, totals: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Return the standard errors of net shares: of numbers that are 1, −1 or 0."""
        rows, (right, wrong) = np.maximum(self.groups_of(totals), 1.0), self.moved(totals)
        shares = (right + wrong) / rows - ((right - wrong) / rows) ** 2
        variances = np.maximum(shares, 0.0) / np.maximum(rows - 1, 1.0)
        return np.sqrt([variances.sum(), *variances]), np.array([rows.min(), *rows])
