"""Statistics of ranking: how well a score orders rows."""

from __future__ import annotations

from gosta.statistics import encode, fast
from gosta.statistics.definition import Observation, statistic


def won(score: float, sign: float, other: float, other_sign: float) -> float:
    """Return 1 if of two rows of different classes the positive one has the higher score, 1/2 for a tie, else 0."""
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
)
def auc(x: Observation, y: Observation) -> tuple[float, float]:
    """Probability that a positive row scores higher than a negative one: the area under the ROC curve."""
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
)
def auc_difference(x: Observation, y: Observation) -> tuple[float, float, float]:
    """AUC of a first score less that of a second, of the same rows."""
    different = 1.0 - x[2] * y[2]
    return different * won(x[0], x[2], y[0], y[2]), different * won(x[1], x[2], y[1], y[2]), different


@statistic(
    encode=encode.scored,
    fast=fast.mann_whitney,
    sample_index=1,
    total=True,
    mean_ranges=((0.0, 1.0),),
    is_row=encode.has_sign,
)
def mann_whitney(x: Observation, y: Observation) -> float:
    """Number of pairs of a positive and a negative row in which the positive one scores higher: the rank-sum U."""
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
)
def concordance_index(x: Observation, y: Observation) -> tuple[float, float]:
    """Probability that of two rows, the one with the earlier event has the higher score: Harrell's C, censored."""
    if precedes(x, y):
        gap = x[2] - y[2]
    elif precedes(y, x):
        gap = y[2] - x[2]
    else:
        return 0.0, 0.0
    return 1.0 * (gap > 0.0) + 0.5 * (gap == 0.0), 1.0
