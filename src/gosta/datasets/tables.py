"""Files that are tables already: Excel, Feather, JSON lines; and what all readers share: the format, the first line."""

from __future__ import annotations

import codecs
import json
import warnings
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta.errors import DataError, FormatError, InputError, shorten, unknown
from gosta.runtime import machine
from gosta.runtime.extras import require

Columns = Mapping[str, Any]  # arrays of numpy or Arrow by name
BYTES_PER_EXCEL_BYTE = 20  # of memory for a byte of a sheet's XML
BYTES_PER_JSON_BYTE = 8
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


class Table(NamedTuple):
    """The content of a file."""

    columns: Columns
    # whether its first line was taken for names; None: the format says so itself
    has_header: bool | None = None
    doubts: tuple[str, ...] = ()  # about how it was read, each with the way out


class Format(NamedTuple):
    """How files are to be read, where their content does not say it."""

    # between values; None: the one of comma, semicolon, tab and bar that gives most columns
    sep: str | None = None
    decimal: str = "."  # sign of decimals
    encoding: str = "utf-8"
    header: str = "auto"  # whether the first line holds names: yes, no, or auto (no, if it holds numbers only)
    sheet: str | None = None  # of an Excel file; None: the first

    def options(self) -> list[str]:
        """Return the names of those that are not the default."""
        return [
            name for name, default in DEFAULT._asdict().items() if getattr(self, name) != default
        ]

    def check(self) -> Format:
        """Return it if all values are possible."""
        if self.sep is not None and (
            len(self.sep) != 1 or self.sep in '"\r\n' or self.sep == self.decimal
        ):
            raise InputError(
                f"sep = {self.sep!r} must be one character, not a quote nor the decimal sign {self.decimal!r}"
            )
        if self.decimal not in (".", ","):
            raise InputError(f"decimal = {self.decimal!r} must be . or ,")
        if self.header not in ("auto", "yes", "no"):
            raise InputError(f"header = {self.header!r} must be yes, no or auto")
        try:
            "".encode(self.encoding)
            codecs.lookup(self.encoding)
        except (LookupError, ValueError):
            raise InputError(
                f"encoding = {self.encoding!r} is not known; utf-8, utf-16, latin-1, cp1252 are"
            ) from None
        return self


DEFAULT = Format()


def has_names(path: Path, first: Sequence[object], given: Format) -> bool:
    """Return whether a first line (numbers, text, None where a value is missing) holds the names of the columns."""
    present = [value for value in first if value is not None]
    if given.header == "yes" and not present:
        raise FormatError(f"{path} has no names in its first line", "leave out", "header", "yes")
    if given.header != "auto":
        return given.header == "yes"
    return not present or not all(isinstance(value, int | float) for value in present)


def first_line_doubts(first: Sequence[object], given: Format) -> tuple[str, ...]:
    """Return the doubt about a first line of numbers that was taken for data, unless the user said so."""
    if given.header != "auto":
        return ()
    shown = shorten([str(value) for value in first], 4)
    return (
        f"the first line ({shown}) holds numbers only and is taken for data; say --header no, or yes for names",
    )


def named(columns: Columns, has_header: bool, doubts: tuple[str, ...], given: Format) -> Table:
    """Return a table, with a doubt if the names of its columns look like a row of data."""
    if has_header and given.header == "auto":
        for name, values in columns.items():
            is_number = name.replace(".", "", 1).removeprefix("-").isdecimal()
            if is_number or name in _texts(values):
                why = "is a number" if is_number else "is also a value below it"
                line = f"the first line is taken for names, though {name!r} {why}; say --header yes, or no for data"
                return Table(columns, has_header, (*doubts, line))
    return Table(columns, has_header, doubts)


def _texts(values: Any) -> list[Any]:
    """Return the values of a column of text; of a long one of Arrow's, the first."""
    if hasattr(values, "to_pylist"):
        return (
            values.slice(0, 10_000).to_pylist()
            if str(values.type) in ("string", "large_string")
            else []
        )
    return values.tolist() if values.dtype.kind == "O" else []


def from_arrow(table: Any) -> Columns:
    """Return the columns of an Arrow table."""
    names = table.column_names
    if len(set(names)) < len(names):
        raise DataError(f"two columns have the same name: {shorten(sorted(names))}")
    return dict(zip(names, table.columns, strict=True))


