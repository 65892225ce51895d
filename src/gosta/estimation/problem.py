"""What is to be estimated, by which protocol, on which network; and the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from gosta import datasets, graphs
from gosta.errors import InputError
from gosta.estimation.placement import Counts, by_chance, by_column
from gosta.graphs.graph import Graph
from gosta.protocols import Collecting, Protocol
from gosta.protocols import find as find_protocol
from gosta.runtime import compiler as compiled
from gosta.runtime.arrays import Floats
from gosta.statistics import find, pairs
from gosta.statistics.definition import Statistic, apply_to_rows, as_tuple
from gosta.statistics.exact import check_level, final_values, interval_bounds, require_finite, row_means, row_sums
from gosta.statistics.intervals import standard_errors, with_mean_products

SAMPLE = 8  # rows of a node that travel together at most, as one visitor


@dataclass(frozen=True)
class Whole:
    """All rows together, as far as values depend on them: how many, and their mean kernel with themselves."""

    statistic: Statistic
    n: int
    mean_diagonal: Floats
    options: Mapping[str, Any]  # of the statistic's `final`

    def value(self, means: Floats) -> Floats:
        """From means over all pairs, or of `local`, to values in the textbook's normalisation: r × k to r × p."""
        statistic, n = self.statistic, self.n
        if statistic.normalisation == "U" and statistic.local is None:
            means = normal(means, self.mean_diagonal, n)
        if statistic.total:
            return means * (n * (n - 1 if statistic.normalisation == "U" else n) / 2)
        return final_values(statistic, means, dict(self.options))

    def gradients(self, means: Floats) -> Floats:
        """How fast each value changes with each mean, at each row of means: r × p × k."""
        largest = np.abs(means).max(axis=1, keepdims=True)
        steps = np.maximum(np.abs(means), largest * 1e-3) * 6e-6 + 1e-300
        changes = []
        for c in range(means.shape[1]):
            step = np.where(np.arange(means.shape[1]) == c, steps, 0.0)
            with np.errstate(invalid="ignore"):  # where there is no value
                changes.append((self.value(means + step) - self.value(means - step)) / (2 * steps[:, c : c + 1]))
        return np.stack(changes, axis=2)

    def standard_errors(self, means: Floats, width: int) -> Floats:
        """What nodes take for the standard error of their values, from their means and products of `width` means."""
        return standard_errors(means, self.gradients(means)[:, 0, :width], self.n)


def normal(means: Floats, diagonal: Floats, n: int) -> Floats:
    """From means over all pairs to those over pairs of different rows."""
    return (n * means - diagonal) / (n - 1)


