"""Faults over any transport: lost, late, reordered and repeated messages, and partitions.

A fault decides for each message after which delays, in seconds, copies of it are sent; no delay:
the message is lost.

>>> import random
>>> rng = random.Random(0)
>>> fault = combine(loss(0.1, rng), duplicate(1.0, rng), delay(0.0, 0.2, rng))
>>> [round(seconds, 2) for seconds in fault("a", "b", b"hello")]
[0.08, 0.05]
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from random import Random

from gosta.net.transport.base import NO_FORWARDERS, Handler, Link, Loop, Transport

# sender, receiver, message -> delays; b"" stands for a dial
Fault = Callable[[str, str, bytes], Iterable[float]]


def loss(probability: float, rng: Random) -> Fault:
    """Return a fault that loses messages at random."""
    return lambda _sender, _receiver, _message: [] if rng.random() < probability else [0.0]


def duplicate(probability: float, rng: Random) -> Fault:
    """Return a fault that sends messages twice at random."""
    return lambda _sender, _receiver, _message: [0.0, 0.0] if rng.random() < probability else [0.0]


def delay(low: float, high: float, rng: Random) -> Fault:
    """Return a fault that delays each message by random seconds, which also reorders them."""
    return lambda _sender, _receiver, _message: [rng.uniform(low, high)]


def partition(is_separated: Callable[[str, str], bool]) -> Fault:
    """Return a fault that loses all messages between nodes that are separated at the time."""
    return lambda sender, receiver, _message: [] if is_separated(sender, receiver) else [0.0]


def numbered(delays: Mapping[int, Iterable[float]]) -> Fault:
    """Return a fault that gives the k-th message of all senders, counted from 1, the delays of its
    number.

    >>> fault = numbered({1: [], 2: [0.0, 0.5]})
    >>> [list(fault("a", "b", b"hello")) for _ in range(3)]
    [[], [0.0, 0.5], [0.0]]
    """
    count = itertools.count(1)
    return lambda _sender, _receiver, message: delays.get(next(count), [0.0]) if message else [0.0]


def combine(*faults: Fault) -> Fault:
    """Return the fault that applies several in turn, each to all copies that are left."""

    def combined(sender: str, receiver: str, message: bytes) -> list[float]:
        copies = [0.0]
        for fault in faults:
            copies = [
                before + after for before in copies for after in fault(sender, receiver, message)
            ]
        return copies

    return combined


class FaultyTransport:
    """A transport with faults on top of another one, whose handler it is."""

    def __init__(
        self,
        name: str,
        handler: Handler,
        loop: Loop,
        fault: Fault,
        build: Callable[[Handler], Transport],
    ) -> None:
        self.name, self.loop, self.fault, self._handler = name, loop, fault, handler
        self.is_neighbour, self.on_rejected = handler.is_neighbour, handler.on_rejected
        self.on_dial_failed, self.on_mismatch = handler.on_dial_failed, handler.on_mismatch
        self.greeting = handler.greeting
        self._links: dict[Link, FaultyLink] = {}
        self.inner = build(self)
        self.close = self.inner.close

    def dial(
        self, neighbour: str, address: str, forwarders: Mapping[str, str] = NO_FORWARDERS
    ) -> None:
        if list(self.fault(self.name, neighbour, b"")):
            self.inner.dial(neighbour, address, forwarders)
        else:
            self.loop.call_later(0.0, self._handler.on_dial_failed, neighbour, "unreachable")

    def send_late(self, neighbour: str, message: bytes) -> None:
        """Send a delayed copy over a connection that is open now; it is lost if there is none."""
        for inner in self._links:
            if inner.neighbour == neighbour and inner.send(message):
                break

    def on_connected(self, link: Link) -> None:
        self._links[link] = FaultyLink(link, self)
        self._handler.on_connected(self._links[link])

    def on_message(self, link: Link, message: bytes) -> None:
        self._handler.on_message(self._links[link], message)  # faults were applied by its sender

    def on_disconnected(self, link: Link, reason: str) -> None:
        self._handler.on_disconnected(self._links.pop(link), reason)


class FaultyLink:
    """A link whose messages suffer faults as they are sent."""

    def __init__(self, link: Link, transport: FaultyTransport) -> None:
        self._link, self._transport = link, transport
        self.neighbour, self.via, self.close = link.neighbour, link.via, link.close

    def send(self, message: bytes) -> bool:
        """Send copies of a message as the fault says; lost and late ones count as sent."""
        transport, is_sent = self._transport, True
        for seconds in transport.fault(transport.name, self.neighbour, message):
            if seconds:
                transport.loop.call_later(seconds, transport.send_late, self.neighbour, message)
            else:
                is_sent = self._link.send(message) and is_sent
        return is_sent
