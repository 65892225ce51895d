"""A transport in memory, for tests: no sockets, and the time of the loop it is given."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

from gosta.net.transport.base import NO_FORWARDERS, Handler, Loop


class MemoryNetwork:
    """Connects transports by name; messages arrive after a fixed delay in seconds, in order."""

    def __init__(self, loop: Loop, delay: float = 0.0) -> None:
        self.loop, self.delay = loop, delay
        self.transports: dict[str, MemoryTransport] = {}

    def attach(self, name: str, handler: Handler) -> MemoryTransport:
        self.transports[name] = MemoryTransport(self, name, handler)
        return self.transports[name]

    def detach(self, name: str, flush: bool = False) -> None:
        """Remove a transport as a crash does: its handler is called no more, and the other ends are
        disconnected.

        Messages in flight are lost, as when a machine loses power; with `flush` they still arrive,
        as when a process is killed and its kernel sends what is in the socket buffers.
        """
        transport = self.transports.pop(name)
        transport.has_crashed = True
        for link in transport.links:
            link.other.is_broken = not flush
            link.other.schedule(link.other.disconnect, "connection broken")


class MemoryTransport:
    def __init__(self, network: MemoryNetwork, name: str, handler: Handler) -> None:
        self.network, self.name, self.handler = network, name, handler
        self.has_crashed = False
        self.links: dict[MemoryLink, None] = {}

    def dial(
        self,
        neighbour: str,
        address: str,  # noqa: ARG002  (in memory there are names only)
        forwarders: Mapping[str, str] = NO_FORWARDERS,  # noqa: ARG002
    ) -> None:
        self.network.loop.call_later(self.network.delay, self._connect, neighbour)

    def close(self) -> None:
        if self._is_attached():
            del self.network.transports[self.name]
        for link in list(self.links):
            link.close()

    def _is_attached(self) -> bool:
        return self.network.transports.get(self.name) is self

    def _connect(self, neighbour: str) -> None:
        other = self.network.transports.get(neighbour)
        if not self._is_attached():
            return
        if other is None:
            self.handler.on_dial_failed(neighbour, "no node at this address")
        elif not other.handler.is_neighbour(self.name):
            other.handler.on_rejected("not a neighbour", repr(self.name))
            self.handler.on_dial_failed(neighbour, "connection closed by the other end")
        elif (found := self.handler.greeting.mismatch(other.handler.greeting)) is not None:
            for end, partner in ((self, neighbour), (other, self.name)):
                end.handler.on_mismatch(partner, *found)
            self.handler.on_dial_failed(neighbour, found[1])
        else:
            mine, theirs = MemoryLink(self, neighbour), MemoryLink(other, self.name)
            mine.other, theirs.other = theirs, mine
            mine.schedule(mine.establish)
            theirs.establish()


class MemoryLink:
    """One end of a connection in memory."""

    other: MemoryLink
    via = ""

    def __init__(self, transport: MemoryTransport, neighbour: str) -> None:
        self.neighbour = neighbour
        self.is_broken = False  # the other end crashed, and what it sent is lost
        self._transport, self._is_open = transport, False
        self._in_flight: deque[Callable[[], None]] = deque()
        transport.links[self] = None

    def send(self, message: bytes) -> bool:
        if self._is_open:
            self.other.schedule(self.other.receive, message)
        return self._is_open

    def close(self) -> None:
        if self in self._transport.links:
            loop = self._transport.network.loop
            loop.call_later(0.0, self._notify_disconnected, self._is_open, "closed by this node")
            self._remove()
            self.other.schedule(self.other.disconnect, "closed by the other end")

    def schedule(self, event: Callable[..., None], *args: str | bytes) -> None:
        """Let an event happen at this end after the network's delay, and after all events scheduled
        before it.
        """
        self._in_flight.append(partial(event, *args))
        network = self._transport.network
        network.loop.call_later(network.delay, lambda: self._in_flight.popleft()())

    def establish(self) -> None:
        transport = self._transport
        if transport.has_crashed or self not in transport.links:
            return
        if self.is_broken:
            transport.handler.on_dial_failed(self.neighbour, "connection closed by the other end")
        else:
            self._is_open = True
            transport.handler.on_connected(self)

    def receive(self, message: bytes) -> None:
        if self._is_open and not self.is_broken and not self._transport.has_crashed:
            self._transport.handler.on_message(self, message)

    def disconnect(self, reason: str) -> None:
        """Close this end, after the other end was closed or crashed."""
        was_open = self._is_open
        self._remove()
        self._notify_disconnected(was_open, reason)

    def _remove(self) -> None:
        self._is_open = False
        self._transport.links.pop(self, None)

    def _notify_disconnected(self, was_open: bool, reason: str) -> None:
        if was_open and not self._transport.has_crashed:
            self._transport.handler.on_disconnected(self, reason)
