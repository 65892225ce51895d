"""Table 1 of a report: the rows of a study, all and by group."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from gosta.measures.table_one import standardised_differences
from gosta.reports.blocks import Block, Section, Table
from gosta.reports.tables import Found
from gosta.statistics.estimate import Estimate
from gosta.views import numbers

TABLE_ONE = "table-one"


def table_one(found: Sequence[Found]) -> Section:
    tables: list[Block] = [_characteristics(one.estimate) for one in found if one.name == TABLE_ONE]
    return Section("Table 1", tables)


def _characteristics(estimate: Estimate) -> Table:
    """Return Table 1: a column for all rows and for each group, and the largest difference."""
    parts = [part for part in (estimate, *estimate.groups) if part.value is not None]
    cells = [_described(part) for part in parts]
    rows = [[name, *(column.get(name, numbers.NONE) for column in cells)] for name in cells[0]]
    heading = ["", *(f"{part.group or 'all'}\nn = {part.n:,}" for part in parts)]
    caption = "Mean (standard deviation), median (quartiles), rows of a class (share)"
    groups = [part for part in parts if part.group is not None]
    if len(groups) > 1:
        differences = _standardised(groups)
        rows = [[*row, differences.get(row[0], "")] for row in rows]
        heading.append("difference\nstandardised")
    return Table(caption, heading, rows)


def _described(estimate: Estimate) -> dict[str, str]:
    """Return the lines of Table 1 of one group of rows."""
    values = dict(zip(estimate.labels, np.ravel(estimate.value).tolist(), strict=True))
    lines: dict[str, str] = {}
    for label, value in values.items():
        column, _, what = label.partition(": ")
        if what == "mean":
            lines[f"{column}, mean"] = _with_more(value, values[f"{column}: standard deviation"])
        elif what == "50 %":
            ends = (values[f"{column}: {quarter}"] for quarter in ("25 %", "75 %"))
            lines[f"{column}, median"] = _with_more(value, *ends)
        elif what == "missing":
            if value != 0:
                lines[f"{column}, missing"] = numbers.percent(value, ".1f")
        elif not what and np.isfinite(value):
            present = 1 - values[f"{label.rpartition(' = ')[0]}: missing"]
            lines[label] = f"{estimate.n * present * value:,.0f} ({numbers.percent(value, '.1f')})"
    return lines


def _with_more(value: float, *others: float) -> str:
    shown = " to ".join(numbers.short(other, value, *others) for other in others)
    return f"{numbers.short(value, *others)} ({shown})"


def _standardised(groups: Sequence[Estimate]) -> dict[str, str]:
    """Return the largest standardised difference of two groups, by line of Table 1."""
    found: dict[str, list[float]] = {}
    for one, other in combinations(groups, 2):
        pair = (np.ravel(part.value).tolist() for part in (one, other))
        with np.errstate(invalid="ignore"):  # shares beyond 0 and 1, by noise
            differences = standardised_differences(one.labels, *pair)
        for label, value in differences.items():
            if value is not None and np.isfinite(value):
                found.setdefault(label, []).append(abs(value))
    shown = {label: f"{max(values):.2f}" for label, values in found.items()}
    return {label if " = " in label else f"{label}, mean": text for label, text in shown.items()}
