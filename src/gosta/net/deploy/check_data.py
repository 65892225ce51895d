"""Checks of a node's data file: columns, types, missing values, ranges, classes."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from gosta.datasets import Data
from gosta.datasets.columns import value_text
from gosta.datasets.doubts import is_per_cent
from gosta.datasets.files import Format
from gosta.datasets.harmonise import Harmonisation
from gosta.errors import GostaError, shorten
from gosta.net.config import NODE_FILE, NodeConfig, Task
from gosta.net.deploy.column_views import (
    ColumnView,
    Declared,
    count_missing,
    load_raw,
    view_columns,
)
from gosta.net.deploy.proposed_reading import Wanted, options_text, propose
from gosta.net.node.rows import (
    columns_of,
    layout_of,
    load_table,
    people_of,
    read_rows,
    read_table,
    sums_of,
)
from gosta.private.policy import Policy
from gosta.views import numbers

MOST_NAMES = 40  # of the columns of a file that are listed
UNREADABLE = "cannot be read"
NOT_THERE = "not in the file"
PROPOSAL = "options"
PER_CENT = "of per cent, this makes shares"
Level = Literal["ok", "warning", "error"]


class Finding(NamedTuple):
    """The outcome of one check."""

    check: str
    level: Level
    text: str  # without values of the data
    hint: str = ""  # what to do
    detail: str = ""  # may hold values of the data: for this site only
    view: ColumnView | None = None  # of a column, with values: for this site only

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain values, for JSON."""
        view = None if self.view is None else self.view._asdict()
        plain = self._asdict()
        return plain | {"view": view} if view else {k: v for k, v in plain.items() if k != "view"}

    @classmethod
    def ok(cls, check: str, text: str) -> Finding:
        """Return a finding of what is right."""
        return cls(check, "ok", text)

    @classmethod
    def warning(cls, check: str, text: str, hint: str = "", detail: str = "") -> Finding:
        """Return a finding of what may be wrong."""
        return cls(check, "warning", text, hint, detail)

    @classmethod
    def error(cls, check: str, text: str, hint: str = "", detail: str = "") -> Finding:
        """Return a finding of what keeps the node from taking part."""
        return cls(check, "error", text, hint, detail)


class Counted(NamedTuple):
    """What a data file holds."""

    rows: int = 0  # that count; 0: not known
    people: int | None = None  # whose rows these are, if the policy names a column of persons


def check_data(folder: Path, config: NodeConfig, policy: Policy) -> tuple[Counted, list[Finding]]:
    """Return how many rows count, and findings."""
    task, form = config.network, config.node.format
    path = folder / config.node.data
    found: list[Finding] = []
    if not task.encoded_columns:
        found = _check_table(task, path, policy, form, form)
        if any(one.level != "ok" for one in found):
            proposed = propose(path, form, _wanted(task, policy))
            found = _check_table(task, path, policy, form, proposed)
            if options_text(proposed) != options_text(form):
                found.append(_proposal(proposed, _has_missing(task, path, policy, proposed)))
        if found and found[0].text == UNREADABLE:
            return Counted(), found
    counted, rows = _count(task, path, folder, policy, form, found)
    place = len(found) - (bool(found) and found[-1].check == PROPOSAL)
    return counted, [*found[:place], rows, *found[place:]]


def _count(
    task: Task, path: Path, folder: Path, policy: Policy, form: Format, found: Sequence[Finding]
) -> tuple[Counted, Finding]:
    """Return how many rows count, and whether they are enough."""
    try:
        counted = Counted(len(read_rows(task, path, folder, form)))
        if task.private and policy.person is not None:
            data, layout = read_table(task, path, form), sums_of(task)
            people = people_of(data, layout, policy.person)[layout.complete_rows(data)]
            counted = counted._replace(people=len(set(people.tolist())))
    except GostaError as error:
        return Counted(), _unusable(found, error)
    return counted, _check_count(task, counted, policy)


