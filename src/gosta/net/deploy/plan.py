"""Planning a network: what it computes, its edges, and the rows of its nodes if they are known."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from gosta import graphs
from gosta.datasets import Data
from gosta.datasets.dictionary import Column
from gosta.datasets.roles import declared_roles
from gosta.errors import InputError
from gosta.estimation.placement import Placement, assign_at_random, assign_by_column
from gosta.estimation.setting import make_setting
from gosta.graphs.graph import Graph, sizes_from
from gosta.models.noisy import NoisyLayout
from gosta.net.config import MIN_SITES, Task, check_protocol, is_for_one_row_each, protocol_of_nodes
from gosta.net.deploy.fit_plan import FitGoal, declare_fit
from gosta.net.deploy.shared_settings import find_shared_settings, table_to_csv
from gosta.net.node import rows
from gosta.net.node.rows import layout_of, sums_of
from gosta.private.noise import choose_noise
from gosta.private.settings import PrivateSettings, check_settings
from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.layout import Layout
from gosta.sketches.layout_builder import check_columns
from gosta.sketches.sums import Sums
from gosta.statistics import references
from gosta.statistics.definition import Statistic
from gosta.statistics.joint import Member, check_options, choose, why_no_interval
from gosta.statistics.references import parse_references

DEFAULT_NODES = 8
DEFAULT_LEVEL = 0.95  # of the intervals
MAX_EDGES = 1_000_000  # more would not fit into a network.toml


@dataclass(frozen=True)
class Goal:
    """The statistic and protocol that the user chose."""

    statistic: str = "auc"
    protocol: str = "tracking"
    options: Mapping[str, Any] | None = None
    confidence_level: float | None = DEFAULT_LEVEL
    interval_required: bool = False  # if not, a statistic that cannot have an interval gets none
    until: float = 0.0  # relative error at which nodes initiate no more exchanges; 0: never

    def __post_init__(self) -> None:
        titles = [one.title for one in parse_references(self.statistic)]
        object.__setattr__(self, "statistic", ",".join(titles))  # no other names of statistics


class Roles(NamedTuple):
    """Which columns of sites' files are read, and what their classes are."""

    columns: tuple[str, ...] = ()
    label: str | None = None
    score: str | tuple[str, ...] | None = None
    classes: tuple[str | int | float, ...] = ()
    drop_missing: bool = False
    time: str | None = None
    event: str | None = None
    dictionary: Mapping[str, Column] = {}


NO_ROLES = Roles()


@dataclass(frozen=True)
class Plan:
    """Everything that has to be known of a network to make its folders."""

    task: Task
    graph: str
    nodes: int
    edges: tuple[tuple[int, int], ...]
    data_files: tuple[str, ...] = ()  # each node's data.csv; empty: sites bring their own
    counts: tuple[int, ...] = ()  # rows of each node that count; empty: not known
    shared_files: tuple[Path, ...] = ()  # each node gets a copy
    no_interval: str = ""  # why there are no intervals though the user did not rule them out
    # How sites' files are read: settings of [node].
    reading: Mapping[str, str] = field(default_factory=dict)
    sites: tuple[str, ...] = ()  # names of nodes' sites, where they are values of a column
    # Ranges of columns that were rounded outwards from those of the rows.
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    rounded_options: tuple[str, ...] = ()  # that follow from the rows


def for_data(
    goal: Goal,
    data: Data,
    graph: str | None,
    nodes: int | None,
    deal: str | None,
    by: str | None,
    seed: int,
) -> Plan:
    """Plan a network whose nodes get the rows of a data set."""
    _, options = _load_goal(goal, seed)
    nodes = _count_nodes(graph, nodes, seed) if by is None else nodes
    # Rows and edges do not depend on the protocol, which is checked below: nodes grow a tree
    # by themselves.
    setting = make_setting(
        "tracking", data, goal.statistic, graph, seed, options, nodes=nodes, deal=deal, by=by
    )
    estimand, placement = setting.estimand, setting.placement
    rows.check_values(estimand.x, estimand.data)
    protocol_of_nodes(goal.protocol, estimand.statistic, has_interval=False)
    _check_row_counts(goal.protocol, placement)

    def with_interval(level: float) -> None:
        estimand.with_interval(level)
        protocol_of_nodes(goal.protocol, estimand.statistic, has_interval=True)

    level, no_interval = _choose_level(goal, with_interval, estimand.no_intervals)
    name, files = _place_statistic(goal.statistic)
    task = Task(
        secrets.token_hex(8),
        name,
        goal.protocol,
        level,
        estimand.json_options,
        encoded_columns=estimand.row_widths if len(estimand.parts) > 1 else estimand.x.shape[1],
        until=goal.until,
    )
    node_rows = placement.split(estimand.x)
    return Plan(
        task,
        setting.graph.name,
        placement.nodes,
        edges_of(setting.graph),
        data_files=tuple(map(_rows_to_csv, node_rows)),
        counts=tuple(map(len, node_rows)),
        shared_files=files,
        no_interval=no_interval,
        sites=placement.names,
    )


