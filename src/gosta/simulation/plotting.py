"""Plots of the errors of traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gosta.views.plots import ErrorCurve, draw_curve, new_figure, set_scales

if TYPE_CHECKING:
    from gosta.simulation.trace import Trace

Axis = Literal["iterations", "units"]
SIZE = (6.4, 4.0)  # of a figure, in inches


def error_curve(trace: Trace, against: Axis = "iterations") -> ErrorCurve:
    """Return the mean error at each checkpoint against iterations or numbers sent, averaged over runs."""
    error = trace.error()
    x = trace.units if against == "units" else trace.iterations
    return ErrorCurve(
        trace.info.protocol, x.astype(np.float64), error["mean"].values, error["spread"].values
    )


def plot(
    traces: Sequence[Trace], labels: Sequence[str], against: Axis = "iterations", ax: Any = None
) -> Any:
    """Draw the error curves of traces of one problem into an axes, by default of a new figure; return the axes."""
    info, curves = traces[0].info, [error_curve(trace, against) for trace in traces]
    ax = new_figure(*SIZE).add_subplot() if ax is None else ax
    for curve, label in zip(curves, labels, strict=True):
        draw_curve(ax, curve, label)
    if info.until is not None:
        ax.axhline(info.until, color="0.4", linewidth=0.8, linestyle=(0, (2, 2)), label="target")
    if any(np.nanmax(curve.mean, initial=0.0) > 0 for curve in curves):
        set_scales(ax, info.is_relative, log_x=info.spacing == "log")
    ax.set_xlabel("numbers sent" if against == "units" else "iterations (edges drawn)")
    ax.set_ylabel("relative error" if info.is_relative else "absolute error")
    rows = f" nodes, {info.rows:,} rows" if info.has_tables else ""
    running = "" if info.until is None else ", which keep the error that they stop with"
    ax.set_title(
        f"{info.statistic} of {info.data}, {info.graph}, n = {info.nodes:,}{rows}\n"
        f"mean of {info.runs} run{'s' * (info.runs > 1)}{running}; bands: spread over nodes",
        fontsize=9,
    )
    ax.legend(frameon=False)
    return ax
