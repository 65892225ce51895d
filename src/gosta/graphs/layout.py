"""Where to draw the nodes of a graph: by the geometry of its family, or so that neighbours are near each other.

Graphs without a geometry are placed in two steps. Pivot MDS (Brandes and Pich, 2006) gives the shape as a whole: the
two main axes of the numbers of steps from each node to some pivots. Forces then spread the nodes: neighbours attract
and all nodes repel each other. Repulsion is computed on a mesh, where it is a convolution, so that a round takes time
proportional to nodes and edges (10,000 nodes: about a second in all).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gosta.errors import InputError
from gosta.graphs import families
from gosta.graphs.graph import Graph
from gosta.runtime.arrays import Floats, Integers

PIVOTS = 50  # from which steps to all nodes are counted; more change the picture little
ROUNDS = 150  # of moving all nodes by the forces on them
MAX_RING = 60  # nodes of a complete graph that are placed on a ring; more fill its disk
MAX_LINE = 40  # nodes of a path that are placed on a line; more wind up in a spiral
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))


def positions(graph: Graph, seed: int = 0) -> Floats:
    """Return where to draw each node: n × 2 coordinates between 0 and 1, the same each time.

    Parameters
    ----------
    graph
        The graph; weights are not used.
    seed
        Another seed gives another drawing of a graph that has no geometry of its own.

    Returns
    -------
    numpy.ndarray
        n × 2 coordinates.

    Examples
    --------
    >>> from gosta.graphs import grid
    >>> positions(grid(2, 3)).tolist()
    [[0.0, 0.75], [0.5, 0.75], [1.0, 0.75], [0.0, 0.25], [0.5, 0.25], [1.0, 0.25]]
    """
    natural = _natural(graph)
    return _fit(_spread(graph, seed) if natural is None else natural)


def _fit(places: Floats) -> Floats:
    """Move and scale places into the middle of the unit square, without distorting them."""
    low, high = places.min(axis=0), places.max(axis=0)
    size = float((high - low).max()) or 1.0
    return np.asarray(np.clip((places - (low + high) / 2) / size + 0.5, 0.0, 1.0))


def _natural(graph: Graph) -> Floats | None:
    """Return the places of a graph whose family has a geometry; None for another graph."""
    if graph.edges is None:
        return _disk(graph.n)
    family, _, sizes = graph.name.partition(" ")
    if family not in NATURAL:
        return None
    make, place = NATURAL[family]
    try:
        arguments = [int(size) for size in sizes.split(" x ")] if sizes else [graph.n]
        expected = make(*arguments)
    except (InputError, ValueError, TypeError):
        return None
    assert expected.edges is not None
    is_equal = np.array_equal(graph.edges, expected.edges)  # a user's graph can have any name
    return place(*arguments) if is_equal else None


def _ring(n: int) -> Floats:
    angle = math.pi / 2 - 2 * math.pi * np.arange(n) / n
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _disk(n: int) -> Floats:
    """Return places on the unit disk: a ring of few nodes, otherwise evenly spread as the seeds of a sunflower."""
    if n <= MAX_RING:
        return _ring(n)
    node = np.arange(n)
    radius, angle = np.sqrt((node + 0.5) / n), GOLDEN_ANGLE * node
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _line(n: int) -> Floats:
    """Return places on a line, or on a spiral whose turns are twice as far apart as its nodes."""
    node = np.arange(n)
    if n <= MAX_LINE:
        return np.column_stack([node, 0.0 * node])
    angle = np.sqrt(2 * math.pi * (node + 2))
    return np.column_stack([angle * np.cos(angle), angle * np.sin(angle)])


def _star(n: int) -> Floats:
    return np.concatenate([np.zeros((1, 2)), _ring(n - 1)])


def _rectangle(rows: int, columns: int) -> Floats:
    row, column = np.divmod(np.arange(rows * columns), columns)
    return np.column_stack([column, -row]).astype(np.float64)


def _cube(n: int) -> Floats:
    """Return the corners of a cube: squares of squares, slightly turned so that edges do not cover each other."""
    places = np.zeros((n, 2))
    for k in range(n.bit_length() - 1):
        length, angle = 2.2 ** (k // 2), k % 2 * math.pi / 2 + 0.12 * (-1) ** (k // 2)
        places += np.outer(
            np.arange(n) >> k & 1, [length * math.cos(angle), length * math.sin(angle)]
        )
    return places


def _two_disks(n: int) -> Floats:
    """Return two disks side by side, with the nodes that are joined next to each other."""
    left = _disk(n // 2)
    left = left @ _rotation(
        -math.atan2(left[-1, 1], left[-1, 0])
    )  # turns the last node, on the border, to the right
    return np.concatenate([left - [1.25, 0.0], [1.25, 0.0] - left[::-1]])


NATURAL: dict[str, tuple[Callable[..., Graph], Callable[..., Floats]]] = {
    "cycle": (families.cycle, _ring),
    "path": (families.path, _line),
    "star": (families.star, _star),
    "torus": (families.torus, _rectangle),
    "grid": (families.grid, _rectangle),
    "hypercube": (lambda n: families.hypercube(families.dimension(n)), _cube),
    "two-cliques": (families.two_cliques, _two_disks),
}


def _spread(graph: Graph, seed: int) -> Floats:
    """Place nodes by their distances from pivots, then move them by forces, in steps that become smaller.

    An edge pulls with the square of its length; nodes repel each other by their degrees, so that those with many
    neighbours do not gather in the middle. A node's force is divided by its stiffness, so that it does not overshoot.
    """
    assert graph.edges is not None
    places = _pivot_mds(graph, seed)
    radius, degrees = math.sqrt(graph.n), graph.degrees.astype(np.float64)
    places *= radius / max(float(np.sqrt((places**2).sum(axis=1).mean())), 1e-9)
    # Parts nodes that are equally far from all pivots.
    places += 0.1 * np.random.default_rng(seed).standard_normal(places.shape)
    mesh, (one, two) = _Mesh(graph.n), graph.edges.T
    for step in np.geomspace(0.2 * radius, 0.02, ROUNDS):
        gap, force = places[two] - places[one], degrees[:, None] * mesh.repulsion(places, degrees)
        length = np.hypot(*gap.T)
        for axis in (0, 1):
            pull = length * gap[:, axis]
            force[:, axis] += np.bincount(one, pull, graph.n) - np.bincount(two, pull, graph.n)
        stiffness = np.bincount(one, length, graph.n) + np.bincount(two, length, graph.n)
        force /= np.maximum(stiffness, 1.0)[:, None]
        strength = np.maximum(np.hypot(*force.T), 1e-12)
        places += force * (np.minimum(0.5 * strength, step) / strength)[:, None]
    return _upright(_part(places))


def _part(places: Floats) -> Floats:
    """Move nodes that share a cell of the mesh apart: forces do not, where they have the same neighbours."""
    cell = float(np.ptp(places, axis=0).max()) / _cells(len(places))
    corner = np.floor(places / cell).astype(np.int64)
    order = np.lexsort(corner.T)
    is_first = np.append(True, (np.diff(corner[order], axis=0) != 0).any(axis=1))
    rank = np.empty(len(places), dtype=np.int64)  # of a node in its cell
    rank[order] = np.arange(len(places)) - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    radius, angle = 0.5 * cell * np.sqrt(rank), GOLDEN_ANGLE * rank
    return np.asarray(places + np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]))


def _cells(n: int) -> int:
    """Return the number of cells along a side of a mesh whose cells are half as wide as a node's share of space."""
    return max(16, 2 * math.isqrt(n))


