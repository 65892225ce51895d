"""Generalised linear models: linear, logistic and Poisson regression."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import DataError, InputError, NumericalError
from gosta.models.arithmetic import dot, exp, expit, log, product, softplus, solve, symmetric
from gosta.models.definition import PENALTY, Derivatives, Found, Model, State, binary_columns, model
from gosta.models.fit import Fit
from gosta.models.scale import Scale
from gosta.models.terms import Term
from gosta.runtime.arrays import Floats

NEAR_NORMAL = 1.702  # expit of this times x is nearly the share of a normal distribution below x
MORE_REACH = 3.0  # times as many standard deviations, where rows are beyond
MOST_ABOVE = 300.0  # their mean are linear predictors: exp of those far below is not 0 in floats
# Added to counts where a Poisson model starts from them, as their logarithms.
STARTING_COUNT = 0.1
LEAST_SPREAD = 2.0**-36  # of an outcome, as a share of its range: with less, all rows have the same
FACTORIALS = np.concatenate([[0.0], np.cumsum(log(np.arange(1.0, 257.0)))])  # their logarithms


class Bounded(NamedTuple):
    """Residuals from −1 to 1, and weights from 0 to 1, in units of `Weighted.bounds`."""

    residuals: Floats
    weights: Floats


@dataclass(frozen=True, kw_only=True)
class Regression(Model):
    """A model whose expected outcome is a function of a sum of coefficients times columns."""

    outcome: str  # the column

    @property
    def response_columns(self) -> tuple[str, ...]:
        return (self.outcome,)

    def moment_terms(self, columns: Floats, response: Floats) -> list[Term]:
        """Sum the outcome, and its products with columns."""
        return [Term(response[:, 0], columns, 1)]

    @abstractmethod
    def null(self, mean: float, moments: list[Floats]) -> tuple[float, float, float]:
        """Return intercept, loss and second derivative of a row's loss of the model without
        columns; an error if the outcome is the same in all rows.
        """

    def outcome_sums(self, moments: list[Floats]) -> Floats:
        """Return the sums of the outcome and of its products with columns."""
        return moments[1]

    def start(self, scale: Scale, moments: list[Floats]) -> State:
        """Take a step from the model without columns."""
        products = self.outcome_sums(moments)
        mean = float(products[0]) / scale.n
        intercept, loss, curvature = self.null(mean, moments)
        null = np.append(intercept, np.zeros(len(scale.mean)))
        ones = symmetric(moments[0], len(null))[0]
        hessian = np.eye(len(null))
        hessian[1:, 1:] = scale.correlations
        hessian = curvature * scale.n * hessian + np.diag(self.penalty * self.penalised_places)
        gradient = scale.gradient(mean * ones - products)
        factor = self.factor(hessian)
        step = -solve(factor, gradient)
        return State(
            coefficients=tuple((null + step).tolist()),
            base=tuple(null.tolist()),
            base_loss=loss,
            null_loss=loss,
            slope=dot(gradient, step),
            root=tuple(factor.ravel().tolist()),
        )

    def ends(self, state: State) -> tuple[float, float]:
        """Return the least and the largest linear predictor that columns within ranges give."""
        intercept, *slopes = self.share_coefficients(state).tolist()
        low = intercept + math.fsum(min(slope, 0.0) for slope in slopes)
        return low, intercept + math.fsum(max(slope, 0.0) for slope in slopes)

    def of_losses(
        self, scale: Scale, loss: float, gradient: Floats, hessian: Floats
    ) -> Derivatives:
        """Return derivatives by coefficients of standardised columns for those of shares."""
        return Derivatives(loss, scale.gradient(gradient), scale.second(hessian))

    def log_likelihoods(self, found: Found) -> tuple[float, float]:
        """Return the log-likelihood, and that without columns."""
        return -found.last.loss, -found.state.null_loss

    def covariance_factor(self, found: Found) -> float:
        """Return what the inverse of second derivatives is multiplied by."""
        return 1.0

    def fitted(self, found: Found) -> Fit:
        """Return the fit in units of the data."""
        scale, design = found.scale, self.design
        widths = design.high - design.low
        unit, offset = self.outcome_unit
        # From coefficients of standardised columns to those of columns.
        to_units = np.diag(np.append(1.0, 1 / (scale.deviation * widths)))
        to_units[0, 1:] = -(design.low + scale.mean * widths) / (scale.deviation * widths)
        to_units = to_units * unit
        coefficients = product(to_units, found.coefficients[:, None])[:, 0]
        coefficients[0] += offset
        likelihood, null = self.log_likelihoods(found)
        robust = None
        if found.products is not None:
            robust = product(product(to_units, found.sandwich(found.products)), to_units.T)
        covariance = self.covariance_factor(found) * found.inverse
        return Fit(
            self,
            self.coefficient_names,
            coefficients,
            product(product(to_units, covariance), to_units.T),
            robust,
            round(scale.n),
            self.event_count(found.moments),
            found.state.rounds,
            design.low + scale.mean * widths,
            likelihood,
            null,
            scale=self.residual_deviation(found),
            degrees=self.degrees(found),
            level=found.level,
        )

    def residual_deviation(self, found: Found) -> float:
        """Return the standard deviation of residuals."""
        return math.nan

    def degrees(self, found: Found) -> float:
        """Return the degrees of freedom of standard errors."""
        return math.inf


class Weighted(Regression):
    """A model whose residuals have variances that are functions of what is expected."""

    noisy_rounds: ClassVar[int] = 4

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """The largest residual, and the largest weight of a row in second derivatives."""

    @abstractmethod
    def bounded(self, response: Floats, predictors: Floats) -> Bounded:
        """Return what a step with noise sums, whatever the linear predictors."""

    @abstractmethod
    def linked(self, mean: float) -> tuple[float, float]:
        """Return intercept and weight of rows of the model without columns."""


@model("logistic", "logistic regression", "odds ratio")
@dataclass(frozen=True, kw_only=True)
class Logistic(Weighted):
    """The log odds of the positive class are a sum of coefficients times columns."""

    validation: ClassVar[str] = "auc,brier-score,calibration-intercept,calibration-slope"

    classes: tuple[Any, ...] = ()  # of the outcome, in order, the positive one last
    positive: Any = None  # the positive class; None: the last one

    def response(self, data: Data) -> Floats:
        return positives(data, self.outcome, self.classes, self.positive)

    def mean(self, predictor: Floats) -> Floats:
        return expit(predictor)

    def null(self, mean: float, moments: list[Floats]) -> tuple[float, float, float]:
        n = float(moments[0][0])
        require_classes(n, n * mean, self.outcome)
        if self.penalty == 0:
            self._check_separating(moments)
        loss = -n * (mean * float(log(mean)) + (1 - mean) * float(log(1 - mean)))
        intercept, weight = self.linked(mean)
        return intercept, loss, weight

    def linked(self, mean: float) -> tuple[float, float]:
        return float(log(mean / (1 - mean))), mean * (1 - mean)

    @property
    def bounds(self) -> tuple[float, float]:
        return 1.0, 0.25

    def bounded(self, response: Floats, predictors: Floats) -> Bounded:
        risks = expit(predictors)
        return Bounded(response - risks, 4 * risks * (1 - risks))

    def _check_separating(self, moments: list[Floats]) -> None:
        """Raise an error if a column of 0 and 1 determines the class of rows with one value."""
        sums = symmetric(moments[0], len(moments[1]))
        n, positive = sums[0, 0], moments[1][0]
        for place, name in binary_columns(sums, self.design.names):
            ones, both = sums[0, place], moments[1][place]
            least = min(both, ones - both, positive - both, n - positive - ones + both)
            if least < 0.25:
                raise NumericalError(
                    f"column {name} of the model has the same value in all rows of a class, or all "
                    "rows with one of its values are in one class: there is no best fit",
                    remedy=f"leave it out, or {PENALTY}",
                )

    def no_optimum(self, names: str) -> NumericalError:
        which = f"; those of {names} do most" if names else ""
        return NumericalError(
            "the columns separate the classes, or all but do, so there is no best fit: "
            f"coefficients grow without end{which}",
            remedy=PENALTY,
        )

    def not_found(self, names: str) -> NumericalError:
        is_separated = names and self.penalty == 0
        return self.no_optimum(names) if is_separated else super().not_found(names)

    def step_terms(self, columns: Floats, response: Floats, state: State) -> list[Term]:
        """Sum the losses, risks p, and p(1 − p), with columns and their products."""
        predictors = self.predictor(columns, state)
        risks = expit(predictors)
        most = float(softplus(self.ends(state)[1]))
        losses = np.clip(softplus(predictors) / most, 0.0, 1.0)
        return [
            Term(losses, columns, 0),
            Term(risks, columns, 1),
            Term(4 * risks * (1 - risks), columns, 2),
        ]

    def derivatives(self, state: State, scale: Scale, parts: list[Floats]) -> Derivatives:
        sums = self.outcome_sums(self.moments(state))
        most = float(softplus(self.ends(state)[1]))
        loss = most * float(parts[0][0]) - dot(sums, self.share_coefficients(state))
        # A row on the wrong side loses more than log 2.
        if loss < 0.5 and self.penalty == 0:
            raise self.no_optimum("")
        hessian = symmetric(parts[2] / 4, len(sums))
        return self.of_losses(scale, loss, parts[1] - sums, hessian)

    def scores(self, columns: Floats, response: Floats, state: State) -> Floats:
        residuals = response[:, 0] - expit(self.predictor(columns, state))
        return np.asarray(residuals[:, None] * columns)

    def event_count(self, moments: list[Floats]) -> int | None:
        return round(float(moments[1][0]))


@model("linear", "linear regression")
@dataclass(frozen=True, kw_only=True)
class Linear(Regression):
    """The expected outcome is a sum of coefficients times columns.

    The loss is half the sum of squared residuals, as shares of the outcome's range.
    """

    validation: ClassVar[str] = "r-squared"
    noisy_rounds: ClassVar[int] = 1

    low: float  # the range of the outcome
    high: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not -math.inf < self.low < self.high < math.inf:
            raise InputError(
                f"range of {self.outcome!r} = {self.low:g}:{self.high:g}: the first must be less "
                "than the second"
            )

    @classmethod
    def completed(cls, data: Data, options: dict[str, Any]) -> dict[str, Any]:
        values = data.to_floats([options["outcome"]]) if "outcome" in options else np.arange(2.0)
        ends = {"low": float(np.nanmin(values)), "high": float(np.nanmax(values))}
        if ends["low"] == ends["high"] and "low" not in options:
            raise DataError(f"outcome {options['outcome']!r} is the same in all rows")
        return {**ends, **options}

    def response(self, data: Data) -> Floats:
        values = data.to_floats([self.outcome])
        return np.asarray(np.clip((values - self.low) / (self.high - self.low), 0.0, 1.0))

    def mean(self, predictor: Floats) -> Floats:
        return predictor

    def moment_terms(self, columns: Floats, response: Floats) -> list[Term]:
        return [*super().moment_terms(columns, response), Term(response[:, 0] ** 2, columns, 0)]

    def null(self, mean: float, moments: list[Floats]) -> tuple[float, float, float]:
        n = float(moments[0][0])
        variance = float(moments[2][0]) / n - mean * mean
        if variance < LEAST_SPREAD:
            raise DataError(f"outcome {self.outcome!r} is the same in all rows")
        return mean, n * variance / 2, 1.0

    def start(self, scale: Scale, moments: list[Floats]) -> State:
        """Solve the normal equations; the next round refines the solution."""
        found = super().start(scale, moments)
        variance = 2 * (found.base_loss + found.slope / 2) / scale.n  # of residuals
        spread = found.spread * math.sqrt(max(variance, LEAST_SPREAD))
        return replace(found, is_last=True, spread=spread)

    def _largest(self, state: State) -> float:
        """Return the largest residual that values within ranges can have."""
        low, high = self.ends(state)
        return max(high, 1 - low, 1e-6)

    def step_terms(self, columns: Floats, response: Floats, state: State) -> list[Term]:
        """Sum squared residuals, and residuals with columns."""
        shares = self._residuals(columns, response, state) / self._largest(state)
        return [
            Term(np.clip(shares**2, 0.0, 1.0), columns, 0),
            Term(np.clip((1 + shares) / 2, 0.0, 1.0), columns, 1),
        ]

    def _residuals(self, columns: Floats, response: Floats, state: State) -> Floats:
        return np.asarray(response[:, 0] - self.predictor(columns, state))

    def derivatives(self, state: State, scale: Scale, parts: list[Floats]) -> Derivatives:
        most, moments = self._largest(state), self.moments(state)
        products = symmetric(moments[0], len(parts[1]))
        gradient = -most * (2 * parts[1] - products[0])
        return self.of_losses(scale, most**2 * float(parts[0][0]) / 2, gradient, products)

    def scores(self, columns: Floats, response: Floats, state: State) -> Floats:
        residuals = self._residuals(columns, response, state)
        return np.asarray(residuals[:, None] * columns)

    @property
    def outcome_unit(self) -> tuple[float, float]:
        return self.high - self.low, self.low

    def log_likelihoods(self, found: Found) -> tuple[float, float]:
        n, losses = found.scale.n, [-one for one in super().log_likelihoods(found)]
        variances = [2 * one / n * self.outcome_unit[0] ** 2 for one in losses]
        model, null = (
            -n / 2 * (math.log(2 * math.pi * one) + 1) if one > 0 else math.inf for one in variances
        )
        return model, null

    def degrees(self, found: Found) -> float:
        return max(found.scale.n - len(self.coefficient_names), 1.0)

    def covariance_factor(self, found: Found) -> float:
        return 2 * found.last.loss / self.degrees(found)

    def residual_deviation(self, found: Found) -> float:
        return self.outcome_unit[0] * math.sqrt(self.covariance_factor(found))


@model("poisson", "Poisson regression", "rate ratio")
@dataclass(frozen=True, kw_only=True)
class Poisson(Weighted):
    """The logarithm of the expected count is a sum of coefficients times columns."""

    high: float  # the largest count that a row can have

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.high < 2**31:
            raise InputError(f"range of {self.outcome!r} = 0:{self.high:g} must end at 1 or above")

    @classmethod
    def completed(cls, data: Data, options: dict[str, Any]) -> dict[str, Any]:
        values = data.to_floats([options["outcome"]]) if "outcome" in options else np.ones(1)
        return {"high": max(float(np.nanmax(values)), 1.0), **options}

    def response(self, data: Data) -> Floats:
        counts = data.to_floats([self.outcome])
        known = counts[~np.isnan(counts)]
        if (known < 0).any() or (known % 1 != 0).any():
            worst = known[(known < 0) | (known % 1 != 0)][0]
            raise DataError(
                f"outcome {self.outcome!r} holds {worst:g} where counts are needed",
                remedy="use the linear model",
            )
        return np.minimum(counts / self.high, 1.0)

    def mean(self, predictor: Floats) -> Floats:
        return exp(predictor)

    def moment_terms(self, columns: Floats, response: Floats) -> list[Term]:
        """Sum also logarithms of factorials, and what the start needs."""
        counts = np.rint(response[:, 0] * self.high)
        factorials = np.minimum(log_factorials(counts) / self._most_factorial, 1.0)
        counts = counts + STARTING_COUNT
        low, high = self._ends_of_start
        logs = np.clip((counts * log(counts) - low) / (high - low), 0.0, 1.0)
        return [
            *super().moment_terms(columns, response),
            Term(factorials, columns, 0),
            Term(counts / (self.high + STARTING_COUNT), columns, 2),
            Term(logs, columns, 1),
        ]

    @property
    def _most_factorial(self) -> float:
        return max(float(log_factorials(np.array([self.high]))[0]), 1.0)

    @property
    def _ends_of_start(self) -> tuple[float, float]:
        """Return the least and the largest count times its logarithm, of those to start from."""
        few, many = STARTING_COUNT, self.high + STARTING_COUNT
        return few * float(log(few)), many * float(log(many))

    def start(self, scale: Scale, moments: list[Floats]) -> State:
        """Fit the logarithms of counts by least squares, weighted by the counts.

        If the likelihood does not grow on the way there, take a step of Newton's method.
        """
        newton, (low, high) = super().start(scale, moments), self._ends_of_start
        ones = symmetric(moments[0], len(moments[1]))[0]
        weighted = symmetric(moments[3] * (self.high + STARTING_COUNT), len(ones))
        logs = (high - low) * moments[4] + low * ones - STARTING_COUNT * ones
        hessian = scale.second(weighted) + np.diag(self.penalty * self.penalised_places)
        found = solve(self.factor(hessian), scale.gradient(logs))
        products = self.outcome_sums(moments)
        gradient = scale.gradient(products[0] / scale.n * ones - products)
        slope = dot(gradient, found - np.array(newton.base))
        if slope >= 0:
            return newton
        return replace(newton, coefficients=tuple(found.tolist()), slope=slope)

    def outcome_sums(self, moments: list[Floats]) -> Floats:
        return moments[1] * self.high

    def null(self, mean: float, moments: list[Floats]) -> tuple[float, float, float]:
        n = float(moments[0][0])
        if n * mean < 0.5:
            raise DataError(f"outcome {self.outcome!r} is 0 in all rows")
        intercept, weight = self.linked(mean)
        return intercept, n * mean * (1 - intercept), weight

    def linked(self, mean: float) -> tuple[float, float]:
        return float(log(mean)), mean

    @property
    def bounds(self) -> tuple[float, float]:
        return self.high, self.high

    def bounded(self, response: Floats, predictors: Floats) -> Bounded:
        """Count more than the largest count as that."""
        shares = np.minimum(exp(predictors) / self.high, 1.0)
        return Bounded(response - shares, shares)

    def limit(self, state: State) -> float:
        """Return the largest linear predictor that rows are expected to have."""
        return predictor_limit(state, self.scale(state), self.ends(state)[1])

    def step_terms(self, columns: Floats, response: Floats, state: State) -> list[Term]:
        """Count rows beyond the limit, and sum expected counts with products of columns."""
        predictors, limit = self.predictor(columns, state), self.limit(state)
        is_beyond = predictors > limit
        counts = np.minimum(exp(predictors - limit), 1.0)
        return [Term(is_beyond.astype(np.float64), columns, 0), Term(counts, columns, 2)]

    def derivatives(self, state: State, scale: Scale, parts: list[Floats]) -> Derivatives | State:
        if parts[0][0] > 0.5:
            return farther(state)
        sums = self.outcome_sums(self.moments(state))
        hessian = float(exp(self.limit(state))) * symmetric(parts[1], len(sums))
        loss = hessian[0, 0] - dot(sums, self.share_coefficients(state))
        return self.of_losses(scale, loss, hessian[0] - sums, hessian)

    def scores(self, columns: Floats, response: Floats, state: State) -> Floats:
        residuals = response[:, 0] * self.high - exp(self.predictor(columns, state))
        return np.asarray(residuals[:, None] * columns)

    def log_likelihoods(self, found: Found) -> tuple[float, float]:
        rest = self._most_factorial * float(found.moments[2][0])
        model, null = super().log_likelihoods(found)
        return model - rest, null - rest

    def event_count(self, moments: list[Floats]) -> int | None:
        return round(float(self.outcome_sums(moments)[0]))


def positives(data: Data, outcome: str, classes: tuple[Any, ...], positive: Any) -> Floats:
    """Return 1 for rows of the positive class and 0 for others, n × 1; NaN where it is missing."""
    labelled = replace(data.select(label=outcome), declared_classes=tuple(classes))
    return np.asarray((labelled.class_signs(positive)[:, None] + 1) / 2)


def require_classes(n: float, positive: float, outcome: str) -> None:
    """Raise an error unless there are rows of both classes."""
    if min(positive, n - positive) < 0.5:
        which = "negative" if positive > 0.5 else "positive"
        raise DataError(
            f"outcome {outcome!r}: no row over all sites is {which}, so nothing can be fitted"
        )


def predictor_limit(state: State, scale: Scale, most: float) -> float:
    """Return the largest linear predictor that rows are expected to have, at most `most`."""
    slopes = np.array(state.coefficients[-len(scale.mean) :])
    variance = predictor_variance(slopes, scale)
    mean = state.coefficients[0] if len(state.coefficients) > len(slopes) else 0.0
    above = min(state.reach * math.sqrt(max(variance, 0.0)), MOST_ABOVE) if variance > 0 else 0.0
    return min(most, mean + above) + 1e-9


def predictor_variance(slopes: Floats, scale: Scale) -> float:
    """Return the variance of linear predictors over rows."""
    return dot(slopes, product(scale.correlations, slopes[:, None])[:, 0])


def spread_evenly(predictors: Floats, state: State, scale: Scale) -> Floats:
    """Return linear predictors in the same order, from 0 to 1, about equally many everywhere."""
    variance = predictor_variance(np.array(state.coefficients), scale)
    return expit(NEAR_NORMAL * predictors / math.sqrt(variance) if variance > 0 else predictors)


def farther(state: State) -> State:
    """Return a state that expects larger linear predictors."""
    return replace(state, reach=MORE_REACH * state.reach)


def log_factorials(counts: Floats) -> Floats:
    """Return the logarithms of factorials of whole numbers."""
    few = np.minimum(counts, len(FACTORIALS) - 1.0)
    large = np.maximum(counts, len(FACTORIALS) - 1.0)
    logs = log(large)
    series = (large + 0.5) * logs - large + 0.5 * math.log(2 * math.pi)
    series = series + 1 / (12 * large) - 1 / (360 * large**3)
    exact = FACTORIALS[np.where(np.isnan(few), 0, few).astype(np.int64)]
    return np.asarray(np.where(counts < len(FACTORIALS), exact, series))
