"""A node that holds a table of rows, and what it does at a meeting: the same in a simulation and on a network.

A node's visitor is a sample of its rows, all of them if they are few. At a meeting visitors are swapped as ever, and
each side evaluates the one it got against all its own rows. With it travels what the sample misses: the mean kernel
value over pairs of all rows at home, less that of the sample with them. Where nodes have similar rows, adding it takes
away most of the sample's chance; where they have not, it does no harm to the mean. A visitor that is at home when it is
to leave becomes the next sample.

A node keeps the mean of what came from each home apart, and knows their mean by the rows that homes have: who came
often does not count for more.

Where a statistic has a `local` part, a node keeps the mean kernel values of each of its rows instead, in two halves, of
every other pair of meetings (of two nodes, each sees itself and the other by turns). A curved function of a noisy mean
is off by a multiple of 1/meetings, the same function of half as many meetings by twice that; so twice the whole less
the mean of the halves is not.
"""

from __future__ import annotations

from functools import cached_property
from itertools import repeat
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from gosta.errors import InputError
from gosta.estimation.problem import SAMPLE, Problem
from gosta.protocols import Protocol
from gosta.runtime import compiler as compiled
from gosta.runtime.arrays import Floats
from gosta.statistics import pairs
from gosta.statistics.definition import apply_to_rows, as_floats

PLAIN = 512  # rows up to which compiling takes longer than it saves
REMEMBERED = 1 << 21  # means of own rows with visitors that are kept, since visitors come again: 16 MiB
MOST_LEAVING = 256  # samples of its own that are kept for the same reason
Sample = tuple[tuple[float, ...], ...]


class Visitor(NamedTuple):
    """A sample of a node's rows on its way."""

    home: str
    rows: int  # at home
    sample: Sample
    missing: tuple[float, ...]  # what the sample misses of its home
    diagonal: tuple[float, ...]  # the mean kernel of rows at home with themselves


class Side(NamedTuple):
    """What a node brings to a meeting."""

    told: tuple[float, ...]  # by the rule, for each number that is estimated
    meetings: int  # so far
    together: int  # of these, those with this neighbour
    pace: float  # the share that such meetings have of all
    rows: int
    visitor: Visitor


class Memory(NamedTuple):
    """All that a site keeps, as it can be written to a file."""

    states: tuple[tuple[float, ...], ...]
    meetings: int
    upcoming: int
    visitor: Visitor
    totals: tuple[float, float]
    known: tuple[float, ...]
    met: dict[str, tuple[float, ...]]
    halves: bytes
    homes: dict[str, tuple[int, tuple[float, ...]]]


