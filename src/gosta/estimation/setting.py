"""A protocol that estimates a statistic on a network: the parts that depend on the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gosta import datasets, graphs
from gosta.errors import InputError
from gosta.estimation.carried import means_of
from gosta.estimation.estimand import Estimand, join_estimands
from gosta.estimation.placement import (
    Homophily,
    Placement,
    assign_alike,
    assign_at_random,
    assign_by_column,
)
from gosta.graphs import load_changing
from gosta.graphs.changing import ChangingGraph, is_changing, require_one
from gosta.graphs.graph import Graph, sizes_from
from gosta.graphs.tree import spanning_tree, with_tree
from gosta.protocols import DEFAULT, AnyProtocol, CollectingProtocol, Protocol
from gosta.protocols import find as find_protocol
from gosta.protocols.protocol import NodeData, Start, states_from
from gosta.runtime.arrays import Floats, Integers
from gosta.schedule import NO_FAULTS, Faults
from gosta.statistics.definition import Statistic, apply_to_rows
from gosta.statistics.joint import Chosen, JointStatistic, choose, encode
from gosta.statistics.objectives import Objective


@dataclass(frozen=True)
class Setting:
    """A protocol, what it estimates, where the rows are, and the network."""

    protocol: (
        AnyProtocol  # for a statistic of plain means, the protocol's variant that averages moments
    )
    estimand: Estimand  # with rows ordered by node
    placement: Placement
    graph: Graph  # the first one, where it changes
    faults: Faults = NO_FAULTS
    changing: ChangingGraph | None = (
        None  # the graphs in force, by iteration, where there are several
    )
    homophily: Homophily | None = None  # how alike neighbours are, where that was requested

    @property
    def drawn(self) -> Graph | ChangingGraph:
        """The graph, or the changing graphs by number of draws, from which edges are drawn."""
        return self.graph if self.changing is None else self.changing.times(self.protocol.draws)

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The graph, or all graphs where they change."""
        return (self.graph,) if self.changing is None else self.changing.graphs

    @property
    def graph_name(self) -> str:
        """Name of the graph; where it changes, the names of all and when they change."""
        return self.graph.name if self.changing is None else self.changing.name

    @property
    def gossip(self) -> Protocol:
        """The protocol, which must not be one that collects observations."""
        assert isinstance(self.protocol, Protocol)
        return self.protocol

    @property
    def mean_count(self) -> int:
        """Number of means that nodes estimate."""
        return (
            self.estimand.moment_count
            if self.protocol.averages_moments
            else self.estimand.mean_count
        )

    @property
    def state_count(self) -> int:
        """Number of states of a node: where rows are counted, one more than there are means."""
        return self.mean_count + self.protocol.counts_rows

    def means(self, readings: Floats) -> Floats:
        """Convert what nodes read, ... × states, to the means that they estimate."""
        return means_of(readings) if self.protocol.counts_rows else readings

    @cached_property
    def offset(self) -> Floats:
        """Offset of the moments: the lowest mean of a node, which all know in a simulation.

        It is empty where nodes average no moments.
        """
        if not self.protocol.averages_moments or not len(self.estimand.mean_row):
            return np.zeros(0)
        lowest: Floats = self.placement.node_means(self.estimand.x).min(axis=0)
        return lowest

    @cached_property
    def parents(self) -> Integers:
        """Parent of each node in the spanning tree that sums are passed on along.

        It is empty where there is none.
        """
        if not self.gossip.uses_tree:
            return np.zeros(0, dtype=np.int64)
        return spanning_tree(self.graph) if self.graph.parents is None else self.graph.parents

    @cached_property
    def target(self) -> Floats:
        """Exact value, 1 × p; for protocols that estimate row means those of each node, n × k."""
        if self.protocol.estimates_row_means:
            return self.estimand.row_values(self.estimand.row_means)
        return self.estimand.value[None]

    @cached_property
    def slopes(self) -> Floats:
        """Derivative of each value with respect to each kernel mean, at the exact means: p × k."""
        estimand, statistic, n = self.estimand, self.estimand.tracked, self.estimand.n
        if self.protocol.estimates_row_means or statistic.final is None:
            scale = n / (n - 1) if statistic.normalisation == "U" else 1.0
            is_total = statistic.total and not self.protocol.estimates_row_means
            return scale * (n * n / scale / 2 if is_total else 1.0) * np.eye(estimand.width)
        slopes: Floats = estimand.value_function.gradients(estimand.means)[0]
        if not np.isfinite(slopes).all():
            raise InputError(
                f"{statistic.name} has no derivative here; its error cannot be predicted"
            )
        return slopes

    def first_states(self) -> Floats:
        """Return the states of all nodes at the start: nodes × means × fields."""
        return states_from(self.gossip, self._start_values(self.gossip.start))

    def _start_values(self, start: Start) -> Floats:
        if start is Start.ZERO:
            return np.zeros((self.placement.nodes, self.state_count))
        if start is Start.MOMENTS:
            moments = self.placement.node_means(self.estimand.moments_about(self.offset))
            return (
                with_row_counts(moments, self.placement.rows)
                if self.gossip.counts_rows
                else moments
            )
        return self.placement.node_means(
            self.estimand.row_means if start is Start.ROW_MEAN else self.estimand.diagonal
        )

    def values(self, means: Floats) -> Floats:
        """Convert estimated means, (runs ×) nodes × k, to values, (runs ×) nodes × p.

        A node that has no value yet (a ratio 0/0) has 0, because protocols start from 0.
        """
        flat = means.reshape(-1, means.shape[-1])
        if self.protocol.averages_moments:
            flat = kernel_means(self.estimand.statistic, flat)
        is_row_mean, estimand = self.protocol.estimates_row_means, self.estimand
        values = estimand.row_values(means) if is_row_mean else estimand.value_function.values(flat)
        return np.where(np.isfinite(values), values, 0.0).reshape(*means.shape[:-1], -1)

    def local_values(self) -> Floats:
        """Return what each node computes from its own rows only: nodes × p; NaN: undefined."""
        columns = zip(self.estimand.parts, self.estimand.value_places, strict=True)
        values = np.full((self.placement.nodes, self.target.shape[1]), np.nan)
        for estimand, place in columns:
            sample = estimand.statistic.sample_index
            for node, x in enumerate(self.placement.split(estimand.x)):
                if len(x) > 1 and (sample is None or np.ptp(x[:, sample]) > 0):
                    at_node = estimand.over(x)
                    values[node, place] = at_node.value_function.values(at_node.means)[0]
        return values


