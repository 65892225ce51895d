"""Statements of private sums: what sites sign in an epoch, and how nodes pass it on.

They spread by union, and mean the same in every order: neighbours tell what they have, and a node
asks for the rest.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from gosta.net.limits import MAX_ROUNDS, MAX_STATEMENTS, MAX_SUMS
from gosta.net.members import Trust
from gosta.net.protocol.messages import (
    DECODE_ERRORS,
    Count,
    Digest,
    ListDigest,
    Name,
    Rejected,
    Signed,
    StatementId,
)
from gosta.private.deviations import CHECKS
from gosta.private.masks import MAX_PARTNERS
from gosta.runtime.arrays import Words

MAX_PARTICIPANTS = 1000
RETRY_SECONDS = 1.0  # until a statement is asked for again, if contributions are small
LEAST_BYTES_PER_SECOND = 128 * 1024  # of a connection, on which larger ones take longer
# Bytes of contributions that a neighbour is asked for at a time: a connection's buffer holds them.
WINDOW_BYTES = 48 * 1024
MAX_GIVEN = 20  # times that a neighbour is given the same statement
Key = Annotated[bytes, Meta(max_length=32)]
Hash = Annotated[bytes, Meta(min_length=32, max_length=32)]


class Slot(NamedTuple):
    """What a site may say once in an epoch."""

    kind: str
    home: str
    round: int = 0


class Statement(msgspec.Struct, frozen=True, array_like=True):
    """Base class of all statements: which site makes it, and in which epoch."""

    epoch: Count
    origin: Name  # the node that started the epoch
    home: Name

    @property
    def slot(self) -> Slot:
        return Slot(str(self.__struct_config__.tag), self.home)


class Join(Statement, frozen=True, tag="join"):
    """The site takes part, with this key; or it does not."""

    key: Key  # its public key of this epoch; empty: it does not take part
    # keyed digest of the rows that it contributes: another one whenever these change
    snapshot: Digest
    nonce: Hash  # SHA-256 of the number that it adds to the beacon
    agrees: bool  # its sums may be computed from the difference of totals with and without it
    min_cell: Count  # bins with fewer rows are merged before anything is shown
    list_serial: Count  # of the member list that the site has accepted
    # Of that list, which also says what is computed: all participants have the same one.
    list_digest: ListDigest


class Roster(Statement, frozen=True, tag="roster"):
    """The participants, by the node that started the epoch."""

    participants: Annotated[
        tuple[tuple[Name, StatementId], ...], Meta(min_length=2, max_length=MAX_PARTICIPANTS)
    ]


class Nonce(Statement, frozen=True, tag="nonce"):
    """The number that a site adds to the beacon, to which it committed when it joined."""

    roster: StatementId
    value: Hash


class RoundStatement(Statement, frozen=True):
    """Base class of statements that a site makes once in each round."""

    roster: StatementId
    round: Annotated[int, Meta(ge=1, le=MAX_ROUNDS)]

    @property
    def slot(self) -> Slot:
        return Slot(str(self.__struct_config__.tag), self.home, self.round)


class Commit(RoundStatement, frozen=True, tag="commit"):
    """A digest of the contribution, before any contribution is shown."""

    digest: Hash  # SHA-256 of the vector


class Part(RoundStatement, frozen=True, tag="part"):
    """A site's contribution to the total: its sums with pads, masked."""

    commits: StatementId  # digest of all commitments: who knows others has not the same total
    vector: Annotated[bytes, Meta(max_length=8 * (MAX_SUMS + CHECKS))]


class Opening(RoundStatement, frozen=True, tag="opening"):
    """A site's masks summed over the halves that show who deviates, partner by partner."""

    words: Annotated[bytes, Meta(max_length=8 * CHECKS * MAX_PARTNERS)]


class Refusal(Statement, frozen=True, tag="refusal"):
    """The site does not contribute, by its policy: the epoch has no total."""

    roster: StatementId
    # sites whose agreement is missing
    needs: Annotated[tuple[Name, ...], Meta(max_length=MAX_PARTICIPANTS)]


AnyStatement = Join | Roster | Nonce | Commit | Part | Opening | Refusal
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(AnyStatement).decode


def sign(statement: AnyStatement, network: str, trust: Trust) -> Signed:
    body = _encode(statement)
    return Signed(body, trust.sign(_signed_bytes(network, body)))


