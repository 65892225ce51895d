"""Families of graphs, generated from their sizes and a seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.graphs.drawing import (
    draw_regular,
    draw_ring,
    edges_between,
    grow,
    rewire,
    sample_distinct,
)
from gosta.graphs.graph import MAX_NODES, Edges, Graph, check_integer, pairs_from_numbers
from gosta.graphs.sizes import SizeError
from gosta.runtime import machine
from gosta.runtime.arrays import Floats
from gosta.runtime.extras import require

MAX_DRAWS = 100  # of a random graph before it is reported as hardly ever connected
BYTES_PER_EDGE = 100  # at the peak, the test for connectedness included


def complete(n: int) -> Graph:
    """Generate the complete graph, in which all nodes are neighbours; no edge is stored.

    Parameters
    ----------
    n
        Number of nodes.

    Returns
    -------
    Graph

    Examples
    --------
    >>> complete(1_000_000)
    Graph('complete', 1000000 nodes, 499999500000 edges)
    """
    n = _size("complete", n, 2)
    return Graph("complete", n, None, spectrum=partial(_complete_spectrum, n))


def torus(rows: int, columns: int) -> Graph:
    """Generate a grid with periodic borders: every node has four neighbours.

    Parameters
    ----------
    rows, columns
        Sides of the rectangle, 3 or more each.

    Returns
    -------
    Graph

    Examples
    --------
    >>> torus(39, 41)
    Graph('torus 39 x 41', 1599 nodes, 3198 edges)
    """
    place = _places("torus", rows, columns, 3)
    edges = [edges_between(place, np.roll(place, -1, axis)) for axis in (1, 0)]
    return _rectangle("torus", place, edges, _ring_spectrum)


def grid(rows: int, columns: int) -> Graph:
    """Generate a grid with open borders: nodes have two to four neighbours.

    Parameters
    ----------
    rows, columns
        Sides of the rectangle, 1 or more each.

    Returns
    -------
    Graph

    Examples
    --------
    >>> grid(3, 4)
    Graph('grid 3 x 4', 12 nodes, 17 edges)
    """
    place = _places("grid", rows, columns, 1)
    edges = [edges_between(place[:, :-1], place[:, 1:]), edges_between(place[:-1], place[1:])]
    return _rectangle("grid", place, edges, _line_spectrum)


def cycle(n: int) -> Graph:
    """Generate a ring.

    Parameters
    ----------
    n
        Number of nodes, 3 or more.

    Returns
    -------
    Graph

    Examples
    --------
    >>> cycle(5).edges.tolist()
    [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]
    """
    node = _nodes("cycle", n, 3)
    return _stored(
        "cycle", len(node), [edges_between(node, np.roll(node, -1))], partial(_ring_spectrum, n)
    )


def path(n: int) -> Graph:
    """Generate a line.

    Parameters
    ----------
    n
        Number of nodes.

    Returns
    -------
    Graph

    Examples
    --------
    >>> path(4).edges.tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    node = _nodes("path", n, 2)
    return _stored(
        "path", len(node), [edges_between(node[:-1], node[1:])], partial(_line_spectrum, n)
    )


def star(n: int) -> Graph:
    """Generate a star: node 0 is the only neighbour of the n − 1 others.

    Parameters
    ----------
    n
        Number of nodes.

    Returns
    -------
    Graph

    Examples
    --------
    >>> star(4).edges.tolist()
    [[0, 1], [0, 2], [0, 3]]
    """
    node = _nodes("star", n, 2)
    edges = [edges_between(np.zeros_like(node[1:]), node[1:])]
    return _stored("star", len(node), edges, partial(_star_spectrum, n))


