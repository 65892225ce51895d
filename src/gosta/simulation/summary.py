"""Summaries of traces as plain values, for plots, JSON and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from gosta.views.plots import ErrorCurve, draw_errors

if TYPE_CHECKING:
    from gosta.simulation.trace import Trace

Axis = Literal["iterations", "units"]


def error_curve(trace: Trace, against: Axis = "iterations") -> ErrorCurve:
    """Return the mean error at each checkpoint against iterations or numbers sent, averaged over runs."""
    error = trace.error()
    x = trace.units if against == "units" else trace.iterations
    return ErrorCurve(trace.about["protocol"], x, error["mean"].values, error["spread"].values)


def plot(traces: Sequence[Trace], labels: Sequence[str], against: Axis = "iterations", ax: Any = None) -> Any:
    """Draw the error curves of traces of one problem and return the axes."""
    about = traces[0].about
    rows = f" nodes, {about['rows']:,} rows" if about["rows"] != about["n"] else ""
    running = "" if about["until"] is None else " that have not stopped"
    return draw_errors(
        [error_curve(trace, against) for trace in traces],
        labels,
        f"{about['statistic']} of {about['data']}, {about['graph']}, n = {about['n']:,}{rows}\n"
        f"mean of {about['runs']} run{'s' * (about['runs'] > 1)}{running}; bands: spread over nodes",
        "numbers sent" if against == "units" else "iterations (edges drawn)",
        "relative error" if about["relative"] else "absolute error",
        log_x=about["spacing"] == "log",
        target_error=about["until"],
        ax=ax,
    )
