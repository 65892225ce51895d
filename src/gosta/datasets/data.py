"""Rows of named columns: the one form in which data reach a statistic."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError, unknown

Floats = NDArray[np.float64]
Columns = Mapping[str, NDArray[Any]]

DROP_HINT = "drop those rows with drop_missing=True (--drop-missing)"


@dataclass(frozen=True)
class Data:
    """Named columns of equal length, and what some of them are for.

    Attributes
    ----------
    name
        What messages call the data.
    columns
        One array per column, numbers or text.
    label, score
        The column of classes and the column of scores, if there are any.
    points
        The columns that make a row a point in space; by default all but label and score.
    main
        The columns that stand for the whole where a statistic needs one or two, in that order.
    chosen
        Whether a user chose the columns: then no others may stand in for them.
    drop_missing
        Whether rows with missing or infinite values are left out; otherwise they are an error.
    used
        The columns that were read, in that order: what a statistic turned out to need.
    """

    name: str
    columns: Columns
    label: str | None = None
    score: str | None = None
    points: tuple[str, ...] = ()
    main: tuple[str, ...] = ()
    chosen: bool = False
    drop_missing: bool = False
    used: dict[str, None] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.points:
            rest = tuple(c for c in self.columns if c not in (self.label, self.score))
            object.__setattr__(self, "points", rest)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __repr__(self) -> str:
        return f"Data({self.name!r}, {len(self)} rows, columns: {shorten(list(self.columns))})"

    def head(self, n: int) -> Data:
        """The first n rows."""
        if not 1 <= n <= len(self):
            raise InputError(f"n = {n} rows asked for, {self.name} has {len(self)}; take 1 to {len(self)}")
        return dataclasses.replace(self, columns={k: v[:n] for k, v in self.columns.items()})

    def choose(
        self,
        columns: str | int | Sequence[str | int] | None = None,
        label: str | int | NDArray[Any] | Sequence[Any] | None = None,
        score: str | int | None = None,
        drop_missing: bool = False,
    ) -> Data:
        """The same rows with the columns a user wants for each purpose."""
        data = dataclasses.replace(self, drop_missing=drop_missing or self.drop_missing)
        if isinstance(label, str | int):
            data = dataclasses.replace(data, label=data._column(label), points=())
        elif label is not None:
            classes = as_column("label", label)
            if len(classes) != len(data):
                raise InputError(f"label has {len(classes)} values, {data.name} has {len(data)} rows")
            free = next(
                n for n in ("label", *(f"label-{i}" for i in range(len(data.columns) + 1))) if n not in data.columns
            )
            data = dataclasses.replace(data, columns={**data.columns, free: classes}, label=free)
        if score is not None:
            data = dataclasses.replace(data, score=data._column(score), points=())
        if columns is not None:
            wanted = [columns] if isinstance(columns, str | int) else list(columns)
            if not wanted:
                raise InputError("columns is empty: name at least one column")
            names = tuple(data._column(c) for c in wanted)
            if len(set(names)) < len(names):
                raise InputError(f"columns names {', '.join(names)}: each column may stand there once")
            data = dataclasses.replace(data, points=names, chosen=True)
        return data

    def _column(self, name: str | int) -> str:
        if isinstance(name, int):
            if not -len(self.columns) <= name < len(self.columns):
                raise InputError(f"column {name} asked for, {self.name} has {len(self.columns)} columns")
            return list(self.columns)[name]
        if name not in self.columns:
            raise unknown(f"column of {self.name}", name, self.columns)
        return name

    def values(self, *purposes: str) -> Floats:
        """One column for each purpose, as an n × len(purposes) array: those chosen or called so, or the main ones."""
        count = len(purposes)
        names = self.points
        if not self.chosen and set(purposes) <= set(self.columns):
            names = purposes
        elif not self.chosen and len(self.main) >= count:
            names = self.main[:count]
        if len(names) != count:
            example = list(self.points[:count])
            raise InputError(
                f"needs {'one column' if count == 1 else 'columns for ' + ', '.join(purposes)}; "
                f"{self.name} has {len(names)} ({shorten(names)}), "
                f"choose with columns={example!r} (--columns {','.join(example)})"
            )
        return self.numbers(names)

    def numbers(self, names: Sequence[str]) -> Floats:
        """Columns as floats; NaN marks what is missing when such rows are to be dropped."""
        out = np.empty((len(self), len(names)))
        for k, name in enumerate(names):
            out[:, k] = self._floats(name)
            self.used[name] = None
        return out

    def _floats(self, name: str) -> Floats:
        column = self.columns[name]
        if column.dtype.kind in "biuf":
            values = column.astype(np.float64)
        elif column.dtype.kind in "OUS":
            values = np.array([_number(v, name, row) for row, v in enumerate(column, 1)], dtype=np.float64)
        else:
            raise InputError(f"column {name!r} holds {column.dtype} values where numbers are needed")
        bad = ~np.isfinite(values)
        if bad.any():
            if not self.drop_missing:
                raise InputError(
                    f"column {name!r} has {bad.sum()} missing or infinite "
                    f"value{'s' if bad.sum() > 1 else ''} (first in row {np.argmax(bad) + 1}); {DROP_HINT}"
                )
            values[bad] = np.nan
        return values

    def classes(self) -> tuple[Floats, list[str]]:
        """The class of each row as a number (NaN where it is missing), and the classes' names."""
        if self.label is None:
            raise InputError(
                f"needs labels; {self.name} has no column called 'label', "
                f"name one of these with label=... (--label ...): {shorten(list(self.columns))}"
            )
        self.used[self.label] = None
        column = self.columns[self.label]
        missing = column != column if column.dtype.kind != "O" else np.array([v is None or v != v for v in column])
        if missing.any() and not self.drop_missing:
            raise InputError(
                f"label column {self.label!r} has {missing.sum()} missing values "
                f"(first in row {np.argmax(missing) + 1}); {DROP_HINT}"
            )
        codes = np.full(len(column), np.nan)
        present = column[~missing]
        values, inverse = np.unique(present if present.dtype.kind != "O" else present.astype(str), return_inverse=True)
        codes[~missing] = inverse
        return codes, [_text(v) for v in values.tolist()]

    def signs(self, positive: object = None) -> Floats:
        """+1 for rows of the positive class, −1 for the others, NaN where the label is missing."""
        codes, names = self.classes()
        where = f"label column {self.label!r}"
        if len(names) < 2:
            raise InputError(f"needs two classes, {where} has {shorten(names) or 'none'} only")
        if positive is None and len(names) > 2:
            raise InputError(
                f"needs two classes, {where} has {len(names)} ({shorten(names)}); "
                "name the one to set against the rest with positive=... (--option positive=...)"
            )
        chosen = names[-1] if positive is None else _text(positive)
        if chosen not in names:
            raise unknown(f"class of {where}", chosen, names)
        signs = np.where(codes == names.index(chosen), 1.0, -1.0)
        signs[np.isnan(codes)] = np.nan
        return signs

    def scores(self, signs: Floats) -> Floats:
        """The score column; or the only column; or, of several, x · (mean of + rows − mean of − rows)."""
        if self.score is not None:
            return self.numbers([self.score])[:, 0]
        x = self.numbers(self.points)
        if x.shape[1] == 1:
            return x[:, 0]
        complete = ~np.isnan(x).any(axis=1)
        difference: Floats = x[complete & (signs > 0)].mean(axis=0) - x[complete & (signs < 0)].mean(axis=0)
        return x @ difference


def as_column(name: str, values: Any) -> NDArray[Any]:
    """One column as a plain array; what pandas calls missing becomes None or NaN."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(values, pandas.Series | pandas.Index | pandas.api.extensions.ExtensionArray):
        values = pandas.Series(values)
        if pandas.api.types.is_numeric_dtype(values.dtype) and values.dtype.kind != "c":
            missing = values.isna().any()
            values = values.to_numpy(dtype=np.float64, na_value=np.nan) if missing else values.to_numpy()
        elif not pandas.api.types.is_datetime64_any_dtype(values.dtype):
            values = values.astype(object).where(values.notna(), None).to_numpy(dtype=object)
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"column {name!r} has shape {array.shape}; a column is a flat list of values")
    return array


def shorten(names: Sequence[str], most: int = 6) -> str:
    """A list for a message, cut where it gets long."""
    return ", ".join(map(str, names[:most])) + (f", ... ({len(names)} in all)" if len(names) > most else "")


def _number(value: Any, column: str, row: int) -> float:
    if value is None or value == "":
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(
            f"column {column!r} has {str(value)[:40]!r} in row {row} where a number is needed; "
            "mend the row or choose other columns"
        ) from None


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
