"""Frames: messages on a stream of bytes, each after its length in 4 bytes, the most significant first."""

from __future__ import annotations

from gosta.net.transport.base import LARGEST

HEADER = 4
BUFFER = 64 * 1024


class FrameError(ValueError):
    """Bytes that are no frame."""


def frame(message: bytes) -> bytes:
    """A message as it goes over the stream.

    >>> frame(b"hello")
    b'\\x00\\x00\\x00\\x05hello'
    """
    if not 0 < len(message) <= LARGEST:
        raise ValueError(f"a message of {len(message)} bytes: 1 to {LARGEST} can be sent")
    return len(message).to_bytes(HEADER, "big") + message


class Frames:
    """Cuts what arrives into messages, without a copy but that of each message.

    Bytes are put where `room` says, `arrived` says how many, and `take` gives the messages one by one. A length is
    looked at before there is room for it, and each frame is moved once at most, however small the pieces it comes in.
    """

    def __init__(self, most: int) -> None:
        self.most = most  # bytes of a message that are accepted
        self._buffer = memoryview(bytearray(BUFFER))
        self._start = self._end = 0

    def room(self) -> memoryview:
        """Where the next bytes go; never empty once `take` has given None."""
        return self._buffer[self._end :]

    def arrived(self, count: int) -> None:
        """So many bytes were put into the room."""
        self._end += count

    def take(self) -> bytes | None:
        """The next message, or None until more has arrived."""
        start, waiting = self._start, self._end - self._start
        needed = HEADER
        if waiting >= HEADER:
            length = int.from_bytes(self._buffer[start : start + HEADER], "big")
            if not 0 < length <= self.most:
                raise FrameError(f"a frame of {length} bytes: 1 to {self.most} are accepted")
            needed += length
            if waiting >= needed:
                self._start += needed
                return bytes(self._buffer[start + HEADER : self._start])
        self._make_room(needed)
        return None

    def _make_room(self, needed: int) -> None:
        """Let the frame that has begun fit into the buffer; a large buffer is given up once it is empty."""
        rest = self._buffer[self._start : self._end]
        if not rest:
            self._start = self._end = 0
            if len(self._buffer) > BUFFER:
                self._buffer = memoryview(bytearray(BUFFER))
        elif self._start + needed > len(self._buffer):
            if needed > len(self._buffer):
                self._buffer = memoryview(bytearray(needed))
            self._buffer[: len(rest)] = rest
            self._start, self._end = 0, len(rest)
