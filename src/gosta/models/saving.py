"""Fits in files: a model that was fitted in one place, or by a network, predicts rows elsewhere."""

from __future__ import annotations

from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from gosta.errors import GostaError, InputError, shorten
from gosta.models.definition import Model, make_model
from gosta.models.design import Design, make_design
from gosta.models.fit import Baseline, Fit
from gosta.runtime.arrays import Floats
from gosta.runtime.files import read_json, write_json
from gosta.sketches.results import StratumResult
from gosta.statistics.estimate import Estimate

MOST_BYTES = 1 << 26
HINT = "write one with gosta fit --out FILE, or gosta.models.save"
Number = float | None  # None: there is none
Level = str | int | float


class _Baseline(msgspec.Struct, frozen=True):
    stratum: str
    times: list[float]
    events: list[float]
    hazard: list[float]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A fit as plain values: the model first, then what was found."""

    model: str
    terms: list[str]
    ranges: dict[str, tuple[float, float]]
    clipped: list[str]  # columns whose values beyond the range count as its ends
    levels: dict[str, list[Level]]
    options: dict[str, Any]
    names: tuple[str, ...]
    coefficients: list[float]
    means: list[float]
    covariance: list[list[Number]]
    n: int
    rounds: int
    robust_covariance: list[list[Number]] | None = None
    without_fold: list[list[float]] | None = None
    validation: tuple[StratumResult, ...] = ()
    events: int | None = None
    log_likelihood: Number = None
    null_log_likelihood: Number = None
    scale: Number = None
    degrees: Number = None
    level: float = 0.95
    baselines: list[_Baseline] = []
    robust_by: str = ""
    privacy: str = ""
    errors: str = ""
    data: str = ""
    assumed: dict[str, Any] = {}
    left_out: list[dict[str, Any]] = []
    warnings: tuple[str, ...] = ()


ARRAYS = ("coefficients", "means", "covariance", "robust_covariance", "without_fold")
# Fields that a file has as they are.
PLAIN = (
    "names",
    "n",
    "events",
    "rounds",
    "level",
    "robust_by",
    "privacy",
    "errors",
    "data",
    "validation",
    "warnings",
)
NUMBERS = ("log_likelihood", "null_log_likelihood", "scale", "degrees")  # if they exist


def save(fit: Fit, path: str | Path) -> None:
    """Write a fit into a JSON file, from which `load` reads it.

    Parameters
    ----------
    fit
        What `gosta.fit` or `gosta.private.fit` returned.
    path
        The file.

    Examples
    --------
    >>> import gosta
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> file = Path(mkdtemp()) / "model.json"
    >>> gosta.models.save(gosta.fit("breast-cancer", columns=["mean radius"]), file)
    >>> gosta.models.load(file)
    Fit(logistic regression, 569 rows, 2 coefficients)
    """
    design = fit.model.design
    factors = [factor for term in design.factors for factor in term]
    baselines = [
        _Baseline(one.stratum, one.times.tolist(), one.events.tolist(), one.hazard.tolist())
        for one in fit.baselines
    ]
    found: dict[str, Any] = {name: _plain(getattr(fit, name)) for name in PLAIN + NUMBERS}
    for name in ARRAYS:
        found[name] = None if getattr(fit, name) is None else getattr(fit, name).tolist()
    content = _File(
        fit.model.name,
        list(design.terms),
        design.ranges,
        list(dict.fromkeys(one.column for one in factors if one.is_declared)),
        {name: [_plain(one) for one in values] for name, values in design.levels.items()},
        _plain(_options(fit.model)),
        baselines=baselines,
        assumed=_plain(fit.assumed),
        left_out=[one.to_dict() for one in fit.left_out],
        **found,
    )
    write_json(Path(path), content)


def load(path: str | Path) -> Fit:
    """Read a fit from the file that `save`, or ``gosta fit --out``, wrote.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Fit
        With coefficients, errors and baseline, to predict rows of other data.

    Examples
    --------
    >>> import gosta
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> file = Path(mkdtemp()) / "model.json"
    >>> gosta.models.save(gosta.fit("breast-cancer", columns=["mean radius"]), file)
    >>> gosta.models.load(file).predict({"mean radius": [15.0]}).round(3).tolist()
    [0.564]
    """
    try:
        found = read_json(Path(path), _File, MOST_BYTES, "a fitted model", HINT, lambda _: None)
    except FileNotFoundError:
        raise InputError(f"no such file: {path}", remedy=HINT) from None
    try:
        return _fit_of(found)
    except (GostaError, TypeError, ValueError) as error:
        raise InputError(f"{path}: it does not hold a fitted model ({error}); {HINT}") from None


def _fit_of(found: _File) -> Fit:
    design = make_design(found.terms, ranges=found.ranges, levels=found.levels)
    design = Design(
        tuple(
            tuple(replace(one, is_declared=one.column in found.clipped) for one in term)
            for term in design.factors
        )
    )
    model = make_model(found.model, design, **frozen(found.options))
    if found.names != model.coefficient_names:
        raise InputError(f"coefficients are of {shorten(found.names)}")
    arrays = {name: _array(getattr(found, name)) for name in ARRAYS}
    size = len(found.names)
    if arrays["coefficients"].shape != (size,) or arrays["covariance"].shape != (size, size):
        raise InputError(f"there are {size} coefficients")
    parts: dict[str, Any] = {name: getattr(found, name) for name in PLAIN}
    numbers = {name: getattr(found, name) for name in NUMBERS}
    parts |= {name: number for name, number in numbers.items() if number is not None}
    for name, each in arrays.items():
        parts[name] = None if getattr(found, name) is None else each
    return Fit(
        model,
        baselines=tuple(
            Baseline(one.stratum, *map(_array, (one.times, one.events, one.hazard)))
            for one in found.baselines
        ),
        assumed=found.assumed,
        left_out=tuple(map(Estimate.from_dict, found.left_out)),
        **parts,
    )


def _array(values: Any) -> Floats:
    """Return numbers as an array, NaN for those that do not exist."""
    return np.array(values, dtype=np.float64)


def frozen(value: Any) -> Any:
    """Return a value of settings with tuples in place of lists."""
    if isinstance(value, dict):
        return {name: frozen(one) for name, one in value.items()}
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value


def _options(model: Model) -> dict[str, Any]:
    """Return the settings of a model that are not the default."""
    given = {one.name: getattr(model, one.name) for one in fields(model) if one.name != "design"}
    defaults = {one.name: one.default for one in fields(model) if one.default is not MISSING}
    return {name: value for name, value in given.items() if value != defaults.get(name, MISSING)}


def _plain(value: Any) -> Any:
    """Return values of columns and settings as JSON has them."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value
