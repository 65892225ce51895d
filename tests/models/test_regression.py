"""Fits of linear, logistic and Poisson models, compared with statsmodels and scikit-learn."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
import statsmodels.api as sm
from fits import fit_rounded
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

from gosta import datasets
from gosta.errors import DataError, NumericalError
from gosta.models import Fit, Model, make_design, make_model
from gosta.runtime.arrays import Floats


def table(x: Floats, y: Floats) -> datasets.Data:
    return datasets.load({**{f"x{k}": column for k, column in enumerate(x.T)}, "y": y})


def model_of(name: str, x: Floats, y: Floats, **options: object) -> Model:
    data = table(x, y)
    design = make_design([f"x{k}" for k in range(x.shape[1])], data=data)
    return make_model(name, design, data, outcome="y", **{"min_rows_per_column": 0, **options})


def fit(name: str, x: Floats, y: Floats, **options: object) -> Fit:
    model = model_of(name, x, y, **options)
    return model.fit_rows(model.rows(table(x, y)).x)


def fit_by_sums(name: str, x: Floats, y: Floats, bits: int, **options: object) -> Fit:
    model = model_of(name, x, y, **options)
    return fit_rounded(model, model.rows(table(x, y)).x, bits)


@cache
def cancer() -> tuple[Floats, Floats]:
    data = load_breast_cancer()
    return data.data, 1.0 - data.target


def simulated(name: str, n: int, seed: int) -> tuple[Floats, Floats]:
    """Return rows with columns of different units, one of 0 and 1, and an outcome."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)) * [1, 20, 0.01, 3] + [0, 100, 0.5, -2]
    x[:, 1] += 10 * x[:, 0]
    x[:, 3] = rng.random(n) < 0.3
    predictor = x @ np.array([0.6, -0.03, 20.0, 0.5]) - 8
    if name == "linear":
        return x, predictor + rng.normal(size=n) * (1 + x[:, 3])
    if name == "poisson":
        return x, rng.poisson(np.exp(predictor)).astype(float)
    return x, (rng.random(n) < 1 / (1 + np.exp(-predictor))).astype(float)


FAMILIES = {
    "linear": sm.families.Gaussian(),
    "logistic": sm.families.Binomial(),
    "poisson": sm.families.Poisson(),
}


@pytest.mark.parametrize("name", ["linear", "logistic", "poisson"])
@pytest.mark.parametrize("seed", range(5))
def test_fits_are_those_of_statsmodels(name: str, seed: int) -> None:
    x, y = simulated(name, 150 + 300 * seed, seed)
    found, design = fit(name, x, y), sm.add_constant(x)
    glm = sm.GLM(y, design, family=FAMILIES[name])
    # Ordinary least squares have t-intervals.
    theirs = sm.OLS(y, design).fit() if name == "linear" else glm.fit(tol=1e-14)
    robust = sm.OLS(y, design).fit(cov_type="HC0") if name == "linear" else None
    robust = robust or glm.fit(cov_type="HC0", tol=1e-14)
    assert np.allclose(found.coefficients, theirs.params, rtol=1e-9)
    assert np.allclose(found.standard_errors, theirs.bse, rtol=1e-9)
    assert np.allclose(found.covariance, theirs.cov_params(), rtol=1e-7)
    assert np.allclose(found.robust().standard_errors, robust.bse, rtol=1e-7)
    assert np.allclose(found.p_values, theirs.pvalues, rtol=1e-6)
    assert np.allclose(np.column_stack([found.low, found.high]), theirs.conf_int(), rtol=1e-8)
    null = sm.GLM(y, np.ones(len(y)), family=FAMILIES[name]).fit(tol=1e-14)
    assert found.log_likelihood == pytest.approx(theirs.llf, rel=1e-10)
    # The variance of residuals is that of maximum likelihood.
    null_likelihood = sm.OLS(y, np.ones(len(y))).fit().llf if name == "linear" else null.llf
    assert found.null_log_likelihood == pytest.approx(null_likelihood, rel=1e-10)
    assert found.aic == pytest.approx(theirs.aic, rel=1e-10)
    assert found.n == len(y)
    assert found.rounds <= 9
    predicted = theirs.predict(design)
    assert np.allclose(found.predict(table(x, y)), predicted, rtol=1e-8)


@pytest.mark.parametrize("name", ["linear", "logistic", "poisson"])
def test_errors_by_groups_are_those_of_statsmodels(name: str) -> None:
    x, y = simulated(name, 400, 3)
    groups = np.arange(400) % 25
    model = model_of(name, x, y)
    found = model.fit_rows(model.rows(table(x, y)).x, groups=groups).robust()
    glm = sm.GLM(y, sm.add_constant(x), family=FAMILIES[name])
    other = glm.fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False})
    assert np.allclose(found.standard_errors, np.sqrt(25 / 24) * other.bse, rtol=1e-5)


def test_penalised_fits_are_those_of_scikit_learn() -> None:
    x, y = cancer()
    deviations = x.std(axis=0)
    z = (x - x.mean(axis=0)) / deviations
    for penalty in (0.01, 1.0, 100.0):
        found = fit("logistic", x, y, penalty=penalty)
        settings = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}
        theirs = LogisticRegression(C=1 / penalty, **settings).fit(z, y)
        assert np.abs(found.coefficients[1:] * deviations - theirs.coef_[0]).max() < 1e-8
    x, y = load_diabetes(return_X_y=True)
    deviations = x.std(axis=0)
    ridge = Ridge(alpha=7.0).fit((x - x.mean(axis=0)) / deviations, y)
    found = fit("linear", x, y, penalty=7.0)
    assert np.allclose(found.coefficients[1:] * deviations, ridge.coef_, rtol=1e-9)
    x, y = simulated("poisson", 500, 1)
    deviations = x.std(axis=0)
    counts = PoissonRegressor(alpha=2.0 / 500, solver="newton-cholesky", tol=1e-12)
    counts.fit((x - x.mean(axis=0)) / deviations, y)
    found = fit("poisson", x, y, penalty=2.0)
    assert np.allclose(found.coefficients[1:] * deviations, counts.coef_, rtol=1e-7)


