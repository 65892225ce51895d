"""Ports to listen on."""

from __future__ import annotations

import atexit
import os
import random
import socket

# Ports are given in blocks. A port of its own, kept bound, says that a process of tests has a block.
FIRST, BLOCK, BLOCKS, FIRST_KEPT = 10_000, 40, 500, 30_000
_kept: list[socket.socket] = []


@atexit.register
def _close() -> None:
    for one in _kept:
        one.close()


def free(count: int = BLOCK) -> int:
    """Return the first of so many free ports in a row, which no other process of tests is given."""
    rng, wanted = random.Random(os.urandom(8)), -(-count // BLOCK)
    while True:
        block = rng.randrange(BLOCKS - wanted + 1)
        kept = [_bind(FIRST_KEPT + k) for k in range(block, block + wanted)]
        _kept.extend(one for one in kept if one is not None)
        first = FIRST + BLOCK * block
        if None not in kept and all(map(_is_free, range(first, first + count))):
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
