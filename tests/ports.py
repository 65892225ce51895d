"""Ports to listen on."""

from __future__ import annotations

import os
import random
import socket


def free(count: int = 40) -> int:
    """The first of so many ports in a row that are free."""
    rng = random.Random(os.urandom(8))
    while True:
        first = rng.randrange(10_000, 32_000)
        if all(map(_free, range(first, first + count))):
            return first


def _free(port: int) -> bool:
    with socket.socket() as trial:
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
