"""From a text such as "auc,gini-index:income" and the settings of bins to a layout."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from gosta.datasets.data import Data
from gosta.datasets.roles import declared_roles, fill_roles
from gosta.errors import DataError, InputError, naming, shorten
from gosta.runtime.arrays import Floats
from gosta.sketches.bins import AxisCounts, fine_bins, quantile_edges
from gosta.sketches.definition import SKETCHES, Axis, Sketch, find_sketch
from gosta.sketches.layout import Layout, Part
from gosta.statistics.definition import Options
from gosta.statistics.references import parse_references

MOST_NUMBERS = 131_072  # in a vector: 1 MiB a site
FEWEST_BINS = 2  # of a proposal
MANY_STRATA = 32  # from which on a message names them
Ranges = Mapping[str, tuple[float, float]]


class TooManySumsError(InputError):
    """The statistics need more sums than one release has.

    `bins` is the most bins, fewer than those asked for, whose sums fit; None: no number of them.
    """

    bins: int | None = None


class BinSettings(Protocol):
    """What a layout depends on beside statistics and columns.

    `gosta.private.settings` has the whole.
    """

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
    @property
    def groups(self) -> tuple[str, ...]: ...


class Bins(NamedTuple):
    """Settings of bins for rows in one place; what is not given is taken from the rows."""

    bins: int = 64
    ranges: Ranges = {}  # noqa: RUF012
    edges: Mapping[str, tuple[float, ...]] = {}
    find_edges: bool = False
    strata: Mapping[str, tuple[str | int | float, ...]] = {}
    groups: tuple[str, ...] = ()


class _Request(NamedTuple):
    """One statistic that was asked for, with all that its sketch needs but edges."""

    title: str
    sketch_class: type[Sketch]
    columns: tuple[str, ...]
    # Names of the numbers of an encoded row that have an axis: of the columns, or "score".
    names: tuple[str, ...]
    encode_options: dict[str, Any]
    options: Options
    classes: int
    has_label: bool
    ranges: dict[str, tuple[float, float]]

    @property
    def by_role(self) -> list[tuple[str, str]]:
        """Return each name and its role."""
        return list(zip(self.names, self.sketch_class.roles_of(self.names), strict=True))


def make_layout(
    statistics: str,
    settings: BinSettings,
    *,
    columns: Sequence[str] = (),
    label: str | None = None,
    score: str | Sequence[str] | None = None,
    time: str | None = None,
    event: str | None = None,
    classes: Sequence[Any] = (),
    options: Options | None = None,
    data: Data | None = None,
) -> Layout:
    """Return the layout of one or several statistics, separated by commas.

    Each is NAME or NAME:COLUMN+COLUMN. Options are those of all statistics; an option that is
    called like a statistic holds those of this one alone.

    With `data`, all rows in one place, what is not declared (columns, ranges, classes, strata) is
    taken from them.
    """
    all_options = dict(options or {})
    if data is not None:
        data = data.select(None, label, score if not columns else None, time=time, event=event)
        label = data.label
        if classes:
            data = replace(data, declared_classes=tuple(classes))
    declared = declared_roles(score, time, event)
    known: set[str] = set()
    requests = []
    for reference in parse_references(statistics):
        sketch_class = find_sketch(reference.name)
        own_options = all_options.get(reference.name, {})
        if not isinstance(own_options, Mapping):
            raise InputError(f"option {reference.name} = {own_options!r} must be its own options")
        known |= option_names(sketch_class)
        chosen = reference.columns or tuple(columns)
        with naming(reference.title):
            requests.append(
                _request(
                    reference.title,
                    sketch_class,
                    chosen,
                    label,
                    declared,
                    classes,
                    {**all_options, **own_options},
                    settings,
                    data,
                )
            )
    for option in all_options:
        if option not in known and option not in SKETCHES:
            raise InputError(
                f"{statistics} has no option {option!r}",
                remedy=f"options are: {', '.join(sorted(known)) or 'none'}",
            )
    if not classes and data is not None and any(request.has_label for request in requests):
        classes = data.class_codes()[1]
    frame = Layout((), label, tuple(classes), _levels(settings, data), _groups(settings))
    if settings.bins < 1:
        raise InputError(f"bins = {settings.bins} must be at least 1")
    layout = _first_round(requests, settings, frame)
    if _most_sums(layout) > MOST_NUMBERS:
        raise _too_many(layout, settings, _fitting_bins(layout, requests, settings, frame))
    return layout


def _request(
    title: str,
    sketch_class: type[Sketch],
    chosen: tuple[str, ...],
    label: str | None,
    declared: Mapping[str, str],
    classes: Sequence[Any],
    all_options: Options,
    settings: BinSettings,
    data: Data | None,
) -> _Request:
    """Return what is asked for, completed by what the rows say if these are at hand."""
    encode_options = {k: all_options.get(k, v) for k, v in _encode_options(sketch_class).items()}
    has_label = sketch_class.reads_label(encode_options)
    x: Floats | None = None
    if data is None:
        names = _declared_columns(sketch_class, chosen, declared)
        if has_label and label is None:
            raise InputError("label is missing: name the column of classes (--label)")
        if has_label and len(classes) < 2:
            raise InputError(
                f"classes = {list(classes)!r}: declare all classes in order (--classes no,yes)"
            )
        encode_options = sketch_class.fixed_options(encode_options, None)
    else:
        selected, log = data.select(chosen or None).logged()
        encode_options = sketch_class.fixed_options(encode_options, selected)
        x = np.asarray(sketch_class.encode(selected, **encode_options))
        names = tuple(name for name in log.columns if name != selected.label or name in chosen)
        classes = selected.class_codes()[1] if has_label else ()
    axis_names = names
    if sketch_class.roles == ("score",) and len(names) > 1:
        axis_names = ("score",)  # that is computed from several columns of rows in one place
    ranges = {
        name: _range(
            name,
            sketch_class.has_axis(role, name, encode_options),
            sketch_class,
            settings,
            None if x is None else x[:, k],
        )
        for k, (name, role) in enumerate(
            zip(axis_names, sketch_class.roles_of(axis_names), strict=True)
        )
    }
    if has_label and len(classes) > 2 and encode_options.get("positive", "") is None:
        shown = ", ".join(map(str, classes))
        remedy = "name the one to set against the rest with positive=... (--positive ...)"
        raise InputError(f"needs two classes, {len(classes)} are declared ({shown})", remedy=remedy)
    class_count = sketch_class.class_count(encode_options, classes)
    return _Request(
        title,
        sketch_class,
        names,
        axis_names,
        encode_options,
        {**all_options, **encode_options},
        class_count,
        has_label,
        ranges,
    )


def option_names(sketch_class: type[Sketch]) -> set[str]:
    """Return the names of all options of a sketch."""
    return _encode_options(sketch_class).keys() | sketch_class.defaults.keys()


def _encode_options(sketch_class: type[Sketch]) -> dict[str, Any]:
    parameters = list(inspect.signature(sketch_class.encode).parameters.values())[1:]
    return {p.name: p.default for p in parameters}


def _declared_columns(
    sketch_class: type[Sketch], chosen: tuple[str, ...], declared: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the columns of a statistic where no data are at hand."""
    roles = sketch_class.roles
    if not roles:
        if not chosen:
            raise InputError("columns are missing: name those to use (--columns age,risk)")
        return chosen
    if not chosen:
        if roles == ("score",) and "score" not in declared:
            raise InputError("score is missing: name the column of scores (--score)")
        return tuple(declared.get(role, role) for role in roles)
    known = {role: declared[role] for role in ("time", "event") if role in declared}
    roles = sketch_class.roles_of(tuple(dict.fromkeys([*known.values(), *chosen])))
    names = chosen if len(chosen) == len(roles) else fill_roles(roles, known, chosen)
    if names is None:
        raise InputError(
            f"columns = {','.join(chosen)}: needs {len(roles)}, for {', '.join(roles)} (--columns)"
        )
    return names


