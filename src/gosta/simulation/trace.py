"""What a simulation leaves: estimates at checkpoints, their errors, and enough to go on from there."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gosta.errors import InputError
from gosta.estimation.problem import lengths, size_of
from gosta.runtime.arrays import Floats

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

FORMAT = "gosta trace 1"


class Trace:
    """A simulation's results, labelled: an `xarray.Dataset` with a few ways to look at it.

    Attributes
    ----------
    data
        ``mean``, ``spread`` and ``median``, the mean, standard deviation and median over nodes of the error, by run and
        iteration;
        ``estimate``, the mean over nodes; ``estimates`` by run, iteration and node (absent where they would not fit);
        ``units``, the numbers sent; ``target``; ``stopped``, when the nodes of a run stopped, or 0; where asked for,
        ``standard_error`` by run, iteration and node, and ``time``. Checkpoints that were not reached are NaN.
    about
        What was run: protocol, statistic, graph, n, edges, iterations, runs, seed, seconds and so on.
    """

    def __init__(self, data: xr.Dataset, about: dict[str, Any], rest: dict[str, Any] | None = None) -> None:
        self.data, self.about = data, about
        self.rest = rest or {}  # what a resumed run needs: observations, edges and the nodes of each run

    @property
    def iterations(self) -> Any:
        """The checkpoints."""
        return self.data["iteration"].values

    @property
    def estimates(self) -> xr.DataArray:
        """By run, iteration and node (and value, where the statistic has several)."""
        if "estimates" not in self.data:
            raise InputError("the estimates of all nodes were too many to keep; error() has their summaries")
        return self.data["estimates"]

    def intervals(self) -> tuple[xr.DataArray, xr.DataArray]:
        """Where the nodes' own intervals for the population value begin and end, by run, iteration and node."""
        if self.about["interval"] is None:
            raise InputError("this simulation gave no intervals; ask for them with interval=0.95")
        from gosta.statistics import find
        from gosta.statistics.exact import interval_bounds

        statistic = find(self.about["statistic"])
        low, high = interval_bounds(statistic, self.estimates, self.data["standard_error"], self.about["interval"])
        return low, high

    @property
    def target(self) -> Any:
        """The exact value: a number, or one a node (or value)."""
        values = self.data["target"].values
        return float(values) if values.ndim == 0 else values

    @property
    def units(self) -> Any:
        """Numbers sent in all, at each checkpoint."""
        return self.data["units"].values

    @property
    def complete(self) -> bool:
        """Whether all runs reached the last checkpoint, or stopped because their nodes said that they were done."""
        reached = np.isfinite(self.data["mean"].values).all(axis=1)
        return bool((reached | (self.data["stopped"].values > 0)).all())

    def error(self) -> xr.Dataset:
        """Mean error and its spread over nodes at each checkpoint, averaged over the runs that reached it."""
        import xarray as xr

        out = {name: self.data[name].mean("run", skipna=True) for name in ("mean", "spread")}
        return xr.Dataset(out, attrs={"error": "relative" if self.about["relative"] else "absolute (the target is 0)"})

    def to_pandas(self) -> pd.DataFrame:
        """Mean error, spread and units sent, a row a checkpoint."""
        frame = self.error().to_dataframe()
        return frame.assign(units=self.units)

    def plot(self, ax: Any = None, label: str | None = None) -> Any:
        """Draw the error against iterations, with its spread over nodes as a band."""
        from gosta.simulation.summary import plot

        return plot([self], [label or self.about["protocol"]], ax=ax)

    def save(self, path: str | Path) -> None:
        """Write all to a NetCDF file, whole or not at all."""
        path = Path(path)
        extra = {name: (tuple(f"{name}_{k}" for k in range(a.ndim)), a) for name, a in self.rest.items()}
        data = self.data.assign(extra)
        data.attrs["gosta"] = json.dumps({"format": FORMAT, **self.about})
        # To memory first: the library that writes such files does not survive a full disk.
        content = io.BytesIO()
        data.to_netcdf(content, engine="h5netcdf")
        draft = path.with_name(path.name + ".part")
        try:
            draft.write_bytes(content.getbuffer())
            draft.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise InputError(f"cannot write {path}: {error.strerror or error}") from error

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read what `save` wrote."""
        import xarray as xr

        if not Path(path).is_file():
            raise InputError(f"no such file: {path}")
        always = {"mean", "spread", "median", "estimate", "stopped", "units", "target"}
        known = always | {"estimates", "standard_error", "time"}
        try:
            data = xr.load_dataset(io.BytesIO(Path(path).read_bytes()), engine="h5netcdf")
            about = json.loads(data.attrs.pop("gosta"))
            if about.pop("format") != FORMAT or not always <= set(data.data_vars):
                raise ValueError("another format")
        except Exception as error:  # whatever a file that is something else may lead to
            raise InputError(f"cannot read {path}: it is not a trace that this version of gosta saved") from error
        rest = {str(name): data[name].values for name in data.data_vars if name not in known}
        return cls(data[[name for name in data.data_vars if name in known]], about, rest)

    def __repr__(self) -> str:
        about = self.about
        return (
            f"Trace({about['protocol']} on {about['graph']}, {about['statistic']}, {about['runs']} runs, "
            f"{len(self.iterations)} checkpoints up to {self.iterations[-1]})"
        )


def errors(estimates: Floats, target: Floats) -> tuple[float, float, float]:
    """Mean, standard deviation and median over nodes of the error: relative, or absolute where the target is 0."""
    gap = lengths(estimates - target)
    size = size_of(target)
    relative = gap / size if size > 0 else gap
    return float(relative.mean()), float(relative.std()), float(np.partition(relative, len(gap) // 2)[len(gap) // 2])
