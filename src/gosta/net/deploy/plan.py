"""A network that is to be made: what it computes, who is joined to whom, and what data there is already."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from gosta import graphs
from gosta.datasets import Data
from gosta.errors import InputError
from gosta.estimation.problem import Problem, rule_for, settle
from gosta.graphs.graph import Graph
from gosta.net.config import Task, check_protocol
from gosta.net.node import rows
from gosta.runtime.arrays import Floats
from gosta.statistics import user_file
from gosta.statistics.definition import Statistic
from gosta.statistics.intervals import with_mean_products

NODES, LEVEL = 8, 0.95  # of a network, and of its intervals, where nothing else is asked for
MOST_EDGES = 1_000_000


@dataclass(frozen=True)
class Goal:
    """What is to be computed, as a user gives it."""

    statistic: str = "auc"
    protocol: str = "tracking"
    options: Mapping[str, Any] | None = None
    interval: float | None = LEVEL
    insist: bool = False  # on the interval; otherwise there is none where the statistic cannot have one


@dataclass(frozen=True)
class Plan:
    """A network that is to be made."""

    task: Task
    graph: str
    nodes: int
    edges: tuple[tuple[int, int], ...]
    tables: tuple[Floats, ...] = ()  # each node's rows as the kernel needs them, where they are dealt
    copies: tuple[Path, ...] = ()  # files of which each node gets a copy
    no_interval: str = ""  # why there is none, where none was refused


def dealt(goal: Goal, data: Data, graph: str, nodes: int | None, deal: str | None, by: str | None, seed: int) -> Plan:
    """A network that gets data which is in one place now."""
    check_protocol(goal.protocol)
    _check_seed(seed)
    nodes = _size(graph, nodes, seed) if by is None else nodes
    statistic, options = user_file.load_statistic(goal.statistic), dict(goal.options or {})
    setting = settle(goal.protocol, data, statistic, graph, seed, options, nodes=nodes, deal=deal, by=by)
    problem = setting.problem
    rows.check_sizes(problem.x, problem.data)
    assert problem.sizes is not None

    def with_interval(level: float) -> None:
        wide = problem.with_interval(level)
        wide.check(rule_for(goal.protocol, wide.statistic))

    interval, why = _interval(goal, with_interval)
    task = Task(
        id=secrets.token_hex(8),
        statistic=_in_folder(goal.statistic),
        protocol=goal.protocol,
        interval=interval,
        options=problem.plain_options,
        encoded=problem.x.shape[1],
    )
    tables = tuple(np.split(problem.x, np.cumsum(problem.sizes)[:-1]))
    return Plan(task, setting.graph.name, problem.nodes, _edges(setting.graph), tables, _own_file(goal.statistic), why)


def apart(
    goal: Goal,
    graph: str,
    nodes: int | None,
    seed: int,
    columns: tuple[str, ...] = (),
    label: str | None = None,
    score: str | None = None,
    classes: tuple[str, ...] = (),
    drop_missing: bool = False,
) -> Plan:
    """A network whose sites bring their own data."""
    check_protocol(goal.protocol)
    _check_seed(seed)
    statistic, options = user_file.load_statistic(goal.statistic), dict(goal.options or {})
    statistic.options_by_part(options)
    if len(classes) < 2 and (classes or label is not None or statistic.sample_index is not None):
        raise InputError(
            f"{statistic.name} of sites' own data: a site may not have all classes; name them all, such as "
            "--classes benign,malignant"
        )
    trial = Problem(statistic, np.zeros((2, 1)), options, sizes=np.ones(2, dtype=np.int64))
    trial.check(rule_for(goal.protocol, statistic))

    def with_interval(level: float) -> None:
        if statistic.total:
            raise InputError(f"{statistic.name} is a count, which has no interval")
        wide = replace(trial, statistic=with_mean_products(statistic, 1), level=level)
        wide.check(rule_for(goal.protocol, wide.statistic))

    interval, why = _interval(goal, with_interval)
    network = graphs.load(graph, _size(graph, nodes, seed), seed)
    files = {name: Path(v) for name, v in options.items() if isinstance(v, str) and v and Path(v).is_file()}
    task = Task(
        id=secrets.token_hex(8),
        statistic=_in_folder(goal.statistic),
        protocol=goal.protocol,
        interval=interval,
        options=options | {name: file.name for name, file in files.items()},
        columns=columns,
        label=label,
        score=score,
        classes=classes,
        drop_missing=drop_missing,
    )
    _rehearse(statistic, options, task)
    copies = (*_own_file(goal.statistic), *files.values())
    return Plan(task, network.name, network.n, _edges(network), copies=copies, no_interval=why)


def _rehearse(statistic: Statistic, options: Mapping[str, Any], task: Task) -> None:
    """Encode made-up rows where the columns are known: what cannot work at any site is better said now."""
    names = task.columns or ((task.score,) if task.score is not None else ())
    if not names or not statistic.kernel.__module__.startswith("gosta."):  # users' own may want special numbers
        return
    size, label = 2 * len(names) + 2 * len(task.classes) + 2, task.label or "label"
    columns: dict[str, Any] = {name: (np.arange(size) % (k + 2) == 0).astype(float) for k, name in enumerate(names)}
    if task.classes:
        columns[label] = np.resize(np.array(task.classes, dtype=object), size)
    data = Data(
        "a site's table", columns, label if task.classes else None, declared_classes=task.classes, is_partial=True
    )
    data = data.select(task.columns or None, None, task.score)
    rows.check_each_alone(statistic, data, options, statistic.encode_rows(data, options))


def _interval(goal: Goal, check: Callable[[float], None]) -> tuple[float | None, str]:
    """The level of the intervals that nodes are to give; or none, and why."""
    if goal.interval is None:
        return None, ""
    try:
        check(goal.interval)
    except InputError as error:
        if goal.insist:
            raise
        return None, str(error)
    return goal.interval, ""


def _check_seed(seed: int) -> None:
    if seed < 0:
        raise InputError(f"seed = {seed} must be a whole number, not negative")


def _size(graph: str, nodes: int | None, seed: int) -> int:
    """How many nodes: as many as a file of edges has, where nothing else is asked for."""
    return nodes if nodes is not None else NODES if graph in graphs.GRAPHS else graphs.load(graph, seed=seed).n


def _edges(graph: Graph) -> tuple[tuple[int, int], ...]:
    if graph.weights is not None:
        raise InputError(f"graph = {graph.name!r} has weights; nodes call all neighbours as often, so leave them out")
    if graph.m > MOST_EDGES:
        raise InputError(f"graph = {graph.name!r} has {graph.m:,} edges; a network has at most {MOST_EDGES:,}")
    if graph.edges is None:
        return tuple(combinations(range(graph.n), 2))
    return tuple((a, b) for a, b in graph.edges.tolist())


def _own_file(statistic: str) -> tuple[Path, ...]:
    parts = user_file.split_reference(statistic)
    return () if parts is None else (parts[0],)


def _in_folder(statistic: str) -> str:
    """The same statistic for a node, which has the file beside its own."""
    parts = user_file.split_reference(statistic)
    return statistic if parts is None else f"{parts[0].name}:{parts[1]}"
