"""Epochs, as every kind of peer has them: who starts one, who follows, and steps."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import inf
from typing import Any, NamedTuple, Protocol

from gosta.net.addresses import NAME_PATTERN
from gosta.net.limits import SECONDS_PER_EPOCH, Budget
from gosta.net.members import Trust
from gosta.net.protocol import messages as wire
from gosta.net.protocol.messages import Announcement, Rejected
from gosta.net.protocol.records import Record
from gosta.private.log import LogEntry

NO_EPOCH = Announcement(0, "-", "not started", b"")
MAX_EPOCHS_AT_ONCE = 8  # that one node may start; then one per SECONDS_PER_EPOCH


class Identity(NamedTuple):
    name: str
    network: str
    fingerprint: str  # of what is computed and how


class Moment(NamedTuple):
    """A time, on two clocks."""

    running: float  # seconds of a clock that nobody sets, for deadlines
    wall: float  # seconds since 1970, for dates and the numbers of epochs


class Step(NamedTuple):
    """Records to write to the journal, then messages to send.

    Then the records are passed to the peer's `apply`.
    """

    records: tuple[Record, ...] = ()
    messages: tuple[tuple[str, bytes], ...] = ()  # receiver, encoded message
    event: str = ""  # name of the counter to increment
    shows: tuple[str, int] | None = (
        None  # neighbour to which own rows are sent, and the first of these rows
    )
    entries: tuple[
        LogEntry, ...
    ] = ()  # of the log of contributions, written together with the records


class EpochPeer:
    """The part of a peer's state that is about epochs."""

    def __init__(self, identity: Identity, trust: Trust) -> None:
        self.identity, self.name, self.trust = identity, identity.name, trust
        self.announcement = NO_EPOCH
        self.is_withdrawn = False  # the site took its rows back
        self._starts = Budget(MAX_EPOCHS_AT_ONCE, SECONDS_PER_EPOCH)  # by origin
        self._entered_at = -inf  # when the epoch started, unless this node started it by itself

    @property
    def epoch(self) -> int:
        return self.announcement.epoch

    def exchanges_with(self, neighbour: str) -> int:  # noqa: ARG002
        """Return the number of exchanges with a neighbour in this epoch."""
        return 0

    def may_start_epoch(self, now: float) -> bool:
        """Return whether this node may start an epoch now: others do not follow too often."""
        return self.epoch + 1 <= now / SECONDS_PER_EPOCH and self._starts.take(self.name, now)

    def announce(self, epoch: int, reason: str) -> Announcement:
        """Return the signed announcement of an epoch that this node starts."""
        signature = self.trust.sign(
            wire.signed_announcement(self.identity.network, epoch, self.name, reason)
        )
        return Announcement(epoch, self.name, reason, signature)

    def check_announcement(self, sender: str, announcement: Announcement, now: float) -> None:
        """Raise `Rejected` unless this node may follow an announcement to its epoch.

        A neighbour that only passes an announcement on is not blamed for it.
        """
        epoch, origin, reason, signature = announcement
        if not (NAME_PATTERN.fullmatch(origin) and reason.isprintable()):
            raise Rejected("malformed", "the origin or the reason of an epoch is not printable")
        is_own = origin == sender
        if epoch > now / SECONDS_PER_EPOCH:
            raise Rejected("epoch", f"epoch {epoch} is ahead of the time", is_own)
        content = wire.signed_announcement(self.identity.network, epoch, origin, reason)
        if not self.trust.verify(origin, content, signature):
            raise Rejected(
                "signature",
                f"epoch {epoch} is not signed by {origin}, or {origin} is not a member",
                is_own,
            )
        if not self._starts.take(origin, now):
            raise Rejected("epoch", f"{origin} starts epochs too often", is_own)


class NodePeer(Protocol):
    """What the driver of a node needs of a peer, whatever the peer computes."""

    identity: Identity
    name: str
    trust: Trust
    announcement: Announcement  # of the epoch that it is in
    source: Any  # as it was given by `change_source`
    is_withdrawn: bool  # the site took its rows back

    @property
    def epoch(self) -> int: ...

    def handle(
        self, sender: str, message: wire.AnyMessage, now: Moment, refusal: str = ""
    ) -> Iterator[Step]:
        """Yield the steps that a message leads to; each is to be carried out before the next one.

        `refusal` is why this node takes no offer now: "busy", "row limit" or empty. Raises
        `Rejected` for a message that cannot be used.
        """

    def ping(self, neighbour: str, sent: int) -> Step:
        """Return a heartbeat; `sent` is the time in microseconds, which the answer has again."""

    def may_start_epoch(self, now: float) -> bool:
        """Return whether this node may start an epoch at a time in seconds since 1970."""

    def start_epoch(self, reason: str, now: Moment | None = None) -> Step:
        """Return the step that starts the next epoch."""

    def withdraw(self) -> Step:
        """Take the site's rows back."""

    def change_source(self, source: Any, neighbours: Collection[str]) -> str:
        """Take other rows, settings, members or neighbours, also after the rows were withdrawn.

        Returns why an epoch should start at once; empty if it need not.
        """

    def exchanges_with(self, neighbour: str) -> int:
        """Return the number of exchanges with a neighbour in this epoch."""

    def apply(self, record: Record) -> None:
        """Change the state by a record that is in the journal."""

    def snapshot(self) -> bytes:
        """Return the state, so that a restart need not apply all records."""
