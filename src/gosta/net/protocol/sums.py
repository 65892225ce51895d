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

**What was sent is released.** Any participant may keep its own part back, and then knows the total alone. So a part that
was sent counts as known to all participants, whatever became of the epoch: for the rows that a site contributes
(snapshots.py), for the sites whose sums follow from several totals (groups.py), and for the budget. Noise follows from a
secret of the site, the snapshots of all participants and the law of the noise: an epoch that is repeated has the same
noise, and costs nothing again. (Noise that followed from the site's own snapshot alone would be the same in two totals
between which another site's rows changed, and the difference would show these with that site's noise only.)

**Failures.** A participant that is silent is waited for until the deadline; then another epoch starts. A participant
whose policy forbids the total refuses before anybody has shown a part. A total that no rows can have is not reported;
then all sites open what shows who deviates (deviations.py). A site that provably deviates, also by signing two different
statements where one is due, is left out.

The state follows from the records, except for statements of others, which a node asks for again after a restart.
"""

from __future__ import annotations

import hashlib
import math
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
from gosta.net.protocol.epochs import NO_EPOCH, EpochPeer, Identity, Moment, Step
from gosta.net.protocol.messages import Announcement, Rejected, Signed
from gosta.net.protocol.pool import Pool
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
    RoundStatement,
    Slot,
)
from gosta.private import deviations, groups, masks, policy
from gosta.private.accounting import Spent
from gosta.private.deviations import CHECKS
from gosta.private.groups import Groups
from gosta.private.noise import NO_NOISE, Noise, choose_noise
from gosta.private.policy import Past
from gosta.private.snapshots import MAX_CONTRIBUTED, Contributed, RowSnapshot, contributed
from gosta.private.sums import open_totals, site_vector
from gosta.sketches import Layout

ABSENT_SECONDS = 3.0  # that a member has to join which was not there in the last epoch
RANK_SECONDS = 1.0  # between the nodes that may start an epoch when another one failed
BACK_SECONDS = 5.0  # after a release, until a member that was not in it starts an epoch
MAX_BACK_EPOCHS = 2  # that a member starts which joins and is left out, until something changes at its site
RESUME_SECONDS = 2.0  # for which a restarted node asks others first what it said before: its journal may be a backup
EXCLUSION_SECONDS = 60.0  # for which a site is left out that lets epochs fail; doubled each time
MAX_DOUBLINGS = 9
MAX_REPEATED_JOINS = 2  # of a site that lost its journal, until it is left out
MAX_STALLS = 1  # epochs that a participant may let fail, until it is left out
TAG_BYTES = 16
FALSE_SUMS = "contributed what no rows that it declared can add up to"
TWO_STATEMENTS = "signed two different statements where one is due"
FALSE_MASKS = "opened other masks than most of its partners"
FALSE_COMMITMENT = "showed another contribution than the one to which it had committed"


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


class Verdict(NamedTuple):
    """Why a site does not contribute; empty if it does."""

    reason: str = ""
    needs: tuple[str, ...] = ()  # sites whose agreement is missing, if that is why


class Snapshot(msgspec.Struct, array_like=True):
    """The state of a peer, so that a restart need not apply all records."""

    announcement: Announcement
    key: bytes
    secret: bytes
    own: tuple[Signed, ...]
    suppressed: str
    rows: RowSnapshot | None
    contributed: tuple[Contributed, ...]
    groups: Groups
    deviating: dict[str, Deviation]
    agreeing: tuple[str, ...]
    wasted: dict[str, int]
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
        self.secret = b""  # of this site: of digests of rows, and of noise
        self.rows: RowSnapshot | None = None  # of the last commit
        self.contributed: list[Contributed] = []  # earlier contributions, the latest last
        self.groups: Groups = ()  # of sites in the same totals without noise, with this one
        self.deviating: dict[str, Deviation] = {}  # sites that provably did what no honest site does
        self.agreeing: tuple[str, ...] = ()  # sites whose last word was that their sums may be computed
        self.wasted: Counter[str] = Counter()  # epochs that a site let fail after this one had spent epsilon for them
        self.conflict = ""  # why the member list cannot be trusted; set by the node
        self._absent: set[str] = set()  # members that the next roster does not wait for
        self._excluded_until: dict[str, float] = {}
        self._repeated_joins: Counter[str] = Counter()
        self._stalls: Counter[str] = Counter()  # epochs in which a participant did not contribute
        self._back_epochs = 0  # that this node started, since it was left out
        self._choice: tuple[object, RowSnapshot | None] = None, None
        self._reset()

    def _reset(self) -> None:
        self.key = b""  # the secret key of this epoch
        self.pool = Pool()
        self.suppressed = ""  # what this site's policy forbids
        self.failure = ""  # why a new epoch has to start
        self.totals: list[Total] = []  # of the rounds that are complete
        self.implausible: Round | None = None  # whose total no rows can have
        self.suspects: tuple[tuple[str, str], ...] = ()  # pairs of which one deviates
        self._early: dict[Slot, Signed] = {}  # statements that cannot be checked yet
        self._keys: dict[str, bytes] | None = None
        self._rounds: dict[int, Round] = {}
        self._masked: dict[int, NDArray[np.uint64]] = {}  # this node's parts by round
        self._found: dict[str, Deviation] = {}  # who deviates, not in the journal yet
        self._entered_at, self._roster_at, self._refused_at = -inf, inf, inf
        self._has_restarted = False
        self._heard_at = inf  # when a neighbour was first heard from

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
    def roster(self) -> Roster | None:
        found = self.slots.get(Slot("roster", self.announcement.origin))
        return found[1] if found is not None and isinstance(found[1], Roster) else None

    @property
    def roster_id(self) -> bytes:
        return self.slots[Slot("roster", self.announcement.origin)][0]

    @property
    def joins(self) -> dict[str, Join]:
        return {slot.home: one for slot, (_, one) in self.slots.items() if slot.kind == "join" and isinstance(one, Join)}

    @property
    def refusals(self) -> dict[str, Refusal]:
        """Who refuses, as long as not all parts are known."""
        found = {slot.home: one for slot, (_, one) in self.slots.items() if isinstance(one, Refusal)}
        return {name: found[name] for name in sorted(found)}

    @property
    def participants(self) -> tuple[str, ...]:
        return () if self.roster is None else tuple(name for name, _ in self.roster.participants)

    @property
    def is_complete(self) -> bool:
        """Whether the total of this epoch is known."""
        return self.report is not None and (self.report.epoch, self.report.origin) == self.epoch_id

    def missing(self) -> list[str]:
        """Return the participants whose statement is due next and missing."""
        if self.is_complete or self.roster is None:
            return []
        if self.implausible is not None:
            return self._lacking(Slot("opening", "", self.implausible.number))
        for due in self._due(len(self.totals) + 1):
            if lacking := self._lacking(due):
                return lacking
        return []

    def _due(self, number: int) -> list[Slot]:
        """Return what every participant says in a round, one after the other, with an empty name."""
        nonce = [Slot("nonce", "")] if len(self.participants) > masks.MOST_PARTNERS + 1 and number == 1 else []
        return [*nonce, Slot("commit", "", number), Slot("part", "", number)]

    def _lacking(self, due: Slot) -> list[str]:
        return [name for name in self.participants if due._replace(home=name) not in self.slots]

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
        if self.suppressed or (self.refusals and not self.is_complete):
            return "suppressed"
        if self.is_complete:
            return "complete"
        if self.implausible is not None:
            return "implausible"
        return "joining" if self.roster is None else "contributing"

    @property
    def needed_agreements(self) -> tuple[str, ...]:
        """Sites whose agreement somebody waits for."""
        return tuple(sorted({name for one in self.refusals.values() for name in one.needs}))

    def explain(self) -> str:
        """Return the reason of the state; it may tell the number of this site's rows, so it is for this site only."""
        if self.conflict:
            return self.conflict
        if self.needed_agreements:
            return "; ".join(map(self._explain_need, self.needed_agreements))
        if self.suppressed:
            return f"suppressed by policy: {self.suppressed}"
        if self.refusals:
            return f"suppressed by the policy of {', '.join(self.refusals)}"
        if self.implausible is not None:
            return self._explain_implausible()
        if self.is_left_out():
            return (
                f"left out of this epoch; if its sums may be computed from the totals with and without it, agree: "
                f"gosta network agree FOLDER {self.name}"
            )
        match self.state():
            case "joining":
                silent = [name for name in self.members if name not in self.joins]
                return f"not joined yet: {', '.join(silent)}" if silent else ""
            case "contributing":
                return f"no contribution yet of {', '.join(self.missing())}"
        return ""

    def _explain_need(self, name: str) -> str:
        waiting = [refusing for refusing, one in self.refusals.items() if name in one.needs]
        risk, command = "sums could be computed from the totals with and without it", f"gosta network agree FOLDER {name}"
        if name == self.name:
            return f"{', '.join(waiting)} waits, since this site's {risk}; to agree: {command}"
        if self.name not in waiting:
            return f"{', '.join(waiting)} waits, and says that {name}'s {risk}"
        if name in self.participants:
            return f"{name} has to agree there, since its {risk}: {command}"
        return f"{name} takes no part, and its {risk}; wait for it, or agree to go on without it: {command}"

    def _explain_implausible(self) -> str:
        if lacking := self.missing():
            return f"the total cannot be a sum over rows; not opened yet by {', '.join(lacking)}"
        if self.suspects:
            pairs = " and ".join(f"{first} or {second}" for first, second in self.suspects)
            return f"the total cannot be a sum over rows: {pairs} deviates; the coordinator has to remove one"
        return (
            "the total cannot be a sum over rows, and nobody deviates by more than twice the rows that it declared, so "
            "that it cannot be said who; the coordinator has to leave out sites one after the other"
        )

    # Records.

    def apply(self, record: Record) -> None:
        """Change the state by a record that is in the journal."""
        match record:
            case SumEpochStarted():
                self._reset()
                self.announcement, self.key, self.secret = record.announcement, record.key, record.secret
                self.wasted.update(record.wasted)
            case StatementMade():
                self._insert(record.signed)
                self.suppressed = record.suppressed or self.suppressed
            case CommitMade():
                self._insert(record.signed)
                self.rows = record.rows or self.rows
            case PartMade():
                self._insert(record.signed)
                self.groups = record.groups
                if record.contributed not in self.contributed:
                    self.contributed = [*self.contributed, record.contributed][-MAX_CONTRIBUTED:]
            case SitesNoted():
                self.deviating, self.agreeing = record.deviating, record.agreeing
            case Released():
                self.report = _decode_report(record.report)
                self._stalls.clear()
                for name in self.report.participants:
                    self.wasted.pop(name, None)
                if self.name in self.report.participants:
                    self._back_epochs = 0
                self.key = b""  # nothing can be opened with it any more

    def _insert(self, signed: Signed) -> None:
        self.pool.insert(signed)
        self._keys = None

    def snapshot(self) -> bytes:
        own = tuple(self.pool.statements[id] for id, one in self.slots.values() if one.home == self.name)
        return _encode(
            Snapshot(
                self.announcement,
                self.key,
                self.secret,
                own,
                self.suppressed,
                self.rows,
                tuple(self.contributed),
                self.groups,
                self.deviating,
                self.agreeing,
                dict(self.wasted),
                b"" if self.report is None else _encode(self.report),
            )
        )

    def restore(self, snapshot: bytes | None, records: Sequence[Record]) -> None:
        """Restore the state from a snapshot and the records after it."""
        if snapshot is not None:
            saved = _decode_snapshot(snapshot)
            self.announcement, self.key, self.secret = saved.announcement, saved.key, saved.secret
            self.suppressed, self.rows, self.contributed = saved.suppressed, saved.rows, list(saved.contributed)
            self.groups, self.deviating, self.agreeing = saved.groups, saved.deviating, saved.agreeing
            self.wasted = Counter(saved.wasted)
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

    def start_epoch_at(self, reason: str, now: Moment) -> Step:
        """Start the next epoch, after counting who let the current one fail."""
        return self._enter(self.announce(self.epoch + 1, reason), self.blame(now))

    def _enter(self, announcement: Announcement, wasted: tuple[str, ...] = ()) -> Step:
        secret = self.secret or secrets.token_bytes(32)
        record = SumEpochStarted(announcement, masks.new_key(), secret, wasted)
        return Step((record,), (), "epochs")

    def _follow(self, sender: str, announcement: Announcement, now: Moment) -> Iterator[Step]:
        """Follow a neighbour to a later epoch; of two with the same number, that of the lower name counts."""
        epoch, origin = announcement[:2]
        is_later = epoch > self.epoch or (0 < epoch == self.epoch and origin < self.announcement.origin)
        if is_later:
            self.check_announcement(sender, announcement, now.wall)
            yield self._enter(announcement, self.blame(now, origin))

    def blame(self, now: Moment, next_origin: str = "") -> tuple[str, ...]:
        """Count the participants that let the epoch fail, before the next one; leave out those that do so again.

        Returns those that wasted epsilon that this site had spent for the epoch: who was silent until the deadline, or
        before that who started the next epoch.
        """
        if self.roster is None or self.is_complete:
            return ()
        is_late = now.running - self._roster_at >= self._deadline
        failing = set(self.refusals) if self.name not in self.refusals else set()
        if is_late and not self.refusals:
            failing = self._absent = set(self.missing())
        self._stalls.update(failing)
        for name in failing:
            if self._stalls[name] > MAX_STALLS:
                times = min(self._stalls[name] - MAX_STALLS - 1, MAX_DOUBLINGS)
                self._excluded_until[name] = now.running + EXCLUSION_SECONDS * 2**times
        wasting = failing or {next_origin}
        return tuple(sorted(wasting - {"", self.name})) if self._has_spent_in_vain() else ()

    def _has_spent_in_vain(self) -> bool:
        """Return whether this site sent new noise in the current round of the epoch, whose total is not known."""
        made = [one for one in self.log if one.event == "contribution" and one.noise]
        last = made[-1] if made else None
        is_current = last is not None and (last.epoch, last.origin, last.round) == (*self.epoch_id, len(self.totals) + 1)
        return is_current and all(one.noise != made[-1].noise for one in made[:-1])

    def forgive(self) -> None:
        """Forget who let epochs fail, since the members changed."""
        self._absent, self._excluded_until = set(), {}
        self._stalls.clear()
        self._repeated_joins.clear()
        self.wasted.clear()

    def reason_for_epoch(self, now: Moment) -> str:
        """Return why a new epoch should start; empty if there is no reason."""
        if self.epoch == 0:
            return "first start"
        if self.failure:
            return self.failure
        started = self.joins.get(self.announcement.origin)
        if started is not None and started.list_serial < self.trust.serial and started.members != self.trust.digest:
            return "members changed"
        own = self.joins.get(self.name)
        if own is None:
            return ""
        if own.agrees != self._agrees():
            return f"{self.name} {'agrees' if self._agrees() else 'no longer agrees'}"
        if own.key and self.snapshot_tag() != own.snapshot and not self._verdict_to_join(now):
            return "rows changed"
        if self.suppressed and not self._verdict_now(now).reason:
            return f"the policy of {self.name} allows it now"
        if self.name in self.refusals and (better := self._better_roster(now)):
            return f"{self.name} takes part without {', '.join(set(self.participants) - set(better))[:100]}"
        return ""

    def _verdict_now(self, now: Moment) -> Verdict:
        current = self._round(len(self.totals) + 1)
        if self.name in self.participants and current is not None and self.keys() is not None:
            return self._verdict(current, now)
        return Verdict(self._verdict_to_join(now))

    def _better_roster(self, now: Moment) -> list[str]:
        """Return participants with whom this site would contribute, of an epoch in which it refused; empty if none."""
        able = [name for name in self.participants if not self._why_not(name)]
        chosen = self._agreeable(able, self._wasting())
        is_allowed = self._may_go_on_with(chosen) and not (self._verdict_to_join(now) or self.conflict)
        return chosen if is_allowed and set(chosen) < set(self.participants) else []

    # Messages.

    def ping(self, sent: int) -> bytes:
        trust = self.trust
        return wire.encode(wire.Ping(sent, self.announcement, None, trust.serial, trust.list_digest, self.pool.held()))

    def handle(self, sender: str, message: wire.AnyMessage, now: Moment) -> Iterator[Step]:
        """Yield the steps that a message leads to; each is to be carried out before the next one is requested.

        Raises `Rejected` for a message that cannot be used.
        """
        match message:
            case wire.Ping():
                self._heard_at = min(self._heard_at, now.running)
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

    def _ask(self, sender: str, now: Moment) -> Iterator[Step]:
        lacking = self.pool.ask(sender, now.running, 8 * self.source.layout.size)
        if lacking:
            yield Step((), ((sender, wire.encode(wire.Want(tuple(lacking)))),))

    def _take(self, sender: str, signed: Signed, now: Moment) -> None:
        id = statements.id_of(signed)
        if id in self.pool.statements:
            return
        statement = statements.read(signed)
        if (statement.epoch, statement.origin) != self.epoch_id:
            raise Rejected("late", f"a statement of epoch {statement.epoch}")
        if not statements.verify(signed, statement.home, self.identity.network, self.trust):
            self.pool.distrust(sender)
            raise Rejected("signature", f"a statement is not signed by {statement.home}")
        held = self.slots.get(statement.slot)
        if held is not None and held[0] != id:
            self._on_second(signed, statement, now)
            return
        self._check(statement)
        if not self._is_due(statement):
            self._early[statement.slot] = signed
            self.pool.postpone(sender, id)
            return
        self._accept(signed, statement)
        if isinstance(statement, Roster):
            self._roster_at = now.running

    def _accept(self, signed: Signed, statement: AnyStatement) -> None:
        """Insert a statement that is due; one that breaks its home's word only as evidence."""
        if isinstance(statement, Part) and not self._keeps_word(statement):
            self.pool.insert(signed, statement.slot._replace(kind="evidence"))
            self._note_deviation(statement.home, FALSE_COMMITMENT)
        elif statement.slot not in self.slots:
            self._insert(signed)

    def _keeps_word(self, part: Part) -> bool:
        commit = self.slots[part.slot._replace(kind="commit")][1]
        return isinstance(commit, Commit) and commit.digest == hashlib.sha256(part.vector).digest()

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
                if known is not None and len(statement.vector) != 8 * (known.layout.size + CHECKS):
                    raise Rejected("statement", f"the contribution of {statement.home} has the wrong length")

    def _is_due(self, statement: AnyStatement) -> bool:
        """Return whether a statement can be used now: what it refers to is known, and it is of a participant."""
        if isinstance(statement, Join | Roster):
            return True
        if self.roster is None or self.keys() is None:
            return False
        if statement.roster != self.roster_id or statement.home not in self.participants:
            return False
        match statement:
            case Nonce():
                return hashlib.sha256(statement.value).digest() == self.joins[statement.home].nonce
            case Part():
                has_committed = statement.slot._replace(kind="commit") in self.slots
                return has_committed and self._round(statement.round) is not None
            case Opening():
                wanted = 8 * CHECKS * len(masks.partners(self.participants, statement.home, self._beacon()))
                is_open = self.implausible is not None and self.implausible.number == statement.round
                return is_open and len(statement.words) == wanted
        return True

    def _round(self, number: int) -> Round | None:
        """Return what a round is about, if that is known yet."""
        if number not in self._rounds and self.roster is not None and number == len(self.totals) + 1:
            last = self.totals[-1] if self.totals else None
            layout = self.source.layout if last is None else last.round.layout.following(last.totals)
            if layout is not None:
                noise = choose_noise(self.source.settings, layout, len(self.participants))
                self._rounds[number] = Round(number, layout, noise)
        return self._rounds.get(number)

    def _on_second(self, signed: Signed, statement: AnyStatement, now: Moment) -> None:
        """Note that a site signed two different statements where one is due, which spoils the epoch.

        The second one is passed on, so that all nodes see it.
        """
        slot, home = statement.slot._replace(kind=f"second {statement.slot.kind}"), statement.home
        if slot in self.slots or home == self.name:
            return
        self.pool.insert(signed, slot)
        if isinstance(statement, Join):
            self._repeated_joins[home] += 1
            self.failure = f"{home} joined twice; did it lose its journal?"
            if self._repeated_joins[home] > MAX_REPEATED_JOINS:
                self._excluded_until[home] = now.running + EXCLUSION_SECONDS
        else:
            self._note_deviation(home, TWO_STATEMENTS)

    def _note_deviation(self, name: str, what: str, is_proven: bool = True) -> None:
        """Note who deviates, and that another epoch is to start without it."""
        if name not in self._deviants():
            self._found[name] = Deviation(what, is_proven, self.trust.serial)
        if not self.is_complete:
            self.failure = f"{name} {what}"

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
        if Slot("join", self.name) not in self.slots:
            yield self._join(now)
        if self.is_origin and self.roster is None and (roster := self._next_roster(now)) is not None:
            yield self._say(roster)
        if self.roster is not None:
            self._roster_at = min(self._roster_at, now.running)
            yield from self._contribute(now, connected)
            self._refused_at = min(self._refused_at, now.running if self.refusals else inf)
        yield from self._note_sites()

    def _log_agreements(self, now: Moment) -> Iterator[Step]:
        """Write to the log what the operator agreed to, once."""
        agreed = self.source.agreed
        text = ", ".join([*agreed.sites, *(["this site leaves"] if agreed.leaves else [])])
        if text != next((one.reason for one in reversed(self.log) if one.event == "agreement"), ""):
            entry = self._entry("agreement", now, Round(1, self.source.layout, NO_NOISE), reason=text)
            yield Step((), (), "", None, (entry,))

    def _note_sites(self) -> Iterator[Step]:
        said = {name: one.agrees for name, one in self.joins.items()}
        agreeing = tuple(sorted({name for name in self.agreeing if said.get(name, True)} | {n for n in said if said[n]}))
        if self._found or agreeing != self.agreeing:
            found, self._found = {**self.deviating, **self._found}, {}
            yield Step((SitesNoted(found, agreeing),))

    def _say(self, statement: AnyStatement, suppressed: str = "", entries: tuple[LogEntry, ...] = ()) -> Step:
        return Step((StatementMade(self._signed(statement), suppressed),), (), "statements made", None, entries)

    def _signed(self, statement: AnyStatement) -> Signed:
        return statements.sign(statement, self.identity.network, self.trust)

    def _join(self, now: Moment) -> Step:
        verdict = self._verdict_to_join(now)
        key, tag = (b"", b"") if verdict else (masks.public_key(self.key), self.snapshot_tag())
        nonce = hashlib.sha256(self._nonce()).digest()
        wishes = self._agrees(), self.source.policy.min_cell
        join = Join(*self.epoch_id, self.name, key, tag, nonce, *wishes, self.trust.serial, self.trust.digest)
        return self._say(join, verdict, self._suppression(verdict, now))

    def _agrees(self) -> bool:
        return self.name in self.source.agreed.sites

    def _nonce(self) -> bytes:
        return masks.random_bytes(self.key, b"gosta nonce")(32)

    def chosen_rows(self) -> RowSnapshot | None:
        """Return the rows that this site contributes next; None: none that the settings of today can use."""
        last = None if self.rows is None else self.rows.digest
        about = self.source, last, len(self.contributed), self.trust.serial
        if self._choice[0] != about:  # with many rows it takes a second
            most = site.largest_rows(self.trust, self.name)
            found = site.choose_rows(self.source, self.rows, self.contributed, self.secret, most)
            self._choice = about, found
        return self._choice[1]

    def snapshot_tag(self) -> bytes:
        """Return what this site says of the rows that it contributes next: another value whenever these change."""
        rows = self.chosen_rows()
        return b"" if rows is None else self._tag_of(rows)

    def _tag_of(self, rows: RowSnapshot) -> bytes:
        return masks.random_bytes(self.secret, rows.digest)(TAG_BYTES)

    def _verdict_to_join(self, now: Moment) -> str:
        """Return what this site's policy forbids about the statistic, its rows and the budget; empty if nothing."""
        if self.is_withdrawn:
            return "the site withdrew its rows"
        if self.source.agreed.leaves:
            return "the site has left; to come back: gosta node leave FOLDER --back"
        rows, most = self.chosen_rows(), site.largest_rows(self.trust, self.name)
        if rows is None and self.source.file_rows.rows > most:
            return f"{self.source.file_rows.rows} rows, and the member list allows {most}: declare more to the coordinator"
        if rows is None:
            needed = self.source.policy.min_change
            return f"too few rows changed since an earlier contribution to the same sums; {needed} needed, or none"
        before = [one for one in self.log if (one.epoch, one.origin) != self.epoch_id]
        history = site.history_of(before)
        return policy.verdict_to_join(self.source.policy, self.source.subject(rows), history, now.wall)

    def _suppression(self, verdict: str, now: Moment) -> tuple[LogEntry, ...]:
        """Return an entry of the log for a suppression, unless the last entry is about the same."""
        last = self.log[-1] if self.log else None
        if not verdict or (last is not None and (last.event, last.reason) == ("suppressed", verdict)):
            return ()
        return (self._entry("suppressed", now, Round(1, self.source.layout, NO_NOISE), reason=verdict),)

    def history(self) -> list[Past]:
        """Return the contributions so far."""
        return site.history_of(self.log)

    def _entry(self, event: str, now: Moment, current: Round, **others: Any) -> LogEntry:
        return site.make_entry(self.source, event, now.wall, self.announcement, *current, **others)

    # The roster.

    def _next_roster(self, now: Moment) -> Roster | None:
        """Return the roster if all members answered, or those that did not answer need not be waited for."""
        joins, waited = self.joins, now.running - self._entered_at
        names = [name for name, one in sorted(joins.items()) if one.key and not self._why_not(name)]
        silent = set(self.members) - joins.keys()
        patience = self._deadline
        if silent <= self._absent:
            patience = min(patience, ABSENT_SECONDS)
        if len(names) < self._least_participants or (silent and waited < patience):
            return None
        stalling = {name for name in names if now.running < self._excluded_until.get(name, -inf)} | self._wasting()
        names = self._agreeable(names, stalling)[: statements.MAX_PARTICIPANTS]
        chosen = tuple((name, self.slots[Slot("join", name)][0]) for name in names)
        return Roster(*self.epoch_id, self.name, chosen)

    def _agreeable(self, names: list[str], stalling: Collection[str] = ()) -> list[str]:
        """Return the participants to choose: without some that let epochs fail or do not agree, if that is allowed.

        If no choice is allowed, it is all of them, so that their refusals say what is missing.
        """
        lacking = self._missing_agreements(names)
        unwilling = {name for name in lacking if name in names and name != self.name}
        for without in ({*stalling, *unwilling}, stalling, unwilling, ()):
            chosen = [name for name in names if name not in without]
            if self._may_go_on_with(chosen):
                return chosen
        return names

    def _may_go_on_with(self, names: Sequence[str]) -> bool:
        """Return whether this site's policy, and all agreements that are needed, allow a total of some members."""
        verdict = policy.verdict_to_contribute(self.source.policy, len(names), len(self.members))
        return len(names) >= self._least_participants and not verdict and not self._missing_agreements(names)

    def _missing_agreements(self, names: Sequence[str]) -> tuple[str, ...]:
        if self.has_noise:
            return ()
        made = groups.refine(self._honest_groups(), names)
        return site.missing_agreements(self.source, self.name, made, self.joins, names, self.agreeing)

    def _honest_groups(self) -> Groups:
        """Return the groups without sites that provably deviated: what those contributed is no secret to protect."""
        false = {name for name, one in self.deviating.items() if one.is_proven}
        return tuple(tuple(name for name in group if name not in false) for group in self.groups)

    def _deviants(self) -> set[str]:
        """Return the sites that deviated since the last member list; with another one, the coordinator keeps them."""
        found = {**self.deviating, **self._found}
        return {name for name, one in found.items() if one.list_serial == self.trust.serial}

    def _wasting(self) -> set[str]:
        """Return the sites for which this one spends no more epsilon until its operator agrees."""
        names = {name for name, count in self.wasted.items() if count > MAX_STALLS} if self.has_noise else set()
        return names - set(self.source.agreed.sites)

    def left_out_reasons(self) -> dict[str, str]:
        """Return why members are left out, as far as this site would do so too."""
        found = {name: one.what for name, one in self.deviating.items()}
        for name, join in self.joins.items():
            if join.key and name not in self.participants and (reason := self._why_not(name)):
                found[name] = reason.removeprefix(f"{name} ")
        return found

    def _why_not(self, name: str) -> str:
        """Return why this site accepts no total with a member that joined; empty if it does."""
        if name in self._deviants():
            return f"{name} {({**self.deviating, **self._found})[name].what}"
        asked, most = self.joins[name].min_cell, self.source.policy.max_min_cell
        return f"{name} asks for cells of {asked:,} rows, and {most} is the most that is accepted here" * (asked > most)

    # Contributions.

    def _contribute(self, now: Moment, connected: Collection[str]) -> Iterator[Step]:
        """Contribute to each round in turn; then report the total."""
        keys = self.keys()
        if keys is None or self.is_complete:
            return
        while self.implausible is None and (current := self._round(len(self.totals) + 1)) is not None:
            for due in self._due(current.number):
                self._take_early()
                if self.name in keys and due._replace(home=self.name) not in self.slots and not self.refusals:
                    yield self._next_statement(due, current, now, connected)
                if self._lacking(due):
                    return
            self._add_up(current)
        if self.implausible is not None:
            yield from self._open(self.implausible)
        else:
            yield self._release(now)

    def _take_early(self) -> None:
        """Insert statements that came before what they refer to was known."""
        for slot, signed in list(self._early.items()):
            statement = statements.read(signed)
            if not self._is_due(statement):
                continue
            del self._early[slot]
            try:
                self._check(statement)
            except Rejected:
                continue
            self._accept(signed, statement)

    def _next_statement(self, due: Slot, current: Round, now: Moment, connected: Collection[str]) -> Step:
        if due.kind == "nonce":
            return self._say(Nonce(*self.epoch_id, self.name, self.roster_id, self._nonce()))
        if due.kind == "commit":
            return self._commit_or_refuse(current, now)
        return self._show_part(current, now, connected)

    def _commit_or_refuse(self, current: Round, now: Moment) -> Step:
        verdict = self._verdict(current, now)
        if verdict.reason:
            refusal = Refusal(*self.epoch_id, self.name, self.roster_id, verdict.needs)
            return self._say(refusal, verdict.reason, self._suppression(verdict.reason, now))
        rows = self.chosen_rows() if current.number == 1 else self.rows
        assert rows is not None
        digest = hashlib.sha256(statements.pack(self._part(current, rows))).digest()
        commit = Commit(*self.epoch_id, self.name, self.roster_id, current.number, digest)
        changed = None if self.rows is not None and rows.digest == self.rows.digest else rows
        return Step((CommitMade(self._signed(commit), changed),), (), "statements made")

    def _show_part(self, current: Round, now: Moment, connected: Collection[str]) -> Step:
        number, layout, noise = current
        commit = self.slots[Slot("commit", self.name, number)][1]
        assert isinstance(commit, Commit)
        vector = b"" if self.rows is None else statements.pack(self._part(current, self.rows))
        if self.rows is None or hashlib.sha256(vector).digest() != commit.digest:
            reason = "its journal lost the rows to which it had committed"
            return self._say(Refusal(*self.epoch_id, self.name, self.roster_id, ()), reason)
        signed = self._signed(Part(*self.epoch_id, self.name, self.roster_id, number, vector))
        has_noise = noise.law != "none"
        entry = self._entry(
            "contribution", now, current,
            rows=self.rows, participants=self.participants, sent_to=tuple(connected), size=len(signed.body),
            noise_id=self._noise_context(current).hex() if has_noise else "",
        )  # fmt: skip
        made = contributed(layout, self._first_total(), self.rows, self.secret)
        known = self.groups if has_noise else groups.refine(self.groups, self.participants)
        return Step((PartMade(signed, made, known),), (), "contributions", None, (entry,))

    def _verdict(self, current: Round, now: Moment) -> Verdict:
        """Return why this site does not contribute to a round."""
        own = self.joins[self.name]
        if self.conflict:
            return Verdict(self.conflict)
        if reason := self._verdict_on_rows(current, own, now):
            return Verdict(reason)
        names = self.participants
        if reason := policy.verdict_to_contribute(self.source.policy, len(names), len(self.members)):
            return Verdict(reason)
        for reason in filter(None, map(self._why_not, names)):
            return Verdict(reason)
        if not self._is_paid(current) and (wasting := self._wasting() & set(names)):
            name = min(wasting)
            return Verdict(f"{name} let {self.wasted[name]} epochs fail that had cost epsilon", (name,))
        if current.number == 1 and (needs := self._missing_agreements(names)):
            return Verdict(f"the sums of {', '.join(needs)} could be computed from the totals with and without them", needs)
        return Verdict()

    def _verdict_on_rows(self, current: Round, own: Join, now: Moment) -> str:
        """Return what forbids this site to contribute its rows to a round; noise that is paid costs nothing."""
        if self.is_withdrawn:
            return "the site withdrew its rows"
        rows = self.chosen_rows() if current.number == 1 else self.rows
        if rows is None or self._tag_of(rows) != own.snapshot:
            return "its rows changed after it joined"
        if current.number == 1 and not self._is_paid(current):
            return self._verdict_to_join(now)
        if self.has_noise and not self._is_paid(current):
            noise = current.noise
            spent = (Spent(noise.law, noise.epsilon, noise.delta, rows.rows_per_person),)
            subject = self.source.subject(rows)._replace(spent=spent)
            return policy.over_budget(self.source.policy, subject, self.history())
        return ""

    def _noise_context(self, current: Round) -> bytes:
        tags = tuple((name, self.joins[name].snapshot) for name in self.participants)
        return noise_context(self.identity.network, tags, current)

    def _is_paid(self, current: Round) -> bool:
        """Return whether this site has sent the same noise before, so that it costs nothing now."""
        noise = self._noise_context(current).hex()
        return self.has_noise and any(one.noise == noise for one in self.log if one.event == "contribution")

    def _context(self, current: Round) -> bytes:
        """Return what the masks are for, so that no other vector has the same ones."""
        parts = self.identity.network, *self.epoch_id, self.roster_id, current.number, current.layout.fingerprint
        return _encode(("gosta mask", *parts))

    def _beacon(self) -> bytes:
        """Return a number that no participant alone chooses, from which the partners of more than 51 follow."""
        nonces = [self.slots.get(Slot("nonce", name)) for name in self.participants]
        return _encode([one[1].value for one in nonces if one is not None and isinstance(one[1], Nonce)])

    def _first_total(self) -> bytes:
        return self.totals[0].totals.astype("<f8").tobytes() if self.totals else b""

    def _part(self, current: Round, rows: RowSnapshot) -> NDArray[np.uint64]:
        """Return this site's sums and pads with its masks; the same as often as it is computed."""
        if current.number not in self._masked:
            _, layout, noise = current
            context, keys = self._context(current), self.keys()
            assert keys is not None
            sums = site_vector(layout, rows.x, noise, masks.random_bytes(self.secret, self._noise_context(current)))
            pads = deviations.draw_pads(self._largest(self.name, current), masks.random_bytes(self.key, context))
            vector = np.concatenate([sums, pads])
            hiding = masks.mask(len(vector), self.name, self.key, keys, context, self._beacon())
            self._masked[current.number] = vector + hiding
        return self._masked[current.number]

    # Totals.

    def _vectors(self, current: Round) -> dict[str, NDArray[np.uint64]]:
        """Return all contributions, with their pads."""
        parts = {name: self.slots[Slot("part", name, current.number)][1] for name in self.participants}
        return {name: statements.unpack(part.vector) for name, part in parts.items() if isinstance(part, Part)}

    def _add_up(self, current: Round) -> None:
        vectors = [vector[: current.layout.size] for vector in self._vectors(current).values()]
        exact, totals = open_totals(vectors, current.noise)
        most = site.most_rows_of(self.trust, self.participants)
        if current.layout.is_plausible(totals, current.noise.reach, most):
            self.totals.append(Total(current, exact.view(np.uint64), totals))
        else:
            self.implausible = current

    def _reach(self, current: Round) -> float:
        """Return how far from 0 a sum of all noise in a vector can be, in units of features."""
        return current.noise.reach * math.sqrt(current.layout.size)

    def _largest(self, name: str, current: Round) -> int:
        """Return how large the sum of a participant's vector can be, and its pads."""
        rows, features = site.largest_rows(self.trust, name), current.layout.features_per_row
        return deviations.largest_sum(rows, features, current.noise.bits, self._reach(current))

    def _halves(self, current: Round) -> NDArray[np.bool_]:
        ids = [self.slots[Slot("part", name, current.number)][0] for name in self.participants]
        return deviations.choose_halves(hashlib.sha256(b"".join(ids)).digest(), current.layout.size)

    def _open(self, current: Round) -> Iterator[Step]:
        """Open the sums of masks over halves of the vector; when all have, find out who deviates."""
        keys, halves = self.keys(), self._halves(current)
        slot = Slot("opening", self.name, current.number)
        if keys is not None and self.name in keys and slot not in self.slots:
            size = current.layout.size + CHECKS
            own = masks.pair_masks(size, self.name, self.key, keys, self._context(current), self._beacon())
            words = np.concatenate([deviations.add_up(own[partner], halves) for partner in sorted(own)])
            identity = *self.epoch_id, self.name, self.roster_id, current.number
            yield self._say(Opening(*identity, statements.pack(words)))
        self._take_early()
        if not self._lacking(slot):
            self._find_deviations(current, halves)

    def _find_deviations(self, current: Round, halves: NDArray[np.bool_]) -> None:
        names, opened = self.participants, {}
        for name in names:
            opening = self.slots[Slot("opening", name, current.number)][1]
            assert isinstance(opening, Opening)
            words = statements.unpack(opening.words).reshape(-1, CHECKS)
            opened[name] = dict(zip(masks.partners(names, name, self._beacon()), words, strict=True))
        sums = {name: deviations.add_up(vector, halves) for name, vector in self._vectors(current).items()}
        low = -math.ceil(self._reach(current) * 2.0**current.noise.bits)
        bounds = {name: (low, 2 * self._largest(name, current)) for name in names}
        found = deviations.find_deviations(sums, opened, bounds)
        self.suspects = found.pairs
        for name in found.sites:
            self._note_deviation(name, FALSE_SUMS)
        for name in found.accused:
            self._note_deviation(name, FALSE_MASKS, is_proven=False)

    def _release(self, now: Moment) -> Step:
        current, vector, totals = self.totals[-1]
        number, layout, noise = current
        names, source = self.participants, self.source
        min_cell = max(self.joins[name].min_cell for name in names)
        results = layout.results(totals, min_cell, noise.variance, source.confidence_level, noise.bits)
        takes_part = self.name in names and self.rows is not None
        report = SumReport(
            *self.epoch_id,
            now.wall,
            names,
            tuple(name for name in self.members if name not in names),
            tuple(results),
            statements.pack(vector),
            self._first_total() if number > 1 else b"",
            layout.fingerprint,
            noise.bits,
            noise.law,
            source.settings.epsilon or 0.0,
            source.settings.delta,
            min_cell,
            tuple(self.joins[name].snapshot for name in names),
            self.rows.time if takes_part and self.rows is not None else 0.0,
            tuple(hashlib.sha256(statements.pack(one)).digest() for one in self._vectors(current).values()),
        )
        entry = self._entry("release", now, current, participants=names, rows=self.rows if takes_part else None)
        return Step((Released(_encode(report)),), (), "releases", None, (entry,))

    # What a node does when an epoch fails.

    def reason_to_give_up(self, now: Moment) -> str:
        """Return why this node should start another epoch by now; empty if it should not.

        All nodes find the same reason; they wait one after the other, so that one of them starts the epoch.
        """
        if self.epoch == 0 or self.is_complete:
            return ""
        if self.refusals:
            return self._reason_to_go_on_without(list(self.refusals), now)
        if self.roster is None:
            late = now.running - self._entered_at - self._deadline - ABSENT_SECONDS
            others = [name for name in self.members if name != self.announcement.origin]
            if self.is_origin or self._rank(others) * RANK_SECONDS > late or late < 0:
                return ""
            # The roster of the next epoch does not wait long for these.
            self._absent = set(self.members) - set(self.joins) | {self.announcement.origin}
            return f"{self.announcement.origin}, which started the epoch, is silent"
        missing = self.missing()
        late = now.running - self._roster_at - self._deadline
        present = [name for name in self.participants if name not in missing]
        if not missing or late < 0 or self._rank(present) * RANK_SECONDS > late:
            return ""
        return f"no contribution of {', '.join(missing)[:150]}"

    def _reason_to_go_on_without(self, refusing: list[str], now: Moment) -> str:
        """Return why to start an epoch after some refused for reasons of their own, and this site need not."""
        rest = [name for name in self.participants if name not in refusing]
        late = now.running - self._refused_at - BACK_SECONDS
        is_due = self.name in rest and self._rank(rest) * RANK_SECONDS <= late
        if not is_due or not self._may_go_on_with(rest):
            return ""
        return f"{', '.join(refusing)[:150]} refused"

    def _rank(self, names: Sequence[str]) -> int:
        return names.index(self.name) if self.name in names else len(names)

    def is_left_out(self) -> bool:
        """Whether this node could take part, and the epoch's roster is without it."""
        return bool(self.participants) and self.name not in self.participants and not self.suppressed

    def may_come_back(self) -> bool:
        """Return whether a node that is left out may start an epoch, and count that: it may be left out again."""
        self._back_epochs += 1
        return self._back_epochs <= MAX_BACK_EPOCHS

    def change_source(self, source: SumSource) -> None:
        """Take other rows, rules, agreements or members."""
        if source.trust.digest != self.trust.digest:
            self.forgive()
        self.source, self.trust = source, source.trust
        self._back_epochs = 0


def noise_context(network: str, tags: tuple[tuple[str, bytes], ...], current: Round) -> bytes:
    """Return what noise follows from: whoever takes part, with which rows, the sums and the law."""
    parts = network, tags, current.layout.fingerprint, current.noise
    return hashlib.sha256(_encode(("gosta noise", *parts))).digest()[:TAG_BYTES]


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
