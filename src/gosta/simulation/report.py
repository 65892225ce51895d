"""A page of one run of a trace, in a file of its own: the live page with its data inside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from gosta.errors import InputError
from gosta.graphs.graph import Graph
from gosta.pages import document
from gosta.pages.frames import MAX_EDGES, Frame
from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.files import write_atomically
from gosta.simulation.scene import Picture

if TYPE_CHECKING:
    from gosta.simulation.trace import Trace

ENDINGS = (".html", ".htm")
MAX_ESTIMATES = 400_000  # that the file has, 2 MB; of more, it has the bytes of their colours only
NOT_KEPT = "There is no map: the estimates of all nodes were too many to keep."


def check_path(name: str, path: str | Path) -> Path:
    """Return the path of a report, unless its ending is wrong; `name` is that of the argument."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise InputError(f"{name} = {str(path)!r} must end in .html")
    return Path(path)


def write(trace: Trace, path: str | Path, run: int) -> None:
    """Write the page of a run."""
    file, info = check_path("path", path), trace.info
    if isinstance(run, bool) or not isinstance(run, int | np.integer) or not 0 <= run < info.runs:
        raise InputError(f"run = {run!r} must be a whole number from 0 to {info.runs - 1}")
    reached = np.flatnonzero(np.isfinite(trace.data["mean"].values[run]))
    if not len(reached):
        raise InputError("no checkpoint was reached: there is nothing to report")
    recording = msgspec.json.encode(_recording(trace, int(run), reached))
    write_atomically(file, document.whole("simulation", recording))


def _recording(trace: Trace, run: int, reached: Integers) -> dict[str, Any]:
    info, count, edges = (
        trace.info,
        trace.data.sizes.get("value", 1),
        trace.resume_data.get("edges"),
    )
    is_complete = info.edges == info.nodes * (info.nodes - 1) // 2
    graph = Graph(info.graph, info.nodes, edges) if is_complete or edges is not None else None
    has_estimates = "estimates" in trace.data
    target = trace.data["target"].values.reshape(-1, count)
    note = "" if has_estimates else NOT_KEPT
    picture = Picture(info, trace.value_names, target, graph, note, trace.node_names)
    scene = msgspec.structs.replace(picture.scene, is_recording=True)
    if has_estimates:
        estimates = (
            trace.data["estimates"].values[run, reached].reshape(len(reached), info.nodes, count)
        )
        at = zip(
            trace.iterations[reached].tolist(),
            trace.units[reached].tolist(),
            estimates,
            strict=True,
        )
        recorded = [[picture.frame(k, *one) for k in range(count)] for one in at]
        is_small = estimates.size <= MAX_ESTIMATES
        kept = estimates.astype("<f4").tobytes() if is_small and scene.places is not None else None
    else:
        scene = msgspec.structs.replace(scene, bands=("spread over nodes", ""))
        recorded, kept = [_summaries(trace, run, place, count) for place in reached.tolist()], None
    return {
        "scene": scene,
        "recorded": list(zip(*recorded, strict=True)),  # by quantity
        "estimates": kept,
        "rows": trace.resume_data["counts"].tolist() if "counts" in trace.resume_data else [],
        "targets": target.T.tolist() if scene.has_own_targets else [[]] * count,
        "has_edges": graph is not None and (graph.edges is None or graph.m <= MAX_EDGES),
    }


def _summaries(trace: Trace, run: int, place: int, count: int) -> list[Frame]:
    """Return a frame of each value where only mean, spread and median of all nodes are known."""
    data, iteration, sent = trace.data, int(trace.iterations[place]), int(trace.units[place])
    mean, spread, median = (
        float(data[name].values[run, place]) for name in ("mean", "spread", "median")
    )
    factor = 1 + spread / mean if mean > 0 else 1.0
    errors = mean, None, mean / factor, median, mean * factor, None
    values: Floats = data["estimate"].values[run, place].reshape(count)
    return [
        Frame(iteration, sent, b"", (value, *[None] * 5), errors, (0.0, 1.0), [])
        for value in values.tolist()
    ]
