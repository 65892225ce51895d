"""A TCP connection: a stream of bytes that becomes a link once the other end is identified.

Messages on the stream are frames, each preceded by its length as 4 bytes, big-endian.
"""

from __future__ import annotations

import asyncio
import socket
from typing import cast

from gosta.net.limits import MAX_MESSAGE_BYTES
from gosta.net.transport.base import Handler
from gosta.net.transport.tls import describe_error

# the first frame: version, name, network, fingerprint; room for later versions
MAX_GREETING_BYTES = 256
MAX_WRITE_BUFFER_BYTES = 64 * 1024  # above this, `send` returns False
CLOSE_TIMEOUT_SECONDS = 1.0  # for buffered bytes to be sent after `close`

# Detects within a minute a neighbour that vanished, and two ends that wait for each other to read.
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
HEADER_BYTES = 4  # of a frame: its length, big-endian
BUFFER_BYTES = 64 * 1024  # holds most messages; a larger one gets a buffer of its own


class FrameError(ValueError):
    """A frame of invalid length."""


def encode_frame(message: bytes) -> bytes:
    """Return a message as a frame.

    >>> encode_frame(b"hello")
    b'\\x00\\x00\\x00\\x05hello'
    """
    if not 0 < len(message) <= MAX_MESSAGE_BYTES:
        raise ValueError(
            f"a message has {len(message)} bytes; it must have 1 to {MAX_MESSAGE_BYTES}"
        )
    return len(message).to_bytes(HEADER_BYTES, "big") + message


class FrameReader:
    """Splits a stream into messages; each message is copied once, out of the buffer.

    The caller writes bytes into `free_space`, reports their number with `advance`, and takes
    complete messages with `next_message`. A length is validated before memory is allocated for it,
    and the bytes of a frame are moved at most once, however small the pieces in which they arrive.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes  # of a message
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._start = self._end = 0

    def free_space(self) -> memoryview:
        """Return the free part of the buffer, never empty after `next_message` returned None."""
        return self._buffer[self._end :]

    def advance(self, count: int) -> None:
        self._end += count

    def next_message(self) -> bytes | None:
        """Return the next message, or None if it is not complete yet."""
        start, available = self._start, self._end - self._start
        needed = HEADER_BYTES
        if available >= HEADER_BYTES:
            length = int.from_bytes(self._buffer[start : start + HEADER_BYTES], "big")
            if not 0 < length <= self.max_bytes:
                raise FrameError(f"a frame of {length} bytes; 1 to {self.max_bytes} are accepted")
            needed += length
            if available >= needed:
                self._start += needed
                return bytes(self._buffer[start + HEADER_BYTES : self._start])
        self._make_space(needed)
        return None

    def _make_space(self, needed: int) -> None:
        """Make the current frame fit into the buffer; release a large buffer once it is empty."""
        rest = self._buffer[self._start : self._end]
        if not rest:
            self._start = self._end = 0
            if len(self._buffer) > BUFFER_BYTES:
                self._buffer = memoryview(bytearray(BUFFER_BYTES))
        elif self._start + needed > len(self._buffer):
            if needed > len(self._buffer):
                self._buffer = memoryview(bytearray(needed))
            self._buffer[: len(rest)] = rest
            self._start, self._end = 0, len(rest)


def keep_alive(opened: socket.socket) -> None:
    """Let the operating system end a connection whose other end vanished."""
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE.items():
        if hasattr(socket, option):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class Connection(asyncio.BufferedProtocol):
    """A link over a socket.

    The first frame is a greeting; later frames are held back until `establish`. There is no queue
    of messages: while the other end does not read, `send` returns False and nothing is read from
    that end either.
    """

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.neighbour = self.via = ""
        loop = asyncio.get_running_loop()
        # empty if the connection ended without one
        self.greeting: asyncio.Future[bytes] = loop.create_future()
        self.lost: asyncio.Future[None] = loop.create_future()
        self.close_reason = ""  # if closed from this end
        self._handler: Handler | None = None
        self._frames = FrameReader(MAX_GREETING_BYTES)
        self._is_full = False
        self._close_timer: asyncio.TimerHandle | None = None

    def expect(self) -> asyncio.Future[bytes]:
        """Return the next frame after the greeting, before this is a link.

        It is empty if the connection ended instead.
        """
        self.greeting = asyncio.get_running_loop().create_future()
        if self.lost.done():
            self.greeting.set_result(b"")
        else:
            self._deliver()
        return self.greeting

    def establish(self, neighbour: str, handler: Handler) -> None:
        """Make this connection a link, whose messages go to the handler."""
        self.neighbour, self._handler = neighbour, handler
        self._frames.max_bytes = MAX_MESSAGE_BYTES
        handler.on_connected(self)
        self._deliver()

    def send(self, message: bytes) -> bool:
        if self._is_full or self.transport.is_closing():
            return False
        self.transport.write(encode_frame(message))
        return True

    def close(self, reason: str = "closed by this node") -> None:
        """Close the connection after sending what is buffered."""
        if not self.transport.is_closing():
            self.close_reason = reason
            self.transport.close()
            call_later = asyncio.get_running_loop().call_later
            self._close_timer = call_later(CLOSE_TIMEOUT_SECONDS, self.transport.abort)

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of it
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(MAX_WRITE_BUFFER_BYTES)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._frames.free_space()

    def buffer_updated(self, nbytes: int) -> None:
        self._frames.advance(nbytes)
        self._deliver()

    def pause_writing(self) -> None:
        """Stop reading while the write buffer is full."""
        self._is_full = True
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Continue with messages that were read already, after the current sender returns."""
        self._is_full = False
        asyncio.get_running_loop().call_soon(self._deliver)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._close_timer:
            self._close_timer.cancel()
        if not self.greeting.done():
            self.greeting.set_result(b"")
        self.lost.set_result(None)
        if self._handler:
            ended = describe_error(exc) if exc else "closed by the other end"
            self._handler.on_disconnected(self, self.close_reason or ended)

    def _deliver(self) -> None:
        """Deliver complete messages until the write buffer is full."""
        while not (self._is_full or self.transport.is_closing()):
            if self.greeting.done() and not self._handler:
                self.transport.pause_reading()
                break
            try:
                message = self._frames.next_message()
            except FrameError as error:
                self.close(f"received {error}")
                if self._handler:
                    self._handler.on_rejected("frame", f"{self.neighbour} sent {error}")
                break
            if message is None:
                self.transport.resume_reading()
                break
            if self._handler:
                self._handler.on_message(self, message)
            else:
                self.greeting.set_result(message)
