"""A site's own rows, as the kernel needs them."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gosta import datasets
from gosta.datasets.data import DROP_HINT, Data
from gosta.errors import InputError
from gosta.net.config import Task
from gosta.net.protocol.messages import LARGEST_ROW
from gosta.runtime import machine
from gosta.runtime.arrays import Floats
from gosta.statistics import user_file
from gosta.statistics.definition import Statistic


def own_rows(task: Task, data: Path, folder: Path | None = None) -> Floats:
    """What the kernel needs of each of a site's rows: n × d.

    Files that the task names (a statistic's own, say) lie in a folder, by default beside the data.
    """
    x = _plain(data) if task.encoded else _encoded(task, data, data.parent if folder is None else folder)
    check_sizes(x, data)
    if task.encoded and x.shape[1] != task.encoded:
        raise InputError(f"{data} has {x.shape[1]} columns of numbers where {task.encoded} are needed, as at all nodes")
    return x


def _plain(path: Path) -> Floats:
    """A table of numbers as `gosta network init` writes it; without the libraries that read any table."""
    if path.suffix != ".csv":
        table = datasets.load(path)
        return table.to_floats(list(table.columns))
    try:
        machine.require_memory(8 * path.stat().st_size, f"reading {path}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there are no rows is said below
            x = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        why = str(error).partition(";")[0].rstrip(".")
        raise InputError(f"{path}: {why}; a line of names and then lines of numbers are needed") from None
    if not x.size:
        raise InputError(f"{path} has no rows; a node needs at least one")
    if not np.isfinite(x).all():
        raise InputError(f"{path} has missing or infinite values; mend or leave out those rows")
    return x


def check_sizes(x: Floats, data: object) -> None:
    """Refuse values whose products would not be finite."""
    largest = float(np.abs(x).max())
    if largest > LARGEST_ROW:
        raise InputError(
            f"{data} has the value {largest:.3g}: beyond {LARGEST_ROW:g} it is too large, use smaller units"
        )


def statistic_of(task: Task, folder: Path) -> Statistic:
    """The statistic that a network computes; a user's own is in the node's folder."""
    return user_file.load_statistic(task.statistic, folder)


def _encoded(task: Task, path: Path, folder: Path) -> Floats:
    statistic, options = statistic_of(task, folder), in_folder(task.options, folder)
    table = datasets.load(path).select(task.columns or None, task.label, task.score, task.drop_missing)
    data = dataclasses.replace(table, declared_classes=task.classes, is_partial=True)
    try:
        x = statistic.encode_rows(data, options)
    except InputError as error:
        here = "set drop_missing = true under [network] in node.toml to leave those rows out"
        raise InputError(f"{path}: {str(error).replace(DROP_HINT, here)}") from None
    check_each_alone(statistic, data, options, x)
    return x


def in_folder(options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Options of the statistic, where a text that names a file of the folder is that file."""

    def found(value: Any) -> Any:
        return str(folder / value) if isinstance(value, str) and value and (folder / value).is_file() else value

    return {name: found(value) for name, value in options.items()}


def check_each_alone(statistic: Statistic, data: Data, options: Mapping[str, Any], x: Floats) -> None:
    """Refuse an encoding in which a row depends on others: at a site it would depend on that site's only.

    So rows must be encoded the same among strangers, and without half of the others.
    """
    n, half = len(data), (len(data) + 1) // 2
    scale = 1e-9 * float(np.abs(x).max())
    trials = [(_with_strangers(data, kin), slice(0, len(x)), slice(0, len(x))) for kin in (True, False)]
    if n > 1 and len(x) == n:
        trials += [(_some(data, k), k, slice(None)) for k in (slice(0, half), slice(half, n))]
    for other, mine, its in trials:
        try:
            again = statistic.encode_rows(other, options)[its]
        except InputError:
            continue  # what cannot be encoded says nothing
        if again.shape != x[mine].shape or not np.allclose(again, x[mine], rtol=1e-9, atol=scale):
            raise InputError(
                f"{statistic.name}: what travels of a row here depends on other rows, which a site does not have; "
                "name one score column with score (--score), or give the option that fixes it, such as bandwidth=... "
                "or centroids=FILE"
            )


def _some(data: Data, which: slice) -> Data:
    return dataclasses.replace(data, columns={name: column[which] for name, column in data.columns.items()})


def _with_strangers(data: Data, kin: bool) -> Data:
    """The rows; as many with other numbers, of the same classes or of another; the first once more, of another."""

    def strange(column: Any) -> Any:
        if column.dtype.kind not in "iuf":
            return column
        values = column.astype(np.float64)
        with np.errstate(over="ignore"):
            return np.where((values == 0) | (values == 1), 1 - values, 2 * values + 1)

    columns = {name: np.concatenate([c, strange(c), c[:1]]) for name, c in data.columns.items()}
    if data.label is not None and data.declared_classes:
        own = data.columns[data.label].astype(object)
        code = data.class_codes()[0][0]
        other = np.full(
            len(own) + 1,
            data.declared_classes[0 if np.isnan(code) else (int(code) + 1) % len(data.declared_classes)],
            object,
        )
        columns[data.label] = np.concatenate([own, own, other[:1]] if kin else [own, other])
    return dataclasses.replace(data, columns=columns)
