"""The page of a run: its scene, frames of the estimates of all nodes, and the page as a file.

The scene stays the same. A frame has a byte for each node, its colour, and otherwise sums up all
nodes, so that it stays small: of 10,000 nodes it has 14 kB of text. The byte holds how far the
node's estimate is from the exact value: in its highest bit whether it is below, in the others the
size of the error in logarithmic steps, from at most `MIN_ERROR` (0) to at least `MIN_ERROR` times
ten to the power of `DECADES` (127). The page draws errors and, by the sign, estimates from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.estimation.setting import Setting
from gosta.graphs.edges import pairs_from_numbers
from gosta.graphs.graph import Graph
from gosta.graphs.pictures import positions
from gosta.pages import document
from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.files import write_atomically
from gosta.schedule import Faults
from gosta.views import numbers

if TYPE_CHECKING:
    from gosta.simulation.trace import Trace

ENDINGS = (".html", ".htm")
# Nodes that a map can show.
MAX_MAP_NODES = 10_000
# Nodes of a complete graph whose edges are drawn; those of more nodes would be a grey area.
MAX_COMPLETE = 30
# Estimates that a file has, 2 MB; of more, it has only the bytes of their colours.
MAX_ESTIMATES = 400_000
NOT_KEPT = "There is no map: the estimates of all nodes were too many to keep."
# Colours of nodes: the smallest error, the range of errors in decades, and the steps in it.
MIN_ERROR = 1e-6
DECADES = 7
STEPS = 127
IS_BELOW = 128  # added to the step where an estimate is below the exact value
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BINS = 64
# Share of the nodes that may lie beyond the ends of the histogram, in its first and last bin.
OUTSIDE = 0.02
MAX_EDGES = 150_000  # in a scene; of more, it has a sample
PLACES = 65535  # along each side of the map


class Scene(msgspec.Struct, frozen=True):
    """What a page shows of a run and what stays the same."""

    title: str
    subtitle: str
    quantities: tuple[str, ...]
    # Exact value of each quantity; the mean where each node has a target of its own.
    exact: tuple[float, ...]
    scales: tuple[float, ...]  # what errors are relative to; 1 where they are absolute
    is_relative: tuple[bool, ...]  # of each quantity
    has_own_targets: bool  # whether each node has a target of its own
    nodes: int
    rows: int
    edges: int
    exchanges: int | None  # in an iteration; None: not always as many
    iterations: int  # at the end
    places: bytes | None  # x and y of each node on the map, two bytes each; None: there is no map
    edge_ends: bytes  # both ends of the edges that can be drawn, two bytes each
    note: str  # what the map leaves out
    node_names: tuple[str, ...] = ()  # where nodes are sites with names; empty: they have numbers
    is_recording: bool = False
    # What the bands of charts show: from the second to the fourth quantile, and from the first to
    # the last.
    bands: tuple[str, str] = ("half of the nodes", "90 % of the nodes")


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """One quantity of all nodes after some iterations."""

    iteration: int
    sent: int  # numbers, by all nodes together
    colours: bytes  # of each node; empty: there is no map
    estimates: tuple[float | None, ...]  # mean over nodes, then `QUANTILES`
    errors: tuple[float | None, ...]  # likewise
    ends: tuple[float, float]  # of the histogram
    counts: list[int]  # of nodes in each of its bins


class RunPicture:
    """A scene of a run, and what its frames need: the targets and scales of all values."""

    def __init__(self, setting: Setting, iterations: int, target: Floats, no_map: str = "") -> None:
        """Make a scene of a run.

        Parameters
        ----------
        iterations
            The last iteration of the run.
        target
            Exact values, with one row for all nodes or one for each.
        no_map
            Why there is no map; empty: there is one.
        """
        graph, placement, estimand = setting.graph, setting.placement, setting.estimand
        size = np.abs(target).mean(axis=0)
        self._target = target
        self._scales = np.where(size > 0, size, 1.0)
        self._exact = target.mean(axis=0)
        statistic, count = estimand.statistic.name, target.shape[1]
        names = estimand.value_names or [f"{statistic} [{k}]" for k in range(count)]
        if graph.n > MAX_MAP_NODES:
            no_map = (
                f"There is no map: {graph.n:,} nodes are more than the {MAX_MAP_NODES:,} that it "
                "can show."
            )
        edge_ends, note = list_edges(_edges_to_draw(graph))
        if setting.changing is not None:
            note = f"The network changes; this is the one that it begins with. {note}".strip()
        where = f"{setting.protocol.label} on {setting.graph_name}"
        self.scene = Scene(
            title=f"{statistic.replace(',', ', ')} of {estimand.data}",
            subtitle="; ".join([where, *_describe_faults(setting.faults)]),
            quantities=(statistic,) if count == 1 else tuple(names),
            exact=tuple(self._exact.tolist()),
            scales=tuple(self._scales.tolist()),
            is_relative=tuple((size > 0).tolist()),
            has_own_targets=len(target) > 1,
            nodes=graph.n,
            rows=estimand.n,
            edges=graph.m,
            exchanges=None if setting.faults else setting.protocol.draws,
            iterations=iterations,
            places=None if no_map else place_nodes(positions(graph)),
            edge_ends=b"" if no_map else edge_ends,
            note=no_map or note,
            node_names=placement.names,
        )

    def frame(self, quantity: int, iteration: int, sent: int, values: Floats) -> Frame:
        """Return a frame of one quantity from the values of all nodes, nodes × values."""
        scale, exact = float(self._scales[quantity]), float(self._exact[quantity])
        return make_frame(
            iteration, sent, values[:, quantity], self._target[:, quantity], scale, exact
        )


def make_frame(
    iteration: int, sent: int, estimates: Floats, target: Floats, scale: float, exact: float
) -> Frame:
    """Return a frame of the estimates of all nodes.

    The target is one number or has one for each node.
    """
    off = (estimates - target) / scale
    errors = np.abs(off)
    ends = histogram_ends(estimates, exact)
    # Estimates beyond the ends count in the first and last bin.
    counts, _ = np.histogram(np.clip(estimates, *ends), BINS, ends)
    return Frame(
        iteration,
        sent,
        encode_errors(off),
        (float(estimates.mean()), *np.quantile(estimates, QUANTILES).tolist()),
        (float(errors.mean()), *np.quantile(errors, QUANTILES).tolist()),
        ends,
        counts.tolist(),
    )


def encode_errors(off: Floats) -> bytes:
    """Return a byte for each node from how far its estimate is from the exact value.

    >>> list(encode_errors(np.array([0.0, 1.0, -1.0, 0.01, 1e-6, 50.0])))
    [0, 109, 237, 73, 0, 127]
    """
    size = np.maximum(np.abs(off), MIN_ERROR) / MIN_ERROR
    steps = np.minimum(np.rint(np.log10(size) * (STEPS / DECADES)), STEPS).astype(np.uint8)
    return (steps | np.where(off < 0, IS_BELOW, 0).astype(np.uint8)).tobytes()


def histogram_ends(estimates: Floats, exact: float) -> tuple[float, float]:
    """Return the ends of a histogram around the exact value, halved while the nodes allow it.

    >>> histogram_ends(np.array([0.9, 1.0, 1.1]), 1.0)
    (0.875, 1.125)
    """
    away = float(np.quantile(np.abs(estimates - exact), 1 - OUTSIDE))
    # Beyond the least distance, numbers near the exact value could not be told from each other.
    least = max(abs(exact), 1.0) * 2.0**-40
    half = 2.0 ** math.ceil(math.log2(max(away, least)))
    return exact - half, exact + half


def place_nodes(places: Floats) -> bytes:
    """Return the places of nodes, n × 2 between 0 and 1, as two bytes each; y grows downwards."""
    across = np.column_stack([places[:, 0], 1 - places[:, 1]])
    return _two_bytes(np.rint(across * PLACES))


def list_edges(edges: NDArray[np.int32] | None, seed: int = 0) -> tuple[bytes, str]:
    """Return both ends of the edges to draw, and what is left out.

    None stands for a complete graph.
    """
    if edges is None:
        return (
            b"",
            "Every node is a neighbour of every other: edges are drawn for the chosen node only.",
        )
    if len(edges) <= MAX_EDGES:
        return _two_bytes(edges), ""
    chosen = np.sort(np.random.default_rng(seed).choice(len(edges), MAX_EDGES, replace=False))
    return _two_bytes(edges[chosen]), f"Of {len(edges):,} edges, {MAX_EDGES:,} are drawn."


def _two_bytes(numbers: NDArray[np.float64] | NDArray[np.int32]) -> bytes:
    return np.ascontiguousarray(numbers, dtype="<u2").tobytes()


def _edges_to_draw(graph: Graph) -> NDArray[np.int32] | None:
    """Return the edges to draw; None for a complete graph of many nodes."""
    if graph.edges is None and graph.n <= MAX_COMPLETE:
        return pairs_from_numbers(np.arange(graph.m), graph.n)
    return graph.edges


def _describe_faults(faults: Faults) -> Iterator[str]:
    """Yield what keeps exchanges from taking place."""
    if faults.loss:
        yield f"{numbers.percent(faults.loss)} of messages lost"
    if faults.away:
        yield f"{numbers.percent(faults.away)} of nodes away"
    if faults.partition is not None:
        first, last = faults.partition
        yield f"two halves separated from iteration {first:,} to {last:,}"


def check_path(name: str, path: str | Path) -> Path:
    """Return the path of a report, unless its ending is wrong; `name` is that of the argument."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise InputError(f"{name} = {str(path)!r} must end in .html")
    return Path(path)


