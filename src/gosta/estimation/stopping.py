"""How a node knows, from its own readings alone, that it is close enough.

A node reads its estimate eight times while its meetings double in number. What is wrong with an estimate, disagreement
with others or chance in what was seen, shows as change while twice as much is seen; chance alone goes down with the
root of the meetings. So a node takes for its error half as much again as the largest of the last six changes over a
doubling, each brought forward by that root.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gosta.runtime.arrays import Floats

PER_DOUBLING = 8
CHANGES = 6
READINGS = 2 * (PER_DOUBLING + CHANGES)  # more than needed, where a run went on after its end
SAFETY = 1.5


def looks(first: int, last: int) -> Any:
    """When to look: at equal ratios from the first to the last iteration."""
    steps = int(np.ceil(np.log2(last / first) * PER_DOUBLING))
    times = first * 2 ** (np.arange(steps + 1) / PER_DOUBLING)
    return np.unique(np.minimum(np.round(times), last)).astype(np.int64)


def remaining(readings: Sequence[Floats], times: Sequence[int]) -> Floats:
    """The relative error each node expects to have, from its last readings (nodes × values each) and their times."""
    values, at = np.array(readings), np.array(times, dtype=np.float64)[-len(readings) :]
    last = np.arange(len(at))[-CHANGES:]
    half = np.searchsorted(at, 0.501 * at[last], side="right") - 1
    if len(last) < CHANGES or half[0] < 0:
        return np.full(values.shape[1], np.inf)
    changes = np.linalg.norm(values[last] - values[half], axis=2) * np.sqrt(at[last] / at[-1])[:, None]
    sizes = np.linalg.norm(values[-1], axis=1)
    with np.errstate(all="ignore"):
        return np.where(sizes > 0, SAFETY * changes.max(axis=0) / sizes, np.inf)
