"""Sketches of two columns: counts in bin × bin. Pairs of rows that share a bin in one column are what is not known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.sketches.definition import (
    Axis,
    Features,
    Result,
    Sketch,
    after,
    before,
    one,
    sketch,
    undefined,
)
from gosta.statistics import encode
from gosta.statistics.definition import Options


class PairBins(Sketch):
    """The sums: counts in bin of the first column × bin of the second."""

    encode = staticmethod(encode.pair)
    sums = "pairs"
    roles = ("first", "second")
    features_per_row = 1
    are_counts = True
    bounds = (-1.0, 1.0)

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.axes[0].bins * self.axes[1].bins

    def features(self, x: Floats) -> Features:
        """Count a row in its two bins."""
        first, second = (axis.positions(x[:, k]) for k, axis in enumerate(self.axes))
        return Features((first * self.axes[1].bins + second)[:, None], np.ones((len(x), 1)))

    def count(self, totals: Floats) -> float:
        """Return the sum of all counts."""
        return float(totals.sum())

    def table(self, totals: Floats) -> Floats:
        """Return the counts as bins × bins."""
        return totals.reshape(self.axes[0].bins, -1)


def _signs(counts: Floats, axis: int) -> Floats:
    """Return for each bin the counts before it less those after it."""
    return before(counts, axis) - after(counts, axis)


@sketch("kendall-tau")
class KendallTau(PairBins):
    """Kendall's tau (variant a, or b) from counts in bins of both columns.

    Pairs of rows that share a bin can be concordant, discordant or tied. The bracket is the same for both variants: a
    pair that is concordant in place of tied raises tau-b too, as its two denominators grow by less than the numerator.
    """

    defaults = {"variant": "a"}  # noqa: RUF012

    def __init__(
        self, axes: Sequence[Axis], classes: int = 2, options: Options | None = None
    ) -> None:
        super().__init__(axes, classes, options)
        if self.options["variant"] not in ("a", "b"):
            raise InputError(f"variant = {self.options['variant']!r} must be 'a' or 'b'")

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Count pairs in different bins of both columns; of all others the sign is open."""
        table = self.table(totals)
        n = totals.sum()
        if n < 1.5:
            return undefined()
        agreement = float((table * _signs(_signs(table, 0), 1)).sum())
        rows, columns = table.sum(axis=1), table.sum(axis=0)
        alike = rows @ rows + columns @ columns - (table**2).sum() - n
        tau, reach = agreement / (n * (n - 1)), alike / (n * (n - 1))
        low, high = max(tau - reach, -1.0), min(tau + reach, 1.0)
        if self.options["variant"] == "b":
            untied = float(np.prod(self._untied(table)))
            tau = agreement / np.sqrt(untied) if untied > 0 else np.nan
        return one(tau, low, high)

    @staticmethod
    def _untied(table: Floats) -> Floats:
        """Return the ordered pairs in different bins of each column."""
        return np.array([table.sum() ** 2 - (table.sum(axis=k) ** 2).sum() for k in (1, 0)])

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivative of a quadratic form over a quadratic form."""
        table, n = self.table(totals), totals.sum()
        signs = _signs(_signs(table, 0), 1)
        agreement = (table * signs).sum()
        if self.options["variant"] == "a":
            slopes = 2 * signs - agreement * (2 * n - 1) / (n * (n - 1))
            return np.asarray(slopes / (n * (n - 1))).ravel()
        untied = self._untied(table)
        slopes = (n - table.sum(axis=1))[:, None] / untied[0] + (n - table.sum(axis=0)) / untied[1]
        return np.asarray((2 * signs - agreement * slopes) / np.sqrt(untied.prod())).ravel()


@sketch("spearman-rho")
class SpearmanRho(PairBins):
    """Correlation of the ranks of two columns from counts in bins of both.

    A row's rank is the middle of its bin plus a remainder, which adds up to 0 in every bin and is the most with one
    column in the order of the other.
    """

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Correlate the middles of bins; the remainders move numerator and denominators by at most so much."""
        table = self.table(totals)
        first, second = table.sum(axis=1), table.sum(axis=0)
        middle, other = _signs(first, 0), _signs(second, 0)
        product = float(middle @ table @ other)
        squares = np.array([first @ middle**2, second @ other**2])
        # At most: rows of one bin ordered as the bins of the other column; and in both columns by Cauchy's inequality.
        swing = float(
            (table * _signs(table, 1)).sum(axis=0) @ other
            + (table * _signs(table, 0)).sum(axis=1) @ middle
        )
        rests = np.maximum([(c * (c**2 - 1)).sum() / 3 for c in (first, second)], 0.0)
        swing += float(np.sqrt(rests.prod()))
        if squares.min() <= 0:
            return undefined()
        least, most = (float(np.sqrt(part.prod())) for part in (squares, squares + rests))
        low, high = (
            _extreme(
                product + side * swing, least if (product + side * swing) * side > 0 else most, side
            )
            for side in (-1, 1)
        )
        return one(self._value(table), low, high)

    @staticmethod
    def _value(table: Floats) -> float:
        first, second = table.sum(axis=1), table.sum(axis=0)
        middle, other = _signs(first, 0), _signs(second, 0)
        return float(middle @ table @ other / np.sqrt((first @ middle**2) * (second @ other**2)))

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivative of a cubic form over the root of two others."""
        table = self.table(totals)
        first, second = table.sum(axis=1), table.sum(axis=0)
        middle, other = _signs(first, 0), _signs(second, 0)
        squares = np.array([first @ middle**2, second @ other**2])
        # A row more in a bin raises the middle of bins after it by 1, and lowers that of those before.
        through_first, through_second = -_signs(table @ other, 0), -_signs(middle @ table, 0)
        product = np.outer(middle, other) + through_first[:, None] + through_second
        slopes = (middle**2 - 2 * _signs(first * middle, 0))[:, None] / squares[0]
        slopes = slopes + (other**2 - 2 * _signs(second * other, 0)) / squares[1]
        return np.asarray(
            product / np.sqrt(squares.prod()) - self._value(table) * slopes / 2
        ).ravel()


def _extreme(numerator: float, denominator: float, side: int) -> float:
    """Return a quotient within −1 and 1, at the side where it leads."""
    if denominator <= 0:
        return float(side)
    return min(max(numerator / denominator, -1.0), 1.0)
