"""What all sites of a network declare of a regression model that they fit."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from gosta.datasets import Data
from gosta.datasets.dictionary import Column
from gosta.errors import InputError
from gosta.models import Model, find_model, make_design
from gosta.models.design import columns_read, parse_formula
from gosta.net.config import Task
from gosta.net.deploy.shared_settings import plain, round_range
from gosta.private.settings import FitSettings, PrivateSettings, check_settings

FOR_STATISTICS = ("bins", "edges", "find_edges")  # settings that a fit does not have
MOST_TIMES = 1000  # whole numbers that are declared as times where all times are such
TIME_BINS = (
    200  # of equal width where they are not: what is fitted is about 0.04 standard errors off
)


class FitGoal(NamedTuple):
    """The model that the user chose."""

    model: str
    terms: str | Sequence[str]  # a formula, or columns and other terms
    options: Mapping[str, Any]  # of the model: outcome, penalty and others
    levels: Mapping[str, Sequence[Any]] = {}
    confidence_level: float | None = None


class DeclaredFit(NamedTuple):
    """A task, and what of it follows from rows in one place."""

    task: Task
    ranges: dict[str, tuple[float, float]]  # rounded outwards


def declare_fit(
    goal: FitGoal,
    settings: PrivateSettings,
    dictionary: Mapping[str, Column],
    classes: Sequence[Any] = (),
    drop_missing: bool = False,
    data: Data | None = None,
) -> DeclaredFit:
    """Return the task of a network that fits a model.

    Ranges, levels and classes that are not given are those of the dictionary, else of the data.
    """
    _check_settings(settings)
    terms, options = _parsed(goal, data)
    ranges = {name: one.range for name, one in dictionary.items() if one.range} | settings.ranges
    levels = {name: one.classes for name, one in dictionary.items() if one.classes}
    model, outcome = find_model(goal.model), str(options.get("outcome"))
    _require_roles(model, options)
    options, found = _with_outcome(model, options, classes or levels.get(outcome, ()), ranges, data)
    options |= _strata(model, settings, data)
    if "times" in _options_of(model):
        options["times"] = _times(options, data)
    read = columns_read(terms, ranges.keys() | levels.keys() | goal.levels.keys())
    design = make_design(
        terms,
        ranges=_those(ranges, read, settings.ranges.keys() - {outcome}),
        levels=_those({**levels, **goal.levels}, read, goal.levels),
        data=data,
    )
    rounded = {k: _rounded(*ends) for k, ends in design.ranges.items() if k not in ranges}
    task = Task(
        secrets.token_hex(8),
        goal.model,
        confidence_level=goal.confidence_level,
        options=options,
        drop_missing=drop_missing,
        dictionary=dict(dictionary),
        private=replace(settings, ranges={**design.ranges, **rounded}, strata={}),
        fit=FitSettings(
            design.terms,
            {name: tuple(map(plain, values)) for name, values in design.levels.items()},
        ),
    )
    return DeclaredFit(task, rounded | found)


def _check_settings(settings: PrivateSettings) -> None:
    """Raise `InputError` for settings of statistics that a fit does not have."""
    for name in FOR_STATISTICS:
        value = getattr(settings, name)
        if value != getattr(PrivateSettings(), name):
            raise InputError(f"{name} is for statistics; leave it out with fit")
    known = {name: levels for name, levels in settings.strata.items() if levels}
    check_settings(replace(settings, strata=known))


def _parsed(goal: FitGoal, data: Data | None) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the terms, and the options with the outcome of the formula."""
    options = {name: value for name, value in goal.options.items() if value is not None}
    if not isinstance(goal.terms, str):
        return tuple(goal.terms), options
    formula = parse_formula(goal.terms, data)
    if formula.outcome is not None:
        options = {"outcome": formula.outcome, **options}
    return formula.terms, options


def _require_roles(model: type[Model], options: Mapping[str, Any]) -> None:
    for role in ("outcome", "time", "event"):
        if role in _options_of(model) and role not in options:
            raise InputError(f"{model.title} needs the {role}", remedy=f"name it with --{role}")


