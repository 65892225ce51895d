"""How a site's file could be read: names, values, units and codes that it seems to have."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from gosta.datasets import Data
from gosta.datasets.cells import KINDS, MOST_CODES, with_point
from gosta.datasets.columns import value_text
from gosta.datasets.doubts import comma_column, far_code, is_per_cent
from gosta.datasets.files import Format, better_encoding
from gosta.datasets.harmonise import ALL_COLUMNS, Harmonisation
from gosta.datasets.meanings import days_of, is_code, level_of, likeness, unknown_values
from gosta.errors import FormatError, GostaError, shorten
from gosta.net.deploy.column_views import Declared
from gosta.net.node.rows import load_table

LEAST_LIKENESS = 0.5  # of the name of a column that is proposed
TRIES = 4  # settings of a file that one error after another names
MOST_VALUES = 20  # of a column of classes
LEAST_FITTING = 0.95  # of the values of a column, that could be those of a wanted one
LEAST_SPREAD = 0.1  # of a declared range, over which the numbers of a column spread
FEWEST_VALUES = 5  # that are different, of a column of numbers
OPTION_SIGNS = frozenset(",:=")  # that values of options cannot have


class Wanted(NamedTuple):
    """A column that the network has."""

    name: str
    declared: Declared
    is_class: bool


def propose(path: Path, form: Format, wanted: Sequence[Wanted]) -> Format:
    """Return how a file could be read so that it has the wanted columns and values.

    What is proposed is tried, and improved as a user would who runs the check again with it.
    """
    for _ in range(TRIES):
        try:
            form, table = _readable(path, form)
            improved = _improved(path, form, table, wanted)
            load_table(path, improved)
        except GostaError:
            return form
        if options_text(improved) == options_text(form):
            return form
        form = improved
    return form


def _improved(path: Path, form: Format, table: Data, wanted: Sequence[Wanted]) -> Format:
    """Return how a file could be read better, as its columns and values tell it."""
    names = _names(table, wanted)
    names |= _by_values(table, [one for one in wanted if one.name not in names], names)
    rules = form.harmonise.updated(Harmonisation(names))
    # Units and codes are those of the file.
    as_written = msgspec.structs.replace(rules, scale={})
    table = load_table(path, form._replace(harmonise=as_written))
    if comma_column(table) and form.decimal == ".":
        form = form._replace(decimal=",")
        table = load_table(path, form._replace(harmonise=as_written))
    form = form._replace(harmonise=rules)
    more = Harmonisation()
    for one in wanted:
        if one.name in table.columns:
            more = more.updated(_of_column(one, table.columns[one.name], form))
            more = more.updated(_unit(one.name, rules.columns.get(one.name, one.name)))
    given = {name: factor for name, factor in rules.scale.items() if factor != 1}
    return form._replace(harmonise=rules.updated(more).updated(Harmonisation(scale=given)))


def _readable(path: Path, form: Format) -> tuple[Format, Data]:
    """Return a table, and the settings that errors and letters suggest for its file."""
    for _ in range(TRIES):
        try:
            table = load_table(path, form)
        except FormatError as error:
            if error.setting not in ("encoding", "skip", "decimal", "sheet"):
                raise
            changed: dict[str, Any] = {error.setting: error.value}
            form = form._replace(**changed)
            continue
        encoding = better_encoding(path, table.columns, form.encoding)
        if not encoding:
            return form, table
        form = form._replace(encoding=encoding)
    return form, load_table(path, form)


def _names(table: Data, wanted: Sequence[Wanted]) -> dict[str, str]:
    """Return the column that each wanted one that is not there seems to be."""
    missing = [one for one in wanted if one.name not in table.columns]
    taken = {one.name for one in wanted}
    scores = [
        (likeness(one.name, name) + _fit(one, column), one.name, name)
        for one in missing
        for name, column in table.columns.items()
        if name not in taken and likeness(one.name, name) >= LEAST_LIKENESS
    ]
    found: dict[str, str] = {}
    for score, name, theirs in sorted(scores, key=lambda one: -one[0]):
        if score >= LEAST_LIKENESS and name not in found and theirs not in found.values():
            found[name] = theirs
    return {one.name: found[one.name] for one in missing if one.name in found}


def _fit(wanted: Wanted, column: NDArray[Any]) -> float:
    """Return how well the values of a column fit a wanted one: from -1 to 1."""
    present = _present(column)
    if not present:
        return -1.0
    if wanted.is_class:
        values, levels = Counter(map(value_text, present)), wanted.declared.levels
        if len(values) > MOST_VALUES:
            return -1.0
        known = [count for v, count in values.items() if level_of(v, levels) is not None]
        return sum(known) / len(present)
    numeric = sum(_is_measure(value) for value in present)
    return 2 * numeric / len(present) - 1


def _by_values(table: Data, wanted: Sequence[Wanted], names: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of classes and risks that one column of the file only can be."""
    found = _candidates(table, wanted, {*names.values()})
    likely = {
        one.name: found[one.name][0]
        for one in wanted
        if len(found.get(one.name, ())) == 1 and (one.is_class or _is_risk(one))
    }
    counts = Counter(likely.values())
    return {name: theirs for name, theirs in likely.items() if counts[theirs] == 1}


