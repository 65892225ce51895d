"""Pictures of networks: where nodes are drawn, and the dots and lines for nodes and edges.

Nodes are placed by the geometry of the graph's family, or so that neighbours are near each other.
Graphs without a geometry are placed in two steps. Pivot MDS (Brandes and Pich, 2006) gives the
shape as a whole: the two main axes of the numbers of steps from each node to some pivots. Forces
then spread the nodes: neighbours attract and all nodes repel each other. Repulsion is computed on
a mesh, where it is a convolution, so that a round takes time proportional to nodes and edges
(10,000 nodes: about a second in all).

Forces amplify rounding errors until they show. What precedes them and what is done in their rounds
therefore consists of sums, products and square roots in a fixed order, which all processors round
alike: no linear algebra libraries, and no functions that have several implementations in numpy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gosta.errors import InputError
from gosta.graphs import edges as edges_of
from gosta.graphs.edges import Edges, pairs_from_numbers
from gosta.runtime.arrays import Floats, Integers
from gosta.views.plots import matplotlib

if TYPE_CHECKING:
    from gosta.graphs.graph import Graph

PIVOTS = 50  # from which steps to all nodes are counted; more change the picture little
# Of multiplying by a matrix to find its main axes; more change the picture little.
AXIS_ROUNDS = 100
ROUNDS = 150  # of moving all nodes by the forces on them
MAX_RING = 60  # nodes of a complete graph that are placed on a ring; more fill its disk
MAX_LINE = 40  # nodes of a path that are placed on a line; more wind up in a spiral
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
TURNS = 45  # angles of less than a quarter turn that are tried for a picture
AREA_DIGITS = 9  # to which areas of turned pictures are compared: further digits are rounding

MAX_NODES = 10_000  # more dots than a screen has room for
MAX_VECTORS = 2000  # dots or lines in .svg and .pdf files that are drawn as such; more are an image
MAX_EDGES = 20_000  # lines beyond which a picture becomes a grey area, and slow to draw
# How far edges are drawn that leave a torus's border and come back opposite, in distances of
# neighbours.
STUB = 0.4


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
    """Return the places of a graph whose family has a geometry; None for another graph.

    A user's graph can have any name, so its edges are compared with those of the family.
    """
    if graph.edges is None:
        return _disk(graph.n)
    family, _, text = graph.name.partition(" ")
    if family not in NATURAL:
        return None
    family_edges, place = NATURAL[family]
    try:
        sizes = [int(size) for size in text.split(" x ")] if text else [graph.n]
        if math.prod(sizes) != graph.n or not np.array_equal(graph.edges, family_edges(*sizes)):
            return None
    except (ValueError, TypeError):  # no numbers, or as many as another family has
        return None
    return place(*sizes)


def _ring(n: int) -> Floats:
    angle = math.pi / 2 - 2 * math.pi * np.arange(n) / n
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _disk(n: int) -> Floats:
    """Return places on the unit disk: a ring of few nodes, otherwise the seeds of a sunflower."""
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
    """Return the corners of a cube: squares of squares, turned so that no edge covers another."""
    places = np.zeros((n, 2))
    for k in range(n.bit_length() - 1):
        length, angle = 2.2 ** (k // 2), k % 2 * math.pi / 2 + 0.12 * (-1) ** (k // 2)
        direction = [length * math.cos(angle), length * math.sin(angle)]
        places += np.outer(np.arange(n) >> k & 1, direction)
    return places


def _two_disks(n: int) -> Floats:
    """Return two disks side by side, with the nodes that are joined next to each other."""
    left = _disk(n // 2)
    # The last node, which is on the border, comes to the right.
    left = left @ _rotation(-math.atan2(left[-1, 1], left[-1, 0]))
    return np.concatenate([left - [1.25, 0.0], [1.25, 0.0] - left[::-1]])


# Functions from the sizes in a graph's name to its edges, and to the places of its nodes.
NATURAL: dict[str, tuple[Callable[..., Edges], Callable[..., Floats]]] = {
    "cycle": (edges_of.cycle_edges, _ring),
    "path": (edges_of.path_edges, _line),
    "star": (edges_of.star_edges, _star),
    "torus": (edges_of.torus_edges, _rectangle),
    "grid": (edges_of.grid_edges, _rectangle),
    "hypercube": (edges_of.hypercube_edges, _cube),
    "two-cliques": (edges_of.two_cliques_edges, _two_disks),
}


def _spread(graph: Graph, seed: int) -> Floats:
    """Place nodes by their distances from pivots, then move them by forces, in shrinking steps.

    An edge pulls with the square of its length; nodes repel each other by their degrees, so that
    those with many neighbours do not gather in the middle. A node's force is divided by its
    stiffness, so that it does not overshoot.
    """
    assert graph.edges is not None
    places = _pivot_mds(graph, seed)
    radius, degrees = math.sqrt(graph.n), graph.degrees.astype(np.float64)
    places *= radius / max(float(np.sqrt((places**2).sum(axis=1).mean())), 1e-9)
    # Parts nodes that are equally far from all pivots.
    places += 0.1 * np.random.default_rng(seed).standard_normal(places.shape)
    mesh, (left, right) = _Mesh(graph.n), graph.edges.T
    longest, shortest = 0.2 * radius, 0.02
    for k in range(ROUNDS):
        step = longest * (shortest / longest) ** (k / (ROUNDS - 1))
        gap = places[right] - places[left]
        force = degrees[:, None] * mesh.repulsion(places, degrees)
        length = _lengths(gap)
        for axis in (0, 1):
            pull = length * gap[:, axis]
            force[:, axis] += np.bincount(left, pull, graph.n) - np.bincount(right, pull, graph.n)
        stiffness = np.bincount(left, length, graph.n) + np.bincount(right, length, graph.n)
        force /= np.maximum(stiffness, 1.0)[:, None]
        strength = np.maximum(_lengths(force), 1e-12)
        places += force * (np.minimum(0.5 * strength, step) / strength)[:, None]
    return _upright(_part(places))


def _lengths(vectors: Floats) -> Floats:
    x, y = vectors.T
    return np.asarray(np.sqrt(x * x + y * y))


def _part(places: Floats) -> Floats:
    """Move nodes that share a cell apart: forces do not if they have equal neighbours."""
    cell = float(np.ptp(places, axis=0).max()) / _cells(len(places))
    corner = np.floor(places / cell).astype(np.int64)
    order = np.lexsort(corner.T)
    is_first = np.append(True, (np.diff(corner[order], axis=0) != 0).any(axis=1))
    rank = np.empty(len(places), dtype=np.int64)  # of a node in its cell
    rank[order] = np.arange(len(places)) - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    radius, angle = 0.5 * cell * np.sqrt(rank), GOLDEN_ANGLE * rank
    return np.asarray(places + np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]))


def _cells(n: int) -> int:
    """Return the number of cells along a mesh, half as wide as a node's share of space."""
    return max(16, 2 * math.isqrt(n))


