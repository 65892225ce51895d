"""Tests of ranks as statistics, so that nodes can test too: Mann–Whitney and Kendall, by the normal approximation.

Their variances depend on ties, which count by each row's share of equal rows: see `Ties`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gosta.statistics import encode, fast
from gosta.statistics.association import sign
from gosta.statistics.definition import Means, Observation, statistic
from gosta.statistics.ranking import won
from gosta.statistics.ties import Ties, kendall_variance, mann_whitney_variance

NO_INTERVAL = "it is a difference in standard errors already"
ROUNDING = 1e-12  # variances below this share of the largest possible one are zero


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
    """Kendall's test: standard errors by which tau differs from 0 of independent columns; p is 2Φ(−|z|)."""
    return sign(x[0] - y[0]) * sign(x[1] - y[1]), 1.0 * (x[0] == y[0]), 1.0 * (x[1] == y[1])