def _check_table(
    task: Task, path: Path, policy: Policy, form: Format, proposed: Format
) -> list[Finding]:
    """Check a file's columns; hints are those of how it seems to be meant."""
    try:
        table = load_table(path, form)
        raw = load_raw(path, form, table)
        return [
            *map(_doubt, table.doubts),
            *_check_columns(task, table, policy, raw, form, proposed.harmonise),
            *_check_codes(raw, form),
        ]
    except GostaError as error:
        hint = f"see node.data in {NODE_FILE}"
        return [Finding.error("data", UNREADABLE, hint, str(error))]


def _wanted(task: Task, policy: Policy) -> list[Wanted]:
    """Return all columns that the network has, and those of the policy."""
    declared = _declared(task)
    names = dict.fromkeys([*_read_columns(task, policy), *task.dictionary])
    return [
        Wanted(name, own, bool(own.levels))
        for name in names
        for own in [declared.get(name, Declared())]
    ]


def _read_columns(task: Task, policy: Policy) -> list[str]:
    names = list(sums_of(task).columns if task.private else columns_of(task))
    return names if policy.person is None else [*names, policy.person]


def _has_missing(task: Task, path: Path, policy: Policy, form: Format) -> bool:
    """Return whether columns that are read so have missing values that are not left out."""
    try:
        table = load_table(path, form)
    except GostaError:
        return False
    read = [table.columns[name] for name in _read_columns(task, policy) if name in table.columns]
    return not task.drop_missing and any(count_missing(column) for column in read)


def _proposal(proposed: Format, drops_missing: bool) -> Finding:
    """Return the options that read a file as it seems to be meant."""
    return Finding.warning(
        PROPOSAL,
        "with these the file seems to be read as it is meant; look at each, and try them",
        options_text(proposed) + " --drop-missing" * drops_missing,
    )


def _unusable(found: Sequence[Finding], error: GostaError) -> Finding:
    """Return the finding for rows that cannot be used, for a reason that may be found already."""
    errors = [one for one in found if one.level == "error"]
    if any(error.reason in one.detail or one.text == NOT_THERE for one in errors):
        return Finding.error("rows", "cannot be used before the errors above are corrected")
    return Finding.error("rows", "cannot be used", "correct the file", str(error))


def _check_count(task: Task, counted: Counted, policy: Policy) -> Finding:
    count = f"{counted.rows:,} rows" if counted.people is None else f"{counted.people:,} people"
    if not task.private:
        return Finding("rows", "ok" if counted.rows else "error", count)
    # How many there are is for this site only.
    size, kind = counted.people, "people"
    if size is None:
        size, kind = counted.rows, "rows"
    if size < policy.min_rows:
        return Finding.error("rows", f"fewer than {policy.min_rows} {kind}", detail=count)
    text = f"at least {policy.min_rows} {kind}, as the policy asks"
    return Finding("rows", "ok", text, detail=count)


def _check_codes(raw: Data, form: Format) -> list[Finding]:
    """Check that the file has what stands for a missing value."""
    unused = form.harmonise.unused_codes(raw.columns, raw.name, form.decimal)
    if not unused:
        return []
    verb = "is" if len(unused) == 1 else "are"
    return [
        Finding.warning(
            "missing values",
            "some that are named are not in the file",
            "is each written as in the file (--na-values)?",
            f"{shorten([repr(code) for code in unused])} {verb} not in the file",
        )
    ]


def _doubt(text: str) -> Finding:
    return Finding.warning("data", "may not be read as it is meant", detail=text)


