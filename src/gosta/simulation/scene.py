"""What a page shows of a simulation: its scene, and frames of the estimates of all nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gosta.faults import Faults
from gosta.graphs.edges import pairs_from_numbers
from gosta.graphs.graph import Graph
from gosta.graphs.pictures import positions
from gosta.pages import frames
from gosta.pages.frames import Frame, Scene
from gosta.runtime.arrays import Floats
from gosta.simulation.trace import TraceInfo
from gosta.views import numbers

MAX_MAP_NODES = 10_000
MAX_COMPLETE = 30  # nodes of a complete graph whose edges are drawn; more would be a grey area
NO_EDGES = "The edges of the network are not known: nodes are placed without them."


class Picture:
    """A scene, and what frames of it need: the targets and scales of all values."""

    def __init__(
        self,
        info: TraceInfo,
        names: Sequence[str],
        target: Floats,
        graph: Graph | None,
        no_map: str = "",
        node_names: Sequence[str] = (),
    ) -> None:
        """Make a scene.

        `target` has a row for all nodes or for each. A graph of None is not known; `no_map` says why there is no map.
        """
        self._target, count = target, target.shape[1]
        size = np.abs(target).mean(axis=0)
        self._scales = np.where(size > 0, size, 1.0)
        self._exact = target.mean(axis=0)
        if info.nodes > MAX_MAP_NODES:
            no_map = f"There is no map: {info.nodes:,} nodes are more than the {MAX_MAP_NODES:,} that it can show."
        edge_ends, note = frames.list_edges(_edges(graph)) if graph is not None else (b"", NO_EDGES)
        if info.graph_changes:
            note = f"The network changes; this is the one that it begins with. {note}".strip()
        drawn = graph or Graph("complete", info.nodes, None)
        self.scene = Scene(
            title=f"{info.statistic.replace(',', ', ')} of {info.data}",
            subtitle="; ".join([f"{info.protocol} on {info.graph}", *_faults(info.faults)]),
            quantities=_quantities(info.statistic, names, count),
            exact=tuple(self._exact.tolist()),
            scales=tuple(self._scales.tolist()),
            is_relative=tuple((size > 0).tolist()),
            has_own_targets=len(target) > 1,
            nodes=info.nodes,
            rows=info.rows,
            edges=info.edges,
            exchanges=None if info.faults else info.draws,
            iterations=info.iterations,
            places=None if no_map else frames.place_nodes(positions(drawn)),
            edge_ends=b"" if no_map else edge_ends,
            note=no_map or note,
            node_names=tuple(node_names),
        )

    def frame(self, quantity: int, iteration: int, sent: int, values: Floats) -> Frame:
        """Return a frame of one quantity from the values of all nodes, nodes × values."""
        scale, exact = float(self._scales[quantity]), float(self._exact[quantity])
        return frames.make_frame(
            iteration, sent, values[:, quantity], self._target[:, quantity], scale, exact
        )


def _edges(graph: Graph) -> NDArray[np.int32] | None:
    """Return the edges to draw; None for a complete graph of many nodes."""
    if graph.edges is None and graph.n <= MAX_COMPLETE:
        return pairs_from_numbers(np.arange(graph.m), graph.n)
    return graph.edges


def _faults(faults: Faults) -> Iterator[str]:
    """Yield what keeps exchanges from taking place."""
    if faults.loss:
        yield f"{numbers.percent(faults.loss)} of messages lost"
    if faults.away:
        yield f"{numbers.percent(faults.away)} of nodes away"
    if faults.partition is not None:
        first, last = faults.partition
        yield f"two halves separated from iteration {first:,} to {last:,}"


def _quantities(statistic: str, names: Sequence[str], count: int) -> tuple[str, ...]:
    if count == 1:
        return (statistic,)
    return tuple(names) or tuple(f"{statistic} [{k}]" for k in range(count))
