"""Sweeps over sorted rows, with a Fenwick tree over the other column; `fast` compiles this file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gosta.runtime.arrays import Floats, Integers


def quadrants(first: Integers, second: Integers) -> Integers:
    """Count for each row the rows {below, not above} it in one column and {below, not above} in the other, summed.

    Both columns are ranks among distinct values; the rows are in the order of the first.
    """
    n = len(first)
    tree = np.zeros(second.max() + 2, dtype=np.int32)  # over ranks of the second column, of the rows passed
    passed = np.zeros(len(tree), dtype=np.int32)
    out = np.empty(n, dtype=np.int64)
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and first[stop] == first[start]:
            stop += 1
        for k in range(start, stop):
            out[k] = 2 * prefix(tree, second[k]) + passed[second[k]]
        for k in range(start, stop):
            passed[second[k]] += 1
            at = second[k] + 1
            while at < len(tree):
                tree[at] += 1
                at += at & -at
        if stop == start + 1:
            out[start] += out[start] + 1  # no ties in the first column: not above it are those below and itself
        else:
            for k in range(start, stop):
                out[k] += 2 * prefix(tree, second[k]) + passed[second[k]]
        start = stop
    return out


def prefix(tree: NDArray[np.int32], at: int) -> int:
    total = 0
    while at > 0:
        total += tree[at]
        at &= at - 1
    return total


def products_alike(v: Floats, w: Floats, order_v: Integers, order_w: Integers) -> Floats:
    """Return for each row the sum of (v_i − v_j)(w_i − w_j) over rows j on the same side of it in both columns.

    Expanding the product leaves sums of 1, v, w and vw over {j before i in both orders} and {j after i in
    both}; the second follows from the first and from the sums over each order alone. Ties add nothing, so
    any order among them will do.
    """
    n = len(v)
    terms = np.column_stack((np.ones(n), v, w, v * w))
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
            tree[at, 0] += 1.0
            tree[at, 1] += v[row]
            tree[at, 2] += w[row]
            tree[at, 3] += v[row] * w[row]
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
