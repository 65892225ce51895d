"""Reading users' files: CSV, Parquet and .npy."""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gosta.errors import InputError, shorten
from gosta.runtime import machine

Table = Mapping[str, Any]  # columns as numpy or Arrow has them

LONGEST_HEADER = 1 << 20
SEPARATORS = ",;\t|"
BYTES_A_CELL = 32  # in Arrow, in numpy, and in what a statistic is computed from


def read(path: Path) -> Table:
    """The columns of a file, by its ending."""
    ending = "".join(path.suffixes[-2:] if _is_gzip(path) else path.suffixes[-1:]).lower()
    if ending not in READERS:
        raise InputError(f"cannot read {path}: the ending {ending!r} is none of {', '.join(READERS)}")
    if not path.exists():
        raise InputError(f"no such file: {path}")
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    try:
        columns = READERS[ending](path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    if not columns:
        raise InputError(f"{path} has no columns")
    return columns


def read_csv(path: Path) -> Table:
    """A table of text: separated by comma, semicolon, tab or bar; with or without a line of names."""
    with _opened(path) as file:
        return _parsed(path, file)


def _parsed(path: Path, file: Any) -> Table:
    import pyarrow as pa
    from pyarrow import csv as pa_csv

    begin = file.read(LONGEST_HEADER)
    names, separator, lines = _header(path, begin)
    cells = (begin.count(separator.encode()) + begin.count(b"\n") + 1) / len(begin)
    machine.require_memory(int(file.size() * (1 + BYTES_A_CELL * cells)), f"reading {path}")
    # An unnamed column is the row index that data frames write by themselves.
    kept = [name or f"unnamed {k}" for k, name in enumerate(names)]
    bad: list[pa_csv.InvalidRow] = []

    def refuse(row: pa_csv.InvalidRow) -> str:
        bad.append(row)
        return "error"

    def parse(threads: bool) -> pa.Table:
        file.seek(0)
        return pa_csv.read_csv(
            file,
            read_options=pa_csv.ReadOptions(column_names=kept, skip_rows=lines, use_threads=threads),
            parse_options=pa_csv.ParseOptions(delimiter=separator, invalid_row_handler=refuse, newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                include_columns=[k for k, name in zip(kept, names, strict=True) if name],
                strings_can_be_null=True,
            ),
        )

    try:
        return from_arrow(parse(threads=True))
    except pa.ArrowInvalid as error:
        if not bad:
            raise InputError(f"cannot read {path}: {error}") from error
    bad.clear()
    try:
        parse(threads=False)  # only a parse in order knows the number of the line
    except pa.ArrowInvalid:
        row = bad[0]
    raise InputError(
        f"{path}, line {row.number}: {row.actual_columns} values where {row.expected_columns} are expected"
    )


def read_parquet(path: Path) -> Table:
    """A Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        about = parquet.read_metadata(path)
        machine.require_memory(16 * about.num_rows * about.num_columns, f"reading {path}")
        return from_arrow(parquet.read_table(path))
    except pa.ArrowInvalid as error:
        raise InputError(f"cannot read {path}: {error}") from error


def read_npy(path: Path) -> Table:
    """An array as numpy saves it; pickled objects are refused."""
    try:
        stored = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, OverflowError) as error:
        raise InputError(f"cannot read {path}: {error}; save one array of numbers with numpy.save") from error
    machine.require_memory(3 * stored.nbytes, f"reading {path}")
    return from_array(np.array(stored), str(path))


READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".csv.gz": read_csv,
    ".parquet": read_parquet,
    ".npy": read_npy,
}


def from_array(array: np.ndarray[Any, Any], name: str) -> Table:
    """The columns of an array: fields by their names, others numbered from 0."""
    if array.dtype.names and array.ndim == 1:
        return {field: array[field] for field in array.dtype.names}
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.dtype.kind not in "biufOUS":
        raise InputError(
            f"{name} is an array of {array.dtype} with shape {array.shape}; rows × columns of numbers are needed"
        )
    return {str(k): array[:, k] for k in range(array.shape[1])}


def from_arrow(table: Any) -> Table:
    """The columns of an Arrow table."""
    names = table.column_names
    if len(set(names)) < len(names):
        raise InputError(f"two columns have the same name: {shorten(sorted(names))}")
    return dict(zip(names, table.columns, strict=True))


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _opened(path: Path) -> Any:
    """The text of a file for Arrow; of a compressed one no more than fits in memory."""
    import pyarrow as pa

    if not _is_gzip(path):
        return pa.OSFile(str(path))
    content = bytearray()
    with gzip.open(path) as file:
        while block := file.read(1 << 24):
            content += block
            machine.require_memory(3 * len(content), f"reading {path}")
    return pa.BufferReader(content)


def _header(path: Path, begin: bytes) -> tuple[list[str], str, int]:
    """The names of the columns, what separates them, and how many lines they take: none if they are not there."""
    found = [_first_record(begin.decode("utf-8-sig", "replace"), separator) for separator in SEPARATORS]
    names, lines = max(found, key=lambda record: len(record[0]))
    separator = SEPARATORS[found.index((names, lines))]
    if not names and begin.strip():
        raise InputError(f"cannot read {path}: its first line has a quote that does not end, or a very long value")
    if names in ([], [""]):
        raise InputError(f"{path} is empty or begins with an empty line")
    if any("\ufffd" in name for name in names):
        raise InputError(f"cannot read {path}: it is not text in UTF-8")
    if len(begin) == LONGEST_HEADER and lines == len(begin.splitlines()):
        raise InputError(f"cannot read {path}: its first line is longer than {LONGEST_HEADER} bytes")
    if _is_data(names):
        names, lines = [str(k) for k in range(len(names))], 0
    twice = [name for name, count in Counter(names).items() if name and count > 1]
    if twice:
        raise InputError(f"{path} has more than one column called {twice[0]!r}")
    return names, separator, lines


def _first_record(text: str, separator: str) -> tuple[list[str], int]:
    """The values of the first row and how many lines it takes, with newlines in quotes."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        return [value.strip() for value in next(reader, [])], reader.line_num
    except csv.Error:  # quotes that do not end, or not where a value does
        return [], 0


def _is_data(values: list[str]) -> bool:
    """Whether a first line holds numbers, some perhaps missing, and not names."""
    from pyarrow import csv as pa_csv

    missing = {*pa_csv.ConvertOptions().null_values, "inf", "-inf"}
    rest = [value for value in values if value not in missing]
    return bool(rest) and all(map(_is_number, rest))


def _is_number(text: str) -> bool:
    """Whether it is a finite number; 2020_1, which Python takes for one, is a name."""
    try:
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False
