"""Records: the events that change a node's state, as they are written to its journal."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec

from gosta.estimation.exchange import Contribution
from gosta.net.protocol.messages import Announcement, Receipt, Seal, Signed
from gosta.net.protocol.report import Report
from gosta.private.snapshots import Contributed, RowSnapshot

Count = Annotated[int, msgspec.Meta(ge=0)]


class Record(msgspec.Struct, frozen=True, array_like=True):
    """Base class of all records."""


class EpochStarted(Record, frozen=True, tag="epoch-started"):
    """The node started an epoch: its visitor is at home and its estimate empty."""

    announcement: Announcement
    digest: str  # of the rows, neighbours and settings of the epoch
    report: Report | None  # the best one until then


class ExchangeRecord(Record, frozen=True):
    """Base class of the records of an exchange."""

    partner: str
    id: Count  # of the offer
    theirs: Contribution  # of the partner, before the exchange
    seal: Seal  # of the partner's visitor


class ExchangeAccepted(ExchangeRecord, frozen=True, tag="exchange-accepted"):
    """The node accepted an offer: until it is confirmed or aborted, it takes part in no other."""


class ExchangeConfirmed(Record, frozen=True, tag="exchange-confirmed"):
    """The accepted exchange took place."""

    id: Count


class ExchangeAborted(Record, frozen=True, tag="exchange-aborted"):
    """The accepted exchange will not take place: its initiator withdrew it, or did not answer."""

    id: Count
    reason: str


class ExchangeCompleted(ExchangeRecord, frozen=True, tag="exchange-completed"):
    """The exchange that the node offered was accepted and took place."""


class ReceiptReceived(Record, frozen=True, tag="receipt-received"):
    """A neighbour's signature over the exchanges with it."""

    partner: str
    receipt: Receipt


class SumEpochStarted(Record, frozen=True, tag="sum-epoch-started"):
    """The node entered an epoch of private sums."""

    announcement: Announcement
    key: bytes  # the node's secret key of the epoch
    secret: bytes  # the site's own, of digests of rows and of noise; the same in all epochs
    wasted: tuple[str, ...]  # who let the last epoch fail for which this site had spent epsilon


class StatementMade(Record, frozen=True, tag="statement-made"):
    """The node signed a statement other than a contribution."""

    signed: Signed
    suppressed: str  # what the site's policy forbids, if that is why


class CommitMade(Record, frozen=True, tag="commit-made"):
    """The node committed to its contribution."""

    signed: Signed
    rows: RowSnapshot | None  # which it contributes; None: those of its last commit


class PartMade(Record, frozen=True, tag="part-made"):
    """The node signed its contribution."""

    signed: Signed
    contributed: Contributed
    exposes: dict[bytes, str]  # names of the participants by public key, if the total has no noise
    time: float  # in seconds since 1970


class Deviation(NamedTuple):
    """What a site did that no honest site does."""

    what: str
    # of the member list at that time: with another one, the coordinator keeps the site
    list_serial: int


class SitesNoted(Record, frozen=True, tag="sites-noted"):
    """What the node noted of other sites in the epoch."""

    deviating: dict[str, Deviation]
    agreeing: tuple[bytes, ...]  # keys of sites that agree that their sums can be computed


class Released(Record, frozen=True, tag="released"):
    """All contributions are in."""

    report: bytes  # a SumReport


AnyRecord = (
    EpochStarted
    | ExchangeAccepted
    | ExchangeConfirmed
    | ExchangeAborted
    | ExchangeCompleted
    | ReceiptReceived
)
AnySumRecord = SumEpochStarted | StatementMade | CommitMade | PartMade | SitesNoted | Released


class LogEntry(msgspec.Struct, frozen=True):
    """An entry of the log of contributions: what left this site, or why nothing did."""

    time: float  # in seconds since 1970
    event: str  # "contribution", "opening" (of masks), "suppressed", "release" or "agreement"
    epoch: int
    origin: str  # the node that started the epoch
    round: int  # 1, or 2 where the first one finds the edges of bins
    # Of a suppression: which rule of the site's policy forbids it; of an agreement: whose sums it
    # exposes.
    reason: str
    statistics: str
    columns: tuple[str, ...]
    bins: int
    strata: tuple[str, ...]
    layout: str  # fingerprint of everything that the vector of sums depends on
    rows: int  # of this site that are counted
    people: int | None  # that these rows are of; None: the policy names no column of persons
    law: str  # of the noise: "none", "laplace" or "gaussian"
    epsilon: float
    delta: float
    scale: float  # of the total's noise
    participants: tuple[str, ...]
    sent_to: tuple[str, ...]  # neighbours that were connected, which pass it on to all participants
    bytes: int  # of the contribution
    rows_per_person: int = 1  # at most
    # What its noise follows from: contributions with the same have the same noise, paid once.
    noise: str = ""
    rows_of: float = 0.0  # when the contributed rows were read from the file, in seconds since 1970

    @property
    def epoch_id(self) -> tuple[int, str]:
        """The number of the epoch, and the node that started it."""
        return self.epoch, self.origin


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(AnyRecord | AnySumRecord).decode


def tag_of(record: Record | type[Record]) -> str:
    """Return the name of a record's type, as in its encoding.

    >>> tag_of(ExchangeConfirmed(7)), encode(ExchangeConfirmed(7))
    ('exchange-confirmed', b'\\x92\\xb2exchange-confirmed\\x07')
    """
    return str(record.__struct_config__.tag)
