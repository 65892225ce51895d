"""The state machine of a node that contributes to private sums: messages in, records and messages out.

**An epoch.** Every member *joins* with a new public key, or says that it does not take part. The node that started the
epoch then fixes the *roster*: all that joined, once everybody answered or the deadline passed. Each participant adds
masks to its sums that cancel in the total of all participants. It first *commits* to the result, by a digest; when all
have, it shows its *part*. So nobody can choose its part by those of others. Where edges of bins are to be found first,
there are two such rounds. When all parts are in, their total is the total of the sums.

**Spreading.** All of this are signed statements (statements.py). A node passes on every statement of the epoch: it
tells neighbours which ones it has, and they ask for those that they lack. Statements mean the same whatever their order
and however often they come, so nothing has to arrive exactly once, and a node knows when it has all.

**One part.** A key serves one epoch, and a node signs one part for each epoch and round: it is in the journal before it
is sent, together with its entry in the log, and is sent again after a crash. Masks are thus never used for two
different vectors; not even by a node that lost its journal, since it also lost the key.

**What was sent is released.** Any participant may keep its own part back, and then knows the total alone. So a part
that was sent counts as known to all participants, whatever became of the epoch: for the rows that a site contributes
(snapshots.py), for the sites whose sums follow from several totals (companions.py), and for the budget. Noise follows
from a secret of the site, the snapshots of all participants and the law of the noise: an epoch that is repeated has the
same noise, and costs nothing again. (Noise that followed from the site's own snapshot alone would be the same in two
totals between which another site's rows changed: the difference would show these with that site's noise only.)

**Failures.** A participant that is silent is waited for until the deadline; then another epoch starts. A participant
whose policy forbids the total refuses before anybody has shown a part. A total that no rows can have is not reported;
then all sites open what shows who deviates (deviations.py). A site that provably deviates, also by signing two
different statements where one is due, is left out.

The state follows from the records, except for statements of others, which a node asks for again after a restart.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Any, NamedTuple

import msgspec

from gosta.net.members import Trust
from gosta.net.protocol import messages as wire
from gosta.net.protocol import site, statements
from gosta.net.protocol.epochs import NO_EPOCH, EpochPeer, Identity, Moment, Step
from gosta.net.protocol.messages import Announcement, Rejected, Signed
from gosta.net.protocol.records import (
    CommitMade,
    Deviation,
    LogEntry,
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
from gosta.net.protocol.sum_epoch import Round, SumEpoch
from gosta.net.protocol.sum_memory import Choice, Memory
from gosta.private import masks, policy
from gosta.private.accounting import Spent
from gosta.private.deviations import MAX_OPENINGS
from gosta.private.noise import NO_NOISE, Noise
from gosta.private.policy import Past
from gosta.private.snapshots import Contributed, RowSnapshot, block_digests

ABSENT_SECONDS = 3.0  # that a member has to join which was not there in the last epoch
RANK_SECONDS = 1.0  # between the nodes that may start an epoch when another one failed
BACK_SECONDS = 5.0  # after a release, until a member that was not in it starts an epoch
MAX_BACK_EPOCHS = (
    2  # that a member starts which joins and is left out, until something changes at its site
)
RESUME_SECONDS = 2.0  # for which a restarted node asks others first what it said before: its journal may be a backup
EXCLUSION_SECONDS = 60.0  # for which a site is left out that lets epochs fail; doubled each time
MAX_DOUBLINGS = 9
MAX_REPEATED_JOINS = 2  # of a site that lost its journal, until it is left out
MAX_STALLS = 1  # epochs that a participant may let fail, until it is left out
FALSE_SUMS = "contributed what no rows that it declared can add up to"
TWO_STATEMENTS = "signed two different statements where one is due"
FALSE_MASKS = "opened other masks than most of its partners"
TOO_MANY_OPENINGS = (
    f"{MAX_OPENINGS} totals of these members were no sums over rows, and more would show too much of this site's "
    "rows; the coordinator has to leave out sites one after the other"
)
FALSE_COMMITMENT = "showed another contribution than the one to which it had committed"


class Verdict(NamedTuple):
    """Why a site does not contribute; empty if it does."""

    reason: str = ""
    needs: tuple[str, ...] = ()  # sites whose agreement is missing, if that is why


class Snapshot(msgspec.Struct, array_like=True):
    """The state of a peer, so that a restart need not apply all records."""

    announcement: Announcement
    key: bytes
    own: tuple[Signed, ...]
    suppressed: str
    memory: Memory
    report: bytes  # a SumReport; empty: none


_encode = msgspec.msgpack.Encoder().encode
_decode_snapshot = msgspec.msgpack.Decoder(Snapshot).decode
_decode_report = msgspec.msgpack.Decoder(SumReport).decode


class SumPeer(EpochPeer):
    """The protocol state of one node of a network of private sums."""

    def __init__(
        self, identity: Identity, source: SumSource, neighbours: Collection[str], trust: Trust
    ) -> None:
        super().__init__(identity, trust)
        self.source, self.neighbours = source, neighbours
        self.log: list[LogEntry] = []  # of contributions, from the journal
        self.report: SumReport | None = None  # of the last release
        self.memory = Memory()
        self.conflict = ""  # why the member list cannot be trusted; set by the node
        self._absent: set[str] = set()  # members that the next roster does not wait for
        self._excluded_until: dict[str, float] = {}
        self._repeated_joins: Counter[str] = Counter()
        self._stalls: Counter[str] = Counter()  # epochs in which a participant did not contribute
        self._back_epochs = 0  # that this node started, since it was left out
        self._choice: tuple[object, Choice] = None, Choice(None)
        self._has_restarted = False  # and has not yet joined an epoch since
        self._enter_epoch(NO_EPOCH, b"")

    def _enter_epoch(self, announcement: Announcement, key: bytes) -> None:
        self.announcement = announcement
        self.current = SumEpoch(self.identity.network, self.name, announcement, key)
        self._found: dict[str, Deviation] = {}  # who deviates, not in the journal yet
        self._late = set[str]()  # participants whose contribution was missing at the deadline
        self._entered_at, self._roster_at, self._refused_at = -inf, inf, inf
        self._has_restarted &= (
            announcement.epoch > 1
        )  # nobody can have said anything before the first one
        self._heard_at = inf  # when a neighbour was first heard from

    # State.

    @property
    def slots(self) -> Mapping[Slot, tuple[bytes, AnyStatement]]:
        """The statements of the epoch, by what they are about."""
        return self.current.slots

    @property
    def rows(self) -> RowSnapshot | None:
        """The rows of the last commit."""
        return self.memory.rows

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(sorted(self.trust.members))

    @property
    def has_noise(self) -> bool:
        return self.source.settings.epsilon is not None

    @property
    def _deadline(self) -> float:
        return self.source.settings.deadline_seconds

    @property
    def _least_participants(self) -> int:
        return max(2, self.source.settings.colluding + 1 if self.has_noise else 0)

    @property
    def is_origin(self) -> bool:
        return self.announcement.origin == self.name

    @property
    def is_complete(self) -> bool:
        """Whether the total of this epoch is known."""
        return (
            self.report is not None and (self.report.epoch, self.report.origin) == self.current.id
        )

    def missing(self) -> list[str]:
        """Return the participants whose statement is due next and missing."""
        return [] if self.is_complete else self.current.missing()

    def state(self) -> str:
        """Return what this node does in the epoch."""
        if self.current.suppressed or (self.current.refusals and not self.is_complete):
            return "suppressed"
        if self.is_complete:
            return "complete"
        if self.current.implausible is not None:
            return "implausible"
        return "joining" if self.current.roster is None else "contributing"

    @property
    def needed_agreements(self) -> tuple[str, ...]:
        """Sites whose agreement somebody waits for."""
        return tuple(sorted({name for one in self.current.refusals.values() for name in one.needs}))

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
        round_ = self.current
        own = tuple(
            round_.pool.statements[id] for id, one in self.slots.values() if one.home == self.name
        )
        report = b"" if self.report is None else _encode(self.report)
        return _encode(
            Snapshot(self.announcement, round_.key, own, round_.suppressed, self.memory, report)
        )

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
        return Step((record,), (), "epochs")

    def _follow(self, sender: str, announcement: Announcement, now: Moment) -> Iterator[Step]:
        """Follow a neighbour to a later epoch; of two with the same number, that of the lower name counts."""
        epoch, origin = announcement[:2]
        is_later = epoch > self.epoch or (
            0 < epoch == self.epoch and origin < self.announcement.origin
        )
        if is_later and not self.stays(now):
            self.check_announcement(sender, announcement, now.wall)
            yield self._enter(announcement, self.blame(now))

    def stays(self, now: Moment) -> bool:
        """Return whether this site spent epsilon in an epoch whose total may still come: then no other one starts."""
        is_over = (
            self.is_complete
            or self.current.failure
            or self.current.refusals
            or self.current.implausible
        )
        is_open = self.current.roster is not None and now.running - self._roster_at < self._deadline
        return self.has_noise and is_open and not is_over and self._has_spent()

    def blame(self, now: Moment) -> tuple[str, ...]:
        """Count the participants that let the epoch fail, before the next one; leave out those that do so again.

        Returns those that wasted epsilon that this site had spent for the epoch: who refused, whose contribution is
        missing at the deadline, or who signed two different statements.
        """
        if self.current.roster is None or self.is_complete or self.other_lists():
            return ()
        is_late = now.running - self._roster_at >= self._deadline
        failing = set(self.current.refusals) if self.name not in self.current.refusals else set()
        if is_late and not self.current.refusals:
            failing = self._late = set(self.missing())
        failing |= {slot.home for slot in self.slots if slot.kind.startswith("second ")}
        self._stalls.update(failing)
        for name in failing:
            if self._stalls[name] > MAX_STALLS:
                times = min(self._stalls[name] - MAX_STALLS - 1, MAX_DOUBLINGS)
                self._excluded_until[name] = now.running + EXCLUSION_SECONDS * 2**times
        return tuple(sorted(failing - {self.name})) if self._has_spent() else ()

    def _has_spent(self) -> bool:
        """Return whether this site sent new noise in the epoch."""
        paid = {one.noise for one in self.log if (one.epoch, one.origin) != self.current.id}
        own = [
            one
            for one in self.log
            if (one.epoch, one.origin) == self.current.id and one.event == "contribution"
        ]
        return any(one.noise and one.noise not in paid for one in own)

    def forgive(self) -> None:
        """Forget who let epochs fail, since the members changed."""
        self._absent, self._excluded_until = set(), {}
        self._stalls.clear()
        self._repeated_joins.clear()
        self.memory.wasted = {}

    def reason_for_epoch(self, now: Moment) -> str:
        """Return why a new epoch should start; empty if there is no reason."""
        if self.epoch == 0:
            return "first start"
        if self.current.failure:
            return self.current.failure
        own = self.current.joins.get(self.name)
        if own is None:
            return ""
        if own.list_digest != self.trust.list_digest:
            return f"{self.name} has another member list"
        if own.key and self.source.agreed.leaves:
            return f"{self.name} leaves"
        if own.agrees != self._agrees():
            return f"{self.name} {'agrees' if self._agrees() else 'no longer agrees'}"
        if set(self.current.refusals) - {self.name} and own.min_cell != self.source.policy.min_cell:
            return f"{self.name} has another min_cell"
        if own.key and self.snapshot_tag() != own.snapshot and not self._verdict_to_join(now):
            return "rows changed"
        if self.current.suppressed and not self._verdict_now(now).reason:
            return f"{self.name} takes part now"
        if self.name in self.current.refusals and (better := self._better_roster(now)):
            return f"{self.name} takes part without {', '.join(set(self.current.participants) - set(better))[:100]}"
        return ""

    def _verdict_now(self, now: Moment) -> Verdict:
        round_ = self.current.round(len(self.current.totals) + 1, self.source)
        if (
            self.name in self.current.participants
            and round_ is not None
            and self.current.keys() is not None
        ):
            return self._verdict(round_, now)
        return Verdict(self._verdict_to_join(now))

    def _better_roster(self, now: Moment) -> list[str]:
        """Return participants with whom this site would contribute, of an epoch in which it refused; empty if none."""
        joined = self.current.joins
        if not set(self.current.participants) <= joined.keys():
            return []  # after a restart they are asked for again
        able = [name for name in self.current.participants if not self._why_not(name)]
        chosen = self._agreeable(able, self._wasting())
        is_allowed = self._may_go_on_with(chosen) and not (
            self._verdict_to_join(now) or self.conflict
        )
        return chosen if is_allowed and set(chosen) < set(self.current.participants) else []

    # Messages.

    def ping(self, neighbour: str, sent: int) -> Step:
        """Return a heartbeat, which says which statements this node has."""
        trust, held = self.trust, self.current.pool.held()
        ping = wire.Ping(sent, self.announcement, None, trust.serial, trust.list_digest, held)
        return Step((), ((neighbour, wire.encode(ping)),))

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
                yield Step((), ((sender, wire.encode(wire.Pong(message.sent))),))
                yield from self._follow(sender, message.announcement, now)
                if (
                    message.announcement[:2] == self.current.id
                    and message.held != self.current.pool.held()
                ):
                    yield self.tell(sender)
            case wire.Have():
                if (message.epoch, message.origin) == self.current.id:
                    self.current.pool.note_offers(sender, message.ids)
                    yield from self._ask(sender, now)
            case wire.Want():
                found = self.current.pool.answers(sender, message.ids)
                yield Step(
                    (),
                    tuple((sender, wire.encode(wire.Give(one))) for one in found),
                    "statements sent",
                )
            case wire.Give():
                self._take(sender, message.signed, now)
                yield from self._ask(sender, now)

    def tell(self, neighbour: str) -> Step:
        """Tell a neighbour which statements this node has."""
        return Step((), ((neighbour, self._have(self.current.pool.statements)),))

    def tell_news(self) -> Step:
        """Tell all neighbours of new statements."""
        message = self._have(self.current.pool.take_news())
        return Step((), tuple((name, message) for name in self.neighbours))

    def _have(self, ids: Iterable[bytes]) -> bytes:
        return wire.encode(wire.Have(*self.current.id, tuple(ids)))

    def _ask(self, sender: str, now: Moment) -> Iterator[Step]:
        lacking = self.current.pool.ask(sender, now.running, 8 * self.source.layout.size)
        if lacking:
            yield Step((), ((sender, wire.encode(wire.Want(tuple(lacking)))),))

    def _take(self, sender: str, signed: Signed, now: Moment) -> None:
        id = statements.id_of(signed)
        if id in self.current.pool.statements:
            return
        statement = statements.read(signed)
        if (statement.epoch, statement.origin) != self.current.id:
            raise Rejected("late", f"a statement of epoch {statement.epoch}")
        if not statements.verify(signed, statement.home, self.identity.network, self.trust):
            self.current.pool.distrust(sender)
            raise Rejected("signature", f"a statement is not signed by {statement.home}")
        held = self.slots.get(statement.slot)
        if held is not None and held[0] != id:
            self._on_second(signed, statement, now)
            return
        self.current.round(len(self.current.totals) + 1, self.source)
        self._check(statement)
        if not self.current.is_due(statement):
            self.current.early[statement.slot] = signed
            self.current.pool.postpone(sender, id)
            return
        self._accept(signed, statement)
        if isinstance(statement, Roster):
            self._roster_at = now.running

    def _accept(self, signed: Signed, statement: AnyStatement) -> None:
        """Insert a statement that is due; one that breaks its home's word only as evidence."""
        if isinstance(statement, Part) and not self.current.keeps_word(statement):
            evidence = statement.slot._replace(kind="evidence")
            if evidence in self.slots:
                raise Rejected(
                    "statement",
                    f"{statement.home} showed several contributions to which it did not commit",
                )
            self.current.pool.insert(signed, evidence)
            self._note_deviation(statement.home, FALSE_COMMITMENT)
        elif statement.slot not in self.slots:
            self.current.insert(signed)

    def _check(self, statement: AnyStatement) -> None:
        self.current.check(statement, self.trust.members, self._least_participants)

    def _on_second(self, signed: Signed, statement: AnyStatement, now: Moment) -> None:
        """Note that a site signed two different statements where one is due, which spoils the epoch.

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
            self._found[name] = Deviation(what, self.trust.serial)
        if not self.is_complete:
            self.current.failure = f"{name} {what}"

    # What this node does by itself.

    def advance(self, now: Moment, connected: Collection[str] = ()) -> Iterator[Step]:
        """Yield what this node can do next; each step is to be carried out before the next one is requested.

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
        if (
            self.is_origin
            and self.current.roster is None
            and (roster := self._next_roster(now)) is not None
        ):
            yield self._say(roster)
        if self.current.roster is not None:
            self._roster_at = min(self._roster_at, now.running)
            yield from self._contribute(now, connected)
            self._refused_at = min(self._refused_at, now.running if self.current.refusals else inf)
        yield from self._note_sites()

    def _log_agreements(self, now: Moment) -> Iterator[Step]:
        """Write to the log what the operator agreed to, once."""
        agreed = self.source.agreed
        text = ", ".join([*agreed.sites, *(["this site leaves"] if agreed.leaves else [])])
        last = next((one for one in reversed(self.log) if one.event == "agreement"), None)
        is_new = last is not None and max(agreed.sites.values(), default=-inf) > last.time
        if is_new or text != (last.reason if last is not None else ""):
            entry = self._entry(
                "agreement", now, Round(1, self.source.layout, NO_NOISE), reason=text
            )
            yield Step((), (), "", None, (entry,))

    def _note_sites(self) -> Iterator[Step]:
        keys = self.trust.keys
        said = {keys[name]: one.agrees for name, one in self.current.joins.items() if name in keys}
        before = dict.fromkeys(self.memory.agreeing, True)
        agreeing = tuple(sorted(key for key, agrees in {**before, **said}.items() if agrees))
        if self._found or agreeing != self.memory.agreeing:
            found, self._found = {**self.memory.deviating, **self._found}, {}
            yield Step((SitesNoted(found, agreeing),))

    def _say(
        self, statement: AnyStatement, suppressed: str = "", entries: tuple[LogEntry, ...] = ()
    ) -> Step:
        return Step(
            (StatementMade(self._signed(statement), suppressed),),
            (),
            "statements made",
            None,
            entries,
        )

    def _signed(self, statement: AnyStatement) -> Signed:
        return statements.sign(statement, self.identity.network, self.trust)

    def _join(self, now: Moment) -> Step:
        verdict = self._verdict_to_join(now)
        key, tag = (
            (b"", b"") if verdict else (masks.public_key(self.current.key), self.snapshot_tag())
        )
        nonce = hashlib.sha256(self.current.nonce()).digest()
        wishes = self._agrees(), self.source.policy.min_cell
        join = Join(
            *self.current.id,
            self.name,
            key,
            tag,
            nonce,
            *wishes,
            self.trust.serial,
            self.trust.list_digest,
        )
        return self._say(join, verdict, self._suppression(verdict, now))

    def _agrees(self) -> bool:
        return self.name in self.source.agreed.sites

    def chosen_rows(self) -> RowSnapshot | None:
        return self.choice().rows

    def choice(self) -> Choice:
        """Return the rows that this site contributes next."""
        last = None if self.rows is None else self.rows.digest
        about = self.source, last, self.memory.contributed, self.memory.secret
        if self._choice[0] != about:  # with many rows it takes a second
            self._choice = about, self.memory.choose_rows(self.source, self.name)
        return self._choice[1]

    def snapshot_tag(self) -> bytes:
        rows = self.chosen_rows()
        return b"" if rows is None else self.memory.tag_of(rows)

    def _verdict_to_join(self, now: Moment, pays: bool = True) -> str:
        """Return what this site's policy forbids about the statistic, its rows and the budget; empty if nothing."""
        if self.is_withdrawn:
            return "the site withdrew its rows"
        if self.source.agreed.leaves:
            return "the site has left; to come back: gosta node leave FOLDER --back"
        rows, reason = self.choice()
        if rows is None:
            return reason
        before = [one for one in self.log if (one.epoch, one.origin) != self.current.id]
        history = site.history_of(before)
        subject = self.source.subject(rows)
        return policy.verdict_to_join(
            self.source.policy, subject if pays else subject._replace(spent=()), history, now.wall
        )

    def _suppression(self, verdict: str, now: Moment) -> tuple[LogEntry, ...]:
        """Return an entry of the log for a suppression, unless the last entry is about the same."""
        last = self.log[-1] if self.log else None
        if not verdict or (
            last is not None and (last.event, last.reason) == ("suppressed", verdict)
        ):
            return ()
        return (
            self._entry("suppressed", now, Round(1, self.source.layout, NO_NOISE), reason=verdict),
        )

    def history(self) -> list[Past]:
        """Return the contributions so far."""
        return site.history_of(self.log)

    def _entry(self, event: str, now: Moment, round_: Round, **others: Any) -> LogEntry:
        return site.make_entry(
            self.source, event, now.wall, self.announcement, *round_[:3], **others
        )

    # The roster.

    def _next_roster(self, now: Moment) -> Roster | None:
        """Return the roster if all members answered, or those that did not answer need not be waited for."""
        joins, waited = self.current.joins, now.running - self._entered_at
        names = [name for name, one in sorted(joins.items()) if one.key and not self._why_not(name)]
        silent = set(self.members) - joins.keys()
        patience = self._deadline
        if silent <= self._absent | self.source.agreed.sites.keys():
            patience = min(patience, ABSENT_SECONDS)
        if len(names) < self._least_participants or (silent and waited < patience):
            return None
        stalling = {
            name for name in names if now.running < self._excluded_until.get(name, -inf)
        } | self._wasting()
        names = self._agreeable(names, stalling)[: statements.MAX_PARTICIPANTS]
        chosen = tuple((name, self.slots[Slot("join", name)][0]) for name in names)
        return Roster(*self.current.id, self.name, chosen)

    def _agreeable(self, names: list[str], stalling: Collection[str] = ()) -> list[str]:
        """Return the participants to choose: without some that let epochs fail or do not agree, if that is allowed.

        If no choice is allowed, it is all of them, so that their refusals say what is missing.
        """
        if self._is_first_total:
            return names
        lacking = self.missing_agreements(names)
        unwilling = {name for name in lacking if name in names and name != self.name}
        for without in ({*stalling, *unwilling}, stalling, unwilling, ()):
            chosen = [name for name in names if name not in without]
            if self._may_go_on_with(chosen):
                return chosen
        return names

    def _may_go_on_with(self, names: Sequence[str]) -> bool:
        """Return whether this site's policy, and all agreements that are needed, allow a total of some members."""
        verdict = policy.verdict_to_contribute(self.source.policy, len(names), len(self.members))
        return (
            len(names) >= self._least_participants
            and not verdict
            and not self.missing_agreements(names)
        )

    def missing_agreements(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the sites whose sums could be computed after a total over these, and that have not agreed to it."""
        joins = self.current.joins
        return (
            ()
            if self.has_noise
            else self.memory.missing_agreements(self.source, self.name, joins, names)
        )

    @property
    def _is_first_total(self) -> bool:
        """Whether nobody who joins may be left out: it could not come later without giving its sums away."""
        return not (self.has_noise or self.memory.companions or self.source.policy.min_sites <= 1)

    def _left_out_at_first(self, names: Sequence[str]) -> str:
        """Return a site that joined and is left out of the first total of this one."""
        if not self._is_first_total or self._agrees():
            return ""
        joined = [
            name for name, one in self.current.joins.items() if one.key and not self._why_not(name)
        ]
        return min(set(joined) - set(names), default="")

    def other_lists(self) -> list[str]:
        """Return the participants that joined with another member list than this site has now.

        Their names may be those of other sites, with other bounds and settings: nobody contributes, or is blamed for
        that, until all have the same list.
        """
        joins = self.current.joins
        return [
            name
            for name in self.current.participants
            if name in joins and joins[name].list_digest != self.trust.list_digest
        ]

    def left_out_reasons(self) -> dict[str, str]:
        """Return why members are left out, as far as this site would do so too."""
        found = {name: one.what for name, one in self.memory.deviating.items()}
        for name, join in self.current.joins.items():
            if (
                join.key
                and name not in self.current.participants
                and (reason := self._why_not(name))
            ):
                found[name] = reason.removeprefix(f"{name} ")
        wasted = (
            "let epochs fail that had cost epsilon; to go on with it: gosta network agree FOLDER"
        )
        return found | {name: f"{wasted} {name}" for name in self._wasting()}

    def _wasting(self) -> set[str]:
        return self.memory.wasting(self.source) if self.has_noise else set()

    def _deviants(self) -> dict[str, str]:
        return {
            **self.memory.deviants(self.trust.serial),
            **{name: one.what for name, one in self._found.items()},
        }

    def _why_not(self, name: str) -> str:
        """Return why this site accepts no total with a member that joined; empty if it does."""
        if name in (deviants := self._deviants()):
            return f"{name} {deviants[name]}"
        asked, most = self.current.joins[name].min_cell, self.source.policy.max_min_cell
        what = f"{name} asks for cells of {asked:,} rows, and {most} is the most that is accepted here (max_min_cell)"
        return what * (asked > most)

    # Contributions.

    def _contribute(self, now: Moment, connected: Collection[str]) -> Iterator[Step]:
        """Contribute to each round in turn; then report the total."""
        keys = self.current.keys()
        if keys is None or self.is_complete:
            return
        while (
            self.current.implausible is None
            and (round_ := self.current.round(len(self.current.totals) + 1, self.source))
            is not None
        ):
            for due in self.current.due(round_.number):
                self._take_early()
                if (
                    self.name in keys
                    and due._replace(home=self.name) not in self.slots
                    and not self.current.refusals
                ):
                    yield self._next_statement(due, round_, now, connected)
                if self.current.lacking(due):
                    return
            self.current.add_up(round_, self.trust)
        if self.current.implausible is not None:
            yield from self._open(self.current.implausible, now)
        else:
            yield self._release(now)

    def _take_early(self) -> None:
        """Insert statements that came before what they refer to was known."""
        for slot, signed in list(self.current.early.items()):
            statement = statements.read(signed)
            if not self.current.is_due(statement):
                continue
            del self.current.early[slot]
            with suppress(Rejected):
                self._check(statement)
                self._accept(signed, statement)

    def _next_statement(
        self, due: Slot, round_: Round, now: Moment, connected: Collection[str]
    ) -> Step:
        if due.kind == "nonce":
            return self._say(
                Nonce(*self.current.id, self.name, self.current.roster_id, self.current.nonce())
            )
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
        commit = Commit(*self.current.id, self.name, self.current.roster_id, round_.number, digest)
        changed = None if self.rows is not None and rows.digest == self.rows.digest else rows
        return Step((CommitMade(self._signed(commit), changed),), (), "statements made")

    def _refuse(self, verdict: Verdict, now: Moment) -> Step:
        refusal = Refusal(*self.current.id, self.name, self.current.roster_id, verdict.needs)
        return self._say(refusal, verdict.reason, self._suppression(verdict.reason, now))

    def _show_part(self, round_: Round, now: Moment, connected: Collection[str]) -> Step:
        number, layout, noise, _ = round_
        commit = self.slots[Slot("commit", self.name, number)][1]
        assert isinstance(commit, Commit)
        vector = b"" if self.rows is None else self._part(round_, self.rows)
        verdict = self._verdict(round_, now)
        if self.rows is None or hashlib.sha256(vector).digest() != commit.digest:
            verdict = Verdict("its journal lost the rows to which it had committed")
        if self.rows is None or verdict.reason:
            return self._refuse(verdict, now)
        part = Part(
            *self.current.id,
            self.name,
            self.current.roster_id,
            number,
            self.current.commits(number),
            vector,
        )
        signed = self._signed(part)
        has_noise = noise.law != "none"
        entry = self._entry(
            "contribution", now, round_,
            rows=self.rows, participants=self.current.participants, sent_to=tuple(connected), size=len(signed.body),
            noise_id=self.current.noise_context(round_, self.trust).hex() if has_noise else "",
        )  # fmt: skip
        blocks = block_digests(layout, self.rows, self.memory.secret)
        made = Contributed(self.source.encoded_settings, self.current.first_total, blocks)
        exposes = (
            {}
            if has_noise
            else {self.trust.keys.get(name, b""): name for name in self.current.participants}
        )
        return Step(
            (PartMade(signed, made, exposes, now.wall),), (), "contributions", None, (entry,)
        )

    def _verdict(self, round_: Round, now: Moment) -> Verdict:
        """Return why this site does not contribute to a round."""
        own = self.current.joins[self.name]
        if self.conflict:
            return Verdict(self.conflict)
        if own.key != masks.public_key(self.current.key):
            return Verdict("its journal lost the key with which it had joined")
        if others := self.other_lists():
            return Verdict(f"{', '.join(others)} joined with another member list")
        if reason := self._verdict_on_rows(round_, own, now):
            return Verdict(reason)
        names = self.current.participants
        if reason := policy.verdict_to_contribute(
            self.source.policy, len(names), len(self.members)
        ):
            return Verdict(reason)
        if self.memory.has_opened_enough(self.trust.serial):
            return Verdict(TOO_MANY_OPENINGS)
        for reason in filter(None, map(self._why_not, names)):
            return Verdict(reason)
        if not self._is_paid(round_) and (wasting := self._wasting() & set(names)):
            name = min(wasting)
            return Verdict(
                f"{name} let {self.memory.wasted[name]} epochs fail that had cost epsilon", (name,)
            )
        if left_out := self._left_out_at_first(names):
            return Verdict(
                f"{left_out} takes part, and the first list of participants is without it"
            )
        if round_.number == 1 and (needs := self.missing_agreements(names)):
            return Verdict(
                f"the sums of {', '.join(needs)} could be computed from the totals with and without them",
                needs,
            )
        return Verdict()

    def _verdict_on_rows(self, round_: Round, own: Join, now: Moment) -> str:
        """Return what forbids this site to contribute its rows to a round; noise that is paid costs nothing."""
        has_committed = Slot("commit", self.name, 1) in self.slots
        rows = self.rows if has_committed else self.chosen_rows()
        if rows is None or self.memory.tag_of(rows) != own.snapshot:
            return "its rows changed after it joined"
        is_new = not self._is_paid(round_)
        verdict = self._verdict_to_join(now, pays=is_new and round_.number == 1)
        return (
            verdict
            if verdict or not is_new or round_.number == 1
            else self._over_budget(round_.noise, rows)
        )

    def opening_over_budget(self, round_: Round) -> str:
        """Return why this site does not open masks, in a network with noise; empty if it does."""
        return (
            self._over_budget(round_.pads, self.rows)
            if self.has_noise and self.rows is not None
            else ""
        )

    def _over_budget(self, noise: Noise, rows: RowSnapshot) -> str:
        spent = (
            (Spent(noise.law, noise.epsilon, noise.delta, rows.rows_per_person),)
            if self.has_noise
            else ()
        )
        return policy.over_budget(
            self.source.policy, self.source.subject(rows)._replace(spent=spent), self.history()
        )

    def _is_paid(self, round_: Round) -> bool:
        """Return whether this site has sent the same noise before, so that it costs nothing now."""
        noise = self.current.noise_context(round_, self.trust).hex()
        return self.has_noise and any(
            one.noise == noise for one in self.log if one.event == "contribution"
        )

    def _part(self, round_: Round, rows: RowSnapshot) -> bytes:
        return statements.pack(self.current.part(round_, rows, self.memory.secret, self.trust))

    # Totals.

    def _open(self, round_: Round, now: Moment) -> Iterator[Step]:
        """Open the sums of masks over halves of the vector; when all have, find out who deviates."""
        slot = Slot("opening", self.name, round_.number)
        is_due = (
            self.name in self.current.participants
            and slot not in self.slots
            and not self.current.refusals
        )
        if is_due and (verdict := self._verdict(round_, now)).reason:
            yield self._refuse(verdict, now)
        elif is_due and not self.opening_over_budget(round_):
            identity = *self.current.id, self.name, self.current.roster_id, round_.number
            pads = round_._replace(noise=round_.pads)
            entry = self._entry(
                "opening", now, pads, rows=self.rows, participants=self.current.participants
            )
            yield self._say(Opening(*identity, self.current.open_masks(round_)), entries=(entry,))
        self._take_early()
        if self.current.lacking(slot):
            return
        found = self.current.find_deviations(round_, self.trust)
        self.current.suspects = found.pairs
        for name in found.sites:
            self._note_deviation(name, FALSE_SUMS)
        for name in found.accused:
            self._note_deviation(name, FALSE_MASKS)

    def _release(self, now: Moment) -> Step:
        round_, vector, totals = self.current.totals[-1]
        number, layout, noise, _ = round_
        names, source = self.current.participants, self.source
        min_cell = max(self.current.joins[name].min_cell for name in names)
        results = layout.results(
            totals, min_cell, noise.variance, source.confidence_level, noise.bits
        )
        takes_part = self.name in names and self.rows is not None
        report = SumReport(
            *self.current.id,
            now.wall,
            names,
            tuple(name for name in self.members if name not in names),
            tuple(results),
            statements.pack(vector),
            self.current.first_total if number > 1 else b"",
            self.identity.fingerprint,
            layout.fingerprint,
            noise.bits,
            noise.law,
            source.settings.epsilon or 0.0,
            source.settings.delta,
            min_cell,
            tuple(self.current.joins[name].snapshot for name in names),
            tuple(self.trust.keys.get(name, b"") for name in names),
            self.rows.time if takes_part and self.rows is not None else 0.0,
            tuple(
                hashlib.sha256(statements.pack(one)).digest()
                for one in self.current.vectors(round_).values()
            ),
        )
        entry = self._entry(
            "release", now, round_, participants=names, rows=self.rows if takes_part else None
        )
        return Step((Released(_encode(report)),), (), "releases", None, (entry,))

    # What a node does when an epoch fails.

    def reason_to_give_up(self, now: Moment) -> str:
        """Return why this node should start another epoch by now; empty if it should not.

        All nodes find the same reason; they wait one after the other, so that one of them starts the epoch.
        """
        if self.epoch == 0 or self.is_complete:
            return ""
        if self.current.refusals:
            may_go_on = not (self._is_first_total or self.other_lists())
            return (
                self._reason_to_go_on_without(list(self.current.refusals), now) if may_go_on else ""
            )
        if self.current.roster is None:
            late = now.running - self._entered_at - self._deadline - ABSENT_SECONDS
            others = [name for name in self.members if name != self.announcement.origin]
            if self.is_origin or self._rank(others) * RANK_SECONDS > late or late < 0:
                return ""
            # The roster of the next epoch does not wait long for these.
            self._absent = set(self.members) - set(self.current.joins) | {self.announcement.origin}
            return f"{self.announcement.origin}, which started the epoch, is silent"
        missing = self.missing()
        late = now.running - self._roster_at - self._deadline
        present = [name for name in self.current.participants if name not in missing]
        if not missing or late < 0 or self._rank(present) * RANK_SECONDS > late:
            return ""
        return f"no contribution of {', '.join(missing)[:150]}"

    def _reason_to_go_on_without(self, refusing: list[str], now: Moment) -> str:
        """Return why to start an epoch after some refused for reasons of their own, and this site need not."""
        rest = [name for name in self.current.participants if name not in refusing]
        late = now.running - self._refused_at - BACK_SECONDS
        is_due = self.name in rest and self._rank(rest) * RANK_SECONDS <= late
        if not is_due or not self._may_go_on_with(rest):
            return ""
        return f"{', '.join(refusing)[:150]} refused"

    def _rank(self, names: Sequence[str]) -> int:
        return names.index(self.name) if self.name in names else len(names)

    def is_left_out(self) -> bool:
        """Whether this node could take part, and the epoch's roster is without it."""
        return (
            bool(self.current.participants)
            and self.name not in self.current.participants
            and not self.current.suppressed
        )

    def may_come_back(self) -> bool:
        """Return whether a node that is left out may start an epoch, and count that: it may be left out again."""
        self._back_epochs += 1
        return self._back_epochs <= MAX_BACK_EPOCHS

    def change_source(self, source: SumSource, neighbours: Collection[str]) -> str:
        """Take other rows, rules, agreements, members or neighbours, also after a withdrawal.

        Returns no reason for an epoch: see `reason_for_epoch`.
        """
        self.neighbours, self.is_withdrawn = neighbours, False
        if source.trust.digest != self.trust.digest:
            self.forgive()
        if (
            source.trust.list_digest != self.trust.list_digest
            and Slot("join", self.name) not in self.slots
        ):
            self._enter_epoch(
                self.announcement, self.current.key
            )  # statements were checked by the former keys
        self.source, self.trust = source, source.trust
        self._back_epochs = 0
        return ""


def last_contribution(
    snapshot: bytes | None, records: Sequence[Record], name: str
) -> tuple[int, str] | None:
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
