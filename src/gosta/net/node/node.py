"""A node that exchanges rows: a peer with a journal, timers and connections, on any event loop and any transport."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from random import Random

import msgspec

from gosta.graphs.tree import TREE_SHARE
from gosta.net.config import NodeConfig
from gosta.net.node.base import BaseNode, Log
from gosta.net.node.contact import ANSWER_SECONDS, MAX_PAUSE_SECONDS, REPEAT_SECONDS, Contact
from gosta.net.node.source import Source
from gosta.net.node.status import Status, difference, make_status
from gosta.net.protocol import messages as wire
from gosta.net.protocol.epochs import Step
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
from gosta.net.transport.base import Link, Loop, Transport

INSTANT_SECONDS = 1e-4  # until the next exchange: it need not be scheduled
IDLE_SECONDS = 0.05  # between attempts to initiate an exchange while that is not possible, at least
CHECK_SECONDS = 0.25  # between checks of the exchange under way
STALLED_SECONDS, STALLED_EXCHANGES = (
    5.0,
    20.0,
)  # without an exchange, or the usual time of so many: "stalled"
UNCONFIRMED_SECONDS = (
    2.0  # connected for so long and not confirming an exchange is not a fault of the network
)

CLOSED_REASONS = "withdrawn", "row limit"  # of neighbours that take part in no exchange for a while
EXCHANGES = ExchangeCompleted, ExchangeConfirmed


class Node(BaseNode):
    """A node that exchanges rows."""

    peer: Peer

    def __init__(
        self,
        config: NodeConfig,
        peer: Peer,
        journal: Journal,
        loop: Loop,
        rng: Random,
        log: Log,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(config, peer, journal, loop, rng, log, clock)
        self.is_converged = False  # the expected error is at most `until`
        self._disclosures: Counter[int] = (
            Counter()
        )  # how often own rows were sent, once for a neighbour and epoch
        self._shown: set[Shown] = set()  # in this epoch
        self._unwritten: list[
            Record
        ] = []  # confirmations: after a crash the node asks for them again
        self._partner, self._partner_since = "", 0.0  # of the exchange under way
        self._link_count = 1
        # A token bucket: exchanges that it may still take part in, and when they were counted.
        self._tokens, self._counted_at = config.node.max_exchanges_per_second, loop.time()
        self._exchanged_at = self._offered_at = self._accepted_at = self._asked_at = loop.time()

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

    def change(self, config: NodeConfig, source: Source) -> None:
        """Apply changed settings, rows, neighbours or members."""
        has_changed = self._change_neighbours(config)
        self.peer.source, self.peer.neighbours, self.peer.trust = (
            source,
            config.neighbours,
            source.trust,
        )
        was_withdrawn, self.peer.is_withdrawn = self.peer.is_withdrawn, False
        self._count_disclosures()
        self._start_epoch_if_due(has_changed=has_changed, is_back=was_withdrawn)
        self._schedule_next()

    def withdraw(self) -> None:
        """Take the node's rows out of the network: it starts an epoch, and takes part in no exchange."""
        if not self.peer.is_withdrawn:
            self._execute(self.peer.withdraw())

    # Messages.

    def _on_link(self, link: Link) -> None:
        if self.peer.accepted is not None and self.peer.accepted.partner == link.neighbour:
            self._execute(self.peer.repeat_accept())

    def _handle(self, link: Link, contact: Contact, message: wire.AnyMessage) -> None:
        self._note(link, contact, message)
        for step in self.peer.handle(link.neighbour, message, self.clock()):
            if not self._execute(step):
                break

    def _note(self, link: Link, contact: Contact, message: wire.AnyMessage) -> None:
        """Prepare for an offer, and note what an answer tells of the neighbour."""
        match message:
            case wire.Offer():
                has_time = contact.has_time(self.loop.time(), self._link_count)
                self.peer.is_busy = not (has_time and self._has_capacity())
                self.peer.is_at_row_limit = self._is_at_row_limit(link.neighbour)
            case wire.Accept() | wire.Busy() | wire.Decline():
                pending = self.peer.pending
                if pending is not None and (pending.to, pending.id) == (link.neighbour, message.id):
                    contact.on_answer()
                    if isinstance(message, wire.Decline) and message.reason in CLOSED_REASONS:
                        contact.no_offers_before = self.loop.time() + MAX_PAUSE_SECONDS

    # Timers.

    def _continue(self) -> None:
        self._schedule_next()

    def _schedule_next(self, shortest: float = 0.0) -> None:
        """Make sure that the next exchange will be initiated, unless one is under way; `shortest` is in seconds."""
        self._charge()
        rate = self.config.node.exchanges_per_second
        if rate > 0 and "initiate" not in self._timers and self.peer.is_free:
            seconds = max(shortest, self.rng.expovariate(rate))
            if seconds < INSTANT_SECONDS:
                self._initiate()
            else:
                self._schedule("initiate", seconds, self._initiate)

    def _charge(self) -> None:
        """Charge the neighbour with which an exchange was under way until now for the time that it took."""
        peer = self.peer
        partner = (
            peer.accepted.partner
            if peer.accepted is not None
            else peer.pending.to
            if peer.pending
            else ""
        )
        if partner != self._partner:
            now, rate = self.loop.time(), self.config.node.max_exchanges_per_second
            if self._partner in self.contacts:
                self.contacts[self._partner].time_left -= max(
                    now - self._partner_since, 1.0 / rate if rate else 0.0
                )
            self._partner, self._partner_since = partner, now

    def _has_capacity(self) -> bool:
        """Refill the token bucket and return whether the node may take part in one more exchange."""
        now, rate = self.loop.time(), self.config.node.max_exchanges_per_second
        self._tokens = min(max(1.0, rate), self._tokens + rate * (now - self._counted_at))
        self._counted_at = now
        return self._tokens >= 1.0

    def _is_at_row_limit(self, neighbour: str) -> bool:
        """Return whether an exchange with a neighbour would send own rows once too often."""
        limit, estimator = self.config.node.max_disclosures, self.peer.estimator
        if limit == 0 or not self.peer.shows_own_rows(neighbour):
            return False
        return any(
            self._disclosures[row] >= limit
            for row in estimator.rows.numbers(estimator.next_position)
        )

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

        Where a tree grows, one in the tree in two of three cases; else one without an exchange in this epoch, if there
        is any: it may be nearer to the root.
        """
        growing = self.peer.estimator.growing
        if growing is not None:
            in_tree = [name for name in available if name in growing.neighbours]
            others = [name for name in available if not self.peer.exchanges_with(name)]
            available = (in_tree if self.rng.random() < TREE_SHARE else others) or available
        return self.rng.choice(available)

    def _check_exchange(self) -> None:
        """Withdraw an offer that was not answered; ask again whether an accepted exchange took place, or abandon it."""
        now, pending, accepted = self.loop.time(), self.peer.pending, self.peer.accepted
        if pending is not None:
            contact = self.contacts.get(pending.to, Contact())
            if now - self._offered_at > contact.timeout(ANSWER_SECONDS):
                contact.on_no_answer(now)
                if contact.is_alive(now) and contact.link is not None:
                    self._reject(
                        contact.link,
                        wire.Rejected("unanswered", "it does not answer an offer"),
                        now,
                    )
                self._execute(self.peer.withdraw_offer())
        if accepted is not None and not self.disk_error:
            contact = self.contacts.get(accepted.partner, Contact())
            if now - self._accepted_at > contact.outcome_timeout(now):
                self._abandon(accepted.partner, contact, now)
            elif now - self._asked_at > contact.timeout(REPEAT_SECONDS):
                self._asked_at = now
                if contact.link is None:
                    self._dial(accepted.partner)
                else:
                    self._execute(self.peer.repeat_accept())
        self._schedule("check exchange", CHECK_SECONDS, self._check_exchange)
        self._schedule_next()

    def _abandon(self, partner: str, contact: Contact, now: float) -> None:
        self.log("exchange abandoned", neighbour=partner)
        if (
            contact.is_alive(now)
            and contact.link is not None
            and now - contact.connected_at > UNCONFIRMED_SECONDS
        ):
            rejected = wire.Rejected(
                "unconfirmed", "it does not confirm an exchange that it offered"
            )
            self._reject(contact.link, rejected, now)
            self._suspend(contact.link, "unconfirmed", now)
        self._execute(self.peer.abandon())

    def _on_heartbeat(self) -> None:
        self._start_epoch_if_due()
        try:
            self._write_waiting()
        except sqlite3.Error as failure:
            self._on_disk_error(str(failure))
        self.is_converged = self._has_converged()
        self._link_count = len(self.links)

    def _has_converged(self) -> bool:
        """Return whether the estimate of this epoch is good enough, and over the rows of all members."""
        until, report = self.config.network.until, None
        if until:
            report = self.peer.report()
        if (
            report is None
            or report.epoch != self.peer.epoch
            or report.missing
            or report.expected_error is None
        ):
            return False
        return report.expected_error <= until

    def _ping(self, neighbour: str) -> None:
        self._execute(self.peer.ping(neighbour, int(self.loop.time() * 1e6)))

    def _start_epoch_if_due(
        self, reason: str = "", has_changed: bool = False, is_back: bool = False
    ) -> None:
        peer, epoch_seconds = self.peer, self.config.node.epoch_seconds
        is_over = bool(epoch_seconds) and self.loop.time() - self._epoch_at >= epoch_seconds
        if self.disk_error or peer.is_withdrawn:
            return
        if peer.epoch == 0:
            reason = "first start"
        elif peer.failure:
            reason = peer.failure
        elif is_back or (peer.digest != peer.source.digest and (has_changed or not epoch_seconds)):
            reason = "rows, neighbours, members or settings changed"
        elif is_over:
            reason = "epoch_seconds have passed"
        elif not reason:
            return
        if is_back or peer.may_start_epoch(self.clock()):
            self._execute(peer.start_epoch(reason))

    # Execution of the peer's steps.

    def _write(self, step: Step) -> None:
        """Write the records of a step, and which own rows it sends to a neighbour for the first time in this epoch."""
        records, shown = [*self._unwritten, *step.records], self._newly_shown(step)
        if shown or (step.records and not isinstance(step.records[0], ExchangeConfirmed)):
            self.journal.append(records, shown)
            records = []
        self._unwritten = records
        for one in shown:
            self._shown.add(one)
            self._disclosures.update(one.row_numbers())

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
        if isinstance(record, ExchangeCompleted | ExchangeAccepted):
            self._tokens -= 1.0  # also for exchanges that are withdrawn
        if isinstance(record, EXCHANGES):
            self._exchanged_at = now
        elif isinstance(record, ExchangeAccepted):
            self._accepted_at = self._asked_at = now
        elif isinstance(record, EpochStarted):
            self._exchanged_at, self.is_converged = now, False
            self._shown.clear()
            self._log_epoch(record.announcement)

    def _on_disk_error(self, reason: str) -> None:
        self.peer.pending = None
        super()._on_disk_error(reason)

    def _on_disk_resolved(self) -> None:
        self._accepted_at = self.loop.time()

    # Status.

    def _state(self) -> str:
        now, peer, rate = self.loop.time(), self.peer, self.config.node.exchanges_per_second
        alive = [contact for contact in self.contacts.values() if contact.is_alive(now)]
        patience = max(STALLED_SECONDS, STALLED_EXCHANGES / rate if rate else 0.0)
        if self.disk_error:
            return "disk error"
        if peer.is_withdrawn:
            return "withdrawn"
        if not self.links:
            return (
                "mismatch"
                if any(contact.mismatch for contact in self.contacts.values())
                else "disconnected"
            )
        if self._shows_no_more():
            return "row limit reached"
        if (
            alive
            and all(contact.epoch != peer.epoch for contact in alive)
            and now - self._epoch_at > STALLED_SECONDS
        ):
            return "alone"
        if self.is_converged:
            return "converged"
        return "stalled" if now - self._exchanged_at > patience else "running"

    def status(self) -> Status:
        peer = self.peer
        own = value_of(peer.estimator) if peer.estimator.exchanges else None
        neighbours = tuple(
            self._view(name, contact, peer.exchanges_with(name), difference(own, peer, name))
            for name, contact in self.contacts.items()
        )
        return make_status(
            self.config, peer, neighbours, state=self._state(), **self._status_fields()
        )
