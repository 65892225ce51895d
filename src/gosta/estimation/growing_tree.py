"""A spanning tree that grows by exchanges, where no node knows the whole network.

Every node has a priority, which follows from its name. The node of the least priority becomes the
root. Nodes tell each other in every exchange the priority of the root that they know of, their
distance from it, and whether they take the other node for their parent. A node takes another one
for its parent if that leads to a lower root, or to the same root in fewer steps. Both ends of an
exchange come to the same conclusions from what they told each other.

Pairs of root and distance only decrease, and that of a parent is always less than that of its
child: so there are never cycles, and the tree becomes one of shortest paths. All that follows from
the exchanges alone, which can be replayed.

A node that changes its parent is counted twice at first: its former parent learns of that in their
next exchange, and subtracts what it has counted. Both ends of an edge keep that sum until then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

Sums = tuple[float, ...]  # one for each state

MAX_PRIORITY = 2.0**48  # priorities have 48 bits
MAX_DISTANCE = 2.0**20  # more steps from the root than a network has nodes


def priority_of(name: str) -> float:
    """Return the priority of a node: a number from 0 to 2**48 that looks random."""
    return float(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=6).digest(), "big"))


class Place(NamedTuple):
    """A node's place in the tree, as it tells another node."""

    root: float  # priority
    distance: float
    is_child: float  # 1 if it takes the other node for its parent, else 0

    def leads_to_parent(self, other: Place) -> bool:
        """Return whether a node here takes a node at the other place for its parent from now on."""
        return self.is_child == 1.0 or (other.root, other.distance + 1.0) < (
            self.root,
            self.distance,
        )


class TreeSnapshot(NamedTuple):
    """The state of a node's place in a tree."""

    root: float
    distance: float
    parent: str
    sent: dict[str, Sums]
    received: dict[str, Sums]


class GrowingTree:
    """A node's place in the tree, and the sums that have passed over its edges."""

    def __init__(self, name: str) -> None:
        self.root, self.distance, self.parent = priority_of(name), 0.0, ""
        self.sent: dict[str, Sums] = {}  # what present and former parents have counted of this node
        # What this node has counted of present and former children.
        self.received: dict[str, Sums] = {}

    @property
    def neighbours(self) -> set[str]:
        """Parent and children, and former ones as long as they, or this node, are still counted."""
        return {self.parent, *self.sent, *self.received} - {""}

    def place(self, neighbour: str) -> Place:
        """Return what the node tells a neighbour of its place."""
        return Place(self.root, self.distance, 1.0 if neighbour == self.parent else 0.0)

    def role(self, neighbour: str, theirs: Place) -> float:
        """Return 1 if a neighbour at a place is the parent from now on, -1 if a child, else 0."""
        mine = self.place(neighbour)
        return float(mine.leads_to_parent(theirs)) - float(theirs.leads_to_parent(mine))

    def follow(self, neighbour: str, theirs: Place) -> None:
        """Take a neighbour for the parent."""
        self.parent, self.root, self.distance = neighbour, theirs.root, theirs.distance + 1.0

    def change_sums(self, change: Callable[[Sums], Sums]) -> None:
        """Change all sums that have passed over edges."""
        self.sent = {name: change(sums) for name, sums in self.sent.items()}
        self.received = {name: change(sums) for name, sums in self.received.items()}

    def snapshot(self) -> TreeSnapshot:
        """Return the state."""
        return TreeSnapshot(
            self.root, self.distance, self.parent, dict(self.sent), dict(self.received)
        )

    def restore(self, saved: TreeSnapshot) -> None:
        """Set the state from a snapshot."""
        self.root, self.distance, self.parent, sent, received = saved
        self.sent, self.received = dict(sent), dict(received)