def hypercube(dimension: int) -> Graph:
    """Generate a hypercube of 2 to the power of the dimension nodes; neighbours differ in one binary digit.

    Parameters
    ----------
    dimension
        Number of binary digits, and of neighbours of a node.

    Returns
    -------
    Graph

    Examples
    --------
    >>> hypercube(4)
    Graph('hypercube', 16 nodes, 32 edges)
    """
    dimension = check_integer("hypercube", "dimension", dimension, 1)
    node = _nodes("hypercube", 1 << min(dimension, 40), 2, degree=dimension)
    edges = [
        edges_between(low := node[node & bit == 0], low | bit)
        for bit in (1 << k for k in range(dimension))
    ]
    return _stored("hypercube", len(node), edges, partial(_cube_spectrum, dimension))


def two_cliques(n: int) -> Graph:
    """Generate two complete halves joined by one edge: a bottleneck.

    Parameters
    ----------
    n
        Number of nodes, even.

    Returns
    -------
    Graph

    Examples
    --------
    >>> two_cliques(100)
    Graph('two-cliques', 100 nodes, 2451 edges)
    """
    n = _size("two-cliques", n, 2)
    if n % 2:
        raise size_error(
            "two-cliques", n, "cannot form two equal halves", lambda size: size % 2 == 0
        )
    half = n // 2
    each = half * (half - 1) // 2
    machine.require_memory(2 * BYTES_PER_EDGE * each, f"two-cliques on {n} nodes")
    clique = pairs_from_numbers(np.arange(each), half)
    return _stored(
        "two-cliques", n, [clique, clique + np.int32(half), np.array([[half - 1, half]])]
    )


def watts_strogatz(n: int, k: int = 5, p: float = 0.3, seed: int = 0) -> Graph:
    """Generate a ring of nodes joined to those nearest, some of whose edges are rewired at random.

    Each node is joined to k // 2 nodes on each side, so k = 5 means four neighbours, as in networkx and in the paper.
    Then each edge keeps one end and, with probability p, gets a new other end among the nodes not yet joined to it.

    Parameters
    ----------
    n
        Number of nodes.
    k
        Nodes that each one is joined to before edges are rewired; an odd number counts as the even one below.
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
    n = _size("watts-strogatz", n, 2)
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
    """Generate a graph in which each pair of nodes is joined with probability p, by default 2 ln(n)/n.

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
    n = _size("erdos-renyi", n, 2)
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
    n = _size("random-regular", n, 2)
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

    It begins with a star of m + 1 nodes, as in networkx; a new node picks different nodes, each with probability
    proportional to its degree.

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
    n = _size("barabasi-albert", n, 2)
    m = check_integer("barabasi-albert", "m", m, 1)
    if m >= n:
        raise SizeError.of(f"barabasi-albert: m = {m} on {n} nodes", [m + 1])
    machine.require_memory(BYTES_PER_EDGE * m * (n - m), f"barabasi-albert on {n} nodes")
    return Graph("barabasi-albert", n, grow(_generator("barabasi-albert", seed), n, m))


