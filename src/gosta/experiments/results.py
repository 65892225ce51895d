"""A folder of results: one small Parquet file for each finished job, together one data set."""

from __future__ import annotations

import contextlib
import json
import tempfile
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gosta.errors import InputError
from gosta.experiments.study import FORMAT, Job
from gosta.simulation.trace import Trace

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True)
class Curve:
    """What a job found: at each checkpoint, means over the runs. Small, because it travels.

    Attributes
    ----------
    n, edges
        Of the network.
    relative
        Whether errors are relative; they are absolute where the exact value is 0.
    columns
        ``iteration``, ``component`` (0, or which of several values), ``error`` and its ``spread`` over nodes, ``units``
        (numbers sent), ``estimate`` (mean over nodes), ``exact``.
    """

    n: int
    edges: int
    relative: bool
    columns: dict[str, Any]

    @classmethod
    def of(cls, trace: Trace) -> Curve:
        """The curve of a trace."""
        data, error = trace.data, trace.error()
        target = data["target"].mean("node") if "node" in data["target"].dims else data["target"]
        exact = np.atleast_1d(target.values)
        count, values = len(trace.iterations), len(exact)

        def at_each(checkpoint: Any) -> Any:
            return np.repeat(checkpoint, values)

        columns = {
            "iteration": at_each(trace.iterations),
            "component": np.tile(np.arange(values), count),
            "error": at_each(error["mean"].values),
            "spread": at_each(error["spread"].values),
            "units": at_each(trace.units),
            "estimate": data["estimate"].mean("run").values.reshape(-1),
            "exact": np.tile(exact, count),
        }
        return cls(trace.about["n"], trace.about["edges"], trace.about["relative"], columns)


class Results:
    """A folder that may be shared: files appear whole, under names that follow from the settings of their jobs.

    Whoever does a job a second time writes the same numbers again, so machines need not know of each other.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, prefix="."):
                pass
        except OSError as error:
            raise InputError(f"cannot write into the folder {folder}: {error.strerror or error}") from error

    def file(self, job: Job) -> Path:
        """Where the numbers of a job are kept."""
        return self.folder / f"{job.key}.parquet"

    def has(self, job: Job) -> bool:
        """Whether there are numbers of a job, without reading them."""
        return self.file(job).exists()

    def read(self, job: Job) -> pa.Table | None:
        """The numbers of a job; None where there are none, or none that can be read."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.ParquetFile(self.file(job)).read()
        except (OSError, pa.ArrowException, ValueError):
            return None
        return table if table.schema.equals(schema()) and len(table) > 0 else None

    def forget(self, job: Job) -> None:
        """Remove a damaged file, which would spoil the data set."""
        with contextlib.suppress(OSError):
            self.file(job).unlink(missing_ok=True)

    def write(self, job: Job, curve: Curve) -> None:
        """Keep the numbers of a job, whole or not at all."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        content = pa.BufferOutputStream()
        pq.write_table(_table(job, curve), content)
        # A name that begins with a dot is no part of the data set for those who read it meanwhile.
        draft = self.folder / f".{job.key}.{uuid.uuid4().hex}.part"
        try:
            draft.write_bytes(content.getvalue())
            draft.replace(self.file(job))
        except OSError as error:
            raise InputError(f"cannot write into the folder {self.folder}: {error.strerror or error}") from error
        finally:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)

    def frame(self, jobs: Iterable[Job]) -> pd.DataFrame:
        """The numbers of all jobs that have some, in the order of the jobs."""
        import pyarrow as pa

        tables = [table for job in jobs if (table := self.read(job)) is not None]
        return pa.concat_tables(tables or [schema().empty_table()]).to_pandas()


def schema() -> pa.Schema:
    """The columns of the data set: settings of the job, then one row a checkpoint."""
    import pyarrow as pa

    text, whole, number, yes = pa.string(), pa.int64(), pa.float64(), pa.bool_()
    settings = {"job": text, "data": text, "statistic": text, "options": text, "columns": text, "label": text}
    settings |= {"score": text, "drop_missing": yes, "graph": text, "protocol": text, "n": whole, "edges": whole}
    settings |= {"seed": whole, "runs": whole, "iterations": whole, "checkpoints": whole, "spacing": text}
    rows = {"iteration": whole, "component": whole, "error": number, "spread": number, "units": whole}
    rows |= {"estimate": number, "exact": number, "relative": yes}
    return pa.schema([*settings.items(), *rows.items()], metadata={"gosta": FORMAT})


def _table(job: Job, curve: Curve) -> pa.Table:
    import pyarrow as pa

    count = len(curve.columns["iteration"])
    same = {
        **vars(job),
        "job": job.key,
        "options": json.dumps(job.options, sort_keys=True, default=str),
        "columns": None if job.columns is None else ", ".join(job.columns),
        "n": curve.n,
        "edges": curve.edges,
        "relative": curve.relative,
        "iterations": int(curve.columns["iteration"][-1]),
    }
    values = {name: curve.columns.get(name, [same.get(name)] * count) for name in schema().names}
    return pa.table(values, schema=schema())