@dataclass(frozen=True)
class Problem:
    """A statistic over encoded rows, dealt to nodes in their order: one each, or as many as `sizes` say.

    A node's visitor is a sample of its rows, and counts for all of them.
    """

    statistic: Statistic
    x: Floats
    options: Mapping[str, Any] = field(default_factory=dict)
    data: str = ""
    sizes: Counts | None = None
    level: float | None = None  # of the intervals that nodes are to give: see with_interval

    @property
    def n(self) -> int:
        """How many rows."""
        return len(self.x)

    @property
    def nodes(self) -> int:
        """How many nodes."""
        return self.n if self.sizes is None else len(self.sizes)

    @property
    def rows(self) -> Counts:
        """How many rows each node has."""
        return np.ones(self.n, dtype=np.int64) if self.sizes is None else self.sizes

    @property
    def samples(self) -> Counts:
        """How many of them its visitor has."""
        return np.minimum(self.rows, SAMPLE)

    @property
    def visitor_numbers(self) -> float:
        """How many numbers travel as a visitor: an observation; or a sample, what it misses, its home, its rows."""
        d = int(self.x.shape[1])
        return d if self.sizes is None else float(self.samples.mean()) * d + self.width + 2

    @property
    def tables(self) -> bool:
        """Whether nodes keep more than a few numbers and visitors: tables of rows, or each row's own means."""
        return self.sizes is not None or self.statistic.local is not None

    @cached_property
    def parts(self) -> dict[str, dict[str, Any]]:
        """The options, by the part of the statistic they belong to."""
        return self.statistic.options_by_part(self.options)

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
        statistic = self.statistic
        try:
            return compiled.fingerprint(statistic.kernel, statistic.local, statistic.moments, statistic.final)[:16]
        except compiled.UnstableContentError:
            return ""

    @cached_property
    def example(self) -> Any:
        """What the kernel gives."""
        return pairs.check_kernel(self.statistic, self.x, self.parts["kernel"])

    @property
    def width(self) -> int:
        """How many numbers the kernel gives."""
        return len(as_tuple(self.example))

    def estimated(self, protocol: Protocol) -> int:
        """How many means the nodes estimate."""
        if protocol.begins == "moments":
            return int(self.moments.shape[1])
        return self.width if self.statistic.local is None else self.means.shape[1]

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

    @cached_property
    def mean_diagonal(self) -> Floats:
        """Its mean over all rows."""
        return np.array([column.mean() for column in self.diagonal.T])

    @cached_property
    def moments(self) -> Floats:
        """What each row contributes to the means that the statistic is a function of."""
        assert self.statistic.moments is not None
        return apply_to_rows(self.statistic.moments[0], self.x)

    def targets(self, protocol: Protocol | Collecting) -> Floats:
        """The exact value, 1 × p; for protocols that estimate row means those of each node, n × k."""
        if protocol.of_rows:
            return self.of_rows(self.row_means)
        target = self.whole.value(self.means)
        require_finite(self.statistic, self.means, target[0])
        return target

    @cached_property
    def means(self) -> Floats:
        """The means that are estimated, exactly: of the kernel over all pairs of rows, or of `local` over all rows."""
        local, rows = self.statistic.local, self.row_means
        return np.array(
            [[column.mean() for column in (rows if local is None else apply_to_rows(local, self.of_rows(rows))).T]]
        )

    def slopes(self, protocol: Protocol | Collecting) -> Floats:
        """How fast each value changes with each kernel mean, at the exact means: p × k.

        Values are straight functions of kernel means unless a `final`, such as a ratio, bends them.
        """
        n, statistic = self.n, self.statistic
        if protocol.of_rows or statistic.final is None:
            scale = n / (n - 1) if statistic.normalisation == "U" else 1.0
            pairs_counted = n * n / scale / 2 if statistic.total and not protocol.of_rows else 1.0
            return scale * pairs_counted * np.eye(self.width)
        slopes: Floats = self.whole.gradients(self.means)[0]
        require_finite(statistic, self.means, slopes.ravel())
        return slopes

    def scatter(self, slopes: Floats) -> float:
        """The mean over all pairs of the squared deviation of kernel values times slopes, computed once."""
        key = slopes.tobytes()
        if key not in self._scatters:
            centre = float(self.means[0] @ slopes)
            total = pairs.sum_of_squares(self.statistic, self.x, self.parts["kernel"], slopes, centre)
            self._scatters[key] = total / self.n**2
        return self._scatters[key]

    @cached_property
    def _scatters(self) -> dict[bytes, float]:
        return {}

    def with_interval(self, interval: float | None) -> Problem:
        """The same problem, whose means are also those that an interval needs; None: without."""
        if interval is None:
            return self
        level = check_level(self.statistic, interval, self.x)
        if self.whole.value(self.means).shape[1] > 1:
            raise InputError(f"{self.statistic.name} gives several numbers; an interval is for one")
        return replace(self, statistic=with_mean_products(self.statistic, self.width), level=level)

    def standard_errors(self, means: Floats) -> Floats:
        """What each node takes for the standard error of its value, from its means."""
        return self.whole.standard_errors(means, self.width)

    def pooled_interval(self) -> tuple[float, float]:
        """The interval from all rows in one place."""
        assert self.level is not None
        low, high = interval_bounds(
            self.statistic, self.whole.value(self.means)[0, 0], self.standard_errors(self.means)[0], self.level
        )
        return float(low), float(high)

    def first_states(self, protocol: Protocol) -> Floats:
        """What all nodes keep at the beginning: nodes × estimates × fields."""
        if protocol.begins == "nothing":
            given = np.zeros((self.nodes, self.estimated(protocol)))
        else:
            given = self.by_node({"row": "row_means", "held": "diagonal"}.get(protocol.begins, protocol.begins))
        return np.stack(protocol.init(given), axis=-1)

    def by_node(self, what: str) -> Floats:
        """The mean over each node's own rows."""
        values: Floats = getattr(self, what)
        if self.sizes is None:
            return values
        return np.add.reduceat(values, np.cumsum(self.sizes) - self.sizes) / self.sizes[:, None]

    def values(self, means: Floats, protocol: Protocol | Collecting) -> Floats:
        """From the means that nodes estimate (nodes × k) to values (nodes × p).

        Where a node has no estimate yet (a ratio 0/0) it is 0, as protocols begin with 0.
        """
        if isinstance(protocol, Protocol) and protocol.begins == "moments":
            assert self.statistic.moments is not None
            means = apply_to_rows(self.statistic.moments[1], means)
        elif isinstance(protocol, Protocol) and protocol.cross and not self.tables:
            means = ((self.n - 1) * means + self.mean_diagonal) / self.n  # of different rows, until now
        values = self.of_rows(means) if protocol.of_rows else self.whole.value(means)
        return np.where(np.isfinite(values), values, 0.0)

    def of_rows(self, means: Floats) -> Floats:
        """From means over all rows, the row itself among them, to those in the textbook's normalisation."""
        return normal(means, self.diagonal, self.n) if self.statistic.normalisation == "U" else means

    @property
    def row_scale(self) -> tuple[float, Floats]:
        """The same as what to multiply a row's mean by and what to subtract from it."""
        if self.statistic.normalisation == "V":
            return 1.0, np.zeros((self.n, self.width))
        return self.n / (self.n - 1), self.diagonal / (self.n - 1)

    @cached_property
    def whole(self) -> Whole:
        """All rows together."""
        needed = self.statistic.normalisation == "U" and self.statistic.local is None
        diagonal = self.mean_diagonal if needed else np.zeros(self.width)
        return Whole(self.statistic, self.n, diagonal, self.parts.get("final", {}))

    @cached_property
    def at_nodes(self) -> list[Problem]:
        """The same statistic over each node's own rows."""
        return [replace(self, x=x, sizes=None) for x in np.split(self.x, np.cumsum(self.rows)[:-1])]

    @cached_property
    def own_means(self) -> Floats:
        """The mean kernel values over pairs of each node's own rows, where its visitor is not all of them."""
        if self.sizes is None:
            return np.zeros((self.nodes, self.width))
        nothing = np.zeros(self.width)
        return np.array([own.row_means.mean(axis=0) if own.n > SAMPLE else nothing for own in self.at_nodes])

    def alone(self) -> Floats:
        """What each node would find from its own rows only: nodes × p, NaN where that is nothing."""
        nothing = np.full(self.whole.value(self.means).shape[1], np.nan)
        return np.array([own.whole.value(own.means)[0] if own.n > 1 else nothing for own in self.at_nodes])

    def check(self, protocol: Protocol | Collecting) -> None:
        """Refuse what a protocol cannot estimate."""
        samples = protocol.samples if isinstance(protocol, Protocol) else ()
        if self.statistic.local is not None and "known" not in samples:
            what = f"{self.statistic.name} is a function of" if self.level is None else "an interval needs"
            raise InputError(f"{what} each row's own mean, which {protocol.name} cannot estimate; tracking can")
        if self.sizes is not None and "share" not in samples:
            raise InputError(
                f"{protocol.name} goes with one row a node; tables at nodes go with tracking, gosta-async, averaging"
            )


