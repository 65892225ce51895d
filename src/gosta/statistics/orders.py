"""P-values without approximation, by counting orders of the rows: for few rows without ties."""

from __future__ import annotations

from math import comb, factorial

import numpy as np

LARGEST_FACTORIAL = 170  # of more rows 1/n! is 0 in floating point


def mann_whitney_tail(u: int, first: int, second: int) -> float:
    """Return the probability that U of two samples without ties is u or less.

    Orders of the rows by U are counted by the Gaussian binomial coefficient, whose factors are (1 − qⁿ⁺ⁱ)/(1 − qⁱ).
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

    Orders by their count of discordant pairs are counted row by row: the k-th adds 0 to k − 1 of them.
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
    """Return the probability that the ranks of the positive rows among n, symmetric about 0, add up to t or less.

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
