"""Engines for protocols that hold sets of observations: their own loop, as it is or compiled."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gosta.estimation.problem import Problem
from gosta.protocols import Collecting
from gosta.runtime import compiler as compiled
from gosta.runtime.arrays import Floats
from gosta.simulation.engines.reference import Arrays
from gosta.statistics import pairs


class CollectingEngine:
    """The loop of a collecting protocol over its arrays."""

    def __init__(self, problem: Problem, protocol: Collecting, plain: bool) -> None:
        self.problem, self.protocol = problem, protocol
        text = Path(protocol.file).read_text(encoding="utf-8") + pairs.values_text(problem.example)
        if plain:
            names: dict[str, Any] = {"__name__": "gosta_plain", "__file__": protocol.file}
            exec(compile(text, protocol.file, "exec"), names)
            names |= {"kernel": problem.statistic.kernel, "row": lambda x, i: x[i].tolist()}
            self.loop = names["advance"]
        else:
            text += "\nfrom gosta.runtime.observation import row\n"
            self.loop = compiled.specialise(text, {"kernel": problem.statistic.kernel}, self._trial).advance

    def _trial(self, module: ModuleType) -> None:
        x = self.problem.x[:1]
        nothing = np.zeros((0, 2))
        order, options = np.zeros(1, dtype=np.int64), tuple(self.problem.parts["kernel"].values())
        arrays = self.protocol.arrays(1, self.problem.width)
        module.advance(x, options, nothing.astype(np.int32), nothing, order, 0, *arrays.values())

    def start(self) -> Arrays:
        """Every node holds its own observation."""
        arrays: Arrays = self.protocol.arrays(self.problem.n, self.problem.width)
        return arrays

    def advance(self, arrays: Arrays, edges: Any, start: int, chances: Any, order: Any) -> None:
        """Some iterations, from tick start + 1 on."""
        options = tuple(self.problem.parts["kernel"].values())
        self.loop(self.problem.x, options, edges, chances, order, start, *arrays.values())

    def means(self, arrays: Arrays, now: int) -> Floats:  # noqa: ARG002
        """Each node's mean kernel values over the pairs it holds."""
        means: Floats = self.protocol.means(arrays, self.problem.diagonal)
        return means
