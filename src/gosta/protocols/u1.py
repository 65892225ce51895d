"""U1-gossip (Algorithm 2 of the paper): every node estimates its own row mean."""

from __future__ import annotations

from gosta.protocols.protocol import Protocol
from gosta.protocols.synchronous import State, init, read, tell_nothing, total_at


def meet(me: State, you: tuple[()], fresh: float, tick: float) -> State:
    """Swap first; the new visitor counts from this tick on."""
    return State(total_at(me, tick - 1.0) + fresh, tick, fresh)


SUMMARY = (
    "Swap visitors; every node folds in own x visitor at every tick. Estimates each node's own "
    "row mean."
)
KEEPS = "a sum, its tick and slope, a visitor"
protocol = Protocol(
    "u1", SUMMARY, KEEPS, State, init, tell_nothing, meet, read, estimates_row_means=True
)
