"""Table 1 of a report: the rows of a study, all and by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from gosta.measures.table_one import standardised_differences
from gosta.reports import texts
from gosta.reports.blocks import Block, Section, Table, Text
from gosta.reports.tables import Found, groups_without_value
from gosta.statistics.estimate import Estimate
from gosta.views import numbers

TABLE_ONE = "table-one"
MOST_COLUMNS = 4  # of a table, beside the names of its lines
CAPTION = "Mean (standard deviation), median (quartiles), rows of a class (share)"
MISSING = ", missing"  # after the name of a column
MEDIAN = ", median"
NONE_MISSING = numbers.percent(0.0, ".1f")
NOT_TOLD = numbers.NONE  # of few rows, which sites do not tell


def table_one(found: Sequence[Found], units: Mapping[str, str]) -> Section:
    """Return Table 1, with units beside the names of columns that have one."""
    blocks: list[Block] = []
    for one in (one for one in found if one.name == TABLE_ONE):
        for own in one.estimate.grouped or [one.estimate]:
            blocks += [_with_units(table, units) for table in _of_groups(own)]
            blocks += groups_without_value([one._replace(estimate=own)])
    rows = [row for block in blocks if isinstance(block, Table) for row in block.rows]
    if any(NOT_TOLD in row for row in rows):
        blocks.append(Text(f"{NOT_TOLD}: too few rows, or too much noise, to tell."))
    if any(row[0].endswith(MEDIAN) for row in rows):
        blocks.append(Text(texts.QUARTILES))
    return Section("Table 1", blocks)


def _of_groups(estimate: Estimate) -> list[Table]:
    """Return Table 1: all rows and each group, a few in a table, and how much the groups differ."""
    groups = [group for group in estimate.groups if group.value is not None]
    own = tuple(f"{name} = " for name in (estimate.by or "").split(", ") if name)
    parts = [estimate, *groups]
    cells = [_described(part) for part in parts]
    names = _lines(cells)
    for column in cells[1:]:  # a group's own class says nothing
        column |= {name: "" for name in names if name.startswith(own)}
    tables = []
    for k in range(0, len(parts), MOST_COLUMNS):
        shown = slice(k, k + MOST_COLUMNS)
        rows = [[name, *(column.get(name, NOT_TOLD) for column in cells[shown])] for name in names]
        heading = ["", *(f"{part.group or 'all'}\n{part.size}" for part in parts[shown])]
        caption = CAPTION + ", continued" * (k > 0)
        tables.append(Table(caption, heading, [row for row in rows if any(row[1:])]))
    differences = _standardised(groups)
    lines = {name: differences[name] for name in names if name in differences}
    lines = {name: text for name, text in lines.items() if not name.startswith(own)}
    return _with_differences(tables, lines, len(groups)) if lines else tables


def _with_units(table: Table, units: Mapping[str, str]) -> Table:
    """Return a table with the units of means and quantiles."""
    rows = []
    for name, *cells in table.rows:
        column, _, what = name.rpartition(", ")
        has_unit = column in units and f", {what}" != MISSING
        rows.append([f"{column} ({units[column]}), {what}" if has_unit else name, *cells])
    return table._replace(rows=rows)


def _with_differences(tables: list[Table], lines: dict[str, str], groups: int) -> list[Table]:
    """Add the differences to one table as a column, to several as another table."""
    if len(tables) > 1:
        rows = [[name, *text.split("\n")] for name, text in lines.items()]
        heading = ["", "difference", "between groups"]
        return [*tables, Table("Largest standardised difference of two groups", heading, rows)]
    rows = [[*row, lines.get(row[0], "")] for row in tables[0].rows]
    name = "largest difference" if groups > 2 else "difference"
    return [Table(CAPTION, [*tables[0].heading, f"{name}\nstandardised"], rows)]


def _lines(cells: Sequence[dict[str, str]]) -> list[str]:
    """Return the names of lines; one of missing values only where some are missing, or hidden."""
    return [
        name
        for name in cells[0]
        if not name.endswith(MISSING) or any(column.get(name) != NONE_MISSING for column in cells)
    ]


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
            lines[f"{column}{MEDIAN}"] = _with_more(value, *ends)
        elif what == "missing":
            shown = numbers.percent(value, ".1f") if np.isfinite(value) else NOT_TOLD
            lines[f"{column}{MISSING}"] = shown
        elif not what and np.isfinite(value):
            rows = estimate.n * value * (1 - values[f"{label.rpartition(' = ')[0]}: missing"])
            share = numbers.percent(value, ".1f")
            known = np.isfinite(rows)
            shown = numbers.about_count(rows, estimate.n_error) if known else NOT_TOLD
            lines[label] = f"{shown}\n({share})"
    return lines


def _with_more(value: float, *others: float) -> str:
    if not np.isfinite([value, *others]).all():
        return numbers.short(value)
    shown = " to ".join(numbers.short(other, value, *others) for other in others)
    return f"{numbers.short(value, *others)}\n({shown})"


def _standardised(groups: Sequence[Estimate]) -> dict[str, str]:
    """Return the largest standardised difference of two groups, by line of Table 1."""
    found: dict[str, tuple[float, str]] = {}
    for one, other in combinations(groups, 2):
        pair = (np.ravel(part.value).tolist() for part in (one, other))
        with np.errstate(invalid="ignore"):  # shares beyond 0 and 1, by noise
            differences = standardised_differences(one.labels, *pair)
        for label, value in differences.items():
            if value is not None and abs(value) >= found.get(label, (0.0, ""))[0]:
                names = f"\n{one.group} and {other.group}" * (len(groups) > 2)
                found[label] = (abs(value), names)
    shown = {label: f"{value:.2f}{names}" for label, (value, names) in found.items()}
    return {label if " = " in label else f"{label}, mean": text for label, text in shown.items()}
