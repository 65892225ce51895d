"""Calibration of risks of an event before a horizon, compared with statsmodels and lifelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from lifelines import KaplanMeierFitter
from test_survival import HORIZON, MOMENT, rows

import gosta
from gosta.measures import MEASURES
from gosta.measures.intervals import standard_errors
from gosta.measures.logistic import spline
from gosta.runtime.arrays import Floats

FLOOR = 1e-6
RISKS = (0.1, 0.4, 0.8)
OPTIONS: dict[str, dict[str, Any]] = {
    "survival-calibration-intercept": {},
    "survival-calibration-slope": {},
    "survival-smooth-calibration": {"risks": RISKS},
    "survival-calibration-error": {},
}
NAMES = sorted(OPTIONS)


def over(name: str, x: Floats, weights: Floats | None = None) -> Any:
    options = {"horizon": HORIZON, "floor": FLOOR, **OPTIONS[name]}
    return MEASURES[name].over(x, weights, options)


@pytest.mark.parametrize("seed", range(40))
def test_values_are_those_of_a_weighted_regression(seed: int) -> None:
    x = rows(seed, 150)
    censoring = KaplanMeierFitter().fit(x[:, 0] + np.where(x[:, 1] > 0, 0.0, MOMENT), 1 - x[:, 1])
    is_case, is_left = (x[:, 1] > 0) & (x[:, 0] < HORIZON), x[:, 0] >= HORIZON
    share = censoring.predict(np.minimum(x[:, 0], HORIZON)).to_numpy()
    counted = is_case | is_left
    z = np.log(np.clip(x[:, 2], FLOOR, 1 - FLOOR)) - np.log1p(-np.clip(x[:, 2], FLOOR, 1 - FLOOR))

    def fitted(columns: Floats) -> Any:
        family = sm.families.Binomial()
        weights = 1 / share[counted]
        model = sm.GLM(is_case[counted], columns[counted], family=family, var_weights=weights)
        return model.fit(tol=1e-13, maxiter=100).params

    line = fitted(np.column_stack([np.ones(len(z)), z]))
    found = [over(f"survival-calibration-{part}", x).value[0] for part in ("intercept", "slope")]
    np.testing.assert_allclose(found, line, rtol=1e-8, atol=1e-10)
    knots = np.quantile(z, [0.1, 0.5, 0.9], method="inverted_cdf")
    columns = spline(z, knots)
    curve = 1 / (1 + np.exp(-columns @ fitted(columns)))
    gaps = np.abs(curve - x[:, 2])
    wanted = [gaps.mean(), *np.quantile(gaps, [0.5, 0.9], method="inverted_cdf"), gaps.max()]
    np.testing.assert_allclose(over("survival-calibration-error", x).value, wanted, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_without_censoring_it_is_calibration_of_the_outcome(name: str) -> None:
    x = rows(3, 120)
    x[:, 1] = 1.0
    names = {
        "survival-calibration-intercept": "calibration-intercept",
        "survival-calibration-slope": "calibration-slope",
        "survival-smooth-calibration": "smooth-calibration-curve",
        "survival-calibration-error": "calibration-error",
    }
    outcome = np.column_stack([x[:, 2], np.where(x[:, 0] < HORIZON, 1.0, -1.0)])
    known = MEASURES[names[name]].over(outcome, None, {"floor": FLOOR, **OPTIONS[name]})
    found = over(name, x)
    np.testing.assert_allclose(found.value, known.value, rtol=1e-9)
    if found.ends is None or known.ends is None:
        assert found.errors is not None
        assert known.errors is not None
        np.testing.assert_allclose(found.errors, known.errors, rtol=1e-9)
    else:
        np.testing.assert_allclose(found.ends(0.95), known.ends(0.95), rtol=1e-7)


@pytest.mark.parametrize("name", NAMES[1:])
def test_influence_is_the_derivative_by_the_share_of_a_row(name: str) -> None:
    x = rows(4, 61)
    weights, step = np.random.default_rng(1).uniform(0.5, 2.0, len(x)), 1e-5
    influence = over(name, x, weights).influence
    if influence is None:
        return
    for row in range(0, len(x), 7):
        change = step * (np.arange(len(x)) == row)
        up, down = (over(name, x, weights + sign * change).value for sign in (1, -1))
        slope = (up - down) / (2 * step) * weights.sum()
        np.testing.assert_allclose(influence[row], slope, rtol=1e-4, atol=1e-5)
    assert (standard_errors(influence, weights) > 0).all()


def test_a_horizon_without_events_is_said() -> None:
    data = {"time": [1.0, 2.0, 3.0], "event": [0, 0, 1], "score": [0.2, 0.1, 0.4]}
    with pytest.raises(gosta.GostaError, match="no row has an event before the horizon"):
        gosta.exact(data, "survival-calibration-slope", horizon=2)
