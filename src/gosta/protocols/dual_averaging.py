"""Dual averaging by gossip (Colin, Bellet, Salmon, Clémençon, ICML 2016), asynchronous.

A node keeps the mean of all gradients so far, its own and others', and minimises their linear model
with a penalty that becomes weaker with the number of exchanges. The weights 1/p of the paper cancel
where means are kept instead of sums, as in GoSta-async; what nodes report is the mean of their
points.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from gosta.protocols.protocol import Protocol

# Distance that a mean gradient moves a point after one exchange, in inverse curvatures of a pair:
# the best of several powers of ten for the data of benchmarks/objectives.py.
STEP = 20.0


class State(NamedTuple):
    """State of a node, for one parameter.

    `dual` is the mean gradient, `point` the parameter at which the next gradient is taken, and
    `mean` the mean of all points so far.
    """

    dual: float
    point: float
    mean: float


def init(zero: float) -> State:
    """Start from zero."""
    return State(zero, zero, zero)


def tell(me: State, tick: float) -> tuple[float]:
    """Send the mean gradient."""
    return (me.dual,)


def meet(
    me: State, you: tuple[float], gradient: float, exchanges: float, penalty: float, pace: float
) -> State:
    """Average mean gradients, fold in one's own, and move to where the linear model is least."""
    dual = (me.dual + you[0]) / 2.0
    dual += (gradient - dual) / exchanges
    point = -dual / (1.0 / (pace * STEP * sqrt(exchanges)) + penalty)
    return State(dual, point, me.mean + (point - me.mean) / exchanges)


def read(me: State, tick: float) -> float:
    """Return the mean of all points."""
    return me.mean


SUMMARY = (
    "The pair drawn averages mean gradients and swaps visitors, each folds in the gradient of own "
    "x visitor."
)
KEEPS = "a mean gradient, a point, a mean of points, a count of exchanges, a visitor"
protocol = Protocol("dual-averaging", SUMMARY, KEEPS, State, init, tell, meet, read)