def for_sites(
    goal: Goal, graph: str | None, nodes: int | None, seed: int, roles: Roles = NO_ROLES
) -> Plan:
    """Plan a network whose sites bring their own data."""
    _check_classes(roles)
    chosen, options = _load_goal(goal, seed)
    check_options(chosen, options)
    statistics = [member.statistic for member in chosen]
    for statistic in statistics:
        has_classes = bool(roles.classes) or roles.label is not None
        if len(roles.classes) < 2 and (has_classes or statistic.sample_index is not None):
            raise InputError(
                f"{statistic.name} of sites' own data needs the classes of all sites, as one site "
                "may lack some: --classes benign,malignant"
            )
        protocol_of_nodes(goal.protocol, statistic, has_interval=False)
    obstacles = [why_no_interval(statistic) for statistic in statistics]

    def with_interval(_level: float) -> None:
        if all(obstacles):
            raise InputError("; ".join(obstacles))
        able = statistics[obstacles.index("")]
        protocol_of_nodes(goal.protocol, able, has_interval=True)

    level, no_interval = _choose_level(goal, with_interval, obstacles)
    with sizes_from("nodes"):
        network = graphs.load(graph, _count_nodes(graph, nodes, seed), seed)
    name, code = _place_statistic(goal.statistic)
    files = {
        option: Path(value)
        for option, value in options.items()
        if isinstance(value, str) and value and Path(value).is_file()
    }
    settings = options | {option: file.name for option, file in files.items()}
    task = Task(secrets.token_hex(8), name, goal.protocol, level, settings, until=goal.until)
    task = replace(task, **roles._asdict())
    for member in chosen:
        own = replace(task, columns=member.columns, score=None) if member.columns else task
        _check_encoding(member.statistic, member.statistic.own_options(options), own)
    return Plan(
        task,
        network.name,
        network.n,
        edges_of(network),
        shared_files=(*code, *files.values()),
        no_interval=no_interval,
    )


def for_private(
    goal: Goal,
    settings: PrivateSettings,
    graph: str | None,
    nodes: int | None,
    seed: int,
    roles: Roles = NO_ROLES,
    data: Data | None = None,
    deal: str | None = None,
    by: str | None = None,
) -> Plan:
    """Plan a network of private sums: of sites' own data, or of the rows of a data set."""
    if ".py:" in goal.statistic:
        raise InputError(
            f"statistic = {goal.statistic!r}: no sums are known for kernels of your own; leave out "
            "--private if rows may leave the sites, or use a statistic with a sketch "
            "(docs/reference/statistics.md)"
        )
    known_strata = {column: levels for column, levels in settings.strata.items() if levels}
    for column in settings.strata:
        if data is None and column not in known_strata:
            raise InputError(
                f"strata = {column!r} needs the values of all sites: --strata {column}=a,b"
            )
    _check_classes(roles)
    check_settings(replace(settings, strata=known_strata))
    task = Task(
        secrets.token_hex(8),
        goal.statistic,
        confidence_level=goal.confidence_level,
        options=dict(goal.options or {}),
        private=settings,
        **roles._asdict(),
    )
    shared = None if data is None else find_shared_settings(task, data)
    task = task if shared is None else shared.task
    layout = layout_of(task)
    task = _without_unused_ranges(task, layout)
    assert task.private is not None
    check_columns(layout, task.private)
    made = _for_sums(
        task, layout, graph, nodes, seed, None if shared is None else shared.data, deal, by
    )
    if shared is None:
        return made
    return dataclasses.replace(made, ranges=shared.ranges, rounded_options=shared.rounded_options)


