"""Differences between groups: Newcombe's interval, and p-values that agree with intervals."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from scipy.stats import norm
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

import gosta
from gosta.analysis.computation import compute
from gosta.private.policy import Policy
from gosta.sketches.estimates import estimates_of
from gosta.statistics.differences import differences
from gosta.statistics.estimate import Estimate
from gosta.statistics.estimate_tables import as_frame
from gosta.statistics.heterogeneity import of_groups

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


def test_difference_of_means_with_intervals_by_standard_errors_is_walds_test() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=14), 0.5 + 2 * rng.normal(size=30)
    (found,) = differences([of_mean(first, "a"), of_mean(second, "b")])
    assert (found.group, found.n) == ("a less b", 44)
    z = abs(found.value) / found.standard_error
    assert found.p_value == pytest.approx(2 * norm.sf(z), rel=1e-12)
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


def test_difference_of_aucs_is_near_delongs_test_of_two_groups() -> None:
    table = make_table()
    found = gosta.exact(table, ["auc:risk"], label="died", by="sex", interval=LEVEL)
    test = gosta.test({k: table[k] for k in ("risk", "died", "sex")}, "auc", label="died", by="sex")
    assert test.effect is not None
    row = found[found.group == "f less m"].iloc[0]
    assert row.p_value == pytest.approx(test.p_value, abs=0.015)
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


# On the scales of shares, ratios and areas; one by the bootstrap, and two with p-values of their
# own.
OF_GROUPS = ["auc:risk", "brier-score:risk", "observed-expected-ratio:risk", "sensitivity:risk"]
OF_GROUPS += ["f1-score:risk", "auc-difference:risk+other", "integrated-discrimination:risk+other"]
THRESHOLDS = (0.2, 0.4)
BY_BOOTSTRAP = ["brier-parts:risk"]


def of_wards(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return risks of a large ward and of tiny ones, the first of which has one death."""
    ward = np.repeat(["a", "b", "c", "d"], [120, *rng.integers(3, 16, 3)])
    risk = rng.beta(1, 3, len(ward))
    died = (rng.random(len(ward)) < risk).astype(int)
    died[ward == "b"] = np.arange((ward == "b").sum()) == 0
    other = np.clip(risk + rng.normal(0, 0.15, len(ward)), 0.01, 0.99)
    return {"risk": risk, "other": other, "died": died, "ward": ward}


def count_agreeing(estimates: Iterable[Estimate]) -> int:
    """Return how many values have p < 0.05, exactly where their interval excludes 0."""
    significant = 0
    for one in estimates:
        if one.p_value is not None:
            excludes = (np.ravel(one.low) > 0) | (np.ravel(one.high) < 0)
            p_values = np.ravel(one.p_value)
            has_p = np.isfinite(p_values)
            assert np.array_equal(p_values[has_p] < 1 - LEVEL, excludes[has_p]), one
            significant += int(excludes.sum())
    return significant


def test_a_p_value_is_below_005_exactly_where_the_interval_excludes_0() -> None:
    rng = np.random.default_rng(3)
    significant = [0, 0]
    for draw in range(40):
        rows = of_wards(rng)
        data = gosta.datasets.load(rows).select(label="died")
        names = OF_GROUPS + BY_BOOTSTRAP * (draw < 3)
        found = compute(data, names, by="ward", interval=LEVEL, options={"thresholds": THRESHOLDS})
        significant[0] += count_agreeing([d for one in found for d in (one, *one.differences)])
        release = gosta.private.release(
            [rows],
            ",".join(OF_GROUPS),
            label="died",
            classes=(0, 1),
            ranges={"risk": (0.0, 1.0), "other": (0.0, 1.0)},
            strata={"ward": ("a", "b", "c", "d")},
            interval=LEVEL,
            bins=16,
            options={"thresholds": THRESHOLDS},
            policy=Policy(min_sites=1, min_rows=2, min_cell=1),
        )
        significant[1] += count_agreeing(
            [*estimates_of(release.results, LEVEL), *release.differences]
        )
    assert min(significant) > 40


def test_groups_of_few_events_are_as_uncertain_in_cochrans_q_as_their_intervals() -> None:
    """Two deaths, both detected, have a standard error of 0, and an interval down to 0.34."""
    groups = [of_share(2, 2, "a"), of_share(20, 40, "b"), of_share(33, 60, "c")]
    found = of_groups(groups, LEVEL, (0.0, 1.0))
    assert found is not None
    assert (found.groups, found.p_value > 0.05) == (3, True)
