"""Means that visitors carry: what a node does with a visitor that arrives, and which one leaves.

A node has one row. It remembers the rows of its last visitors, at most `REMEMBERED` rows of
different homes, at first only its own. A visitor that arrives is compared with all remembered rows
but its own, also at its home. The mean of these kernel values is folded into the mean that it
carries; its weight is the number of rows that came since the visitor was here last. Later rows
count for more: where neighbours have similar rows, the first places of a journey are unlike the
rest.

The carried mean is smoothed before its changes are added to estimates, so that a node does not
have to spread every single kernel value. The visitor carries the smoothed mean, too, so that
wherever it is, a node knows what estimates include already.

A node's own row is not compared with every visitor: nodes with many neighbours receive many
visitors, and their rows would count for more than others. Visitors are the same everywhere, in the
long run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gosta.protocols.protocol import COPIES
from gosta.runtime.arrays import Floats

# Rows that a node remembers; compiled code has four bits for the place of each.
REMEMBERED = 16
# Rows, or share of all rows, that must be counted before a node has an estimate.
MIN_COUNTED = 0.01
# Most rows that a visitor can say it was compared with: above it, a float cannot count.
MAX_COMPARED = 2.0**53

Values = tuple[float, ...]
Row = tuple[float, ...]


def weight_of(count: float, compared: float) -> float:
    """Return the weight of the last `count` of all `compared` rows that a visitor has met.

    A row counts in proportion to the number of those before it, to the power of 0.75.
    """
    return 1.75 * count / (compared + 0.75 * count)


def rate_of(count: float, compared: float) -> float:
    """Return the rate at which the smoothed mean follows the mean.

    It does not fall below a limit, because smoothing gains nothing in the long run.
    """
    return max(0.0025 * count, 2.0 * count / (compared + count))


def means_of(states: Floats) -> Floats:
    """Convert readings of states, ... x states, to means.

    The last state is a number of rows, or the share of rows that are counted.
    """
    counted = states[..., -1:]
    is_started = counted > MIN_COUNTED
    return np.where(is_started, states[..., :-1] / np.where(is_started, counted, 1.0), 0.0)


class CarriedMeans(NamedTuple):
    """What a visitor carries besides its row."""

    compared: float  # number of rows that it was compared with; repeats at one node count once
    means: Values  # kernel means of its row with rows that it was compared with
    smooth: Values  # the part of the row's means over all rows that estimates include already

    @property
    def numbers(self) -> Values:
        """All numbers, in the order in which they are sent."""
        return self.compared, *self.means, *self.smooth

    @classmethod
    def from_numbers(cls, numbers: Values) -> CarriedMeans:
        """Return the carried means that were sent as these numbers."""
        width = len(numbers) // 2
        return cls(numbers[0], numbers[1 : 1 + width], numbers[1 + width :])

    @classmethod
    def empty(cls, width: int) -> CarriedMeans:
        """Return the carried means of a visitor that was not compared with any row."""
        return cls(0.0, (0.0,) * width, (0.0,) * width)


class VisitorMemorySnapshot(NamedTuple):
    """The state of a node's `VisitorMemory`."""

    carried: tuple[CarriedMeans, ...]
    came_from: tuple[str, ...]
    latest: int
    remembered: dict[str, Row]


class VisitorMemory:
    """What a node keeps about visitors that carry means.

    Attributes
    ----------
    carried
        What each visitor that the node holds carries.
    came_from
        Name of the node from which each of them came.
    latest
        Which of them came last.
    remembered
        Rows of recent visitors by their home, in the order in which they came last.
    """

    def __init__(self, home: str, row: Row, width: int) -> None:
        self.carried = [CarriedMeans.empty(width)] * COPIES
        self.came_from = [""] * COPIES
        self.latest = COPIES - 1
        self.remembered = {home: row}

    def leaving(self, neighbour: str) -> int:
        """Return which visitor leaves.

        It is the one held longer, unless only that one came from the neighbour.
        """
        other, latest = 1 - self.latest, self.latest
        return latest if self.came_from[other] == neighbour != self.came_from[latest] else other

    def receive(
        self,
        slot: int,
        neighbour: str,
        home: str,
        row: Row,
        carried: CarriedMeans,
        kernel: Callable[[Row, Row], Values],
        over_all_rows: Callable[[Values], Values],
    ) -> list[float]:
        """Take in a visitor, and return the change of each mean that is estimated.

        The last number is the change of the share of rows that are counted. `over_all_rows`
        converts means over the rows of other nodes to means over all rows.
        """
        self.came_from[slot], self.latest = neighbour, slot
        self.carried[slot] = carried
        names = list(self.remembered)
        count = float(len(names[names.index(home) + 1 :] if home in names else names))
        values = [kernel(row, other) for name, other in self.remembered.items() if name != home]
        self._remember(home, row)
        if count == 0.0:
            return [0.0] * (len(carried.means) + 1)
        compared = carried.compared + count
        weight, rate = weight_of(count, compared), rate_of(count, compared)
        fresh = [sum(column, 0.0) / len(values) for column in zip(*values, strict=True)]
        means = tuple(
            mean + weight * (now - mean) for mean, now in zip(carried.means, fresh, strict=True)
        )
        changes = [
            rate * (now - before)
            for now, before in zip(over_all_rows(means), carried.smooth, strict=True)
        ]
        smooth = tuple(
            before + change for before, change in zip(carried.smooth, changes, strict=True)
        )
        self.carried[slot] = CarriedMeans(compared, means, smooth)
        is_first = carried.compared == 0.0
        return [*(change / COPIES for change in changes), 1.0 / COPIES if is_first else 0.0]

    def _remember(self, home: str, row: Row) -> None:
        self.remembered.pop(home, None)
        if len(self.remembered) == REMEMBERED:
            del self.remembered[next(iter(self.remembered))]
        self.remembered[home] = row

    def snapshot(self) -> VisitorMemorySnapshot:
        """Return the state."""
        return VisitorMemorySnapshot(
            tuple(self.carried), tuple(self.came_from), self.latest, dict(self.remembered)
        )

    def restore(self, saved: VisitorMemorySnapshot) -> None:
        """Set the state from a snapshot."""
        self.carried = list(saved.carried)
        self.came_from = list(saved.came_from)
        self.latest = saved.latest
        self.remembered = dict(saved.remembered)
