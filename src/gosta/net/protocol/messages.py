"""Messages between neighbours: MessagePack arrays, specified with examples in docs/wire.md."""

from __future__ import annotations

from contextlib import suppress
from math import isfinite
from typing import Annotated

import msgspec

from gosta.estimation.exchange import Contribution
from gosta.net.limits import MAX_COUNT, MAX_ESTIMATE, MAX_NAME_CHARACTERS, MAX_ROW_VALUE, MAX_ROWS

VERSION = 2  # of the wire format
DECODE_ERRORS = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
REASONS = ("malformed", "version", "network", "statistic", "epoch", "stale", "visitor")
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
Text = Annotated[str, msgspec.Meta(max_length=200)]


class Rejected(Exception):  # noqa: N818 - not an error of this program
    """A message that cannot be used, for one of REASONS."""


class Message(msgspec.Struct, frozen=True, array_like=True):
    """The fields at the beginning of every message, after its kind."""

    version: Count
    network: Text
    fingerprint: Text  # of what is computed and how: see `gosta.net.node.source.fingerprint`
    epoch: Count
    incarnation: Count  # creation time of the sender's journal in microseconds; a node that lost it gets a greater one


class Offer(Message, frozen=True, tag="offer"):
    """Offers an exchange; the sender takes part in no other until it is answered."""

    id: Count
    contribution: Contribution


class Accept(Message, frozen=True, tag="accept"):
    """Accepts an offer: the exchange has taken place at the sender."""

    id: Count
    contribution: Contribution  # of the sender, before the exchange


class Busy(Message, frozen=True, tag="busy"):
    """Rejects an offer because the sender waits for a reply itself, or is overloaded."""

    id: Count


class Decline(Message, frozen=True, tag="decline"):
    """Rejects an offer that would be rejected again."""

    id: Count
    reason: Text
    known_incarnation: Count = 0  # the greatest incarnation of the receiver that the sender has seen


class Ping(Message, frozen=True, tag="ping"):
    """Checks that a silent neighbour is alive."""


class Pong(Message, frozen=True, tag="pong"):
    """Answers a ping."""


class _Head(msgspec.Struct, array_like=True):
    kind: str
    version: int


AnyMessage = Offer | Accept | Busy | Decline | Ping | Pong
encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(AnyMessage)
_head_decoder = msgspec.msgpack.Decoder(_Head)


def decode(raw: bytes) -> AnyMessage:
    """Decode a message; raise `Rejected` if it is malformed, or of a version with other fields."""
    version = VERSION
    with suppress(*DECODE_ERRORS):
        message: AnyMessage = _decoder.decode(raw)
        return message
    with suppress(*DECODE_ERRORS):
        version = _head_decoder.decode(raw).version
    raise Rejected("malformed" if version == VERSION else "version")


def is_valid(theirs: Contribution, payload_length: int, columns: int, sample: int, values: int) -> bool:
    """Return whether all parts of a contribution have the right lengths, and all numbers are within bounds."""
    visitor = theirs.visitor
    return (
        len(theirs.payload) == payload_length
        and 0.0 < theirs.edge_share <= 1.0
        and 0 <= theirs.edge_exchanges <= theirs.exchanges < MAX_COUNT
        and 0 < theirs.rows < MAX_ROWS
        and 0 < visitor.rows < MAX_ROWS
        and 0 < len(visitor.home) <= MAX_NAME_CHARACTERS
        and len(visitor.sample) == min(visitor.rows, sample)
        and all(len(row) == columns for row in visitor.sample)
        and len(visitor.correction) == (values if visitor.sample else 0)
        and len(visitor.diagonal) == values
        and _within([*theirs.payload, *visitor.correction, *visitor.diagonal], MAX_ESTIMATE)
        and _within([number for row in visitor.sample for number in row], MAX_ROW_VALUE)
    )


def _within(numbers: list[float], bound: float) -> bool:
    return all(map(isfinite, numbers)) and max(map(abs, numbers), default=0.0) <= bound
