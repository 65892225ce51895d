"""Families of random graphs, generated from their sizes and a seed."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.graphs.edges import Edges, edges_between, pair_numbers, pairs_from_numbers
from gosta.graphs.families import BYTES_PER_EDGE, size_error
from gosta.graphs.graph import Graph, SizeError, check_integer, check_size
from gosta.runtime import compiler, machine
from gosta.runtime.arrays import Booleans, Integers
from gosta.runtime.extras import require

MAX_DRAWS = 100  # of a random graph before it is reported as hardly ever connected
MAX_PLAIN_ENDS = 1 << 14  # of edges: up to here importing numba takes longer than it saves
# Rounds of redrawing the edges that clash; a handful is enough unless the graph is nearly complete.
MAX_ROUNDS = 1000


def watts_strogatz(n: int, k: int = 5, p: float = 0.3, seed: int = 0) -> Graph:
    """Generate a ring of nodes joined to those nearest, some of whose edges are rewired at random.

    Each node is joined to k // 2 nodes on each side, so k = 5 means four neighbours, as in networkx
    and in the paper. Then each edge keeps one end and, with probability p, gets a new other end
    among the nodes not yet joined to it.

    Parameters
    ----------
    n
        Number of nodes.
    k
        Nodes that each one is joined to before edges are rewired; an odd number counts as the even
        one below.
    p
        Probability that an edge is rewired.
    seed
        Seed of the random graph.

    Returns
    -------
    Graph

    Examples
    --------
    >>> watts_strogatz(1599, 5, 0.3, seed=1)
    Graph('watts-strogatz', 1599 nodes, 3198 edges)
    """
    n = check_size("watts-strogatz", n, 2)
    half = check_integer("watts-strogatz", "k", k, 2) // 2
    p = _probability("watts-strogatz", p)
    if 2 * half >= n:
        raise SizeError.of(f"watts-strogatz: k = {k} neighbours on {n} nodes", [2 * half + 1])
    machine.require_memory(BYTES_PER_EDGE * n * half, f"watts-strogatz on {n} nodes")
    remedy = f"a k of at least {2 * half + 2}"
    return _connected(
        "watts-strogatz",
        n,
        seed,
        lambda rng: pairs_from_numbers(rewire(rng, n, half, p), n),
        remedy,
    )


def erdos_renyi(n: int, p: float | None = None, seed: int = 0) -> Graph:
    """Generate a graph in which each pair of nodes is joined with probability p.

    By default p is 2 ln(n)/n.

    That is twice the threshold above which large graphs are connected.

    Parameters
    ----------
    n
        Number of nodes.
    p
        Probability that two nodes are joined.
    seed
        Seed of the random graph.

    Returns
    -------
    Graph

    Examples
    --------
    >>> erdos_renyi(1000, seed=1).n
    1000
    """
    n = check_size("erdos-renyi", n, 2)
    p = min(1.0, 2 * math.log(n) / n) if p is None else _probability("erdos-renyi", p)
    every = n * (n - 1) // 2
    machine.require_memory(
        int(BYTES_PER_EDGE * p * every), f"erdos-renyi on {n} nodes with p = {p:.3g}"
    )

    def draw(rng: np.random.Generator) -> Edges:
        return pairs_from_numbers(sample_distinct(rng, every, int(rng.binomial(every, p))), n)

    return _connected("erdos-renyi", n, seed, draw, f"a p above {p:.3g}")


def random_regular(n: int, degree: int = 4, seed: int = 0) -> Graph:
    """Generate a random graph in which every node has the same number of neighbours.

    Half-edges are paired at random, and pairs that clash swap ends with others until none does.

    Parameters
    ----------
    n
        Number of nodes.
    degree
        Number of neighbours of every node.
    seed
        Seed of the random graph.

    Returns
    -------
    Graph

    Examples
    --------
    >>> set(random_regular(1000, 4, seed=1).degrees.tolist())
    {4}
    """
    n = check_size("random-regular", n, 2)
    degree = check_integer("random-regular", "degree", degree, 1)
    if degree >= n:
        raise SizeError.of(f"random-regular: degree = {degree} on {n} nodes", [degree + 1])
    if n * degree % 2:
        why = f"cannot have the odd degree {degree}"
        raise size_error("random-regular", n, why, lambda size: size > degree and size % 2 == 0)
    if degree == 1 and n > 2:
        raise InputError(
            f"random-regular: degree = 1 joins {n} nodes in pairs only; take a degree of at least 2"
        )
    machine.require_memory(BYTES_PER_EDGE * n * degree // 2, f"random-regular on {n} nodes")
    draw = draw_ring if degree == 2 else draw_regular
    return _connected(
        "random-regular", n, seed, lambda rng: draw(rng, n, degree), f"a degree above {degree}"
    )


def barabasi_albert(n: int, m: int = 2, seed: int = 0) -> Graph:
    """Generate a graph by preferential attachment: each new node joins m others.

    It begins with a star of m + 1 nodes, as in networkx; a new node picks different nodes, each
    with probability proportional to its degree.

    Parameters
    ----------
    n
        Number of nodes.
    m
        Nodes that a new node joins.
    seed
        Seed of the random graph.

    Returns
    -------
    Graph

    Examples
    --------
    >>> barabasi_albert(1000, 2, seed=1)
    Graph('barabasi-albert', 1000 nodes, 1996 edges)
    """
    n = check_size("barabasi-albert", n, 2)
    m = check_integer("barabasi-albert", "m", m, 1)
    if m >= n:
        raise SizeError.of(f"barabasi-albert: m = {m} on {n} nodes", [m + 1])
    machine.require_memory(BYTES_PER_EDGE * m * (n - m), f"barabasi-albert on {n} nodes")
    return Graph("barabasi-albert", n, grow(_generator("barabasi-albert", seed), n, m))


def geometric(n: int, radius: float | None = None, seed: int = 0) -> Graph:
    """Generate points on the unit square, joined when they are nearer than the radius.

    Points are uniform, like sensors on a field.

    By default the radius is √(2 ln(n)/(πn)), a little above the threshold for large graphs to be
    connected.

    Parameters
    ----------
    n
        Number of nodes.
    radius
        Distance below which two points are joined.
    seed
        Seed of the random graph.

    Returns
    -------
    Graph

    Examples
    --------
    >>> geometric(1000, seed=1).n
    1000
    """
    n = check_size("geometric", n, 2)
    radius = math.sqrt(2 * math.log(n) / (math.pi * n)) if radius is None else float(radius)
    if not 0 < radius < math.inf:
        raise InputError(f"geometric: radius = {radius} must be positive and finite")
    expected = n * n * min(1.0, math.pi * radius * radius) / 2
    machine.require_memory(
        int(BYTES_PER_EDGE * (n + expected)), f"geometric on {n} nodes with radius = {radius:.3g}"
    )

    def draw(rng: np.random.Generator) -> Edges:
        spatial = require("scipy.spatial", "sim", "a geometric graph")
        near = spatial.cKDTree(rng.random((n, 2))).query_pairs(radius, output_type="ndarray")
        return near.astype(np.int32)  # type: ignore[no-any-return]

    return _connected("geometric", n, seed, draw, f"a radius above {radius:.3g}")


def _connected(
    name: str, n: int, seed: int, draw: Callable[[np.random.Generator], Edges | None], remedy: str
) -> Graph:
    """Draw, each time with fresh randomness, until the graph is connected."""
    rng = _generator(name, seed)
    for _ in range(MAX_DRAWS):
        edges = draw(rng)
        if edges is None:
            continue
        graph = Graph(name, n, edges)
        # Two conditions that are faster to check than connectedness.
        if graph.m >= n - 1 and graph.degrees.all() and len(graph.components()) == 1:
            return graph
    function = f"gosta.graphs.{name.replace('-', '_')}"
    raise InputError(
        f"{name}: none of {MAX_DRAWS} draws on {n} nodes was connected; take {remedy} "
        f"({function}), or another graph"
    )


def _generator(name: str, seed: int) -> np.random.Generator:
    return np.random.default_rng(check_integer(name, "seed", seed, 0))


def _probability(name: str, p: float) -> float:
    if not 0 <= p <= 1:
        raise InputError(f"{name}: p = {p} must lie between 0 and 1")
    return float(p)


def rewire(rng: np.random.Generator, n: int, half: int, p: float) -> Integers:
    """Rewire each edge of a ring with probability p; return the numbers of the joined pairs.

    The pair numbered e < n · half is the edge e of the ring: from node e % n to the one e // n + 1
    further. Each round proposes new ends for all edges that still need one; no edge is double after
    any round.
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
    """Draw a subset of a size from the numbers below the population, uniformly."""
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
        first = np.column_stack([ends[clashing, 0], ends[other, side]])
        second = np.column_stack([ends[clashing, 1], ends[other, 1 - side]])
        new = np.concatenate(
            [pair_numbers(first[:, 0], first[:, 1], n), pair_numbers(second[:, 0], second[:, 1], n)]
        )
        is_free = (
            ((new >= 0) & _is_first(new) & ~_is_among(np.sort(number), new))
            .reshape(2, -1)
            .all(axis=0)
        )
        for position, end, fresh in zip(
            (clashing, other), (first, second), np.split(new, 2), strict=True
        ):
            ends[position[is_free]] = end[is_free]
            number[position[is_free]] = fresh[is_free]
    return None


def _grow(rng: Any, n: int, m: int, ends: NDArray[np.int32]) -> None:
    """Fill in the ends of edges; a random entry so far is a node in proportion to its degree."""
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
    """Draw a graph by preferential attachment of m edges a node; compiled if it is large."""
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
