"""Template of the loops over pairs and triples of rows.

`pairs` compiles it once per kernel, or interprets it without numba.

The names declared here are defined when that happens. `values` is the kernel, returning a tuple of
floats always.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gosta.runtime.arrays import Floats, Integers

Numbers = tuple[float, ...]
row: Callable[[Floats, int], Any]  # row i of x, as the kernel takes it
values: Callable[..., Numbers]  # of two or three rows, then the options
local_values: Callable[[Numbers], Numbers]
without: Callable[[Any, Numbers, float], Numbers]  # (sums − h) / count


def diagonal(x: Floats, options: Numbers, first: int, last: int, out: Floats) -> None:
    """Evaluate the kernel of rows first..last with themselves."""
    for i in range(first, last):
        h = values(row(x, i), row(x, i), options)
        for c in range(len(h)):
            out[i - first, c] = h[c]


def against(x: Floats, other: Floats, options: Numbers, out: Floats) -> None:
    """Evaluate the kernel of each row with the first row of another array."""
    for i in range(len(x)):
        h = values(row(x, i), row(other, 0), options)
        for c in range(len(h)):
            out[i, c] = h[c]


def symmetric(x: Floats, options: Numbers, first: int, last: int, tile: int, sums: Floats) -> None:
    """Add the kernel of rows first..last with all later rows to the sums of both.

    sums[0] belongs to row first.
    """
    n = len(x)
    for start in range(first + 1, n, tile):
        for i in range(first, last):
            for j in range(max(i + 1, start), min(n, start + tile)):
                h = values(row(x, i), row(x, j), options)
                for c in range(len(h)):
                    sums[i - first, c] += h[c]
                    sums[j - first, c] += h[c]


def directed(x: Floats, options: Numbers, first: int, last: int, tile: int, sums: Floats) -> None:
    """Add the kernel of rows first..last with all other rows, in this order of arguments."""
    n = len(x)
    for start in range(0, n, tile):
        for i in range(first, last):
            for j in range(start, min(n, start + tile)):
                if j != i:
                    h = values(row(x, i), row(x, j), options)
                    for c in range(len(h)):
                        sums[i - first, c] += h[c]


def leave_one_out(
    x: Floats, options: Numbers, first: int, last: int, sums: Floats, count: float, out: Floats
) -> None:
    """Add up `local` over all rows but i, from row sums without row i."""
    for i in range(first, last):
        for j in range(len(x)):
            if j != i:
                g = local_values(without(sums[j], values(row(x, j), row(x, i), options), count))
                for c in range(len(g)):
                    out[i - first, c] += g[c]


def kernel_matrix(
    x: Floats, options: Numbers, first: int, last: int, slopes: Floats, out: Floats
) -> None:
    """Add the kernel's values times slopes, for each pair of rows first..last with all rows."""
    for i in range(first, last):
        for j in range(len(x)):
            h = values(row(x, i), row(x, j), options)
            for c in range(len(h)):
                out[i - first, j] += slopes[c] * h[c]


def add_squares(
    x: Floats, options: Numbers, first: int, last: int, slopes: Floats, centre: float, out: Floats
) -> None:
    """Add up over all rows the squared difference of that number from a centre."""
    for i in range(first, last):
        for j in range(len(x)):
            h = values(row(x, i), row(x, j), options)
            gap = -centre
            for c in range(len(h)):
                gap += slopes[c] * h[c]
            out[i - first] += gap * gap


def triples(x: Floats, options: Numbers, first: int, last: int, sums: Floats) -> None:
    """Add the kernel of rows first..last with two later rows to all three; sums[0] is first's."""
    n = len(x)
    for i in range(first, last):
        for j in range(i + 1, n):
            for k in range(j + 1, n):
                h = values(row(x, i), row(x, j), row(x, k), options)
                for c in range(len(h)):
                    sums[i - first, c] += h[c]
                    sums[j - first, c] += h[c]
                    sums[k - first, c] += h[c]


def chosen(x: Floats, options: Numbers, index: Integers, out: Floats) -> None:
    """Evaluate the kernel of the triples whose rows are given."""
    for t in range(len(index)):
        h = values(row(x, index[t, 0]), row(x, index[t, 1]), row(x, index[t, 2]), options)
        for c in range(len(h)):
            out[t, c] = h[c]
