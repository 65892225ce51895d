"""The state machine of one node: messages in, records and messages out.

No socket, no clock, no randomness.

**Exactly-once exchanges.** An exchange swaps two visitors; applied on one side only, it would lose
one visitor and duplicate the other. So it takes three messages:

- The initiator sends an *offer*. Nothing is written: it may withdraw the offer at any time, and a
  restart does.
- The receiver writes the offer to its journal and *accepts* it. From then on it takes part in
  nothing else until it knows whether the exchange took place; it may repeat the acceptance, also
  after a crash.
- The initiator writes the exchange to its journal and *confirms* it, or *aborts* it if the offer
  was withdrawn. Asked again, it gives the same answer.

So both sides complete the exchange or neither does, wherever either crashes and whatever messages
are lost, repeated or late. Only the receiver ever waits, and only for the initiator, which has sent
the offer a round trip ago. If no answer comes, it abandons the exchange: should the initiator have
completed it, the two count different numbers of exchanges with each other, and the next time that
they try to exchange, this is found and a new epoch starts.

**Epochs.** In a new epoch every visitor is at home and every estimate empty. One starts when nodes
join or leave, when rows change, and when a node lost its journal or its last records, which its
neighbours detect by their counts. The node that starts an epoch announces it with its signature;
nodes that learn of it follow. No node may start epochs often, and no number may be ahead of the
time, so that no node can be led to a number from which there is no way back.

**Trust.** A visitor is signed by its home, an announcement by its origin, all contributions over an
edge by both ends (a receipt). Whatever a neighbour sends is rejected unless it is within the bounds
of the statistic, of the member list and of the signatures; what is within them can be false, but
lasts no longer than the epoch. What a node accepts must never make others reject what it sends: so
it keeps to the bounds itself, and takes part in exchanges whose visitor is a second one of its
home, which only shows that the epoch is spoilt.

The state follows from the records alone: `apply` is the only method that changes it, also after a
restart. Offers, which nobody has to remember, are the exception.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from gosta.estimation.exchange import Estimator, NodeSnapshot
from gosta.estimation.visitor import Contribution, Visitor
from gosta.net.limits import SECONDS_PER_EPOCH, Budget
from gosta.net.members import Trust
from gosta.net.protocol import messages as wire
from gosta.net.protocol.checks import Checks
from gosta.net.protocol.epochs import EpochPeer, Identity, Moment, Step
from gosta.net.protocol.messages import Announcement, Receipt, Rejected, Seal
from gosta.net.protocol.records import (
    EpochStarted,
    ExchangeAborted,
    ExchangeAccepted,
    ExchangeCompleted,
    ExchangeConfirmed,
    ReceiptReceived,
    Record,
    Report,
)
from gosta.net.protocol.report import Readings, make_report

# Reason of an epoch from which on earlier estimates are not reported.
WITHDRAWN = "the site withdrew its rows"
CHANGED = "rows, neighbours, members or settings changed"  # reason of an epoch
CAUSED_EPOCHS = (
    2,
    60.0,
)  # that a node starts because of one neighbour at once, and then one per so many seconds


class EpochSource(Protocol):
    """Provides a node's state at the start of an epoch."""

    @property
    def digest(self) -> str:
        """Digest of the rows, neighbours, members and settings of a new epoch."""

    @property
    def data_digest(self) -> str:
        """Digest of the rows alone."""

    @property
    def trust(self) -> Trust:
        """The node's key and the member list."""

    def estimator(self) -> Estimator:
        """Return the node's state at the start of an epoch."""


class Transcript(NamedTuple):
    """The exchanges with a neighbour in this epoch: how many, and a digest of all contributions."""

    exchanges: int
    digest: bytes

    def extended(self, id: int, initiator: Contribution, responder: Contribution) -> Transcript:
        content = _encode((self.digest, id, initiator, responder))
        return Transcript(self.exchanges + 1, hashlib.blake2b(content, digest_size=16).digest())


EMPTY = Transcript(0, b"")


class Offered(NamedTuple):
    """An offer that waits for an answer."""

    id: int
    to: str


class Snapshot(msgspec.Struct, array_like=True):
    """The state of a peer, so that a restart need not apply all records."""

    announcement: Announcement
    digest: str
    accepted: ExchangeAccepted | None
    completed: dict[str, int]
    confirmed: dict[str, int]
    transcripts: dict[str, Transcript]
    receipts: dict[str, Receipt]
    seals: tuple[Seal, ...]
    trips: dict[str, tuple[int, ...]]
    previous_report: Report | None
    current_report: Report | None
    times: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    estimator: NodeSnapshot


