"""A folder of results: one small Parquet file for each finished job, together one data set."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.experiments.study import FORMAT, Job
from gosta.runtime.extras import require
from gosta.runtime.files import write_atomically
from gosta.simulation.trace import Trace

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True)
class JobResult:
    """Result of a job: at each checkpoint, means over the runs. Small, because workers send it.

    The columns are ``iteration``, ``component`` (0, or which of several values), ``error`` and its ``spread`` over
    nodes, ``units`` (numbers sent), ``estimate`` (mean over nodes), ``exact``.
    """

    n: int  # nodes of the network
    edges: int
    relative: bool  # whether errors are relative; they are absolute where the exact value is 0
    columns: Mapping[str, NDArray[Any]]

    @classmethod
    def from_trace(cls, trace: Trace) -> JobResult:
        """Return the means over the runs of a trace."""
        data, error = trace.data, trace.error()
        target = data["target"].mean("node") if "node" in data["target"].dims else data["target"]
        exact = np.atleast_1d(target.values)
        checkpoints, components = len(trace.iterations), len(exact)

        def at_each(values: NDArray[Any]) -> NDArray[Any]:
            return np.repeat(values, components)

        columns = {
            "iteration": at_each(trace.iterations),
            "component": np.tile(np.arange(components), checkpoints),
            "error": at_each(error["mean"].values),
            "spread": at_each(error["spread"].values),
            "units": at_each(trace.units),
            "estimate": data["estimate"].mean("run").values.reshape(-1),
            "exact": np.tile(exact, checkpoints),
        }
        return cls(trace.info.nodes, trace.info.edges, trace.info.is_relative, columns)


class ResultFolder:
    """A folder that machines can share: files are complete, and their names follow from the settings of their jobs.

    Two machines that run the same job write the same numbers, so they need no coordination.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, prefix="."):
                pass
        except OSError as error:
            raise InputError(f"cannot write into the folder {folder}: {error.strerror or error}") from error

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
        found = [rows for job in jobs if (rows := self.read(job)) is not None]
        return _pyarrow().concat_tables(found or [schema().empty_table()]).to_pandas()


def _pyarrow(module: str = "") -> Any:
    return require(f"pyarrow{module}", "data", "results of sweeps")


def schema() -> pa.Schema:
    """Return the columns of the data set: settings of the job, then those that vary with the checkpoint."""
    pa = _pyarrow()
    text, integer, number, boolean = pa.string(), pa.int64(), pa.float64(), pa.bool_()
    settings = {"job": text, "data": text, "statistic": text, "options": text, "columns": text, "label": text}
    settings |= {"score": text, "drop_missing": boolean, "graph": text, "protocol": text, "n": integer}
    settings |= {"edges": integer, "seed": integer, "runs": integer, "iterations": integer, "checkpoints": integer}
    settings |= {"spacing": text}
    rows = {"iteration": integer, "component": integer, "error": number, "spread": number, "units": integer}
    rows |= {"estimate": number, "exact": number, "relative": boolean}
    return pa.schema([*settings.items(), *rows.items()], metadata={"gosta": FORMAT})


def _rows(job: Job, result: JobResult) -> pa.Table:
    count = len(result.columns["iteration"])
    constant = {
        **vars(job),
        "job": job.key,
        "options": json.dumps(job.options, sort_keys=True, default=str),
        "columns": None if job.columns is None else ", ".join(job.columns),
        "n": result.n,
        "edges": result.edges,
        "relative": result.relative,
        "iterations": int(result.columns["iteration"][-1]),
    }
    values = {name: result.columns.get(name, [constant.get(name)] * count) for name in schema().names}
    return _pyarrow().table(values, schema=schema())
