"""Numbers whose signs between thousands were read as decimal signs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.datasets.columns import Columns

FEWEST_WHOLE = 0.05  # of numbers, of which others have three digits after the decimal sign
FEWEST_THREE = 0.6  # of fractions that have no fewer digits, as 1.020 and 1.02 are one number
MOST_COMPARED = 100_000  # values of a column in which signs between thousands are looked for


def thousands(columns: Columns, decimal: str, names: Mapping[str, str]) -> list[str]:
    """Return a doubt for each column of numbers whose decimal signs may stand between thousands.

    `names` are those of columns in the network, with theirs in the file.
    """
    found = {name: row for name, column in columns.items() if (row := _grouped(column)) is not None}
    others = [column for name, column in columns.items() if name not in found]
    is_used = any(_has_fractions(column) for column in others)
    other = "," if decimal == "." else "."
    doubts = []
    for name, value in found.items():
        own = next((one for one, theirs in names.items() if theirs == name), name)
        way = f"--decimal {other} --scale {shlex.quote(f'{own}=1')}"
        if is_used:
            way = "write these numbers without it in the file"
        shown = f"{value:.3f}".replace(".", decimal)
        doubts.append(
            f"{name} has {shown} beside whole numbers up to 999; if {decimal!r} stands between "
            f"thousands there: {way}"
        )
    return doubts


def _grouped(column: NDArray[Any]) -> float | None:
    """Return the first fraction of a column, if all look like 1.006 and the others like 397."""
    if column.dtype.kind != "f":
        return None
    values = column[:MOST_COMPARED]
    values = values[np.isfinite(values)]
    is_whole = values == np.round(values)
    whole, fractions = values[is_whole], values[~is_whole]
    if not len(fractions) or not 100 <= whole.max(initial=0) < 1000:
        return None
    is_rare = len(whole) < FEWEST_WHOLE * len(values)
    if is_rare or fractions.min() < 1 or fractions.max() >= 1000:
        return None
    if (fractions != np.round(fractions, 3)).any():
        return None
    has_three = fractions != np.round(fractions, 2)
    return float(fractions[0]) if has_three.mean() >= FEWEST_THREE else None


def _has_fractions(column: NDArray[Any]) -> bool:
    if column.dtype.kind != "f":
        return False
    values = column[:MOST_COMPARED]
    return bool((np.round(values) != values)[np.isfinite(values)].any())