@pytest.mark.parametrize("name", ["linear", "logistic", "poisson"])
def test_sums_of_rounded_features_give_the_same_coefficients(name: str) -> None:
    x, y = simulated(name, 400, 0)
    exact = fit(name, x, y)
    errors = []
    for bits in (32, 40):
        found = fit_by_sums(name, x, y, bits)
        gaps = (found.coefficients - exact.coefficients) / exact.standard_errors
        errors.append(np.abs(gaps).max())
        assert np.allclose(found.standard_errors, exact.standard_errors, rtol=2.0 ** (16 - bits))
        assert found.log_likelihood == pytest.approx(exact.log_likelihood, rel=2.0 ** (14 - bits))
    assert errors[0] < 1e-5
    assert errors[1] < 1e-7


def test_errors_name_columns() -> None:
    x, y = simulated("logistic", 300, 0)
    twice = np.column_stack([x, x[:, 0] + 2 * x[:, 1]])
    message = r"column x4 of the model is a combination of x0, x1: .* \(--penalty 1\)"
    with pytest.raises(NumericalError, match=message):
        fit("logistic", twice, y)
    assert np.isfinite(fit("logistic", twice, y, penalty=1.0).coefficients).all()
    model = model_of("logistic", x, y)
    rows = model.rows(table(x, y)).x
    with pytest.raises(NumericalError, match=r"no row over all sites is positive"):
        model.fit_rows(rows * [1, 1, 1, 1, 0])
    with pytest.raises(NumericalError, match=r"column x1 of the model: all rows have the same"):
        model.fit_rows(rows * [1, 0, 1, 1, 1])
    with pytest.raises(NumericalError, match=r"300 rows for 4 columns are fewer than 100 for each"):
        fit("linear", x, y, min_rows_per_column=100)
    with pytest.raises(NumericalError, match=r"column x3 of the model has fewer than 150 rows"):
        fit("linear", x, y, min_cell=150)
    with pytest.raises(DataError, match=r"outcome 'y' is the same in all rows"):
        fit("linear", x, 0 * y)
    with pytest.raises(DataError, match=r"outcome 'y' holds 0.5 where counts are needed"):
        fit("poisson", x, y + 0.5)


def test_separated_classes_are_an_error() -> None:
    x, y = simulated("logistic", 300, 0)
    with pytest.raises(
        NumericalError, match=r"separate the classes, .* use a penalty \(--penalty 1"
    ):
        fit("logistic", *cancer())
    apart = np.column_stack([x, 10 * y + x[:, 0]])
    with pytest.raises(
        NumericalError, match=r"separate the classes, .* use a penalty \(--penalty 1"
    ):
        fit("logistic", apart, y)
    marker = np.column_stack([x, y * (x[:, 0] > 0)])
    with pytest.raises(NumericalError, match=r"column x4 .* one class: there is no best fit"):
        fit("logistic", marker, y)
    assert np.isfinite(fit("logistic", apart, y, penalty=1.0).coefficients).all()


STEPS = """
import numpy as np
from gosta.models import make_design, make_model

rng = np.random.default_rng(0)
names = [f"x{k}" for k in range(9)]
design = make_design(names, ranges=dict.fromkeys(names, (0, 1)))
rows = rng.random((500, 9))
hidden = np.round(rows @ rng.normal(size=9), 6)
times = np.column_stack([rng.integers(0, 40, 500), rng.random(500) < 0.5, np.zeros(500)])
grid = {"time": "t", "event": "e", "times": tuple(range(40)), "min_cell": 3}
for name, y, options in (
    ("linear", hidden / 9, {"outcome": "y", "low": 0, "high": 1}),
    ("logistic", rng.random(500) < np.round(1 / (1 + np.exp(-hidden)), 6), {"outcome": "y"}),
    ("auc", rng.random(500) < 0.5, {"outcome": "y"}),
    ("poisson", np.round(np.clip(4 + hidden, 0, 9)) / 9, {"outcome": "y", "high": 9}),
    ("cox", times, grid),
):
    model = make_model(name, design, **options)
    full = np.column_stack([rows, y])
    state, states, totals = model.first(), [model.first()], []
    while not state.is_done:
        shape = model.size(state)
        places, values = model.features(full, state)
        print(np.floor(values * 2.0**40 + 0.5).sum().hex())
        totals.append(np.bincount(places.ravel(), np.floor(values.ravel() * 2.0**40 + 0.5), shape))
        totals[-1] /= 2.0**40
        state = model.following(state, totals[-1])
        states.append(state)
        print([one.hex() for one in state.coefficients], state.is_last)
    found = model.fit_of(states, totals)
    print([one.hex() for one in [*found.coefficients, *found.robust_covariance.ravel()]])
"""


def test_steps_do_not_depend_on_the_processor() -> None:
    older = {
        "OPENBLAS_CORETYPE": "Prescott",
        "OPENBLAS_NUM_THREADS": "1",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL",
    }
    command = [sys.executable, "-W", "ignore", "-c", STEPS]
    outputs = [
        subprocess.run(command, env=os.environ | more, capture_output=True, check=True).stdout
        for more in ({}, older)
    ]
    assert len(outputs[0]) > 5000
    assert outputs[0] == outputs[1]
