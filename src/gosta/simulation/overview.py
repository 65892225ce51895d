"""The picture of a run: its network before and after, coloured by what nodes estimate, and the error curves."""

from __future__ import annotations

import functools
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gosta.graphs.graph import Graph
from gosta.graphs.pictures import MAX_NODES, draw_network, positions
from gosta.runtime.arrays import Floats, Integers
from gosta.simulation.plotting import Axis, error_curve, plot
from gosta.views import numbers
from gosta.views.plots import matplotlib, new_figure

if TYPE_CHECKING:
    from gosta.simulation.trace import Trace, TraceInfo

# Dark is too low, light too high, and what lies between is right: also for colour-blind readers and in grey print.
COLOURS = "viridis"
MAX_LINE = 105  # characters of a title's line
MAX_RELATIVE = (
    1.0  # relative deviation from the exact value beyond which the colour does not change
)


@dataclass(frozen=True)
class NetworkView:
    """The network of a trace, and how far the estimates of its first run are from the exact value."""

    graph: Graph
    places: Floats  # of the nodes, n × 2
    deviations: Floats  # by checkpoint and node, relative to the exact value unless that is 0; NaN: not reached
    target: float  # the exact value
    value: str  # the name of what is shown, of several statistics
    info: TraceInfo

    @property
    def last(self) -> int:
        """The last checkpoint that the run reached."""
        return int(np.flatnonzero(np.isfinite(self.deviations).any(axis=1))[-1])

    def early(self, iterations: Integers) -> int:
        """Return the first checkpoint at which a node has taken part in an exchange, on average."""
        return min(self.last, int(np.searchsorted(iterations, self.info.nodes / 2)))

    @functools.cached_property
    def reach(self) -> float:
        """The deviation from which on the colour does not change: a round number above most that occur."""
        usual = float(np.quantile(np.nan_to_num(np.abs(self.deviations)), 0.9, axis=1).max())
        if self.info.is_relative:
            usual = min(usual, MAX_RELATIVE)
        return _round_up(usual) if usual > 0 else MAX_RELATIVE


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, ...

    >>> _round_up(0.03), _round_up(1.0), _round_up(234.0)
    (0.05, 1.0, 500.0)
    """
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value * (1 - 1e-9))


def reason_not_to_draw(trace: Trace) -> str:
    """Return why the network of a trace cannot be drawn with its estimates; empty if it can."""
    if trace.info.nodes > MAX_NODES:
        return f"the trace has {trace.info.nodes:,} nodes; pictures of networks have at most {MAX_NODES:,}"
    if "estimates" not in trace.data:
        return "the estimates of all nodes were too many to keep"
    if "x" not in trace.resume_data:
        return (
            "the trace does not hold its network: it was too large, or the engine was 'reference'"
        )
    if "node" in trace.data["target"].dims:
        return f"{trace.info.statistic} has a value of its own for each node"
    if not np.isfinite(trace.estimates.values[0]).any():
        return "the first run has not reached a checkpoint"
    return ""


def network_view(trace: Trace) -> NetworkView:
    """Return the network of a trace with the estimates of its first run; of several values, those of the first."""
    info, estimates, target = trace.info, trace.estimates.values[0], np.atleast_1d(trace.target)
    estimates = estimates[..., 0] if estimates.ndim == 3 else estimates
    exact, scale = float(target[0]), abs(float(target[0])) or 1.0
    network = (
        info.graph.partition(",")[0] if info.graph_changes else info.graph
    )  # of a changing one, the first
    graph = Graph(network, info.nodes, trace.resume_data.get("edges"))
    name = next(iter(trace.value_names), "")
    return NetworkView(graph, positions(graph), (estimates - exact) / scale, exact, name, info)


def draw_estimates(ax: Any, view: NetworkView, deviations: Floats) -> Any:
    """Draw the network with nodes coloured by their deviations from the exact value; return the nodes."""
    # Logarithmic on both sides, so that a tenth of an error can be told from the error, and linear in the middle.
    limits = {
        "linthresh": view.reach / 100,
        "linscale": 0.5,
        "vmin": -view.reach,
        "vmax": view.reach,
    }
    scale = {"cmap": COLOURS, "norm": matplotlib("colors").SymLogNorm(**limits)}
    dots = draw_network(ax, view.graph, view.places, c=deviations, **scale)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))  # panels of all networks are squares
    return dots


def add_colour_bar(ax: Any, dots: Any, view: NetworkView) -> None:
    """Explain the colours of nodes in an axes: the exact value in the middle, deviations from it on both sides."""
    ticks = view.reach * np.array([-1.0, -0.1, -0.01, 0.0, 0.01, 0.1, 1.0])
    bar = ax.figure.colorbar(dots, cax=ax, orientation="horizontal", extend="both", ticks=ticks)
    texts = [
        f"{'+' if tick > 0 else ''}{numbers.error(tick, view.info.is_relative)}" for tick in ticks
    ]
    texts[3] = f"\nexact value {numbers.number(view.target)}"
    ax.set_xticklabels(texts, fontsize="small")
    ax.minorticks_off()
    ax.axvline(0.0, color="black", linewidth=1.2)
    bar.set_label(f"colour of a node: its estimate{f' of {view.value}' if view.value else ''}")


def time_of(info: TraceInfo, iteration: int) -> str:
    """Return when an iteration is: after how many exchanges that a node takes part in, on average."""
    exchanges = 2 * info.draws * iteration / info.nodes
    return f"after {exchanges:{',.0f' if exchanges >= 10 else '.2g'}} exchanges a node"


def average_error(view: NetworkView, deviations: Floats) -> str:
    """Say how far nodes are from the exact value on average."""
    return f"off by {numbers.error(float(np.abs(deviations).mean()), view.info.is_relative)} on average"


def sentence(info: TraceInfo) -> str:
    """Say what a simulation is about, in words for somebody who sees one for the first time."""
    each = (
        "one row"
        if not info.has_tables
        else f"{_span(info.min_rows, info.max_rows)} of the {info.rows:,} rows"
    )
    statistics = info.statistic.replace(",", ", ")
    return f"{info.nodes:,} nodes, each knows {each} of {info.data}: together they estimate its {statistics}"


def _span(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def curve_title(info: TraceInfo) -> str:
    """Say what the error curve and its band are."""
    mean = "mean and" if info.runs == 1 else f"mean of {info.runs} runs,"
    return f"error, {mean} spread over nodes"


def overview(traces: Sequence[Trace], labels: Sequence[str], against: Axis = "iterations") -> Any:
    """Draw the network of the first trace before and after, and the error curves of all; return the curves' axes."""
    trace, info, view = traces[0], traces[0].info, network_view(traces[0])
    figure = new_figure(10.5, 4.5)
    grid = figure.add_gridspec(2, 3, width_ratios=[1, 1, 1], height_ratios=[24, 1])
    before, after, curves = (
        figure.add_subplot(place) for place in (grid[0, 0], grid[0, 1], grid[:, 2])
    )
    checkpoints = [view.early(trace.iterations), view.last]
    panels = [(view.deviations[k], time_of(info, int(trace.iterations[k]))) for k in checkpoints]
    for ax, (deviations, when) in zip((before, after), panels, strict=True):
        dots = draw_estimates(ax, view, deviations)
        ax.set_title(f"{when}:\n{average_error(view, deviations)}", fontsize=10)
    add_colour_bar(figure.add_subplot(grid[1, :2]), dots, view)
    plot(traces, labels, against, curves)
    network = f"{view.graph.name}{' at first' if info.graph_changes else ''}"
    networks = f"networks: {info.protocol if len(traces) > 1 else network}{', first run' if info.runs > 1 else ''}"
    curves.set_title(f"{curve_title(info)}\n({networks})", fontsize=9)
    curve = error_curve(trace, against)
    ring = {
        "marker": "o",
        "markersize": 11,
        "markerfacecolor": "none",
        "markeredgecolor": "0.2",
        "linestyle": "",
    }
    curves.plot(curve.x[checkpoints], curve.mean[checkpoints], **ring)
    figure.suptitle(textwrap.fill(sentence(info), MAX_LINE, break_on_hyphens=False), fontsize=12)
    return curves
