"""``gosta.sweep``: simulations of all combinations of some settings, and their results together."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gosta.errors import InputError
from gosta.experiments.content import name_values
from gosta.experiments.jobs import (
    AXES,
    NAMED,
    Job,
    Source,
    Sweep,
    describe,
    make_sweep,
    read,
    setting_text,
)
from gosta.experiments.panels import draw
from gosta.experiments.run import Backend, run_jobs
from gosta.runtime.extras import require_extra
from gosta.views import html, numbers, terminal
from gosta.views.plots import shown_figure

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Record = dict[str, Any]
# Columns of results that vary with the checkpoint.
NUMBERS = ("error", "spread", "units", "estimate", "exact", "low", "high")
MAX_LINES = 30  # of the table; with more jobs, seeds are averaged


class SweepResult:
    """Results of a sweep: errors and estimates of every job at its checkpoints.

    Attributes
    ----------
    failed
        Reasons why jobs have no results, by the job in words.
    records
        A record for each job that finished or failed, which JSON can store: its settings, and the
        numbers at its last checkpoint or the reason why there are none.

    Examples
    --------
    >>> import gosta
    >>> swept = {"protocol": ["u2", "averaging"], "n": [20, 40]}
    >>> result = gosta.sweep("iris", "variance", **swept, runs=2, workers=1)
    >>> result
    SweepResult(4 jobs over protocol, n)
    >>> result.to_xarray()["error"].dims
    ('protocol', 'n', 'checkpoint')
    """

    def __init__(self, plan: Sweep, frame: pd.DataFrame, failed: Mapping[str, str]) -> None:
        self._plan, self._frame = plan, frame
        self.records = _records(plan.jobs, frame, failed)
        self.failed = {str(job): failed[job.key] for job in plan.jobs if job.key in failed}

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each job and checkpoint: settings and numbers.

        Where a statistic has several values, there is a row for each.
        """
        return self._frame.copy()

    def last(self) -> pd.DataFrame:
        """Return a row for each job: what was swept, and the numbers at its last checkpoint."""
        import pandas as pd

        rows = pd.DataFrame(self._finished)
        swept, columns = self._plan.swept, rows.dropna(axis="columns", how="all").columns
        return rows[[*swept, *(name for name in columns if name not in swept)]]

    def to_xarray(self) -> xr.Dataset:
        """Return the numbers with a dimension for each swept setting, and one for checkpoints.

        ``iteration`` is the iteration of each checkpoint; where a statistic has several values,
        they are the dimension ``component``. Jobs that failed are NaN; jobs whose nodes stopped
        keep their last numbers, and ``stopped`` is the iteration at which they stopped.
        """
        import pandas as pd

        settings = {job.key: job.settings for job in self._plan.jobs}
        frame = self._frame.assign(checkpoint=self._frame.groupby(["job", "component"]).cumcount())
        order: dict[str, list[Any]] = {}
        # Settings as the user gave them: results hold the `n` and `nodes` that were used.
        for name in self._plan.swept:
            frame[name] = [_label(settings[key][name]) for key in frame["job"]]
            order[name] = list(dict.fromkeys(_label(job[name]) for job in self._plan.jobs))
        dimensions = [*self._plan.swept, *["component"] * (frame["component"].nunique() > 1)]
        kept = ["iteration", *(name for name in NUMBERS if frame[name].notna().any())]
        table = frame.set_index([*dimensions, "checkpoint"])[kept]
        has_stopped = frame["stopped"].notna().any()
        if has_stopped and dimensions:  # such jobs have fewer checkpoints than others
            wide = table.unstack("checkpoint")
            table = pd.concat({name: wide[name].ffill(axis=1).stack() for name in kept}, axis=1)
        data: xr.Dataset = table.to_xarray().set_coords("iteration")
        if has_stopped:
            jobs = frame.drop_duplicates("job")
            swept = self._plan.swept
            data["stopped"] = (
                jobs.set_index(swept)["stopped"].to_xarray() if swept else jobs["stopped"].iloc[0]
            )
        return data.transpose(*self._plan.swept, "checkpoint", ...).reindex(order)

    def plot(self, against: str | None = None) -> Any:
        """Draw the errors, and return an array of axes.

        There is a panel for each statistic and graph, and a colour for each protocol.

        Parameters
        ----------
        against
            "iterations" draws the curves; the name of a number that was swept, such as "n", the
            last errors against it; so does the name of a parameter of a family of graphs, such as
            "k". By default a number that has at least three values, else the iterations.
        """
        return draw(self._frame, "sweep", self._plan, against, figure=shown_figure)

    def __repr__(self) -> str:
        over = ", ".join(self._plan.swept) or "nothing"
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"SweepResult({numbers.count(len(self._plan.jobs), 'job')} over {over}{failed})"

    def __str__(self) -> str:
        """Return a table of the last numbers, below the settings that all share, and failures."""
        heading, rows = self._table()
        lines = []
        if rows:
            right = [k for k, name in enumerate(rows[0]) if name not in NAMED]
            kinds = {True: "relative error", False: "absolute error where the exact value is 0"}
            occurring = {record["relative"] for record in self._finished}
            kind = ", ".join(kinds[relative] for relative in sorted(occurring, reverse=True))
            explanation = f"error: {kind}, mean over nodes; spread: its standard deviation"
            lines = [heading, terminal.columns(rows, right), explanation]
        failed = [record for record in self.records if "failed" in record]
        if failed:
            lines.append(f"{numbers.count(len(failed), 'job')} failed:")
        for reason in dict.fromkeys(record["failed"] for record in failed):
            alike = [record for record in failed if record["failed"] == reason]
            more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
            lines += [f"  {describe(alike[0])}{more}:", f"    {reason}"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        heading, rows = self._table()
        shown = html.table(rows, heading=True, caption=f"Sweep: {heading}") if rows else ""
        return shown + html.table(self.failed.items(), caption="Failed") if self.failed else shown

    @property
    def _finished(self) -> list[Record]:
        return [record for record in self.records if "failed" not in record]

    def _table(self) -> tuple[str, list[list[str]]]:
        """Return the settings that all jobs share in words, and a table of what differs.

        A row has the last numbers of a job. Where there are many jobs, seeds are averaged. The
        table is empty if no job has finished.
        """
        finished, varied = self._finished, list(self._plan.swept)
        if not finished:
            return "", []
        shared = [
            f"{name} {setting_text(name, finished[0][name])}" for name in _shared(finished, varied)
        ]
        if "seed" in varied and len(finished) > MAX_LINES:
            varied.remove("seed")
            shared.append(f"means over {len({record['seed'] for record in finished})} seeds")
        groups: dict[tuple[Any, ...], list[Record]] = {}
        for record in finished:
            groups.setdefault(tuple(record[name] for name in varied), []).append(record)
        has_stopped = all(record["stopped"] is not None for record in finished)
        rows = [[*varied, "error", "spread", "numbers sent", *["stopped after"] * has_stopped]]
        for values, group in groups.items():
            relative = all(record["relative"] for record in group)
            errors = [numbers.error(_mean(group, name), relative) for name in ("error", "spread")]
            counted = ("units", *["stopped"] * has_stopped)
            counts = [numbers.count(_mean(group, name)) for name in counted]
            rows.append([*map(setting_text, varied, values), *errors, *counts])
        return ", ".join(shared), rows


def _records(jobs: Sequence[Job], frame: pd.DataFrame, failed: Mapping[str, str]) -> list[Record]:
    """Return a record for each job that finished or failed."""
    by_job = dict(list(frame.groupby("job", sort=False)))
    records: list[Record] = []
    for job in jobs:
        settings: Record = {name: job[name] for name in AXES}
        if job.key in failed:
            records.append({**settings, "failed": failed[job.key]})
        elif job.key in by_job:
            records.append(settings | _last_numbers(job, by_job[job.key]))
    return records


def _last_numbers(job: Job, rows: pd.DataFrame) -> Record:
    """Return the settings that were used for a job, and the numbers at its last checkpoint."""
    rows = rows[rows["iteration"] == rows["iteration"].iloc[-1]]
    last = rows.iloc[0]
    values = {name: rows[name].tolist() for name in ("exact", "estimate")}
    return {
        "graph": last["graph"],
        **{name: int(last[name]) for name in ("n", "nodes", "edges")},
        "options": dict(job["options"]),
        "runs": job["runs"],
        "iterations": int(last["iteration"]),
        **{name: value[0] if len(value) == 1 else value for name, value in values.items()},
        "error": float(last["error"]),
        "spread": float(last["spread"]),
        "relative": bool(last["relative"]),
        "units": int(last["units"]),
        "stopped": None if job["until"] is None else float(last["stopped"]),
    }


def _mean(group: Sequence[Record], name: str) -> float:
    return float(np.mean([record[name] for record in group]))


def _shared(finished: Sequence[Record], varied: Sequence[str]) -> list[str]:
    """Return the names of the settings that all jobs share and that are worth a word."""
    names = [name for name in (*AXES, "runs", "iterations") if name not in varied]
    if all(record["nodes"] == record["n"] for record in finished) and "nodes" in names:
        names.remove("nodes")
    first = finished[0]
    return [
        name
        for name in names
        if first[name] is not None and all(record[name] == first[name] for record in finished)
    ]


def _label(value: Any) -> Any:
    """Return the coordinate of a setting: an empty text where it is not set."""
    return "" if value is None else value


def sweep(
    data: Any,
    statistic: Any = None,
    *,
    out: str | Path | None = None,
    backend: Backend = "local",
    scheduler: str | None = None,
    workers: int | None = None,
    engine: str = "compiled",
    **settings: Any,
) -> SweepResult:
    """Simulate every combination of some settings, in processes of this machine or on a cluster.

    Parameters
    ----------
    data
        A data set, as for `gosta.simulate`, or a list of them; ``{"a": frame, "b": frame}`` gives
        them names. Or the path of a sweep, a file that ends in .toml and holds all settings.
    statistic
        A statistic by name, a `gosta.Statistic`, or a list of them.
    **settings
        Of these a list sweeps: ``graph``, ``protocol``, ``n`` (rows), ``nodes``, ``by``, ``deal``,
        ``homophily``, ``loss``, ``away``, ``away_for``, ``until``, ``interval``, ``seed``. Graphs
        and protocols are names or values. ``seeds=5`` are the seeds 0 to 4. The same for all jobs
        are ``iterations`` or ``iterations_per_node``, ``runs``, ``checkpoints``, ``spacing``,
        ``partition``, ``columns``, ``label``, ``score``, ``time``, ``event``, ``drop_missing``,
        ``options``. They are those of `gosta.simulate`.
    out
        Folder that keeps the results. Jobs that it has are not run again, so that the same call
        continues after an interruption, and a longer list adds jobs.
    backend, scheduler
        "local", or a cluster: "dask" with the address of its scheduler, "ray".
    workers
        Number of processes on this machine; by default one for each core.
    engine
        As for `gosta.simulate`; jobs that it does not support are run by the compiled engine.

    Returns
    -------
    SweepResult
        Errors and estimates of all jobs, as a table, an xarray data set or a plot. A combination
        that cannot be simulated, such as a torus of 101 nodes, is in its `failed`.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C; finished jobs are kept in `out`, if it is given.

    Examples
    --------
    >>> import gosta
    >>> swept = {"graph": ["complete", "cycle"], "n": [20, 40], "seeds": 2}
    >>> result = gosta.sweep("iris", "variance", **swept, runs=2, workers=1)
    >>> errors = result.to_xarray()["error"].isel(checkpoint=-1).mean("seed")
    >>> errors.dims, bool((errors.sel(graph="complete") < errors.sel(graph="cycle")).all())
    (('graph', 'n'), True)
    """
    require_extra("sim", "data", purpose="gosta.sweep")
    chosen = {name: value for name, value in settings.items() if value is not None}
    if isinstance(data, str | Path) and Path(data).suffix == ".toml":
        if statistic is not None or chosen:
            names = ", ".join([*["statistic"] * (statistic is not None), *chosen])
            raise InputError(
                f"{names}: the sweep {data} has all settings; write them there, or give no file"
            )
        plan = read(data)
    else:
        plain, values = name_values({"data": data, "statistic": statistic} | chosen)
        plan = make_sweep(plain, Source(), values)
    where = {"backend": backend, "scheduler": scheduler, "workers": workers, "engine": engine}
    if out is not None:
        return _run(plan, Path(out), where)
    with tempfile.TemporaryDirectory() as folder:
        return _run(plan, Path(folder), where, is_kept=False)


def _run(plan: Sweep, folder: Path, where: Mapping[str, Any], is_kept: bool = True) -> SweepResult:
    outcome = run_jobs(plan, folder, **where)
    if outcome.interrupted:
        kept = f"finished jobs are kept in {folder}, and the same call continues"
        raise KeyboardInterrupt(kept if is_kept else "with out=FOLDER, finished jobs are kept")
    if len(outcome.failed) == len(plan.jobs):
        reason = next(iter(outcome.failed.values()))
        raise InputError(
            f"none of {numbers.count(len(plan.jobs), 'job')} could be simulated: {reason}"
        )
    return SweepResult(plan, outcome.results.frame(plan.jobs), outcome.failed)
