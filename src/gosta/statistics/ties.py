"""Groups of equal values, and the variances of rank statistics that depend on their sizes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gosta.runtime.arrays import Floats


class Ties(NamedTuple):
    """Sums over groups of t rows with the same value.

    The sum of t·f(t) over groups is the sum of f(t) over rows, each with the t of its group. A row's share of equal
    rows among the others is (t − 1)/(n − 1), so that nodes need its mean and its mean square only.
    """

    pairs: float  # t(t − 1)
    squares: float  # t(t − 1)²

    @classmethod
    def of_column(cls, column: Floats) -> Ties:
        """Return the sums for the values of a column."""
        sizes = np.unique(column, return_counts=True)[1].astype(np.float64)
        return cls(float((sizes * (sizes - 1)).sum()), float((sizes * (sizes - 1) ** 2).sum()))

    @classmethod
    def of_shares(cls, rows: int, mean: float, mean_square: float) -> Ties:
        """Return the sums from the share of other rows that a row is tied with: its mean over rows, and of its square.

        >>> Ties.of_shares(4, mean=(1 + 1) / 3 / 4, mean_square=(1 + 1) / 9 / 4)  # two of four rows are tied
        Ties(pairs=2.0, squares=2.0)
        """
        return cls(rows * (rows - 1) * mean, rows * (rows - 1) ** 2 * mean_square)


def mann_whitney_variance(rows: int, pairs: float, ties: Ties) -> float:
    """Return the variance of U over so many pairs of a positive and a negative row, if both have one distribution."""
    return pairs / 12 * (rows + 1 - (ties.squares + 2 * ties.pairs) / (rows * (rows - 1)))


def kendall_variance(rows: int, first: Ties, second: Ties) -> float:
    """Return the variance of concordant less discordant pairs of independent columns."""
    pairs, others = rows * (rows - 1.0), [ties.squares - ties.pairs for ties in (first, second)]
    variance = (
        pairs * (2 * rows + 5) / 18
        - sum(2 * ties.squares + 7 * ties.pairs for ties in (first, second)) / 18
    )
    variance += first.pairs * second.pairs / (2 * pairs)
    return variance + (others[0] * others[1] / (9 * pairs * (rows - 2)) if rows > 2 else 0.0)
