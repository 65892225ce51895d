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

import hashlib
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from gosta.errors import InputError
from gosta.estimation import exchange as sites
from gosta.estimation.exchange import Side, Site
from gosta.estimation.problem import SAMPLE
from gosta.net.protocol import messages as wire
from gosta.net.protocol.report import Readings, Report, report
from gosta.net.storage.journal import AnyRecord, Began, Met, Offered, Refused, Withdrawn

MOST_HOMES = 100_000  # whose visitors a node keeps apart


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
    """The last answer given to a neighbour: to which offer, a mark of what that said, and how."""

    birth: int
    id: int
    mark: bytes
    reply: bytes


class Memory(msgspec.Struct, array_like=True):
    """All that a node keeps."""

    epoch: int
    digest: str
    birth: int
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
        self.epoch, self.digest, self.birth, self.next_id = 0, "", identity.birth, 1
        self.resting = False  # as if an offer were pending
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
                self.birth = max(self.birth, record.birth)
                self._restart()
            case Offered():
                self.pending, self.next_id = record, record.id + 1
            case Withdrawn():
                self.pending = None
            case Refused():
                self.answers[record.partner] = Answer(record.birth, record.id, record.mark, record.reply)
            case Met():
                self._met(record)

    def _met(self, record: Met) -> None:
        if record.begun:
            self.pending = None
        else:
            self.answers[record.partner] = _answer_of(record)
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
        current = report(self.site, self.readings, self.epoch, self.level, self.identity.statistic)
        finished = self.finished
        if finished is not None and finished.statistic != self.identity.statistic:
            finished = None  # it was of something else
        return current if current is not None and current.better(finished) else finished

    def begin(self, why: str, epoch: int | None = None, after: int = 0) -> Step:
        """Begin an epoch, the next one unless said otherwise; with a birth after another, as a node nobody has met."""
        epoch = self.epoch + 1 if epoch is None else epoch
        birth = max(self.birth, after + 1 if after else 0)
        return Step((Began(epoch, self.source.digest, why, birth, self.report()),), (), "epochs")

    def offer(self, to: str) -> Step:
        """Offer a neighbour to meet; only where no other offer is pending."""
        record = Offered(self.next_id, to)
        return Step((record,), ((to, self._offer(record)),), "offers")

    def repeat(self) -> Step:
        """The pending offer again."""
        assert self.pending is not None
        return Step((), ((self.pending.to, self._offer(self.pending)),), "repeated")

    def _offer(self, record: Offered) -> bytes:
        return wire.encode(wire.Offer(*self._head(), record.id, self._side(record.to)))

    def _side(self, neighbour: str) -> Side:
        return self.site.side(self.pace(neighbour), together=self.meetings.get(neighbour, 0))

    def _head(self) -> tuple[int, str, str, int, int]:
        me = self.identity
        return wire.VERSION, me.network, me.statistic, self.epoch, self.birth

    def ping(self, neighbour: str) -> Step:
        """Ask whether a neighbour is there."""
        return Step((), ((neighbour, wire.encode(wire.Ping(*self._head()))),))

    def receive(self, sender: str, raw: bytes) -> Iterator[Step]:
        """What a message leads to; each step is to be carried out before the next one is asked for.

        Raises `wire.Refusal` for what is of no use; nothing has changed then.
        """
        message = wire.decode(raw)
        wrong = self._differs(message)
        match message:
            case wire.Offer():
                yield from self._offered(sender, message, wrong)
            case wire.Accept() | wire.Busy() | wire.Decline():
                yield from self._answered(sender, message, wrong)
            case _ if wrong is not None or message.birth < self.births.get(sender, 0):
                raise wire.Refusal(wrong or "stale")
            case wire.Ping() | wire.Pong():
                yield from self._heard(sender, message)
                if isinstance(message, wire.Ping):
                    yield Step((), ((sender, wire.encode(wire.Pong(*self._head()))),))

    def _heard(self, sender: str, message: wire.AnyMessage) -> Iterator[Step]:
        """What a message that is right in itself tells of epochs."""
        if message.epoch > self.epoch:
            yield self.begin(f"{sender} is in epoch {message.epoch}", message.epoch)
        if message.birth > self.births.get(sender, message.birth):
            yield self.begin(f"{sender} has a new journal")
        if message.epoch == self.epoch and self._remembers_others(sender, message):
            yield self.begin(f"{sender} remembers other meetings than this node does")

    def _remembers_others(self, sender: str, message: wire.AnyMessage) -> bool:
        """Whether a neighbour counts other meetings of the two; who waits for an answer may not know of the last."""
        if isinstance(message, wire.Accept) or (isinstance(message, wire.Offer) and self.pending is None):
            return message.side.together != self.meetings.get(sender, 0)
        return False

    def _differs(self, message: wire.AnyMessage) -> str | None:
        me = self.identity
        if message.version != wire.VERSION:
            return "version"
        if message.network != me.network:
            return "network"
        if message.statistic != me.statistic:
            return "statistic"
        return "epoch" if message.epoch > self.epoch + wire.FURTHEST else None

    def _offered(self, sender: str, offer: wire.Offer, wrong: str | None) -> Iterator[Step]:
        last, place = self.answers.get(sender), (offer.birth, offer.id)
        if last is not None and place == (last.birth, last.id) and _mark(offer.side) == last.mark:
            yield Step((), ((sender, last.reply),), "answered again")
            return
        if last is not None and place <= (last.birth, last.id):
            yield self._decline(sender, offer, "stale")  # late; or the sender has forgotten what it offered since
            return
        if wrong is not None or not self._fits(offer):
            yield self._decline(sender, offer, wrong or "visitor")
            return
        yield from self._heard(sender, offer)
        if offer.epoch < self.epoch:
            yield self._decline(sender, offer, "epoch")
        elif self.pending is not None or self.resting:
            reply = wire.encode(wire.Busy(*self._head(), offer.id))
            refused = Refused(sender, offer.birth, offer.id, _mark(offer.side), reply)
            yield Step((refused,), ((sender, reply),), "busy")
        else:
            reply = wire.encode(wire.Accept(*self._head(), offer.id, self._side(sender)))
            met = Met(sender, offer.birth, offer.id, False, offer.side, reply)
            yield Step((met,), ((sender, reply),), "meetings others began")

    def _decline(self, sender: str, offer: wire.Offer, reason: str) -> Step:
        """A no that need not be written down: as long as the offer could be taken, it would get the same again."""
        last = self.answers.get(sender)
        known = max(self.births.get(sender, 0), 0 if last is None else last.birth)
        reply = wire.encode(wire.Decline(*self._head(), offer.id, reason, known))
        return Step((), ((sender, reply),), f"refused: {reason}")

    def _answered(
        self, sender: str, message: wire.Accept | wire.Busy | wire.Decline, wrong: str | None
    ) -> Iterator[Step]:
        pending, known = self.pending, self.births.get(sender, message.birth)
        if pending is None or (sender, message.id) != (pending.to, pending.id) or message.birth < known:
            raise wire.Refusal(wrong or "stale")
        reason = message.reason if isinstance(message, wire.Decline) else ""
        if isinstance(message, wire.Accept):
            if wrong is not None or message.epoch != self.epoch or not self._fits(message):
                raise wire.Refusal(wrong or ("stale" if message.epoch != self.epoch else "visitor"))
        elif wrong is not None:  # a no is a no, also of one who computes something else
            yield self._withdraw(reason)
            return
        elif isinstance(message, wire.Decline) and reason == "stale":
            why = "its journal has gone back in time, or the node runs twice"
            yield self.begin(why, max(self.epoch, message.epoch) + 1, after=max(self.birth, message.known))
            return
        yield from self._heard(sender, message)
        if self.pending is not pending:
            return
        if isinstance(message, wire.Accept):
            yield Step((Met(sender, message.birth, pending.id, True, message.side, b""),), (), "meetings begun")
        else:
            yield self._withdraw(reason)

    def _withdraw(self, reason: str) -> Step:
        assert self.pending is not None
        note = f"declined: {reason}" if reason in wire.REASONS else "offers refused"
        return Step((Withdrawn(self.pending.id),), (), note)

    def _fits(self, message: wire.Offer | wire.Accept) -> bool:
        """Whether a side can be met with: right lengths, finite numbers, known homes as known, and the kernel works."""
        site, table, visitor = self.site, self.site.table, message.side.visitor
        told = len(site.states) * self._told
        columns, sample = (table.x.shape[1], SAMPLE) if site.protocol.visitors else (0, 0)
        if not wire.fits(message.side, told, columns, sample, table.width):
            return False
        if message.epoch == self.epoch:
            home = visitor.rows, visitor.diagonal
            if site.homes.get(visitor.home, home) != home or len(site.homes) > MOST_HOMES:
                return False
        try:
            if visitor.sample:
                table.seen(visitor.sample)  # the meeting will find it remembered
        except InputError:
            return False
        return True

    def memory(self) -> bytes:
        """All that it keeps, for a file."""
        return _encode(
            Memory(
                self.epoch,
                self.digest,
                self.birth,
                self.next_id,
                self.pending,
                self.answers,
                self.births,
                self.meetings,
                self.finished,
                self.report(),
                tuple(self.readings.times),
                tuple(self.readings.values),
                self.site.memory(),
            )
        )

    def restore(self, memory: bytes | None, records: Sequence[AnyRecord]) -> None:
        """Take up what was kept, as far as it is about the rows there are now."""
        if memory is not None:
            self._remember(_decode(memory))
        for record in records:
            if not isinstance(record, Met) or self.digest == self.source.digest:
                self.apply(record)
            elif not record.begun:
                self.answers[record.partner] = _answer_of(record)

    def _remember(self, kept: Memory) -> None:
        self.epoch, self.digest, self.next_id = kept.epoch, kept.digest, kept.next_id
        self.birth = max(self.birth, kept.birth)
        self.answers, self.finished, self.pending = kept.answers, kept.finished, kept.pending
        if self.digest != self.source.digest:
            self.finished = kept.current
            return
        self.births, self.meetings = kept.births, kept.meetings
        self.readings = Readings(kept.times, kept.values)
        self.site.remember(kept.site)


def _mark(side: Side) -> bytes:
    """What tells one side from another."""
    return hashlib.blake2b(_encode(side), digest_size=8).digest()


def _answer_of(record: Met) -> Answer:
    return Answer(record.birth, record.id, _mark(record.theirs), record.reply)
