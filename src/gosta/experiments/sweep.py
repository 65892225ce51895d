"""Doing the jobs of a study: those that are not done yet, wherever there are cores, keeping each as it finishes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import gosta
from gosta import datasets, statistics
from gosta.errors import InputError
from gosta.experiments import backends
from gosta.experiments.backends import Lost, Task
from gosta.experiments.results import Curve, Results
from gosta.experiments.study import Job, Study
from gosta.runtime import machine, progress
from gosta.simulation.simulate import simulate

Backend = Literal["local", "dask", "ray"]


@dataclass
class Sweep:
    """How a sweep went.

    Attributes
    ----------
    results
        The folder of all numbers.
    before
        How many jobs were done already.
    failed
        Why jobs could not be done, by the job's key.
    interrupted
        Whether Ctrl-C ended it early.
    """

    results: Results
    before: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False


def sweep(
    study: Study,
    folder: str | Path,
    *,
    backend: Backend = "local",
    scheduler: str | None = None,
    workers: int | None = None,
) -> Sweep:
    """Do all jobs of a study that are not done yet.

    Parameters
    ----------
    study
        As `gosta.experiments.study.read` gives it.
    folder
        Where results are kept, one Parquet file a job. Jobs that have one are not done again.
    backend
        "local" for processes of this machine, "dask" or "ray" for a cluster. The numbers are the same.
    scheduler
        The cluster's address; needed for Dask. Without one, Ray starts on this machine.
    workers
        How many processes on this machine; by default as many as there are cores.
    """
    import pandas  # noqa: F401  (now: Ctrl-C in the middle of an import would leave half a module behind)

    _check(backend, scheduler, workers)
    went = Sweep(Results(Path(folder)))
    todo = [job for job in study.jobs if went.results.read(job) is None]
    went.before = len(study.jobs) - len(todo)
    for job in todo:
        went.results.forget(job)
    random.shuffle(todo)  # so that machines that share the folder share the work, too
    if not todo:
        return went
    at_once = min(workers or machine.available_cores(), len(todo))
    threads = max(1, machine.available_cores() // at_once) if backend == "local" else 1
    title = f"{len(todo)} job{'s' * (len(todo) > 1)}"
    with progress.bar(title, len(todo), patience=0) as advance:
        tasks = _tasks(study, todo, threads, went.results, advance)
        try:
            for number, found in _started(backend, tasks, scheduler, at_once):
                if isinstance(found, Lost):
                    went.failed[todo[number].key] = found.reason
                else:
                    went.results.write(todo[number], found)
                advance(1)
        except KeyboardInterrupt:
            went.interrupted = True
    return went


def _check(backend: str, scheduler: str | None, workers: int | None) -> None:
    if backend not in get_args(Backend):
        raise InputError(f"backend = {backend!r} must be {' or '.join(get_args(Backend))}")
    if backend == "dask" and scheduler is None:
        raise InputError("backend = 'dask' needs the address of a scheduler: --scheduler tcp://HOST:8786")
    if backend == "local" and scheduler is not None:
        raise InputError(f"scheduler = {scheduler!r} goes with a cluster: --backend dask or --backend ray")
    if workers is not None and backend != "local":
        raise InputError(f"workers = {workers} goes with this machine only; a cluster has the workers that it has")
    if workers is not None and workers < 1:
        raise InputError(f"workers = {workers} must be 1 or more")


def _started(backend: Backend, tasks: Iterator[Task], scheduler: str | None, workers: int) -> backends.Done:
    if backend == "dask":
        assert scheduler is not None
        return backends.dask(tasks, scheduler)
    return backends.ray(tasks, scheduler) if backend == "ray" else backends.local(tasks, workers)


def _tasks(study: Study, todo: Sequence[Job], threads: int, results: Results, advance: Any) -> Iterator[Task]:
    for number, job in enumerate(todo):
        if results.has(job):  # another machine has done it meanwhile
            advance(1)
        else:
            yield Task(number, perform, (job, *study.subject(job), threads, gosta.__version__))


def perform(job: Job, data: Any, statistic: Any, graph: Any, threads: int, version: str) -> Curve | Lost:
    """Do one job, or say in one line why it cannot be done."""
    try:
        if gosta.__version__ != version:
            raise InputError(f"a worker has gosta {gosta.__version__}, not {version}; install the same everywhere")
        with machine.limit_cores(threads), progress.silent():
            table = datasets.load(data, n=job.n).select(job.columns, job.label, job.score, job.drop_missing)
            iterations = job.iterations
            if job.iterations_per_node is not None:
                nodes = len(statistics.find(statistic).encode_rows(table, job.options))
                iterations = job.iterations_per_node * nodes
            trace = simulate(
                table,
                statistic,
                graph=graph,
                protocol=job.protocol,
                iterations=iterations,
                runs=job.runs,
                seed=job.seed,
                checkpoints=job.checkpoints,
                spacing=job.spacing,  # type: ignore[arg-type]
                **job.options,
            )
    except InputError as error:
        return Lost(str(error))
    except MemoryError:
        return Lost("not enough memory; take fewer rows or runs")
    except Exception as error:  # one job that goes wrong in a way nobody thought of must not end a night's work
        return Lost(" ".join(f"{type(error).__name__}: {error}".split()))
    if not trace.complete:
        raise KeyboardInterrupt
    return Curve.of(trace)
