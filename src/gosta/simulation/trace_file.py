"""Files of traces: NetCDF with results, setting, and arrays to resume from.

A file holds no code. The protocol and the statistic of a trace are looked up by name when it is
read, and compared by fingerprint. Where they are missing or have changed, a placeholder stands in
for them: such a trace can be looked at and drawn, but not continued.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta import protocols
from gosta.errors import InputError
from gosta.estimation.estimand import Estimand, fingerprint_or_empty, join_estimands
from gosta.estimation.placement import Homophily, Placement
from gosta.estimation.setting import Setting, protocol_for
from gosta.graphs.changing import ChangingGraph
from gosta.graphs.graph import Graph
from gosta.protocols import AnyProtocol, CollectingProtocol
from gosta.runtime import compiler
from gosta.runtime.extras import require
from gosta.runtime.files import write_atomically
from gosta.schedule import check_faults
from gosta.simulation.run_options import RunInfo
from gosta.statistics.definition import Statistic
from gosta.statistics.joint import choose

if TYPE_CHECKING:
    import xarray as xr

FORMAT = "gosta trace 7"
# Prefix of the names of arrays that belong to the setting.
SETTING = "setting_"
# Variables of every trace, and those that only some traces have.
REQUIRED = {"mean", "spread", "median", "estimate", "stopped", "units", "target"}
OPTIONAL = {"estimates", "low", "high", "standard_error", "time", "counted", "failed"}

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Missing:
    """What a trace lacks to be continued; empty texts: nothing."""

    statistic: str = ""
    """Why there is a placeholder for the statistic, and what to do."""
    protocol: str = ""
    """Why there is a placeholder for the protocol, and what to do."""
    protocol_fingerprint: str = ""
    """Digest of the protocol that the trace was made with, where there is a placeholder for it."""

    def __bool__(self) -> bool:
        return bool(self.statistic or self.protocol)


NOTHING_MISSING = Missing()


class Contents(NamedTuple):
    """What a file of a trace holds."""

    data: xr.Dataset
    setting: Setting
    info: RunInfo
    resume_data: dict[str, NDArray[Any]]
    missing: Missing = NOTHING_MISSING


def check_file(name: str, path: Path) -> None:
    """Raise `InputError` unless a path ends as the files of traces do."""
    if path.suffix != ".nc":
        hint = "for a table of the errors, to_pandas().to_csv(...) of the trace in Python"
        raise InputError(
            f"{name} = {str(path)!r} must end in .nc, the format that holds a whole trace; {hint}"
        )


def save(contents: Contents, path: Path) -> None:
    """Write a trace to a file, atomically."""
    check_file("path", path)
    require("h5netcdf", "sim", "saving a trace")
    if contents.missing:
        raise InputError(
            "this trace was read without its statistic or protocol; copy the file that it was "
            "read from"
        )
    arrays = contents.resume_data | {
        SETTING + name: array for name, array in _setting_arrays(contents.setting).items()
    }
    data = contents.data.assign(
        {
            name: (tuple(f"{name}_{k}" for k in range(array.ndim)), array)
            for name, array in arrays.items()
        }
    )
    description = _describe_setting(contents.setting)
    data.attrs["gosta"] = json.dumps(
        {"format": FORMAT, "info": asdict(contents.info), "setting": description}
    )
    content = io.BytesIO()  # h5py does not survive a full disk
    data.to_netcdf(content, engine="h5netcdf")
    write_atomically(path, bytes(content.getbuffer()))


def load(path: Path) -> Contents:
    """Read a trace from a file."""
    xr = require("xarray", "sim", "loading a trace")
    require("h5netcdf", "sim", "loading a trace")
    if not path.is_file():
        raise InputError(f"no such file: {path}")
    try:
        data = xr.load_dataset(io.BytesIO(path.read_bytes()), engine="h5netcdf")
        fields = json.loads(data.attrs.pop("gosta"))
        if (version := fields["format"]) != FORMAT or not set(data.data_vars) >= REQUIRED:
            raise InputError(
                f"{path} has the format {version!r}, this version reads {FORMAT!r}; simulate it "
                "again"
            )
        arrays = {
            str(name): data[name].values
            for name in data.data_vars
            if name not in REQUIRED | OPTIONAL
        }
        of_setting = {
            name.removeprefix(SETTING): array
            for name, array in arrays.items()
            if name.startswith(SETTING)
        }
        setting, missing = _read_setting(fields["setting"], of_setting)
        info = RunInfo(**fields["info"])
    except InputError:
        raise
    except Exception as error:  # a file of another kind can raise anything
        raise InputError(f"cannot read {path}: it is not a trace saved by gosta") from error
    resume_data = {name: array for name, array in arrays.items() if not name.startswith(SETTING)}
    results = data[[name for name in data.data_vars if name in REQUIRED | OPTIONAL]]
    return Contents(results, setting, info, resume_data, missing)


def with_protocol(setting: Setting, protocol: AnyProtocol, missing: Missing) -> Setting:
    """Return a trace's setting with the protocol that it was made with, given by the user."""
    chosen = protocol_for(
        protocol,
        setting.estimand.statistic,
        setting.estimand.level is not None,
        setting.placement.has_tables,
    )
    fingerprint = missing.protocol_fingerprint or protocol_fingerprint(setting.protocol)
    if protocol_fingerprint(chosen) != fingerprint:
        raise InputError(
            f"the protocol {chosen.name!r} is not the one of this trace; "
            "pass that one: resume(..., protocol=...)"
        )
    return replace(setting, protocol=chosen)


