"""The loops over pairs of rows, as text: `pairs` has them compiled once per kernel.

The names declared here are given when that happens. `values` is the kernel, always giving a tuple of floats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gosta.runtime.arrays import Floats
from gosta.runtime.observation import row

values: Callable[[Any, Any, tuple[Any, ...]], tuple[float, ...]]
local_values: Callable[[tuple[float, ...]], tuple[float, ...]]
without: Callable[..., tuple[float, ...]]


def diagonal(x: Floats, options: tuple[Any, ...], first: int, last: int, out: Floats) -> None:
    """The kernel of rows first..last with themselves."""
    for i in range(first, last):
        h = values(row(x, i), row(x, i), options)
        for c in range(len(h)):
            out[i - first, c] = h[c]


def against(x: Floats, other: Floats, options: tuple[Any, ...], out: Floats) -> None:
    """Evaluate the kernel of each row with the first row of another array."""
    for i in range(len(x)):
        h = values(row(x, i), row(other, 0), options)
        for c in range(len(h)):
            out[i, c] = h[c]


def symmetric(x: Floats, options: tuple[Any, ...], first: int, last: int, tile: int, sums: Floats) -> None:
    """Add the pairs of rows first..last with all later rows, to both; sums[0] is row first."""
    n = len(x)
    for start in range(first + 1, n, tile):
        for i in range(first, last):
            for j in range(max(i + 1, start), min(n, start + tile)):
                h = values(row(x, i), row(x, j), options)
                for c in range(len(h)):
                    sums[i - first, c] += h[c]
                    sums[j - first, c] += h[c]


def directed(x: Floats, options: tuple[Any, ...], first: int, last: int, tile: int, sums: Floats) -> None:
    """Add the pairs of rows first..last with all other rows, in this order."""
    n = len(x)
    for start in range(0, n, tile):
        for i in range(first, last):
            for j in range(start, min(n, start + tile)):
                if j != i:
                    h = values(row(x, i), row(x, j), options)
                    for c in range(len(h)):
                        sums[i - first, c] += h[c]


def leave_one_out(
    x: Floats, options: tuple[Any, ...], first: int, last: int, sums: Floats, count: float, out: Floats
) -> None:
    """Add up `local` over all rows but i, from row sums that row i has been taken out of."""
    for i in range(first, last):
        for j in range(len(x)):
            if j != i:
                g = local_values(without(sums[j], values(row(x, j), row(x, i), options), count))
                for c in range(len(g)):
                    out[i - first, c] += g[c]


def combined(x: Floats, options: tuple[Any, ...], slopes: Floats, first: int, last: int, out: Floats) -> None:
    """One number for each pair of rows first..last with all rows: the kernel's values times slopes."""
    for i in range(first, last):
        for j in range(len(x)):
            h = values(row(x, i), row(x, j), options)
            for c in range(len(h)):
                out[i - first, j] += slopes[c] * h[c]


def squares(
    x: Floats, options: tuple[Any, ...], slopes: Floats, centre: float, first: int, last: int, out: Floats
) -> None:
    """Sums over all rows of the squared distance of that number from a centre."""
    for i in range(first, last):
        for j in range(len(x)):
            h = values(row(x, i), row(x, j), options)
            gap = -centre
            for c in range(len(h)):
                gap += slopes[c] * h[c]
            out[i - first] += gap * gap
