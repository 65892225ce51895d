"""Objectives: means over pairs of rows of a loss that depends on parameters, which nodes minimise.

With z the features of a pair of rows, one number for each parameter, its margin is m = w · z, and
the objective is F(w) = (1/n²) Σ loss(m) + λ/2 |w|², summed over ordered pairs of different rows
with an order (or of whichever classes): pairs of a row with itself do not count. A node that knows
two rows can compute the gradient of one term: that is all that gossip needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gosta.errors import DataError, InputError
from gosta.runtime import machine
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import OBJECTIVES, Observation, Statistic, features, find

if TYPE_CHECKING:
    from gosta.datasets.data import Data

PENALTY = 0.001
MAX_STEPS = 100  # of Newton's method, each
NEWTON_PRECISION = 1e-15  # twice the decrease of the objective that another step would bring
NUMBERS_AT_ONCE = 1 << 20  # margins
FACTORS = 32  # from 1 to 2 that are multiplied before a logarithm is taken
# Widths of the parabola in place of the hinge's corner, from wide to narrow.
CORNERS = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)


class Loss(NamedTuple):
    """A convex loss of a margin; the functions are plain arithmetic, and get compiled."""

    total: Callable[[Floats], Floats]  # of margins, pairs × points: the sum over pairs
    slope: Callable[[float], float]  # of one number
    # Slopes and second derivatives of arrays; of a corner, of a parabola of some width there.
    derivatives: Callable[[Floats, float], tuple[Floats, Floats]]
    curvature: float  # that steps are divided by: the larger, the shorter
    has_corner: bool = False


def logistic_slope(margin: float) -> float:
    """Return the derivative of log(1 + exp(-margin))."""
    if margin > 0.0:
        small = math.exp(-margin)
        return -small / (1.0 + small)
    return -1.0 / (1.0 + math.exp(margin))


def hinge_slope(margin: float) -> float:
    """Return the derivative of max(0, 1 - margin), 0 at its corner."""
    return -1.0 if margin < 1.0 else 0.0


def squared_slope(margin: float) -> float:
    """Return the derivative of (1 - margin)² / 2."""
    return margin - 1.0


def _logistic_derivatives(margins: Floats, _: float) -> tuple[Floats, Floats]:
    share = np.exp(-np.logaddexp(0.0, margins))
    return -share, share * (1.0 - share)


def _hinge_derivatives(margins: Floats, width: float) -> tuple[Floats, Floats]:
    inside = (1.0 - margins) / width
    return -np.clip(inside, 0.0, 1.0), ((inside > 0.0) & (inside < 1.0)) / width


def _squared_derivatives(margins: Floats, _: float) -> tuple[Floats, Floats]:
    return margins - 1.0, np.ones_like(margins)


def _logistic_total(margins: Floats) -> Floats:
    """Return sums of log(1 + exp(-margin)); one logarithm does for several factors from 1 to 2."""
    above = 1.0 + np.exp(-np.abs(margins))
    whole = len(above) // FACTORS * FACTORS
    products = above[:whole].reshape(-1, FACTORS, margins.shape[1]).prod(axis=1)
    logarithms = np.log(products).sum(axis=0) + np.log(above[whole:]).sum(axis=0)
    total: Floats = logarithms - np.minimum(margins, 0.0).sum(axis=0)
    return total


LOSSES = {
    "logistic": Loss(_logistic_total, logistic_slope, _logistic_derivatives, 0.125),
    "hinge": Loss(
        lambda m: np.maximum(0.0, 1.0 - m).sum(axis=0), hinge_slope, _hinge_derivatives, 0.25, True
    ),
    "squared": Loss(
        lambda m: ((1.0 - m) ** 2).sum(axis=0) / 2, squared_slope, _squared_derivatives, 4.0
    ),
}


def order_feature(x: Observation, y: Observation, c: int) -> float:
    """Return difference c of the row of the higher class from that of the lower; 0: equal."""
    last = len(x) - 1
    if x[last] > y[last]:
        return x[c] - y[c]
    return y[c] - x[c] if x[last] < y[last] else 0.0


def metric_feature(x: Observation, y: Observation, c: int) -> float:
    """Return 1 (c = 0) or minus a product of differences, with opposite signs for two classes.

    The margin of rows of one class is then b - (x - y)' M (x - y), with b and M the parameters.
    """
    last = len(x) - 1
    sign = 1.0 if x[last] == y[last] else -1.0
    if c == 0:
        return sign
    first = int((math.sqrt(8.0 * c - 7.0) - 1.0) / 2.0)
    second = c - 1 - first * (first + 1) // 2
    product = (x[first] - y[first]) * (x[second] - y[second])
    return -sign * product if first == second else -2.0 * sign * product


def _order_features(x: Floats, y: Floats) -> Floats:
    return np.sign(x[:, -1:] - y[:, -1:]) * (x[:, :-1] - y[:, :-1])


def _metric_features(x: Floats, y: Floats) -> Floats:
    signs, gaps = np.where(x[:, -1:] == y[:, -1:], 1.0, -1.0), x[:, :-1] - y[:, :-1]
    first, second = np.tril_indices(gaps.shape[1])
    products = np.where(first == second, 1.0, 2.0) * gaps[:, first] * gaps[:, second]
    return signs * np.column_stack([np.ones(len(gaps)), -products])


class PairFeatures(NamedTuple):
    """What margins are linear in."""

    # Of two rows and the number of a parameter: plain arithmetic, which gets compiled.
    feature: Callable[[Observation, Observation, int], float]
    of_rows: Callable[[Floats, Floats], Floats]  # all of several pairs: pairs × parameters
    count: Callable[[int], int]  # of parameters, of so many columns
    size: float  # usual sum of squares
    summary: str  # what is learned


FEATURES = {
    "pairwise": PairFeatures(
        order_feature,
        _order_features,
        lambda columns: columns,
        0.5,
        "a score that ranks rows of a higher class higher (the AUC, with two classes)",
    ),
    "metric": PairFeatures(
        metric_feature,
        _metric_features,
        lambda columns: 1 + columns * (columns + 1) // 2,
        2.0,
        "a Mahalanobis distance below a threshold for rows of one class only",
    ),
}


def counts(x: Observation, y: Observation) -> float:
    """Return 1 for rows of different classes, 0 for others."""
    return 1.0 if x[-1] != y[-1] else 0.0


def with_class(data: Data) -> Floats:
    """Encode a row as its features, in standard deviations from their means, and its class.

    They are divided by √(2d), so that the mean squared distance of two rows is 1.
    """
    if data.is_partial:
        raise DataError(
            "needs mean and standard deviation of each column, which a site does not know",
            remedy="gosta run simulates it",
        )
    codes = data.class_codes()[0]
    x = np.column_stack([features(data), codes])
    if data.drop_missing:
        x = x[~np.isnan(x).any(axis=1)]
        data.check_row_count(len(x))
    x, codes = x[:, :-1], x[:, -1]
    spread = x.std(axis=0)
    for name, number in zip(data.features, spread, strict=True):
        if number == 0:
            raise DataError(
                f"column {name!r} is constant", remedy="select other columns (--columns)"
            )
    return np.column_stack([(x - x.mean(axis=0)) / spread / math.sqrt(2 * x.shape[1]), codes])


def _at_parameters(
    means: tuple[float, ...],  # noqa: ARG001
    penalty: float = PENALTY,  # noqa: ARG001
    pace: float = 1.0,  # noqa: ARG001
) -> tuple[float, ...]:
    """Name the options; an objective is no function of means."""
    raise InputError(
        "an objective has values at parameters only, which nodes find",
        remedy="gosta run (gosta.simulate) minimises it, named alone",
    )


@dataclass(frozen=True, repr=False)
class Objective(Statistic):
    """A mean over pairs of rows of a loss of parameters, to be minimised.

    Examples
    --------
    >>> import gosta
    >>> gosta.statistics.find("pairwise-logistic")
    Statistic('pairwise-logistic', penalty=0.001, pace=1.0)
    """

    loss: Loss = LOSSES["logistic"]
    pairs: PairFeatures = FEATURES["pairwise"]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle by name: all objectives are built in."""
        return find, (self.name,)


