"""A node's part in the conversation: messages in, records and messages out; no socket, no clock, no chance.

**Exactly once.** A node writes down its offer before it sends it, and takes part in nothing else until it knows the
answer; it may repeat the offer, also after a crash. Whoever gets an offer writes down one answer for good, together
with the meeting if that is yes, before it says so; to the same offer again it gives the same answer. So both sides of
a meeting take place once, or none does, wherever either stops, and whatever is lost, repeated or late.

**Epochs.** Who hears of a later epoch begins it: its visitor is at home, its estimate empty. Nodes that come or go and
rows that change begin a new epoch; and so does a node whose journal is lost, since its neighbours see that it is not
who they met.

What a node keeps follows from its records: `apply` is the only place that changes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from gosta import site as sites
from gosta.errors import InputError
from gosta.net import wire
from gosta.net.journal import AnyRecord, Began, Met, Offered, Refused, Withdrawn
from gosta.net.report import Readings, Report, report
from gosta.problem import SAMPLE
from gosta.site import Side, Site


class Identity(NamedTuple):
    """What a node has to say of itself in every message."""

    name: str
    network: str
    statistic: str
    birth: int


class Step(NamedTuple):
    """What to write down, then to send, and then to `apply`; and a word for what is counted."""

    records: tuple[AnyRecord, ...] = ()
    sends: tuple[tuple[str, bytes], ...] = ()
    note: str = ""


class Source(Protocol):
    """Where a node's part of an epoch comes from."""

    @property
    def digest(self) -> str:
        """A name for the rows and neighbours that a new epoch would begin with."""

    def site(self) -> Site:
        """The node at the beginning of an epoch with them."""


class Answer(NamedTuple):
    """The last answer given to a neighbour: to which offer, and how."""

    birth: int
    id: int
    reply: bytes


class Memory(msgspec.Struct, array_like=True):
    """All that a node keeps."""

    epoch: int
    digest: str
    next_id: int
    pending: Offered | None
    answers: dict[str, Answer]
    births: dict[str, int]
    meetings: dict[str, int]
    finished: Report | None
    current: Report | None
    times: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    site: sites.Memory


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Memory).decode


