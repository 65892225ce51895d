"""Row sums in O(n log n): sums over the other rows of kernel(x_i, x_j) without evaluating every pair.

Each docstring names the kernel values that are summed.
"""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import NamedTuple

import numpy as np

from gosta.runtime import compiler
from gosta.runtime.arrays import Floats, Integers
from gosta.statistics import sweeps
from gosta.statistics.definition import RowSums


def variance(x: Floats) -> RowSums:
    """½(x − y)²."""
    return _zero_diagonal(0.5 * _products(x[:, 0], x[:, 0]))


def covariance(x: Floats) -> RowSums:
    """½(x − y)(x' − y')."""
    return _zero_diagonal(0.5 * _products(x[:, 0], x[:, 1]))


def gini(x: Floats) -> RowSums:
    """|x − y|."""
    return _zero_diagonal(_gaps(x[:, 0]))


def gini_index(x: Floats) -> RowSums:
    """|x − y| and x + y."""
    v = x[:, 0]
    return RowSums(np.column_stack([_gaps(v), (len(v) - 2) * v + v.sum()]), np.column_stack([0 * v, 2 * v]))


def kendall(x: Floats) -> RowSums:
    """The product of the two signs, and their squares."""
    n, (first, second) = len(x), _both_ranks(x)
    agreement = np.empty(n)
    agreement[first.order] = _sweep("quadrants", first.dense[first.order], second.dense[first.order])
    agreement += n - first.middle - second.middle
    return _zero_diagonal(agreement, n - first.ties, n - second.ties)


def somers(x: Floats) -> RowSums:
    """The product of the two signs, and the square of the first."""
    return _zero_diagonal(*kendall(x).sums.T[:2])


def gamma(x: Floats) -> RowSums:
    """The product of the two signs, and its square: of rows that differ in both columns."""
    agreement, first, second = kendall(x).sums.T
    _, groups, sizes = np.unique(x + 0.0, axis=0, return_inverse=True, return_counts=True)  # −0 is 0
    return _zero_diagonal(agreement, first + second - (len(x) - sizes[groups.reshape(-1)]))


def spearman(x: Floats) -> RowSums:
    """The two signs: the number of rows below less that of rows above, in each column."""
    n = len(x)
    return _zero_diagonal(*(ranks.middle - n for ranks in _both_ranks(x)))


def distance_correlation(x: Floats) -> RowSums | None:
    """a = |x − y|, b = |x' − y'|, ab, a² and b²; None unless both parts have one number."""
    if x.shape[1] != 2:
        return None
    v, w = x[:, 0] - x[:, 0].mean(), x[:, 1] - x[:, 1].mean()
    alike = _sweep("products_alike", v, w, np.argsort(v, kind="stable"), np.argsort(w, kind="stable"))
    both = 2 * alike - _products(v, w)  # |ab| is ab where the signs agree and −ab where they do not
    return _zero_diagonal(_gaps(v), _gaps(w), both, _products(v, v), _products(w, w))


def auc(x: Floats) -> RowSums:
    """(1 − ℓℓ')·won, and 1 − ℓℓ', with ℓ the class."""
    wins, others = _wins(x)
    return _zero_diagonal(2 * wins, 2 * others)


def auc_difference(x: Floats) -> RowSums:
    """(1 − ℓℓ')·won for each of two scores, and 1 − ℓℓ', with ℓ the class."""
    (first, others), (second, _) = (_wins(x[:, [k, 2]]) for k in (0, 1))
    return _zero_diagonal(2 * first, 2 * second, 2 * others)


def partial_auc(x: Floats) -> RowSums:
    """(1 − ℓℓ')·won, weighted by that of the negative row, and 1 − ℓℓ', with ℓ the class."""
    plus, weight, group = x[:, 1] > 0, x[:, 2], _ranks(x[:, 0]).dense
    size = int(group.max()) + 1
    plus_in = np.bincount(group[plus], minlength=size)
    minus_in, squares_in = (np.bincount(group[~plus], weight[~plus] ** k, size) for k in (1, 2))
    below = np.cumsum(minus_in) - minus_in + 0.5 * squares_in
    above = plus_in.sum() - np.cumsum(plus_in)
    wins = np.where(plus, below[group], weight * (above[group] + 0.5 * weight * plus_in[group]))
    return _zero_diagonal(2 * wins, 2 * np.where(plus, (~plus).sum(), plus.sum()))


