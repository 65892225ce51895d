"""How a node knows, from its own readings alone, that it is close enough.

A node reads its estimate eight times while the number of its meetings doubles. What is still wrong with the estimate,
disagreement with others or chance in what was seen so far, shows as movement while twice as much is seen: the range
of the last nine readings, times `SAFETY`, is what the node takes for its error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gosta.datasets.data import Floats

PER_DOUBLING = 8
READINGS = PER_DOUBLING + 1
SAFETY = 1.0


def looks(first: int, last: int) -> Any:
    """When to look: at equal ratios from the first to the last iteration."""
    doublings = np.log2(last / first)
    times = first * 2 ** (np.arange(int(np.ceil(doublings * PER_DOUBLING)) + 1) / PER_DOUBLING)
    return np.unique(np.minimum(np.round(times), last)).astype(np.int64)


def remaining(readings: Floats) -> Floats:
    """The relative error each node expects to have, from its last readings (readings × nodes × values)."""
    if len(readings) < READINGS:
        return np.full(readings.shape[1], np.inf)
    last = readings[-READINGS:]
    ranges = np.linalg.norm(last.max(axis=0) - last.min(axis=0), axis=1)
    sizes = np.linalg.norm(last[-1], axis=1)
    with np.errstate(all="ignore"):
        return np.where(sizes > 0, SAFETY * ranges / sizes, np.inf)
