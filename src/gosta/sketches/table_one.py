"""Sketch of Table 1: sums and counts in bins of each column of numbers, counts of each class.

Rows in which a column is missing are counted too, and add nothing else for this column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from gosta.datasets.data import Data
from gosta.measures import table_one
from gosta.runtime.arrays import Booleans, Floats
from gosta.sketches.definition import Axis, Features, Result, Sketch, Tables, sketch
from gosta.sketches.distribution import Quantiles
from gosta.sketches.results import REACH
from gosta.sketches.suppression import suppressed
from gosta.statistics.definition import Options

MOST_ERROR = 0.1  # by noise, as a share of what a value can be: there are no intervals
DEVIATION = "standard deviation"
QUARTERS = {"parts": table_one.QUARTERS}
FINEST = 1e-3  # of a range, to which means and quantiles are rounded where few values are missing


class Place(NamedTuple):
    """The sums of one column."""

    name: str
    axis: Axis
    classes: int  # 0: of numbers
    sums: slice

    @property
    def cells(self) -> slice:
        """Return the places of counts: of bins or classes, and last of missing values."""
        return slice(self.sums.start, self.sums.stop - (0 if self.classes else 2))

    @property
    def counted(self) -> int:
        """Return how many counts are told: rows of each class (or with a number), and missing."""
        return max(self.classes, 1) + 1

    def counts(self, totals: Floats) -> Floats:
        """Return the counts that are told."""
        cells = totals[self.cells]
        return cells if self.classes else np.array([cells[:-1].sum(), cells[-1]])


@sketch("table-one")
class TableOne(Sketch):
    """Means, standard deviations, quartiles, shares of classes and of missing values, from sums and
    counts.

    The sums of a column of numbers: rows below the range, in bins, above it, and with a missing
    value; the scaled values, and their squares. Of a column of classes: rows of each class, and
    with a missing value.
    """

    needs_range = True
    finds_edges = False
    shows_bins = True
    defaults = {"levels": None}  # noqa: RUF012
    # Of each column whether the share of each class is left out, and that of missing values last.
    hidden: Mapping[int, Booleans] = {}
    # Rows to multiples of which the shares of a column are rounded, so that the number of rows
    # with a value does not show.
    rounded_to: Mapping[int, int] = {}

    @classmethod
    def has_axis(cls, role: str, column: str, options: Options) -> bool:
        """Return whether a column holds numbers."""
        return not len((options["levels"] or {}).get(column, ()))

    @classmethod
    def fixed_options(cls, options: dict[str, Any], data: Data | None) -> dict[str, Any]:
        """Return the classes of columns of text, where rows in one place show them."""
        table_one.declared_levels(options)
        return options if data is None else table_one.levels_of(data, options)

    @property
    def levels(self) -> dict[str, list[Any]]:
        """Return the classes of each column, none for numbers."""
        declared: Mapping[str, Any] = self.options["levels"] or {}
        return {axis.column: list(declared.get(axis.column, ())) for axis in self.axes}

    @property
    def points(self) -> Options:
        """Return the classes of all columns."""
        return {"levels": self.levels}

    def prepare(self) -> None:
        """Find where the sums of each column are."""
        places, start = [], 0
        for axis, classes in zip(self.axes, self.levels.values(), strict=True):
            size = len(classes) + 1 if classes else axis.bins + 5
            place = Place(axis.column, axis, len(classes), slice(start, start + size))
            places.append(place)
            start += size
        self.places, self.size = tuple(places), start
        self.features_per_row = sum(1 if place.classes else 3 for place in places)

    @property
    def key(self) -> tuple[object, ...]:
        return *super().key, tuple(place.classes for place in self.places)

    def features(self, x: Floats) -> Features:
        """Count a row in a cell of each column; of numbers, add the value and its square."""
        positions, values = [], []
        for k, place in enumerate(self.places):
            column, is_missing = x[:, k], np.isnan(x[:, k])
            present = np.where(is_missing, 0.0, column)
            if place.classes:
                cells = present.astype(np.int64)
            else:
                cells = Quantiles([place.axis], options=QUARTERS).cells(present[:, None])
                scaled = np.where(is_missing, 0.0, place.axis.scaled(present))
                positions += [np.full(len(x), place.sums.stop - step) for step in (2, 1)]
                values += [scaled, scaled**2]
            last = place.cells.stop - place.cells.start - 1
            positions.append(place.sums.start + np.where(is_missing, last, cells))
            values.append(np.ones(len(x)))
        return Features(np.column_stack(positions), np.column_stack(values))

    def count(self, totals: Floats) -> float:
        """Return the rows, also those with missing values."""
        return float(totals[self.places[0].cells].sum())

    def clipped(self, totals: Floats) -> float:
        """Return the rows beyond the range of a column, added up over columns."""
        numbers = (totals[place.cells] for place in self.places if not place.classes)
        return float(sum(cells[0] + cells[-2] for cells in numbers))

    def beside(self, tables: Tables, min_cell: int) -> Sequence[Sketch]:
        """Leave out shares of few rows, and those from which they would follow."""
        made = [copy(self) for _ in range(tables.shown)]
        for k, place in enumerate(self.places):
            counts = np.array([place.counts(own) for own in tables.totals])
            is_few, is_missing = (
                suppressed(own, tables.groups, range(tables.shown, len(counts)), min_cell)
                for own in (counts[:, :-1].sum(axis=1, keepdims=True), counts[:, -1:])
            )
            is_missing |= is_few
            hidden = self._hidden_classes(place, counts, tables, min_cell) | is_few
            for one, own in zip(made, np.column_stack([hidden, is_missing]), strict=False):
                one.hidden = {**one.hidden, k: own}
                if is_missing.any():
                    one.rounded_to = {**one.rounded_to, k: min_cell}
        return made

    def _hidden_classes(
        self, place: Place, counts: Floats, tables: Tables, min_cell: int
    ) -> Booleans:
        """Return of which classes the share is left out, of all rows and of each group."""
        if not place.classes:
            return np.zeros((len(counts), 1), dtype=np.bool_)
        classes = [f"{place.name} = {one}" for one in self.levels[place.name]]
        untold = range(tables.shown, len(counts))
        is_stratum = np.array([name in tables.hidden for name in classes])
        hidden = suppressed(counts[:, :-1], tables.groups, untold, min_cell, is_stratum)
        if place.name in tables.columns and hidden[1 : tables.shown].any():
            hidden[1:] = True  # in another table of groups these counts are those of its columns
        return hidden

    def merged(self, totals: Floats, min_cell: int) -> tuple[Sketch, Floats]:
        """Merge bins with few rows."""
        axes, parts = [], []
        for place in self.places:
            axis, own = place.axis, totals[place.sums]
            if not place.classes:
                quantiles = Quantiles([axis], options=QUARTERS)
                made, cells = quantiles.merged(own[:-3], min_cell)
                axis, own = made.axes[0], np.concatenate([cells, own[-3:]])
            axes.append(axis)
            parts.append(own)
        made_one = type(self)(axes, self.classes, self.options)
        made_one.hidden, made_one.rounded_to = self.hidden, self.rounded_to
        return made_one, np.concatenate(parts)

    def finished(self, found: Result, errors: Floats) -> Result:
        """Return no value where noise made one that cannot be, or that can be anything.

        A share that is beyond 0 or 1 by no more than noise explains is 0 or 1.
        """
        low, high, is_share = np.concatenate([_limits(place) for place in self.places], axis=1)
        room = is_share * REACH * errors
        is_kept = (found.value >= low - room) & (found.value <= high + room)
        is_kept &= errors <= MOST_ERROR * (high - low)
        is_kept &= (found.value > REACH * errors) | ~_is_deviation(found.labels)
        value, least, most = (
            np.where(is_kept, np.clip(part, low, high), np.nan)
            for part in (found.value, found.low, found.high)
        )
        return found._replace(value=value, low=least, high=most)

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Put the values of all columns side by side."""
        found = [
            _of_classes(totals[place.sums])
            if place.classes
            else _of_numbers(place.axis, totals[place.sums], rounding)
            for place in self.places
        ]
        for k, hidden in self.hidden.items():
            found[k] = _told(
                found[k], self.places[k], hidden, self.rounded_to.get(k, 0), self.count(totals)
            )
        value, low, high = np.concatenate(found, axis=1)
        return Result(value, low, high, labels=table_one.labels_of(self.levels))


