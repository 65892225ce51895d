"""The state of synchronous protocols, in which every node folds in a kernel value at every tick.

Between two meetings a node's visitor stays, so its sum of kernel values grows by the same number each tick: it needs
to be brought up to date only when the node is drawn or read, and an iteration costs O(1) instead of O(n).
"""

from __future__ import annotations

from typing import NamedTuple


class State(NamedTuple):
    """The sum of kernel values up to a tick, and what each later tick adds."""

    total: float
    tick: float
    slope: float


def init(held: float) -> State:
    """Nothing yet; the first visitor is the node's own observation."""
    return State(0.0 * held, 0.0 * held, held)


def total_at(me: State, now: float) -> float:
    """The sum up to now."""
    return me.total + (now - me.tick) * me.slope


def read(me: State, now: float) -> float:
    """The mean of all kernel values so far."""
    return total_at(me, now) / now