def _upright(places: Floats) -> Floats:
    """Turn places so that they fill a rectangle as small as possible, its longer side horizontal.

    Of rectangles that are equally small, the one after the smallest turn is taken.
    """
    turned = [places @ _rotation(k / TURNS * math.pi / 2) for k in range(TURNS)]
    areas = np.array([np.ptp(each, axis=0).prod() for each in turned])
    best = turned[int(np.argmin(np.round(areas / (areas.max() or 1.0), AREA_DIGITS)))]
    width, height = np.ptp(best, axis=0).round(AREA_DIGITS)
    return best if width >= height else best @ _rotation(math.pi / 2)


def _rotation(angle: float) -> Floats:
    return np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])


class _Mesh:
    """Repulsion of one over the squared distance between all nodes.

    It is computed by convolution on a mesh that covers the nodes.
    """

    def __init__(self, n: int) -> None:
        self.side = _cells(n)
        # The mesh is twice as wide as what is used of it, so that borders are not joined.
        offset = np.fft.fftfreq(2 * self.side, 1 / (2 * self.side))
        x, y = np.meshgrid(offset, offset, indexing="ij")
        distance = np.maximum(np.sqrt(x * x + y * y), 1.0)
        cubed = distance * distance * distance
        self.kernels = [np.fft.rfft2(axis / cubed) for axis in (x, y)]

    def repulsion(self, places: Floats, masses: Floats) -> Floats:
        """Return the force on each node.

        A node's mass is shared by the four corners of its cell, by nearness.
        """
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
            field = np.fft.irfft2(_product(padded, kernel))[: self.side, : self.side]
            values = field.ravel() / (cell * cell)
            force[:, axis] = sum(
                share * values[at] for at, share in zip(corners, shares, strict=True)
            )
        return force


def _product(left: Any, right: Any) -> Any:
    """Return the product of complex numbers, without the fused operations of some processors."""
    out = np.empty_like(left)
    out.real = left.real * right.real - left.imag * right.imag
    out.imag = left.real * right.imag + left.imag * right.real
    return out


