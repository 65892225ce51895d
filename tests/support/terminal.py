"""Reading the output of a process from a pseudo-terminal."""

from __future__ import annotations

import os


def read_until(terminal: int, marker: bytes) -> bytes:
    """Return the output up to and including a marker."""
    shown = b""
    while marker not in shown:
        shown += os.read(terminal, 4096)
    return shown


def read_rest(terminal: int) -> bytes:
    """Return the remaining output after the process has ended."""
    shown = b""
    try:
        while piece := os.read(terminal, 4096):
            shown += piece
    except OSError:  # Linux: no process has the other end open
        pass
    os.close(terminal)
    return shown
