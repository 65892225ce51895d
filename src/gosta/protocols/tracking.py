"""Tracking: better estimates from the messages of GoSta-async, and a count.

A node keeps the mean of its own kernel values apart from what it averages with others, and adds to the latter only what
its own mean has changed by. Averaging is sped up by momentum on each node's own clock.
"""

from __future__ import annotations

from typing import NamedTuple

from gosta.protocols.protocol import Protocol

MEMORY = 20.0  # meetings after which momentum is forgotten
PUSH = 0.4  # of what averaging moves an estimate by, in full swing
RAMP = 80.0  # meetings until then


class Moving(NamedTuple):
    """An estimate and its velocity."""

    z: float
    velocity: float


class State(NamedTuple):
    """The same, and the smoothed mean of the node's own that the estimate stands for."""

    z: float
    velocity: float
    smooth: float


def init(nothing: float) -> State:
    """Nothing yet."""
    return State(nothing, nothing, nothing)


def begin(moments: float) -> Moving:
    """The node's own part of the mean."""
    return Moving(moments, 0.0 * moments)


def tell(me: Moving | State, now: float) -> tuple[float]:
    """The estimate, moved on."""
    return (me.z + me.velocity,)


def average(me: Moving | State, you: tuple[float], fewest: float, share: float) -> Moving:
    """Average the estimates moved on, and gain velocity by what that changed."""
    moved = me.z + me.velocity
    step = share * (you[0] - moved)
    push = PUSH * min(1.0, fewest / RAMP)  # the same at both ends, or the sum would drift
    return Moving(moved + step, (1.0 - 1.0 / MEMORY) * me.velocity + push * step)


def meet(me: State, you: tuple[float], known: float, meetings: float, fewest: float, share: float) -> State:
    """Average, then add what one's own mean has changed by."""
    z, velocity = average(me, you, fewest, share)
    change = 2.0 / (meetings + 1.0) * (known - me.smooth)
    return State(z + change, velocity, me.smooth + change)


def read(me: Moving | State, now: float) -> float:
    """The estimate."""
    return me.z


of_moments = Protocol(
    "tracking",
    "Averaging with momentum.",
    "an estimate, its velocity, a count of meetings",
    Moving,
    begin,
    tell,
    average,
    read,
    visitors=0,
)

protocol = Protocol(
    "tracking",
    "As gosta-async, but estimates follow the change of each node's own mean, and averaging has momentum.",
    "an estimate, its velocity, two means, a count of meetings, a visitor",
    State,
    init,
    tell,
    meet,
    read,
    cross=1 / 3,
    of_moments=of_moments,
)
