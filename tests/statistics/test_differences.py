"""Differences between groups: those of Welch's test, of Newcombe's interval and of DeLong's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, ttest_ind
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

import gosta
from gosta.statistics.differences import differences
from gosta.statistics.estimate import Estimate
from gosta.statistics.estimate_tables import as_frame

LEVEL = 0.95


def of_mean(values: np.ndarray, group: str) -> Estimate:
    """Return a mean with an interval as an estimate of a group."""
    n = len(values)
    error = float(values.std(ddof=1) / np.sqrt(n))
    reach = float(norm.ppf(0.5 + LEVEL / 2)) * error
    mean = float(values.mean())
    return Estimate(mean, mean - reach, mean + reach, error, LEVEL, group=group, n=n)


def of_share(count: int, n: int, group: str) -> Estimate:
    low, high = proportion_confint(count, n, 1 - LEVEL, method="wilson")
    share = count / n
    return Estimate(share, low, high, np.sqrt(share * (1 - share) / n), LEVEL, group=group, n=n)


def test_difference_of_means_is_welchs_test() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=14), 0.5 + 2 * rng.normal(size=30)
    (found,) = differences([of_mean(first, "a"), of_mean(second, "b")])
    test = ttest_ind(first, second, equal_var=False)
    assert (found.group, found.n) == ("a less b", 44)
    assert found.degrees == pytest.approx(test.df)
    assert found.p_value == pytest.approx(test.pvalue, abs=1e-12)
    assert found.high - found.value == pytest.approx(norm.ppf(0.975) * found.standard_error)


def test_difference_of_shares_has_newcombes_interval() -> None:
    for count, n in ((9, 10), (10, 10), (0, 12), (3, 8)):
        (found,) = differences([of_share(count, n, "a"), of_share(20, 40, "b")])
        wanted = confint_proportions_2indep(count, n, 20, 40, method="newcomb", compare="diff")
        assert (found.low, found.high) == pytest.approx(wanted, abs=1e-12)


def make_table(n: int = 600) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    died = rng.integers(0, 2, n)
    sex = np.array(["f", "m"])[(rng.random(n) < 0.6).astype(int)]
    return {
        "risk": rng.normal(size=n) + died,
        "died": died,
        "sex": sex,
        "ward": rng.integers(8, 11, n),
    }


def test_difference_of_aucs_has_the_p_value_of_delongs_test_of_two_groups() -> None:
    table = make_table()
    found = gosta.exact(table, ["auc:risk"], label="died", by="sex", interval=LEVEL)
    test = gosta.test({k: table[k] for k in ("risk", "died", "sex")}, "auc", label="died", by="sex")
    assert test.effect is not None
    row = found[found.group == "f less m"].iloc[0]
    assert row.p_value == pytest.approx(test.p_value, abs=1e-12)
    assert row.value == pytest.approx(test.effect.value, abs=1e-12)
    assert (row.low, row.high) == pytest.approx((test.effect.low, test.effect.high), abs=0.005)


def test_the_largest_group_is_the_one_that_others_are_compared_with() -> None:
    groups = [of_share(1, 5, "a"), of_share(3, 9, "b"), of_share(4, 9, "c")]
    assert [found.group for found in differences(groups)] == ["a less b", "c less b"]


def test_groups_without_a_value_or_an_error_have_no_difference() -> None:
    none = Estimate(None, group="c", n=100, reason="one class only")
    unknown = Estimate(0.5, level=LEVEL, group="d", n=90)
    groups = [none, unknown, of_share(1, 5, "a"), of_share(3, 9, "b")]
    assert [found.group for found in differences(groups)] == ["a less b"]
    assert differences(groups[:3]) == ()


def test_differences_are_in_the_text_in_json_and_come_back_from_it() -> None:
    from gosta.analysis.computation import compute

    data = gosta.datasets.load(make_table()).select(label="died")
    (found,) = compute(data, ["auc:risk"], by="ward", interval=LEVEL)
    first = found.to_dict()["differences"][0]
    assert " less " in first["group"]
    assert first["p_value"] == found.differences[0].p_value
    again = Estimate.from_dict(found.to_dict())
    assert again.differences[0].p_value == first["p_value"]
    assert len(as_frame([found])) == 3 + 1 + 2 + 2


def test_intervals_of_differences_of_shares_cover_what_they_say() -> None:
    """Of 3000 pairs of small groups between 93 and 98 % cover the true difference of 0.15."""
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(3000):
        groups = [
            of_share(rng.binomial(25, 0.9), 25, "a"),
            of_share(rng.binomial(60, 0.75), 60, "b"),
        ]
        (found,) = differences(groups)
        covered += found.low <= 0.15 <= found.high
    assert 0.93 * 3000 <= covered <= 0.98 * 3000


def test_intervals_of_differences_of_aucs_cover_what_they_say() -> None:
    """Of 300 samples with two groups of one AUC, between 273 and 297 cover 0."""
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(300):
        died = rng.integers(0, 2, 160)
        rows = {"risk": rng.normal(size=160) + died, "died": died, "sex": np.arange(160) % 3 == 0}
        found = gosta.exact(rows, ["auc:risk"], label="died", by="sex", interval=LEVEL)
        row = found[found.group == "True less False"].iloc[0]
        covered += row.low <= 0 <= row.high
    assert 273 <= covered <= 297
