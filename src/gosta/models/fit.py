"""The fit of a regression model: coefficients, their errors, and what was fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import expm1, inf, isfinite, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from gosta.datasets import load
from gosta.errors import InputError
from gosta.models import showing
from gosta.models.arithmetic import exp
from gosta.runtime.arrays import Floats, project
from gosta.statistics.distributions import difference_p, student_quantile
from gosta.views import plots

if TYPE_CHECKING:
    from gosta.models.definition import Model
    from gosta.sketches.results import StratumResult
    from gosta.statistics.estimate import Estimate


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
    """The coefficients of a model, with their standard errors.

    Examples
    --------
    >>> import gosta
    >>> found = gosta.fit("breast-cancer", columns=["mean radius"])
    >>> print(found.summary())  # doctest: +ELLIPSIS
    Logistic regression of diagnosis (malignant, against benign)
      rows                 569 ...
                     coef  std err      z  p-value  odds ratio  95 % interval
      intercept    -15.25     1.32 -11.51 ...
    >>> found.predict({"mean radius": [10.0, 15.0, 20.0]}).round(3).tolist()
    [0.007, 0.564, 0.996]
    """

    model: Model  # with its design and settings
    names: tuple[str, ...]  # of the coefficients; the intercept first, if there is one
    coefficients: Floats  # by one unit of each column
    covariance: Floats  # of the coefficients, if the model holds
    robust_covariance: Floats | None  # if it need not hold (sandwich); None: not known
    n: int  # rows
    events: int | None  # rows of the positive class, or with an event; None: there are no such
    rounds: int  # in which sums over rows were taken
    means: Floats = field(default_factory=lambda: np.zeros(0))  # of the design's columns
    log_likelihood: float = nan  # without the penalty; of a Cox model the partial one
    null_log_likelihood: float = nan  # of the model without columns
    scale: float = nan  # standard deviation of residuals of a linear model
    degrees: float = inf  # of freedom of the standard errors
    level: float = 0.95  # of intervals
    baselines: tuple[Baseline, ...] = ()  # of a Cox model, one for each stratum
    privacy: str = ""  # of noise in the sums, such as "epsilon 1, delta 1e-6"
    robust_by: str = ""  # the column of groups of rows that robust errors allow to be dependent
    errors: str = "of the model"  # which standard errors `covariance` has, in words
    data: str = ""  # the name of the data
    # What the user had not said: see `gosta.statistics.assumptions`.
    assumed: Mapping[str, Any] = field(default_factory=dict)
    # Of a model with folds, statistics of predictions for rows that were not fitted ("validated"),
    # and of those for all rows by this fit ("apparent").
    validation: tuple[StratumResult, ...] = ()
    # Of a model with folds: coefficients of the fit without each, of columns as shares of their
    # ranges, the constant first.
    without_fold: Floats | None = None
    # Statistics of predictions for the rows of each site by the fit to the others: sites are their
    # groups, and their values means of sites.
    left_out: tuple[Estimate, ...] = ()
    warnings: tuple[str, ...] = ()  # what to have a look at, one sentence each

    def robust(self) -> Fit:
        """Return the fit whose standard errors are the robust ones."""
        if self.robust_covariance is None:
            raise InputError(f"{self.model.title} has no robust standard errors")
        words = f"robust, by {self.robust_by}" if self.robust_by else "robust"
        return replace(self, covariance=self.robust_covariance, errors=words)

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

    @property
    def r_squared(self) -> float:
        """The share of the variance that a linear model explains; of others McFadden's."""
        if isfinite(self.scale):
            return -expm1(2 / self.n * (self.null_log_likelihood - self.log_likelihood))
        return 1 - self.log_likelihood / self.null_log_likelihood

    def summary(self) -> str:
        """Return the fit as text, at most 80 characters wide."""
        return showing.summary(self)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"Fit({self.model.title}, {self.n:,} rows, {len(self.names)} coefficients)"

    def _repr_html_(self) -> str:
        return showing.as_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, as the command line prints it with ``--json``."""
        return showing.as_dict(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw odds, rate or hazard ratios, or coefficients, with their intervals.

        Without `ax` into a new figure, which notebooks show. The axes are returned.
        """
        size = (showing.FOREST_WIDTH, showing.forest_height(self))
        ax = plots.shown_figure(*size).add_subplot() if ax is None else ax
        showing.draw_coefficients(self, ax)
        return ax

    def draw(self) -> Any:
        """Return a figure for a file: what `plot` draws, and `plot_baseline` for a Cox model."""
        return showing.draw_all(self)

    def plot_baseline(self, ax: Any = None) -> Any:
        """Draw the survival of rows whose columns are at their means, of a Cox model."""
        ax = plots.shown_figure(*showing.CURVE_SIZE).add_subplot() if ax is None else ax
        showing.draw_baseline(self, ax)
        return ax

    def linear_predictor(self, data: object) -> Floats:
        """Return the sum of coefficients times columns, of each row."""
        slopes = self.coefficients[-len(self.model.design.names) :]
        columns = self.model.design.matrix(load(data))
        if not self.model.has_intercept:
            return project(columns - self.means, slopes[None])[:, 0]
        return np.asarray(self.coefficients[0] + project(columns, slopes[None])[:, 0])

    def predict(self, data: object, time: float | None = None, out_of_fold: bool = False) -> Floats:
        """Return for each row the probability of the positive class (logistic), the expected
        value (linear, Poisson), the hazard against that of mean columns (Cox), or the score (auc).

        With `time`, of a Cox model, the probability of an event until then. With `out_of_fold`, of
        a model with folds, rows that were fitted are predicted by the fit without their fold, as
        its validation does; data have the outcome then, too.
        """
        predictors = self._out_of_fold(data) if out_of_fold else self.linear_predictor(data)
        known = ~np.isnan(predictors)
        predictors[known] = self.model.mean(predictors[known])
        if time is None:
            return predictors
        if len(self.baselines) != 1:
            what = "has no times" if not self.baselines else "has a baseline for each stratum"
            raise InputError(f"time = {time:g}: the {self.model.title} {what}")
        (baseline,) = self.baselines
        reached = baseline.hazard[baseline.times <= time].sum()
        return np.asarray(1 - exp(-predictors * reached))

    def _out_of_fold(self, data: object) -> Floats:
        """Return the linear predictor of each row by the fit without its fold."""
        if self.without_fold is None:
            raise InputError(
                f"out_of_fold: the {self.model.title} was not validated",
                remedy="fit it with folds (--option folds=5)",
            )
        rows, (unit, offset) = self.model.rows(load(data)), self.model.outcome_unit
        found = np.full(len(rows.kept), nan)
        found[rows.kept] = self.model.predictors_of_folds(rows.x, self.without_fold)
        return offset + unit * found
