"""Reading users' files: CSV, Parquet and .npy."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gosta import memory
from gosta.datasets.data import Columns, shorten
from gosta.errors import InputError

LONGEST_HEADER = 1 << 20


def read(path: Path) -> Columns:
    """The columns of a file, by its ending."""
    ending = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]).lower()
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
    if not columns:
        raise InputError(f"{path} has no columns")
    return columns


def read_csv(path: Path) -> Columns:
    """A table of text: separated by comma, semicolon, tab or bar; with or without a line of names."""
    import pyarrow as pa
    from pyarrow import csv as pa_csv

    memory.require(3 * path.stat().st_size, f"reading {path}")
    first = _first_line(path)
    separator = max(",;\t|", key=first.count)
    names = [name.strip() for name in next(csv.reader([first], delimiter=separator))]
    has_names = not all(map(_is_number, names))
    if not has_names:
        names = [str(k) for k in range(len(names))]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise InputError(f"{path} has more than one column called {twice[0]!r}")
    # An unnamed column is the row index that data frames write by themselves.
    kept = [name or f"unnamed {k}" for k, name in enumerate(names)]
    bad: list[pa_csv.InvalidRow] = []

    def refuse(row: pa_csv.InvalidRow) -> str:
        bad.append(row)
        return "error"

    def parse(threads: bool) -> pa.Table:
        return pa_csv.read_csv(
            path,
            read_options=pa_csv.ReadOptions(column_names=kept, skip_rows=int(has_names), use_threads=threads),
            parse_options=pa_csv.ParseOptions(delimiter=separator, invalid_row_handler=refuse),
            convert_options=pa_csv.ConvertOptions(
                include_columns=[k for k, name in zip(kept, names, strict=True) if name],
                strings_can_be_null=True,
            ),
        )

    try:
        return from_arrow(parse(threads=True))
    except pa.ArrowInvalid as error:
        if not bad:
            raise InputError(f"cannot read {path}: {str(error).splitlines()[0]}") from error
    bad.clear()
    try:
        parse(threads=False)  # only a parse in order knows the number of the line
    except pa.ArrowInvalid:
        row = bad[0]
    raise InputError(
        f"{path}, line {row.number}: {row.actual_columns} values where {row.expected_columns} are expected"
    )


def read_parquet(path: Path) -> Columns:
    """A Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        about = parquet.read_metadata(path)
        memory.require(16 * about.num_rows * about.num_columns, f"reading {path}")
        return from_arrow(parquet.read_table(path))
    except pa.ArrowInvalid as error:
        raise InputError(f"cannot read {path}: {str(error).splitlines()[0]}") from error


def read_npy(path: Path) -> Columns:
    """An array as numpy saves it; pickled objects are refused."""
    try:
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise InputError(f"cannot read {path}: {str(error).splitlines()[0]}") from error
    if not isinstance(stored, np.ndarray):
        raise InputError(f"cannot read {path}: it holds several arrays, save one with numpy.save")
    memory.require(3 * stored.nbytes, f"reading {path}")
    return from_array(np.array(stored), str(path))


READERS: dict[str, Callable[[Path], Columns]] = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".csv.gz": read_csv,
    ".parquet": read_parquet,
    ".npy": read_npy,
}


def from_array(array: np.ndarray[Any, Any], name: str) -> Columns:
    """The columns of an array: fields by their names, others numbered from 0."""
    if array.dtype.names:
        return {field: array[field] for field in array.dtype.names}
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.dtype.kind not in "biufOUS":
        raise InputError(
            f"{name} is an array of {array.dtype} with shape {array.shape}; rows × columns of numbers are needed"
        )
    return {str(k): array[:, k] for k in range(array.shape[1])}


def from_arrow(table: Any) -> Columns:
    """The columns of an Arrow table."""
    import pyarrow as pa

    names = table.column_names
    if len(set(names)) < len(names):
        raise InputError(f"two columns have the same name: {shorten(sorted(names))}")
    columns = {}
    for name, column in zip(names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_binary(column.type):
            raise InputError(f"column {name!r} is not text in UTF-8")
        if pa.types.is_null(column.type):
            column = column.cast(pa.float64())
        columns[name] = column.to_numpy()
    return columns


def _first_line(path: Path) -> str:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        line = file.readline(LONGEST_HEADER)
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {path}: it is not text in UTF-8") from error
    if not text:
        raise InputError(f"{path} is empty or begins with an empty line")
    return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
