"""The oracle: a protocol in plain Python, one meeting at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from gosta.datasets.data import Floats
from gosta.problem import Problem
from gosta.protocols import Protocol
from gosta.statistics.definition import as_floats

Arrays = dict[str, Any]


class Reference:
    """Nodes are lists of states, one for each number of the kernel; visitors are numbers of rows."""

    def __init__(self, problem: Problem, protocol: Protocol) -> None:
        self.problem, self.protocol = problem, protocol
        self.x = problem.x.tolist()

    def start(self) -> Arrays:
        """All nodes at the beginning: every visitor is at home."""
        n, protocol = self.problem.n, self.protocol
        numbers = self.problem.first_states(protocol).tolist()
        states = [[protocol.state(*one) for one in node] for node in numbers]
        return {"states": states, "visitors": [[k] * protocol.visitors for k in range(n)]}

    def kernel(self, visitors: list[int], k: int) -> tuple[float, ...]:
        """Own × visitor, or visitor × visitor where there are two."""
        first, second = visitors if len(visitors) == 2 else (k, visitors[0])
        return as_floats(self.problem.statistic.kernel(self.x[first], self.x[second], **self.problem.parts["kernel"]))

    def advance(self, arrays: Arrays, edges: Any, start: int) -> None:
        """Let the pairs meet, from tick start + 1 on."""
        protocol, states, visitors = self.protocol, arrays["states"], arrays["visitors"]
        for t, (i, j) in enumerate(edges.tolist()):
            slot = t % protocol.draws
            now = float(start + t // protocol.draws + 1)
            samples: dict[str, Any] = {}
            if protocol.visitors:
                if "held" in protocol.samples:
                    samples["held"] = self.kernel(visitors[i], i), self.kernel(visitors[j], j)
                visitors[i][slot], visitors[j][slot] = visitors[j][slot], visitors[i][slot]
                if "fresh" in protocol.samples:
                    samples["fresh"] = self.kernel(visitors[i], i), self.kernel(visitors[j], j)
            for c in range(self.problem.width):
                me, you = states[i][c], states[j][c]
                mine, yours = ([samples[name][side][c] for name in protocol.samples] for side in (0, 1))
                states[i][c] = protocol.meet(me, protocol.tell(you, now), *mine, now)
                states[j][c] = protocol.meet(you, protocol.tell(me, now), *yours, now)

    def means(self, arrays: Arrays, now: int) -> Floats:
        """Each node's estimates of the mean kernel values."""
        read = self.protocol.read
        return np.array([[read(state, float(now)) for state in node] for node in arrays["states"]])

    def visitors(self, arrays: Arrays) -> Any:
        """The number of each visitor's own row."""
        return np.array(arrays["visitors"])
