"""The compiled engine: a loop over exchanges, compiled for a protocol, a kernel and a layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.estimation.setting import Setting
from gosta.graphs.edges import Edges
from gosta.protocols import CollectingProtocol
from gosta.runtime import compiler
from gosta.runtime.arrays import Floats, Integers
from gosta.simulation.edges import STREAM_SIZE, EdgeDrawer
from gosta.simulation.engines.collecting import CollectingEngine
from gosta.simulation.engines.compiled.layouts import (
    CarriedLayout,
    Layout,
    ObjectiveLayout,
    OneRowLayout,
    TableLayout,
    compiler_error,
    loop_text,
)
from gosta.simulation.engines.engine import (
    NO_STOPS,
    Batch,
    Engine,
    Readings,
    RunThreads,
    Snapshot,
    batch_of_arrays,
    failures_of,
    repeat_arrays,
)

# Edges drawn by a thread at once: a MiB, which stays in its cache.
DRAWS_AT_ONCE = 1 << 17


class CompiledEngine:
    """Carries out the exchanges of runs whose nodes have a layout."""

    def __init__(self, setting: Setting, seed: int, layout: Layout) -> None:
        self.setting, self.layout = setting, layout
        self._options = tuple(setting.estimand.kernel_options.values())
        self._threads = RunThreads(setting, self.advance_runs)
        failures = failures_of(setting, seed)
        has_shares = "edge_share" in setting.gossip.inputs
        self._drawer = EdgeDrawer(setting.drawn, seed, has_shares, failures)
        self._example = layout.example()
        text, functions = loop_text(layout, len(self._example))
        try:
            compiler.specialise(text, functions, self._trial, is_unchecked=True)
        except Exception as error:  # numba raises several kinds
            raise compiler_error(setting, error) from error

    def _trial(self, module: ModuleType) -> None:
        """Compile a loop by advancing a run by nothing."""
        self._module = module
        batch = self.restore([0], 0, repeat_arrays(self._example, 1))
        self.advance_runs(batch, np.zeros(1, dtype=np.int64), 0, NO_STOPS, np.zeros((1, 0, 1, 1)))

    def bytes_per_run(self) -> int:
        return sum(array.nbytes for array in self.layout.first_arrays().values())

    def start(self, runs: Sequence[int]) -> Batch[Snapshot]:
        return self.restore(runs, 0, repeat_arrays(self.layout.first_arrays(), len(runs)))

    def snapshot(self, batch: Batch[Snapshot]) -> Snapshot:
        return batch.state

    def restore(
        self, runs: Sequence[int], iteration: int, snapshot: Mapping[str, NDArray[Any]]
    ) -> Batch[Snapshot]:
        batch = batch_of_arrays(runs, iteration, snapshot)
        batch.streams = np.zeros((len(runs), STREAM_SIZE), dtype=np.uint64)
        return batch

    def visitors(self, batch: Batch[Snapshot]) -> Integers:
        return self.layout.visitor_homes(self.snapshot(batch)).astype(np.int64)

    def advance(
        self, batch: Batch[Snapshot], iteration: int, stops: Integers = NO_STOPS
    ) -> Readings:
        return self._threads.advance(batch, iteration, stops)

    def close(self) -> None:
        self._threads.close()

    def advance_runs(
        self,
        batch: Batch[Snapshot],
        positions: Integers,
        iteration: int,
        stops: Integers,
        out: Floats,
    ) -> None:
        """Advance the runs at some positions of a batch, as `RunThreads` asks for it."""
        draws, runs = self.setting.protocol.draws, np.array(batch.runs)
        length = DRAWS_AT_ONCE // draws
        size = DRAWS_AT_ONCE // max(1, (iteration - batch.iteration) * draws)
        for k in range(0, len(positions), max(1, size)):
            chosen = positions[k : k + max(1, size)]
            streams, arrays, read = batch.streams[chosen], tuple(batch.state.values()), 0
            for first in range(batch.iteration, iteration, length) or [iteration]:
                last = min(iteration, first + length)
                edges, shares = self._drawer.draw(
                    streams, runs[chosen], first * draws, last * draws
                )
                here = stops[read : np.searchsorted(stops, last, side="right")]
                self._module.advance_runs(
                    arrays,
                    self.layout.fixed,
                    chosen,
                    edges,
                    shares,
                    first,
                    here,
                    self._options,
                    out[k : k + len(chosen)],
                    read,
                )
                read += len(here)
            batch.streams[chosen] = streams

    def advance_edges(
        self, batch: Batch[Snapshot], position: int, edges: Edges, shares: Floats
    ) -> None:
        """Carry out the exchanges of given edges in a run, instead of those drawn."""
        state = tuple(array[position] for array in batch.state.values())
        self._module.advance(
            state, self.layout.fixed, edges, shares, batch.iteration, self._options
        )


def make(setting: Setting, seed: int) -> Engine[Any]:
    """Return the engine for a setting."""
    if isinstance(setting.protocol, CollectingProtocol):
        return CollectingEngine(setting, seed, is_compiled=True)
    return CompiledEngine(setting, seed, choose_layout(setting))


def choose_layout(setting: Setting) -> Layout:
    """Return the layout for a setting: nodes that keep means of each row need that of tables."""
    if setting.gossip.minimises:
        return ObjectiveLayout(setting)
    if setting.placement.has_tables or setting.estimand.tracked.local is not None:
        return TableLayout(setting)
    return CarriedLayout(setting) if setting.gossip.carries_means else OneRowLayout(setting)
