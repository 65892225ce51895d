"""Template of the loops over triples of rows: `triples` compiles it once per kernel, or interprets it without numba.

The names declared here are defined when that happens. `values` is the kernel, returning a tuple of floats always.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gosta.runtime.arrays import Floats, Integers

Numbers = tuple[float, ...]
row: Callable[[Floats, int], Any]  # row i of x, as the kernel takes it
values: Callable[[Any, Any, Any, Numbers], Numbers]


def triples(x: Floats, options: Numbers, first: int, last: int, sums: Floats) -> None:
    """Add the kernel of rows first..last with all two later rows to the sums of all three; sums[0] is of row first."""
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
