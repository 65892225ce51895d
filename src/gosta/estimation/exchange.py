"""The exchange: what a node holds, what two nodes send, and how each updates its estimate.

This module is the definition. The reference engine and the real node run it as it is; compiled
engines are specialisations of it that are tested bit for bit. A node with one row is a node with a
table of one row.

**Visitors.** A node's visitor is a sample of its rows, all of them if they are few. In an exchange
the two nodes swap visitors, and each evaluates the one it received against all its own rows. A
visitor carries a correction: the mean kernel value over pairs of all rows at its home, minus that
of the sample with them. Where nodes have similar rows, adding it removes most of the sampling
error; where they have not, it does not change the mean. A visitor that is at its home when it has
to leave is replaced by the next sample of the home's rows.

**Samples.** An exchange yields the kernel value of own rows × visitor before the swap (`held`),
after the swap (`fresh`), and the node's running mean kernel value (`known`), which consists of two
parts:

- the mean over pairs of the node's own rows, which is known exactly and counts for the share of
  rows that it holds;
- the mean over rows of other nodes, from visitors. The node keeps apart the means that came from
  the homes it met last (`max_recent_homes`): a visitor that returns soon refines the mean of its
  home instead of being counted again. Homes count by their rows.

A visitor at its own home adds nothing to `known`.

**Carried means.** Where visitors carry means, nodes hold one row each; see
`gosta.estimation.carried`.

**Row means.** Where a statistic has a `local` part, a node keeps the means of each of its rows
instead, over visits, in two halves (exchanges are assigned to them two by two, because of two nodes
each sees itself and the other by turns). Later visits count for more, by the square root of the
number of exchanges: where neighbours have similar rows, the first visitors are unlike the rest. A
curved function of a noisy mean has a bias proportional to 1/visits, and with half as many visits
twice that; so twice the function of the whole minus the mean over the halves has none.

**Moments.** Where a protocol averages moments, nodes keep them about an offset: the variance of
values near 10⁹ that differ by 1 would otherwise be a difference of two numbers of size 10¹⁸. A node
starts with the mean of its own rows as offset, and tells it along with its payload. In an exchange
both ends change to the lower of their two offsets (for each number of a row), so that soon all
nodes have the lowest of all. A change is exact but for rounding, since moments about one offset are
linear in those about another. In a simulation all nodes know that offset from the start.

**Sums.** Where a protocol counts rows, states are sums over rows, and the last one is the number of
rows in them. In a simulation, a node knows its `parent` and its `children` in the spanning tree
along which sums are passed on. On a network the tree grows by exchanges: see
`gosta.estimation.growing_tree`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import repeat
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from gosta.errors import InputError, NumericalError
from gosta.estimation.carried import CarriedMeans, VisitorMemory, VisitorMemorySnapshot, means_of
from gosta.estimation.estimand import MAX_PLAIN_ROWS, Estimand, ObjectiveEstimand, ValueFunction
from gosta.estimation.growing_tree import GrowingTree, Place, TreeSnapshot
from gosta.estimation.passed_rows import PassedRows
from gosta.estimation.visitor import MAX_SAMPLE_ROWS, Contribution, Sample, Visitor
from gosta.protocols import Protocol
from gosta.protocols.protocol import Start, states_from
from gosta.runtime.arrays import Floats
from gosta.statistics import pairs
from gosta.statistics.definition import apply_to_rows, as_floats

RECENT_HOMES_PER_ROW = 8  # homes kept apart for each row of a node
# Homes kept apart by a node with several rows: in most networks of tables, all of them.
MIN_RECENT_HOMES = 512
# Kernel means of visitors that are cached, 16 MiB, because visitors return.
MAX_CACHED_NUMBERS = 1 << 21
MAX_CACHED_VISITORS = 256  # samples of the node's own rows that are cached for the same reason
# Rows whose kernel values are cached, because a message is checked before it is used.
MAX_CACHED_PAIRS = 256


class NodeSnapshot(NamedTuple):
    """Everything that a node holds besides its rows, in a form that can be written to disk."""

    states: tuple[tuple[float, ...], ...]
    exchanges: int
    position: int
    visitors: tuple[Visitor, ...]
    weights: tuple[float, float]
    others: tuple[float, ...]
    recent: dict[str, tuple[float, ...]]
    halves: bytes
    homes: dict[str, tuple[int, tuple[float, ...]]]
    offset: tuple[float, ...]
    visitor_memory: VisitorMemorySnapshot | None = None  # where visitors carry means
    tree: TreeSnapshot | None = None  # where sums are passed on along a tree


class LocalRows:
    """A node's own rows, and the kernel between them and visitors."""

    def __init__(self, estimand: Estimand) -> None:
        self.estimand, self.count, self.width = estimand, estimand.n, estimand.width
        self.rows: list[list[float]] = estimand.x.tolist()
        self.sample_size = min(self.count, MAX_SAMPLE_ROWS)
        self.own_mean: list[float] = estimand.own_mean.tolist()
        self.mean_diagonal = tuple(_sequential_means(estimand.diagonal))
        # Cached because visitors return: kernel means by sample, this node's visitors by position,
        # values of two rows.
        self.kernel_means = lru_cache(max(1, MAX_CACHED_NUMBERS // (self.count * self.width)))(
            self._kernel_means
        )
        self.visitor = lru_cache(MAX_CACHED_VISITORS)(self._visitor)
        self.pair_values = lru_cache(MAX_CACHED_PAIRS)(self.kernel)

    def kernel(
        self, a: list[float] | tuple[float, ...], b: list[float] | tuple[float, ...]
    ) -> tuple[float, ...]:
        """Evaluate the kernel for two rows."""
        return as_floats(self.estimand.statistic.kernel(a, b, **self.estimand.kernel_options))

    def _kernel_means(self, sample: Sample) -> Floats:
        """Return the mean kernel value of each own row with the rows of a sample: rows × k."""
        means = np.zeros((self.count, self.width))
        for row in sample:
            means += self._kernel_values(row)
        means /= len(sample)
        return means

    def _kernel_values(self, other: tuple[float, ...]) -> Floats:
        name, out = self.estimand.statistic.name, np.empty((self.count, self.width))
        try:
            if self.count <= MAX_PLAIN_ROWS:
                out[:] = [self.kernel(row, other) for row in self.rows]
            else:
                self._compiled(np.array([other]), out)
        except Exception as error:  # a user's function can raise anything
            raise InputError(
                f"{name}: the kernel fails with {type(error).__name__}: {error}"
            ) from error
        if not np.isfinite(out).all():
            raise NumericalError(f"{name}: the kernel returns values that are not finite")
        return out

    @cached_property
    def _compiled(self) -> Callable[[Floats, Floats], None]:
        estimand = self.estimand
        return pairs.row_loop(
            estimand.statistic, estimand.x, estimand.kernel_options, estimand.example
        )

    def visit(self, visitor: Visitor) -> Floats:
        """Return the corrected mean kernel value of each own row with a visitor: rows × k."""
        return self.kernel_means(visitor.sample) + visitor.correction

    def mean_with(self, visitor: Visitor) -> list[float]:
        """Return the corrected mean kernel value of all own rows with a visitor."""
        return _sequential_means(self.visit(visitor))

    def _visitor(self, home: str, position: int) -> Visitor:
        """Return the visitor that carries the sample of own rows from a position on."""
        made = Visitor(
            home, self.count, self.sample(position), (0.0,) * self.width, self.mean_diagonal
        )
        if self.sample_size == self.count:
            return made
        correction = self.estimand.own_mean - self.mean_with(made)
        return made._replace(correction=tuple(correction.tolist()))

    def sample(self, position: int) -> Sample:
        """Return the own rows from a position on, as many as a visitor has."""
        return tuple(tuple(self.rows[number]) for number in self.numbers(position))

    def numbers(self, position: int) -> list[int]:
        """Return the numbers of the own rows in the sample from a position on."""
        return [(position + k) % self.count for k in range(self.sample_size)]


def max_recent_homes(rows: int) -> int:
    """Return the number of homes that a node keeps apart.

    A node with one row keeps only a few apart: as a rule, it is one of many.
    """
    return RECENT_HOMES_PER_ROW if rows == 1 else max(MIN_RECENT_HOMES, RECENT_HOMES_PER_ROW * rows)


def first_state(rows: LocalRows, protocol: Protocol) -> Floats:
    """Return the state of a node that does not know the others: means × fields."""
    match protocol.start:
        case Start.ZERO:
            values = np.zeros(protocol.state_count(rows.estimand.mean_count))
        case Start.HELD:
            values = np.array(rows.mean_diagonal)
        case Start.MOMENTS:
            values = rows.estimand.moments_about(rows.estimand.mean_row).mean(axis=0)
        case Start.ROW_MEAN:
            raise InputError(
                f"protocol {protocol.name} requires exact row means, which no node of a network has"
            )
    if protocol.counts_rows and protocol.start is not Start.ZERO:
        values = rows.count * np.append(values, 1.0)
    return states_from(protocol, values)


class Estimator:
    """A node in the exchange: its rows, its visitors, its states.

    `name` is the home of its visitors, `states` are its first states (means × fields), `population`
    the number of rows at all nodes, if it is known; on a network it is the number of rows at the
    homes of all visitors so far. `offset` is that of the moments in `states`, where the protocol
    averages moments: by default, the mean of the node's rows.
    """

    def __init__(
        self,
        name: str,
        protocol: Protocol,
        rows: LocalRows,
        states: Floats,
        population: int | None = None,
        offset: Floats | None = None,
    ) -> None:
        self.name, self.protocol, self.rows = name, protocol, rows
        self.local = rows.estimand.tracked.local
        self.states: list[Any] = [protocol.state(*values) for values in states.tolist()]
        first_offset = (
            (rows.estimand.mean_row if offset is None else offset)
            if protocol.averages_moments
            else ()
        )
        self.offset = tuple(map(float, first_offset))  # of the moments; empty where there are none
        self.exchanges, self.position = 0, 0
        visitor = Visitor(name, rows.count, (), (), rows.mean_diagonal)
        if protocol.visitors:
            visitor = visitor._replace(sample=rows.sample(0), correction=(0.0,) * rows.width)
        self.visitors = [visitor] * protocol.held_visitors
        self.visitor_memory = (
            VisitorMemory(name, visitor.sample[0], rows.width) if protocol.carries_means else None
        )
        # Rows of the visitors that were folded in; with `local`, for each half.
        self.weights = [0.0, 0.0]
        self.others = [0.0] * rows.width  # mean kernel value with rows of other nodes
        # Visits and mean kernel values by home, oldest first.
        self.recent: dict[str, list[float]] = {}
        self.halves = np.zeros((2, rows.count if self.local is not None else 0, rows.width))
        self.passed = PassedRows(name, visitor.sample[0]) if protocol.passes_rows else None
        # Rows and mean diagonal of each home met.
        self.homes = {name: (rows.count, rows.mean_diagonal)}
        self.known_rows = rows.count  # at these homes together
        self._population = population
        # In the spanning tree, where the protocol uses one and it is known from the start; or the
        # node's place in one that grows.
        self.parent, self.children = "", frozenset[str]()
        self.growing = GrowingTree(name) if protocol.uses_tree and population is None else None
        # What `_local` needs of the own rows, for a number of rows at all nodes.
        self._scaled: tuple[int, Any, float, Any, Any] = 0, None, 0.0, None, None

    @property
    def population(self) -> int:
        """Number of rows at all nodes together, or at those that are known so far."""
        return self.known_rows if self._population is None else self._population

    @property
    def value_function(self) -> ValueFunction:
        """Conversion of means to values over the rows that are known so far."""
        diagonals = [rows * np.array(diagonal) for rows, diagonal in self.homes.values()]
        mean_diagonal: Floats = np.array(diagonals).sum(axis=0) / self.known_rows
        return replace(
            self.rows.estimand.value_function, n=self.known_rows, mean_diagonal=mean_diagonal
        )

    def contribution(
        self,
        neighbour: str,
        edge_share: float,
        tick: float = 0.0,
        edge_exchanges: int = 0,
        slot: int = 0,
    ) -> Contribution:
        """Return what the node sends a neighbour in its next exchange; nothing changes."""
        payload = self._told(neighbour, tick) + self.offset
        if self.growing is not None:
            payload += self.growing.place(neighbour)
        slot = self.leaving(neighbour, slot)
        if self.visitor_memory is not None:
            payload += self.visitor_memory.carried[slot].numbers
        return Contribution(
            payload,
            self.exchanges,
            edge_exchanges,
            edge_share,
            self.rows.count,
            self._sent_row(neighbour) if self.passed is not None else self.departing(slot),
        )

    def _sent_row(self, neighbour: str) -> Visitor:
        """Return the visitor that carries the row which a neighbour is sent next."""
        assert self.passed is not None
        home, row = self.passed.row_for(neighbour)
        return self.visitors[0]._replace(home=home, sample=(row,))

    def leaving(self, neighbour: str, slot: int = 0) -> int:
        """Return which visitor leaves in the next exchange with a neighbour.

        It is `slot`, unless visitors carry means.
        """
        return slot if self.visitor_memory is None else self.visitor_memory.leaving(neighbour)

    def _told(self, neighbour: str, tick: float) -> tuple[float, ...]:
        """Return the numbers that the node tells a neighbour of its states.

        Where a tree grows, these are both what it tells a parent and what it tells a child: only
        afterwards it is known which of them the neighbour is.
        """
        protocol, states, trees = self.protocol, self.states, [self.tree(neighbour)]
        if self.growing is not None:
            trees = [1.0, -1.0]
            states = _replaced(states, up=self.growing.sent.get(neighbour, (0.0,) * len(states)))
        return tuple(
            number
            for state in states
            for tree in trees
            for number in protocol.told(state, tick, tree)
        )

    def tree(self, neighbour: str) -> float:
        """Return 1 for the parent in the spanning tree, -1 for a child, 0 for other neighbours."""
        return 1.0 if neighbour == self.parent else -1.0 if neighbour in self.children else 0.0

    def departing(self, slot: int = 0) -> Visitor:
        """Return the visitor that leaves in the next exchange; at home, that is the next sample."""
        visitor = self.visitors[slot]
        if visitor.home != self.name or not self.protocol.visitors:
            return visitor
        return self.rows.visitor(self.name, self.next_position)

    @property
    def largest_mean(self) -> float:
        """The largest absolute mean kernel value that the node knows of."""
        recent = [value for seen in self.recent.values() for value in seen[1:]]
        if self.visitor_memory is not None:
            recent += [value for carried in self.visitor_memory.carried for value in carried.means]
        return max(
            *map(abs, (*self.rows.own_mean, *self.others, *recent)),
            float(np.abs(self.halves).max(initial=0.0)),
        )

    @property
    def issued(self) -> Visitor:
        """The visitor of the node's own rows that left last."""
        if not self.protocol.visitors:
            return Visitor(self.name, self.rows.count, (), (), self.rows.mean_diagonal)
        return self.rows.visitor(self.name, self.position)

    @property
    def next_position(self) -> int:
        """The first row of the sample that leaves next."""
        return (self.position + self.rows.sample_size) % self.rows.count

    def exchange(
        self,
        neighbour: str,
        theirs: Contribution,
        edge_share: float,
        tick: float = 0.0,
        slot: int = 0,
    ) -> None:
        """Carry out this node's side of an exchange, given what the other node sent."""
        protocol, rows = self.protocol, self.rows
        slot = self.leaving(neighbour, slot)
        self.exchanges += 1
        inputs: dict[str, Any] = {
            "tick": tick,
            "exchanges": float(self.exchanges),
            "fewer_exchanges": float(min(self.exchanges, theirs.exchanges + 1)),
            "row_share": theirs.rows / (rows.count + theirs.rows),
            "edge_share": min(edge_share, theirs.edge_share),
            "rows": float(rows.count),
            "tree": self.tree(neighbour),
        }
        if "held" in protocol.inputs:
            leaving = self.departing(slot)
            inputs["held"], inputs["weight"] = rows.mean_with(leaving), self._weight(leaving, 0)
        if self.visitors[slot].home == self.name:
            self.position = self.next_position
        arrived = self.visitors[slot] = theirs.visitor
        self.known_rows += arrived.rows - self.homes.get(arrived.home, (0,))[0]
        self.homes[arrived.home] = arrived.rows, arrived.diagonal
        if protocol.needs_known:
            inputs["known"] = (
                self._known(arrived) if self.local is None else self._known_through_local(arrived)
            )
            inputs["known"] += [1.0] * protocol.counts_rows
        elif protocol.minimises:
            inputs |= self._gradient(neighbour, arrived)
        elif "fresh" in protocol.inputs:
            inputs["fresh"] = self._fresh()
        elif self.visitor_memory is not None:
            inputs["change"] = self._receive(self.visitor_memory, slot, neighbour, theirs)
        payload = theirs.payload
        if self.growing is not None:
            payload, inputs["tree"] = self._take_place(self.growing, neighbour, payload)
        payload = self._agree_on_offset(payload) if self.offset else payload
        self._apply(payload, [inputs[name] for name in protocol.inputs])
        if self.growing is not None:
            self._count_sums(self.growing, neighbour, payload, inputs["tree"])

    def _take_place(
        self, growing: GrowingTree, neighbour: str, payload: tuple[float, ...]
    ) -> tuple[tuple[float, ...], float]:
        """Find out the role of a neighbour in the tree; return what it told it, and the role.

        A new parent has counted nothing of this node, or what it had counted when it was the parent
        before.
        """
        count, place = 2 * len(self.states), Place(*payload[-3:])
        role = growing.role(neighbour, place)
        if role > 0.0:
            if growing.parent != neighbour:
                up = growing.sent.get(neighbour, (0.0,) * len(self.states))
                self.states = _replaced(self.states, up=up, down=(0.0,) * len(self.states))
            growing.follow(neighbour, place)
        return payload[0 if role < 0.0 else 1 : count : 2] + payload[count:-3], role

    def _count_sums(
        self, growing: GrowingTree, neighbour: str, told: tuple[float, ...], role: float
    ) -> None:
        """Keep what has passed over an edge of the tree.

        What was counted of a neighbour that is no child any more is subtracted.
        """
        if role < 0.0:
            before = growing.received.get(neighbour, (0.0,) * len(told))
            growing.received[neighbour] = tuple(a + b for a, b in zip(before, told, strict=True))
        elif neighbour in growing.received:
            below = zip(self.states, growing.received.pop(neighbour), strict=True)
            self.states = [state._replace(below=state.below - counted) for state, counted in below]
        if role > 0.0:
            growing.sent[neighbour] = tuple(state.up for state in self.states)
        elif neighbour != growing.parent:
            growing.sent.pop(neighbour, None)

    def _receive(
        self, memory: VisitorMemory, slot: int, neighbour: str, theirs: Contribution
    ) -> list[float]:
        """Take in a visitor that carries means, and return the changes of the means."""
        visitor, share = theirs.visitor, 1.0 / self.population
        carried = CarriedMeans.from_numbers(
            theirs.payload[len(self.states) * self.protocol.payload_size :]
        )

        def over_all_rows(means: tuple[float, ...]) -> tuple[float, ...]:
            return tuple(
                share * own + (1.0 - share) * mean
                for own, mean in zip(visitor.diagonal, means, strict=True)
            )

        return memory.receive(
            slot,
            neighbour,
            visitor.home,
            visitor.sample[0],
            carried,
            self.rows.pair_values,
            over_all_rows,
        )

    def _agree_on_offset(self, payload: tuple[float, ...]) -> tuple[float, ...]:
        """Change to the lower offset of the two nodes, and return the other's payload about it.

        The payload is returned without its offset.
        """
        size, told_count = self.protocol.payload_size, len(payload) - len(self.offset)
        told, theirs = payload[:told_count], payload[told_count:]
        lower = tuple(map(min, self.offset, theirs))
        if lower != self.offset:
            by = _differences(self.offset, lower)
            fields = self.protocol.state._fields  # type: ignore[attr-defined]
            columns = zip(fields, zip(*self.states, strict=True), strict=True)
            shifted = [
                self._shifted(column, by, field in self.protocol.differences)
                for field, column in columns
            ]
            self.states = [self.protocol.state(*numbers) for numbers in zip(*shifted, strict=True)]
            self.offset = lower
            if self.growing is not None:
                self.growing.change_sums(lambda sums: self._shifted(sums, by, is_difference=False))
        if lower != theirs:
            by = _differences(theirs, lower)
            parts = [self._shifted(told[k::size], by, is_difference=False) for k in range(size)]
            told = tuple(number for numbers in zip(*parts, strict=True) for number in numbers)
        return told

    def _shifted(
        self, moments: tuple[float, ...], by: tuple[float, ...], is_difference: bool
    ) -> tuple[float, ...]:
        shifted: Any = self.rows.estimand.statistic.moments.shifted  # type: ignore[union-attr]
        if self.protocol.counts_rows:  # moments are sums over so many rows
            return (*shifted(moments[:-1], by, moments[-1]), moments[-1])
        return tuple(shifted(moments, by, 0.0 if is_difference else 1.0))

    def _apply(self, payload: tuple[float, ...], inputs: list[Any]) -> None:
        """Apply the rule to each mean that is estimated.

        Inputs are a number for all, or a list with one for each.
        """
        count, size = len(self.states), self.protocol.payload_size
        columns = zip(
            *(value if isinstance(value, list) else repeat(value, count) for value in inputs),
            strict=True,
        )
        self.states = [
            self.protocol.meet(state, payload[c * size : (c + 1) * size], *values)
            for c, (state, values) in enumerate(zip(self.states, columns, strict=True))
        ]

    def estimates(self, tick: float = 0.0) -> list[float]:
        """Return the means that the node estimates."""
        readings = [self.protocol.read(state, tick) for state in self.states]
        return (
            list(means_of(np.array(readings)).tolist()) if self.protocol.counts_rows else readings
        )

    @property
    def row_count(self) -> float:
        """Number of rows that are in the estimates, where the protocol counts them."""
        return float(self.protocol.read(self.states[-1], 0.0))

    @property
    def has_all_rows(self) -> bool:
        """Whether all rows of known nodes are in the estimates, as far as the node can tell."""
        return self.growing is None or abs(self.row_count - self.known_rows) < 0.5

    def _fresh(self) -> list[float]:
        """Return the kernel mean of own rows × visitor.

        Where the node holds two visitors, which have one row each, it is that of the visitors.
        """
        if self.protocol.visitors == 1:
            return self.rows.mean_with(self.visitors[0])
        first, second = self.visitors
        return list(self.rows.kernel(first.sample[0], second.sample[0]))

    def _gradient(self, neighbour: str, visitor: Visitor) -> dict[str, Any]:
        """Return the mean gradient of own row x visitor, or all rows known, and options.

        Where the other row is the own one, too, the gradient is zero.
        """
        estimand, rows = self.rows.estimand, {visitor.home: visitor.sample[0]}
        assert isinstance(estimand, ObjectiveEstimand)
        if self.passed is not None:
            self.passed.exchange(neighbour, *rows.popitem())
            rows = self.passed.rows
        others = [row for home, row in rows.items() if home != self.name]
        points = [state.point for state in self.states]
        total = estimand.gradient(self.rows.rows[0], others, points)
        mean = [number / len(rows) for number in total]
        return {"gradient": mean, "penalty": estimand.penalty, "pace": estimand.pace}

    def _weight(self, visitor: Visitor, half: int, factor: float = 1.0) -> float:
        """Return the weight of a visitor among those folded in so far, itself included.

        It counts by its rows times a factor.
        """
        self.weights[half] += visitor.rows * factor
        return visitor.rows * factor / self.weights[half]

    def _known(self, visitor: Visitor) -> list[float]:
        """Fold a visitor into the mean over other nodes' rows; return the mean over all rows."""
        if visitor.home != self.name:
            self._fold(visitor)
        share = self.rows.count / self.population
        return [
            share * own + (1.0 - share) * other
            for own, other in zip(self.rows.own_mean, self.others, strict=True)
        ]

    def _fold(self, visitor: Visitor) -> None:
        fresh, seen = self.rows.mean_with(visitor), self.recent.get(visitor.home)
        if seen is None:
            if len(self.recent) == max_recent_homes(self.rows.count):
                del self.recent[next(iter(self.recent))]
            self.recent[visitor.home] = [1.0, *fresh]
            weight = self._weight(visitor, 0)
            for c, value in enumerate(fresh):
                self.others[c] += weight * (value - self.others[c])
            return
        seen[0] += 1.0
        weight = visitor.rows / self.weights[0]
        for c, value in enumerate(fresh):
            change = (value - seen[c + 1]) / seen[0]
            seen[c + 1] += change
            self.others[c] += weight * change

    def _known_through_local(self, visitor: Visitor) -> list[float]:
        """Fold a visitor into each row's mean over other nodes' rows.

        Return the mean of `local` of these means.
        """
        if visitor.home != self.name:
            half = self.halves[self.exchanges // 2 % 2]
            weight = self._weight(visitor, self.exchanges // 2 % 2, sqrt(self.exchanges))
            half += weight * (self.rows.visit(visitor) - half)
        first, second = self.halves
        share = self._second_share
        if share > 0.0:
            a, b, both = self._local(np.array([first, second, first + share * (second - first)]))
            values = 2.0 * both - 0.5 * (a + b)
        else:
            (values,) = self._local(self.halves[:1])
        return _sequential_means(values)

    @property
    def _second_share(self) -> float:
        """Share of the second half in what both halves have seen."""
        return self.weights[1] and self.weights[1] / (self.weights[0] + self.weights[1])

    def row_values(self) -> Floats:
        """Return the value of each own row, of a statistic that has one for each."""
        first, second = self.halves
        share = self.rows.count / self.population
        others = first + self._second_share * (second - first)
        means = share * self.rows.estimand.own_row_means + (1.0 - share) * others
        # The second mean is that of weights.
        return means[:, 0] / means[:, 1] if self.rows.width > 1 else means[:, 0]

    def _local(self, others: Floats) -> Floats:
        """Apply `local` to each row's mean over all rows, for several sets of means.

        The means have the textbook's normalisation.
        """
        assert self.local is not None
        if self._scaled[0] != self.population:
            estimand, share = self.rows.estimand, self.rows.count / self.population
            own_part = share * estimand.own_row_means
            self._scaled = (
                self.population,
                own_part,
                1.0 - share,
                *estimand.row_scale(self.population),
            )
        _, own_part, share, scale, offset = self._scaled
        means = scale * (own_part + share * others) - offset
        values = apply_to_rows(self.local, means.reshape(-1, self.rows.width))
        return values.reshape(len(others), self.rows.count, -1)

    def snapshot(self) -> NodeSnapshot:
        """Return everything that the node holds besides its rows."""
        states = tuple(map(tuple, self.states))
        visitors = tuple(self.visitors)
        others = tuple(self.others)
        counts, weights = (self.exchanges, self.position), (self.weights[0], self.weights[1])
        recent = {home: tuple(seen) for home, seen in self.recent.items()}
        halves, homes = self.halves.tobytes(), dict(self.homes)
        visitor_memory = None if self.visitor_memory is None else self.visitor_memory.snapshot()
        tree = None if self.growing is None else self.growing.snapshot()
        return NodeSnapshot(
            states,
            *counts,
            visitors,
            weights,
            others,
            recent,
            halves,
            homes,
            self.offset,
            visitor_memory,
            tree,
        )

    def restore(self, saved: NodeSnapshot) -> None:
        """Set everything that the node holds from a snapshot."""
        make: Any = self.protocol.state
        self.states = [make(*state) for state in saved.states]
        self.exchanges = saved.exchanges
        self.position = saved.position
        self.visitors = list(saved.visitors)
        self.weights, self.others = list(saved.weights), list(saved.others)
        self.recent = {home: list(seen) for home, seen in saved.recent.items()}
        self.halves = np.frombuffer(saved.halves).reshape(self.halves.shape).copy()
        self.homes, self.offset = dict(saved.homes), saved.offset
        self.known_rows = sum(rows for rows, _ in self.homes.values())
        if self.visitor_memory is not None and saved.visitor_memory is not None:
            self.visitor_memory.restore(saved.visitor_memory)
        if self.growing is not None and saved.tree is not None:
            self.growing.restore(saved.tree)


def exchange(
    first: Estimator, second: Estimator, edge_share: float, tick: float = 0.0, slot: int = 0
) -> None:
    """Carry out both sides of an exchange of two nodes in the same process."""
    of_first = first.contribution(second.name, edge_share, tick, slot=slot)
    of_second = second.contribution(first.name, edge_share, tick, slot=slot)
    first.exchange(second.name, of_second, edge_share, tick, slot)
    second.exchange(first.name, of_first, edge_share, tick, slot)


def _replaced(states: list[Any], **columns: tuple[float, ...]) -> list[Any]:
    """Return states with other values of some fields."""
    rows = zip(*columns.values(), strict=True)
    return [
        state._replace(**dict(zip(columns, row, strict=True)))
        for state, row in zip(states, rows, strict=True)
    ]


def _differences(first: tuple[float, ...], second: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(a - b for a, b in zip(first, second, strict=True))


def _sequential_means(rows: Floats) -> list[float]:
    """Return the mean of each column, added from first to last, as a compiled loop adds."""
    return list(((np.cumsum(rows, axis=0)[-1] + 0.0) / len(rows)).tolist())
