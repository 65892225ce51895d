"""How a node estimates its own error from its own readings alone.

A node reads its estimate eight times while its number of exchanges doubles. Whatever is wrong with an estimate,
disagreement with others or sampling error, shows as change while the number of exchanges doubles; sampling error alone
decreases with the square root of that number. So a node expects its error to be 1.5 times the largest of its last six
changes over a doubling, each scaled by that square root.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gosta.runtime.arrays import Floats, Integers

READINGS_PER_DOUBLING = 8
CHANGES = 6
MAX_READINGS = 2 * (READINGS_PER_DOUBLING + CHANGES)  # more than needed, for runs that are resumed beyond their end
SAFETY_FACTOR = 1.5


def reading_times(first: int, last: int) -> Integers:
    """Return iterations in equal ratios from the first to the last."""
    steps = int(np.ceil(np.log2(last / first) * READINGS_PER_DOUBLING))
    times = first * 2 ** (np.arange(steps + 1) / READINGS_PER_DOUBLING)
    return np.unique(np.minimum(np.round(times), last)).astype(np.int64)


def expected_errors(readings: Sequence[Floats], times: Sequence[int]) -> Floats:
    """Return the relative error that each node expects, from its last readings (nodes × values each) and their times.

    It is infinite while there are too few readings.
    """
    values, at = np.array(readings), np.array(times, dtype=np.float64)[-len(readings) :]
    last = np.arange(len(at))[-CHANGES:]
    half = np.searchsorted(at, 0.501 * at[last], side="right") - 1
    if len(last) < CHANGES or half[0] < 0:
        return np.full(values.shape[1], np.inf)
    changes = np.linalg.norm(values[last] - values[half], axis=2) * np.sqrt(at[last] / at[-1])[:, None]
    sizes = np.linalg.norm(values[-1], axis=1)
    with np.errstate(all="ignore"):
        return np.where(sizes > 0, SAFETY_FACTOR * changes.max(axis=0) / sizes, np.inf)
