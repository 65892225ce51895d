"""What a node knows of the connection to one neighbour, and counts of what it rejected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from gosta.net.transport.base import Link

Log = Callable[..., None]  # log(event, **fields)

# Seconds after its last message, plus two round trips, in which a neighbour is offered exchanges.
ALIVE_SECONDS = 2.0
# A round trip that is longer, or that a neighbour only pretends, does not make timeouts longer.
MAX_ROUND_TRIP_SECONDS = 1.0
# A node's time for exchanges with one neighbour, divided by the number of neighbours.
TIME_SHARE = 1.5
# Seconds of that time which can be saved up.
TIME_AT_ONCE = 5.0
# Longest time without offers to a neighbour that did not answer the last ones.
MAX_PAUSE_SECONDS = 30.0
# Seconds between two log lines about rejections of the same sender for the same reason.
LOG_SECONDS = 60.0
# Pairs of sender and reason that are counted.
MAX_KINDS = 1000
# Characters of the description of a rejection.
MAX_DETAIL = 200


class Timeout(NamedTuple):
    """The time to wait for a neighbour: some seconds, or some round trips if that is longer."""

    seconds: float
    round_trips: float


# An offer is withdrawn after this time.
ANSWER_TIMEOUT = Timeout(1.0, 4.0)
# An accepted exchange is abandoned after this time if its initiator is connected but silent, as
# when it hangs; after twice that if it sends other messages, or is disconnected, as a killed
# process soon starts again.
OUTCOME_TIMEOUT = Timeout(2.5, 4.0)
# The initiator is asked again after this time whether an accepted exchange took place.
REPEAT_TIMEOUT = Timeout(0.5, 2.0)


@dataclass
class Contact:
    """The connection to a neighbour, and how it answers."""

    link: Link | None = None
    connected_at: float = 0.0
    last_heard: float | None = None
    round_trip: float = 0.0  # seconds, a moving average
    dial_attempts: int = 0  # since its last message
    mismatch: str = ""  # the setting in which the two differ, so that they do not connect
    epoch: int = 0  # that it announced last
    messages: int = 0  # from it since the last heartbeat
    list_sent: int = 0  # serial number of the member list that was sent to it
    unanswered: int = 0  # offers in a row
    no_offers_before: float = 0.0
    suspended_until: float = 0.0  # after too many messages that were rejected
    # Seconds that exchanges with this neighbour may take; negative after a long wait.
    time_left: float = TIME_AT_ONCE
    counted_at: float = 0.0  # when `time_left` was counted

    def is_alive(self, now: float) -> bool:
        """Return whether the neighbour is connected and was heard from just now."""
        if self.link is None or self.last_heard is None:
            return False
        return now - self.last_heard <= ALIVE_SECONDS + 2.0 * self.round_trip

    def measure(self, seconds: float) -> None:
        """Add a measured round trip to the average."""
        seconds = min(max(0.0, seconds), MAX_ROUND_TRIP_SECONDS)
        self.round_trip += (seconds - self.round_trip) / (8 if self.round_trip else 1)

    def timeout(self, limit: Timeout) -> float:
        """Return the seconds to wait for this neighbour."""
        return max(limit.seconds, limit.round_trips * self.round_trip)

    def outcome_timeout(self, now: float) -> float:
        """Return the seconds to wait for the outcome of an accepted exchange."""
        if self.link is None:
            return 2 * OUTCOME_TIMEOUT.seconds
        return self.timeout(OUTCOME_TIMEOUT) * (2 if self.is_alive(now) else 1)

    def on_answer(self) -> None:
        """Note that the neighbour answers offers."""
        self.unanswered, self.no_offers_before = 0, 0.0

    def on_no_answer(self, now: float) -> None:
        """Pause offers to this neighbour, twice as long each time."""
        self.no_offers_before = now + min(MAX_PAUSE_SECONDS, 2.0**self.unanswered)
        self.unanswered = min(self.unanswered + 1, 10)

    def has_time(self, now: float, neighbours: int) -> bool:
        """Return whether this neighbour's share of time is left, so that others have theirs."""
        refill = (now - self.counted_at) * TIME_SHARE / max(1, neighbours)
        self.time_left, self.counted_at = min(TIME_AT_ONCE, self.time_left + refill), now
        return self.time_left > 0.0


class Rejection(msgspec.Struct):
    """Messages or connections of one sender that were rejected for one reason."""

    neighbour: str  # empty: a connection, before or without a greeting
    reason: str
    count: int
    detail: str  # of the last one
    seconds: float  # since then


class Rejections:
    """What a node rejected: counted by sender and reason, logged once a minute at most."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._kinds: dict[tuple[str, str], Rejection] = {}
        self._logged_at: dict[tuple[str, str], float] = {}

    def add(self, neighbour: str, reason: str, detail: str, now: float) -> None:
        """Count a rejection, and log it unless one like it was logged just now."""
        kind = neighbour, reason
        if kind not in self._kinds and len(self._kinds) >= MAX_KINDS:
            return
        detail = detail[:MAX_DETAIL] if detail.isprintable() else ascii(detail)[1 : MAX_DETAIL + 1]
        rejection = self._kinds.setdefault(kind, Rejection(neighbour, reason, 0, detail, now))
        rejection.count += 1
        rejection.detail, rejection.seconds = detail, now
        if kind not in self._logged_at or now - self._logged_at[kind] >= LOG_SECONDS:
            self._logged_at[kind] = now
            sender = {"neighbour": neighbour} if neighbour else {}
            self._log("rejected", **sender, reason=reason, detail=detail, count=rejection.count)

    def list(self, now: float) -> tuple[Rejection, ...]:
        """Return all rejections so far, the latest first."""
        replace = msgspec.structs.replace
        ages = [replace(kind, seconds=now - kind.seconds) for kind in self._kinds.values()]
        return tuple(sorted(ages, key=lambda rejection: rejection.seconds))
