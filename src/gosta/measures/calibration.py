"""Measures of predicted risks: calibration and overall performance.

An encoded row is a risk, from 0 to 1, and +1 for the positive class or −1. Logits of risks are
log(p/(1 − p)); a risk of 0 or 1 has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gosta.errors import InputError, NumericalError
from gosta.measures.classification import equal_rows
from gosta.measures.definition import Measured, measure, numbers_of
from gosta.measures.distribution import weighted_quantiles
from gosta.measures.intervals import DRAWS, SEED, standard_errors
from gosta.measures.logistic import Fit, expit, fit, leverages, logit, spline
from gosta.runtime.arrays import Floats, Integers
from gosta.statistics import encode
from gosta.statistics.distributions import chi_squared_quantile, chi_squared_tail
from gosta.statistics.intervals import ends_by_errors, wilson_ends

FLOOR = float(np.finfo(np.float64).eps)  # of the risks of log loss, as scikit-learn has it
KNOTS = np.array([0.1, 0.5, 0.9])  # Harrell's: shares of the rows below the knots of the spline
STEPS = 21  # from a curve towards perfect calibration, at which distances are computed
PLACES = 101  # at which a smooth curve is shown, between the least and the largest risk
CURVE_AXES = ("predicted risk", "observed share")
BRIER_PARTS = ("reliability", "resolution", "uncertainty", "within bins")
ERRORS = ("ICI", "E50", "E90", "Emax")
SEPARATED = "risks separate the classes, so that there is no best recalibration"
ONE_CLASS = "all rows are of one class"


@measure(encode=encode.risk, bounds=(0.0, 1.0), scale="logit")
def brier_score(x: Floats, weights: Floats) -> Measured:
    """Mean squared difference of the predicted risk and what happened, 1 or 0."""
    score, influence = _means(_squared_errors(x), weights)
    return Measured(score, influence)


@measure(encode=encode.risk, bounds=(-np.inf, 1.0))
def scaled_brier_score(x: Floats, weights: Floats) -> Measured:
    """Share by which the Brier score is below that of predicting the prevalence for all rows."""
    score, by_score = _means(_squared_errors(x), weights)
    prevalence, by_prevalence = _means(_outcomes(x), weights)
    most = prevalence * (1 - prevalence)
    influence = score / most**2 * (1 - 2 * prevalence) * by_prevalence - by_score / most
    return Measured(_defined(1 - score / most), influence)


@measure(encode=encode.risk, bounds=(-1.0, 1.0))
def brier_parts(x: Floats, weights: Floats, groups: int = 10, cuts: Any = None) -> Measured:
    """Brier score in parts: reliability less resolution plus uncertainty (Murphy), and what risks
    within a bin add.

    Bins hold equally many rows (`groups`), or are cut at the risks `cuts`.
    """
    bins = risk_bins(x, weights, groups, cuts)
    rows, outcomes = bins.rows / bins.rows.sum(), _outcomes(x)
    gap, prevalence = bins.risk - bins.observed, float(rows @ bins.observed)
    lift = bins.observed - prevalence
    of_bin, missed = bins.place, outcomes - bins.observed[bins.place]
    brier, by_brier = _means(_squared_errors(x), weights)
    parts = np.array([rows @ gap**2, rows @ lift**2, prevalence * (1 - prevalence)])
    by_gap = x[:, 0] - bins.risk[of_bin] - missed
    influence = np.column_stack(
        [
            gap[of_bin] ** 2 + 2 * gap[of_bin] * by_gap - parts[0],
            lift[of_bin] ** 2 + 2 * lift[of_bin] * missed - parts[1],
            (1 - 2 * prevalence) * (outcomes - prevalence),
        ]
    )
    signs = np.array([1.0, -1.0, 1.0])
    value = np.append(parts, brier - parts @ signs)
    influence = np.column_stack([influence, by_brier - influence @ signs[:, None]])

    def ends(level: float) -> tuple[Floats, Floats, Floats]:
        errors, number = standard_errors(influence, weights), equal_rows(weights[weights > 0])
        return brier_part_ends(value, errors, prevalence, number, level)

    return Measured(value, influence, BRIER_PARTS, ends=ends)


def brier_part_ends(
    values: Floats, errors: Floats, prevalence: float, rows: float, level: float
) -> tuple[Floats, Floats, Floats]:
    """Return the ends of intervals of the parts of the Brier score, and standard errors.

    Those of the uncertainty p(1 − p), which is flat at a half, are of all p in Wilson's interval.
    """
    low, high = ends_by_errors("plain", (-1.0, 1.0), values, errors, np.full(4, rows), level)
    ends = np.ravel(wilson_ends(np.array([prevalence]), np.array([rows]), level))
    parts = ends * (1 - ends)
    low[2], high[2] = parts.min(), 0.25 if ends[0] <= 0.5 <= ends[1] else parts.max()
    return low, high, errors


@measure(encode=encode.risk, bounds=(0.0, np.inf), scale="log")
def log_loss(x: Floats, weights: Floats, floor: float = FLOOR) -> Measured:
    """Mean of minus the logarithm of the risk that was predicted for what happened.

    Risks nearer than `floor` to 0 or 1 are moved there.
    """
    least = _checked_floor(floor, FLOOR)
    risks = np.clip(x[:, 0], least, 1 - least)
    loss, influence = _means(-np.where(x[:, 1] > 0, np.log(risks), np.log1p(-risks)), weights)
    return Measured(loss, influence)


@measure(encode=encode.risk, bounds=(0.0, np.inf), scale="log")
def observed_expected_ratio(x: Floats, weights: Floats) -> Measured:
    """Number of positive rows, divided by the sum of predicted risks."""
    observed, by_observed = _means(_outcomes(x), weights)
    expected, by_expected = _means(x[:, 0], weights)
    ratio = observed / expected
    return Measured(_defined(ratio), (by_observed - ratio * by_expected) / expected)


@measure(encode=encode.risk)
def calibration_in_the_large(x: Floats, weights: Floats, floor: float = 0.0) -> Measured:
    """Number to add to the logits of all risks so that as many positive rows are expected as there
    are.
    """
    z = risk_logits(x, weights, floor)
    _require_classes(x, weights)
    return _fitted(np.ones((len(x), 1)), z, x, weights)


@measure(encode=encode.risk)
def calibration_intercept(x: Floats, weights: Floats, floor: float = 0.0) -> Measured:
    """Intercept a of the recalibration logit(risk of a row) = a + b · logit(predicted risk)."""
    return _column(_recalibration(x, weights, floor), 0)


@measure(encode=encode.risk)
def calibration_slope(x: Floats, weights: Floats, floor: float = 0.0) -> Measured:
    """Slope b of the recalibration logit(risk of a row) = a + b · logit(predicted risk): 1 is best,
    less means risks that are too extreme.
    """
    return _column(_recalibration(x, weights, floor), 1)


@measure(encode=encode.risk, bounds=(0.0, 1.0), scale="share", axes=CURVE_AXES)
def calibration_curve(x: Floats, weights: Floats, groups: int = 10, cuts: Any = None) -> Measured:
    """Share of positive rows in bins of the predicted risk, at the mean risk of each bin.

    Bins hold equally many rows (`groups`), or are cut at the risks `cuts`.
    """
    bins = risk_bins(x, weights, groups, cuts)
    chosen = bins.place[:, None] == np.arange(len(bins.rows))
    gaps = _outcomes(x)[:, None] - bins.observed
    influence = chosen * gaps * (bins.rows.sum() / bins.rows)
    trials = bins.rows**2 / np.bincount(bins.place, weights**2, len(bins.rows))
    return Measured(bins.observed, influence, bins.labels, bins.risk, trials)


@measure(encode=encode.risk, bounds=(0.0, 1.0), scale="logit", axes=CURVE_AXES)
def smooth_calibration_curve(
    x: Floats, weights: Floats, risks: Any = None, floor: float = 0.0
) -> Measured:
    """Smooth calibration curve: the share of positive rows that is expected at a predicted risk.

    It is a logistic regression on a restricted cubic spline of the logit with three knots, at the
    risks below which 10 %, 50 % and 90 % of the rows are.
    """
    smooth = _Smooth.of(x, weights, floor)
    shown = shown_risks(x[:, 0], weights, risks)
    columns = spline(logit(shown, floor or FLOOR), smooth.knots)
    curve = expit(columns @ smooth.fit.coefficients)
    slopes = (curve * (1 - curve))[:, None] * columns
    both = (part @ slopes.T for part in _influences(smooth.columns, 0.0, smooth.fit, x, weights))
    influence, without = both
    labels, errors = tuple(f"risk {risk:g}" for risk in shown), standard_errors(without, weights)
    return Measured(curve, influence, labels, shown, errors=errors)


def shown_risks(found: Floats, weights: Floats, risks: Any) -> Floats:
    """Return the risks at which a smooth curve is shown; by default all over those of rows."""
    if risks is not None:
        return numbers_of("risks", risks, (0.0, 1.0))
    counted = found[weights > 0]
    return np.unique(np.linspace(counted.min(), counted.max(), PLACES))


@measure(encode=encode.risk, bounds=(0.0, 1.0))
def calibration_error(x: Floats, weights: Floats, floor: float = 0.0) -> Measured:
    """Distance of predicted risks from the smooth calibration curve: its mean over rows (ICI), its
    median, its 90 % quantile and its maximum.
    """
    smooth = _Smooth.of(x, weights, floor)
    found, distances = smooth.fit.coefficients, risk_distances(smooth.columns, x[:, 0], weights)

    def ends(level: float) -> tuple[Floats, Floats, Floats]:
        without = _influences(smooth.columns, 0.0, smooth.fit, x, weights)[1]
        return distance_ends(found, covariance_of(without, weights), distances, level)

    return Measured(distances(found), labels=ERRORS, ends=ends)


def risk_distances(columns: Floats, risks: Floats, weights: Floats) -> Callable[[Floats], Floats]:
    """Return the function from coefficients of a curve to the distances of risks from it."""

    def distances(coefficients: Floats) -> Floats:
        own = np.abs(expit(columns @ coefficients) - risks)
        middle, high = weighted_quantiles(own, weights, np.array([0.5, 0.9]))
        return np.array([weights @ own / weights.sum(), middle, high, own[weights > 0].max()])

    return distances


def covariance_of(influence: Floats, weights: Floats) -> Floats:
    """Return the covariance of values from what each row contributes to them, n × values."""
    parts, rows = weights[:, None] / weights.sum() * influence, int((weights > 0).sum())
    return np.asarray(parts.T @ parts * rows / max(rows - 1, 1))


def distance_ends(
    found: Floats, covariance: Floats, distances: Callable[[Floats], Floats], level: float
) -> tuple[Floats, Floats, Floats]:
    """Return the ends of intervals of distances from the smooth curve, and standard errors.

    The curve has the coefficients `found`. Upper ends are percentiles of the distances of curves
    whose coefficients are drawn from their normal distribution. Distances grow by chance: so lower
    ends are the least on the way to the coefficients of perfect calibration, as far as these lie
    in the region that holds all coefficients at this level. They are 0 unless Wald's test rejects
    perfect calibration.
    """
    try:
        root = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return (np.full(len(ERRORS), np.nan),) * 3
    rng = np.random.default_rng(SEED)
    draws = np.array([distances(found + root @ rng.normal(size=len(found))) for _ in range(DRAWS)])
    tails = np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    gap = np.eye(len(found))[1] - found
    reach = np.sqrt(
        chi_squared_quantile(level, len(found)) / (gap @ np.linalg.solve(covariance, gap))
    )
    way = [distances(found + share * gap) for share in np.linspace(0.0, min(reach, 1.0), STEPS)]
    low = np.minimum(tails[0], np.min(way, axis=0)) if reach < 1 else np.zeros(len(ERRORS))
    return low, np.maximum(tails[1], way[0]), draws.std(axis=0, ddof=1)


@measure(
    encode=encode.risk,
    bounds=(0.0, np.inf),
    no_interval="it is a test",
    no_weights="a test depends on the number of rows, which weights are not",
)
def hosmer_lemeshow(x: Floats, weights: Floats, groups: int = 10, cuts: Any = None) -> Measured:
    """Hosmer-Lemeshow test of calibration in bins of the risk: chi-squared, with as many degrees of
    freedom as there are bins, and its p-value.

    It depends on the choice of bins, and on the number of rows more than on how large the
    miscalibration is: see `calibration-curve` and `calibration-error` instead.
    """
    bins = risk_bins(x, weights, groups, cuts)
    chi = float(
        chi_squared_terms(bins.rows, bins.rows * bins.observed, bins.rows * bins.risk).sum()
    )
    if not np.isfinite(chi):
        reason = "all risks of a bin are 0 or all are 1, and not all came true"
        raise NumericalError(f"chi-squared is infinite: {reason}")
    p_value = chi_squared_tail(chi, len(bins.rows))
    return Measured(np.array([chi, p_value]), labels=("chi-squared", "p-value"))


def chi_squared_terms(rows: Floats, observed: Floats, expected: Floats) -> Floats:
    """Return (O − E)² / (E (n − E)/n) for bins; 0 where risks of 0 or 1 all came true."""
    gaps = rows * (observed - expected) ** 2
    return np.where(gaps == 0, 0.0, gaps / (expected * (rows - expected)))


class RiskBins(NamedTuple):
    """Bins of predicted risks, without empty ones."""

    place: Integers  # the bin of each row
    rows: Floats  # the weight of each bin's rows
    risk: Floats  # the mean risk of each bin
    observed: Floats  # the share of positive rows of each bin
    labels: tuple[str, ...]


def risk_bins(x: Floats, weights: Floats, groups: int, cuts: Any) -> RiskBins:
    """Return the bins of rows, of equally many (`groups`), or between risks (`cuts`)."""
    edges = bin_edges(x[:, 0], weights, groups, cuts)
    place = np.searchsorted(edges, x[:, 0], side="right")
    filled, place = np.unique(
        np.where(weights > 0, place, place[weights > 0][0]), return_inverse=True
    )
    place = place.reshape(-1)
    rows, risks, observed = (
        np.bincount(place, weights * part, len(filled)).astype(np.float64)
        for part in (np.ones(len(x)), x[:, 0], _outcomes(x))
    )
    labels = bin_labels(np.concatenate([[0.0], edges, [1.0]]), filled)
    return RiskBins(place, rows, risks / rows, observed / rows, labels)


def bin_edges(risks: Floats, weights: Floats, groups: int, cuts: Any) -> Floats:
    """Return the risks at which bins begin after the first one; each belongs to the bin after."""
    if cuts is not None:
        return numbers_of("cuts", cuts, (0.0, 1.0)) if np.size(cuts) else np.zeros(0)
    if not isinstance(groups, int | np.integer) or isinstance(groups, bool) or groups < 1:
        raise InputError(f"groups = {groups!r} must be a whole number of at least 1")
    counted = weights > 0
    shares = np.arange(1, groups) / groups
    # Just beyond the quantile, which belongs to the bin before the edge.
    quantiles = weighted_quantiles(risks[counted], weights[counted], shares)
    return np.unique(np.nextafter(quantiles, np.inf))


def bin_labels(ends: Floats, shown: Integers) -> tuple[str, ...]:
    """Return the names of bins, between ends."""
    return tuple(f"risk {ends[k]:.3g} to {ends[k + 1]:.3g}" for k in shown)


def risk_logits(x: Floats, weights: Floats, floor: float) -> Floats:
    """Return the logits of risks; an error if a risk is 0 or 1 and `floor` is 0."""
    risks, least = np.where(weights > 0, x[:, 0], 0.5), _checked_floor(floor, 0.0)
    extreme = (risks == 0) | (risks == 1)
    if extreme.any() and least == 0:
        raise NumericalError(
            f"predicted risks of 0 or 1 have no logit, {int(extreme.sum())} rows have one",
            remedy="move them to 0.000001 or 0.999999 with floor=1e-6 (-o floor=1e-6)",
        )
    return logit(risks, least)


class _Smooth(NamedTuple):
    """The smooth calibration curve of rows."""

    knots: Floats
    columns: Floats  # of the spline, of each row
    fit: Fit

    @classmethod
    def of(cls, x: Floats, weights: Floats, floor: float) -> _Smooth:
        z = risk_logits(x, weights, floor)
        _require_overlap(z, x, weights)
        knots = distinct_knots(weighted_quantiles(z, weights, KNOTS))
        columns = spline(z, knots)
        return cls(knots, columns, fit(columns, columns.T @ (weights * _outcomes(x)), weights))


def distinct_knots(knots: Floats) -> Floats:
    """Return the knots of a spline, or none where some are the same, which leaves a line."""
    return knots if (np.diff(knots) > 0).all() else knots[:0]


def _recalibration(x: Floats, weights: Floats, floor: float) -> Measured:
    """Return the intercept and the slope of the logistic recalibration."""
    z = risk_logits(x, weights, floor)
    _require_overlap(z, x, weights)
    return _fitted(np.column_stack([np.ones(len(z)), z]), 0.0, x, weights)


def _fitted(design: Floats, offset: Floats | float, x: Floats, weights: Floats) -> Measured:
    """Return the coefficients of a logistic regression of the class."""
    found = fit(design, design.T @ (weights * _outcomes(x)), weights, offset)
    influence, without = _influences(design, offset, found, x, weights)
    return Measured(found.coefficients, influence, errors=standard_errors(without, weights))


def _influences(
    design: Floats, offset: Floats | float, found: Fit, x: Floats, weights: Floats
) -> tuple[Floats, Floats]:
    """Return the influence of each row on the coefficients, n × k, and that of leaving it out.

    The second one gives the standard error of the jackknife (HC3), which covers also where few rows
    are positive.
    """
    fitted = offset + design @ found.coefficients
    inverse = np.linalg.inv(found.information / weights.sum())
    influence = (design * (_outcomes(x) - expit(fitted))[:, None]) @ inverse
    return influence, influence / (1 - leverages(design, weights, fitted, found))[:, None]


def _column(measured: Measured, k: int) -> Measured:
    assert measured.influence is not None
    assert measured.errors is not None
    errors = measured.errors[[k]]
    return Measured(measured.value[[k]], measured.influence[:, [k]], errors=errors)


def _require_classes(x: Floats, weights: Floats) -> None:
    if not np.ptp(x[weights > 0, 1]) > 0:
        raise NumericalError(ONE_CLASS)


def _require_overlap(z: Floats, x: Floats, weights: Floats) -> None:
    """Raise an error if there is no best line: there is one unless a threshold separates rows."""
    _require_classes(x, weights)
    counted = weights > 0
    if not np.ptp(z[counted]) > 0:
        raise NumericalError("all predicted risks are the same, which gives no slope")
    positive, negative = z[counted & (x[:, 1] > 0)], z[counted & (x[:, 1] < 0)]
    if positive.min() >= negative.max() or positive.max() <= negative.min():
        raise NumericalError(SEPARATED)


def _checked_floor(floor: float, least: float) -> float:
    is_number = isinstance(floor, int | float | np.number) and not isinstance(floor, bool)
    if not is_number or not least <= floor < 0.5:
        raise InputError(
            f"floor = {floor!r} must be a number from {least:g} up to 0.5, such as 1e-6"
        )
    return float(floor)


def _outcomes(x: Floats) -> Floats:
    """Return 1 for rows of the positive class, 0 for others."""
    return np.where(x[:, 1] > 0, 1.0, 0.0)


def _squared_errors(x: Floats) -> Floats:
    return np.asarray((_outcomes(x) - x[:, 0]) ** 2)


def _means(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the weighted mean of a number of rows, and the influence of each row on it."""
    mean = float(weights @ values / weights.sum())
    return np.array([mean]), (values - mean)[:, None]


def _defined(value: Floats) -> Floats:
    return np.where(np.isfinite(value), value, np.nan)