def _upright(places: Floats) -> Floats:
    """Turn places so that they fill a rectangle as small as possible, its longer side horizontal."""
    turned = [
        places @ _rotation(angle) for angle in np.linspace(0.0, math.pi / 2, 45, endpoint=False)
    ]
    best = min(turned, key=lambda one: float(np.ptp(one, axis=0).prod()))
    width, height = np.ptp(best, axis=0)
    return best if width >= height else best @ _rotation(math.pi / 2)


def _rotation(angle: float) -> Floats:
    return np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])


class _Mesh:
    """Repulsion of one over the squared distance between all nodes, by convolution on a mesh that covers them."""

    def __init__(self, n: int) -> None:
        self.side = _cells(n)
        offset = np.fft.fftfreq(
            2 * self.side, 1 / (2 * self.side)
        )  # twice as many, so that borders are not joined
        x, y = np.meshgrid(offset, offset, indexing="ij")
        distance = np.maximum(np.hypot(x, y), 1.0)
        self.kernels = [np.fft.rfft2(axis / distance**3) for axis in (x, y)]

    def repulsion(self, places: Floats, masses: Floats) -> Floats:
        """Return the force on each node; a node's mass is shared by the four corners of its cell, by nearness."""
        low = places.min(axis=0)
        cell = max(float((places.max(axis=0) - low).max()), 1e-9) / (self.side - 1.001)
        inside = (places - low) / cell
        corner = np.floor(inside).astype(np.int64)
        right, up = (inside - corner).T
        first = corner[:, 0] * self.side + corner[:, 1]
        corners = [first, first + self.side, first + 1, first + self.side + 1]
        shares = [(1 - right) * (1 - up), right * (1 - up), (1 - right) * up, right * up]
        mass = np.bincount(
            np.concatenate(corners),
            np.concatenate([masses * share for share in shares]),
            self.side**2,
        )
        padded = np.fft.rfft2(mass.reshape(self.side, self.side), s=(2 * self.side, 2 * self.side))
        force = np.empty_like(places)
        for axis, kernel in enumerate(self.kernels):
            field = np.fft.irfft2(padded * kernel)[: self.side, : self.side].ravel() / cell**2
            force[:, axis] = sum(
                share * field[at] for at, share in zip(corners, shares, strict=True)
            )
        return force


