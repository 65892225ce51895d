"""Statistics defined in a user's Python file, named FILE.py:NAME."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Mapping
from pathlib import Path

from gosta.errors import InputError, unknown
from gosta.statistics import definition
from gosta.statistics.definition import Statistic, find
from gosta.statistics.wanted import parse

_loaded: dict[tuple[Path, bytes], dict[str, Statistic]] = {}


def load_statistic(reference: str, folder: Path | None = None) -> Statistic:
    """Return the statistic of a name, or the one called NAME in FILE.py:NAME, relative to a folder if one is given.

    A file runs once for each content it has. While it runs it can import files beside it, as in ``python FILE.py``.
    """
    parts = split_reference(reference)
    if parts is None:
        return find(reference)
    file = parts[0] if folder is None else folder / parts[0]
    if not file.is_file():
        raise InputError(f"statistic = {reference!r}: no such file: {file}")
    before, path = dict(definition.STATISTICS), list(sys.path)
    try:
        key = file.absolute(), file.read_bytes()
        if key not in _loaded:
            sys.path.insert(0, str(file.absolute().parent))
            runpy.run_path(str(file))
    except (Exception, SystemExit) as error:  # a user's file can raise anything
        raise InputError(
            f"statistic = {reference!r}: {file} fails with {type(error).__name__}: {error}"
        ) from error
    finally:
        sys.path[:] = path
    if key not in _loaded:
        _loaded[key] = {
            name: made
            for name, made in definition.STATISTICS.items()
            if before.get(name) is not made
        }
    definition.STATISTICS.update(_loaded[key])
    return _find(parts[1], file, _loaded[key])


def _find(name: str, file: Path, own: Mapping[str, Statistic]) -> Statistic:
    if name.partition("@")[0] not in definition.STATISTICS:
        raise unknown(f"statistic of {file}", name, own)
    return find(name)


def own_references(statistics: str) -> list[tuple[Path, str]]:
    """Return file and name of those of one or several statistics that are defined in a user's file.

    >>> own_references("auc,mine.py:gap:age")
    [(PosixPath('mine.py'), 'gap')]
    """
    return [parts for one in parse(statistics) if (parts := split_reference(one.name)) is not None]


def split_reference(reference: str) -> tuple[Path, str] | None:
    """Return the file and the name of FILE.py:NAME; None for the plain name of a statistic."""
    file, colon, name = reference.rpartition(":")
    return (Path(file), name) if colon and file.endswith(".py") else None
