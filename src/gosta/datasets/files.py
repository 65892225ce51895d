"""Readers of users' files: CSV, Parquet and .npy here, Excel, Feather and JSON lines in `tables`; folders of them."""

from __future__ import annotations

import codecs
import contextlib
import csv
import difflib
import gzip
import io
import math
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta.datasets import tables
from gosta.datasets.tables import (
    DEFAULT,
    MISSING,
    Columns,
    Format,
    Table,
    first_line_doubts,
    from_arrow,
    has_names,
    named,
)
from gosta.errors import DataError, FormatError, InputError
from gosta.runtime import machine
from gosta.runtime.extras import is_installed, require

MAX_HEADER_BYTES = 1 << 20
SEPARATORS = ",;\t|"
MAX_PLAIN_BYTES = 1 << 20  # up to this size, the csv module is done before Arrow is imported
BYTES_PER_CELL = 32  # in Arrow, in numpy, and in what a statistic is computed from
BYTES_PER_PLAIN_CELL = 100  # the same with Python's strings
WRONG_WIDTH = "{}, line {}: {} values where {} are expected"
TRUE, FALSE = frozenset(["1", "True", "TRUE", "true"]), frozenset(["0", "False", "FALSE", "false"])


def _guess(path: Path) -> str:
    """Return a suggestion for the path of a file that does not exist: one beside it with nearly the same name."""
    there = (
        [one.name for one in path.parent.iterdir() if suffix_of(one) in READERS]
        if path.parent.is_dir()
        else []
    )
    near = difflib.get_close_matches(path.name, there, n=1)
    return f"; did you mean {path.with_name(near[0])}?" if near else ""


def read(path: Path, given: Format = DEFAULT) -> Table:
    """Read the columns of a file in the format that its suffix names."""
    suffix = suffix_of(path)
    if suffix not in READERS:
        remedy = "; save it as .xlsx or .csv" if suffix == ".xls" else ""
        raise DataError(
            f"cannot read {path}: the suffix {suffix!r} is none of {', '.join(READERS)}{remedy}"
        )
    if not path.is_file():
        raise DataError(
            f"{path} is not a file" if path.exists() else f"no such file: {path}{_guess(path)}"
        )
    reader, takes = READERS[suffix]
    for name in given.options():
        if name not in takes:
            raise InputError(
                f"{name} = {getattr(given, name)!r} is not for {suffix} files such as {path}; leave it out"
            )
    try:
        table = reader(path, given)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
        ) from error
    if not table.columns:
        raise DataError(f"{path} has no columns")
    return table


def suffix_of(path: Path) -> str:
    """Return what names the format of a file, such as .csv or .csv.gz."""
    return "".join(path.suffixes[-2 if path.suffix.lower() == ".gz" else -1 :]).lower()


class Header(NamedTuple):
    """The first lines of a CSV file."""

    names: list[str]  # of the columns; numbers from 0 if the file does not name them
    separator: str
    lines: int  # that the names take; 0 if the file does not name them
    doubts: tuple[str, ...]


def read_csv(path: Path, given: Format) -> Table:
    """Read text separated by comma, semicolon, tab or bar, with or without a line of names."""
    with _open(path, given.encoding) as file:
        begin = file.read(MAX_HEADER_BYTES)
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        header = _header(path, begin, given)
        is_plain = size <= MAX_PLAIN_BYTES or not is_installed("pyarrow")
        cells = (begin.count(header.separator.encode()) + begin.count(b"\n") + 1) / len(begin)
        per_cell = BYTES_PER_PLAIN_CELL if is_plain else BYTES_PER_CELL
        machine.require_memory(int(size * (1 + per_cell * cells)), f"reading {path}")
        columns = (_parse_plain if is_plain else _parse_with_arrow)(
            path, file, header, given.decimal
        )
    return named(columns, header.lines > 0, header.doubts, given)