def write_report(trace: Trace, path: str | Path, run: int) -> None:
    """Write the page of a run of a trace to a file that needs nothing else."""
    file, info = check_path("path", path), trace.info
    if isinstance(run, bool) or not isinstance(run, int | np.integer) or not 0 <= run < info.runs:
        raise InputError(f"run = {run!r} must be a whole number from 0 to {info.runs - 1}")
    reached = np.flatnonzero(np.isfinite(trace.data["mean"].values[run]))
    if not len(reached):
        raise InputError("no checkpoint was reached: there is nothing to report")
    recording = msgspec.json.encode(_recording(trace, int(run), reached))
    write_atomically(file, document.whole("simulation", recording))


def _recording(trace: Trace, run: int, reached: Integers) -> dict[str, Any]:
    setting, count = trace.setting, trace.data.sizes.get("value", 1)
    graph, placement = setting.graph, setting.placement
    has_estimates = "estimates" in trace.data
    target = trace.data["target"].values.reshape(-1, count)
    no_map = "" if has_estimates else NOT_KEPT
    picture = RunPicture(setting, int(trace.iterations[-1]), target, no_map)
    scene = msgspec.structs.replace(picture.scene, is_recording=True)
    if has_estimates:
        estimates = (
            trace.data["estimates"].values[run, reached].reshape(len(reached), graph.n, count)
        )
        at = zip(
            trace.iterations[reached].tolist(),
            trace.units[reached].tolist(),
            estimates,
            strict=True,
        )
        recorded = [[picture.frame(k, *reading) for k in range(count)] for reading in at]
        is_small = estimates.size <= MAX_ESTIMATES
        kept = estimates.astype("<f4").tobytes() if is_small and scene.places is not None else None
    else:
        scene = msgspec.structs.replace(scene, bands=("spread over nodes", ""))
        recorded, kept = [_summaries(trace, run, place, count) for place in reached.tolist()], None
    return {
        "scene": scene,
        "recorded": list(zip(*recorded, strict=True)),  # by quantity
        "estimates": kept,
        "rows": placement.rows.tolist() if placement.has_tables else [],
        "targets": target.T.tolist() if scene.has_own_targets else [[]] * count,
        "has_edges": graph.edges is None or graph.m <= MAX_EDGES,
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
