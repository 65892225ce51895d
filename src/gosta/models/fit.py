"""The fit of a regression model: coefficients, their errors, and what was fitted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, nan
from typing import TYPE_CHECKING

import numpy as np

from gosta.models.arithmetic import exp
from gosta.runtime.arrays import Floats, project
from gosta.statistics.distributions import difference_p, student_quantile

if TYPE_CHECKING:
    from gosta.datasets.data import Data
    from gosta.models.definition import Model


@dataclass(frozen=True)
class Baseline:
    """The hazard of rows whose columns are all at their means, in one stratum."""

    stratum: str  # its name; "" if there are none
    times: Floats  # of events, or where bins of time begin
    events: Floats  # at each of these times
    hazard: Floats  # the step of the cumulative hazard at each

    @property
    def cumulative(self) -> Floats:
        """The cumulative hazard at each time."""
        return np.cumsum(self.hazard)

    @property
    def survival(self) -> Floats:
        """The share without an event after each time."""
        return np.asarray(exp(-self.cumulative))


@dataclass(frozen=True)
class Fit:
    """The coefficients of a model, with their standard errors."""

    model: Model
    names: tuple[str, ...]  # of the coefficients; the intercept first, if there is one
    coefficients: Floats  # by one unit of each column
    covariance: Floats  # of the coefficients, if the model holds
    robust_covariance: Floats | None  # if it need not hold (sandwich); None: not known
    n: int  # rows
    events: int | None  # rows of the positive class, or with an event; None: there are no such
    rounds: int  # in which sums over rows were taken
    means: Floats = field(default_factory=lambda: np.zeros(0))  # of the design's columns
    log_likelihood: float = nan
    null_log_likelihood: float = nan  # of the model without columns
    scale: float = nan  # standard deviation of residuals of a linear model
    degrees: float = inf  # of freedom of the standard errors
    level: float = 0.95  # of intervals
    baselines: tuple[Baseline, ...] = ()  # of a Cox model, one for each stratum
    robust_by: str = ""  # the column of groups of rows that robust errors allow to be dependent
    warnings: tuple[str, ...] = ()  # what to have a look at, one sentence each

    def robust(self) -> Fit:
        """Return the fit whose standard errors are the robust ones."""
        assert self.robust_covariance is not None
        return replace(self, covariance=self.robust_covariance)

    @cached_property
    def standard_errors(self) -> Floats:
        """Standard errors of the coefficients."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def z(self) -> Floats:
        """Coefficients divided by their standard errors."""
        return np.asarray(self.coefficients / self.standard_errors)

    @property
    def p_values(self) -> Floats:
        """Two-sided p-values of no effect."""
        both = zip(self.coefficients.tolist(), self.standard_errors.tolist(), strict=True)
        return np.array([difference_p(value, error, self.degrees) for value, error in both])

    @property
    def low(self) -> Floats:
        """Lower ends of the intervals."""
        return np.asarray(self.coefficients - self._reach)

    @property
    def high(self) -> Floats:
        """Upper ends of the intervals."""
        return np.asarray(self.coefficients + self._reach)

    @property
    def _reach(self) -> Floats:
        return np.asarray(student_quantile(self.level, self.degrees) * self.standard_errors)

    @property
    def ratios(self) -> Floats:
        """Odds, rate or hazard ratios by one unit of each column."""
        return exp(self.coefficients)

    @property
    def aic(self) -> float:
        """Akaike's information criterion."""
        return 2 * len(self.names) - 2 * self.log_likelihood

    def linear_predictor(self, data: Data) -> Floats:
        """Return the sum of coefficients times columns, of each row."""
        design = self.model.design
        slopes = self.coefficients[len(self.names) - len(design.names) :]
        columns = design.low + design.encode(data) * (design.high - design.low)
        if not self.model.has_intercept:
            return project(columns - self.means, slopes[None])[:, 0]
        return np.asarray(self.coefficients[0] + project(columns, slopes[None])[:, 0])

    def predict(self, data: Data) -> Floats:
        """Return for each row the probability of the positive class (logistic), the expected
        value (linear, Poisson), the hazard against that of mean columns (Cox), or the score (auc).
        """
        return self.model.mean(self.linear_predictor(data))
