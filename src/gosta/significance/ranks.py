"""Tests of ranks: Mann–Whitney and Kendall, exact for few rows without ties, else by the normal approximation."""

from __future__ import annotations

from math import erfc, sqrt

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import NumericalError
from gosta.runtime.arrays import Floats, Integers
from gosta.significance.definition import HypothesisTest, Settings, hypothesis_test
from gosta.significance.orders import kendall_p, mann_whitney_p
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
    tail = min(u, pairs - u)
    if min(plus, n - plus) <= FEW_OF_A_CLASS and ties.max() == 1 and tail <= LARGEST_COUNT:
        p, how = mann_whitney_p(round(u), plus, n - plus), "exact"
    else:
        t = ties.astype(np.float64)
        variance = pairs / 12 * (n + 1 - float((t**3 - t).sum()) / (n * (n - 1)))
        gap = pairs / 2 - tail - 0.5  # continuity correction
        p = min(1.0, erfc(gap / sqrt(2 * variance))) if variance > 0 else 1.0
        how = "normal approximation, corrected for ties and continuity"
    return HypothesisTest(name, u, p, n, f"Mann–Whitney U, {how}", {"auc": u / pairs})


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
        p, how = kendall_p(discordant, n), "exact"
    else:
        p, how = erfc(abs(score) / sqrt(2 * _variance(n, first, second))), "normal approximation, corrected for ties"
    return HypothesisTest(name, tau, p, n, f"Kendall's tau-{options['variant']}, {how}", {})


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
