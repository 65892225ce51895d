"""Every pair of rows, in blocks, compiled, on all cores, in O(n) memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gosta.errors import InputError
from gosta.runtime import compiler as compiled
from gosta.runtime import machine, progress
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import Statistic, as_floats, as_tuple

LOOPS = Path(__file__).with_name("loops.py")  # read, not imported: it only makes sense once compiled
MAY_USE = "it may use numbers, x[i], len(x), math, loops and functions that do the same"
NUMBERS_A_BLOCK = 1 << 26  # about a tenth of a second: short enough to stop, long enough to hide the threads' cost
NUMBERS_A_TILE = 1 << 13  # columns of a tile stay in the nearest cache


def row_sums(statistic: Statistic, x: Floats, options: dict[str, Any]) -> Floats:
    """Sums over the other rows of kernel(x_i, x_j): half the pairs suffice unless a `local` makes order matter."""
    n, once = len(x), statistic.local is None
    example = check_kernel(statistic, x, options)
    name, width, values = "symmetric" if once else "directed", len(as_tuple(example)), tuple(options.values())
    tile = max(16, NUMBERS_A_TILE // x.shape[1])

    def work(module: ModuleType, first: int, last: int) -> Floats:
        some = np.zeros((n - first if once else last - first, width))
        getattr(module, name)(x, values, first, last, tile, some)
        return some

    sums = np.zeros((n, width))
    for first, _, some in _blocks(statistic, x, example, once, work):
        sums[first : first + len(some)] += some
    bad = ~np.isfinite(sums).all(axis=1)
    if bad.any():
        raise InputError(
            f"{statistic.name}: the kernel gives values that are not finite, first for row {bad.argmax() + 1}"
        )
    return sums


def diagonal(statistic: Statistic, x: Floats, options: dict[str, Any]) -> Floats:
    """kernel(x_i, x_i) for all rows: n × k."""
    example, values = check_kernel(statistic, x, options), tuple(options.values())
    width = len(as_tuple(example))

    def work(module: ModuleType, first: int, last: int) -> Floats:
        some = np.empty((last - first, width))
        module.diagonal(x, values, first, last, some)
        return some

    return _guarded(statistic, lambda: work(_loops(statistic, example, work), 0, len(x)))


def row_loop(
    statistic: Statistic, x: Floats, options: dict[str, Any], example: Any
) -> Callable[[Floats, Floats], None]:
    """Return a compiled function (other, out) that sets out[i] to the kernel of x[i] with the row other[0]."""
    values = tuple(options.values())

    def work(module: ModuleType, first: int, last: int) -> None:  # noqa: ARG001
        module.against(x[:0], x[:1], values, np.empty((0, len(as_tuple(example)))))

    module = _loops(statistic, example, work)
    return lambda other, out: module.against(x, other, values, out)


def leave_one_out_means(statistic: Statistic, x: Floats, options: dict[str, Any], sums: Floats, count: int) -> Floats:
    """For each row i, the mean over the others of `local` of their means, (sum without i) / count: n × m."""
    n, values = len(x), tuple(options.values())
    assert statistic.local is not None
    parts = len(as_tuple(statistic.local(tuple(sums[0].tolist()))))

    def work(module: ModuleType, first: int, last: int) -> Floats:
        some = np.zeros((last - first, parts))
        module.leave_one_out(x, values, first, last, sums, float(count), some)
        return some

    out = np.empty((n, parts))
    for first, last, some in _blocks(statistic, x, check_kernel(statistic, x, options), False, work):
        out[first:last] = some
    return out / (n - 1)


def kernel_matrix(statistic: Statistic, x: Floats, options: dict[str, Any], slopes: Floats) -> Floats:
    """The kernel's values times slopes, one number for each pair of rows: n × n."""
    n, values = len(x), tuple(options.values())
    machine.require_memory(8 * n * n, f"the kernel of all pairs of {n} rows")
    out = np.zeros((n, n))

    def work(module: ModuleType, first: int, last: int) -> None:
        module.combined(x, values, slopes, first, last, out[first:last])

    deque(_blocks(statistic, x, check_kernel(statistic, x, options), False, work), maxlen=0)
    return out


def sum_of_squares(statistic: Statistic, x: Floats, options: dict[str, Any], slopes: Floats, centre: float) -> float:
    """The sum over all pairs of the squared distance of that number from a centre, without keeping them."""
    values = tuple(options.values())

    def work(module: ModuleType, first: int, last: int) -> Floats:
        some = np.zeros(last - first)
        module.squares(x, values, slopes, centre, first, last, some)
        return some

    blocks = _blocks(statistic, x, check_kernel(statistic, x, options), False, work)
    return float(sum(some.sum() for _, _, some in blocks))