def with_row_counts(means: Floats, rows: Integers) -> Floats:
    """Return sums over rows and numbers of rows from means at each node: nodes × states."""
    return np.column_stack([means, np.ones(len(means))]) * rows[:, None]


def kernel_means(statistic: Statistic, moments: Floats) -> Floats:
    """Convert means of moments to means of the kernel over all pairs."""
    assert statistic.moments is not None
    return apply_to_rows(statistic.moments.kernel_mean, moments)


def protocol_for(
    protocol: str | AnyProtocol, statistic: Statistic, has_interval: bool, has_tables: bool
) -> AnyProtocol:
    """Return the protocol, or its rule for moments or tables.

    A protocol that cannot be used raises `InputError`.
    """
    statistic.require_mean()
    chosen = find_protocol(protocol)
    if isinstance(statistic, Objective) and isinstance(chosen, Protocol):
        chosen = chosen.for_objectives or chosen
    if chosen.minimises is not isinstance(statistic, Objective):
        kind = "minimises objectives" if chosen.minimises else "estimates statistics"
        what = "an objective" if isinstance(statistic, Objective) else "a statistic"
        name = DEFAULT if chosen.minimises else "dual-averaging"
        raise InputError(
            f"protocol {chosen.name} {kind}, and {statistic.name} is {what}", remedy=f"use {name}"
        )
    if isinstance(statistic, JointStatistic) and chosen.estimates_row_means:
        raise InputError(
            f"protocol {chosen.name} estimates the mean of each row, of one statistic; use "
            "carried-means"
        )
    if statistic.is_per_row and chosen.estimates_row_means:
        return chosen
    if isinstance(chosen, Protocol) and statistic.moments is not None and not has_interval:
        chosen = chosen.rule_for(NodeData.MOMENTS)
    if isinstance(chosen, Protocol) and (has_tables or has_interval or statistic.local is not None):
        chosen = chosen.rule_for(NodeData.TABLES)
    if (statistic.local is not None or has_interval) and not chosen.needs_known:
        subject = "an interval requires" if has_interval else f"{statistic.name} is a function of"
        raise InputError(
            f"{subject} each row's own mean, which the protocol {chosen.name} does not estimate; "
            "use carried-means or tracking"
        )
    if chosen.averages_moments and statistic.moments is None:
        reason = f"averages moments, of which {statistic.name} is no function"
        raise InputError(
            f"protocol {chosen.name} {reason}; use a protocol whose init starts from zero or held"
        )
    if has_tables and not chosen.supports_tables:
        raise InputError(
            f"protocol {chosen.name} supports one row per node only; for several rows per node use "
            "carried-means, gosta-async or averaging, or let meet of your own protocol name "
            "row_share (with one visitor)"
        )
    return chosen


