"""What neighbours say to each other: MessagePack arrays, described with examples in docs/wire.md."""

from __future__ import annotations

from math import isfinite
from typing import Annotated

import msgspec

from gosta.estimation.exchange import Side

VERSION = 1
LARGEST_ROW = 1e50  # in size: products of kernel values of such rows are still finite
LARGEST = 1e250
FURTHEST = 2**32  # epochs that one can be behind: more is a mistake that would leave no epochs to begin
REASONS = ("garbage", "version", "network", "statistic", "epoch", "stale", "visitor")
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Text = Annotated[str, msgspec.Meta(max_length=200)]


class Refusal(Exception):  # noqa: N818 - not an error of this program
    """A message that cannot be used, and why: one of REASONS."""


class Message(msgspec.Struct, frozen=True, array_like=True):
    """What every message begins with, after its kind."""

    version: Count
    network: Text
    statistic: Text  # what is computed and how, as a fingerprint: see `gosta.net.task`
    epoch: Count
    birth: Count  # when the sender's journal was made, in microseconds: a node that lost it is another one


class Offer(Message, frozen=True, tag="offer"):
    """Let us meet; until I know your answer I do nothing else."""

    id: Count
    side: Side


class Accept(Message, frozen=True, tag="accept"):
    """We have met: this is what I had."""

    id: Count
    side: Side


class Busy(Message, frozen=True, tag="busy"):
    """Not now: I wait for an answer myself."""

    id: Count


class Decline(Message, frozen=True, tag="decline"):
    """No, and why."""

    id: Count
    reason: Text
    known: Count = 0  # the greatest birth of the other that it knows of


class Ping(Message, frozen=True, tag="ping"):
    """Are you there?"""


class Pong(Message, frozen=True, tag="pong"):
    """Yes."""


class _Head(msgspec.Struct, array_like=True):
    kind: str
    version: int


AnyMessage = Offer | Accept | Busy | Decline | Ping | Pong
encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(AnyMessage)
_head = msgspec.msgpack.Decoder(_Head)


def decode(raw: bytes) -> AnyMessage:
    """A message, if it is one."""
    try:
        message: AnyMessage = _decoder.decode(raw)
        return message
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass
    try:
        version = _head.decode(raw).version
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        version = VERSION
    raise Refusal("garbage" if version == VERSION else "version")


def fits(side: Side, told: int, columns: int, sample: int, values: int) -> bool:
    """Whether all parts of a side have the lengths they must have, and all numbers are finite and not too large."""
    visitor = side.visitor
    return (
        len(side.told) == told
        and 0.0 < side.pace <= 1.0
        and 0 <= side.together <= side.meetings < 2**53
        and 0 < side.rows < 2**40
        and 0 < visitor.rows < 2**40
        and 0 < len(visitor.home) <= 64
        and len(visitor.sample) == min(visitor.rows, sample)
        and all(len(row) == columns for row in visitor.sample)
        and len(visitor.missing) == (values if visitor.sample else 0)
        and len(visitor.diagonal) == values
        and _moderate([*side.told, *visitor.missing, *visitor.diagonal], LARGEST)
        and _moderate([number for row in visitor.sample for number in row], LARGEST_ROW)
    )


def _moderate(numbers: list[float], largest: float) -> bool:
    return all(map(isfinite, numbers)) and max(map(abs, numbers), default=0.0) <= largest
