"""What this machine has: memory, asked for before it is taken, and cores."""

from __future__ import annotations

import os

from gosta.errors import InputError


def require_memory(size: int, what: str, way_out: str = "take fewer rows or columns") -> None:
    """Refuse work that needs more bytes than are free now, before the machine starts to swap."""
    import psutil

    free = int(psutil.virtual_memory().available)
    if size > free:
        raise InputError(
            f"{what} needs {size / 2**30:.1f} GiB of memory and {free / 2**30:.1f} GiB are free; {way_out}"
        )


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
