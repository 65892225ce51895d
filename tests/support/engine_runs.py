"""Engines on given edges, and small graphs to run them on."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gosta import graphs
from gosta.estimation.setting import Setting
from gosta.graphs.graph import Graph
from gosta.protocols.protocol import COPIES
from gosta.runtime.arrays import Floats, Integers
from gosta.schedule import Schedule
from gosta.simulation.engines import Readings, read
from gosta.simulation.engines.compiled.engine import CompiledEngine
from gosta.simulation.engines.compiled.layouts import CarriedLayout, OneRowLayout
from gosta.simulation.engines.engine import Batch, Snapshot
from gosta.simulation.runner import Runner


class FixedSchedule(Schedule):
    """A schedule of these edges, numbered from `start` on."""

    def __init__(
        self,
        graph: Graph,
        edges: NDArray[np.int32],
        edge_shares: Floats | None = None,
        start: int = 0,
    ) -> None:
        super().__init__(graph, 0, 0)
        self._edges, self._shares, self._start = edges, edge_shares, start

    def edges(self, first: int, last: int) -> NDArray[np.int32]:
        """Return given edges."""
        return self._edges[first - self._start : last - self._start]

    def edge_shares(self, first: int, last: int) -> Floats:
        """Return the given shares; 1 where none are given."""
        if self._shares is None or len(self._shares) == 1:
            return np.ones(1) if self._shares is None else self._shares
        return self._shares[first - self._start : last - self._start]


def one_row_engine(setting: Setting, is_inline: bool) -> CompiledEngine:
    """Return the compiled engine for nodes with one row each, with a layout."""
    if setting.gossip.carries_means:
        return CompiledEngine(setting, 0, CarriedLayout(setting))
    return CompiledEngine(setting, 0, OneRowLayout(setting, is_inline))


def conserved_sums(engine: CompiledEngine, batch: Batch[Snapshot]) -> tuple[Floats, Floats]:
    """Return `ahead` + `owed` summed over nodes for each state, and what they must equal where
    visitors carry means.

    That is the sum over visitors of their smoothed means and, last, the number of visitors that are
    counted.
    """
    layout, nodes = engine.layout, batch.state["nodes"][0]
    assert isinstance(layout, CarriedLayout)
    fields, width = engine.setting.gossip.fields, layout.width
    states = nodes[:, : fields * (width + 1)].reshape(len(nodes), width + 1, fields)
    size = layout.visitor_size
    held = nodes[:, layout.visitor : layout.visitor + COPIES * size].reshape(-1, size)
    counted = [*held[:, 3 + width : 3 + 2 * width].sum(axis=0), np.count_nonzero(held[:, 2])]
    return (states[:, :, 1] + states[:, :, 2]).sum(axis=0), np.array(counted) / COPIES


def estimates(engine: Any, batch: Batch[Any]) -> Floats:
    """Return the means that nodes estimate: runs × nodes × means."""
    means: Floats = engine.setting.means(read(engine, batch))
    return means


def advance(engine: Any, batch: Batch[Any], edges: Any, edge_shares: Floats | None = None) -> None:
    """Carry out the exchanges of given edges in the only run of a batch."""
    draws = engine.setting.protocol.draws
    last = batch.iteration + len(edges) // draws
    if isinstance(engine, CompiledEngine):
        engine.advance_edges(batch, 0, edges, np.ones(1) if edge_shares is None else edge_shares)
    else:
        schedule = FixedSchedule(engine.setting.graph, edges, edge_shares, batch.iteration * draws)
        engine.advance_run(batch, 0, schedule, batch.iteration, last)
    batch.iteration = last


@contextmanager
def interrupting(monkeypatch: pytest.MonkeyPatch, iteration: int) -> Iterator[None]:
    """Press Ctrl-C in the main thread when a simulation has read its estimates at an iteration or
    later.

    It is advanced in small portions of exchanges, however fast they are.
    """
    evaluate, next_portion, handler = (
        Runner._evaluate,
        Runner._next_portion,
        signal.getsignal(signal.SIGINT),
    )

    def evaluate_and_interrupt(
        self: Runner, runs: Integers, stops: Integers, readings: Readings
    ) -> None:
        evaluate(self, runs, stops, readings)
        if len(stops) and stops[-1] >= iteration:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Runner, "_evaluate", evaluate_and_interrupt)
    monkeypatch.setattr(
        Runner,
        "_next_portion",
        lambda self, batch, stops, _: next_portion(self, batch, stops, 1 << 13),
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        monkeypatch.undo()
        signal.signal(signal.SIGINT, handler)


def small_graph(rng: np.random.Generator, weighted: bool) -> Graph:
    """Return a random tree and some more edges on 2 to 12 nodes; weights over several orders of
    magnitude.
    """
    n = int(rng.integers(2, 13))
    edges = {(int(rng.integers(0, k)), k) for k in range(1, n)}
    edges |= {
        tuple(sorted(rng.choice(n, 2, replace=False).tolist()))
        for _ in range(int(rng.integers(0, n)))
    }
    weights = np.exp(rng.normal(0, 1.5, len(edges))) if weighted else None
    return graphs.from_edges(np.array(sorted(edges)), weights=weights)
