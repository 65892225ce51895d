"""Gradient tracking: points follow the mean gradient of all nodes, tracked as estimates are.

A node takes the gradient of its own row with all rows that it knows, at its point. To the gradient
that it averages with others it adds only what its own has changed by (dynamic average consensus, as
in `tracking`); points are averaged, too, and move against it. Rows are passed on, each once over
each edge, so that a node soon knows many.

Invariant: summed over all nodes, `track` equals `gradient` at all times.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from gosta.protocols.protocol import Protocol

# Distance that a gradient moves a point, in inverse curvatures of a pair; with 1, losses whose
# curvature does not fall diverge.
STEP = 0.5
# Exchanges of a node after which steps become shorter, so that points at distant nodes can agree.
STEADY_EXCHANGES = 50.0


class State(NamedTuple):
    """State of a node, for one parameter.

    `point` is the parameter, `track` the estimate of the mean gradient, `gradient` the node's own
    one at its last exchange.
    """

    point: float
    track: float
    gradient: float


def init(zero: float) -> State:
    """Start from zero."""
    return State(zero, zero, zero)


def tell(me: State, tick: float) -> tuple[float, float]:
    """Send the point and the estimate of the mean gradient."""
    return (me.point, me.track)


def meet(
    me: State,
    you: tuple[float, float],
    gradient: float,
    exchanges: float,
    penalty: float,
    pace: float,
) -> State:
    """Average, add the change of the node's own gradient, and move the point."""
    own = gradient + penalty * me.point
    track = (me.track + you[1]) / 2.0 + (own - me.gradient)
    step = pace * STEP / sqrt(max(1.0, exchanges / STEADY_EXCHANGES))
    return State((me.point + you[0]) / 2.0 - step * track, track, own)


def read(me: State, tick: float) -> float:
    """Return the point."""
    return me.point


SUMMARY = (
    "The pair drawn averages points and gradients, passes on rows, and each adds the change of its "
    "own gradient over all rows that it knows."
)
KEEPS = "a point, two gradients, all rows that it was sent, a count of exchanges"
protocol = Protocol(
    "gradient-tracking", SUMMARY, KEEPS, State, init, tell, meet, read, passes_rows=True
)
