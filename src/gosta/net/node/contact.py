"""What a node knows of the connection to one neighbour."""

from __future__ import annotations

from dataclasses import dataclass

from gosta.net.transport.base import Link

ALIVE_SECONDS = 2.0  # since its last message, plus two round trips: until then, a neighbour is offered exchanges
ANSWER_SECONDS = (
    1.0,
    4.0,
)  # an offer is withdrawn after so long, or so many round trips if that is longer
# An accepted exchange is abandoned after so long, or so many round trips, if its initiator is connected but silent, as
# when it hangs; after twice that if it sends other messages, or is disconnected, as a killed process soon starts again.
OUTCOME_SECONDS = 2.5, 4.0
REPEAT_SECONDS = (
    0.5,
    2.0,
)  # after which the initiator is asked again whether an accepted exchange took place
MAX_ROUND_TRIP_SECONDS = (
    1.0  # a longer one, or one that a neighbour only pretends, does not make timeouts longer
)
TIME_SHARE = (
    1.5  # of a node's time for exchanges with one neighbour, divided by the number of neighbours
)
TIME_AT_ONCE = 5.0  # seconds of it that can be saved up
MAX_PAUSE_SECONDS = 30.0  # without offers to a neighbour that did not answer the last ones


@dataclass
class Contact:
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
    time_left: float = TIME_AT_ONCE  # seconds that exchanges with this neighbour may take; negative after a long wait
    counted_at: float = 0.0  # when that was counted

    def is_alive(self, now: float) -> bool:
        """Return whether the neighbour is connected and was heard from just now."""
        if self.link is None or self.last_heard is None:
            return False
        return now - self.last_heard <= ALIVE_SECONDS + 2.0 * self.round_trip

    def measure(self, seconds: float) -> None:
        """Add a measured round trip to the average."""
        seconds = min(max(0.0, seconds), MAX_ROUND_TRIP_SECONDS)
        self.round_trip = (
            seconds if not self.round_trip else self.round_trip + (seconds - self.round_trip) / 8
        )

    def timeout(self, limits: tuple[float, float]) -> float:
        seconds, round_trips = limits
        return max(seconds, round_trips * self.round_trip)

    def outcome_timeout(self, now: float) -> float:
        """Return how long to wait for the outcome of an accepted exchange."""
        if self.link is None:
            return 2 * OUTCOME_SECONDS[0]
        return self.timeout(OUTCOME_SECONDS) * (2 if self.is_alive(now) else 1)

    def on_answer(self) -> None:
        self.unanswered, self.no_offers_before = 0, 0.0

    def on_no_answer(self, now: float) -> None:
        """Pause offers to this neighbour, twice as long each time."""
        self.no_offers_before = now + min(MAX_PAUSE_SECONDS, 2.0**self.unanswered)
        self.unanswered = min(self.unanswered + 1, 10)

    def has_time(self, now: float, neighbours: int) -> bool:
        """Return whether the node may exchange with this neighbour now: a slow one leaves time to others."""
        refill = (now - self.counted_at) * TIME_SHARE / max(1, neighbours)
        self.time_left, self.counted_at = min(TIME_AT_ONCE, self.time_left + refill), now
        return self.time_left > 0.0