def _check_columns(
    task: Task, data: Data, policy: Policy, raw: Data, form: Format, rules: Harmonisation
) -> Iterator[Finding]:
    """Check the columns that the task and the policy name, and those of the dictionary."""
    names = _read_columns(task, policy)
    read = set(names)
    names += [name for name in task.dictionary if name in data.columns or name in rules.columns]
    if not set(names) <= data.columns.keys():
        yield Finding.ok("columns", f"the file has {shorten(list(data.columns), MOST_NAMES)}")
    declared = _declared(task)
    classes = [name for name, column in task.dictionary.items() if column.type == "class"]
    texts = {policy.person, task.label, *classes}
    texts |= {name for name, one in declared.items() if one.levels}
    views = view_columns(raw, form, data, dict.fromkeys(names), declared)
    for view in views:
        name = view.name
        if not view.source:
            finding = _missing_column(name, rules.columns.get(name), name in read)
        else:
            # Of columns that are only described, missing values keep nobody from taking part.
            own = task if name in read else replace(task, drop_missing=True)
            if name in texts:
                finding = _check_missing(own, data, name, view.missing, policy)
            else:
                ends = declared.get(name, Declared()).range
                finding = _check_numbers(own, data, name, ends, policy)
                if view.out and not finding.hint.startswith(PER_CENT):
                    cell = _first_beyond(name, data, raw.columns[view.source], ends)
                    finding = finding._replace(detail=finding.detail or cell)
        yield finding._replace(view=view)
    for name, one in declared.items():
        if one.levels and name in data.columns:
            known = rules.values.get(name, {})
            yield _check_levels(data, name, one.levels, name == task.label, known)
    if task.private and task.label and task.classes:
        yield from _check_outcome(task, data, policy)


def _missing_column(name: str, likely: str | None, is_read: bool) -> Finding:
    """Return the finding for a column that the file has not, or by another name."""
    hint = f"say what it is called there: --column {name}=..., or in {NODE_FILE}"
    if likely is not None:
        hint = f"{likely!r} seems to be it: --column {shlex.quote(f'{name}={likely}')}"
    if is_read:
        return Finding.error(f"column {name}", NOT_THERE, hint)
    return Finding.warning(f"column {name}", "not in the file by this name", hint)


def _check_outcome(task: Task, data: Data, policy: Policy) -> Iterator[Finding]:
    """Check that the outcome is that of an event before the horizon, where there are both."""
    if task.fit is not None:
        return
    named = (
        dict(zip(sketch.roles, (axis.column for axis in sketch.axes), strict=False))
        for sketch in layout_of(task).sketches
    )
    roles = next((one for one in named if {"time", "event"} <= one.keys()), None)
    horizon = _horizon(task)
    if roles is None or horizon is None:
        return
    try:
        table = data.select(label=task.label, drop_missing=True)
        table = dataclasses.replace(table, declared_classes=task.classes, is_partial=True)
        outcome = table.class_codes()[0] == len(task.classes) - 1
        times, events = table.to_floats([roles["time"], roles["event"]]).T
    except GostaError:
        return  # other findings say why
    has_event = events > 0
    contradicts = np.where(
        outcome, (times > horizon) | (events == 0), has_event & (times < horizon)
    )
    count = int(np.count_nonzero(contradicts & ~np.isnan(times + events)))
    share = _share(count, len(data), policy)
    text = f"{task.label} and {roles['event']} before {horizon:g} contradict each other in {share}"
    if count == 0:
        yield Finding.ok("outcome", f"{text} of the rows")
        return
    hint = f"is {roles['time']} in the study's unit, and are both coded as the study says?"
    first = f"first in {data.row_names[np.argmax(contradicts)]}"
    yield Finding.warning("outcome", f"{text} of the rows", hint, first)


def _horizon(task: Task) -> float | None:
    """Return the horizon that the statistics of times have in common; None: there is none."""
    given = [task.options.get("horizon")]
    given += [own.get("horizon") for own in task.options.values() if isinstance(own, dict)]
    found = {float(one) for one in given if isinstance(one, int | float)}
    return found.pop() if len(found) == 1 else None


def _declared(task: Task) -> dict[str, Declared]:
    """Return the ranges and values of columns that all sites agreed on."""
    found = {
        name: Declared(column.range, column.classes) for name, column in task.dictionary.items()
    }
    if task.label and task.classes:
        found[task.label] = Declared(levels=task.classes)
    if task.private is None:
        return found
    # Of columns without a range, values beyond the edges are in the outer bins.
    for name, ends in sums_of(task).ranges.items():
        if not task.private.ranges.keys().isdisjoint({name, ""}):
            found[name] = Declared(ends)
    if task.fit is not None:
        found |= {name: Declared(levels=one) for name, one in task.fit.levels.items()}
    return found | {name: Declared(levels=one) for name, one in task.private.strata.items()}


