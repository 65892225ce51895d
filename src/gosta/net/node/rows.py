"""Read a site's rows from its data file, and describe to its policy what is asked of them."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta import datasets
from gosta.datasets.data import DROP_HINT, Data
from gosta.datasets.files import DEFAULT, Format
from gosta.datasets.roles import declared_roles
from gosta.datasets.row_names import RowNames
from gosta.errors import DataError, FormatError, GostaError, InputError, shorten
from gosta.models import make_design, make_model
from gosta.models.layout import FitLayout
from gosta.models.noisy import first_round
from gosta.models.saving import frozen
from gosta.net.config import Task, check_row_count
from gosta.net.limits import MAX_ROUNDS, MAX_ROW_VALUE
from gosta.private.accounting import Spent, gaussian_mu
from gosta.private.noise import choose_noise
from gosta.private.policy import Mode, Subject
from gosta.private.settings import FitSettings
from gosta.runtime import machine
from gosta.runtime.arrays import Floats
from gosta.sketches.layout import Layout
from gosta.sketches.layout_builder import make_layout
from gosta.sketches.sums import Sums, run_rounds
from gosta.statistics.definition import Statistic
from gosta.statistics.joint import Member, choose, encode
from gosta.statistics.references import parse_references

NODE_HINT = "set drop_missing = true under [network] in node.toml to leave those rows out"


class Rows(NamedTuple):
    """A site's rows as kernels take them."""

    x: Floats  # n × d
    widths: tuple[int, ...]  # numbers of each encoding of several statistics


def read_rows(task: Task, data: Path, folder: Path | None = None, form: Format = DEFAULT) -> Floats:
    """Read rows as kernels take them, n × d.

    Files that the task names are in `folder`, by default the folder of the data.
    """
    return read_rows_and_widths(task, data, folder, form).x


def read_rows_and_widths(
    task: Task, data: Path, folder: Path | None = None, form: Format = DEFAULT
) -> Rows:
    """Read rows as `read_rows` does, and how many of their numbers each encoding has."""
    columns = encoded_names(sum(task.row_widths))
    if columns:
        rows = Rows(_read_encoded(data, columns), task.row_widths)
    else:
        rows = _read_and_encode(task, data, folder or data.parent, form)
    check_values(rows.x, data)
    check_row_count(task.protocol, len(rows.x), data)
    return rows


def sums_of(task: Task) -> Sums:
    """Return what a network of private sums adds up in the first round."""
    return layout_of(task) if task.fit is None else fit_of(task, task.fit)


def fit_of(task: Task, settings: FitSettings) -> FitLayout:
    """Return what a network that fits a model adds up in the first round."""
    assert task.private is not None
    design = make_design(settings.terms, ranges=task.private.ranges, levels=settings.levels)
    model = make_model(task.statistic, design, **frozen(task.options))
    first = first_round(model, task.private.epsilon, task.private.delta, gaussian_mu)
    if first.model.max_rounds > MAX_ROUNDS:
        raise InputError(f"max_rounds = {first.model.max_rounds}: {MAX_ROUNDS} is the limit")
    return first


def layout_of(task: Task) -> Layout:
    """Return what a network of statistics adds up, in the first round if there are two."""
    assert task.private is not None
    return make_layout(
        task.statistic,
        task.private,
        columns=task.columns,
        label=task.label,
        score=task.score,
        time=task.time,
        event=task.event,
        classes=task.classes,
        options=task.options,
    )


def load_table(path: Path, form: Format) -> Data:
    """Read a site's table; reasons why it cannot be read name the settings in node.toml."""
    try:
        return datasets.load(path, **form._asdict())
    except GostaError as error:
        _advise_in_node_words(error)
        raise


def _advise_in_node_words(error: GostaError) -> None:
    """Let the remedy of an error name settings of node.toml in place of arguments in Python."""
    if error.remedy == DROP_HINT:
        error.remedy = NODE_HINT
    if isinstance(error, FormatError):
        setting, value = error.setting, error.value
        written = f'"{value}"' if isinstance(value, str) else value
        words = f"{setting} = {written} in node.toml (--{setting} {value})"
        error.remedy = f"{error.advice} {words}"


def read_table(task: Task, path: Path, form: Format = DEFAULT) -> Data:
    """Read a site's table, with the columns that the task names in their roles.

    For private sums, the layout chooses the columns.
    """
    table = load_table(path, form)
    if task.private is None:
        table = table.select(
            task.columns or None, task.label, task.score, time=task.time, event=task.event
        )
    return in_roles(table, task)


