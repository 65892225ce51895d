"""Fits with differential privacy: sums of bounded features, to whose totals sites add noise.

Columns are shares of their declared ranges less 1/2, with 1/2 in front of them for the intercept: a
row is a vector x of k numbers from −1/2 to 1/2, and |x|² ≤ k/4. Noise has the same variance in each
number of a total. Where it is σ² for a vector and s² for a matrix W, W v has the covariance

    s² (|v|² I + v v' − diag(v v')).

The first round takes the products of x and of the outcome, as `linear` and `auc` need them. Other
models then take a few steps of Newton's method, each from residuals r x and weights times x x'. At
coefficients that are off by v, the step from noisy second derivatives Ĥ leaves

    Ĥ⁻¹ (Ĥ − H) v − Ĥ⁻¹ · noise of the gradient,

so what remains of all noise but the last round's is small where Ĥ is near H, and the last round has
most of the budget. Of `linear` the same holds with one step from 0. This gives standard errors; v
is estimated by the step.

Second derivatives whose least eigenvalue is below s √k, half the norm that W has at most, get the
multiple of the identity that lifts it there; what that leaves of v counts as an error, too. Below
s √k / 2, coefficients have no intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gosta.errors import DataError, GostaError, InputError, NumericalError
from gosta.models.arithmetic import (
    cholesky,
    dot,
    inverse,
    least_eigenvalue,
    product,
    solve,
    symmetric,
    upper,
)
from gosta.models.definition import Model, State
from gosta.models.fit import Fit
from gosta.models.layout import LEVEL, FitLayout, check_size
from gosta.models.ranking import Ranking
from gosta.models.regression import Linear, Poisson, Regression, Weighted
from gosta.runtime.arrays import Floats, project
from gosta.sketches.definition import MOST_ROWS, Features

BITS = 24  # binary digits of a feature after the point
FIRST_SHARE, LAST_SHARE = 0.1, 0.7  # of the budget; rounds between share the rest
FLOOR, LEAST_SIGNAL = 1.0, 0.5  # of second derivatives, in units of the noise's s √k
LARGEST_STEP = 3.0  # standard deviations of linear predictors
LARGEST_LAST_STEP = 1.0  # with which the quadratic approximation holds well enough for intervals
UNIFORM_VARIANCE = 1 / 12  # of a share of a range
SIGNIFICANT = 9  # digits of what depends on functions of the standard library


class Moments(NamedTuple):
    """Noisy sums of the first round."""

    products: Floats  # of x
    outcome: Floats  # of x and the outcome less 1/2
    squares: float  # of the outcome less 1/2
    groups: tuple[Floats, ...] = ()  # of x, in the negative and the positive class

    @property
    def n(self) -> float:
        """Return the number of rows."""
        return 4 * float(self.products[0, 0])

    @property
    def means(self) -> Floats:
        """Return the means of columns, as shares of ranges."""
        return np.asarray(0.5 + 2 * self.products[0, 1:] / self.n)

    @property
    def outcome_mean(self) -> float:
        """Return the mean of the outcome, as a share of its range."""
        return 0.5 + 2 * float(self.outcome[0]) / self.n


class Step(NamedTuple):
    """What one round gives."""

    coefficients: Floats
    step: Floats
    inverse: Floats  # of second derivatives, with the penalty and what lifts them
    signal: float  # their least eigenvalue, without that, in units of s √k
    lift: float = 0.0  # what is added to the diagonal of second derivatives
    length: float = 0.0  # of the step: the standard deviation of what it adds to linear predictors


@dataclass(frozen=True, eq=False)
class NoisyLayout(FitLayout):
    """The sums of one round of a fit with noise; implements `Sums`.

    `State.moments` are the totals of the first round, `State.coefficients` those by x, and
    `State.base` those before the last step.
    """

    epsilon: float
    delta: float
    mu: float  # of all rounds together: see `gosta.private.accounting`

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return min(self.model.noisy_rounds, self.model.max_rounds)

    @property
    def _round(self) -> int:
        return self.state.rounds + 1

    @property
    def _columns(self) -> int:
        """How many numbers x has."""
        return len(self.model.design.names) + 1

    @property
    def budget_share(self) -> float:
        return self._share(self._round)

    def _share(self, number: int) -> float:
        """Return the share of μ² that a round has."""
        if self.rounds == 1:
            return 1.0
        if number in (1, self.rounds):
            return FIRST_SHARE if number == 1 else LAST_SHARE
        return (1 - FIRST_SHARE - LAST_SHARE) / (self.rounds - 2)

    @property
    def bits(self) -> int:
        return BITS

    @property
    def least_feature(self) -> float:
        return -0.5

    @property
    def squared_change(self) -> float:
        # Rounding moves each number by half a unit of the grid, before and after.
        rounding = math.sqrt(self.features_per_row) * 2.0**-BITS
        return (math.sqrt(self._squared_change(self._round)) + rounding) ** 2

    def _squared_change(self, number: int) -> float:
        """Return the squared length of the largest change of a round's sums by replacing a row, or
        by leaving one out.

        With h from 0 to 1, the upper triangles of h x x' and h' y y' differ by at most
        (2 (k/4)² + k/16) / 2 in squared length, since (x'y)² only lessens it; r x and r' y by at
        most (|x| + |y|)² ≤ k. In two classes, triangles are in different places: their squared
        lengths, at most ((k/4)² + k/16) / 2 each, add up, and each has 1/2 in place of 1/4 for the
        number of rows. A row that is left out changes less than that, from three numbers on.
        """
        k = self._columns
        if number > 1:
            return k + k * k / 16 + k / 32
        if isinstance(self.model, Ranking):
            return (k * k + k) / 16 + 3 / 8
        k += 1  # the outcome
        return k * k / 16 + k / 32

    def deviation(self, number: int) -> float:
        """Return the standard deviation of a round's noise, where no sites collude."""
        found = math.sqrt(self._squared_change(number) / self._share(number)) / self.mu
        return float(f"{found:.{SIGNIFICANT}g}")

    @property
    def least_rows(self) -> int:
        """Rows below which noise exceeds what even columns tell that are spread evenly."""
        groups = 2 if isinstance(self.model, Ranking) else 1
        k, deviation = self._columns, self.deviation(self.rounds)
        return math.ceil(LEAST_SIGNAL * groups * math.sqrt(k) * deviation / UNIFORM_VARIANCE)

    @cached_property
    def _settings(self) -> str:
        return f"{super()._settings} with noise of {self.mu:.{SIGNIFICANT}g}"

    @cached_property
    def size(self) -> int:
        return int(self._features(np.zeros((0, self.width))).shape[1])

    @cached_property
    def features_per_row(self) -> int:
        return self.size

    @property
    def shown(self) -> str:
        share = f"{self.budget_share:.0%} of the budget"
        if self.state.rounds == 0:
            return f"noisy moments ({self.size:,}), with {share}"
        where = f"at the coefficients after round {self.state.rounds}"
        return f"{where}: noisy first and second derivatives ({self.size:,}), with {share}"

    def describe(self) -> dict[str, str]:
        rounds = f"{self.rounds}, with noise in each"
        rows = f"at least {self.least_rows:,} over all sites, else noise exceeds all signal"
        return {**super().describe(), "rounds": rounds, "rows": rows}

    # Features.

    def features(self, rows: Floats) -> Features:
        values = self._features(rows)
        places = np.broadcast_to(np.arange(values.shape[1]), values.shape)
        return Features(places, values)

    def _features(self, rows: Floats) -> Floats:
        """Return the features of encoded rows, n × size."""
        x, response = self._split(rows)
        if self.state.rounds:
            return self._step_features(x, response)
        if isinstance(self.model, Ranking):
            return np.hstack([(1 - response) * _counted(x), response * _counted(x)])
        return _counted(np.column_stack([x, response[:, 0] - 0.5]))

    def _step_features(self, x: Floats, response: Floats) -> Floats:
        assert isinstance(self.model, Weighted)
        residuals, weights = self.model.bounded(response[:, 0], project(x, self._at[None])[:, 0])
        return np.hstack([residuals[:, None] * x, weights[:, None] * _triangle(x)])

    @property
    def _at(self) -> Floats:
        return np.array(self.state.coefficients)

    def _split(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return x of encoded rows, and their response."""
        size = self._columns - 1
        shares = np.clip(rows, 0.0, 1.0)  # else noise would hide less than it says
        x = np.column_stack([np.full(len(rows), 0.5), shares[:, :size] - 0.5])
        return x, shares[:, size:]

    def is_plausible(self, totals: Floats, tolerance: float, most_rows: float = MOST_ROWS) -> bool:
        return bool(np.abs(totals).max() < most_rows / 2 + tolerance + 0.5)

    def few_rows(self, x: Floats) -> str:
        """Return nothing: noise hides each row at any coefficients, however few have weight."""
        return ""

    # What follows from totals.

    def following(self, totals: Floats, min_cell: int = 0) -> NoisyLayout | None:
        state = self._after(totals)
        return None if state.is_done else replace(self, state=state)

    def _after(self, totals: Floats, min_cell: int = 0) -> State:
        rounds, base = self._round, self.state.coefficients
        moments = self.state.moments or tuple(totals.tolist())
        found = replace(self.state, rounds=rounds, moments=moments, base=base)
        try:
            step = self._step(totals)
        except GostaError as error:
            return replace(found, is_done=True, failure=str(error))
        coefficients = tuple(step.coefficients.tolist())
        return replace(found, coefficients=coefficients, is_done=rounds == self.rounds)

    def _step(self, totals: Floats) -> Step:
        """Return what the totals of this round give."""
        if self.state.rounds:
            return self._newton(totals)
        moments = self._moments(totals)
        self._check(moments)
        if isinstance(self.model, Ranking):
            return self._ranked(moments)
        start, hessian, gradient = np.zeros(self._columns), moments.products, moments.outcome
        error = self.deviation(1)
        if not isinstance(self.model, Linear):
            assert isinstance(self.model, Weighted)
            mean, unit = moments.outcome_mean, self.model.bounds[0]
            intercept, curvature = self.model.linked(unit * mean)
            start[0] = 2 * intercept
            gradient = unit * (gradient - 2 * (mean - 0.5) * hessian[0])
            hessian, error = curvature * hessian, curvature * error
        return self._stepped(start, gradient, hessian, error, moments)

    def _newton(self, totals: Floats) -> Step:
        assert isinstance(self.model, Weighted)
        moments = self._moments(np.array(self.state.moments))
        k, (unit, weight) = self._columns, self.model.bounds
        gradient, hessian = unit * totals[:k], weight * symmetric(totals[k:], k)
        penalties = self._penalties(moments)
        gradient = gradient - penalties * self._at
        return self._stepped(
            self._at, gradient, hessian, weight * self.deviation(self._round), moments
        )

    def _stepped(
        self, at: Floats, gradient: Floats, hessian: Floats, error: float, moments: Moments
    ) -> Step:
        """Return a step of Newton's method; `error` is the noise of a second derivative."""
        full = hessian + np.diag(self._penalties(moments))
        unit = error * math.sqrt(len(full))
        least = least_eigenvalue(full)
        lift = max(FLOOR * unit - least, 0.0)
        factor = cholesky(full + lift * np.eye(len(full)))
        step = solve(factor, gradient)
        moved = product(moments.products, step[:, None])[:, 0]
        length = math.sqrt(max(dot(step, moved), 0.0) / moments.n)
        if self.rounds > 1:
            step = step * min(1.0, LARGEST_STEP / max(length, LARGEST_STEP))
        return Step(at + step, step, inverse(factor), least / unit, lift, length)

    def _ranked(self, moments: Moments) -> Step:
        """Return the best score for the squared loss over pairs."""
        n = [4 * float(one[0, 0]) for one in moments.groups]
        means = [2 * one[0, 1:] / count for one, count in zip(moments.groups, n, strict=True)]
        hessian = np.zeros((self._columns - 1, self._columns - 1))
        for one, count, mean in zip(moments.groups, n, means, strict=True):
            hessian += one[1:, 1:] / count - np.multiply.outer(mean, mean)
        gap = means[1] - means[0]
        hessian += np.multiply.outer(gap, gap) + np.diag(self._penalties(moments)[1:])
        unit = self.deviation(1) * math.sqrt(len(gap) * (1 / n[0] ** 2 + 1 / n[1] ** 2))
        least = least_eigenvalue(hessian)
        factor = cholesky(hessian + max(FLOOR * unit - least, 0.0) * np.eye(len(gap)))
        step = solve(factor, gap)
        return Step(step, step, inverse(factor), least / unit)

    def _moments(self, totals: Floats) -> Moments:
        if isinstance(self.model, Ranking):
            groups = tuple(_matrix(one, self._columns) for one in np.split(totals, 2))
            products, outcome = groups[0] + groups[1], groups[1][0] - groups[0][0]
            return Moments(products, outcome, float(products[0, 0]), groups)
        sums = _matrix(totals, self._columns + 1)
        return Moments(sums[:-1, :-1], sums[-1, :-1], float(sums[-1, -1]))

    def _check(self, moments: Moments) -> None:
        """Raise an error if noise exceeds all signal."""
        model, n = self.model, moments.n
        self.require_rows(round(n))
        if n < model.min_rows_per_column * (self._columns - 1):
            raise DataError(
                f"{n:.0f} rows for {self._columns - 1} columns are fewer than "
                f"{model.min_rows_per_column:g} for each",
                remedy="use fewer columns (min_rows_per_column)",
            )
        share, noise = moments.outcome_mean, 4 * self.deviation(1)
        unit = model.high if isinstance(model, Poisson) else 1.0
        fewer = max(unit * n * (share if unit > 1 else min(share, 1 - share)), 0.0)
        if not isinstance(model, Linear) and fewer < unit * noise:
            what = "counts" if isinstance(model, Poisson) else "rows of one class"
            raise DataError(
                f"outcome {model.response_columns[0]!r}: there are about {fewer:.0f} {what}, and "
                f"noise moves that by {unit * noise:.0f}",
                remedy="use a larger epsilon, or more rows",
            )

    def require_rows(self, n: int) -> None:
        """Raise an error if so many rows are too few for the noise."""
        if n < self.least_rows:
            raise DataError(
                f"{n:,} rows are too few for {self._columns - 1} columns with epsilon "
                f"{self.epsilon:g}: noise exceeds all signal below {self.least_rows:,}",
                remedy="use a larger epsilon, fewer columns, or more rows",
            )

    def _penalties(self, moments: Moments) -> Floats:
        """Return the penalty of each coefficient of x, 0 for the intercept."""
        if not self.model.penalty:
            return np.zeros(self._columns)
        squares = np.diagonal(moments.products)[1:] / moments.n
        variances = np.maximum(squares - (moments.means - 0.5) ** 2, 0.0)
        return np.append(0.0, self.model.penalty * variances)

    # The fit.

    def fit(
        self, totals: Floats, level: float = LEVEL, min_cell: int = 0, noise_variance: float = 0.0
    ) -> Fit:
        """Return the fit that the totals of the last round give; an error if there is none.

        `noise_variance` is that of the last round's totals; by default without colluding sites.
        """
        state = self._after(totals)
        if state.failure:
            raise NumericalError(state.failure)
        found, moments = self._step(totals), self._moments(np.array(state.moments))
        more = noise_variance / self.deviation(self.rounds) ** 2 if noise_variance else 1.0
        covariance = np.full((len(found.step), len(found.step)), math.nan)
        warnings = self._warnings(found, moments)
        if not warnings and not isinstance(self.model, Ranking):
            covariance = self._covariance(found, moments, more)
        return self._in_units(found, covariance, moments, level, warnings)

    def _warnings(self, found: Step, moments: Moments) -> tuple[str, ...]:
        """Return why coefficients have no intervals."""
        if found.signal < LEAST_SIGNAL:
            rows = moments.n / max(found.signal, 0.1)
            return (
                "noise is as large as what the columns tell: coefficients are shrunk and have no "
                f"intervals; {'about' if found.signal > 0.1 else 'more than'} {rows:.2g} rows "
                "would do, fewer columns, or a larger epsilon",
            )
        if self.rounds > 1 and found.length > LARGEST_LAST_STEP:
            return (
                f"the last of {self.rounds} rounds still moved coefficients much, so that they "
                "have no intervals: use a penalty, more rows, or a larger epsilon",
            )
        if isinstance(self.model, Ranking):
            return ("with noise, coefficients of this model have no intervals",)
        return ()

    def _covariance(self, found: Step, moments: Moments, more: float) -> Floats:
        """Return the covariance of the coefficients of x, by sampling and by noise."""
        moved = found.step
        if isinstance(self.model, Linear):
            gradient, second = self.deviation(1), self.deviation(1)
            sampling = self._residual_variance(found, moments) * found.inverse
        else:
            assert isinstance(self.model, Weighted)
            gradient, second = (one * self.deviation(self.rounds) for one in self.model.bounds)
            sampling = found.inverse
        squares = moved * moved
        of_matrix = np.multiply.outer(moved, moved) - np.diag(squares)
        of_matrix = of_matrix + math.fsum(squares.tolist()) * np.eye(len(moved))
        noise = more * (gradient**2 * np.eye(len(moved)) + second**2 * of_matrix)
        noise = noise + found.lift**2 * np.multiply.outer(moved, moved)
        return sampling + product(product(found.inverse, noise), found.inverse)

    def _residual_variance(self, found: Step, moments: Moments) -> float:
        """Return the variance of residuals, as a square of the outcome's range, and one standard
        error of its noise more.
        """
        at = found.coefficients
        fitted = product(moments.products, at[:, None])[:, 0]
        sums = moments.squares - 2 * dot(at, moments.outcome) + dot(at, fitted)
        noise = self.deviation(1) * (1 + dot(at, at))
        return max(sums, 0.0) / moments.n + noise / moments.n

    def _in_units(
        self,
        found: Step,
        covariance: Floats,
        moments: Moments,
        level: float,
        warnings: tuple[str, ...],
    ) -> Fit:
        """Return the fit in units of the data."""
        model, design = self.model, self.model.design
        widths = design.high - design.low
        units, offset = np.diag(1 / widths), np.zeros(len(widths))
        scale, degrees = math.nan, math.inf
        if isinstance(model, Regression):
            unit, lowest = model.outcome_unit
            units = np.diag(np.append(0.5, 1 / widths))
            units[0, 1:] = -(design.low + widths / 2) / widths
            units = units * unit
            offset = np.zeros(len(units))
            if isinstance(model, Linear):
                offset[0] = lowest + unit / 2
                degrees = max(moments.n - len(units), 1.0)
                scale = unit * math.sqrt(self._residual_variance(found, moments))
        return Fit(
            model,
            model.coefficient_names,
            product(units, found.coefficients[:, None])[:, 0] + offset,
            product(product(units, covariance), units.T),
            None,
            round(moments.n),
            model.event_count([moments.products, np.array([moments.n * moments.outcome_mean])]),
            self._round,
            design.low + widths * moments.means,
            scale=scale,
            degrees=degrees,
            level=level,
            errors="of the model and noise",
            privacy=f"epsilon {self.epsilon:g}, delta {self.delta:g}",
            warnings=warnings,
        )


def first_round(
    model: Model, epsilon: float | None, delta: float, mu_of: Callable[[float, float], float]
) -> FitLayout:
    """Return the sums of the first round of a fit, with noise if there is an epsilon.

    `mu_of` gives the μ of an epsilon and a delta.
    """
    if epsilon is None:
        first = FitLayout.first(model)
    else:
        _check_noisy(model, epsilon, delta)
        mu = float(f"{mu_of(epsilon, delta):.{SIGNIFICANT}g}")
        first = NoisyLayout(model, model.first(), epsilon, delta, mu)
    check_size(first)
    return first


def _check_noisy(model: Model, epsilon: float, delta: float) -> None:
    """Raise an error if no noise hides a row of a model, or it has settings without noise."""
    if not model.noisy_rounds:
        raise InputError(
            f"epsilon = {epsilon:g}: a row can change {model.title} without bound, so no noise "
            "hides it",
            remedy="fit a logistic model of the event before a time, or leave epsilon out",
        )
    if model.folds:
        raise InputError(
            f"folds = {model.folds}: a fit with noise is not validated by folds",
            remedy="leave folds or epsilon out",
        )
    if not delta:
        raise InputError(
            f"epsilon = {epsilon:g}: noise of fits needs delta, too", remedy="set it, such as 1e-6"
        )


def _counted(x: Floats) -> Floats:
    """Return the products of two numbers of each row, and 1/2 in place of the first one."""
    found = _triangle(x)
    found[:, 0] = 0.5
    return found


def _matrix(sums: Floats, columns: int) -> Floats:
    """Return the matrix of sums of `_counted`."""
    found = symmetric(sums, columns)
    found[0, 0] = found[0, 0] / 2
    return found


def _triangle(x: Floats) -> Floats:
    """Return the products of two numbers of each row."""
    first, second = upper(x.shape[1])
    return np.asarray(x[:, first] * x[:, second])
