"""Carried means: as tracking, but the mean of a row travels with its visitors.

It is updated wherever they are.

- A visitor carries the running mean of the kernel values of its row. A node compares the visitor
  that arrived with all rows that it remembers, and adds what the mean has changed by to the
  estimate that it averages with others.
- Every row has two visitors, and a node holds two. The one that it has held longer leaves, unless
  it came from the other node: so visitors seldom go back and forth.
- Averaging has momentum, as in tracking.

Invariant: summed over all nodes, `ahead` + `owed` equals the sum of what visitors have been counted
with.
"""

from __future__ import annotations

from dataclasses import replace

from gosta.protocols import gradient_tracking, tracking
from gosta.protocols.protocol import Protocol
from gosta.protocols.tracking import OVERSHOOT, MomentsState, Payload, average, read, tell


def init(zero: float) -> MomentsState:
    """Start from zero."""
    return MomentsState(zero, zero, zero)


def meet(
    me: MomentsState,
    you: Payload,
    change: float,
    exchanges: float,
    fewer_exchanges: float,
    edge_share: float,
    row_share: float,
) -> MomentsState:
    """Average, then add the change of the visitor's mean, which others see at the next exchange."""
    z, ahead, owed = average(me, you, exchanges, fewer_exchanges, edge_share, row_share)
    return MomentsState(z, ahead + change, owed)


NAME = "carried-means"
SUMMARY = (
    "As tracking, but the mean of a row travels with its visitors, compared with all rows that "
    "nodes remember."
)
KEEPS = (
    "an estimate, its next value, a debt, a count of exchanges, the rows of sixteen recent "
    "visitors, two visitors"
)
protocol = Protocol(
    NAME,
    SUMMARY,
    KEEPS,
    MomentsState,
    init,
    tell,
    meet,
    read,
    overshoot=OVERSHOOT,
    for_moments=replace(tracking.for_moments, name=NAME),
    for_tables=replace(tracking.protocol, name=NAME, for_moments=None),
    for_objectives=replace(gradient_tracking.protocol, name=NAME),
)
