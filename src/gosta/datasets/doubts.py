"""Doubts about values of a file: codes among numbers, and numbers that were read as text."""

from __future__ import annotations

import re
import shlex
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.datasets.columns import value_text
from gosta.datasets.data import Data

FEWEST_NUMBERS = 20  # of a column of which one can be said to be far from the others
FEWEST_BEYOND = 0.05  # of numbers above 1 among shares that may be per cent
FAR = 2.0  # times the range of the other numbers, between which and one of them is nothing
# A number with a decimal comma, and a unit or a percent sign that may follow.
WITH_COMMA = re.compile(r"\s*[-+]?\d*,\d+(?:[eE][-+]?\d+|\s*[^\d\s.,'’][^\d]*)?\s*")
CODES = (9.0, 99.0, 999.0, 9999.0, 99999.0)  # that stand for missing values, also negative


def far_values(data: Data) -> list[str]:
    """Return a doubt for each column with numbers such as 999 that are far from the others."""
    found = {name: far_code(column) for name, column in data.columns.items()}
    return [
        f"{name}: {value} is far from the others; is it a code for missing? --na-values "
        f"{shlex.quote(f'{name}:{value}')}"
        for name, value in found.items()
        if value
    ]


def far_code(column: NDArray[Any]) -> str:
    """Return the lowest or highest number if it looks like a code; empty if none does."""
    values = column[np.isfinite(column)] if column.dtype.kind in "iuf" else column[:0]
    if len(values) < FEWEST_NUMBERS:
        return ""
    for end in (values.max(), values.min()):
        rest = values[values != end]
        if not len(rest) or abs(end) not in CODES:
            continue
        gap = min(abs(rest.max() - end), abs(rest.min() - end))
        if gap > FAR * np.ptp(rest) or (end < 0 <= rest.min()):
            return value_text(float(end))
    return ""


def is_per_cent(values: NDArray[np.float64]) -> bool:
    """Return whether numbers that should be shares, from 0 to 1, look like per cent.

    >>> is_per_cent(np.array([0.4, 12.0, 3.0, 71.5])), is_per_cent(np.array([0.4, 0.3, 99.0]))
    (True, False)
    """
    code = far_code(values)
    known = values[~np.isnan(values) & (values != float(code or "nan"))]
    beyond = known[known > 1]
    is_within = bool(((known >= 0) & (known <= 100)).all())
    is_often = len(beyond) >= FEWEST_BEYOND * len(known)
    return is_within and is_often and len(np.unique(beyond)) > 1


def comma_column(data: Data) -> str:
    """Return the first column of which most cells are numbers with a decimal comma, read as text.

    A unit or a percent sign may follow them.

    Returns
    -------
    str
        Its name, or nothing if there is none.
    """
    for name, column in data.columns.items():
        decimal = dict(column.dtype.metadata or {}).get("decimal", ".")
        if column.dtype != object or decimal != ".":
            continue
        texts = [value for value in column.tolist() if isinstance(value, str)]
        with_comma = [v for v in texts if WITH_COMMA.fullmatch(v)]
        if 2 * len(with_comma) > len(texts):
            return name
    return ""
