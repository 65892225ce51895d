"""The text that names statistics, also in users' files, and their columns.

For example "auc:risk,kendall-tau@weight:age+risk,mine.py:gap".
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gosta.errors import InputError, unknown
from gosta.statistics import definition
from gosta.statistics.definition import Statistic, find
from gosta.statistics.names import resolve

FEW_TITLES = 8  # that are shown one by one
_loaded: dict[tuple[Path, bytes], dict[str, Statistic]] = {}


class Reference(NamedTuple):
    """The name of a statistic, and the columns it is to take."""

    title: str  # as it was written, but with the statistic's own name for another one
    name: str  # of the statistic; FILE.py:NAME for one's own; with row weights NAME@COLUMN
    columns: tuple[str, ...]  # empty: those selected for all statistics

    @property
    def weights(self) -> str:
        """The column of weights; empty: rows have none."""
        return self.name.partition("@")[2]


def parse_references(texts: str | Sequence[str]) -> list[Reference]:
    """Parse NAME or NAME:COLUMN+COLUMN, separated by commas.

    NAME can be FILE.py:NAME, or NAME@COLUMN with weights.

    >>> [(one.name, one.columns) for one in parse_references("auc,kendall-tau:age+risk")]
    [('auc', ()), ('kendall-tau', ('age', 'risk'))]
    >>> parse_references("mine.py:gap:age")
    [Reference(title='mine.py:gap:age', name='mine.py:gap', columns=('age',))]
    """
    items = [texts] if isinstance(texts, str) else texts
    titles = [title.strip() for text in items for title in text.split(",")]
    references = [_parse_one(title) for title in titles if title]
    if not references:
        raise InputError("statistic is empty: name at least one, such as auc")
    for title in titles:
        if not title:
            raise InputError(f"statistic = {','.join(items)!r} has a comma too many")
    return references


def titles_in_words(titles: Sequence[str]) -> str:
    """Return the titles of statistics; of many, their names, together for the same columns.

    >>> titles_in_words(["auc:risk", "gini-index"])
    'auc:risk, gini-index'
    >>> many = [f"{name}:{score}" for score in ("old", "new") for name in "abcde"]
    >>> titles_in_words([*many, "log-rank:days+event"])
    '11 statistics: a, b, c, d, e of old, and of new; log-rank of days + event'
    """
    titles = list(dict.fromkeys(titles))
    if len(titles) <= FEW_TITLES:
        return ", ".join(titles)
    names_of: dict[tuple[str, ...], list[str]] = {}
    for title in titles:
        _, name, columns = _parse_one(title)
        names_of.setdefault(columns, []).append(name)
    columns_of: dict[tuple[str, ...], list[str]] = {}
    for columns, names in names_of.items():
        columns_of.setdefault(tuple(names), []).append(" + ".join(columns))
    parts = [
        ", ".join(names) + f" of {', and of '.join(filter(None, places))}" * any(places)
        for names, places in columns_of.items()
    ]
    return f"{len(titles)} statistics: {'; '.join(parts)}"


def _parse_one(title: str) -> Reference:
    name, _, columns = title.partition(":")
    if name.endswith(".py"):
        own, _, columns = columns.partition(":")
        name = f"{name}:{own}" if own else name
    else:
        title = title.replace(name, resolve(name), 1)
        name = resolve(name)
    if title.endswith((":", "+")):
        raise InputError(f"statistic = {title!r} must end with a column, such as {name}:age")
    return Reference(title, name, tuple(columns.split("+")) if columns else ())


def load_statistic(reference: str, folder: Path | None = None) -> Statistic:
    """Return the statistic of a name, or the one called NAME in FILE.py:NAME.

    The file is relative to a folder if one is given.

    A file runs once for each content it has. While it runs it can import files beside it, as in
    ``python FILE.py``.
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
    return [
        parts
        for one in parse_references(statistics)
        if (parts := split_reference(one.name)) is not None
    ]


def split_reference(reference: str) -> tuple[Path, str] | None:
    """Return the file and the name of FILE.py:NAME; None for the plain name of a statistic."""
    file, colon, name = reference.rpartition(":")
    return (Path(file), name) if colon and file.endswith(".py") else None
