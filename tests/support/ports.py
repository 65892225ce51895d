"""Ports to listen on."""

from __future__ import annotations

import atexit
import itertools
import random
import socket
import time

# A process of tests has a region of ports for itself, as long as it keeps a lock, a bound port from
# `FIRST_LOCK` on. The lower half of a region is handed out in turn; in the upper half are the
# status pages of enrolled sites, whose ports are 1,000 above.
FIRST, REGIONS, PAGES = 4_000, 14, 1_000
FIRST_LOCK = 32_000
_lock: socket.socket | None = None
_start = 0  # of the region
_next = 0  # within it


@atexit.register
def _close() -> None:
    if _lock is not None:
        _lock.close()


def free(count: int = 40) -> int:
    """Return the first of `count` free ports in a row; no other process of tests is given them,
    nor those 1,000 above.
    """
    global _next
    if _lock is None:
        _take_region()
    while True:
        if _next + count > PAGES:
            _next = 0
        first = _start + _next
        _next += count
        if all(_is_free(one) and _is_free(one + PAGES) for one in range(first, first + count)):
            return first


def _take_region() -> None:
    global _lock, _start
    for place in itertools.cycle(random.sample(range(REGIONS), REGIONS)):
        _lock = _bind(FIRST_LOCK + place)
        if _lock is not None:
            _start = FIRST + 2 * PAGES * place
            return
        time.sleep(0.1)


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
