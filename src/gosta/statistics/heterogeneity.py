"""How much values of several groups differ beyond chance.

It is told by Cochran's Q, I², and the spread between groups.

The formulas are those of meta-analysis of values y_i with standard errors s_i and weights w_i =
1/s_i²: Q = Σ w_i (y_i − Σwy/Σw)², I² = (Q − df)/Q with Higgins and Thompson's interval from the
standard error of log H (2002), and DerSimonian and Laird's spread τ with an interval by
Viechtbauer's Q-profile: those τ² at which Q with weights 1/(s_i² + τ²) is a quantile of
chi-squared. Of values between bounds the spread is at most half of what is between these, and of
two groups, which have one difference, it is not told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gosta.runtime.arrays import Floats
from gosta.statistics.distributions import chi_squared_quantile, chi_squared_tail

if TYPE_CHECKING:
    from gosta.statistics.estimate import Estimate

LEAST_GROUPS = 3  # of which a spread is told: two have one difference


class Heterogeneity(NamedTuple):
    """Differences between groups."""

    groups: int  # that have a value and an interval
    q: float  # Cochran's Q
    degrees: int
    p_value: float  # of Q, if all groups have one value in their populations
    i_squared: float  # share of the variance between values that is not sampling error
    i_squared_interval: tuple[float, float] | None  # None of two groups
    # Standard deviation between the groups' values in their populations; None of two groups.
    spread: float | None
    spread_interval: tuple[float, float] | None
    mean: float  # random-effects mean of the groups' values
    mean_interval: tuple[float, float]
    level: float  # of the intervals


def heterogeneity(
    values: Sequence[float],
    errors: Sequence[float],
    level: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Heterogeneity | None:
    """Compare values of groups by their standard errors; None with fewer than two groups.

    Values that lie within bounds cannot spread by more than half of what is between these.

    >>> found = heterogeneity([0.7, 0.8, 0.9], [0.05, 0.04, 0.03])
    >>> f"Q {found.q:.3f}, p {found.p_value:.4f}, I² {found.i_squared:.3f}, mean {found.mean:.4f}"
    'Q 12.744, p 0.0017, I² 0.843, mean 0.8053'
    """
    y = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        s2 = np.asarray(errors, dtype=np.float64) ** 2
    if len(y) < 2 or not ((s2 > 0) & np.isfinite(s2) & np.isfinite(y)).all():
        return None
    degrees, w = len(y) - 1, 1 / s2
    q = _q(y, s2, 0.0)
    variance = max(0.0, (q - degrees) / (w.sum() - (w**2).sum() / w.sum()))
    weights = 1 / (s2 + variance)
    mean, reach = float((weights * y).sum() / weights.sum()), NormalDist().inv_cdf(0.5 + level / 2)
    half = reach / math.sqrt(weights.sum())
    is_few = len(y) < LEAST_GROUPS
    most = (bounds[1] - bounds[0]) / 2
    low, high = _spread_interval(y, s2, level)
    return Heterogeneity(
        groups=len(y),
        q=q,
        degrees=degrees,
        p_value=chi_squared_tail(q, degrees),
        i_squared=max(0.0, 1 - degrees / q) if q > 0 else 0.0,
        i_squared_interval=_i_squared_interval(q, degrees, reach),
        spread=None if is_few else min(math.sqrt(variance), most),
        spread_interval=None if is_few else (min(low, most), min(high, most)),
        mean=mean,
        mean_interval=(max(mean - half, bounds[0]), min(mean + half, bounds[1])),
        level=level,
    )


def of_groups(
    groups: Sequence[Estimate], level: float, bounds: tuple[float, float]
) -> Heterogeneity | None:
    """Compare the groups that have one value and an interval.

    Standard errors of few rows or events can be far too small, that of a share of 1 is 0. So the
    interval's reach towards the other groups counts as the normal quantile of its level in standard
    errors, as for p-values of differences.
    """
    usable = compared_groups(groups)
    if not usable:
        return None
    ends = np.array([(g.value, g.low, g.high) for g in usable], dtype=np.float64)
    quantiles = [NormalDist().inv_cdf(0.5 + (g.level or level) / 2) for g in usable]
    y, low, high = ends.T
    widths = (high - low) / 2
    middle = np.average(y, weights=widths**-2)
    reaches = np.where(y > middle, y - low, high - y)
    errors = np.where(reaches > 0, reaches, widths) / quantiles
    return heterogeneity(y.tolist(), errors.tolist(), level, bounds)


def compared_groups(groups: Sequence[Estimate]) -> list[Estimate]:
    """Return the groups that have one value, and an interval of some finite length."""
    return [g for g in groups if np.ndim(g.value) == 0 and 0 < g.high - g.low < math.inf]


def _q(y: Floats, s2: Floats, variance: float) -> float:
    w = 1 / (s2 + variance)
    return float((w * (y - (w * y).sum() / w.sum()) ** 2).sum())


def _i_squared_interval(q: float, degrees: int, reach: float) -> tuple[float, float] | None:
    if degrees < 2:
        return None
    if q > degrees + 1:
        error = (
            0.5
            * (math.log(q) - math.log(degrees))
            / (math.sqrt(2 * q) - math.sqrt(2 * degrees - 1))
        )
    else:
        error = math.sqrt(1 / (2 * (degrees - 1)) * (1 - 1 / (3 * (degrees - 1) ** 2)))
    log_h = max(0.0, 0.5 * math.log(q / degrees)) if q > 0 else 0.0
    low, high = (math.exp(log_h + sign * reach * error) for sign in (-1, 1))
    return max(0.0, 1 - low**-2), max(0.0, 1 - high**-2)


def _spread_interval(y: Floats, s2: Floats, level: float) -> tuple[float, float]:
    degrees = len(y) - 1
    ends = (
        chi_squared_quantile(0.5 + level / 2, degrees),
        chi_squared_quantile(0.5 - level / 2, degrees),
    )
    return _spread_at(y, s2, ends[0]), _spread_at(y, s2, ends[1])


def _spread_at(y: Floats, s2: Floats, wanted: float) -> float:
    """Return the spread at which Q, which falls with it, has a value; 0 if Q begins below it."""
    if _q(y, s2, 0.0) <= wanted:
        return 0.0
    low, high = 0.0, float(s2.max() + np.ptp(y) ** 2)
    while _q(y, s2, high) > wanted:
        low, high = high, 2 * high
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if _q(y, s2, middle) > wanted else (low, middle)
    return math.sqrt(high)
