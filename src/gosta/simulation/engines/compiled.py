"""The fast engine: a loop over meetings, compiled once for each pair of a protocol and a kernel.

There are two ways to keep nodes. Where everything fits into the cache, visitors are numbers of rows. Where it does
not, each node's states, own observation and visitors lie side by side ("carried"): a meeting touches two places in
memory instead of ten, and since those are known from the edge alone they are asked for some meetings ahead.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from gosta.estimation.problem import Problem
from gosta.protocols import Protocol
from gosta.runtime import compiler as compiled
from gosta.runtime.arrays import Floats
from gosta.simulation.engines.layout import LINE, Layout
from gosta.simulation.engines.reference import ALIKE, Arrays

CACHE = 4 << 20  # bytes: about what a core can call its own


class Compiled:
    """Nodes are rows of one table."""

    def __init__(self, problem: Problem, protocol: Protocol, carried: bool | None = None) -> None:
        self.problem, self.protocol = problem, protocol
        n, d = problem.x.shape
        if carried is None:
            carried = n * 8 * (d + problem.width * protocol.fields) > CACHE
        self.layout = Layout(protocol, problem.estimated(protocol), problem.width, d, carried)
        self.options = tuple(problem.parts["kernel"].values())
        functions = {"kernel": problem.statistic.kernel, "meet": protocol.meet, "tell": protocol.tell}
        functions |= {"State": protocol.state}
        self.loop = compiled.specialise(self.layout.text(problem.example), functions, self._trial).advance

    def _trial(self, module: ModuleType) -> None:
        arrays = self._arrays(np.zeros((1, self.layout.kept.states)), self.problem.x[:1])
        none = np.zeros((0, 2), dtype=np.int32)
        module.advance(arrays["table"], self.problem.x, arrays["visitors"], none, ALIKE, 0, self.options)

    def start(self) -> Arrays:
        """All nodes at the beginning: every visitor is at home."""
        states = self.problem.first_states(self.protocol).reshape(self.problem.n, self.layout.kept.states)
        return self._arrays(states, self.problem.x)

    def _arrays(self, states: Floats, x: Floats) -> Arrays:
        n, slots = len(x), self.protocol.visitors
        home = np.arange(n)[:, None]
        table = _aligned(n, self.layout.width)
        table[:, : self.layout.kept.states] = states
        if not self.layout.carried:
            return {"table": table, "visitors": np.repeat(home, slots, axis=1).astype(np.int32)}
        size = self.layout.kept.size
        rest = np.column_stack([x[:, : self.layout.own], *([home, x] * slots)])
        table[:, size : size + rest.shape[1]] = rest
        return {"table": table, "visitors": np.zeros((1, 1), dtype=np.int32)}

    def advance(self, arrays: Arrays, edges: Any, start: int, paces: Floats = ALIKE) -> None:
        """Let the pairs meet, from tick start + 1 on."""
        self.loop(arrays["table"], self.problem.x, arrays["visitors"], edges, paces, start, self.options)

    def means(self, arrays: Arrays, now: int) -> Floats:
        """Each node's estimates of the means."""
        return self.layout.kept.read(arrays["table"], now)

    def visitors(self, arrays: Arrays) -> Any:
        """The number of each visitor's own row."""
        if not self.layout.carried:
            return arrays["visitors"]
        places = [self.layout.visitor(slot) for slot in range(self.protocol.visitors)]
        return arrays["table"][:, places].astype(np.int64)


def _aligned(n: int, width: int) -> Floats:
    """A table of zeros whose rows begin at lines of cache where their width allows."""
    raw = np.zeros(n * width + LINE)
    skip = (-raw.ctypes.data // 8) % LINE
    return raw[skip : skip + n * width].reshape(n, width)
