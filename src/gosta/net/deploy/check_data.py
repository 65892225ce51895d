"""Checks of a node's data file: columns, types, missing values, ranges, classes."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
from gosta.net.deploy.check_values import OUTCOME, check_copies, check_values
from gosta.net.deploy.column_views import Declared, count_missing, load_raw, view_columns
from gosta.net.deploy.findings import Finding, share_text
from gosta.net.deploy.proposed_reading import Wanted, options_text, pairs_text, propose, still_open
from gosta.net.node.rows import (
    columns_of,
    load_table,
    people_of,
    read_rows,
    read_table,
    single_groups,
    sums_of,
)
from gosta.private.policy import Policy

MOST_NAMES = 40  # of the columns of a file that are listed
UNREADABLE = "cannot be read"
NOT_THERE = "not in the file"
PROPOSAL = "options"
OPEN = "still open"
PER_CENT = "of per cent, this makes shares"


class Counted(NamedTuple):
    """What a data file holds."""

    rows: int = 0  # that count; 0: not known
    people: int | None = None  # whose rows these are, if the policy names a column of persons
    alone: tuple[str, ...] = ()  # columns of groups of which all rows have one value


_NOT_YET = Finding.error("rows", "cannot be used before the errors above are corrected")


def check_data(folder: Path, config: NodeConfig, policy: Policy) -> tuple[Counted, list[Finding]]:
    """Return how many rows count, and findings."""
    task, form = config.network, config.node.format
    path = folder / config.node.data
    found: list[Finding] = []
    if not task.encoded_columns:
        form, unknown = _known_names(path, form)
        found = _check_table(task, path, policy, form, form)
        if any(one.level != "ok" for one in found):
            wanted = _wanted(task, policy)
            proposed = propose(path, form, wanted)
            found = _check_table(task, path, policy, form, proposed)
            left = list(still_open(path, proposed, wanted))
            found += [Finding.warning(OPEN, one.text, one.hint, one.detail) for one in left]
            if options_text(proposed) != options_text(form):
                drops = _has_missing(task, path, policy, proposed)
                own = replace(task, drop_missing=task.drop_missing or drops)
                errors = [] if left else _errors(own, path, folder, policy, proposed)
                found += [one._replace(check=f"{OPEN}: {one.check}") for one in errors]
                found.append(_proposal(proposed, drops, bool(left or errors)))
        found = [*unknown, *found]
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
        if task.private and (task.private.strata or policy.person is not None):
            data, layout = read_table(task, path, form), sums_of(task)
            counted = counted._replace(alone=single_groups(task, data, layout))
            if policy.person is not None:
                people = people_of(data, layout, policy.person)[layout.complete_rows(data)]
                counted = counted._replace(people=len(set(people.tolist())))
    except GostaError as error:
        return Counted(), _unusable(found, error)
    if any(one.check == OUTCOME and one.level == "error" for one in found):
        return Counted(), _NOT_YET
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
            *check_copies(raw, form.harmonise.columns.get(policy.person or "", policy.person)),
        ]
    except GostaError as error:
        hint = f"see node.data in {NODE_FILE}"
        return [Finding.error("data", UNREADABLE, hint, str(error))]


def _errors(
    task: Task, path: Path, folder: Path, policy: Policy, proposed: Format
) -> list[Finding]:
    """Return the errors that remain when a file is read as proposed."""
    tried = _check_table(task, path, policy, proposed, proposed)
    rows = _count(task, path, folder, policy, proposed, tried)[1]
    return [
        one._replace(level="warning")
        for one in (*tried, rows)
        if one.level == "error" and one != _NOT_YET
    ]


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


def _known_names(path: Path, form: Format) -> tuple[Format, list[Finding]]:
    """Return how a file is read without names that it has not, and a finding about these."""
    try:
        raw = load_table(path, form._replace(harmonise=Harmonisation()))
    except GostaError:
        return form, []  # which is found when it is read
    known = form.harmonise.limited_to(raw.columns)
    if known == form.harmonise:
        return form, []
    try:
        form.harmonise.apply(raw.columns, path.name, form.decimal)
    except GostaError as error:
        hint = "change --column, --value, --scale or --na-values, or those in node.toml"
        text = "a column that is named is not in the file"
        return form._replace(harmonise=known), [Finding.error("columns", text, hint, error.reason)]
    return form, []


def _proposal(proposed: Format, drops_missing: bool, is_partial: bool) -> Finding:
    """Return the options that read a file as it seems to be meant."""
    text = "with these the file seems to be read as it is meant"
    if is_partial:
        text = "these are not all: complete what is still open, above"
    return Finding.warning(
        PROPOSAL,
        f"{text}; look at each, and try them",
        options_text(proposed) + " --drop-missing" * drops_missing,
    )


def _unusable(found: Sequence[Finding], error: GostaError) -> Finding:
    """Return the finding for rows that cannot be used, for a reason that may be found already."""
    errors = [one for one in found if one.level == "error"]
    if any(error.reason in one.detail or one.text == NOT_THERE for one in errors):
        return _NOT_YET
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
    if task.private and task.label and task.classes and task.fit is None:
        yield from check_values(task, data, policy, form.harmonise.scale)


def _missing_column(name: str, likely: str | None, is_read: bool) -> Finding:
    """Return the finding for a column that the file has not, or by another name."""
    hint = f"say what it is called there: --column {name}=..., or in {NODE_FILE}"
    if likely is not None:
        hint = f"{likely!r} seems to be it: --column {shlex.quote(f'{name}={likely}')}"
    if is_read:
        return Finding.error(f"column {name}", NOT_THERE, hint)
    return Finding.warning(f"column {name}", "not in the file by this name", hint)


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
        found |= _declared_of_model(task.options)
    return found | {name: Declared(levels=one) for name, one in task.private.strata.items()}


def _declared_of_model(options: Mapping[str, Any]) -> dict[str, Declared]:
    """Return classes or the range of a model's outcome, and values of its strata."""
    found = {name: Declared(levels=tuple(values)) for name, values in options.get("strata", ())}
    if "classes" in options:
        found[options["outcome"]] = Declared(levels=tuple(options["classes"]))
    elif "high" in options:
        found[options["outcome"]] = Declared((options.get("low", 0.0), options["high"]))
    return found


def _check_missing(
    task: Task, data: Data, name: str, missing: int, policy: Policy, kind: str = "values"
) -> Finding:
    """Check how many values of a column are missing."""
    share = share_text(missing, len(data), policy)
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
        event = task.event or task.options.get("event")
        values = data.select(drop_missing=True, event=event).to_floats([name])[:, 0]
    except GostaError as error:
        text = "does not hold numbers only"
        return Finding.error(f"column {name}", text, error.remedy, error.reason)
    missing = int(np.isnan(values).sum())
    finding = _check_missing(task, data, name, missing, policy, "numbers")
    if finding.level == "error" or ends is None:
        return finding
    low, high = ends
    beyond = int(np.count_nonzero((values < low) | (values > high)))
    share = share_text(beyond, len(data), policy)
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
        option = f"--value {pairs_text(name, data.columns[name], levels, meant)}"
        hint = (
            f"say what they mean ({option}), correct the rows, or ask the coordinator to declare "
            "the value for all sites"
        )
        return Finding.error(f"values of {name}", text, hint, error.reason)
    return Finding.ok(f"values of {name}", f"all declared: {shorten(levels)}")
