"""Checks of a node's data file: columns, types, missing values, ranges, classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from gosta.datasets import Data
from gosta.errors import GostaError, shorten
from gosta.net.config import NODE_FILE, NodeConfig, Task
from gosta.net.node.rows import columns_of, layout_of, load_table, people_of, read_rows, read_table
from gosta.private.policy import Policy
from gosta.sketches.definition import Axis
from gosta.views import numbers

Level = Literal["ok", "warning", "error"]


class Finding(NamedTuple):
    """The outcome of one check."""

    check: str
    level: Level
    text: str  # without values of the data
    hint: str = ""  # what to do
    detail: str = ""  # may hold values of the data: for this site only


class Counted(NamedTuple):
    rows: int = 0  # that count; 0: not known
    people: int | None = None


def check_data(folder: Path, config: NodeConfig, policy: Policy) -> tuple[Counted, list[Finding]]:
    """Return how many rows count, and findings."""
    path, task = folder / config.node.data, config.network
    found: list[Finding] = []
    if not task.encoded_columns:
        try:
            table = load_table(path, config.node.format)
            found += [*map(_doubt, table.doubts), *_check_columns(task, table, policy)]
        except GostaError as error:
            return Counted(), [
                Finding(
                    "data", "error", "cannot be read", f"see node.data in {NODE_FILE}", str(error)
                )
            ]
    try:
        rows = len(read_rows(task, path, folder, config.node.format))
        people = None
        if task.private and policy.person is not None:
            data, layout = read_table(task, path, config.node.format), layout_of(task)
            people = people_of(data, layout, policy.person)[layout.complete_rows(data)]
    except GostaError as error:
        return Counted(), [
            *found,
            Finding("rows", "error", "cannot be used", "correct the file", str(error)),
        ]
    counted = Counted(rows, None if people is None else len(set(people.tolist())))
    size, kind = (rows, "rows") if counted.people is None else (counted.people, "people")
    if not task.private:
        return counted, [*found, Finding("rows", "ok" if size else "error", f"{size:,} {kind}")]
    is_enough = size >= policy.min_rows  # how many there are is for this site only
    shown = (
        f"at least {policy.min_rows} {kind}, as the policy asks"
        if is_enough
        else f"fewer than {policy.min_rows} {kind}"
    )
    return counted, [
        *found,
        Finding("rows", "ok" if is_enough else "error", shown, detail=f"{size:,} {kind}"),
    ]


def _doubt(text: str) -> Finding:
    hint = f"see header and sheet under [node] in {NODE_FILE}"
    return Finding("data", "warning", "may not be read as it is meant", hint, text)


def _check_columns(task: Task, data: Data, policy: Policy) -> Iterator[Finding]:
    axes: dict[str, Axis] = {}
    if task.private:
        layout = layout_of(task)
        names, strata = list(layout.columns), dict(task.private.strata)
        ranges = task.private.ranges  # without one, values beyond the edges are in the outer bins
        axes = {
            axis.column: axis
            for sketch in layout.sketches
            for axis in sketch.axes
            if {axis.column, ""} & {*ranges}
        }
    else:
        names, strata = [*columns_of(task)], {}
    if policy.person is not None:
        names.append(policy.person)
    texts = {policy.person, task.label, *strata}
    for name in dict.fromkeys(names):
        if name not in data.columns:
            there = f"the file has {shorten(list(data.columns))}"
            hint = (
                "rename it there: it has one name at all sites"
                if task.private
                else "rename it there, or in node.toml"
            )
            yield Finding(f"column {name}", "error", f"not in the file; {there}", hint)
            continue
        yield _check_column(
            task, data, name, None if name in texts else axes.get(name), name in texts, policy
        )
    for name, declared in {
        **strata,
        **({task.label: task.classes} if task.label and task.classes else {}),
    }.items():
        if name in data.columns:
            yield _check_levels(data, name, declared, name == task.label)


def _check_column(
    task: Task, data: Data, name: str, axis: Axis | None, is_text: bool, policy: Policy
) -> Finding:
    """Check that a column holds numbers, where these are needed, and how many are missing or beyond its range."""
    check, column, rows = f"column {name}", data.columns[name], len(data)
    if is_text:
        missing = int(
            np.count_nonzero(
                [v is None or v != v or (isinstance(v, str) and not v) for v in column.tolist()]
            )
        )
        kind = "values"
    else:
        try:
            values = data.select(drop_missing=True).to_floats([name])[:, 0]
        except GostaError as error:
            return Finding(
                check, "error", "does not hold numbers only", "correct the file", str(error)
            )
        missing, kind = int(np.isnan(values).sum()), "numbers"
    if missing and not task.drop_missing:
        hint = "complete the rows, or set drop_missing = true under [network]"
        return Finding(
            check, "error", f"missing in {_share(missing, rows, policy)} of the rows", hint
        )
    text = f"{kind}, missing in {_share(missing, rows, policy)} of the rows"
    if axis is not None and np.isfinite(axis.low):
        beyond = int(np.count_nonzero((values < axis.low) | (values > axis.high)))
        text += f", beyond {axis.low:g} to {axis.high:g} in {_share(beyond, rows, policy)}"
        if beyond:
            return Finding(
                check, "warning", text, "they count as the ends of the range; is its unit right?"
            )
    return Finding(check, "ok", text)


def _check_levels(
    data: Data, name: str, declared: tuple[str | int | float, ...], is_label: bool
) -> Finding:
    check, hint = (
        f"values of {name}",
        "correct the rows, or ask the coordinator to declare the value for all sites",
    )
    try:
        table = data.select(label=name if is_label else None, drop_missing=True)
        if is_label:
            dataclasses.replace(
                table, declared_classes=tuple(map(str, declared)), is_partial=True
            ).class_codes()
        else:
            table.level_codes(name, tuple(map(str, declared)))
    except GostaError as error:
        shown = shorten([str(level) for level in declared])
        return Finding(
            check, "error", f"others than those declared for all sites ({shown})", hint, str(error)
        )
    return Finding(check, "ok", f"all declared: {shorten([str(level) for level in declared])}")


def _share(count: int, rows: int, policy: Policy) -> str:
    """Return a share of the rows, in words where it would tell of fewer rows than the policy shows."""
    least = policy.min_rows
    if count == 0:
        return "none"
    if count < least or rows < least:
        return f"fewer than {least}"
    return "nearly all" if rows - count < least else numbers.percent(count / rows, ".0f")