def for_fit(
    goal: FitGoal,
    settings: PrivateSettings,
    graph: str | None,
    nodes: int | None,
    seed: int,
    roles: Roles = NO_ROLES,
    data: Data | None = None,
    deal: str | None = None,
    by: str | None = None,
) -> Plan:
    """Plan a network that fits a model to sites' own data, or to the rows of a data set."""
    task, ranges = declare_fit(
        goal, settings, roles.dictionary, roles.classes, roles.drop_missing, data
    )
    made = _for_sums(task, sums_of(task), graph, nodes, seed, data, deal, by)
    return dataclasses.replace(made, ranges=ranges)


def _for_sums(
    task: Task,
    layout: Sums,
    graph: str | None,
    nodes: int | None,
    seed: int,
    data: Data | None,
    deal: str | None,
    by: str | None,
) -> Plan:
    """Plan a network of private sums, of which all is declared."""
    assert task.private is not None
    nodes = nodes if by is not None else _count_nodes(graph, nodes, seed)
    files: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    sites: tuple[str, ...] = ()
    if data is not None:
        places, sites = _place(layout, data, nodes, deal, by, seed)
        files = tuple(table_to_csv(data, layout.columns, place) for place in places)
        counts = tuple(map(len, places))
        nodes = len(places)
        if isinstance(layout, NoisyLayout):
            layout.require_rows(sum(counts))
    assert nodes is not None
    if nodes < MIN_SITES:
        why = f"private sums need at least {MIN_SITES} sites, since of two each learns the other's"
        raise InputError(f"nodes = {nodes}: {why}")
    choose_noise(task.private, layout, nodes)
    with sizes_from("nodes", most=None if by is None else 0):
        network = graphs.load(graph, nodes, seed).in_order_of(sites)
    return Plan(
        task,
        network.name,
        network.n,
        edges_of(network),
        data_files=files,
        counts=counts,
        sites=sites,
    )


def with_dictionary(
    dictionary: Mapping[str, Column], roles: Roles, settings: PrivateSettings | None
) -> tuple[Roles, PrivateSettings | None]:
    """Return roles and settings in which the dictionary says what the user did not say."""
    label = dictionary.get(roles.label or "")
    classes = roles.classes or (() if label is None else label.classes)
    roles = roles._replace(classes=classes, dictionary=dictionary)
    if settings is None:
        return roles, None
    ranges = {
        name: column.range
        for name, column in dictionary.items()
        if column.range is not None and name != (roles.event or "event")
    }
    strata = {
        name: levels or (dictionary[name].classes if name in dictionary else ())
        for name, levels in settings.strata.items()
    }
    return roles, replace(settings, ranges={**ranges, **settings.ranges}, strata=strata)


def _without_unused_ranges(task: Task, layout: Layout) -> Task:
    """Return a task without ranges of columns that are only described in its dictionary."""
    assert task.private is not None
    used = {axis.column for sketch in layout.sketches for axis in sketch.axes}
    ranges = {
        name: ends
        for name, ends in task.private.ranges.items()
        if name in used or name not in task.dictionary
    }
    return replace(task, private=replace(task.private, ranges=ranges))


def _rows_to_csv(x: Floats) -> str:
    """Return rows of numbers as CSV, each number to its last bit."""
    names = ",".join(rows.encoded_names(x.shape[1]))
    return "\n".join([names, *(",".join(map(repr, row)) for row in x.tolist()), ""])


def _check_row_counts(protocol: str, placement: Placement) -> None:
    """Raise `InputError` if nodes would have several rows and the protocol is for one at each."""
    rows, nodes = int(placement.rows.sum()), placement.nodes
    if rows > nodes and is_for_one_row_each(protocol):
        raise InputError(
            f"nodes = {nodes}: protocol = {protocol!r} is for exactly one row at each node, and "
            f"there are {rows:,} rows; give --nodes {rows}, take fewer rows with --n, or use "
            "tracking"
        )


def _check_classes(roles: Roles) -> None:
    if len(set(roles.classes)) < len(roles.classes):
        raise InputError(f"classes = {','.join(map(str, roles.classes))} must name each class once")