class Peer:
    """A node among its neighbours."""

    def __init__(
        self, identity: Identity, source: Source, neighbours: Collection[str], level: float | None = None
    ) -> None:
        self.identity, self.source, self.neighbours, self.level = identity, source, neighbours, level
        self.epoch, self.digest, self.next_id = 0, "", 1
        self.pending: Offered | None = None
        self.answers: dict[str, Answer] = {}
        self.finished: Report | None = None
        self._restart()

    def _restart(self) -> None:
        """As at the beginning of an epoch."""
        self.site, self.readings, self.pending = self.source.site(), Readings(), None
        self._told = len(self.site.side(1.0).told) // len(self.site.states)
        self.births: dict[str, int] = {}
        self.meetings: dict[str, int] = {}
        self.told: dict[str, tuple[float, ...]] = {}

    def apply(self, record: AnyRecord) -> None:
        """Let something have happened."""
        match record:
            case Began():
                self.epoch, self.digest, self.finished = record.epoch, record.digest, record.report
                self._restart()
            case Offered():
                self.pending, self.next_id = record, record.id + 1
            case Withdrawn():
                self.pending = None
            case Refused():
                self.answers[record.partner] = Answer(record.birth, record.id, record.reply)
            case Met():
                self._met(record)

    def _met(self, record: Met) -> None:
        if record.begun:
            self.pending = None
        else:
            self.answers[record.partner] = Answer(record.birth, record.id, record.reply)
        self.site.meet(record.theirs, self.pace(record.partner))
        self.births[record.partner] = record.birth
        self.meetings[record.partner] = self.meetings.get(record.partner, 0) + 1
        self.told[record.partner] = record.theirs.told
        self.readings.note(self.site)

    def pace(self, neighbour: str) -> float:
        """The share of its meetings that are with a neighbour, as seen so far."""
        return (self.meetings.get(neighbour, 0) + 1) / (self.site.meetings + max(1, len(self.neighbours)))

    def report(self) -> Report | None:
        """What this epoch has found, or an earlier one as long as that is better."""
        current = report(self.site, self.readings, self.epoch, self.level)
        return current if current is not None and current.better(self.finished) else self.finished

    def begin(self, why: str, epoch: int | None = None) -> Step:
        """Begin an epoch, the next one unless said otherwise."""
        epoch = self.epoch + 1 if epoch is None else epoch
        return Step((Began(epoch, self.source.digest, why, self.report()),), (), "epochs")

    def offer(self, to: str) -> Step:
        """Offer a neighbour to meet; only where no other offer is pending."""
        record = Offered(self.next_id, to)
        return Step((record,), ((to, self._offer(record)),), "offers")

    def repeat(self) -> Step:
        """The pending offer again."""
        assert self.pending is not None
        return Step((), ((self.pending.to, self._offer(self.pending)),), "repeated")

    def _offer(self, record: Offered) -> bytes:
        return wire.encode(wire.Offer(*self._head(), record.id, self.site.side(self.pace(record.to))))

    def _head(self) -> tuple[int, str, str, int, int]:
        me = self.identity
        return wire.VERSION, me.network, me.statistic, self.epoch, me.birth

    def ping(self, neighbour: str) -> Step:
        """Ask whether a neighbour is there."""
        return Step((), ((neighbour, wire.encode(wire.Ping(*self._head()))),))

    def receive(self, sender: str, raw: bytes) -> Iterator[Step]:
        """What a message leads to; each step is to be carried out before the next one is asked for.

        Raises `wire.Refusal` for what is of no use; nothing has changed then.
        """
        message = wire.decode(raw)
        wrong = self._differs(message)
        if wrong is None and message.epoch > self.epoch:
            yield self.begin(f"{sender} is in epoch {message.epoch}", message.epoch)
        known = self.births.get(sender, message.birth)
        if wrong is None and message.birth > known:
            yield self.begin(f"{sender} has a new journal")
        match message:
            case wire.Offer():
                yield self._answer(sender, message, wrong)
            case _ if wrong is not None or message.birth < known:
                raise wire.Refusal(wrong or "stale")
            case wire.Ping():
                yield Step((), ((sender, wire.encode(wire.Pong(*self._head()))),))
            case wire.Accept() | wire.Busy() | wire.Decline():
                yield self._answered(sender, message)

    def _differs(self, message: wire.AnyMessage) -> str | None:
        me = self.identity
        if message.version != wire.VERSION:
            return "version"
        if message.network != me.network:
            return "network"
        if message.statistic != me.statistic:
            return "statistic"
        return "epoch" if message.epoch > self.epoch + wire.FURTHEST else None

    def _answer(self, sender: str, offer: wire.Offer, wrong: str | None) -> Step:
        last = self.answers.get(sender)
        if last is not None and (offer.birth, offer.id) <= (last.birth, last.id):
            if (offer.birth, offer.id) < (last.birth, last.id):
                raise wire.Refusal("stale")
            return Step((), ((sender, last.reply),), "answered again")
        if wrong is None and offer.epoch < self.epoch:  # no need to remember: it will always be so
            return Step((), ((sender, self._decline(offer, "epoch")),), "refused: epoch")
        if wrong is None and not self._fits(offer.side):
            wrong = "visitor"
        if wrong is not None:
            return self._refuse(sender, offer, self._decline(offer, wrong), f"refused: {wrong}")
        if self.pending is not None:
            return self._refuse(sender, offer, wire.encode(wire.Busy(*self._head(), offer.id)), "busy")
        reply = wire.encode(wire.Accept(*self._head(), offer.id, self.site.side(self.pace(sender))))
        met = Met(sender, offer.birth, offer.id, False, offer.side, reply)
        return Step((met,), ((sender, reply),), "meetings others began")

    def _decline(self, offer: wire.Offer, reason: str) -> bytes:
        return wire.encode(wire.Decline(*self._head(), offer.id, reason))

    def _refuse(self, sender: str, offer: wire.Offer, reply: bytes, count: str) -> Step:
        return Step((Refused(sender, offer.birth, offer.id, reply),), ((sender, reply),), count)

    def _answered(self, sender: str, message: wire.Accept | wire.Busy | wire.Decline) -> Step:
        pending = self.pending
        if pending is None or (sender, message.id, message.epoch) != (pending.to, pending.id, self.epoch):
            raise wire.Refusal("stale")
        if not isinstance(message, wire.Accept):
            reason = "" if isinstance(message, wire.Busy) else message.reason
            note = f"declined: {reason}" if reason in wire.REASONS else "offers refused"
            return Step((Withdrawn(pending.id),), (), note)
        if not self._fits(message.side):
            raise wire.Refusal("visitor")
        return Step((Met(sender, message.birth, pending.id, True, message.side, b""),), (), "meetings begun")

    def _fits(self, side: Side) -> bool:
        """Whether a side can be met with: the right lengths, finite numbers, and no other rows at a known home."""
        site, table, visitor = self.site, self.site.table, side.visitor
        told = len(site.states) * self._told
        columns, sample = (table.x.shape[1], SAMPLE) if site.protocol.visitors else (0, 0)
        home = visitor.rows, visitor.diagonal
        if not wire.fits(side, told, columns, sample, table.width) or site.homes.get(visitor.home, home) != home:
            return False
        try:
            if visitor.sample:
                table.seen(
                    visitor.sample
                )  # what the kernel cannot do with it shows now; the meeting finds it remembered
        except InputError:
            return False
        return True

    def memory(self) -> bytes:
        """All that it keeps, for a file."""
        times, values = tuple(self.readings.times), tuple(self.readings.values)
        kept = (self.answers, self.births, self.meetings, self.finished, self.report(), times, values)
        return _encode(Memory(self.epoch, self.digest, self.next_id, self.pending, *kept, self.site.memory()))

    def restore(self, memory: bytes | None, records: Sequence[AnyRecord]) -> None:
        """Take up what was kept, as far as it is about the rows there are now."""
        if memory is not None:
            self._remember(_decode(memory))
        for record in records:
            if not isinstance(record, Met) or self.digest == self.source.digest:
                self.apply(record)
            elif not record.begun:
                self.answers[record.partner] = Answer(record.birth, record.id, record.reply)

    def _remember(self, kept: Memory) -> None:
        self.epoch, self.digest, self.next_id = kept.epoch, kept.digest, kept.next_id
        self.answers, self.finished, self.pending = kept.answers, kept.finished, kept.pending
        if self.digest != self.source.digest:
            self.finished = kept.current
            return
        self.births, self.meetings = kept.births, kept.meetings
        self.readings = Readings(kept.times, kept.values)
        self.site.remember(kept.site)
