"""Relay (RelaySum, Vogels et al. 2021): nodes pass on sums along a spanning tree.

- Visitors carry the means of their rows, as in carried-means. What a mean has changed by is added
  to the sum of the node where that happens. Where nodes hold tables, a node contributes its own
  mean, times its number of rows.
- A node tells its parent in the tree the sum of its own part and of what its children told it, and
  a child the sum of all but that child's part. So once every edge of the tree has been used on the
  way there and back, a node knows the sum over all nodes: averaging that is not approximate.
  Changes follow the same way.
- Sums include the number of rows that have been counted, by which estimates are divided; a node
  that does not know of some rows yet can tell by that number.

Two of three exchanges are on edges of the tree, the others let visitors travel
(`gosta.graphs.tree`). The state of an edge of the tree is kept at the child. A message that says a
sum for the second time changes nothing, and there is nothing that could grow: estimates cannot
diverge.

Invariant: `below` of a node is its own part, plus `up` of each of its children.
"""

from __future__ import annotations

from typing import NamedTuple

from gosta.protocols.protocol import Protocol

# How far a node's own mean can be beyond the range, in ranges: by a visitor's correction one, by
# the removal of the bias of `local` up to three times that, by products of means more.
OVERSHOOT = 8.0
Payload = tuple[float]  # to the parent: what is new in `below`; to a child: `below` + `down`


class State(NamedTuple):
    """State of a node.

    `below` is the sum over the node and all nodes below it in the tree, `up` what of it the parent
    knows, `down` the sum over all other nodes, as the parent told it.
    """

    below: float
    up: float
    down: float


class TableState(NamedTuple):
    """State of a node with a table: as `State`, and `own`, the node's own part of `below`."""

    below: float
    up: float
    down: float
    own: float


AnyState = State | TableState


def init(zero: float) -> State:
    """Start from zero."""
    return State(zero, zero, zero)


def init_table(zero: float) -> TableState:
    """Start from zero."""
    return TableState(zero, zero, zero, zero)


def init_moments(moments: float) -> State:
    """Start from the sum of the moments of the node's own rows."""
    return State(moments, 0.0 * moments, 0.0 * moments)


def tell(me: AnyState, tick: float, tree: float) -> Payload:
    """Send what the other end of an edge of the tree does not have yet.

    On other edges, what is sent is not used.
    """
    return (me.below - me.up if tree > 0.0 else me.below + me.down,)


def relay(me: AnyState, you: Payload, tree: float) -> State:
    """Take in the sums that the other node passed on."""
    if tree > 0.0:
        return State(me.below, me.below, you[0] - me.up)
    if tree < 0.0:
        return State(me.below + you[0], me.up, me.down)
    return State(me.below, me.up, me.down)


def meet(me: State, you: Payload, change: float, tree: float) -> State:
    """Pass on sums, then add the change of the visitor's mean, which others see next time."""
    below, up, down = relay(me, you, tree)
    return State(below + change, up, down)


def meet_with_table(
    me: TableState, you: Payload, known: float, rows: float, tree: float
) -> TableState:
    """Pass on sums, then add the change of the node's own part, which others see next time."""
    below, up, down = relay(me, you, tree)
    own = rows * known
    return TableState(below + (own - me.own), up, down, own)


def read(me: AnyState, tick: float) -> float:
    """Return the sum over all nodes."""
    return me.below + me.down


NAME = "relay"
KEEPS_SUMS = "three sums and a count for each, its parent in a spanning tree"
for_moments = Protocol(
    NAME,
    "Sums of moments along a spanning tree.",
    KEEPS_SUMS,
    State,
    init_moments,
    tell,
    relay,
    read,
    visitors=0,
    rule="relayed sums of moments",
)
for_tables = Protocol(
    NAME,
    "Sums of the nodes' own means along a spanning tree.",
    "four sums and a count for each, its parent in a spanning tree, its own mean, recent "
    "visitors, a visitor",
    TableState,
    init_table,
    tell,
    meet_with_table,
    read,
    overshoot=OVERSHOOT,
    rule="relayed sums of own means",
)
SUMMARY = (
    "As carried-means, but nodes pass on sums along a spanning tree, in two of three exchanges."
)
KEEPS = f"{KEEPS_SUMS}, the rows of sixteen recent visitors, two visitors"
protocol = Protocol(
    NAME,
    SUMMARY,
    KEEPS,
    State,
    init,
    tell,
    meet,
    read,
    for_moments=for_moments,
    for_tables=for_tables,
)
