"""The state machine of a node that contributes to private sums: messages in, records and messages out.

**An epoch.** Every member *joins* with a new public key, or says that it does not take part. The node that started the
epoch then fixes the *roster*: all that joined, once everybody answered or the deadline passed. Each participant adds
masks to its sums that cancel in the total of all participants, and *contributes* the result. Where edges of bins are to
be found first, there are two such rounds. When all contributions are in, their total is the total of the sums.

**Spreading.** All of this are signed statements (statements.py). A node passes on every statement of the epoch: it
tells neighbours which ones it has, and they ask for those that they lack. Statements mean the same whatever their order
and however often they come, so nothing has to arrive exactly once, and a node knows when it has all.

**One contribution.** A key serves one epoch, and a node signs one contribution for each epoch and round: it is in the
journal before it is sent, together with its entry in the log, and is sent again after a crash. Masks are thus never
used for two different vectors; not even by a node that lost its journal, since it also lost the key. Noise follows from
the key as well, so that it is never drawn twice for one epoch.

**Failures.** If a participant does not contribute within the deadline, another epoch starts without it. A site that
signs two different statements where one is due is left out of the next epochs. A participant whose policy forbids the
release refuses, and the epoch has no total. A total that no rows can have is not reported.

The state follows from the records, except for statements of others, which a node asks for again after a restart.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from gosta.net.members import Trust
from gosta.net.protocol import messages as wire
from gosta.net.protocol import site, statements
from gosta.net.protocol.epochs import NO_EPOCH, EpochPeer, Identity, Step
from gosta.net.protocol.messages import Announcement, Rejected, Signed
from gosta.net.protocol.pool import Pool
from gosta.net.protocol.records import Baseline, LogEntry, PartMade, Record, Released, StatementMade, SumEpochStarted
from gosta.net.protocol.site import SumReport, SumSource
from gosta.net.protocol.statements import AnyStatement, Join, Part, Refusal, Roster, Slot
from gosta.private import masks, policy
from gosta.private.noise import NO_NOISE, Noise, choose_noise
from gosta.private.policy import Past
from gosta.private.sums import open_totals
from gosta.sketches import Layout

ABSENT_SECONDS = 3.0  # that a member has to join which was not there in the last epoch
RANK_SECONDS = 1.0  # between the nodes that may start an epoch when another one failed
BACK_SECONDS = 5.0  # after a release, until a member that was not in it starts an epoch
RESUME_SECONDS = 2.0  # for which a restarted node asks others first what it said before: its journal may be a backup
EXCLUSION_SECONDS = 60.0  # for which a site is left out that spoils epochs
MAX_REPEATED_JOINS = 2  # of a site that lost its journal, until it is left out
MAX_STALLS = 1  # epochs that a participant may let fail, until it is left out
MAX_BASELINES = 16  # earlier contributions whose rows are compared with the next one's


class Round(NamedTuple):
    """What is added up in one round of an epoch."""

    number: int
    layout: Layout
    noise: Noise


class Total(NamedTuple):
    """The total of one round."""

    round: Round
    vector: NDArray[np.uint64]
    totals: NDArray[np.float64]


class Snapshot(msgspec.Struct, array_like=True):
    """The state of a peer, so that a restart need not apply all records."""

    announcement: Announcement
    digest: str
    key: bytes
    row_key: bytes
    own: tuple[Signed, ...]
    suppressed: str
    baselines: tuple[Baseline, ...]
    report: bytes  # a SumReport; empty: none


_encode = msgspec.msgpack.Encoder().encode
_decode_snapshot = msgspec.msgpack.Decoder(Snapshot).decode
_decode_report = msgspec.msgpack.Decoder(SumReport).decode


class SumPeer(EpochPeer):
    """The protocol state of one node of a network of private sums."""

    def __init__(self, identity: Identity, source: SumSource, neighbours: Collection[str], trust: Trust) -> None:
        super().__init__(identity, trust)
        self.source, self.neighbours = source, neighbours
        self.log: list[LogEntry] = []  # of contributions, from the journal
        self.report: SumReport | None = None  # of the last release
        self.row_key = b""  # of the digests of rows
        self.baselines: list[Baseline] = []  # earlier contributions, the latest last
        self._absent: set[str] = set()  # members that the next roster does not wait for
        self._excluded_until: dict[str, float] = {}
        self._repeated_joins: Counter[str] = Counter()
        self._verdict: tuple[object, str] = None, ""  # of the site's policy on changes, and what it was about
        self._stalls: Counter[str] = Counter()  # epochs in which a participant did not contribute
        self._reset()

    def _reset(self) -> None:
        self.key, self.digest = b"", ""  # of this epoch: the secret key; rows, settings, policy and members
        self.pool = Pool()
        self.suppressed = ""  # what this site's policy forbids
        self.failure = ""  # why a new epoch has to start
        self.totals: list[Total] = []  # of the rounds that are complete
        self.is_implausible = False
        self._early: dict[Slot, Signed] = {}  # contributions that cannot be checked yet
        self._keys: dict[str, bytes] | None = None
        self._rounds: dict[int, Round] = {}
        self._entered_at, self._roster_at = -inf, inf
        self._has_restarted = False
        self._heard_at = inf  # when a neighbour was first heard from
        self._contributed: SumSource | None = None  # to the first round

    # State.

    @property
    def slots(self) -> Mapping[Slot, tuple[bytes, AnyStatement]]:
        """The statements of the epoch, by what they are about."""
        return self.pool.slots

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(sorted(self.trust.members))

    @property
    def epoch_id(self) -> tuple[int, str]:
        """The number of the epoch, and the node that started it."""
        return self.announcement.epoch, self.announcement.origin

    @property
    def _deadline(self) -> float:
        return self.source.settings.deadline_seconds

    @property
    def _least_participants(self) -> int:
        return max(2, self.source.settings.colluding + 1 if self.source.settings.epsilon else 0)

    @property
    def is_origin(self) -> bool:
        return self.announcement.origin == self.name

    @property
    def roster(self) -> Roster | None:
        found = self.slots.get(Slot("roster", self.announcement.origin))
        return found[1] if found is not None and isinstance(found[1], Roster) else None

    @property
    def roster_id(self) -> bytes:
        return self.slots[Slot("roster", self.announcement.origin)][0]

    @property
    def joins(self) -> dict[str, Join]:
        return {slot.home: one for slot, (_, one) in self.slots.items() if isinstance(one, Join)}

    @property
    def refusals(self) -> list[str]:
        return sorted(slot.home for slot in self.slots if slot.kind == "refusal")

    @property
    def participants(self) -> tuple[str, ...]:
        return () if self.roster is None else tuple(name for name, _ in self.roster.participants)

    @property
    def is_complete(self) -> bool:
        """Whether the total of this epoch is known."""
        return self.report is not None and (self.report.epoch, self.report.origin) == self.epoch_id

    def missing(self) -> list[str]:
        """Return the participants whose contribution to the current round is missing."""
        number = len(self.totals) + 1
        names = () if self.is_complete else self.participants
        return [name for name in names if Slot("part", name, number) not in self.slots]

    def keys(self) -> dict[str, bytes] | None:
        """Return the participants' public keys; None if some are not known, or are not those of the roster."""
        if self._keys is None and self.roster is not None:
            held = {name: self.slots.get(Slot("join", name)) for name in self.participants}
            found = {
                name: one[1].key
                for name, id in self.roster.participants
                if (one := held[name]) is not None and one[0] == id and isinstance(one[1], Join) and one[1].key
            }
            self._keys = found if len(found) == len(held) else None
        return self._keys

    def state(self) -> str:
        """Return what this node does in the epoch."""
        if self.suppressed or self.refusals:
            return "suppressed"
        if self.is_implausible:
            return "implausible"
        if self.is_complete:
            return "complete"
        return "joining" if self.roster is None else "contributing"

    def explain(self) -> str:
        """Return the reason of the state; it may tell the number of this site's rows, so it is for this site only."""
        if self.suppressed:
            return f"suppressed by policy: {self.suppressed}"
        if self.refusals:
            return f"suppressed by the policy of {', '.join(self.refusals)}"
        if self.epoch and self.digest != self.source.rows_digest:
            verdict = self._verdict_on_changes(self.participants or self.members, has_noise=False)
            if verdict:
                return f"rows changed, not released yet: {verdict}"
        silent = [name for name in self.members if name not in self.joins]
        match self.state():
            case "joining":
                return f"not joined yet: {', '.join(silent)}" if silent else ""
            case "contributing":
                return f"no contribution yet of {', '.join(self.missing())}"
        return ""

    # Records.

    def apply(self, record: Record) -> None:
        """Change the state by a record that is in the journal."""
        match record:
            case SumEpochStarted():
                self._reset()
                self.announcement, self.digest = record.announcement, record.digest
                self.key, self.row_key = record.key, record.row_key
            case StatementMade():
                self._insert(record.signed)
                self.suppressed = record.suppressed or self.suppressed
            case PartMade():
                self._insert(record.signed)
                if not self.baselines or self.baselines[-1] != record.baseline:
                    self.baselines = [*self.baselines, record.baseline][-MAX_BASELINES:]
            case Released():
                self.report = _decode_report(record.report)
                self._stalls.clear()
                if self.name in self.report.participants and self.baselines:
                    self.baselines = [*self.baselines[:-1], self.baselines[-1]._replace(is_released=True)]
                self.key = b""  # nothing can be opened with it any more

    def _insert(self, signed: Signed) -> None:
        self.pool.insert(signed)
        self._keys = None

    def snapshot(self) -> bytes:
        own = tuple(self.pool.statements[id] for id, one in self.slots.values() if one.home == self.name)
        report = b"" if self.report is None else _encode(self.report)
        head = self.announcement, self.digest, self.key, self.row_key, own, self.suppressed
        return _encode(Snapshot(*head, tuple(self.baselines), report))

    def restore(self, snapshot: bytes | None, records: Sequence[Record]) -> None:
        """Restore the state from a snapshot and the records after it."""
        if snapshot is not None:
            saved = _decode_snapshot(snapshot)
            self.announcement, self.digest = saved.announcement, saved.digest
            self.key, self.row_key, self.suppressed = saved.key, saved.row_key, saved.suppressed
            self.baselines = list(saved.baselines)
            self.report = _decode_report(saved.report) if saved.report else None
            for signed in saved.own:
                self._insert(signed)
        for record in records:
            self.apply(record)
        self._has_restarted, self._heard_at = True, inf

    # Epochs.

    def start_epoch(self, reason: str) -> Step:
        """Start the next epoch."""
        return self._enter(self.announce(self.epoch + 1, reason))

    def _enter(self, announcement: Announcement) -> Step:
        row_key = self.row_key or secrets.token_bytes(32)
        record = SumEpochStarted(announcement, self.source.rows_digest, masks.new_key(), row_key)
        return Step((record,), (), "epochs")

    def _follow(self, sender: str, announcement: Announcement, now: float) -> Iterator[Step]:
        """Follow a neighbour to a later epoch; of two with the same number, that of the lower name counts."""
        epoch, origin = announcement[:2]
        is_later = epoch > self.epoch or (0 < epoch == self.epoch and origin < self.announcement.origin)
        if is_later:
            self.check_announcement(sender, announcement, now)
            self.blame(now)
            yield self._enter(announcement)

    def blame(self, now: float) -> None:
        """Count the participants that let the epoch fail, before the next one; leave out those that do so again."""
        if self.roster is None or self.is_complete or self.refusals or now - self._roster_at < self._deadline:
            return
        self._absent = set(self.missing())
        self._stalls.update(self._absent)
        for name in self._absent:
            if self._stalls[name] > MAX_STALLS:
                times = min(self._stalls[name] - MAX_STALLS, 10) - 1
                self._excluded_until[name] = now + EXCLUSION_SECONDS * 2**times

    def forgive(self) -> None:
        """Forget who let epochs fail, since the members changed."""
        self._absent, self._excluded_until = set(), {}
        self._stalls.clear()
        self._repeated_joins.clear()

    def reason_for_epoch(self, now: float) -> str:
        """Return why a new epoch should start; empty if there is no reason."""
        if self.epoch == 0:
            return "first start"
        if self.failure:
            return self.failure
        started = self.joins.get(self.announcement.origin)
        if started is not None and started.list_serial < self.trust.serial and started.members != self.trust.digest:
            return "members changed"
        names = self.participants or self.members
        if self.digest != self.source.rows_digest and not self._verdict_on_changes(names, has_noise=False):
            return "rows changed"
        if self.suppressed and not (self._verdict_to_join(now) or self._verdict_on_changes(names)):
            return f"the policy of {self.name} allows it now"
        return ""

    # Messages.

    def ping(self, sent: int) -> bytes:
        return wire.encode(wire.Ping(sent, self.announcement, None, self.trust.serial, self.pool.held()))

    def handle(self, sender: str, message: wire.AnyMessage, now: float) -> Iterator[Step]:
        """Yield the steps that a message leads to; each is to be carried out before the next one is requested.

        `now` is the time in seconds since 1970. Raises `Rejected` for a message that cannot be used.
        """
        match message:
            case wire.Ping():
                self._heard_at = min(self._heard_at, now)
                yield Step((), ((sender, wire.encode(wire.Pong(message.sent))),))
                yield from self._follow(sender, message.announcement, now)
                if message.announcement[:2] == self.epoch_id and message.held != self.pool.held():
                    yield self.tell(sender)
            case wire.Have():
                if (message.epoch, message.origin) == self.epoch_id:
                    self.pool.note_offers(sender, message.ids)
                    yield from self._ask(sender, now)
            case wire.Want():
                found = self.pool.answers(sender, message.ids)
                yield Step((), tuple((sender, wire.encode(wire.Give(one))) for one in found), "statements sent")
            case wire.Give():
                self._take(sender, message.signed, now)
                yield from self._ask(sender, now)

    def tell(self, neighbour: str) -> Step:
        """Tell a neighbour which statements this node has."""
        return Step((), ((neighbour, self._have(self.pool.statements)),))

    def tell_news(self) -> Step:
        """Tell all neighbours of new statements."""
        message = self._have(self.pool.take_news())
        return Step((), tuple((name, message) for name in self.neighbours))

    def _have(self, ids: Iterable[bytes]) -> bytes:
        return wire.encode(wire.Have(*self.epoch_id, tuple(ids)))

    def _ask(self, sender: str, now: float) -> Iterator[Step]:
        lacking = self.pool.ask(sender, now, 8 * self.source.layout.size)
        if lacking:
            yield Step((), ((sender, wire.encode(wire.Want(tuple(lacking)))),))

    def _take(self, sender: str, signed: Signed, now: float) -> None:
        id = statements.id_of(signed)
        if id in self.pool.statements:
            return
        statement = statements.read(signed)
        if (statement.epoch, statement.origin) != self.epoch_id:
            raise Rejected("late", f"a statement of epoch {statement.epoch}")
        if not statements.verify(signed, statement.home, self.identity.network, self.trust):
            self.pool.distrust(sender)
            raise Rejected("signature", f"a statement is not signed by {statement.home}")
        self._check(statement)
        held = self.slots.get(statement.slot)
        if held is not None:
            self._on_second(statement, now)
            return
        if isinstance(statement, Part | Refusal) and not self._is_due(statement):
            self._early[statement.slot] = signed
            self.pool.postpone(sender, id)
            return
        self._insert(signed)
        if isinstance(statement, Roster):
            self._roster_at = now

    def _check(self, statement: AnyStatement) -> None:
        """Raise `Rejected` for a statement that no honest site makes."""
        match statement:
            case Join():
                if statement.key and not masks.is_public_key(statement.key):
                    raise Rejected("statement", f"the key of {statement.home} is no public key")
            case Roster():
                names = [name for name, _ in statement.participants]
                is_of_members = names == sorted(set(names)) and set(names) <= set(self.members)
                if statement.home != statement.origin or not is_of_members or len(names) < self._least_participants:
                    raise Rejected("statement", f"the roster of {statement.home} does not hold")
            case Part():
                known = self._round(statement.round)
                if known is not None and len(statement.vector) != 8 * known.layout.size:
                    raise Rejected("statement", f"the contribution of {statement.home} has the wrong length")

    def _is_due(self, statement: Part | Refusal) -> bool:
        """Return whether a contribution is one of the roster's participants, and of a round that this node knows."""
        if self.roster is None or self.keys() is None:
            return False
        if statement.roster != self.roster_id or statement.home not in self.participants:
            return False
        return isinstance(statement, Refusal) or self._round(statement.round) is not None

    def _round(self, number: int) -> Round | None:
        """Return what a round is about, if that is known yet."""
        if number not in self._rounds and self.roster is not None and number == len(self.totals) + 1:
            last = self.totals[-1] if self.totals else None
            layout = self.source.layout if last is None else last.round.layout.following(last.totals)
            if layout is not None:
                noise = choose_noise(self.source.settings, layout, len(self.participants))
                self._rounds[number] = Round(number, layout, noise)
        return self._rounds.get(number)

    def _on_second(self, statement: AnyStatement, now: float) -> None:
        """Note that a site signed two different statements where one is due, which spoils the epoch."""
        home = statement.home
        if isinstance(statement, Join):
            self._repeated_joins[home] += 1
            self.failure = f"{home} joined twice; did it lose its journal?"
        if not isinstance(statement, Join) or self._repeated_joins[home] > MAX_REPEATED_JOINS:
            self._excluded_until[home] = now + EXCLUSION_SECONDS
            self.failure = f"{home} signed two different statements"

    # What this node does by itself.

    def advance(self, now: float) -> Iterator[Step]:
        """Yield what this node can do next; each step is to be carried out before the next one is requested."""
        if self.announcement == NO_EPOCH:
            return
        if self._entered_at == -inf:
            self._entered_at = now
        if self._has_restarted and now - self._heard_at < RESUME_SECONDS:
            return
        if Slot("join", self.name) not in self.slots:
            yield self._join(now)
        if self.is_origin and self.roster is None and (roster := self._next_roster(now)) is not None:
            yield self._say(roster)
        if self.roster is not None:
            self._roster_at = min(self._roster_at, now)
            yield from self._contribute(now)

    def _say(self, statement: AnyStatement, suppressed: str = "", entries: tuple[LogEntry, ...] = ()) -> Step:
        signed = statements.sign(statement, self.identity.network, self.trust)
        return Step((StatementMade(signed, suppressed),), (), "statements made", None, entries)

    def _join(self, now: float) -> Step:
        verdict = self._verdict_to_join(now)
        key = b"" if verdict else masks.public_key(self.key)
        list_ = self.trust.serial, self.trust.digest
        join = Join(*self.epoch_id, self.name, key, self.source.policy.min_cell, *list_)
        return self._say(join, verdict, self._suppression(verdict, now))

    def _verdict_to_join(self, now: float) -> str:
        """Return what this site's policy forbids about the statistic, its rows and the budget; empty if nothing."""
        if self.is_withdrawn:
            return "the site withdrew its rows"
        before = [one for one in self.log if (one.epoch, one.origin) != self.epoch_id]
        return policy.verdict_to_join(self.source.policy, self.source.subject(), site.history_of(before), now)

    def _suppression(self, verdict: str, now: float) -> tuple[LogEntry, ...]:
        """Return an entry of the log for a suppression, unless the last entry is about the same."""
        last = self.log[-1] if self.log else None
        if not verdict or (last is not None and (last.event, last.reason) == ("suppressed", verdict)):
            return ()
        return (
            self._entry(
                "suppressed", now, Round(1, self.source.layout, NO_NOISE), reason=verdict, rows=self.source.rows
            ),
        )

    def history(self) -> list[Past]:
        """Return the contributions so far."""
        return site.history_of(self.log)

    def _verdict_on_changes(self, participants: Collection[str], has_noise: bool | None = None) -> str:
        """Return what this site's policy forbids about participants and changed rows; empty if nothing.

        With noise few changed rows may be released, but are no reason to start an epoch.
        """
        noise = self.source.settings.epsilon is not None if has_noise is None else has_noise
        about = (
            self.source.rows_digest,
            self.source.policy,
            self.members,
            tuple(self.baselines),
            tuple(participants),
            noise,
        )
        if self._verdict[0] != about:  # with many rows it takes a second
            found = site.verdict_on_changes(
                self.source, self.baselines, self.row_key, participants, self.members, noise
            )
            self._verdict = about, found
        return self._verdict[1]

    def _entry(self, event: str, now: float, current: Round, **others: Any) -> LogEntry:
        return site.make_entry(self.source, event, now, self.announcement, *current, **others)

    def _next_roster(self, now: float) -> Roster | None:
        """Return the roster if all members answered, or those that did not answer need not be waited for."""
        joins, waited = self.joins, now - self._entered_at
        names = [name for name, one in sorted(joins.items()) if one.key and now >= self._excluded_until.get(name, -inf)]
        silent = set(self.members) - joins.keys()
        patience = self._deadline
        if silent <= self._absent:
            patience = min(patience, ABSENT_SECONDS)
        if len(names) < self._least_participants or (silent and waited < patience):
            return None
        names = names[: statements.MAX_PARTICIPANTS]
        chosen = tuple((name, self.slots[Slot("join", name)][0]) for name in names)
        return Roster(*self.epoch_id, self.name, chosen)

    def _contribute(self, now: float) -> Iterator[Step]:
        """Contribute to each round in turn; then report the total."""
        keys = self.keys()
        if keys is None or self.is_complete or self.is_implausible or self.refusals:
            return
        while (current := self._round(len(self.totals) + 1)) is not None:
            self._take_early()
            if self.name in keys and Slot("part", self.name, current.number) not in self.slots:
                yield self._part_or_refusal(keys, current, now)
            if self.missing() or self.refusals:
                return
            self._add_up(current)
            if self.is_implausible:
                return
        yield self._release(now)

    def _take_early(self) -> None:
        """Insert contributions that came before the roster, or before the round that they are for."""
        for slot, signed in list(self._early.items()):
            statement = statements.read(signed)
            if not isinstance(statement, Part | Refusal) or not self._is_due(statement):
                continue
            del self._early[slot]
            try:
                self._check(statement)
            except Rejected:
                continue
            if statement.slot not in self.slots:
                self._insert(signed)

    def _part_or_refusal(self, keys: dict[str, bytes], current: Round, now: float) -> Step:
        number, layout, noise = current
        if number == 1:
            self._contributed = self.source
        source = self._contributed or self.source
        verdict = self._verdict_to_join(now) or (self._verdict_on_changes(keys) if number == 1 else "")
        if self.digest != source.rows_digest and number > 1:
            verdict = "its rows changed between two rounds"
        if verdict:
            refusal = Refusal(*self.epoch_id, self.name, self.roster_id)
            return self._say(refusal, verdict, self._suppression(verdict, now))
        context = self._context(current)
        vector = source.vector(layout, noise, masks.random_bytes(self.key, context))
        masked = vector + masks.mask(layout.size, self.name, self.key, keys, context)
        part = Part(*self.epoch_id, self.name, self.roster_id, number, statements.pack(masked))
        signed = statements.sign(part, self.identity.network, self.trust)
        sent = {"participants": tuple(keys), "sent_to": tuple(self.neighbours), "size": len(signed.body)}
        entry = self._entry("contribution", now, current, **sent, rows=source.rows)
        baseline = Baseline(source.layout.blocks, tuple(keys), source.row_digests(self.row_key))
        return Step((PartMade(signed, baseline),), (), "contributions", None, (entry,))

    def _context(self, current: Round) -> bytes:
        """Return what the masks are for, so that no other vector has the same ones."""
        parts = self.identity.network, *self.epoch_id, self.roster_id, current.number, current.layout.fingerprint
        return _encode(("gosta mask", *parts))

    def _add_up(self, current: Round) -> None:
        parts = [self.slots[Slot("part", name, current.number)][1] for name in self.participants]
        vectors = [statements.unpack(part.vector) for part in parts if isinstance(part, Part)]
        exact, totals = open_totals(vectors, current.noise)
        self.is_implausible = not current.layout.is_plausible(totals, current.noise.reach)
        if not self.is_implausible:
            self.totals.append(Total(current, exact.view(np.uint64), totals))

    def _release(self, now: float) -> Step:
        current, vector, totals = self.totals[-1]
        _, layout, noise = current
        names, source = self.participants, self.source
        min_cell = max(self.joins[name].min_cell for name in names)
        results = layout.results(totals, min_cell, noise.variance, source.confidence_level, noise.bits)
        left_out = tuple(name for name in self.members if name not in names)
        report = SumReport(
            *self.epoch_id,
            now,
            names,
            left_out,
            tuple(results),
            statements.pack(vector),
            layout.fingerprint,
            noise.bits,
            noise.law,
            source.settings.epsilon or 0.0,
            source.settings.delta,
            min_cell,
        )
        rows = source.rows if self.name in names else 0
        entry = self._entry("release", now, current, participants=names, rows=rows)
        return Step((Released(_encode(report)),), (), "releases", None, (entry,))

    # What a node does when an epoch fails.

    def reason_to_give_up(self, now: float) -> str:
        """Return why this node should start another epoch by now; empty if it should not.

        All nodes find the same reason; they wait one after the other, so that one of them starts the epoch.
        """
        if self.epoch == 0 or self.refusals or self.is_implausible or self.is_complete:
            return ""
        if self.roster is None:
            late = now - self._entered_at - self._deadline - ABSENT_SECONDS
            others = [name for name in self.members if name != self.announcement.origin]
            if self.is_origin or self._rank(others) * RANK_SECONDS > late or late < 0:
                return ""
            # The roster of the next epoch does not wait long for these.
            self._absent = set(self.members) - set(self.joins) | {self.announcement.origin}
            return f"{self.announcement.origin}, which started the epoch, is silent"
        missing = self.missing()
        late = now - self._roster_at - self._deadline
        present = [name for name in self.participants if name not in missing]
        if not missing or late < 0 or self._rank(present) * RANK_SECONDS > late:
            return ""
        return f"no contribution of {', '.join(missing)[:150]}"

    def _rank(self, names: Sequence[str]) -> int:
        return names.index(self.name) if self.name in names else len(names)

    def is_left_out(self) -> bool:
        """Whether this node could take part, and the epoch's roster is without it."""
        return bool(self.participants) and self.name not in self.participants and not self.suppressed


def last_contribution(snapshot: bytes | None, records: Sequence[Record], name: str) -> tuple[int, str] | None:
    """Return the epoch, and who started it, of the last contribution that a node's journal tells of; None: of none."""
    saved = None if snapshot is None else _decode_snapshot(snapshot)
    found, epoch = None, (0, "")
    reports = [saved.report] if saved is not None and saved.report else []
    if saved is not None:
        epoch = saved.announcement.epoch, saved.announcement.origin
        found = epoch if any(isinstance(statements.read(one), Part) for one in saved.own) else None
    for record in records:
        match record:
            case SumEpochStarted():
                epoch = record.announcement.epoch, record.announcement.origin
            case PartMade():
                found = epoch
            case Released():
                reports.append(record.report)
    released = [one for one in map(_decode_report, reports) if name in one.participants]
    return found or max(((one.epoch, one.origin) for one in released), default=None)
