"""From rows in one place to declarations of columns, ranges, classes and strata, so that each site finds the same."""

from __future__ import annotations

import csv
import dataclasses
import inspect
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from gosta.datasets import Data
from gosta.net.config import Task
from gosta.net.deploy.rounding import round_centres, round_number, round_range
from gosta.runtime.arrays import Integers
from gosta.sketches import make_layout
from gosta.sketches.layout import Part


class Declared(NamedTuple):
    """What all sites declare, as it follows from rows in one place."""

    task: Task
    data: Data  # with a column more, if a score was computed
    ranges: dict[str, tuple[float, float]]  # of columns for which none was given: rounded outwards
    options: tuple[str, ...]  # names of those that were rounded


def declare(task: Task, data: Data) -> Declared:
    """Return the task with all that follows from the rows; a score that is computed from them is a new column."""
    private = task.private
    assert private is not None
    settings, titles = replace(private, find_edges=False), []
    found, columns = dict[str, tuple[float, float]](), dict(data.columns)
    given, rounded = task.options, list[str]()
    task = replace(
        task, label=task.label or data.label, score=task.score or data.score, drop_missing=False
    )
    has_label = False
    statistics = [title.strip() for title in task.statistic.split(",")]
    for title in statistics:
        chosen = task.columns if task.columns else None
        layout = make_layout(
            title,
            settings,
            columns=chosen or (),
            label=task.label,
            score=None if chosen else task.score,
            options=task.options,
            data=data,
        )
        (part,) = layout.parts
        has_label |= part.has_label
        for axis in part.sketch.axes:
            if (
                np.isfinite(axis.low)
                and axis.column not in settings.ranges
                and "" not in settings.ranges
            ):
                low, high = found.get(axis.column, (axis.low, axis.high))
                found[axis.column] = min(low, axis.low), max(high, axis.high)
        fixed = _fixed_options(part, given)
        rounded += [name for name in fixed if name not in rounded]
        task = replace(task, options={**task.options, **fixed})
        if layout.classes and not task.classes:
            task = replace(task, classes=tuple(map(_plain, layout.classes)))
        levels = {column: tuple(map(_plain, values)) for column, values in layout.levels}
        settings = replace(settings, strata=levels)
        if _is_projected(part):
            selected = dataclasses.replace(data, drop_missing=True).select(part.columns, task.label)
            columns["score"] = part.sketch.encode(selected, **part.options)[:, 0]
            task = replace(task, score="score", columns=())
        elif ":" not in title and not task.columns and part.columns != (task.score,):
            title = f"{title}:{'+'.join(part.columns)}"
        titles.append(title)
    if len(titles) == 1 and titles[0] != statistics[0]:
        name, _, named = titles[0].partition(":")
        task, titles = replace(task, columns=tuple(named.split("+"))), [name]
    task = task if has_label else replace(task, label=None)
    ranges = {column: round_range(*ends) for column, ends in found.items()}
    private = replace(private, ranges={**settings.ranges, **ranges}, strata=settings.strata)
    table = dataclasses.replace(data, columns=columns)
    return Declared(
        replace(task, statistic=",".join(titles), private=private), table, ranges, tuple(rounded)
    )


def _is_projected(part: Part) -> bool:
    return part.sketch.roles == ("score",) and len(part.columns) > 1


def _fixed_options(part: Part, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options whose values follow from all rows, as a bandwidth or the centres of classes, rounded."""
    defaults = {
        name: one.default for name, one in inspect.signature(part.sketch.encode).parameters.items()
    }
    fixed: dict[str, Any] = {}
    for name, value in part.options.items():
        if value is given.get(
            name, defaults[name]
        ):  # not "class-means", whose value is an array now
            continue
        if isinstance(value, float):
            fixed[name] = round_number(value)
        elif isinstance(value, np.ndarray):
            fixed[name] = round_centres(value).tolist()
    return fixed


def _plain(value: Any) -> str | int | float:
    return (
        value
        if isinstance(value, str | int | float) and not isinstance(value, bool)
        else str(value)
    )


def to_csv(data: Data, columns: Sequence[str], rows: Integers) -> str:
    """Return some rows of a table as CSV, each number to its last bit."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(data.columns[name][rows].tolist() for name in columns), strict=True))
    return text.getvalue()
