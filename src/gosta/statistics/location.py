"""Statistics of location: robust means, medians over pairs, and ranks."""

from __future__ import annotations

from math import nan

from gosta.statistics import encode, fast, pair_medians
from gosta.statistics.definition import Observation, statistic


@statistic(
    encode=encode.trimmed,
    final=lambda m: m[0] / m[1],
    fast=fast.trimmed_mean,
    normalisation="V",
    no_interval="which rows are left out depends on all of them",
)
def trimmed_mean(x: Observation, y: Observation) -> tuple[float, float]:
    """Mean without the `share` of lowest and the share of highest rows."""
    return x[0] * x[1] + y[0] * y[1], x[1] + y[1]


@statistic(
    encode=encode.winsorised,
    fast=fast.winsorised_mean,
    normalisation="V",
    no_interval="the rows that limit others depend on all of them",
)
def winsorised_mean(x: Observation, y: Observation) -> float:
    """Mean with the `share` of lowest rows raised to the next, and the highest lowered to the
    next.
    """
    return 0.5 * (x[0] + y[0])


@statistic(encode=encode.value, median=pair_medians.averages, normalisation="V")
def hodges_lehmann(x: Observation, y: Observation) -> float:
    """Median of the means of two rows: the centre of a symmetric distribution (Hodges and
    Lehmann).
    """
    return 0.5 * x[0] + 0.5 * y[0]


@statistic(encode=encode.scored, median=pair_medians.differences, sample_index=1)
def hodges_lehmann_shift(x: Observation, y: Observation) -> float:
    """Median difference of a positive and a negative row: by how much one class is shifted."""
    return (x[0] - y[0]) * x[1] if x[1] != y[1] else nan


@statistic(
    encode=encode.value,
    local=lambda h: h,
    fast=fast.ranks,
    normalisation="V",
    mean_ranges=((0.0, 1.0),),
    is_per_row=True,
)
def ranks(x: Observation, y: Observation) -> float:
    """Percentile rank of each row: the share of all rows below it, and half of those that equal
    it.
    """
    return 1.0 * (y[0] < x[0]) + 0.5 * (y[0] == x[0])