def _range(
    name: str,
    has_axis: bool,
    sketch_class: type[Sketch],
    settings: BinSettings,
    values: Floats | None,
) -> tuple[float, float]:
    """Return the range of a column: declared, or that of its edges, or that of the rows."""
    edges = settings.edges.get(name)
    if edges is not None and (
        not edges or list(edges) != sorted(set(edges)) or not np.isfinite(edges).all()
    ):
        raise InputError(
            f"edges of {name!r} = {_list(edges)}: give finite numbers in increasing order"
        )
    declared = settings.ranges.get(name, settings.ranges.get(""))
    if declared is not None:
        low, high = map(float, declared)
        if not (np.isfinite([low, high]).all() and 0 < high - low < np.inf):
            raise InputError(
                f"range of {name!r} = {low:g}:{high:g}: the first must be less than the second"
            )
        if edges is not None and not low < edges[0] <= edges[-1] < high:
            raise InputError(
                f"edges of {name!r} = {_list(edges)} must lie within its range {low:g}:{high:g}"
            )
        return low, high
    if not has_axis:
        return -np.inf, np.inf
    if edges is not None and not sketch_class.needs_range:
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
    columns = []
    for column, values in settings.strata.items():
        levels = tuple(values)
        if not levels and data is not None:
            levels = tuple(replace(data.select(label=column), declared_classes=()).class_codes()[1])
        if not levels:
            raise InputError(
                f"strata = {column}: declare its values for all sites (--strata {column}=a,b)"
            )
        columns.append((column, levels))
    return tuple(columns)


