"""What a node of private sums knows of its epoch, and decides: whether, with whom, how long.

Nothing here is written or sent: the state machine (sums.py) does that. A decision against something
is a short text that says why; where it tells of the site's rows, only the site itself sees it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import NamedTuple

from gosta.net.members import Trust
from gosta.net.protocol import statements
from gosta.net.protocol.epochs import NO_EPOCH, EpochPeer, Identity, Moment
from gosta.net.protocol.messages import Announcement, Signed
from gosta.net.protocol.records import Deviation
from gosta.net.protocol.site import SumReport, SumSource
from gosta.net.protocol.statements import AnyStatement, Join, Roster, Slot
from gosta.net.protocol.sum_epoch import Round, Said, SumEpoch
from gosta.net.protocol.sum_memory import Choice, Memory
from gosta.private import masks, policy
from gosta.private.accounting import Spent
from gosta.private.deviations import MAX_OPENINGS
from gosta.private.log import LogEntry, history_of
from gosta.private.noise import Noise
from gosta.private.policy import Past
from gosta.private.snapshots import RowSnapshot

ABSENT_SECONDS = 3.0  # that a member has to join which was not there in the last epoch
RANK_SECONDS = 1.0  # between the nodes that may start an epoch when another one failed
BACK_SECONDS = 5.0  # after a release, until a member that was not in it starts an epoch
# Epochs that a member starts which joins and is left out, until something changes at its site.
MAX_BACK_EPOCHS = 2
TOO_MANY_OPENINGS = (
    f"{MAX_OPENINGS} totals of these members were no sums over rows, and more would show too much "
    "of this site's rows; the coordinator has to leave out sites one after the other"
)
WASTED = "let epochs fail that had cost epsilon; to go on with it: gosta network agree FOLDER"


class Verdict(NamedTuple):
    """Why a site does not contribute; empty if it does."""

    reason: str = ""
    needs: tuple[str, ...] = ()  # sites whose agreement is missing, if that is why


class SumSite(EpochPeer):
    """The state of a node of private sums, and what it decides."""

    def __init__(
        self, identity: Identity, source: SumSource, neighbours: Collection[str], trust: Trust
    ) -> None:
        super().__init__(identity, trust)
        self.source = source
        self.neighbours = neighbours
        self.log: list[LogEntry] = []  # of contributions, from the journal
        self.report: SumReport | None = None  # of the last release
        self.memory = Memory()
        self.conflict = ""  # why the member list cannot be trusted; set by the node
        self._absent = set[str]()  # members that the next roster does not wait for
        self._excluded_until: dict[str, float] = {}  # by member that let epochs fail
        self._repeated_joins = Counter[str]()  # by member that seems to lose its journal
        self._stalls = Counter[str]()  # epochs that a participant let fail
        self._back_epochs = 0  # that this node started, since it was left out
        self._choice: tuple[object, Choice] = None, Choice(None)
        self._has_restarted = False  # and has not joined an epoch since
        self._enter_epoch(NO_EPOCH, b"")

    def _enter_epoch(self, announcement: Announcement, key: bytes) -> None:
        self.announcement = announcement
        self.current = SumEpoch(self.identity.network, self.name, announcement, key)
        self._new_deviations: dict[str, Deviation] = {}  # that are not in the journal yet
        self._late = set[str]()  # participants whose contribution was missing at the deadline
        # When this node entered the epoch, had what the round that is due needs (the roster, or the
        # last total), and knew of a refusal.
        self._entered_at, self._round_at, self._refused_at = -inf, inf, inf
        self._heard_at = inf  # when a neighbour was first heard from
        # Nobody can have said anything before the first epoch.
        self._has_restarted &= announcement.epoch > 1

    # The state.

    @property
    def slots(self) -> Mapping[Slot, tuple[bytes, AnyStatement]]:
        """The statements of the epoch, by what they are about."""
        return self.current.slots

    def said(self, kind: type[Said], number: int = 0) -> Said | None:
        """Return a statement of this node itself; those of rounds have the round's number."""
        return self.current.said(kind, self.name, number)

    def all_said(self) -> list[tuple[Signed, AnyStatement]]:
        """Return all that this node itself said in the epoch."""
        mine = [statement for statement in self.slots.values() if statement[1].home == self.name]
        return [(self.current.pool.statements[id], statement) for id, statement in mine]

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
        return self.report is not None and self.report.epoch_id == self.current.id

    def is_left_out(self) -> bool:
        """Whether this node could take part, and the epoch's roster is without it."""
        names = self.current.participants
        return bool(names) and self.name not in names and not self.current.suppressed

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
        refusals = self.current.refusals.values()
        return tuple(sorted({name for refusal in refusals for name in refusal.needs}))

    # The rows, and what they cost.

    def choice(self) -> Choice:
        """Return the rows that this site contributes next."""
        last = None if self.rows is None else self.rows.digest
        about = self.source, last, self.memory.contributed, self.memory.secret
        if self._choice[0] != about:  # with many rows it takes a second
            self._choice = about, self.memory.choose_rows(self.source, self.name)
        return self._choice[1]

    def chosen_rows(self) -> RowSnapshot | None:
        return self.choice().rows

    def snapshot_tag(self) -> bytes:
        rows = self.chosen_rows()
        return b"" if rows is None else self.memory.tag_of(rows)

    def history(self) -> list[Past]:
        """Return the contributions so far."""
        return history_of(self.log)

    def _paid_noise(self, *, before_this_epoch: bool = False) -> set[str]:
        """Return the noise that this site has sent, which costs nothing again."""
        sent = [entry for entry in self.log if entry.event == "contribution" and entry.noise]
        return {
            entry.noise
            for entry in sent
            if not (before_this_epoch and entry.epoch_id == self.current.id)
        }

    def _has_spent(self) -> bool:
        """Return whether this site sent new noise in the epoch."""
        return self._paid_noise() != self._paid_noise(before_this_epoch=True)

    def _is_paid(self, round_: Round) -> bool:
        """Return whether this site has sent the same noise before, so that it costs nothing now."""
        if not self.has_noise:
            return False
        return self.current.noise_context(round_, self.trust).hex() in self._paid_noise()

    def _over_budget(self, noise: Noise, rows: RowSnapshot) -> str:
        if not self.has_noise:
            return ""
        spent = Spent(noise.law, noise.epsilon, noise.delta, rows.rows_per_person)
        subject = self.source.subject(rows)._replace(spent=(spent,))
        return policy.over_budget(self.source.policy, subject, self.history())

    def opening_over_budget(self, round_: Round) -> str:
        """Return why this site does not open masks, in a network with noise; empty if it does."""
        return "" if self.rows is None else self._over_budget(round_.pads, self.rows)

    # Whether this site takes part.

    def _verdict_to_join(self, now: Moment, pays: bool = True) -> str:
        """Return what this site's policy forbids about the statistic, its rows and the budget."""
        if self.is_withdrawn:
            return "the site withdrew its rows"
        if self.source.agreed.leaves:
            return "the site has left; to come back: gosta node leave FOLDER --back"
        rows, reason = self.choice()
        if rows is None:
            return reason
        subject = self.source.subject(rows)
        subject = subject if pays else subject._replace(spent=())
        history = history_of([entry for entry in self.log if entry.epoch_id != self.current.id])
        return policy.verdict_to_join(self.source.policy, subject, history, now.wall)

    def _verdict(self, round_: Round, now: Moment) -> Verdict:
        """Return why this site does not contribute to a round."""
        join = self.current.joins[self.name]
        names = self.current.participants
        if self.conflict:
            return Verdict(self.conflict)
        if join.key != masks.public_key(self.current.key):
            return Verdict("its journal lost the key with which it had joined")
        if others := self.other_lists():
            return Verdict(f"{', '.join(others)} joined with another member list")
        if reason := self._verdict_on_rows(round_, join, now):
            return Verdict(reason)
        if reason := self._verdict_on_number(names):
            return Verdict(reason)
        if self.memory.has_opened_enough(self.trust.serial):
            return Verdict(TOO_MANY_OPENINGS)
        for name in names:
            if reason := self._why_not(name):
                return Verdict(f"{name} {reason}")
        if not self._is_paid(round_) and (wasting := self._wasting() & set(names)):
            name = min(wasting)
            count = self.memory.wasted[name]
            return Verdict(f"{name} let {count} epochs fail that had cost epsilon", (name,))
        if name := self._left_out_at_first(names):
            what = f"{name} takes part, and the first list of participants is without it"
            return Verdict(what)
        if round_.number == 1 and (needs := self.missing_agreements(names)):
            risk = "could be computed from the totals with and without them"
            return Verdict(f"the sums of {', '.join(needs)} {risk}", needs)
        return Verdict()

    def _verdict_on_rows(self, round_: Round, join: Join, now: Moment) -> str:
        """Return what forbids this site's rows in a round; noise that is paid costs nothing."""
        has_committed = Slot("commit", self.name, 1) in self.slots
        rows = self.rows if has_committed else self.chosen_rows()
        if rows is None or self.memory.tag_of(rows) != join.snapshot:
            return "its rows changed after it joined"
        is_new, is_first = not self._is_paid(round_), round_.number == 1
        verdict = self._verdict_to_join(now, pays=is_new and is_first)
        if verdict or is_first:
            return verdict
        if verdict := self.current.few_rows(round_, rows):
            return verdict
        return "" if not is_new else self._over_budget(round_.noise, rows)

    def _verdict_now(self, now: Moment) -> Verdict:
        """Return why this site would not contribute now, or not join if it is no participant."""
        round_ = self.current.round(len(self.current.totals) + 1, self.source)
        is_asked = self.name in self.current.participants and self.current.keys() is not None
        if is_asked and round_ is not None:
            return self._verdict(round_, now)
        return Verdict(self._verdict_to_join(now))

    def _verdict_on_number(self, names: Sequence[str]) -> str:
        return policy.verdict_to_contribute(self.source.policy, len(names), len(self.members))

    # With whom it takes part.

    def _agrees(self) -> bool:
        return self.name in self.source.agreed.sites

    def missing_agreements(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the sites that have not agreed to what a total over these would show of them."""
        if self.has_noise:
            return ()
        return self.memory.missing_agreements(self.source, self.name, self.current.joins, names)

    def other_lists(self) -> list[str]:
        """Return the participants that joined with another member list than this site has now.

        Their names may be those of other sites, with other bounds and settings: nobody contributes,
        or is blamed for that, until all have the same list.
        """
        joins, digest = self.current.joins, self.trust.list_digest
        names = self.current.participants
        return [name for name in names if name in joins and joins[name].list_digest != digest]

    def _why_not(self, name: str) -> str:
        """Return what a member that joined does, so that no total with it is accepted; or
        nothing.
        """
        if name in (deviants := self._deviants()):
            return deviants[name]
        asked, most = self.current.joins[name].min_cell, self.source.policy.max_min_cell
        if asked <= most:
            return ""
        accepted = f"{most} is the most that is accepted here (max_min_cell)"
        return f"asks for cells of {asked:,} rows, and {accepted}"

    def _deviants(self) -> dict[str, str]:
        new = {name: deviation.what for name, deviation in self._new_deviations.items()}
        return self.memory.deviants(self.trust.serial) | new

    def _wasting(self) -> set[str]:
        return self.memory.wasting(self.source) if self.has_noise else set()

    @property
    def _is_first_total(self) -> bool:
        """Whether nobody who joins may be left out: coming later would give its sums away."""
        return not (self.has_noise or self.memory.companions or self.source.policy.min_sites <= 1)

    def _left_out_at_first(self, names: Sequence[str]) -> str:
        """Return a site that joined and is left out of the first total of this one."""
        if not self._is_first_total or self._agrees():
            return ""
        return min(set(self._acceptable()) - set(names), default="")

    def _acceptable(self) -> list[str]:
        """Return the members that joined, and that this site accepts in a total."""
        joins = sorted(self.current.joins.items())
        return [name for name, join in joins if join.key and not self._why_not(name)]

    def left_out_reasons(self) -> dict[str, str]:
        """Return why members are left out, as far as this site would do so too."""
        found = {name: deviation.what for name, deviation in self.memory.deviating.items()}
        for name, join in self.current.joins.items():
            is_left_out = join.key and name not in self.current.participants
            if is_left_out and (reason := self._why_not(name)):
                found[name] = reason
        return found | {name: f"{WASTED} {name}" for name in self._wasting()}

    def _next_roster(self, now: Moment) -> Roster | None:
        """Return the roster once nobody need be waited for."""
        names, waited = self._acceptable(), now.running - self._entered_at
        silent = set(self.members) - self.current.joins.keys()
        patience = self._deadline
        if silent <= self._absent | self.source.agreed.sites.keys():
            patience = min(patience, ABSENT_SECONDS)
        if len(names) < self._least_participants or (silent and waited < patience):
            return None
        excluded = {name for name, until in self._excluded_until.items() if now.running < until}
        names = self._agreeable(names, excluded | self._wasting())[: statements.MAX_PARTICIPANTS]
        chosen = tuple((name, self.slots[Slot("join", name)][0]) for name in names)
        return Roster(*self.current.id, self.name, chosen)

    def _agreeable(self, names: list[str], stalling: Collection[str] = ()) -> list[str]:
        """Return the participants to choose: without who lets epochs fail or does not agree.

        If no such choice is allowed, it is all of them, so that their refusals say what is missing.
        """
        if self._is_first_total:
            return names
        lacking = set(self.missing_agreements(names))
        unwilling = lacking & set(names) - {self.name}
        for without in ({*stalling, *unwilling}, stalling, unwilling, ()):
            chosen = [name for name in names if name not in without]
            if self._may_go_on_with(chosen):
                return chosen
        return names

    def _may_go_on_with(self, names: Sequence[str]) -> bool:
        """Return whether this site's policy and all agreements allow a total of some members."""
        is_enough = len(names) >= self._least_participants and not self._verdict_on_number(names)
        return is_enough and not self.missing_agreements(names)

    def _better_roster(self, now: Moment) -> list[str]:
        """Return those with whom this site would contribute, of an epoch in which it refused."""
        names = self.current.participants
        if not set(names) <= self.current.joins.keys():
            return []  # after a restart they are asked for again
        able = [name for name in names if not self._why_not(name)]
        chosen = self._agreeable(able, self._wasting())
        is_allowed = self._may_go_on_with(chosen) and not self.conflict
        is_better = is_allowed and set(chosen) < set(names)
        return chosen if is_better and not self._verdict_to_join(now) else []

    # When another epoch starts.

    def stays(self, now: Moment) -> bool:
        """Return whether this site spent epsilon in an epoch whose total may still come."""
        epoch = self.current
        is_over = self.is_complete or epoch.failure or epoch.refusals or epoch.implausible
        is_open = epoch.roster is not None and now.running - self._round_at < self._deadline
        return self.has_noise and is_open and not is_over and self._has_spent()

    def reason_for_epoch(self, now: Moment) -> str:
        """Return why a new epoch should start; empty if there is no reason."""
        if self.epoch == 0:
            return "first start"
        if self.current.failure:
            return self.current.failure
        join, others = self.current.joins.get(self.name), set(self.current.refusals) - {self.name}
        if join is None:
            return ""
        if join.list_digest != self.trust.list_digest:
            return f"{self.name} has another member list"
        if join.key and self.source.agreed.leaves:
            return f"{self.name} leaves"
        if join.agrees != self._agrees():
            return f"{self.name} {'agrees' if self._agrees() else 'no longer agrees'}"
        if others and join.min_cell != self.source.policy.min_cell:
            return f"{self.name} has another min_cell"
        has_changed = join.key and self.snapshot_tag() != join.snapshot
        if has_changed and not self._verdict_to_join(now):
            return "rows changed"
        if self.current.suppressed and not self._verdict_now(now).reason:
            return f"{self.name} takes part now"
        if self.name in self.current.refusals and (better := self._better_roster(now)):
            without = ", ".join(set(self.current.participants) - set(better))
            return f"{self.name} takes part without {without[:100]}"
        return ""

    def reason_to_give_up(self, now: Moment) -> str:
        """Return why this node should start another epoch by now; empty if it should not.

        All nodes find the same reason; they wait one after the other, so that one of them starts
        the epoch.
        """
        if self.epoch == 0 or self.is_complete:
            return ""
        if self.current.refusals:
            return self._reason_to_go_on(now)
        origin = self.announcement.origin
        if self.current.roster is None:
            others = [name for name in self.members if name != origin]
            since = self._entered_at + self._deadline + ABSENT_SECONDS
            if self.is_origin or not self._is_turn(others, since, now):
                return ""
            # The roster of the next epoch does not wait long for these.
            self._absent = {*set(self.members) - set(self.current.joins), origin}
            return f"{origin}, which started the epoch, is silent"
        missing = self.missing()
        present = [name for name in self.current.participants if name not in missing]
        if not missing or not self._is_turn(present, self._round_at + self._deadline, now):
            return ""
        return f"no contribution of {', '.join(missing)[:150]}"

    def _reason_to_go_on(self, now: Moment) -> str:
        """Return why to start an epoch after some refused, and this site need not."""
        refusing = list(self.current.refusals)
        rest = [name for name in self.current.participants if name not in refusing]
        is_bound = self._is_first_total or self.other_lists() or self.name not in rest
        is_turn = not is_bound and self._is_turn(rest, self._refused_at + BACK_SECONDS, now)
        if not is_turn or not self._may_go_on_with(rest):
            return ""
        return f"{', '.join(refusing)[:150]} refused"

    def _is_turn(self, names: Sequence[str], since: float, now: Moment) -> bool:
        """Return whether it is this node's turn, of some nodes that start epochs in order."""
        rank = names.index(self.name) if self.name in names else len(names)
        return now.running - since >= rank * RANK_SECONDS
