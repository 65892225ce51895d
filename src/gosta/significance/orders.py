"""P-values without approximation, by counting orders of the rows: for few rows without ties."""

from __future__ import annotations

from math import comb, factorial

import numpy as np

LARGEST_FACTORIAL = 170  # of more rows 2/n! is 0 in floating point


def mann_whitney_p(u: int, first: int, second: int) -> float:
    """Return the probability that U of two samples without ties is as far from its mean as u.

    Orders of the rows by U are counted by the Gaussian binomial coefficient, whose factors are (1 − qⁿ⁺ⁱ)/(1 − qⁱ).
    """
    tail = min(u, first * second - u)
    few, many = sorted((first, second))
    counts = np.zeros(tail + 1, dtype=object)  # whole numbers of any size
    counts[0] = 1
    for i in range(1, few + 1):
        if many + i <= tail:
            counts[many + i :] = counts[many + i :] - counts[: -many - i]
        for residue in range(min(i, tail + 1)):
            counts[residue::i] = np.cumsum(counts[residue::i])
    return float(min(1.0, 2 * int(counts.sum()) / comb(first + second, first)))


def kendall_p(discordant: int, n: int) -> float:
    """Return the probability that the count of discordant pairs of n rows without ties is as far from its mean.

    Orders by their count of discordant pairs are counted row by row: the k-th adds 0 to k − 1 of them.
    """
    tail = min(discordant, n * (n - 1) // 2 - discordant)
    if n > LARGEST_FACTORIAL and tail <= 1:
        return 0.0
    counts = np.zeros(tail + 1, dtype=object)
    counts[0] = 1
    for k in range(2, n + 1):
        sums = np.cumsum(counts)
        counts = sums.copy()
        counts[k:] = counts[k:] - sums[:-k]
    return float(min(1.0, 2 * int(counts.sum()) / factorial(n)))