def _parse_plain(path: Path, file: BinaryIO, header: Header, decimal: str) -> Columns:
    """Parse CSV with Python's csv module, to the types that Arrow would infer, but for dates, which stay text."""
    text = file.read().decode("utf-8-sig", "surrogateescape")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=header.separator, strict=True)
    rows: list[list[str]] = []
    try:
        if header.lines:
            next(reader)
        for row in reader:
            if len(row) == len(header.names):
                rows.append(row)
            elif row:  # empty lines are skipped
                raise DataError(
                    WRONG_WIDTH.format(path, reader.line_num, len(row), len(header.names))
                )
    except csv.Error as error:
        raise DataError(f"cannot read {path}: line {reader.line_num}: {error}") from error
    columns = zip(*rows, strict=True) if rows else ((),) * len(header.names)
    return {
        name: _infer(values, decimal)
        for name, values in zip(header.names, columns, strict=True)
        if name
    }


def _infer(values: tuple[str, ...], decimal: str = ".") -> NDArray[Any]:
    """Return a column as integers, booleans, floats or text, the first that fits all values."""
    present = [value for value in values if value not in MISSING]
    has_missing = len(present) < len(values)
    array = np.empty(len(values), dtype=object)
    with contextlib.suppress(ValueError):
        if not any("_" in value for value in present):  # which Python allows in numbers
            numbers = [
                np.nan if value in MISSING else float(with_point(value, decimal))
                for value in values
            ]
            floats = np.array(numbers, dtype=np.float64)
            if not has_missing and all(
                value.strip().removeprefix("-").isdecimal() for value in present
            ):
                with contextlib.suppress(OverflowError):
                    return np.array([int(value) for value in present], dtype=np.int64)
            return floats
    if set(present) <= TRUE | FALSE:
        array[:] = [None if value in MISSING else value in TRUE for value in values]
        return array if has_missing else array.astype(np.bool_)
    array[:] = [None if value in MISSING else value for value in values]
    try:
        "".join(present).encode()
    except (
        UnicodeEncodeError
    ):  # some bytes are not UTF-8: the column holds bytes, which only matters if it is used
        array[:] = [
            None if value is None else value.encode("utf-8", "surrogateescape") for value in array
        ]
    return array


def with_point(value: str, decimal: str) -> str:
    """Return a number as Python writes it; with another decimal sign, a point is none."""
    return value if decimal == "." else value.replace(".", "?").replace(decimal, ".")


def _parse_with_arrow(path: Path, file: BinaryIO, header: Header, decimal: str) -> Columns:
    """Parse CSV with Arrow, which is many times as fast."""
    import pyarrow as pa
    from pyarrow import csv as pa_csv

    # An unnamed column is the row index that data frames write by themselves.
    names = [name or f"unnamed {k}" for k, name in enumerate(header.names)]
    included = [name for name, given in zip(names, header.names, strict=True) if given]
    invalid: list[pa_csv.InvalidRow] = []

    def reject(row: pa_csv.InvalidRow) -> str:
        invalid.append(row)
        return "error"

    options = pa_csv.ParseOptions(
        delimiter=header.separator, invalid_row_handler=reject, newlines_in_values=True
    )

    def parse(use_threads: bool) -> pa.Table:
        file.seek(0)
        return pa_csv.read_csv(
            pa.PythonFile(file, mode="r"),
            read_options=pa_csv.ReadOptions(
                column_names=names, skip_rows=header.lines, use_threads=use_threads
            ),
            parse_options=options,
            convert_options=pa_csv.ConvertOptions(
                include_columns=included, strings_can_be_null=True, decimal_point=decimal
            ),
        )

    try:
        return from_arrow(parse(use_threads=True))
    except pa.ArrowInvalid as error:
        if not invalid:
            raise DataError(f"cannot read {path}: {error}") from error
    invalid.clear()
    with contextlib.suppress(pa.ArrowInvalid):
        parse(use_threads=False)  # only a sequential parse knows the number of the line
    row = invalid[0]
    raise DataError(WRONG_WIDTH.format(path, row.number, row.actual_columns, row.expected_columns))


def read_parquet(path: Path, _: Format) -> Table:
    """Read a Parquet file."""
    parquet = require("pyarrow.parquet", "data", "reading a Parquet file")
    import pyarrow as pa

    try:
        metadata = parquet.read_metadata(path)
        machine.require_memory(16 * metadata.num_rows * metadata.num_columns, f"reading {path}")
        return Table(from_arrow(parquet.read_table(path)))
    except pa.ArrowInvalid as error:
        raise DataError(f"cannot read {path}: {error}") from error


