"""Statements of private sums: what sites sign in an epoch. They spread by union, and mean the same in every order."""

from __future__ import annotations

import hashlib
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from gosta.net.limits import MAX_SUMS
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
from gosta.private.masks import MOST_PARTNERS

MAX_PARTICIPANTS = 1000
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
    list_digest: ListDigest  # of that list, which also says what is computed: all participants have the same one


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
    round: Annotated[int, Meta(ge=1, le=2)]

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
    """The sums of a site's masks over the halves that show who deviates, for each partner in order of their names."""

    words: Annotated[bytes, Meta(max_length=8 * CHECKS * MOST_PARTNERS)]


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


def pack(vector: NDArray[np.uint64]) -> bytes:
    return vector.astype("<u8").tobytes()


def unpack(vector: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(vector, dtype="<u8").astype(np.uint64)
