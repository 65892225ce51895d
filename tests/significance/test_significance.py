"""Hypothesis tests against scipy, lifelines, dcor and an independent DeLong: p-values to 1e-8."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import dcor
import numpy as np
import pytest
import scipy.stats
from commands import command
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lifelines.statistics import logrank_test

import gosta
from gosta.errors import DataError, InputError, NumericalError
from gosta.runtime.arrays import Floats
from gosta.statistics import pair_medians
from gosta.statistics.distributions import student_p, student_quantile

TIGHT = 1e-8
seeds = st.integers(0, 2**32 - 1)
few = st.integers(4, 40)
rounding = st.sampled_from([0, 1, 8])  # digits: with many ties, some, none
alternatives = st.sampled_from(["two-sided", "less", "greater"])


def placements(positive: Floats, negative: Floats) -> tuple[float, Floats, Floats]:
    """Return an AUC and its structural components, from midranks (Sun and Xu 2014)."""
    m, n = len(positive), len(negative)
    joint = scipy.stats.rankdata(np.concatenate([positive, negative]))
    first = (joint[:m] - scipy.stats.rankdata(positive)) / n
    second = 1 - (joint[m:] - scipy.stats.rankdata(negative)) / m
    return float(first.mean()), first, second


def two_scores(n: int, seed: int, digits: int) -> tuple[Floats, Any]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    assume(2 <= label.sum() <= n - 2)
    return np.round(
        rng.normal(size=(n, 1)) + rng.normal(size=(n, 2)) + label[:, None], digits
    ), label


def p_of(statistic: float, distribution: Any, alternative: str) -> float:
    """Return scipy's p-value of a statistic that is symmetric about 0."""
    sides = {"two-sided": 2 * distribution.sf(abs(statistic)), "less": distribution.cdf(statistic)}
    return float((sides | {"greater": distribution.sf(statistic)})[alternative])


@given(few, seeds, rounding, alternatives)
def test_delong_of_two_scores(n: int, seed: int, digits: int, alternative: str) -> None:
    x, label = two_scores(n, seed, digits)
    parts = [placements(score[label == 1], score[label == 0]) for score in x.T]
    covariance = np.cov(np.array([part[1] for part in parts])) / label.sum()
    covariance += np.cov(np.array([part[2] for part in parts])) / (n - label.sum())
    error = float(np.sqrt(max(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1], 0.0)))
    gap = parts[0][0] - parts[1][0]
    assume(error > 1e-6)
    result = gosta.test(x, "auc", columns=[0, 1], label=label, level=0.9, alternative=alternative)
    assert list(result.values.values()) == pytest.approx([part[0] for part in parts], rel=1e-10)
    assert result.statistic == pytest.approx(gap / error, rel=TIGHT, abs=1e-9)
    assert result.p_value == pytest.approx(
        p_of(gap / error, scipy.stats.norm, alternative), rel=TIGHT
    )
    assert result.effect is not None
    reach = scipy.stats.norm.ppf(0.95 if alternative == "two-sided" else 0.9) * error
    low = -1 if alternative == "less" else max(-1, gap - reach)
    high = 1 if alternative == "greater" else min(1, gap + reach)
    assert result.effect[:2] == pytest.approx((gap, low), abs=1e-9)
    assert result.effect.high == pytest.approx(high, abs=1e-9)
    estimate = gosta.exact(x, "auc-difference", columns=[0, 1], label=label, interval=0.9)
    assert estimate.standard_error == pytest.approx(
        error, rel=TIGHT
    )  # so nodes, which compute it, have the test


