"""How a node estimates its own error from its own readings alone.

A node reads its estimate eight times while its number of exchanges doubles. Whatever is wrong with an estimate,
disagreement with others or sampling error, shows as change while the number of exchanges doubles; sampling error alone
decreases with the square root of that number. So a node expects its error to be a multiple of the largest of its last
six changes over a doubling, each scaled by that square root.

The multiple depends on how many nodes a node has seen rows of. Where there are many, each meets other visitors, and
80 % of them are content only if few are wrong: 1.5 is enough. Where there are few, they see the same rows and are wrong
together, and one small change by chance would be enough: up to 4.5 is needed. And a value that a share 1/m of the pairs
decides may not have shown in m exchanges: up to 100 exchanges, a node expects an error of 1/exchanges at least.
Nothing of this is needed where nodes average moments of their own rows, which are known and not sampled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gosta.runtime.arrays import Floats, Integers

READINGS_PER_DOUBLING = 8
CHANGES = 6
MAX_READINGS = 2 * (READINGS_PER_DOUBLING + CHANGES)  # more than needed, for runs that are resumed beyond their end
# Measured at 5 to 400 nodes, with rows at random, sorted and with heavy tails: docs/tracking.md.
SAFETY_FACTOR = 1.5
SMALL_NETWORK_FACTOR = 3.0  # added at networks of few nodes, and half of it at so many:
SMALL_NETWORK_NODES = 60
FEW_EXCHANGES = 100


def safety_factor(nodes: int) -> float:
    """Return by what a node multiplies the change of its readings, given of how many nodes it has seen rows.

    >>> [round(safety_factor(nodes), 2) for nodes in (5, 20, 60, 100, 400)]
    [4.48, 4.2, 3.0, 2.29, 1.57]
    """
    return SAFETY_FACTOR + SMALL_NETWORK_FACTOR / (1.0 + (nodes / SMALL_NETWORK_NODES) ** 2)


def reading_times(first: int, last: int) -> Integers:
    """Return iterations in equal ratios from the first to the last, and the last one."""
    return np.union1d(reading_grid(first, last), [last]).astype(np.int64)


def reading_grid(first: int, last: int) -> Integers:
    """Return iterations in equal ratios from the first on, none after the last: the same ones for any last."""
    steps = int(np.ceil(max(0.0, np.log2(last / first)) * READINGS_PER_DOUBLING))
    times = np.round(first * 2 ** (np.arange(steps + 1) / READINGS_PER_DOUBLING))
    return np.unique(times[times <= last]).astype(np.int64)


def expected_errors(
    readings: Sequence[Floats], times: Sequence[int], nodes: int | None = None, exchanges: float = np.inf
) -> Floats:
    """Return the relative error that each node expects, from its last readings (nodes × values each) and their times.

    `nodes` is the number of nodes whose rows were sampled, None where nothing is; `exchanges` those of a node so far.
    The error is infinite while there are too few readings.
    """
    values, at = np.array(readings), np.array(times, dtype=np.float64)[-len(readings) :]
    last = np.arange(len(at))[-CHANGES:]
    half = np.searchsorted(at, 0.501 * at[last], side="right") - 1
    if len(last) < CHANGES or half[0] < 0:
        return np.full(values.shape[1], np.inf)
    changes = np.linalg.norm(values[last] - values[half], axis=2) * np.sqrt(at[last] / at[-1])[:, None]
    sizes = np.linalg.norm(values[-1], axis=1)
    with np.errstate(all="ignore"):
        found = (SAFETY_FACTOR if nodes is None else safety_factor(nodes)) * changes.max(axis=0) / sizes
    least = 0.0 if nodes is None or exchanges >= FEW_EXCHANGES else 1.0 / exchanges
    return np.where(sizes > 0, np.maximum(found, least), np.inf)


def gossip_errors(values: Floats, expected: Floats) -> Floats:
    """Return the standard error of gossip in nodes' values, from the relative errors that they expect.

    Nodes keep what they expect in 95 % of cases, so it counts for two standard errors. NaN: not known yet.
    """
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(expected), np.abs(values) * expected / 2.0, np.nan)
