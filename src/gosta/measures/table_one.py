"""Table 1: what the columns of a study hold, each over the rows in which it has a value.

An encoded row has a number for each column: the value itself, or the position of its class among
the declared ones; NaN where it is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import InputError
from gosta.measures import distribution  # noqa: F401  (registers quantiles)
from gosta.measures.definition import MEASURES, Measured, measure
from gosta.runtime.arrays import Floats
from gosta.statistics import encode
from gosta.statistics.definition import Options

QUARTERS = 4  # a column of numbers is told by its quartiles
MOST_LEVELS = 50  # of a column of classes that were not declared
OF_NUMBERS = ("mean", "standard deviation", "25 %", "50 %", "75 %")
MISSING = "missing"


def levels_of(data: Data, options: Options) -> dict[str, Any]:
    """Return the options with the classes of each column, in its order; none for numbers."""
    declared = declared_levels(options)
    found: dict[str, list[Any]] = {}
    for name in data.features:
        if name in declared or data.columns[name].dtype.kind in "biuf":
            found[name] = list(declared.get(name, ()))
            continue
        found[name] = data.select(label=name, drop_missing=True).class_codes()[1]
        if len(found[name]) > MOST_LEVELS:
            raise InputError(
                f"column {name!r} has {len(found[name])} different values",
                remedy="leave it out of the columns, or turn it into numbers",
            )
    return {**options, "levels": found}


def declared_levels(options: Options) -> Mapping[str, Sequence[Any]]:
    """Return the classes of columns that are declared."""
    declared = options.get("levels") or {}
    if not isinstance(declared, Mapping):
        raise InputError(
            f"levels = {declared!r} must name the classes of columns",
            remedy='in Python, levels={"sex": ["f", "m"]}; in a study, classes in its dictionary',
        )
    return declared


@measure(
    encode=encode.described,
    completed=levels_of,
    has_missing=True,
    no_interval="it describes the rows, not a population",
)
def table_one(
    x: Floats, weights: Floats, levels: Mapping[str, Sequence[Any]] | None = None
) -> Measured:
    """Table 1: mean, standard deviation and quartiles of numbers, shares of classes, and the share
    of rows in which a column is missing.
    """
    columns = levels or {}
    parts = [
        _shares(column, weights, len(classes)) if len(classes) else _numbers(column, weights)
        for column, classes in zip(x.T, columns.values(), strict=True)
    ]
    return Measured(np.concatenate(parts), labels=labels_of(columns))


def labels_of(levels: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
    """Return what each value is for: "age: mean", "sex = f", "sex: missing"."""
    labels = []
    for name, classes in levels.items():
        labels += [f"{name} = {value}" for value in classes]
        labels += [f"{name}: {what}" for what in (() if len(classes) else OF_NUMBERS)]
        labels.append(f"{name}: {MISSING}")
    return tuple(labels)


def _numbers(column: Floats, weights: Floats) -> Floats:
    present = ~np.isnan(column) & (weights > 0)
    missing = weights[~present].sum() / weights.sum()
    x, w, n = column[present], weights[present], int(present.sum())
    if not n:
        return np.array([np.nan] * len(OF_NUMBERS) + [missing])
    mean = np.average(x, weights=w)
    variance = np.average((x - mean) ** 2, weights=w) * n / (n - 1) if n > 1 else np.nan
    quartiles = MEASURES["quantiles"].over(x[:, None], w, {"parts": QUARTERS}).value
    return np.array([mean, np.sqrt(variance), *quartiles, missing])


def _shares(column: Floats, weights: Floats, classes: int) -> Floats:
    present = ~np.isnan(column)
    counts = np.bincount(column[present].astype(np.int64), weights[present], classes)
    missing = weights[~present].sum() / weights.sum()
    return np.array([*(counts / counts.sum()), missing])


@np.errstate(all="ignore")
def standardised_differences(
    labels: Sequence[str], first: Sequence[Any], second: Sequence[Any]
) -> dict[str, float | None]:
    """Return how much two groups differ, in standard deviations: a number for each row of Table 1.

    For numbers the difference of the means by the root of the mean variance, for each class that of
    the shares.

    >>> labels = ("age: mean", "age: standard deviation", "sex = f")
    >>> found = standardised_differences(labels, [60.0, 10.0, 0.5], [65.0, 10.0, 0.4])
    >>> {name: round(value, 3) for name, value in found.items()}
    {'age': -0.5, 'sex = f': 0.202}
    """
    found: dict[str, float | None] = {}
    pairs = dict(zip(labels, zip(first, second, strict=True), strict=True))
    for label, (a, b) in pairs.items():
        name, is_mean, _ = label.partition(": mean")
        if is_mean:
            found[name] = _difference(a, b, [s * s for s in _both(pairs, name)])
        elif " = " in label and None not in (a, b):
            found[label] = _difference(a, b, [a * (1 - a), b * (1 - b)])
    return found


def _both(pairs: Mapping[str, tuple[Any, Any]], name: str) -> list[float]:
    return [np.nan if s is None else s for s in pairs[f"{name}: {OF_NUMBERS[1]}"]]


def _difference(a: float | None, b: float | None, variances: Sequence[float]) -> float | None:
    if a is None or b is None:
        return None
    spread = np.sqrt(np.mean(variances))
    return float((a - b) / spread) if spread > 0 and np.isfinite(a - b) else None
