"""Running the jobs of a study: those without results, on all available cores, storing each result as it finishes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import gosta
from gosta import datasets
from gosta.errors import GostaError, InputError, UnsupportedError
from gosta.experiments import backends
from gosta.experiments.backends import Failure, Task
from gosta.experiments.results import JobResult, ResultFolder
from gosta.experiments.study import NAMED, Job, Study
from gosta.runtime import machine, progress
from gosta.runtime.extras import require
from gosta.simulation import engines
from gosta.simulation.engines import gpu
from gosta.simulation.simulate import simulate

Backend = Literal["local", "dask", "ray"]


@dataclass(frozen=True)
class Outcome:
    """Outcome of the jobs of a study."""

    results: ResultFolder
    finished_before: int  # number of jobs that had results already
    failed: Mapping[str, str]  # reasons why jobs have no result, by the job's key
    interrupted: bool  # whether Ctrl-C ended the sweep


def run_study(
    study: Study,
    folder: str | Path,
    *,
    backend: Backend = "local",
    scheduler: str | None = None,
    workers: int | None = None,
    engine: str = "compiled",
) -> Outcome:
    """Run all jobs of a study that have no results yet.

    Parameters
    ----------
    study
        Jobs and what they need.
    folder
        Folder of the results, one Parquet file for each job. Jobs that have one are not run again.
    backend
        "local" for processes of this machine, "dask" or "ray" for a cluster. The numbers do not depend on it.
    scheduler
        Address of the cluster; required for Dask. Without one, Ray starts on this machine.
    workers
        Number of processes on this machine; by default one for each core, or one with engine="gpu".
    engine
        As for `gosta.simulate`; jobs that it does not support are run by the compiled engine.
    """
    _check(backend, scheduler, workers)
    engines.find(engine)
    if engine == "gpu" and backend == "local":
        gpu.check_available()
    # now: Ctrl-C during the import would leave half a module behind
    require("pandas", "sim", "sweeps")
    results = ResultFolder(Path(folder))
    missing = [job for job in study.jobs if results.read(job) is None]
    for job in missing:
        results.remove(job)
    random.shuffle(missing)  # so that machines that share the folder share the work, too
    finished_before, failed, interrupted = len(study.jobs) - len(missing), dict[str, str](), False
    if not missing:
        return Outcome(results, finished_before, failed, interrupted)
    processes = min(workers or (1 if engine == "gpu" else machine.available_cores()), len(missing))
    threads = max(1, machine.available_cores() // processes) if backend == "local" else 1
    title = f"{len(missing)} job{'s' * (len(missing) > 1)}"
    with progress.bar(title, len(missing), delay_seconds=0) as advance:
        tasks = _tasks(study, missing, engine, threads, results, advance)
        try:
            for number, result in _start(backend, tasks, scheduler, processes):
                if isinstance(result, Failure):
                    failed[missing[number].key] = result.reason
                else:
                    results.write(missing[number], result)
                advance(1)
        except KeyboardInterrupt:
            interrupted = True
    return Outcome(results, finished_before, failed, interrupted)


def _check(backend: str, scheduler: str | None, workers: int | None) -> None:
    if backend not in get_args(Backend):
        raise InputError(f"backend = {backend!r} must be {' or '.join(get_args(Backend))}")
    if backend == "dask" and scheduler is None:
        raise InputError(
            "backend = 'dask' requires the address of a scheduler: --scheduler tcp://HOST:8786"
        )
    if backend == "local" and scheduler is not None:
        raise InputError(
            f"scheduler = {scheduler!r} requires a cluster: --backend dask or --backend ray"
        )
    if workers is not None and backend != "local":
        raise InputError(
            f"workers = {workers} requires --backend local; a cluster has its own workers"
        )
    if workers is not None and workers < 1:
        raise InputError(f"workers = {workers} must be 1 or more")


def _start(
    backend: Backend,
    tasks: Iterator[Task[JobResult | Failure]],
    scheduler: str | None,
    processes: int,
) -> backends.Results[JobResult | Failure]:
    if backend == "dask":
        assert scheduler is not None
        return backends.run_on_dask(tasks, scheduler)
    return (
        backends.run_on_ray(tasks, scheduler)
        if backend == "ray"
        else backends.run_local(tasks, processes)
    )


def _tasks(
    study: Study,
    jobs: Sequence[Job],
    engine: str,
    threads: int,
    results: ResultFolder,
    advance: Callable[[float], None],
) -> Iterator[Task[JobResult | Failure]]:
    for number, job in enumerate(jobs):
        if results.has(job):  # another machine finished it meanwhile
            advance(1)
        else:
            yield Task(
                number, partial(run_job, job, study.inputs(job), engine, threads, gosta.__version__)
            )


def run_job(
    job: Job, inputs: Mapping[str, Any], engine: str, threads: int, version: str
) -> JobResult | Failure:
    """Run one job on a worker; return the reason in one line if it fails."""
    if gosta.__version__ != version:
        return Failure(
            f"a worker has gosta {gosta.__version__}, not {version}; install the same version everywhere"
        )
    try:
        with machine.limit_cores(threads), progress.silent():
            given = {**{name: job[name] for name in job.settings if name not in NAMED}, **inputs}
            given["data"] = datasets.load(inputs["data"], n=given.pop("n"))
            arguments = {name: value for name, value in given.items() if value is not None}
            try:
                trace = simulate(**arguments, engine=engine)
            except UnsupportedError:
                trace = simulate(**arguments)
    except GostaError as error:
        return Failure(str(error))
    except MemoryError:
        return Failure("not enough memory; take fewer rows or runs")
    except Exception as error:  # an unforeseen error in one job must not end the others
        return Failure(" ".join(f"{type(error).__name__}: {error}".split()))
    return JobResult.from_trace(trace)
