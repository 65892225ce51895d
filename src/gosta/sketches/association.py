"""Sketches of two columns: counts in bin × bin.

Pairs of rows that share a bin in one column are what is not known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gosta.errors import InputError
from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.bins import Counts, sums_after, sums_before
from gosta.sketches.definition import Result, single, sketch, undefined
from gosta.statistics import encode


class PairBins(Counts):
    """The sums: counts in bin of the first column × bin of the second."""

    encode = staticmethod(encode.pair)
    sums = "pairs"
    roles = ("first", "second")
    bounds = (-1.0, 1.0)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.axes[0].bins, self.axes[1].bins

    def cells(self, x: Floats) -> Integers:
        first, second = (axis.positions(x[:, k]) for k, axis in enumerate(self.axes))
        return first * self.axes[1].bins + second


def _signs(counts: Floats, axis: int) -> Floats:
    """Return for each bin the counts before it less those after it."""
    return sums_before(counts, axis) - sums_after(counts, axis)


@sketch("kendall-tau")
class KendallTau(PairBins):
    """Kendall's tau (variant a, or b) from counts in bins of both columns.

    Pairs of rows that share a bin can be concordant, discordant or tied. The bracket is the same
    for both variants: a pair that is concordant in place of tied raises tau-b too, as its two
    denominators grow by less than the numerator.
    """

    defaults = {"variant": "a"}  # noqa: RUF012

    def prepare(self) -> None:
        super().prepare()
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
            untied = float(np.prod(_untied(table)))
            tau = agreement / np.sqrt(untied) if untied > 0 else np.nan
        return single(tau, low, high)

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivative of a quadratic form over a quadratic form."""
        table, n = self.table(totals), totals.sum()
        signs = _signs(_signs(table, 0), 1)
        agreement = (table * signs).sum()
        if self.options["variant"] == "a":
            slopes = 2 * signs - agreement * (2 * n - 1) / (n * (n - 1))
            return np.asarray(slopes / (n * (n - 1))).ravel()
        untied = _untied(table)
        slopes = (n - table.sum(axis=1))[:, None] / untied[0] + (n - table.sum(axis=0)) / untied[1]
        return np.asarray((2 * signs - agreement * slopes) / np.sqrt(untied.prod())).ravel()


def _untied(table: Floats) -> Floats:
    """Return the ordered pairs in different bins of each column."""
    return np.array([table.sum() ** 2 - (table.sum(axis=k) ** 2).sum() for k in (1, 0)])


class RankMoments(NamedTuple):
    """Both columns with the ranks of the middles of their bins, around the middle of all rows."""

    counts: tuple[Floats, Floats]  # of the bins of each column
    ranks: tuple[Floats, Floats]  # twice the rank of the middle of each bin
    product: float  # of both ranks, summed over rows
    squares: Floats  # of the ranks of each column, summed over rows


def _rank_moments(table: Floats) -> RankMoments:
    counts = table.sum(axis=1), table.sum(axis=0)
    ranks = _signs(counts[0], 0), _signs(counts[1], 0)
    squares = np.array([counts[0] @ ranks[0] ** 2, counts[1] @ ranks[1] ** 2])
    return RankMoments(counts, ranks, float(ranks[0] @ table @ ranks[1]), squares)


@sketch("spearman-rho")
class SpearmanRho(PairBins):
    """Correlation of the ranks of two columns from counts in bins of both.

    A row's rank is the middle of its bin plus a remainder, which adds up to 0 in every bin and is
    the most with one column in the order of the other.
    """

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Correlate the middles of bins; the remainders move all parts by a bounded amount."""
        table = self.table(totals)
        counts, (first, second), product, squares = _rank_moments(table)
        # At most: rows of one bin ordered as the bins of the other column; and in both columns by
        # Cauchy's inequality.
        swing = float(
            (table * _signs(table, 1)).sum(axis=0) @ second
            + (table * _signs(table, 0)).sum(axis=1) @ first
        )
        rests = np.maximum([(c * (c**2 - 1)).sum() / 3 for c in counts], 0.0)
        swing += float(np.sqrt(rests.prod()))
        if squares.min() <= 0:
            return undefined()
        smallest, largest = (float(np.sqrt(part.prod())) for part in (squares, squares + rests))
        least, most = product - swing, product + swing
        low = _quotient(least, smallest if least < 0 else largest, -1.0)
        high = _quotient(most, smallest if most > 0 else largest, 1.0)
        return single(product / np.sqrt(squares[0] * squares[1]), low, high)

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivative of a cubic form over the root of two others."""
        table = self.table(totals)
        counts, (first, second), product, squares = _rank_moments(table)
        value = product / np.sqrt(squares[0] * squares[1])
        # A row more in a bin raises the middle of later bins by 1, and lowers that of earlier ones.
        through_first, through_second = -_signs(table @ second, 0), -_signs(first @ table, 0)
        by_product = np.outer(first, second) + through_first[:, None] + through_second
        slopes = (first**2 - 2 * _signs(counts[0] * first, 0))[:, None] / squares[0]
        slopes = slopes + (second**2 - 2 * _signs(counts[1] * second, 0)) / squares[1]
        return np.asarray(by_product / np.sqrt(squares.prod()) - value * slopes / 2).ravel()


def _quotient(numerator: float, denominator: float, default: float) -> float:
    """Return a quotient within −1 and 1; the default where the denominator is not positive."""
    if denominator <= 0:
        return default
    return min(max(numerator / denominator, -1.0), 1.0)
