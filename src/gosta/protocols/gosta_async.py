"""GoSta-async (Algorithm 4 of the paper).

The weight 1/(p_k m_k) of the paper is one over the node's own number of exchanges: neither its degree nor the number
of edges is needed.
"""

from __future__ import annotations

from typing import NamedTuple

from gosta.protocols.protocol import Protocol


class State(NamedTuple):
    """State of a node: its estimate `z`."""

    z: float


def init(zero: float) -> State:
    """Start from zero."""
    return State(zero)


def tell(me: State, tick: float) -> tuple[float]:
    """Send the estimate."""
    return (me.z,)


def meet(me: State, you: tuple[float], held: float, weight: float, row_share: float) -> State:
    """Average, then fold in the kernel value of the visitor held before the swap."""
    z = me.z + row_share * (you[0] - me.z)
    return State(z + weight * (held - z))


def read(me: State, tick: float) -> float:
    """Return the estimate."""
    return me.z


protocol = Protocol(
    "gosta-async",
    "The pair drawn averages estimates, each folds in own x visitor with weight 1/exchanges, and they swap visitors.",
    "an estimate, a count of exchanges, a visitor",
    State,
    init,
    tell,
    meet,
    read,
)
