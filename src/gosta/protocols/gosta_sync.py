"""GoSta-sync (Algorithm 3 of the paper)."""

from __future__ import annotations

from gosta.protocols.protocol import Protocol
from gosta.protocols.synchronous import State, init, read, total_at


def tell(me: State, tick: float) -> tuple[float]:
    """Send the sum of kernel values so far."""
    return (total_at(me, tick),)


def meet(me: State, you: tuple[float], fresh: float, tick: float) -> State:
    """Update, then average, then swap."""
    return State((total_at(me, tick) + you[0]) / 2, tick, fresh)


SUMMARY = (
    "Every node folds in own x visitor at every tick; the pair drawn averages estimates and swaps "
    "visitors."
)
KEEPS = "a sum, its tick and slope, a visitor"
protocol = Protocol("gosta-sync", SUMMARY, KEEPS, State, init, tell, meet, read)
