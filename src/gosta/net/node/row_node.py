"""What is special about a node that exchanges rows: with whom it exchanges, when, and how often."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping

import msgspec

from gosta.graphs.tree import TREE_SHARE
from gosta.net.config import NodeConfig
from gosta.net.node.contact import ANSWER_TIMEOUT, MAX_PAUSE_SECONDS, REPEAT_TIMEOUT, Contact
from gosta.net.node.node import BACK, Environment, Node
from gosta.net.node.status import difference
from gosta.net.protocol import messages as wire
from gosta.net.protocol.epochs import Moment, Step
from gosta.net.protocol.peer import Peer
from gosta.net.protocol.records import (
    EpochStarted,
    ExchangeAccepted,
    ExchangeCompleted,
    ExchangeConfirmed,
    Record,
)
from gosta.net.protocol.report import value_of
from gosta.net.storage.journal import Journal
from gosta.net.storage.ledger import Shown
from gosta.net.transport.base import Link, Transport

# An exchange that is due sooner than this need not be scheduled.
INSTANT_SECONDS = 1e-4
# Shortest time between attempts to initiate an exchange while that is not possible.
IDLE_SECONDS = 0.05
# Time between checks of the exchange under way.
CHECK_SECONDS = 0.25
# A node is "stalled" after this time without an exchange, or the usual time of as many exchanges.
STALLED_SECONDS = 5.0
STALLED_EXCHANGES = 20.0
# A neighbour that is connected for longer and does not confirm an exchange is itself at fault.
UNCONFIRMED_SECONDS = 2.0
# Reasons of neighbours that take part in no exchange for a while.
CLOSED_REASONS = ("withdrawn", "row limit")


class RowNode(Node):
    """A node that exchanges rows."""

    peer: Peer

    def __init__(
        self, config: NodeConfig, peer: Peer, journal: Journal, environment: Environment
    ) -> None:
        super().__init__(config, peer, journal, environment)
        now = self.loop.time()
        self.is_converged = False  # the expected error is at most `until`
        # How often each own row was sent, counted once for a neighbour and epoch.
        self._disclosures: Counter[int] = Counter()
        self._shown: set[Shown] = set()  # in this epoch
        # Confirmations: after a crash the node asks for them again.
        self._unwritten: list[Record] = []
        self._partner, self._partner_since = "", 0.0  # of the exchange under way
        self._link_count = 1
        # A token bucket: exchanges that it may still take part in, and when they were counted.
        self._tokens, self._counted_at = config.node.max_exchanges_per_second, now
        self._exchanged_at = self._offered_at = self._accepted_at = self._asked_at = now

    def start(self, transport: Transport, boot_id: str = "") -> None:
        self._count_disclosures()
        super().start(transport, boot_id)
        self._check_exchange()

    def pause(self) -> None:
        """Initiate no more exchanges, and sign those so far."""
        settings = msgspec.structs.replace(self.config.node, exchanges_per_second=0.0)
        self.config = msgspec.structs.replace(self.config, node=settings)
        self._cancel("initiate")
        for neighbour in self.links:
            self._ping(neighbour)

    @property
    def is_idle(self) -> bool:
        return self.peer.is_free

    def _on_change(self) -> None:
        self._count_disclosures()

    def _on_link(self, link: Link) -> None:
        if self.peer.accepted is not None and self.peer.accepted.partner == link.neighbour:
            self._execute(self.peer.repeat_accept())

    def _reason_for_epoch(self, now: Moment) -> str:  # noqa: ARG002
        return self.peer.reason_for_epoch(is_timed=bool(self.config.node.epoch_seconds))

    def _may_start_epoch(self, reason: str, now: Moment) -> bool:
        return reason == BACK or self.peer.may_start_epoch(now.wall)

    # Messages.

    def _prepare(self, link: Link, contact: Contact, message: wire.AnyMessage) -> str:
        """Note what an answer tells of the neighbour; return why an offer is refused, if it is."""
        match message:
            case wire.Offer():
                has_time = contact.has_time(self.loop.time(), self._link_count)
                if not (has_time and self._has_capacity()):
                    return "busy"
                return "row limit" if self._is_at_row_limit(link.neighbour) else ""
            case wire.Accept() | wire.Busy() | wire.Decline():
                pending = self.peer.pending
                if pending is not None and (pending.to, pending.id) == (link.neighbour, message.id):
                    contact.on_answer()
                    if isinstance(message, wire.Decline) and message.reason in CLOSED_REASONS:
                        contact.no_offers_before = self.loop.time() + MAX_PAUSE_SECONDS
        return ""

    # Timers.

    def _continue(self) -> None:
        self._schedule_next()

    def _schedule_next(self, shortest: float = 0.0) -> None:
        """Schedule the next exchange, in `shortest` seconds or later, unless one is under way."""
        self._charge()
        rate = self.config.node.exchanges_per_second
        if rate > 0 and "initiate" not in self._timers and self.peer.is_free:
            seconds = max(shortest, self.rng.expovariate(rate))
            if seconds < INSTANT_SECONDS:
                self._initiate()
            else:
                self._schedule("initiate", seconds, self._initiate)

    def _charge(self) -> None:
        """Charge the neighbour with which an exchange was under way for the time that it took."""
        partner, peer = "", self.peer
        if peer.accepted is not None:
            partner = peer.accepted.partner
        elif peer.pending is not None:
            partner = peer.pending.to
        if partner != self._partner:
            now, rate = self.loop.time(), self.config.node.max_exchanges_per_second
            if self._partner in self.contacts:
                least = 1.0 / rate if rate else 0.0
                self.contacts[self._partner].time_left -= max(now - self._partner_since, least)
            self._partner, self._partner_since = partner, now

    def _has_capacity(self) -> bool:
        """Refill the token bucket and return whether the node may take part in an exchange."""
        now, rate = self.loop.time(), self.config.node.max_exchanges_per_second
        self._tokens = min(max(1.0, rate), self._tokens + rate * (now - self._counted_at))
        self._counted_at = now
        return self._tokens >= 1.0

    def _is_at_row_limit(self, neighbour: str) -> bool:
        """Return whether an exchange with a neighbour would send own rows once too often."""
        limit, estimator = self.config.node.max_disclosures, self.peer.estimator
        if limit == 0 or not self.peer.shows_own_rows(neighbour):
            return False
        rows = estimator.rows.numbers(estimator.next_position)
        return any(self._disclosures[row] >= limit for row in rows)

    def _shows_no_more(self) -> bool:
        return all(map(self._is_at_row_limit, self.contacts))

    def _count_disclosures(self) -> None:
        self._disclosures = self.journal.disclosures(self.peer.source.data_digest)

    def _initiate(self) -> None:
        now, peer = self.loop.time(), self.peer
        can_initiate = peer.is_free and not (
            self.disk_error or self.is_converged or peer.is_withdrawn or self._shows_no_more()
        )
        if can_initiate and self._has_capacity():
            available = [
                name
                for name, contact in self.contacts.items()
                if contact.is_alive(now)
                and contact.epoch == peer.epoch
                and now >= contact.no_offers_before
                and contact.has_time(now, self._link_count)
                and not self._is_at_row_limit(name)
            ]
            if available:
                self._offered_at = now
                self._execute(peer.offer(self._choose(available), int(self.clock() * 1e6)))
            else:
                self.counters["no neighbour available"] += 1
        self._schedule_next(IDLE_SECONDS)

    def _choose(self, available: list[str]) -> str:
        """Choose a neighbour for an exchange.

        Where a tree grows, choose one in the tree in two of three cases; else one without an
        exchange in this epoch, if there is any: it may be nearer to the root.
        """
        growing = self.peer.estimator.growing
        if growing is not None:
            in_tree = [name for name in available if name in growing.neighbours]
            others = [name for name in available if not self.peer.exchanges_with(name)]
            available = (in_tree if self.rng.random() < TREE_SHARE else others) or available
        return self.rng.choice(available)

    def _check_exchange(self) -> None:
        """Withdraw an offer without answer; ask for the outcome of an exchange, or abandon it."""
        now, pending, accepted = self.loop.time(), self.peer.pending, self.peer.accepted
        if pending is not None:
            self._check_offer(pending.to, now)
        if accepted is not None and not self.disk_error:
            self._check_outcome(accepted.partner, now)
        self._schedule("check exchange", CHECK_SECONDS, self._check_exchange)
        self._schedule_next()

    def _check_offer(self, partner: str, now: float) -> None:
        contact = self.contacts.get(partner, Contact())
        if now - self._offered_at > contact.timeout(ANSWER_TIMEOUT):
            contact.on_no_answer(now)
            if contact.is_alive(now) and contact.link is not None:
                silent = wire.Rejected("unanswered", "it does not answer an offer")
                self._reject(contact.link, silent, now)
            self._execute(self.peer.withdraw_offer())

    def _check_outcome(self, partner: str, now: float) -> None:
        contact = self.contacts.get(partner, Contact())
        if now - self._accepted_at > contact.outcome_timeout(now):
            self._abandon(partner, contact, now)
        elif now - self._asked_at > contact.timeout(REPEAT_TIMEOUT):
            self._asked_at = now
            if contact.link is None:
                self._dial(partner)
            else:
                self._execute(self.peer.repeat_accept())

    def _abandon(self, partner: str, contact: Contact, now: float) -> None:
        self.log("exchange abandoned", neighbour=partner)
        is_late = now - contact.connected_at > UNCONFIRMED_SECONDS
        if contact.is_alive(now) and contact.link is not None and is_late:
            why = "it does not confirm an exchange that it offered"
            self._reject(contact.link, wire.Rejected("unconfirmed", why), now)
            self._suspend(contact.link, "unconfirmed", now)
        self._execute(self.peer.abandon())

    def _on_heartbeat(self) -> None:
        super()._on_heartbeat()
        try:
            self._write_waiting()
        except sqlite3.Error as failure:
            self._on_disk_error(str(failure))
        self.is_converged = self._has_converged()
        self._link_count = len(self.links)

    def _has_converged(self) -> bool:
        """Return whether this epoch's estimate is good enough, and over the rows of all members."""
        until = self.config.network.until
        report = self.peer.report() if until else None
        if report is None or report.epoch != self.peer.epoch or report.missing:
            return False
        return report.expected_error is not None and report.expected_error <= until

    # Execution of the peer's steps.

    def _write(self, step: Step) -> None:
        """Write a step's records, and which own rows a neighbour is sent first in this epoch."""
        records, shown = [*self._unwritten, *step.records], self._newly_shown(step)
        if shown or (step.records and not isinstance(step.records[0], ExchangeConfirmed)):
            self.journal.append(records, shown)
            records = []
        self._unwritten = records
        for rows in shown:
            self._shown.add(rows)
            self._disclosures.update(rows.row_numbers())

    def _newly_shown(self, step: Step) -> list[Shown]:
        if step.shows is None:
            return []
        (to, first_row), rows = step.shows, self.peer.estimator.rows
        shown = Shown(self.peer.source.data_digest, to, first_row, rows.sample_size, rows.count)
        return [] if shown in self._shown else [shown]

    def _write_waiting(self) -> None:
        if self._unwritten:
            self.journal.append(self._unwritten)
            self._unwritten = []

    def _on_record(self, record: Record) -> None:
        now = self.loop.time()
        match record:
            case ExchangeCompleted():
                self._tokens -= 1.0
                self._exchanged_at = now
            case ExchangeAccepted():
                self._tokens -= 1.0  # also for exchanges that are withdrawn
                self._accepted_at = self._asked_at = now
            case ExchangeConfirmed():
                self._exchanged_at = now
            case EpochStarted():
                self._exchanged_at, self.is_converged = now, False
                self._shown.clear()
        super()._on_record(record)

    def _on_disk_error(self, reason: str) -> None:
        self.peer.pending = None
        super()._on_disk_error(reason)

    def _on_disk_resolved(self) -> None:
        self._accepted_at = self.loop.time()

    # Status.

    def _state_in_epoch(self) -> str:
        now, rate = self.loop.time(), self.config.node.exchanges_per_second
        if self._shows_no_more():
            return "row limit reached"
        alive = [contact for contact in self.contacts.values() if contact.is_alive(now)]
        is_apart = alive and all(contact.epoch != self.peer.epoch for contact in alive)
        if is_apart and now - self._epoch_at > STALLED_SECONDS:
            return "alone"
        if self.is_converged:
            return "converged"
        patience = max(STALLED_SECONDS, STALLED_EXCHANGES / rate if rate else 0.0)
        return "stalled" if now - self._exchanged_at > patience else "running"

    def _differences(self) -> Mapping[str, float | None]:
        estimate = value_of(self.peer.estimator) if self.peer.estimator.exchanges else None
        return {name: difference(estimate, self.peer, name) for name in self.contacts}
