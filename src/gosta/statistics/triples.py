"""Kernels of three rows: their values over all triples, or over a random sample of them."""

from __future__ import annotations

import inspect
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import permutations
from math import comb
from typing import NamedTuple

import numpy as np

from gosta.errors import DataError, InputError, NumericalError
from gosta.runtime import machine, progress
from gosta.runtime.arrays import Floats, Integers
from gosta.statistics.definition import Numbers, Options, Statistic, as_floats, as_tuple
from gosta.statistics.pairs import (
    ALLOWED,
    Loops,
    call_kernel,
    extreme_rows,
    make_loops,
    reason,
    show,
)

MOST_TRIPLES = 10**11  # that are computed one by one
TRIPLES_PER_SECOND = 1e8  # of a short kernel on one core, for the estimate in the error message
TRIPLES_PER_BLOCK = 1 << 22
SAMPLE_BLOCK = 1 << 20


class Sampling(NamedTuple):
    """A random sample of triples."""

    size: int
    seed: int


class Sample(NamedTuple):
    """Values of the kernel for some triples, and which rows these are."""

    values: Floats  # triples × k
    rows: Integers  # triples × 3


def row_sums(statistic: Statistic, x: Floats, options: Options) -> Floats:
    """Return sums over all two other rows of the kernel: n × k."""
    n, total = len(x), comb(len(x), 3)
    if total > MOST_TRIPLES:
        seconds = total / TRIPLES_PER_SECOND / machine.available_cores()
        cost = f"{n:,} rows have {total:.2g} triples, which take {seconds / 3600:.2g} hours or more"
        raise InputError(
            cost,
            remedy="compute a random sample: sample=1000000 (--sample 1000000)",
            statistic=statistic.name,
        )
    example = check_kernel(statistic, x, options)
    width, values = len(as_tuple(example)), tuple(options.values())

    def work(loops: Loops, first: int, last: int) -> Floats:
        block = np.zeros((n - first, width))
        loops.module.triples(loops.rows, values, first, last, block)
        return block

    loops = make_loops(statistic, x, example, total, work)
    _compare_with_python(statistic, x, options, loops)
    sums, pending = np.zeros((n, width)), deque[tuple[int, int, Future[Floats]]]()
    cores = machine.available_cores()
    with (
        progress.bar(f"{statistic.name}, {total:,} triples", total) as advance,
        ThreadPoolExecutor(cores) as pool,
    ):
        try:
            first = 0
            while first < n or pending:
                if first < n:
                    last = _end_of_block(n, first)
                    pending.append((first, last, pool.submit(work, loops, first, last)))
                    first = last
                if len(pending) >= 2 * cores or first >= n:
                    start, stop, future = pending.popleft()
                    sums[start:] += call_kernel(statistic, future.result)
                    advance(comb(n - start, 3) - comb(n - stop, 3))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    _require_finite(statistic, sums)
    return sums


def _end_of_block(n: int, first: int) -> int:
    """Return the row before which a block ends: sums are rounded block by block, whatever the number of cores."""
    last = first + 1
    while last < n and comb(n - first, 3) - comb(n - last - 1, 3) <= TRIPLES_PER_BLOCK:
        last += 1
    return last


def draw(statistic: Statistic, x: Floats, options: Options, sampling: Sampling) -> Sample:
    """Evaluate the kernel of random triples of different rows, each drawn independently of the others."""
    example, rng, n = (
        check_kernel(statistic, x, options),
        np.random.default_rng(sampling.seed),
        len(x),
    )
    count, width, values = sampling.size, len(as_tuple(example)), tuple(options.values())
    machine.require_memory(8 * count * (width + 3), f"a sample of {count:,} triples")
    rows = rng.integers(0, n, (count, 3))
    while len(alike := np.flatnonzero((rows == np.roll(rows, 1, axis=1)).any(axis=1))):
        rows[alike] = rng.integers(0, n, (len(alike), 3))
    out = np.empty((count, width))

    def work(loops: Loops, first: int, last: int) -> None:
        loops.module.chosen(loops.rows, values, rows[first:last], out[first:last])

    loops = make_loops(statistic, x, example, count, work)
    _compare_with_python(statistic, x, options, loops)
    with progress.bar(f"{statistic.name}, {count:,} triples", count) as advance:
        for first in range(0, count, SAMPLE_BLOCK):
            last = min(count, first + SAMPLE_BLOCK)
            call_kernel(statistic, lambda first=first, last=last: work(loops, first, last))  # type: ignore[misc]
            advance(last - first)
    _require_finite(statistic, out)
    return Sample(out, rows)


