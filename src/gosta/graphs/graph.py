"""Graphs: nodes, edges, and the drawing of the edges that fire."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, SupportsIndex

import numpy as np

from gosta.errors import InputError, shorten
from gosta.graphs import pictures
from gosta.graphs.edges import Edges, pair_numbers, pairs_from_numbers
from gosta.graphs.tree import TREE_SHARE, tree_rates
from gosta.runtime import machine
from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.extras import require
from gosta.views import html, numbers
from gosta.views.plots import shown_figure

MAX_NODES = 2**31 - 1  # node numbers are int32
NETWORKX_BYTES_PER_EDGE = 520  # at the peak, with weights; measured


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A network: n nodes numbered from 0, and the pairs of them that exchange.

    Examples
    --------
    >>> graph = Graph("triangle", 3, np.array([[0, 1], [1, 2], [2, 0]], dtype=np.int32))
    >>> graph.m, graph.degrees.tolist()
    (3, [2, 2, 2])
    >>> graph.draw(np.random.default_rng(0), 2).shape
    (2, 2)
    """

    name: str  # for messages, such as "torus 39 x 41"
    n: int  # number of nodes
    # m × 2 node numbers, each undirected edge once; None for the complete graph, never stored.
    edges: Edges | None
    # Rates at which the edges fire, positive; None when all are equal.
    weights: Floats | None = None
    # Returns the n eigenvalues of the unweighted Laplacian, where known.
    spectrum: Callable[[], Floats] | None = None
    # Parent of each node in a spanning tree, where a protocol needs one (`gosta.graphs.tree`); -1:
    # the root.
    parents: Integers | None = None
    labels: tuple[str, ...] = ()  # names of the nodes where the user's graph has them

    def __post_init__(self) -> None:
        # Drawing reads one contiguous block of pairs.
        if self.edges is not None:
            object.__setattr__(self, "edges", np.ascontiguousarray(self.edges, dtype=np.int32))
        if self.weights is not None:
            object.__setattr__(
                self, "weights", np.ascontiguousarray(self.weights, dtype=np.float64)
            )

    def __repr__(self) -> str:
        edges = f"{self.m} edge{'s' * (self.m != 1)}"
        weighted = "" if self.weights is None else ", weighted"
        return f"Graph({self.name!r}, {self.n} nodes, {edges}{weighted})"

    def _repr_html_(self) -> str:
        return html.table(self.rows().items(), caption=f"Graph: {self.name}")

    def to_dict(self) -> dict[str, Any]:
        """Return the size, the degrees and the number of components, which JSON can store.

        >>> Graph("pair", 2, np.array([[0, 1]], dtype=np.int32)).to_dict()["degrees"]
        {'min': 1, 'mean': 1.0, 'max': 1}
        """
        degrees = self.degrees
        return {
            "graph": self.name,
            "n": self.n,
            "edges": self.m,
            "degrees": {
                "min": int(degrees.min()),
                "mean": float(degrees.mean()),
                "max": int(degrees.max()),
            },
            "components": len(self.components()),
            "weighted": self.weights is not None,
        }

    def rows(self) -> dict[str, str]:
        """Return the same in words, by a name for each."""
        known = self.to_dict()
        least, mean, most = known["degrees"].values()
        varied = f"{least:,} to {most:,}, mean {mean:.4g}"
        return {
            "nodes": numbers.count(self.n),
            "edges": numbers.count(self.m) + ", weighted" * known["weighted"],
            "degrees": f"{least:,} each" if least == most else varied,
            "components": numbers.count(known["components"]),
        }

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, to be pickled without what was computed from them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def to_networkx(self) -> Any:
        """Return a networkx graph with the same nodes and edges.

        Weights are their attribute ``weight``.

        >>> pair = Graph("pair", 2, np.array([[0, 1]]), weights=np.array([0.5]))
        >>> pair.to_networkx().edges[0, 1]
        {'weight': 0.5}
        """
        networkx = require("networkx", "networkx", "Graph.to_networkx")
        machine.require_memory(NETWORKX_BYTES_PER_EDGE * self.m, f"{self.name} as a networkx graph")
        graph = (
            networkx.complete_graph(self.n) if self.edges is None else networkx.empty_graph(self.n)
        )
        graph.name = self.name
        if self.weights is not None and self.edges is not None:
            graph.add_weighted_edges_from(
                zip(*self.edges.T.tolist(), self.weights.tolist(), strict=True)
            )
        elif self.edges is not None:
            graph.add_edges_from(self.edges.tolist())
        return graph

    def in_order_of(self, names: Sequence[str]) -> Graph:
        """Return the graph with nodes numbered in the order of these names.

        Its nodes must be named like them.

        Without names, or where nodes have numbers only, the graph is returned as it is.

        >>> edges = np.array([[0, 1], [0, 2]])
        >>> pairs = Graph("pairs", 3, edges, labels=("west", "north", "south"))
        >>> pairs.in_order_of(["north", "south", "west"]).edges.tolist()
        [[2, 0], [2, 1]]
        """
        if self.edges is not None and names and sorted(self.labels) == sorted(names):
            position = {name: k for k, name in enumerate(names)}
            number = np.array([position[label] for label in self.labels], dtype=np.int32)
            return replace(self, edges=number[self.edges], parents=None, labels=tuple(names))
        if not names or all(map(_is_number, self.labels)):
            return self
        only = [sorted({*self.labels} - {*names}), sorted({*names} - {*self.labels})]
        only_here, only_there = (shorten(names, 6) or "none" for names in only)
        raise InputError(
            f"graph: the names of nodes of {self.name} are not those of the sites in the data: "
            f"only the graph has {only_here}, only the data {only_there}; use the same names, or "
            "number the nodes 0 to n - 1"
        )

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
        """Rate at which each edge fires, relative to the others: its weight, or one."""
        return np.ones(self.m) if self.weights is None else self.weights

    @functools.cached_property
    def edge_shares(self) -> Floats:
        """Share of each edge in the exchanges of its ends, at the end where that is less.

        One number where it is the same for all edges.
        """
        if self.edges is None:
            return np.full(1, 1 / (self.n - 1))
        ends, rates = self.edges.ravel(), self.rates
        node_rates = np.bincount(ends, np.repeat(rates, 2), self.n)
        shares: Floats = (rates[:, None] / node_rates[self.edges]).min(axis=1)
        return shares[:1] if np.ptp(shares) == 0 else shares

    def draw(self, rng: np.random.Generator, size: int) -> Edges:
        """Draw the next edges to fire, with replacement: size × 2 node numbers.

        The probability of an edge is proportional to its weight. Two blocks drawn one after the
        other hold the same edges as one block of their joint size.
        """
        return self.draw_with_numbers(rng, size)[0]

    def draw_with_numbers(
        self, rng: np.random.Generator, size: int
    ) -> tuple[Edges, Integers | None]:
        """Draw the next edges to fire, and the number of each; None where edges are not stored."""
        if self.edges is None:
            return self._draw_with_tree(rng, size) if self.parents is not None else _draw_pairs(
                rng, self.n, size
            ), None
        if self.weights is None:
            chosen = rng.integers(self.m, size=size)
        else:
            chosen = np.searchsorted(
                self._cumulated, rng.random(size) * self._cumulated[-1], side="right"
            )
            np.minimum(chosen, self.m - 1, out=chosen)  # the product can round up to the end
        return self._joined.take(chosen).view(np.int32).reshape(size, 2), chosen

    def _draw_with_tree(self, rng: np.random.Generator, size: int) -> Edges:
        """Draw pairs of the complete graph, some of them from its tree."""
        assert self.parents is not None
        drawn, pairs = rng.random(size), self.n * (self.n - 1) // 2
        children = np.searchsorted(
            self.tree_cumulated, drawn / TREE_SHARE * self.tree_cumulated[-1], side="right"
        )
        is_tree = children < self.n
        chosen = ((drawn - TREE_SHARE) / (1.0 - TREE_SHARE) * pairs).astype(np.int64)
        ends = pairs_from_numbers(np.clip(chosen, 0, pairs - 1), self.n)
        ends[is_tree] = np.column_stack([children[is_tree], self.parents[children[is_tree]]])
        return ends

    @functools.cached_property
    def tree_cumulated(self) -> Floats:
        assert self.parents is not None
        return np.cumsum(tree_rates(self.parents))

    def edge_shares_of(self, chosen: Integers | None) -> Floats:
        """Return the shares of edges by their numbers; one number where it is the same for all."""
        return (
            self.edge_shares
            if chosen is None or len(self.edge_shares) == 1
            else self.edge_shares.take(chosen)
        )

    @functools.cached_property
    def _joined(self) -> Integers:
        """Each edge as one number of eight bytes, which loads faster than two of four."""
        assert self.edges is not None
        return np.require(self.edges.reshape(-1).view(np.int64), requirements="A")

    @functools.cached_property
    def _cumulated(self) -> Floats:
        assert self.weights is not None
        return np.cumsum(self.weights)

    def components(self) -> Integers:
        """Return the sizes of the connected components, largest first."""
        return self._component_sizes

    @functools.cached_property
    def _component_sizes(self) -> Integers:
        """Sizes of the components, found by pointers that go from nodes to smaller ones.

        Every node points to a smaller one, at last to the root of its component. Each round points
        the larger of the two roots that an edge joins to the smallest such root, and shortens all
        paths to one step, until no edge joins two roots.
        """
        if self.edges is None:
            return np.array([self.n])
        machine.require_memory(100 * self.m + 40 * self.n, f"finding the components of {self.name}")
        root = np.arange(self.n, dtype=np.int32)
        left, right = self.edges.T
        while len(left):
            np.minimum.at(root, np.maximum(left, right), np.minimum(left, right))
            while not np.array_equal(above := root[root], root):
                root = above
            left, right = root[left], root[right]
            apart = left != right
            left, right = left[apart], right[apart]
        sizes = np.bincount(root)
        return np.sort(sizes[sizes > 0])[::-1]

    def plot(self, ax: Any = None) -> Any:
        """Draw the network into an axes, by default of a new figure; return the axes.

        `gosta.theory.bottleneck(graph).plot()` draws it with its bottleneck.
        """
        pictures.check_drawable(self)
        places = pictures.positions(self)
        ax = pictures.new_axes(places, 6.0, shown_figure) if ax is None else ax
        pictures.draw_network(ax, self, places, color="C0")
        ax.set_title(f"{self.name}: {self.n:,} nodes, {numbers.count(self.m, 'edge')}", fontsize=10)
        return ax

    def check(self, where: Callable[[int], str] | None = None) -> Graph:
        """Return the graph itself if gossip can run on it; otherwise raise an error.

        ``where`` names the k-th edge for the message, in terms of the user's input.
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
            found = f"{len(sizes)} components of {_shorten(sizes)} nodes"
            raise InputError(
                f"{self.name} is not connected: it has {found}; add edges, or take one component"
            )
        return self


class SizeError(InputError):
    """A graph does not exist with this number of nodes.

    The nearest numbers of nodes with which it does are `sizes`.
    """

    sizes: tuple[int, ...] = ()
    problem = ""

    @classmethod
    def of(cls, problem: str, sizes: Sequence[int], argument: str = "n") -> SizeError:
        """Return the error with advice on an argument, in Python and on the command line.

        The argument "rows" stands for the rows of data.
        """
        advice = "take another graph, such as complete"
        if sizes:
            near = (
                f"the nearest sizes are {' and '.join(map(str, sizes))}: " if len(sizes) > 1 else ""
            )
            way_out = f"{argument}={sizes[0]} (--{argument} {sizes[0]})"
            if argument == "rows":
                way_out = (
                    f"the first {sizes[0]} rows (--n {sizes[0]}; in Python data.head({sizes[0]}))"
                )
            advice = f"{near}take {way_out}, or another graph"
        error = cls(f"{problem}; {advice}")
        error.problem, error.sizes = problem, tuple(sizes)
        return error


@contextlib.contextmanager
def sizes_from(argument: str, most: int | None = None) -> Iterator[None]:
    """Within a block, give advice on sizes in terms of an argument.

    Sizes above `most` are not advised.
    """
    try:
        yield
    except SizeError as error:
        sizes = [size for size in error.sizes if most is None or size <= most]
        raise SizeError.of(error.problem, sizes, argument) from None


def check_integer(name: str, argument: str, value: SupportsIndex, least: int) -> int:
    """Return a size as an integer if it is one and not too small."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise InputError(
            f"{name}: {argument} = {value!r} must be a whole number of at least {least}"
        )
    return number


