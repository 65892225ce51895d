"""The result of a simulation: estimates at checkpoints, their errors, and data to resume."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.estimation.setting import Setting
from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.extras import require
from gosta.simulation import trace_file
from gosta.simulation.run_options import RunInfo
from gosta.simulation.trace_file import Missing
from gosta.views import html, numbers

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SNAPSHOT = "snapshot_"  # prefix of the engine's arrays in `resume_data`


class Trace:
    """Results of a simulation: an `xarray.Dataset` with a few ways to look at it.

    Attributes
    ----------
    data
        ``mean``, ``spread`` and ``median``: mean, standard deviation and median over nodes of the
        error, by run and iteration; ``estimate``: mean over nodes; ``estimates`` by run, iteration
        and node (absent where they would not fit); ``units``: numbers sent; ``target``: exact
        value; ``stopped``: iteration at which the nodes of a run stopped, or 0; ``counted``: where
        nodes count the rows in their estimates, the least count of a node, by run and iteration;
        with faults, ``failed``: exchanges that did not take place, by run, iteration and fault
        (loss, away, partition); where requested, ``low``, ``high`` and ``standard_error`` by run,
        iteration and node, and ``time``. Checkpoints that were not reached are NaN. Where there are
        several values, they are the last dimension, ``value``, with the names of several statistics
        as its coordinate; the error of a node is then that of the statistic with the largest one.
        With `by`, the values of that column are the coordinate ``node``.
    setting
        What was simulated: its `protocol`, `estimand` (a statistic over rows), `placement` of the
        rows, `graph`, `faults`.
    info
        How: number of runs, seed, engine, iterations, seconds.
    resume_data
        Arrays from which `gosta.resume` continues; empty where they would be too large.
    missing
        What a trace that was read from a file lacks to be continued.

    Examples
    --------
    >>> import gosta
    >>> trace = gosta.simulate("iris", "gini-mean-difference", columns=0, iterations=1000, runs=1)
    >>> trace
    Trace(carried-means on watts-strogatz, gini-mean-difference, 1 run, 100 checkpoints up to 1000)
    >>> sorted(trace.error().data_vars)
    ['mean', 'spread']
    """

    def __init__(
        self,
        data: xr.Dataset,
        setting: Setting,
        info: RunInfo,
        resume_data: Mapping[str, NDArray[Any]],
        missing: Missing = trace_file.NOTHING_MISSING,
    ) -> None:
        self.data = data
        self.setting = setting
        self.info = info
        self.resume_data = dict(resume_data)
        self.missing = missing

    @property
    def iterations(self) -> Integers:
        """Iterations of the checkpoints."""
        return np.asarray(self.data["iteration"].values)

    @property
    def estimates(self) -> xr.DataArray:
        """Estimates by run, iteration and node (and value, where the statistic has several)."""
        if "estimates" not in self.data:
            raise InputError(
                "the estimates of all nodes were too many to keep; error() has their summaries"
            )
        return self.data["estimates"]

    @property
    def value_names(self) -> list[str]:
        """The names of the values of several statistics; empty for one."""
        return (
            [str(name) for name in self.data["value"].values] if "value" in self.data.coords else []
        )

    @property
    def node_names(self) -> list[str]:
        """The names of the nodes, where each is a value of the column `by`; otherwise empty."""
        return (
            [str(name) for name in self.data["node"].values] if "node" in self.data.coords else []
        )

    def intervals(self) -> tuple[xr.DataArray, xr.DataArray]:
        """Return the lower and upper bounds of the nodes' intervals.

        They are arrays by run, iteration and node (and value).
        """
        if self.setting.estimand.level is None:
            raise InputError("this simulation has no intervals; request them with interval=0.95")
        return self.data["low"], self.data["high"]

    @property
    def target(self) -> float | Floats:
        """Exact value: a number, or one for each node (or value)."""
        values: Floats = self.data["target"].values
        return float(values) if values.ndim == 0 else values

    @property
    def units(self) -> Integers:
        """Numbers sent by all nodes together, at each checkpoint."""
        return np.asarray(self.data["units"].values)

    @property
    def is_relative(self) -> bool:
        """Whether errors are relative; they are absolute where the exact value is 0."""
        return bool((self.data["target"].values != 0).any())

    @property
    def is_complete(self) -> bool:
        """Whether all runs reached the last checkpoint, or were stopped by their nodes."""
        reached = np.isfinite(self.data["mean"].values).all(axis=1)
        return bool((reached | (self.data["stopped"].values > 0)).all())

    @property
    def can_resume(self) -> bool:
        """Whether `gosta.resume` can continue the runs."""
        return any(name.startswith(SNAPSHOT) for name in self.resume_data)

    def error(self) -> xr.Dataset:
        """Return mean error and its spread over nodes at each checkpoint.

        Both are averaged over the runs that reached the checkpoint.

        A run whose nodes stopped keeps the error that it stopped with.
        """
        import xarray as xr

        stopped, data = self.data["stopped"], self.data[["mean", "spread"]]
        last = data.sel(iteration=stopped.where(stopped > 0, self.iterations[0])).drop_vars(
            "iteration"
        )
        kept = data.where((stopped == 0) | (data["iteration"] <= stopped), last)
        means = {name: kept[name].mean("run", skipna=True) for name in ("mean", "spread")}
        kind = "relative" if self.is_relative else "absolute (the target is 0)"
        return xr.Dataset(means, attrs={"error": kind})

    def to_pandas(self) -> pd.DataFrame:
        """Return mean error, spread and numbers sent, with one row for each checkpoint."""
        require("pandas", "data", "Trace.to_pandas")
        return self.error().to_dataframe().assign(units=self.units)

    def to_dict(self) -> dict[str, Any]:
        """Return a summary as plain numbers and texts: what ``gosta run --json`` prints.

        Numbers are means over the runs at the last checkpoint.

        Examples
        --------
        >>> import gosta
        >>> trace = gosta.simulate("iris", "gini-mean-difference", iterations=1000, runs=1)
        >>> record = trace.to_dict()
        >>> record["protocol"], record["iterations"], round(record["exact"], 4)
        ('carried-means', 1000, 0.9462)
        """
        from gosta.simulation.trace_summary import trace_record

        return trace_record(self)

    def plot(self, ax: Any = None, label: str | None = None) -> Any:
        """Draw the error against iterations, with its spread over nodes as a band; return the axes.

        Without `ax` they belong to a new figure, which a notebook shows at the end of the cell.
        """
        from gosta.simulation.trace_plots import SIZE, plot_errors
        from gosta.views.plots import shown_figure

        if not np.isfinite(self.data["mean"].values).any():
            raise InputError("no checkpoint was reached: there is nothing to draw")
        axes = shown_figure(*SIZE).add_subplot() if ax is None else ax
        return plot_errors([self], [label or self.setting.protocol.label], ax=axes)

    def report(self, path: str | Path, run: int = 0) -> None:
        """Write a page of one run to an HTML file, which needs nothing else and can be mailed.

        It plays the run: the network with the estimates of all nodes, errors, histogram, the
        history of each node.

        Parameters
        ----------
        path
            A file that ends in .html.
        run
            Number of the run, from 0.

        Examples
        --------
        >>> import gosta
        >>> trace = gosta.simulate("iris", "gini-mean-difference", iterations=2000, runs=1)
        >>> trace.report("run.html")  # doctest: +SKIP
        """
        from gosta.simulation.run_page import write_report

        write_report(self, path, run)

    def animate(self, path: str | Path) -> None:
        """Write an animation of the first run for slides.

        Estimates spread over the network while the error curve grows.

        Parameters
        ----------
        path
            A .gif file; or an .mp4 file, which is smaller and needs the extra ``video``.

        Examples
        --------
        >>> import gosta
        >>> trace = gosta.simulate("iris", "gini-mean-difference", runs=1, spacing="log")
        >>> trace.animate("run.gif")  # doctest: +SKIP
        """
        from gosta.simulation.animation import animate

        animate(self, Path(path))

    def save(self, path: str | Path) -> None:
        """Write the trace to a NetCDF file, which ends in .nc, atomically."""
        trace_file.save(
            trace_file.Contents(self.data, self.setting, self.info, self.resume_data, self.missing),
            Path(path),
        )

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a trace that `save` wrote."""
        return cls(*trace_file.load(Path(path)))

    def __repr__(self) -> str:
        setting, last = self.setting, self.iterations[-1]
        checkpoints = f"{len(self.iterations)} checkpoints up to {last}"
        checkpoints += "" if self.is_complete else ", interrupted"
        if self.info.until is not None:
            stopped = self.data["stopped"].values
            times = np.unique(stopped[stopped > 0])
            when = f" after {times[0]}" if len(times) else ""
            when += f" to {times[-1]}" if len(times) > 1 else ""
            checkpoints += f", {int((stopped > 0).sum())} stopped by their nodes{when}"
        where = f"{setting.protocol.label} on {setting.graph_name}"
        runs = numbers.count(self.info.runs, "run")
        return f"Trace({where}, {setting.estimand.statistic.name}, {runs}, {checkpoints})"

    def _repr_html_(self) -> str:
        setting, error = self.setting, self.error()
        reached = error["mean"].values[np.isfinite(error["mean"].values)]
        last = numbers.error(reached[-1] if len(reached) else None, self.is_relative)
        rows = {
            "protocol": setting.protocol.label,
            "statistic": setting.estimand.statistic.name,
            "data": setting.estimand.data,
            "graph": setting.graph_name,
            "nodes": f"{setting.placement.nodes:,}",
            "rows": f"{setting.estimand.n:,}",
            "runs": f"{self.info.runs:,}",
            "iterations": f"{self.iterations[-1]:,}{'' if self.is_complete else ', interrupted'}",
        }
        if "node" not in self.data["target"].dims:  # one for all nodes
            rows["exact value"] = numbers.number(self.data["target"].values.tolist())
        # Number of checkpoints that each run reached.
        counts = np.isfinite(self.data["mean"].values).sum(axis=1)
        if runs := np.flatnonzero(counts).tolist():
            estimates = self.data["estimate"].values[runs, counts[runs] - 1].mean(axis=0)
            rows["estimate, mean over nodes and runs"] = numbers.number(estimates.tolist())
        rows[f"mean {error.attrs['error']} error at the last checkpoint reached"] = last
        return html.table(rows.items(), caption="Trace") + html.sparkline(
            "error, logarithmic", self.iterations, error["mean"].values
        )