def lengths(values: Floats) -> Floats:
    """The length of each row."""
    return np.abs(values[:, 0]) if values.shape[1] == 1 else np.sqrt((values**2).sum(axis=1))


def size_of(target: Floats) -> float:
    """What relative errors are relative to: the length of the exact value, or the mean of the nodes' own."""
    return float(lengths(target).mean())


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


def rule_for(protocol: str | Protocol | Collecting, statistic: Statistic) -> Protocol | Collecting:
    """A protocol by its name, or the one it stands back for where a statistic is a function of plain means."""
    rule = find_protocol(protocol)
    if statistic.moments is not None and isinstance(rule, Protocol):
        return rule.of_moments or rule
    return rule


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
    nodes: int | None = None,
    deal: str | None = None,
    by: Any = None,
    interval: float | None = None,
) -> Setting:
    """A setting from what a user may give for its parts."""
    chosen = find(statistic)
    table = datasets.load(data).select(columns, label, score, drop_missing)
    if by is not None:
        table = table.with_sites(by, exclude=nodes is None)
    if deal is not None and (by is not None or nodes is None):
        raise InputError(f"deal = {deal!r} goes with nodes (--nodes), and without by: rows are dealt by chance then")
    x, kept = chosen.encode_complete_rows(table, options)
    sizes = None
    if by is not None:
        x, sizes = by_column(table, kept, nodes, seed).dealt(x)
    elif nodes is not None:
        x, sizes = by_chance(len(x), nodes, deal or "zipf", seed).dealt(x)
    problem = Problem(chosen, x, options, table.name, sizes).with_interval(interval)
    rule = rule_for(protocol, problem.statistic)
    problem.check(rule)
    network = graphs.load(graph, n=problem.nodes, seed=seed)
    return Setting(rule, problem, network.check() if isinstance(graph, Graph) else network)
