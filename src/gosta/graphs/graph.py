"""Who may meet whom: nodes, edges, and the drawing of the edges that fire."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.runtime import machine
from gosta.runtime.arrays import Floats, Integers

Edges = NDArray[np.int32]

MAX_NODES = 2**31 - 1  # node numbers are int32


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A network: n nodes numbered from 0, and the pairs of them that may meet.

    Attributes
    ----------
    name
        What a person calls it: "torus 39 x 41".
    n
        Number of nodes.
    edges
        m × 2 node numbers, each undirected edge once; None is the complete graph, which is never stored.
    weights
        Rates at which the edges fire, positive; None when all are equal.
    spectrum
        Gives the n eigenvalues of the unweighted Laplacian, where a formula is known.

    Examples
    --------
    >>> graph = Graph("triangle", 3, np.array([[0, 1], [1, 2], [2, 0]], dtype=np.int32))
    >>> graph.m, graph.degrees.tolist()
    (3, [2, 2, 2])
    >>> graph.draw(np.random.default_rng(0), 2).shape
    (2, 2)
    """

    name: str
    n: int
    edges: Edges | None
    weights: Floats | None = None
    spectrum: Callable[[], Floats] | None = None

    def __post_init__(self) -> None:
        # Whatever was given, drawing reads one block of pairs, in order.
        if self.edges is not None:
            object.__setattr__(self, "edges", np.ascontiguousarray(self.edges, dtype=np.int32))
        if self.weights is not None:
            object.__setattr__(self, "weights", np.ascontiguousarray(self.weights, dtype=np.float64))

    def __repr__(self) -> str:
        return f"Graph({self.name!r}, {self.n} nodes, {self.m} edges{', weighted' * (self.weights is not None)})"

    @property
    def m(self) -> int:
        """Number of edges."""
        return self.n * (self.n - 1) // 2 if self.edges is None else len(self.edges)

    @functools.cached_property
    def degrees(self) -> Integers:
        """Number of edges at each node."""
        if self.edges is None:
            return np.full(self.n, self.n - 1)
        return np.bincount(self.edges.ravel(), minlength=self.n)

    @property
    def rates(self) -> Floats:
        """How often each edge fires, relative to the others: its weight, or one."""
        return np.ones(self.m) if self.weights is None else self.weights

    @functools.cached_property
    def edge_shares(self) -> Floats:
        """The share that each edge has of the meetings of its ends, at the end where that is less.

        One number where it is the same for all.
        """
        if self.edges is None:
            return np.full(1, 1 / (self.n - 1))
        ends, rates = self.edges.ravel(), self.rates
        meetings = np.bincount(ends, np.repeat(rates, 2), self.n)
        shares: Floats = (rates[:, None] / meetings[self.edges]).min(axis=1)
        return shares[:1] if np.ptp(shares) == 0 else shares

    def draw(self, rng: np.random.Generator, size: int) -> Edges:
        """Draw the next edges to fire, with replacement: size × 2 node numbers.

        Every edge is as likely as its weight says. Two blocks drawn one after the other hold the same edges as
        one block of their joint size.
        """
        return self.draw_with_numbers(rng, size)[0]

    def draw_with_numbers(self, rng: np.random.Generator, size: int) -> tuple[Edges, Integers | None]:
        """The same, and the number of each edge; None where edges are not stored."""
        if self.edges is None:
            return _draw_pairs(rng, self.n, size), None
        if self.weights is None:
            chosen = rng.integers(self.m, size=size)
        else:
            chosen = np.searchsorted(self._cumulated, rng.random(size) * self._cumulated[-1], side="right")
            np.minimum(chosen, self.m - 1, out=chosen)  # the product may round up to the end
        return self._joined.take(chosen).view(np.int32).reshape(size, 2), chosen

    def edge_shares_of(self, chosen: Integers | None) -> Floats:
        """The edge_shares of edges by their numbers; one number where it is the same for all."""
        return self.edge_shares if chosen is None or len(self.edge_shares) == 1 else self.edge_shares.take(chosen)

    @functools.cached_property
    def _joined(self) -> Integers:
        """Each edge as one number of eight bytes, which is fetched faster than two of four."""
        assert self.edges is not None
        return np.require(self.edges.reshape(-1).view(np.int64), requirements="A")

    @functools.cached_property
    def _cumulated(self) -> Floats:
        assert self.weights is not None
        return np.cumsum(self.weights)

    def components(self) -> Integers:
        """Sizes of the connected parts, largest first."""
        if self.edges is None:
            return np.array([self.n])
        from scipy import sparse
        from scipy.sparse import csgraph

        machine.require_memory(100 * self.m + 40 * self.n, f"looking for the parts of {self.name}")
        present = np.ones(self.m, dtype=np.int8)
        matrix = sparse.csr_array((present, (self.edges[:, 0], self.edges[:, 1])), shape=(self.n, self.n))
        label = csgraph.connected_components(matrix, directed=False)[1]
        return np.sort(np.bincount(label))[::-1]

    def check(self, where: Callable[[int], str] | None = None) -> Graph:
        """The graph itself, if gossip can run on it; otherwise one line that says why not.

        ``where`` names the place of the k-th edge in what the user gave.
        """
        place = where or (lambda k: f"{self.name}, edge {k} (counted from 0)")
        if self.n < 2:
            raise InputError(f"{self.name}: n = {self.n}; a graph needs at least two nodes")
        if self.n > MAX_NODES:
            raise InputError(f"{self.name}: n = {self.n}; a graph has at most {MAX_NODES} nodes")
        if self.edges is not None:
            _check_edges(self.edges, self.n, place)
        if self.weights is not None:
            _check_weights(self.weights, self.m, self.name, place)
        sizes = self.components()
        if len(sizes) > 1:
            raise InputError(
                f"{self.name} is not connected: it has {len(sizes)} components of {_shortened(sizes)} nodes; "
                "add edges between them, or take one component"
            )
        return self


