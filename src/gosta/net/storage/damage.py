"""Finding damaged bytes of a journal: checksums of rows, and SQLite's write-ahead log.

SQLite itself leaves out a damaged part of the log without a word. The log is a header and frames,
each with a page of the database. A frame has the salts of the header and a checksum over itself and
all frames before it. SQLite reads the frames up to the first one that is not valid; frames after it
that have the header's salts were written, and are lost.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

CHECKSUM_BYTES = 8  # of a row's checksum
HEADER_BYTES = 32  # at the beginning of a write-ahead log
FRAME_HEADER_BYTES = 24  # before each page in it
# The first number in a write-ahead log says which byte order its checksums have.
BIG_ENDIAN = 0x377F0683
LITTLE_ENDIAN = 0x377F0682

Words = npt.NDArray[np.uint32]


def checksum(number: int, kind: str, body: bytes) -> bytes:
    """Return the checksum of a row of a journal."""
    content = b"%d %b " % (number, kind.encode()) + body
    return hashlib.blake2b(content, digest_size=CHECKSUM_BYTES).digest()


def is_intact(path: Path) -> bool:
    """Return whether a write-ahead log has no damaged frame.

    A process that is killed can leave a frame's header without its page at the end, and nothing is
    lost by that. Where it was writing over frames of an earlier log, this cannot be told from
    damage.
    """
    content = np.frombuffer(path.read_bytes(), np.uint8)
    if not content.size:
        return True
    if content.size < HEADER_BYTES:
        return False
    header = content[:HEADER_BYTES].view(">u4")
    page_bytes = int(header[2])
    if header[0] not in (BIG_ENDIAN, LITTLE_ENDIAN) or page_bytes not in {
        1 << k for k in range(9, 17)
    }:
        return False
    order = ">u4" if header[0] == BIG_ENDIAN else "<u4"
    state = _continue_checksum((0, 0), content[:24].view(order))
    if state != (header[6], header[7]):
        return False
    count, rest = divmod(content.size - HEADER_BYTES, FRAME_HEADER_BYTES + page_bytes)
    frames = content[HEADER_BYTES : content.size - rest].reshape(
        count, FRAME_HEADER_BYTES + page_bytes
    )
    heads = np.ascontiguousarray(frames[:, :FRAME_HEADER_BYTES]).view(">u4")
    # frames without either are of an earlier log
    has_salts = (heads[:, 2:4] == header[4:6]).any(axis=1)
    for k, (frame, head) in enumerate(zip(frames, heads, strict=True)):
        state = _continue_checksum(
            state, np.concatenate([frame[:8], frame[FRAME_HEADER_BYTES:]]).view(order)
        )
        if (*state, *header[4:6]) != (head[4], head[5], head[2], head[3]):
            return not has_salts[k:].any()
    return rest in (0, FRAME_HEADER_BYTES)


def _continue_checksum(state: tuple[int, int], words: Words) -> tuple[int, int]:
    """Continue a checksum (a, b): a += word + b; b += next word + a; and so on, modulo 2 ** 32.

    Each of these sums is a word and the two sums before it. So the last two are sums of all words,
    each multiplied by a Fibonacci number; the state is as two words before the first one.
    """
    before = np.array([state[0], (state[1] - state[0]) % 2**32], np.uint32)
    whole = np.concatenate([before, words.astype(np.uint32)])
    factors = _fibonacci_numbers(len(whole))
    return int(whole[:-1] @ factors[1:]), int(whole @ factors)


@cache
def _fibonacci_numbers(count: int) -> Words:
    """Return Fibonacci numbers modulo 2 ** 32, the last one first."""
    numbers = [1, 1]
    while len(numbers) < count:
        numbers.append((numbers[-1] + numbers[-2]) % 2**32)
    return np.array(numbers[:count][::-1], np.uint32)