def _check_missing(
    task: Task, data: Data, name: str, missing: int, policy: Policy, kind: str = "values"
) -> Finding:
    """Check how many values of a column are missing."""
    share = _share(missing, len(data), policy)
    if missing and not task.drop_missing:
        hint = (
            "complete the rows, or leave them out: drop_missing = true under [network] "
            "(--drop-missing)"
        )
        return Finding.error(f"column {name}", f"missing in {share} of the rows", hint)
    return Finding.ok(f"column {name}", f"{kind}, missing in {share} of the rows")


def _check_numbers(
    task: Task, data: Data, name: str, ends: tuple[float, float] | None, policy: Policy
) -> Finding:
    """Check that a column holds numbers, and how many are missing or beyond its range."""
    try:
        values = data.select(drop_missing=True).to_floats([name])[:, 0]
    except GostaError as error:
        text = "does not hold numbers only"
        return Finding.error(f"column {name}", text, error.remedy, error.reason)
    missing = int(np.isnan(values).sum())
    finding = _check_missing(task, data, name, missing, policy, "numbers")
    if finding.level == "error" or ends is None:
        return finding
    low, high = ends
    beyond = int(np.count_nonzero((values < low) | (values > high)))
    share = _share(beyond, len(data), policy)
    text = f"{finding.text}, beyond {low:g} to {high:g} in {share}"
    if beyond and low >= 0 and high <= 1 and is_per_cent(values):
        return Finding.warning(finding.check, text, f"{PER_CENT}: --scale {name}=0.01")
    if beyond:
        hint = "they count as the ends of the range; is its unit right?"
        return Finding.warning(finding.check, text, hint)
    return Finding.ok(finding.check, text)


def _first_beyond(
    name: str, data: Data, cells: NDArray[Any], ends: tuple[float, float] | None
) -> str:
    """Return the first cell of a file whose number is beyond a range, in words."""
    low, high = (-np.inf, np.inf) if ends is None else ends
    column = data.columns[name]
    row = int(np.argmax((column < low) | (column > high)))
    cell = value_text(cells[row])
    code = shlex.quote(f"{name}:{cell}")
    return (
        f"{data.row_names[row]} has {cell!r}; if it stands for a missing value: --na-values {code}"
    )


def _check_levels(
    data: Data,
    name: str,
    declared: Sequence[str | int | float],
    is_label: bool,
    meant: Mapping[str, str | int | float],
) -> Finding:
    """Check that a column holds declared values only."""
    levels = tuple(map(str, declared))
    try:
        table = data.select(label=name if is_label else None, drop_missing=True)
        if is_label:
            dataclasses.replace(table, declared_classes=levels, is_partial=True).class_codes()
        else:
            table.level_codes(name, levels)
    except GostaError as error:
        text = f"others than those declared for all sites ({shorten(levels)})"
        pairs = ",".join(f"{value}={level}" for value, level in meant.items()) or "...=..."
        option = f"--value {shlex.quote(f'{name}:{pairs}')}"
        hint = (
            f"say what they mean ({option}), correct the rows, or ask the coordinator to declare "
            "the value for all sites"
        )
        return Finding.error(f"values of {name}", text, hint, error.reason)
    return Finding.ok(f"values of {name}", f"all declared: {shorten(levels)}")


def _share(count: int, rows: int, policy: Policy) -> str:
    """Return a share of the rows, in words where it would tell of too few rows."""
    least = policy.min_rows
    if count == 0:
        return "none"
    if count < least or rows < least:
        return f"fewer than {least}"
    return "nearly all" if rows - count < least else numbers.percent(count / rows, ".0f")
