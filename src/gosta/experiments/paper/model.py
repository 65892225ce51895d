"""Values that the experiments of the paper share: plans, error histories, claims, findings.

An experiment is one table or figure: the jobs it needs, and functions that evaluate and draw their
results. A claim is a sentence of the paper's experimental section in our words, with a check that
can fail and states its threshold. A claim that fails is a finding. Figure 6 and its claims are our
own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from gosta.datasets.data import Data
from gosta.experiments.jobs import Job, Loaded
from gosta.runtime.arrays import Floats
from gosta.simulation.run_options import Spacing
from gosta.statistics import find as find_statistic
from gosta.statistics.definition import Options
from gosta.views import terminal
from gosta.views.numbers import percent

GRAPHS = {
    "complete": "complete graph",
    "watts-strogatz": "Watts–Strogatz",
    "torus": "two-dimensional grid",
}
ITERATIONS = 200_000
CHECKPOINTS = 200
FIRST_COMPARED = 5  # checkpoints before this one are too early to compare protocols

Against = Literal["iterations", "units"]


@dataclass(frozen=True)
class Subject:
    """Data and the statistic that is estimated from them."""

    rows: Data  # in the order of the nodes they are placed at
    statistic: str
    title: str
    options: Options = field(default_factory=dict)  # options of the statistic

    @property
    def data(self) -> str:
        """Name of the data."""
        return self.rows.name

    @cached_property
    def x(self) -> Floats:
        """Rows as the kernel takes them."""
        return find_statistic(self.statistic).encode_rows(self.rows, self.options)

    @cached_property
    def digest(self) -> str:
        """Digest of `x`, so that other rows, or another order, make other jobs."""
        return hashlib.sha256(self.x.tobytes()).hexdigest()


@dataclass(frozen=True)
class Plan:
    """Settings that all experiments share."""

    scatter: Subject
    auc: Subject
    runs: int
    seed: int  # seed of the order of rows, of random networks, and of runs

    @property
    def uses_stand_in(self) -> bool:
        """Whether one data set replaces both of the paper."""
        return self.scatter.data == self.auc.data

    @property
    def loaded(self) -> Loaded:
        """Data that jobs refer to by name, with rows in the order of this plan."""
        return {
            ("data", each.data): each.rows for each in (self.scatter, self.auc, self.sorted_scatter)
        }

    @cached_property
    def sorted_scatter(self) -> Subject:
        """The cluster scatter with rows sorted by class, so that neighbours are alike."""
        rows = self.scatter.rows
        in_order = rows.take(np.argsort(rows.class_codes()[0], kind="stable"))
        return replace(self.scatter, rows=replace(in_order, name=f"{rows.name} sorted by class"))

    def job(
        self,
        subject: Subject,
        graph: str,
        protocol: str,
        iterations: int = ITERATIONS,
        n: int | None = None,
        spacing: Spacing = "linear",
        checkpoints: int = CHECKPOINTS,
    ) -> Job:
        """Return the job of one simulation."""
        settings = {
            "data": subject.data,
            "statistic": subject.statistic,
            "graph": graph,
            "protocol": protocol,
            "n": n,
            "seed": self.seed,
            "iterations": iterations,
            "runs": self.runs,
            "checkpoints": min(checkpoints, iterations),
            "spacing": spacing,
            "options": subject.options,
        }
        return Job(settings, {"rows": subject.digest})

    def jobs_by_graph(
        self, subject: Subject, protocols: Sequence[str], iterations: int = ITERATIONS
    ) -> list[Job]:
        """Return the jobs of some protocols on all three networks."""
        return [
            self.job(subject, graph, name, iterations) for graph in GRAPHS for name in protocols
        ]


class ErrorHistory(NamedTuple):
    """Errors of a simulation at each of its checkpoints, means over runs."""

    iterations: Floats
    error: Floats  # mean over nodes of the relative error
    spread: Floats  # standard deviation over nodes of the relative error
    units: Floats  # numbers sent so far

    def against(self, axis: Against) -> Floats:
        """Return the checkpoints as iterations or as numbers sent."""
        return self.units if axis == "units" else self.iterations

    def first_below(self, error: float, axis: Against = "iterations") -> float:
        """Return where the mean error falls below a given one, interpolated; NaN if nowhere."""
        at = self.against(axis)
        below = np.flatnonzero(self.error < error)
        if not len(below):
            return float("nan")
        k = int(below[0])
        if k == 0:
            return float(at[0])
        t, e = np.log(at[k - 1 : k + 1]), np.log(self.error[k - 1 : k + 1])
        return float(np.exp(t[0] + (t[1] - t[0]) * (e[0] - np.log(error)) / (e[0] - e[1])))

    def final(self) -> str:
        """Return the last error and its spread as text."""
        return f"{percent(self.error[-1], '.2f')} ± {percent(self.spread[-1], '.2f')}"

    def as_json(self) -> dict[str, list[float]]:
        """Return the columns as lists."""
        return {name: values.tolist() for name, values in self._asdict().items()}


HistoryOf = Callable[[Job], ErrorHistory]
ByGraph = Mapping[str, Mapping[str, ErrorHistory]]  # histories by graph and protocol


def histories_by_graph(
    plan: Plan, history_of: HistoryOf, protocols: Sequence[str], iterations: int = ITERATIONS
) -> ByGraph:
    """Return the histories of some protocols on all three networks, for the cluster scatter."""
    return {
        graph: {
            name: history_of(plan.job(plan.scatter, graph, name, iterations)) for name in protocols
        }
        for graph in GRAPHS
    }


class Advantage(NamedTuple):
    """Comparison of two histories from `FIRST_COMPARED` on."""

    share: float  # share of the checkpoints at which the first is lower
    factor: float  # factor by which it is lower, as a geometric mean


def advantage(ours: Floats, theirs: Floats) -> Advantage:
    """Compare errors, or spreads, of two protocols at the same checkpoints."""
    ratio = theirs[FIRST_COMPARED:] / ours[FIRST_COMPARED:]
    return Advantage(float((ratio > 1).mean()), float(np.exp(np.log(ratio).mean())))


NO_REASON = "No reason is known; more runs would show whether it is noise."


class Claim(NamedTuple):
    """A sentence, the paper's or ours, and its check."""

    sentence: str
    measured: str
    agrees: bool
    finding: str = NO_REASON
    """Explanation of a disagreement; not shown where the claim agrees."""
    is_ours: bool = False  # whether the sentence is not the paper's

    @property
    def source(self) -> str:
        """Who says it, in words."""
        return "ours" if self.is_ours else "the paper says"


