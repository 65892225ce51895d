"""The state machine of a node of private sums: messages in, records and messages out.

**An epoch.** Every member *joins* with a new public key, or says that it does not take part. The
node that started the epoch then fixes the *roster*: all that joined, once everybody answered or the
deadline passed. Each participant adds masks to its sums that cancel in the total of all
participants. It first *commits* to the result, by a digest; when all have, it shows its *part*. So
nobody can choose its part by those of others. Where edges of bins are to be found first, there are
two such rounds; a model is fitted in several, of which each follows from the totals before it. When
all parts are in, their total is the total of the sums.

**Spreading.** All of this are signed statements (statements.py). A node passes on every statement
of the epoch: it tells neighbours which ones it has, and they ask for those that they lack.
Statements mean the same whatever their order and however often they come, so nothing has to arrive
exactly once, and a node knows when it has all.

**One part.** A key serves one epoch, and a node signs one part for each epoch and round: it is in
the journal before it is sent, together with its entry in the log, and is sent again after a crash.
Masks are thus never used for two different vectors; not even by a node that lost its journal, since
it also lost the key.

**What was sent is released.** Any participant may keep its own part back, and then knows the total
alone. So a part that was sent counts as known to all participants, whatever became of the epoch:
for the rows that a site contributes (snapshots.py), for the sites whose sums follow from several
totals (companions.py), and for the budget. Noise follows from a secret of the site, the snapshots
of all participants and the law of the noise: an epoch that is repeated has the same noise, and
costs nothing again. (Noise that followed from the site's own snapshot alone would be the same in
two totals between which another site's rows changed: the difference would show these with that
site's noise only.)

**Failures.** A participant that is silent is waited for until the deadline; then another epoch
starts. A participant whose policy forbids the total refuses before anybody has shown a part. A
total that no rows can have is not reported; then all sites open what shows who deviates
(deviations.py). A site that provably deviates, also by signing two different statements where one
is due, is left out.

The state follows from the records, except for statements of others, which a node asks for again
after a restart. What a node decides, and why, is in sum_decisions.py.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from math import inf
from typing import Any

import msgspec

import gosta
from gosta.net.protocol import messages as wire
from gosta.net.protocol import site, statements
from gosta.net.protocol.epochs import NO_EPOCH, Moment, Step
from gosta.net.protocol.messages import Announcement, Rejected, Signed
from gosta.net.protocol.records import (
    CommitMade,
    Deviation,
    PartMade,
    Record,
    Released,
    SitesNoted,
    StatementMade,
    SumEpochStarted,
)
from gosta.net.protocol.site import SumReport, SumSource
from gosta.net.protocol.statements import (
    AnyStatement,
    Commit,
    Join,
    Nonce,
    Opening,
    Part,
    Refusal,
    Roster,
    Slot,
)
from gosta.net.protocol.sum_decisions import MAX_BACK_EPOCHS, SumSite, Verdict
from gosta.net.protocol.sum_epoch import Round
from gosta.net.protocol.sum_memory import Memory
from gosta.private import masks
from gosta.private.log import LogEntry
from gosta.private.noise import NO_NOISE
from gosta.private.snapshots import Contributed, RowSnapshot, block_digests

# For this time a restarted node asks others first what it said before: its journal may be a backup.
RESUME_SECONDS = 2.0
EXCLUSION_SECONDS = 60.0  # for which a site is left out that lets epochs fail; doubled each time
MAX_DOUBLINGS = 9
MAX_REPEATED_JOINS = 2  # of a site that lost its journal, until it is left out
MAX_STALLS = 1  # epochs that a participant may let fail, until it is left out
FALSE_SUMS = "contributed what no rows that it declared can add up to"
TWO_STATEMENTS = "signed two different statements where one is due"
FALSE_MASKS = "opened other masks than most of its partners"
FALSE_COMMITMENT = "showed another contribution than the one to which it had committed"


class Snapshot(msgspec.Struct, array_like=True):
    """The state of a peer, so that a restart need not apply all records."""

    announcement: Announcement
    key: bytes
    own: tuple[Signed, ...]  # statements of this node
    suppressed: str
    memory: Memory
    report: bytes  # a SumReport; empty: none


_encode = msgspec.msgpack.Encoder().encode
_decode_snapshot = msgspec.msgpack.Decoder(Snapshot).decode
_decode_report = msgspec.msgpack.Decoder(SumReport).decode


class SumPeer(SumSite):
    """The protocol state of one node of a network of private sums."""

    # Records.

    def apply(self, record: Record) -> None:
        """Change the state by a record that is in the journal."""
        match record:
            case SumEpochStarted():
                if self.current.roster is not None:
                    self._absent = self._late | (set(self.members) - self.current.joins.keys())
                self._enter_epoch(record.announcement, record.key)
                self.memory.secret = record.secret
                self.memory.count_wasted(record.wasted)
            case StatementMade():
                self.current.insert(record.signed)
                self.current.suppressed = record.suppressed or self.current.suppressed
                if isinstance(statements.read(record.signed), Opening):
                    self.memory.count_opening(self.current.joins[self.name].list_serial)
            case CommitMade():
                self.current.insert(record.signed)
                self.memory.rows = record.rows or self.memory.rows
            case PartMade():
                self.current.insert(record.signed)
                self.memory.add_part(record)
            case SitesNoted():
                self.memory.note(record)
            case Released():
                self.report = _decode_report(record.report)
                self._stalls.clear()
                if self.name in self.report.participants:
                    self._back_epochs = 0
                self.current.key = b""  # nothing can be opened with it any more

    def snapshot(self) -> bytes:
        epoch, said = self.current, tuple(signed for signed, _ in self.all_said())
        report = b"" if self.report is None else _encode(self.report)
        state = self.announcement, epoch.key, said, epoch.suppressed, self.memory, report
        return _encode(Snapshot(*state))

    def restore(self, snapshot: bytes | None, records: Sequence[Record]) -> None:
        """Restore the state from a snapshot and the records after it."""
        if snapshot is not None:
            saved = _decode_snapshot(snapshot)
            self._enter_epoch(saved.announcement, saved.key)
            self.current.suppressed, self.memory = saved.suppressed, saved.memory
            self.report = _decode_report(saved.report) if saved.report else None
            for signed in saved.own:
                self.current.insert(signed)
        for record in records:
            self.apply(record)
        self._has_restarted, self._heard_at = True, inf

    # Epochs.

    def start_epoch(self, reason: str, now: Moment | None = None) -> Step:
        """Start the next epoch; if the time is given, count who let the current one fail."""
        wasted = () if now is None else self.blame(now)
        return self._enter(self.announce(self.epoch + 1, reason), wasted)

    def withdraw(self) -> Step:
        """Take part in no further epoch; totals that are known stay as they are."""
        self.is_withdrawn = True
        return Step()

    def _enter(self, announcement: Announcement, wasted: tuple[str, ...] = ()) -> Step:
        secret = self.memory.secret or secrets.token_bytes(32)
        record = SumEpochStarted(announcement, masks.new_key(), secret, wasted)
        return Step((record,), event="epochs")

    def _follow(self, sender: str, announcement: Announcement, now: Moment) -> Iterator[Step]:
        """Follow a neighbour to a later epoch.

        Of two with one number, that of the lower name counts.
        """
        epoch, origin = announcement.epoch_id
        is_lower = 0 < epoch == self.epoch and origin < self.announcement.origin
        if (epoch > self.epoch or is_lower) and not self.stays(now):
            self.check_announcement(sender, announcement, now.wall)
            yield self._enter(announcement, self.blame(now))

    def blame(self, now: Moment) -> tuple[str, ...]:
        """Count the participants that let the epoch fail, before the next one.

        Leave out those that do so again.

        Returns those that wasted epsilon that this site had spent for the epoch: who refused, whose
        contribution is missing at the deadline, or who signed two different statements.
        """
        if self.current.roster is None or self.is_complete or self.other_lists():
            return ()
        refusing = set(self.current.refusals)
        failing = set() if self.name in refusing else refusing
        if not refusing and now.running - self._round_at >= self._deadline:
            failing = self._late = set(self.missing())
        failing |= {slot.home for slot in self.slots if slot.kind.startswith("second ")}
        self._stalls.update(failing)
        for name in failing:
            if self._stalls[name] > MAX_STALLS:
                times = min(self._stalls[name] - MAX_STALLS - 1, MAX_DOUBLINGS)
                self._excluded_until[name] = now.running + EXCLUSION_SECONDS * 2**times
        return tuple(sorted(failing - {self.name})) if self._has_spent() else ()

    def forgive(self) -> None:
        """Forget who let epochs fail, since the members changed."""
        self._absent, self._excluded_until = set(), {}
        self._stalls.clear()
        self._repeated_joins.clear()
        self.memory.wasted = {}

    def may_come_back(self) -> bool:
        """Return whether a node that is left out may start an epoch, and count that."""
        self._back_epochs += 1
        return self._back_epochs <= MAX_BACK_EPOCHS

    def change_source(self, source: SumSource, neighbours: Collection[str]) -> str:
        """Take other rows, rules, agreements, members or neighbours, also after a withdrawal.

        Returns no reason for an epoch: see `reason_for_epoch`.
        """
        self.neighbours, self.is_withdrawn = neighbours, False
        if source.trust.digest != self.trust.digest:
            self.forgive()
        is_other_list = source.trust.list_digest != self.trust.list_digest
        if is_other_list and Slot("join", self.name) not in self.slots:
            # Statements were checked by the former keys.
            self._enter_epoch(self.announcement, self.current.key)
        self.source, self.trust = source, source.trust
        self._back_epochs = 0
        return ""

    # Messages.

    def ping(self, neighbour: str, sent: int) -> Step:
        """Return a heartbeat, which says which statements this node has."""
        trust, held = self.trust, self.current.pool.held()
        ping = wire.Ping(sent, self.announcement, None, trust.serial, trust.list_digest, held)
        return Step(messages=((neighbour, wire.encode(ping)),))

    def handle(
        self,
        sender: str,
        message: wire.AnyMessage,
        now: Moment,
        refusal: str = "",  # noqa: ARG002
    ) -> Iterator[Step]:
        """Yield the steps that a message leads to; each is to be carried out before the next one.

        There are no offers to refuse. Raises `Rejected` for a message that cannot be used.
        """
        match message:
            case wire.Ping():
                self._heard_at = min(self._heard_at, now.running)
                yield Step(messages=((sender, wire.encode(wire.Pong(message.sent))),))
                yield from self._follow(sender, message.announcement, now)
                is_same_epoch = message.announcement.epoch_id == self.current.id
                if is_same_epoch and message.held != self.current.pool.held():
                    yield self.tell(sender)
            case wire.Have():
                if (message.epoch, message.origin) == self.current.id:
                    self.current.pool.note_offers(sender, message.ids)
                    yield from self._ask(sender, now)
            case wire.Want():
                found = self.current.pool.answers(sender, message.ids)
                answers = tuple((sender, wire.encode(wire.Give(signed))) for signed in found)
                yield Step(messages=answers, event="statements sent")
            case wire.Give():
                self._take(sender, message.signed, now)
                yield from self._ask(sender, now)

    def tell(self, neighbour: str) -> Step:
        """Tell a neighbour which statements this node has."""
        return Step(messages=((neighbour, self._have(self.current.pool.statements)),))

    def tell_news(self) -> Step:
        """Tell all neighbours of new statements."""
        message = self._have(self.current.pool.take_news())
        return Step(messages=tuple((name, message) for name in self.neighbours))

    def _have(self, ids: Iterable[bytes]) -> bytes:
        return wire.encode(wire.Have(*self.current.id, tuple(ids)))

    def _ask(self, sender: str, now: Moment) -> Iterator[Step]:
        size = 8 * max(self.source.layout.size, self.current.largest)
        lacking = self.current.pool.ask(sender, now.running, size)
        if lacking:
            yield Step(messages=((sender, wire.encode(wire.Want(tuple(lacking)))),))

    def _take(self, sender: str, signed: Signed, now: Moment) -> None:
        """Take a statement; raise `Rejected` for one that no honest site makes."""
        id, pool = statements.id_of(signed), self.current.pool
        if id in pool.statements:
            return
        statement = statements.read(signed)
        if (statement.epoch, statement.origin) != self.current.id:
            raise Rejected("late", f"a statement of epoch {statement.epoch}")
        if not statements.verify(signed, statement.home, self.identity.network, self.trust):
            pool.distrust(sender)
            raise Rejected("signature", f"a statement is not signed by {statement.home}")
        known = self.slots.get(statement.slot)
        if known is not None and known[0] != id:
            self._on_second(signed, statement, now)
            return
        self.current.round(len(self.current.totals) + 1, self.source)
        self._check(statement)
        if not self.current.is_due(statement):
            self.current.early[statement.slot] = signed
            pool.postpone(sender, id)
            return
        self._accept(signed, statement)
        if isinstance(statement, Roster):
            self._round_at = now.running

    def _take_early(self) -> None:
        """Insert statements that came before what they refer to was known."""
        for slot, signed in list(self.current.early.items()):
            statement = statements.read(signed)
            if self.current.is_due(statement):
                del self.current.early[slot]
                with suppress(Rejected):
                    self._check(statement)
                    self._accept(signed, statement)

    def _check(self, statement: AnyStatement) -> None:
        self.current.check(statement, self.trust.members, self._least_participants)

    def _accept(self, signed: Signed, statement: AnyStatement) -> None:
        """Insert a statement that is due; one that breaks its home's word only as evidence."""
        if isinstance(statement, Part) and not self.current.keeps_word(statement):
            home, evidence = statement.home, statement.slot._replace(kind="evidence")
            if evidence in self.slots:
                what = f"{home} showed several contributions to which it did not commit"
                raise Rejected("statement", what)
            self.current.pool.insert(signed, evidence)
            self._note_deviation(home, FALSE_COMMITMENT)
        elif statement.slot not in self.slots:
            self.current.insert(signed)

    def _on_second(self, signed: Signed, statement: AnyStatement, now: Moment) -> None:
        """Note that a site signed two statements where one is due, which spoils the epoch.

        The second one is passed on, so that all nodes see it.
        """
        slot, home = statement.slot._replace(kind=f"second {statement.slot.kind}"), statement.home
        if slot in self.slots or home == self.name:
            return
        self.current.pool.insert(signed, slot)
        if isinstance(statement, Join):
            self._repeated_joins[home] += 1
            self.current.failure = f"{home} joined twice; did it lose its journal?"
            if self._repeated_joins[home] > MAX_REPEATED_JOINS:
                self._excluded_until[home] = now.running + EXCLUSION_SECONDS
        else:
            self._note_deviation(home, TWO_STATEMENTS)

    def _note_deviation(self, name: str, what: str) -> None:
        """Note who deviates, and that another epoch is to start without it."""
        if name not in self._deviants():
            self._new_deviations[name] = Deviation(what, self.trust.serial)
        if not self.is_complete:
            self.current.failure = f"{name} {what}"

    # What this node does by itself.

    def advance(self, now: Moment, connected: Collection[str] = ()) -> Iterator[Step]:
        """Yield what this node can do next.

        Each step is to be carried out before the next one is requested.

        `connected` are the neighbours to which a message goes now.
        """
        if self.announcement == NO_EPOCH:
            return
        if self._entered_at == -inf:
            self._entered_at = now.running
        if self._has_restarted and now.running - self._heard_at < RESUME_SECONDS:
            return
        yield from self._log_agreements(now)
        self._has_restarted = False
        if Slot("join", self.name) not in self.slots:
            yield self._join(now)
        if self.is_origin and self.current.roster is None and (roster := self._next_roster(now)):
            yield self._say(roster)
        if self.current.roster is not None:
            self._round_at = min(self._round_at, now.running)
            yield from self._contribute(now, connected)
            if self.current.refusals:
                self._refused_at = min(self._refused_at, now.running)
        yield from self._note_sites()

    def _log_agreements(self, now: Moment) -> Iterator[Step]:
        """Write to the log what the operator agreed to, once."""
        agreed = self.source.agreed
        text = ", ".join([*agreed.sites, *(["this site leaves"] if agreed.leaves else [])])
        last = next((entry for entry in reversed(self.log) if entry.event == "agreement"), None)
        is_new = last is not None and max(agreed.sites.values(), default=-inf) > last.time
        if is_new or text != (last.reason if last is not None else ""):
            yield Step(entries=(self._entry("agreement", now, reason=text),))

    def _note_sites(self) -> Iterator[Step]:
        """Write to the journal who deviates, and who agrees."""
        keys = self.trust.keys
        said = {
            keys[name]: join.agrees for name, join in self.current.joins.items() if name in keys
        }
        known = dict.fromkeys(self.memory.agreeing, True) | said
        agreeing = tuple(sorted(key for key, agrees in known.items() if agrees))
        if self._new_deviations or agreeing != self.memory.agreeing:
            deviating = {**self.memory.deviating, **self._new_deviations}
            self._new_deviations = {}
            yield Step((SitesNoted(deviating, agreeing),))

    def _say(
        self, statement: AnyStatement, suppressed: str = "", entries: tuple[LogEntry, ...] = ()
    ) -> Step:
        record = StatementMade(self._signed(statement), suppressed)
        return Step((record,), event="statements made", entries=entries)

    def _signed(self, statement: AnyStatement) -> Signed:
        return statements.sign(statement, self.identity.network, self.trust)

    def _join(self, now: Moment) -> Step:
        verdict = self._verdict_to_join(now)
        join = Join(
            *self.current.id,
            self.name,
            b"" if verdict else masks.public_key(self.current.key),
            b"" if verdict else self.snapshot_tag(),
            hashlib.sha256(self.current.nonce()).digest(),
            self._agrees(),
            self.source.policy.min_cell,
            self.trust.serial,
            self.trust.list_digest,
        )
        return self._say(join, verdict, self._suppression(verdict, now))

    def _suppression(self, verdict: str, now: Moment) -> tuple[LogEntry, ...]:
        """Return an entry of the log for a suppression, unless the last entry is about the same."""
        last = [(entry.event, entry.reason) for entry in self.log[-1:]]
        if not verdict or last == [("suppressed", verdict)]:
            return ()
        return (self._entry("suppressed", now, reason=verdict),)

    def _entry(
        self, event: str, now: Moment, round_: Round | None = None, **others: Any
    ) -> LogEntry:
        number, layout, noise, _ = round_ or Round(1, self.source.layout, NO_NOISE)
        about = self.announcement, number, layout, noise
        return site.make_entry(self.source, event, now.wall, *about, **others)

    # Contributions.

    def _contribute(self, now: Moment, connected: Collection[str]) -> Iterator[Step]:
        """Contribute to each round in turn; then report the total."""
        epoch, keys = self.current, self.current.keys()
        if keys is None or self.is_complete:
            return
        while epoch.implausible is None:
            round_ = epoch.round(len(epoch.totals) + 1, self.source)
            if round_ is None:
                yield self._release(now)
                return
            for due in epoch.due(round_.number):
                self._take_early()
                is_said = self.name not in keys or due._replace(home=self.name) in self.slots
                if not is_said and not epoch.refusals:
                    yield self._next_statement(due, round_, now, connected)
                if epoch.lacking(due):
                    return
            epoch.add_up(round_, self.trust)
            self._round_at = now.running
        yield from self._open(epoch.implausible, now)

    def _next_statement(
        self, due: Slot, round_: Round, now: Moment, connected: Collection[str]
    ) -> Step:
        if due.kind == "nonce":
            return self._say(Nonce(*self.current.head, self.current.nonce()))
        if due.kind == "commit":
            return self._commit_or_refuse(round_, now)
        return self._show_part(round_, now, connected)

    def _commit_or_refuse(self, round_: Round, now: Moment) -> Step:
        verdict = self._verdict(round_, now)
        if verdict.reason:
            return self._refuse(verdict, now)
        rows = self.chosen_rows() if round_.number == 1 else self.rows
        assert rows is not None
        digest = hashlib.sha256(self._part(round_, rows)).digest()
        commit = Commit(*self.current.head, round_.number, digest)
        changed = None if self.rows is not None and rows.digest == self.rows.digest else rows
        return Step((CommitMade(self._signed(commit), changed),), event="statements made")

    def _refuse(self, verdict: Verdict, now: Moment) -> Step:
        refusal = Refusal(*self.current.head, verdict.needs)
        return self._say(refusal, verdict.reason, self._suppression(verdict.reason, now))

    def _show_part(self, round_: Round, now: Moment, connected: Collection[str]) -> Step:
        epoch, rows = self.current, self.rows
        commit = self.said(Commit, round_.number)
        assert commit is not None
        verdict = self._verdict(round_, now)
        vector = b"" if rows is None else self._part(round_, rows)
        if rows is None or hashlib.sha256(vector).digest() != commit.digest:
            lost = Verdict("its journal lost the rows to which it had committed")
            return self._refuse(lost, now)
        if verdict.reason:
            return self._refuse(verdict, now)
        signed = self._signed(
            Part(*epoch.head, round_.number, epoch.commits(round_.number), vector)
        )
        has_noise = round_.noise.law != "none"
        entry = self._entry(
            "contribution",
            now,
            round_,
            rows=rows,
            participants=epoch.participants,
            sent_to=tuple(connected),
            size=len(signed.body),
            noise_id=epoch.noise_context(round_, self.trust).hex() if has_noise else "",
        )
        contributed = self._contributed(round_, rows)
        names = {self.trust.keys.get(name, b""): name for name in epoch.participants}
        record = PartMade(signed, contributed, {} if has_noise else names, now.wall)
        return Step((record,), event="contributions", entries=(entry,))

    def _contributed(self, round_: Round, rows: RowSnapshot) -> Contributed | None:
        """Return what is remembered of a contribution; None: the first round's is enough."""
        earlier = self.current.earlier_totals(round_.number)
        if earlier and round_.layout.blocks == self.source.layout.blocks:
            return None
        blocks = block_digests(round_.layout, rows, self.memory.secret)
        return Contributed(self.source.encoded_settings, earlier, blocks)

    def _part(self, round_: Round, rows: RowSnapshot) -> bytes:
        return statements.pack(self.current.part(round_, rows, self.memory.secret, self.trust))

    # Totals.

    def _open(self, round_: Round, now: Moment) -> Iterator[Step]:
        """Open the sums of masks over halves of the vector.

        When all have, find out who deviates.
        """
        epoch, slot = self.current, Slot("opening", self.name, round_.number)
        is_said = self.name not in epoch.participants or slot in self.slots
        if not is_said and not epoch.refusals:
            if (verdict := self._verdict(round_, now)).reason:
                yield self._refuse(verdict, now)
            elif not self.opening_over_budget(round_):
                pads = round_._replace(noise=round_.pads)
                about = {"rows": self.rows, "participants": epoch.participants}
                opening = Opening(*epoch.head, round_.number, epoch.open_masks(round_))
                yield self._say(opening, entries=(self._entry("opening", now, pads, **about),))
        self._take_early()
        if epoch.lacking(slot):
            return
        found = epoch.find_deviations(round_, self.trust)
        epoch.suspects = found.pairs
        for name in found.sites:
            self._note_deviation(name, FALSE_SUMS)
        for name in found.accused:
            self._note_deviation(name, FALSE_MASKS)

    def _release(self, now: Moment) -> Step:
        epoch, settings = self.current, self.source.settings
        round_, vector, totals = epoch.totals[-1]
        number, layout, noise, _ = round_
        names = epoch.participants
        joins = [epoch.joins[name] for name in names]
        level = self.source.confidence_level
        results = layout.results(totals, epoch.min_cell, noise.variance, level, noise.bits)
        parts = map(statements.pack, epoch.vectors(round_).values())
        rows = self.rows if self.name in names else None
        report = SumReport(
            *epoch.id,
            time=now.wall,
            participants=names,
            left_out=tuple(name for name in self.members if name not in names),
            results=tuple(results),
            vector=statements.pack(vector),
            earlier_totals=epoch.earlier_totals(number),
            settings=self.identity.fingerprint,
            layout=layout.fingerprint,
            bits=noise.bits,
            law=noise.law,
            epsilon=settings.epsilon or 0.0,
            delta=settings.delta,
            min_cell=epoch.min_cell,
            tags=tuple(join.snapshot for join in joins),
            keys=tuple(self.trust.keys.get(name, b"") for name in names),
            rows_of=0.0 if rows is None else rows.time,
            parts=tuple(hashlib.sha256(part).digest() for part in parts),
            version=gosta.__version__,
        )
        entry = self._entry("release", now, round_, participants=names, rows=rows)
        return Step((Released(_encode(report)),), event="releases", entries=(entry,))


def last_contribution(
    snapshot: bytes | None, records: Sequence[Record], name: str
) -> tuple[int, str] | None:
    """Return the last epoch to which a node's journal says that it contributed; None: to none."""
    found = None
    epoch = 0, ""
    reports = list[bytes]()
    if snapshot is not None:
        saved = _decode_snapshot(snapshot)
        epoch, reports = saved.announcement.epoch_id, [saved.report] if saved.report else []
        has_part = any(isinstance(statements.read(signed), Part) for signed in saved.own)
        found = epoch if has_part else None
    for record in records:
        match record:
            case SumEpochStarted():
                epoch = record.announcement.epoch_id
            case PartMade():
                found = epoch
            case Released():
                reports.append(record.report)
    released = [report for report in map(_decode_report, reports) if name in report.participants]
    return found or max((report.epoch_id for report in released), default=None)
