"""Ports to listen on."""

from __future__ import annotations

import os
import random
import socket

BLOCK = 64  # ports that are given together; the last is kept, so that no other process of tests is given any of them
_kept: list[socket.socket] = []


def free(count: int = BLOCK - 1) -> int:
    """Return the first of so many free ports in a row, which are for this process of tests alone."""
    assert count < BLOCK
    rng = random.Random(os.urandom(8))
    while True:
        first = rng.randrange(10_000, 32_000, BLOCK)
        last = _bind(first + BLOCK - 1)
        if last is not None:
            _kept.append(last)
            if all(map(_is_free, range(first, first + count))):
                return first


def _bind(port: int) -> socket.socket | None:
    trial = socket.socket()
    try:
        trial.bind(("127.0.0.1", port))
    except OSError:
        trial.close()
        return None
    return trial


def _is_free(port: int) -> bool:
    trial = _bind(port)
    if trial is not None:
        trial.close()
    return trial is not None
