"""How a node estimates its own error from its own readings alone.

A node reads its estimate eight times while its number of exchanges doubles. Whatever is wrong with
an estimate, disagreement with others or sampling error, shows as change while the number of
exchanges doubles. Of a running mean, that change has the same standard deviation as the error that
is left, and decreases with the square root of the number of exchanges. So a node expects its error
to be a multiple of the root mean square of its last changes over a doubling, each scaled by that
square root; older changes count less.

How many changes count depends on how many nodes a node has seen rows of. Where there are many, each
meets other visitors, and 80 % of them are content only if few are wrong: the last few changes are
enough, and the first exchanges, in which estimates change the most, are soon forgotten. Where there
are few, they see the same rows and are wrong together: a small change by chance must not be enough,
so the changes of several doublings count. And a value that a share 1/m of the pairs decides may not
have shown in m exchanges: up to 100 exchanges, a node expects an error of 1/exchanges at least.
Nodes that average moments of their own rows sample nothing, and need neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gosta.runtime.arrays import Floats, Integers

READINGS_PER_DOUBLING = 8
MIN_CHANGES = 6  # fewer give no error
MAX_CHANGES = 40  # more would not count for much
# Readings that are kept: more than needed, for runs that are resumed beyond their end.
MAX_READINGS = 2 * READINGS_PER_DOUBLING + MAX_CHANGES
FEW_EXCHANGES = 100


class Rule(NamedTuple):
    """Constants of the expected error; `python benchmarks/stopping.py --tune` measures others."""

    # Quantile of Student's distribution for the changes of about five doublings.
    factor: float = 2.5
    memory: float = 4.0  # readings that a change counts for, in large networks
    more_memory: float = 21.0  # added in networks of few nodes, and half of it at so many:
    few_nodes: float = 50.0

    def changes(self, nodes: int | None) -> float:
        """Return how many changes count, given of how many nodes rows were seen.

        None: nothing is sampled.

        >>> [round(Rule().changes(nodes), 1) for nodes in (5, 20, 100, 400, None)]
        [24.8, 22.1, 8.2, 4.3, 4.0]
        """
        return self.memory + (
            0.0 if nodes is None else self.more_memory / (1.0 + (nodes / self.few_nodes) ** 2)
        )


RULE = Rule()
# For intervals only the last changes count: before, errors often decreased faster, and intervals
# would be too wide.
INTERVAL_RULE = Rule(more_memory=0.0)


def reading_times(first: int, last: int) -> Integers:
    """Return iterations in equal ratios from the first to the last, and the last one."""
    return np.union1d(reading_grid(first, last), [last]).astype(np.int64)


def reading_grid(first: int, last: int) -> Integers:
    """Return iterations in equal ratios from the first on, none after the last.

    They are the same ones for any last.
    """
    steps = int(np.ceil(max(0.0, np.log2(last / first)) * READINGS_PER_DOUBLING))
    times = np.round(first * 2 ** (np.arange(steps + 1) / READINGS_PER_DOUBLING))
    return np.unique(times[times <= last]).astype(np.int64)


def expected_errors(
    readings: Sequence[Floats],
    times: Sequence[int],
    nodes: int | None = None,
    exchanges: float = np.inf,
    rule: Rule = RULE,
) -> Floats:
    """Return the relative error that each node expects.

    It follows from its last readings, nodes × values each, and their times.

    `nodes` is the number of nodes whose rows were sampled, None where nothing is; `exchanges` those
    of a node so far. The error is infinite while there are too few readings.
    """
    values, at = np.array(readings), np.array(times, dtype=np.float64)[-len(readings) :]
    half = np.searchsorted(at, 0.501 * at, side="right") - 1
    last = np.flatnonzero(half >= 0)[-MAX_CHANGES:]
    if len(last) < MIN_CHANGES:
        return np.full(values.shape[1], np.inf)
    squares = ((values[last] - values[half[last]]) ** 2).sum(axis=2) * (at[last] / at[-1])[:, None]
    weights = (1.0 - 1.0 / rule.changes(nodes)) ** np.arange(len(last))[::-1]
    sizes = np.linalg.norm(values[-1], axis=1)
    with np.errstate(all="ignore"):
        errors = rule.factor * np.sqrt(np.average(squares, axis=0, weights=weights)) / sizes
    least = 0.0 if nodes is None or exchanges >= FEW_EXCHANGES else 1.0 / exchanges
    return np.where(sizes > 0, np.maximum(errors, least), np.inf)


def gossip_errors(values: Floats, expected: Floats) -> Floats:
    """Return the standard error of gossip in nodes' values, from what they expect by INTERVAL_RULE.

    NaN: not known.

    The whole of what a node expects counts for one standard error: where rows are in the order of
    the network, the error decreases slower than changes tell (benchmarks/intervals.py).
    """
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(expected), np.abs(values) * expected, np.nan)
