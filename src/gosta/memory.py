"""What fits in memory, asked before it is allocated."""

from __future__ import annotations

from gosta.errors import InputError


def require(size: int, what: str, way_out: str = "take fewer rows or columns") -> None:
    """Refuse work that needs more bytes than are free now, before the machine starts to swap."""
    import psutil

    free = int(psutil.virtual_memory().available)
    if size > free:
        raise InputError(
            f"{what} needs {size / 2**30:.1f} GiB of memory and {free / 2**30:.1f} GiB are free; {way_out}"
        )
