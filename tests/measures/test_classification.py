"""Curves, areas and shares at thresholds, against scikit-learn, dcurves and definitions."""

from __future__ import annotations

from typing import Any

import dcurves
import numpy as np
import pandas as pd
import pytest
import sklearn.metrics

import gosta
from gosta.errors import GostaError
from gosta.measures import MEASURES
from gosta.measures.intervals import estimate, standard_errors
from gosta.measures.thresholds import RATIOS, RISKS
from gosta.runtime.arrays import Booleans, Floats

TIGHT = 1e-12
TABLES = range(200)
SHARES = {name: MEASURES[name] for name in RATIOS if "net" not in name}


def table(seed: int) -> tuple[Floats, Floats]:
    """Return encoded rows of both classes, many of them with ties, and weights, some of them 0."""
    rng = np.random.default_rng([31, seed])
    n = int(rng.integers(2, 60))
    sign = np.where(rng.random(n) < rng.choice([0.1, 0.5, 0.8]), 1.0, -1.0)
    sign[:2] = 1.0, -1.0
    score = rng.random(n) ** (1.5 - 0.5 * sign)
    score = np.round(score, int(rng.choice([1, 2, 15])))
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], n)
    weights[:2] = 1.0
    return np.column_stack([score, sign]), weights if seed % 2 else np.ones(n)


def over(name: str, seed: int, **options: Any) -> tuple[Any, Booleans, Floats, Floats]:
    """Return what a measure gives for a table; its labels as booleans, scores and weights."""
    x, weights = table(seed)
    return MEASURES[name].over(x, weights, options), x[:, 1] > 0, x[:, 0], weights


@pytest.mark.parametrize("seed", TABLES)
def test_curves_and_areas_are_those_of_scikit_learn(seed: int) -> None:
    found, label, score, weights = over("roc-curve", seed)
    counted = weights > 0
    label, score, weights = label[counted], score[counted], weights[counted]
    false, true, at = sklearn.metrics.roc_curve(
        label, score, sample_weight=weights, drop_intermediate=False
    )
    np.testing.assert_allclose(found.at, false, rtol=TIGHT, atol=TIGHT)
    np.testing.assert_allclose(found.value, true, rtol=TIGHT, atol=TIGHT)
    assert found.labels == tuple(f"score >= {threshold:g}" for threshold in at)
    rates = (0, 0.1, 0.25, 0.5, 1)
    wanted = [true[false <= rate + TIGHT].max() for rate in rates]
    at_rates = over("roc-curve", seed, rates=rates)[0]
    np.testing.assert_allclose(at_rates.value, wanted, rtol=TIGHT)
    curve = over("precision-recall-curve", seed)[0]
    precision, recall, _ = sklearn.metrics.precision_recall_curve(
        label, score, sample_weight=weights
    )
    np.testing.assert_allclose(curve.at, recall[-2::-1], rtol=TIGHT)
    np.testing.assert_allclose(curve.value, precision[-2::-1], rtol=TIGHT)
    recalls = (0.2, 0.5, 0.9, 1)
    wanted = [precision[recall >= rate - TIGHT][-1 - (rate == 0)] for rate in recalls]
    at_recalls = over("precision-recall-curve", seed, recalls=recalls)[0]
    np.testing.assert_allclose(at_recalls.value, wanted, rtol=TIGHT)
    theirs = sklearn.metrics.average_precision_score(label, score, sample_weight=weights)
    assert over("average-precision", seed)[0].value[0] == pytest.approx(theirs, rel=TIGHT)
    for max_fpr in (0.05, 0.3, 0.999):
        theirs = sklearn.metrics.roc_auc_score(label, score, sample_weight=weights, max_fpr=max_fpr)
        ours = over("partial-auc", seed, max_fpr=max_fpr)[0].value[0]
        assert ours == pytest.approx(theirs, rel=TIGHT, abs=TIGHT)


@pytest.mark.parametrize("seed", TABLES)
def test_shares_at_thresholds_are_those_of_scikit_learn(seed: int) -> None:
    thresholds = (0.0, 0.3, 0.5, 0.95, 2.0)
    for place, threshold in enumerate(thresholds):
        _, label, score, weights = over("sensitivity", seed)
        given = {"sample_weight": weights, "zero_division": np.nan}
        chosen = score >= threshold
        wanted = {
            "sensitivity": sklearn.metrics.recall_score(label, chosen, **given),
            "specificity": sklearn.metrics.recall_score(~label, ~chosen, **given),
            "positive-predictive-value": sklearn.metrics.precision_score(label, chosen, **given),
            "negative-predictive-value": sklearn.metrics.precision_score(~label, ~chosen, **given),
            "f1-score": sklearn.metrics.f1_score(label, chosen, **given),
        }
        for name, value in wanted.items():
            ours = over(name, seed, thresholds=thresholds)[0].value[place]
            assert ours == pytest.approx(value, rel=TIGHT, nan_ok=True)


@pytest.mark.parametrize("seed", range(0, 200, 4))
def test_decision_curves_are_those_of_dcurves(seed: int) -> None:
    found, label, score, _ = over("net-benefit", seed)
    frame = pd.DataFrame({"risk": score, "ill": label.astype(float)})
    theirs = dcurves.dca(frame, "ill", ["risk"], thresholds=np.array(RISKS))
    theirs = theirs.set_index("model").net_benefit
    np.testing.assert_allclose(found.value, theirs["risk"], rtol=1e-10, atol=TIGHT)
    everybody = over("net-benefit-of-all", seed)[0].value
    np.testing.assert_allclose(everybody, theirs["all"], rtol=1e-10, atol=TIGHT)
    np.testing.assert_array_equal(found.at, RISKS)


