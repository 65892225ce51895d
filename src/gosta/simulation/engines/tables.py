"""The engine for nodes that hold tables of rows, and for statistics that need each row's own mean.

What nodes do at a meeting is said in `gosta.site`; this is the same, compiled for all nodes at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from gosta.estimation.problem import Problem
from gosta.protocols import Protocol
from gosta.runtime import compiler as compiled
from gosta.runtime import machine
from gosta.runtime.arrays import Floats
from gosta.simulation.engines.layout import Kept
from gosta.simulation.engines.reference import ALIKE, Arrays
from gosta.statistics import pairs

ARRAYS = ("table", "visitors", "upcoming", "missing", "seen", "met")


class Tables:
    """Nodes are rows of a table of what they keep; their own rows lie one after the other in x."""

    def __init__(self, problem: Problem, protocol: Protocol) -> None:
        self.problem, self.protocol = problem, protocol
        statistic = problem.statistic
        self.kept = Kept(protocol, problem.estimated(protocol), problem.width)
        functions = {"kernel": statistic.kernel, "meet": protocol.meet, "tell": protocol.tell}
        functions |= {"State": protocol.state}
        if statistic.local is not None:
            functions["local"] = statistic.local
        scale, shift = problem.row_scale
        offsets = np.concatenate([[0], np.cumsum(problem.rows)])
        self.fixed = problem.x, offsets, problem.samples, problem.own_means, scale, shift
        self.options = tuple(problem.parts["kernel"].values())
        self.loop = compiled.specialise(self._text(), functions, self._trial).advance

    def _trial(self, module: ModuleType) -> None:
        self.loop = module.advance
        self.advance(self.start(), np.zeros((0, 2), np.int32), 0)

    def start(self) -> Arrays:
        """All nodes at the beginning: every visitor is at home."""
        problem, kept, local = self.problem, self.kept, self.problem.statistic.local is not None
        table = np.zeros((problem.nodes, kept.size + 2))
        table[:, : kept.states] = problem.first_states(self.protocol).reshape(problem.nodes, kept.states)
        return {
            "table": table,
            "visitors": np.arange(problem.nodes),
            "upcoming": np.zeros(problem.nodes, dtype=np.int64),
            "missing": np.zeros((problem.nodes, problem.width)),
            "seen": np.zeros((problem.n if local else 1, 2 * problem.width)),
            "met": self._met(),
        }

    def _met(self) -> Floats:
        """What came from each home to each node: how many visits, and the means."""
        if self.problem.statistic.local is not None or "known" not in self.protocol.samples:
            return np.zeros((1, 1, 1))
        shape = (self.problem.nodes, self.problem.nodes, 1 + self.problem.width)
        what = f"keeping what came from each of {self.problem.nodes} nodes at each of them"
        machine.require_memory(8 * int(np.prod(shape)), what, "take fewer nodes")
        return np.zeros(shape)

    def advance(self, arrays: Arrays, edges: Any, start: int, paces: Floats = ALIKE) -> None:
        """Let the pairs meet, from tick start + 1 on."""
        self.loop(*(arrays[name] for name in ARRAYS), *self.fixed, edges, paces, start, self.options)

    def means(self, arrays: Arrays, now: int) -> Floats:
        """Each node's estimates of the means."""
        return self.kept.read(arrays["table"], now)

    def _text(self) -> str:
        """The loop over meetings, with all numbers of fields and values written out."""
        body = "\n        ".join(self._meeting())
        return f"""
from gosta.runtime.observation import row
{pairs.values_text(self.problem.example)}
{_visit(self.problem.width)}{_over(self.problem.width)}
{self._local()}

def leave(x, first, samples, upcoming, missing, own_means, node, options):
    start, last, sample = first[node], first[node + 1], samples[node]
    upcoming[node] = (upcoming[node] + sample) % (last - start)
    if sample < last - start:
        missing[node] = 0.0
        h = over(x, start, last, start, last - start, upcoming[node], sample, missing[node], options)
        for c in range(len(h)):
            missing[node, c] = own_means[node, c] - h[c]


def advance(
    {", ".join(ARRAYS)}, x, first, samples, own_means, scale, shift,
    edges, paces, start, options
):
    for t in range(len(edges)):
        now = start + t + 1.0
        i, j = edges[t, 0], edges[t, 1]
        {body}
"""

    def _local(self) -> str:
        statistic, width, parts = self.problem.statistic, self.problem.width, self.kept.estimated
        if statistic.local is None:
            return ""
        text = pairs.values_text(statistic.local((1.0,) * width), "local", "local_values", "h")
        return text + _learn(width, parts)

    def _meeting(self) -> Iterator[str]:
        samples, kept = self.protocol.samples, self.kept
        yield "rows_i, rows_j = first[i + 1] - first[i], first[j + 1] - first[j]"
        yield "share_i, share_j = rows_j / (rows_i + rows_j), rows_i / (rows_i + rows_j)"
        yield from kept.count()
        if self.protocol.visitors:
            for node in "ij":
                yield f"if visitors[{node}] == {node}:"
                yield f"    leave(x, first, samples, upcoming, missing, own_means, {node}, options)"
            if "held" in samples:
                yield from self._seen("held")
            yield from ("guest = visitors[i]", "visitors[i] = visitors[j]", "visitors[j] = guest")
            if "known" in samples:
                yield from self._seen("fresh")
                yield from self._known() if self.problem.statistic.local is None else self._rows_known()
        yield from kept.rule()

    def _seen(self, name: str) -> Iterator[str]:
        """Own rows × visitor, before or after the swap, and what it weighs among those seen so far."""
        totals, local = self.kept.size, self.problem.statistic.local is not None
        for node in "ij":
            yield f"home_{node} = visitors[{node}]"
            yield f"worth_{node} = first[home_{node} + 1] - first[home_{node}]"
            if not local:
                yield f"{name}_{node} = over({self._meets(node)})"
            if local or "weight" in self.protocol.samples:
                half = f"{totals} + {_half(node)}" if local else f"{totals}"
                yield f"table[{node}, {half}] += worth_{node}"
                yield f"weight_{node} = worth_{node} / table[{node}, {half}]"

    def _known(self) -> Iterator[str]:
        """Fold what was seen into what is known: the mean over homes, by their rows, of what came from each."""
        kept, totals, width = self.kept, self.kept.size, self.problem.width
        for node in "ij":
            places = [f"table[{node}, {kept.known + c}]" for c in range(width)]
            yield f"met[{node}, home_{node}, 0] += 1.0"
            yield f"visits = met[{node}, home_{node}, 0]"
            yield "if visits == 1.0:"
            yield f"    table[{node}, {totals}] += worth_{node}"
            yield f"weight_{node} = worth_{node} / table[{node}, {totals}]"
            for c, place in enumerate(places):
                before = f"met[{node}, home_{node}, {c + 1}]"
                yield f"step = fresh_{node}[{c}] - ({before} if visits > 1.0 else {place})"
                yield f"{place} += weight_{node} * step / visits"
                yield f"{before} += (fresh_{node}[{c}] - {before}) / visits"
            yield f"known_{node} = ({', '.join(places)},)"

    def _rows_known(self) -> Iterator[str]:
        """The same for each row, with `local`: the mean over visitors, in two halves."""
        totals = self.kept.size
        for node in "ij":
            yield f"second = table[{node}, {totals + 1}] / (table[{node}, {totals}] + table[{node}, {totals + 1}])"
            where = f"seen, {_half(node)}, weight_{node}, second, scale, shift"
            yield f"known_{node} = learn({self._meets(node)}, {where})"

    def _meets(self, node: str) -> str:
        """A node's own rows and the rows of its visitor, as arguments."""
        own, home = f"first[{node}], first[{node} + 1]", f"home_{node}"
        return f"x, {own}, first[{home}], worth_{node}, upcoming[{home}], samples[{home}], missing[{home}], options"