def geometric(n: int, radius: float | None = None, seed: int = 0) -> Graph:
    """Generate uniform points on the unit square, joined when they are nearer than the radius: sensors on a field.

    By default the radius is √(2 ln(n)/(πn)), a little above the threshold for large graphs to be connected.

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
    n = _size("geometric", n, 2)
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


def dimension(n: int) -> int:
    """Return the dimension of the hypercube of n nodes."""
    n = _size("hypercube", n, 2)
    if n & (n - 1):
        raise size_error(
            "hypercube", n, "are not a power of two", lambda size: size & (size - 1) == 0
        )
    return n.bit_length() - 1


def sides(name: str, n: int, least: int) -> tuple[int, int]:
    """Return the sides of the rectangle of n nodes that is most nearly square."""
    n = _size(name, n, 2)
    found = _square(n, least)
    if found is None:
        why = f"do not fill a rectangle with both sides above {least - 1}"
        raise size_error(name, n, why, lambda size: _is_wide(_square(size, least)))
    return found


def size_error(name: str, n: int, why: str, fits: Callable[[int], bool]) -> SizeError:
    """Return the error for a size that a family does not have, with the nearest sizes that it has."""
    below = next((size for size in range(n - 1, 1, -1) if fits(size)), None)
    above = next(size for size in range(n + 1, 2 * MAX_NODES) if fits(size))
    return SizeError.of(
        f"{name}: {n} nodes {why}", [size for size in (below, above) if size is not None]
    )


def _square(n: int, least: int) -> tuple[int, int] | None:
    """Return the two factors of n that are nearest to each other."""
    return next(
        ((side, n // side) for side in range(math.isqrt(n), least - 1, -1) if n % side == 0), None
    )


def _is_wide(found: tuple[int, int] | None) -> bool:
    """Return whether there is a rectangle that is no thin strip, on which gossip is slow."""
    return found is not None and found[1] <= 2 * found[0]


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
        f"{name}: none of {MAX_DRAWS} draws on {n} nodes was connected; take {remedy} ({function}), or another graph"
    )


def _generator(name: str, seed: int) -> np.random.Generator:
    return np.random.default_rng(check_integer(name, "seed", seed, 0))


# Spectra are functions of the module with their sizes filled in, not closures, so that graphs can be pickled.


def _complete_spectrum(n: int) -> Floats:
    return np.append(0.0, np.full(n - 1, float(n)))


def _star_spectrum(n: int) -> Floats:
    return np.concatenate([[0.0], np.ones(n - 2), [float(n)]])


def _cube_spectrum(dimension: int) -> Floats:
    multiplicity = [math.comb(dimension, k) for k in range(dimension + 1)]
    return np.repeat(2.0 * np.arange(dimension + 1), multiplicity)


def _product_spectrum(spectrum: Callable[[int], Floats], rows: int, columns: int) -> Floats:
    return np.asarray(np.add.outer(spectrum(rows), spectrum(columns)).ravel())


def _ring_spectrum(n: int) -> Floats:
    """Return the Laplacian eigenvalues of a cycle, 2 − 2 cos(2πk/n), in a form accurate for the small ones."""
    return 4 * np.sin(np.pi * np.arange(n) / n) ** 2


def _line_spectrum(n: int) -> Floats:
    """Return the Laplacian eigenvalues of a path, 2 − 2 cos(πk/n)."""
    return 4 * np.sin(np.pi * np.arange(n) / (2 * n)) ** 2


def _stored(
    name: str, n: int, parts: list[NDArray[Any]], spectrum: Callable[[], Floats] | None = None
) -> Graph:
    return Graph(name, n, np.concatenate(parts).astype(np.int32, copy=False), spectrum=spectrum)


def _rectangle(
    family: str, place: Edges, edges: list[Edges], spectrum: Callable[[int], Floats]
) -> Graph:
    rows, columns = place.shape
    name = f"{family} {rows} x {columns}"
    return _stored(name, place.size, edges, partial(_product_spectrum, spectrum, rows, columns))


def _nodes(name: str, n: int, least: int, degree: int = 2) -> Edges:
    n = _size(name, n, least)
    machine.require_memory(40 * n * degree, f"{name} on {n} nodes")
    return np.arange(n, dtype=np.int32)


def _places(name: str, rows: int, columns: int, least: int) -> Edges:
    rows, columns = (
        check_integer(name, "rows", rows, least),
        check_integer(name, "columns", columns, least),
    )
    return _nodes(name, rows * columns, 2, degree=4).reshape(rows, columns)


def _size(name: str, n: int, least: int) -> int:
    n = check_integer(name, "n", n, least)
    if n > MAX_NODES:
        raise InputError(f"{name}: n = {n}; a graph has at most {MAX_NODES} nodes")
    return n


def _probability(name: str, p: float) -> float:
    if not 0 <= p <= 1:
        raise InputError(f"{name}: p = {p} must lie between 0 and 1")
    return float(p)
