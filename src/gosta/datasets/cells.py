"""Cells of text as numbers, and what the cells hold that are none."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
import shlex
from collections.abc import Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.datasets.row_names import RowNames
from gosta.errors import DataError, FormatError
from gosta.runtime.arrays import Floats

DATE_HINT = "turn them into numbers first, such as days since a fixed day, or select other columns"
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([ T].*)?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}( .*)?")
EXACT_INTEGERS = 2**53  # below it, floats have all whole numbers
MOST_CODES = 5  # different texts in a column of numbers that may stand for missing values
NUMBER = r"[-+]?\d+(?:[.,]\d+)?"
GROUPED = r"[-+]?\d{1,3}(?:[.,'’\s]\d{3})+(?:[.,]\d+)?"
KINDS = {
    "other sign": re.compile(r"[-+]?\d*[.,]\d+(?:[eE][-+]?\d+)?"),
    "grouped": re.compile(GROUPED),
    "percent": re.compile(rf"(?:{NUMBER}|{GROUPED})\s*%"),
    "unit": re.compile(rf"(?:{NUMBER}|{GROUPED})\s*[^\d\s.,'’%][^\d]*"),
}


def with_point(value: str, decimal: str) -> str:
    """Return a number as Python writes it; with another decimal sign, a point is none."""
    return value if decimal == "." else value.replace(".", "?").replace(decimal, ".")


def to_floats(name: str, column: NDArray[Any], rows: RowNames) -> Floats:
    """Return a column of text or objects as floats, NaN where a cell is empty."""
    decimal = dict(column.dtype.metadata or {}).get("decimal", ".")
    numbers = [_number(value, name, rows, k, decimal) for k, value in enumerate(column)]
    bad = [k for k, number in enumerate(numbers) if number is None]
    if bad:
        raise _no_numbers(name, column, bad, decimal, rows)
    return np.array(numbers, dtype=np.float64)


def _number(value: Any, column: str, rows: RowNames, k: int, decimal: str) -> float | None:
    """Return the number in a cell, NaN for an empty one, None for what is no number."""
    if value is None or (isinstance(value, str) and not value):
        return np.nan
    if isinstance(value, str):
        value = with_point(value, decimal)
    with contextlib.suppress(ValueError, OverflowError):
        if isinstance(value, str | Real | Decimal | np.bool_):
            number = float(value)
            if abs(number) < EXACT_INTEGERS or not _is_whole(value):
                return number
    if _is_whole(value):
        raise rounded(value, column, rows[k])
    return None


def is_number(value: str, decimal: str) -> bool:
    """Return whether a text is a number with a decimal sign."""
    with contextlib.suppress(ValueError):
        float(with_point(value, decimal))
        return True
    return False


def looks_numeric(value: object) -> bool:
    """Return whether a value is a number, or a text such as 1,5 or 3 mg, or a date.

    >>> [looks_numeric(value) for value in ("II", "3", "1,5", "3 mg", "<5", "2024-01-31", 7)]
    [False, True, True, True, False, True, True]
    """
    return not isinstance(value, str) or is_number(value, ".") or _kind(value) != "text"


def _is_whole(value: object) -> bool:
    """Return whether a value is written as a whole number."""
    return isinstance(value, Integral) or (
        isinstance(value, str) and value.strip().lstrip("+-").isdecimal()
    )


def rounded(value: object, column: str, row: str) -> DataError:
    """Return the error for a whole number that a float cannot hold."""
    reason = (
        f"column {column!r} has {str(value)[:40]} in {row}: floats round whole numbers from 2^53 on"
    )
    remedy = (
        "subtract one number from the whole column, or give it as floats (9.1e15) if rounding is "
        "meant"
    )
    return DataError(reason, remedy=f"{remedy}, or select other columns")


def _no_numbers(
    name: str, column: NDArray[Any], bad: Sequence[int], decimal: str, rows: RowNames
) -> DataError:
    """Return the error for cells that are no numbers, with what they are and the way out."""
    kinds = [_kind(column[k]) for k in bad]
    # A decimal sign by which most cells are read is named first, before codes between them.
    others = [one for one in kinds if one != "other sign"]
    kind = others[0] if 2 * len(others) >= len(kinds) else "other sign"
    bad = [k for k, own in zip(bad, kinds, strict=True) if own == kind]
    first = column[bad[0]]
    if kind == "other sign":
        return _other_sign(name, column, bad, decimal, rows)
    if kind == "text":
        return _text(name, column, bad, rows)
    shown = repr(str(first)[:40])
    if kind in ("date", "bytes"):
        shown = f"the date {shown}" if kind == "date" else "bytes, not text in UTF-8,"
        remedy = DATE_HINT if kind == "date" else "correct the row or select other columns"
        return DataError(_reason(name, shown, bad[:1], rows), remedy=remedy)
    reason = _reason(name, shown, bad, rows)
    signs = re.sub(r"[^.,]", "", str(first))
    ends_in_comma = signs.endswith(",") and (kind != "grouped" or "." in signs)
    sign = "--decimal , " * (decimal == "." and ends_in_comma)
    factor = shlex.quote(f"{name}={'0.01' if kind == 'percent' else '1'}")
    what = {
        "percent": "for per cent as shares",
        "unit": "for the numbers without their unit",
        "grouped": "for numbers with signs between thousands",
    }
    return DataError(reason, remedy=f"{what[kind]}: {sign}--scale {factor} (scale of harmonise)")


def _kind(value: Any) -> str:
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, dt.date | dt.time):
        return "date"
    if not isinstance(value, str):
        return "text"
    text = value.strip()
    if DATE.fullmatch(text):
        return "date"
    return next((kind for kind, pattern in KINDS.items() if pattern.fullmatch(text)), "text")


def _reason(name: str, shown: str, bad: Sequence[int], rows: RowNames) -> str:
    first = rows[bad[0]]
    if len(bad) == 1:
        return f"column {name!r} has {shown} in {first} where a number is needed"
    return f"column {name!r} has {len(bad):,} cells that are no numbers ({shown}, first in {first})"


def _other_sign(
    name: str, column: NDArray[Any], bad: Sequence[int], decimal: str, rows: RowNames
) -> DataError:
    """Return the error for cells with the decimal sign by which the file was not read."""
    shown = repr(str(column[bad[0]])[:40])
    reason = _reason(name, shown, bad[:1], rows)
    same = [
        k
        for k, value in enumerate(column)
        if isinstance(value, str) and decimal in value and is_number(value, decimal)
    ]
    if same:
        mixed = f"and {str(column[same[0]])[:40]!r} in {rows[same[0]]}"
        return DataError(f"{reason}, {mixed}", remedy="write all with one decimal sign in the file")
    if decimal == ",":
        grouped = KINDS["grouped"].fullmatch(str(column[bad[0]]).strip())
        way_out = f"; if points stand between thousands: --scale {name}=1" if grouped else ""
        return DataError(
            reason, remedy=f"if points are decimal signs, leave out --decimal {decimal}{way_out}"
        )
    return FormatError(reason, "if commas are decimal signs, say so:", "decimal", ",")


def _text(name: str, column: NDArray[Any], bad: Sequence[int], rows: RowNames) -> DataError:
    """Return the error for text among numbers: codes of missing values are few and rare."""
    codes = list(dict.fromkeys(str(column[k]).strip() for k in bad))
    shown = repr(str(column[bad[0]])[:40])
    present = sum(value is not None for value in column.tolist())
    if len(codes) > MOST_CODES or 2 * len(bad) > present:
        remedy = "correct the row or select other columns"
        return DataError(_reason(name, shown, bad[:1], rows), remedy=remedy)
    which = "it stands for a missing value" if len(bad) == 1 else "they stand for missing values"
    is_plain = not any(sign in code for code in codes for sign in ":,")
    written = [",".join(codes)] if is_plain else [f":{code}" for code in codes]
    options = " ".join(f"--na-values {shlex.quote(one)}" for one in written)
    option = f"{options} (na_values of harmonise)"
    return DataError(_reason(name, shown, bad, rows), remedy=f"if {which}: {option}")
