"""Plots of traces: error curves, and the network coloured by what nodes estimate."""

from __future__ import annotations

import functools
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gosta.graphs.pictures import MAX_NODES, draw_network, positions
from gosta.runtime.arrays import Floats
from gosta.views import numbers
from gosta.views.plots import ErrorCurve, draw_curve, matplotlib, new_figure, set_scales

if TYPE_CHECKING:
    from gosta.estimation.setting import Setting
    from gosta.simulation.trace import Trace

Axis = Literal["iterations", "units"]
SIZE = (6.4, 4.0)  # inches of a figure of error curves
OVERVIEW_SIZE = (10.5, 4.5)  # inches of a figure of networks and error curves
MAX_LINE = 105  # characters of a title's line
# Dark is too low, light too high, and what lies between is right: also for colour-blind readers
# and in grey print.
COLOURS = "viridis"
# Relative deviation from the exact value beyond which the colour does not change.
MAX_RELATIVE = 1.0


def error_curve(trace: Trace, against: Axis = "iterations") -> ErrorCurve:
    """Return the mean error over runs at each checkpoint, against iterations or numbers sent."""
    error = trace.error()
    x = trace.units if against == "units" else trace.iterations
    return ErrorCurve(
        trace.setting.protocol.name,
        x.astype(np.float64),
        error["mean"].values,
        error["spread"].values,
    )


def plot_errors(
    traces: Sequence[Trace], labels: Sequence[str], against: Axis = "iterations", ax: Any = None
) -> Any:
    """Draw the error curves of traces of one problem into an axes, by default of a new figure.

    The function returns the axes.
    """
    trace, info, curves = traces[0], traces[0].info, [error_curve(each, against) for each in traces]
    ax = new_figure(*SIZE).add_subplot() if ax is None else ax
    for curve, label in zip(curves, labels, strict=True):
        draw_curve(ax, curve, label)
    if info.until is not None:
        ax.axhline(info.until, color="0.4", linewidth=0.8, linestyle=(0, (2, 2)), label="target")
    if any(np.nanmax(curve.mean, initial=0.0) > 0 for curve in curves):
        set_scales(ax, trace.is_relative, log_x=info.spacing == "log")
    ax.set_xlabel("numbers sent" if against == "units" else "iterations (edges drawn)")
    ax.set_ylabel("relative error" if trace.is_relative else "absolute error")
    setting = trace.setting
    placement, estimand = setting.placement, setting.estimand
    rows = f" nodes, {estimand.n:,} rows" if placement.has_several_rows else ""
    until = "" if info.until is None else ", which keep the error that they stop with"
    ax.set_title(
        f"{estimand.statistic.name} of {estimand.data}, {setting.graph_name}, "
        f"n = {placement.nodes:,}{rows}\n"
        f"mean of {info.runs} run{'s' * (info.runs > 1)}{until}; bands: spread over nodes",
        fontsize=9,
    )
    ax.legend(frameon=False)
    return ax


class NetworkView:
    """The network of a trace with the estimates of its first run; of several values, the first.

    Attributes
    ----------
    graph, places
        The network, the first one where it changes, and the places of its nodes, n × 2.
    deviations
        How far estimates are from the exact value, by checkpoint and node: relative to it unless
        it is 0. NaN: not reached.
    target, value
        The exact value, and the name of what is shown, of several statistics.
    """

    def __init__(self, trace: Trace) -> None:
        estimates, target = trace.estimates.values[0], np.atleast_1d(trace.target)
        estimates = estimates[..., 0] if estimates.ndim == 3 else estimates
        self.graph = trace.setting.graph
        self.places = positions(self.graph)
        self.target = float(target[0])
        self.deviations: Floats = (estimates - self.target) / (abs(self.target) or 1.0)
        self.value = next(iter(trace.value_names), "")
        self.is_relative = trace.is_relative
        self.iterations = trace.iterations

    @property
    def last(self) -> int:
        """The last checkpoint that the run reached."""
        return int(np.flatnonzero(np.isfinite(self.deviations).any(axis=1))[-1])

    @property
    def early(self) -> int:
        """The first checkpoint at which a node has taken part in an exchange, on average."""
        return min(self.last, int(np.searchsorted(self.iterations, self.graph.n / 2)))

    @functools.cached_property
    def reach(self) -> float:
        """Deviation from which on the colour does not change: a round number above most."""
        usual = float(np.quantile(np.nan_to_num(np.abs(self.deviations)), 0.9, axis=1).max())
        if self.is_relative:
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
    if trace.setting.graph.n > MAX_NODES:
        return (
            f"the trace has {trace.setting.graph.n:,} nodes; pictures of networks have at most "
            f"{MAX_NODES:,}"
        )
    if "estimates" not in trace.data:
        return "the estimates of all nodes were too many to keep"
    if "node" in trace.data["target"].dims:
        return f"{trace.setting.estimand.statistic.name} has a value of its own for each node"
    if not np.isfinite(trace.estimates.values[0]).any():
        return "the first run has not reached a checkpoint"
    return ""


