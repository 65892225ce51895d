"""Statistics as a report shows them, from the records of a results.json.

Groups have the names of their columns and the order of the dictionary, times have a unit, and
brackets that say nothing are not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gosta.measures import MEASURES
from gosta.reports.tables import Found
from gosta.statistics.definition import STATISTICS
from gosta.statistics.estimate import Estimate

TABLE_ONE = "table-one"  # the question that is about all columns
TIME = "time"  # the axis that has the unit of the study's column of times
# Of the range of possible values; a wider bracket says nothing that helps.
MOST_COVERED = 0.5
MOST_WIDE = 100.0  # a bracket of a value without bounds, relative to 1 + |value|


def found_in(record: Mapping[str, Any], results: Mapping[str, Any]) -> Found:
    """Return the statistic of a record of a results.json."""
    scores = results["study"].get("scores", [])
    name = record["name"]
    estimate = _shown(Estimate.from_dict(record), name, results)
    is_table = record["question"] == TABLE_ONE
    columns = [] if is_table else [one for one in estimate.columns if one in scores]
    joined = " less " if record["question"] == "comparison" else " and "
    shown = estimate.with_groupings([_named(one, name, results) for one in estimate.grouped])
    return Found(record["question"], name, shown, joined.join(columns))


def _named(estimate: Estimate, name: str, results: Mapping[str, Any]) -> Estimate:
    """Return an estimate whose groups are in the order of the dictionary, with their columns."""
    by = estimate.by or ""
    groups = (_shown(group, name, results) for group in estimate.groups)
    ordered = sorted(groups, key=lambda group: _place(group, by, results))
    named = (group._replace(group=_group_name(group.group or "", by)) for group in ordered)
    return _shown(estimate, name, results)._replace(groups=tuple(named))


def unit_of(results: Mapping[str, Any]) -> str:
    """Return the unit of the study's column of times, "" if it has none."""
    column = results["columns"].get(results["study"].get("time"), {})
    return str(column.get("unit", ""))


def _shown(estimate: Estimate, name: str, results: Mapping[str, Any]) -> Estimate:
    unit, axes = unit_of(results), estimate.axes
    if unit and axes is not None and axes[0] == TIME:
        axes = (f"{TIME} ({unit})", axes[1])
    error = results["how"].get("rows_error") or 0.0
    return estimate._replace(axes=axes, bracket=_helpful(estimate, name), n_error=error)


def _helpful(estimate: Estimate, name: str) -> tuple[Any, Any] | None:
    """Return a bracket, NaN where it covers more than half of all possible values."""
    known = MEASURES.get(name) or STATISTICS.get(name)
    if estimate.bracket is None or known is None or estimate.value is None:
        return estimate.bracket
    low, high = (np.asarray(end, dtype=np.float64) for end in estimate.bracket)
    most = MOST_COVERED * np.ptp(known.bounds)
    if not np.isfinite(most):
        most = MOST_WIDE * (1 + np.abs(np.asarray(estimate.value, dtype=np.float64)))
    is_wide = high - low > most
    return np.where(is_wide, np.nan, low), np.where(is_wide, np.nan, high)


def _values_of(group: str, by: str) -> list[str]:
    """Return the values of a group's columns; all of it where they cannot be told apart."""
    values = group.split(", ")
    names = by.split(", ")
    if len(values) != len(names):
        return [group]
    return [part.removeprefix(f"{name} = ") for name, part in zip(names, values, strict=True)]


def _group_name(group: str, by: str) -> str:
    """Return the name of a group, with the name of each column before its value.

    >>> _group_name("f, icu", "sex, ward"), _group_name("sex = f", "sex")
    ('sex f, ward icu', 'sex f')
    """
    values, names = _values_of(group, by), by.split(", ")
    if len(values) != len(names):
        return group
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))


def _place(group: Estimate, by: str, results: Mapping[str, Any]) -> list[int]:
    """Return the places of a group's values among the classes of the dictionary."""
    places = []
    for name, value in zip(by.split(", "), _values_of(group.group or "", by), strict=False):
        classes = list(map(str, results["columns"].get(name, {}).get("classes", [])))
        places.append(classes.index(value) if value in classes else len(classes))
    return places
