"""Running the jobs of a sweep that have no results yet, on all available cores or on a cluster.

Each result is stored as it finishes, in a folder of small Parquet files that are together one data
set.
"""

from __future__ import annotations

import contextlib
import json
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

import gosta
from gosta import datasets
from gosta.errors import GostaError, InputError, UnsupportedError
from gosta.experiments import backends
from gosta.experiments.backends import Failure, Task
from gosta.experiments.jobs import FORMAT, KEYS, NAMED, Job, Sweep
from gosta.runtime import machine, progress
from gosta.runtime.extras import require
from gosta.runtime.files import write_atomically
from gosta.simulation import engines
from gosta.simulation.engines.gpu import device
from gosta.simulation.simulate import simulate
from gosta.simulation.trace import Trace

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Backend = Literal["local", "dask", "ray"]


@dataclass(frozen=True)
class JobResult:
    """Result of a job: at each checkpoint, means over the runs. Small, because workers send it.

    The columns are ``iteration``, ``component`` (0, or which of several values), ``error`` and its
    ``spread`` over nodes, ``units`` (numbers sent), ``estimate`` (mean over nodes), ``exact``; with
    intervals their ends ``low`` and ``high``, means over nodes.
    """

    n: int  # rows
    nodes: int
    edges: int
    graph: str  # its name
    stopped: float | None  # iteration at which nodes stopped by themselves, if they were to
    relative: bool  # whether errors are relative; they are absolute where the exact value is 0
    columns: Mapping[str, NDArray[Any]]

    @classmethod
    def from_trace(cls, trace: Trace) -> JobResult:
        """Return means over the runs of a trace; runs that stopped keep their last numbers."""
        setting, info, data = trace.setting, trace.info, trace.data
        nodes = setting.placement.nodes
        target = data["target"].mean("node") if "node" in data["target"].dims else data["target"]
        exact = np.atleast_1d(target.values)
        last = np.isfinite(data["mean"].values).sum(axis=1) - 1  # checkpoint that each run reached
        checkpoints, components = len(trace.iterations), len(exact)
        places = np.minimum(np.arange(checkpoints), last[:, None])
        rows = np.arange(info.runs)[:, None], places  # runs × checkpoints

        def at_each(values: NDArray[Any]) -> NDArray[Any]:
            return np.repeat(values, components)

        columns = {
            "iteration": at_each(trace.iterations),
            "component": np.tile(np.arange(components), checkpoints),
            "error": at_each(data["mean"].values[rows].mean(axis=0)),
            "spread": at_each(data["spread"].values[rows].mean(axis=0)),
            "units": at_each(trace.units[places].mean(axis=0).round().astype(np.int64)),
            "estimate": data["estimate"].values[rows].mean(axis=0).reshape(-1),
            "exact": np.tile(exact, checkpoints),
        }
        for name in ("low", "high") if setting.estimand.level is not None else ():
            ends = data[name].values[rows].reshape(info.runs, checkpoints, nodes, components)
            columns[name] = _mean_of_numbers(ends.transpose(0, 2, 1, 3)).reshape(-1)
        stopped = None if info.until is None else float(trace.iterations[last].mean())
        return cls(
            setting.estimand.n,
            nodes,
            setting.graph.m,
            setting.graph_name,
            stopped,
            trace.is_relative,
            columns,
        )


def _mean_of_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return the mean over the first two axes of what is a number; NaN where nothing is."""
    known = np.isfinite(values)
    count = known.sum(axis=(0, 1))
    return np.where(
        count > 0, np.where(known, values, 0.0).sum(axis=(0, 1)) / np.maximum(count, 1), np.nan
    )


class ResultFolder:
    """A folder of results that machines can share.

    Files are complete, and their names follow from the settings of their jobs.

    Two machines that run the same job write the same numbers, so they need no coordination.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, prefix="."):
                pass
        except OSError as error:
            raise InputError(
                f"cannot write into the folder {folder}: {error.strerror or error}"
            ) from error

    def path(self, job: Job) -> Path:
        """Return the file of a job."""
        return self.folder / f"{job.key}.parquet"

    def has(self, job: Job) -> bool:
        """Return whether a job has a file, without reading it."""
        return self.path(job).exists()

    def read(self, job: Job) -> pa.Table | None:
        """Return the rows of a job; None where its file is missing or damaged."""
        try:
            rows = _pyarrow(".parquet").ParquetFile(self.path(job)).read()
        except (OSError, _pyarrow().ArrowException, ValueError):
            return None
        return rows if rows.schema.equals(schema()) and len(rows) > 0 else None

    def remove(self, job: Job) -> None:
        """Remove the file of a job, if any: a damaged one would make the data set unreadable."""
        with contextlib.suppress(OSError):
            self.path(job).unlink(missing_ok=True)

    def write(self, job: Job, result: JobResult) -> None:
        """Write the file of a job."""
        content = _pyarrow().BufferOutputStream()
        _pyarrow(".parquet").write_table(_rows(job, result), content)
        write_atomically(self.path(job), content.getvalue().to_pybytes())

    def frame(self, jobs: Iterable[Job]) -> pd.DataFrame:
        """Return the rows of all jobs that have a file, in the order of the jobs."""
        tables = [rows for job in jobs if (rows := self.read(job)) is not None]
        return _pyarrow().concat_tables(tables or [schema().empty_table()]).to_pandas()


