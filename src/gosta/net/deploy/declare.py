"""From rows in one place to declarations of columns, ranges, classes and strata, so that each site finds the same."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from gosta.datasets import Data
from gosta.net.config import Task
from gosta.runtime.arrays import Integers
from gosta.sketches import make_layout
from gosta.sketches.layout import Part


def declare(task: Task, data: Data) -> tuple[Task, Data]:
    """Return the task with all that follows from the rows; a score that is computed from them is a new column."""
    private = task.private
    assert private is not None
    settings, titles = replace(private, find_edges=False), []
    ranges, columns = dict(settings.ranges), dict(data.columns)
    task = replace(task, label=task.label or data.label, score=task.score or data.score, drop_missing=False)
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
            if np.isfinite(axis.low) and axis.column not in ranges and "" not in ranges:
                ranges[axis.column] = (axis.low, axis.high)
        fixed = {name: np.asarray(value).tolist() for name, value in part.options.items() if _depends_on_rows(value)}
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
    private = replace(private, ranges=ranges, strata=settings.strata)
    table = dataclasses.replace(data, columns=columns)
    return replace(task, statistic=",".join(titles), private=private), table


def _is_projected(part: Part) -> bool:
    return part.sketch.roles == ("score",) and len(part.columns) > 1


def _depends_on_rows(option: object) -> bool:
    """Return whether the value of an option may follow from all rows, as a bandwidth or the centres of classes."""
    return isinstance(option, float | np.ndarray)


def _plain(value: Any) -> str | int | float:
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else str(value)


def to_csv(data: Data, columns: Sequence[str], rows: Integers) -> str:
    """Return some rows of a table as CSV, each number to its last bit."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(data.columns[name][rows].tolist() for name in columns), strict=True))
    return text.getvalue()
