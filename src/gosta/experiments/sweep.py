"""``gosta.sweep``: simulations of all combinations of some settings, and their results together."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gosta.errors import InputError
from gosta.experiments import summary
from gosta.experiments.content import name_values
from gosta.experiments.run import Backend, run_study
from gosta.experiments.study import Source, Study, make_study, read
from gosta.runtime.extras import require_extra
from gosta.views import html, numbers

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# that vary with the checkpoint
NUMBERS = ("error", "spread", "units", "estimate", "exact", "low", "high")


class SweepResult:
    """Results of a sweep: errors and estimates of every job at its checkpoints.

    Attributes
    ----------
    failed
        Reasons why jobs have no results, by the job in words.

    Examples
    --------
    >>> import gosta
    >>> result = gosta.sweep("iris", "variance", protocol=["u2", "averaging"], n=[20, 40], runs=2, workers=1)
    >>> result
    SweepResult(4 jobs over protocol, n)
    >>> result.to_xarray()["error"].dims
    ('protocol', 'n', 'checkpoint')
    """

    def __init__(self, study: Study, frame: pd.DataFrame, failed: Mapping[str, str]) -> None:
        self._study, self._frame = study, frame
        self._records = summary.records(study.jobs, frame, failed)
        self.failed = {str(job): failed[job.key] for job in study.jobs if job.key in failed}

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each job and checkpoint (and value, where a statistic has several): settings and numbers."""
        return self._frame.copy()

    def last(self) -> pd.DataFrame:
        """Return a row for each job: what was swept, and the numbers at its last checkpoint."""
        import pandas as pd

        rows = pd.DataFrame([record for record in self._records if "failed" not in record])
        swept, given = self._study.swept, rows.dropna(axis="columns", how="all").columns
        return rows[[*swept, *(name for name in given if name not in swept)]]

    def to_xarray(self) -> xr.Dataset:
        """Return the numbers with a dimension for each setting that was swept, and one for the checkpoints.

        ``iteration`` is that of each checkpoint; where a statistic has several values, they are the dimension
        ``component``. Jobs that failed are NaN; those whose nodes stopped keep their last numbers, and ``stopped`` is
        the iteration of that.
        """
        import pandas as pd

        settings = {job.key: job.settings for job in self._study.jobs}
        frame = self._frame.assign(checkpoint=self._frame.groupby(["job", "component"]).cumcount())
        order: dict[str, list[Any]] = {}
        for name in (
            self._study.swept
        ):  # as they were given: `n` and `nodes` of the results are those that were used
            frame[name] = [_label(settings[key][name]) for key in frame["job"]]
            order[name] = list(dict.fromkeys(_label(job[name]) for job in self._study.jobs))
        dimensions = [*self._study.swept, *["component"] * (frame["component"].nunique() > 1)]
        kept = ["iteration", *(name for name in NUMBERS if frame[name].notna().any())]
        table = frame.set_index([*dimensions, "checkpoint"])[kept]
        has_stopped = frame["stopped"].notna().any()
        if has_stopped and dimensions:  # such jobs have fewer checkpoints than others
            wide = table.unstack("checkpoint")
            table = pd.concat({name: wide[name].ffill(axis=1).stack() for name in kept}, axis=1)
        data: xr.Dataset = table.to_xarray().set_coords("iteration")
        if has_stopped:
            jobs = frame.drop_duplicates("job")
            swept = self._study.swept
            data["stopped"] = (
                jobs.set_index(swept)["stopped"].to_xarray() if swept else jobs["stopped"].iloc[0]
            )
        return data.transpose(*self._study.swept, "checkpoint", ...).reindex(order)

    def plot(self, against: str | None = None) -> Any:
        """Draw the errors: a panel for each statistic and graph, a colour for each protocol; return an array of axes.

        Parameters
        ----------
        against
            "iterations" draws the curves; the name of a number that was swept, such as "n", the last errors against it;
            so does the name of a parameter of a family of graphs, such as "k". By default a number that has at least
            three values, else the iterations.
        """
        from gosta.experiments.plotting import draw
        from gosta.views.plots import shown_figure

        return draw(self._frame, "sweep", self._study, against, figure=shown_figure)

    def __repr__(self) -> str:
        over = ", ".join(self._study.swept) or "nothing"
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"SweepResult({numbers.count(len(self._study.jobs), 'job')} over {over}{failed})"

    def __str__(self) -> str:
        return summary.as_text(self._records, self._study.swept)

    def _repr_html_(self) -> str:
        heading, rows = summary.table(self._records, self._study.swept)
        shown = html.table(rows, heading=True, caption=f"Sweep: {heading}") if rows else ""
        return shown + html.table(self.failed.items(), caption="Failed") if self.failed else shown