def _is_deviation(labels: Sequence[str]) -> Booleans:
    return np.array([label.endswith(f": {DEVIATION}") for label in labels])


def _limits(place: Place) -> Floats:
    """Return of each value of a column the least and the most that it can be, and whether it is a
    share: 3 × values.
    """
    shares = np.tile([[0.0], [1.0], [1.0]], place.classes + 1)
    if place.classes:
        return shares
    low, high = place.axis.low, place.axis.high
    of_numbers = np.tile([[low], [high], [0.0]], len(table_one.OF_NUMBERS))
    of_numbers[:2, table_one.OF_NUMBERS.index(DEVIATION)] = 0.0, high - low
    return np.hstack([of_numbers, shares])


def _told(found: Floats, place: Place, hidden: Booleans, least: int, rows: float) -> Floats:
    """Return values of a column without those that are hidden, and rounded if some are missing.

    From exact shares the number of rows with a value would follow, and so that of the others.
    """
    of_values = hidden[:-1] if place.classes else np.repeat(hidden[:1], len(table_one.OF_NUMBERS))
    told = np.where([*of_values, hidden[-1]], np.nan, found)
    if least and rows > 0.5:
        step = least / rows if place.classes else (place.axis.high - place.axis.low) * FINEST
        told[0, :-1] = np.round(told[0, :-1] / step) * step
        told[1, :-1] = np.minimum(told[0, :-1] - step / 2, told[1, :-1])
        told[2, :-1] = np.maximum(told[0, :-1] + step / 2, told[2, :-1])
    return told


def _shares(counts: Floats) -> Floats:
    """Return the shares of counts."""
    total = counts.sum()
    return np.full(len(counts), np.nan) if total < 0.5 else counts / total


def _of_classes(counts: Floats) -> Floats:
    """Return the share of each class and of missing values: (value, low, high) × values."""
    present, missing = counts[:-1], counts[-1]
    share = _shares(np.array([missing, present.sum()]))[0]
    return np.tile([*_shares(present), share], (3, 1))


def _of_numbers(axis: Axis, totals: Floats, rounding: float) -> Floats:
    """Return mean, deviation, quartiles and share of missing values of a column of numbers."""
    cells, missing, (first, second) = totals[:-3], totals[-3], totals[-2:]
    n, width = float(cells.sum()), axis.high - axis.low
    if n < 0.5:
        return np.full((3, len(table_one.OF_NUMBERS) + 1), np.nan)
    mean = axis.low + width * (first / n + rounding * np.array([0.0, -1.0, 1.0]))
    squares = second - first * first / n + 3 * n * rounding * np.array([0.0, -1.0, 1.0])
    variance = np.maximum(squares, 0.0) / (n - 1) if n > 1.5 else np.full(3, np.nan)
    quartiles = np.array(Quantiles([axis], options=QUARTERS).result(cells, rounding)[:3])
    share = np.full(3, _shares(np.array([missing, n]))[0])
    return np.column_stack([mean, width * np.sqrt(variance), quartiles, share])
