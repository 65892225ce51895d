"""From a text such as "auc,gini-index:income" and the settings of bins to a layout."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import DataError, InputError, naming, shorten
from gosta.runtime.arrays import Floats
from gosta.sketches.bins import AxisCounts, fine_bins, quantile_edges
from gosta.sketches.definition import Axis, Sketch, find_sketch
from gosta.sketches.layout import Layout, Part
from gosta.statistics.definition import Options
from gosta.statistics.references import parse_references

MOST_NUMBERS = 16_384  # in a vector: 128 kB a site
MANY_STRATA = 32  # from which on a message names them
Ranges = Mapping[str, tuple[float, float]]


class BinSettings(Protocol):
    """What a layout depends on beside statistics and columns; `gosta.private.settings` has the whole."""

    @property
    def bins(self) -> int: ...
    @property
    def ranges(self) -> Ranges: ...
    @property
    def edges(self) -> Mapping[str, tuple[float, ...]]: ...
    @property
    def find_edges(self) -> bool: ...
    @property
    def strata(self) -> Mapping[str, tuple[str | int | float, ...]]: ...


class Bins(NamedTuple):
    """Settings of bins for rows in one place; what is not given is taken from the rows."""

    bins: int = 64
    ranges: Ranges = {}  # noqa: RUF012
    edges: Mapping[str, tuple[float, ...]] = {}
    find_edges: bool = False
    strata: Mapping[str, tuple[str | int | float, ...]] = {}


class _Wish(NamedTuple):
    """One statistic that was asked for, with all that its sketch needs but edges."""

    title: str
    made: type[Sketch]
    columns: tuple[str, ...]
    # of the numbers of an encoded row that have an axis; of the columns, or "score"
    names: tuple[str, ...]
    encode_options: dict[str, Any]
    options: Options
    classes: int
    has_label: bool
    ranges: dict[str, tuple[float, float]]


def make_layout(
    statistics: str,
    settings: BinSettings,
    *,
    columns: Sequence[str] = (),
    label: str | None = None,
    score: str | None = None,
    classes: Sequence[Any] = (),
    options: Options | None = None,
    data: Data | None = None,
) -> Layout:
    """Return the layout of one or several statistics: NAME or NAME:COLUMN+COLUMN, separated by commas.

    With `data`, all rows in one place, what is not declared (columns, ranges, classes, strata) is taken from them.
    """
    given = dict(options or {})
    if data is not None:
        data = data.select(None, label, score if not columns else None)
        label = data.label
        if classes:
            data = replace(data, declared_classes=tuple(classes))
    known: set[str] = set()
    wishes = []
    for wanted in parse_references(statistics):
        made = find_sketch(wanted.name)
        known |= option_names(made)
        own = wanted.columns or tuple(columns)
        with naming(wanted.title):
            wishes.append(
                _wish(wanted.title, made, own, label, score, classes, given, settings, data)
            )
    for option in given:
        if option not in known:
            raise InputError(
                f"{statistics} has no option {option!r}",
                remedy=f"options are: {', '.join(sorted(known)) or 'none'}",
            )
    if not classes and data is not None and any(wish.has_label for wish in wishes):
        classes = data.class_codes()[1]
    frame = Layout((), label, tuple(classes), _levels(settings, data))
    # also where edges are found: of the same size
    final = _check(_final(wishes, settings, frame, {}), settings)
    wanted_edges = _axes_to_find(wishes, settings, final) if settings.find_edges else {}
    if not wanted_edges:
        return final
    found = partial(_second_round, wishes, settings, frame, wanted_edges)
    return _check(Layout(tuple(wanted_edges.values()), next_round=found, rows=final), settings)


def _wish(
    title: str,
    made: type[Sketch],
    wanted: tuple[str, ...],
    label: str | None,
    score: str | None,
    classes: Sequence[Any],
    given: Options,
    settings: BinSettings,
    data: Data | None,
) -> _Wish:
    encode_options = {k: given.get(k, v) for k, v in _encode_options(made).items()}
    has_label = made.reads_label(encode_options)
    x: Floats | None = None
    if data is None:
        names = _declared_columns(made, wanted, score)
        if has_label and label is None:
            raise InputError("label is missing: name the column of classes (--label)")
        if has_label and len(classes) < 2:
            raise InputError(
                f"classes = {list(classes)!r}: declare all classes in order (--classes no,yes)"
            )
        encode_options = made.fixed_options(encode_options, None)
    else:
        selected, log = data.select(wanted or None).logged()
        encode_options = made.fixed_options(encode_options, selected)
        x = np.asarray(made.encode(selected, **encode_options))
        names = tuple(name for name in log.columns if name != selected.label or name in wanted)
        classes = selected.class_codes()[1] if has_label else ()
    axis_names = names
    if made.roles == ("score",) and len(names) > 1:
        axis_names = ("score",)  # that is computed from several columns of rows in one place
    ranges = {
        name: _range(name, role, made, settings, None if x is None else x[:, k])
        for k, (name, role) in enumerate(zip(axis_names, made.roles or axis_names, strict=True))
    }
    if has_label and len(classes) > 2 and encode_options.get("positive", "") is None:
        shown = ", ".join(map(str, classes))
        remedy = "name the one to set against the rest with positive=... (--positive ...)"
        raise InputError(f"needs two classes, {len(classes)} are declared ({shown})", remedy=remedy)
    number = made.class_count(encode_options, classes)
    return _Wish(title, made, names, axis_names, encode_options, given, number, has_label, ranges)


def option_names(made: type[Sketch]) -> set[str]:
    """Return the names of all options of a sketch."""
    return _encode_options(made).keys() | made.defaults.keys()


def _encode_options(made: type[Sketch]) -> dict[str, Any]:
    parameters = list(inspect.signature(made.encode).parameters.values())[1:]
    return {p.name: p.default for p in parameters}


def _declared_columns(
    made: type[Sketch], wanted: tuple[str, ...], score: str | None
) -> tuple[str, ...]:
    """Return the columns of a statistic where no data are at hand."""
    roles = made.roles
    if not roles:
        if not wanted:
            raise InputError("columns are missing: name those to use (--columns age,risk)")
        return wanted
    if not wanted:
        names = tuple(score or role if role == "score" else role for role in roles)
        if roles == ("score",) and score is None:
            raise InputError("score is missing: name the column of scores (--score)")
        return names
    if len(wanted) != len(roles):
        raise InputError(
            f"columns = {','.join(wanted)}: needs {len(roles)}, for {', '.join(roles)} (--columns)"
        )
    return wanted


def _range(
    name: str, role: str, made: type[Sketch], settings: BinSettings, values: Floats | None
) -> tuple[float, float]:
    """Return the lowest and highest value of a column: declared, or those of its edges, or those of the rows."""
    edges = settings.edges.get(name)
    if edges is not None and (
        not edges or list(edges) != sorted(set(edges)) or not np.isfinite(edges).all()
    ):
        raise InputError(
            f"edges of {name!r} = {_list(edges)}: give finite numbers in increasing order"
        )
    found = settings.ranges.get(name, settings.ranges.get(""))
    if found is not None:
        low, high = map(float, found)
        if not (np.isfinite([low, high]).all() and 0 < high - low < np.inf):
            raise InputError(
                f"range of {name!r} = {low:g}:{high:g}: the first must be less than the second"
            )
        if edges is not None and not low < edges[0] <= edges[-1] < high:
            raise InputError(
                f"edges of {name!r} = {_list(edges)} must lie within its range {low:g}:{high:g}"
            )
        return low, high
    if role == "event" or not (made.needs_range or made.is_binned):
        return -np.inf, np.inf
    if edges is not None and not made.needs_range:
        return edges[0] - 1.0, edges[-1] + 1.0
    if values is None:
        raise InputError(f"the range of {name!r} is missing: declare it (--range {name}=0:1)")
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if edges is not None:
        low, high = min(low, edges[0]), max(high, edges[-1])
    if not high - low < np.inf:
        raise DataError(f"column {name!r} ranges from {low:g} to {high:g}: use larger units")
    room = 0.0 if edges is None and low < high else max(abs(low), abs(high), 1.0) * 2**-20
    return low - room, high + room


def _list(edges: Iterable[float]) -> str:
    return ",".join(f"{edge:g}" for edge in edges)


def _levels(settings: BinSettings, data: Data | None) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Return the columns of strata and their values."""
    found = []
    for column, values in settings.strata.items():
        levels = tuple(values)
        if not levels and data is not None:
            levels = tuple(replace(data.select(label=column), declared_classes=()).class_codes()[1])
        if not levels:
            raise InputError(
                f"strata = {column}: declare its values for all sites (--strata {column}=a:b)"
            )
        found.append((column, levels))
    return tuple(found)


