"""The paper, reproduced: every table and figure, every claim, in a folder."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import gosta
from gosta import datasets
from gosta.datasets.data import Data
from gosta.errors import InputError, unknown
from gosta.experiments.paper import comparisons, figure6, table1
from gosta.experiments.paper.drawing import STYLE
from gosta.experiments.paper.model import Curve, Experiment, Found, Part, Plan, Subject
from gosta.experiments.study import LARGEST, Job, Study
from gosta.experiments.sweep import Backend, sweep

TABLE = {
    "table1": Experiment("Spectral gaps of the networks", lambda _plan: [], table1.table1, None),
    "figure2": Experiment(
        "GoSta-sync and U2-gossip", comparisons.figure2_jobs, comparisons.figure2, comparisons.draw_figure2
    ),
    "figure3a": Experiment(
        "Iterations to 20 % error on complete graphs",
        comparisons.figure3a_jobs,
        comparisons.figure3a,
        comparisons.draw_figure3a,
    ),
    "figure3b": Experiment(
        "GoSta-sync and GoSta-async", comparisons.figure3b_jobs, comparisons.figure3b, comparisons.draw_figure3b
    ),
    "figure4": Experiment(
        "GoSta-async and gossip-flooding", comparisons.figure4_jobs, comparisons.figure4, comparisons.draw_figure4
    ),
    "figure5": Experiment(
        "GoSta-async and a master node", comparisons.figure5_jobs, comparisons.figure5, comparisons.draw_figure5
    ),
    "figure6": Experiment(
        "Tracking, which is not in the paper, and all others",
        figure6.figure6_jobs,
        figure6.figure6,
        figure6.draw_figure6,
    ),
}
PAPER = ("wine-quality-red", "svmguide3")
TITLES = {"wine-quality-red": "Wine Quality", "svmguide3": "SVMguide3"}
SLICE = 200  # iterations that the eager way is timed for


class Where(NamedTuple):
    """Which machine computes."""

    backend: Backend = "local"
    scheduler: str | None = None
    workers: int | None = None


def plan(runs: int = 50, seed: int = 0, data: str | None = None) -> Plan:
    """What to reproduce with: the paper's data, or a stand-in for both of its data sets.

    Rows are dealt to nodes at random. In the order of the files, classes lie side by side on a grid.
    """
    for name, value, least in (("runs", runs, 1), ("seed", seed, 0)):
        if not least <= value <= LARGEST:
            raise InputError(f"{name} = {value} must be a whole number from {least} to {LARGEST}")
    try:
        rows = [datasets.load(name) for name in ((data, data) if data else PAPER)]
    except InputError as error:
        other = "" if data else "; or take a stand-in, such as --data breast-cancer"
        raise InputError(f"{error}{other}") from None
    first, second = (_square(one.shuffle(seed)) if data else one.shuffle(seed) for one in rows)
    titles = [TITLES.get(one.name, one.name) for one in (first, second)]
    # The paper divides the AUC by known class sizes: so does the Mann-Whitney count, but for a constant factor.
    scatter = Subject(first, "within-cluster-scatter", f"cluster scatter, {titles[0]}", {"centroids": "class-means"})
    auc = Subject(second, "mann-whitney", f"AUC, {titles[1]}")
    for subject in (scatter, auc):
        if gosta.exact(subject.rows, subject.statistic, **subject.options) == 0:
            raise InputError(f"{subject.statistic} of {subject.data} is 0: there is no relative error; take other data")
    return Plan(scatter, auc, runs, seed)


def _square(rows: Data) -> Data:
    """All rows, or a few less where those make no torus that is nearly square."""
    for n in range(len(rows), 8, -1):
        if any(n % side == 0 and 2 * side * side > n for side in range(3, int(n**0.5) + 1)):
            return rows.head(n)
    raise InputError(f"data = {rows.name!r} has {len(rows)} rows; networks of the three kinds need at least 9")


def chosen(names: Sequence[str]) -> list[str]:
    """The parts that were asked for, in order; all of them by default."""
    for name in names:
        if name not in TABLE:
            raise unknown("part", name, TABLE)
    return [name for name in TABLE if not names or name in names]


def reproduce(plan: Plan, names: Sequence[str], folder: Path, where: Where) -> Iterator[Part]:
    """Do parts one after the other, each as far as it is not done yet; figures go into the folder as they are drawn."""
    for name in names:
        start = time.perf_counter()
        experiment = TABLE[name]
        jobs = list({job.key: job for job in experiment.jobs(plan)}.values())
        curve = _computed(plan, jobs, folder / "runs", where)
        found = experiment.find(plan, curve)
        _tabulated(found, folder / f"{name}.csv")
        files = _drawn(experiment, plan, curve, found, folder, name)
        iterations = sum(job.runs * (job.iterations or 0) for job in jobs)
        yield Part(name, experiment.title, found, time.perf_counter() - start, iterations, files)


def _computed(plan: Plan, jobs: list[Job], folder: Path, where: Where) -> Callable[[Job], Curve]:
    """Curves of jobs, from a folder where those that were done before are kept."""
    went = sweep(Study(folder, jobs, plan.own), folder, **where._asdict())
    if went.interrupted:
        raise KeyboardInterrupt
    for job in jobs:
        if job.key in went.failed:
            raise InputError(f"{job}: {went.failed[job.key]}")

    def curve(job: Job) -> Curve:
        table = went.results.read(job)
        if table is None:
            raise InputError(f"{job}: its results in {folder} cannot be read; remove them and try again")
        columns = (table[name].to_numpy() for name in ("iteration", "error", "spread", "units"))
        return Curve(*(np.asarray(column, dtype=np.float64) for column in columns))

    return curve


def _tabulated(found: Found, file: Path) -> None:
    try:
        with file.open("w", encoding="utf-8", newline="") as out:
            csv.writer(out).writerows(found.table)
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror or error}") from error


def _drawn(
    experiment: Experiment, plan: Plan, curve: Callable[[Job], Curve], found: Found, folder: Path, name: str
) -> list[str]:
    if experiment.draw is None:
        return []
    import matplotlib as mpl

    with mpl.rc_context(STYLE):
        figure = experiment.draw(plan, curve, found)
        files = [f"{name}.png", f"{name}.svg"]
        for file in files:
            try:
                figure.savefig(folder / file, metadata={"Date": None} if file.endswith(".svg") else None)
            except OSError as error:
                raise InputError(f"cannot write {folder / file}: {error.strerror or error}") from error
    return files


def eager_seconds(plan: Plan) -> float:
    """Seconds an iteration of GoSta-sync takes with numpy when all nodes are updated, as it is printed in the paper."""
    x = plan.scatter.x
    points, cell, rng = x[:, :-1], x[:, -1], np.random.default_rng(0)
    n = len(x)
    visitor, estimate = np.arange(n), np.zeros(n)
    edges = rng.integers(n, size=(SLICE, 2))
    start = time.perf_counter()
    for t, (i, j) in enumerate(edges, 1):
        gap = points - points[visitor]
        kernel = np.sqrt((gap * gap).sum(axis=1)) * (cell == cell[visitor])
        estimate = (t - 1) / t * estimate + kernel / t
        estimate[[i, j]] = (estimate[i] + estimate[j]) / 2
        visitor[[i, j]] = visitor[[j, i]]
    return (time.perf_counter() - start) / SLICE
