"""Reading what a process shows on a terminal."""

from __future__ import annotations

import os


def read_until(terminal: int, sign: bytes) -> bytes:
    """What is shown until a sign appears."""
    shown = b""
    while sign not in shown:
        shown += os.read(terminal, 4096)
    return shown


def read_rest(terminal: int) -> bytes:
    """All that is left after the process has ended."""
    shown = b""
    try:
        while piece := os.read(terminal, 4096):
            shown += piece
    except OSError:  # how Linux says that nobody writes any more
        pass
    os.close(terminal)
    return shown
