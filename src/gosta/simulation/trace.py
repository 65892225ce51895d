"""The result of a simulation: estimates at checkpoints, their errors, and what is needed to continue the runs."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.faults import Faults, check_faults
from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.extras import require
from gosta.runtime.files import write_atomically
from gosta.views import html, numbers

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

FORMAT = "gosta trace 6"
SNAPSHOT = "snapshot_"  # prefix of the engine's arrays in `resume_data`
Spacing = Literal["linear", "log"]


@dataclass(frozen=True)
class TraceInfo:
    """Description of a simulation."""

    protocol: str
    # digest of its functions; empty where they depend on something that cannot be hashed
    protocol_fingerprint: str
    draws: int  # edges in an iteration
    averages_moments: bool  # whether nodes averaged moments of their rows instead of kernel values
    statistic: str  # the name of one, or the titles of several, separated by commas
    statistic_fingerprint: str
    options: dict[str, Any]  # of the statistic
    data: str
    graph: str  # its name; where it changes, those of all graphs and when
    # iteration and name of each graph after the first one
    graph_changes: tuple[tuple[int, str], ...]
    graph_period: int | None  # iterations after which the graphs begin again
    homophily: float | None  # requested share of nodes in the order of a column
    assortativity: float | None  # correlation of that column between neighbours
    faults: Faults
    nodes: int
    edges: int
    rows: int
    min_rows: int  # at a node
    max_rows: int
    row_widths: tuple[int, ...]  # numbers in a row, of each encoding of several statistics
    # Of each value, what each node computes from its own rows; empty with one row per node.
    local_values: tuple[tuple[float | None, ...], ...]
    level: float | None  # confidence level of the nodes' intervals
    # of each of several statistics, why nodes compute none; empty: they do
    no_intervals: tuple[str, ...]
    # of each value, from all rows in one place; empty: no level
    pooled_intervals: tuple[tuple[float, float], ...]
    is_relative: bool  # errors are absolute where the exact value is 0
    runs: int
    seed: int
    engine: str
    iterations: int  # at the last checkpoint
    spacing: Spacing
    clocks: bool  # whether times were recorded
    until: float | None  # relative error at which nodes were to stop
    seconds: float = 0.0

    @property
    def has_tables(self) -> bool:
        """Whether nodes hold several rows each."""
        return self.rows != self.nodes


def check_file(name: str, path: Path) -> None:
    """Raise `InputError` unless a path ends as the files of traces do."""
    if path.suffix != ".nc":
        hint = "for a table of the errors, to_pandas().to_csv(...) of the trace in Python"
        raise InputError(
            f"{name} = {str(path)!r} must end in .nc, the format that holds a whole trace; {hint}"
        )


class Trace:
    """Results of a simulation: an `xarray.Dataset` with a few ways to look at it.

    Attributes
    ----------
    data
        ``mean``, ``spread`` and ``median``: mean, standard deviation and median over nodes of the error, by run and
        iteration; ``estimate``: mean over nodes; ``estimates`` by run, iteration and node (absent where they would not
        fit); ``units``: numbers sent; ``target``: exact value; ``stopped``: iteration at which the nodes of a run
        stopped, or 0; ``counted``: where nodes count the rows in their estimates, the least count of a node, by run and
        iteration; with faults, ``failed``: exchanges that did not take place, by run, iteration and fault (loss, away,
        partition); where requested, ``low``, ``high`` and ``standard_error`` by run, iteration and node, and
        ``time``. Checkpoints that were not reached are NaN. Where there are several values, they are the last
        dimension, ``value``, with the names of several statistics as its coordinate; the error of a node is then that
        of the statistic with the largest one. With `by`, the values of that column are the coordinate ``node``.
    info
        What was simulated.
    resume_data
        Arrays from which `gosta.resume` continues; empty where they would be too large.

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
        self, data: xr.Dataset, info: TraceInfo, resume_data: Mapping[str, NDArray[Any]]
    ) -> None:
        self.data, self.info, self.resume_data = data, info, dict(resume_data)

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
        """Return the lower and upper bounds of the nodes' intervals, by run, iteration and node (and value)."""
        if self.info.level is None:
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
    def is_complete(self) -> bool:
        """Whether all runs reached the last checkpoint, or were stopped by their nodes."""
        reached = np.isfinite(self.data["mean"].values).all(axis=1)
        return bool((reached | (self.data["stopped"].values > 0)).all())

    @property
    def can_resume(self) -> bool:
        """Whether `gosta.resume` can continue the runs."""
        return any(name.startswith(SNAPSHOT) for name in self.resume_data)

    def error(self) -> xr.Dataset:
        """Return mean error and its spread over nodes at each checkpoint, averaged over the runs that reached it.

        A run whose nodes stopped keeps the error that it stopped with.
        """
        import xarray as xr

        stopped, data = self.data["stopped"], self.data[["mean", "spread"]]
        last = data.sel(iteration=stopped.where(stopped > 0, self.iterations[0])).drop_vars(
            "iteration"
        )
        kept = data.where((stopped == 0) | (data["iteration"] <= stopped), last)
        means = {name: kept[name].mean("run", skipna=True) for name in ("mean", "spread")}
        kind = "relative" if self.info.is_relative else "absolute (the target is 0)"
        return xr.Dataset(means, attrs={"error": kind})

    def to_pandas(self) -> pd.DataFrame:
        """Return mean error, spread and numbers sent, with one row for each checkpoint."""
        require("pandas", "data", "Trace.to_pandas")
        return self.error().to_dataframe().assign(units=self.units)

    def plot(self, ax: Any = None, label: str | None = None) -> Any:
        """Draw the error against iterations, with its spread over nodes as a band; return the axes.

        Without `ax` they belong to a new figure, which a notebook shows at the end of the cell.
        """
        from gosta.simulation.plotting import SIZE, plot
        from gosta.views.plots import shown_figure

        if not np.isfinite(self.data["mean"].values).any():
            raise InputError("no checkpoint was reached: there is nothing to draw")
        axes = shown_figure(*SIZE).add_subplot() if ax is None else ax
        return plot([self], [label or self.info.protocol], ax=axes)

    def report(self, path: str | Path, run: int = 0) -> None:
        """Write a page of one run to an HTML file, which needs nothing else and can be mailed.

        It plays the run: the network with the estimates of all nodes, errors, histogram, the history of each node.

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
        from gosta.simulation.report import write

        write(self, path, run)

    def animate(self, path: str | Path) -> None:
        """Write an animation of the first run for slides: estimates spread over the network, and the error curve grows.

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
        check_file("path", Path(path))
        require("h5netcdf", "sim", "saving a trace")
        arrays = {
            name: (tuple(f"{name}_{k}" for k in range(a.ndim)), a)
            for name, a in self.resume_data.items()
        }
        data = self.data.assign(arrays)
        data.attrs["gosta"] = json.dumps({"format": FORMAT, **asdict(self.info)})
        content = io.BytesIO()  # h5py does not survive a full disk
        data.to_netcdf(content, engine="h5netcdf")
        write_atomically(Path(path), bytes(content.getbuffer()))

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a trace that `save` wrote."""
        xr = require("xarray", "sim", "loading a trace")
        require("h5netcdf", "sim", "loading a trace")
        if not Path(path).is_file():
            raise InputError(f"no such file: {path}")
        always = {"mean", "spread", "median", "estimate", "stopped", "units", "target"}
        known = always | {"estimates", "low", "high", "standard_error", "time", "counted", "failed"}
        try:
            data = xr.load_dataset(io.BytesIO(Path(path).read_bytes()), engine="h5netcdf")
            fields = json.loads(data.attrs.pop("gosta"))
            if (form := fields.pop("format")) != FORMAT or not always <= set(data.data_vars):
                raise InputError(
                    f"{path} has the format {form!r}, this version reads {FORMAT!r}; simulate it again"
                )
            for name in ("row_widths", "no_intervals"):
                fields[name] = tuple(fields[name])
            for name in ("local_values", "pooled_intervals", "graph_changes"):
                fields[name] = tuple(map(tuple, fields[name]))
            fields["faults"] = check_faults(**fields["faults"])
            info = TraceInfo(**fields)
        except InputError:
            raise
        except Exception as error:  # a file of another kind can raise anything
            raise InputError(f"cannot read {path}: it is not a trace saved by gosta") from error
        resume_data = {str(name): data[name].values for name in data.data_vars if name not in known}
        return cls(data[[name for name in data.data_vars if name in known]], info, resume_data)

    def __repr__(self) -> str:
        info, stops = (
            self.info,
            np.unique(self.data["stopped"].values[self.data["stopped"].values > 0]),
        )
        checkpoints = f"{len(self.iterations)} checkpoints up to {self.iterations[-1]}"
        checkpoints += "" if self.is_complete else ", interrupted"
        if info.until is not None:
            count = int((self.data["stopped"].values > 0).sum())
            when = (
                f" after {stops[0]} to {stops[-1]}"
                if len(stops) > 1
                else "".join(f" after {one}" for one in stops)
            )
            checkpoints += f", {count} stopped by their nodes{when}"
        runs = numbers.count(info.runs, "run")
        return f"Trace({info.protocol} on {info.graph}, {info.statistic}, {runs}, {checkpoints})"

    def _repr_html_(self) -> str:
        info, error = self.info, self.error()
        reached = error["mean"].values[np.isfinite(error["mean"].values)]
        last = numbers.error(reached[-1] if len(reached) else None, info.is_relative)
        rows = {
            "protocol": info.protocol,
            "statistic": info.statistic,
            "data": info.data,
            "graph": info.graph,
        }
        rows |= {"nodes": f"{info.nodes:,}", "rows": f"{info.rows:,}", "runs": f"{info.runs:,}"}
        rows["iterations"] = f"{self.iterations[-1]:,}{'' if self.is_complete else ', interrupted'}"
        if "node" not in self.data["target"].dims:  # one for all nodes
            rows["exact value"] = numbers.number(self.data["target"].values.tolist())
        # of the checkpoints that each run reached
        counts = np.isfinite(self.data["mean"].values).sum(axis=1)
        if runs := np.flatnonzero(counts).tolist():
            estimates = self.data["estimate"].values[runs, counts[runs] - 1]
            rows["estimate, mean over nodes and runs"] = numbers.number(
                estimates.mean(axis=0).tolist()
            )
        rows[f"mean {error.attrs['error']} error at the last checkpoint reached"] = last
        return html.table(rows.items(), caption="Trace") + html.sparkline(
            "error, logarithmic", self.iterations, error["mean"].values
        )
