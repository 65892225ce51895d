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
    return ErrorCurve(trace.info.protocol, x.astype(np.float64), error["mean"].values, error["spread"].values)


def plot(traces: Sequence[Trace], labels: Sequence[str], against: Axis = "iterations", ax: Any = None) -> Any:
    """Draw the error curves of traces of one problem and return the axes."""
    info = traces[0].info
    rows = f" nodes, {info.rows:,} rows" if info.has_tables else ""
    running = "" if info.until is None else " that have not stopped"
    return draw_errors(
        [error_curve(trace, against) for trace in traces],
        labels,
        f"{info.statistic} of {info.data}, {info.graph}, n = {info.nodes:,}{rows}\n"
        f"mean of {info.runs} run{'s' * (info.runs > 1)}{running}; bands: spread over nodes",
        "numbers sent" if against == "units" else "iterations (edges drawn)",
        relative=info.is_relative,
        log_x=info.spacing == "log",
        target_error=info.until,
        ax=ax,
    )


def record(trace: Trace) -> RunRecord:
    """Return the numbers of a trace, averaged over runs at the last checkpoint that each of them reached."""
    info, data = trace.info, trace.data
    reached = np.isfinite(data["mean"].values)
    last = int(reached.any(axis=0).sum()) - 1
    until = info.until
    kept = reached.any(axis=1) if until is not None or last < 0 else reached[:, last]
    runs = np.flatnonzero(kept)  # before the first checkpoint: none
    at = reached[runs].sum(axis=1) - 1  # the last checkpoint of each of these runs

    def mean(name: str) -> Any:
        return data[name].values[runs, at].mean(axis=0).tolist() if len(runs) else None

    exact = data["target"].mean("node") if "node" in data["target"].dims else data["target"]
    found: RunRecord = {
        "protocol": info.protocol,
        "statistic": info.statistic,
        "data": info.data,
        "graph": info.graph,
        "n": info.nodes,
        "rows": info.rows,
        "edges": info.edges,
        "iterations": round(float(trace.iterations[at].mean())) if len(runs) else 0,
        "runs": info.runs,
        "runs_reached": len(runs),
        "seed": info.seed,
        "exact": exact.values.tolist(),
        "estimate": mean("estimate"),
        "error": mean("mean"),
        "spread": mean("spread"),
        "relative": info.is_relative,
        "units": round(float(trace.units[at].mean())) if len(runs) else 0,
        "seconds": round(info.seconds, 3),
        "complete": trace.is_complete,
        "uses_means": info.averages_moments,
    }
    if info.level is not None and info.pooled_interval is not None and len(runs):
        low, high = (_finite(end.values[runs, at].mean()) for end in trace.intervals())
        pooled_low, pooled_high = map(_finite, info.pooled_interval)
        forces_pairs = find_statistic(info.statistic).moments is not None
        found["interval"] = {
            "level": info.level,
            "low": low,
            "high": high,
            "all_rows": (pooled_low, pooled_high),
            "forces_pairs": forces_pairs,
        }
    if info.has_tables:
        found["rows_per_node"] = info.min_rows, info.max_rows
        found["local_values"] = list(info.local_values)
    if until is not None:
        stopped = data["stopped"].values > 0
        errors = data["median"].values[runs, at][stopped[runs]]
        found["until"] = {
            "target_error": until,
            "stopped": int(stopped.sum()),
            "within_target": int((errors <= until).sum()),
            "worst_error": float(errors.max()) if len(errors) else None,
        }
    return found


def _finite(value: float) -> float | None:
    """Return a number that JSON can hold."""
    return float(value) if math.isfinite(value) else None
