"""Which rows are at which node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gosta.datasets.columns import value_text
from gosta.datasets.data import Data
from gosta.errors import InputError, unknown
from gosta.graphs.graph import Graph
from gosta.runtime.arrays import Booleans, Floats, Integers
from gosta.runtime.extras import require

# Rounds of averaging places with neighbours' places: on random graphs ten give 90 % of what a
# thousand do.
SMOOTHING_STEPS = 100


@dataclass(frozen=True)
class Placement:
    """Distribution of rows, which are ordered by node, over nodes."""

    nodes: int
    counts: tuple[int, ...] | None = None  # number of rows at each node; None: one row at each
    names: tuple[str, ...] = ()  # of the nodes, where each is a value of a column

    @classmethod
    def of(cls, counts: Integers, names: Sequence[str] = ()) -> Placement:
        """Return the placement with so many rows at each node."""
        return cls(len(counts), tuple(counts.tolist()), tuple(names))

    @property
    def has_tables(self) -> bool:
        """Whether nodes hold tables of rows, not one row each."""
        return self.counts is not None

    @property
    def has_several_rows(self) -> bool:
        """Whether a node holds more than one row."""
        return self.counts is not None and max(self.counts) > 1

    @cached_property
    def rows(self) -> Integers:
        """Number of rows at each node."""
        return (
            np.ones(self.nodes, dtype=np.int64)
            if self.counts is None
            else np.array(self.counts, dtype=np.int64)
        )

    @cached_property
    def offsets(self) -> Integers:
        """Position of each node's first row, and the number of rows."""
        return np.concatenate([[0], np.cumsum(self.rows)])

    def split(self, x: Floats) -> list[Floats]:
        """Return each node's rows."""
        return np.split(x, self.offsets[1:-1])

    def node_means(self, values: Floats) -> Floats:
        """Return the mean of per-row values over each node's rows."""
        if self.counts is None:
            return values
        return np.add.reduceat(values, self.offsets[:-1]) / self.rows[:, None]


