"""Families of graphs, made from their sizes and a seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.graphs.drawing import compiled_grow, distinct, joined, regular, rewired, ring
from gosta.graphs.graph import MAX_NODES, Edges, Graph, check_integer, pairs_from_numbers
from gosta.runtime import machine
from gosta.runtime.arrays import Floats

TRIES = 100  # draws of a random graph before we say that it will hardly ever be connected
BYTES_AN_EDGE = 100  # at the peak, the test for connectedness included


def complete(n: int) -> Graph:
    """Every node may meet every other; no edge is stored.

    >>> complete(1_000_000)
    Graph('complete', 1000000 nodes, 499999500000 edges)
    """
    n = _size("complete", n, 2)
    return Graph("complete", n, None, spectrum=lambda: np.append(0.0, np.full(n - 1, float(n))))


def torus(rows: int, columns: int) -> Graph:
    """A grid whose borders are glued together, so that every node has four neighbours.

    >>> torus(39, 41)
    Graph('torus 39 x 41', 1599 nodes, 3198 edges)
    """
    place = _places("torus", rows, columns, 3)
    return _stored(
        f"torus {rows} x {columns}",
        place.size,
        [joined(place, np.roll(place, -1, axis=1)), joined(place, np.roll(place, -1, axis=0))],
        lambda: np.add.outer(_ring_spectrum(rows), _ring_spectrum(columns)).ravel(),
    )


def grid(rows: int, columns: int) -> Graph:
    """A rectangle of nodes with open borders: two to four neighbours each.

    >>> grid(3, 4)
    Graph('grid 3 x 4', 12 nodes, 17 edges)
    """
    place = _places("grid", rows, columns, 1)
    return _stored(
        f"grid {rows} x {columns}",
        place.size,
        [joined(place[:, :-1], place[:, 1:]), joined(place[:-1], place[1:])],
        lambda: np.add.outer(_line_spectrum(rows), _line_spectrum(columns)).ravel(),
    )


def cycle(n: int) -> Graph:
    """A ring."""
    node = _nodes("cycle", n, 3)
    return _stored("cycle", len(node), [joined(node, np.roll(node, -1))], lambda: _ring_spectrum(n))


def path(n: int) -> Graph:
    """A line."""
    node = _nodes("path", n, 2)
    return _stored("path", len(node), [joined(node[:-1], node[1:])], lambda: _line_spectrum(n))


def star(n: int) -> Graph:
    """Node 0 in the middle of n − 1 others, which meet nobody else."""
    node = _nodes("star", n, 2)
    edges = [joined(np.zeros_like(node[1:]), node[1:])]
    return _stored("star", len(node), edges, lambda: np.concatenate([[0.0], np.ones(n - 2), [float(n)]]))


def hypercube(dimension: int) -> Graph:
    """The corners of a cube: 2 to the power of the dimension; neighbours differ in one binary digit.

    >>> hypercube(4)
    Graph('hypercube', 16 nodes, 32 edges)
    """
    dimension = check_integer("hypercube", "dimension", dimension, 1)
    node = _nodes("hypercube", 1 << min(dimension, 40), 2, degree=dimension)
    bits = [1 << k for k in range(dimension)]
    edges = [joined(low := node[node & bit == 0], low | bit) for bit in bits]
    return _stored(
        "hypercube",
        len(node),
        edges,
        lambda: np.repeat(2.0 * np.arange(dimension + 1), [math.comb(dimension, k) for k in range(dimension + 1)]),
    )


def two_cliques(n: int) -> Graph:
    """Two halves, complete in themselves, joined by one edge: a bottleneck."""
    n = _size("two-cliques", n, 2)
    if n % 2:
        raise size_error("two-cliques", n, "make no two equal halves", lambda size: size % 2 == 0)
    half = n // 2
    each = half * (half - 1) // 2
    machine.require_memory(2 * BYTES_AN_EDGE * each, f"two-cliques on {n} nodes")
    clique = pairs_from_numbers(np.arange(each), half)
    return _stored("two-cliques", n, [clique, clique + np.int32(half), np.array([[half - 1, half]])])


def watts_strogatz(n: int, k: int = 5, p: float = 0.3, seed: int = 0) -> Graph:
    """A ring where everybody knows a few neighbours, and some edges lead far away instead.

    Each node is joined to k // 2 nodes on each side, so k = 5 means four neighbours, as in networkx and in the paper.
    Then each edge keeps one end and, with probability p, gets a new other end, any node it does not lead to yet.

    >>> watts_strogatz(1599, 5, 0.3, seed=1)
    Graph('watts-strogatz', 1599 nodes, 3198 edges)
    """
    n = _size("watts-strogatz", n, 2)
    half = check_integer("watts-strogatz", "k", k, 2) // 2
    p = _share("watts-strogatz", "p", p)
    if 2 * half >= n:
        raise InputError(
            f"watts-strogatz: k = {k} neighbours on {n} nodes; take n of at least {2 * half + 1}, "
            "a smaller k, or another family such as complete"
        )
    machine.require_memory(BYTES_AN_EDGE * n * half, f"watts-strogatz on {n} nodes")
    return _connected(
        "watts-strogatz",
        n,
        seed,
        lambda rng: pairs_from_numbers(rewired(rng, n, half, p), n),
        f"a k of at least {2 * half + 2}",
    )


def erdos_renyi(n: int, p: float | None = None, seed: int = 0) -> Graph:
    """Each pair of nodes is joined with probability p, by default 2 ln(n)/n: twice what keeps it connected.

    >>> erdos_renyi(1000, seed=1).n
    1000
    """
    n = _size("erdos-renyi", n, 2)
    p = min(1.0, 2 * math.log(n) / n) if p is None else _share("erdos-renyi", "p", p)
    every = n * (n - 1) // 2
    machine.require_memory(int(BYTES_AN_EDGE * p * every), f"erdos-renyi on {n} nodes with p = {p:.3g}")

    def draw(rng: np.random.Generator) -> Edges:
        return pairs_from_numbers(distinct(rng, every, int(rng.binomial(every, p))), n)

    return _connected("erdos-renyi", n, seed, draw, f"a p above {p:.3g}")


def random_regular(n: int, degree: int = 4, seed: int = 0) -> Graph:
    """Every node has the same number of neighbours, otherwise drawn at random.

    Half-edges are paired at random, and pairs that clash change ends with others until none does.

    >>> set(random_regular(1000, 4, seed=1).degrees.tolist())
    {4}
    """
    n = _size("random-regular", n, 2)
    degree = check_integer("random-regular", "degree", degree, 1)
    if degree >= n:
        raise InputError(f"random-regular: degree = {degree} on {n} nodes; take n of at least {degree + 1}")
    if n * degree % 2:
        why = f"make no graph of the odd degree {degree}"
        raise size_error("random-regular", n, why, lambda size: size > degree and size % 2 == 0)
    if degree == 1 and n > 2:
        raise InputError(f"random-regular: degree = 1 joins {n} nodes in pairs only; take a degree of at least 2")
    machine.require_memory(BYTES_AN_EDGE * n * degree // 2, f"random-regular on {n} nodes")
    draw = ring if degree == 2 else regular
    return _connected("random-regular", n, seed, lambda rng: draw(rng, n, degree), f"a degree above {degree}")


def barabasi_albert(n: int, m: int = 2, seed: int = 0) -> Graph:
    """Newcomers join m nodes each, and those who know many get to know more.

    Begins with a star of m + 1 nodes, as networkx does; a newcomer picks different nodes, each in proportion to its
    degree.

    >>> barabasi_albert(1000, 2, seed=1)
    Graph('barabasi-albert', 1000 nodes, 1996 edges)
    """
    n = _size("barabasi-albert", n, 2)
    m = check_integer("barabasi-albert", "m", m, 1)
    if m >= n:
        raise InputError(f"barabasi-albert: m = {m} on {n} nodes; take n of at least {m + 1}, or a smaller m")
    machine.require_memory(BYTES_AN_EDGE * m * (n - m), f"barabasi-albert on {n} nodes")
    edges = np.empty((m * (n - m), 2), dtype=np.int32)
    compiled_grow()(_generator("barabasi-albert", seed), n, m, edges.reshape(-1))
    return Graph("barabasi-albert", n, edges)


def geometric(n: int, radius: float | None = None, seed: int = 0) -> Graph:
    """Points thrown on the unit square, joined when they are nearer than the radius: sensors on a field.

    By default the radius is √(2 ln(n)/(πn)), a little above what keeps large graphs connected.

    >>> geometric(1000, seed=1).n
    1000
    """
    n = _size("geometric", n, 2)
    radius = math.sqrt(2 * math.log(n) / (math.pi * n)) if radius is None else float(radius)
    if not 0 < radius < math.inf:
        raise InputError(f"geometric: radius = {radius} must be positive and finite")
    expected = n * n * min(1.0, math.pi * radius * radius) / 2
    machine.require_memory(int(BYTES_AN_EDGE * (n + expected)), f"geometric on {n} nodes with radius = {radius:.3g}")

    def draw(rng: np.random.Generator) -> Edges:
        from scipy.spatial import cKDTree

        near = cKDTree(rng.random((n, 2))).query_pairs(radius, output_type="ndarray")
        return near.astype(np.int32)  # type: ignore[no-any-return]

    return _connected("geometric", n, seed, draw, f"a radius above {radius:.3g}")


def torus_of(n: int) -> Graph:
    """The torus of n nodes that is most nearly square."""
    return torus(*_sides("torus", n, 3))


def grid_of(n: int) -> Graph:
    """The open grid of n nodes that is most nearly square."""
    return grid(*_sides("grid", n, 2))


def hypercube_of(n: int) -> Graph:
    """The hypercube of n nodes, a power of two."""
    n = _size("hypercube", n, 2)
    if n & (n - 1):
        raise size_error("hypercube", n, "make no power of two", lambda size: size & (size - 1) == 0)
    return hypercube(n.bit_length() - 1)


def size_error(name: str, n: int, why: str, fits: Callable[[int], bool]) -> InputError:
    """Say why a family has no graph of n nodes, and which sizes near n it has."""
    below = next((size for size in range(n - 1, 1, -1) if fits(size)), None)
    above = next(size for size in range(n + 1, 2 * MAX_NODES) if fits(size))
    near = [str(size) for size in (below, above) if size is not None]
    sizes = "sizes that do are" if len(near) > 1 else "size that does is"
    return InputError(
        f"{name}: {n} rows {why}; the nearest {sizes} {' and '.join(near)}: "
        f"take that many rows with n={near[0]} (--n {near[0]})"
    )


def _sides(name: str, n: int, least: int) -> tuple[int, int]:
    n = _size(name, n, 2)
    sides = _square(n, least)
    if sides is None:
        why = f"make no rectangle with both sides above {least - 1}"
        raise size_error(name, n, why, lambda size: _square(size, least) is not None)
    return sides


def _square(n: int, least: int) -> tuple[int, int] | None:
    """The two factors of n that are nearest to each other."""
    for side in range(math.isqrt(n), least - 1, -1):
        if n % side == 0:
            return side, n // side
    return None


def _connected(
    name: str, n: int, seed: int, draw: Callable[[np.random.Generator], Edges | None], way_out: str
) -> Graph:
    """Draw, each time with fresh randomness, until the graph is connected."""
    rng = _generator(name, seed)
    for _ in range(TRIES):
        edges = draw(rng)
        if edges is None:
            continue
        graph = Graph(name, n, edges)
        # A tree has n − 1 edges and nobody may be alone: that is seen sooner than what is connected to what.
        if graph.m >= n - 1 and graph.degrees.all() and len(graph.components()) == 1:
            return graph
    raise InputError(f"{name}: none of {TRIES} draws on {n} nodes was connected; take {way_out}")


def _generator(name: str, seed: int) -> np.random.Generator:
    return np.random.default_rng(check_integer(name, "seed", seed, 0))


def _ring_spectrum(n: int) -> Floats:
    """Laplacian eigenvalues of a cycle, 2 − 2 cos(2πk/n), written so that the small ones keep their digits."""
    return 4 * np.sin(np.pi * np.arange(n) / n) ** 2


def _line_spectrum(n: int) -> Floats:
    """Laplacian eigenvalues of a path, 2 − 2 cos(πk/n)."""
    return 4 * np.sin(np.pi * np.arange(n) / (2 * n)) ** 2


def _stored(name: str, n: int, parts: list[NDArray[Any]], spectrum: Callable[[], Floats] | None = None) -> Graph:
    return Graph(name, n, np.concatenate(parts).astype(np.int32, copy=False), spectrum=spectrum)


def _nodes(name: str, n: int, least: int, degree: int = 2) -> Edges:
    n = _size(name, n, least)
    machine.require_memory(40 * n * degree, f"{name} on {n} nodes")
    return np.arange(n, dtype=np.int32)


def _places(name: str, rows: int, columns: int, least: int) -> Edges:
    rows, columns = check_integer(name, "rows", rows, least), check_integer(name, "columns", columns, least)
    return _nodes(name, rows * columns, 2, degree=4).reshape(rows, columns)


def _size(name: str, n: int, least: int) -> int:
    n = check_integer(name, "n", n, least)
    if n > MAX_NODES:
        raise InputError(f"{name}: n = {n}; a graph has at most {MAX_NODES} nodes")
    return n


def _share(name: str, argument: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise InputError(f"{name}: {argument} = {value} must lie between 0 and 1")
    return float(value)
