"""Kernel values of every pair of rows, in blocks on all cores, in O(n) memory.

They are compiled if numba is installed.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import permutations
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gosta.errors import DataError, GostaError, InputError, NumericalError
from gosta.runtime import compiler, machine, progress
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import Numbers, Options, Statistic, as_floats, as_tuple

# read, not imported: its names are defined when it is compiled
LOOPS = Path(__file__).with_name("loops.py")
COMPILED_ROW = "\nfrom gosta.runtime.observation import row\n"
PLAIN_ROW = "\n\ndef row(x, i):\n    return x[i]\n"
ALLOWED = "a kernel can use numbers, x[i], len(x), math, loops and functions that do the same"
# about a tenth of a second: short enough to stop, long enough to hide the threads' cost
NUMBERS_PER_BLOCK = 1 << 26
NUMBERS_PER_TILE = 1 << 13  # columns of a tile stay in the nearest cache
MOST_EXTREME_COLUMNS = 32  # whose extreme rows are tried before the loop begins
Result = TypeVar("Result")


class Loops(NamedTuple):
    """The functions of loops.py for one kernel, and rows: an array, or lists if interpreted."""

    module: ModuleType
    rows: Floats | list[list[float]]


def row_sums(statistic: Statistic, x: Floats, options: Options) -> Floats:
    """Return sums over the other rows of kernel(x_i, x_j): n × k.

    Half the pairs suffice unless a `local` makes the order of arguments matter.
    """
    n, is_symmetric = len(x), statistic.local is None
    example = check_kernel(statistic, x, options)
    name, width, values = (
        "symmetric" if is_symmetric else "directed",
        len(as_tuple(example)),
        tuple(options.values()),
    )
    tile = max(16, NUMBERS_PER_TILE // x.shape[1])

    def work(loops: Loops, first: int, last: int) -> Floats:
        block = np.zeros((n - first if is_symmetric else last - first, width))
        getattr(loops.module, name)(loops.rows, values, first, last, tile, block)
        return block

    def check(loops: Loops) -> None:
        if not isinstance(loops.rows, list):
            _compare_with_python(
                statistic, x, options, lambda rows: work(Loops(loops.module, rows), 0, 1)[0]
            )

    sums = np.zeros((n, width))
    for first, _, block in _blocks(statistic, x, example, is_symmetric, work, check):
        sums[first : first + len(block)] += block
    bad = ~np.isfinite(sums).all(axis=1)
    if bad.any():
        where = f"first for row {bad.argmax() + 1}"
        raise NumericalError(
            f"the kernel returns values that are not finite, {where}", statistic=statistic.name
        )
    return sums


def diagonal(statistic: Statistic, x: Floats, options: Options) -> Floats:
    """Return kernel(x_i, x_i) for all rows: n × k."""
    example, values = check_kernel(statistic, x, options), tuple(options.values())
    out = np.empty((len(x), len(as_tuple(example))))

    def work(loops: Loops, first: int, last: int) -> None:
        loops.module.diagonal(loops.rows, values, first, last, out[first:last])

    loops = make_loops(statistic, x, example, len(x), work)
    call_kernel(statistic, lambda: work(loops, 0, len(x)))
    return out


def row_loop(
    statistic: Statistic, x: Floats, options: Options, example: Numbers
) -> Callable[[Floats, Floats], None]:
    """Return a function (other, out) that sets out[i] to the kernel of x[i] with other[0]."""
    values = tuple(options.values())

    def trial(loops: Loops, _first: int, _last: int) -> None:
        loops.module.against(x[:0], x[:1], values, np.empty((0, len(as_tuple(example)))))

    module, rows = make_loops(statistic, x, example, len(x), trial)
    if isinstance(rows, list):
        return lambda other, out: module.against(rows, other.tolist(), values, out)
    return lambda other, out: module.against(x, other, values, out)


def leave_one_out_means(
    statistic: Statistic, x: Floats, options: Options, sums: Floats, count: int
) -> Floats:
    """Return for each row the mean of `local` over the others, whose means lack it: n × m."""
    assert statistic.local is not None
    out = np.zeros((len(x), len(as_tuple(statistic.local(tuple(sums[0].tolist()))))))
    return _fill(out, statistic, x, options, "leave_one_out", sums, float(count)) / (len(x) - 1)


def kernel_matrix(statistic: Statistic, x: Floats, options: Options, slopes: Floats) -> Floats:
    """Return the kernel's values times slopes, one number for each pair of rows: n × n."""
    n = len(x)
    machine.require_memory(8 * n * n, f"the kernel of all pairs of {n} rows")
    return _fill(np.zeros((n, n)), statistic, x, options, "kernel_matrix", slopes)


