"""Random graphs as arrays of edges: what the random families draw."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.graphs.graph import Edges, pair_numbers, pairs_from_numbers
from gosta.runtime import compiler as compiled
from gosta.runtime.arrays import Integers

ROUNDS = 1000  # of redrawing the edges that clash; a handful is enough unless the graph is nearly complete


def rewired(rng: np.random.Generator, n: int, half: int, p: float) -> Integers:
    """The numbers of the pairs that are joined once some edges of the ring lead elsewhere.

    The pair numbered e < n · half is the edge e of the ring: from node e % n to the one e // n + 1 further. Each round
    proposes new ends for all edges that wait for one; the graph is a proper one after every round.
    """
    edge = np.arange(n * half)
    waiting = np.flatnonzero(rng.random(len(edge)) < p)
    gone = np.zeros(len(edge), dtype=np.bool_)
    taken = np.empty(0, dtype=np.int64)  # by edges that have moved, in order
    for _ in range(ROUNDS):
        if not len(waiting):
            break
        proposed = pair_numbers(waiting % n, rng.integers(n, size=len(waiting)), n)
        in_ring = proposed < len(edge)
        in_ring[in_ring] = ~gone[proposed[in_ring]]
        free = (proposed >= 0) & ~in_ring & ~_among(taken, proposed)
        free[free] = _first(proposed[free])
        gone[waiting[free]] = True
        edge[waiting[free]] = proposed[free]
        taken = np.sort(np.concatenate([taken, proposed[free]]))
        waiting = waiting[~free]
    return edge


def distinct(rng: np.random.Generator, population: int, size: int) -> Integers:
    """Some of the numbers below the population, all subsets of that size as likely."""
    if 2 * size > population:
        kept = np.ones(population, dtype=np.bool_)
        kept[distinct(rng, population, population - size)] = False
        return np.flatnonzero(kept)
    chosen = np.empty(0, dtype=np.int64)
    while len(chosen) < size:
        more = rng.integers(population, size=size - len(chosen))
        chosen = np.sort(np.concatenate([chosen, more]))
        # np.unique hashes, which takes many times longer on millions of numbers.
        chosen = chosen[np.diff(chosen, prepend=-1) > 0]
    return chosen


def ring(rng: np.random.Generator, n: int, _degree: int) -> Edges:
    """The connected graphs of degree two: pairing half-edges would hardly ever find one."""
    node = rng.permutation(n)
    return joined(node, np.roll(node, -1))


def regular(rng: np.random.Generator, n: int, degree: int) -> Edges | None:
    if 2 * degree < n:
        return _matched(rng, n, degree)
    # Few pairs are free in a dense graph; those that are not joined are a sparse one.
    left_out = _matched(rng, n, n - 1 - degree)
    if left_out is None:
        return None
    kept = np.ones(n * (n - 1) // 2, dtype=np.bool_)
    kept[pair_numbers(left_out[:, 0], left_out[:, 1], n)] = False
    return pairs_from_numbers(np.flatnonzero(kept), n)


def _matched(rng: np.random.Generator, n: int, degree: int) -> Edges | None:
    """Pair half-edges at random; let edges that clash change ends with random others.

    A change is made only if both new edges are new, so every one of them leaves fewer clashes.
    """
    ends = rng.permutation(np.repeat(np.arange(n, dtype=np.int32), degree)).reshape(-1, 2)
    number = pair_numbers(ends[:, 0], ends[:, 1], n)
    for _ in range(ROUNDS):
        clashing = np.flatnonzero((number < 0) | ~_first(number))
        if not len(clashing):
            return ends
        other = distinct(rng, len(ends), min(len(clashing), len(ends) // 2))
        rng.shuffle(other)
        clashing = rng.permutation(clashing)[: len(other)]
        apart = ~np.isin(other, clashing)
        clashing, other = clashing[apart], other[apart]
        turn = rng.integers(2, size=len(other))
        one = np.column_stack([ends[clashing, 0], ends[other, turn]])
        two = np.column_stack([ends[clashing, 1], ends[other, 1 - turn]])
        new = np.concatenate([pair_numbers(one[:, 0], one[:, 1], n), pair_numbers(two[:, 0], two[:, 1], n)])
        fine = ((new >= 0) & _first(new) & ~_among(np.sort(number), new)).reshape(2, -1).all(axis=0)
        for place, end, fresh in zip((clashing, other), (one, two), np.split(new, 2), strict=True):
            ends[place[fine]] = end[fine]
            number[place[fine]] = fresh[fine]
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
            friend = ends[rng.integers(0, filled)]
            if chosen_by[friend] != node:
                chosen_by[friend] = node
                ends[at] = node
                ends[at + 1] = friend
                at += 2
        filled = at


def compiled_grow() -> Callable[..., None]:
    text = "from __future__ import annotations\nimport numpy as np\n" + inspect.getsource(_grow)
    smallest = (np.random.default_rng(0), 2, 1, np.zeros(2, dtype=np.int32))
    return compiled.specialise(text, {}, lambda module: module._grow(*smallest))._grow  # type: ignore[no-any-return]


def _first(values: Integers) -> NDArray[np.bool_]:
    """True where a value stands for the first time."""
    mask = np.zeros(len(values), dtype=np.bool_)
    mask[np.unique(values, return_index=True)[1]] = True
    return mask


def _among(ordered: Integers, values: Integers) -> NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(values), dtype=np.bool_)
    place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return ordered[place] == values  # type: ignore[no-any-return]


def joined(one: NDArray[Any], two: NDArray[Any]) -> Edges:
    """Edges from their two ends."""
    return np.column_stack([one.ravel(), two.ravel()]).astype(np.int32, copy=False)
