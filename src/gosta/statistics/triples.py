"""Kernels of three rows: their values over all triples, or over a random sample of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import comb
from typing import NamedTuple

import numpy as np

from gosta.errors import InputError, NumericalError
from gosta.runtime import machine, progress
from gosta.runtime.arrays import Floats, Integers
from gosta.statistics.definition import Options, Statistic, as_floats, as_tuple
from gosta.statistics.pairs import (
    Loops,
    call_kernel,
    check_kernel,
    in_order,
    make_loops,
    sample_tuples,
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
    sums = np.zeros((n, width))
    with progress.bar(f"{statistic.name}, {total:,} triples", total) as advance:
        for start, stop, block in in_order(statistic, _blocks(n), partial(work, loops)):
            sums[start:] += block
            advance(comb(n - start, 3) - comb(n - stop, 3))
    _require_finite(statistic, sums)
    return sums


def _blocks(n: int) -> Iterator[tuple[int, int]]:
    """Yield the first row of each block, and the row before which it ends.

    They do not depend on the number of cores: sums are rounded block by block.
    """
    first = 0
    while first < n:
        last = first + 1
        while last < n and comb(n - first, 3) - comb(n - last - 1, 3) <= TRIPLES_PER_BLOCK:
            last += 1
        yield first, last
        first = last


def draw(statistic: Statistic, x: Floats, options: Options, sampling: Sampling) -> Sample:
    """Evaluate the kernel of random triples of different rows, drawn independently."""
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
            call_kernel(statistic, partial(work, loops, first, last))
            advance(last - first)
    _require_finite(statistic, out)
    return Sample(out, rows)


def variance_of_rows(psi: Floats, rows: Integers, n: int) -> float:
    """Return the variance over rows of the mean over the triples that they are in.

    It is estimated from a sample of triples.

    Products of two different triples of a row have the square of its mean as expectation, so that
    the noise of sampling does not count.
    """
    gaps = psi - psi.mean()
    counts = np.bincount(rows.ravel(), minlength=n)
    sums, squares = (np.bincount(rows.ravel(), np.repeat(part, 3), n) for part in (gaps, gaps**2))
    known = counts > 1
    products = (sums**2 - squares)[known] / (counts * (counts - 1.0))[known]
    return max(float(products.mean()), 0.0) if known.any() else np.inf


def _compare_with_python(statistic: Statistic, x: Floats, options: Options, loops: Loops) -> None:
    """Raise `InputError` unless compiled and plain kernel agree: whole numbers can overflow."""
    index = sample_tuples(x, 3)
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
