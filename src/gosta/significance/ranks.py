"""Tests of ranks: Mann–Whitney's, Kendall's and the log-rank test.

The first two are exact for few rows without ties, else by the normal approximation.
"""

from __future__ import annotations

from math import erfc, isnan, nan, sqrt

from gosta.datasets.data import Data
from gosta.errors import NumericalError
from gosta.measures.survival import log_rank_z
from gosta.significance.definition import HypothesisTest, Settings, hypothesis_test
from gosta.sketches.comparison import compare
from gosta.sketches.layout_builder import Bins
from gosta.statistics import find
from gosta.statistics.definition import PairValues
from gosta.statistics.estimate import Estimate
from gosta.statistics.exact import row_sums, value_of_rows
from gosta.statistics.pair_medians import FEW_OF_A_CLASS, differences, slopes
from gosta.statistics.rank_distributions import (
    Ties,
    kendall_tail,
    kendall_variance,
    mann_whitney_tail,
    mann_whitney_variance,
)

# Up to these numbers of rows a p-value is exact, as scipy's.
FEW_ROWS = 33
LARGEST_COUNT = 10**7  # of orders by U in a list: a second of work
LOG_RANK = "log-rank test of two classes"  # the method, in words


@hypothesis_test("mann-whitney")
def mann_whitney(data: Data, settings: Settings, name: str) -> HypothesisTest:
    """Test whether rows of one class tend to have higher scores than those of the other, by U."""
    statistic = find(name)
    x = statistic.encode_rows(data, settings.options)
    u, plus = value_of_rows(statistic, x, settings.options), int((x[:, 1] > 0).sum())
    assert isinstance(u, float)
    n, pairs = len(x), plus * (len(x) - plus)
    ties = Ties.of_column(x[:, 0])
    if (
        min(plus, n - plus) <= FEW_OF_A_CLASS
        and not ties.pairs
        and min(u, pairs - u) <= LARGEST_COUNT
    ):
        tails, how = (
            [mann_whitney_tail(round(end), plus, n - plus) for end in (u, pairs - u)],
            "exact",
        )
    else:
        variance = mann_whitney_variance(n, pairs, ties)
        gaps = u - pairs / 2 + 0.5, pairs / 2 - u + 0.5  # continuity correction
        tails = [_normal_share(gap / sqrt(variance)) if variance > 0 else 1.0 for gap in gaps]
        how = "normal approximation, corrected for ties and continuity"
    effect = _effect(differences(x, None, False), settings)
    method, values = f"Mann–Whitney U, {how}", {"auc": u / pairs}
    return HypothesisTest(
        name,
        u,
        settings.p_value(*tails),
        n,
        method,
        values,
        effect,
        "Hodges–Lehmann shift",
        settings.alternative,
    )


def _normal_share(z: float) -> float:
    """Return the probability that a standard normal number is below z."""
    return erfc(-z / sqrt(2)) / 2


def _effect(values: PairValues, settings: Settings) -> Estimate:
    low, high = values.ends(settings.two_sided_level)
    return settings.one_ended(Estimate(values.median, low, high, nan, settings.level))


@hypothesis_test("kendall-tau")
def kendall(data: Data, settings: Settings, name: str) -> HypothesisTest:
    """Test whether two columns are associated, from concordant and discordant pairs: tau-b."""
    statistic = find(name)
    options = {"variant": "b", **settings.options}
    x = statistic.encode_rows(data, options)
    n = len(x)
    tau = value_of_rows(statistic, x, options)
    assert isinstance(tau, float)
    # concordant less discordant pairs
    score = round(float(row_sums(statistic, x, {}).sums[:, 0].sum()) / 2)
    first, second = map(Ties.of_column, x.T)
    all_pairs = n * (n - 1) // 2
    discordant = (all_pairs - score) // 2
    if (
        not first.pairs
        and not second.pairs
        and (n <= FEW_ROWS or min(discordant, all_pairs - discordant) <= 1)
    ):
        tails, how = [kendall_tail(end, n) for end in (all_pairs - discordant, discordant)], "exact"
    else:
        variance = kendall_variance(n, first, second)
        if not variance > 0:
            raise NumericalError("kendall-tau has no test here: a column is constant")
        z = score / sqrt(variance)
        tails, how = (
            [_normal_share(z), _normal_share(-z)],
            "normal approximation, corrected for ties",
        )
    effect, method = (
        _effect(slopes(x, None, False), settings),
        f"Kendall's tau-{options['variant']}, {how}",
    )
    return HypothesisTest(
        name,
        tau,
        settings.p_value(*tails),
        n,
        method,
        {},
        effect,
        "Theil–Sen slope",
        settings.alternative,
    )


@hypothesis_test("log-rank")
def log_rank(data: Data, settings: Settings, name: str) -> HypothesisTest:
    """Test whether events come at the same rate in two classes of rows with censored times."""
    layout = compare(data, name, Bins(), None, settings.options).layout
    x = layout.rows_of(layout.parts[0], layout.encode(data))
    data.select(drop_missing=True).class_signs(settings.options.get("positive"))
    z = log_rank_z(x)
    if isnan(z):
        raise NumericalError(
            "log-rank is not defined here: there are no events while both classes have rows"
        )
    p = settings.p_value(erfc(-z / sqrt(2)) / 2, erfc(z / sqrt(2)) / 2)
    if settings.alternative == "two-sided":
        return HypothesisTest(
            name, z * z, p, len(x), f"{LOG_RANK}: chi-squared with 1 degree of freedom", {}
        )
    return HypothesisTest(
        name, z, p, len(x), f"{LOG_RANK}: z", {}, alternative=settings.alternative
    )