@given(few, seeds, rounding, alternatives)
def test_delong_of_two_groups(n: int, seed: int, digits: int, alternative: str) -> None:
    x, label = two_scores(n, seed, digits)
    group = np.random.default_rng(seed + 1).integers(0, 2, n)
    assume(min(np.bincount(2 * group + label, minlength=4)) >= 2)
    means, variances, sizes = [], [], []
    for k in (0, 1):
        score, ill = x[group == k, 0], label[group == k]
        mean, first, second = placements(score[ill == 1], score[ill == 0])
        means.append(mean)
        variances.append(np.var(first, ddof=1) / len(first) + np.var(second, ddof=1) / len(second))
        sizes.append(len(score))
    assume(sum(variances) > 1e-12)
    t = (means[0] - means[1]) / np.sqrt(sum(variances))
    freedom = sum(variances) ** 2 / sum(
        v**2 / (size - 1) for v, size in zip(variances, sizes, strict=True)
    )
    result = gosta.test(x[:, 0], "auc", label=label, by=group, alternative=alternative)
    assert result.statistic == pytest.approx(t, rel=TIGHT, abs=1e-9)
    assert result.p_value == pytest.approx(p_of(t, scipy.stats.t(freedom), alternative), rel=TIGHT)
    result = gosta.test(x[:, 0], "auc", label=label, by=group)
    assert result.effect is not None
    reach = scipy.stats.t.ppf(0.975, freedom) * np.sqrt(sum(variances))
    assert result.effect.low == pytest.approx(max(-1, means[0] - means[1] - reach), abs=1e-9)


@given(st.integers(2, 60) | st.just(2000), seeds, rounding, alternatives)
def test_mann_whitney(n: int, seed: int, digits: int, alternative: str) -> None:
    rng = np.random.default_rng(seed)
    label = rng.random(n) < rng.choice([0.1, 0.5])
    assume(0 < label.sum() < n)
    score = np.round(rng.normal(size=n) + label * rng.integers(0, 3), digits)
    theirs = scipy.stats.mannwhitneyu(score[label], score[~label], alternative=alternative)
    ours = gosta.test(score, "mann-whitney", label=label, alternative=alternative)
    assert (ours.statistic, ours.p_value) == pytest.approx(
        (theirs.statistic, theirs.pvalue), rel=TIGHT, abs=1e-300
    )
    gaps = np.sort((score[label][:, None] - score[~label]).ravel())
    assert ours.effect is not None
    assert ours.effect.value == pytest.approx(np.median(gaps), rel=1e-10, abs=1e-12)
    ends = [end for end in ours.effect[1:3] if np.isfinite(end)]  # these are differences
    assert gaps[[np.abs(gaps - end).argmin() for end in ends]] == pytest.approx(
        ends, rel=1e-10, abs=1e-12
    )


@settings(max_examples=40)
@given(st.integers(2, 60) | st.just(300), seeds, rounding, alternatives)
def test_kendall(n: int, seed: int, digits: int, alternative: str) -> None:
    rng = np.random.default_rng(seed)
    first = rng.normal(size=n)
    x = np.round(
        np.column_stack([first, rng.normal(size=n) + first * rng.choice([0, 1, -50])]), digits
    )
    assume(np.ptp(x, axis=0).min() > 0)
    theirs = scipy.stats.kendalltau(x[:, 0], x[:, 1], alternative=alternative)
    ours = gosta.test(x, "kendall-tau", alternative=alternative)
    assert (ours.statistic, ours.p_value) == pytest.approx(
        (theirs.statistic, theirs.pvalue), rel=TIGHT, abs=1e-14
    )
    slopes = scipy.stats.theilslopes(x[:, 1], x[:, 0])
    assert ours.effect is not None
    assert ours.effect.value == pytest.approx(slopes.slope, rel=1e-9, abs=1e-9)
    if alternative == "two-sided" and np.isfinite(ours.effect.low):
        assert ours.effect[1:3] == pytest.approx(
            (slopes.low_slope, slopes.high_slope), rel=1e-9, abs=1e-9
        )


@settings(max_examples=30)
@given(few, seeds, rounding)
def test_log_rank(n: int, seed: int, digits: int) -> None:
    rng = np.random.default_rng(seed)
    arm, event = rng.integers(0, 2, n), rng.random(n) < 0.7
    time = np.round(rng.exponential(3 + 3 * arm), digits)
    assume(0 < arm.sum() < n and event.any())
    with np.errstate(all="ignore"):
        theirs = logrank_test(time[arm == 1], time[arm == 0], event[arm == 1], event[arm == 0])
    assume(np.isfinite(theirs.test_statistic) and theirs.test_statistic > 1e-12)
    ours = gosta.test({"time": time, "event": event, "arm": arm}, "log-rank", label="arm")
    assert (ours.statistic, ours.p_value) == pytest.approx(
        (theirs.test_statistic, theirs.p_value), rel=TIGHT
    )
    groups = [
        scipy.stats.CensoredData.right_censored(time[arm == k], ~event[arm == k]) for k in (1, 0)
    ]
    for alternative in ("less", "greater"):
        signed = scipy.stats.logrank(*groups, alternative=alternative)
        one_sided = gosta.test(
            {"time": time, "event": event, "arm": arm},
            "log-rank",
            label="arm",
            alternative=alternative,
        )
        assert (one_sided.statistic, one_sided.p_value) == pytest.approx(
            (signed.statistic, signed.pvalue), rel=TIGHT
        )


