"""Row weights: every statistic against its definition and repeated rows, and others' code to
1e-10.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from commands import command
from lifelines import KaplanMeierFitter
from patients import PATIENTS, make_network
from sklearn.metrics import roc_auc_score, roc_curve
from statistic_data import BUILT_IN, make_data

import gosta
from gosta.datasets import Data
from gosta.errors import DataError, GostaError, InputError
from gosta.estimation.estimand import Estimand
from gosta.runtime.arrays import Floats
from gosta.statistics import Statistic
from gosta.statistics.definition import Normalisation, as_tuple, find, with_weights
from gosta.statistics.exact import measure

TIGHT = 1e-10
WEIGHTED = [one for one in BUILT_IN if not one.final_needs_rows]
every = pytest.mark.parametrize("statistic", WEIGHTED, ids=lambda one: one.name)


def weighted_rows(
    seed: int, n: int = 40, whole: bool = False
) -> tuple[list[tuple[float, ...]], Floats]:
    """Return rows for every statistic, with ties, and weights, some of which are 0."""
    rng = np.random.default_rng(seed)
    rows = np.round(np.column_stack([rng.gamma(2, 1, (n, 2)), rng.integers(0, 2, (n, 2))]), 1)
    weights = (
        rng.integers(0, 4, n).astype(float)
        if whole
        else np.where(rng.random(n) < 0.1, 0.0, rng.gamma(1, 3, n))
    )
    return [tuple(row) for row in rows.tolist()], weights


def measured(
    data: Data, weights: Floats, statistic: Statistic, norm: Normalisation | None = None
) -> Any:
    return measure(data.with_weights(weights), with_weights(statistic, "weights"), norm).value


def by_definition(statistic: Statistic, x: Floats, weights: Floats, norm: str) -> float:
    """Return the value over encoded rows: means over pairs in proportion to the product of their
    weights.
    """
    rows, n = x.tolist(), len(x)
    h = np.array([[as_tuple(statistic.kernel(a, b)) for b in rows] for a in rows])
    counts = np.outer(weights, weights)
    if norm == "U":
        np.fill_diagonal(counts, 0.0)
    if statistic.total:
        return float((counts[:, :, None] * h).sum() / 2)
    means = tuple((counts[:, :, None] * h).sum(axis=(0, 1)) / counts.sum())
    if statistic.local is not None:
        each = (np.ones((n, n)) - (norm == "U") * np.eye(n)) * weights
        own = (each[:, :, None] * h).sum(axis=1) / each.sum(axis=1)[:, None]
        means = tuple(
            np.average([statistic.local(tuple(row)) for row in own], axis=0, weights=weights)
        )
    value = statistic.final(means) if statistic.final is not None else means
    return float(as_tuple(value)[0])


@every
@pytest.mark.parametrize("seed", range(2))
def test_value_is_the_weighted_mean_over_pairs(statistic: Statistic, seed: int) -> None:
    rows, weights = weighted_rows(seed)
    data = make_data(rows)
    x = with_weights(statistic, "weights").encode_rows(data.with_weights(weights), {})
    np.testing.assert_array_equal(x[:, -1], weights)
    for norm in ("U", "V"):
        wanted = by_definition(statistic, x[:, :-1], weights, norm)
        for one in (statistic, replace(statistic, fast=None)):
            assert measured(data, weights, one, norm) == pytest.approx(wanted, rel=TIGHT, abs=1e-12)
    factor = 2.5**2 if statistic.total else 1.0
    alike = measured(data, np.full(len(rows), 2.5), statistic)
    assert alike / factor == pytest.approx(measure(data, statistic).value, rel=TIGHT)


@pytest.mark.parametrize(
    "statistic", [s for s in WEIGHTED if s.name != "trimmed-mean"], ids=lambda s: s.name
)
def test_whole_weights_are_repeated_rows(statistic: Statistic) -> None:
    """Means over all pairs are those of repeated rows, and so are all ratios of pairs that
    differ.
    """
    rows, weights = weighted_rows(7, whole=True)
    repeated = make_data(list(np.repeat(np.array(rows), weights.astype(int), axis=0)))
    norms: list[Normalisation | None] = (
        ["V", None] if statistic.name in ("auc", "somers-d") else ["V"]
    )
    for norm in norms:
        wanted = measure(repeated, statistic, norm).value
        assert measured(make_data(rows), weights, statistic, norm) == pytest.approx(
            wanted, rel=TIGHT
        )


def test_values_are_those_of_others() -> None:
    rng = np.random.default_rng(1)
    n = 90
    score, label, w = np.round(rng.normal(size=n), 1), rng.integers(0, 2, n), rng.gamma(1, 2, n)
    other = np.round(score + rng.normal(size=n), 1)
    table = {"score": score, "label": label, "w": w, "other": other}

    def ours(statistic: str, **given: Any) -> Any:
        return gosta.exact(table, statistic, weights="w", **given)

    assert ours("auc") == pytest.approx(roc_auc_score(label, score, sample_weight=w), rel=TIGHT)
    for rate in (0.1, 0.37):
        theirs = roc_auc_score(label, score, sample_weight=w, max_fpr=rate)
        assert ours("partial-auc", max_fpr=rate) == pytest.approx(theirs, rel=TIGHT)
    false, true, _ = roc_curve(label, score, sample_weight=w, drop_intermediate=False)
    rates = (0.01, 0.05, *np.arange(1, 10) / 10)
    assert ours("roc-curve", rates=rates).value == pytest.approx(
        [true[false <= rate].max() for rate in rates], rel=TIGHT
    )
    both = np.cov(score, other, aweights=w)
    assert ours("variance", columns="score") == pytest.approx(both[0, 0], rel=TIGHT)
    assert ours("covariance", columns=["score", "other"]) == pytest.approx(both[0, 1], rel=TIGHT)
    first, second = (
        np.array([w @ (0.5 * (v == one) + (v < one)) for one in v]) for v in (score, other)
    )
    matrix = np.cov(first, second, aweights=w)
    rho = matrix[0, 1] / np.sqrt(matrix[0, 0] * matrix[1, 1])
    assert ours("spearman-rho", columns=["score", "other"]) == pytest.approx(rho, rel=TIGHT)
    deciles = np.quantile(score, np.arange(1, 10) / 10, weights=w, method="inverted_cdf")
    assert ours("quantiles", columns="score") == pytest.approx(deciles)
    classes, scores = rng.integers(0, 3, n), rng.dirichlet([1, 1, 1], n)
    for average in ("macro", "weighted"):
        theirs = roc_auc_score(classes, scores, multi_class="ovr", average=average, sample_weight=w)
        frame = {**{f"s{k}": scores[:, k] for k in range(3)}, "class": classes, "w": w}
        found = gosta.exact(
            frame,
            "multiclass-auc",
            columns=["s0", "s1", "s2"],
            label="class",
            weights="w",
            average=average,
        )
        assert found == pytest.approx(theirs, rel=TIGHT)


def test_survival_curves_are_those_of_lifelines() -> None:
    rng = np.random.default_rng(2)
    time, event, w = (
        np.round(rng.exponential(5, 80), 0),
        rng.integers(0, 2, 80),
        rng.integers(1, 5, 80),
    )
    table = gosta.exact({"time": time, "event": event}, ["kaplan-meier"], weights=w)
    found = gosta.exact({"time": time, "event": event}, "kaplan-meier", weights=w)
    assert np.ravel(found).tolist() == table["value"][0]
    theirs = KaplanMeierFitter().fit(time, event, weights=w).survival_function_at_times
    ends = np.linspace(time.min(), time.max(), 65)
    assert set(np.round(found, 10)) <= set(np.round(theirs(ends - 1e-9).to_numpy(), 10))
    assert gosta.exact({"value": time}, "lorenz-curve", weights=w) == pytest.approx(
        gosta.exact({"value": np.repeat(time, w)}, "lorenz-curve"), rel=TIGHT
    )
    assert gosta.exact(time, "kolmogorov-smirnov", label=event, weights=w) == pytest.approx(
        scipy.stats.ks_2samp(
            np.repeat(time, w * event), np.repeat(time, w * (1 - event))
        ).statistic,
        rel=TIGHT,
    )


@every
def test_interval_is_that_of_the_jackknife_and_of_nodes(statistic: Statistic) -> None:
    rows, weights = weighted_rows(3, n=30)
    data = make_data(rows).with_weights(weights)
    weighted = with_weights(statistic, "weights")
    if statistic.total or statistic.no_interval:
        with pytest.raises(InputError, match=r"is a count|has no interval"):
            measure(data, weighted, interval=0.9)
        return
    estimate = measure(data, weighted, interval=0.9)
    x = weighted.encode_rows(data, {})
    without = np.array(
        [
            by_definition(
                statistic,
                np.delete(x[:, :-1], i, axis=0),
                np.delete(weights, i),
                statistic.normalisation,
            )
            for i in range(len(x))
        ]
    )
    sample = x[:, weighted.sample_index] if weighted.sample_index is not None else np.ones(len(x))
    parts = [without[sample == s] for s in set(sample)]
    error = np.sqrt(sum((len(p) - 1) / len(p) * ((p - p.mean()) ** 2).sum() for p in parts))
    assert estimate.standard_error == pytest.approx(
        error, rel=1e-8 if statistic.local is not None else 0.25
    )
    if statistic.local is None:
        low, high = Estimand(weighted, x).with_interval(0.9).pooled_intervals()[0]
        assert (low, high) == pytest.approx((estimate.low, estimate.high), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("statistic", ["auc@second", "spearman-rho@second", "variance@second"])
def test_simulations_and_nodes_find_the_exact_value(statistic: str) -> None:
    columns = {"spearman-rho@second": ["score", "age"], "variance@second": "score"}.get(statistic)
    exact = gosta.exact(AGED, statistic, columns=columns)
    trace = gosta.simulate(AGED, statistic, columns=columns, runs=2, iterations=30_000)
    assert float(trace.estimates[:, -1].mean()) == pytest.approx(exact, rel=0.05)
    compiled, reference = (
        gosta.simulate(
            AGED, statistic, columns=columns, runs=1, iterations=200, engine=engine
        ).estimates
        for engine in ("compiled", "reference")
    )
    np.testing.assert_array_equal(compiled, reference)


AGED = {**PATIENTS, "age": np.random.default_rng(5).normal(size=60) + PATIENTS["score"]}


def test_real_nodes_find_the_exact_value() -> None:
    network, estimand = make_network("auc@second", interval=0.95)
    network.clock.run(30.0)
    network.check()
    exact = gosta.exact(PATIENTS, "auc", weights="second", interval=0.95)
    np.testing.assert_allclose(network.estimates()[:, 0], exact.value, rtol=0.02)
    assert estimand.pooled_intervals()[0] == pytest.approx((exact.low, exact.high), rel=1e-9)


def test_missing_values_and_zero_weights() -> None:
    rng = np.random.default_rng(4)
    x = {"v": rng.normal(size=30), "w": rng.gamma(2, 1, 30)}
    x["v"][3], x["w"][[7, 8]] = np.nan, np.nan
    kept = np.isfinite(x["v"]) & np.isfinite(x["w"])
    clean = {name: values[kept] for name, values in x.items()}
    for name in ("gini-mean-difference", "trimmed-mean", "quantiles"):
        found = gosta.exact(x, name, columns="v", weights="w", drop_missing=True)
        assert found == pytest.approx(gosta.exact(clean, name, columns="v", weights="w"), rel=1e-12)
    groups = np.repeat(["a", "b"], 15)
    table = gosta.exact(
        {**x, "g": groups}, "variance", columns="v", weights="w", by="g", drop_missing=True
    )
    chosen = [groups[kept] == g for g in ("a", "b")]
    wanted = [float(np.cov(clean["v"][one], aweights=clean["w"][one])) for one in chosen]
    assert table["value"][:2].tolist() == pytest.approx(wanted, rel=TIGHT)


def test_a_weight_that_dominates_leaves_the_digits_of_others() -> None:
    rng = np.random.default_rng(8)
    x, w = rng.integers(0, 4, (12, 2)).astype(float), np.append(rng.gamma(1, 1, 11), 1e8)
    pairs, signs = np.outer(w, w) * (1 - np.eye(12)), np.sign(x[:, None] - x)
    wanted = (pairs * signs.prod(axis=2)).sum() / pairs.sum()
    assert gosta.exact(x, "kendall-tau", weights=w) == pytest.approx(wanted, rel=TIGHT)


@pytest.mark.parametrize("weight", [0.1, 1 / 7, 3.3])
def test_equal_weights_trim_as_many_rows_as_none(weight: float) -> None:
    for n in range(5, 60):
        v = np.random.default_rng(n).normal(size=n)
        for name, share in (
            ("trimmed-mean", 0.25),
            ("winsorised-mean", 0.2),
            ("trimmed-mean", 0.29),
        ):
            wanted = gosta.exact(v, name, share=share)
            assert gosta.exact(v, name, share=share, weights=np.full(n, weight)) == pytest.approx(
                wanted, rel=TIGHT
            )


ROWS = {"a": [1.0, 2.0, 4.0], "w": [1.0, -1.0, 2.0], "zero": [0, 0, 0], "hole": [1.0, None, 2.0]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights": "w"}, "weights column 'w' holds -1 in row 2; weights are not negative"),
        ({"weights": "zero"}, "weights column 'zero' holds no weight above 0"),
        ({"weights": "hole"}, "column 'hole' has 1 missing"),
        ({"weights": "v"}, "unknown column"),
        ({"weights": [1, 2]}, "weights has 2 values"),
        ({"weights": "zero", "bins": 8}, "sums in bins have none"),
    ],
)
def test_errors(given: dict[str, Any], message: str) -> None:
    with pytest.raises(GostaError, match=message):
        gosta.exact(ROWS, "variance", columns="a", **given)


def test_statistics_without_weights_say_so() -> None:
    with pytest.raises(InputError, match="log-rank has no weights: a test depends on"):
        gosta.exact(
            {"time": [1, 2, 3], "event": [1, 1, 1], "g": [0, 1, 1]},
            "log-rank",
            label="g",
            weights=[1, 1, 2],
        )
    with pytest.raises(InputError, match="must end with the column of weights"):
        find("auc@")
    with pytest.raises(DataError, match="two classes"):
        gosta.exact([1.0, 2.0], "auc", label=[1, 1], weights=[1, 1])


def test_own_statistic(tmp_path: Path) -> None:
    text = "import gosta\n\n@gosta.statistic\ndef far(x, y, least=1.0):\n"
    text += "    return abs(x[0] - y[0]) > least\n"
    (tmp_path / "mine.py").write_text(text)
    v, w = np.random.default_rng(6).normal(size=20), np.arange(20.0)
    pairs = np.outer(w, w) * (1 - np.eye(20))
    wanted = (pairs * (np.abs(v[:, None] - v) > 0.5)).sum() / pairs.sum()
    table = gosta.exact({"v": v, "w": w}, [f"{tmp_path / 'mine.py'}:far@w"], least=0.5)
    assert table["value"][0] == pytest.approx(wanted, rel=TIGHT)


def test_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = command(capsys, monkeypatch)
    file = tmp_path / "rows.csv"
    lines = ["a,b,w", *(f"{k % 5},{k % 3},{1 + k % 4}" for k in range(20))]
    file.write_text("\n".join(lines))
    code, out, _ = run("exact", file, "-s", "kendall-tau", "--weights", "w")
    wanted = gosta.exact(str(file), "kendall-tau@w")
    assert (
        code,
        f"kendall-tau of {file}: {wanted:.6g}" in out,
        "from a, b, weighted by w" in out,
    ) == (0, True, True)
    record = json.loads(run("exact", file, "-s", "kendall-tau", "--weights", "w", "--json")[1])
    assert (record["value"], record["weights"], record["columns"]) == (wanted, "w", ["a", "b"])
    assert (
        "weighted by w" in run("exact", file, "-s", "quantiles:a,variance:b", "--weights", "w")[1]
    )
    assert "weighted by w" in run("exact", file, "-s", "quantiles", "-c", "a", "--weights", "w")[1]
    assert run("exact", file, "-s", "variance", "-c", "a", "--weights", "w", "--bins", "8")[0] == 2


def test_the_unit_of_weights_does_not_matter() -> None:
    """Nodes' intervals are the same for weights that sum to one, and for counts."""
    rows, weights = weighted_rows(3)
    ends = []
    for unit in (1e-9, 1.0, 1e6):
        statistic = with_weights(find("auc"), "weights")
        x = statistic.encode_rows(make_data(rows).with_weights(unit * weights), {})
        ends.append(Estimand(statistic, x).with_interval(0.95).pooled_intervals()[0])
    assert ends[0] == pytest.approx(ends[1], rel=1e-6)
    assert ends[2] == pytest.approx(ends[1], rel=1e-6)
