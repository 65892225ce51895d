"""The definition of a measure: a statistic of rows that is no mean over pairs of them.

A measure is one function of encoded rows and their weights, which returns values and, where it is
known, how much each row moves them. Intervals, differences between two models and between groups
follow from that.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import (
    STATISTICS,
    Encoded,
    Encoder,
    Options,
    Statistic,
    encode_complete_rows,
)
from gosta.statistics.names import SUMMARIES


class Measured(NamedTuple):
    """The values of a measure over rows; NaN where a value is not defined."""

    value: Floats  # one, or several of a curve
    # Derivative of each value by the share of a row, n × values: its weighted mean over rows is 0,
    # and its weighted variance divided by n is that of the value. None: bootstrap gives it.
    influence: Floats | None = None
    labels: tuple[str, ...] = ()  # of several values: what each is for, such as "before 30"
    at: Floats | None = None  # of a curve: the place of each value on the horizontal axis
    # Rows that each value rests on, such as the positive ones for sensitivity; None: all.
    trials: Floats | None = None
    # Standard errors by a formula of their own, such as Greenwood's; None: those of the influence.
    errors: Floats | None = None
    # Ends of intervals at a level and standard errors by a way of their own; None: by the others.
    ends: Callable[[float], tuple[Floats, Floats, Floats]] | None = None


@dataclass(frozen=True)
class Measure:
    """A measure; build one with the decorator `measure`."""

    name: str
    summary: str  # one line on what it measures
    encode: Encoder  # from data to rows of numbers
    # Function of encoded rows, n × d, and of their weights, not negative, 0 for rows that do not
    # count. Its further parameters are options.
    compute: Callable[..., Measured]
    bounds: tuple[float, float] = (-np.inf, np.inf)  # of the values in a population
    scale: str = "plain"  # on which intervals are symmetric: `intervals.SCALES`, or "share"
    axes: tuple[str, str] | None = None  # of a curve: names of its horizontal and vertical axis
    no_interval: str = ""  # why there is none
    no_weights: str = ""  # why rows cannot have weights
    caution: str = ""  # what whoever reads the value should know, one sentence
    null_value: float | None = None  # value that p-values are for, such as 0 of a difference
    has_missing: bool = False  # whether rows with missing values count, NaN where they are encoded
    # Returns options with what the data say where they are not given, such as all classes.
    completed: Callable[[Data, Options], dict[str, Any]] | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Names and defaults of all options: the further parameters of encode and compute."""
        return _defaults(self.encode, 1) | _defaults(self.compute, 2)

    def encode_rows(self, data: Data, options: Options) -> Encoded:
        """Return the encoded rows of data that are complete."""
        own = {name: options[name] for name in _defaults(self.encode, 1) if name in options}
        data = replace(data, drop_missing=data.drop_missing and not self.has_missing)
        return encode_complete_rows(self.name, data, lambda table: self.encode(table, **own))

    def over(self, x: Floats, weights: Floats | None = None, options: Options = {}) -> Measured:  # noqa: B006
        """Return the values over encoded rows."""
        if weights is not None and self.no_weights:
            raise InputError(f"{self.name} has no weights: {self.no_weights}")
        own = {name: options[name] for name in _defaults(self.compute, 2) if name in options}
        with np.errstate(all="ignore"):
            return self.compute(x, np.ones(len(x)) if weights is None else weights, **own)


MEASURES: dict[str, Measure] = {}
NO_VALUE = "there are too few rows, or all are in one class"  # why a value is not defined


def definition_of(name: str) -> Statistic | Measure:
    """Return the pairwise statistic or the measure of a name."""
    return STATISTICS.get(name) or MEASURES[name]


def measure(
    *, encode: Encoder, name: str | None = None, **parts: Any
) -> Callable[[Callable[..., Measured]], Measure]:
    """Make a measure of a function, and register it by the function's name with hyphens.

    The first sentence of the function's docstring is its summary.
    """

    def register(compute: Callable[..., Measured]) -> Measure:
        title = name or compute.__name__.replace("_", "-")
        if title in STATISTICS:
            raise InputError(f"there is already a statistic called {title!r}")
        summary = " ".join((inspect.getdoc(compute) or "").partition("\n\n")[0].split())
        SUMMARIES[title] = summary
        MEASURES[title] = Measure(title, summary, encode, compute, **parts)
        return MEASURES[title]

    return register


def _defaults(function: Callable[..., Any], skip: int) -> dict[str, Any]:
    parameters = list(inspect.signature(function).parameters.values())[skip:]
    return {p.name: p.default for p in parameters}


def numbers_of(name: str, option: Any, bounds: tuple[float, float] = (-np.inf, np.inf)) -> Floats:
    """Return the numbers of an option: one, several, or text separated by commas; ordered."""
    return np.unique(given_numbers(name, option, bounds))


def given_numbers(
    name: str, option: Any, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> Floats:
    """Return the numbers of an option in the order in which they were given."""
    try:
        texts: Any = option.split(",") if isinstance(option, str) else np.ravel(option)
        found = np.array([float(text) for text in texts])
    except (TypeError, ValueError):
        found = np.zeros(0)
    if not len(found) or not np.isfinite(found).all():
        raise InputError(f"{name} = {option!r} must be numbers, such as {name}=0.1,0.2")
    if found.min() < bounds[0] or found.max() > bounds[1]:
        raise InputError(f"{name} = {option!r} must lie between {bounds[0]:g} and {bounds[1]:g}")
    return found