def dcor_correlation(x: Floats) -> float:
    return float(dcor.distance_correlation(x[:, :1], x[:, 1:]))


def dcor_energy(x: Floats) -> float:
    return float(dcor.energy_distance(x[x[:, -1] > 0, :-1], x[x[:, -1] < 0, :-1]))


@pytest.mark.parametrize("digits", [0, 8])
@pytest.mark.parametrize(
    ("name", "columns", "oracle"),
    [
        ("energy-distance", 1, dcor_energy),
        ("energy-distance", 2, dcor_energy),
        ("distance-correlation", 1, dcor_correlation),
        ("distance-correlation", 2, dcor_correlation),
    ],
)
def test_permutations(
    name: str, columns: int, digits: int, oracle: Callable[[Floats], float]
) -> None:
    """The p-value is that of somebody else's statistic over the same permutations."""
    rng = np.random.default_rng(columns)
    n = 14
    x = np.round(rng.normal(size=(n, columns + 1)), digits)
    label = np.arange(n) % 3 == 0
    x[:, 0] += label
    given: dict[str, Any] = {"columns": list(range(columns + 1))}
    if name == "energy-distance":
        given = {"columns": list(range(columns)), "label": label}
        x = np.column_stack([x[:, :columns], 2.0 * label - 1])
    ours = gosta.test(x, name, permutations=99, seed=7, **given)
    orders = np.random.default_rng(7)
    moved = columns if name == "energy-distance" else 1
    all_orders = [np.arange(n), *(orders.permutation(n) for _ in range(99))]
    values = [oracle(np.column_stack([x[:, :moved], x[order, moved:]])) for order in all_orders]
    assert ours.statistic == pytest.approx(values[0], rel=1e-10)
    assert ours.p_value == pytest.approx(np.mean(np.array(values) >= values[0] * (1 - 1e-9)))


def test_mmd_by_permutations_is_close_to_that_over_all_of_them() -> None:
    """999 permutations give the share over all 3,003 samples up to 5 standard errors: false alarms
    below 1e-6.
    """
    rng = np.random.default_rng(0)
    n, few_rows = 14, 6
    x = rng.normal(size=(n, 2))
    x[:few_rows] += 0.8
    gaps = ((x[:, None] - x) ** 2).sum(axis=2)
    kernel = np.exp(-gaps / (2 * x.var(axis=0).sum())) - np.eye(n)

    def value(chosen: Any) -> float:
        a = np.zeros(n)
        a[list(chosen)] = 1
        b, m = 1 - a, len(list(chosen))
        within = a @ kernel @ a / (m * (m - 1)) + b @ kernel @ b / ((n - m) * (n - m - 1))
        return float(within - 2 * a @ kernel @ b / (m * (n - m)))

    values = np.array([value(chosen) for chosen in combinations(range(n), few_rows)])
    observed = value(range(few_rows))
    share = np.mean(values >= observed - 1e-12)
    ours = gosta.test(x, "mmd", columns=[0, 1], label=np.arange(n) < few_rows)
    assert ours.statistic == pytest.approx(observed, rel=1e-10)
    assert ours.p_value == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 999))
    assert gosta.test(x, "mmd", columns=[0, 1], label=np.arange(n) < few_rows) == ours


@given(st.floats(-1, 50), st.floats(1e-3, 50))
def test_student(log_freedom: float, t: float) -> None:
    freedom = float(np.exp(log_freedom))
    wanted = 2 * scipy.stats.t.sf(t, freedom)
    assert student_p(t, freedom) == pytest.approx(wanted, rel=TIGHT, abs=1e-300)
    level = min(max(1 - wanted, 0.01), 0.999)
    assert student_quantile(level, freedom) == pytest.approx(
        scipy.stats.t.ppf(0.5 + level / 2, freedom), rel=TIGHT
    )