def _with_outcome(
    model: type[Model],
    options: dict[str, Any],
    classes: Sequence[Any],
    ranges: Mapping[str, tuple[float, float]],
    data: Data | None,
) -> tuple[dict[str, Any], dict[str, tuple[float, float]]]:
    """Return the options with classes or the range of the outcome, and this range if it follows
    from the data.
    """
    known, outcome = _options_of(model), str(options.get("outcome"))
    if "classes" in known:
        if not classes and data is not None:
            classes = data.select(label=outcome).class_codes()[1]
        if not classes:
            raise InputError(
                f"classes of the outcome {outcome!r} are missing, and one site may lack some",
                remedy="declare them, the positive one last (--classes no,yes)",
            )
        return {**options, "classes": list(map(plain, classes))}, {}
    if not {"low", "high"} & known:
        return options, {}
    found: dict[str, tuple[float, float]] = {}
    ends = ranges.get(outcome)
    if ends is None and data is not None:
        values = data.to_floats([outcome])
        ends = found[outcome] = _rounded(float(np.nanmin(values)), float(np.nanmax(values)))
    if ends is None:
        raise InputError(
            f"the range of the outcome {outcome!r} is missing",
            remedy=f"declare it (--range {outcome}=0:100)",
        )
    both = dict(zip(("low", "high"), ends, strict=True))
    return {**options, **{name: end for name, end in both.items() if name in known}}, found


def _options_of(model: type[Model]) -> set[str]:
    return {field.name for field in fields(model)}


def _strata(
    model: type[Model], settings: PrivateSettings, data: Data | None
) -> dict[str, list[Any]]:
    """Return the strata of a model, with all their values."""
    if not settings.strata:
        return {}
    if "strata" not in _options_of(model):
        raise InputError(f"strata: {model.title} has none", remedy="leave them out")
    found = []
    for name, levels in settings.strata.items():
        if not levels and data is not None:
            levels = tuple(data.select(label=name).class_codes()[1])
        if not levels:
            raise InputError(
                f"strata = {name!r} needs the values of all sites", remedy=f"--strata {name}=a,b"
            )
        found.append([name, list(map(plain, levels))])
    return {"strata": found}


def _times(options: Mapping[str, Any], data: Data | None) -> list[float]:
    """Return the times that are declared: those given, or a grid over those of the data."""
    given = options.get("times")
    if given is not None:
        texts = str(given).replace(" ", "").split(",") if isinstance(given, str) else given
        try:
            return [time for text in texts for time in _expanded(str(text))]
        except ValueError:
            raise InputError(
                f"times = {given!r} must be increasing numbers",
                remedy="such as 30,60,90, or 0:365:7 for each 7th",
            ) from None
    if data is None:
        raise InputError(
            "times of a Cox model are missing, which all sites need",
            remedy="declare a grid on which they lie (--option times=0:365:1 for days)",
        )
    times = data.to_floats([str(options["time"])])[:, 0]
    times = times[~np.isnan(times)]
    if (times % 1 == 0).all() and np.ptp(times) < MOST_TIMES:
        return [float(time) for time in np.arange(times.min(), times.max() + 1)]
    low, high = round_range(float(times.min()), float(times.max()))
    return [float(time) for time in np.linspace(low, high, TIME_BINS, endpoint=False)]


def _expanded(text: str) -> list[float]:
    """Return the numbers of a text such as "30" or "0:365:7"."""
    first, *others = map(float, text.split(":"))
    if not others:
        return [first]
    last, step = others
    return [float(number) for number in np.arange(first, last + step / 2, step)]


def _those(
    declared: Mapping[str, Any], read: Collection[str], required: Collection[str]
) -> dict[str, Any]:
    """Return what is declared of columns that are read, and what the user gave of others."""
    return {name: value for name, value in declared.items() if name in read or name in required}


def _rounded(low: float, high: float) -> tuple[float, float]:
    """Return a range rounded outwards; one above 0, of which there are logarithms, stays so."""
    first, last = round_range(low, high)
    return (low if first <= 0 < low else first), last
