"""Scores for the AUC, compared with ridge regression over all pairs and with a jackknife."""

from __future__ import annotations

import numpy as np
import pytest
from fits import fit_rounded
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Ridge

from gosta import datasets
from gosta.errors import NumericalError
from gosta.models import Model, make_design, make_model
from gosta.runtime.arrays import Floats


def model_of(x: Floats, y: Floats, penalty: float = 0.0) -> tuple[Model, Floats]:
    names = [f"x{k}" for k in range(x.shape[1])]
    data = datasets.load({**dict(zip(names, x.T, strict=True)), "y": y})
    design = make_design(names, data=data)
    model = make_model("auc", design, data, outcome="y", penalty=penalty, min_rows_per_column=0)
    return model, model.rows(data).x


@pytest.mark.parametrize("columns", [3, 30])
def test_scores_are_those_of_ridge_regression_over_all_pairs(columns: int) -> None:
    x, y = load_breast_cancer(return_X_y=True)
    x, y = x[::2, :columns], 1.0 - y[::2]
    model, rows = model_of(x, y, penalty=0.01)
    found = model.fit_rows(rows)
    deviations = x.std(axis=0)
    z = x / deviations
    pairs = (z[y == 1][:, None] - z[y == 0][None]).reshape(-1, columns)
    ridge = Ridge(alpha=0.01 * len(pairs), fit_intercept=False, solver="cholesky")
    theirs = ridge.fit(pairs, np.ones(len(pairs))).coef_
    assert np.abs(found.coefficients * deviations - theirs).max() < 1e-10
    rounded = fit_rounded(model, rows, 32)
    gaps = (rounded.coefficients - found.coefficients) / found.standard_errors
    assert np.abs(gaps).max() < 1e-4
    # Nearly collinear columns multiply what is rounded.
    room = 1e-4 if columns == 3 else 0.02
    assert np.allclose(rounded.standard_errors, found.standard_errors, rtol=room)
    assert found.rounds == 2
    assert np.isnan(found.log_likelihood)


@pytest.mark.parametrize("penalty", [0.0, 0.01])
def test_standard_errors_are_those_of_a_jackknife(penalty: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 3))
    y = (rng.random(300) < 1 / (1 + np.exp(-x @ [1.0, -0.5, 0.0]))).astype(float)
    model, rows = model_of(x, y, penalty)
    found = model.fit_rows(rows)
    kept = [np.delete(np.arange(300), k) for k in range(300)]
    left = np.array([model.fit_rows(rows[rest]).coefficients for rest in kept])
    errors = np.sqrt(299 / 300 * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    assert np.allclose(found.standard_errors, errors, rtol=0.03)


def test_one_class_is_an_error() -> None:
    model, rows = model_of(np.arange(20.0)[:, None], np.tile([0.0, 1.0], 10))
    with pytest.raises(NumericalError, match=r"no row over all sites is positive"):
        model.fit_rows(rows * [1, 0])