def sum_of_squares(
    statistic: Statistic, x: Floats, options: Options, slopes: Floats, centre: float
) -> float:
    """Return the sum over all pairs of the squared difference from a centre.

    The difference is that of the kernel's values times slopes.
    """
    return float(
        _fill(np.zeros(len(x)), statistic, x, options, "add_squares", slopes, centre).sum()
    )


def example(statistic: Statistic, x: Floats, options: Options) -> Numbers:
    """Return the kernel's value for some rows: for different ones, if there are enough."""
    if len(x) > 1 or statistic.degree > 2:
        return check_kernel(statistic, x, options)
    row = x[0].tolist()
    try:
        return statistic.kernel(row, row, **options)
    except Exception as error:  # a user's function can raise anything
        raise _kernel_error(statistic, error) from error


def check_kernel(statistic: Statistic, x: Floats, options: Options) -> Numbers:
    """Call the kernel on some pairs or triples of rows, in all orders; return one result."""
    if statistic.degree > 2 and len(x) < 3:
        raise DataError(f"{statistic.name} needs at least three rows, there are {len(x)}")
    chosen = sample_tuples(x, statistic.degree)
    try:
        rows = [[x[i].tolist() for i in places] for places in chosen]
        example = statistic.kernel(*rows[0], **options)
        results = [
            [as_floats(statistic.kernel(*order, **options)) for order in permutations(each)]
            for each in rows
        ]
    except Exception as error:  # a user's function can raise anything
        raise _kernel_error(statistic, error) from error
    widths = {len(h) for orders in results for h in orders}
    if len(widths) > 1 or widths == {0}:
        raise InputError(
            f"the kernel must always return the same count of numbers, not {widths}",
            statistic=statistic.name,
        )
    finite = (abs(v) for orders in results for h in orders for v in h if np.isfinite(v))
    tolerance = 1e-12 * max(finite, default=0.0)
    for places, orders in zip(chosen, results, strict=True):
        for other in orders[1:] if statistic.local is None else ():
            if not np.allclose(orders[0], other, rtol=1e-9, atol=tolerance, equal_nan=True):
                raise InputError(
                    f"{statistic.name} is not symmetric: the kernel is {show(orders[0])} for rows "
                    f"{_row_words(places)}, and {show(other)} {_order_words(places)}",
                    remedy="write a kernel that does not depend on the order",
                )
    return example


def _kernel_error(statistic: Statistic, error: Exception) -> InputError:
    hint = ALLOWED
    if statistic.degree > 2:
        third = list(inspect.signature(statistic.kernel).parameters)[2]
        hint += f"; a parameter without default, {third}, is a third row"
    return InputError(
        f"the kernel fails with {reason(error)}", remedy=hint, statistic=statistic.name
    )


def _row_words(places: Sequence[int]) -> str:
    *first, last = (str(place + 1) for place in places)
    return f"{', '.join(first)} and {last}"


def _order_words(places: Sequence[int]) -> str:
    return f"for rows {_row_words(places[::-1])}" if len(places) == 2 else "in another order"


def sample_tuples(x: Floats, degree: int) -> list[list[int]]:
    """Return the numbers of some pairs or triples: at random, and with extreme values."""
    tuples = _sample_pairs(x) if degree == 2 else _sample_triples(x)
    return [places for places in tuples if len(set(places)) == degree]


