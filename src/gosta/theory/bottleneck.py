"""The bottleneck of a network: the cut that slows gossip down most."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gosta import graphs
from gosta.graphs import pictures
from gosta.graphs.graph import Graph
from gosta.runtime.arrays import Integers
from gosta.theory.spectrum import slowest_mode, spectral_gap
from gosta.views import html
from gosta.views.numbers import count, percent
from gosta.views.plots import matplotlib, shown_figure

MAX_RANGES = 3  # ranges of node numbers in a description
# Numbers that differ by less, relative to the largest, are the same: their last digits are
# rounding.
SAME = 1e-9
# Random graphs of four neighbours each have cuts down to 0.3 of the weight between random sides.
NARROW = 0.25
# Of Okabe and Ito's palette: dark and light in grey print, too.
SMALLER = "#E69F00"  # nodes of the smaller side
LARGER = "#0072B2"  # nodes of the other side
CUT = "#D55E00"  # edges between the sides
MAX_LINE = 98  # characters of a caption's line


class Bottleneck(NamedTuple):
    """Two sides of a network and the edges between them.

    Examples
    --------
    >>> import gosta
    >>> found = gosta.theory.bottleneck("two-cliques", n=10)
    >>> found.side.tolist(), found.edges, f"{found.share:.3f}"
    ([0, 1, 2, 3, 4], 1, '0.086')
    """

    side: Integers  # nodes of the smaller side, in order
    edges: int  # number of edges between the sides
    # Edge weight between the sides, relative to the weight between two random sides of these sizes.
    share: float
    description: str  # one sentence that names both sides and the number of edges
    graph: Graph  # the network

    def plot(self, ax: Any = None) -> Any:
        """Draw the network into an axes, by default of a new figure.

        Its sides have two colours, and the edges between them a third.

        Returns the axes.
        """
        return plot_bottleneck(self, shown_figure, ax)

    def _repr_html_(self) -> str:
        rows = {
            "smaller side": count(len(self.side), "node"),
            "edges between the sides": count(self.edges),
        }
        rows |= {"share of their weight": percent(self.share), "description": self.description}
        return html.table(rows.items(), caption="Bottleneck")


def bottleneck(graph: Any, n: int | None = None, seed: int = 0) -> Bottleneck:
    """Find the cut that slows a network down most, by sweeping along Fiedler's vector.

    Of all ways to split the nodes by their order along that vector, it is the one with the least
    edge weight between the sides relative to their sizes. The vector's first number that is clearly
    not zero is positive, nodes come in order from the largest number to the smallest, the lowest
    node first among equal ones, and of equally good cuts the first is taken: so the result does not
    depend on the processor.

    Parameters
    ----------
    graph, n, seed
        As for `gosta.graphs.load`.

    Returns
    -------
    Bottleneck
        The nodes of the smaller side, the edges between the sides, and a sentence about them.

    Examples
    --------
    >>> import gosta
    >>> print(gosta.theory.bottleneck("two-cliques", n=100).description)
    nodes 0-49 and 50-99 are joined by 1 of 2,451 edges
    """
    graph = graphs.load(graph, n, seed)
    if graph.edges is None:
        half = graph.n // 2
        edges = half * (graph.n - half)
        sides = f"{half:,} nodes and the other {graph.n - half:,}"
        description = f"none: {sides} are joined by {count(edges, 'edge')}"
        return Bottleneck(np.arange(half), edges, 1.0, description, graph)
    vector = slowest_mode(graph)[1]
    steps = np.rint(vector / (SAME * np.abs(vector).max()))
    return _best_cut(graph, np.argsort(-steps, kind="stable"))


def _best_cut(graph: Graph, order: Integers) -> Bottleneck:
    """Return the best of the n - 1 cuts between the first nodes of an order and the others."""
    assert graph.edges is not None
    n, place = graph.n, np.empty(graph.n, dtype=np.int64)
    place[order] = np.arange(n)
    ends = np.sort(place[graph.edges], axis=1)
    weights = graph.rates
    # An edge crosses every cut between its two ends.
    opened, closed = (np.bincount(ends[:, side], weights, minlength=n) for side in (0, 1))
    crossing = np.cumsum(opened - closed)[:-1]
    sizes = np.arange(1, n)
    expected = weights.sum() * 2 * sizes * (n - sizes) / (n * (n - 1))
    shares = crossing / expected
    at = int(np.argmax(shares <= shares.min() + SAME))
    side = np.sort(order[: at + 1] if 2 * (at + 1) <= n else order[at + 1 :])
    edges = int(((ends[:, 0] <= at) & (ends[:, 1] > at)).sum())
    share = float(shares[at])
    return Bottleneck(side, edges, share, _description(graph, side, edges, share), graph)


def _description(graph: Graph, side: Integers, edges: int, share: float) -> str:
    smaller, size = _ranges(side), len(side)
    larger = _ranges(np.setdiff1d(np.arange(graph.n), side, assume_unique=True))
    if len(smaller) == 1 and len(larger) == 1 and share <= NARROW:
        pair = sorted([smaller[0], larger[0]], key=lambda nodes: int(nodes.partition("-")[0]))
        sides = f"node{'s' * ('-' in pair[0])} {pair[0]} and {pair[1]}"
    else:
        named = ", ".join(smaller[:MAX_RANGES]) + ", ..." * (len(smaller) > MAX_RANGES)
        others = f"the other {graph.n - size:,}"
        sides = f"{size:,} node{'s' * (size > 1)} ({named}) and {others}"
    joined = f"{sides} are joined by {edges:,} of {graph.m:,} edges"
    if share > NARROW:
        part = f"{percent(share, '.0f')} of the weight between random sides of these sizes"
        return f"none to speak of: {joined}, {part}"
    return joined


def _ranges(nodes: Integers) -> list[str]:
    """Return the first node numbers as texts such as 0-49, one range more than are shown."""
    breaks = np.flatnonzero(np.diff(nodes) > 1)[: MAX_RANGES + 1] + 1
    parts = np.split(nodes, breaks)[: MAX_RANGES + 1]
    return [f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts]


def plot_bottleneck(cut: Bottleneck, figure: Callable[[float, float], Any], ax: Any = None) -> Any:
    """Draw a network with the sides of its bottleneck in two colours, and the edges between.

    Without axes they belong to a new figure, which `figure` makes. Returns the axes.
    """
    graph = cut.graph
    pictures.check_drawable(graph)
    places = pictures.positions(graph)
    ax = pictures.new_axes(places, 7.0, figure) if ax is None else ax
    is_smaller = np.isin(np.arange(graph.n), cut.side)
    pictures.draw_network(ax, graph, places, c=np.where(is_smaller, SMALLER, LARGER))
    edges = pictures.edges_drawn(graph) if graph.edges is None else graph.edges
    crossing = edges[is_smaller[edges[:, 0]] != is_smaller[edges[:, 1]]][: pictures.MAX_EDGES]
    width = float(np.clip(40 / (len(crossing) + 1), 0.5, 2.5))
    pictures.draw_edges(ax, graph, places, crossing, colors=CUT, linewidths=width, zorder=2)
    _add_legend(ax, cut)
    gap = f"spectral gap {spectral_gap(graph):.3g}"
    text = textwrap.fill(f"Bottleneck: {cut.description}.", MAX_LINE, break_on_hyphens=False)
    ax.set_title(
        f"{graph.name}: {graph.n:,} nodes, {count(graph.m, 'edge')}, {gap}\n{text}", fontsize=8.5
    )
    return ax


def _add_legend(ax: Any, cut: Bottleneck) -> None:
    line, dot = matplotlib("lines").Line2D, {"marker": "o", "linestyle": ""}
    handles = {
        count(len(cut.side), "node"): line([], [], color=SMALLER, **dot),
        f"the other {cut.graph.n - len(cut.side):,}": line([], [], color=LARGER, **dot),
        f"{count(cut.edges, 'edge')} between them": line([], [], color=CUT, linewidth=2),
    }
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "ncols": 3, "frameon": False}
    ax.legend(list(handles.values()), list(handles), **place)
