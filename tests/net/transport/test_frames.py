"""Frames: messages come out of a stream as they went in; lengths are checked before they count."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from gosta.net.limits import MAX_MESSAGE_BYTES
from gosta.net.transport.connection import BUFFER_BYTES, FrameError, FrameReader, encode_frame


@given(some.lists(some.binary(min_size=1, max_size=40), max_size=20), some.integers(1, 60))
def test_frames_come_out_as_they_went_in(messages: list[bytes], piece: int) -> None:
    frames, found = FrameReader(MAX_MESSAGE_BYTES), []
    stream = b"".join(encode_frame(message) for message in messages)
    for start in range(0, len(stream), piece):
        data = stream[start : start + piece]
        frames.free_space()[: len(data)] = data
        frames.advance(len(data))
        while (message := frames.next_message()) is not None:
            found.append(message)
    assert found == messages


def test_frames_of_any_length_in_pieces_of_any_length() -> None:
    rng = random.Random(1)
    lengths = [rng.choice([1, 300, 5_000, BUFFER_BYTES, MAX_MESSAGE_BYTES]) for _ in range(60)]
    stream = memoryview(b"".join(encode_frame(rng.randbytes(1) * length) for length in lengths))
    frames, found, place = FrameReader(MAX_MESSAGE_BYTES), [], 0
    while place < len(stream):
        space = frames.free_space()
        count = min(len(space), len(stream) - place, rng.choice([1, 7, 20_000, MAX_MESSAGE_BYTES]))
        assert count
        space[:count] = stream[place : place + count]
        frames.advance(count)
        place += count
        while (message := frames.next_message()) is not None:
            found.append(len(message))
    assert found == lengths
    assert len(frames.free_space()) == BUFFER_BYTES, "the large buffer is released"


@pytest.mark.parametrize("length", [0, MAX_MESSAGE_BYTES + 1, 2**32 - 1])
def test_invalid_lengths(length: int) -> None:
    frames = FrameReader(MAX_MESSAGE_BYTES)
    frames.free_space()[:4] = length.to_bytes(4, "big")
    frames.advance(4)
    with pytest.raises(FrameError, match=f"{length} bytes"):
        frames.next_message()
    assert len(frames.free_space()) < BUFFER_BYTES, "no memory was allocated for it"
    if length <= MAX_MESSAGE_BYTES + 1:
        with pytest.raises(ValueError, match="must have 1 to"):
            encode_frame(bytes(length))
