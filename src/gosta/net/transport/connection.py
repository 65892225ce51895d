"""A connection: a stream of bytes that becomes a link once the other end has said who it is."""

from __future__ import annotations

import asyncio
from typing import cast

from gosta.net.transport.base import LARGEST, Ear
from gosta.net.transport.frames import FrameError, Frames, frame
from gosta.net.transport.tls import describe

GREETING = 128  # bytes of the first frame: a name and a network
WAITING = 64 * 1024  # bytes still to be sent, above which no more are taken
FAREWELL = 1.0  # seconds in which what is still to be sent must go, once it is closed


class Connection(asyncio.BufferedProtocol):
    """A link over a socket.

    The first frame is a greeting; what follows waits until the connection is opened as a link. Nothing is queued: when
    the other end does not read, `send` says no and nothing is read from it either until it does.
    """

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.neighbour = ""
        loop = asyncio.get_running_loop()
        self.greeting: asyncio.Future[bytes] = loop.create_future()  # empty: there will be none
        self.lost: asyncio.Future[None] = loop.create_future()
        self.why = ""  # for which it was closed from this end
        self._ear: Ear | None = None
        self._frames = Frames(GREETING)
        self._full = False
        self._deadline: asyncio.TimerHandle | None = None

    def open(self, neighbour: str, ear: Ear) -> None:
        """Make it a link: its messages go to the ear from now on."""
        self.neighbour, self._ear = neighbour, ear
        self._frames.most = LARGEST
        ear.opened(self)
        self._deliver()

    def send(self, message: bytes) -> bool:
        """Send a message; False, and nothing is sent, where too much is waiting to be sent already."""
        if self._full or self.transport.is_closing():
            return False
        self.transport.write(frame(message))
        return True

    def close(self, why: str = "closed here") -> None:
        """Close it; what was sent still goes if it can at once."""
        if not self.transport.is_closing():
            self.why = why
            self.transport.close()
            self._deadline = asyncio.get_running_loop().call_later(FAREWELL, self.transport.abort)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: there is a stream, with TLS done."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass of it
        self.transport.set_write_buffer_limits(WAITING)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """asyncio: where to put what is read."""
        return self._frames.room()

    def buffer_updated(self, nbytes: int) -> None:
        """asyncio: so much was read."""
        self._frames.arrived(nbytes)
        self._deliver()

    def pause_writing(self) -> None:
        """asyncio: too much is waiting to be sent."""
        self._full = True
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """asyncio: most of it went; what was read before goes on only after whoever is sending now is done."""
        self._full = False
        asyncio.get_running_loop().call_soon(self._deliver)

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio: the stream is no more."""
        if self._deadline:
            self._deadline.cancel()
        if not self.greeting.done():
            self.greeting.set_result(b"")
        self.lost.set_result(None)
        if self._ear:
            self._ear.closed(self, self.why or (describe(exc) if exc else "closed by the other end"))

    def _deliver(self) -> None:
        while not (self._full or self.transport.is_closing()):
            if self.greeting.done() and not self._ear:
                self.transport.pause_reading()
                break
            try:
                message = self._frames.take()
            except FrameError as error:
                self.close(f"it sent {error}")
                if self._ear:
                    self._ear.refused("frame", f"{self.neighbour} sent {error}")
                break
            if message is None:
                self.transport.resume_reading()
                break
            if self._ear:
                self._ear.received(self, message)
            else:
                self.greeting.set_result(message)
