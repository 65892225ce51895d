"""Frames: messages on a stream of bytes, each preceded by its length as 4 bytes, big-endian."""

from __future__ import annotations

from gosta.net.limits import MAX_MESSAGE_BYTES

HEADER_BYTES = 4
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
    """Splits a stream into messages; the only copy is that of each message out of the buffer.

    The caller writes bytes into `free_space`, reports their number with `advance`, and takes complete messages with
    `next_message`. A length is validated before memory is allocated for it, and the bytes of a frame are moved at most
    once, however small the pieces in which they arrive.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes  # of a message
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._start = self._end = 0

    def free_space(self) -> memoryview:
        """Return the free part of the buffer; it is never empty after `next_message` has returned None."""
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
