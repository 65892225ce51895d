"""What is special about a node that contributes to private sums: epochs, statements, its log."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from gosta.errors import GostaError
from gosta.net.config import NodeConfig
from gosta.net.node.node import Environment, Node
from gosta.net.protocol.epochs import Moment, Step
from gosta.net.protocol.records import PartMade, Record, Released, StatementMade, SumEpochStarted
from gosta.net.protocol.site import SumReport
from gosta.net.protocol.sum_decisions import BACK_SECONDS
from gosta.net.protocol.sums import SumPeer
from gosta.net.storage.contributions import write_head
from gosta.net.storage.journal import Journal
from gosta.net.transport.base import Link

# Time for which new statements are collected, before neighbours are told of them.
TELL_SECONDS = 0.01
# Time from the start or the end of an epoch to a snapshot.
SNAPSHOT_SECONDS = 1.0
# Time until the first epoch, started by the member whose name is first, or by another one. The
# first member does not wait once all its neighbours are connected.
FIRST_MEMBER_SECONDS = 1.0
OTHER_MEMBER_SECONDS = 3.0


class SumNode(Node):
    """A node of a network of private sums."""

    peer: SumPeer

    def __init__(
        self,
        config: NodeConfig,
        peer: SumPeer,
        journal: Journal,
        environment: Environment,
        head: Path | None = None,
    ) -> None:
        super().__init__(config, peer, journal, environment)
        self.head = head  # file with the number and hash of the last entry of the log
        self._released_at = self.loop.time()

    def release(self) -> SumReport | None:
        return self.peer.report

    def _on_link(self, link: Link) -> None:  # noqa: ARG002
        if self.peer.epoch == 0:
            self._start_epoch_if_due()
            self._continue()

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

    def _find_conflict(self) -> str:
        self.peer.conflict = super()._find_conflict()
        return self.peer.conflict

    # Epochs.

    def _reason_for_epoch(self, now: Moment) -> str:
        reason = self.peer.reason_for_epoch(now) or self.peer.reason_to_give_up(now)
        if not reason and self._may_come_back(now):
            reason = f"{self.peer.name} is back"
        return reason

    def _may_start_epoch(self, reason: str, now: Moment) -> bool:  # noqa: ARG002
        peer = self.peer
        if not self.links or (peer.epoch == 0 and not self._may_start_first_epoch()):
            return False
        return not peer.stays(now) and peer.may_start_epoch(now.wall)

    def _may_come_back(self, now: Moment) -> bool:
        """Return whether a node that was left out may start an epoch: later where that costs."""
        peer = self.peer
        pause = peer.source.settings.deadline_seconds if peer.has_noise else BACK_SECONDS
        is_over = peer.is_complete or peer.current.refusals
        is_due = is_over and peer.is_left_out() and now.running - self._released_at >= pause
        return bool(is_due and self.links and peer.may_come_back())

    def _may_start_first_epoch(self) -> bool:
        waited = self.loop.time() - self._started_at
        if self.peer.name != min(self.peer.members):
            return waited >= OTHER_MEMBER_SECONDS
        return waited >= FIRST_MEMBER_SECONDS or len(self.links) == len(self.contacts)

    # Execution of the peer's steps.

    def _write(self, step: Step) -> None:
        if step.entries and (error := self._write_head()):
            raise sqlite3.OperationalError(error)  # nothing is written, as on a full disk
        super()._write(step)
        self.peer.log.extend(step.entries)
        if step.entries and (error := self._write_head()):
            # The file tells of the entry before: that no less was lost is still recognised.
            self.log("head not written", reason=error)

    def _write_head(self) -> str:
        """Note where the log ends; return why that is not possible, if it is not."""
        if self.head is not None:
            try:
                write_head(self.head, self.journal.contributions())
            except GostaError as error:
                return str(error)
        return ""

    def _on_record(self, record: Record) -> None:
        peer = self.peer
        super()._on_record(record)
        match record:
            case SumEpochStarted():
                self._released_at = self.loop.time()
            case StatementMade() if record.suppressed:
                self.log("suppressed", epoch=peer.epoch, reason=record.suppressed)
            case PartMade():
                participants = len(peer.current.participants)
                self.log("contributed", epoch=peer.epoch, participants=participants)
            case Released():
                assert peer.report is not None
                self._released_at = self.loop.time()
                participants = len(peer.report.participants)
                self.log("released", epoch=peer.report.epoch, participants=participants)
        if isinstance(record, SumEpochStarted | Released):
            # A snapshot deletes the key of the epoch that is over.
            self._schedule("snapshot", SNAPSHOT_SECONDS, self._save_snapshot)

    def _state_in_epoch(self) -> str:
        return self.peer.state()
