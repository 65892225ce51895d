"""Summaries of traces as plain values, for plots, JSON and texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gosta.statistics import find as find_statistic
from gosta.views.plots import ErrorCurve, draw_errors
from gosta.views.run_summary import RunRecord

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
        relative=about["relative"],
        log_x=about["spacing"] == "log",
        target_error=about["until"],
        ax=ax,
    )


def record(trace: Trace) -> RunRecord:
    """Return the numbers of a trace, averaged over runs at the last checkpoint that each of them reached."""
    about, data = trace.about, trace.data
    reached = np.isfinite(data["mean"].values)
    last = int(reached.any(axis=0).sum()) - 1
    stops = about["until"] is not None
    runs = np.flatnonzero(reached.any(axis=1) if stops else reached[:, last]) if last >= 0 else np.array([], int)
    at = reached[runs].sum(axis=1) - 1  # the last checkpoint of each of these runs

    def mean(name: str) -> Any:
        return data[name].values[runs, at].mean(axis=0).tolist() if len(runs) else None

    exact = data["target"].mean("node") if "node" in data["target"].dims else data["target"]
    found: RunRecord = {
        "protocol": about["protocol"],
        "statistic": about["statistic"],
        "data": about["data"],
        "graph": about["graph"],
        "n": about["n"],
        "rows": about["rows"],
        "edges": about["edges"],
        "iterations": round(float(trace.iterations[at].mean())) if len(runs) else 0,
        "runs": about["runs"],
        "runs_reached": len(runs),
        "seed": about["seed"],
        "exact": exact.values.tolist(),
        "estimate": mean("estimate"),
        "error": mean("mean"),
        "spread": mean("spread"),
        "relative": about["relative"],
        "units": round(float(trace.units[at].mean())) if len(runs) else 0,
        "seconds": round(about["seconds"], 3),
        "complete": trace.complete,
        "uses_means": about["moments"],
    }
    if about["interval"] is not None and len(runs):
        low, high = (_finite(end.values[runs, at].mean()) for end in trace.intervals())
        pooled_low, pooled_high = map(_finite, about["pooled"])
        forces_pairs = find_statistic(about["statistic"]).moments is not None
        found["interval"] = {
            "level": about["interval"],
            "low": low,
            "high": high,
            "all_rows": (pooled_low, pooled_high),
            "forces_pairs": forces_pairs,
        }
    if "alone" in about:
        found["rows_per_node"] = about["smallest"], about["largest"]
        found["local_values"] = about["alone"]
    if stops:
        stopped = data["stopped"].values > 0
        errors = data["median"].values[runs, at][stopped[runs]]
        found["until"] = {
            "target_error": about["until"],
            "stopped": int(stopped.sum()),
            "within_target": int((errors <= about["until"]).sum()),
            "worst_error": float(errors.max()) if len(errors) else None,
        }
    return found


def _finite(value: float) -> float | None:
    """Return a number that JSON can hold."""
    return float(value) if math.isfinite(value) else None