def make_setting(
    protocol: str | AnyProtocol,
    data: Any,
    statistic: Chosen,
    graph: Any,
    seed: int,
    options: Mapping[str, Any],
    *,
    columns: Any = None,
    label: Any = None,
    score: Any = None,
    time: Any = None,
    event: Any = None,
    drop_missing: bool = False,
    nodes: int | None = None,
    deal: str | None = None,
    by: Any = None,
    interval: float | None = None,
    homophily: float | None = None,
    faults: Faults = NO_FAULTS,
    may_change: bool = False,
) -> Setting:
    """Make a setting from the arguments of `gosta.simulate`.

    Only simulations have graphs that change.
    """
    members = choose(statistic)
    table = datasets.load(data).select(columns, label, score, drop_missing, time, event)
    _check_placement(nodes, deal, by, homophily)
    if by is not None:
        table = table.with_sites(by, exclude=nodes is None and homophily is None)
    x, kept, widths = encode(members, table, options)
    order, placement = np.arange(len(x)), Placement(len(x))
    if by is not None and (homophily is None or nodes is not None):
        order, placement = assign_by_column(table, kept, nodes, seed)
    elif by is None and nodes is not None:
        order, placement = assign_at_random(len(x), nodes, deal or "zipf", seed)
    if not may_change:
        require_one(graph)
    with sizes_from("rows" if nodes is None else "nodes", most=len(x) if by is None else 0):
        network, changing = _load_graphs(graph, placement, seed)
    alike = None
    if homophily is not None:
        order, placement, alike = assign_alike(
            table, kept, order, placement, network, float(homophily), seed
        )
    rows = x if by is None and nodes is None else x[order]
    estimand = join_estimands(members, widths, rows, options, table.name).with_interval(interval)
    chosen = protocol_for(protocol, estimand.statistic, interval is not None, placement.has_tables)
    if changing is not None and chosen.uses_tree:
        raise InputError(
            f"protocol {chosen.name} passes on sums along a tree of one graph, and "
            f"{changing.name} changes"
        )
    if faults and isinstance(chosen, CollectingProtocol) and chosen.has_server:
        raise InputError(
            f"protocol {chosen.name} has a server that reaches every node; faults are for exchanges"
        )
    if isinstance(chosen, Protocol) and chosen.uses_tree:
        network = with_tree(network)
    return Setting(chosen, estimand, placement, network, faults, changing, alike)


def _load_graphs(graph: Any, placement: Placement, seed: int) -> tuple[Graph, ChangingGraph | None]:
    """Return the graph, the first one where it changes, and all of them where it does.

    Rows of a site belong to the node of its name.
    """
    if is_changing(graph):
        changing = load_changing(graph, placement.nodes, seed).in_order_of(placement.names)
        return changing.graphs[0], changing
    network = graphs.load(graph, n=placement.nodes, seed=seed)
    if isinstance(graph, Graph):
        network.check()
    return network.in_order_of(placement.names), None


def _check_placement(nodes: Any, deal: Any, by: Any, homophily: Any) -> None:
    """Raise `InputError` where options of the placement of rows exclude each other."""
    if homophily is not None:
        if (
            isinstance(homophily, bool)
            or not isinstance(homophily, int | float | np.floating)
            or not 0 <= homophily <= 1
        ):
            raise InputError(f"homophily = {homophily!r} must be a share of the nodes, from 0 to 1")
        if by is None:
            raise InputError(
                f"homophily = {homophily!r} requires by (--by), the column in which neighbours are "
                "alike"
            )
    if deal is not None and (by is not None or nodes is None):
        raise InputError(
            f"deal = {deal!r} requires nodes (--nodes) and excludes by: it places rows at random"
        )
