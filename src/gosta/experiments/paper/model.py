"""The experiments of the paper: for each table or figure the jobs it needs, its numbers, its claims, its picture.

A claim is a sentence of the paper's experimental section in our words, with a check that can fail and says its
threshold. Where one fails, that is a finding. Figure 6 and its claims are our own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gosta.datasets.data import Data
from gosta.experiments.study import Job
from gosta.runtime.arrays import Floats
from gosta.statistics import find as find_statistic

GRAPHS = {"complete": "complete graph", "watts-strogatz": "Watts–Strogatz", "torus": "two-dimensional grid"}
ITERATIONS = 200_000
CHECKPOINTS = 200


@dataclass(frozen=True)
class Subject:
    """Data, and what is estimated of them."""

    rows: Data
    """In the order in which they are dealt to nodes."""
    statistic: str
    title: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def data(self) -> str:
        """What the data are called."""
        return self.rows.name

    @cached_property
    def x(self) -> Floats:
        """The numbers that the kernel needs of each row."""
        return find_statistic(self.statistic).encode_rows(self.rows, self.options)

    @cached_property
    def digest(self) -> str:
        """Of what is estimated from: when the rows or their order change, so do the jobs."""
        return hashlib.sha256(self.x.tobytes()).hexdigest()


class Claim(NamedTuple):
    """A sentence, the paper's but for figure 6, and what was measured."""

    sentence: str
    measured: str
    agrees: bool
    finding: str = "No reason is known; more runs would tell chance from effect."
    """What a disagreement comes from; not shown where there is none."""


class Curve(NamedTuple):
    """Errors of a simulation, means over runs."""

    iterations: Floats
    error: Floats
    spread: Floats
    units: Floats


@dataclass(frozen=True)
class Plan:
    """What all experiments share."""

    scatter: Subject
    auc: Subject
    runs: int
    seed: int
    """Of the order of rows, of random networks, and of runs."""

    @property
    def stand_in(self) -> bool:
        """Whether other data stand for the paper's."""
        return self.scatter.data == self.auc.data

    @property
    def own(self) -> dict[tuple[str, str], Data]:
        """What jobs call by name: rows in our order."""
        return {("data", subject.data): subject.rows for subject in (self.scatter, self.auc)}

    def job(
        self,
        subject: Subject,
        graph: str,
        protocol: str,
        iterations: int = ITERATIONS,
        n: int | None = None,
        spacing: str = "linear",
        checkpoints: int = CHECKPOINTS,
    ) -> Job:
        """A simulation of the paper."""
        return Job(
            data=subject.data,
            statistic=subject.statistic,
            graph=graph,
            protocol=protocol,
            n=n,
            seed=self.seed,
            iterations=iterations,
            iterations_per_node=None,
            runs=self.runs,
            checkpoints=min(checkpoints, iterations),
            spacing=spacing,
            columns=None,
            label=None,
            score=None,
            drop_missing=False,
            options=subject.options,
            content={"rows": subject.digest},
        )

    def by_graph(self, subject: Subject, protocols: Sequence[str], iterations: int = ITERATIONS) -> list[Job]:
        """Some protocols on all three networks."""
        return [self.job(subject, graph, name, iterations) for graph in GRAPHS for name in protocols]


@dataclass(frozen=True)
class Found:
    """What an experiment found."""

    numbers: dict[str, Any]
    claims: list[Claim]
    table: list[list[str]]
    """Rows of text, the first the heading."""


class Part(NamedTuple):
    """One table or figure, done."""

    name: str
    title: str
    found: Found
    seconds: float
    iterations: int
    """Of all runs of its simulations."""
    files: list[str]


Curves = Callable[[Job], Curve]
ByGraph = Mapping[str, Mapping[str, Curve]]  # and by protocol


class Experiment(NamedTuple):
    """A table or figure."""

    title: str
    jobs: Callable[[Plan], list[Job]]
    find: Callable[[Plan, Curves], Found]
    draw: Callable[[Plan, Curves, Found], Any] | None


def final(curve: Curve) -> str:
    """The error at the end, as text."""
    return f"{100 * curve.error[-1]:.2f} % ± {100 * curve.spread[-1]:.2f} %"


def time_to(curve: Curve, wanted: float, against: str = "iterations") -> float:
    """When the mean error over nodes and runs falls below what is wanted, interpolated between checkpoints."""
    at = getattr(curve, against)
    below = np.flatnonzero(curve.error < wanted)
    if not len(below):
        return float("nan")
    k = int(below[0])
    if k == 0:
        return float(at[0])
    t, e = np.log(at[k - 1 : k + 1]), np.log(curve.error[k - 1 : k + 1])
    return float(np.exp(t[0] + (t[1] - t[0]) * (e[0] - np.log(wanted)) / (e[0] - e[1])))


def numbers_of(curve: Curve) -> dict[str, list[float]]:
    """A curve as JSON has it."""
    return {name: values.tolist() for name, values in curve._asdict().items()}


def between(values: Sequence[float], form: str = ".2f") -> str:
    """The range of some numbers."""
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    return low if low == high else f"{low} to {high}"
