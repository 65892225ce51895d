"""Reproduction of the paper: every table and figure with its claims, and reports of them."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import gosta
from gosta import datasets
from gosta.datasets.data import Data
from gosta.errors import DataError, InputError, unknown
from gosta.experiments.jobs import LARGEST, Job, Sweep
from gosta.experiments.paper import figure2, figure3a, figure3b, figure4, figure5, figure6, table1
from gosta.experiments.paper.layout import STYLE
from gosta.experiments.paper.model import (
    CompletedExperiment,
    ErrorHistory,
    HistoryOf,
    Plan,
    Subject,
)
from gosta.experiments.run import Outcome, run_jobs
from gosta.runtime.extras import require
from gosta.runtime.files import write_atomically
from gosta.views import plots

PARTS = (table1, figure2, figure3a, figure3b, figure4, figure5, figure6)
EXPERIMENTS = {part.__name__.rpartition(".")[2]: part.EXPERIMENT for part in PARTS}
DATA_OF_THE_PAPER = ("wine-quality-red", "svmguide3")
TITLES = {"wine-quality-red": "Wine Quality", "svmguide3": "SVMguide3"}
TIMED_ITERATIONS = 200  # of the loop in numpy

Run = Callable[[Sweep, Path], Outcome]


def make_plan(runs: int = 50, seed: int = 0, data: str | None = None) -> Plan:
    """Load the paper's data and place rows at nodes at random.

    One stand-in can replace both data sets.

    In the order of the files, rows of one class would be neighbours on a grid.
    """
    for name, value, least in (("runs", runs, 1), ("seed", seed, 0)):
        if not least <= value <= LARGEST:
            raise InputError(f"{name} = {value} must be a whole number from {least} to {LARGEST}")
    try:
        rows = [datasets.load(name) for name in ((data, data) if data else DATA_OF_THE_PAPER)]
    except InputError as error:
        other = "" if data else "; or take a stand-in, such as --data breast-cancer"
        raise InputError(f"{error}{other}") from None
    shuffled = [table.shuffle(seed) for table in rows]
    first, second = map(_rectangular, shuffled) if data else shuffled
    titles = [TITLES.get(table.name, table.name) for table in (first, second)]
    # The paper divides the AUC by known class sizes: so does the Mann-Whitney count, but for a
    # constant factor.
    scatter = Subject(
        first,
        "within-cluster-scatter",
        f"cluster scatter, {titles[0]}",
        {"centroids": "class-means"},
    )
    auc = Subject(second, "mann-whitney", f"AUC, {titles[1]}")
    for subject in (scatter, auc):
        if gosta.exact(subject.rows, subject.statistic, **subject.options) == 0:
            raise DataError(
                f"{subject.statistic} of {subject.data} is 0: there is no relative error; take "
                "other data"
            )
    return Plan(scatter, auc, runs, seed)


def _rectangular(rows: Data) -> Data:
    """Return the largest number of first rows that make a torus which is nearly square."""
    for n in range(len(rows), 8, -1):
        if any(n % side == 0 and 2 * side * side > n for side in range(3, int(n**0.5) + 1)):
            return rows.head(n)
    raise DataError(
        f"data = {rows.name!r} has {len(rows)} rows; networks of the three kinds need at least 9"
    )


def select(names: Sequence[str]) -> list[str]:
    """Return the names of experiments in order; all of them by default."""
    for name in names:
        if name not in EXPERIMENTS:
            raise unknown("part", name, EXPERIMENTS)
    return [name for name in EXPERIMENTS if not names or name in names]


def reproduce(
    plan: Plan, names: Sequence[str], folder: Path, run: Run = run_jobs
) -> Iterator[CompletedExperiment]:
    """Run experiments one by one, but no simulations whose results are in the folder."""
    for name in names:
        start = time.perf_counter()
        experiment = EXPERIMENTS[name]
        jobs = list({job.key: job for job in experiment.jobs(plan)}.values())
        history_of = _run_jobs(plan, jobs, folder / "runs", run)
        findings = experiment.evaluate(plan, history_of)
        text = io.StringIO(newline="")
        csv.writer(text).writerows(findings.table)
        write_atomically(folder / f"{name}.csv", text.getvalue())
        files = [f"{name}.png", f"{name}.svg"] if experiment.draw else []
        if experiment.draw:
            with require("matplotlib", "plot", "drawing plots").rc_context(STYLE):
                figure = experiment.draw(plan, history_of, findings)
                for file in files:
                    plots.save(figure, folder / file)
        iterations = sum(job["runs"] * job["iterations"] for job in jobs)
        seconds = time.perf_counter() - start
        yield CompletedExperiment(name, experiment.title, findings, seconds, iterations, files)


def _run_jobs(plan: Plan, jobs: list[Job], folder: Path, run: Run) -> HistoryOf:
    """Run the jobs without results; return a function that reads the results of a job."""
    outcome = run(Sweep(jobs, plan.loaded), folder)
    if outcome.interrupted:
        raise KeyboardInterrupt
    for job in jobs:
        if job.key in outcome.failed:
            raise InputError(f"{job}: {outcome.failed[job.key]}")

    def history_of(job: Job) -> ErrorHistory:
        table = outcome.results.read(job)
        if table is None:
            raise InputError(
                f"{job}: its results in {folder} cannot be read; remove them and try again"
            )
        columns = (table[name].to_numpy() for name in ("iteration", "error", "spread", "units"))
        return ErrorHistory(*(np.asarray(column, dtype=np.float64) for column in columns))

    return history_of


def numpy_seconds_per_iteration(plan: Plan) -> float:
    """Time an iteration of GoSta-sync with numpy that updates all nodes, as in the paper."""
    x = plan.scatter.x
    n, rng = len(x), np.random.default_rng(0)
    points, cell = x[:, :-1], x[:, -1]
    visitor, estimate = np.arange(n), np.zeros(n)
    edges = rng.integers(n, size=(TIMED_ITERATIONS, 2))
    start = time.perf_counter()
    for t, (i, j) in enumerate(edges, 1):
        gap = points - points[visitor]
        kernel = np.sqrt((gap * gap).sum(axis=1)) * (cell == cell[visitor])
        estimate = (t - 1) / t * estimate + kernel / t
        estimate[[i, j]] = (estimate[i] + estimate[j]) / 2
        visitor[[i, j]] = visitor[[j, i]]
    return (time.perf_counter() - start) / TIMED_ITERATIONS


def write(
    plan: Plan,
    completed: Sequence[CompletedExperiment],
    order: Sequence[str],
    numpy_seconds: float,
    folder: Path,
) -> None:
    """Write results.md and results.json into the folder, with experiments in order.

    Experiments of the same plan that are in results.json already are kept. `numpy_seconds` is the
    time of an iteration in numpy, for comparison.
    """
    settings = {
        "gosta": gosta.__version__,
        "runs": plan.runs,
        "seed": plan.seed,
        "data": {subject.statistic: subject.digest for subject in (plan.scatter, plan.auc)},
        "stand_in": plan.uses_stand_in,
    }
    known = _read_earlier(folder / "results.json", settings) | {
        each.name: _entry(each) for each in completed
    }
    entries = {name: known[name] for name in order if name in known}
    seconds = {each.name: each.seconds for each in completed}
    write_atomically(folder / "results.md", _markdown(plan, entries, seconds, numpy_seconds))
    content = json.dumps({**settings, "parts": entries}, indent=1, allow_nan=False)
    write_atomically(folder / "results.json", content + "\n")


def _read_earlier(file: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a file that was written with the same settings."""
    try:
        old = json.loads(file.read_text(encoding="utf-8"))
        return dict(old.pop("parts")) if {k: old[k] for k in settings} == settings else {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _entry(completed: CompletedExperiment) -> dict[str, Any]:
    """Return the JSON of an experiment, which does not depend on where or how fast it was run."""
    claims = [
        {
            **claim._asdict(),
            "agrees": bool(claim.agrees),
            "finding": "" if claim.agrees else claim.finding,
        }
        for claim in completed.findings.claims
    ]
    return {
        "title": completed.title,
        "iterations": completed.iterations,
        "files": completed.files,
        "claims": claims,
        "table": completed.findings.table,
        "numbers": completed.findings.numbers,
    }


def _markdown(
    plan: Plan, entries: Mapping[str, Any], seconds: Mapping[str, float], numpy_seconds: float
) -> str:
    claims = [claim for entry in entries.values() for claim in entry["claims"]]
    agreeing = count_agreeing([(claim.get("is_ours", False), claim["agrees"]) for claim in claims])
    total = sum(entry["iterations"] for entry in entries.values())
    lines = [
        "# The experiments of the paper, reproduced",
        "",
        "Colin, Bellet, Salmon, Clémençon: *Extending Gossip Algorithms to Distributed Estimation "
        "of U-Statistics*.",
        "",
        f"{plan.runs} runs, seed {plan.seed}, gosta {gosta.__version__}, data: "
        f"{describe_data(plan)}. "
        f"{agreeing}. Figures and curves are in the folder that `gosta reproduce` makes.",
        "",
        f"{total:,} iterations. Updating all nodes at every tick with numpy takes "
        f"{1e6 * numpy_seconds:.0f} µs an iteration here, {total * numpy_seconds / 3600:.1f} hours "
        f"for all; this took {sum(seconds.values()):,.0f} s for what had not been done before.",
        "",
        "Rows are placed at nodes at random. Errors are means over nodes and runs of the relative "
        "error, ± its standard deviation over nodes; bands go from the mean divided by 1 + "
        "spread/mean to the mean times that. The grid has periodic borders. Dotted lines are the "
        "error of expected estimates, which is less than a run's.",
    ]
    for name, entry in entries.items():
        took = f" ({seconds[name]:.1f} s)" if name in seconds else ""
        lines += ["", f"## {name}: {entry['title']}{took}", ""]
        lines += [f"![{entry['title']}]({file})\n" for file in entry["files"][:1]]
        heading, *rows = entry["table"]
        lines += [_row(heading), _row(["---"] * len(heading)), *map(_row, rows), ""]
        for claim in entry["claims"]:
            verdict = "agrees" if claim["agrees"] else "**disagrees**"
            source = "Ours" if claim.get("is_ours") else "The paper says"
            sentence = f"{source}: {claim['sentence']} *{verdict}*: {claim['measured']}."
            lines.append(f"- {sentence} {claim['finding']}".rstrip())
    return "\n".join(lines) + "\n"


def count_agreeing(claims: Sequence[tuple[bool, bool]]) -> str:
    """Return in words how many claims of the paper agree, and how many of ours.

    Each claim says whether it is ours, and whether it agrees.

    >>> count_agreeing([(False, True), (False, False), (True, True)])
    'Of 2 claims of the paper 1 agree, of 1 of ours 1'
    """
    paper, ours = (
        [agrees for is_ours, agrees in claims if is_ours == wanted] for wanted in (False, True)
    )
    theirs = f"Of {len(paper)} claims of the paper {sum(paper)} agree"
    text = f"{theirs}, of {len(ours)} of ours {sum(ours)}"
    return text if paper and ours else f"Of {len(claims)} claims {sum(paper) + sum(ours)} agree"


def describe_data(plan: Plan) -> str:
    """Return the names and sizes of the data as text."""
    first, second = (
        f"{subject.data} ({len(subject.rows):,} rows)" for subject in (plan.scatter, plan.auc)
    )
    return (
        f"{first}, a stand-in for the paper's two data sets"
        if plan.uses_stand_in
        else f"{first} and {second}"
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
