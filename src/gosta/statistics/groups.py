"""Statistics of groups: cohesion within, differences between."""

from __future__ import annotations

from math import exp, inf

from gosta.statistics import encode, fast
from gosta.statistics.definition import Observation, statistic
from gosta.statistics.dispersion import distance


@statistic(encode=encode.clustered, bounds=(0.0, inf), is_row=encode.has_cluster, scale="log")
def within_cluster_scatter(x: Observation, y: Observation) -> float:
    """Mean distance of two rows, counted as 0 where they are in different clusters."""
    last = len(x) - 1
    return distance(x, y, 0, last) if x[last] == y[last] else 0.0


@statistic(encode=encode.clustered, bounds=(0.0, inf), is_row=encode.has_cluster, scale="log")
def squared_scatter(x: Observation, y: Observation) -> float:
    """Mean squared distance of two rows, counted as 0 where they are in different clusters."""
    last = len(x) - 1
    total = 0.0
    if x[last] == y[last]:
        for c in range(last):
            gap = x[c] - y[c]
            total += gap * gap
    return total


def by_sample(
    x: Observation, y: Observation, value: float
) -> tuple[float, float, float, float, float, float]:
    """Return a value for pairs across and within two samples, and an indicator of each kind."""
    last = len(x) - 1
    across = 1.0 * (x[last] != y[last])
    first = (x[last] > 0.0) * (1.0 - across)
    second = 1.0 - across - first
    return across * value, first * value, second * value, across, first, second


@statistic(
    encode=encode.two_samples,
    final=lambda m: 2 * m[0] / m[3] - m[1] / m[4] - m[2] / m[5],
    fast=fast.energy_distance,
    normalisation="V",
    sample_index=-1,
    bounds=(0.0, inf),
    mean_ranges=((-inf, inf),) * 3 + ((0.0, 1.0),) * 3,
    is_row=encode.has_sign,
    both_first=4,
    scale="distance",
)
def energy_distance(
    x: Observation, y: Observation
) -> tuple[float, float, float, float, float, float]:
    """Twice the mean distance across two samples less the mean distances within: 0 only for equal
    distributions.
    """
    return by_sample(x, y, distance(x, y, 0, len(x) - 1))


@statistic(
    encode=encode.scaled_samples,
    final=lambda m: m[1] / m[4] + m[2] / m[5] - 2 * m[0] / m[3],
    sample_index=-1,
    mean_ranges=((0.0, 1.0),) * 6,
    is_row=encode.has_sign,
    both_first=4,
    scale="distance",
)
def mmd(x: Observation, y: Observation) -> tuple[float, float, float, float, float, float]:
    """Squared maximum mean discrepancy of two samples under a Gaussian kernel."""
    gap = distance(x, y, 0, len(x) - 1)
    return by_sample(x, y, exp(-0.5 * gap * gap))