def _groups(settings: BinSettings) -> tuple[tuple[str, ...], ...]:
    """Return the columns whose values together name strata: all, unless groups are named."""
    if not settings.strata:
        return ()
    return tuple(tuple(one.split("+")) for one in settings.groups) or (tuple(settings.strata),)


def _axis(
    request: _Request,
    name: str,
    role: str,
    settings: BinSettings,
    found_edges: Mapping[str, tuple[float, ...]],
    cuts: Iterable[float],
) -> Axis:
    low, high = request.ranges[name]
    if not request.sketch_class.is_binned or role == "event" or not np.isfinite(low):
        return Axis(name, low, high)
    if name in settings.edges:
        return Axis(name, low, high, _with_cuts(settings.edges[name], low, high, cuts))
    edges = found_edges[name] if name in found_edges else equal_edges(low, high, settings.bins)
    return Axis(name, low, high, _with_cuts(edges, low, high, cuts), True)


def _with_cuts(
    edges: Iterable[float], low: float, high: float, cuts: Iterable[float]
) -> tuple[float, ...]:
    """Return edges, and values within the range at which a statistic needs one."""
    return tuple(sorted({*map(float, edges), *(cut for cut in cuts if low < cut < high)}))


def _cuts(requests: Sequence[_Request]) -> dict[str, set[float]]:
    """Return for columns the values at which some statistic needs an edge."""
    cuts: dict[str, set[float]] = {}
    for request in requests:
        by_role = request.sketch_class.cuts(request.options)
        for name, role in request.by_role:
            cuts.setdefault(name, set()).update(map(float, by_role.get(role, ())))
    return cuts


def equal_edges(low: float, high: float, bins: int) -> tuple[float, ...]:
    """Return the edges of bins of equal width, fewer where floats are not fine enough."""
    edges = (low + (high - low) * (k / bins) for k in range(1, bins))
    return tuple(edge for edge in dict.fromkeys(edges) if low < edge < high)


def _final(
    requests: Sequence[_Request],
    settings: BinSettings,
    frame: Layout,
    found_edges: Mapping[str, tuple[float, ...]],
) -> Layout:
    """Return the layout whose sums give the statistics."""
    parts, cuts = [], _cuts(requests)
    for request in requests:
        axes = [
            _axis(request, name, role, settings, found_edges, cuts.get(name, ()))
            for name, role in request.by_role
        ]
        sketch = request.sketch_class(axes, request.classes, request.options)
        parts.append(
            Part(request.title, sketch, request.columns, request.encode_options, request.has_label)
        )
    return replace(frame, parts=tuple(parts))