def trimmed_mean(x: Floats) -> RowSums:
    """wx + w'x' and w + w', with w the weights."""
    n, parts = len(x), np.column_stack([x[:, 0] * x[:, 1], x[:, 1]])
    return RowSums((n - 2) * parts + np.array([part.sum() for part in parts.T]), 2 * parts)


def winsorised_mean(x: Floats) -> RowSums:
    """½(x + x')."""
    return RowSums(0.5 * ((len(x) - 2) * x + x.sum()), x)


def mann_whitney(x: Floats) -> RowSums:
    """½(1 − ℓℓ')·won, with ℓ the class."""
    return _zero_diagonal(_wins(x)[0])


def energy_distance(x: Floats) -> RowSums | None:
    """|x − y| across, within + and within −, and indicators of such pairs; None beyond one dimension."""
    if x.shape[1] != 2:
        return None
    n, v, plus = len(x), x[:, 0] - x[:, 0].mean(), x[:, 1] > 0
    within = np.empty(n)
    within[plus], within[~plus] = _gaps(v[plus]), _gaps(v[~plus])
    share = np.where(plus, plus.sum(), n - plus.sum())
    others = share - 1
    sums = [_gaps(v) - within, within * plus, within * ~plus, n - share, others * plus, others * ~plus]
    zero = np.zeros(n)
    return RowSums(np.column_stack(sums), np.column_stack([zero, zero, zero, zero, plus, ~plus]))


def _sweep(name: str, *arrays: Floats | Integers) -> Floats | Integers:
    """Run one of the sweeps, compiled if numba is installed."""
    n = len(arrays[0])
    module: ModuleType = sweeps
    if compiler.is_available(n * np.log2(n), f"{n} rows"):
        smallest = [np.zeros(1, dtype=array.dtype) for array in arrays]
        module = compiler.specialise(inspect.getsource(sweeps), {}, lambda made: getattr(made, name)(*smallest))
    values: Floats | Integers = getattr(module, name)(*arrays)
    return values


def _zero_diagonal(*sums: Floats | Integers) -> RowSums:
    return RowSums(np.array(sums, dtype=np.float64).T, np.zeros((1, len(sums))))


def _products(v: Floats, w: Floats) -> Floats:
    """Return the sums over j of (v_i − v_j)(w_i − w_j), from the means."""
    dv, dw = v - v.mean(), w - w.mean()
    dv, dw = dv - dv.mean(), dw - dw.mean()  # the mean's own rounding
    both: Floats = dv * dw
    return len(v) * both + float(both.sum())


def _gaps(v: Floats) -> Floats:
    """Return the sums over j of |v_i − v_j|, from the sums of prefixes and suffixes of the sorted values."""
    n = len(v)
    order = np.argsort(v)
    ordered = v[order] - v.mean()
    prefix = np.cumsum(ordered, dtype=np.longdouble)
    sums = np.empty(n)
    sums[order] = ordered * (2.0 * np.arange(n) - n) + prefix[-1] - 2 * (prefix - ordered)
    return sums


class _Ranks(NamedTuple):
    order: Integers  # rows from the least value to the largest
    dense: Integers  # of each row, its rank among distinct values
    ties: Integers  # how many rows have its value, itself included
    middle: Integers  # that, plus twice the number of rows below it


def _ranks(v: Floats) -> _Ranks:
    # numpy's quicksort is slow on a few values that repeat often; its mergesort is fast on them.
    few = len(np.unique(v[:: len(v) // 256 + 1])) <= 4
    order = np.argsort(v, kind="stable" if few else None)
    ordered = v[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    starts = np.flatnonzero(new)
    dense = np.empty(len(v), dtype=np.int64)
    dense[order] = np.cumsum(new) - 1
    sizes = np.diff(starts, append=len(v))
    return _Ranks(order, dense, sizes[dense], (2 * starts + sizes)[dense])


def _both_ranks(x: Floats) -> list[_Ranks]:
    """Rank both columns at the same time: sorting is most of the work."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(_ranks, np.ascontiguousarray(x.T)))


def _wins(x: Floats) -> tuple[Floats, Floats]:
    """Count the rows of the other class that a row is ordered correctly against (ties count half), and all of them."""
    plus, group = x[:, 1] > 0, _ranks(x[:, 0]).dense
    plus_in, minus_in = (np.bincount(group[of], minlength=group.max() + 1) for of in (plus, ~plus))
    plus_above = plus_in.sum() - np.cumsum(plus_in) + 0.5 * plus_in
    minus_below = np.cumsum(minus_in) - 0.5 * minus_in
    return np.where(plus, minus_below[group], plus_above[group]), np.where(plus, minus_in.sum(), plus_in.sum())
