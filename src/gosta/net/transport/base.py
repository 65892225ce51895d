"""What carries messages between neighbours: a tiny interface, and what a node has to offer to be called.

Messages are whole: bytes that one side sends arrive at the other as they were, or not at all. They may be lost with a
connection; nothing that a node does relies on more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

LARGEST: Final = 256 * 1024  # bytes of a message

# Why somebody is turned away: no certificate, or not even TLS; a certificate of another authority; one that is not
# valid yet or no more; somebody who is no neighbour; all else that keeps two ends from understanding each other.
REASONS: Final = ("stranger", "authority", "expired", "not a neighbour", "handshake", "frame")


class Loop(Protocol):
    """Time, and calls to come: asyncio's event loops, or a simulated one."""

    def time(self) -> float:
        """Seconds from some beginning."""

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> Any:
        """Call back after a delay; what is returned has a `cancel()`."""


class Link(Protocol):
    """A live connection to a neighbour, who is who the name says."""

    @property
    def neighbour(self) -> str:
        """Who is at the other end."""

    def send(self, message: bytes) -> bool:
        """Send a message of 1 to LARGEST bytes; False, and nothing is sent, where too much is waiting already."""

    def close(self) -> None:
        """Close the connection; the ear hears of it."""


class Ear(Protocol):
    """What a node has for its transport to call."""

    def knows(self, name: str) -> bool:
        """Whether that is a neighbour."""

    def opened(self, link: Link) -> None:
        """A connection to a neighbour, whoever called."""

    def received(self, link: Link, message: bytes) -> None:
        """A message."""

    def closed(self, link: Link, why: str) -> None:
        """A connection that was open is no more."""

    def failed(self, neighbour: str, why: str) -> None:
        """A call did not come to a connection."""

    def refused(self, reason: str, detail: str) -> None:
        """Somebody was turned away, for one of REASONS."""


class Transport(Protocol):
    """How a node calls its neighbours, and is called."""

    def dial(self, neighbour: str, address: str) -> None:
        """Call a neighbour; the ear will hear `opened` or `failed`."""

    def close(self) -> None:
        """Close all connections, and take no more."""