class Table:
    """A node's own rows, and the kernel between them and visitors."""

    def __init__(self, own: Problem) -> None:
        self.own, self.x, self.count = own, own.x, own.n
        self.options = own.parts["kernel"]
        self.lists: list[list[float]] = own.x.tolist()
        self.diagonal = self._diagonal()
        self.width = self.diagonal.shape[1]
        self.mean_diagonal = _tuple(_total(self.diagonal) / self.count)
        self.sample = min(self.count, SAMPLE)
        self.mean = own.row_means.mean(axis=0) if self.count > SAMPLE else np.zeros(self.width)
        self._seen: dict[Sample, Floats] = {}
        self._leaving: dict[int, Visitor] = {}

    def _diagonal(self) -> Floats:
        kernel = self.own.statistic.kernel
        try:
            values = np.array([as_floats(kernel(row, row, **self.options)) for row in self.lists])
        except Exception as error:  # whatever a user's function may do
            raise InputError(
                f"{self.own.statistic.name}: the kernel of a row with itself fails with {type(error).__name__}: "
                f"{error}; every node begins with its own row as visitor, so give equal rows a value"
            ) from error
        return values

    def seen(self, sample: Sample) -> Floats:
        """The mean kernel value of each own row with the rows of a sample: rows × k."""
        found = self._seen.get(sample)
        if found is None:
            if (len(self._seen) + 1) * self.count * self.width > REMEMBERED:
                self._seen.clear()
            found = np.zeros((self.count, self.width))
            for guest in sample:
                found += self._evaluated(guest)
            found /= len(sample)
            self._seen[sample] = found
        return found

    def _evaluated(self, guest: tuple[float, ...]) -> Floats:
        """The kernel of each own row with another."""
        statistic, out = self.own.statistic, np.empty((self.count, self.width))
        try:
            if self.count <= PLAIN:
                out[:] = [as_floats(statistic.kernel(row, guest, **self.options)) for row in self.lists]
            else:
                self._loop.against(self.x, np.array([guest]), tuple(self.options.values()), out)
        except Exception as error:  # whatever a user's function may do
            raise InputError(f"{statistic.name}: the kernel fails with {type(error).__name__}: {error}") from error
        if not np.isfinite(out).all():
            raise InputError(f"{statistic.name}: the kernel gives values that are not finite")
        return out

    @cached_property
    def _loop(self) -> ModuleType:
        example = self.own.statistic.kernel(self.lists[0], self.lists[0], **self.options)
        text = f"""
from gosta.runtime.observation import row
{pairs.values_text(example)}

def against(x, guest, options, out):
    for i in range(len(x)):
        h = values(row(x, i), row(guest, 0), options)
        for c in range(len(h)):
            out[i, c] = h[c]
"""
        none = np.zeros((0, self.width))

        def trial(module: ModuleType) -> None:
            module.against(self.x[:0], self.x[:1], tuple(self.options.values()), none)

        return compiled.specialise(text, {"kernel": self.own.statistic.kernel}, trial)

    def visit(self, visitor: Visitor) -> Floats:
        """The mean kernel value of each own row with a visitor, and with what it misses: rows × k."""
        return self.seen(visitor.sample) + visitor.missing

    def over(self, visitor: Visitor) -> list[float]:
        """The mean of that over own rows."""
        return list(_tuple(_total(self.visit(visitor)) / self.count))

    def leaving(self, home: str, upcoming: int) -> Visitor:
        """The sample of own rows from a place on."""
        if upcoming not in self._leaving:
            sample = tuple(tuple(self.lists[(upcoming + k) % self.count]) for k in range(self.sample))
            made = Visitor(home, self.count, sample, (0.0,) * self.width, self.mean_diagonal)
            if self.sample < self.count:
                made = made._replace(missing=tuple((self.mean - self.over(made)).tolist()))
            if len(self._leaving) >= MOST_LEAVING:
                self._leaving.clear()
            self._leaving[upcoming] = made
        return self._leaving[upcoming]


