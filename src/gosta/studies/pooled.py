"""A study over files that are in one place: all statistics, with intervals, over the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from gosta.analysis.computation import compute
from gosta.datasets.columns import concatenate, value_text
from gosta.datasets.data import Data
from gosta.datasets.dictionary import Column
from gosta.datasets.outcomes import contradictions
from gosta.datasets.row_names import below
from gosta.errors import DataError, GostaError, InputError
from gosta.runtime.arrays import Booleans, Floats
from gosta.statistics.encode import check_times
from gosta.statistics.estimate import Estimate
from gosta.studies.definition import SITE, Item, Study, check_study, columns_of
from gosta.studies.questions import TABLE_ONE
from gosta.studies.results import record
from gosta.views import numbers


def run(study: Study, parts: Sequence[Data], sites: Sequence[str] = ()) -> dict[str, Any]:
    """Return the results of a study over the rows of several files.

    `sites` are the names of the hospitals that have these, by default those of the files.
    """
    if SITE in columns_of(study.study.groups):
        parts = _with_sites(parts, sites or [site_name(Path(part.name)) for part in parts])
        study = _grouped_by_site(study, parts)
    data = pooled_rows(study, parts)
    kept = complete_rows(study, data)
    if not kept.any():
        raise DataError(f"{data.name} has no row with a value in all of {', '.join(study.roles)}")
    whole = data.take(kept)
    doubts = beyond_ranges(study, data) | _contradicting(study, data, parts)
    groups = {", ".join(names): _groups(study, whole, names) for names in study.groups}
    found = [
        (item, _warned(_estimate(study, item, whole, groups), item, doubts)) for item in study.items
    ]
    how = {"mode": "one place", "data": [part.name for part in parts], "sites": len(parts)}
    how |= {"rows_read": [len(part) for part in parts], "missing": _missing(study, data)}
    return record(study, found, how, len(whole), len(data) - len(whole))


def site_name(path: Path) -> str:
    """Return the name of the hospital whose file or folder this is.

    >>> site_name(Path("rows/lodz.csv.gz"))
    'lodz'
    """
    return path.name.partition(".")[0]


def _with_sites(parts: Sequence[Data], sites: Sequence[str]) -> list[Data]:
    """Return files of which each has a column of its site: the name of it, if it has none."""
    named = zip(parts, sites, strict=True)
    return [
        part
        if SITE in part.columns
        else replace(part, columns={**part.columns, SITE: np.full(len(part), site, dtype=object)})
        for part, site in named
    ]


def _grouped_by_site(study: Study, parts: Sequence[Data]) -> Study:
    """Return a study whose dictionary has the sites, which are its groups."""
    if SITE in study.columns:
        return study
    found = dict.fromkeys(value_text(one) for part in parts for one in part.columns[SITE].tolist())
    if len(found) < 2:
        raise InputError(
            f"study.groups: there is one site only, {', '.join(found)}",
            remedy="give the file or the folder of each with --data, by another name each",
        )
    column = Column("class", classes=tuple(found), description="hospital whose file has the row")
    declared = structs.replace(study, columns={**study.columns, SITE: column})
    check_study(declared)
    return declared


def pooled_rows(study: Study, parts: Sequence[Data]) -> Data:
    """Return the rows of all files, with the columns of the study and its groups."""
    names = tuple(dict.fromkeys([*study.roles, *study.table]))
    for part in parts:
        for name in names:
            part.select(name)  # an error if the column is not there
    chosen = [(part.name, {name: part.columns[name] for name in names}) for part in parts]
    title = parts[0].name if len(parts) == 1 else f"{len(parts)} files"
    names_of_rows = below([(part.name, part.row_names, len(part)) for part in parts])
    columns = concatenate(chosen, title)
    data = Data(title, columns, drop_missing=True, row_names=names_of_rows)
    if study.study.label is not None:
        data = replace(data.select(label=study.study.label), declared_classes=study.classes)
    return data


def complete_rows(study: Study, data: Data) -> Booleans:
    """Return which rows have a value in all columns that play a role in an answer."""
    kept = np.ones(len(data), dtype=np.bool_)
    has_roles = {*study.study.questions} != {TABLE_ONE}
    for name in study.roles if has_roles else study.group_columns:
        codes = _codes(study, data, name)
        if name == study.study.time:
            check_times(data, codes, name)
        kept &= ~np.isnan(codes)
    return kept


def _codes(study: Study, data: Data, name: str) -> Floats:
    """Return a column as numbers, classes as their places; NaN where a value is missing."""
    classes = study.columns[name].classes
    return data.level_codes(name, classes, "classes") if classes else data.to_floats([name])[:, 0]


def _missing(study: Study, data: Data) -> dict[str, int]:
    """Return how many rows lack a value, by column that plays a role."""
    return {name: int(np.isnan(_codes(study, data, name)).sum()) for name in study.roles}


def beyond_ranges(study: Study, data: Data) -> dict[str, str]:
    """Return what to say of columns with values beyond the range of the dictionary."""
    found = {}
    for name, column in data.columns.items():
        ends = study.columns[name].range if name in study.columns else None
        if ends is None or column.dtype.kind not in "iuf":
            continue
        beyond = (column < ends[0]) | (column > ends[1])
        if beyond.any():
            count = numbers.count(int(beyond.sum()), "value")
            found[name] = (
                f"{count} of {name} beyond {ends[0]:g} to {ends[1]:g}, first in "
                f"{data.row_names[beyond.argmax()]}: correct these, widen the range, or name codes "
                "as missing"
            )
    return found


def _contradicting(study: Study, data: Data, parts: Sequence[Data]) -> dict[str, str]:
    """Return what to say of an outcome that contradicts times and events in one of the files."""
    asked = study.study
    if not (asked.label and asked.time and asked.event and asked.horizon):
        return {}
    outcome, times, events = (
        _codes(study, data, name) for name in (asked.label, asked.time, asked.event)
    )
    start = 0
    for part in parts:
        rows = slice(start, start + len(part))
        found = contradictions(outcome[rows], times[rows], events[rows], asked.horizon)
        if found.are_nearly_all():
            return {
                asked.label: f"{asked.label} and {asked.event} before {asked.horizon:g} contradict "
                f"each other in {numbers.count(int(found.rows.sum()), 'row')} of {part.name}, "
                f"first in {data.row_names[start + int(found.rows.argmax())]}: is {asked.time} in "
                "the study's unit, and are both coded as the study says?"
            }
        start += len(part)
    return {}


def _groups(study: Study, data: Data, columns: Sequence[str]) -> Any:
    """Return the name of each row's group; None if there are fewer than two rows in a group."""
    codes = np.zeros(len(data), dtype=np.int64)
    for name in columns:
        classes = study.columns[name].classes
        codes = codes * len(classes) + data.level_codes(name, classes).astype(np.int64)
    names = np.array(study.group_names(columns))[codes]
    return None if 2 * len({*names}) > len(names) else names


def _warned(estimate: Estimate, item: Item, doubts: Mapping[str, str]) -> Estimate:
    """Return an estimate that says what is doubtful about its columns."""
    more = [text for name, text in doubts.items() if name in item.columns]
    return estimate._replace(warnings=(*estimate.warnings, *more))


def _estimate(study: Study, item: Item, data: Data, groups: Mapping[str, Any]) -> Estimate:
    """Return a statistic of a study over all rows and by group; without a value, the reason."""
    try:
        found = [
            compute(
                data,
                [item.title],
                by=names,
                interval=study.study.confidence_level,
                options=study.options_of(item.statistic),
            )[0]
            for names in groups.values() or [None]
        ]
    except GostaError as error:
        return Estimate(
            None,
            statistic=item.title,
            columns=item.columns,
            data=data.name,
            reason=error.reason,
            remedy=error.remedy,
        )
    named = zip(groups, found, strict=False)
    known = [one._replace(by=by) for by, one in named if one.by is not None]
    return found[0]._replace(by=None, groups=(), heterogeneity=None).with_groupings(known)