def test_interval_of_a_shift_is_exact_for_few_rows() -> None:
    """Of 126 orders of 5 and 4 rows, U is below 2 in 2 and below 3 in 4: the ends are ranks 2 and
    19 of 20.
    """
    first, second = np.array([1.1, 2.2, 3.3, 4.4, 5.5]), np.array([0.3, 0.9, 1.6, 2.0])
    gaps = np.sort((first[:, None] - second).ravel())
    result = gosta.test(np.concatenate([first, second]), "mann-whitney", label=[1] * 5 + [0] * 4)
    assert result.effect is not None
    assert result.effect[:3] == pytest.approx([np.median(gaps), gaps[1], gaps[18]], rel=1e-12)
    for alternative, ends in (("greater", (gaps[2], np.inf)), ("less", (-np.inf, gaps[17]))):
        one_sided = gosta.test(
            np.concatenate([first, second]),
            "mann-whitney",
            label=[1] * 5 + [0] * 4,
            alternative=alternative,
        )
        assert one_sided.effect is not None
        assert one_sided.effect[1:3] == pytest.approx(
            ends
        )  # U is below 3 in 4 of 126 orders, below 4 in 7
    few = gosta.test([1.0, 2.0, 3.0, 4.0], "mann-whitney", label=[0, 0, 1, 1]).effect
    assert few is not None
    assert few[1:3] == (-np.inf, np.inf)


def test_quantiles_of_many_pairs_are_those_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    label = rng.integers(0, 2, 60)
    for digits in (0, 1, 8):
        x = np.round(rng.normal(size=(60, 2)) + label[:, None], digits)
        few = (
            gosta.test(x, "kendall-tau").effect,
            gosta.test(x[:, 0], "mann-whitney", label=label).effect,
        )
        with monkeypatch.context() as patch:
            patch.setattr(pair_medians, "MOST_SORTED", 0)
            many = (
                gosta.test(x, "kendall-tau").effect,
                gosta.test(x[:, 0], "mann-whitney", label=label).effect,
            )
        for one, other in zip(few, many, strict=True):
            assert one is not None
            assert other is not None
            assert other[:3] == pytest.approx(one[:3], rel=1e-10, abs=1e-12)


def test_scores_that_order_rows_alike_do_not_differ() -> None:
    x = {"a": [1.0, 3.0, 2.0, 4.0], "b": [10.0, 30.0, 20.0, 40.0], "label": [0, 0, 1, 1]}
    result = gosta.test(x, "auc", columns=["a", "b"])
    assert (result.statistic, result.p_value) == (0.0, 1.0)
    assert "Test of auc" in result._repr_html_()


ROWS = {
    "a": [1.0, 2.0, 3.0, 4.0],
    "b": [4.0, 3.0, 2.0, 1.0],
    "label": [0, 0, 1, 1],
    "g": [0, 1, 2, 0],
}


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("auk", {}, "unknown test 'auk'; did you mean 'auc'"),
        ("auc", {}, "compare the AUCs of two scores with score="),
        ("auc", {"columns": ["a"], "by": "g"}, "by needs two groups of rows, column 'g' has 3"),
        ("auc", {"by": "g"}, "name one score column with score"),
        ("auc", {"columns": ["a"], "by": [0, 0, 0, 1]}, "two"),
        ("auc", {"columns": ["a", "b"], "level": 95}, "level = 95 must lie between 0 and 1"),
        ("auc", {"columns": ["a", "b"], "posit": 1}, "^auc has no option 'posit'"),
        ("mann-whitney", {"columns": "a", "by": "g"}, "groups of rows are compared by auc only"),
        ("mmd", {"columns": "a", "permutations": 0}, "permutations = 0 must be at least 1"),
        (
            "mmd",
            {"columns": "a", "alternative": "less"},
            "alternative = 'less': mmd is the larger the more the rows differ",
        ),
        (
            "mann-whitney",
            {"columns": "a", "alternative": "more"},
            "must be one of: two-sided, less, greater",
        ),
        (
            "mann-whitney",
            {"columns": "a", "alternative": "less", "level": 0.4},
            "level = 0.4 must exceed 0.5",
        ),
    ],
)
def test_errors(name: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, DataError), match=message):
        gosta.test(ROWS, name, **given)


