"""What is to be estimated, by which protocol, on which network; and the truth."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gosta import compiled, datasets, graphs
from gosta.datasets.data import Floats
from gosta.errors import InputError
from gosta.graphs.graph import Graph
from gosta.protocols import Collecting, Protocol
from gosta.protocols import find as find_protocol
from gosta.statistics import find, pairs
from gosta.statistics.definition import Statistic, as_tuple
from gosta.statistics.exact import finish, finite, row_means, row_sums


@dataclass(frozen=True)
class Problem:
    """A statistic over encoded rows, one row a node."""

    statistic: Statistic
    x: Floats
    options: Mapping[str, Any] = field(default_factory=dict)
    data: str = ""

    @property
    def n(self) -> int:
        """How many rows, and nodes."""
        return len(self.x)

    @cached_property
    def parts(self) -> dict[str, dict[str, Any]]:
        """The options, by the part of the statistic they belong to."""
        return self.statistic.split(self.options)

    @property
    def plain_options(self) -> dict[str, Any]:
        """The options of kernel and final, which are all that a resumed run needs, as JSON can hold them."""
        named = self.parts["kernel"] | self.parts.get("final", {})
        return {
            k: named[k].item() if isinstance(named[k], np.generic) else named[k] for k in self.options if k in named
        }

    @property
    def content(self) -> str:
        """What the statistic computes, as a name; empty where that cannot be told."""
        try:
            return compiled.fingerprint(self.statistic.kernel, self.statistic.final)[:16]
        except compiled.UnknowableError:
            return ""

    @cached_property
    def example(self) -> Any:
        """What the kernel gives."""
        return pairs.check_kernel(self.statistic, self.x, self.parts["kernel"])

    @property
    def width(self) -> int:
        """How many numbers the kernel gives."""
        return len(as_tuple(self.example))

    @cached_property
    def row_means(self) -> Floats:
        """The mean kernel value of each row with all rows, exactly: n × k."""
        return row_means(row_sums(self.statistic, self.x, self.parts["kernel"]), "V")

    @cached_property
    def diagonal(self) -> Floats:
        """The kernel of each row with itself: n × k."""
        try:
            return pairs.diagonal(self.statistic, self.x, self.parts["kernel"])
        except InputError as error:
            raise InputError(
                f"{error}; every node begins with its own row as visitor, so give equal rows a value"
            ) from None

    def targets(self, protocol: Protocol | Collecting) -> Floats:
        """The exact value, 1 × p; for protocols that estimate row means those of each node, n × k."""
        if protocol.of_rows:
            return self._values(self.row_means, of_rows=True)
        target = self._values(self.means)
        finite(self.statistic, self.means, target[0])
        return target

    @cached_property
    def means(self) -> Floats:
        """The mean kernel values over all pairs of rows, exactly: 1 × k."""
        return np.array([[column.mean() for column in self.row_means.T]])

    def slopes(self, protocol: Protocol | Collecting) -> Floats:
        """How fast each value changes with each kernel mean, at the exact means: p × k.

        Values are straight functions of kernel means unless a `final`, such as a ratio, bends them.
        """
        n, statistic = self.n, self.statistic
        if protocol.of_rows or statistic.final is None:
            scale = n / (n - 1) if statistic.normalisation == "U" else 1.0
            pairs_counted = n * n / scale / 2 if statistic.total and not protocol.of_rows else 1.0
            return scale * pairs_counted * np.eye(self.width)
        steps = np.diag(np.maximum(np.abs(self.means[0]), np.abs(self.means).max() * 1e-3) * 6e-6 + 1e-300)
        up, down = self._values(self.means + steps), self._values(self.means - steps)
        slopes: Floats = ((up - down) / (2 * steps.diagonal()[:, None])).T
        finite(statistic, self.means, slopes.ravel())
        return slopes

    def scatter(self, slopes: Floats) -> float:
        """The mean over all pairs of the squared deviation of kernel values times slopes, computed once."""
        key = slopes.tobytes()
        if key not in self._scatters:
            centre = float(self.means[0] @ slopes)
            total = pairs.squares(self.statistic, self.x, self.parts["kernel"], slopes, centre)
            self._scatters[key] = total / self.n**2
        return self._scatters[key]

    @cached_property
    def _scatters(self) -> dict[bytes, float]:
        return {}

    def first_states(self, protocol: Protocol) -> Floats:
        """What all nodes keep at the beginning: n × k × fields."""
        (name,) = inspect.signature(protocol.init).parameters
        given = self.row_means if name == "row" else self.diagonal
        return np.stack(protocol.init(given), axis=-1)

    def values(self, means: Floats, of_rows: bool = False) -> Floats:
        """From a protocol's mean kernel values (n × k) to estimates (n × p).

        Where a node has no estimate yet (a ratio 0/0) it is 0, as protocols begin with 0.
        """
        values = self._values(means, of_rows)
        return np.where(np.isfinite(values), values, 0.0)

    def _values(self, means: Floats, of_rows: bool = False) -> Floats:
        """From mean kernel values over all pairs to values in the textbook's normalisation; of rows, their means."""
        statistic, n = self.statistic, self.n
        if statistic.normalisation == "U":
            diagonal = self.diagonal if of_rows else self.diagonal.mean(axis=0)
            means = (n * means - diagonal) / (n - 1)
        if of_rows:
            return means
        if statistic.total:
            return means * (n * (n - 1 if statistic.normalisation == "U" else n) / 2)
        return finish(statistic, means, self.parts.get("final", {}))

    def check(self, protocol: Protocol | Collecting) -> None:
        """Refuse statistics that a protocol cannot estimate."""
        if self.statistic.local is not None:
            raise InputError(
                f"{self.statistic.name} is a function of each row's own mean, which {protocol.name} cannot estimate; "
                "statistics without a 'local' part can be, such as kendall-tau"
            )


def size_of(target: Floats) -> float:
    """What relative errors are relative to: the length of the exact value, or the mean of the nodes' own."""
    return float(np.sqrt((target**2).sum(axis=1)).mean())


@dataclass(frozen=True)
class Setting:
    """A protocol that estimates something on a network."""

    protocol: Protocol | Collecting
    problem: Problem
    graph: Graph

    @property
    def slopes(self) -> Floats:
        """How fast each number of the statistic changes with each kernel mean."""
        return self.problem.slopes(self.protocol)


def settle(
    protocol: str | Protocol | Collecting,
    data: Any,
    statistic: str | Statistic,
    graph: Any,
    seed: int,
    options: Mapping[str, Any],
    columns: Any = None,
    label: Any = None,
    score: Any = None,
    drop_missing: bool = False,
) -> Setting:
    """A setting from what a user may give for its parts."""
    rule, chosen = find_protocol(protocol), find(statistic)
    table = datasets.load(data).choose(columns, label, score, drop_missing)
    problem = Problem(chosen, chosen.encoded(table, options), options, table.name)
    problem.check(rule)
    network = graphs.load(graph, n=problem.n, seed=seed)
    return Setting(rule, problem, network.check() if isinstance(graph, Graph) else network)