_encode = msgspec.msgpack.Encoder().encode


def _decode_snapshot(raw: bytes) -> Snapshot:
    fields: list[Any] = msgspec.msgpack.decode(raw)
    place = Snapshot.__struct_fields__.index("seals")
    seal, trips = fields[place : place + 2]
    if seal is None or isinstance(
        seal[0], int
    ):  # of a version whose nodes held one visitor; None: their own
        fields[place] = [seal or [0, b""]]
        fields[place + 1] = {home: [trip] for home, trip in trips.items()}
    return msgspec.convert(fields, Snapshot)


class Peer(EpochPeer):
    """The protocol state of one node."""

    def __init__(
        self,
        identity: Identity,
        source: EpochSource,
        neighbours: Collection[str],
        trust: Trust,
        level: float | None = None,
    ) -> None:
        super().__init__(identity, trust)
        self.source, self.neighbours, self.level = source, neighbours, level
        self.digest = ""  # of the epoch's rows, neighbours and settings
        self.pending: Offered | None = None  # an offer that waits for an answer
        self.previous_report: Report | None = None  # the best one of earlier epochs
        self._last_id = 0
        self._causes = Budget(*CAUSED_EPOCHS)  # by neighbour
        self._reset()

    def _reset(self) -> None:
        self.estimator, self.readings, self.pending = self.source.estimator(), Readings(), None
        self.checks = Checks(self.estimator)
        self.accepted: ExchangeAccepted | None = None  # waits for the initiator's answer
        self.completed: dict[
            str, int
        ] = {}  # ids of the last exchange with each partner that this node initiated,
        self.confirmed: dict[str, int] = {}  # and of the last one that the partner initiated
        self.transcripts: dict[str, Transcript] = {}  # by neighbour
        self._before: dict[str, Transcript] = {}  # the transcripts before the last exchange
        self.receipts: dict[str, Receipt] = {}  # the last one of each neighbour
        # Of the visitors that the node holds; of its own ones at home, with their last trip.
        self.seals = [Seal(copy, b"") for copy in range(self.copies)]
        # The last trips of each home's visitors that this node knows of; the trip modulo `copies`
        # tells them apart.
        self.trips: dict[str, list[int]] = {}
        self.payloads: dict[str, tuple[float, ...]] = {}  # the last one of each neighbour
        self._seals: dict[int, bytes] = {}  # signatures of own visitors by position
        self._receipted: dict[str, Transcript] = {}  # transcripts for which a receipt was sent
        self._contributions: dict[str, Contribution] = {}
        self.failure = ""  # why a new epoch has to start

    @property
    def is_free(self) -> bool:
        """Whether no exchange is under way."""
        return self.pending is None and self.accepted is None

    @property
    def copies(self) -> int:
        """Number of visitors of each home, and at each node."""
        return self.estimator.protocol.held_visitors

    def _last_trip(self, home: str, copy: int) -> int:
        """Return the last trip of one of a home's visitors: its number, until it has left."""
        return self.trips[home][copy] if home in self.trips else copy

    def exchanges_with(self, neighbour: str) -> int:
        return self.transcripts.get(neighbour, EMPTY).exchanges

    def apply(self, record: Record) -> None:
        """Change the state by a record that is in the journal."""
        match record:
            case EpochStarted():
                self.announcement, self.digest = record.announcement, record.digest
                self.previous_report = record.report
                self._reset()
            case ExchangeAccepted():
                self.accepted = record
            case ExchangeConfirmed():
                assert self.accepted is not None
                accepted, self.accepted = self.accepted, None
                self.confirmed[accepted.partner] = accepted.id
                self._exchange(accepted, accepted.theirs, self._contribution(accepted.partner))
            case ExchangeAborted():
                self.accepted = None
            case ExchangeCompleted():
                self.pending = None
                self.completed[record.partner] = record.id
                self._exchange(record, self._contribution(record.partner), record.theirs)
            case ReceiptReceived():
                self.receipts[record.partner] = record.receipt

    def _exchange(
        self,
        record: ExchangeAccepted | ExchangeCompleted,
        initiator: Contribution,
        responder: Contribution,
    ) -> None:
        partner, theirs, seal = record.partner, record.theirs, record.seal
        slot, home = self.estimator.leaving(partner), theirs.visitor.home
        if self._is_at_home(slot):
            self._note_trip(self.name, self._next_trip(slot))
        try:
            self.estimator.exchange(partner, theirs, self.edge_share(partner))
        # A user's function can raise anything; it must not keep the node from restarting.
        except Exception as error:
            self.failure = f"an exchange with {partner} cannot be computed ({type(error).__name__})"
        self.seals[slot] = seal
        if home != self.name:
            self._note_trip(home, seal.trip)
        self._before[partner] = self.transcripts.get(partner, EMPTY)
        self.transcripts[partner] = self._before[partner].extended(record.id, initiator, responder)
        self.payloads[partner] = theirs.payload
        self.readings.record(self.estimator)
        self._contributions.clear()

    def _next_trip(self, slot: int) -> int:
        """Return the trip on which an own visitor that is at home leaves."""
        return self._last_trip(self.name, self.seals[slot].trip % self.copies) + self.copies

    def _note_trip(self, home: str, trip: int) -> None:
        last = self.trips.setdefault(home, list(range(self.copies)))
        last[trip % self.copies] = max(last[trip % self.copies], trip)

    def edge_share(self, neighbour: str) -> float:
        """Return the share of exchanges that are with a neighbour, estimated from those so far."""
        return (self.exchanges_with(neighbour) + 1) / (
            self.estimator.exchanges + max(1, len(self.neighbours))
        )

    def report(self) -> Report | None:
        """Return the report of this epoch, or of an earlier one as long as that is better."""
        members = self.trust.members
        missing = tuple(name for name in members if name not in self.estimator.homes)
        subject = f"{self.identity.fingerprint} {self.trust.digest}"
        current = make_report(
            self.estimator, self.readings, self.epoch, self.level, subject, missing
        )
        previous = self.previous_report
        if previous is not None and previous.fingerprint != subject:
            previous = None  # it is of another statistic, or of other members
        return current if current is not None and current.is_better_than(previous) else previous

    # Epochs.

    def start_epoch(self, reason: str, now: Moment | None = None) -> Step:  # noqa: ARG002
        """Start the next epoch."""
        return self._enter(self.announce(self.epoch + 1, reason))

    def withdraw(self) -> Step:
        """Start an epoch without this node's rows."""
        self.is_withdrawn = True
        return self.start_epoch(WITHDRAWN)

    def change_source(self, source: EpochSource, neighbours: Collection[str]) -> str:
        """Take other rows, settings, members or neighbours; they count from the next epoch on.

        Returns why that epoch should start at once; empty if it need not.
        """
        has_other_neighbours = set(neighbours) != set(self.neighbours)
        self.source, self.neighbours, self.trust = source, neighbours, source.trust
        self.is_withdrawn = False
        return CHANGED if has_other_neighbours and self.digest != source.digest else ""

    def reason_for_epoch(self, is_timed: bool) -> str:
        """Return why a new epoch should start; empty if there is no reason.

        Where epochs start after some time (`is_timed`), other rows wait until then.
        """
        if self.epoch == 0:
            return "first start"
        has_changed = self.digest != self.source.digest and not is_timed
        return self.failure or (CHANGED if has_changed else "")

    def _enter(self, announcement: Announcement) -> Step:
        report = None if announcement.reason == WITHDRAWN else self.report()
        return Step((EpochStarted(announcement, self.source.digest, report),), (), "epochs")

    def _is_young(self, now: float) -> bool:
        return 0.0 <= now - self._entered_at < SECONDS_PER_EPOCH

    def _may_restart(self, neighbour: str, now: float) -> bool:
        """Return whether to start an epoch because of a neighbour: not often."""
        allowed = (
            not self._is_young(now)
            and self._causes.take(neighbour, now)
            and self.may_start_epoch(now)
        )
        if allowed:
            self._entered_at = now
        return allowed

    def _restart(self, neighbour: str, reason: str, detail: str, now: float) -> Iterator[Step]:
        """Start an epoch because of a message; reject it if that happens too often."""
        if not self._may_restart(neighbour, now):
            raise Rejected(reason, detail, is_blamed=not self._is_young(now))
        yield self.start_epoch(detail)

    def _follow(self, sender: str, announcement: Announcement, now: float) -> Iterator[Step]:
        """Follow a neighbour to a later epoch."""
        if announcement.epoch > self.epoch:
            self.check_announcement(sender, announcement, now)
            self._entered_at = now
            yield self._enter(announcement)

    # Heartbeats.

    def ping(self, neighbour: str, sent: int) -> Step:
        """Return a heartbeat, with a receipt if there were exchanges since the last one."""
        receipt, transcript = None, self.transcripts.get(neighbour, EMPTY)
        if transcript.exchanges and self._receipted.get(neighbour) != transcript:
            self._receipted[neighbour] = transcript
            receipt = Receipt(self.epoch, *transcript, b"")
            content = wire.signed_receipt(self.identity.network, self.name, neighbour, receipt)
            receipt = receipt._replace(signature=self.trust.sign(content))
        ping = wire.Ping(
            sent, self.announcement, receipt, self.trust.serial, self.trust.list_digest
        )
        return Step((), ((neighbour, wire.encode(ping)),))

    def _handle_ping(self, sender: str, ping: wire.Ping, now: float) -> Iterator[Step]:
        yield Step((), ((sender, wire.encode(wire.Pong(ping.sent))),))
        yield from self._follow(sender, ping.announcement, now)
        receipt, last = ping.receipt, self.receipts.get(sender)
        if (
            receipt is None
            or receipt.epoch != self.epoch
            or (last and receipt.exchanges <= last.exchanges)
        ):
            return
        for transcript in (self.transcripts.get(sender, EMPTY), self._before.get(sender, EMPTY)):
            if transcript.exchanges == receipt.exchanges:
                if transcript.digest != receipt.digest:
                    yield from self._restart(
                        sender, "receipt", f"{sender} has other exchanges with {self.name}", now
                    )
                    return
                content = wire.signed_receipt(self.identity.network, sender, self.name, receipt)
                if not self.trust.verify(sender, content, receipt.signature):
                    raise Rejected("signature", "its receipt is not signed by it")
                yield Step((ReceiptReceived(sender, receipt),), (), "receipts")
                return

    # Exchanges.

    def offer(self, to: str, id: int) -> Step:
        """Offer a neighbour an exchange; ids increase, also over restarts."""
        self._last_id = id = max(id, self._last_id + 1)
        self.pending = Offered(id, to)
        message = wire.encode(
            wire.Offer(self.epoch, id, self._contribution(to), self._departing_seal(to))
        )
        return Step((), ((to, message),), "offers", self._shown(to))

    def withdraw_offer(self) -> Step:
        """Withdraw the pending offer, since no answer came."""
        assert self.pending is not None
        pending, self.pending = self.pending, None
        return Step(
            (), ((pending.to, wire.encode(wire.Abort(pending.id))),), "offers without an answer"
        )

    def repeat_accept(self) -> Step:
        """Send the acceptance again that was not confirmed."""
        assert self.accepted is not None
        message = self._encode_accept(self.accepted.partner, self.accepted.id)
        return Step((), ((self.accepted.partner, message),), "acceptances repeated")

    def abandon(self) -> Step:
        """Give up an accepted exchange, since its initiator does not answer."""
        assert self.accepted is not None
        return Step((ExchangeAborted(self.accepted.id, "abandoned"),), (), "exchanges abandoned")

    def _encode_accept(self, to: str, id: int) -> bytes:
        return wire.encode(
            wire.Accept(self.epoch, id, self._contribution(to), self._departing_seal(to))
        )

    def _contribution(self, neighbour: str) -> Contribution:
        """Return what the node sends a neighbour in its next exchange, the same until then."""
        if neighbour not in self._contributions:
            exchanges = self.exchanges_with(neighbour)
            share = self.edge_share(neighbour)
            found = self.estimator.contribution(neighbour, share, edge_exchanges=exchanges)
            self._contributions[neighbour] = found._replace(payload=self.checks.clip(found.payload))
        return self._contributions[neighbour]

    def _is_at_home(self, slot: int) -> bool:
        return self.estimator.visitors[slot].home == self.name

    def _departing_seal(self, to: str) -> Seal:
        """Return the seal of the visitor that leaves in the next exchange.

        Sign it if it is at home.
        """
        slot = self.estimator.leaving(to)
        if not self._is_at_home(slot):
            return self.seals[slot]
        position = self.estimator.next_position
        if position not in self._seals:
            content = wire.signed_visitor(
                self.identity.network, self.epoch, self.estimator.departing(slot)
            )
            self._seals[position] = self.trust.sign(content)
        return Seal(self._next_trip(slot), self._seals[position])

    def shows_own_rows(self, to: str) -> bool:
        """Return whether own rows leave in the next exchange with a neighbour."""
        return self._is_at_home(self.estimator.leaving(to)) and self.estimator.protocol.visitors > 0

    def _shown(self, to: str) -> tuple[str, int] | None:
        return (to, self.estimator.next_position) if self.shows_own_rows(to) else None

    def handle(
        self, sender: str, message: wire.AnyMessage, now: Moment, refusal: str = ""
    ) -> Iterator[Step]:
        """Yield the steps that a message leads to; each is to be carried out before the next one.

        `refusal` is why this node takes no offer now: "busy", "row limit" or empty. Raises
        `Rejected` for a message that cannot be used.
        """
        match message:
            case wire.Offer():
                yield from self._handle_offer(sender, message, refusal)
            case wire.Accept():
                yield from self._handle_accept(sender, message, now.wall)
            case wire.Confirm() | wire.Abort():
                yield from self._handle_outcome(sender, message, now.wall)
            case wire.Busy() | wire.Decline():
                yield from self._handle_refusal(sender, message, now.wall)
            case wire.Ping():
                yield from self._handle_ping(sender, message, now.wall)

    def _handle_offer(self, sender: str, offer: wire.Offer, refusal: str) -> Iterator[Step]:
        accepted, pending = self.accepted, self.pending
        if accepted is not None and (accepted.partner, accepted.id) == (sender, offer.id):
            yield self.repeat_accept()
            return
        if self.confirmed.get(sender) == offer.id:
            raise Rejected("late")
        if pending is not None and pending.to == sender and self.name < sender:
            return  # of two simultaneous offers, that of the lower name counts
        if accepted is not None or refusal == "busy":
            yield Step(
                (), ((sender, wire.encode(wire.Busy(offer.id))),), "offers answered with busy"
            )
            return
        try:
            self._check_offer(sender, offer, refusal)
        except Rejected as rejected:
            yield Step((), ((sender, wire.encode(wire.Decline(offer.id, rejected.reason))),))
            raise
        messages = [(sender, self._encode_accept(sender, offer.id))]
        if (
            pending is not None
        ):  # an offer that came is better than one of its own that may be answered with `busy`
            messages.append((pending.to, wire.encode(wire.Abort(pending.id))))
            self.pending = None
        record = ExchangeAccepted(sender, offer.id, offer.contribution, offer.seal)
        yield Step((record,), tuple(messages), "", self._shown(sender))

    def _check_offer(self, sender: str, offer: wire.Offer, refusal: str) -> None:
        if self.is_withdrawn or refusal:
            raise Rejected("withdrawn" if self.is_withdrawn else refusal)
        if offer.epoch != self.epoch:
            raise Rejected(
                "late", f"the offer is of epoch {offer.epoch}, this node is in epoch {self.epoch}"
            )
        self._check(sender, offer.contribution, offer.seal)

    def _handle_accept(self, sender: str, accept: wire.Accept, now: float) -> Iterator[Step]:
        pending = self.pending
        if pending is None or (pending.to, pending.id) != (sender, accept.id):
            is_completed = self.completed.get(sender) == accept.id
            answer = wire.Confirm(accept.id) if is_completed else wire.Abort(accept.id)
            yield Step((), ((sender, wire.encode(answer)),), "answers repeated")
            return
        theirs, known = accept.contribution, self.exchanges_with(sender)
        try:
            if accept.epoch != self.epoch:
                raise Rejected(
                    "late",
                    f"the acceptance is of epoch {accept.epoch}, this node is in {self.epoch}",
                )
            if theirs.edge_exchanges != known:
                raise Rejected(
                    "counts",
                    f"{sender} counts other exchanges with {self.name} than {self.name} does",
                )
            self._check(sender, theirs, accept.seal)
        except Rejected as rejected:
            self.pending = None
            yield Step((), ((sender, wire.encode(wire.Abort(accept.id, rejected.reason))),))
            if rejected.reason != "counts":
                raise
            yield from self._restart(sender, rejected.reason, rejected.detail, now)
            return
        second = self._find_second(theirs.visitor, accept.seal)
        record = ExchangeCompleted(sender, accept.id, theirs, accept.seal)
        yield Step(
            (record,), ((sender, wire.encode(wire.Confirm(accept.id))),), "exchanges initiated"
        )
        if second and self._may_restart(sender, now):
            yield self.start_epoch(second)

    def _handle_outcome(
        self, sender: str, message: wire.Confirm | wire.Abort, now: float
    ) -> Iterator[Step]:
        accepted = self.accepted
        if accepted is None or (accepted.partner, accepted.id) != (sender, message.id):
            return
        if isinstance(message, wire.Confirm):
            second = self._find_second(accepted.theirs.visitor, accepted.seal)
            yield Step((ExchangeConfirmed(message.id),), (), "exchanges accepted")
            if second and self._may_restart(sender, now):
                yield self.start_epoch(second)
        else:
            yield Step((ExchangeAborted(message.id, "withdrawn"),), (), "exchanges aborted")
            yield from self._doubt(sender, message.reason, now)

    def _handle_refusal(
        self, sender: str, message: wire.Busy | wire.Decline, now: float
    ) -> Iterator[Step]:
        if self.pending is None or (self.pending.to, self.pending.id) != (sender, message.id):
            return
        self.pending = None
        reason = message.reason if isinstance(message, wire.Decline) else "busy"
        yield Step(
            (), (), f"offers declined: {reason if reason in (*wire.REASONS, 'busy') else 'unknown'}"
        )
        yield from self._doubt(sender, reason, now)

    def _doubt(self, sender: str, reason: str, now: float) -> Iterator[Step]:
        """Start an epoch if a neighbour rejected values, which others may have spoilt."""
        if reason == "values" and self._may_restart(sender, now):
            yield self.start_epoch(f"{sender} rejected the values of {self.name}")

    def _check(self, sender: str, theirs: Contribution, seal: Seal) -> None:
        self.checks.check(sender, theirs, seal, self.trust, self.identity.network, self.epoch)

    def _find_second(self, visitor: Visitor, seal: Seal) -> str:
        """Return how a visitor proves that its home has one too many, and that another is lost.

        The exchange takes place all the same: the sender need not be to blame, and nodes that
        rejected such visitors would be stuck with those that they hold. Then an epoch starts, if
        that is not too early.
        """
        home, copy, rows = visitor.home, seal.trip % self.copies, (visitor.rows, visitor.diagonal)
        last = self._last_trip(home, copy)
        held = zip(self.estimator.visitors, self.seals, strict=True)
        if seal.trip < last or any(
            (one.home, own.trip % self.copies) == (home, copy) for one, own in held
        ):
            return f"there was a second visitor of {home}"
        if home == self.name and (seal.trip != last or visitor != self.estimator.issued):
            return f"a visitor of {home} came back that it had not sent"
        if self.estimator.homes.get(home, rows) != rows:
            return f"{home} had signed visitors with different rows"
        return ""

    def snapshot(self) -> bytes:
        head = self.announcement, self.digest, self.accepted, self.completed, self.confirmed
        trips = {home: tuple(last) for home, last in self.trips.items()}
        edges = self.transcripts, self.receipts, tuple(self.seals), trips
        reports = self.previous_report, self.report()
        readings = tuple(self.readings.times), tuple(self.readings.values)
        return _encode(Snapshot(*head, *edges, *reports, *readings, self.estimator.snapshot()))

    def restore(self, snapshot: bytes | None, records: Sequence[Record]) -> None:
        """Restore the state from a snapshot and the records after it.

        Exchanges with other rows are left out.
        """
        if snapshot is not None:
            self._load(_decode_snapshot(snapshot))
        for record in records:
            if isinstance(record, EpochStarted) or self.digest == self.source.digest:
                self.apply(record)

    def _load(self, saved: Snapshot) -> None:
        self.announcement = saved.announcement
        self.digest = saved.digest
        self.previous_report = saved.previous_report
        if self.digest != self.source.digest:
            self.previous_report = saved.current_report
            return
        self.accepted = saved.accepted
        self.completed = saved.completed
        self.confirmed = saved.confirmed
        self.transcripts, self.receipts = saved.transcripts, saved.receipts
        self.seals = list(saved.seals)
        self.trips = {home: list(last) for home, last in saved.trips.items()}
        self.readings = Readings(saved.times, saved.values)
        self.estimator.restore(saved.estimator)
        self._contributions.clear()
        self.checks = Checks(self.estimator)
