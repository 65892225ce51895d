"""Records: the events that change a node's state, as they are written to its journal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated, NamedTuple

import msgspec

from gosta.estimation.visitor import Contribution
from gosta.net.protocol.messages import Announcement, Receipt, Seal, Signed
from gosta.private.snapshots import Contributed, RowSnapshot

Count = Annotated[int, msgspec.Meta(ge=0)]
# At this relative error, a new epoch's estimate replaces the old one, however good that was.
SUFFICIENT_ERROR = 0.01


class PartReport(msgspec.Struct, frozen=True):
    """One of several statistics that are estimated together."""

    statistic: str  # as it was asked for
    value: tuple[float, ...]
    low: float | None  # ends of the confidence interval
    high: float | None
    expected_error: float | None  # relative, of gossip; None: too few readings so far
    no_interval: str = ""  # why nodes compute none


class Report(msgspec.Struct, frozen=True, array_like=True):
    """A node's estimate, a confidence interval, and the error that it expects."""

    epoch: int
    value: tuple[float, ...]  # of several statistics, one after the other
    low: float | None  # None for several statistics
    high: float | None
    # relative, of gossip, the largest of several; None: too few readings so far
    expected_error: float | None
    fingerprint: str  # of the statistic, the protocol and the members
    sites: int  # whose rows count
    rows: int  # at these sites together
    missing: tuple[str, ...]  # members whose rows do not count
    # `expected_error` of each value, where the statistic has several
    value_errors: tuple[float | None, ...] = ()
    statistics: tuple[PartReport, ...] = ()  # each of several

    def is_better_than(self, previous: Report | None) -> bool:
        """Return whether to report this instead of an earlier epoch's report."""
        if previous is None:
            return True
        if self.expected_error is None or len(self.value) != len(previous.value):
            return False
        distance = relative_distance(previous.value, self.value, self.statistics)
        # A distance above the expected error means that the earlier estimate no longer holds.
        return self.expected_error <= max(
            SUFFICIENT_ERROR, previous.expected_error or 0.0, distance
        )


def relative_distance(
    value: tuple[float, ...], other: tuple[float, ...], statistics: Sequence[PartReport] = ()
) -> float:
    """Return the distance of values from others, relative to these.

    Of several statistics, the largest one.
    """
    distances, start = [], 0
    for stop in (
        accumulate(len(statistic.value) for statistic in statistics) if statistics else [len(other)]
    ):
        values = other[start:stop]
        distances.append(math.dist(value[start:stop], values) / (math.hypot(*values) or 1.0))
        start = stop
    return max(distances)


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
    contributed: Contributed | None  # None: that of the first round, which shows the same rows
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


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(AnyRecord | AnySumRecord).decode


def tag_of(record: Record | type[Record]) -> str:
    """Return the name of a record's type, as in its encoding.

    >>> tag_of(ExchangeConfirmed(7)), encode(ExchangeConfirmed(7))
    ('exchange-confirmed', b'\\x92\\xb2exchange-confirmed\\x07')
    """
    return str(record.__struct_config__.tag)