def check_kernel(statistic: Statistic, x: Floats, options: dict[str, Any]) -> Any:
    """Try the kernel on some pairs of different rows, both ways round, and give one result as an example."""
    i, gap = np.random.default_rng(0).integers([0, 1], [[len(x), len(x)]] * 64).T
    pairs = np.column_stack([i, (i + gap) % len(x)]).tolist()
    rows = {i: x[i].tolist() for pair in pairs for i in pair}

    def numbers(i: int, j: int) -> tuple[float, ...]:
        return as_floats(statistic.kernel(rows[i], rows[j], **options))

    try:
        example = statistic.kernel(*(rows[i] for i in pairs[0]), **options)
        there, back = ([numbers(*pair[::way]) for pair in pairs] for way in (1, -1))
    except Exception as error:  # whatever a user's function may do
        raise InputError(f"{statistic.name}: the kernel fails with {_reason(error)}; {MAY_USE}") from error
    widths = {len(h) for h in [*there, *back]}
    if len(widths) > 1 or widths == {0}:
        raise InputError(
            f"{statistic.name}: the kernel must always give the same count of numbers, not {sorted(widths)}"
        )
    slack = 1e-12 * max((abs(v) for h in there for v in h if np.isfinite(v)), default=0.0)
    for (i, j), one, other in zip(pairs, there, back, strict=True):
        if statistic.local is None and not np.allclose(one, other, rtol=1e-9, atol=slack, equal_nan=True):
            raise InputError(
                f"{statistic.name} is not symmetric: rows {i + 1} and {j + 1} give {_show(one)}, and "
                f"{_show(other)} the other way round; write a kernel that does not depend on the order"
            )
    return example


def values_text(example: Any, kernel: str = "kernel", name: str = "values", arguments: str = "x, y, *options") -> str:
    """The text of a function that gives what another gives, but always as a tuple of floats."""
    several = isinstance(example, tuple | list)
    parts = [f"1.0 * h[{c}]" for c in range(len(example))] if several else ["1.0 * h"]
    return f"""

def {name}({arguments.replace("*", "")}):
    h = {kernel}({arguments})
    return ({", ".join(parts)},)
"""


def _loops(statistic: Statistic, example: Any, work: Callable[[ModuleType, int, int], Any]) -> ModuleType:
    """The loops, compiled for this kernel and the number of values it gives."""
    width = len(as_tuple(example))
    text = LOOPS.read_text(encoding="utf-8") + values_text(example)
    functions = {"kernel": statistic.kernel}
    if statistic.local is not None:
        given = statistic.local((1.0,) * width)
        text += values_text(given, "local", "local_values", "h")
        parts = ", ".join(f"(sums[{c}] - h[{c}]) / count" for c in range(width))
        text += f"\n\ndef without(sums, h, count):\n    return ({parts},)\n"
        functions["local"] = statistic.local
    try:
        return compiled.specialise(text, functions, lambda module: work(module, 0, 0))
    except Exception as error:  # numba raises several kinds
        gist = _gist(str(error))
        raise InputError(f"{statistic.name}: the kernel cannot be compiled: {gist}; {MAY_USE}") from error


def _guarded(statistic: Statistic, work: Callable[[], Floats]) -> Floats:
    try:
        return work()
    except (ArithmeticError, LookupError, ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{statistic.name}: the kernel fails with {_reason(error)} for some rows") from error


def _blocks(
    statistic: Statistic, x: Floats, example: Any, once: bool, work: Callable[[ModuleType, int, int], Any]
) -> Iterator[tuple[int, int, Any]]:
    """Work on blocks of rows on all cores; results come in order, so that sums are always the same."""
    n, d = x.shape
    module = _loops(statistic, example, work)
    cores = machine.available_cores()
    height = max(1, min(NUMBERS_A_BLOCK // (n * d), n // 32))  # whatever the cores: sums are rounded block by block
    pending: deque[tuple[int, int, Future[Any]]] = deque()
    title = f"{statistic.name}, {n * (n - 1) // 2:,} pairs"
    with progress.bar(title, n * n) as advance, ThreadPoolExecutor(cores) as pool:
        try:
            for first in range(0, n + height * 2 * cores, height):
                if first < n:
                    last = min(n, first + height)
                    pending.append((first, last, pool.submit(work, module, first, last)))
                if len(pending) >= 2 * cores or (pending and first >= n):
                    start, stop, future = pending.popleft()
                    yield start, stop, _guarded(statistic, future.result)
                    advance((stop - start) * (2 * n - start - stop if once else n))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _gist(message: str) -> str:
    """The telling line of numba's page-long message: the first that is not about its own passes."""
    lines = [line.strip().removesuffix(":") for line in message.splitlines() if line.strip(" ^")]
    return next((line for line in lines if not line.startswith("Failed in nopython mode")), "no reason given")[:200]


def _show(values: tuple[float, ...]) -> str:
    return f"{values[0]:g}" if len(values) == 1 else str(values)
