"""Means that visitors carry: what a node does with a visitor that arrives, and which one leaves.

A node has one row. It remembers the rows of the visitors that came last, at most `REMEMBERED` of different homes, at
first its own. A visitor that arrives is compared with all of them but its own row, at its home as well, and the mean of
these kernel values is folded into the mean that it carries. It counts by the number of rows that came since the visitor
was here last. Later rows count for more: where neighbours have similar rows, the first places of a journey are unlike
the rest.

What is added to estimates follows the carried mean smoothly, so that a node does not have to spread every single kernel
value. The visitor carries that smoothed mean, too, so that wherever it is, a node knows what has been counted.

The own row of a node is not compared with each visitor: nodes with many neighbours receive many visitors, and their
rows would count for more than others. Visitors are the same everywhere, in the long run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gosta.protocols.protocol import COPIES
from gosta.runtime.arrays import Floats

REMEMBERED = 16  # rows that a node remembers; compiled code has four bits for the place of each
MIN_COUNTED = 0.01  # rows, or share of all rows, that must be counted before a node has an estimate
MAX_COMPARED = 2.0**53  # one more is the same number

Values = tuple[float, ...]
Row = tuple[float, ...]


def weight_of(count: float, compared: float) -> float:
    """Return the weight of `count` rows among all `compared` that a visitor has met, with these.

    A row counts in proportion to the number of those before it, to the power of 0.75.
    """
    return 1.75 * count / (compared + 0.75 * count)


def rate_of(count: float, compared: float) -> float:
    """Return the rate at which the smoothed mean follows the mean: in the long run, smoothing gains nothing."""
    return max(0.0025 * count, 2.0 * count / (compared + count))


def means_of(states: Floats) -> Floats:
    """Convert what was read from states, ... x states, the last of which counts rows or is their share, to means."""
    counted = states[..., -1:]
    is_started = counted > MIN_COUNTED
    return np.where(is_started, states[..., :-1] / np.where(is_started, counted, 1.0), 0.0)


class Luggage(NamedTuple):
    """What a visitor carries besides its row."""

    compared: float  # number of rows that it was compared with, without those that it met at the same node before
    means: Values  # kernel means of its row with rows that it was compared with
    smooth: Values  # what of the row's means over all rows has been counted in estimates

    @property
    def numbers(self) -> Values:
        """All numbers, as they are sent."""
        return self.compared, *self.means, *self.smooth

    @classmethod
    def from_numbers(cls, numbers: Values) -> Luggage:
        """Return the luggage with these numbers."""
        width = len(numbers) // 2
        return cls(numbers[0], numbers[1 : 1 + width], numbers[1 + width :])


def empty_luggage(width: int) -> Luggage:
    """Return the luggage of a visitor that was not compared with any row."""
    return Luggage(0.0, (0.0,) * width, (0.0,) * width)


class HostSnapshot(NamedTuple):
    """The state of a host."""

    luggage: tuple[Luggage, ...]
    came_from: tuple[str, ...]
    latest: int
    remembered: dict[str, Row]


class Host:
    """What a node keeps for the visitors that it holds: their luggage, where they came from, the rows it remembers."""

    def __init__(self, home: str, row: Row, width: int) -> None:
        self.luggage = [empty_luggage(width)] * COPIES
        self.came_from = [""] * COPIES  # name of the node from which each visitor came
        self.latest = COPIES - 1  # which visitor came last
        self.remembered = {home: row}  # by home, in the order in which they came last

    def leaving(self, neighbour: str) -> int:
        """Return which visitor leaves: the one held longer, unless only that one came from the neighbour."""
        other, latest = 1 - self.latest, self.latest
        return latest if self.came_from[other] == neighbour != self.came_from[latest] else other

    def receive(
        self,
        slot: int,
        neighbour: str,
        home: str,
        row: Row,
        luggage: Luggage,
        kernel: Callable[[Row, Row], Values],
        known: Callable[[Values], Values],
    ) -> list[float]:
        """Take in a visitor, and return what each mean that is estimated changes by; last, the share counted.

        `known` converts means over other rows to means over all rows.
        """
        self.came_from[slot], self.latest = neighbour, slot
        self.luggage[slot] = luggage
        names = list(self.remembered)
        count = float(len(names[names.index(home) + 1 :] if home in names else names))
        values = [kernel(row, other) for name, other in self.remembered.items() if name != home]
        self._remember(home, row)
        if count == 0.0:
            return [0.0] * (len(luggage.means) + 1)
        compared = luggage.compared + count
        weight, rate = weight_of(count, compared), rate_of(count, compared)
        found = [sum(column, 0.0) / len(values) for column in zip(*values, strict=True)]
        means = tuple(
            mean + weight * (now - mean) for mean, now in zip(luggage.means, found, strict=True)
        )
        changes = [
            rate * (now - before) for now, before in zip(known(means), luggage.smooth, strict=True)
        ]
        smooth = tuple(
            before + change for before, change in zip(luggage.smooth, changes, strict=True)
        )
        self.luggage[slot] = Luggage(compared, means, smooth)
        return [
            *(change / COPIES for change in changes),
            1.0 / COPIES if luggage.compared == 0.0 else 0.0,
        ]

    def _remember(self, home: str, row: Row) -> None:
        self.remembered.pop(home, None)
        if len(self.remembered) == REMEMBERED:
            del self.remembered[next(iter(self.remembered))]
        self.remembered[home] = row

    def snapshot(self) -> HostSnapshot:
        """Return the state."""
        visitors = tuple(self.luggage), tuple(self.came_from), self.latest
        return HostSnapshot(*visitors, dict(self.remembered))

    def restore(self, saved: HostSnapshot) -> None:
        """Set the state from a snapshot."""
        self.luggage, self.came_from, self.latest = (
            list(saved.luggage),
            list(saved.came_from),
            saved.latest,
        )
        self.remembered = dict(saved.remembered)
