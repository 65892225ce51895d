"""Sweeps over sorted rows, with a Fenwick tree over the other column; `fast` compiles this file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.runtime.arrays import Floats, Integers

Weights = NDArray[Any]  # whole numbers or floats


def quadrants(first: Integers, second: Integers, weights: Weights) -> Weights:
    """Add up rows that are below, or not above, a row in both columns.

    For each row, the counts of {below, not above} in one column and in the other are summed.

    Both columns are ranks among distinct values; the rows are in the order of the first. The sums
    are of the same type as the weights.
    """
    n = len(first)
    # over ranks of the second column, of the rows passed
    tree = np.zeros(second.max() + 2, dtype=weights.dtype)
    passed = np.zeros(len(tree), dtype=weights.dtype)
    out = np.empty(n, dtype=weights.dtype)
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and first[stop] == first[start]:
            stop += 1
        for k in range(start, stop):
            out[k] = 2 * prefix(tree, second[k]) + passed[second[k]]
        for k in range(start, stop):
            passed[second[k]] += weights[k]
            at = second[k] + 1
            while at < len(tree):
                tree[at] += weights[k]
                at += at & -at
        if stop == start + 1:
            # no ties in the first column: not above it are those below and itself
            out[start] += out[start] + weights[start]
        else:
            for k in range(start, stop):
                out[k] += 2 * prefix(tree, second[k]) + passed[second[k]]
        start = stop
    return out


def prefix(tree: Weights, at: int) -> Any:
    total = tree[0]  # which is 0
    while at > 0:
        total += tree[at]
        at &= at - 1
    return total


def products_alike(
    v: Floats, w: Floats, order_v: Integers, order_w: Integers, weights: Floats
) -> Floats:
    """Return for each row the sum of (v_i − v_j)(w_i − w_j) over rows j on one side of it.

    That is the same side in both columns.

    Rows j count by their weights. Expanding the product leaves sums of 1, v, w and vw over {j
    before i in both orders} and {j after i in both}; the second follows from the first and from the
    sums over each order alone. Ties add nothing, so any order among them will do.
    """
    n = len(v)
    terms = np.column_stack((weights, weights * v, weights * w, weights * v * w))
    place, out = np.empty(n, dtype=np.int64), np.empty(n)
    upto_w, tree = np.zeros((n, 4)), np.zeros((n + 1, 4))
    upto_v, total, sums = np.zeros(4), np.zeros(4), np.zeros(4)
    for k in range(n):
        row = order_w[k]
        place[row] = k
        total += terms[row]
        upto_w[row] = total
    for k in range(n):
        row = order_v[k]
        at = place[row] + 1
        while at <= n:
            for c in range(4):
                tree[at, c] += terms[row, c]
            at += at & -at
        for c in range(4):
            upto_v[c] += terms[row, c]
            sums[c] = total[c] - upto_v[c] - upto_w[row, c]
        at = place[row] + 1
        while at > 0:
            for c in range(4):
                sums[c] += 2 * tree[at, c]
            at &= at - 1
        out[row] = sums[0] * v[row] * w[row] - v[row] * sums[2] - w[row] * sums[1] + sums[3]
    return out
