"""Engine of protocols that hold sets of observations: their own loop, compiled or as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.estimation.setting import Setting
from gosta.protocols import CollectingProtocol
from gosta.runtime import compiler
from gosta.runtime.arrays import Floats, Integers
from gosta.schedule import Schedule
from gosta.simulation.engines.engine import (
    NO_STOPS,
    Batch,
    Readings,
    ScheduledRuns,
    Snapshot,
    batch_of_arrays,
    repeat_arrays,
)
from gosta.statistics import pairs


class CollectingEngine:
    """The loop of a collecting protocol over its arrays."""

    def __init__(self, setting: Setting, seed: int, is_compiled: bool) -> None:
        self.setting = setting
        self._scheduled = ScheduledRuns(setting, seed, self.advance_run, self.read_run)
        assert isinstance(setting.protocol, CollectingProtocol)
        self.protocol, estimand = setting.protocol, setting.estimand
        self.options = tuple(estimand.kernel_options.values())
        text = Path(self.protocol.file).read_text(encoding="utf-8") + pairs.values_text(
            estimand.example
        )
        if is_compiled:
            text += "\nfrom gosta.runtime.observation import row\n"
            self.loop = compiler.specialise(
                text, {"kernel": estimand.statistic.kernel}, self._trial
            ).advance
        else:
            functions = {"kernel": estimand.statistic.kernel, "row": lambda x, i: x[i].tolist()}
            self.loop = compiler.interpret(text, functions).advance

    def _trial(self, module: ModuleType) -> None:
        arrays = self.protocol.arrays(1, self.setting.estimand.width).values()
        x = self.setting.estimand.x[:1]
        edges = np.zeros((0, 2), dtype=np.int32)
        uniforms = np.zeros((0, 2))
        module.advance(x, self.options, edges, uniforms, np.zeros(1, dtype=np.int64), 0, *arrays)

    def _first_arrays(self) -> Snapshot:
        return self.protocol.arrays(self.setting.estimand.n, self.setting.estimand.width)

    def bytes_per_run(self) -> int:
        return sum(array.nbytes for array in self._first_arrays().values())

    def start(self, runs: Sequence[int]) -> Batch[Snapshot]:
        return batch_of_arrays(runs, 0, repeat_arrays(self._first_arrays(), len(runs)))

    def snapshot(self, batch: Batch[Snapshot]) -> Snapshot:
        return batch.state

    def restore(
        self, runs: Sequence[int], iteration: int, snapshot: Mapping[str, NDArray[Any]]
    ) -> Batch[Snapshot]:
        return batch_of_arrays(runs, iteration, snapshot)

    def visitors(self, batch: Batch[Snapshot]) -> Integers:
        # Copies are sent, nothing travels.
        return np.zeros((len(batch.runs), self.setting.estimand.n, 0), dtype=np.int64)

    def advance(
        self, batch: Batch[Snapshot], iteration: int, stops: Integers = NO_STOPS
    ) -> Readings:
        return self._scheduled.advance(batch, iteration, stops)

    def close(self) -> None:
        self._scheduled.close()

    def advance_run(
        self, batch: Batch[Snapshot], position: int, schedule: Schedule, first: int, last: int
    ) -> None:
        """Carry out the exchanges of a run between two iterations."""
        x = self.setting.estimand.x
        edges = schedule.edges(first, last)
        uniforms = schedule.uniforms(first, last)
        arrays = [array[position] for array in batch.state.values()]
        if self.setting.faults:
            takes_place = edges[:, 0] >= 0
            edges, uniforms = edges[takes_place], uniforms[takes_place]
        self.loop(x, self.options, edges, uniforms, schedule.order, first, *arrays)

    def read_run(self, batch: Batch[Snapshot], position: int, _iteration: int) -> Floats:
        """Return what the nodes of a run read from their states."""
        arrays = {name: array[position] for name, array in batch.state.items()}
        means: Floats = self.protocol.means(arrays, self.setting.estimand.diagonal)
        return means
