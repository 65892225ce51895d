"""A score for the area under the ROC curve: the squared loss over pairs of classes.

The loss of a row of the positive class and one of the negative class is half the square of 1 less
the difference of their scores. Its mean over all pairs is a function of the means and covariances
of the two classes, so the best score follows from the moments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gosta.datasets.data import Data
from gosta.models.arithmetic import dot, product, solve, symmetric
from gosta.models.definition import Derivatives, Found, Model, State, model
from gosta.models.fit import Fit
from gosta.models.regression import positives, require_classes, spread_evenly
from gosta.models.scale import Scale
from gosta.models.terms import Term
from gosta.runtime.arrays import Floats, project

SPREAD = State().spread


class Classes(NamedTuple):
    """Moments of the negative and the positive class, in shares of ranges."""

    n: Floats
    means: Floats  # classes × columns
    covariances: Floats  # classes × columns × columns

    @property
    def gap(self) -> Floats:
        """Return the mean of the positive class less that of the negative one."""
        return np.asarray(self.means[1] - self.means[0])


@model("auc", "linear score for the AUC")
@dataclass(frozen=True, kw_only=True)
class Ranking(Model):
    """A score whose differences between rows of two classes are as near to 1 as they can be.

    The penalty is added to the mean over pairs, not to a sum over rows.
    """

    has_intercept: ClassVar[bool] = False
    noisy_rounds: ClassVar[int] = 1
    validation: ClassVar[str] = "auc"

    outcome: str  # the column of classes
    classes: tuple[Any, ...] = ()  # in order, the positive one last
    positive: Any = None  # the positive class; None: the last one

    @property
    def response_columns(self) -> tuple[str, ...]:
        return (self.outcome,)

    def response(self, data: Data) -> Floats:
        return positives(data, self.outcome, self.classes, self.positive)

    def mean(self, predictor: Floats) -> Floats:
        return predictor

    def validation_score(self, predictors: Floats, state: State) -> Floats:
        return spread_evenly(predictors, state, self.scale(state))

    def moment_terms(self, columns: Floats, response: Floats) -> list[Term]:
        """Sum products of columns over the positive class."""
        return [Term(response[:, 0], columns, 2)]

    def by_class(self, moments: list[Floats]) -> Classes:
        """Return the moments of both classes."""
        sums = symmetric(np.stack([moments[0] - moments[1], moments[1]]), self.width + 1)
        n = sums[:, 0, 0]
        means = sums[:, 0, 1:] / n[:, None]
        squares = means[:, :, None] * means[:, None, :]
        return Classes(n, means, sums[:, 1:, 1:] / n[:, None, None] - squares)

    @property
    def width(self) -> int:
        """How many columns the design has."""
        return len(self.design.names)

    def start(self, scale: Scale, moments: list[Floats]) -> State:
        """Solve the normal equations; the next round is for standard errors."""
        require_classes(scale.n, float(moments[1][0]), self.outcome)
        loss = self._quadratic(moments, scale, np.zeros(self.width))
        factor = self.factor(loss.hessian + self.penalty * np.eye(self.width))
        step = -solve(factor, loss.gradient)
        fewest = min(float(moments[1][0]), scale.n - float(moments[1][0]))
        return State(
            coefficients=tuple(step.tolist()),
            base=(0.0,) * self.width,
            base_loss=loss.loss,
            null_loss=loss.loss,
            slope=dot(loss.gradient, step),
            root=tuple(factor.ravel().tolist()),
            # A row's derivative is divided by the rows of its class.
            spread=SPREAD * math.sqrt(scale.n) / fewest,
            is_last=True,
        )

    def _quadratic(self, moments: list[Floats], scale: Scale, at: Floats) -> Derivatives:
        """Return the mean loss over pairs, and its derivatives."""
        classes = self.by_class(moments)
        gap = classes.gap / scale.deviation
        spread = (classes.covariances[0] + classes.covariances[1]) / np.multiply.outer(
            scale.deviation, scale.deviation
        )
        hessian = spread + np.multiply.outer(gap, gap)
        gradient = product(hessian, at[:, None])[:, 0] - gap
        return Derivatives(0.5 + dot(at, gradient - gap) / 2, gradient, hessian)

    def step_terms(self, columns: Floats, response: Floats, state: State) -> list[Term]:
        """Sum nothing else: the moments say all."""
        return []

    def derivatives(self, state: State, scale: Scale, parts: list[Floats]) -> Derivatives:
        return self._quadratic(self.moments(state), scale, np.array(state.coefficients))

    def scores(self, columns: Floats, response: Floats, state: State) -> Floats:
        """Return derivatives of each row's mean loss over pairs, of which 1 in n is its own."""
        scale, classes = self.scale(state), self.by_class(self.moments(state))
        coefficients = np.array(state.coefficients) / scale.deviation
        signs = 2 * response - 1
        own = response[:, 0].astype(np.int64)
        gaps = signs * (columns[:, 1:] - classes.means[1 - own])
        left = 1 - project(gaps, coefficients[None])
        others = np.array(
            [product(one, coefficients[:, None])[:, 0] for one in classes.covariances]
        )
        shrunk = self.penalty * np.array(state.coefficients) * scale.deviation
        found = (gaps * left - others[1 - own] - shrunk) / classes.n[own, None]
        return np.column_stack([np.zeros(len(found)), found])

    def fitted(self, found: Found) -> Fit:
        """Return the fit in units of the data, with robust errors only: there is no likelihood."""
        fit = self.without_intercept(found)
        nothing = np.full((self.width, self.width), math.nan)
        robust = nothing if fit.robust_covariance is None else fit.robust_covariance
        return replace(
            fit, covariance=robust, log_likelihood=math.nan, null_log_likelihood=math.nan
        )

    def event_count(self, moments: list[Floats]) -> int | None:
        return round(float(moments[1][0]))
