"""Statistics of ranking: how well a score orders rows; and tests of ranks.

Tests are statistics here, so that nodes can test too.

The tests are Mann and Whitney's and Kendall's by the normal approximation. Their variances depend
on ties, which count by each row's share of equal rows: see `Ties`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gosta.statistics import encode, fast
from gosta.statistics.definition import Means, Observation, statistic
from gosta.statistics.dispersion import sign
from gosta.statistics.rank_distributions import Ties, kendall_variance, mann_whitney_variance

NO_INTERVAL = "it is a difference in standard errors already"
ROUNDING = 1e-12  # variances below this share of the largest possible one are zero


def won(score: float, sign: float, other: float, other_sign: float) -> float:
    """Return 1 if the positive one of two rows has the higher score, 1/2 for a tie, else 0."""
    mine, theirs = score * sign, -other * other_sign
    return 1.0 * (mine > theirs) + 0.5 * (mine == theirs)


@statistic(
    encode=encode.scored,
    final=lambda m: m[0] / m[1],
    fast=fast.auc,
    sample_index=1,
    bounds=(0.0, 1.0),
    mean_ranges=((0.0, 2.0), (0.0, 2.0)),
    is_row=encode.has_sign,
    scale="logit",
)
def auc(x: Observation, y: Observation) -> tuple[float, float]:
    """Probability that a positive row scores higher than a negative one: the area under the ROC
    curve.
    """
    different = 1.0 - x[1] * y[1]
    return different * won(x[0], x[1], y[0], y[1]), different


@statistic(
    encode=encode.two_scores,
    final=lambda m: (m[0] - m[1]) / m[2],
    fast=fast.auc_difference,
    sample_index=2,
    bounds=(-1.0, 1.0),
    mean_ranges=((0.0, 2.0),) * 3,
    is_row=encode.has_sign,
    null_value=0.0,
)
def auc_difference(x: Observation, y: Observation) -> tuple[float, float, float]:
    """AUC of a first score less that of a second, of the same rows."""
    different = 1.0 - x[2] * y[2]
    return (
        different * won(x[0], x[2], y[0], y[2]),
        different * won(x[1], x[2], y[1], y[2]),
        different,
    )


@statistic(
    encode=encode.class_scores,
    final=lambda m: m[0] / m[1],
    bounds=(0.0, 1.0),
    is_row=encode.has_class_score,
    no_interval="the weights of classes are taken from the rows",
)
def multiclass_auc(x: Observation, y: Observation) -> tuple[float, float]:
    """Mean AUC of several classes with a score each: over pairs of classes (Hand and Till) or one
    against the rest.
    """
    last = len(x) - 3
    mine, theirs = int(x[last]), int(y[last])
    if mine == theirs:
        return 0.0, 0.0
    forward, backward = x[last + 1] * y[last + 2], y[last + 1] * x[last + 2]
    gain, other_gain = x[mine] - y[mine], y[theirs] - x[theirs]
    won_forward = 1.0 * (gain > 0.0) + 0.5 * (gain == 0.0)
    won_backward = 1.0 * (other_gain > 0.0) + 0.5 * (other_gain == 0.0)
    return forward * won_forward + backward * won_backward, forward + backward


@statistic(
    encode=encode.scored,
    fast=fast.mann_whitney,
    sample_index=1,
    total=True,
    mean_ranges=((0.0, 1.0),),
    is_row=encode.has_sign,
)
def mann_whitney(x: Observation, y: Observation) -> float:
    """Number of pairs of a positive and a negative row in which the positive one scores higher: the
    rank-sum U.
    """
    return 0.5 * (1.0 - x[1] * y[1]) * won(x[0], x[1], y[0], y[1])


def precedes(x: Observation, y: Observation) -> bool:
    """Return whether x is known to have had its event before y."""
    return x[1] > 0.0 and (x[0] < y[0] or (x[0] == y[0] and y[1] == 0.0))


@statistic(
    encode=encode.survival,
    final=lambda m: m[0] / m[1],
    bounds=(0.0, 1.0),
    mean_ranges=((0.0, 1.0), (0.0, 1.0)),
    is_row=encode.has_event,
    scale="logit",
    comparable=1,
)
def concordance_index(x: Observation, y: Observation) -> tuple[float, float]:
    """Probability that of two rows, the one with the earlier event has the higher score: Harrell's
    C, censored.
    """
    if precedes(x, y):
        gap = x[2] - y[2]
    elif precedes(y, x):
        gap = y[2] - x[2]
    else:
        return 0.0, 0.0
    return 1.0 * (gap > 0.0) + 0.5 * (gap == 0.0), 1.0


@statistic(
    encode=encode.survival_of_two,
    final=lambda m: (m[0] - m[1]) / m[2],
    bounds=(-1.0, 1.0),
    mean_ranges=((0.0, 1.0),) * 3,
    is_row=encode.has_event,
    comparable=2,
    null_value=0.0,
)
def concordance_difference(x: Observation, y: Observation) -> tuple[float, float, float]:
    """Concordance index of a first score less that of a second, of the same rows."""
    if precedes(x, y):
        gap, other_gap = x[2] - y[2], x[3] - y[3]
    elif precedes(y, x):
        gap, other_gap = y[2] - x[2], y[3] - x[3]
    else:
        return 0.0, 0.0, 0.0
    won = 1.0 * (gap > 0.0) + 0.5 * (gap == 0.0)
    return won, 1.0 * (other_gap > 0.0) + 0.5 * (other_gap == 0.0), 1.0


def _in_errors(gap: float, variance: float, largest: float) -> Any:
    return gap / np.sqrt(np.where(variance > ROUNDING * largest, variance, 0.0))


def _mann_whitney_z(m: Means, rows: int) -> Any:
    pairs = m[1] * rows * (rows - 1) / 4
    gap = pairs * (m[0] / m[1] - 0.5)
    corrected = np.copysign(np.maximum(np.abs(gap) - 0.5, 0.0), gap)  # for continuity
    variance = mann_whitney_variance(rows, pairs, Ties.of_shares(rows, m[2], m[3]))
    return _in_errors(corrected, variance, pairs * rows)


@statistic(
    encode=encode.scored,
    local=lambda h: (h[0], h[1], h[2], h[2] * h[2]),
    final=_mann_whitney_z,
    fast=fast.auc_and_ties,
    sample_index=1,
    mean_ranges=((0.0, 2.0), (0.0, 2.0), (0.0, 1.0), (0.0, 1.0)),
    is_row=encode.has_sign,
    no_interval=NO_INTERVAL,
)
def mann_whitney_z(x: Observation, y: Observation) -> tuple[float, float, float]:
    """Mann–Whitney test: standard errors by which the AUC differs from 1/2; p is 2Φ(−|z|)."""
    different = 1.0 - x[1] * y[1]
    return different * won(x[0], x[1], y[0], y[1]), different, 1.0 * (x[0] == y[0])


def _kendall_z(m: Means, rows: int) -> Any:
    variance = kendall_variance(
        rows, Ties.of_shares(rows, m[1], m[2]), Ties.of_shares(rows, m[3], m[4])
    )
    return _in_errors(m[0] * rows * (rows - 1) / 2, variance, rows**3)


@statistic(
    encode=encode.pair,
    local=lambda h: (h[0], h[1], h[1] * h[1], h[2], h[2] * h[2]),
    final=_kendall_z,
    fast=fast.kendall_and_ties,
    mean_ranges=((-1.0, 1.0), *((0.0, 1.0),) * 4),
    no_interval=NO_INTERVAL,
)
def kendall_z(x: Observation, y: Observation) -> tuple[float, float, float]:
    """Kendall's test: standard errors by which tau differs from 0 of independent columns; p is
    2Φ(−|z|).
    """
    return sign(x[0] - y[0]) * sign(x[1] - y[1]), 1.0 * (x[0] == y[0]), 1.0 * (x[1] == y[1])
