"""What two nodes send each other in an exchange: a sample of rows, and what a node has
estimated.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_SAMPLE_ROWS = 8  # rows in a visitor

Sample = tuple[tuple[float, ...], ...]


class Visitor(NamedTuple):
    """A travelling sample of a node's rows."""

    home: str  # name of the node whose rows they are
    rows: int  # number of rows at home
    sample: Sample
    # Mean over pairs of rows at home, minus the mean of the sample with rows at home.
    correction: tuple[float, ...]
    diagonal: tuple[float, ...]  # mean kernel value of rows at home with themselves


class Contribution(NamedTuple):
    """The part of a node in an exchange, as it is sent."""

    # Numbers from the protocol's `tell` for each state; then an offset or carried means.
    payload: tuple[float, ...]
    exchanges: int  # number of exchanges of the node so far
    edge_exchanges: int  # of these, those with this neighbour
    edge_share: float  # share of this neighbour in the node's exchanges
    rows: int  # number of rows of the node
    visitor: Visitor
