"""Statistics of rows with weights, as plain statistics: the weight is one more number of a row.

The mean of a kernel over pairs of rows, each pair counted by the product of its weights, is a ratio
of two plain means: of w w' kernel(x, x') and of w w'. So exact values, intervals, simulations and
nodes need nothing else. Where there is a `local`, a row's own mean is that of w' kernel(x, x') over
that of w', and rows are averaged with their weights again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from gosta.runtime.arrays import Floats
from gosta.statistics.definition import Means, Numbers, RowSums, Statistic, as_tuple

# A row is dominant if its weight is this many times that of all others together: sums that contain
# it would lose the digits of the others, so pairs are evaluated one by one.
DOMINANT = 1e4
# Rows up to which that is done.
MOST_PAIRED = 10_000


@cache
def weighted(statistic: Statistic, width: int, returns_tuple: bool) -> Statistic:
    """Return a statistic with weights as one without.

    Its kernel takes the weights as the last number of each row.

    `width` is the number of values that the statistic's own kernel returns, which is a tuple or
    not.
    """
    options = statistic.options_by_part({})["kernel"]
    parameters = "".join(f", {name}={default!r}" for name, default in options.items())
    rows = "xyz"[: statistic.degree]
    arguments = [*(f"{row}[:-1]" for row in rows), *options]
    value = f"kernel({', '.join(arguments)})"
    values = [f"h[{c}]" for c in range(width)] if returns_tuple else ["h"]
    parts, local = [f"w * {one}" for one in values], None
    weight, last = " * ".join(f"{row}[-1]" for row in rows), [] if statistic.total else ["w"]
    if statistic.local is not None:
        weight, last = "y[-1]", ["w", "x[-1]"]
        local = _local(statistic.local, width)
    # Written out and functions of `kernel` and `local`, so that all are compiled.
    text = f"""
def weighted({", ".join(rows)}{parameters}):
    h = {value}
    w = {weight}
    return ({", ".join(parts + last)},)
"""
    final, centre = statistic.final, statistic.centre
    return replace(
        statistic,
        kernel=_define(text, "weighted", kernel=statistic.kernel),
        local=local,
        final=None if statistic.total else _of_shares(final or (lambda m: m)),
        centre=None if centre is None else (lambda m, n: centre(_shares(m), n)),
        fast=_fast(statistic),
        weights="",
    )


def _local(local: Callable[[Means], Means], width: int) -> Callable[[Means], Means]:
    count = len(as_tuple(local((1.0,) * width)))
    means = ", ".join(f"h[{c}] / total" for c in range(width))
    text = f"""
def weighted_local(h):
    total = h[{width}] + (h[{width}] == 0.0)
    g = local(({means},))
    return ({", ".join(f"h[{width + 1}] * g[{c}]" for c in range(count))}, h[{width + 1}])
"""
    return _define(text, "weighted_local", local=local)


def _define(text: str, name: str, **names: Any) -> Callable[..., Any]:
    scope = {"__name__": __name__, **names}
    exec(text, scope)
    function: Callable[..., Any] = scope[name]
    return function


def _shares(m: Means) -> Means:
    """Return means over weighted pairs, from means of products and of the weights."""
    return tuple(value / m[-1] for value in m[:-1])


def _of_shares(final: Callable[..., Numbers]) -> Callable[..., Numbers]:
    def of_shares(m: Means, **options: object) -> Numbers:
        return final(_shares(m), **options)

    of_shares.__signature__ = inspect.signature(final)  # type: ignore[attr-defined]
    return of_shares


def _fast(statistic: Statistic) -> Callable[[Floats], RowSums | None] | None:
    """Return the fast form for rows with weights, if the statistic has one that takes weights."""
    fast = statistic.fast
    if fast is None or "weights" not in inspect.signature(fast).parameters:
        return None

    def weighted_fast(x: Floats) -> RowSums | None:
        n, weights = len(x), x[:, -1]
        if n <= MOST_PAIRED and weights.max() > DOMINANT * (weights.sum() - weights.max()):
            return None  # sums that contain the largest weight would lose the digits of the others
        rows = fast(np.ascontiguousarray(x[:, :-1]), weights)  # type: ignore[call-arg]
        if rows is None or rows.diagonal is None:
            return None
        before, after = (
            np.concatenate([[0.0], np.cumsum(one)[:-1]]) for one in (weights, weights[::-1])
        )
        own, others = weights[:, None], (before + after[::-1])[:, None]
        diagonal = own * np.broadcast_to(rows.diagonal, rows.sums.shape)
        if statistic.total:
            return RowSums(own * rows.sums, own * diagonal)
        if statistic.local is not None:
            return RowSums(
                np.hstack([rows.sums, others, (n - 1) * own]), np.hstack([diagonal, own, own])
            )
        return RowSums(own * np.hstack([rows.sums, others]), own * np.hstack([diagonal, own]))

    return weighted_fast
