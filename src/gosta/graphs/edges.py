"""Edges as arrays: numbers of pairs of nodes, and edges of families with a geometry."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.runtime.arrays import Integers

Edges = NDArray[np.int32]  # m × 2 node numbers


def pair_numbers(i: NDArray[Any], j: NDArray[Any], n: int) -> Integers:
    """Return each unordered pair of n nodes as a number from 0 to n(n−1)/2 − 1.

    Pairs one step apart around the ring of nodes come first, then those two apart, and so on. The
    number of a node with itself is negative.
    """
    i = i.astype(np.int64)
    gap = (j - i) % n
    backwards = (2 * gap > n) | ((2 * gap == n) & (i > j))
    start = np.where(backwards, j, i)
    step = np.where(backwards, n - gap, gap)
    number: Integers = (step - 1) * n + start
    return number


def pairs_from_numbers(number: Integers, n: int) -> Edges:
    """Return the pairs of nodes that have these numbers, as `pair_numbers` assigns them."""
    step, start = np.divmod(number, n)
    return np.column_stack([start, (start + step + 1) % n]).astype(np.int32)


def edges_between(left: NDArray[Any], right: NDArray[Any]) -> Edges:
    """Return edges from arrays of their two ends."""
    return np.column_stack([left.ravel(), right.ravel()]).astype(np.int32, copy=False)


def cycle_edges(n: int) -> Edges:
    """Return the edges of a ring."""
    node = np.arange(n, dtype=np.int32)
    return edges_between(node, np.roll(node, -1))


def path_edges(n: int) -> Edges:
    """Return the edges of a line."""
    node = np.arange(n, dtype=np.int32)
    return edges_between(node[:-1], node[1:])


def star_edges(n: int) -> Edges:
    """Return the edges from node 0 to all others."""
    others = np.arange(1, n, dtype=np.int32)
    return edges_between(np.zeros_like(others), others)


def torus_edges(rows: int, columns: int) -> Edges:
    """Return the edges of a grid with periodic borders, whose nodes are numbered row by row."""
    node = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    return np.concatenate([edges_between(node, np.roll(node, -1, axis)) for axis in (1, 0)])


def grid_edges(rows: int, columns: int) -> Edges:
    """Return the edges of a grid with open borders, whose nodes are numbered row by row."""
    node = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    across = edges_between(node[:, :-1], node[:, 1:])
    return np.concatenate([across, edges_between(node[:-1], node[1:])])


def hypercube_edges(n: int) -> Edges:
    """Return the pairs of n nodes, a power of two, whose numbers differ in one binary digit."""
    node = np.arange(n, dtype=np.int32)
    digits = [1 << k for k in range(n.bit_length() - 1)]
    lower = [node[node & digit == 0] for digit in digits]
    return np.concatenate(
        [edges_between(low, low | digit) for low, digit in zip(lower, digits, strict=True)]
    )


def two_cliques_edges(n: int) -> Edges:
    """Return the edges of two complete halves, and the one that joins them."""
    half = n // 2
    clique = pairs_from_numbers(np.arange(half * (half - 1) // 2), half)
    bridge = np.array([[half - 1, half]], dtype=np.int32)
    return np.concatenate([clique, clique + np.int32(half), bridge])