def _pivot_mds(graph: Graph, seed: int) -> Floats:
    """Return the two main axes of the squared distances from pivots, centred in both directions."""
    pivots = np.random.default_rng(seed).choice(graph.n, min(PIVOTS, graph.n), replace=False)
    squared = _steps(graph, pivots).astype(np.float64) ** 2
    squared -= squared.mean(axis=0) + squared.mean(axis=1, keepdims=True) - squared.mean()
    _, vectors = np.linalg.eigh(squared.T @ squared)
    return np.asarray(squared @ vectors[:, :-3:-1])


def _steps(graph: Graph, starts: Integers) -> Integers:
    """Return the least number of steps to each node from each start, n × starts: breadth first from all at once."""
    assert graph.edges is not None
    n, ends = graph.n, graph.edges.ravel()
    neighbours = ends[np.argsort(ends, kind="stable") ^ 1].astype(np.int64)
    first = np.concatenate([[0], np.cumsum(graph.degrees)])
    steps = np.full(len(starts) * n, -1)
    reached = np.arange(len(starts)) * n + starts  # a node as seen from a start: start · n + node
    distance = 0
    while len(reached):
        steps[reached] = distance
        node = reached % n
        degree = graph.degrees[node]
        within = np.arange(degree.sum()) - np.repeat(np.cumsum(degree) - degree, degree)
        onward = (
            np.repeat(reached - node, degree) + neighbours[np.repeat(first[node], degree) + within]
        )
        onward = onward[steps[onward] < 0]
        distance += 1
        steps[onward] = distance  # marks them, which finds each once
        reached = np.unique(onward)
    steps[steps < 0] = distance  # in another component
    return steps.reshape(len(starts), n).T