def read_feather(path: Path, _: Format) -> Table:
    """Read a Feather or Arrow file."""
    ipc = require("pyarrow.ipc", "data", "reading a Feather file")
    import pyarrow as pa

    machine.require_memory(3 * path.stat().st_size, f"reading {path}")
    try:
        with pa.OSFile(str(path)) as file:
            return Table(from_arrow(ipc.open_file(file).read_all()))
    except pa.ArrowInvalid as error:
        raise DataError(f"cannot read {path}: {error}") from error


def read_json_lines(path: Path, _: Format) -> Table:
    """Read one JSON object a line; keys that a line lacks are missing values."""
    machine.require_memory(BYTES_PER_JSON_BYTE * path.stat().st_size, f"reading {path}")
    records: list[dict[str, Any]] = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                raise DataError(f"cannot read {path}: line {number} is not JSON: {error}") from None
            if not isinstance(record, dict):
                raise DataError(
                    f'cannot read {path}: line {number} is not an object such as {{"age": 61}}'
                )
            records.append(record)
    names = dict.fromkeys(name for record in records for name in record)
    return Table({name: from_values(record.get(name) for record in records) for name in names})


def read_excel(path: Path, given: Format) -> Table:
    """Read a sheet of an Excel file: values, not formulas; empty rows are skipped."""
    openpyxl = require("openpyxl", "excel", "reading an Excel file")
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(
                entry.file_size for entry in archive.infolist() if entry.filename.endswith(".xml")
            )
        machine.require_memory(BYTES_PER_EXCEL_BYTE * size, f"reading {path}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
            try:
                names = book.sheetnames
                if given.sheet is not None and given.sheet not in names:
                    raise unknown(f"sheet of {path}", given.sheet, names)
                sheet = given.sheet or names[0]
                rows = [
                    list(row)
                    for row in book[sheet].iter_rows(values_only=True)
                    if any(v is not None for v in row)
                ]
            finally:
                book.close()
    except (zipfile.BadZipFile, KeyError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise DataError(f"cannot read {path}: it is no Excel file (.xlsx): {error}") from None
    doubts: tuple[str, ...] = ()
    if len(names) > 1 and given.sheet is None:
        if len(rows) < 2:
            others = shorten(names[1:])
            raise DataError(
                f"{path} has no rows in its first sheet, {sheet!r}; name another with --sheet: {others}"
            )
        doubts = (
            f"the sheet {sheet!r} is read, the first of {shorten(names)}; name one with --sheet",
        )
    return _from_rows(path, rows, given, doubts)


def _from_rows(path: Path, rows: list[list[Any]], given: Format, doubts: tuple[str, ...]) -> Table:
    width = max(
        (k + 1 for row in rows for k, value in enumerate(row) if value is not None), default=0
    )
    if not width:
        raise DataError(f"{path} is empty")
    rows = [row[:width] + [None] * (width - len(row)) for row in rows]
    first = [str(value).strip() if value is not None else "" for value in rows[0]]
    if not has_names(path, rows[0], given):
        names, doubts = [str(k) for k in range(width)], (*doubts, *first_line_doubts(first, given))
        columns = dict(zip(names, map(from_values, zip(*rows, strict=True)), strict=True))
        return Table(columns, False, doubts)
    repeated = [name for name in first if name and first.count(name) > 1]
    if repeated:
        raise DataError(f"{path} has more than one column called {repeated[0]!r}")
    values = zip(*rows[1:], strict=True) if len(rows) > 1 else [()] * width
    columns = {
        name: from_values(column) for name, column in zip(first, values, strict=True) if name
    }
    return named(columns, True, doubts, given)


def from_values(values: Iterable[Any]) -> NDArray[Any]:
    """Return Python's values as a column: numbers if all are, some perhaps missing; else objects."""
    given = [
        None if isinstance(value, str) and value.strip() in MISSING else value for value in values
    ]
    kinds = {type(value) for value in given if value is not None}
    if kinds == {bool} and None not in given:
        return np.array(given, dtype=np.bool_)
    if kinds and kinds <= {int, float}:
        if (
            kinds == {int}
            and None not in given
            and all(-(2**63) <= value < 2**63 for value in given)  # type: ignore[operator]
        ):
            return np.array(given, dtype=np.int64)
        try:
            return np.array([np.nan if value is None else float(value) for value in given])
        except OverflowError:
            pass
    array = np.empty(len(given), dtype=object)
    array[:] = given
    return array


def concatenate(
    parts: Sequence[tuple[str, Mapping[str, NDArray[Any]]]], name: str
) -> dict[str, NDArray[Any]]:
    """Return the rows of several files, one below the other; all need the same columns, in any order."""
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
