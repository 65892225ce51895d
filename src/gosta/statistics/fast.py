"""Row sums in O(n log n), without evaluating every pair of rows.

They are sums over the other rows j of kernel(x_i, x_j).

Each docstring names the kernel values that are summed. With weights, row j counts w_j times in the
sums of others.
"""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta.runtime import compiler
from gosta.runtime.arrays import Floats, Integers
from gosta.statistics import sweeps
from gosta.statistics.definition import RowSums


def variance(x: Floats, weights: Floats | None = None) -> RowSums:
    """½(x − y)²."""
    return _zero_diagonal(0.5 * _products(x[:, 0], x[:, 0], weights))


def covariance(x: Floats, weights: Floats | None = None) -> RowSums:
    """½(x − y)(x' − y')."""
    return _zero_diagonal(0.5 * _products(x[:, 0], x[:, 1], weights))


def gini(x: Floats, weights: Floats | None = None) -> RowSums:
    """|x − y|."""
    return _zero_diagonal(_gaps(x[:, 0], weights))


def gini_index(x: Floats, weights: Floats | None = None) -> RowSums:
    """|x − y| and x + y."""
    v = x[:, 0]
    return RowSums(
        np.column_stack([_gaps(v, weights), _additions(v, weights)]),
        np.column_stack([0 * v, 2 * v]),
    )


def kendall(x: Floats, weights: Floats | None = None) -> RowSums:
    """The product of the two signs, and their squares."""
    first, second = _both_ranks(x, weights)
    counts = np.ones(len(x), dtype=np.int32) if weights is None else weights
    agreement, total = np.empty(len(x)), counts.sum()
    order = first.order
    agreement[order] = _sweep("quadrants", first.dense[order], second.dense[order], counts[order])
    agreement += total - first.middle - second.middle
    return _zero_diagonal(agreement, total - first.ties, total - second.ties)


def kendall_and_ties(x: Floats, weights: Floats | None = None) -> RowSums:
    """The product of the two signs, and 1 where the values of each column are equal."""
    agreement, first, second = kendall(x, weights).sums.T
    others = len(x) - 1.0 if weights is None else weights.sum() - weights
    return RowSums(
        np.column_stack([agreement, others - first, others - second]), np.array([[0.0, 1.0, 1.0]])
    )


def somers(x: Floats, weights: Floats | None = None) -> RowSums:
    """The product of the two signs, and the square of the first."""
    return _zero_diagonal(*kendall(x, weights).sums.T[:2])


def gamma(x: Floats, weights: Floats | None = None) -> RowSums:
    """The product of the two signs, and its square: of rows that differ in both columns."""
    agreement, first, second = kendall(x, weights).sums.T
    _, groups = np.unique(x + 0.0, axis=0, return_inverse=True)  # −0 is 0
    sizes = np.bincount(groups.reshape(-1), weights)
    return _zero_diagonal(agreement, first + second - (sizes.sum() - sizes[groups.reshape(-1)]))


def spearman(x: Floats, weights: Floats | None = None) -> RowSums:
    """The two signs: the number of rows below less that of rows above, in each column."""
    total = len(x) if weights is None else weights.sum()
    return _zero_diagonal(*(ranks.middle - total for ranks in _both_ranks(x, weights)))


def distance_correlation(x: Floats, weights: Floats | None = None) -> RowSums | None:
    """a = |x − y|, b = |x' − y'|, ab, a² and b²; None unless both parts have one number."""
    if x.shape[1] != 2:
        return None
    v, w = x[:, 0] - x[:, 0].mean(), x[:, 1] - x[:, 1].mean()
    counts = np.ones(len(x)) if weights is None else weights
    alike = _sweep(
        "products_alike", v, w, np.argsort(v, kind="stable"), np.argsort(w, kind="stable"), counts
    )
    # |ab| is ab where the signs agree and −ab where they do not
    both = 2 * alike - _products(v, w, weights)
    squares = _products(v, v, weights), _products(w, w, weights)
    return _zero_diagonal(_gaps(v, weights), _gaps(w, weights), both, *squares)


def auc(x: Floats, weights: Floats | None = None) -> RowSums:
    """(1 − ℓℓ')·won, and 1 − ℓℓ', with ℓ the class."""
    wins, others = _wins(x, weights)
    return _zero_diagonal(2 * wins, 2 * others)


def auc_and_ties(x: Floats, weights: Floats | None = None) -> RowSums:
    """(1 − ℓℓ')·won, 1 − ℓℓ', with ℓ the class, and 1 where the scores are equal."""
    sums, ties = auc(x, weights).sums, _ranks(x[:, 0], weights).ties
    counts = 1.0 if weights is None else weights
    return RowSums(np.column_stack([sums, ties - counts]), np.array([[0.0, 0.0, 1.0]]))


def auc_difference(x: Floats, weights: Floats | None = None) -> RowSums:
    """(1 − ℓℓ')·won for each of two scores, and 1 − ℓℓ', with ℓ the class."""
    (first, others), (second, _) = (_wins(x[:, [k, 2]], weights) for k in (0, 1))
    return _zero_diagonal(2 * first, 2 * second, 2 * others)


def trimmed_mean(x: Floats, weights: Floats | None = None) -> RowSums:
    """sx + s'x' and s + s', with s the share of a row that counts."""
    parts = np.column_stack([x[:, 0] * x[:, 1], x[:, 1]])
    return RowSums(np.column_stack([_additions(part, weights) for part in parts.T]), 2 * parts)


def winsorised_mean(x: Floats, weights: Floats | None = None) -> RowSums:
    """½(x + x')."""
    return RowSums(0.5 * _additions(x[:, 0], weights)[:, None], x)


