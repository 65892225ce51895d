"""What this machine has: memory, asked for before it is taken, and cores."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar

from gosta.errors import InputError


def require_memory(size: int, what: str, way_out: str = "take fewer rows or columns") -> None:
    """Refuse work that needs more bytes than are free now, before the machine starts to swap."""
    import psutil

    free = int(psutil.virtual_memory().available)
    if size > free:
        raise InputError(
            f"{what} needs {size / 2**30:.1f} GiB of memory and {free / 2**30:.1f} GiB are free; {way_out}"
        )


_most_cores: ContextVar[int | None] = ContextVar("most_cores", default=None)


def available_cores() -> int:
    """How many cores this process, or this piece of work, may use."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(mine, _most_cores.get() or mine)


@contextlib.contextmanager
def limit_cores(number: int) -> Iterator[None]:
    """Let a piece of work have so many cores only, where other pieces have the others."""
    token = _most_cores.set(number)
    try:
        yield
    finally:
        _most_cores.reset(token)
