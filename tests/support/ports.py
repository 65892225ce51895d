"""Ports to listen on."""

from __future__ import annotations

import atexit
import os
import random
import socket

# Ports are handed out in blocks. A process of tests that has a block keeps a lock: a bound port
# from `FIRST_LOCK` on.
FIRST = 10_000
BLOCK = 40
BLOCKS = 500
PAGES = 1000
FIRST_LOCK = 32_000
_locks: list[socket.socket] = []


@atexit.register
def _close() -> None:
    for lock in _locks:
        lock.close()


def free(count: int = BLOCK) -> int:
    """Return the first of `count` free ports in a row; no other process of tests is given them,
    nor those 1,000 above, where enrolled sites have their status pages.
    """
    rng, wanted = random.Random(os.urandom(8)), -(-count // BLOCK)
    while True:
        block = rng.randrange(BLOCKS - wanted + 1)
        pages = block + PAGES // BLOCK
        taken = {*range(block, block + wanted), *range(pages, pages + wanted)}
        locks = [_bind(FIRST_LOCK + k) for k in sorted(taken)]
        _locks.extend(lock for lock in locks if lock is not None)
        first = FIRST + BLOCK * block
        ports = range(first, first + count)
        if None not in locks and all(_is_free(one) and _is_free(one + PAGES) for one in ports):
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