def pair_numbers(i: NDArray[Any], j: NDArray[Any], n: int) -> Integers:
    """Each unordered pair of n nodes as a number from 0 to n(n−1)/2 − 1, and less than 0 for a node with itself.

    Pairs one step apart around the ring of nodes come first, then those two apart, and so on.
    """
    i = i.astype(np.int64)
    gap = (j - i) % n
    backwards = (2 * gap > n) | ((2 * gap == n) & (i > j))
    start = np.where(backwards, j, i)
    step = np.where(backwards, n - gap, gap)
    number: Integers = (step - 1) * n + start
    return number


def pairs_from_numbers(number: Integers, n: int) -> Edges:
    """The pairs of nodes that have these numbers."""
    ends = np.empty((len(number), 2), dtype=np.int32)
    step, start = np.divmod(number, n)
    ends[:, 0] = start
    step += start + 1
    step[step >= n] -= n
    ends[:, 1] = step
    return ends


def check_integer(name: str, argument: str, value: SupportsIndex, least: int) -> int:
    """A number given for a size, if it is a whole one and not too small."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise InputError(f"{name}: {argument} = {value!r} must be a whole number of at least {least}")
    return number


def _draw_pairs(rng: np.random.Generator, n: int, size: int) -> Edges:
    """Ordered pairs of different nodes, all as likely: one number under n(n−1) says both."""
    ends = np.empty((size, 2), dtype=np.int32)
    number = rng.integers(n * (n - 1), size=size)
    step = number // n
    number -= step * n
    ends[:, 0] = number
    step += number
    step += 1
    step -= n * (step >= n)
    ends[:, 1] = step
    return ends


def _check_edges(edges: Edges, n: int, where: Callable[[int], str]) -> None:
    outside = np.flatnonzero(((edges < 0) | (edges >= n)).any(axis=1))
    if len(outside):
        a, b = edges[outside[0]]
        wrong = a if not 0 <= a < n else b
        raise InputError(f"{where(outside[0])}: there is no node {wrong}; the {n} nodes are numbered 0 to {n - 1}")
    number = pair_numbers(edges[:, 0], edges[:, 1], n)
    loops = np.flatnonzero(number < 0)
    if len(loops):
        raise InputError(f"{where(loops[0])}: an edge from a node to itself; leave self-loops out")
    ordered = np.sort(number)
    if (ordered[1:] == ordered[:-1]).any():
        first, again = _repeated(number)
        raise InputError(f"{where(again)}: the same edge as {where(first)}; give each edge once, in one direction")


def _repeated(number: Integers) -> tuple[int, int]:
    """The earliest place that repeats an earlier one, and that earlier one."""
    _, first, inverse = np.unique(number, return_index=True, return_inverse=True)
    again = int(np.flatnonzero(first[inverse] != np.arange(len(number)))[0])
    return int(first[inverse[again]]), again


def _check_weights(weights: Floats, m: int, name: str, where: Callable[[int], str]) -> None:
    if weights.shape != (m,):
        raise InputError(f"{name}: weights of shape {weights.shape} for {m} edges; give one weight an edge")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if len(wrong):
        raise InputError(f"{where(wrong[0])}: weight {weights[wrong[0]]} is not positive and finite")


def _shortened(sizes: Integers) -> str:
    shown = [str(size) for size in sizes[:5]]
    if len(sizes) > 5:
        return ", ".join([*shown, "..."])
    return " and ".join([", ".join(shown[:-1]), shown[-1]])