def _first_round(requests: Sequence[_Request], settings: BinSettings, frame: Layout) -> Layout:
    """Return the layout that finds edges, or the final one where none are to be found."""
    final = _final(requests, settings, frame, {})
    edge_parts = _axes_to_find(requests, settings, final) if settings.find_edges else {}
    if not edge_parts:
        return final
    next_round = partial(_second_round, requests, settings, frame, edge_parts)
    return Layout(tuple(edge_parts.values()), next_round=next_round, rows=final)


def _axes_to_find(
    requests: Sequence[_Request], settings: BinSettings, final: Layout
) -> dict[str, Part]:
    """Return the sums of the first round: a histogram of each column that has no declared edges."""
    parts: dict[str, Part] = {}
    for request, part in zip(requests, final.parts, strict=True):
        for k, (name, role) in enumerate(request.by_role):
            low, high = request.ranges[name]
            if (
                request.sketch_class.finds_edges
                and role != "event"
                and name not in settings.edges
                and name not in parts
            ):
                axis = Axis(name, low, high, equal_edges(low, high, fine_bins(settings.bins)))
                parts[name] = Part(f"edges of {name}", AxisCounts(axis, k), *part[2:])
    return parts


def _second_round(
    requests: Sequence[_Request],
    settings: BinSettings,
    frame: Layout,
    first: Mapping[str, Part],
    totals: Floats,
) -> Layout:
    found_edges, start = {}, 0
    for name, part in first.items():
        axis = part.sketch.axes[0]
        found_edges[name] = quantile_edges(axis, totals[start : start + axis.bins], settings.bins)
        start += axis.bins
    return _final(requests, settings, frame, found_edges)


def _most_sums(layout: Layout) -> int:
    """Return the sums of the larger of both rounds; found edges do not change their number."""
    return max(layout.size, layout.final.size)


def _too_many(layout: Layout, settings: BinSettings, fitting: int | None) -> TooManySumsError:
    final = layout.final
    remedy = f"use fewer bins (--bins {fitting})" if fitting else "use fewer strata or statistics"
    strata = ", ".join(f"{column} has {len(levels):,} values" for column, levels in final.levels)
    if len(final.strata) >= MANY_STRATA:
        remedy += f"; these are {len(final.strata):,} strata, as {strata}: are they meant?"
    sums = f"{_most_sums(layout):,} sums, at most {MOST_NUMBERS:,} are possible"
    error = TooManySumsError(f"bins = {settings.bins}: {sums}", remedy=remedy)
    error.bins = fitting
    return error


def _fitting_bins(
    layout: Layout, requests: Sequence[_Request], settings: BinSettings, frame: Layout
) -> int | None:
    """Return the most bins, fewer than those of a layout that is too large, whose sums fit.

    Sums do not grow with each bin, as there are edges at cuts too: 20 bins of a risk have an edge
    at each multiple of 0.05, and 21 have 40 bins. An axis of n bins has n to n + cuts of them, so
    each layout tells how many bins are too many for sure. Of 100 bins or more, a few are passed
    over.
    """
    cuts = max(map(len, _cuts(requests).values()), default=0)
    axes = max(sum(axis.bins > 1 for axis in sketch.axes) for sketch in layout.final.sketches)
    bins, sums = settings.bins, _most_sums(layout)
    while sums > MOST_NUMBERS:
        most = (bins + cuts) * (MOST_NUMBERS / sums) ** (1 / max(axes, 1))
        bins = min(bins - max(1, bins // 50), int(most))
        if bins < FEWEST_BINS:
            return None
        fewer = Bins(bins, settings.ranges, settings.edges, settings.find_edges)
        sums = _most_sums(_first_round(requests, fewer, frame))
    return bins


def check_columns(layout: Layout, settings: BinSettings) -> None:
    """Raise `InputError` for settings of columns that are not read, or of edges not to be found."""
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
