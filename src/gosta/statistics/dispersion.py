"""Statistics of dispersion: distances between rows."""

from __future__ import annotations

from math import inf, sqrt

from gosta.statistics import encode, fast
from gosta.statistics.definition import Observation, statistic

# Below this, squares of differences can lose digits, so that differences are scaled first.
LEAST_SQUARE = 1e-280


def sign(gap: float) -> float:
    """Return −1, 0 or 1."""
    return 1.0 * (gap > 0.0) - 1.0 * (gap < 0.0)


def distance(x: Observation, y: Observation, start: int, stop: int) -> float:
    """Return the Euclidean distance in the coordinates from start to stop, exclusive."""
    total = 0.0
    for c in range(start, stop):
        gap = x[c] - y[c]
        total += gap * gap
    return sqrt(total) if LEAST_SQUARE < total < inf else _scaled_distance(x, y, start, stop)


def _scaled_distance(x: Observation, y: Observation, start: int, stop: int) -> float:
    """Return the distance of rows whose squared distance is zero, too large or too small."""
    largest, total = 0.0, 0.0
    for c in range(start, stop):
        largest = max(largest, abs(x[c] - y[c]))
    if largest == 0.0 or largest == inf:
        return largest
    for c in range(start, stop):
        gap = (x[c] - y[c]) / largest
        total += gap * gap
    return largest * sqrt(total)


@statistic(
    encode=encode.value,
    moments=(
        lambda x: (x[0], x[0] * x[0]),
        lambda m: m[1] - m[0] * m[0],
        lambda m, by, one: (m[0] + by[0] * one, m[1] + by[0] * (2.0 * m[0] + by[0] * one)),
    ),
    fast=fast.variance,
    bounds=(0.0, inf),
    scale="log",
)
def variance(x: Observation, y: Observation) -> float:
    """Half the mean squared difference of two rows: the sample variance."""
    return 0.5 * (x[0] - y[0]) * (x[0] - y[0])


@statistic(encode=encode.value, fast=fast.gini, bounds=(0.0, inf), scale="log")
def gini_mean_difference(x: Observation, y: Observation) -> float:
    """Mean absolute difference of two rows."""
    return abs(x[0] - y[0])


@statistic(
    encode=encode.positive_value,
    final=lambda m: m[0] / m[1],
    fast=fast.gini_index,
    normalisation="V",
    bounds=(0.0, 1.0),
    is_row=encode.is_not_negative,
    scale="reciprocal",
    centre=lambda m, n: m[0] / m[1] * n / (n - 1),
)
def gini_index(x: Observation, y: Observation) -> tuple[float, float]:
    """Inequality from 0 (all the same) to 1: mean absolute difference over twice the mean."""
    return abs(x[0] - y[0]), x[0] + y[0]


@statistic(bounds=(0.0, inf), scale="log")
def mean_pairwise_distance(x: Observation, y: Observation) -> float:
    """Mean Euclidean distance of two rows."""
    return distance(x, y, 0, len(x))
