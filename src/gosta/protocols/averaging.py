"""Plain averaging (Boyd et al. 2006), from exact row means.

It is the lower limit of what any protocol needs.
"""

from __future__ import annotations

from typing import NamedTuple

from gosta.protocols.protocol import Protocol


class State(NamedTuple):
    """State of a node: its estimate `z`."""

    z: float


def init(row_mean: float) -> State:
    """Start from the node's exact row mean."""
    return State(row_mean)


def tell(me: State, tick: float) -> tuple[float]:
    """Send the estimate."""
    return (me.z,)


def meet(me: State, you: tuple[float], row_share: float) -> State:
    """Take the mean of both estimates, weighted by rows."""
    return State(me.z + row_share * (you[0] - me.z))


def read(me: State, tick: float) -> float:
    """Return the estimate."""
    return me.z


SUMMARY = (
    "Both ends take the mean. Starts from exact row means: what a protocol could do if visitors "
    "cost nothing."
)
KEEPS = "an estimate"
protocol = Protocol("averaging", SUMMARY, KEEPS, State, init, tell, meet, read, visitors=0)