def variance_of_rows(psi: Floats, rows: Integers, n: int) -> float:
    """Return the variance over rows of the mean over the triples that they are in, from a sample of triples.

    Products of two different triples of a row have the square of its mean as expectation, so that the noise of
    sampling does not count.
    """
    gaps = psi - psi.mean()
    counts = np.bincount(rows.ravel(), minlength=n)
    sums, squares = (np.bincount(rows.ravel(), np.repeat(part, 3), n) for part in (gaps, gaps**2))
    known = counts > 1
    products = (sums**2 - squares)[known] / (counts * (counts - 1.0))[known]
    return max(float(products.mean()), 0.0) if known.any() else np.inf


def check_kernel(statistic: Statistic, x: Floats, options: Options) -> Numbers:
    """Call the kernel on some triples of different rows, in all orders, and return one result as an example."""
    if len(x) < 3:
        raise DataError(f"{statistic.name} needs at least three rows, there are {len(x)}")
    example, found = None, []
    try:
        for triple in _some_triples(x):
            rows = [x[i].tolist() for i in triple]
            example = statistic.kernel(*rows, **options) if example is None else example
            found.append(
                [as_floats(statistic.kernel(*order, **options)) for order in permutations(rows)]
            )
    except Exception as error:  # a user's function can raise anything
        third = list(inspect.signature(statistic.kernel).parameters)[2]
        hint = f"{ALLOWED}; a parameter without default, {third}, is a third row"
        raise InputError(
            f"the kernel fails with {reason(error)}", remedy=hint, statistic=statistic.name
        ) from error
    widths = {len(h) for orders in found for h in orders}
    if len(widths) > 1 or widths == {0}:
        raise InputError(
            f"the kernel must always return the same count of numbers, not {widths}",
            statistic=statistic.name,
        )
    tolerance = 1e-12 * max(
        (abs(v) for orders in found for h in orders for v in h if np.isfinite(v)), default=0.0
    )
    for triple, orders in zip(_some_triples(x), found, strict=True):
        for other in orders[1:]:
            if not np.allclose(orders[0], other, rtol=1e-9, atol=tolerance, equal_nan=True):
                i, j, k = (row + 1 for row in triple)
                raise InputError(
                    f"{statistic.name} is not symmetric: the kernel is {show(orders[0])} for rows {i}, {j} and {k}, "
                    f"and {show(other)} in another order; write a kernel that does not depend on the order"
                )
    assert example is not None
    return example


def _some_triples(x: Floats) -> list[list[int]]:
    """Return the numbers of some triples of different rows: at random, and with the extreme values of a column."""
    rng = np.random.default_rng(0)
    found = [rng.choice(len(x), 3, replace=False).tolist() for _ in range(16)]
    for low, next_low, next_high, high in extreme_rows(x):
        found += [[low, next_high, high], [low, next_low, high]]
    return [triple for triple in found if len(set(triple)) == 3]


def _compare_with_python(statistic: Statistic, x: Floats, options: Options, loops: Loops) -> None:
    """Raise `InputError` unless the compiled kernel agrees with Python on some triples: whole numbers can overflow."""
    index = _some_triples(x)
    plain = np.array(
        [as_floats(statistic.kernel(*x[triple].tolist(), **options)) for triple in index]
    )
    found = np.empty_like(plain)
    call_kernel(
        statistic,
        lambda: loops.module.chosen(loops.rows, tuple(options.values()), np.array(index), found),
    )
    largest = np.abs(plain[np.isfinite(plain)]).max(initial=0.0)
    if not np.allclose(found, plain, rtol=1e-9, atol=1e-12 * largest, equal_nan=True):
        raise InputError(
            "the kernel gives other numbers compiled than in Python: whole numbers beyond 2^63 "
            "overflow when compiled; compute with floats, as in 1.0 * x[0]",
            statistic=statistic.name,
        )


def _require_finite(statistic: Statistic, values: Floats) -> None:
    if not np.isfinite(values).all():
        raise NumericalError(
            "the kernel returns values that are not finite", statistic=statistic.name
        )
