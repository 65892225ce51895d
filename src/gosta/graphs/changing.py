"""Graphs that change: which graph edges are drawn from, and from when on.

>>> from gosta.graphs import load_changing
>>> changing = load_changing("cycle,torus@500,repeat@800", n=9)
>>> changing.name
'cycle, torus 3 x 3 from 500, again from 800'
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any

from gosta.errors import InputError
from gosta.graphs.graph import Graph

REPEAT = "repeat"
FORM = "such as cycle,complete@20000 or day.csv,night.csv@5000,repeat@10000"
CHANGE = re.compile(r"(.+)@(.*)")
# A comma between graphs, not between parameters of a family: k=8,p=0.1.
BETWEEN = re.compile(r",(?![^,:=@]*=)")


@dataclass(frozen=True)
class ChangingGraph:
    """Graphs on the same nodes, each in force from a time on.

    Times are iterations, or draws where a schedule has the graphs.
    """

    starts: tuple[int, ...]  # of each graph; the first is 0
    graphs: tuple[Graph, ...]
    period: int | None = None  # after which all starts again

    def times(self, factor: int) -> ChangingGraph:
        """Return the same with all times multiplied."""
        period = None if self.period is None else self.period * factor
        return ChangingGraph(tuple(start * factor for start in self.starts), self.graphs, period)

    def in_order_of(self, names: Sequence[str]) -> ChangingGraph:
        """Return the same with the named nodes of each graph in the order of these names."""
        return replace(self, graphs=tuple(graph.in_order_of(names) for graph in self.graphs))

    def pieces(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """Yield the number of each graph in force between two times, with its own times."""
        while first < last:
            began = 0 if self.period is None else first // self.period * self.period
            number = bisect_right(self.starts, first - began) - 1
            ends = [*self.starts[1:], last if self.period is None else self.period]
            until = min(last, began + ends[number])
            yield number, first, until
            first = until

    @property
    def name(self) -> str:
        """The names of the graphs, and when they change."""
        later = [f"{name} from {start:,}" for start, name in self.changes]
        again = [] if self.period is None else [f"again from {self.period:,}"]
        return ", ".join([self.graphs[0].name, *later, *again])

    @property
    def changes(self) -> tuple[tuple[int, str], ...]:
        """Time and name of each graph after the first one."""
        return tuple(
            (start, graph.name) for start, graph in zip(self.starts, self.graphs, strict=True)
        )[1:]


def is_changing(source: object) -> bool:
    """Return whether a graph is given as several graphs with the iterations at which they start.

    >>> is_changing("cycle,torus@500"), is_changing([("cycle", 0), ("torus", 500)])
    (True, True)
    >>> is_changing([(0, 1), (1, 2)])
    False
    """
    if isinstance(source, str):
        return any(CHANGE.fullmatch(part) for part in BETWEEN.split(source)[1:])
    pairs = isinstance(source, list | tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 for pair in source
    )
    return pairs and bool(source) and not _has_number(source)


def _has_number(pairs: Any) -> bool:
    return any(isinstance(graph, Number) for graph, _ in pairs)


def require_one(source: object) -> None:
    """Raise `InputError` if a graph is given as several."""
    if is_changing(source):
        reason = "only simulations have graphs that change, theory and networks of nodes do not"
        raise InputError(f"graph = {source!r}: {reason}; give one graph")


def parse_changing(text: str) -> list[tuple[str, int]]:
    """Return the names of the graphs in a text with their starts; the first may be without.

    >>> parse_changing("watts-strogatz:k=8,p=0.1,torus@500,repeat@800")
    [('watts-strogatz:k=8,p=0.1', 0), ('torus', 500), ('repeat', 800)]
    """
    pairs = []
    for k, part in enumerate(BETWEEN.split(text)):
        match = CHANGE.fullmatch(part)
        if match is None and k > 0:
            raise InputError(
                f"graph = {text!r}: from which iteration on is {part!r} in force? Give it, {FORM}"
            )
        is_number = match is not None and re.fullmatch("[0-9]+", match[2])
        if k > 0 and match is not None and not is_number:
            raise InputError(
                f"graph = {text!r}: {match[2]!r} after @ must be a whole number of iterations, "
                f"{FORM}"
            )
        pairs.append((match[1], int(match[2])) if match is not None and is_number else (part, 0))
    return pairs
