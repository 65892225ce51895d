"""How a node knows, from its own readings alone, that it is close enough.

A node reads its estimate eight times while its meetings double in number. What is wrong with an estimate, disagreement
with others or chance in what was seen, shows as change while twice as much is seen; chance alone goes down with the
root of the meetings. So a node takes for its error half as much again as the largest of the last four changes over a
doubling, each brought forward by that root.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gosta.datasets.data import Floats

PER_DOUBLING = 8
CHANGES = 4
READINGS = PER_DOUBLING + CHANGES
SAFETY = 1.5


def looks(first: int, last: int) -> Any:
    """When to look: at equal ratios from the first to the last iteration."""
    steps = int(np.ceil(np.log2(last / first) * PER_DOUBLING))
    times = first * 2 ** (np.arange(steps + 1) / PER_DOUBLING)
    return np.unique(np.minimum(np.round(times), last)).astype(np.int64)


def remaining(readings: Sequence[Floats], times: Sequence[int]) -> Floats:
    """The relative error each node expects to have, from its last readings (nodes × values each) and their times."""
    if len(readings) < READINGS:
        return np.full(len(readings[-1]), np.inf)
    values, forward = np.array(readings[-READINGS:]), np.sqrt(np.array(times[-CHANGES:]) / times[-1])
    changes = np.linalg.norm(values[PER_DOUBLING:] - values[:-PER_DOUBLING], axis=2)
    sizes = np.linalg.norm(values[-1], axis=1)
    with np.errstate(all="ignore"):
        return np.where(sizes > 0, SAFETY * (changes * forward[:, None]).max(axis=0) / sizes, np.inf)
