"""Statistics of location: means without the influence of extreme rows."""

from __future__ import annotations

from gosta.statistics import encode, fast
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
    """Mean with the `share` of lowest rows raised to the next, and the highest lowered to the next."""
    return 0.5 * (x[0] + y[0])