def _axis(
    wish: _Wish, name: str, role: str, settings: BinSettings, found: Mapping[str, tuple[float, ...]]
) -> Axis:
    low, high = wish.ranges[name]
    if not wish.made.is_binned or role == "event" or not np.isfinite(low):
        return Axis(name, low, high)
    if name in settings.edges:
        return Axis(name, low, high, tuple(map(float, settings.edges[name])))
    return Axis(
        name,
        low,
        high,
        found[name] if name in found else equal_edges(low, high, settings.bins),
        True,
    )


def equal_edges(low: float, high: float, bins: int) -> tuple[float, ...]:
    """Return the edges of bins of equal width; fewer where floats are not fine enough for so many."""
    edges = (low + (high - low) * (k / bins) for k in range(1, bins))
    return tuple(edge for edge in dict.fromkeys(edges) if low < edge < high)


def _final(
    wishes: Sequence[_Wish],
    settings: BinSettings,
    frame: Layout,
    found: Mapping[str, tuple[float, ...]],
) -> Layout:
    """Return the layout whose sums give the statistics."""
    parts = []
    for wish in wishes:
        roles = wish.made.roles or wish.names
        axes = [
            _axis(wish, name, role, settings, found)
            for name, role in zip(wish.names, roles, strict=True)
        ]
        sketch = wish.made(axes, wish.classes, wish.options)
        parts.append(Part(wish.title, sketch, wish.columns, wish.encode_options, wish.has_label))
    return replace(frame, parts=tuple(parts))


