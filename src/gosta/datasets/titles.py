"""Lines of a title above the names of columns, and rows of totals below the data."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.datasets.columns import MISSING, Columns, from_cells
from gosta.datasets.row_names import RowNames

MOST_ROWS = 100  # that are looked at
MOST_EMPTY = 0.1  # of the rows above totals, of a column in which totals have no value
NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?\s*%?")
TOTALS = (
    "(?:sub)?(?:total|totals|totale|totali|totaux|totais|totales|totaal|gesamt|gesamtsumme|summe"
    "|suma|somma|soma|somme|sum|ogółem|razem|celkem|összesen|итого)"
)
MEANS = (
    "mean|average|median|mittelwert|durchschnitt|moyenne|médiane|media|média|promedio|mediana"
    "|gemiddelde|mediaan|średnia|medelvärde|gennemsnit|gjennomsnitt|keskiarvo|průměr|átlag|среднее"
)
COUNTS = r"count|anzahl|nombre|número|numero|aantal|liczba|antal|počet|n(?=\s*[=:]\s*\d)"
TOTAL = re.compile(rf"{TOTALS}\s*:?", re.IGNORECASE)
SUMMARY = re.compile(rf"(?:{TOTALS}|{MEANS}|{COUNTS})(?![^\s:=])\s*[:=]?", re.IGNORECASE)


def title_rows(rows: Sequence[Sequence[Any]]) -> int:
    """Return how many rows stand above the names of columns, where that is certain; else 0.

    A row of a title has values in at most half of the columns. The names are the first row that has
    more, if it is text above each column, and one of these holds mostly numbers.

    Examples
    --------
    >>> title_rows([["Study XY", None], [None, None], ["id", "risk"], ["P1", "0,5"]])
    2
    >>> title_rows([["id", "risk"], ["P1", "0,5"]])
    0
    """
    filled = [sum(not _is_empty(value) for value in row) for row in rows]
    most = max(filled, default=0)
    place = next((k for k, count in enumerate(filled) if 2 * count > most), 0)
    if place == 0:
        return 0
    names, below = rows[place], [row for row in rows[place + 1 :] if len(row) == len(rows[place])]
    columns = list(zip(*below, strict=True))
    used = [k for k, column in enumerate(columns) if not all(map(_is_empty, column))]
    has_names = bool(used) and all(_is_name(names[k]) for k in used)
    return place if has_names and any(_is_numeric(columns[k]) for k in used) else 0


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip() in MISSING)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and not _is_empty(value) and not _is_number(value)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return NUMBER.fullmatch(value.strip()) is not None
    return isinstance(value, int | float) and math.isfinite(value)


def _is_numeric(column: Sequence[Any]) -> bool:
    present = [value for value in column if not _is_empty(value)]
    return 2 * sum(map(_is_number, present)) > len(present)


def totals_rows(columns: Columns, rows: RowNames, decimal: str) -> tuple[int, str]:
    """Return how many rows at the end are totals for certain, and what to say, if anything."""
    said: list[str] = []
    left = columns
    while True:
        word, is_certain, doubt = _totals_row(left, rows)
        if not is_certain:
            break
        said.insert(0, f"{rows[len(columns[next(iter(columns))]) - len(said) - 1]} says {word!r}")
        left = without_end(columns, len(said), decimal)
    if not said:
        return 0, doubt
    what = "it holds totals and is" if len(said) == 1 else "they hold totals and are"
    return (len(said), f"{' and '.join(said)}: {what} left out; say --skip-end {len(said)}, or 0")


def _totals_row(columns: Columns, rows: RowNames) -> tuple[str, bool, str]:
    """Return the word of the last row, whether it holds totals for certain, and a doubt.

    It does if a word says so and it has no value in a column in which nearly all rows have one, or
    a sum of the numbers above it; or if it begins with such a word, or one of means or counts, and
    has hardly anything else. A word, sums or a text alone are named only.
    """
    count = len(next(iter(columns.values()), ()))
    if count < 3:
        return "", False, ""
    name = rows[count - 1]
    word = next(filter(None, map(_word_of_totals, columns.values())), "")
    has_sum = any(map(_is_sum, columns.values()))
    has_gap = any(map(_ends_empty, columns.values()))
    if word and (has_sum or has_gap):
        return word, True, ""
    begin, rest = _last_row(columns)
    found = SUMMARY.match(begin)
    if found and has_gap:
        is_word = found.end() == len(begin)
        if all(map(_is_number, rest)) and (is_word or len(rest) <= 1):
            return begin, True, ""
    if word or (found and has_gap):
        return "", False, f"{name} says {word or begin!r}; if it holds totals, no row: --skip-end 1"
    if begin and not rest and has_gap and len(columns) > 2:
        return "", False, f"{name} holds {begin!r} only; if it is no row of data: --skip-end 1"
    if has_sum:
        doubt = f"the numbers of {name} are sums of those above; if it is a total: --skip-end 1"
        return "", False, doubt
    return "", False, ""


def _last_row(columns: Columns) -> tuple[str, list[Any]]:
    """Return the first cell of the last row if it is text of this row only, and its others."""
    ends = [(column, column[-1:].tolist()[0]) for column in columns.values()]
    filled = [(column, end) for column, end in ends if not (_is_empty(end) or end != end)]
    if not filled:
        return "", []
    (column, begin), *others = filled
    is_own = isinstance(begin, str) and not _is_number(begin) and begin not in column[:-1].tolist()
    return begin.strip() if is_own else "", [end for _, end in others]


def without_end(columns: Columns, count: int, decimal: str) -> Columns:
    """Return columns without their last values, of the types that a file without these has."""
    return {
        name: from_cells(column[:-count].tolist(), decimal)
        if column.dtype == object
        else column[:-count]
        for name, column in columns.items()
    }


def _ends_empty(column: NDArray[Any]) -> bool:
    """Return whether a column ends without a value, while nearly all rows above have one."""
    empty = [bool(_is_empty(value) or value != value) for value in column.tolist()]
    return empty[-1] and sum(empty[:-1]) <= MOST_EMPTY * (len(empty) - 1)


def _word_of_totals(column: NDArray[Any]) -> str:
    """Return a word such as "Total" that is in the last row of a column only."""
    word = column[-1] if column.dtype.kind in "OU" else None
    if not isinstance(word, str) or not TOTAL.fullmatch(word.strip()):
        return ""
    return "" if word in column[:-1].tolist() else word


def _is_sum(column: NDArray[Any]) -> bool:
    """Return whether the last of positive numbers is the sum of the others, which differ."""
    if column.dtype.kind not in "iuf":
        return False
    values = column.astype(np.float64)
    if not np.isclose(values[-1], np.nansum(values[:-1]), rtol=1e-9, atol=0):
        return False
    above = values[:-1][~np.isnan(values[:-1])]
    return len(np.unique(above)) > 2 and bool((above >= 0).all())
