"""Columns of data: plain arrays, made once of what a reader or a user gives.

All readers infer types here: text and Python's values become integers, booleans, floats or objects.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gosta.datasets.cells import with_point
from gosta.errors import DataError, shorten
from gosta.runtime.extras import require

Columns = Mapping[str, NDArray[Any]]
# Values that stand for a missing one, as Arrow has them.
MISSING = frozenset(
    (
        "",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "1.#IND",
        "1.#QNAN",
        "N/A",
        "n/a",
        "NA",
        "NULL",
        "null",
    )
) | frozenset(("NaN", "nan", "-NaN", "-nan"))
TRUE = frozenset(["1", "True", "TRUE", "true"])
FALSE = frozenset(["0", "False", "FALSE", "false"])
FLAT_HINT = "a column is a flat list of values"


def as_column(name: str, values: Any) -> NDArray[Any]:
    """Return one column as a plain array; missing values of pandas or a mask become None or NaN."""
    pandas, kind = sys.modules.get("pandas"), np.dtype(object)
    if pandas is not None and isinstance(
        values, pandas.Series | pandas.Index | pandas.api.extensions.ExtensionArray
    ):
        values = pandas.Series(values)
        if pandas.api.types.is_numeric_dtype(values.dtype) and values.dtype.kind != "c":
            missing = values.isna().any()
            values = (
                values.to_numpy(dtype=np.float64, na_value=np.nan) if missing else values.to_numpy()
            )
        elif not pandas.api.types.is_datetime64_any_dtype(values.dtype):
            if getattr(values.dtype, "ordered", False):
                kind = np.dtype(object, metadata={"order": list(values.dtype.categories)})
            values = values.to_numpy(dtype=object)
    elif isinstance(values, np.ma.MaskedArray):
        values, mask = values.data, np.ma.getmaskarray(values)
        if mask.any():
            values = values.astype(object)
            values[mask] = None
    elif is_arrow(values):
        order = _order(values)
        values = _from_arrow(values)
        if order:
            kind = np.dtype(object, metadata={"order": order})
            values = values.astype(kind)
    try:
        array: Any = np.asarray(values)
    except ValueError:
        raise DataError(
            f"column {name!r} has values of different lengths", remedy=FLAT_HINT
        ) from None
    if array.ndim != 1:
        raise DataError(f"column {name!r} has shape {array.shape}", remedy=FLAT_HINT)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    if array.dtype == object and pandas is not None:
        array = array.astype(kind)
        array[pandas.isna(array)] = None
    return cast("NDArray[Any]", array)


def from_values(values: Iterable[Any]) -> NDArray[Any]:
    """Return Python's values as a column: numbers if all are, else objects.

    Some can be missing.
    """
    present = [
        None if isinstance(value, str) and value.strip() in MISSING else value for value in values
    ]
    kinds = {type(value) for value in present if value is not None}
    if kinds == {bool} and None not in present:
        return np.array(present, dtype=np.bool_)
    if kinds and kinds <= {int, float}:
        if (
            kinds == {int}
            and None not in present
            and all(-(2**63) <= value < 2**63 for value in present)  # type: ignore[operator]
        ):
            return np.array(present, dtype=np.int64)
        with contextlib.suppress(OverflowError):
            return np.array([np.nan if value is None else float(value) for value in present])
    return _objects(present)


def from_text(values: Sequence[str], decimal: str = ".") -> NDArray[Any]:
    """Return cells of text as integers, booleans, floats or text, the first that fits all."""
    present = [value for value in values if value not in MISSING]
    has_missing = len(present) < len(values)
    with contextlib.suppress(ValueError):
        if not any("_" in value for value in present):  # which Python allows in numbers
            floats = np.array(
                [
                    np.nan if value in MISSING else float(with_point(value, decimal))
                    for value in values
                ],
                dtype=np.float64,
            )
            is_whole = all(value.strip().removeprefix("-").isdecimal() for value in present)
            if is_whole and not has_missing:
                with contextlib.suppress(OverflowError):
                    return np.array([int(value) for value in present], dtype=np.int64)
            return floats
    if set(present) <= TRUE | FALSE:
        return from_values(None if value in MISSING else value in TRUE for value in values)
    cells: list[Any] = [None if value in MISSING else value for value in values]
    try:
        "".join(present).encode()
    except UnicodeEncodeError:
        # Some bytes are not UTF-8: the column holds bytes, which only matters if it is used.
        cells = [
            None if value is None else value.encode("utf-8", "surrogateescape") for value in cells
        ]
    return _objects(cells)


def from_cells(values: Sequence[Any], decimal: str = ".") -> NDArray[Any]:
    """Return numbers, text and missing values as a column of the type that a text file would have.

    Columns with other values, such as dates, remain columns of objects.
    """
    if all(value is None or isinstance(value, str | bool | int | float) for value in values):
        return from_text([_cell(value, decimal) for value in values], decimal)
    return from_values(values)


def _cell(value: Any, decimal: str) -> str:
    """Return a value as a text file with this decimal sign holds it."""
    if isinstance(value, str):
        return value
    if value is None or value != value:
        return ""
    return value_text(value).replace(".", decimal)


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def mark_decimal_sign(columns: Columns, decimal: str) -> dict[str, NDArray[Any]]:
    """Return columns of which those with text know by which decimal sign they were read."""
    kind = np.dtype(object, metadata={"decimal": decimal})
    return {
        name: column.astype(kind) if column.dtype == object else column
        for name, column in columns.items()
    }


def from_arrow(table: Any) -> Columns:
    """Return the columns of an Arrow table."""
    names = table.column_names
    if len(set(names)) < len(names):
        raise DataError(f"two columns have the same name: {shorten(sorted(names))}")
    pairs = zip(names, table.columns, strict=True)
    return {name: as_column(name, column) for name, column in pairs}


def from_array(array: NDArray[Any], name: str) -> Columns:
    """Return the columns of an array: fields by their names, others numbered from 0."""
    if array.dtype.names and array.ndim == 1:
        return {field: as_column(field, array[field]) for field in array.dtype.names}
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.dtype.kind not in "biufOUS":
        shape = f"an array of {array.dtype} with shape {array.shape}"
        raise DataError(f"{name} is {shape}; rows × columns of numbers are needed")
    return {str(k): as_column(str(k), array[:, k]) for k in range(array.shape[1])}


def is_arrow(values: Any) -> bool:
    """Return whether an object has Arrow's interface, as Arrow's own do and those of polars."""
    return hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")


def _order(column: Any) -> list[Any]:
    """Return the ordered categories of Arrow's dictionaries, or of an Enum of polars."""
    dtype: Any = getattr(column, "dtype", None)
    if type(dtype).__name__ == "Enum" and hasattr(dtype, "categories"):
        return list(dtype.categories)
    kind = getattr(column, "type", None)
    if not getattr(kind, "ordered", False):
        return []
    chunks = getattr(column, "chunks", [column])
    return list(dict.fromkeys(value for chunk in chunks for value in chunk.dictionary.to_pylist()))