def draw_estimates(ax: Any, view: NetworkView, deviations: Floats) -> Any:
    """Draw the network with nodes coloured by their deviations from the exact value.

    The function returns the nodes.
    """
    # Logarithmic on both sides, so that a tenth of an error can be told from the error, and linear
    # in the middle.
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
    """Explain the colours of nodes in an axes.

    The exact value is in the middle, deviations from it are on both sides.
    """
    ticks = view.reach * np.array([-1.0, -0.1, -0.01, 0.0, 0.01, 0.1, 1.0])
    bar = ax.figure.colorbar(dots, cax=ax, orientation="horizontal", extend="both", ticks=ticks)
    texts = [f"{'+' if tick > 0 else ''}{numbers.error(tick, view.is_relative)}" for tick in ticks]
    texts[3] = f"\nexact value {numbers.number(view.target)}"
    ax.set_xticklabels(texts, fontsize="small")
    ax.minorticks_off()
    ax.axvline(0.0, color="black", linewidth=1.2)
    bar.set_label(f"colour of a node: its estimate{f' of {view.value}' if view.value else ''}")


def time_of(setting: Setting, iteration: int) -> str:
    """Return when an iteration is, in exchanges that a node takes part in on average."""
    exchanges = 2 * setting.protocol.draws * iteration / setting.placement.nodes
    return f"after {exchanges:{',.0f' if exchanges >= 10 else '.2g'}} exchanges a node"


def average_error(view: NetworkView, deviations: Floats) -> str:
    """Say how far nodes are from the exact value on average."""
    return f"off by {numbers.error(float(np.abs(deviations).mean()), view.is_relative)} on average"


def sentence(setting: Setting) -> str:
    """Say what a simulation is about, in words for somebody who sees one for the first time."""
    placement, estimand = setting.placement, setting.estimand
    each = "one row"
    if placement.has_several_rows:
        least, most = int(placement.rows.min()), int(placement.rows.max())
        each = f"{_span(least, most)} of the {estimand.n:,} rows"
    statistics = estimand.statistic.name.replace(",", ", ")
    return (
        f"{placement.nodes:,} nodes, each knows {each} of {estimand.data}: "
        f"together they estimate its {statistics}"
    )


def _span(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def curve_title(runs: int) -> str:
    """Say what the error curve and its band are."""
    mean = "mean and" if runs == 1 else f"mean of {runs} runs,"
    return f"error, {mean} spread over nodes"


def overview(traces: Sequence[Trace], labels: Sequence[str], against: Axis = "iterations") -> Any:
    """Draw the network of the first trace before and after, and the error curves of all.

    The function returns the curves' axes.
    """
    trace, view = traces[0], NetworkView(traces[0])
    setting, runs = trace.setting, trace.info.runs
    figure = new_figure(*OVERVIEW_SIZE)
    grid = figure.add_gridspec(2, 3, width_ratios=[1, 1, 1], height_ratios=[24, 1])
    before, after, curves = (
        figure.add_subplot(place) for place in (grid[0, 0], grid[0, 1], grid[:, 2])
    )
    checkpoints = [view.early, view.last]
    for ax, checkpoint in zip((before, after), checkpoints, strict=True):
        deviations = view.deviations[checkpoint]
        dots = draw_estimates(ax, view, deviations)
        when = time_of(setting, int(trace.iterations[checkpoint]))
        ax.set_title(f"{when}:\n{average_error(view, deviations)}", fontsize=10)
    add_colour_bar(figure.add_subplot(grid[1, :2]), dots, view)
    plot_errors(traces, labels, against, curves)
    network = f"{view.graph.name}{' at first' if setting.changing is not None else ''}"
    shown = setting.protocol.label if len(traces) > 1 else network
    first_run = ", first run" if runs > 1 else ""
    curves.set_title(f"{curve_title(runs)}\n(networks: {shown}{first_run})", fontsize=9)
    curve = error_curve(trace, against)
    ring = {
        "marker": "o",
        "markersize": 11,
        "markerfacecolor": "none",
        "markeredgecolor": "0.2",
        "linestyle": "",
    }
    curves.plot(curve.x[checkpoints], curve.mean[checkpoints], **ring)
    figure.suptitle(textwrap.fill(sentence(setting), MAX_LINE, break_on_hyphens=False), fontsize=12)
    return curves
