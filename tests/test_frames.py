"""Frames: messages come out of a stream as they went in, and no length is believed before it is looked at."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from gosta.net.transport.base import LARGEST
from gosta.net.transport.frames import BUFFER, FrameError, Frames, frame


@given(some.lists(some.binary(min_size=1, max_size=40), max_size=20), some.integers(1, 60))
def test_frames_come_out_as_they_went_in(messages: list[bytes], piece: int) -> None:
    frames, found = Frames(LARGEST), []
    stream = b"".join(frame(message) for message in messages)
    for start in range(0, len(stream), piece):
        some_bytes = stream[start : start + piece]
        frames.room()[: len(some_bytes)] = some_bytes
        frames.arrived(len(some_bytes))
        while (message := frames.take()) is not None:
            found.append(message)
    assert found == messages


def test_frames_of_any_length_in_pieces_of_any_length() -> None:
    rng = random.Random(1)
    lengths = [rng.choice([1, 300, 5_000, BUFFER, LARGEST]) for _ in range(60)]
    stream = memoryview(b"".join(frame(rng.randbytes(1) * length) for length in lengths))
    frames, found, place = Frames(LARGEST), [], 0
    while place < len(stream):
        room = frames.room()
        count = min(len(room), len(stream) - place, rng.choice([1, 7, 20_000, LARGEST]))
        assert count
        room[:count] = stream[place : place + count]
        frames.arrived(count)
        place += count
        while (message := frames.take()) is not None:
            found.append(len(message))
    assert found == lengths
    assert len(frames.room()) == BUFFER, "the large buffer is given up"


@pytest.mark.parametrize("length", [0, LARGEST + 1, 2**32 - 1])
def test_lengths_that_are_refused(length: int) -> None:
    frames = Frames(LARGEST)
    frames.room()[:4] = length.to_bytes(4, "big")
    frames.arrived(4)
    with pytest.raises(FrameError, match=f"{length} bytes"):
        frames.take()
    assert len(frames.room()) < BUFFER, "no room was made for it"
    if length <= LARGEST + 1:
        with pytest.raises(ValueError, match="can be sent"):
            frame(bytes(length))
