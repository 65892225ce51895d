"""U2-gossip (Pelckmans and Suykens 2009; Algorithm 5 of the paper): two visitors at every node."""

from __future__ import annotations

from gosta.protocols.protocol import Protocol
from gosta.protocols.synchronous import State, init, read, tell_nothing, total_at


def meet(me: State, you: tuple[()], fresh: float, tick: float) -> State:
    """Count this tick with the old visitors; the new one counts from the next tick on."""
    return State(total_at(me, tick), tick, fresh)


SUMMARY = (
    "Every node folds in visitor x visitor at every tick; of two edges drawn, each swaps one of "
    "the two visitors."
)
KEEPS = "a sum, its tick and slope, two visitors"
protocol = Protocol("u2", SUMMARY, KEEPS, State, init, tell_nothing, meet, read, visitors=2)
