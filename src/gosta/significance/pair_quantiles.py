"""Quantiles of a number over pairs of rows: Hodges–Lehmann's shift and Theil–Sen's slope.

Few pairs are sorted. For many, the quantile is found by bisection on the share of pairs below a threshold, which is a
pairwise mean in O(n log n): for differences of two samples that of the AUC with one of them shifted, for slopes that of
Kendall's tau of the first column and the residuals of the second. Intervals are the thresholds that the test of that
statistic does not reject.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import numpy as np

from gosta.runtime import progress
from gosta.runtime.arrays import Floats
from gosta.statistics import fast
from gosta.statistics.exact import Estimate

MOST_SORTED = 2_000_000  # pairs
PRECISION = 1e-12  # of the bisection, relative
Quantile = Callable[[int], float]  # the number of a rank from 1, in the order of size


def shift(first: Floats, second: Floats, rank: int, level: float) -> Estimate:
    """Return the median of all differences of two samples, and those of a rank from both ends."""
    pairs = len(first) * len(second)
    if pairs <= MOST_SORTED:
        quantile = _sorted((first[:, None] - second).ravel())
    else:
        ordered = np.sort(second)
        scale = float(max(first.max() - second.min(), second.max() - first.min()))
        quantile = _bisected(lambda t: pairs - float(np.searchsorted(ordered, first - t).sum()), scale)
    return _estimate(quantile, pairs, (rank, pairs + 1 - rank), level)


def slope(x: Floats, ranks: Callable[[int], tuple[int, int]], level: float) -> Estimate:
    """Return the median slope over all pairs of rows, and those of two ranks, which follow from the number of pairs."""
    first, second = (x - x.mean(axis=0)).T
    if len(x) * (len(x) - 1) // 2 <= MOST_SORTED:
        i, j = np.triu_indices(len(x), 1)
        run, rise = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1]
        differs = run != 0
        pairs = int(differs.sum())
        quantile = _sorted(rise[differs] / run[differs])
    else:
        pairs = round(float(fast.kendall(x).sums[:, 1].sum()) / 2)  # that differ in the first column

        def below(t: float) -> float:
            score = float(fast.kendall(np.column_stack([first, second - t * first])).sums[:, 0].sum()) / 2
            return (pairs - score) / 2

        quantile = _bisected(below, float(np.ptp(second)) / float(np.ptp(first)))
    return _estimate(quantile, pairs, ranks(pairs), level)


def _sorted(values: Floats) -> Quantile:
    values.sort()
    return lambda rank: float(values[rank - 1])


def _bisected(below: Callable[[float], float], scale: float) -> Quantile:
    """Return a function that finds the number that so many pairs do not exceed; the scale is where to begin."""

    def quantile(rank: int) -> float:
        if scale == 0:
            return 0.0  # all rows are alike
        low, high = -scale, scale
        with progress.bar("quantile over pairs", None) as advance:
            while below(high) < rank:
                low, high = high, 2 * high
            while below(low) >= rank:
                low, high = 2 * low, low
            while high - low > PRECISION * max(abs(low), abs(high), PRECISION * scale):
                middle = low + (high - low) / 2
                low, high = (low, middle) if below(middle) >= rank else (middle, high)
                advance(1)
        return 0.0 if abs(high) <= PRECISION * scale else high

    return quantile


def _estimate(quantile: Quantile, pairs: int, ranks: tuple[int, int], level: float) -> Estimate:
    """Return the median and the ends of its interval, which are infinite beyond the first and the last pair."""
    middle = quantile((pairs + 1) // 2)
    if pairs % 2 == 0:
        middle = (middle + quantile(pairs // 2 + 1)) / 2
    low, high = ranks
    return Estimate(middle, quantile(low) if low >= 1 else -inf, quantile(high) if high <= pairs else inf, nan, level)
