"""Tracking: better estimates from the messages of GoSta-async and two more numbers.

- A node keeps the running mean of its own kernel values (`known`) to itself, and adds only the
  change of that mean to the estimate that it averages with others (dynamic average consensus).
- Averaging has momentum: what it moves an estimate by is owed to the node several times over, and
  is paid out over the following exchanges, on the node's own clock. The longer a node has been
  running, the more exchanges that takes.

Invariant: summed over all nodes, weighted by their rows, `ahead` + `owed` equals `smooth` at all
times. Pushes at the two ends cancel, what is paid out was owed, and changes of the mean are added
to both sides.
"""

from __future__ import annotations

from typing import NamedTuple

from gosta.protocols.protocol import Protocol

# Share of a move owed per exchange of memory; 0.6 diverges on tori after thousands of exchanges.
MOMENTUM_SHARE = 0.4
# Exchanges until the full push: the first estimates are too rough to continue in their direction.
RAMP_EXCHANGES = 40.0
# Edges that fire in less than 1/RARE_EDGE_FACTOR of a node's exchanges are pushed less: their debt
# would be outdated.
RARE_EDGE_FACTOR = 4.0
# How far an estimate can leave the range of the nodes' values, in units of that range (see
# `Protocol.overshoot`): twice the largest in 3,449 simulations of networks of up to 12 nodes: 3.8,
# where one edge was used hundreds of times in a row; 1.7 where parts of the network took turns, 0.5
# on all other schedules. Carried means are alike, and so is the share of rows counted (0.6). Where
# every edge is used ten or more times in a row, and that for ten thousands of exchanges, both
# exceed any bound (benchmarks/stability.py); nodes draw edges at random.
OVERSHOOT = 8.0
# Least rate of the smoothed mean: in the long run, smoothing costs more than it gains.
SMOOTH = 0.02


Payload = tuple[float]  # `ahead` of the other node


class MomentsState(NamedTuple):
    """State of a node that averages moments.

    `z` is the estimate, `ahead` its value at the next exchange, `owed` what is still to be paid
    out.
    """

    z: float
    ahead: float
    owed: float


class State(NamedTuple):
    """State of a node: as `MomentsState`, and `smooth`, the smoothed `known` in the estimate."""

    z: float
    ahead: float
    owed: float
    smooth: float


AnyState = MomentsState | State


def init(zero: float) -> State:
    """Start from zero."""
    return State(zero, zero, zero, zero)


def init_moments(moments: float) -> MomentsState:
    """Start from the mean moment of the node's own rows."""
    return MomentsState(moments, moments, 0.0 * moments)


def tell(me: AnyState, tick: float) -> Payload:
    """Send the estimate with its momentum applied."""
    return (me.ahead,)


def payout_exchanges(exchanges: float) -> float:
    """Return the number of exchanges over which a debt is paid out."""
    return max(5.0, exchanges / 4.0)


def average(
    me: AnyState,
    you: Payload,
    exchanges: float,
    fewer_exchanges: float,
    edge_share: float,
    row_share: float,
) -> MomentsState:
    """Average the two estimates; the change is owed on top, with opposite signs at the two ends."""
    step = row_share * (you[0] - me.ahead)
    z = me.ahead + step
    gain = (
        MOMENTUM_SHARE
        * min(1.0, RARE_EDGE_FACTOR * edge_share)
        * min(1.0, fewer_exchanges / RAMP_EXCHANGES)
        * payout_exchanges(fewer_exchanges)
    )
    owed = me.owed + gain * step
    paid = owed / payout_exchanges(exchanges + 1.0)
    return MomentsState(z, z + paid, owed - paid)


def meet(
    me: State,
    you: Payload,
    known: float,
    exchanges: float,
    fewer_exchanges: float,
    edge_share: float,
    row_share: float,
) -> State:
    """Average, then add the change of the node's own mean, which others see next time."""
    z, ahead, owed = average(me, you, exchanges, fewer_exchanges, edge_share, row_share)
    change = max(SMOOTH, 2.0 / (exchanges + 3.0)) * (known - me.smooth)
    return State(z, ahead + change, owed, me.smooth + change)


def read(me: AnyState, tick: float) -> float:
    """Return the estimate."""
    return me.z


MOMENTS_KEEPS = "an estimate, its next value, a debt, a count of exchanges"
for_moments = Protocol(
    "tracking",
    "Averaging of moments with momentum.",
    MOMENTS_KEEPS,
    MomentsState,
    init_moments,
    tell,
    average,
    read,
    visitors=0,
    differences=("owed",),
    rule="momentum averaging",
)

SUMMARY = (
    "As gosta-async, but estimates follow the change of each node's own mean, and averaging has "
    "momentum."
)
KEEPS = (
    "an estimate, its next value, a debt, two means of its own, a count of exchanges, recent "
    "visitors, a visitor"
)
protocol = Protocol(
    "tracking",
    SUMMARY,
    KEEPS,
    State,
    init,
    tell,
    meet,
    read,
    overshoot=OVERSHOOT,
    for_moments=for_moments,
)
