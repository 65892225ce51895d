"""Distributions of rank statistics: variances, and exact tails for few rows.

Variances depend on ties.
"""

from __future__ import annotations

from math import comb, factorial
from typing import NamedTuple

import numpy as np

from gosta.runtime.arrays import Floats

LARGEST_FACTORIAL = 170  # of more rows 1/n! is 0 in floating point


class Ties(NamedTuple):
    """Sums over groups of t rows with the same value.

    The sum of t·f(t) over groups is the sum of f(t) over rows, each with the t of its group. A
    row's share of equal rows among the others is (t − 1)/(n − 1), so that nodes need its mean and
    its mean square only.
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
        """Return the sums from the share of other rows that a row is tied with.

        `mean` is its mean over rows, `mean_square` that of its square.

        # Two of four rows are tied.
        >>> Ties.of_shares(4, mean=(1 + 1) / 3 / 4, mean_square=(1 + 1) / 9 / 4)
        Ties(pairs=2.0, squares=2.0)
        """
        return cls(rows * (rows - 1) * mean, rows * (rows - 1) ** 2 * mean_square)


def mann_whitney_variance(rows: int, pairs: float, ties: Ties) -> float:
    """Return the variance of U over `pairs` of two rows, if both samples have one distribution."""
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


def mann_whitney_tail(u: int, first: int, second: int) -> float:
    """Return the probability that U of two samples without ties is u or less.

    Orders of the rows by U are counted by the Gaussian binomial coefficient, whose factors are (1 −
    qⁿ⁺ⁱ)/(1 − qⁱ).
    """
    if 2 * u > first * second:
        return 1 - mann_whitney_tail(first * second - u - 1, first, second)
    if u < 0:
        return 0.0
    few, many = sorted((first, second))
    counts = np.zeros(u + 1, dtype=object)  # whole numbers of any size
    counts[0] = 1
    for i in range(1, few + 1):
        if many + i <= u:
            counts[many + i :] = counts[many + i :] - counts[: -many - i]
        for residue in range(min(i, u + 1)):
            counts[residue::i] = np.cumsum(counts[residue::i])
    return int(counts.sum()) / comb(first + second, first)


def kendall_tail(discordant: int, n: int) -> float:
    """Return the probability that n rows without ties have so many discordant pairs or fewer.

    Orders by their count of discordant pairs are counted row by row: the k-th adds 0 to k − 1 of
    them.
    """
    pairs = n * (n - 1) // 2
    if 2 * discordant > pairs:
        return 1 - kendall_tail(pairs - discordant - 1, n)
    if discordant < 0 or (n > LARGEST_FACTORIAL and discordant <= 1):
        return 0.0
    counts = np.zeros(discordant + 1, dtype=object)
    counts[0] = 1
    for k in range(2, n + 1):
        sums = np.cumsum(counts)
        counts = sums.copy()
        counts[k:] = counts[k:] - sums[:-k]
    return int(counts.sum()) / factorial(n)


def signed_rank_tail(t: int, n: int) -> float:
    """Return the probability that the ranks of the positive rows add up to t or less.

    The n rows are symmetric about 0.

    Each rank is positive or not: orders by their sum are counted rank by rank.
    """
    if 4 * t > n * (n + 1):
        return 1 - signed_rank_tail(n * (n + 1) // 2 - t - 1, n)
    if t < 0:
        return 0.0
    counts = np.zeros(t + 1, dtype=object)
    counts[0] = 1
    for rank in range(1, min(n, t) + 1):
        counts[rank:] = counts[rank:] + counts[: len(counts) - rank]
    return float(int(counts.sum()) / 2**n)
