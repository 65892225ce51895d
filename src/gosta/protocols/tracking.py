"""Tracking: better estimates from the messages of GoSta-async and two more numbers.

- A node keeps the mean of its own kernel values apart, and adds to the estimate that it averages with others only what
  that mean has changed by (dynamic average consensus).
- Averaging has momentum: what it moves an estimate by is owed to the node several times over, and handed out over the
  meetings to come, on the node's own clock. It works over more meetings the more a node has had.

Over all nodes, weighted by their rows, the sum of `ahead` + `owed` is that of `smooth` at all times: pushes at two ends
cancel, whatever is handed out was owed, and changes go to both sides.
"""

from __future__ import annotations

from typing import NamedTuple

from gosta.protocols.protocol import Protocol

PUSH = 0.4  # of a move, owed for each meeting of the memory; 0.6 diverges on tori, after thousands of meetings
RAMP = 40.0  # meetings until it is that much: the first estimates are too rough to go on in their direction
SELDOM = 4.0  # edges that fire in less than one of so many meetings get less, or what is owed is too old when they do
SMOOTH = 0.02  # how fast, at least, the smoothed mean follows: in the end, smoothing costs more than it gives


class Moving(NamedTuple):
    """An estimate, where it will be at the next meeting, and what it is still owed."""

    z: float
    ahead: float
    owed: float


class State(NamedTuple):
    """The same, and the smoothed mean of the node's own that the estimate stands for."""

    z: float
    ahead: float
    owed: float
    smooth: float


def init(nothing: float) -> State:
    """Nothing yet."""
    return State(nothing, nothing, nothing, nothing)


def begin(moments: float) -> Moving:
    """The node's own part of the mean."""
    return Moving(moments, moments, 0.0 * moments)


def tell(me: Moving | State, now: float) -> tuple[float]:
    """The estimate, moved on."""
    return (me.ahead,)


def memory(meetings: float) -> float:
    """Over how many meetings to hand out what is owed."""
    return max(5.0, meetings / 4.0)


def average(me: Moving | State, you: tuple[float], meetings: float, fewest: float, pace: float, share: float) -> Moving:
    """Average the estimates moved on; what that changed is owed on top, as much at one end as at the other."""
    step = share * (you[0] - me.ahead)
    z = me.ahead + step
    owed = me.owed + PUSH * min(1.0, SELDOM * pace) * min(1.0, fewest / RAMP) * memory(fewest) * step
    handed = owed / memory(meetings + 1.0)
    return Moving(z, z + handed, owed - handed)


def meet(
    me: State, you: tuple[float], known: float, meetings: float, fewest: float, pace: float, share: float
) -> State:
    """Average, then add what one's own mean has changed by; others will see that at the next meeting."""
    z, ahead, owed = average(me, you, meetings, fewest, pace, share)
    change = max(SMOOTH, 2.0 / (meetings + 3.0)) * (known - me.smooth)
    return State(z, ahead + change, owed, me.smooth + change)


def read(me: Moving | State, now: float) -> float:
    """The estimate."""
    return me.z


of_moments = Protocol(
    "tracking",
    "Averaging with momentum.",
    "an estimate, where it is going, a count of meetings",
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
    "an estimate, where it is going, two means of its own, a count of meetings, a visitor",
    State,
    init,
    tell,
    meet,
    read,
    cross=1 / 3,
    of_moments=of_moments,
)
