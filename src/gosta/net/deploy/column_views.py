"""What a data file holds in each column, and what became of it: for the site's eyes only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta.datasets import Data
from gosta.datasets.columns import match_key, value_text
from gosta.datasets.files import Format
from gosta.datasets.harmonise import Harmonisation
from gosta.net.node.rows import load_table
from gosta.views import numbers, terminal

TABLE_WIDTH = 80
MAX_NAME = 13  # characters of a name in the table
MAX_VALUES = 4  # of text that are shown
HEADING = ("column", "in the file", "found", "became", "missing", "out")


class ColumnView(NamedTuple):
    """One column of a site's file, before and after harmonisation."""

    name: str  # in the network
    source: str  # in the file; "" if it is not there
    found: str  # type and some values in the file
    became: str  # what of it counts
    missing: int  # rows without a value
    out: int | None  # beyond the range, or not among the classes; None: nothing is declared


class Declared(NamedTuple):
    """What the network declares of a column."""

    range: tuple[float, float] | None = None
    levels: Sequence[str | int | float] = ()


def load_raw(path: Path, form: Format, table: Data) -> Data:
    """Return the table of a file before harmonisation."""
    if form.harmonise == Harmonisation():
        return table
    return load_table(path, form._replace(harmonise=Harmonisation()))


def view_columns(
    raw: Data, form: Format, table: Data, names: Iterable[str], declared: Mapping[str, Declared]
) -> list[ColumnView]:
    """Return what a file holds in columns of the network, and what became of it in its table."""
    known = form.harmonise.columns
    return [
        _view(name, known.get(name, name), raw, table, declared.get(name, Declared()))
        for name in names
    ]


def _view(name: str, source: str, raw: Data, table: Data, declared: Declared) -> ColumnView:
    if name not in table.columns:
        return ColumnView(name, "", "not there", "", len(table), None)
    column = table.columns[name]
    present = [value for value in column.tolist() if not _is_missing(value)]
    found, became = _describe(raw.columns[source]), _describe(column).partition(" ")[2]
    missing = len(column) - len(present)
    return ColumnView(name, source, found, became, missing, _count_out(column, present, declared))


def count_missing(column: NDArray[Any]) -> int:
    """Return how many rows have no value in a column."""
    return sum(map(_is_missing, column.tolist()))


def _is_missing(value: object) -> bool:
    return value is None or value != value or value == ""


def _count_out(column: NDArray[Any], present: Collection[Any], declared: Declared) -> int | None:
    """Return how many values are beyond the range, or not among the classes."""
    if declared.levels:
        counts = Counter(map(match_key, present))
        known = set(map(match_key, declared.levels))
        return sum(count for key, count in counts.items() if key not in known)
    if declared.range is None or column.dtype.kind not in "iuf":
        return None
    low, high = declared.range
    return int(np.count_nonzero((column < low) | (column > high)))


def _describe(column: NDArray[Any]) -> str:
    """Return the type of a column and its range, or its most frequent values."""
    if column.dtype.kind in "iuf":
        known = column[column == column].tolist()
        ends = [numbers.number(float(end), 4) for end in (min(known), max(known))] if known else []
        return f"number {' to '.join(ends) or 'none'}"
    kind = {"b": "boolean", "M": "date"}.get(column.dtype.kind, "text")
    present = [value_text(value) for value in column.tolist() if not _is_missing(value)]
    values = [value for value, _ in Counter(present).most_common(MAX_VALUES + 1)]
    more = ", ..." if len(values) > MAX_VALUES else ""
    return f"{kind} {', '.join(values[:MAX_VALUES])}{more}"


def table_text(views: Sequence[ColumnView]) -> str:
    """Return a table of the columns, within 80 characters."""
    is_renamed = any(view.source not in ("", view.name) for view in views)
    rows = [
        [
            _cut(view.name, MAX_NAME),
            _cut(view.source, MAX_NAME),
            view.found,
            view.became,
            f"{view.missing:,}" if view.source else "",
            "" if view.out is None else f"{view.out:,}",
        ]
        for view in views
    ]
    kept = [k for k, name in enumerate(HEADING) if is_renamed or name != "in the file"]
    shown = [[row[k] for k in kept] for row in (HEADING, *rows)]
    widths = terminal.column_widths(shown)
    found, became = len(kept) - 4, len(kept) - 3
    room = TABLE_WIDTH - sum(widths) - 2 * len(kept) + widths[found] + widths[became]
    width = min(widths[became], room // 2)
    for row in shown:
        row[found], row[became] = _cut(row[found], room - width), _cut(row[became], width)
    return terminal.columns(shown, right=range(len(kept) - 2, len(kept)))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
