"""Tests of ranks: Mann–Whitney and Kendall, exact for few rows without ties, else by the normal approximation."""

from __future__ import annotations

from math import erfc, sqrt
from statistics import NormalDist

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import NumericalError
from gosta.runtime.arrays import Floats, Integers
from gosta.significance.definition import HypothesisTest, Settings, hypothesis_test
from gosta.significance.orders import kendall_tail, mann_whitney_tail
from gosta.significance.pair_quantiles import shift, slope
from gosta.statistics import find
from gosta.statistics.exact import row_sums, value_of_rows

# Up to these numbers of rows a p-value is exact, as scipy's.
FEW_OF_A_CLASS = 8
FEW_ROWS = 33
LARGEST_COUNT = 10**7  # of orders by U in a list: a second of work


@hypothesis_test("mann-whitney")
def mann_whitney(data: Data, settings: Settings, name: str) -> HypothesisTest:
    """Test whether rows of one class tend to have higher scores than those of the other: its U, and its AUC."""
    statistic = find(name)
    x = statistic.encode_rows(data, settings.options)
    u, plus = value_of_rows(statistic, x, settings.options), int((x[:, 1] > 0).sum())
    assert isinstance(u, float)
    n, pairs = len(x), plus * (len(x) - plus)
    ties = _tie_sizes(x[:, 0])
    variance = None
    if min(plus, n - plus) <= FEW_OF_A_CLASS and ties.max() == 1 and min(u, pairs - u) <= LARGEST_COUNT:
        tails, how = [mann_whitney_tail(round(end), plus, n - plus) for end in (u, pairs - u)], "exact"
    else:
        t = ties.astype(np.float64)
        variance = pairs / 12 * (n + 1 - float((t**3 - t).sum()) / (n * (n - 1)))
        gaps = u - pairs / 2 + 0.5, pairs / 2 - u + 0.5  # continuity correction
        tails = [_normal_share(gap / sqrt(variance)) if variance > 0 else 1.0 for gap in gaps]
        how = "normal approximation, corrected for ties and continuity"
    rank = _rank(plus, n - plus, settings.two_sided_level, variance)
    effect = settings.one_ended(shift(x[x[:, 1] > 0, 0], x[x[:, 1] < 0, 0], rank, settings.level))
    method, values = f"Mann–Whitney U, {how}", {"auc": u / pairs}
    return HypothesisTest(
        name, u, settings.p_value(*tails), n, method, values, effect, "Hodges–Lehmann shift", settings.alternative
    )


def _normal_share(z: float) -> float:
    """Return the probability that a standard normal number is below z."""
    return erfc(-z / sqrt(2)) / 2


def _rank(first: int, second: int, level: float, variance: float | None) -> int:
    """Return which of the ordered differences of two samples is the lower end of the shift's interval.

    Without a variance it is exact: the highest rank that U is below with a probability of at most 1 − level.
    """
    if variance is not None:
        return round(first * second / 2 - NormalDist().inv_cdf(0.5 + level / 2) * sqrt(variance))
    low, high = 0, first * second // 2 + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if 2 * mann_whitney_tail(middle - 1, first, second) <= 1 - level else (low, middle)
    return low


@hypothesis_test("kendall-tau")
def kendall(data: Data, settings: Settings, name: str) -> HypothesisTest:
    """Test whether two columns are associated, by the concordant less the discordant pairs: its statistic is tau-b."""
    statistic = find(name)
    options = {"variant": "b", **settings.options}
    x = statistic.encode_rows(data, options)
    n = len(x)
    tau = value_of_rows(statistic, x, options)
    assert isinstance(tau, float)
    score = round(float(row_sums(statistic, x, {}).sums[:, 0].sum()) / 2)  # concordant less discordant pairs
    first, second = (_tie_sizes(column).astype(np.float64) for column in x.T)
    all_pairs = n * (n - 1) // 2
    discordant = (all_pairs - score) // 2
    has_ties = max(first.max(), second.max()) > 1
    if not has_ties and (n <= FEW_ROWS or min(discordant, all_pairs - discordant) <= 1):
        tails, how = [kendall_tail(end, n) for end in (all_pairs - discordant, discordant)], "exact"
    else:
        z = score / sqrt(_variance(n, first, second))
        tails, how = [_normal_share(z), _normal_share(-z)], "normal approximation, corrected for ties"
    reach = NormalDist().inv_cdf(0.5 + settings.two_sided_level / 2) * _sen_deviation(n, first, second)

    def ranks(pairs: int) -> tuple[int, int]:
        return round((pairs - reach) / 2), round((pairs + reach) / 2) + 1

    effect, method = settings.one_ended(slope(x, ranks, settings.level)), f"Kendall's tau-{options['variant']}, {how}"
    return HypothesisTest(
        name, tau, settings.p_value(*tails), n, method, {}, effect, "Theil–Sen slope", settings.alternative
    )


def _sen_deviation(n: int, first: Floats, second: Floats) -> float:
    """Return the standard deviation of concordant less discordant pairs by Sen (1968), from the sizes of ties."""
    ties = sum(float((t * (t - 1) * (2 * t + 5)).sum()) for t in (first, second))
    return sqrt(max(n * (n - 1) * (2 * n + 5) - ties, 0.0) / 18)


def _variance(n: int, first: Floats, second: Floats) -> float:
    """Return the variance of concordant less discordant pairs of independent columns, from the sizes of their ties."""
    pairs = n * (n - 1.0)
    (two, three, five), (other_two, other_three, other_five) = (
        (float((t * (t - 1)).sum()), float((t * (t - 1) * (t - 2)).sum()), float((t * (t - 1) * (2 * t + 5)).sum()))
        for t in (first, second)
    )
    variance = (pairs * (2 * n + 5) - five - other_five) / 18 + two * other_two / (2 * pairs)
    variance += three * other_three / (9 * pairs * (n - 2)) if n > 2 else 0.0
    if not variance > 0:
        raise NumericalError("kendall-tau has no test here: a column is constant")
    return variance


def _tie_sizes(column: Floats) -> Integers:
    """Return how many rows have each value."""
    return np.asarray(np.unique(column, return_counts=True)[1], dtype=np.int64)