def _sample_pairs(x: Floats) -> list[list[int]]:
    n = len(x)
    i, gap = np.random.default_rng(0).integers([0, 1], [[n, n]] * 64).T
    pairs: list[list[int]] = np.column_stack([i, (i + gap) % n]).tolist()
    for low, next_low, next_high, high in _extreme_rows(x):
        pairs += [[low, high], [low, next_low], [next_high, high]]
    return pairs


def _sample_triples(x: Floats) -> list[list[int]]:
    rng = np.random.default_rng(0)
    triples: list[list[int]] = [rng.choice(len(x), 3, replace=False).tolist() for _ in range(16)]
    for low, next_low, next_high, high in _extreme_rows(x):
        triples += [[low, next_high, high], [low, next_low, high]]
    return triples


def _extreme_rows(x: Floats) -> list[tuple[int, int, int, int]]:
    """Return rows with the lowest, the next, the last but one and the highest value of columns."""
    extremes = []
    for column in x.T[:MOST_EXTREME_COLUMNS]:
        last = len(column) - 1
        places = (0, min(1, last), max(last - 1, 0), last)
        order = np.argpartition(column, sorted(set(places))).tolist()
        extremes.append((order[places[0]], order[places[1]], order[places[2]], order[places[3]]))
    return extremes


def _compare_with_python(
    statistic: Statistic, x: Floats, options: Options, compiled: Callable[[Floats], Floats]
) -> None:
    """Raise `InputError` unless compiled and plain kernel agree: whole numbers can overflow."""
    pairs = sample_tuples(x, 2)
    plain = np.array(
        [as_floats(statistic.kernel(x[i].tolist(), x[j].tolist(), **options)) for i, j in pairs]
    )
    results = call_kernel(
        statistic, lambda: np.array([compiled(np.ascontiguousarray(x[pair])) for pair in pairs])
    )
    largest = np.abs(plain[np.isfinite(plain)]).max(initial=0.0)
    differs = ~np.isclose(results, plain, rtol=1e-9, atol=1e-12 * largest, equal_nan=True).all(
        axis=1
    )
    if differs.any():
        (i, j), one, other = (
            pairs[differs.argmax()],
            results[differs.argmax()],
            plain[differs.argmax()],
        )
        raise InputError(
            f"the kernel gives {show(tuple(one.tolist()))} compiled and "
            f"{show(tuple(other.tolist()))} in Python for rows {i + 1} and {j + 1}: whole numbers "
            "beyond 2^63 overflow when compiled; compute with floats, as in 1.0 * x[0]",
            statistic=statistic.name,
        )


def values_text(
    example: Any, kernel: str = "kernel", name: str = "values", arguments: str = "x, y, *options"
) -> str:
    """Return the text of a function that returns the result of another as a tuple of floats."""
    parts = (
        [f"1.0 * h[{c}]" for c in range(len(example))]
        if isinstance(example, tuple | list)
        else ["1.0 * h"]
    )
    return f"""

def {name}({arguments.replace("*", "")}):
    h = {kernel}({arguments})
    return ({", ".join(parts)},)
"""


def make_loops(
    statistic: Statistic,
    x: Floats,
    example: Numbers,
    steps: int,
    work: Callable[[Loops, int, int], object],
) -> Loops:
    """Return the functions of loops.py for a kernel, compiled if numba is installed.

    `steps` is how often the kernel runs.

    `work` calls those that will be needed, on no rows, to compile them.
    """
    width = len(as_tuple(example))
    rows = ", ".join("xyz"[: statistic.degree])
    text = LOOPS.read_text(encoding="utf-8") + values_text(example, arguments=f"{rows}, *options")
    functions: dict[str, Callable[..., Any]] = {"kernel": statistic.kernel}
    if statistic.local is not None:
        text += values_text(statistic.local((1.0,) * width), "local", "local_values", "h")
        parts = ", ".join(f"(sums[{c}] - h[{c}]) / count" for c in range(width))
        text += f"\n\ndef without(sums, h, count):\n    return ({parts},)\n"
        functions["local"] = statistic.local
    if not compiler.is_available(steps, f"{statistic.name} over {len(x)} rows"):
        return Loops(compiler.interpret(text + PLAIN_ROW, functions), x.tolist())
    try:
        module = compiler.specialise(
            text + COMPILED_ROW, functions, lambda module: work(Loops(module, x), 0, 0)
        )
    except Exception as error:  # numba raises several kinds
        reason = compiler_reason(str(error))
        raise InputError(
            f"the kernel cannot be compiled: {reason}", remedy=ALLOWED, statistic=statistic.name
        ) from error
    return Loops(module, x)