def ranks(x: Floats, weights: Floats | None = None) -> RowSums:
    """1 for a row below, ½ for one that equals it."""
    own = 1.0 if weights is None else weights
    below = 0.5 * (_ranks(x[:, 0], weights).middle - own)
    return RowSums(np.asarray(below, dtype=np.float64)[:, None], np.full((len(x), 1), 0.5))


def mann_whitney(x: Floats, weights: Floats | None = None) -> RowSums:
    """½(1 − ℓℓ')·won, with ℓ the class."""
    return _zero_diagonal(_wins(x, weights)[0])


def energy_distance(x: Floats, weights: Floats | None = None) -> RowSums | None:
    """|x − y| across, within + and within −, and indicators of such pairs; None beyond one
    dimension.
    """
    if x.shape[1] != 2:
        return None
    n, v, plus = len(x), x[:, 0] - x[:, 0].mean(), x[:, 1] > 0
    counts = np.ones(n) if weights is None else weights
    within, zero = np.empty(n), np.zeros(n)
    for part in (plus, ~plus):
        within[part] = _gaps(v[part], counts[part])
    share = np.where(plus, counts[plus].sum(), counts[~plus].sum())
    others = share - counts
    sums = [_gaps(v, counts) - within, within * plus, within * ~plus]
    sums += [counts.sum() - share, others * plus, others * ~plus]
    return RowSums(np.column_stack(sums), np.column_stack([zero, zero, zero, zero, plus, ~plus]))


def _sweep(name: str, *arrays: NDArray[Any]) -> Floats | Integers:
    """Run one of the sweeps, compiled if numba is installed."""
    n = len(arrays[0])
    module: ModuleType = sweeps
    if compiler.is_available(n * np.log2(n), f"{n} rows"):
        smallest = [np.zeros(1, dtype=array.dtype) for array in arrays]
        module = compiler.specialise(
            inspect.getsource(sweeps), {}, lambda made: getattr(made, name)(*smallest)
        )
    values: Floats | Integers = getattr(module, name)(*arrays)
    return values


def _zero_diagonal(*sums: Floats | Integers) -> RowSums:
    return RowSums(np.array(sums, dtype=np.float64).T, np.zeros((1, len(sums))))


def _additions(v: Floats, weights: Floats | None) -> Floats:
    """Return the sums over the other rows j of v_i + v_j."""
    if weights is None:
        return np.asarray((len(v) - 2) * v + v.sum())
    return np.asarray((weights.sum() - 2 * weights) * v + (weights * v).sum())


def _products(v: Floats, w: Floats, weights: Floats | None) -> Floats:
    """Return the sums over j of (v_i − v_j)(w_i − w_j), from the means."""
    dv, dw = v, w
    for _ in range(2):  # the second time for the mean's own rounding
        dv, dw = dv - np.average(dv, weights=weights), dw - np.average(dw, weights=weights)
    both: Floats = dv * dw
    if weights is None:
        return len(v) * both + float(both.sum())
    return float(weights.sum()) * both + float((weights * both).sum())


def _gaps(v: Floats, weights: Floats | None) -> Floats:
    """Return the sums over j of |v_i − v_j|, from sums of prefixes of the sorted values."""
    n = len(v)
    order = np.argsort(v)
    ordered = v[order] - v.mean()
    counts = np.ones(n) if weights is None else weights[order]
    before = (
        np.arange(n) * 1.0 if weights is None else np.cumsum(counts, dtype=np.longdouble) - counts
    )
    prefix = np.cumsum(counts * ordered, dtype=np.longdouble)
    sums = np.empty(n)
    sums[order] = (
        ordered * (2 * before - counts.sum()) + prefix[-1] - 2 * (prefix - counts * ordered)
    )
    return sums


class _Ranks(NamedTuple):
    order: Integers  # rows from the least value to the largest
    dense: Integers  # of each row, its rank among distinct values
    ties: Floats | Integers  # how many rows have its value, itself included
    middle: Floats | Integers  # that, plus twice the number of rows below it


def _ranks(v: Floats, weights: Floats | None = None) -> _Ranks:
    # numpy's quicksort is slow on a few values that repeat often; its mergesort is fast on them.
    few = len(np.unique(v[:: len(v) // 256 + 1])) <= 4
    order = np.argsort(v, kind="stable" if few else None)
    ordered = v[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    starts = np.flatnonzero(new)
    dense = np.empty(len(v), dtype=np.int64)
    dense[order] = np.cumsum(new) - 1
    sizes = (
        np.diff(starts, append=len(v))
        if weights is None
        else np.add.reduceat(weights[order], starts)
    )
    return _Ranks(order, dense, sizes[dense], (2 * np.cumsum(sizes) - sizes)[dense])


def _both_ranks(x: Floats, weights: Floats | None) -> list[_Ranks]:
    """Rank both columns at the same time: sorting is most of the work."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda column: _ranks(column, weights), np.ascontiguousarray(x.T)))


def _wins(x: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Count rows of the other class that each row is ordered correctly against, and all of them."""
    plus, group = x[:, 1] > 0, _ranks(x[:, 0]).dense
    plus_in, minus_in = (
        np.bincount(group[rows], None if weights is None else weights[rows], group.max() + 1)
        for rows in (plus, ~plus)
    )
    plus_above = plus_in.sum() - np.cumsum(plus_in) + 0.5 * plus_in
    minus_below = np.cumsum(minus_in) - 0.5 * minus_in
    return np.where(plus, minus_below[group], plus_above[group]), np.where(
        plus, minus_in.sum(), plus_in.sum()
    )
