"""Medians of a number over pairs of rows.

These are Theil–Sen's slope, and Hodges and Lehmann's location and shift.

Few pairs are sorted. For many, a quantile is found by bisection on the share of pairs below a
threshold, which is a pairwise mean in O(n log n): for differences of two samples that of the AUC
with one of them shifted, for slopes that of Kendall's tau of the first column and the residuals of
the second. The ends of an interval are the values of two ranks: the thresholds that the test of
that statistic does not reject.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan, sqrt
from statistics import NormalDist

import numpy as np

from gosta.runtime import progress
from gosta.runtime.arrays import Floats
from gosta.statistics import fast
from gosta.statistics.definition import PRECISION, PairValues
from gosta.statistics.rank_distributions import (
    Ties,
    mann_whitney_tail,
    mann_whitney_variance,
    signed_rank_tail,
)

MOST_SORTED = 2_000_000  # pairs
# Up to these numbers of rows the ranks of an interval are exact, as scipy's p-values are.
FEW_OF_A_CLASS = 8
FEW_SIGNED_ROWS = 50
MOST_COUNTED = 100_000  # pairs whose orders are counted: a second of work


def slopes(x: Floats, weights: Floats | None, _with_diagonal: bool) -> PairValues:
    """Return the slopes over pairs that differ in the first column, with Sen's ranks (1968)."""
    n = len(x)
    first, second = (x - x.mean(axis=0)).T

    def ranks(level: float) -> tuple[int, int]:
        ties = sum(2 * one.squares + 7 * one.pairs for one in map(Ties.of_column, x.T))
        deviation = sqrt(max(n * (n - 1) * (2 * n + 5) - ties, 0.0) / 18)
        reach = NormalDist().inv_cdf(0.5 + level / 2) * deviation
        return round((total - reach) / 2), round((total + reach) / 2) + 1

    if n * (n - 1) // 2 <= MOST_SORTED:
        i, j = np.triu_indices(n, 1)
        run, rise = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1]
        differs = run != 0
        counts = None if weights is None else (weights[i] * weights[j])[differs]
        quantile, total = _sorted(rise[differs] / run[differs], counts)
        return PairValues(quantile, total, ranks)
    own = np.ones(n) if weights is None else weights
    total = float(own @ fast.kendall(x, weights).sums[:, 1]) / 2  # that differ in the first column

    def below(t: float) -> float:
        score = (
            float(
                own @ fast.kendall(np.column_stack([first, second - t * first]), weights).sums[:, 0]
            )
            / 2
        )
        return (total - score) / 2

    return PairValues(_bisected(below, float(np.ptp(second)) / float(np.ptp(first))), total, ranks)


def differences(x: Floats, weights: Floats | None, _with_diagonal: bool) -> PairValues:
    """Return differences of a positive and a negative row, with the Mann–Whitney test's ranks."""
    plus, own = x[:, 1] > 0, np.ones(len(x)) if weights is None else weights
    (first, of_first), (second, of_second) = ((x[part, 0], own[part]) for part in (plus, ~plus))

    def ranks(level: float) -> tuple[int, int]:
        low = shift_rank(len(first), len(second), level, Ties.of_column(x[:, 0]))
        return low, len(first) * len(second) + 1 - low

    if len(first) * len(second) <= MOST_SORTED:
        counts = None if weights is None else np.outer(of_first, of_second).ravel()
        return PairValues(*_sorted((first[:, None] - second).ravel(), counts), ranks)
    order = np.argsort(second)
    upto = np.concatenate([[0.0], np.cumsum(of_second[order])])
    total = float(of_first.sum() * upto[-1])
    scale = float(max(first.max() - second.min(), second.max() - first.min()))
    ordered = second[order]
    return PairValues(
        _bisected(
            lambda t: total - float(of_first @ upto[np.searchsorted(ordered, first - t)]), scale
        ),
        total,
        ranks,
    )


def averages(x: Floats, weights: Floats | None, with_diagonal: bool) -> PairValues:
    """Return means of two rows, or of one with itself too, with the signed-rank test's ranks."""
    v, n = x[:, 0], len(x)

    def ranks(level: float) -> tuple[int, int]:
        low = _signed_rank(n, level)
        return low, n * (n + 1) // 2 + 1 - low

    if n * (n + 1) // 2 <= MOST_SORTED:
        i, j = np.triu_indices(n, 0 if with_diagonal else 1)
        counts = None if weights is None else weights[i] * weights[j]
        return PairValues(*_sorted(v[i] / 2 + v[j] / 2, counts), ranks)
    order = np.argsort(v)
    ordered, own = v[order], np.ones(n) if weights is None else weights[order]
    upto = np.concatenate([[0.0], np.cumsum(own)])
    sign = 1 if with_diagonal else -1
    total = float(upto[-1] ** 2 + sign * (own @ own)) / 2

    def below(t: float) -> float:
        pairs = float(own @ upto[np.searchsorted(ordered, 2 * t - ordered, side="right")])
        return (pairs + sign * float((own * own)[ordered <= t].sum())) / 2

    return PairValues(_bisected(below, float(np.abs(v).max())), total, ranks)


def shift_rank(first: int, second: int, level: float, ties: Ties) -> int:
    """Return which of the ordered differences of two samples is the lower end of an interval.

    It is the highest of them that U is below with a probability of at most (1 − level)/2.
    """
    if min(first, second) <= FEW_OF_A_CLASS and not ties.pairs and first * second <= MOST_COUNTED:
        return _highest(
            lambda u: mann_whitney_tail(u, first, second), first * second // 2 + 1, level
        )
    variance = mann_whitney_variance(first + second, first * second, ties)
    reach = NormalDist().inv_cdf(0.5 + level / 2) * sqrt(variance)
    return round(first * second / 2 - reach)


def _signed_rank(n: int, level: float) -> int:
    """Return the same for means of two rows."""
    if n <= FEW_SIGNED_ROWS:
        return _highest(lambda t: signed_rank_tail(t, n), n * (n + 1) // 4 + 1, level)
    reach = NormalDist().inv_cdf(0.5 + level / 2) * sqrt(n * (n + 1) * (2 * n + 1) / 24)
    return round(n * (n + 1) / 4 - reach)


def _highest(tail: Callable[[int], float], limit: int, level: float) -> int:
    """Return the highest rank below a limit with a tail of at most (1 − level)/2."""
    low, high = 0, limit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if 2 * tail(middle - 1) <= 1 - level else (low, middle)
    return low


def _sorted(values: Floats, weights: Floats | None) -> tuple[Callable[[float], float], float]:
    """Return a function from ranks to values, and the number or the weight of all."""
    if not len(values):
        return lambda _rank: nan, 0.0
    if weights is None:
        values.sort()
        return lambda rank: float(values[int(np.ceil(rank)) - 1]), float(len(values))
    order = np.argsort(values)
    upto, ordered = np.cumsum(weights[order]), values[order]
    return lambda rank: float(ordered[min(int(np.searchsorted(upto, rank)), len(upto) - 1)]), float(
        upto[-1]
    )


def _bisected(below: Callable[[float], float], scale: float) -> Callable[[float], float]:
    """Return a function from ranks to values, which bisects from ± scale on."""

    known: dict[float, tuple[float, float]] = {}  # quantiles, and the ranks that each is of

    def quantile(rank: float) -> float:
        if scale == 0:
            return 0.0  # all rows are alike
        for value, (least, most) in known.items():
            if least < rank <= most:
                return value
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
        value = 0.0 if abs(high) <= PRECISION * scale else high
        known[value] = below(low), below(high)
        return value

    return quantile
