"""Sums over rows of weights, of weighted columns and of their products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gosta.models.arithmetic import upper
from gosta.runtime.arrays import Booleans, Floats, Integers

ROWS_PER_CHUNK = 4096
ROWS_PER_BLOCK = 16_384  # whose columns stay in the processor's cache
ROWS_PER_PRODUCT = 256  # so few that libraries do not share the work among threads


class Term(NamedTuple):
    """Sums over rows of weight · 1, weight · columns, or weight · products of two columns."""

    weights: Floats  # of the rows, from 0 to 1
    columns: Floats  # of the rows, from 0 to 1
    order: int  # 0, 1 or 2: how many columns are multiplied
    bins: Integers | None = None  # of each row; None: all are in one
    bin_count: int = 1
    counted: Booleans | None = None  # rows that can have a weight; None: all

    @property
    def length(self) -> int:
        """Return how many sums each bin has."""
        width = self.columns.shape[1]
        return (1, width, width * (width + 1) // 2)[self.order]

    @property
    def size(self) -> int:
        """Return how many sums there are."""
        return self.bin_count * self.length

    def products(self) -> Floats:
        """Return the numbers of each row that are summed: n × length."""
        if self.order == 0:
            return self.weights[:, None]
        weighted = self.weights[:, None] * self.columns
        if self.order == 1:
            return weighted
        width, start = self.columns.shape[1], 0
        found = np.empty((len(weighted), self.length))
        for k in range(width):
            place = slice(start, start + width - k)
            np.multiply(weighted[:, k : k + 1], self.columns[:, k:], out=found[:, place])
            start = place.stop
        return found

    def sums(self) -> Floats:
        """Return the sums over rows: bins × length."""
        if self.bins is None:
            return self._matrix_sums()[None]
        found = np.zeros((self.bin_count, self.length))
        order = np.argsort(self.bins, kind="stable")
        for start in range(0, len(order), ROWS_PER_CHUNK):
            rows = order[start : start + ROWS_PER_CHUNK]
            part = Term(self.weights[rows], self.columns[rows], self.order)
            bins, first = np.unique(self.bins[rows], return_index=True)
            found[bins] += np.add.reduceat(part.products(), first)
        return found

    def _matrix_sums(self) -> Floats:
        if self.order == 0:
            return np.array([self.weights.sum()])
        if self.order == 1:
            return np.asarray(cross_products(self.weights[:, None], self.columns)[0])
        both = cross_products(self.columns * self.weights[:, None], self.columns)
        return np.asarray(both[upper(len(both))])


def cross_products(a: Floats, b: Floats) -> Floats:
    """Return a' b: sums over many rows of products of few columns.

    Threads of libraries wait for each other at each such product, which takes much longer than the
    product itself where other work goes on beside.
    """
    whole = len(a) - len(a) % ROWS_PER_PRODUCT
    parts = [x[:whole].reshape(-1, ROWS_PER_PRODUCT, x.shape[1]) for x in (a, b)]
    return np.asarray((parts[0].swapaxes(1, 2) @ parts[1]).sum(axis=0) + a[whole:].T @ b[whole:])


def row_blocks(count: int) -> Iterator[slice]:
    """Yield the places of blocks of rows."""
    for start in range(0, count, ROWS_PER_BLOCK):
        yield slice(start, start + ROWS_PER_BLOCK)