OBJECTIVES.update(
    {
        f"{kind}-{name}": Objective(
            f"{kind}-{name}",
            f"Mean {name} loss of {pairs.summary}.",
            counts,
            with_class,
            final=_at_parameters,
            normalisation="V",
            no_interval="nodes minimise it, and estimate no value of a population",
            loss=loss,
            pairs=pairs,
        )
        for kind, pairs in FEATURES.items()
        for name, loss in LOSSES.items()
    }
)


def require_positive(name: str, number: object) -> float:
    """Return an option of an objective as a float; raise `InputError` unless it is positive."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < inf:
        raise InputError(f"{name} = {number!r} must be a positive number")
    return float(number)


class ObjectivePairs:
    """An objective over rows in one place: its value at any parameters, and its minimum."""

    def __init__(self, objective: Objective, x: Floats, penalty: float) -> None:
        require_positive("penalty", penalty)
        self.loss, self.penalty = objective.loss, penalty
        parameters = objective.pairs.count(x.shape[1] - 1)
        machine.require_memory(4 * len(x) ** 2 * parameters, f"all pairs of {len(x)} rows")
        first, second = np.triu_indices(len(x), 1)
        features = objective.pairs.of_rows(x[first], x[second])
        self.features = features[features.any(axis=1)]
        self.weight = 2 / len(x) ** 2  # of each

    def values(self, parameters: Floats) -> Floats:
        """Return the objective at several points: points × parameters."""
        values: Floats = self.penalty / 2 * (parameters**2).sum(axis=1)
        size = max(1, NUMBERS_AT_ONCE // max(1, len(self.features)))
        for k in range(0, len(parameters), size):
            margins = self.features @ parameters[k : k + size].T
            values[k : k + size] += self.weight * self.loss.total(margins)
        return values

    @cached_property
    def minimum(self) -> Floats:
        """Parameters at which the objective is least, by Newton's method."""
        point: Floats = np.zeros(self.features.shape[1])
        for corner in CORNERS if self.loss.has_corner else CORNERS[:1]:
            point = self._minimum_of(point, corner)
        return point

    def _minimum_of(self, point: Floats, corner: float) -> Floats:
        for _ in range(MAX_STEPS):
            slopes, curvatures = self.loss.derivatives(self.features @ point, corner)
            gradient = self.weight * slopes @ self.features + self.penalty * point
            matrix = self.weight * (self.features.T * curvatures) @ self.features
            matrix[np.diag_indices_from(matrix)] += self.penalty
            step: Floats = np.asarray(np.linalg.solve(matrix, gradient), dtype=np.float64)
            if gradient @ step <= NEWTON_PRECISION:
                return point
            point = point - self._share_of(point, step, gradient, corner) * step
        return point

    def _share_of(self, point: Floats, step: Floats, gradient: Floats, corner: float) -> float:
        """Return how much of a step to take: until the slope along it changes its sign, if it does.

        The objective is convex, so that the slope along the step increases.
        """
        share = 1.0
        while share > 1e-10:
            at = point - share * step
            slopes, _ = self.loss.derivatives(self.features @ at, corner)
            now = self.weight * slopes @ self.features + self.penalty * at
            if now @ step > -0.5 * gradient @ step:
                return share
            share /= 2
        return share