def check_size(name: str, n: SupportsIndex, least: int) -> int:
    """Return a number of nodes if a graph can have that many."""
    number = check_integer(name, "n", n, least)
    if number > MAX_NODES:
        raise InputError(f"{name}: n = {number}; a graph has at most {MAX_NODES} nodes")
    return number


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _draw_pairs(rng: np.random.Generator, n: int, size: int) -> Edges:
    """Draw ordered pairs of different nodes uniformly: one number under n(n−1) encodes both.

    This is `pairs_from_numbers` in place: with arrays of its own that takes 40 % longer.
    """
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
        raise InputError(
            f"{where(outside[0])}: there is no node {wrong}; the {n} nodes are numbered 0 to "
            f"{n - 1}"
        )
    number = pair_numbers(edges[:, 0], edges[:, 1], n)
    loops = np.flatnonzero(number < 0)
    if len(loops):
        raise InputError(f"{where(loops[0])}: an edge from a node to itself; leave self-loops out")
    ordered = np.sort(number)
    if (ordered[1:] == ordered[:-1]).any():
        _, first, inverse = np.unique(number, return_index=True, return_inverse=True)
        again = np.flatnonzero(first[inverse] != np.arange(len(number)))[0]
        before = where(first[inverse[again]])
        raise InputError(
            f"{where(again)}: the same edge as {before}; give each edge once, in one direction"
        )


def _check_weights(weights: Floats, m: int, name: str, where: Callable[[int], str]) -> None:
    if weights.shape != (m,):
        raise InputError(
            f"{name}: weights of shape {weights.shape} for {m} edges; give one weight per edge"
        )
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if len(wrong):
        raise InputError(
            f"{where(wrong[0])}: weight {weights[wrong[0]]} is not positive and finite"
        )


def _shorten(sizes: Integers) -> str:
    *shown, last = [str(size) for size in sizes[:5]] + ["..."] * (len(sizes) > 5)
    return f"{', '.join(shown)}{', ' if last == '...' else ' and '}{last}"