def read(signed: Signed) -> AnyStatement:
    """Return the statement; its signature is checked by `verify`."""
    try:
        statement: AnyStatement = _decode(signed.body)
    except DECODE_ERRORS as error:
        raise Rejected("malformed", str(error)[:200]) from None
    if _encode(statement) != signed.body:
        raise Rejected(
            "malformed", "a statement is not encoded in the shortest way"
        )  # its id could be chosen
    return statement


def verify(signed: Signed, home: str, network: str, trust: Trust) -> bool:
    return trust.verify(home, _signed_bytes(network, signed.body), signed.signature)


def id_of(signed: Signed) -> bytes:
    return hashlib.sha256(signed.body).digest()[:16]


def digest_of(ids: list[bytes]) -> bytes:
    """Return a digest of a set of statements."""
    return hashlib.sha256(b"".join(sorted(ids))).digest()[:16]


def _signed_bytes(network: str, body: bytes) -> bytes:
    return _encode(("gosta statement", network, body))


def pack(vector: Words) -> bytes:
    return vector.astype("<u8").tobytes()


def unpack(vector: bytes) -> Words:
    return np.frombuffer(vector, dtype="<u8").astype(np.uint64)


class Pool:
    """The statements of one epoch."""

    def __init__(self) -> None:
        self.statements: dict[bytes, Signed] = {}  # by id
        self.slots: dict[Slot, tuple[bytes, AnyStatement]] = {}
        self.news: list[bytes] = []  # that neighbours have not been told of
        self.given: Counter[tuple[str, bytes]] = Counter()  # how often each neighbour got them
        self._held = b""
        self._offered: dict[str, dict[bytes, None]] = {}  # what a neighbour has and this node lacks
        self._wanted: dict[bytes, tuple[str, float]] = {}  # who was asked for them, and when
        # neighbours that gave a statement which its home did not sign
        self._forgers: set[str] = set()

    def insert(self, signed: Signed, slot: Slot | None = None) -> None:
        """Add a statement that was checked, or is this node's own.

        Another slot than its own is for evidence.
        """
        statement, id = read(signed), id_of(signed)
        self.statements[id], self.slots[slot or statement.slot] = signed, (id, statement)
        self._wanted.pop(id, None)
        self._held = b""
        self.news.append(id)

    def held(self) -> bytes:
        """Return a digest of the statements that this node has."""
        if not self._held:
            self._held = digest_of(list(self.statements))
        return self._held

    def take_news(self) -> list[bytes]:
        """Return the statements that neighbours are now told of."""
        news, self.news = self.news, []
        return news

    def note_offers(self, sender: str, ids: Sequence[bytes]) -> None:
        """Note what a neighbour has."""
        offered = self._offered.setdefault(sender, {})
        offered.update(dict.fromkeys(id for id in ids if id not in self.statements))
        while len(offered) > MAX_STATEMENTS:
            offered.pop(next(iter(offered)))

    def ask(self, sender: str, now: float, size: int) -> list[bytes]:
        """Return what to ask a neighbour for now; `size` is that of a contribution in bytes."""
        offered = self._offered.get(sender, {})
        for id in [id for id in offered if id in self.statements]:
            del offered[id]
        if sender in self._forgers:
            return []
        retry = max(RETRY_SECONDS, size / LEAST_BYTES_PER_SECOND)
        waiting = sum(
            asked == sender and now - then < 2 * retry for asked, then in self._wanted.values()
        )
        window = max(0, max(1, WINDOW_BYTES // size) - waiting)
        lacking = [id for id in offered if self._may_ask(sender, id, now, retry)][:window]
        self._wanted.update(dict.fromkeys(lacking, (sender, now)))
        return lacking

    def _may_ask(self, sender: str, id: bytes, now: float, retry: float) -> bool:
        """Return whether to ask for a statement: who did not answer is asked later than others."""
        asked, then = self._wanted.get(id, ("", -inf))
        return now - then >= retry * (2 if asked == sender else 1)

    def postpone(self, sender: str, id: bytes) -> None:
        """Note that a statement arrived which cannot be used yet."""
        self._offered.get(sender, {}).pop(id, None)
        self._wanted.pop(id, None)

    def distrust(self, sender: str) -> None:
        """Ask a neighbour for nothing more in this epoch."""
        self._forgers.add(sender)
        self._wanted = {id: asked for id, asked in self._wanted.items() if asked[0] != sender}

    def answers(self, sender: str, ids: Sequence[bytes]) -> Iterator[Signed]:
        """Yield the statements that a neighbour asks for, unless it got them often already."""
        for id in (id for id in ids if id in self.statements):
            self.given[sender, id] += 1
            if self.given[sender, id] <= MAX_GIVEN:
                yield self.statements[id]
