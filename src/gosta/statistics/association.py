"""Statistics of association between columns."""

from __future__ import annotations

from math import nan, sqrt
from typing import Any

import numpy as np

from gosta.errors import InputError, NumericalError
from gosta.statistics import encode, fast, pair_medians
from gosta.statistics.definition import Means, Observation, statistic
from gosta.statistics.dispersion import LEAST_SQUARE, distance, sign


@statistic(
    encode=encode.pair,
    moments=(
        lambda x: (x[0], x[1], x[0] * x[1]),
        lambda m: m[2] - m[0] * m[1],
        lambda m, by, one: (
            m[0] + by[0] * one,
            m[1] + by[1] * one,
            m[2] + by[0] * m[1] + by[1] * (m[0] + by[0] * one),
        ),
    ),
    fast=fast.covariance,
)
def covariance(x: Observation, y: Observation) -> float:
    """Half the mean product of differences: the sample covariance of two columns."""
    return 0.5 * (x[0] - y[0]) * (x[1] - y[1])


def _tau(m: Means, variant: str = "a") -> float:
    if variant not in ("a", "b"):
        raise InputError(f"variant = {variant!r} must be 'a' or 'b'")
    return m[0] if variant == "a" else m[0] / (m[1] * m[2]) ** 0.5


@statistic(
    encode=encode.pair,
    final=_tau,
    fast=fast.kendall,
    bounds=(-1.0, 1.0),
    scale="logit",
    mean_ranges=((-1.0, 1.0), (0.0, 1.0), (0.0, 1.0)),
)
def kendall_tau(x: Observation, y: Observation) -> tuple[float, float, float]:
    """Share of concordant pairs of rows less that of discordant ones (variant a; b corrects for
    ties).
    """
    first, second = sign(x[0] - y[0]), sign(x[1] - y[1])
    return first * second, first * first, second * second


@statistic(
    encode=encode.pair,
    final=lambda m: m[0] / m[1],
    fast=fast.somers,
    bounds=(-1.0, 1.0),
    scale="logit",
    comparable=1,
    mean_ranges=((-1.0, 1.0), (0.0, 1.0)),
)
def somers_d(x: Observation, y: Observation) -> tuple[float, float]:
    """Concordant less discordant pairs, over pairs that differ in the first column: how the second
    depends on it.
    """
    first = sign(x[0] - y[0])
    return first * sign(x[1] - y[1]), first * first


@statistic(
    encode=encode.pair,
    final=lambda m: m[0] / m[1],
    fast=fast.gamma,
    bounds=(-1.0, 1.0),
    scale="logit",
    comparable=1,
    mean_ranges=((-1.0, 1.0), (0.0, 1.0)),
)
def goodman_kruskal_gamma(x: Observation, y: Observation) -> tuple[float, float]:
    """Concordant less discordant pairs, over pairs that are one of the two: ties in a column do not
    count.
    """
    both = sign(x[0] - y[0]) * sign(x[1] - y[1])
    return both, both * both


@statistic(
    encode=encode.pair,
    local=lambda h: (h[0] * h[1], h[0] * h[0], h[1] * h[1]),
    final=lambda m: m[0] / np.sqrt(m[1] * m[2]),
    fast=fast.spearman,
    normalisation="V",
    bounds=(-1.0, 1.0),
    scale="logit",
    mean_ranges=((-1.0, 1.0), (0.0, 1.0), (0.0, 1.0)),
)
def spearman_rho(x: Observation, y: Observation) -> tuple[float, float]:
    """Correlation of the ranks of two columns."""
    return sign(x[0] - y[0]), sign(x[1] - y[1])


@statistic(encode=encode.pair, median=pair_medians.slopes)
def theil_sen(x: Observation, y: Observation) -> float:
    """Median slope of two rows, of the second column over the first: a line that few rows do not
    move (Theil–Sen).
    """
    return (x[1] - y[1]) / (x[0] - y[0]) if x[0] != y[0] else nan


def _distance_correlation(m: Means) -> Any:
    a, b, ab, aa, bb, mean_ab, mean_aa, mean_bb = m
    covariance, first, second = (
        ab + a * b - 2 * mean_ab,
        aa + a * a - 2 * mean_aa,
        bb + b * b - 2 * mean_bb,
    )
    if np.any((np.minimum(a, b) > 0) & (np.minimum(a * a, b * b) < LEAST_SQUARE)):
        raise NumericalError(
            "the numbers are too small",
            remedy="use smaller units",
            statistic="distance-correlation",
        )
    value = np.sqrt(np.maximum(covariance, 0.0) / np.sqrt(first) / np.sqrt(second))
    # by definition 0, where a part is constant
    return np.where((first <= 0) | (second <= 0), 0.0, value)


def _unbiased_square(m: Means, n: int) -> float:
    """Return the squared distance correlation of U-centred distances, which has no bias at 0.

    It is Székely and Rizzo's (2014), and not defined for three rows or fewer.
    """
    if n <= 3:
        return nan
    a, b, ab, aa, bb, mean_ab, mean_aa, mean_bb = m

    def covariance(first: float, second: float, both: float, mean_both: float) -> float:
        return both - 2 * n / (n - 2) * mean_both + n * n / ((n - 1) * (n - 2)) * first * second

    first, second = covariance(a, a, aa, mean_aa), covariance(b, b, bb, mean_bb)
    return covariance(a, b, ab, mean_ab) / sqrt(first * second) if min(first, second) > 0 else nan


@statistic(
    encode=encode.two_parts,
    local=lambda h: (h[0], h[1], h[2], h[3], h[4], h[0] * h[1], h[0] * h[0], h[1] * h[1]),
    final=_distance_correlation,
    fast=fast.distance_correlation,
    normalisation="V",
    bounds=(0.0, 1.0),
    scale="root",
    centre=_unbiased_square,
)
def distance_correlation(
    x: Observation, y: Observation, split: int = 1
) -> tuple[float, float, float, float, float]:
    """Dependence of any kind between two columns (or the first `split` and the others): 0 if and
    only if none.
    """
    a, b = distance(x, y, 0, split), distance(x, y, split, len(x))
    return a, b, a * b, a * a, b * b
