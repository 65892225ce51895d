"""A node that contributes to private sums: a peer with a journal, timers and connections."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

from gosta.net.config import NodeConfig
from gosta.net.node.base import BaseNode, Log
from gosta.net.node.contact import Contact
from gosta.net.node.status import Status
from gosta.net.node.sum_source import SumSource
from gosta.net.node.sum_status import make_sum_status
from gosta.net.protocol import messages as wire
from gosta.net.protocol.epochs import Step
from gosta.net.protocol.records import PartMade, Record, Released, StatementMade, SumEpochStarted
from gosta.net.protocol.sums import BACK_SECONDS, SumPeer
from gosta.net.storage.journal import Journal
from gosta.net.transport.base import Link, Loop

TELL_SECONDS = 0.01  # for which new statements are collected, before neighbours are told of them
SNAPSHOT_SECONDS = 1.0  # after an epoch began or ended
FIRST_SECONDS = 1.0, 3.0  # until a node starts the first epoch: the member whose name is first, and the others;
# the first one does not wait once all its neighbours are connected


class SumNode(BaseNode):
    """A node of a network of private sums."""

    peer: SumPeer

    def __init__(
        self,
        config: NodeConfig,
        peer: SumPeer,
        journal: Journal,
        loop: Loop,
        rng: Random,
        log: Log,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(config, peer, journal, loop, rng, log, clock)
        self._released_at = loop.time()

    def pause(self) -> None:
        pass

    @property
    def is_idle(self) -> bool:
        return True

    def change(self, config: NodeConfig, source: SumSource) -> None:
        """Apply changed settings, rows, policy, neighbours or members."""
        self._change_neighbours(config)
        if source.trust.digest != self.peer.trust.digest:
            self.peer.forgive()
        self.peer.source, self.peer.neighbours, self.peer.trust = source, config.neighbours, source.trust
        was_withdrawn, self.peer.is_withdrawn = self.peer.is_withdrawn, False
        self._start_epoch_if_due("the site is back" if was_withdrawn else "")
        self._continue()

    def withdraw(self) -> None:
        """Take part in no further epoch; totals that are known stay as they are."""
        self.peer.is_withdrawn = True

    def _handle(self, link: Link, contact: Contact, message: wire.AnyMessage) -> None:  # noqa: ARG002
        for step in self.peer.handle(link.neighbour, message, self.clock()):
            if not self._execute(step):
                break

    def _on_link(self, link: Link) -> None:  # noqa: ARG002
        if self.peer.epoch == 0:
            self._start_epoch_if_due()
            self._continue()

    def _ping(self, neighbour: str) -> None:
        message = self.peer.ping(int(self.loop.time() * 1e6))
        self._execute(Step((), ((neighbour, message),)))

    def _continue(self) -> None:
        if self.disk_error:
            return
        for step in self.peer.advance(self.clock()):
            if not self._execute(step):
                break
        if self.peer.pool.news and "tell" not in self._timers:
            self._schedule("tell", TELL_SECONDS, self._tell)

    def _tell(self) -> None:
        self._execute(self.peer.tell_news())

    def _on_heartbeat(self) -> None:
        self._start_epoch_if_due()
        self._continue()

    def _start_epoch_if_due(self, reason: str = "") -> None:
        peer, now, epoch_seconds = self.peer, self.loop.time(), self.config.node.epoch_seconds
        if self.disk_error or peer.is_withdrawn:
            return
        reason = reason or peer.reason_for_epoch(self.clock()) or peer.reason_to_give_up(self.clock())
        if peer.epoch == 0 and not self._may_start_first_epoch():
            reason = ""
        if not reason and epoch_seconds and now - self._epoch_at >= epoch_seconds:
            reason = "epoch_seconds have passed"
        is_over = peer.is_complete or peer.refusals
        private = self.config.network.private
        pause = (
            private.deadline_seconds if private is not None and private.epsilon else BACK_SECONDS
        )  # noise costs budgets
        if not reason and peer.is_left_out() and is_over and now - self._released_at >= pause:
            reason = f"{peer.name} is back"
        if reason and self.links and peer.may_start_epoch(self.clock()):
            peer.blame(self.clock())
            self._execute(peer.start_epoch(reason))

    def _may_start_first_epoch(self) -> bool:
        is_first = self.peer.name == min(self.peer.members)
        waited = self.loop.time() - self._started_at
        return waited >= FIRST_SECONDS[not is_first] or (is_first and len(self.links) == len(self.contacts))

    def _write(self, step: Step) -> None:
        self.journal.append(step.records, (), step.entries)
        self.peer.log.extend(step.entries)

    def _write_waiting(self) -> None:
        pass

    def _on_record(self, record: Record) -> None:
        match record:
            case SumEpochStarted():
                self._released_at = self.loop.time()
                self._log_epoch(record.announcement)
            case StatementMade() if record.suppressed:
                self.log("suppressed", epoch=self.peer.epoch, reason=record.suppressed)
            case PartMade():
                self.log("contributed", epoch=self.peer.epoch, participants=len(self.peer.participants))
            case Released():
                report = self.peer.report
                assert report is not None
                self._released_at = self.loop.time()
                self.log("released", epoch=report.epoch, participants=len(report.participants))
        if isinstance(record, SumEpochStarted | Released):  # a snapshot deletes the key of the epoch that is over
            self._schedule("snapshot", SNAPSHOT_SECONDS, self._save_snapshot)

    def _on_disk_resolved(self) -> None:
        pass

    def _state(self) -> str:
        peer = self.peer
        if self.disk_error:
            return "disk error"
        if peer.is_withdrawn:
            return "withdrawn"
        if not self.links:
            return "mismatch" if any(contact.mismatch for contact in self.contacts.values()) else "disconnected"
        return peer.state()

    def status(self) -> Status:
        neighbours = tuple(self._view(name, contact) for name, contact in self.contacts.items())
        return make_sum_status(self.config, self.peer, neighbours, state=self._state(), **self._status_fields())
