"""Records: the events that change a node's state, in the order in which they are written to its journal."""

from __future__ import annotations

from typing import Annotated

import msgspec

from gosta.estimation.exchange import Contribution
from gosta.net.protocol.report import Report

Count = Annotated[int, msgspec.Meta(ge=0)]


class Record(msgspec.Struct, frozen=True, array_like=True):
    """Base class of all records."""


class EpochStarted(Record, frozen=True, tag="epoch-started"):
    """The node started an epoch: its visitor is at home and its estimate empty."""

    epoch: Count
    digest: str  # of the rows, neighbours and settings of the epoch
    reason: str
    incarnation: Count  # of the node, from now on
    report: Report | None  # the best one until then


class OfferSent(Record, frozen=True, tag="offer-sent"):
    """The node offers an exchange, and takes part in no other until it is answered."""

    id: Count
    to: str


class OfferWithdrawn(Record, frozen=True, tag="offer-withdrawn"):
    """The pending offer was answered with `busy` or `decline`."""

    id: Count


class ExchangeCompleted(Record, frozen=True, tag="exchange-completed"):
    """The node took part in an exchange."""

    partner: str
    incarnation: Count  # of the initiator
    id: Count  # of the offer
    is_initiator: bool
    theirs: Contribution  # of the partner, before the exchange
    reply: bytes  # the message with which the offer was accepted; empty at the initiator


class OfferRejected(Record, frozen=True, tag="offer-rejected"):
    """An offer was answered with `busy`; the same offer gets the same reply again."""

    partner: str
    incarnation: Count
    id: Count
    digest: bytes  # of the contribution that was offered
    reply: bytes


AnyRecord = EpochStarted | OfferSent | OfferWithdrawn | ExchangeCompleted | OfferRejected
encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(AnyRecord).decode


def tag_of(record: Record | type[Record]) -> str:
    """Return the name of a record's type, as in its encoding.

    >>> tag_of(OfferWithdrawn(7)), encode(OfferWithdrawn(7))
    ('offer-withdrawn', b'\\x92\\xafoffer-withdrawn\\x07')
    """
    return str(record.__struct_config__.tag)
