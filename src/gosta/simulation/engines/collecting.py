"""Engine of protocols that hold sets of observations: their own loop, compiled or as it is."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np

from gosta.estimation.setting import Setting
from gosta.protocols import CollectingProtocol
from gosta.runtime import compiler
from gosta.runtime.arrays import Floats, Integers
from gosta.schedule import Schedule
from gosta.simulation.engines.engine import ArrayEngine, Batch, ScheduledEngine, Snapshot
from gosta.statistics import pairs


class CollectingEngine(ArrayEngine, ScheduledEngine[Snapshot]):
    """The loop of a collecting protocol over its arrays."""

    def __init__(self, setting: Setting, seed: int, is_compiled: bool) -> None:
        super().__init__(setting, seed)
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
        x, edges, uniforms = (
            self.setting.estimand.x[:1],
            np.zeros((0, 2), dtype=np.int32),
            np.zeros((0, 2)),
        )
        module.advance(x, self.options, edges, uniforms, np.zeros(1, dtype=np.int64), 0, *arrays)

    def first_arrays(self) -> Snapshot:
        return self.protocol.arrays(self.setting.estimand.n, self.setting.estimand.width)

    def homes_of(self, arrays: Snapshot) -> Integers:
        runs = len(next(iter(arrays.values())))
        # copies are sent, nothing travels
        return np.zeros((runs, self.setting.estimand.n, 0), dtype=np.int64)

    def advance_run(
        self, batch: Batch[Snapshot], position: int, schedule: Schedule, first: int, last: int
    ) -> None:
        x, edges, uniforms = (
            self.setting.estimand.x,
            schedule.edges(first, last),
            schedule.uniforms(first, last),
        )
        arrays = [array[position] for array in batch.state.values()]
        if self.setting.faults:
            takes_place = edges[:, 0] >= 0
            edges, uniforms = edges[takes_place], uniforms[takes_place]
        self.loop(x, self.options, edges, uniforms, schedule.order, first, *arrays)

    def read_run(self, batch: Batch[Snapshot], position: int, iteration: int) -> Floats:  # noqa: ARG002
        arrays = {name: array[position] for name, array in batch.state.items()}
        means: Floats = self.protocol.means(arrays, self.setting.estimand.diagonal)
        return means