def read_npy(path: Path, _: Format) -> Table:
    """Read an array saved by numpy; pickled objects are rejected."""
    try:
        stored = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"cannot read {path}: {error}; save one array of numbers with numpy.save"
        ) from error
    machine.require_memory(3 * stored.nbytes, f"reading {path}")
    return Table(from_array(np.array(stored), str(path)))


Reader = Callable[[Path, Format], Table]
TEXT = ("sep", "decimal", "encoding", "header")
# By suffix: the reader, and the fields of `Format` that it heeds.
READERS: dict[str, tuple[Reader, tuple[str, ...]]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz"), (read_csv, TEXT)),
    ".parquet": (read_parquet, ()),
    **dict.fromkeys((".feather", ".arrow"), (tables.read_feather, ())),
    **dict.fromkeys((".jsonl", ".ndjson"), (tables.read_json_lines, ())),
    ".xlsx": (tables.read_excel, ("header", "sheet")),
    ".npy": (read_npy, ()),
}


def from_array(array: NDArray[Any], name: str) -> Columns:
    """Return the columns of an array: fields by their names, others numbered from 0."""
    if array.dtype.names and array.ndim == 1:
        return {field: array[field] for field in array.dtype.names}
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.dtype.kind not in "biufOUS":
        found = f"an array of {array.dtype} with shape {array.shape}"
        raise DataError(f"{name} is {found}; rows × columns of numbers are needed")
    return {str(k): array[:, k] for k in range(array.shape[1])}


def _open(path: Path, encoding: str) -> BinaryIO:
    """Open a file, decompressed and in UTF-8; of a compressed one no more is read than fits in memory."""
    is_utf8 = codecs.lookup(encoding).name == "utf-8"
    if path.suffix.lower() != ".gz" and is_utf8:
        return path.open("rb")
    content = io.BytesIO()
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        while block := file.read(1 << 24):
            content.write(block)
            machine.require_memory(3 * content.tell(), f"reading {path}")
    if not is_utf8:
        try:
            content = io.BytesIO(content.getvalue().decode(encoding).encode())
        except UnicodeError as error:
            raise DataError(f"cannot read {path}: it is not text in {encoding}: {error}") from None
    content.seek(0)
    return content


def _header(path: Path, begin: bytes, given: Format) -> Header:
    """Find the separator and the names of the columns in the first bytes of a file."""
    separators = SEPARATORS.replace(given.decimal, "") if given.sep is None else given.sep
    records = [
        _first_record(begin.decode("utf-8-sig", "replace"), separator) for separator in separators
    ]
    names, lines = max(records, key=lambda record: len(record[0]))
    separator = separators[records.index((names, lines))]
    if not names and begin.strip():
        raise DataError(
            f"cannot read {path}: its first line has a quote that does not end, or a very long value"
        )
    if names in ([], [""]):
        raise DataError(f"{path} is empty or begins with an empty line")
    if any("\ufffd" in name for name in names):
        raise FormatError(
            f"cannot read {path}: it is not text in UTF-8",
            "name its encoding, such as",
            "encoding",
            "latin-1",
        )
    if len(begin) == MAX_HEADER_BYTES and lines == len(begin.splitlines()):
        raise DataError(
            f"cannot read {path}: its first line is longer than {MAX_HEADER_BYTES} bytes"
        )
    first = names
    doubts: tuple[str, ...] = ()
    if not has_names(path, [_value(name, given.decimal) for name in first], given):
        names, lines = [str(k) for k in range(len(names))], 0
        doubts = first_line_doubts(first, given)
    repeated = [name for name, count in Counter(names).items() if name and count > 1]
    if repeated:
        raise DataError(f"{path} has more than one column called {repeated[0]!r}")
    return Header(names, separator, lines, doubts)


def _value(text: str, decimal: str) -> object:
    """Return a value of a first line: a number, None for a missing or infinite one, or text."""
    if text in MISSING | {"inf", "-inf"}:
        return None
    try:  # 2020_1, which Python accepts as a number, is a name
        value = float(with_point(text, decimal))
        return value if math.isfinite(value) and "_" not in text else text
    except ValueError:
        return text


def _first_record(text: str, separator: str) -> tuple[list[str], int]:
    """Return the values of the first row and the number of lines it takes, newlines in quotes included."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        return [value.strip() for value in next(reader, [])], reader.line_num
    except csv.Error:  # quotes that do not end, or not where a value does
        return [], 0
