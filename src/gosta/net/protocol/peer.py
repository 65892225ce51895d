"""The state machine of one node: messages in, records and messages out; no socket, no clock, no randomness.

**Exactly-once exchanges.** An exchange swaps two visitors; applied on one side only, it would lose one visitor and
duplicate the other, and the estimate would be wrong for good. Therefore a node writes its offer to the journal before
it sends it, and takes part in no other exchange until the offer is answered; it may resend the offer, also after a
crash. The receiver writes one final reply to the journal, together with the exchange if it accepts, before it sends the
reply; the same offer gets the same reply again. So both sides complete the exchange or neither does, wherever either
crashes and whatever messages are lost, repeated or late.

**Epochs.** A node that learns of a later epoch starts it: its visitor is at home and its estimate empty. A new epoch
starts when nodes join or leave and when rows change. It also starts when a node lost its journal, which its neighbours
detect: the incarnation of the new journal is greater than that of the node they exchanged with, or the two count
different numbers of exchanges with each other.

The state follows from the records alone: `apply` is the only method that changes it, also after a restart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from gosta.errors import GostaError
from gosta.estimation.exchange import MAX_SAMPLE_ROWS, Contribution, Estimator, NodeSnapshot
from gosta.net.limits import MAX_EPOCHS_AHEAD, MAX_HOMES
from gosta.net.protocol import messages as wire
from gosta.net.protocol.records import EpochStarted, ExchangeCompleted, OfferRejected, OfferSent, OfferWithdrawn, Record
from gosta.net.protocol.report import Readings, Report, make_report


class Identity(NamedTuple):
    """The fields by which a node identifies itself in every message."""

    name: str
    network: str
    fingerprint: str  # of what is computed and how
    incarnation: int


class Step(NamedTuple):
    """Records to write to the journal, then messages to send; then the records are passed to `Peer.apply`."""

    records: tuple[Record, ...] = ()
    messages: tuple[tuple[str, bytes], ...] = ()  # receiver, encoded message
    event: str = ""  # name of the counter to increment


class EpochSource(Protocol):
    """Provides a node's state at the start of an epoch."""

    @property
    def digest(self) -> str:
        """Digest of the rows, neighbours and settings with which a new epoch would start."""

    def estimator(self) -> Estimator:
        """Return the node's state at the start of an epoch."""


class Reply(NamedTuple):
    """The last reply to a neighbour's offer."""

    incarnation: int  # of the neighbour
    id: int  # of the offer
    digest: bytes  # of the contribution that was offered
    message: bytes


class Snapshot(msgspec.Struct, array_like=True):
    """The state of a peer, so that a restart need not apply all records."""

    epoch: int
    digest: str
    incarnation: int
    next_id: int
    pending: OfferSent | None
    replies: dict[str, Reply]
    incarnations: dict[str, int]
    exchanges: dict[str, int]
    previous_report: Report | None
    current_report: Report | None
    times: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    estimator: NodeSnapshot


_encode = msgspec.msgpack.Encoder().encode
_decode_snapshot = msgspec.msgpack.Decoder(Snapshot).decode


