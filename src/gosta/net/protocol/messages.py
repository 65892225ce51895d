"""Messages between neighbours: MessagePack arrays, specified in docs/reference/wire.md."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Annotated, Final, NamedTuple

import msgspec

from gosta.estimation.visitor import Contribution, Visitor
from gosta.net.addresses import NAME_PATTERN
from gosta.net.limits import (
    MAX_COUNT,
    MAX_ESTIMATE,
    MAX_MESSAGE_BYTES,
    MAX_NAME_CHARACTERS,
    MAX_ROW_VALUE,
    MAX_ROWS,
    MAX_STATEMENTS,
)

DECODE_ERRORS = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
Text = Annotated[str, msgspec.Meta(max_length=200)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_CHARACTERS)]
Signature = Annotated[bytes, msgspec.Meta(max_length=64)]  # Ed25519; empty without TLS
Digest = Annotated[bytes, msgspec.Meta(max_length=16)]
ListDigest = Annotated[bytes, msgspec.Meta(max_length=32)]

# Reasons for which a message is rejected.
REASONS: Final = (
    *("malformed", "late", "withdrawn", "row limit", "epoch", "member", "rows"),
    *("values", "visitor", "signature", "counts", "receipt", "statement"),
)
HONEST_REASONS = ("late", "withdrawn", "row limit")  # for which the sender need not be to blame


class Rejected(Exception):  # noqa: N818 - not an error of this program
    """A message that cannot be used, for one of REASONS.

    `is_blamed`: no honest node would have sent it.
    """

    def __init__(self, reason: str, detail: str = "", is_blamed: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail
        self.is_blamed = is_blamed and reason not in HONEST_REASONS


class Seal(NamedTuple):
    """The proof that a visitor is from its home; the number of its trip shows duplicates."""

    trip: Count
    signature: Signature


class Announcement(NamedTuple):
    """The start of an epoch, signed by the node that started it."""

    epoch: Count
    origin: Name
    reason: Text
    signature: Signature

    @property
    def epoch_id(self) -> tuple[int, str]:
        """The number of the epoch, and the node that started it."""
        return self.epoch, self.origin


class Receipt(NamedTuple):
    """A node's signature over all exchanges with a neighbour in an epoch."""

    epoch: Count
    exchanges: Count
    digest: Digest
    signature: Signature


class Message(msgspec.Struct, frozen=True, array_like=True):
    """Base class of all messages."""


class Proposal(Message, frozen=True):
    """Base class of the two messages that contribute to an exchange."""

    epoch: Count
    id: Count
    contribution: Contribution
    seal: Seal


class Offer(Proposal, frozen=True, tag="offer"):
    """Offers an exchange; the sender may withdraw it at any time until it is accepted."""


class Accept(Proposal, frozen=True, tag="accept"):
    """Accepts an offer: until it is confirmed or aborted, the sender takes part in no other."""


class Confirm(Message, frozen=True, tag="confirm"):
    """Answers `accept`: the exchange has taken place at the sender."""

    id: Count


class Abort(Message, frozen=True, tag="abort"):
    """Says that an exchange never takes place: its offer is withdrawn, or `accept` rejected."""

    id: Count
    reason: Text = ""  # why the `accept` was rejected


class Busy(Message, frozen=True, tag="busy"):
    """Rejects an offer because the sender is in another exchange, or overloaded."""

    id: Count


class Decline(Message, frozen=True, tag="decline"):
    """Rejects an offer that would be rejected again."""

    id: Count
    reason: Text


class Ping(Message, frozen=True, tag="ping"):
    """A heartbeat: the sender's epoch, and its receipt for the exchanges with the receiver."""

    sent: Count  # microseconds of the sender's clock
    announcement: Announcement
    receipt: Receipt | None = None
    list_serial: Count = 0  # of the member list that the sender has accepted
    # of that list: two lists with one serial number show everybody another network
    list_digest: ListDigest = b""
    held: Digest = b""  # of the statements that it has of this epoch, in networks of private sums


class Pong(Message, frozen=True, tag="pong"):
    """Answers a ping at once, for the round trip time."""

    sent: Count  # of the ping


class Members(Message, frozen=True, tag="members"):
    """A signed member list, for a neighbour that has an older one."""

    content: bytes


class Signed(NamedTuple):
    """A statement of private sums, and the signature of its home."""

    body: Annotated[bytes, msgspec.Meta(max_length=MAX_MESSAGE_BYTES)]
    signature: Signature


StatementId = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
StatementIds = Annotated[tuple[StatementId, ...], msgspec.Meta(max_length=MAX_STATEMENTS)]


class Have(Message, frozen=True, tag="have"):
    """Statements of an epoch that the sender has."""

    epoch: Count
    origin: Name
    ids: StatementIds


class Want(Message, frozen=True, tag="want"):
    """Asks for statements."""

    ids: StatementIds


class Give(Message, frozen=True, tag="give"):
    """Answers `want`: one statement."""

    signed: Signed


AnyMessage = (
    Offer | Accept | Confirm | Abort | Busy | Decline | Ping | Pong | Members | Have | Want | Give
)
encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(AnyMessage)


def decode(raw: bytes) -> AnyMessage:
    """Decode a message; raise `Rejected` if it is malformed."""
    try:
        message: AnyMessage = _decoder.decode(raw)
    except DECODE_ERRORS as error:
        raise Rejected("malformed", str(error)[:200]) from None
    return message


def is_valid(theirs: Contribution, payload_length: int) -> bool:
    """Return whether a contribution has the right length, and its numbers are within bounds.

    See `is_valid_visitor`.
    """
    return (
        len(theirs.payload) == payload_length
        and _within(theirs.payload, MAX_ESTIMATE)
        and 0.0 < theirs.edge_share <= 1.0
        and 0 <= theirs.edge_exchanges <= theirs.exchanges < MAX_COUNT
        and 0 < theirs.rows < MAX_ROWS
    )


def is_valid_visitor(visitor: Visitor, columns: int, sample: int, values: int) -> bool:
    """Return whether the parts of a visitor have the right lengths, and numbers within bounds."""
    return (
        0 < visitor.rows < MAX_ROWS
        and NAME_PATTERN.fullmatch(visitor.home) is not None
        and len(visitor.sample) == min(visitor.rows, sample)
        and all(len(row) == columns and _within(row, MAX_ROW_VALUE) for row in visitor.sample)
        and len(visitor.correction) == (values if visitor.sample else 0)
        and len(visitor.diagonal) == values
        and _within(visitor.correction, MAX_ESTIMATE)
        and _within(visitor.diagonal, MAX_ESTIMATE)
    )


def _within(numbers: Sequence[float], bound: float) -> bool:
    return all(map(isfinite, numbers)) and max(map(abs, numbers), default=0.0) <= bound


def signed_visitor(network: str, epoch: int, visitor: Visitor) -> bytes:
    """Return the bytes that a visitor's home signs."""
    return encode(("gosta visitor", network, epoch, visitor))


def signed_announcement(network: str, epoch: int, origin: str, reason: str) -> bytes:
    return encode(("gosta epoch", network, epoch, origin, reason))


def signed_receipt(network: str, signer: str, neighbour: str, receipt: Receipt) -> bytes:
    return encode(("gosta receipt", network, signer, neighbour, receipt[:3]))
