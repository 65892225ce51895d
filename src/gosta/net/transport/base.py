"""The interface of transports, and the callbacks that a node gives to its transport.

Messages are whole: bytes sent by one side arrive at the other unchanged, or not at all. They may be
lost with a connection; nodes rely on nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from gosta.net.limits import VERSION

# Reasons for which a connection is rejected.
REJECTION_REASONS: Final = (
    "unauthenticated",  # no certificate, or not TLS
    "authority",  # a certificate of another authority
    "expired",  # a certificate outside its dates
    "key",  # a key that is not the one in the member list
    "not a neighbour",
    "handshake",  # any other failure of the handshake
    "frame",  # a frame of invalid length
    "forwarding",  # a request to forward that is refused
)

CHECK: Final = "check"  # a greeting's note
FORWARDS: Final = " forwards"  # in the answer to it, if the node forwards
NO_FORWARDERS: Final[Mapping[str, str]] = MappingProxyType({})


class Greeting(NamedTuple):
    """What each end of a connection says of itself before anything else.

    >>> greeting = Greeting("node-3", "0123456789abcdef", "89abcdef01234567")
    >>> greeting.encode()
    b'gosta 5 node-3.0123456789abcdef 89abcdef01234567'
    >>> Greeting.decode(greeting.encode()) == greeting
    True
    """

    name: str
    network: str
    fingerprint: str = ""  # of what is computed
    version: int = VERSION  # of the wire format
    # CHECK: the dialling end only asks for a greeting; in the answer, the time in seconds since
    # 1970. Or what members and forwarders say to each other: see `forwarding`.
    note: str = ""

    def encode(self) -> bytes:
        text = f"gosta {self.version} {self.name}.{self.network} {self.fingerprint} {self.note}"
        return text.strip(" ").encode("ascii")

    @classmethod
    def decode(cls, raw: bytes) -> Greeting:
        """Decode a greeting; those of versions 1 and 2 are a name and a network only."""
        text = raw.decode("ascii", "replace")
        parts = re.fullmatch(
            r"(?:gosta ([0-9]{1,4}) )?([^ .]+)\.([^ .]+)(?: ([0-9a-f]{0,64})( .*)?)?", text
        )
        if parts is None:
            return cls(text, "", "", 0)
        version, name, network, fingerprint, note = parts.groups()
        return cls(name, network, fingerprint or "", int(version or 2), (note or "")[1:])

    def mismatch(self, other: Greeting) -> tuple[str, str] | None:
        """Return the setting in which two nodes differ, and how, if they cannot exchange."""
        if self.version != other.version:
            theirs = f"it speaks version {other.version} of the protocol"
            return "version", f"{theirs}, this node version {self.version}"
        if self.fingerprint != other.fingerprint:
            both = f"it computes {other.fingerprint}, this node {self.fingerprint}"
            return "statistic", f"{both}: [network] in node.toml differs"
        return None


class Loop(Protocol):
    """A clock with timers: an asyncio event loop, or a virtual clock in tests."""

    def time(self) -> float:
        """Return the time in seconds since an arbitrary start."""

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> Any:
        """Schedule a call after a delay in seconds; the returned timer has a `cancel()`."""


class Link(Protocol):
    """An open connection to an authenticated neighbour."""

    @property
    def neighbour(self) -> str:
        """Name of the node at the other end."""

    @property
    def via(self) -> str:
        """Name of the forwarder through which it leads; empty if it is direct."""

    def send(self, message: bytes) -> bool:
        """Send a message of 1 to MAX_MESSAGE_BYTES.

        Returns False, and sends nothing, if the buffer is full.
        """

    def close(self) -> None:
        """Close the connection; the handler's `on_disconnected` follows."""


class Handler(Protocol):
    """Callbacks of a transport."""

    @property
    def greeting(self) -> Greeting:
        """The greeting that the node sends."""

    def is_neighbour(self, name: str) -> bool:
        """Return whether to accept connections of this node."""

    def on_connected(self, link: Link) -> None:
        """Handle a new connection to a neighbour, whichever side dialled."""

    def on_message(self, link: Link, message: bytes) -> None:
        """Handle a message."""

    def on_disconnected(self, link: Link, reason: str) -> None:
        """Handle the end of a connection."""

    def on_dial_failed(self, neighbour: str, reason: str) -> None:
        """Handle a `dial` that did not lead to a connection."""

    def on_mismatch(self, neighbour: str, setting: str, detail: str) -> None:
        """Handle a neighbour that cannot exchange with this node; there is no connection to it."""

    def on_rejected(self, reason: str, detail: str) -> None:
        """Handle the rejection of a connection, for one of REJECTION_REASONS."""


class Transport(Protocol):
    """Opens connections to neighbours and accepts theirs."""

    def dial(
        self, neighbour: str, address: str, forwarders: Mapping[str, str] = NO_FORWARDERS
    ) -> None:
        """Connect to a neighbour; the handler's `on_connected` or `on_dial_failed` follows.

        If its address is empty, wait for it at forwarders, whose names and addresses are given.
        """

    def close(self) -> None:
        """Close all connections and accept no more."""