def _half(node: str) -> str:
    """The half of the meetings that this one of a node is in; the first is in the first."""
    return f"int(meetings_{node}) // 2 % 2"


def _visit(width: int) -> str:
    """The text of a function that gives the mean kernel values of a row with a visitor, a sample of another node's."""
    return f"""

def visit(x, own, home, rows, upcoming, sample, missing, options):
    {"; ".join(f"s{c} = 0.0" for c in range(width))}
    for k in range(sample):
        h = values(row(x, own), row(x, home + (upcoming + k) % rows), options)
        {"; ".join(f"s{c} += h[{c}]" for c in range(width))}
    return ({", ".join(f"s{c} / sample + missing[{c}]" for c in range(width))},)
"""


def _over(width: int) -> str:
    """The text of a function that gives the mean of that over a node's own rows."""
    return f"""

def over(x, first, last, home, rows, upcoming, sample, missing, options):
    {"; ".join(f"s{c} = 0.0" for c in range(width))}
    for own in range(first, last):
        h = visit(x, own, home, rows, upcoming, sample, missing, options)
        {"; ".join(f"s{c} += h[{c}]" for c in range(width))}
    return ({", ".join(f"s{c} / (last - first)" for c in range(width))},)
"""


def _learn(width: int, parts: int) -> str:
    """The text of a function that folds a visitor into each own row's means and gives the mean of `local` of them."""

    def tuple_of(form: str, count: int) -> str:
        return "(" + "".join(form.format(c=c, second=c + width) + ", " for c in range(count)) + ")"

    both = "; ".join(f"s{c} += 2.0 * whole[{c}] - 0.5 * (a[{c}] + b[{c}])" for c in range(parts))
    return f"""

def learn(x, first, last, home, rows, upcoming, sample, missing, options, seen, half, weight, second, scale, shift):
    {"; ".join(f"s{c} = 0.0" for c in range(parts))}
    for own in range(first, last):
        h = visit(x, own, home, rows, upcoming, sample, missing, options)
        for c in range({width}):
            at = half * {width} + c
            seen[own, at] += weight * (h[c] - seen[own, at])
        a = local_values({tuple_of("scale * seen[own, {c}] - shift[own, {c}]", width)})
        if second == 0.0:
            {"; ".join(f"s{c} += a[{c}]" for c in range(parts))}
        else:
            b = local_values({tuple_of("scale * seen[own, {second}] - shift[own, {c}]", width)})
            pooled = {tuple_of("seen[own, {c}] + second * (seen[own, {second}] - seen[own, {c}])", width)}
            whole = local_values({tuple_of("scale * pooled[{c}] - shift[own, {c}]", width)})
            {both}
    return {tuple_of("s{c} / (last - first)", parts)}
"""
