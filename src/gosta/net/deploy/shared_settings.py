"""Settings that all sites share, found from rows in one place: columns, ranges, classes, options.

Ranges, bandwidths and centres are rounded before all sites see them.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from gosta.datasets import Data
from gosta.datasets.columns import to_csv
from gosta.net.config import Task
from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.layout import Part
from gosta.sketches.layout_builder import make_layout

STEPS_IN_RANGE = 20  # steps between the ends of a rounded range, at most
ROOM = (
    2.0**-20
)  # a range around a single value is wider by this share: see `sketches/layout_builder.py`
LEAST_DIGITS = 2  # significant digits of rounded numbers, if they keep centres apart
MOST_DIGITS = 15
MAX_SHARE = 0.1  # rounding may move a centre by this share of the least distance between centres


class SharedSettings(NamedTuple):
    """What all sites declare, as it follows from rows in one place."""

    task: Task
    data: Data  # with a column more, if a score was computed
    ranges: dict[str, tuple[float, float]]  # of columns for which none was given: rounded outwards
    rounded_options: tuple[str, ...]


def find_shared_settings(task: Task, data: Data) -> SharedSettings:
    """Return the task with all that follows from the rows; a computed score is a new column."""
    private = task.private
    assert private is not None
    settings = replace(private, find_edges=False)
    titles: list[str] = []
    ranges: dict[str, tuple[float, float]] = {}
    columns = dict(data.columns)
    options, rounded = task.options, list[str]()
    score = task.score or data.scores or data.score
    task = replace(task, label=task.label or data.label, score=score, drop_missing=False)
    has_label = False
    statistics = [title.strip() for title in task.statistic.split(",")]
    for title in statistics:
        layout = make_layout(
            title,
            settings,
            columns=task.columns,
            label=task.label,
            score=None if task.columns else task.score,
            options=task.options,
            data=data,
        )
        (part,) = layout.parts
        has_label |= part.has_label
        for axis in part.sketch.axes:
            is_given = axis.column in settings.ranges or "" in settings.ranges
            if np.isfinite(axis.low) and not is_given:
                low, high = ranges.get(axis.column, (axis.low, axis.high))
                ranges[axis.column] = min(low, axis.low), max(high, axis.high)
        fixed = _fixed_options(part, options)
        rounded += [name for name in fixed if name not in rounded]
        task = replace(task, options={**task.options, **fixed})
        if layout.classes and not task.classes:
            task = replace(task, classes=tuple(map(plain, layout.classes)))
        levels = {column: tuple(map(plain, values)) for column, values in layout.levels}
        settings = replace(settings, strata=levels)
        if part.sketch.roles == ("score",) and len(part.columns) > 1:  # rows are projected
            selected = dataclasses.replace(data, drop_missing=True).select(part.columns, task.label)
            columns["score"] = part.sketch.encode(selected, **part.options)[:, 0]
            task = replace(task, score="score", columns=())
        elif ":" not in title and not task.columns and part.columns != (task.score,):
            title = f"{title}:{'+'.join(part.columns)}"
        titles.append(title)
    if len(titles) == 1 and titles[0] != statistics[0]:
        name, _, named = titles[0].partition(":")
        task, titles = replace(task, columns=tuple(named.split("+"))), [name]
    ranges = {column: round_range(*ends) for column, ends in ranges.items()}
    task = replace(
        task,
        statistic=",".join(titles),
        label=task.label if has_label else None,
        private=replace(private, ranges={**settings.ranges, **ranges}, strata=settings.strata),
    )
    return SharedSettings(task, dataclasses.replace(data, columns=columns), ranges, tuple(rounded))


def _fixed_options(part: Part, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rounded options that follow from all rows, as a bandwidth or classes' centres."""
    parameters = inspect.signature(part.sketch.encode).parameters
    fixed: dict[str, Any] = {}
    for name, value in part.options.items():
        if value is given.get(name, parameters[name].default):
            continue  # but not "class-means", whose value is an array now
        if isinstance(value, float):
            fixed[name] = round_number(value)
        elif isinstance(value, np.ndarray):
            fixed[name] = round_centres(value).tolist()
        elif isinstance(value, dict):
            fixed[name] = value
    return fixed


def plain(value: Any) -> str | int | float:
    """Return a value of a column as settings hold it."""
    is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return value if is_plain else str(value)


def table_to_csv(data: Data, columns: Sequence[str], rows: Integers) -> str:
    """Return some rows of a table as CSV, each number to its last bit."""
    return to_csv({name: data.columns[name][rows] for name in columns})


def round_range(low: float, high: float) -> tuple[float, float]:
    """Return a range around another one, with ends at multiples of 1, 2 or 5 times a power of ten.

    >>> round_range(0.0123, 0.9871), round_range(6.981, 28.11)
    ((0.0, 1.0), (6.0, 30.0))
    """
    largest = max(abs(low), abs(high), 1.0)
    is_one_value = abs((high - low) / (2 * ROOM * largest) - 1) < 1e-3
    step = _step((largest if is_one_value else high - low) / STEPS_IN_RANGE)
    rounded_low = float((Decimal(low) / step).to_integral_value(ROUND_FLOOR) * step) + 0.0
    rounded_high = float((Decimal(high) / step).to_integral_value(ROUND_CEILING) * step) + 0.0
    return (rounded_low, rounded_high) if math.isfinite(rounded_high - rounded_low) else (low, high)


def _step(least: float) -> Decimal:
    """Return the least of the numbers 1, 2 or 5 times a power of ten that is not below a number."""
    exponent = math.floor(math.log10(least))
    steps = (Decimal(factor).scaleb(exponent) for factor in (1, 2, 5, 10))
    return next((step for step in steps if float(step) >= least), Decimal(1).scaleb(exponent + 1))


def round_number(number: float) -> float:
    """Return a number with few digits.

    >>> round_number(0.012345)
    0.012
    """
    return float(f"{number:.{LEAST_DIGITS}g}")


def round_centres(centres: Floats) -> Floats:
    """Return centres of clusters, one a row, with as few digits as keep them apart."""
    if len(centres) < 2:
        return _with_digits(centres, LEAST_DIGITS)
    distances = np.sqrt(((centres[:, None] - centres[None]) ** 2).sum(axis=-1))
    least = distances[~np.eye(len(centres), dtype=bool)].min()
    for digits in range(LEAST_DIGITS, MOST_DIGITS + 1):
        rounded = _with_digits(centres, digits)
        if np.sqrt(((rounded - centres) ** 2).sum(axis=-1)).max() <= MAX_SHARE * least:
            return rounded
    return centres


def _with_digits(centres: Floats, digits: int) -> Floats:
    rounded: Floats = np.array(
        [[float(f"{number:.{digits}g}") for number in row] for row in centres.tolist()]
    )
    return rounded