def even(rows: int, nodes: int) -> Integers:
    """Return equal numbers of rows, give or take one."""
    return np.full(nodes, rows // nodes) + (np.arange(nodes) < rows % nodes)


def zipf(rows: int, nodes: int) -> Integers:
    """Return numbers of rows proportional to 1, 1/2, 1/3, ..., at least one.

    There are a few large sites and many small ones.
    """
    rest = rows - nodes
    cumulated = np.cumsum(rest / np.arange(1, nodes + 1) / (1 / np.arange(1, nodes + 1)).sum())
    cumulated[-1] = rest
    return 1 + np.diff(np.round(cumulated), prepend=0).astype(np.int64)


class Homophily(NamedTuple):
    """How alike neighbours are in a column."""

    # Of the nodes that are where the column's order puts them; the others are at random places.
    share: float
    assortativity: float  # correlation of the column between neighbours; means over nodes' rows


DEALS: dict[str, Callable[[int, int], Integers]] = {"zipf": zipf, "even": even}


def assign_at_random(rows: int, nodes: int, deal: str, seed: int) -> tuple[Integers, Placement]:
    """Assign rows to nodes at random: the order of the rows by node, and the placement.

    Which nodes are large is random too.
    """
    if deal not in DEALS:
        raise unknown("deal", str(deal), DEALS)
    _check(nodes, rows)
    rng = np.random.default_rng(seed)
    return rng.permutation(rows), Placement.of(rng.permutation(DEALS[deal](rows, nodes)))


def assign_by_column(
    data: Data, kept: Booleans, nodes: int | None, seed: int
) -> tuple[Integers, Placement]:
    """Assign rows with equal values of a column to one node.

    With `nodes`, the sorted values are cut into as many groups.
    """
    codes, names = data.site_codes()
    codes = codes[kept]
    if nodes is not None:
        values = _numeric_column(data)[kept]
        _check(nodes, len(values))
        ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
        codes = (ranks * nodes // len(values)).astype(np.float64)
    elif len(names) < 2:
        raise InputError(
            f"by = {data.by!r} has one value only, {', '.join(map(str, names))}; two sites are "
            "needed"
        )
    elif 2 * len(names) > len(codes):
        cut = (
            ", or give nodes=... (--nodes) to cut its values into so many groups"
            if _is_numeric(data)
            else ""
        )
        raise InputError(
            f"by = {data.by!r} has {len(names)} different values in {len(codes)} rows; "
            f"choose a column that names sites{cut}"
        )
    shuffled = np.random.default_rng(seed).permutation(len(codes))
    present, counts = np.unique(codes, return_counts=True)
    sites = [] if nodes is not None else [value_text(names[int(code)]) for code in present]
    return shuffled[np.argsort(codes[shuffled], kind="stable")], Placement.of(counts, sites)


def assign_alike(
    data: Data,
    kept: Booleans,
    order: Integers,
    placement: Placement,
    graph: Graph,
    share: float,
    seed: int,
) -> tuple[Integers, Placement, Homophily]:
    """Assign rows, or groups of rows at one node, so that neighbours are alike in a column.

    A share of the nodes, drawn at random, holds what it would if all were sorted by the column
    along the network; what is left is placed at random. With a share of 0 all is at random.

    Parameters
    ----------
    order, placement
        The rows, group after group, and the size of each group.
    """
    values = _column(data)[kept][order]
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
    means, nodes = placement.node_means(values[:, None])[:, 0], placement.nodes
    ranks = np.arange(nodes)
    moved = np.flatnonzero(rng.random(nodes) >= share)
    ranks[moved] = rng.permutation(ranks[moved])
    groups = np.empty(nodes, dtype=np.int64)
    groups[neighbouring_order(graph)] = np.argsort(means, kind="stable")[ranks]
    homophily = Homophily(share, assortativity(graph, means[groups]))
    if not placement.has_tables:
        return order[groups], placement, homophily
    parts = np.split(order, placement.offsets[1:-1])
    return (
        np.concatenate([parts[group] for group in groups]),
        Placement.of(placement.rows[groups]),
        homophily,
    )


def _column(data: Data) -> Floats:
    """Return the numbers of the column `by`.

    Where it holds text, they are the positions of its values in their order.
    """
    assert data.by is not None
    try:
        return data.to_floats([data.by])[:, 0]
    except InputError:
        return data.site_codes()[0]


def _numeric_column(data: Data) -> Floats:
    assert data.by is not None
    try:
        return data.to_floats([data.by])[:, 0]
    except InputError:
        raise InputError(
            f"by = {data.by!r} holds text, which cannot be cut into groups; leave out nodes: each "
            "value is a node then"
        ) from None


def _is_numeric(data: Data) -> bool:
    try:
        _numeric_column(data)
    except InputError:
        return False
    return True


def _check(nodes: object, rows: int) -> None:
    if isinstance(nodes, bool) or not isinstance(nodes, int | np.integer) or not 2 <= nodes <= rows:
        raise InputError(
            f"nodes = {nodes!r} must be a whole number from 2 to the number of rows, {rows}"
        )


def neighbouring_order(graph: Graph) -> Integers:
    """Return the nodes in an order in which neighbours are near each other.

    It begins with the order of Cuthill and McKee, which goes from neighbour to neighbour. Then each
    node takes the mean of its own place and its neighbours' places, again and again, which tends to
    the slowest mode of a random walk.
    """
    if graph.edges is None:
        return np.arange(graph.n)
    sparse = require("scipy.sparse", "sim", "homophily")
    csgraph = require("scipy.sparse.csgraph", "sim", "homophily")
    left, right = np.concatenate([graph.edges, graph.edges[:, ::-1]]).T
    neighbours = sparse.csr_array((np.ones(len(left)), (left, right)), shape=(graph.n, graph.n))
    start = csgraph.reverse_cuthill_mckee(sparse.csr_matrix(neighbours), symmetric_mode=True)
    places, degrees = np.empty(graph.n), graph.degrees
    places[start] = np.arange(graph.n)
    for _ in range(SMOOTHING_STEPS):
        places -= (degrees * places).sum() / degrees.sum()
        places = (places + neighbours @ places / degrees) / 2
    return np.argsort(places, kind="stable")


def assortativity(graph: Graph, values: Floats) -> float:
    """Return the correlation between a number of a node and that of its neighbour, over all edges.

    It is 1 where neighbours have equal numbers, about 0 where these are placed at random, and 0
    where all numbers are equal.

    >>> from gosta.graphs import path
    >>> round(assortativity(path(4), np.array([1.0, 2.0, 3.0, 4.0])), 3)
    0.455
    """
    if np.ptp(values) == 0:
        return 0.0
    if graph.edges is None:
        return -1.0 / (graph.n - 1)
    ends = values[graph.edges] - np.average(values, weights=graph.degrees)
    return float(2.0 * (ends[:, 0] * ends[:, 1]).sum() / (ends**2).sum())
