"""The paper's kind of figure: error against iterations or against numbers sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gosta.runtime.arrays import Floats

if TYPE_CHECKING:
    from gosta.simulation.trace import Trace

# Okabe and Ito's colours, told apart by everyone; a protocol has the same one everywhere.
COLOURS = {
    "tracking": "#882255",
    "gosta-async": "#0072B2",
    "gosta-sync": "#009E73",
    "u2": "#D55E00",
    "u1": "#E69F00",
    "averaging": "#56B4E9",
    "flooding": "#CC79A7",
    "master-node": "#000000",
}


# What theory says is drawn in the protocol's colour, each kind with a dash of its own.
DASHES = {"predicted": (0, (5, 2)), "expectation": (0, (1, 1)), "bound": (0, (6, 2, 1, 2))}


def draw(
    traces: Sequence[Trace], ax: Any = None, labels: Sequence[str] | None = None, against: str = "iteration"
) -> Any:
    """Curves of mean error with a band of the spread over nodes, one a trace."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    if ax is None:
        figure = Figure(figsize=(6.4, 4.0), layout="constrained", dpi=150)
        ax = figure.add_subplot()
    for trace, label in zip(traces, labels or [t.about["protocol"] for t in traces], strict=True):
        error = trace.error()
        mean, spread = np.where(error["mean"] > 0, error["mean"], np.nan), error["spread"].values  # no log of 0
        at = trace.units if against == "units" else trace.iterations
        colour = COLOURS.get(trace.about["protocol"])
        ax.plot(at, mean, label=label, color=colour, linewidth=1.5)
        band(ax, at, mean, spread, colour)
    about = traces[0].about
    if about["until"] is not None:
        ax.axhline(about["until"], color="0.4", linewidth=0.8, linestyle=(0, (2, 2)), label="asked for")
    if any(np.nanmax(trace.error()["mean"].values, initial=0.0) > 0 for trace in traces):
        ax.set_yscale("log")
        ax.set_xscale("log" if about["spacing"] == "log" else "linear")
    if ax.get_xscale() != "log":
        ax.xaxis.set_major_formatter(EngFormatter())
    rows = f" nodes, {about['rows']:,} rows" if about["rows"] != about["n"] else ""
    going = "" if about["until"] is None else ", of those that go on"
    ax.set_xlabel("numbers sent" if against == "units" else "iterations (edges drawn)")
    ax.set_ylabel("relative error" if about["relative"] else "absolute error")
    ax.set_title(
        f"{about['statistic']} of {about['data']}, {about['graph']}, n = {about['n']:,}{rows}\n"
        f"mean of {about['runs']} run{'s' * (about['runs'] > 1)}{going}; bands: spread over nodes",
        fontsize=9,
    )
    ax.grid(alpha=0.3, linewidth=0.5)
    ax.legend(frameon=False)
    return ax


def band(ax: Any, at: Any, mean: Any, spread: Any, colour: Any, alpha: float = 0.15) -> None:
    """A band as far below as above on a logarithmic axis, where mean - spread may not exist."""
    factor = 1 + spread / mean
    ax.fill_between(at, mean / factor, mean * factor, color=colour, alpha=alpha, linewidth=0)


def draw_theory(ax: Any, trace: Trace, curves: Mapping[str, Floats], against: str = "iteration") -> None:
    """Add curves of theory, at the checkpoints of a trace, to its picture.

    A bound may begin far above all else: the picture shows where it ends.
    """
    at = trace.units if against == "units" else trace.iterations
    colour, named = COLOURS.get(trace.about["protocol"]), ax.get_legend_handles_labels()[1]
    top = 10 * np.nanmax(trace.error()["mean"].values)
    for name, values in curves.items():
        ax.plot(at, values, color=colour, linestyle=DASHES[name], linewidth=1)
        if name not in named:
            ax.plot([], [], label=name, color="0.3", linestyle=DASHES[name], linewidth=1)
        if np.isfinite(values[-1]):
            top = max(top, 3 * values[-1])
    ax.set_ylim(top=max(top, ax.get_ylim()[1] if named[-1] in curves else top))
    ax.legend(frameon=False)