class Site:
    """What a node keeps from meeting to meeting.

    How many rows there are in all (`population`) is known in a simulation; on a network it is what the homes of all
    visitors met so far have together.
    """

    def __init__(
        self, name: str, protocol: Protocol, table: Table, first: Floats, population: int | None = None
    ) -> None:
        self.name, self.protocol, self.table, self.population = name, protocol, table, population
        self.local = table.own.statistic.local
        self.states: list[Any] = [protocol.state(*one) for one in first.tolist()]
        self.meetings, self.upcoming = 0, 0
        self.visitor = Visitor(name, table.count, (), (), table.mean_diagonal)
        self.totals = [0.0, 0.0]
        self.known = [0.0] * table.width
        self.met: dict[str, list[float]] = {}
        self.halves = np.zeros((2, table.count if self.local is not None else 0, table.width))
        self.homes: dict[str, tuple[int, tuple[float, ...]]] = {name: (table.count, table.mean_diagonal)}

    @property
    def rows_met(self) -> int:
        """How many rows the nodes have whose visitors were here."""
        return sum(rows for rows, _ in self.homes.values())

    @property
    def mean_diagonal(self) -> Floats:
        """The mean kernel of their rows with themselves."""
        sums: Floats = np.array([rows * np.array(diagonal) for rows, diagonal in self.homes.values()]).sum(axis=0)
        return sums / self.rows_met

    def side(self, pace: float, now: float = 0.0, together: int = 0) -> Side:
        """What it brings to a meeting; nothing changes."""
        told = tuple(number for state in self.states for number in self.protocol.tell(state, now))
        return Side(told, self.meetings, together, pace, self.table.count, self.departing)

    @property
    def departing(self) -> Visitor:
        """The visitor that will go: from home, the next sample."""
        if self.visitor.home != self.name or not self.protocol.visitors:
            return self.visitor
        return self.table.leaving(self.name, self._next)

    @property
    def _next(self) -> int:
        return (self.upcoming + self.table.sample) % self.table.count

    def meet(self, theirs: Side, pace: float, now: float = 0.0) -> None:
        """The meeting, as it changes this side."""
        samples = self.protocol.samples
        self.meetings += 1
        given: dict[str, Any] = {
            "now": now,
            "meetings": float(self.meetings),
            "fewest": float(min(self.meetings, theirs.meetings + 1)),
            "share": theirs.rows / (self.table.count + theirs.rows),
            "pace": min(pace, theirs.pace),
        }
        going, coming = self.departing, theirs.visitor
        if self.visitor.home == self.name:
            self.upcoming = self._next
        self.visitor = coming
        self.homes[coming.home] = coming.rows, coming.diagonal
        if "held" in samples:
            given["held"], given["weight"] = self.table.over(going), self._weight(going, 0)
        if "known" in samples:
            given["known"] = self._rows_known(coming) if self.local is not None else self._known(coming)
        told, several = len(theirs.told) // len(self.states), len(self.states)
        values = zip(*(v if isinstance(v, list) else repeat(v, several) for v in map(given.get, samples)), strict=True)
        self.states = [
            self.protocol.meet(state, theirs.told[c * told : (c + 1) * told], *own)
            for c, (state, own) in enumerate(zip(self.states, values, strict=True))
        ]

    def memory(self) -> Memory:
        """All that it keeps."""
        met = {home: tuple(means) for home, means in self.met.items()}
        states, totals = tuple(tuple(state) for state in self.states), (self.totals[0], self.totals[1])
        halves, homes = self.halves.tobytes(), dict(self.homes)
        return Memory(states, self.meetings, self.upcoming, self.visitor, totals, tuple(self.known), met, halves, homes)

    def remember(self, kept: Memory) -> None:
        """Take up what a site kept before."""
        make: Any = self.protocol.state
        self.states = [make(*state) for state in kept.states]
        self.meetings, self.upcoming, self.visitor = kept.meetings, kept.upcoming, kept.visitor
        self.totals, self.known = list(kept.totals), list(kept.known)
        self.met = {home: list(means) for home, means in kept.met.items()}
        self.halves = np.frombuffer(kept.halves).reshape(self.halves.shape).copy()
        self.homes = dict(kept.homes)

    def _weight(self, visitor: Visitor, half: int) -> float:
        """What a visitor weighs among those seen so far."""
        self.totals[half] += visitor.rows
        return visitor.rows / self.totals[half]

    def _known(self, visitor: Visitor) -> list[float]:
        """Fold a visitor into what is known: the mean over homes, by their rows, of what came from each."""
        met, known = self.met.setdefault(visitor.home, [0.0] * (1 + self.table.width)), self.known
        met[0] += 1.0
        if met[0] == 1.0:
            self.totals[0] += visitor.rows
        for c, fresh in enumerate(self.table.over(visitor)):
            step = fresh - (met[c + 1] if met[0] > 1.0 else known[c])
            known[c] += visitor.rows / self.totals[0] * step / met[0]
            met[c + 1] += (fresh - met[c + 1]) / met[0]
        return known

    def _rows_known(self, visitor: Visitor) -> list[float]:
        """The same for each row, with `local`: the mean over visitors, in two halves."""
        half = self.meetings // 2 % 2
        weight = self._weight(visitor, half)
        first, second = self.halves
        mine = self.halves[half]
        mine += weight * (self.table.visit(visitor) - mine)
        share = self.totals[1] / (self.totals[0] + self.totals[1])
        if share > 0.0:
            a, b, whole = self._local(np.array([first, second, first + share * (second - first)]))
            found = 2.0 * whole - 0.5 * (a + b)
        else:
            (found,) = self._local(self.halves[:1])
        return list(_tuple(_total(found) / self.table.count))

    def _local(self, means: Floats) -> Floats:
        """`local` of each row's means, in the textbook's normalisation, once or several times over."""
        assert self.local is not None
        n = self.rows_met if self.population is None else self.population
        if self.table.own.statistic.normalisation == "U" and n > 1:
            means = n / (n - 1) * means - self.table.diagonal / (n - 1)
        found = apply_to_rows(self.local, means.reshape(-1, self.table.width))
        return found.reshape(len(means), self.table.count, -1)

    def estimates(self, now: float = 0.0) -> list[float]:
        """The means that it estimates."""
        return [self.protocol.read(state, now) for state in self.states]


def _total(rows: Floats) -> Floats:
    """The sum of each column, added up from first to last, as a compiled loop does."""
    total: Floats = np.cumsum(rows, axis=0)[-1] + 0.0
    return total


def _tuple(numbers: Floats) -> tuple[float, ...]:
    return tuple(numbers.tolist())
