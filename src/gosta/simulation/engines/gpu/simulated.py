"""`intrinsics` and `gosta.runtime.observation` in plain Python, for numba's simulator of a GPU."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numba.cuda.simulator import kernelapi

__all__ = [
    "choose",
    "cut",
    "floats_at",
    "integers_at",
    "is_among",
    "load",
    "load_bits",
    "mul_high",
    "part",
    "row",
    "shorts_at",
    "store",
    "store_bits",
    "store_short",
]


class _Allocations(dict[Any, Any]):
    """The shared arrays of a block.

    Threads that ask for an array wait while another thread makes it; with numba's own they do not.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def get(self, key: Any, default: Any = None) -> Any:
        self._lock.acquire()
        if key in self:
            self._lock.release()
        return super().get(key, default)

    def __setitem__(self, key: Any, array: Any) -> None:
        super().__setitem__(key, array)
        self._lock.release()


class _Shared(kernelapi.FakeCUDAShared):  # type: ignore[misc]
    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._allocations = _Allocations()


kernelapi.FakeCUDAShared = _Shared


class Row:
    """A part of a row of an array; a number that is not there is not a number."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, c: Any) -> Any:
        if isinstance(c, slice):
            return Row(self.numbers[c])
        return float(self.numbers[c]) if -len(self) <= c < len(self) else float("nan")


def row(array: Any, i: int) -> Row:
    return Row(array[i])


def part(array: Any, i: int, start: int, size: int) -> Row:
    return Row(array[i, start : start + size])


def cut(row: Row, start: int, size: int) -> Row:
    return Row(row.numbers[start : start + size])


def load(row: Row, c: int) -> float:
    return float(row.numbers[c])


def store(row: Row, c: int, value: float) -> None:
    row.numbers[c] = value


def load_bits(row: Row, c: int) -> int:
    return int(row.numbers.view(np.int64)[c])


def store_bits(row: Row, c: int, value: int) -> None:
    row.numbers.view(np.uint64)[c] = value & (1 << 64) - 1


def store_short(row: Row, c: int, k: int, value: int) -> None:
    row.numbers[c:].view(np.int32)[k] = value


def is_among(value: int, row: Row, c: int, size: int) -> bool:
    return int(value) in row.numbers[c:].view(np.int32)[:size].tolist()


def choose(condition: bool, first: Any, second: Any) -> Any:
    return first if condition else second


def floats_at(shared: Any, start: int, rows: int, width: int) -> Any:
    return shared[start : start + rows * width].reshape(rows, width)


def integers_at(shared: Any, start: int, rows: int, width: int) -> Any:
    return shared[start:].view(np.int32)[: rows * width].reshape(rows, width)


def shorts_at(shared: Any, start: int, rows: int, width: int) -> Any:
    return shared[start:].view(np.uint16)[: rows * width].reshape(rows, width)


def mul_high(a: Any, b: Any) -> Any:
    return np.uint64(int(a) * int(b) >> 64)


# The simulator replaces the global `cuda` of the loop's own module, so this is defined there.
TAKE = """
def take(counter, is_taking):
    return int(cuda.atomic.add(counter, 0, 1)) if is_taking else 0
"""
