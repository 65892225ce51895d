"""Every pair of rows, in blocks, compiled, on all cores, in O(n) memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gosta import compiled, progress
from gosta.datasets.data import Floats
from gosta.errors import InputError
from gosta.statistics.definition import RowSums, Statistic

LOOPS = Path(__file__).with_name("loops.py")  # read, not imported: it only makes sense once compiled
MAY_USE = "it may use numbers, x[i], len(x), math, loops and functions that do the same"
PAIRS_A_BLOCK = 1 << 24  # about a tenth of a second: short enough to stop, long enough to hide the threads' cost
NUMBERS_A_TILE = 1 << 13  # columns of a tile stay in the nearest cache


def row_sums(statistic: Statistic, x: Floats, options: dict[str, Any]) -> RowSums:
    """Sums over j of kernel(x_i, x_j): half the pairs suffice unless a `local` makes order matter."""
    n, once = len(x), statistic.local is None
    example = check_kernel(statistic, x, options)
    width = len(_as_tuple(example))
    loop = getattr(_loops(statistic, example), "symmetric" if once else "directed")
    sums, diagonal = np.zeros((n, width)), np.zeros((n, width))
    tile = max(16, NUMBERS_A_TILE // x.shape[1])
    values = tuple(options.values())

    def work(first: int, last: int) -> tuple[Floats, Floats]:
        parts = np.zeros((n - first if once else last - first, width)), np.empty((last - first, width))
        loop(x, values, first, last, tile, *parts)
        return parts

    _try(statistic, lambda: work(0, 0))
    for first, last, (some, own) in _blocks(statistic, n, once, work):
        sums[first : first + len(some)] += some
        diagonal[first:last] = own
    bad = ~np.isfinite(sums).all(axis=1)
    if bad.any():
        raise InputError(
            f"{statistic.name}: the kernel gives values that are not finite, first for row {bad.argmax() + 1}"
        )
    return RowSums(sums, diagonal)


def means_without_one(
    statistic: Statistic, x: Floats, options: dict[str, Any], rows: RowSums, with_diagonal: bool
) -> Floats:
    """For each row i, the mean over the others of `local` as if row i were not there: n × m."""
    n = len(x)
    assert statistic.local is not None
    parts = len(statistic.local(tuple(rows.sums[0])))
    loop = _loops(statistic, check_kernel(statistic, x, options)).leave_one_out
    sums = rows.sums if with_diagonal else rows.sums - rows.diagonal
    count, values = float(n - 1 if with_diagonal else n - 2), tuple(options.values())
    out = np.empty((n, parts))

    def work(first: int, last: int) -> Floats:
        some = np.zeros((last - first, parts))
        loop(x, values, first, last, sums, count, some)
        return some

    _try(statistic, lambda: work(0, 0))
    for first, last, some in _blocks(statistic, n, False, work):
        out[first:last] = some
    return out / (n - 1)


def check_kernel(statistic: Statistic, x: Floats, options: dict[str, Any]) -> Any:
    """Try the kernel on some pairs of rows, both ways round, and give one result as an example."""
    pairs = np.random.default_rng(0).integers(0, len(x), size=(64, 2))
    rows = {i: x[i].tolist() for i in {0, 1, *pairs.ravel().tolist()}}
    try:
        example = statistic.kernel(rows[0], rows[1], **options)
        width = len(_as_tuple(example))
        for i, j in pairs.tolist():
            one = _as_tuple(statistic.kernel(rows[i], rows[j], **options))
            other = _as_tuple(statistic.kernel(rows[j], rows[i], **options))
            if not len(one) == len(other) == width:
                raise InputError(
                    f"{statistic.name}: the kernel gives {width} numbers for some rows, {len(one)} for others"
                )
            if statistic.local is None and not np.allclose(one, other, rtol=1e-9, atol=0, equal_nan=True):
                raise InputError(
                    f"{statistic.name} is not symmetric: rows {i + 1} and {j + 1} give {_show(one)}, and "
                    f"{_show(other)} the other way round; write a kernel that does not depend on the order"
                )
    except InputError:
        raise
    except Exception as error:  # whatever a user's function may do
        raise InputError(
            f"{statistic.name}: the kernel fails with {type(error).__name__}: {error}; {MAY_USE}"
        ) from error
    return example


def _as_tuple(result: Any) -> tuple[float, ...]:
    return tuple(map(float, result)) if isinstance(result, tuple) else (float(result),)


def _show(values: tuple[float, ...]) -> str:
    return f"{values[0]:g}" if len(values) == 1 else str(values)


def _loops(statistic: Statistic, example: Any) -> ModuleType:
    """The loops, compiled for this kernel and the number of values it gives."""
    width = len(_as_tuple(example))
    parts = [f"1.0 * h[{c}]" for c in range(width)] if isinstance(example, tuple) else ["1.0 * h"]
    text = (
        LOOPS.read_text(encoding="utf-8")
        + f"""

def values(x, y, options):
    h = kernel(x, y, *options)
    return ({", ".join(parts)},)


def without(sums, h, count):
    return ({", ".join(f"(sums[{c}] - h[{c}]) / count" for c in range(width))},)
"""
    )
    functions = {"kernel": statistic.kernel} | ({"local": statistic.local} if statistic.local else {})
    return compiled.specialise(text, functions)


def _try(statistic: Statistic, work: Callable[[], Any]) -> None:
    """Compile, by working on no rows at all, and say in one line why that fails."""
    try:
        work()
    except Exception as error:  # numba raises several kinds
        raise InputError(f"{statistic.name}: the kernel cannot be compiled: {_gist(str(error))}; {MAY_USE}") from error


def _gist(message: str) -> str:
    """The telling line of numba's page-long message: the first that is not about its own passes."""
    lines = [line.strip().removesuffix(":") for line in message.splitlines() if line.strip(" ^")]
    return next((line for line in lines if not line.startswith("Failed in nopython mode")), "no reason given")[:200]


def _blocks(
    statistic: Statistic, n: int, once: bool, work: Callable[[int, int], Any]
) -> Iterator[tuple[int, int, Any]]:
    """Work on blocks of rows on all cores; results come in order, so that sums are always the same."""
    height = max(1, PAIRS_A_BLOCK // n)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    pending: deque[tuple[int, int, Future[Any]]] = deque()
    title = f"{statistic.name}, {n * (n - 1) // 2:,} pairs"
    with progress.bar(title, n * n) as advance, ThreadPoolExecutor(cores) as pool:
        try:
            for first in range(0, n + height * 2 * cores, height):
                if first < n:
                    last = min(n, first + height)
                    pending.append((first, last, pool.submit(work, first, last)))
                if len(pending) >= 2 * cores or (pending and first >= n):
                    start, stop, future = pending.popleft()
                    yield start, stop, future.result()
                    advance((stop - start) * (2 * n - start - stop if once else n))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