def in_roles(table: Data, task: Task) -> Data:
    """Return a table with a task's classes, and without incomplete rows if the task says so."""
    chosen = table.select(drop_missing=task.drop_missing, event=task.event)
    return dataclasses.replace(chosen, declared_classes=task.classes, is_partial=True)


def encoded_names(columns: int) -> list[str]:
    """Return the column names of a file of encoded rows, by which it is told from other files."""
    return [f"x{k + 1}" for k in range(columns)]


def _read_encoded(path: Path, columns: list[str]) -> Floats:
    """Read encoded rows, from CSV, as `gosta network init` writes it, without pandas or pyarrow."""
    if path.suffix != ".csv":
        data = datasets.load(path)
        _check_columns(path, list(data.columns), columns)
        return data.to_floats(columns)
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            header = file.readline(1 << 16).strip()
        machine.require_memory(8 * path.stat().st_size, f"reading {path}")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    _check_columns(path, header.split(","), columns)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # empty files are reported below
            x = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    except ValueError as error:
        why = str(error).partition(";")[0].rstrip(".")
        raise DataError(
            f"{path}: {why}; a line of names and then lines of numbers are needed"
        ) from None
    if not x.size:
        raise DataError(f"{path} has no rows; a node needs at least one")
    if not np.isfinite(x).all():
        raise DataError(
            f"{path} has missing or infinite values; correct those rows or leave them out"
        )
    return x


def _check_columns(path: Path, found: list[str], columns: list[str]) -> None:
    if found != columns:
        raise DataError(
            f"{path} has the columns {shorten(found)} where {shorten(columns)} are needed: rows of "
            "this network are encoded by gosta network init --data; without --data, each site "
            "brings its own table"
        )


def check_values(x: Floats, data: object) -> None:
    """Raise `DataError` for values whose products would not be finite."""
    largest = float(np.abs(x).max())
    if largest > MAX_ROW_VALUE:
        limit = f"{MAX_ROW_VALUE:g} is the limit"
        raise DataError(f"{data} has the value {largest:.3g}, and {limit}; use larger units")


def _read_and_encode(task: Task, path: Path, folder: Path, form: Format) -> Rows:
    data, options = read_table(task, path, form), resolve_files(task.options, folder)
    members = () if task.private else choose(task.statistic, folder)
    try:
        if task.private:
            x = sums_of(task).encode(data)
            return Rows(x, (x.shape[1],))
        x, _, widths = encode(members, data, options)
    except InputError as error:
        _advise_in_node_words(error)
        error.place = str(path)
        raise
    check_rows_of_each(members, data, options)
    return Rows(x, widths)


def check_rows_of_each(members: Sequence[Member], data: Data, options: Mapping[str, Any]) -> None:
    """Raise `DataError` if a statistic's encoding of a row depends on other rows."""
    for member in members:
        own, table = member.statistic.own_options(options), data.select(member.columns or None)
        check_row_independence(
            member.statistic, table, own, member.statistic.encode_rows(table, own)
        )