def _from_arrow(column: Any) -> NDArray[Any]:
    pa = require("pyarrow", "data", "reading Arrow columns")
    column = pa.chunked_array(
        column if hasattr(column, "__arrow_c_stream__") else [pa.array(column)]
    )
    try:
        if pa.types.is_dictionary(
            column.type
        ):  # to_numpy would take missing values for the last one
            column = column.cast(column.type.value_type)
        return np.asarray(column.to_numpy(), dtype=float if pa.types.is_null(column.type) else None)
    except pa.ArrowNotImplementedError:  # types that Arrow cannot convert to an array, Python can
        values = np.empty(len(column), dtype=object)
        values[:] = column.to_pylist()
        return values


def concatenate(parts: Sequence[tuple[str, Columns]], name: str) -> dict[str, NDArray[Any]]:
    """Return the rows of several files, which have the same columns, one below the other."""
    first, columns = parts[0]
    for other, theirs in parts[1:]:
        missing, extra = (
            [c for c in columns if c not in theirs],
            [c for c in theirs if c not in columns],
        )
        if missing or extra:
            what = (
                f"lacks the column {missing[0]!r} of"
                if missing
                else f"has a column {extra[0]!r} that is not in"
            )
            raise DataError(f"{name}: {other} {what} {first}; all files need the same columns")
    joined = {}
    for column in columns:
        arrays = [theirs[column] for _, theirs in parts]
        is_mixed = (
            len({"n" if array.dtype.kind in "biuf" else array.dtype.kind for array in arrays}) > 1
        )
        joined[column] = np.concatenate(
            [array.astype(object) for array in arrays] if is_mixed else arrays
        )
    return joined


def value_text(value: object) -> str:
    """Return a value as a user would write it: exact, and 3.0 as 3."""
    return (
        repr(float(value)).removesuffix(".0")
        if isinstance(value, float | np.floating)
        else str(value)
    )


def match_key(value: Any) -> float | str:
    """Return a key that all forms of a value share: 1, 1.0, "1", "01" and true."""
    text = value_text(value)
    with contextlib.suppress(ValueError):
        if math.isfinite(float(text)):
            return float(text)
    return {"true": 1.0, "false": 0.0}.get(text.lower(), text)


def to_csv(columns: Columns) -> str:
    """Return columns as the text of a CSV file, each number to its last bit.

    >>> to_csv({"age": np.array([71, 62]), "risk": np.array([0.1, np.nan])})
    'age,risk\\n71,0.1\\n62,nan\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return text.getvalue()
