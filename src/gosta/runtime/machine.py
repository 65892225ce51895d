"""Limits of this machine: free memory, checked before it is allocated, and cores."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar

from gosta.errors import InputError


def require_memory(size: int, purpose: str, remedy: str = "take fewer rows or columns") -> None:
    """Raise an error if work needs more bytes than are free, before the machine starts to swap."""
    import psutil

    free = int(psutil.virtual_memory().available)
    if size > free:
        there = f"{free / 2**30:.1f} GiB are free"
        reason = f"{purpose} needs {size / 2**30:.1f} GiB of memory and {there}"
        raise InputError(reason, remedy=remedy)


_core_limit: ContextVar[int | None] = ContextVar("core_limit", default=None)


def available_cores() -> int:
    """Return how many cores the current thread's work is allowed to use."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return min(cores, _core_limit.get() or cores)


@contextlib.contextmanager
def limit_cores(number: int) -> Iterator[None]:
    """Limit `available_cores` within a block, for work that runs beside other work."""
    token = _core_limit.set(number)
    try:
        yield
    finally:
        _core_limit.reset(token)
