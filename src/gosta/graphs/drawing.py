"""Random graphs as arrays of edges, drawn for the random families."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.graphs.graph import Edges, pair_numbers, pairs_from_numbers
from gosta.runtime import compiler
from gosta.runtime.arrays import Booleans, Integers

MAX_PLAIN_ENDS = 1 << 14  # of edges: up to here importing numba takes longer than it saves
MAX_ROUNDS = 1000  # of redrawing the edges that clash; a handful is enough unless the graph is nearly complete


def rewire(rng: np.random.Generator, n: int, half: int, p: float) -> Integers:
    """Rewire each edge of a ring with probability p, and return the numbers of the pairs that are joined.

    The pair numbered e < n · half is the edge e of the ring: from node e % n to the one e // n + 1 further. Each round
    proposes new ends for all edges that still need one; no edge is double after any round.
    """
    edge = np.arange(n * half)
    waiting = np.flatnonzero(rng.random(len(edge)) < p)
    moved = np.zeros(len(edge), dtype=np.bool_)
    taken = np.empty(0, dtype=np.int64)  # the new pairs, sorted
    for _ in range(MAX_ROUNDS):
        if not len(waiting):
            break
        proposed = pair_numbers(waiting % n, rng.integers(n, size=len(waiting)), n)
        in_ring = proposed < len(edge)
        in_ring[in_ring] = ~moved[proposed[in_ring]]
        free = (proposed >= 0) & ~in_ring & ~_is_among(taken, proposed)
        free[free] = _is_first(proposed[free])
        moved[waiting[free]] = True
        edge[waiting[free]] = proposed[free]
        taken = np.sort(np.concatenate([taken, proposed[free]]))
        waiting = waiting[~free]
    return edge


def sample_distinct(rng: np.random.Generator, population: int, size: int) -> Integers:
    """Draw a subset of the numbers below the population, uniformly among those of a size."""
    if 2 * size > population:
        kept = np.ones(population, dtype=np.bool_)
        kept[sample_distinct(rng, population, population - size)] = False
        return np.flatnonzero(kept)
    chosen = np.empty(0, dtype=np.int64)
    while len(chosen) < size:
        more = rng.integers(population, size=size - len(chosen))
        chosen = np.sort(np.concatenate([chosen, more]))
        # np.unique hashes, which takes many times longer on millions of numbers.
        chosen = chosen[np.diff(chosen, prepend=-1) > 0]
    return chosen


def draw_ring(rng: np.random.Generator, n: int, _degree: int) -> Edges:
    """Draw a connected graph of degree two, which pairing half-edges would hardly ever find."""
    node = rng.permutation(n)
    return edges_between(node, np.roll(node, -1))


def draw_regular(rng: np.random.Generator, n: int, degree: int) -> Edges | None:
    """Draw a graph of a degree, connected or not; None if no such graph was found."""
    if 2 * degree < n:
        return _match_half_edges(rng, n, degree)
    # Few pairs are free in a dense graph; those that are not joined are a sparse one.
    left_out = _match_half_edges(rng, n, n - 1 - degree)
    if left_out is None:
        return None
    kept = np.ones(n * (n - 1) // 2, dtype=np.bool_)
    kept[pair_numbers(left_out[:, 0], left_out[:, 1], n)] = False
    return pairs_from_numbers(np.flatnonzero(kept), n)


def _match_half_edges(rng: np.random.Generator, n: int, degree: int) -> Edges | None:
    """Pair half-edges at random; swap ends of edges that clash with random others.

    A swap is made only if both resulting edges are new, so each leaves fewer clashes.
    """
    ends = rng.permutation(np.repeat(np.arange(n, dtype=np.int32), degree)).reshape(-1, 2)
    number = pair_numbers(ends[:, 0], ends[:, 1], n)
    for _ in range(MAX_ROUNDS):
        clashing = np.flatnonzero((number < 0) | ~_is_first(number))
        if not len(clashing):
            return ends
        other = sample_distinct(rng, len(ends), min(len(clashing), len(ends) // 2))
        rng.shuffle(other)
        clashing = rng.permutation(clashing)[: len(other)]
        apart = ~np.isin(other, clashing)
        clashing, other = clashing[apart], other[apart]
        side = rng.integers(2, size=len(other))
        one = np.column_stack([ends[clashing, 0], ends[other, side]])
        two = np.column_stack([ends[clashing, 1], ends[other, 1 - side]])
        new = np.concatenate(
            [pair_numbers(one[:, 0], one[:, 1], n), pair_numbers(two[:, 0], two[:, 1], n)]
        )
        is_free = (
            ((new >= 0) & _is_first(new) & ~_is_among(np.sort(number), new))
            .reshape(2, -1)
            .all(axis=0)
        )
        for position, end, fresh in zip(
            (clashing, other), (one, two), np.split(new, 2), strict=True
        ):
            ends[position[is_free]] = end[is_free]
            number[position[is_free]] = fresh[is_free]
    return None


def _grow(rng: Any, n: int, m: int, ends: NDArray[np.int32]) -> None:
    """Fill in the two ends of every edge; a random entry so far is a node in proportion to its degree."""
    for node in range(1, m + 1):
        ends[2 * node - 2] = 0
        ends[2 * node - 1] = node
    chosen_by = np.zeros(n, dtype=np.int32)
    filled = 2 * m
    for node in range(m + 1, n):
        at = filled
        while at < filled + 2 * m:
            target = ends[rng.integers(0, filled)]
            if chosen_by[target] != node:
                chosen_by[target] = node
                ends[at] = node
                ends[at + 1] = target
                at += 2
        filled = at


def grow(rng: np.random.Generator, n: int, m: int) -> Edges:
    """Draw a graph in which each new node joins m others, preferably those of high degree; compiled if it is large."""
    edges = np.empty((m * (n - m), 2), dtype=np.int32)
    if edges.size <= MAX_PLAIN_ENDS or not compiler.is_available(
        edges.size, f"barabasi-albert on {n} nodes"
    ):
        _grow(rng, n, m, edges.reshape(-1))
    else:
        text = "from __future__ import annotations\nimport numpy as np\n" + inspect.getsource(_grow)
        smallest = (np.random.default_rng(0), 2, 1, np.zeros(2, dtype=np.int32))
        module = compiler.specialise(text, {}, lambda made: made._grow(*smallest))
        module._grow(rng, n, m, edges.reshape(-1))
    return edges


def _is_first(values: Integers) -> Booleans:
    """Return whether each value occurs for the first time."""
    mask = np.zeros(len(values), dtype=np.bool_)
    mask[np.unique(values, return_index=True)[1]] = True
    return mask


def _is_among(ordered: Integers, values: Integers) -> Booleans:
    if not len(ordered):
        return np.zeros(len(values), dtype=np.bool_)
    position = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return ordered[position] == values  # type: ignore[no-any-return]


def edges_between(one: NDArray[Any], two: NDArray[Any]) -> Edges:
    """Return edges from arrays of their two ends."""
    return np.column_stack([one.ravel(), two.ravel()]).astype(np.int32, copy=False)