def _axes_to_find(wishes: Sequence[_Wish], settings: BinSettings, final: Layout) -> dict[str, Part]:
    """Return the sums of the first round: a histogram of each column that has no declared edges."""
    parts: dict[str, Part] = {}
    for wish, part in zip(wishes, final.parts, strict=True):
        for k, (name, role) in enumerate(
            zip(wish.names, wish.made.roles or wish.names, strict=True)
        ):
            low, high = wish.ranges[name]
            if (
                wish.made.finds_edges
                and role != "event"
                and name not in settings.edges
                and name not in parts
            ):
                axis = Axis(name, low, high, equal_edges(low, high, fine_bins(settings.bins)))
                parts[name] = Part(f"edges of {name}", AxisCounts(axis, k), *part[2:])
    return parts


def _second_round(
    wishes: Sequence[_Wish],
    settings: BinSettings,
    frame: Layout,
    first: Mapping[str, Part],
    totals: Floats,
) -> Layout:
    found, start = {}, 0
    for name, part in first.items():
        axis = part.sketch.axes[0]
        found[name] = quantile_edges(axis, totals[start : start + axis.bins], settings.bins)
        start += axis.bins
    return _final(wishes, settings, frame, found)


def _check(layout: Layout, settings: BinSettings) -> Layout:
    if settings.bins < 1:
        raise InputError(f"bins = {settings.bins} must be at least 1")
    if layout.size > MOST_NUMBERS:
        axes = max(sum(axis.bins > 1 for axis in sketch.axes) for sketch in layout.sketches)
        fewer = int(settings.bins * (MOST_NUMBERS / layout.size) ** (1 / max(axes, 1)))
        remedy = (
            f"use fewer bins (--bins {fewer})"
            if fewer > 1
            else "use fewer bins, strata or statistics"
        )
        strata = ", ".join(
            f"{column} has {len(levels):,} values" for column, levels in layout.levels
        )
        if len(layout.strata) >= MANY_STRATA:
            remedy += f"; these are {len(layout.strata):,} strata, as {strata}: are they meant?"
        raise InputError(
            f"bins = {settings.bins}: {layout.size:,} sums, at most {MOST_NUMBERS:,} are possible",
            remedy=remedy,
        )
    return layout


def check_columns(layout: Layout, settings: BinSettings) -> None:
    """Raise `InputError` for ranges and edges of columns that are not read, and if there are no edges to find."""
    known = list(
        dict.fromkeys(axis.column for sketch in layout.final.sketches for axis in sketch.axes)
    )
    for what, given in (("range", settings.ranges), ("edges", settings.edges)):
        for name in (name for name in given if name and name not in known):
            raise InputError(
                f"{what} of {name!r}: this column is not read",
                remedy=f"those that are: {shorten(known)}",
            )
    if settings.find_edges and layout.next_round is None:
        why = "all columns have edges of their own, or no bins"
        raise InputError(
            f"find_edges: there are no edges to find, as {why}",
            remedy="leave it out (--find-edges)",
        )
