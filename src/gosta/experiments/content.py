"""Settings of a sweep that are values in memory: their names and digests of their content."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gosta import datasets, graphs, protocols, statistics
from gosta.datasets.data import Data
from gosta.errors import InputError
from gosta.graphs.graph import Graph
from gosta.runtime import compiler

# How a value of each setting is loaded that is not a name.
LOADERS: dict[str, Callable[[Any], Any]] = {
    "data": datasets.load,
    "statistic": statistics.find,
    "graph": graphs.load,
    "protocol": protocols.find,
}
# What statistics depend on besides the columns of data.
ROLES = (
    "label", "score", "scores", "time", "event", "by", "weights",
    "features", "default_columns", "has_selected_columns", "drop_missing", "declared_classes",
)  # fmt: skip


def digest(value: Any) -> str:
    """Return a digest of data, a graph, graphs that change, a statistic or a protocol.

    A function that depends on something without a digest has another digest each time, so that its
    results are not mistaken for results of another function.
    """
    if isinstance(value, Data):
        columns = [(name, _column(values)) for name, values in value.columns.items()]
        return compiler.fingerprint([repr(getattr(value, role)) for role in ROLES], columns)
    if isinstance(value, list):  # graphs that change, with the iterations at which they start
        return compiler.fingerprint(
            [(part if isinstance(part, str) else digest(part), at) for part, at in value]
        )
    if isinstance(value, Graph):
        return compiler.fingerprint(value.n, value.edges, value.weights, *value.labels)
    try:
        return compiler.fingerprint(value)
    except compiler.UnstableContentError:
        return uuid.uuid4().hex


def _column(values: Any) -> Any:
    return values if values.dtype.kind in "biuf" else [repr(value) for value in values.tolist()]


def name_values(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[tuple[str, str], Any]]:
    """Return settings with names in place of values in memory, and these by setting and name.

    A list holds several values of a setting, a mapping several values with their names. A mapping
    of columns is one table of data.
    """
    settings, loaded = dict[str, Any](), dict[tuple[str, str], Any]()
    for key, value in values.items():
        if key not in LOADERS:
            settings[key] = _plain(value)
        elif value is not None:
            settings[key] = _name_each(key, _named(key, value), loaded)
    return settings, loaded


def _name_each(
    key: str, named: list[tuple[str | None, Any]], loaded: dict[tuple[str, str], Any]
) -> list[str]:
    """Return the names of the values of a setting, and load those that are not names themselves."""
    names = [
        str(value) if name is None and isinstance(value, str | Path) else name
        for name, value in named
    ]
    for position, (name, value) in enumerate(named):
        if name is None and isinstance(value, str | Path):
            continue
        loaded_value = _load(key, value)
        title = name or _title(key, loaded_value, position if len(named) > 1 else None)
        if name is None and not _is_built_in(key, loaded_value):
            title = next(free for free in _numbered(title) if free not in names)
        names[position] = title
        if name is not None or not _is_built_in(key, loaded_value):
            loaded[key, title] = (
                replace(loaded_value, name=title) if key == "data" else loaded_value
            )
    return [name for name in names if name is not None]


def _is_built_in(key: str, value: Any) -> bool:
    """Return whether every process has a statistic or a protocol by its name."""
    if key == "statistic":
        return bool(value.is_built_in) and statistics.STATISTICS.get(value.name) is value
    return key == "protocol" and protocols.PROTOCOLS.get(value.name) is value


def _plain(value: Any) -> Any:
    """Return numbers and sequences of Python in place of numpy's, ranges and tuples."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        return dict(value)
    return (
        ["" if each is None else each for each in value]
        if isinstance(value, list | tuple | range)
        else value
    )


def _named(key: str, value: Any) -> list[tuple[str | None, Any]]:
    """Return the values of a setting, with their names where these are given."""
    if isinstance(value, Mapping) and (key != "data" or all(map(_is_table, value.values()))):
        return [(str(name), each) for name, each in value.items()]
    return [(None, each) for each in value] if isinstance(value, list | tuple) else [(None, value)]


def _is_table(value: Any) -> bool:
    return isinstance(value, Data | str | Path | Mapping) or getattr(value, "ndim", 1) == 2


def _load(key: str, value: Any) -> Any:
    if key == "data" and isinstance(value, int | float):
        raise InputError(
            f"data: a list has several data sets, and {value!r} is none; give one column as an "
            "array"
        )
    try:
        return LOADERS[key](value)
    except InputError as error:
        raise InputError(with_key(key, error)) from None


def with_key(key: str, error: InputError) -> str:
    """Return a message that begins with the key of a setting, once.

    >>> with_key("n", InputError("too many")), with_key("n", InputError("n = 9: too many"))
    ('n: too many', 'n = 9: too many')
    """
    return str(error) if str(error).startswith((f"{key}: ", f"{key} = ")) else f"{key}: {error}"


def _title(key: str, value: Any, position: int | None) -> str:
    """Return the name of a value: its own, or the setting's with its place in the list."""
    if key == "data" and value.name == "the data":
        return "data" if position is None else f"data {position + 1}"
    return str(value.name)


def _numbered(title: str) -> Iterable[str]:
    yield title
    yield from (f"{title} ({k})" for k in range(2, 10**6))
