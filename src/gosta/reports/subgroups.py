"""The section of groups of rows: their values, differences and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gosta.reports.blocks import Block, Figures, Section, Table, Text
from gosta.reports.questions import MOST_COLUMNS, titled_pictures
from gosta.reports.tables import (
    Found,
    capital,
    groups_without_value,
    p_text,
    value_cells,
    with_intervals,
)
from gosta.statistics.estimate import Estimate
from gosta.views import numbers

HETEROGENEITY = "p, all groups\nCochran's Q, I²"
BY_GROUP = (
    "auc",
    "concordance-index",
    "calibration-slope",
    "observed-expected-ratio",
    "survival-observed-expected-ratio",
)
CURVES_BY_GROUP = (
    "roc-curve",
    "calibration-curve",
    "smooth-calibration-curve",
    "kaplan-meier",
    "numbers-at-risk",
)


def subgroups(found: Sequence[Found], missing: Mapping[str, int]) -> Section:
    """Return values of a few statistics by group, and pictures of them and of curves.

    `missing` are the numbers of rows without a value, by column, where they are known.
    """
    grouped = [one._replace(estimate=own) for one in found for own in one.estimate.grouped]
    columns = dict.fromkeys(one.estimate.by for one in grouped)
    parts = [[one for one in grouped if one.estimate.by == by] for by in columns]
    blocks = [block for part in parts for block in _of_columns(part, found, missing)]
    return Section("Subgroups", blocks)


def _of_columns(
    grouped: Sequence[Found], found: Sequence[Found], missing: Mapping[str, int]
) -> list[Block]:
    """Return what is said of the groups by one column, or by one combination of columns."""
    chosen = [one for one in grouped if one.name in BY_GROUP and np.ndim(one.estimate.value) == 0]
    names = {one.name for one in grouped}
    left_out = "calibration-curve" if "smooth-calibration-curve" in names else ""
    drawn = [one for one in grouped if one.name in CURVES_BY_GROUP and one.name != left_out]
    blocks: list[Block] = [*_groups_tables(chosen), *groups_without_value(chosen)]
    reference = next((gap.group for one in chosen for gap in one.estimate.differences), None)
    columns = (grouped[0].estimate.by or "").split(", ")
    sentences = [
        f"Rows without a value of {name} are left out of all results: {missing[name]:,}."
        for name in columns
        if missing.get(name)
    ]
    if reference is not None:
        largest = reference.partition(" less ")[2]
        sentences.append(f"Differences are from the largest group, {largest}.")
    if sentences:
        blocks.insert(0, Text(" ".join(sentences)))
    shown = [one for one in titled_pictures([*chosen, *drawn], found) if one.has_groups]
    return [*blocks, Figures(shown)] if shown else blocks


def _groups_tables(found: Sequence[Found]) -> list[Block]:
    """Return the values of all groups, and their differences from the largest one."""
    few = [one for one in found if len(one.estimate.groups) < MOST_COLUMNS]
    many = [one for one in found if len(one.estimate.groups) >= MOST_COLUMNS]
    names = dict.fromkeys(one.name for one in many)
    tables = [_table_of_lines([one for one in many if one.name == name]) for name in names]
    return [*_tables_of_columns(few), *tables] if few else [*tables]


def _table_of_lines(found: Sequence[Found]) -> Table:
    """Return the values of one statistic: a line for each group, two columns for each score."""
    sizes = {group.group or "": group.size for one in found for group in one.estimate.groups}
    names = list(sizes)
    columns: list[list[str]] = [[f"{name}\n{sizes[name]}" for name in names]]
    for one in found:
        gaps = {(gap.group or "").partition(" less ")[0]: gap for gap in one.estimate.differences}
        known = [group for group in one.estimate.groups if group.value is not None]
        values = {group.group or "": group for group in known}
        for parts, missing in ((values, numbers.NONE), (gaps, "")):
            cells = [value_cells(parts[n])[0] if n in parts else missing for n in names]
            columns.append(cells)
    rows = list(map(list, zip(*columns, strict=True)))
    rows.append([HETEROGENEITY, *(c for one in found for c in (_p_of_all(one), ""))])
    heads = [part for one in found for part in (one.score or "value", "difference")]
    return Table(with_intervals(capital(found[0].title), found), ["", *heads], rows)


def _tables_of_columns(found: Sequence[Found]) -> list[Block]:
    """Return the values of few groups: a column for each, and for each difference."""
    values = [
        {group.group: group for group in one.estimate.groups if group.value is not None}
        for one in found
    ]
    gaps = [{gap.group: gap for gap in one.estimate.differences} for one in found]
    of_values, of_gaps = (_group_columns(parts) for parts in (values, gaps))
    if len(of_values[0]) > 2:
        of_values[0].append(HETEROGENEITY)
        for cells, one in zip(of_values[1], found, strict=True):
            cells.append(_p_of_all(one))
    parts = [("Values of groups", *of_values), ("Differences between groups", *of_gaps)]
    if len(of_values[0]) + len(of_gaps[0]) <= MOST_COLUMNS:
        rows = [[*one, *other] for one, other in zip(of_values[1], of_gaps[1], strict=True)]
        parts = [("Values of groups", [*of_values[0], *of_gaps[0]], rows)]
    titles = [one.heading for one in found]
    return [
        Table(
            with_intervals(caption, found),
            ["", *heading],
            [[title, *cells] for title, cells in zip(titles, rows, strict=True)],
        )
        for caption, heading, rows in parts
        if heading
    ]


def _group_columns(
    parts: Sequence[Mapping[str | None, Estimate]],
) -> tuple[list[str], list[list[str]]]:
    """Return the heading of each group's column, and the cells of each line."""
    sizes = {name: group.size for groups in parts for name, group in groups.items()}
    heading = [f"{name}\n{size}" for name, size in sizes.items()]
    cells = [
        [value_cells(groups[name])[0] if name in groups else numbers.NONE for name in sizes]
        for groups in parts
    ]
    return heading, cells


def _p_of_all(one: Found) -> str:
    compared = one.estimate.heterogeneity
    if compared is None:
        return numbers.NONE
    i_squared = f"\nI² {numbers.percent(compared.i_squared, '.0f')}"
    of_some = f"\n{compared.groups} of {len(one.estimate.groups)} groups"
    p_value = p_text(compared.p_value) + i_squared
    return p_value + of_some * (compared.groups < len(one.estimate.groups))