class Peer:
    """The protocol state of one node."""

    def __init__(
        self, identity: Identity, source: EpochSource, neighbours: Collection[str], level: float | None = None
    ) -> None:
        self.identity, self.source, self.neighbours, self.level = identity, source, neighbours, level
        self.epoch, self.digest = 0, ""  # the current epoch, and the digest of its rows, neighbours and settings
        self.incarnation = identity.incarnation  # greater after the journal was lost or rolled back
        self.next_id = 1  # of an offer
        self.pending: OfferSent | None = None  # the offer that waits for a reply
        self.is_overloaded = False  # set by the node: offers are answered with `busy`
        self.replies: dict[str, Reply] = {}  # the last one to each neighbour
        self.previous_report: Report | None = None  # the best one of earlier epochs
        self._reset()

    def _reset(self) -> None:
        self.estimator, self.readings, self.pending = self.source.estimator(), Readings(), None
        self._payload_length = len(self.estimator.contribution(1.0).payload)
        self.incarnations: dict[str, int] = {}  # of the neighbours with which it exchanged in this epoch,
        self.exchanges: dict[str, int] = {}  # the number of these exchanges,
        self.payloads: dict[str, tuple[float, ...]] = {}  # and the last payloads

    def apply(self, record: Record) -> None:
        """Change the state by a record that is in the journal."""
        match record:
            case EpochStarted():
                self.epoch, self.digest, self.previous_report = record.epoch, record.digest, record.report
                self.incarnation = max(self.incarnation, record.incarnation)
                self._reset()
            case OfferSent():
                self.pending, self.next_id = record, record.id + 1
            case OfferWithdrawn():
                self.pending = None
            case OfferRejected():
                self.replies[record.partner] = Reply(record.incarnation, record.id, record.digest, record.reply)
            case ExchangeCompleted():
                self._apply_exchange(record)

    def _apply_exchange(self, record: ExchangeCompleted) -> None:
        if record.is_initiator:
            self.pending = None
        else:
            self.replies[record.partner] = _reply_in(record)
        self.estimator.exchange(record.theirs, self.edge_share(record.partner))
        self.incarnations[record.partner] = record.incarnation
        self.exchanges[record.partner] = self.exchanges.get(record.partner, 0) + 1
        self.payloads[record.partner] = record.theirs.payload
        self.readings.record(self.estimator)

    def edge_share(self, neighbour: str) -> float:
        """Return the share of this node's exchanges that are with a neighbour, estimated from those so far."""
        return (self.exchanges.get(neighbour, 0) + 1) / (self.estimator.exchanges + max(1, len(self.neighbours)))

    def report(self) -> Report | None:
        """Return the report of this epoch, or of an earlier one as long as that is better."""
        current = make_report(self.estimator, self.readings, self.epoch, self.level, self.identity.fingerprint)
        previous = self.previous_report
        if previous is not None and previous.fingerprint != self.identity.fingerprint:
            previous = None  # it is of another statistic
        return current if current is not None and current.is_better_than(previous) else previous

    def start_epoch(self, reason: str, epoch: int | None = None, after_incarnation: int = 0) -> Step:
        """Start an epoch, by default the next one; optionally with an incarnation greater than a given one."""
        epoch = self.epoch + 1 if epoch is None else epoch
        incarnation = max(self.incarnation, after_incarnation + 1 if after_incarnation else 0)
        record = EpochStarted(epoch, self.source.digest, reason, incarnation, self.report())
        return Step((record,), (), "epochs")

    def offer(self, to: str) -> Step:
        """Offer a neighbour an exchange; no other offer may be pending."""
        record = OfferSent(self.next_id, to)
        return Step((record,), ((to, self._encode_offer(record)),), "offers")

    def resend_offer(self) -> Step:
        assert self.pending is not None
        return Step((), ((self.pending.to, self._encode_offer(self.pending)),), "offers resent")

    def _encode_offer(self, record: OfferSent) -> bytes:
        return wire.encode(wire.Offer(*self._head(), record.id, self._contribution(record.to)))

    def _contribution(self, neighbour: str) -> Contribution:
        exchanges = self.exchanges.get(neighbour, 0)
        return self.estimator.contribution(self.edge_share(neighbour), edge_exchanges=exchanges)

    def _head(self) -> tuple[int, str, str, int, int]:
        return wire.VERSION, self.identity.network, self.identity.fingerprint, self.epoch, self.incarnation

    def ping(self, neighbour: str) -> Step:
        return Step((), ((neighbour, wire.encode(wire.Ping(*self._head()))),))

    def receive(self, sender: str, raw: bytes) -> Iterator[Step]:
        """Yield the steps that a message leads to; each is to be carried out before the next one is requested.

        Raises `messages.Rejected` for a message that cannot be used; the state is unchanged then.
        """
        message = wire.decode(raw)
        mismatch = self._find_mismatch(message)
        match message:
            case wire.Offer():
                yield from self._handle_offer(sender, message, mismatch)
            case wire.Accept() | wire.Busy() | wire.Decline():
                yield from self._handle_reply(sender, message, mismatch)
            case _ if mismatch is not None or message.incarnation < self.incarnations.get(sender, 0):
                raise wire.Rejected(mismatch or "stale")
            case wire.Ping() | wire.Pong():
                yield from self._follow_epoch(sender, message)
                if isinstance(message, wire.Ping):
                    yield Step((), ((sender, wire.encode(wire.Pong(*self._head()))),))

    def _follow_epoch(self, sender: str, message: wire.AnyMessage) -> Iterator[Step]:
        if message.epoch > self.epoch:
            yield self.start_epoch(f"{sender} is in epoch {message.epoch}", message.epoch)
        if message.incarnation > self.incarnations.get(sender, message.incarnation):
            yield self.start_epoch(f"{sender} has a new journal")
        if message.epoch == self.epoch and self._counts_differ(sender, message):
            yield self.start_epoch(f"{sender} counts other exchanges with this node than this node does")

    def _counts_differ(self, sender: str, message: wire.AnyMessage) -> bool:
        # While this node waits for a reply, the sender of an offer may count one that this node does not know of yet.
        if isinstance(message, wire.Accept) or (isinstance(message, wire.Offer) and self.pending is None):
            return message.contribution.edge_exchanges != self.exchanges.get(sender, 0)
        return False

    def _find_mismatch(self, message: wire.AnyMessage) -> str | None:
        """Return the field in which sender and receiver differ, so that they cannot exchange."""
        if message.version != wire.VERSION:
            return "version"
        if message.network != self.identity.network:
            return "network"
        if message.fingerprint != self.identity.fingerprint:
            return "statistic"
        return "epoch" if message.epoch > self.epoch + MAX_EPOCHS_AHEAD else None

    def _handle_offer(self, sender: str, offer: wire.Offer, mismatch: str | None) -> Iterator[Step]:
        last, number = self.replies.get(sender), (offer.incarnation, offer.id)
        if last is not None and number == (last.incarnation, last.id) and _digest(offer.contribution) == last.digest:
            yield Step((), ((sender, last.message),), "replies resent")
            return
        if last is not None and number <= (last.incarnation, last.id):
            yield self._decline(sender, offer, "stale")  # it is late, or the sender's journal lost its last records
            return
        if mismatch is not None or not self._is_valid(offer):
            yield self._decline(sender, offer, mismatch or "visitor")
            return
        yield from self._follow_epoch(sender, offer)
        if offer.epoch < self.epoch:
            yield self._decline(sender, offer, "epoch")
        elif self.pending is not None or self.is_overloaded:
            reply = wire.encode(wire.Busy(*self._head(), offer.id))
            rejected = OfferRejected(sender, offer.incarnation, offer.id, _digest(offer.contribution), reply)
            yield Step((rejected,), ((sender, reply),), "busy")
        else:
            reply = wire.encode(wire.Accept(*self._head(), offer.id, self._contribution(sender)))
            completed = ExchangeCompleted(sender, offer.incarnation, offer.id, False, offer.contribution, reply)
            yield Step((completed,), ((sender, reply),), "exchanges accepted")

    def _decline(self, sender: str, offer: wire.Offer, reason: str) -> Step:
        """Reject an offer for a reason that lasts: it needs no record, since the offer would be rejected again."""
        last = self.replies.get(sender)
        known = max(self.incarnations.get(sender, 0), 0 if last is None else last.incarnation)
        reply = wire.encode(wire.Decline(*self._head(), offer.id, reason, known))
        return Step((), ((sender, reply),), f"rejected: {reason}")

    def _handle_reply(
        self, sender: str, message: wire.Accept | wire.Busy | wire.Decline, mismatch: str | None
    ) -> Iterator[Step]:
        pending, known = self.pending, self.incarnations.get(sender, message.incarnation)
        if pending is None or (sender, message.id) != (pending.to, pending.id) or message.incarnation < known:
            raise wire.Rejected(mismatch or "stale")
        reason = message.reason if isinstance(message, wire.Decline) else ""
        if isinstance(message, wire.Accept):
            if mismatch is not None or message.epoch != self.epoch or not self._is_valid(message):
                raise wire.Rejected(mismatch or ("stale" if message.epoch != self.epoch else "visitor"))
        elif mismatch is not None:  # the rejection counts, also from a node that computes something else
            yield self._withdraw(reason)
            return
        elif isinstance(message, wire.Decline) and reason == "stale":
            why = "this node's journal lost its last records, or two processes run the node"
            newest = max(self.incarnation, message.known_incarnation)
            yield self.start_epoch(why, max(self.epoch, message.epoch) + 1, after_incarnation=newest)
            return
        yield from self._follow_epoch(sender, message)
        if self.pending is not pending:
            return
        if isinstance(message, wire.Accept):
            completed = ExchangeCompleted(sender, message.incarnation, pending.id, True, message.contribution, b"")
            yield Step((completed,), (), "exchanges initiated")
        else:
            yield self._withdraw(reason)

    def _withdraw(self, reason: str) -> Step:
        assert self.pending is not None
        event = f"declined: {reason}" if reason in wire.REASONS else "offers rejected"
        return Step((OfferWithdrawn(self.pending.id),), (), event)

    def _is_valid(self, message: wire.Offer | wire.Accept) -> bool:
        # The lengths and numbers must be valid, the visitor's home as known from earlier visits, and the kernel must be
        # able to evaluate the visitor.
        estimator, rows, visitor = self.estimator, self.estimator.rows, message.contribution.visitor
        has_visitors = estimator.protocol.visitors > 0
        columns, sample = (rows.estimand.x.shape[1], MAX_SAMPLE_ROWS) if has_visitors else (0, 0)
        if not wire.is_valid(message.contribution, self._payload_length, columns, sample, rows.width):
            return False
        home = visitor.rows, visitor.diagonal
        is_known = estimator.homes.get(visitor.home, home) == home and len(estimator.homes) <= MAX_HOMES
        if message.epoch == self.epoch and not is_known:
            return False
        try:
            if visitor.sample:
                rows.kernel_means(visitor.sample)  # cached for the exchange
        except GostaError:
            return False
        return True

    def snapshot(self) -> bytes:
        head = self.epoch, self.digest, self.incarnation, self.next_id, self.pending
        neighbours = self.replies, self.incarnations, self.exchanges
        reports = self.previous_report, self.report()
        readings = tuple(self.readings.times), tuple(self.readings.values)
        return _encode(Snapshot(*head, *neighbours, *reports, *readings, self.estimator.snapshot()))

    def restore(self, snapshot: bytes | None, records: Sequence[Record]) -> None:
        """Restore the state from a snapshot and the records after it, except for what concerns other rows."""
        if snapshot is not None:
            self._load(_decode_snapshot(snapshot))
        for record in records:
            if not isinstance(record, ExchangeCompleted) or self.digest == self.source.digest:
                self.apply(record)
            elif not record.is_initiator:
                self.replies[record.partner] = _reply_in(record)

    def _load(self, saved: Snapshot) -> None:
        self.epoch, self.digest, self.next_id = saved.epoch, saved.digest, saved.next_id
        self.incarnation = max(self.incarnation, saved.incarnation)
        self.replies, self.previous_report, self.pending = saved.replies, saved.previous_report, saved.pending
        if self.digest != self.source.digest:
            self.previous_report = saved.current_report
            return
        self.incarnations, self.exchanges = saved.incarnations, saved.exchanges
        self.readings = Readings(saved.times, saved.values)
        self.estimator.restore(saved.estimator)


def _digest(contribution: Contribution) -> bytes:
    return hashlib.blake2b(_encode(contribution), digest_size=8).digest()


def _reply_in(record: ExchangeCompleted) -> Reply:
    return Reply(record.incarnation, record.id, _digest(record.theirs), record.reply)
