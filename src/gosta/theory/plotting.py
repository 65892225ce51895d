"""The picture of a network with its bottleneck."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gosta.graphs.pictures import (
    MAX_EDGES,
    check_drawable,
    draw_edges,
    draw_network,
    edges_drawn,
    new_axes,
    positions,
)
from gosta.theory.spectrum import spectral_gap
from gosta.views.numbers import count
from gosta.views.plots import matplotlib

if TYPE_CHECKING:
    from gosta.theory.bottleneck import Bottleneck

# Of Okabe and Ito's palette: dark and light in grey print, too.
SMALLER, LARGER, CUT = "#E69F00", "#0072B2", "#D55E00"
MAX_LINE = 98  # characters of a caption's line


def plot_bottleneck(
    found: Bottleneck, figure: Callable[[float, float], Any], ax: Any = None
) -> Any:
    """Draw a network with the two sides of its bottleneck in two colours, and the edges between them.

    Without axes they belong to a new figure, which `figure` makes. Returns the axes.
    """
    graph = found.graph
    check_drawable(graph)
    places = positions(graph)
    ax = new_axes(places, 7.0, figure) if ax is None else ax
    is_smaller = np.isin(np.arange(graph.n), found.side)
    draw_network(ax, graph, places, c=np.where(is_smaller, SMALLER, LARGER))
    edges = edges_drawn(graph) if graph.edges is None else graph.edges
    crossing = edges[is_smaller[edges[:, 0]] != is_smaller[edges[:, 1]]][:MAX_EDGES]
    width = float(np.clip(40 / (len(crossing) + 1), 0.5, 2.5))
    draw_edges(ax, graph, places, crossing, colors=CUT, linewidths=width, zorder=2)
    _add_legend(ax, found)
    gap = f"spectral gap {spectral_gap(graph):.3g}"
    text = textwrap.fill(f"Bottleneck: {found.description}.", MAX_LINE, break_on_hyphens=False)
    ax.set_title(
        f"{graph.name}: {graph.n:,} nodes, {count(graph.m, 'edge')}, {gap}\n{text}", fontsize=8.5
    )
    return ax


def _add_legend(ax: Any, found: Bottleneck) -> None:
    line, dot = matplotlib("lines").Line2D, {"marker": "o", "linestyle": ""}
    handles = {
        count(len(found.side), "node"): line([], [], color=SMALLER, **dot),
        f"the other {found.graph.n - len(found.side):,}": line([], [], color=LARGER, **dot),
        f"{count(found.edges, 'edge')} between them": line([], [], color=CUT, linewidth=2),
    }
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "ncols": 3, "frameon": False}
    ax.legend(list(handles.values()), list(handles), **place)
