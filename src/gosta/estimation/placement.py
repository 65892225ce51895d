"""Which rows are at which node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta.datasets.data import Data
from gosta.errors import InputError, unknown
from gosta.runtime.arrays import Floats

Counts = NDArray[np.int64]


class Deal(NamedTuple):
    """The rows in the order of their nodes, in random order at each; and how many rows each node has."""

    order: Counts
    sizes: Counts

    def dealt(self, x: Floats) -> tuple[Floats, Counts]:
        """Rows in that order, and how many are at each node."""
        return x[self.order], self.sizes


def even(rows: int, nodes: int) -> Counts:
    """As many rows at each node, give or take one."""
    return np.full(nodes, rows // nodes) + (np.arange(nodes) < rows % nodes)


def zipf(rows: int, nodes: int) -> Counts:
    """Numbers of rows in proportion to 1, 1/2, 1/3 and so on, at least one: a few large sites, many small ones."""
    rest = rows - nodes
    wanted = np.cumsum(rest / np.arange(1, nodes + 1) / (1 / np.arange(1, nodes + 1)).sum())
    wanted[-1] = rest
    return 1 + np.diff(np.round(wanted), prepend=0).astype(np.int64)


TABLE: dict[str, Callable[[int, int], Counts]] = {"zipf": zipf, "even": even}


def by_chance(rows: int, nodes: int, how: str, seed: int) -> Deal:
    """Rows dealt at random, large and small nodes in random order too."""
    if how not in TABLE:
        raise unknown("deal", str(how), TABLE)
    _check(nodes, rows)
    rng = np.random.default_rng(seed)
    return Deal(rng.permutation(rows), rng.permutation(TABLE[how](rows, nodes)))


def by_column(data: Data, kept: NDArray[np.bool_], nodes: int | None, seed: int) -> Deal:
    """A node for each value of a column, or neighbouring values of it together in so many nodes."""
    codes, names = data.site_codes()
    codes = codes[kept]
    if nodes is not None:
        values = _numbers(data)[kept]
        _check(nodes, len(values))
        ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
        codes = (ranks * nodes // len(values)).astype(np.float64)
    elif len(names) < 2 or 2 * len(names) > len(codes):
        raise InputError(
            f"by = {data.by!r} has {len(names)} different values in {len(codes)} rows; choose a column that names "
            "sites, or give nodes=... (--nodes) to cut its values into so many groups"
        )
    mixed = np.random.default_rng(seed).permutation(len(codes))
    sizes = np.unique(codes, return_counts=True)[1]
    return Deal(mixed[np.argsort(codes[mixed], kind="stable")], sizes)


def _numbers(data: Data) -> Floats:
    assert data.by is not None
    try:
        return data.to_floats([data.by])[:, 0]
    except InputError:
        raise InputError(
            f"by = {data.by!r} holds text, which cannot be cut into nodes; leave nodes out: each value is a node then"
        ) from None


def _check(nodes: Any, rows: int) -> None:
    if isinstance(nodes, bool) or not isinstance(nodes, int | np.integer) or not 2 <= nodes <= rows:
        raise InputError(f"nodes = {nodes!r} must be a whole number from 2 to the number of rows, {rows}")