@dataclass(frozen=True)
class Findings:
    """Results of an experiment."""

    numbers: Mapping[str, Any]  # values that JSON can store
    claims: Sequence[Claim]
    table: Sequence[Sequence[str]]  # rows of text, the first the heading


class Experiment(NamedTuple):
    """Definition of a table or figure."""

    title: str
    jobs: Callable[[Plan], list[Job]]
    evaluate: Callable[[Plan, HistoryOf], Findings]
    draw: Callable[[Plan, HistoryOf, Findings], Any] | None = None  # returns a matplotlib figure


class CompletedExperiment(NamedTuple):
    """A table or figure with its results."""

    name: str
    title: str
    findings: Findings
    seconds: float
    iterations: int  # iterations of all runs of its simulations
    files: list[str]  # figures in the folder of results

    def __str__(self) -> str:
        """Return the table and the claims as text."""
        lines = [
            f"{self.name}: {self.title} ({self.seconds:.1f} s)",
            terminal.columns(self.findings.table),
        ]
        for claim in self.findings.claims:
            verdict = "agrees   " if claim.agrees else "DISAGREES"
            lines.append(f"  {verdict}  {claim.source}: {claim.sentence}")
            explained = (claim.measured, *[claim.finding] * (not claim.agrees))
            lines += [f"{'':13}{text}" for text in explained]
        return "\n".join([*lines, ""])


def range_text(values: Sequence[float], form: str = ".2f") -> str:
    """Return the range of some numbers as text."""
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    return low if low == high else f"{low} to {high}"