def call_kernel(statistic: Statistic, work: Callable[[], Result]) -> Result:
    """Call a function that calls the kernel, and report its errors as those of the kernel."""
    try:
        return work()
    except GostaError:
        raise
    except (ArithmeticError, LookupError, ValueError, TypeError) as error:
        raise InputError(
            f"the kernel fails with {reason(error)} for some rows", statistic=statistic.name
        ) from error


def _fill(
    out: Floats, statistic: Statistic, x: Floats, options: Options, name: str, *arguments: Any
) -> Floats:
    """Fill an array with one row for each of x by a function of loops.py, and return it."""
    values = tuple(options.values())

    def work(loops: Loops, first: int, last: int) -> None:
        getattr(loops.module, name)(loops.rows, values, first, last, *arguments, out[first:last])

    deque(_blocks(statistic, x, check_kernel(statistic, x, options), False, work), maxlen=0)
    return out


def _blocks(
    statistic: Statistic,
    x: Floats,
    example: Numbers,
    is_symmetric: bool,
    work: Callable[[Loops, int, int], Result],
    check: Callable[[Loops], None] = lambda _loops: None,
) -> Iterator[tuple[int, int, Result]]:
    """Work on blocks of rows on all cores; yield results in order, so that sums are the same."""
    n, d = x.shape
    loops = make_loops(statistic, x, example, n * (n - 1) // 2 if is_symmetric else n * n, work)
    check(loops)
    # The height does not depend on the cores: sums are rounded block by block.
    height = max(1, min(NUMBERS_PER_BLOCK // (n * d), n // 32))
    spans = ((first, min(n, first + height)) for first in range(0, n, height))
    with progress.bar(f"{statistic.name}, {n * (n - 1) // 2:,} pairs", n * n) as advance:
        for start, stop, block in in_order(statistic, spans, partial(work, loops)):
            yield start, stop, block
            advance((stop - start) * (2 * n - start - stop if is_symmetric else n))


def in_order(
    statistic: Statistic, spans: Iterable[tuple[int, int]], work: Callable[[int, int], Result]
) -> Iterator[tuple[int, int, Result]]:
    """Work on blocks of rows on all cores; yield the results in the order of the blocks."""
    most = 2 * machine.available_cores()
    pending: deque[tuple[int, int, Future[Result]]] = deque()

    def first_result() -> tuple[int, int, Result]:
        start, stop, future = pending.popleft()
        return start, stop, call_kernel(statistic, future.result)

    with ThreadPoolExecutor(most // 2) as pool:
        try:
            for start, stop in spans:
                pending.append((start, stop, pool.submit(work, start, stop)))
                if len(pending) >= most:
                    yield first_result()
            while pending:
                yield first_result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def reason(error: Exception) -> str:
    """Return the first line of an error."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


def compiler_reason(message: str) -> str:
    """Return the line of numba's long message that names the reason: not about its passes."""
    lines = [line.strip().removesuffix(":") for line in message.splitlines() if line.strip(" ^")]
    if "NRT required but not enabled" in message:
        return "it makes a list, a text or an array"
    return next(
        (line for line in lines if not line.startswith("Failed in nopython mode")),
        "no reason given",
    )[:200]


def show(values: tuple[float, ...]) -> str:
    """Return the values of a kernel as text."""
    return f"{values[0]:g}" if len(values) == 1 else str(values)