def test_no_value_is_an_error() -> None:
    with pytest.raises(NumericalError, match="no test, since no row is ordered differently"):
        gosta.test(ROWS, "auc", columns=["a", "b"])
    with pytest.raises(NumericalError, match="kendall-tau is not defined here"):
        gosta.test({"first": [1.0, 1.0, 1.0], "second": [1.0, 2.0, 3.0]}, "kendall-tau")
    with pytest.raises(NumericalError, match="log-rank is not defined"):
        gosta.test({"time": [1.0, 2.0, 3.0], "event": [0, 0, 0], "label": [0, 1, 1]}, "log-rank")


def test_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run = command(capsys, monkeypatch)
    arguments = "test", "breast-cancer", "-s", "auc", "-c", "mean radius,mean texture"
    wanted = gosta.test("breast-cancer", "auc", columns=["mean radius", "mean texture"])
    code, out, _ = run(*arguments)
    assert code == 0
    assert "p-value              2.7e-13" in out
    record = json.loads(run(*arguments, "--json")[1])
    assert record["p_value"] == wanted.p_value
    assert record["effect"]["level"] == 0.95
    assert record["alternative"] == "two-sided"
    one_sided = json.loads(run(*arguments, "--alternative", "greater", "--json")[1])
    assert one_sided["p_value"] == pytest.approx(record["p_value"] / 2)
    assert one_sided["effect"]["high"] == 1.0
    assert "alternative" in run(*arguments, "--alternative", "less")[1]
    assert run("test", "breast-cancer", "-s", "auk")[0] == 2


def test_what_was_assumed_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The positive class, rows that were left out, and a warning where the names of classes
    contradict.
    """
    rng = np.random.default_rng(1)
    score, group = rng.normal(size=40), np.array(["case", "other"] * 20)
    score[3] = np.nan
    table = {"score": score, "group": group, "time": rng.exponential(size=40), "event": np.ones(40)}
    result = gosta.test(table, "mann-whitney", score="score", label="group", drop_missing=True)
    assert (result.assumed["positive"], result.assumed["rows_dropped"], result.n) == (
        "other",
        1,
        39,
    )
    assert result.warnings[0].startswith("the positive class is 'other'")
    given = gosta.test(
        table, "mann-whitney", score="score", label="group", drop_missing=True, positive="case"
    )
    assert (given.assumed["positive"], given.warnings) == ("case", ())
    survival: dict[str, Any] = {"columns": ["time", "event"], "label": "group"}
    assert gosta.test(table, "log-rank", **survival).warnings == ()  # it has no direction
    one_sided = gosta.test(table, "log-rank", alternative="less", **survival)
    assert one_sided.assumed["positive"] == "other"
    assert len(one_sided.warnings) == 1
    file = tmp_path / "rows.csv"
    lines = [f"{a},{b}" for a, b in zip(score, group, strict=True)]
    file.write_text("score,group\n" + "\n".join(lines).replace("nan", "") + "\n")
    run = command(capsys, monkeypatch)
    shown = run("test", file, "-s", "mann-whitney", "--label", "group", "--drop-missing")[1]
    for text in (
        "positive class: other, against case",
        "left out: 1 row",
        "warning: the positive class is 'other'",
    ):
        assert text in shown
    record = json.loads(
        run("test", file, "-s", "mann-whitney", "--label", "group", "--drop-missing", "--json")[1]
    )
    assert (record["assumed"]["rows_dropped"], len(record["warnings"])) == (1, 1)


def test_no_interval_has_a_width_of_zero() -> None:
    rows = {"first": np.arange(20.0), "second": 2 * np.arange(20.0)}
    with pytest.raises(NumericalError, match="theil-sen has no interval here: every row"):
        gosta.exact(rows, "theil-sen", interval=0.95)
    alike = {"a": [1, 2, 3, 4, 5, 6.0], "b": [1, 2, 3, 4, 5, 6.5], "ill": [0, 0, 0, 1, 1, 1]}
    with pytest.raises(NumericalError, match="auc-difference has no interval here"):
        gosta.exact(alike, "auc-difference", columns=["a", "b"], label="ill", interval=0.95)
    with pytest.raises(NumericalError, match="energy-distance has no interval here"):
        gosta.exact(
            [1, 2, 3, 1, 2, 3.0], "energy-distance", label=[0, 0, 0, 1, 1, 1], interval=0.95
        )