def _candidates(
    table: Data, wanted: Sequence[Wanted], taken: Collection[str]
) -> dict[str, list[str]]:
    """Return the columns of a file that wanted ones that are not there could be, by values."""
    names = {one.name for one in wanted}
    free = {name: table.columns[name] for name in table.columns if name not in {*taken, *names}}
    return {
        one.name: [name for name, column in free.items() if _could_be(one, column)]
        for one in wanted
        if one.name not in table.columns
    }


def _could_be(wanted: Wanted, column: NDArray[Any]) -> bool:
    """Return whether the values of a column are as those of a wanted one."""
    present = _present(column)
    if not present:
        return False
    if wanted.is_class:
        count, levels = len({*map(value_text, present)}), wanted.declared.levels
        is_two = len(levels) == 2 and _fit(wanted, column) < LEAST_LIKENESS
        return count >= 2 and abs(count - len(levels)) <= 1 and not is_two
    if len({*present}) < FEWEST_VALUES:
        return False
    if column.dtype.kind not in "iuf":
        return _fit(wanted, column) > LEAST_FITTING
    values = column[np.isfinite(column)].astype(np.float64)
    code = far_code(values)
    values = values[values != float(code or "nan")]
    low, high = wanted.declared.range or (-np.inf, np.inf)
    if _is_risk(wanted) and is_per_cent(values):
        values = values / 100
    inside = np.mean((values >= low) & (values <= high))
    is_wide = not np.isfinite(high - low) or np.ptp(values) >= LEAST_SPREAD * (high - low)
    return bool(inside >= LEAST_FITTING and is_wide)


def _is_risk(wanted: Wanted) -> bool:
    low, high = wanted.declared.range or (-np.inf, np.inf)
    return low >= 0 and high <= 1


class Open(NamedTuple):
    """Something that a proposal does not say: its values are for the site only."""

    text: str
    hint: str = ""
    detail: str = ""


def still_open(path: Path, form: Format, wanted: Sequence[Wanted]) -> Iterator[Open]:
    """Yield the columns and values that a proposal leaves open, with what they could be."""
    try:
        table = load_table(path, form)
    except GostaError:
        return
    missing = [one for one in wanted if one.name not in table.columns]
    groups: dict[tuple[str, ...], list[str]] = {}
    found = _candidates(table, wanted, form.harmonise.columns)
    for one in missing:
        groups.setdefault(tuple(found[one.name]), []).append(one.name)
    for theirs, names in groups.items():
        what = f"which column of the file is {' and which '.join(names)}"
        options = " ".join(f"--column {shlex.quote(f'{name}=...')}" for name in names)
        likely = f"by their values: {shorten(theirs, MOST_VALUES)}" if theirs else ""
        yield Open(what, options, likely)
    for one in wanted:
        if one.is_class and one.name in table.columns:
            unknown = unknown_values(_present(table.columns[one.name]), one.declared.levels)
            if unknown:
                levels = one.declared.levels
                meant = form.harmonise.values.get(one.name, {})
                pairs = pairs_text(one.name, table.columns[one.name], levels, meant)
                what = f"{one.name}: which of {shorten([*map(str, levels)])} its values are"
                yield Open(what, "complete the pairs", f"--value {pairs}")


def pairs_text(
    name: str,
    column: NDArray[Any],
    levels: Sequence[str | int | float],
    meant: Mapping[str, str | int | float],
) -> str:
    """Return what --value takes for a column, with dots where a value's meaning is open."""
    unknown = [value_text(value) for value in unknown_values(_present(column), levels)]
    dots = {value: "..." for value in unknown[:MOST_VALUES] if not OPTION_SIGNS & {*value}}
    pairs = ",".join(f"{value}={level}" for value, level in {**dots, **meant}.items())
    return shlex.quote(f"{name}:{pairs or '...=...'}")