def _place(
    layout: Sums, data: Data, nodes: int | None, deal: str | None, by: str | None, seed: int
) -> tuple[list[Integers], tuple[str, ...]]:
    """Return which rows each node has, and the nodes' names where these are values of a column."""
    if by is not None:
        if deal is not None:
            raise InputError(f"deal = {deal!r} excludes by: it places rows at random")
        data = data.with_sites(by, exclude=nodes is None)
    kept = layout.complete_rows(data)
    if by is not None:
        order, placement = assign_by_column(data, kept, nodes, seed)
    else:
        order, placement = assign_at_random(
            int(kept.sum()), nodes or DEFAULT_NODES, deal or "zipf", seed
        )
    return np.split(np.flatnonzero(kept)[order], placement.offsets[1:-1]), placement.names


def _check_encoding(statistic: Statistic, options: Mapping[str, Any], task: Task) -> None:
    """Encode made-up rows where the columns are known, to report what would fail at every site."""
    names = task.columns or tuple(declared_roles(task.score, task.time, task.event).values())
    if not names or not statistic.is_built_in:  # a user's kernel may need special numbers
        return
    size = 2 * len(names) + 2 * len(task.classes) + 2
    label = task.label or "label"
    columns: dict[str, Any] = {
        name: (np.arange(size) % (k + 2) == 0).astype(float) for k, name in enumerate(names)
    }
    if statistic.weights:
        columns.setdefault(statistic.weights, np.ones(size))
    if task.classes:
        columns[label] = np.resize(np.array(task.classes, dtype=object), size)
    name = label if task.classes else None
    data = Data("a site's data", columns, name, declared_classes=task.classes, is_partial=True)
    score = None if task.columns else task.score
    data = data.select(task.columns or None, None, score, time=task.time, event=task.event)
    rows.check_row_independence(statistic, data, options, statistic.encode_rows(data, options))


def _choose_level(
    goal: Goal, check: Callable[[float], None], obstacles: Sequence[str] = ()
) -> tuple[float | None, str]:
    """Return the confidence level of the nodes' intervals, and why some or all have none."""
    if goal.confidence_level is None:
        return None, ""
    try:
        check(goal.confidence_level)
    except InputError as error:
        if goal.interval_required:
            raise
        return None, str(error)
    return goal.confidence_level, "; ".join(filter(None, obstacles))


def _load_goal(goal: Goal, seed: int) -> tuple[tuple[Member, ...], dict[str, Any]]:
    check_protocol(goal.protocol)
    if seed < 0:
        raise InputError(f"seed = {seed} must be a whole number, 0 or more")
    return choose(goal.statistic), dict(goal.options or {})


def _count_nodes(graph: str | None, nodes: int | None, seed: int) -> int:
    """Return how many nodes there are: by default as many as an edge-list file has."""
    if nodes is not None:
        return nodes
    if graph is None or graphs.is_family(graph):
        return DEFAULT_NODES
    return graphs.load(graph, seed=seed).n


def edges_of(graph: Graph) -> tuple[tuple[int, int], ...]:
    """Return the pairs of neighbours; raise `InputError` if nodes cannot run on the graph."""
    if graph.weights is not None:
        raise InputError(
            f"graph = {graph.name!r} has weights; nodes choose all neighbours equally often: leave "
            "them out"
        )
    if graph.m > MAX_EDGES:
        raise InputError(
            f"graph = {graph.name!r} has {graph.m:,} edges; a network has at most {MAX_EDGES:,}"
        )
    if graph.edges is None:
        return tuple(combinations(range(graph.n), 2))
    return tuple((a, b) for a, b in graph.edges.tolist())


def _place_statistic(statistic: str) -> tuple[str, tuple[Path, ...]]:
    """Return the statistics' names in node.toml, and the files of a user's own ones."""
    titles = []
    files = dict[Path, None]()
    for request in parse_references(statistic):
        reference = references.split_reference(request.name)
        if reference is None:
            titles.append(request.title)
            continue
        file, name = reference
        files[file] = None
        columns = ["+".join(request.columns)] if request.columns else []
        titles.append(":".join([file.name, name, *columns]))
    if len({file.name for file in files}) < len(files):
        raise InputError(f"statistic = {statistic!r}: two files have the same name; rename one")
    return ",".join(titles), tuple(files)
