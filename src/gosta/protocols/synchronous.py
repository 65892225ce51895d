"""The state of synchronous protocols, in which every node folds in a kernel value at every tick.

Between two exchanges a node keeps its visitor, so its sum of kernel values grows by the same number
at each tick. It is brought up to date only when the node is drawn or read, so an iteration costs
O(1) instead of O(n).
"""

from __future__ import annotations

from typing import NamedTuple


class State(NamedTuple):
    """State of a node: the sum of kernel values up to `tick`; each later tick adds `slope`."""

    total: float
    tick: float
    slope: float


def init(held: float) -> State:
    """Start from zero; the first visitor is the node's own observation."""
    return State(0.0 * held, 0.0 * held, held)


def total_at(me: State, tick: float) -> float:
    """Return the sum of kernel values up to a tick."""
    return me.total + (tick - me.tick) * me.slope


def tell_nothing(me: State, tick: float) -> tuple[()]:
    """Send nothing but the visitor."""
    return ()


def read(me: State, tick: float) -> float:
    """Return the mean of all kernel values so far."""
    return total_at(me, tick) / tick
