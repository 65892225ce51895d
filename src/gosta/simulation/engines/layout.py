"""Where the compiled engine keeps what a node holds, and the text of the loop that goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gosta.protocols import Protocol
from gosta.runtime.arrays import Floats
from gosta.statistics import pairs

AHEAD = 16  # meetings between asking for memory and using it: some 300 ns
LINE = 8  # floats in a line of cache


@dataclass(frozen=True)
class Kept:
    """The numbers a node keeps, the first in its row of the table: states, a count of meetings, means of its own."""

    protocol: Protocol
    estimated: int
    values: int

    @property
    def states(self) -> int:
        """Numbers of all states of a node."""
        return self.estimated * self.protocol.fields

    @property
    def known(self) -> int:
        """Where the means of its own begin."""
        return self.states + self.protocol.counts

    @property
    def size(self) -> int:
        """How many numbers that is."""
        return self.known + ("known" in self.protocol.samples) * self.values

    def read(self, table: Floats, now: int) -> Floats:
        """The estimates of all nodes."""
        columns, fields = table.T, self.protocol.fields
        states = [self.protocol.state(*columns[k : k + fields]) for k in range(0, self.states, fields)]
        return np.column_stack([self.protocol.read(state, float(now)) for state in states])

    def count(self) -> Iterator[str]:
        """One more meeting for both."""
        if self.protocol.counts:
            for node in "ij":
                yield f"meetings_{node} = table[{node}, {self.states}] + 1.0"
                yield f"table[{node}, {self.states}] = meetings_{node}"
            yield "fewest = min(meetings_i, meetings_j)"
        if "pace" in self.protocol.samples:
            yield "pace = paces[min(t, len(paces) - 1)]"

    def rule(self) -> Iterator[str]:
        """The protocol's rule, for each number that is estimated: all that it needs has its name in the loop."""
        samples = self.protocol.samples
        for c in range(self.estimated):
            fields = range(c * self.protocol.fields, (c + 1) * self.protocol.fields)
            places = {node: [f"table[{node}, {f}]" for f in fields] for node in "ij"}
            yield f"a, b = State({', '.join(places['i'])}), State({', '.join(places['j'])})"
            for node, me, you in (("i", "a", "b"), ("j", "b", "a")):
                names = {name: f"{name}_{node}[{c}]" for name in ("held", "fresh", "known")}
                names |= {name: f"{name}_{node}" for name in ("meetings", "weight", "share")}
                given = ", ".join(names.get(name, name) for name in samples)
                yield f"next_{node} = meet({me}, tell({you}, now), {given})"
            for node in "ij":
                yield from (f"{place} = next_{node}[{f}]" for f, place in enumerate(places[node]))


@dataclass(frozen=True)
class Layout:
    """A row of the table for each node: what it keeps and, if `carried`, its own observation and its visitors.

    A carried visitor is the number of its row and then the observation; otherwise visitors are rows of another table.
    """

    protocol: Protocol
    estimated: int
    values: int
    numbers: int
    carried: bool

    @property
    def kept(self) -> Kept:
        """The numbers a node keeps."""
        return Kept(self.protocol, self.estimated, self.values)

    @property
    def own(self) -> int:
        """How many of its own numbers a node needs: none where visitors meet visitors."""
        return self.numbers if self.protocol.visitors == 1 else 0

    def visitor(self, slot: int) -> int:
        """Where a carried visitor begins."""
        return self.kept.size + self.own + slot * (self.numbers + 1)

    @property
    def width(self) -> int:
        """Numbers in a row: whole lines of cache, unless half a line is enough."""
        used = self.visitor(self.protocol.visitors) if self.carried else self.kept.size
        return used if not self.carried or used <= LINE // 2 else -(-used // LINE) * LINE

    def text(self, example: object) -> str:
        """The loop over meetings, with all numbers of fields and values written out."""
        lines = [*self._ask(), *(line for slot in range(self.protocol.draws) for line in self._meeting(slot))]
        body = "\n        ".join(lines)
        draws = self.protocol.draws
        return f"""
from gosta.runtime.observation import part, prefetch
{pairs.values_text(example)}

def advance(table, x, visitors, edges, paces, start, options):
    for t in range(0, len(edges), {draws}):
        now = start + t // {draws} + 1.0
        {body}
"""

    def _ask(self) -> Iterator[str]:
        """Ask for the rows of a meeting to come."""
        if self.carried:
            yield f"soon = min(t + {AHEAD * self.protocol.draws}, len(edges) - 1)"
            yield f"for c in range(0, {self.width}, {LINE}):"
            yield "    prefetch(table, edges[soon, 0], c)"
            yield "    prefetch(table, edges[soon, 1], c)"

    def _meeting(self, slot: int) -> Iterator[str]:
        """One meeting, in which visitors in one slot are swapped."""
        samples = self.protocol.samples
        yield f"i, j = edges[t + {slot}, 0], edges[t + {slot}, 1]"
        if "held" in samples:
            yield f"held_i, held_j = {self._kernel('i')}, {self._kernel('j')}"
        if self.protocol.cross:
            yield f"cross = values({self._guest('i', slot)}, {self._guest('j', slot)}, options)"
        if self.protocol.visitors:
            yield from self._swap(slot)
        if "fresh" in samples or "known" in samples:
            yield f"fresh_i, fresh_j = {self._kernel('i')}, {self._kernel('j')}"
        yield "share_i, share_j = 0.5, 0.5"
        yield from self.kept.count()
        if "weight" in samples or "known" in samples:
            yield "weight_i, weight_j = 1.0 / meetings_i, 1.0 / meetings_j"
        if "known" in samples:
            yield from self._learn()
        yield from self.kept.rule()

    def _learn(self) -> Iterator[str]:
        """Fold what was seen into what is known."""
        cross, known = self.protocol.cross, self.kept.known
        for node in "ij":
            for c in range(self.values):
                seen = f"fresh_{node}[{c}]"
                if cross:
                    home = f"table[{node}, {self.visitor(0)}]" if self.carried else f"visitors[{node}, 0]"
                    mixed = f"{1 - cross} * {seen} + {cross} * cross[{c}]"
                    seen = f"(cross[{c}] if {home} == {node} else {mixed})"
                yield f"table[{node}, {known + c}] += weight_{node} * ({seen} - table[{node}, {known + c}])"
            yield f"known_{node} = ({''.join(f'table[{node}, {known + c}], ' for c in range(self.values))})"

    def _swap(self, slot: int) -> Iterator[str]:
        place, lines = f"visitors[{{}}, {slot}]", ""
        if self.carried:
            place, lines = "table[{}, c]", "    "
            yield f"for c in range({self.visitor(slot)}, {self.visitor(slot + 1)}):"
        yield f"{lines}kept = {place.format('i')}"
        yield f"{lines}{place.format('i')} = {place.format('j')}"
        yield f"{lines}{place.format('j')} = kept"

    def _kernel(self, node: str) -> str:
        """Own × visitor, or visitor × visitor where there are two."""
        both = [self._guest(node, slot) for slot in range(self.protocol.visitors)]
        if len(both) == 1:
            table, start = ("table", self.kept.size) if self.carried else ("x", 0)
            both.insert(0, f"part({table}, {node}, {start}, {self.numbers})")
        return f"values({both[0]}, {both[1]}, options)"

    def _guest(self, node: str, slot: int) -> str:
        if self.carried:
            return f"part(table, {node}, {self.visitor(slot) + 1}, {self.numbers})"
        return f"part(x, visitors[{node}, {slot}], 0, {self.numbers})"
