"""Objectives of pairs of rows: features, losses, and minima, compared with other libraries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

import gosta
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import OBJECTIVES
from gosta.statistics.objectives import LOSSES, Objective, ObjectivePairs

PENALTY = 0.01


def objective(name: str) -> Objective:
    found = gosta.statistics.find(name)
    assert isinstance(found, Objective)
    return found


def rows_of(name: str, n: int = 60) -> Floats:
    data = gosta.datasets.load("breast-cancer", n=n)
    return objective(name).encode_rows(data.select(list(data.features)[:5]), {})


def pairs_of(name: str) -> ObjectivePairs:
    return ObjectivePairs(objective(name), rows_of(name), PENALTY)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_features_of_two_rows_are_those_of_many(name: str) -> None:
    x, pairs = rows_of(name, 12), objective(name).pairs
    for a in x:
        expected = pairs.of_rows(np.broadcast_to(a, x.shape), x)
        assert expected.shape[1] == pairs.count(x.shape[1] - 1)
        found = [[pairs.feature(a, b, c) for c in range(expected.shape[1])] for b in x]
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-300)
        mirrored = [[pairs.feature(b, a, c) for c in range(expected.shape[1])] for b in x]
        np.testing.assert_array_equal(found, mirrored)


@pytest.mark.parametrize("name", LOSSES)
def test_slopes_are_derivatives(name: str) -> None:
    loss, margins, h = LOSSES[name], np.array([-30.0, -1.3, 0.0, 0.4, 2.0, 40.0]), 1e-6
    numeric = (loss.total(margins[None] + h) - loss.total(margins[None] - h)) / (2 * h)
    slopes = [loss.slope(m) for m in margins.tolist()]
    np.testing.assert_allclose(slopes, numeric, atol=1e-7)
    np.testing.assert_allclose(slopes, loss.derivatives(margins, 1e-5)[0], atol=1e-15)


def test_metric_margins_are_thresholds_minus_distances() -> None:
    x, rng = rows_of("metric-hinge", 8), np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    matrix, threshold = root @ root.T, 0.7
    point = np.array([threshold, *matrix[np.tril_indices(5)]])
    margins = objective("metric-hinge").pairs.of_rows(x[:4], x[4:]) @ point
    for margin, a, b in zip(margins, x[:4], x[4:], strict=True):
        gap = (a - b)[:-1]
        sign = 1.0 if a[-1] == b[-1] else -1.0
        assert margin == pytest.approx(sign * (threshold - gap @ matrix @ gap), rel=1e-12)


@pytest.mark.parametrize("name", [n for n in OBJECTIVES if not n.endswith("hinge")])
def test_minima_are_those_of_lbfgs(name: str) -> None:
    pairs = pairs_of(name)

    def value_and_gradient(point: Floats) -> tuple[float, Floats]:
        slopes, _ = pairs.loss.derivatives(pairs.features @ point, 1.0)
        gradient = pairs.weight * slopes @ pairs.features + PENALTY * point
        return float(pairs.values(point[None])[0]), gradient

    start = np.zeros(pairs.features.shape[1])
    tight = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 10_000}
    found = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=tight)
    assert pairs.values(pairs.minimum[None])[0] == pytest.approx(found.fun, rel=1e-10)
    np.testing.assert_allclose(pairs.minimum, found.x, atol=1e-6)


def test_squared_loss_is_ridge_regression_on_all_pairs() -> None:
    pairs = pairs_of("pairwise-squared")
    ridge = Ridge(alpha=PENALTY / pairs.weight, fit_intercept=False, solver="svd")
    ridge.fit(pairs.features, np.ones(len(pairs.features)))
    np.testing.assert_allclose(pairs.minimum, ridge.coef_, rtol=1e-9)


def test_hinge_loss_is_a_support_vector_machine_on_all_pairs() -> None:
    pairs = pairs_of("pairwise-hinge")
    signs = np.resize([1.0, -1.0], len(pairs.features))
    machine = LinearSVC(
        loss="hinge", C=pairs.weight / PENALTY, fit_intercept=False, tol=1e-8, max_iter=1_000_000,
        random_state=0,
    )  # fmt: skip
    machine.fit(pairs.features * signs[:, None], signs)
    ours, theirs = (pairs.values(p[None])[0] for p in (pairs.minimum, machine.coef_[0]))
    assert ours == pytest.approx(theirs, rel=1e-6)


def test_what_cannot_be_minimised_is_an_error() -> None:
    data = gosta.datasets.load({"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 1.0], "label": [0, 1, 1]})
    with pytest.raises(gosta.DataError, match="column 'b' is constant"):
        gosta.simulate(data, "pairwise-logistic", iterations=10)
    for option in ("penalty", "pace"):
        with pytest.raises(gosta.InputError, match=f"{option} = 0 must be a positive number"):
            gosta.simulate(data.select("a"), "pairwise-hinge", iterations=10, options={option: 0})
    with pytest.raises(gosta.InputError, match="gosta run"):
        gosta.exact(data.select("a"), "pairwise-logistic")
    with pytest.raises(gosta.InputError, match="named alone"):
        gosta.simulate(data.select("a"), ["pairwise-logistic", "auc"], iterations=10)
