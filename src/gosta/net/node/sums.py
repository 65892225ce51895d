"""A node that contributes to private sums: a peer with a journal, timers and connections."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from gosta.errors import GostaError
from gosta.net.config import NodeConfig
from gosta.net.node.base import BaseNode, Log
from gosta.net.node.contact import Contact
from gosta.net.node.status import Status
from gosta.net.node.sum_source import SumSource
from gosta.net.node.sum_status import make_sum_status
from gosta.net.protocol import messages as wire
from gosta.net.protocol.epochs import Moment, Step
from gosta.net.protocol.records import PartMade, Record, Released, StatementMade, SumEpochStarted
from gosta.net.protocol.sums import BACK_SECONDS, SumPeer
from gosta.net.storage.contributions import write_head
from gosta.net.storage.journal import Journal
from gosta.net.transport.base import Link, Loop

TELL_SECONDS = 0.01  # for which new statements are collected, before neighbours are told of them
SNAPSHOT_SECONDS = 1.0  # after an epoch began or ended
# until a node starts the first epoch: the member whose name is first, and the others;
FIRST_SECONDS = (1.0, 3.0)
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
        head: Path | None = None,
    ) -> None:
        super().__init__(config, peer, journal, loop, rng, log, clock)
        self.head = head  # file with the number and hash of the last entry of the log
        self._released_at = loop.time()

    def pause(self) -> None:
        pass

    @property
    def is_idle(self) -> bool:
        return True

    def change(self, config: NodeConfig, source: SumSource) -> None:
        """Apply changed settings, rows, policy, neighbours or members."""
        self._change_neighbours(config)
        self.peer.neighbours = config.neighbours
        self.peer.change_source(source)
        self._find_conflict()
        was_withdrawn, self.peer.is_withdrawn = self.peer.is_withdrawn, False
        self._start_epoch_if_due("the site is back" if was_withdrawn else "")
        self._continue()

    def withdraw(self) -> None:
        """Take part in no further epoch; totals that are known stay as they are."""
        self.peer.is_withdrawn = True

    def _handle(self, link: Link, contact: Contact, message: wire.AnyMessage) -> None:  # noqa: ARG002
        for step in self.peer.handle(link.neighbour, message, self._now()):
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
        for step in self.peer.advance(self._now(), tuple(self.links)):
            if not self._execute(step):
                break
        if self.peer.current.pool.news and "tell" not in self._timers:
            self._schedule("tell", TELL_SECONDS, self._tell)

    def _tell(self) -> None:
        self._execute(self.peer.tell_news())

    def _on_heartbeat(self) -> None:
        self._start_epoch_if_due()
        self._continue()

    def _find_conflict(self) -> str:
        self.peer.conflict = super()._find_conflict()
        return self.peer.conflict

    def _now(self) -> Moment:
        return Moment(self.loop.time(), self.clock())

    def _start_epoch_if_due(self, reason: str = "") -> None:
        peer, now = self.peer, self._now()
        if self.disk_error or peer.is_withdrawn:
            return
        reason = reason or peer.reason_for_epoch(now) or peer.reason_to_give_up(now)
        if peer.epoch == 0 and not self._may_start_first_epoch():
            reason = ""
        epoch_seconds = self.config.node.epoch_seconds
        if not reason and epoch_seconds and now.running - self._epoch_at >= epoch_seconds:
            reason = "epoch_seconds have passed"
        if not reason and self._may_come_back(now):
            reason = f"{peer.name} is back"
        if reason and self.links and peer.may_start_epoch(now.wall) and not peer.stays(now):
            self._execute(peer.start_epoch_at(reason, now))

    def _may_come_back(self, now: Moment) -> bool:
        """Return whether a node that was left out may start an epoch by now: where that has a price, later."""
        peer = self.peer
        pause = peer.source.settings.deadline_seconds if peer.has_noise else BACK_SECONDS
        is_over = peer.is_complete or peer.current.refusals
        is_due = is_over and peer.is_left_out() and now.running - self._released_at >= pause
        return bool(is_due and self.links and peer.may_come_back())

    def _may_start_first_epoch(self) -> bool:
        is_first = self.peer.name == min(self.peer.members)
        waited = self.loop.time() - self._started_at
        return waited >= FIRST_SECONDS[not is_first] or (
            is_first and len(self.links) == len(self.contacts)
        )

    def _write(self, step: Step) -> None:
        if step.entries and (error := self._write_head()):
            raise sqlite3.OperationalError(error)  # nothing is written, as on a full disk
        self.journal.append(step.records, (), step.entries)
        self.peer.log.extend(step.entries)
        if step.entries and (error := self._write_head()):
            # it tells of the entry before: no less is recognised as lost
            self.log("head not written", reason=error)

    def _write_head(self) -> str:
        """Note where the log ends; return why that is not possible, if it is not."""
        if self.head is not None:
            try:
                write_head(self.head, self.journal.contributions())
            except GostaError as error:
                return str(error)
        return ""

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
                self.log(
                    "contributed",
                    epoch=self.peer.epoch,
                    participants=len(self.peer.current.participants),
                )
            case Released():
                report = self.peer.report
                assert report is not None
                self._released_at = self.loop.time()
                self.log("released", epoch=report.epoch, participants=len(report.participants))
        if isinstance(
            record, SumEpochStarted | Released
        ):  # a snapshot deletes the key of the epoch that is over
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
            return (
                "mismatch"
                if any(contact.mismatch for contact in self.contacts.values())
                else "disconnected"
            )
        return peer.state()

    def status(self) -> Status:
        neighbours = tuple(self._view(name, contact) for name, contact in self.contacts.items())
        return make_sum_status(
            self.config, self.peer, neighbours, state=self._state(), **self._status_fields()
        )
