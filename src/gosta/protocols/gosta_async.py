"""GoSta-async (Algorithm 4 of the paper).

The weight 1/(p_k m_k) there is one over the node's own count of meetings: neither its degree nor the number of edges
is needed.
"""

from __future__ import annotations

from typing import NamedTuple

from gosta.protocols.protocol import Protocol


class State(NamedTuple):
    """An estimate."""

    z: float


def init(nothing: float) -> State:
    """Nothing yet."""
    return State(nothing)


def tell(me: State, now: float) -> tuple[float]:
    """The estimate."""
    return (me.z,)


def meet(me: State, you: tuple[float], held: float, weight: float, share: float) -> State:
    """Average, fold in the visitor held so far, then swap."""
    z = me.z + share * (you[0] - me.z)
    return State(z + weight * (held - z))


def read(me: State, now: float) -> float:
    """The estimate."""
    return me.z


protocol = Protocol(
    "gosta-async",
    "The pair drawn averages estimates, each folds in own x visitor with weight 1/meetings, and they swap visitors.",
    "an estimate, a count of meetings, a visitor",
    State,
    init,
    tell,
    meet,
    read,
)