@pytest.mark.parametrize("name", ["average-precision", "partial-auc"])
def test_influence_is_the_derivative_by_the_share_of_a_row(name: str) -> None:
    for seed in range(40):
        x, weights = table(seed)
        weights, options = weights + 0.5, {"max_fpr": 0.37} if name == "partial-auc" else {}
        found = MEASURES[name].over(x, weights, options)
        assert found.influence is not None
        assert weights @ found.influence[:, 0] == pytest.approx(0, abs=1e-9)
        for row in range(len(x)):
            step = 1e-5 * (np.arange(len(x)) == row)
            up, down = (
                MEASURES[name].over(x, weights + s, options).value[0] for s in (step, -step)
            )
            slope = (up - down) / 2e-5 * weights.sum()
            assert found.influence[row, 0] == pytest.approx(slope, abs=1e-4)


@pytest.mark.parametrize("name", RATIOS)
def test_standard_errors_at_thresholds_are_those_of_the_influence_of_rows(name: str) -> None:
    x, weights = table(7)
    weights = weights + 0.5
    found = MEASURES[name].over(x, weights, {"thresholds": (0.3, 0.5)})
    steps = 1e-6 * np.eye(len(x))
    slopes = [
        MEASURES[name].over(x, weights + step, {"thresholds": (0.3, 0.5)}).value for step in steps
    ]
    influence = (np.array(slopes) - found.value) / 1e-6 * weights.sum()
    assert found.errors is not None
    np.testing.assert_allclose(found.errors, standard_errors(influence, weights), rtol=1e-4)


@pytest.mark.parametrize("name", [*RATIOS, "roc-curve", "precision-recall-curve"])
def test_rows_of_weight_0_do_not_count_and_equal_weights_do_not_matter(name: str) -> None:
    for seed in range(1, 20, 2):
        x, weights = table(seed)
        kept, options = weights > 0, {"thresholds": "0,0.5,0.9"}
        first = estimate(MEASURES[name], x, weights, options, 0.95)
        second = estimate(MEASURES[name], x[kept], weights[kept], options, 0.95)
        third = estimate(MEASURES[name], x[kept], 7 * weights[kept], options, 0.95)
        for other in (second, third):
            assert first.labels == other.labels
            for end in ("value", "low", "high", "standard_error"):
                np.testing.assert_allclose(getattr(first, end), getattr(other, end), rtol=1e-9)


def test_intervals_contain_values_and_are_wilsons_for_shares() -> None:
    from statsmodels.stats.proportion import proportion_confint

    x, _ = table(12)
    for name, made in SHARES.items():
        found = estimate(made, x, None, {"thresholds": (0.2, 0.5)}, 0.95)
        assert (found.low <= found.value).all()
        assert (found.value <= found.high).all()
        if name == "sensitivity":
            number = (x[:, 1] > 0).sum()
            wanted = proportion_confint(found.value * number, number, method="wilson")
            np.testing.assert_allclose([found.low, found.high], wanted, rtol=1e-9)
    for name in ("roc-curve", "precision-recall-curve"):
        for options in ({}, {"rates": "0,0.5,1", "recalls": "0.3,1"}):
            own = {k: v for k, v in options.items() if k in MEASURES[name].options}
            found = estimate(MEASURES[name], x, None, own, 0.95)
            assert (found.low <= found.value + TIGHT).all()
            assert (found.value <= found.high + TIGHT).all()


def test_points_without_a_value_are_no_error_for_the_others() -> None:
    rows = {"risk": [0.1, 0.4, 0.35, 0.8], "ill": [0, 0, 1, 1]}
    found = gosta.exact(
        rows, "positive-predictive-value", score="risk", label="ill", interval=0.9,
        thresholds="0.3,0.9",
    )  # fmt: skip
    assert found.to_dict()["value"] == [pytest.approx(2 / 3), None]
    assert found.to_dict()["interval"]["low"][1] is None
    assert "nan" not in found.text() + repr(found)
    with pytest.raises(GostaError, match="positive-predictive-value is not defined here"):
        gosta.exact(rows, "positive-predictive-value", score="risk", label="ill", thresholds=0.9)


def test_one_class_only() -> None:
    x = np.column_stack([np.arange(5) / 5, np.ones(5)])
    for name, defined in {
        "sensitivity": True, "specificity": False, "positive-predictive-value": True,
        "net-benefit": True, "roc-curve": False, "precision-recall-curve": True,
        "average-precision": True, "partial-auc": False,
    }.items():  # fmt: skip
        found = MEASURES[name].over(x, None, {"thresholds": 0.5})
        assert np.isfinite(found.value).any() == defined, name
    x[:, 1] = -1
    for name, defined in {
        "sensitivity": False, "specificity": True, "positive-predictive-value": True,
        "net-benefit": True, "roc-curve": False, "precision-recall-curve": False,
        "average-precision": False, "partial-auc": False,
    }.items():  # fmt: skip
        assert np.isfinite(MEASURES[name].over(x).value).any() == defined, name


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("net-benefit", {"thresholds": 1}, "thresholds = 1 must be less than 1, where odds end"),
        ("net-benefit", {"thresholds": 20}, "thresholds = 20 must lie between 0 and 1"),
        ("sensitivity", {"thresholds": "low"}, "thresholds = 'low' must be numbers"),
        ("roc-curve", {"rates": 2}, "rates = 2 must lie between 0 and 1"),
        ("precision-recall-curve", {"recalls": 0}, "recalls = 0 must be more than 0"),
        ("partial-auc", {"max_fpr": 0}, "max_fpr = 0 must lie between 0 and 1"),
    ],
)
def test_options_that_cannot_be_used(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(gosta.InputError, match=message):
        MEASURES[name].over(table(1)[0], None, options)
