"""A node: a peer with a journal, timers and connections, on any event loop and any transport."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from gosta.errors import InputError
from gosta.net.config import NodeConfig
from gosta.net.node.status import Neighbour, PendingOffer, Status, difference, make_status
from gosta.net.protocol import messages as wire
from gosta.net.protocol.peer import EpochSource, Peer, Step
from gosta.net.protocol.records import EpochStarted, ExchangeCompleted
from gosta.net.protocol.report import value_of
from gosta.net.storage.journal import Journal
from gosta.net.transport.base import Link, Loop, Transport

RESEND_FACTOR = 4.0  # an offer is resent after so many times the usual time of a reply,
RESEND_SECONDS = 0.05, 0.5  # at least and at most: an offer costs little, waiting much
DIAL_SECONDS = 0.2, 20.0  # between attempts to connect: the first time, doubled each time, and at most
DIAL_PRIORITY_SECONDS = 3.0  # of two neighbours, the one whose name comes second waits so long before it dials
SLOW_REPLY_SECONDS = 1.0  # without a reply, after which the state is "waiting for reply"
PING_SECONDS = 10.0  # of silence, after which a neighbour is pinged
SILENCE_TIMEOUT_SECONDS = 3 * PING_SECONDS  # after which a connection is closed
SNAPSHOT_RECORDS = 512  # records between snapshots: a restart applies fewer than these
LASTING_REASONS = ("network", "statistic", "version", "visitor")  # of rejections that last until a file is corrected
MAX_LOGGED_REJECTIONS = 100  # of each kind, so that other hosts cannot fill the log

Log = Callable[..., None]  # log(event, **fields)


def backoff(first: float, longest: float, attempts: int, random: float) -> float:
    """Return the seconds before the next attempt: doubled each time, and half of it random."""
    return float(min(longest, first * 2 ** min(attempts, 20)) * (0.5 + random / 2))


class Node:
    """One node of a network, and the handler of its transport."""

    def __init__(self, config: NodeConfig, peer: Peer, journal: Journal, loop: Loop, rng: Random, log: Log) -> None:
        self.config, self.peer, self.journal, self.loop, self.rng, self.log = config, peer, journal, loop, rng, log
        self.transport: Transport | None = None
        self.links: dict[str, Link] = {}
        self.counters: Counter[str] = Counter()
        self.disk_error = ""  # why the journal cannot be written
        self._last_heard: dict[str, float] = {}
        self._dial_attempts: Counter[str] = Counter()  # since the last connection
        self._mismatches: dict[str, str] = {}
        self._resends, self._reply_seconds = 0, 0.05  # of the pending offer; a moving average of reply times
        self._timers: dict[str, Any] = {}
        self._snapshot_number = journal.last_number
        # A token bucket: exchanges that it may still take part in, and when they were counted.
        self._tokens, self._counted_at = config.node.max_exchanges_per_second, loop.time()
        self._started_at = self._epoch_at = self._offered_at = loop.time()

    def start(self, transport: Transport, boot_id: str = "") -> None:
        """Continue from the journal; start a new epoch if its last records may be missing."""
        self.transport = transport
        if self.journal.may_be_truncated(boot_id):
            reason = "the machine was rebooted, and the journal is not durable"
            self._execute(self.peer.start_epoch(reason, after_incarnation=self.peer.incarnation))
        if not self.disk_error:
            self.journal.mark_open(boot_id)
        self._maintain()
        for neighbour in self.config.neighbours:
            self._schedule_dial(neighbour)
        self._schedule_next()

    def pause(self) -> None:
        settings = msgspec.structs.replace(self.config.node, exchanges_per_second=0.0)
        self.config = msgspec.structs.replace(self.config, node=settings)
        self._cancel("initiate")

    def stop(self) -> None:
        """Close all connections, save a snapshot and close the journal."""
        for name in list(self._timers):
            self._cancel(name)
        if self.transport is not None:
            self.transport.close()
            self.transport = None
        self._save_snapshot()
        self.journal.close()

    def change(self, config: NodeConfig, source: EpochSource) -> None:
        """Apply changed settings, rows or neighbours."""
        removed = set(self.config.neighbours) - set(config.neighbours)
        added = set(config.neighbours) - set(self.config.neighbours)
        self.config, self.peer.source, self.peer.neighbours = config, source, config.neighbours
        for neighbour in removed:
            self._cancel(f"dial {neighbour}")
            if neighbour in self.links:
                self.links[neighbour].close()
        for neighbour in added:
            self._schedule_dial(neighbour)
        self._maintain(has_changed=bool(removed or added))
        self._schedule_next()

    # Callbacks of the transport.

    def is_neighbour(self, name: str) -> bool:
        return name in self.config.neighbours

    def on_connected(self, link: Link) -> None:
        self.log("connected", neighbour=link.neighbour)
        self.links[link.neighbour] = link
        self._dial_attempts[link.neighbour] = 0
        self._last_heard[link.neighbour] = self.loop.time()
        if self.peer.pending is not None and self.peer.pending.to == link.neighbour:
            self._execute(self.peer.resend_offer())

    def on_message(self, link: Link, message: bytes) -> None:
        self._last_heard[link.neighbour] = self.loop.time()
        if self.transport is None:
            return
        self.peer.is_overloaded = not self._has_capacity()
        try:
            for step in self.peer.receive(link.neighbour, message):
                _, _, reason = step.event.partition(": ")
                self._note_mismatch(link.neighbour, reason)
                if not self._execute(step):
                    break
        except wire.Rejected as rejected:
            reason = str(rejected)
            self.counters[f"rejected: {reason}"] += 1
            if reason in ("malformed", "version"):
                self._note_mismatch(link.neighbour, reason)
                self.log("rejected", neighbour=link.neighbour, reason=reason)
                link.close()
        self._schedule_next()

    def on_disconnected(self, link: Link, reason: str) -> None:
        if self.links.get(link.neighbour) is link:
            del self.links[link.neighbour]
            self.log("disconnected", neighbour=link.neighbour, reason=reason)
            self._redial(link.neighbour)

    def on_dial_failed(self, neighbour: str, reason: str) -> None:
        if self._dial_attempts[neighbour] == 1:
            self.log("dial failed", neighbour=neighbour, reason=reason)
        self._redial(neighbour)

    def on_rejected(self, reason: str, detail: str) -> None:
        self.counters[f"rejected: {reason}"] += 1
        if self.counters[f"rejected: {reason}"] <= MAX_LOGGED_REJECTIONS:
            self.log("rejected", reason=reason, detail=detail)

    def _note_mismatch(self, neighbour: str, reason: str) -> None:
        """Log once that a neighbour's settings differ from this node's: an operator has to correct a file."""
        if reason in LASTING_REASONS and self._mismatches.get(neighbour) != reason:
            self._mismatches[neighbour] = reason
            versions = {"wire_version": wire.VERSION} if reason == "version" else {}
            self.log("mismatch", neighbour=neighbour, setting=reason, **versions)

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

    def _schedule_next(self) -> None:
        """Make sure that a timer is set: to resend the pending offer, or else to initiate an exchange."""
        if self.peer.pending is not None:
            self._cancel("initiate")
            if "resend" not in self._timers:
                shortest, longest = RESEND_SECONDS
                first = max(shortest, RESEND_FACTOR * self._reply_seconds)
                self._schedule("resend", backoff(first, longest, self._resends, self.rng.random()), self._resend)
        else:
            if "resend" in self._timers and self._resends == 0:
                self._reply_seconds += (self.loop.time() - self._offered_at - self._reply_seconds) / 8
            self._resends = 0
            self._cancel("resend")
            rate = self.config.node.exchanges_per_second
            if "initiate" not in self._timers and rate > 0:
                shortest = 1.0 if self.disk_error else 0.0 if self.links else 0.05
                self._schedule("initiate", max(self.rng.expovariate(rate), shortest), self._initiate)

    def _has_capacity(self) -> bool:
        """Refill the token bucket and return whether the node may take part in one more exchange."""
        now, rate = self.loop.time(), self.config.node.max_exchanges_per_second
        self._tokens = min(max(1.0, rate), self._tokens + rate * (now - self._counted_at))
        self._counted_at = now
        return self._tokens >= 1.0

    def _initiate(self) -> None:
        neighbours = list(self.config.neighbours)
        if neighbours and self._has_capacity():
            to = self.rng.choice(neighbours)
            if to in self.links:
                self._offered_at = self.loop.time()
                self._execute(self.peer.offer(to))
            else:
                self.counters["neighbour disconnected"] += 1
        self._schedule_next()

    def _resend(self) -> None:
        if self.peer.pending is not None and self.peer.pending.to in self.links:
            self._resends += 1
            self._execute(self.peer.resend_offer())
        self._schedule_next()

    def _schedule_dial(self, neighbour: str, delay: float = 0.0) -> None:
        priority = 0.0 if self.peer.identity.name < neighbour else DIAL_PRIORITY_SECONDS
        self._schedule(f"dial {neighbour}", delay + priority, self._dial, neighbour)

    def _dial(self, neighbour: str) -> None:
        address = self.config.neighbours.get(neighbour)
        if address and neighbour not in self.links and self.transport is not None:
            self._dial_attempts[neighbour] += 1
            try:
                self.transport.dial(neighbour, address)
            except InputError as error:
                self.on_dial_failed(neighbour, str(error))

    def _redial(self, neighbour: str) -> None:
        if neighbour in self.config.neighbours and self.transport is not None:
            self._schedule_dial(neighbour, backoff(*DIAL_SECONDS, self._dial_attempts[neighbour], self.rng.random()))

    def _maintain(self, has_changed: bool = True) -> None:
        """Start an epoch if one is due; ping silent neighbours and close dead connections."""
        now, epoch_seconds = self.loop.time(), self.config.node.epoch_seconds
        if self.peer.epoch == 0:
            self._execute(self.peer.start_epoch("first start"))
        elif self.peer.digest != self.peer.source.digest and (has_changed or not epoch_seconds):
            self._execute(self.peer.start_epoch("rows, neighbours or settings changed"))
        elif epoch_seconds and now - self._epoch_at >= epoch_seconds:
            self._execute(self.peer.start_epoch("epoch_seconds have passed"))
        for neighbour, link in list(self.links.items()):
            silence = now - self._last_heard[neighbour]
            if silence > SILENCE_TIMEOUT_SECONDS:
                link.close()
            elif silence > PING_SECONDS:
                self._execute(self.peer.ping(neighbour))
        self._schedule("maintain", min(PING_SECONDS / 2, epoch_seconds or PING_SECONDS), self._maintain, False)

    # Execution of the peer's steps.

    def _execute(self, step: Step) -> bool:
        """Write the records of a step, send its messages, apply its records; do nothing if writing fails."""
        if step.records:
            try:
                self.journal.append(step.records)
            except sqlite3.Error as error:
                if not self.disk_error:
                    self.log("disk error", reason=str(error))
                self.disk_error = str(error)
                self.counters["failed writes"] += 1
                return False
            if self.disk_error:
                self.log("disk error resolved")
            self.disk_error = ""
        for to, message in step.messages:
            if to not in self.links or not self.links[to].send(message):
                self.counters["failed sends"] += 1
        for record in step.records:
            self.peer.apply(record)
            if isinstance(record, ExchangeCompleted):
                self._mismatches.pop(record.partner, None)
                self._tokens -= 1.0
            if isinstance(record, EpochStarted):
                self._epoch_at = self.loop.time()
                self.log("epoch started", epoch=record.epoch, reason=record.reason)
        if step.event:
            self.counters[step.event] += 1
        if self.journal.last_number - self._snapshot_number >= SNAPSHOT_RECORDS:
            self._save_snapshot()
        return True

    def _save_snapshot(self) -> None:
        self._snapshot_number = self.journal.last_number
        try:
            self.journal.save_snapshot(self.peer.snapshot())
        except sqlite3.Error as error:
            self.log("snapshot failed", reason=str(error))  # no record is lost, but a restart takes longer

    # Status.

    def status(self) -> Status:
        peer, now = self.peer, self.loop.time()
        pending = None if peer.pending is None else PendingOffer(peer.pending.to, now - self._offered_at)
        state = "running" if self.links else "disconnected"
        if self.links and set(self.links) <= set(self._mismatches):
            state = "mismatch"
        if pending is not None and pending.seconds > SLOW_REPLY_SECONDS:
            state = "waiting for reply"
        if self.disk_error:
            state = "disk error"
        own = value_of(peer.estimator) if peer.estimator.exchanges else None

        def view(name: str) -> Neighbour:
            silence = now - self._last_heard[name] if name in self._last_heard else None
            mismatch, exchanges = self._mismatches.get(name, ""), peer.exchanges.get(name, 0)
            return Neighbour(name, name in self.links, exchanges, silence, difference(own, peer, name), mismatch)

        neighbours = tuple(map(view, self.config.neighbours))
        totals = {"counters": dict(sorted(self.counters.items())), "uptime_seconds": now - self._started_at}
        return make_status(self.config, peer, neighbours, state=state, pending_offer=pending, **totals)
