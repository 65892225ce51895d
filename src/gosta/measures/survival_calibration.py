"""Calibration of predicted risks of an event before a horizon, by logistic regression.

Rows with an event before the horizon count by 1/G at their time, rows that are still there by 1/G
at the horizon, and rows that were censored before do not count, as in the Brier score. How each row
moves G is part of the standard errors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gosta.errors import NumericalError
from gosta.measures.calibration import (
    CURVE_AXES,
    ERRORS,
    FLOOR,
    KNOTS,
    covariance_of,
    distance_ends,
    distinct_knots,
    risk_distances,
    risk_logits,
    shown_risks,
)
from gosta.measures.definition import Measured, measure
from gosta.measures.distribution import weighted_quantiles
from gosta.measures.intervals import standard_errors
from gosta.measures.logistic import Fit, expit, fit, leverages, logit, spline
from gosta.measures.product_limit import ProductLimit
from gosta.measures.survival import horizon_of
from gosta.runtime.arrays import Floats
from gosta.statistics import encode


class _Regression(NamedTuple):
    """The regression of an event before the horizon on columns of a design."""

    columns: Floats  # of each row
    fit: Fit
    influence: Floats  # of each row on the coefficients
    without: Floats  # that of leaving a row out, which gives the jackknife's standard errors

    @classmethod
    def of(cls, x: Floats, weights: Floats, columns: Floats, horizon: float | None) -> _Regression:
        time = horizon_of(horizon)
        is_case, is_control = (x[:, 1] > 0) & (x[:, 0] < time), x[:, 0] >= time
        censoring, until = ProductLimit.of_censoring(x, weights), np.minimum(x[:, 0], time)
        each = (is_case | is_control) * censoring.inverse_before(until)
        counted = weights * each
        if not (counted @ is_case > 0 and counted @ is_control > 0):
            raise NumericalError("no row has an event before the horizon, or none is there then")
        found = fit(columns, columns.T @ (counted * is_case), counted)
        fitted = columns @ found.coefficients
        own = columns * (each * (is_case - expit(fitted)))[:, None]
        through = [censoring.log_slopes(until, weights * part) for part in own.T]
        inverse = np.linalg.inv(found.information / weights.sum())
        influence = (own - np.column_stack(through)) @ inverse
        leverage = leverages(columns, counted, fitted, found)
        return cls(columns, found, influence, influence / (1 - leverage)[:, None])


def _recalibration(
    x: Floats, weights: Floats, horizon: float | None, floor: float, place: int
) -> Measured:
    """Return the intercept or the slope of the recalibration."""
    z = risk_logits(x[:, 2:], weights, floor)
    found = _Regression.of(x, weights, np.column_stack([np.ones(len(z)), z]), horizon)
    errors = standard_errors(found.without[:, [place]], weights)
    value = found.fit.coefficients[[place]]
    return Measured(value, found.influence[:, [place]], errors=errors)


def _smooth(
    x: Floats, weights: Floats, horizon: float | None, floor: float
) -> tuple[Floats, _Regression]:
    """Return the knots and the regression of the smooth curve."""
    z = risk_logits(x[:, 2:], weights, floor)
    knots = distinct_knots(weighted_quantiles(z, weights, KNOTS))
    return knots, _Regression.of(x, weights, spline(z, knots), horizon)


@measure(encode=encode.survival_risk)
def survival_calibration_intercept(
    x: Floats, weights: Floats, horizon: float | None = None, floor: float = 0.0
) -> Measured:
    """Intercept a of the recalibration a + b · logit(predicted risk) of the risk of an event before
    the `horizon`.
    """
    return _recalibration(x, weights, horizon, floor, 0)


@measure(encode=encode.survival_risk)
def survival_calibration_slope(
    x: Floats, weights: Floats, horizon: float | None = None, floor: float = 0.0
) -> Measured:
    """Slope b of the recalibration a + b · logit(predicted risk) of the risk of an event before the
    `horizon`: 1 is best, less means risks that are too extreme.
    """
    return _recalibration(x, weights, horizon, floor, 1)


@measure(encode=encode.survival_risk, bounds=(0.0, 1.0), scale="logit", axes=CURVE_AXES)
def survival_smooth_calibration(
    x: Floats, weights: Floats, horizon: float | None = None, risks: Any = None, floor: float = 0.0
) -> Measured:
    """Smooth calibration curve of risks of an event before the `horizon`: the share with an event
    that is expected at a predicted risk.
    """
    knots, found = _smooth(x, weights, horizon, floor)
    shown = shown_risks(x[:, 2], weights, risks)
    columns = spline(logit(shown, floor or FLOOR), knots)
    curve = expit(columns @ found.fit.coefficients)
    slopes = ((curve * (1 - curve))[:, None] * columns).T
    labels = tuple(f"risk {risk:g}" for risk in shown)
    errors = standard_errors(found.without @ slopes, weights)
    return Measured(curve, found.influence @ slopes, labels, shown, errors=errors)


@measure(encode=encode.survival_risk, bounds=(0.0, 1.0))
def survival_calibration_error(
    x: Floats, weights: Floats, horizon: float | None = None, floor: float = 0.0
) -> Measured:
    """Distance of predicted risks of an event before the `horizon` from their smooth calibration
    curve: its mean over rows (ICI), its median, its 90 % quantile and its maximum.
    """
    found = _smooth(x, weights, horizon, floor)[1]
    distances = risk_distances(found.columns, x[:, 2], weights)

    def ends(level: float) -> tuple[Floats, Floats, Floats]:
        return distance_ends(
            found.fit.coefficients, covariance_of(found.without, weights), distances, level
        )

    return Measured(distances(found.fit.coefficients), labels=ERRORS, ends=ends)
