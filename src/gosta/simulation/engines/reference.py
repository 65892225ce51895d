"""The oracle for one row a node: a protocol in plain Python, one meeting at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from gosta.estimation.problem import Problem
from gosta.protocols import Protocol
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import as_floats

Arrays = dict[str, Any]
ALIKE: Floats = np.ones(1)  # the paces of edges that fire equally often


class Reference:
    """Nodes are lists of states, one for each number that is estimated; visitors are numbers of rows."""

    def __init__(self, problem: Problem, protocol: Protocol) -> None:
        self.problem, self.protocol = problem, protocol
        self.x = problem.x.tolist()

    def start(self) -> Arrays:
        """All nodes at the beginning: every visitor is at home."""
        problem, protocol = self.problem, self.protocol
        numbers = problem.first_states(protocol).tolist()
        return {
            "states": [[protocol.state(*one) for one in node] for node in numbers],
            "visitors": [[k] * protocol.visitors for k in range(problem.n)],
            "meetings": [0.0] * problem.n,
            "known": np.zeros((problem.n, problem.width)).tolist(),
        }

    def kernel(self, first: int, second: int) -> list[float]:
        """The kernel of two rows."""
        kernel, options = self.problem.statistic.kernel, self.problem.parts["kernel"]
        return list(as_floats(kernel(self.x[first], self.x[second], **options)))

    def seen(self, arrays: Arrays, k: int) -> list[float]:
        """Own row × visitor; visitor × visitor where there are two."""
        guests = arrays["visitors"][k]
        return self.kernel(*(guests if len(guests) == 2 else (k, guests[0])))

    def advance(self, arrays: Arrays, edges: Any, start: int, paces: Floats = ALIKE) -> None:
        """Let the pairs meet, from tick start + 1 on."""
        protocol, meetings = self.protocol, arrays["meetings"]
        for t, ends in enumerate(edges.tolist()):
            now = float(start + t // protocol.draws + 1)
            for k in ends:
                meetings[k] += 1.0
            both = {"now": now, "share": 0.5, "fewest": min(meetings[k] for k in ends)}
            both["pace"] = float(paces[min(t, len(paces) - 1)])
            given: list[dict[str, Any]] = [both | {"meetings": meetings[k], "weight": 1.0 / meetings[k]} for k in ends]
            if protocol.visitors:
                self._swap(arrays, ends, t % protocol.draws, given)
            for c in range(len(arrays["states"][0])):
                states = [arrays["states"][k][c] for k in ends]
                for side, k in enumerate(ends):
                    samples = [given[side][name] for name in protocol.samples]
                    samples = [sample[c] if isinstance(sample, list) else sample for sample in samples]
                    told = protocol.tell(states[1 - side], now)
                    arrays["states"][k][c] = protocol.meet(states[side], told, *samples)

    def _swap(self, arrays: Arrays, ends: list[int], slot: int, given: list[dict[str, Any]]) -> None:
        """Swap visitors, and evaluate the kernel before and after."""
        visitors, samples = arrays["visitors"], self.protocol.samples
        i, j = ends
        for side, k in enumerate(ends):
            if "held" in samples:
                given[side]["held"] = self.seen(arrays, k)
        cross = self.kernel(visitors[i][0], visitors[j][0]) if self.protocol.cross else []
        visitors[i][slot], visitors[j][slot] = visitors[j][slot], visitors[i][slot]
        for side, k in enumerate(ends):
            if "fresh" in samples or "known" in samples:
                given[side]["fresh"] = self.seen(arrays, k)
            if "known" in samples:
                given[side]["known"] = self._known(arrays, k, given[side], cross)

    def _known(self, arrays: Arrays, k: int, given: dict[str, Any], cross: list[float]) -> list[float]:
        """Fold what was seen into what the node knows."""
        known: list[float] = arrays["known"][k]
        for c, fresh in enumerate(given["fresh"]):
            share, sample = self.protocol.cross, fresh
            if cross:
                home = arrays["visitors"][k][0] == k
                sample = cross[c] if home else (1 - share) * fresh + share * cross[c]
            known[c] += given["weight"] * (sample - known[c])
        return known

    def means(self, arrays: Arrays, now: int) -> Floats:
        """Each node's estimates of the means."""
        read = self.protocol.read
        return np.array([[read(state, float(now)) for state in node] for node in arrays["states"]])

    def visitors(self, arrays: Arrays) -> Any:
        """The number of each visitor's own row."""
        return np.array(arrays["visitors"])
