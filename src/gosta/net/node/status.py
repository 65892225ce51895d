"""What a node says of itself."""

from __future__ import annotations

import msgspec


class Neighbour(msgspec.Struct, frozen=True):
    """A neighbour, as a node sees it."""

    name: str
    connected: bool
    meetings: int  # in this epoch
    silent: float | None  # seconds since something was heard; None: nothing yet
    differs: float | None  # how far its last estimate is from the node's own, relative to that
    disagrees: str = ""  # what keeps the two from meeting, if they refuse each other: "statistic", "network", ...


class Doubt(msgspec.Struct, frozen=True):
    """An offer whose answer is not known, and which the node waits for."""

    to: str
    since: float  # seconds


class Status(msgspec.Struct, frozen=True):
    """A node, as it is now."""

    node: str
    network: str
    statistic: str
    protocol: str
    state: str  # "running", "alone" (no neighbour connected), "at odds", "in doubt", "cannot write", "stopped"
    epoch: int
    exchanges: int  # in this epoch
    rows: int  # its own
    rows_met: int  # of all nodes whose visitors it has met, itself among them
    nodes_met: int
    estimate: tuple[float, ...] | None
    low: float | None  # the interval
    high: float | None
    level: float | None
    expected_error: float | None  # relative, of gossip: what the node itself expects
    estimate_epoch: int  # the estimate may be that of an earlier epoch, until this one's is better
    agreement: float | None  # the largest of the neighbours' `differs`
    doubt: Doubt | None
    neighbours: tuple[Neighbour, ...]
    counts: dict[str, int]  # what happened since it started: "offers", "busy", "resent", "refused: REASON", ...
    uptime: float | None  # seconds; None where the node is not running and this was read from its journal