def _pivot_mds(graph: Graph, seed: int) -> Floats:
    """Return the two main axes of the squared distances from pivots, centred in both directions.

    They are found by multiplying two random vectors by a matrix again and again: so their signs
    follow from the seed, as does the choice where several axes are equally good.
    """
    pivots = np.random.default_rng(seed).choice(graph.n, min(PIVOTS, graph.n), replace=False)
    squared = _steps(graph, pivots).astype(np.float64) ** 2
    squared -= squared.mean(axis=0) + squared.mean(axis=1, keepdims=True) - squared.mean()
    products = np.array([(squared * column[:, None]).sum(axis=0) for column in squared.T])
    axes = np.random.default_rng(seed).standard_normal((2, len(pivots)))
    for _ in range(AXIS_ROUNDS):
        axes = np.array([(products * axis).sum(axis=1) for axis in axes])
        first, second = axes
        first /= max(math.sqrt(float((first * first).sum())), 1e-300)
        second -= (first * second).sum() * first
        second /= max(math.sqrt(float((second * second).sum())), 1e-300)
    return np.column_stack([(squared * axis).sum(axis=1) for axis in axes])


def _steps(graph: Graph, starts: Integers) -> Integers:
    """Return the least number of steps to each node from each start, n × starts."""
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


def check_drawable(graph: Graph) -> None:
    """Raise `InputError` if a graph has too many nodes for a picture."""
    if graph.n > MAX_NODES:
        raise InputError(
            f"{graph.name} has {graph.n:,} nodes; pictures of networks have at most {MAX_NODES:,}"
        )


def new_axes(places: Floats, width: float, figure: Callable[[float, float], Any]) -> Any:
    """Return the axes of a new figure, as high as the nodes in the unit square are."""
    return figure(width, width * max(0.25, float(np.ptp(places[:, 1]))) + 1.0).add_subplot()


def draw_network(ax: Any, graph: Graph, places: Floats, **nodes: Any) -> Any:
    """Draw a graph with its nodes at some places; return what `scatter` of matplotlib returns.

    Of more edges than can be told apart, a part is drawn, spread over all of them; of a complete
    graph with many nodes, none.
    """
    edges = edges_drawn(graph)
    opacity = min(0.8, 15 / math.sqrt(len(edges) + 1))
    draw_edges(ax, graph, places, edges, colors="0.5", linewidths=0.5, alpha=opacity)
    style = {
        "s": node_area(ax, graph.n),
        "linewidths": 0,
        "zorder": 3,
        "rasterized": graph.n > MAX_VECTORS,
    }
    dots = ax.scatter(*places.T, **style | nodes)
    middle, radius = (
        (places.max(axis=0) + places.min(axis=0)) / 2,
        1.04 * np.ptp(places, axis=0) / 2 + 0.02,
    )
    radius += STUB * torus_step(graph, places)
    ax.set(
        xlim=middle[0] + radius[0] * np.array([-1, 1]),
        ylim=middle[1] + radius[1] * np.array([-1, 1]),
    )
    ax.set_aspect("equal")
    ax.set_axis_off()
    return dots


def draw_edges(ax: Any, graph: Graph, places: Floats, edges: Edges, **style: Any) -> None:
    """Draw lines between nodes.

    An edge across the border of a torus would lie on others; it is drawn as two short ones.
    """
    lines, step = places[edges], torus_step(graph, places)
    if step:
        along = lines[:, 1] - lines[:, 0]
        length = np.abs(along).max(axis=1)
        is_across = length > 1.5 * step
        outwards = STUB * step * (along / length[:, None])[is_across]
        first, second = lines[is_across].swapaxes(0, 1)
        stubs = [
            np.stack([first, first - outwards], axis=1),
            np.stack([second, second + outwards], axis=1),
        ]
        lines = np.concatenate([lines[~is_across], *stubs])
    drawn = matplotlib("collections").LineCollection(
        lines, rasterized=len(lines) > MAX_VECTORS, **style
    )
    ax.add_collection(drawn, autolim=False)


def torus_step(graph: Graph, places: Floats) -> float:
    """Return the distance of neighbours in a torus placed as a rectangle; 0 for other graphs."""
    if not graph.name.startswith("torus ") or graph.edges is None:
        return 0.0
    along = np.abs(places[graph.edges[:, 0]] - places[graph.edges[:, 1]])
    is_rectangle = along.min(axis=1).max() < 1e-9  # a user's graph can have any name
    return float(along.max(axis=1).min()) if is_rectangle else 0.0


def edges_drawn(graph: Graph) -> Edges:
    """Return the edges of a graph that are drawn."""
    if graph.edges is None:
        return pairs_from_numbers(np.arange(graph.m if graph.n <= MAX_RING else 0), graph.n)
    return graph.edges[:: -(-graph.m // MAX_EDGES)]


def node_area(ax: Any, n: int) -> float:
    """Return the area of a dot in square points: dots cover about a quarter of the picture."""
    box = ax.get_window_extent()
    side = min(box.width, box.height) * 72 / ax.figure.dpi
    return float(np.clip((0.55 * side / math.sqrt(n)) ** 2, 1.5, 100.0))
