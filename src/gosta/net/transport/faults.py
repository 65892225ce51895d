"""Faults, over any transport: messages that are lost, late, out of order or repeated, and neighbours out of reach.

What becomes of a message is its fate: the delays after which copies of it are sent. No copy: it is lost.

>>> import random
>>> rng = random.Random(0)
>>> fate = combine(loss(0.1, rng), duplicate(1.0, rng), delay(0.0, 0.2, rng))
>>> [round(after, 2) for after in fate("a", "b", b"hello")]
[0.08, 0.05]
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from gosta.net.transport.base import Ear, Link, Loop, Transport

Fate = Callable[[str, str, bytes], list[float]]  # sender, receiver, message -> delays of its copies


def loss(chance: float, rng: Random) -> Fate:
    """Some messages are lost."""
    return lambda _sender, _receiver, _message: [] if rng.random() < chance else [0.0]


def duplicate(chance: float, rng: Random) -> Fate:
    """Some messages come twice."""
    return lambda _sender, _receiver, _message: [0.0, 0.0] if rng.random() < chance else [0.0]


def delay(least: float, most: float, rng: Random) -> Fate:
    """Messages come later, by seconds between two limits, and so in another order."""
    return lambda _sender, _receiver, _message: [rng.uniform(least, most)]


def partition(apart: Callable[[str, str], bool]) -> Fate:
    """Nothing goes between those who are apart now."""
    return lambda sender, receiver, _message: [] if apart(sender, receiver) else [0.0]


def combine(*fates: Fate) -> Fate:
    """One fate after another, each for every copy that the ones before left; none at all: all goes well."""

    def fate(sender: str, receiver: str, message: bytes) -> list[float]:
        copies = [0.0]
        for each in fates:
            copies = [sooner + later for sooner in copies for later in each(sender, receiver, message)]
        return copies

    return fate


class Faulty:
    """A transport with faults: the node's transport, and the ear of the transport that it is built on."""

    def __init__(self, name: str, ear: Ear, loop: Loop, fate: Fate, build: Callable[[Ear], Transport]) -> None:
        self.name = name
        self.loop = loop
        self.fate = fate
        self._ear = ear
        self._links: dict[Link, FaultyLink] = {}
        self.inner = build(self)

    def dial(self, neighbour: str, address: str) -> None:
        """Call a neighbour; a call that is lost fails."""
        if self.fate(self.name, neighbour, b""):
            self.inner.dial(neighbour, address)
        else:
            self.loop.call_later(0.0, self._ear.failed, neighbour, "out of reach")

    def close(self) -> None:
        """Close all connections, and take no more."""
        self.inner.close()

    def knows(self, name: str) -> bool:
        """Whether that is a neighbour."""
        return self._ear.knows(name)

    def opened(self, link: Link) -> None:
        """A connection, which the node sees with faults."""
        self._links[link] = FaultyLink(link, self)
        self._ear.opened(self._links[link])

    def received(self, link: Link, message: bytes) -> None:
        """A message: its sender's fate was enough."""
        self._ear.received(self._links[link], message)

    def closed(self, link: Link, why: str) -> None:
        """A connection is no more."""
        self._ear.closed(self._links.pop(link), why)

    def failed(self, neighbour: str, why: str) -> None:
        """A call did not come to a connection."""
        self._ear.failed(neighbour, why)

    def refused(self, reason: str, detail: str) -> None:
        """Somebody was turned away."""
        self._ear.refused(reason, detail)


class FaultyLink:
    """A link on which messages meet their fate as they are sent."""

    def __init__(self, link: Link, faulty: Faulty) -> None:
        self._link = link
        self._faulty = faulty

    @property
    def neighbour(self) -> str:
        """Who is at the other end."""
        return self._link.neighbour

    def send(self, message: bytes) -> bool:
        """Send a message; what is lost, or late, counts as sent."""
        sent = True
        for after in self._faulty.fate(self._faulty.name, self.neighbour, message):
            if after:
                self._faulty.loop.call_later(after, self._link.send, message)
            else:
                sent = self._link.send(message) and sent
        return sent

    def close(self) -> None:
        """Close the connection."""
        self._link.close()
