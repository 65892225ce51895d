"""A node's state at the start of an epoch, from its rows, its neighbours and the task."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from pathlib import Path

import numpy as np

from gosta.errors import InputError
from gosta.estimation.exchange import Site, Table
from gosta.estimation.problem import SAMPLE, Problem, rule_for
from gosta.net.config import NodeConfig, Task
from gosta.net.node.rows import read_rows, resolve_files, statistic_of
from gosta.protocols import Protocol
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import as_floats, as_tuple
from gosta.statistics.intervals import with_mean_products
from gosta.statistics.user_file import split_reference


class Source:
    """A node's rows and the rule by which it estimates; implements `EpochSource`."""

    def __init__(self, name: str, task: Task, x: Floats, neighbours: Collection[str], folder: Path) -> None:
        self.name = name
        self.own = problem_of(task, x, folder)
        self.protocol = protocol_of(task, self.own)
        self.fingerprint = fingerprint(task, folder)
        self.digest = _digest(x.tobytes(), self.fingerprint, *sorted(neighbours))
        self._table: Table | None = None

    def site(self) -> Site:
        """Return the node's state at the start of an epoch."""
        if self._table is None:
            self._table = Table(self.own)
        return Site(self.name, self.protocol, self._table, first_state(self._table, self.protocol))


def problem_of(task: Task, x: Floats, folder: Path) -> Problem:
    """Return the estimation problem over some rows."""
    statistic, options = statistic_of(task, folder), resolve_files(task.options, folder)
    plain = Problem(statistic, x, options, sizes=np.array([len(x)]))
    if task.confidence_level is None:
        return plain
    try:
        width = len(as_floats(statistic.kernel(x[0].tolist(), x[0].tolist(), **plain.parts["kernel"])))
    except Exception as error:  # a user's function can raise anything
        raise InputError(f"{statistic.name}: the kernel fails with {type(error).__name__}: {error}") from error
    return Problem(with_mean_products(statistic, width), x, options, sizes=plain.sizes, level=task.confidence_level)


def protocol_of(task: Task, problem: Problem) -> Protocol:
    """Return the protocol, after a check that it suits the problem."""
    rule = rule_for(task.protocol, problem.statistic)
    problem.check(rule)
    assert isinstance(rule, Protocol)
    return rule


def first_state(table: Table, protocol: Protocol) -> Floats:
    """Return the numbers of a node's states at the start of an epoch: estimates × fields."""
    if protocol.begins == "moments":
        given = table.own.by_node("moments")[0]
    else:
        local = table.own.statistic.local
        given = np.zeros(table.width if local is None else len(as_tuple(local((1.0,) * table.width))))
    return np.stack(protocol.init(given), axis=-1)


def fingerprint(task: Task, folder: Path) -> str:
    """Return a digest of the task that all nodes must agree on: see docs/wire.md."""
    own = split_reference(task.statistic)
    parts = {
        "classes": list(task.classes),
        "confidence_level": task.confidence_level,
        "options": task.options,
        "protocol": task.protocol,
        "sample": SAMPLE,
        "source": None if own is None else hashlib.sha256((folder / own[0]).read_bytes()).hexdigest(),
        "statistic": task.statistic if own is None else own[1],
    }
    return _digest(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode())


def read_source(config: NodeConfig, folder: Path) -> Source:
    """Read a node's data file and return its source."""
    x = read_rows(config.network, folder / config.node.data, folder)
    return Source(config.node.name, config.network, x, config.neighbours, folder)


def _digest(*parts: bytes | str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()[:16]
