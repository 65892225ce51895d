"""Fits with differential privacy: what a row changes, what noise costs, what is refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import gosta
from gosta import private
from gosta.errors import GostaError, InputError, NumericalError
from gosta.models import Model, make_design, make_model
from gosta.models.arithmetic import least_eigenvalue
from gosta.models.layout import FitLayout
from gosta.models.noisy import NoisyLayout, first_round
from gosta.private.accounting import Spent, gaussian_mu, total_epsilon
from gosta.private.noise import choose_noise
from gosta.private.settings import PrivateSettings
from gosta.sketches.sums import run_rounds

N = 30_000
RANGES = {"age": (0.0, 100.0), "dose": (-4.0, 4.0)}
OPTIONS: dict[str, dict[str, Any]] = {
    "logistic": {"outcome": "died", "classes": (0, 1)},
    "linear": {"outcome": "cost", "low": 0.0, "high": 400.0},
    "poisson": {"outcome": "visits", "high": 8.0},
    "auc": {"outcome": "died", "classes": (0, 1)},
}
SETTINGS = PrivateSettings(epsilon=2.0, delta=1e-6)


def noisy(model: Model) -> FitLayout:
    return first_round(model, SETTINGS.epsilon, SETTINGS.delta, gaussian_mu)


def make_rows(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    age, dose = rng.uniform(20, 90, n), rng.normal(size=n).clip(-4, 4)
    eta = 0.04 * (age - 60) + 0.5 * dose
    return {
        "age": age,
        "dose": dose,
        "died": (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int),
        "cost": (150 + age + 10 * dose + 20 * rng.normal(size=n)).clip(0, 400),
        "visits": rng.poisson(np.exp(eta / 3)).clip(0, 8),
    }


ROWS = make_rows(N)


def fitted(model: str, n: int = N, **others: Any) -> gosta.models.Fit:
    parts = [{name: values[k:n:3] for name, values in ROWS.items()} for k in range(3)]
    given = {"columns": ("age", "dose"), "ranges": RANGES, "seed": 1, "epsilon": 2.0}
    return private.fit(parts, model, **given | OPTIONS[model] | others)  # type: ignore[arg-type]


def layouts(model: str, columns: int = 2) -> list[NoisyLayout]:
    """Return the rounds of a fit to rows that are told badly enough to be all over the place."""
    names = tuple(f"x{k}" for k in range(columns))
    design = make_design(names, ranges=dict.fromkeys(names, (0.0, 1.0)))
    first = noisy(make_model(model, design, **OPTIONS[model]))
    rows = np.random.default_rng(2).random((20_000, columns + 1))
    if model != "linear":
        rows[:, -1] = rows[:, -1] < 0.4
    found = run_rounds(first, lambda sums: sums.sums(rows).view(np.int64) / 2.0**sums.bits)
    return [one for one, _ in found if isinstance(one, NoisyLayout)]


@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("model", OPTIONS)
def test_no_row_changes_the_sums_by_more_than_noise_is_made_for(model: str, columns: int) -> None:
    rng = np.random.default_rng(4)
    corners = np.array(list(product([0.0, 0.5, 1.0], repeat=columns + 1)))
    inside = rng.random((300, columns + 1))
    wild = rng.normal(size=(50, columns + 1)) * 5
    rows = np.concatenate([corners, inside, wild])
    if model in ("logistic", "auc"):
        rows[:, -1] = rows[:, -1] > 0.5
    for layout in layouts(model, columns):
        assert layout.size == layout.features_per_row
        values = layout.features(rows).values
        assert np.abs(values).max() <= 1
        assert values.min() >= layout.least_feature
        values = np.floor(values * 2.0**layout.bits + 0.5) / 2.0**layout.bits
        assert (values**2).sum(axis=1).max() <= layout.squared_change, "a row is left out"
        chosen = values[rng.permutation(len(values))[:400]]
        both = values[:, None] - chosen
        assert (both**2).sum(axis=2).max() <= layout.squared_change, "a row is replaced"


@pytest.mark.parametrize("model", OPTIONS)
def test_all_rounds_together_have_the_declared_epsilon(model: str) -> None:
    noises = [choose_noise(SETTINGS, one, 3) for one in layouts(model)]
    assert len(noises) == (4 if model in ("logistic", "poisson") else 1)
    spent = [Spent(one.law, one.epsilon, one.delta) for one in noises]
    assert total_epsilon(spent, 1e-6) == pytest.approx(2.0, rel=1e-9)
    for noise, layout in zip(noises, layouts(model), strict=True):
        assert noise.scale == pytest.approx(layout.deviation(layout.state.rounds + 1), rel=1e-3)


@pytest.mark.parametrize("model", OPTIONS)
def test_with_little_noise_coefficients_are_those_without(model: str) -> None:
    found = fitted(model, epsilon=100.0)
    other = fitted(model, epsilon=None)
    assert np.abs((found.coefficients - other.coefficients) / other.standard_errors).max() < 0.7
    assert found.n == pytest.approx(N, rel=1e-3)
    if other.events is not None:
        assert found.events == pytest.approx(other.events, rel=1e-3)
    assert found.means == pytest.approx(other.means, rel=1e-3, abs=1e-3)
    if model != "auc":
        assert found.standard_errors == pytest.approx(other.standard_errors, rel=0.15)
    with pytest.raises(InputError, match="no robust standard errors"):
        found.robust()


@pytest.mark.parametrize("model", ["logistic", "linear", "poisson"])
def test_standard_errors_tell_the_noise(model: str) -> None:
    without = fitted(model, epsilon=None)
    found = [fitted(model, seed=seed) for seed in range(20)]
    moves = np.array([one.coefficients - without.coefficients for one in found])
    errors = np.array([one.standard_errors for one in found])
    assert (errors > without.standard_errors).all()
    # What noise adds to sampling.
    noise = np.sqrt(np.mean(errors**2 - without.standard_errors**2, axis=0))
    ratio = np.sqrt(np.mean(moves**2, axis=0)) / noise
    assert (ratio > 0.5).all()
    assert (ratio < 1.4).all()
    assert "epsilon 2, delta 1e-06" in found[0].summary()
    assert "of the model and noise" in found[0].summary()


def test_a_penalty_shrinks_as_without_noise() -> None:
    given: dict[str, Any] = {"penalty": 3000.0, "epsilon": 50.0}
    found, other = fitted("logistic", **given), fitted("logistic", penalty=3000.0, epsilon=None)
    assert found.coefficients == pytest.approx(other.coefficients, rel=0.02)
    assert abs(found.coefficients[1]) < 0.9 * abs(fitted("logistic", epsilon=50.0).coefficients[1])


def test_coefficients_without_signal_have_no_intervals() -> None:
    found = fitted("logistic", n=900, epsilon=1.5)
    assert np.isfinite(found.coefficients).all()
    assert np.isnan(found.standard_errors).all()
    assert "rows would do" in found.warnings[0]
    assert "interval" not in found.summary().split("warning")[0]


@pytest.mark.parametrize(
    ("model", "others", "message"),
    [
        ("logistic", {"n": 40}, "40 rows are too few for 2 columns with epsilon 2"),
        ("linear", {"delta": 0.0}, "needs delta, too"),
        ("logistic", {"folds": 4}, "not validated by folds"),
        ("logistic", {"epsilon": -1.0}, "must be a positive number"),
        ("poisson", {"high": 1000.0, "n": 900}, "about 0 counts, and noise moves"),
    ],
)
def test_what_noise_makes_impossible_is_told(model: str, others: Any, message: str) -> None:
    with pytest.raises(GostaError, match=message):
        fitted(model, **others)


def test_a_rare_class_is_told() -> None:
    rows = {name: values[:2000] for name, values in ROWS.items()}
    rows["died"] = np.arange(2000) < 4
    parts = [{name: values[k::3] for name, values in rows.items()} for k in range(3)]
    with pytest.raises(NumericalError, match=r"there are about .* rows of one class, and noise"):
        private.fit(
            parts,
            "logistic",
            "died",
            columns=("age", "dose"),
            ranges=RANGES,
            classes=(False, True),
            epsilon=1.0,
            seed=0,
        )


def test_a_model_without_bounds_has_no_noise() -> None:
    design = make_design(("age", "dose"), ranges=RANGES)
    cox = make_model("cox", design, time="days", event="seen", times=(1.0, 2.0))
    with pytest.raises(InputError, match="a row can change Cox regression without bound"):
        noisy(cox)


def test_the_least_eigenvalue() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 3, 8):
        matrix = rng.normal(size=(size, size))
        matrix = matrix + matrix.T
        assert least_eigenvalue(matrix) == pytest.approx(np.linalg.eigvalsh(matrix)[0], abs=1e-9)