def protocol_fingerprint(protocol: AnyProtocol) -> str:
    """Return a digest of a protocol's functions.

    It is empty where they depend on something that cannot be hashed.
    """
    if isinstance(protocol, CollectingProtocol):
        return compiler.fingerprint(Path(protocol.file).read_text(encoding="utf-8"))[:16]
    functions = protocol.init, protocol.tell, protocol.meet, protocol.read
    return fingerprint_or_empty(protocol.state, *functions, protocol.visitors)


def _describe_setting(setting: Setting) -> dict[str, Any]:
    """Return what JSON can hold of a setting; `_setting_arrays` returns the rest."""
    protocol, estimand, changing = setting.protocol, setting.estimand, setting.changing
    return {
        "protocol": {
            "name": protocol.name,
            "rule": protocol.rule,
            "draws": protocol.draws,
            "averages_moments": protocol.averages_moments,
            "fingerprint": protocol_fingerprint(protocol),
        },
        "statistic": {
            "name": estimand.statistic.name,
            "options": estimand.json_options,
            "level": estimand.level,
            "row_widths": estimand.row_widths,
            "fingerprint": estimand.fingerprint,
        },
        "data": estimand.data,
        "nodes": setting.placement.nodes,
        "node_names": setting.placement.names,
        "graphs": [graph.name for graph in setting.graphs],
        "graph_starts": [0] if changing is None else changing.starts,
        "graph_period": None if changing is None else changing.period,
        "homophily": setting.homophily,
        "faults": asdict(setting.faults),
    }


def _setting_arrays(setting: Setting) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any] | None] = {
        "x": setting.estimand.x,
        "parents": setting.graph.parents,
    }
    if setting.placement.has_tables:
        arrays["counts"] = setting.placement.rows
    for k, graph in enumerate(setting.graphs):
        arrays |= {f"edges_{k}": graph.edges, f"weights_{k}": graph.weights}
    return {name: array for name, array in arrays.items() if array is not None}


def _read_setting(fields: dict[str, Any], arrays: Arrays) -> tuple[Setting, Missing]:
    estimand, no_statistic = _read_estimand(fields["statistic"], arrays["x"], fields["data"])
    placement = Placement(fields["nodes"])
    if "counts" in arrays:
        placement = Placement.of(arrays["counts"], fields["node_names"])
    graphs = [
        Graph(name, placement.nodes, arrays.get(f"edges_{k}"), arrays.get(f"weights_{k}"))
        for k, name in enumerate(fields["graphs"])
    ]
    graphs[0] = replace(graphs[0], parents=arrays.get("parents"))
    changing = None
    if len(graphs) > 1:
        starts, period = tuple(fields["graph_starts"]), fields["graph_period"]
        changing = ChangingGraph(starts, tuple(graphs), period)
    protocol, no_protocol = _read_protocol(fields["protocol"], estimand, placement)
    fingerprint = fields["protocol"]["fingerprint"] if no_protocol else ""
    homophily = None if fields["homophily"] is None else Homophily(*fields["homophily"])
    faults = check_faults(**fields["faults"])
    setting = Setting(protocol, estimand, placement, graphs[0], faults, changing, homophily)
    return setting, Missing(no_statistic, no_protocol, fingerprint)


def _read_estimand(fields: dict[str, Any], x: NDArray[Any], data: str) -> tuple[Estimand, str]:
    """Return the estimand, and why it has a placeholder for its statistic, if it has."""
    name, level, options = fields["name"], fields["level"], fields["options"]
    x = np.ascontiguousarray(x)
    try:
        members = choose(name)
        estimand = join_estimands(members, fields["row_widths"], x, options, data)
        # As `with_interval`, whose checks take means over all pairs of rows.
        estimand = replace(estimand, level=level)
    except InputError:
        reason = (
            f"the statistic {name!r} of this trace is not built in; import its file first, "
            f"or on the command line give --statistic FILE.py:{name}"
        )
    else:
        if estimand.fingerprint == fields["fingerprint"]:
            return estimand, ""
        reason = (
            f"the statistic {name} has changed since this trace was made; it cannot be continued"
        )

    def unknown(*_: Any) -> Any:
        raise InputError(reason)

    statistic = Statistic(name, "", unknown, encode=unknown)
    return Estimand(statistic, x, {}, level, data), reason


@dataclass(frozen=True, repr=False)
class _PlaceholderProtocol(CollectingProtocol):
    """A protocol of which only a description is known."""

    rule: str = ""
    averages_moments: bool = False


def _read_protocol(
    fields: dict[str, Any], estimand: Estimand, placement: Placement
) -> tuple[AnyProtocol, str]:
    """Return the protocol, and why it is a placeholder, if it is."""
    name = fields["name"]
    reason = f"the protocol {name!r} is not built in; pass it: resume(..., protocol=...)"
    if name in protocols.PROTOCOLS:
        with contextlib.suppress(InputError):  # it does not support this setting any more
            chosen = protocol_for(
                name, estimand.statistic, estimand.level is not None, placement.has_tables
            )
            if protocol_fingerprint(chosen) == fields["fingerprint"]:
                return chosen, ""
        reason = (
            f"the protocol {name!r} is not the one of this trace; "
            "pass that one: resume(..., protocol=...)"
        )

    def unknown(*_: Any) -> Any:
        raise InputError(reason)

    description = "", "", "", unknown, unknown, unknown, "", fields["draws"]
    placeholder = _PlaceholderProtocol(
        name, *description, rule=fields["rule"], averages_moments=fields["averages_moments"]
    )
    return placeholder, reason