def _label(value: Any) -> Any:
    """Return the coordinate of a setting; of rows at random nodes, for which it is not set, an empty text."""
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
        A data set, as for `gosta.simulate`, or a list of them; ``{"a": frame, "b": frame}`` gives them names. Or the
        path of a study, a file that ends in .toml and holds all settings.
    statistic
        A statistic by name, a `gosta.Statistic`, or a list of them.
    **settings
        Of these a list sweeps: ``graph``, ``protocol``, ``n`` (rows), ``nodes``, ``by``, ``deal``, ``homophily``,
        ``loss``, ``away``, ``away_for``, ``until``, ``interval``, ``seed``. Graphs and protocols are names or
        values. ``seeds=5`` are the seeds 0 to 4. The same for all jobs are ``iterations`` or ``iterations_per_node``,
        ``runs``, ``checkpoints``, ``spacing``, ``partition``, ``columns``, ``label``, ``score``, ``drop_missing``,
        ``options``. They are those of `gosta.simulate`.
    out
        Folder that keeps the results. Jobs that it has are not run again, so that the same call continues after an
        interruption, and a longer list adds jobs.
    backend, scheduler
        "local", or a cluster: "dask" with the address of its scheduler, "ray".
    workers
        Number of processes on this machine; by default one for each core.
    engine
        As for `gosta.simulate`; jobs that it does not support are run by the compiled engine.

    Returns
    -------
    SweepResult
        Errors and estimates of all jobs, as a table, an xarray data set or a plot. A combination that cannot be
        simulated, such as a torus of 101 nodes, is in its `failed`.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C; finished jobs are kept in `out`, if it is given.

    Examples
    --------
    >>> import gosta
    >>> result = gosta.sweep("iris", "variance", graph=["complete", "cycle"], n=[20, 40], seeds=2, runs=2, workers=1)
    >>> errors = result.to_xarray()["error"].isel(checkpoint=-1).mean("seed")
    >>> errors.dims, bool((errors.sel(graph="complete") < errors.sel(graph="cycle")).all())
    (('graph', 'n'), True)
    """
    require_extra("sim", "data", purpose="gosta.sweep")
    given = {name: value for name, value in settings.items() if value is not None}
    if isinstance(data, str | Path) and Path(data).suffix == ".toml":
        if statistic is not None or given:
            names = ", ".join([*["statistic"] * (statistic is not None), *given])
            raise InputError(
                f"{names}: the study {data} has all settings; write them there, or give no study"
            )
        study = read(data)
    else:
        plain, values = name_values({"data": data, "statistic": statistic} | given)
        study = make_study(plain, Source(), values)
    where = {"backend": backend, "scheduler": scheduler, "workers": workers, "engine": engine}
    if out is not None:
        return _run(study, Path(out), where)
    with tempfile.TemporaryDirectory() as folder:
        return _run(study, Path(folder), where, is_kept=False)


def _run(study: Study, folder: Path, where: Mapping[str, Any], is_kept: bool = True) -> SweepResult:
    outcome = run_study(study, folder, **where)
    if outcome.interrupted:
        kept = f"finished jobs are kept in {folder}, and the same call continues"
        raise KeyboardInterrupt(kept if is_kept else "with out=FOLDER, finished jobs are kept")
    if len(outcome.failed) == len(study.jobs):
        reason = next(iter(outcome.failed.values()))
        raise InputError(
            f"none of {numbers.count(len(study.jobs), 'job')} could be simulated: {reason}"
        )
    return SweepResult(study, outcome.results.frame(study.jobs), outcome.failed)
