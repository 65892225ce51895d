"""A node: a peer with a journal, timers and connections, on any event loop and any transport."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from gosta.errors import InputError
from gosta.net.config import NodeConfig
from gosta.net.limits import MAX_MESSAGE_BYTES
from gosta.net.node.contact import ANSWER_SECONDS, MAX_PAUSE_SECONDS, REPEAT_SECONDS, Contact
from gosta.net.node.lists import ListFolder, NoLists
from gosta.net.node.rejections import Rejections
from gosta.net.node.source import Source
from gosta.net.node.status import Neighbour, Status, difference, make_status
from gosta.net.protocol import messages as wire
from gosta.net.protocol.budget import Budget
from gosta.net.protocol.peer import Peer, Step
from gosta.net.protocol.records import EpochStarted, ExchangeAccepted, ExchangeCompleted, ExchangeConfirmed, Record
from gosta.net.protocol.report import value_of
from gosta.net.storage.journal import Journal
from gosta.net.storage.ledger import Shown
from gosta.net.transport.base import Greeting, Link, Loop, Transport

HEARTBEAT_SECONDS = 1.0  # between pings to each neighbour
SILENCE_SECONDS = 10.0  # after which a connection is closed
DIAL_SECONDS = 0.2, 20.0  # between attempts to connect: the first time, doubled each time, and at most
DIAL_PRIORITY_SECONDS = 1.0  # of two neighbours, the one whose name comes second waits so long before it dials
INSTANT_SECONDS = 1e-4  # until the next exchange: it need not be scheduled
IDLE_SECONDS = 0.05  # between attempts to initiate an exchange while that is not possible, at least
CHECK_SECONDS = 0.25  # between checks of the exchange under way
PROBE_SECONDS = 1.0  # between attempts to write to a disk that failed
STALLED_SECONDS, STALLED_EXCHANGES = 5.0, 20.0  # without an exchange, or the usual time of so many: "stalled"
SNAPSHOT_RECORDS = 512  # records between snapshots: a restart applies fewer than these
MAX_SENT_LIST_BYTES = MAX_MESSAGE_BYTES - 64  # a longer member list has to be taken to the sites
MAX_REJECTIONS, REJECTION_SECONDS = 20, 3.0  # of a neighbour's messages at once, and one per so many seconds; then
SUSPENSION_SECONDS = 60.0  # it is suspended for so long
UNCONFIRMED_SECONDS = 2.0  # connected for so long and not confirming an exchange is not a fault of the network
CONNECTIONS_AT_ONCE, CONNECTION_SECONDS = 20, 3.0  # of one neighbour, and then one per so many seconds
MESSAGES_PER_EXCHANGE = 5  # that a neighbour may send, at the most exchanges per second

CLOSED_REASONS = "withdrawn", "row limit"  # of neighbours that take part in no exchange for a while
EXCHANGES = ExchangeCompleted, ExchangeConfirmed
Log = Callable[..., None]  # log(event, **fields)


def backoff(first: float, longest: float, attempts: int, random: float) -> float:
    """Return the seconds before the next attempt: doubled each time, and half of it random."""
    return float(min(longest, first * 2 ** min(attempts, 20)) * (0.5 + random / 2))


class Node:
    """One node of a network, and the handler of its transport."""

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
        self.config, self.peer, self.journal, self.loop, self.rng, self.log = config, peer, journal, loop, rng, log
        self.clock = clock  # seconds since 1970
        self.greeting = Greeting(peer.name, peer.identity.network, peer.identity.fingerprint)
        self.lists: ListFolder | NoLists = NoLists()
        self.transport: Transport | None = None
        self.contacts = {name: Contact() for name in config.neighbours}
        self.counters: Counter[str] = Counter()
        self.rejections = Rejections(log)
        self.disk_error = ""  # why the journal cannot be written
        self.reload_error = self.credentials_error = ""  # why changed files are not in use
        self.is_converged = False  # the expected error is at most `until`
        self._hostility = Budget(MAX_REJECTIONS, REJECTION_SECONDS)  # by neighbour, as the next one
        self._connections = Budget(CONNECTIONS_AT_ONCE, CONNECTION_SECONDS)
        self._disclosures: Counter[int] = Counter()  # how often own rows were sent, once for a neighbour and epoch
        self._shown: set[Shown] = set()  # in this epoch
        self._unwritten: list[Record] = []  # confirmations: after a crash the node asks for them again
        self._timers: dict[str, Any] = {}
        self._snapshot_number = journal.last_number
        self._partner, self._partner_since = "", 0.0  # of the exchange under way
        self._link_count = 1
        # A token bucket: exchanges that it may still take part in, and when they were counted.
        self._tokens, self._counted_at = config.node.max_exchanges_per_second, loop.time()
        self._started_at = self._epoch_at = self._exchanged_at = loop.time()
        self._offered_at = self._accepted_at = self._asked_at = loop.time()

    def start(self, transport: Transport, boot_id: str = "") -> None:
        """Continue from the journal; start a new epoch if its last records may be missing."""
        self.transport = transport
        self._count_disclosures()
        if self.journal.may_be_truncated(boot_id):
            self._execute(self.peer.start_epoch("the last records of the journal may be missing"))
        if not self.disk_error:
            self.journal.mark_open(boot_id)
        self._heartbeat()
        self._check_exchange()
        for neighbour in self.config.neighbours:
            self._schedule_dial(neighbour)
        self._schedule_next()

    def pause(self) -> None:
        """Initiate no more exchanges, and sign those so far."""
        settings = msgspec.structs.replace(self.config.node, exchanges_per_second=0.0)
        self.config = msgspec.structs.replace(self.config, node=settings)
        self._cancel("initiate")
        for neighbour in self.links:
            self._ping(neighbour)

    def stop(self) -> None:
        """Close all connections, save a snapshot and close the journal."""
        for name in list(self._timers):
            self._cancel(name)
        if self.transport is not None:
            self.transport.close()
            self.transport = None
        self._save_snapshot()
        self.journal.close()

    def change(self, config: NodeConfig, source: Source) -> None:
        """Apply changed settings, rows, neighbours or members."""
        removed = set(self.contacts) - set(config.neighbours)
        added = set(config.neighbours) - set(self.contacts)
        self.config, self.peer.source, self.peer.neighbours = config, source, config.neighbours
        self.peer.trust = source.trust
        for neighbour in removed:
            self._cancel(f"dial {neighbour}")
            link = self.contacts.pop(neighbour).link
            if link is not None:
                link.close()
        for neighbour in added:
            self.contacts[neighbour] = Contact()
            self._schedule_dial(neighbour)
        was_withdrawn, self.peer.is_withdrawn = self.peer.is_withdrawn, False
        self._count_disclosures()
        self._start_epoch_if_due(has_changed=bool(removed or added), is_back=was_withdrawn)
        self._schedule_next()

    def withdraw(self) -> None:
        """Take the node's rows out of the network: it starts an epoch, and takes part in no exchange."""
        if not self.peer.is_withdrawn:
            self._execute(self.peer.withdraw())

    # Callbacks of the transport.

    def is_neighbour(self, name: str) -> bool:
        return name in self.contacts

    def on_connected(self, link: Link) -> None:
        contact = self.contacts.get(link.neighbour)
        if contact is None or self.disk_error or self.loop.time() < contact.suspended_until:
            link.close()
            return
        if not self._connections.take(link.neighbour, self.loop.time()):
            self._reject(link, wire.Rejected("connections", "it connects too often"), self.loop.time())
            link.close()
            return
        self.log("connected", neighbour=link.neighbour)
        contact.link, contact.mismatch = link, ""
        contact.connected_at = contact.last_heard = self.loop.time()
        self._ping(link.neighbour)
        if self.peer.accepted is not None and self.peer.accepted.partner == link.neighbour:
            self._execute(self.peer.repeat_accept())

    def on_message(self, link: Link, raw: bytes) -> None:
        contact = self.contacts.get(link.neighbour)
        if self.transport is None or contact is None:
            return
        contact.last_heard = now = self.loop.time()
        contact.dial_attempts = 0  # not when it connects: it may close the connection at once
        try:
            contact.messages += 1
            if contact.messages > MESSAGES_PER_EXCHANGE * max(1000.0, self.config.node.max_exchanges_per_second):
                raise wire.Rejected("flood", "it sends more messages than exchanges need")
            message = wire.decode(raw)
            self._note(link, contact, message)
            for step in self.peer.handle(link.neighbour, message, self.clock()):
                if not self._execute(step):
                    break
        except wire.Rejected as rejected:
            self._reject(link, rejected, now)
        self._schedule_next()

    def _note(self, link: Link, contact: Contact, message: wire.AnyMessage) -> None:
        """Prepare for a message, and keep what it tells of the connection and of member lists."""
        serial = self.peer.trust.serial
        match message:
            case wire.Offer():
                has_time = contact.has_time(self.loop.time(), self._link_count)
                self.peer.is_busy = not (has_time and self._has_capacity())
                self.peer.is_at_row_limit = self._is_at_row_limit()
            case wire.Accept() | wire.Busy() | wire.Decline():
                pending = self.peer.pending
                if pending is not None and (pending.to, pending.id) == (link.neighbour, message.id):
                    contact.on_answer()
                    if isinstance(message, wire.Decline) and message.reason in CLOSED_REASONS:
                        contact.no_offers_before = self.loop.time() + MAX_PAUSE_SECONDS
            case wire.Pong():
                contact.measure(self.loop.time() - message.sent / 1e6)
            case wire.Ping():
                contact.epoch = message.announcement.epoch
                if message.list_serial < serial != contact.list_sent:
                    contact.list_sent = serial
                    content = self.lists.content()
                    if 0 < len(content) <= MAX_SENT_LIST_BYTES:
                        link.send(wire.encode(wire.Members(content)))
            case wire.Members():
                try:
                    self.lists.propose(message.content, serial)
                except (InputError, OSError) as error:
                    raise wire.Rejected("signature", f"it sent a member list: {error}") from None

    def _reject(self, link: Link, rejected: wire.Rejected, now: float) -> None:
        """Count a message that was rejected; suspend a neighbour that sends many."""
        reason = rejected.reason
        self.counters[f"rejected: {reason}"] += 1
        self.rejections.add(link.neighbour, reason, rejected.detail, now)
        if rejected.is_blamed and not self._hostility.take(link.neighbour, now):
            self._suspend(link, reason, now)

    def _suspend(self, link: Link, reason: str, now: float) -> None:
        self.log("suspended", neighbour=link.neighbour, seconds=SUSPENSION_SECONDS, reason=reason)
        self.counters["suspensions"] += 1
        self.contacts[link.neighbour].suspended_until = now + SUSPENSION_SECONDS
        link.close()

    def on_disconnected(self, link: Link, reason: str) -> None:
        contact = self.contacts.get(link.neighbour)
        if contact is not None and contact.link is link:
            contact.link = None
            self.log("disconnected", neighbour=link.neighbour, reason=reason)
            self._redial(link.neighbour)

    def on_dial_failed(self, neighbour: str, reason: str) -> None:
        contact = self.contacts.get(neighbour)
        if contact is not None:
            if contact.dial_attempts == 1:
                self.log("dial failed", neighbour=neighbour, reason=reason)
            self._redial(neighbour)

    def on_mismatch(self, neighbour: str, setting: str, detail: str) -> None:
        contact = self.contacts.get(neighbour)
        if contact is not None and contact.mismatch != setting and self._connections.take(neighbour, self.loop.time()):
            contact.mismatch = setting
            self.log("mismatch", neighbour=neighbour, setting=setting, detail=detail)
        self.counters[f"mismatches: {setting}"] += 1

    def on_rejected(self, reason: str, detail: str) -> None:
        self.counters[f"rejected: {reason}"] += 1
        self.rejections.add("", reason, detail, self.loop.time())

    # Timers.

    def _schedule(self, name: str, delay: float, callback: Callable[..., None], *args: Any) -> None:
        self._cancel(name)

        def run() -> None:
            del self._timers[name]
            callback(*args)

        self._timers[name] = self.loop.call_later(delay, run)

    def _cancel(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

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
        partner = peer.accepted.partner if peer.accepted is not None else peer.pending.to if peer.pending else ""
        if partner != self._partner:
            now, rate = self.loop.time(), self.config.node.max_exchanges_per_second
            if self._partner in self.contacts:
                self.contacts[self._partner].time_left -= max(now - self._partner_since, 1.0 / rate if rate else 0.0)
            self._partner, self._partner_since = partner, now

    def _has_capacity(self) -> bool:
        """Refill the token bucket and return whether the node may take part in one more exchange."""
        now, rate = self.loop.time(), self.config.node.max_exchanges_per_second
        self._tokens = min(max(1.0, rate), self._tokens + rate * (now - self._counted_at))
        self._counted_at = now
        return self._tokens >= 1.0

    def _is_at_row_limit(self) -> bool:
        limit, estimator = self.config.node.max_disclosures, self.peer.estimator
        if limit == 0 or not self.peer.shows_own_rows:
            return False
        return any(self._disclosures[row] >= limit for row in estimator.rows.numbers(estimator.next_position))

    def _count_disclosures(self) -> None:
        self._disclosures = self.journal.disclosures(self.peer.source.data_digest)

    def _initiate(self) -> None:
        now, peer = self.loop.time(), self.peer
        can_initiate = peer.is_free and not (
            self.disk_error or self.is_converged or peer.is_withdrawn or self._is_at_row_limit()
        )
        if can_initiate and self._has_capacity():
            available = [
                name
                for name, contact in self.contacts.items()
                if contact.is_alive(now)
                and contact.epoch == peer.epoch
                and now >= contact.no_offers_before
                and contact.has_time(now, self._link_count)
            ]
            if available:
                self._offered_at = now
                self._execute(peer.offer(self.rng.choice(available), int(self.clock() * 1e6)))
            else:
                self.counters["no neighbour available"] += 1
        self._schedule_next(IDLE_SECONDS)

    def _check_exchange(self) -> None:
        """Withdraw an offer that was not answered; ask again whether an accepted exchange took place, or abandon it."""
        now, pending, accepted = self.loop.time(), self.peer.pending, self.peer.accepted
        if pending is not None:
            contact = self.contacts.get(pending.to, Contact())
            if now - self._offered_at > contact.timeout(ANSWER_SECONDS):
                contact.on_no_answer(now)
                if contact.is_alive(now) and contact.link is not None:
                    self._reject(contact.link, wire.Rejected("unanswered", "it does not answer an offer"), now)
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
        if contact.is_alive(now) and contact.link is not None and now - contact.connected_at > UNCONFIRMED_SECONDS:
            rejected = wire.Rejected("unconfirmed", "it does not confirm an exchange that it offered")
            self._reject(contact.link, rejected, now)
            self._suspend(contact.link, "unconfirmed", now)
        self._execute(self.peer.abandon())

    def _schedule_dial(self, neighbour: str, delay: float = 0.0) -> None:
        priority = 0.0 if self.peer.name < neighbour else DIAL_PRIORITY_SECONDS
        self._schedule(f"dial {neighbour}", delay + priority, self._dial, neighbour)

    def _dial(self, neighbour: str) -> None:
        address, contact = self.config.neighbours.get(neighbour), self.contacts.get(neighbour)
        if not address or contact is None or contact.link is not None or self.transport is None:
            return
        if self.disk_error or self.loop.time() < contact.suspended_until:
            self._redial(neighbour)
            return
        contact.dial_attempts += 1
        try:
            self.transport.dial(neighbour, address)
        except InputError as error:
            self.on_dial_failed(neighbour, str(error))

    def _redial(self, neighbour: str) -> None:
        if neighbour in self.contacts and self.transport is not None:
            attempts = self.contacts[neighbour].dial_attempts
            self._schedule_dial(neighbour, backoff(*DIAL_SECONDS, attempts, self.rng.random()))

    def _heartbeat(self) -> None:
        """Start an epoch if one is due, ping all neighbours, and close connections that have been silent for long."""
        self._start_epoch_if_due()
        try:
            self._write_waiting()
        except sqlite3.Error as failure:
            self._on_disk_error(str(failure))
        now = self.loop.time()
        self.is_converged = self._has_converged()
        self._link_count = len(self.links)
        for neighbour, contact in list(self.contacts.items()):
            contact.messages = 0
            if contact.link is not None and now - (contact.last_heard or now) > SILENCE_SECONDS:
                contact.link.close()
            elif contact.link is not None:
                self._ping(neighbour)
        self._schedule("heartbeat", HEARTBEAT_SECONDS, self._heartbeat)

    def _has_converged(self) -> bool:
        """Return whether the estimate of this epoch is good enough, and over the rows of all members."""
        until, report = self.config.network.until, None
        if until:
            report = self.peer.report()
        if report is None or report.epoch != self.peer.epoch or report.missing or report.expected_error is None:
            return False
        return report.expected_error <= until

    def _ping(self, neighbour: str) -> None:
        self._execute(self.peer.ping(neighbour, int(self.loop.time() * 1e6)))

    def _start_epoch_if_due(self, has_changed: bool = False, is_back: bool = False) -> None:
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
        else:
            return
        if is_back or peer.may_start_epoch(self.clock()):
            self._execute(peer.start_epoch(reason))

    # Execution of the peer's steps.

    def _execute(self, step: Step) -> bool:
        """Write the records of a step, send its messages, apply its records; do nothing if writing fails."""
        if step.records or step.shows is not None:
            try:
                self._write(step)
            except sqlite3.Error as error:
                self._on_disk_error(str(error))
                return False
        for to, message in step.messages:
            contact = self.contacts.get(to)
            if contact is None or contact.link is None or not contact.link.send(message):
                self.counters["failed sends"] += 1
        for record in step.records:
            self.peer.apply(record)
            if isinstance(record, ExchangeCompleted | ExchangeAccepted):
                self._tokens -= 1.0  # also for exchanges that are withdrawn
            if isinstance(record, EXCHANGES):
                self._exchanged_at = self.loop.time()
            elif isinstance(record, ExchangeAccepted):
                self._accepted_at = self._asked_at = self.loop.time()
            elif isinstance(record, EpochStarted):
                self._on_epoch(record)
        if step.event:
            self.counters[step.event] += 1
        if self.journal.last_number - self._snapshot_number >= SNAPSHOT_RECORDS:
            self._save_snapshot()
        return True

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

    def _on_epoch(self, record: EpochStarted) -> None:
        self._epoch_at = self._exchanged_at = self.loop.time()
        self.is_converged = False
        self._shown.clear()
        epoch, origin, reason, _ = record.announcement
        self.log("epoch started", epoch=epoch, origin=origin, reason=reason)
        for neighbour in self.links:
            self._ping(neighbour)

    def _on_disk_error(self, reason: str) -> None:
        """Close all connections: a node that cannot write cannot keep a promise."""
        self.counters["failed writes"] += 1
        if not self.disk_error:
            self.log("disk error", reason=reason)
            self._schedule("probe", PROBE_SECONDS, self._probe)
        self.disk_error, self.peer.pending = reason, None
        for link in self.links.values():
            link.close()

    def _probe(self) -> None:
        try:
            self.journal.probe()
        except sqlite3.Error as error:
            self.disk_error = str(error)
            self._schedule("probe", PROBE_SECONDS, self._probe)
            return
        self.disk_error, self._accepted_at = "", self.loop.time()
        self.log("disk error resolved")
        for neighbour in self.contacts:
            self._dial(neighbour)
        self._schedule_next()

    def _save_snapshot(self) -> None:
        self._snapshot_number = self.journal.last_number
        try:
            self._write_waiting()
            self.journal.save_snapshot(self.peer.snapshot())
        except sqlite3.Error as error:
            self.log("snapshot failed", reason=str(error))  # no record is lost, but a restart takes longer

    # Status.

    @property
    def links(self) -> dict[str, Link]:
        return {name: contact.link for name, contact in self.contacts.items() if contact.link is not None}

    def _state(self) -> str:
        now, peer, rate = self.loop.time(), self.peer, self.config.node.exchanges_per_second
        alive = [contact for contact in self.contacts.values() if contact.is_alive(now)]
        patience = max(STALLED_SECONDS, STALLED_EXCHANGES / rate if rate else 0.0)
        if self.disk_error:
            return "disk error"
        if peer.is_withdrawn:
            return "withdrawn"
        if not self.links:
            return "mismatch" if any(contact.mismatch for contact in self.contacts.values()) else "disconnected"
        if self._is_at_row_limit():
            return "row limit reached"
        if alive and all(contact.epoch != peer.epoch for contact in alive) and now - self._epoch_at > STALLED_SECONDS:
            return "alone"
        if self.is_converged:
            return "converged"
        return "stalled" if now - self._exchanged_at > patience else "running"

    def status(self) -> Status:
        peer, now = self.peer, self.loop.time()
        own = value_of(peer.estimator) if peer.estimator.exchanges else None

        def view(name: str, contact: Contact) -> Neighbour:
            return Neighbour(
                name,
                connected=contact.link is not None,
                alive=contact.is_alive(now),
                exchanges=peer.exchanges_with(name),
                silent_seconds=None if contact.last_heard is None else now - contact.last_heard,
                round_trip_seconds=contact.round_trip or None,
                difference=difference(own, peer, name),
                epoch=contact.epoch,
                mismatch=contact.mismatch,
                suspended_seconds=max(0.0, contact.suspended_until - now),
            )

        return make_status(
            self.config,
            peer,
            tuple(view(name, contact) for name, contact in self.contacts.items()),
            state=self._state(),
            rejections=self.rejections.list(now),
            reload_error=self.reload_error or self.credentials_error,
            proposed_list=self.lists.proposed(peer.trust.serial),
            disk_error=self.disk_error,
            counters=dict(sorted(self.counters.items())),
            uptime_seconds=now - self._started_at,
        )
