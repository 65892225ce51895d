"""GoSta-async (Algorithm 4 of the paper): averaging, and a kernel value folded in at each exchange.

The weight 1/(p_k m_k) of the paper is one over the node's own number of exchanges: neither its
degree nor the number of edges is needed.
"""

from __future__ import annotations

from gosta.protocols.averaging import State, read, tell
from gosta.protocols.protocol import Protocol


def init(zero: float) -> State:
    """Start from zero."""
    return State(zero)


def meet(me: State, you: tuple[float], held: float, weight: float, row_share: float) -> State:
    """Average, then fold in the kernel value of the visitor held before the swap."""
    z = me.z + row_share * (you[0] - me.z)
    return State(z + weight * (held - z))


SUMMARY = (
    "The pair drawn averages estimates, each folds in own x visitor with weight 1/exchanges, and "
    "they swap visitors."
)
KEEPS = "an estimate, a count of exchanges, a visitor"
# A visitor's correction is a difference of two means, so a corrected kernel value is at most one
# range beyond.
protocol = Protocol("gosta-async", SUMMARY, KEEPS, State, init, tell, meet, read, overshoot=1.0)