def resolve_files(options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a statistic's options, with names of files in the folder replaced by their paths."""

    def resolve(value: Any) -> Any:
        return (
            str(folder / value)
            if isinstance(value, str) and value and (folder / value).is_file()
            else value
        )

    return {name: resolve(value) for name, value in options.items()}


def check_row_independence(
    statistic: Statistic, data: Data, options: Mapping[str, Any], x: Floats
) -> None:
    """Raise `DataError` for an encoding in which a row depends on other rows.

    A site has its own rows only. Rows must be encoded in the same way together with made-up rows,
    and without half of the others.
    """
    n, half = len(data), (len(data) + 1) // 2
    scale = 1e-9 * float(np.abs(x).max())
    trials = [
        (_with_made_up_rows(data, same), slice(0, len(x)), slice(0, len(x)))
        for same in (True, False)
    ]
    if n > 1 and len(x) == n:
        trials += [(_select(data, k), k, slice(None)) for k in (slice(0, half), slice(half, n))]
    for other, mine, its in trials:
        try:
            again = statistic.encode_rows(other, options)[its]
        except InputError:
            continue  # these rows cannot be encoded at all
        if again.shape != x[mine].shape or not np.allclose(again, x[mine], rtol=1e-9, atol=scale):
            why = (
                f"{statistic.name}: the encoding of a row depends on other rows, "
                "which a site does not have"
            )
            hint = "or give the option that fixes it, such as bandwidth=... or centroids=FILE"
            raise DataError(f"{why}; name one score column with score (--score), {hint}")


def _select(data: Data, which: slice) -> Data:
    return dataclasses.replace(
        data, columns={name: column[which] for name, column in data.columns.items()}
    )


def _with_made_up_rows(data: Data, same_classes: bool) -> Data:
    """Return a table twice as long, with other numbers in the second half, and one row more.

    The made-up rows have the same classes or one other class; the last row is the first one again,
    in another class.
    """

    def change(column: Any) -> Any:
        if column.dtype.kind not in "iuf":
            return column
        values = column.astype(np.float64)
        with np.errstate(over="ignore"):
            return np.where((values == 0) | (values == 1), 1 - values, 2 * values + 1)

    columns = {name: np.concatenate([c, change(c), c[:1]]) for name, c in data.columns.items()}
    if data.label is not None and data.declared_classes:
        labels, classes = data.columns[data.label].astype(object), data.declared_classes
        code = data.class_codes()[0][0]
        next_class = classes[0 if np.isnan(code) else (int(code) + 1) % len(classes)]
        others = np.full(len(labels) + 1, next_class, object)
        parts = [labels, labels, others[:1]] if same_classes else [labels, others]
        columns[data.label] = np.concatenate(parts)
    return dataclasses.replace(data, columns=columns, row_names=RowNames())


def columns_of(task: Task) -> tuple[str, ...]:
    """Return the columns that a network of rows names: of statistics, weights and roles."""
    statistics = parse_references(task.statistic)
    own = [column for chosen in statistics for column in (*chosen.columns, chosen.weights)]
    roles = declared_roles(task.score, task.time, task.event).values()
    return tuple(filter(None, dict.fromkeys([*task.columns, *own, task.label, *roles])))


def subject_of(
    task: Task, rows: int, people: int | None, sites: int, rows_per_person: int = 1
) -> Subject:
    """Return what a site is asked to take part in, for its policy to decide about.

    `rows` and `people` are this site's numbers, `sites` is the number of all sites together.
    """
    if task.private is None:
        names = tuple(one.name.partition("@")[0] for one in parse_references(task.statistic))
        return Subject("rows", names, columns_of(task), rows=rows, people=people)
    layout, spent = sums_of(task), list[Spent]()
    if task.private.epsilon is not None and task.fit is not None:  # all rounds together
        spent = [Spent("gaussian", task.private.epsilon, task.private.delta, rows_per_person)]
    elif task.private.epsilon is not None:
        # Where the edges of a second round are does not matter here, so any totals will do.
        for round_layout, _ in run_rounds(layout, lambda current: np.ones(current.size)):
            noise = choose_noise(task.private, round_layout, sites)
            spent.append(Spent(noise.law, noise.epsilon, noise.delta, rows_per_person))
    mode: Mode = "noisy" if spent else "private"
    return Subject(
        mode,
        layout.statistics,
        layout.columns,
        layout.fingerprint,
        layout.bins,
        rows,
        people,
        tuple(spent),
        layout.rows_per_column,
    )


def single_groups(task: Task, data: Data, layout: Sums) -> tuple[str, ...]:
    """Return the columns of groups of which all rows of a site have one value."""
    if task.private is None or not task.private.strata:
        return ()
    kept = layout.complete_rows(data)
    found = {
        name: {*data.level_codes(name, levels)[kept].tolist()}
        for name, levels in task.private.strata.items()
    }
    return tuple(name for name, codes in found.items() if len(codes) == 1)


def people_of(data: Data, layout: Sums, person: str) -> NDArray[np.object_]:
    """Return whose row each row of a table is, from the column of persons in the policy."""
    if person not in data.columns:
        raise DataError(
            f"{data.name} has no column {person!r}, which policy.toml calls person; "
            "name another one there"
        )
    people: NDArray[np.object_] = data.columns[person].astype(object)
    counted = people[layout.complete_rows(data)].tolist()
    if any(name is None or name != name for name in counted):  # NaN differs from itself
        raise DataError(
            f"{data.name}: column {person!r} has missing values, so that people cannot be "
            "counted; fill them in"
        )
    return people