def _present(column: NDArray[Any]) -> list[Any]:
    return [value for value in column.tolist() if value is not None and value == value]


def _unit(name: str, theirs: str) -> Harmonisation:
    """Return the factor between the units of time that the two names of a column say."""
    own, other = days_of(name), days_of(theirs)
    return _scale(name, other / own) if own and other and own != other else Harmonisation()


def _is_measure(value: object) -> bool:
    """Return whether a cell holds a number in some form."""
    if not isinstance(value, str):
        return isinstance(value, int | float)
    text = value.strip()
    return text.isdecimal() or any(pattern.fullmatch(text) for pattern in KINDS.values())


def _of_column(wanted: Wanted, column: NDArray[Any], form: Format) -> Harmonisation:
    """Return what the values of a column seem to need."""
    name, levels = wanted.name, wanted.declared.levels
    if wanted.is_class:
        return _of_classes(name, column, levels)
    if column.dtype != object:
        return _of_numbers(name, column.astype(np.float64), wanted.declared)
    texts = [value for value in column.tolist() if isinstance(value, str)]
    others = [text for text in texts if not _is_float(text, form.decimal)]
    measures = [text for text in others if _is_measure(text)]
    codes = list(dict.fromkeys(text.strip() for text in others if not _is_measure(text)))
    rules = Harmonisation()
    if len(codes) <= MOST_CODES and not any(OPTION_SIGNS & {*code} for code in codes):
        rules = rules.updated(Harmonisation(na_values={ALL_COLUMNS: tuple(codes)}))
    is_per_cent_sign = any(KINDS["percent"].fullmatch(text.strip()) for text in measures)
    if measures:
        return rules.updated(_scale(name, 0.01 if is_per_cent_sign else 1.0))
    numbers = [float(with_point(t, form.decimal)) for t in texts if _is_float(t, form.decimal)]
    return rules.updated(_of_numbers(name, np.array(numbers), wanted.declared))


def _is_float(text: str, decimal: str) -> bool:
    try:
        float(with_point(text, decimal))
    except ValueError:
        return False
    return True


def _of_numbers(name: str, values: NDArray[np.float64], declared: Declared) -> Harmonisation:
    """Return the unit that numbers seem to have, and a code among them."""
    low, high = declared.range or (-np.inf, np.inf)
    code = far_code(values)
    rules = Harmonisation()
    if code and not low <= float(code) <= high:
        rules = Harmonisation(na_values={name: (code,)})
    is_share = low >= 0 and high <= 1
    return rules.updated(_scale(name, 0.01)) if is_share and is_per_cent(values) else rules


def _scale(name: str, factor: float) -> Harmonisation:
    return Harmonisation(scale={name: factor})


def _of_classes(
    name: str, column: NDArray[Any], levels: Sequence[str | int | float]
) -> Harmonisation:
    """Return which declared values those of a column seem to mean, and codes between them."""
    present = _present(column)
    unknown = [value_text(value) for value in unknown_values(present, levels)]
    unknown = [value for value in unknown if not OPTION_SIGNS & {*value}]
    meant = {value: level_of(value, levels) for value in unknown}
    codes = tuple(value for value in unknown if meant[value] is None and is_code(value))
    values = {value: level for value, level in meant.items() if level is not None}
    return Harmonisation(
        values={name: values} if values else {}, na_values={name: codes} if codes else {}
    )


def options_text(form: Format) -> str:
    """Return the options of the command line that read a file so."""
    return " ".join(
        f"--{name.replace('_', '-')} {shlex.quote(text)}" for name, text in _options(form)
    )


def _options(form: Format) -> Iterator[tuple[str, str]]:
    for name in form.options():
        if name != "harmonise":
            yield name, str(getattr(form, name))
    rules = form.harmonise
    for name, theirs in rules.columns.items():
        yield "column", f"{name}={theirs}"
    for name, values in rules.values.items():
        yield "value", f"{name}:{','.join(f'{key}={value}' for key, value in values.items())}"
    for name, factor in rules.scale.items():
        yield "scale", f"{name}={factor:g}"
    for name, codes in rules.codes.items():
        for code in dict.fromkeys(map(str, codes)):
            yield "na_values", f"{name}:{code}" if name or ":" in code or "," in code else code
