"""The fast engine: a loop over meetings, compiled once for each pair of a protocol and a kernel.

There are two ways to keep nodes. Where everything fits into the cache, visitors are numbers of rows ("index"). Where
it does not, each node's states, own observation and visitor lie side by side ("carried"): a meeting touches two
places in memory instead of ten, and since those are known from the edge alone they are asked for some meetings ahead.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from gosta import compiled
from gosta.datasets.data import Floats
from gosta.protocols import Protocol
from gosta.simulation.problem import Problem
from gosta.simulation.reference import Arrays
from gosta.statistics import pairs

CACHE = 4 << 20  # bytes: about what a core can call its own
AHEAD = 16  # meetings between asking for memory and using it: some 300 ns
LINE = 8  # floats in a line of cache


class Compiled:
    """Nodes are rows of one table: states, and in the carried way own observation, visitors' numbers and visitors."""

    def __init__(self, problem: Problem, protocol: Protocol, carried: bool | None = None) -> None:
        self.problem, self.protocol = problem, protocol
        n, d = problem.x.shape
        self.carried = n * 8 * (d + self._states) > CACHE if carried is None else carried
        functions = {"kernel": problem.statistic.kernel, "meet": protocol.meet, "tell": protocol.tell}
        none = np.zeros((0, 2), dtype=np.int32)
        arrays = self._arrays(np.zeros((1, self._states)), problem.x[:1])

        def trial(module: ModuleType) -> None:
            module.advance(
                arrays["table"], problem.x, arrays["visitors"], none, 0, tuple(problem.parts["kernel"].values())
            )

        self.loop = compiled.specialise(self._text(d), functions, trial).advance

    @property
    def _states(self) -> int:
        return self.problem.width * self.protocol.fields

    def _text(self, d: int) -> str:
        """The loop for this protocol and kernel, all numbers of fields and values written out."""
        protocol, fields = self.protocol, range(self.protocol.fields)
        own = self._states
        guests = own + (d if protocol.visitors == 1 else 0)

        def guest(node: str, slot: int) -> str:
            if self.carried:
                return f"part(table, {node}, {guests + slot * (d + 1) + 1}, {d})"
            return f"part(x, visitors[{node}, {slot}], 0, {d})"

        def kernel(node: str) -> str:
            if protocol.visitors == 2:
                return f"values({guest(node, 0)}, {guest(node, 1)}, options)"
            home = f"part(table, {node}, {own}, {d})" if self.carried else f"part(x, {node}, 0, {d})"
            return f"values({home}, {guest(node, 0)}, options)"

        def state(node: str, c: int) -> str:
            return f"State({', '.join(f'table[{node}, {c * len(fields) + f}]' for f in fields)})"

        lines = []
        for slot in range(protocol.draws):
            lines += [f"i, j = edges[t + {slot}, 0], edges[t + {slot}, 1]"]
            if "held" in protocol.samples:
                lines += [f"held_i, held_j = {kernel('i')}, {kernel('j')}"]
            if protocol.visitors and self.carried:
                first = guests + slot * (d + 1)
                lines += [
                    f"for c in range({first}, {first + d + 1}):",
                    "    kept = table[i, c]",
                    "    table[i, c] = table[j, c]",
                    "    table[j, c] = kept",
                ]
            elif protocol.visitors:
                lines += [
                    f"kept = visitors[i, {slot}]",
                    f"visitors[i, {slot}] = visitors[j, {slot}]",
                    f"visitors[j, {slot}] = kept",
                ]
            if "fresh" in protocol.samples:
                lines += [f"fresh_i, fresh_j = {kernel('i')}, {kernel('j')}"]
            for c in range(self.problem.width):
                lines += [f"a, b = {state('i', c)}, {state('j', c)}"]
                for node, me, you in (("i", "a", "b"), ("j", "b", "a")):
                    samples = "".join(f"{name}_{node}[{c}], " for name in protocol.samples)
                    lines += [f"next_{node} = meet({me}, tell({you}, now), {samples}now)"]
                for node in "ij":
                    lines += [f"table[{node}, {c * len(fields) + f}] = next_{node}[{f}]" for f in fields]
        ask = [
            f"soon = min(t + {AHEAD * protocol.draws}, len(edges) - 1)",
            f"for c in range(0, table.shape[1], {LINE}):",
            "    prefetch(table, edges[soon, 0], c)",
            "    prefetch(table, edges[soon, 1], c)",
        ]
        body = "\n        ".join((ask if self.carried else []) + lines)
        return f"""
from gosta.observation import part, prefetch
from {protocol.state.__module__} import State
{pairs.values_text(self.problem.example)}

def advance(table, x, visitors, edges, start, options):
    for t in range(0, len(edges), {protocol.draws}):
        now = start + t // {protocol.draws} + 1.0
        {body}
"""

    def start(self) -> Arrays:
        """All nodes at the beginning: every visitor is at home."""
        states = self.problem.first_states(self.protocol).reshape(self.problem.n, self._states)
        return self._arrays(states, self.problem.x)

    def _arrays(self, states: Floats, x: Floats) -> Arrays:
        n, slots = len(x), self.protocol.visitors
        home = np.arange(n)[:, None]
        if not self.carried:
            return {"table": np.ascontiguousarray(states), "visitors": np.repeat(home, slots, axis=1).astype(np.int32)}
        parts = [states, *([x] if slots == 1 else []), *([home, x] * slots)]
        width = sum(p.shape[1] for p in parts)
        table = _aligned(n, -(-width // LINE) * LINE if width > LINE // 2 else width)
        table[:, :width] = np.column_stack(parts)
        return {"table": table, "visitors": np.zeros((1, 1), dtype=np.int32)}

    def advance(self, arrays: Arrays, edges: Any, start: int, **_: Any) -> None:
        """Let the pairs meet, from tick start + 1 on."""
        options = tuple(self.problem.parts["kernel"].values())
        self.loop(arrays["table"], self.problem.x, arrays["visitors"], edges, start, options)

    def means(self, arrays: Arrays, now: int) -> Floats:
        """Each node's estimates of the mean kernel values."""
        fields = self.protocol.fields
        columns = [arrays["table"][:, k] for k in range(self._states)]
        states = (self.protocol.state(*columns[k : k + fields]) for k in range(0, self._states, fields))
        return np.column_stack([self.protocol.read(state, float(now)) for state in states])

    def visitors(self, arrays: Arrays) -> Any:
        """The number of each visitor's own row."""
        if not self.carried:
            return arrays["visitors"]
        d = self.problem.x.shape[1]
        first = self._states + (d if self.protocol.visitors == 1 else 0)
        return arrays["table"][:, [first + slot * (d + 1) for slot in range(self.protocol.visitors)]].astype(np.int64)


def _aligned(n: int, width: int) -> Floats:
    """A table whose rows begin at lines of cache where their width allows."""
    raw = np.zeros(n * width + LINE)
    skip = (-raw.ctypes.data // 8) % LINE
    return raw[skip : skip + n * width].reshape(n, width)