def _pyarrow(module: str = "") -> Any:
    return require(f"pyarrow{module}", "data", "results of sweeps")


def schema() -> pa.Schema:
    """Return the columns of the data set: settings of the job, then numbers at checkpoints."""
    pa = _pyarrow()
    columns = (
        {"job": "string"}
        | {name: key.column for name, key in KEYS.items() if key.column}
        | {"edges": "int64"}
    )
    columns |= {
        "stopped": "float64",
        "iteration": "int64",
        "component": "int64",
        "error": "float64",
        "spread": "float64",
    }
    columns |= {
        "units": "int64",
        "estimate": "float64",
        "exact": "float64",
        "low": "float64",
        "high": "float64",
    }
    columns["relative"] = "bool_"
    fields = [(name, getattr(pa, kind)()) for name, kind in columns.items()]
    return pa.schema(fields, metadata={"gosta": FORMAT})


def _rows(job: Job, result: JobResult) -> pa.Table:
    count = len(result.columns["iteration"])
    constant = {
        **job.settings,
        **{name: getattr(result, name) for name in ("n", "nodes", "edges", "stopped", "relative")},
        "job": job.key,
        "graph": job["graph"] or result.graph,
        "options": json.dumps(job["options"], sort_keys=True, default=str),
        "columns": None if job["columns"] is None else ", ".join(job["columns"]),
        "partition": None if job["partition"] is None else "-".join(map(str, job["partition"])),
        "iterations": int(result.columns["iteration"][-1]),
    }
    values = {
        name: result.columns.get(name, [constant.get(name)] * count) for name in schema().names
    }
    return _pyarrow().table(values, schema=schema())


@dataclass(frozen=True)
class Outcome:
    """Outcome of the jobs of a sweep."""

    results: ResultFolder
    finished_before: int  # number of jobs that had results already
    failed: Mapping[str, str]  # reasons why jobs have no result, by the job's key
    interrupted: bool  # whether Ctrl-C ended the sweep


def run_jobs(
    plan: Sweep,
    folder: str | Path,
    *,
    backend: Backend = "local",
    scheduler: str | None = None,
    workers: int | None = None,
    engine: str = "compiled",
) -> Outcome:
    """Run all jobs of a sweep that have no results yet.

    Parameters
    ----------
    plan
        Jobs and what they need.
    folder
        Folder of the results, one Parquet file for each job. Jobs that have one are not run again.
    backend
        "local" for processes of this machine, "dask" or "ray" for a cluster. The numbers do not
        depend on it.
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
        device.require_gpu()
    # Imported now: Ctrl-C during the import would leave half a module behind.
    require("pandas", "sim", "sweeps")
    results = ResultFolder(Path(folder))
    missing = [job for job in plan.jobs if results.read(job) is None]
    for job in missing:
        results.remove(job)
    random.shuffle(missing)  # so that machines that share the folder share the work, too
    finished_before = len(plan.jobs) - len(missing)
    failed = dict[str, str]()
    interrupted = False
    if not missing:
        return Outcome(results, finished_before, failed, interrupted)
    processes = min(workers or (1 if engine == "gpu" else machine.available_cores()), len(missing))
    threads = max(1, machine.available_cores() // processes) if backend == "local" else 1
    title = f"{len(missing)} job{'s' * (len(missing) > 1)}"
    with progress.bar(title, len(missing), delay_seconds=0) as advance:
        tasks = _tasks(plan, missing, engine, threads, results, advance)
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
    plan: Sweep,
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
                number, partial(run_job, job, plan.inputs(job), engine, threads, gosta.__version__)
            )


def run_job(
    job: Job, inputs: Mapping[str, Any], engine: str, threads: int, version: str
) -> JobResult | Failure:
    """Run one job on a worker; return the reason in one line if it fails."""
    if gosta.__version__ != version:
        return Failure(
            f"a worker has gosta {gosta.__version__}, not {version}; install the same version "
            "everywhere"
        )
    try:
        with machine.limit_cores(threads), progress.silent():
            settings = {**{name: job[name] for name in job.settings if name not in NAMED}, **inputs}
            settings["data"] = datasets.load(inputs["data"], n=settings.pop("n"))
            arguments = {name: value for name, value in settings.items() if value is not None}
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
