"""U2-gossip (Pelckmans and Suykens 2009; Algorithm 5 of the paper): two visitors at every node."""

from __future__ import annotations

from gosta.protocols.protocol import Protocol
from gosta.protocols.running import State, init, read, total_at


def tell(me: State, now: float) -> tuple[()]:
    """Nothing."""
    return ()


def meet(me: State, you: tuple[()], fresh: float, now: float) -> State:
    """This tick still counts with the old visitors; the new one counts from the next."""
    return State(total_at(me, now), now, fresh)


protocol = Protocol(
    "u2",
    "Every node folds in visitor x visitor at every tick; of two edges drawn, each swaps one of the two visitors.",
    "a sum, its tick and slope, two visitors",
    State,
    init,
    tell,
    meet,
    read,
    visitors=2,
)
