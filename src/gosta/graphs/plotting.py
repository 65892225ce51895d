"""Pictures of networks: dots for nodes, lines for edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gosta.errors import InputError
from gosta.graphs.graph import Edges, Graph, pairs_from_numbers
from gosta.graphs.layout import MAX_RING
from gosta.runtime.arrays import Floats
from gosta.views.plots import matplotlib

MAX_NODES = 10_000  # more dots than a screen has room for
MAX_VECTORS = (
    2000  # dots or lines that are drawn as such in .svg and .pdf files; more are an image in them
)
STUB = 0.4  # of the distance of neighbours: how far edges are drawn that leave a torus's border and come back opposite
MAX_EDGES = 20_000  # lines beyond which a picture becomes a grey area, and slow to draw


def check_drawable(graph: Graph) -> None:
    """Raise `InputError` if a graph has too many nodes for a picture."""
    if graph.n > MAX_NODES:
        raise InputError(
            f"{graph.name} has {graph.n:,} nodes; pictures of networks have at most {MAX_NODES:,}"
        )


def new_axes(places: Floats, width: float, figure: Callable[[float, float], Any]) -> Any:
    """Return the axes of a new figure, of a width in inches, that is as high as the nodes in the unit square are."""
    return figure(width, width * max(0.25, float(np.ptp(places[:, 1]))) + 1.0).add_subplot()


def draw_network(ax: Any, graph: Graph, places: Floats, **nodes: Any) -> Any:
    """Draw a graph with its nodes at some places into an axes; return the nodes, drawn by matplotlib's `scatter`.

    Of more edges than can be told apart, a part is drawn, spread over all of them; of a complete graph with many nodes,
    none.
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
    """Draw lines between nodes; an edge across the border of a torus, which would lie on others, as two short ones."""
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
    """Return the distance of neighbours in a torus that is placed as a rectangle; 0 for anything else."""
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
    """Return the area of a dot in square points, so that about a quarter of the picture is covered by dots."""
    box = ax.get_window_extent()
    side = min(box.width, box.height) * 72 / ax.figure.dpi
    return float(np.clip((0.55 * side / math.sqrt(n)) ** 2, 1.5, 100.0))
