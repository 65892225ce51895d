"""Readers of users' files: CSV, Parquet, Feather, JSON lines, Excel and arrays of numpy."""

from __future__ import annotations

import codecs
import contextlib
import csv
import difflib
import gzip
import io
import itertools
import json
import math
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta.datasets.cells import with_point
from gosta.datasets.columns import (
    MISSING,
    Columns,
    from_array,
    from_arrow,
    from_cells,
    from_text,
    from_values,
)
from gosta.datasets.encodings import better, likely
from gosta.datasets.harmonise import Harmonisation
from gosta.datasets.row_names import RowNames
from gosta.datasets.thousands import thousands
from gosta.datasets.titles import MOST_ROWS, title_rows, totals_rows, without_end
from gosta.errors import DataError, FormatError, InputError, shorten, unknown
from gosta.runtime import machine
from gosta.runtime.extras import is_installed, require

MAX_HEADER_BYTES = 1 << 20
SEPARATORS = ",;\t|"
MAX_PLAIN_BYTES = 1 << 20  # up to this size, the csv module is done before Arrow is imported
BYTES_PER_CELL = 32  # in Arrow, in numpy, and in what a statistic is computed from
BYTES_PER_PLAIN_CELL = 100  # the same with Python's strings
MOST_END_BYTES = 1 << 16  # of a file in which empty lines at its end are looked for
BYTES_PER_EXCEL_BYTE = 20  # of memory for a byte of a sheet's XML
BYTES_PER_JSON_BYTE = 8  # of memory for a byte of JSON lines
MOST_COMPARED = 100_000  # values of a column that are compared with its name


class Table(NamedTuple):
    """The content of a file."""

    columns: Columns
    # whether its first line was taken for names; None: the format says so itself
    has_header: bool | None = None
    doubts: tuple[str, ...] = ()  # about how it was read, each with the way out
    row_names: RowNames = RowNames()


class Format(NamedTuple):
    """How files are to be read, where their content does not say it."""

    # between values; None: the one of comma, semicolon, tab and bar that gives most columns
    sep: str | None = None
    decimal: str = "."  # sign of decimals
    encoding: str = "utf-8"
    # Whether the first line holds names: yes, no, or auto (no, if it holds numbers only).
    header: str = "auto"
    sheet: str | None = None  # of an Excel file; None: the first
    # lines above the names that are left out; None: those of a title, where they are certain
    skip: int | None = None
    # rows at the end that are left out; None: one of totals, where it is certain
    skip_end: int | None = None
    # how its names, values and units become those of a study
    harmonise: Harmonisation = Harmonisation()

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
                f"sep = {self.sep!r} must be one character, not a quote nor the decimal sign "
                f"{self.decimal!r}"
            )
        self.harmonise.check()
        if self.decimal not in (".", ","):
            raise InputError(f"decimal = {self.decimal!r} must be . or ,")
        if self.header not in ("auto", "yes", "no"):
            raise InputError(f"header = {self.header!r} must be yes, no or auto")
        for name in ("skip", "skip_end"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InputError(f"{name} = {value} must be a number of lines, 0 or more")
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
    """Return whether a first line of numbers, text and missing values (None) holds names."""
    present = [value for value in first if value is not None]
    if given.header == "yes" and not present:
        raise FormatError(f"{path} has no names in its first line", "leave out", "header", "yes")
    if given.header != "auto":
        return given.header == "yes"
    return not present or not all(isinstance(value, int | float) for value in present)


def first_line_doubts(first: Sequence[object], given: Format) -> tuple[str, ...]:
    """Return the doubt about a first line of numbers as data, unless the user said so."""
    if given.header != "auto":
        return ()
    shown = shorten([str(value) for value in first], 4)
    return (
        f"the first line ({shown}) holds numbers only and is taken for data; say --header no, or "
        "yes for names",
    )


def named(columns: Columns, has_header: bool, doubts: tuple[str, ...], given: Format) -> Table:
    """Return a table, with a doubt if the names of its columns look like a row of data."""
    if has_header and given.header == "auto":
        for name, values in columns.items():
            is_number = name.replace(".", "", 1).removeprefix("-").isdecimal()
            if is_number or _has_text(values, name):
                why = "is a number" if is_number else "is also a value below it"
                line = (
                    f"the first line is taken for names, though {name!r} {why}; say --header yes, "
                    "or no for data"
                )
                return Table(columns, has_header, (*doubts, line))
    return Table(columns, has_header, doubts)


def _has_text(values: NDArray[Any], text: str) -> bool:
    """Return whether a text is among the values of a column: of a long one, among the first."""
    return values.dtype.kind == "O" and text in values[:MOST_COMPARED].tolist()


def _guess(path: Path) -> str:
    """Return a suggestion for a missing file: one beside it with nearly the same name."""
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
        if name not in (*takes, "harmonise", "skip_end"):
            raise InputError(
                f"{name} = {getattr(given, name)!r} is not for {suffix} files such as {path}; "
                "leave it out"
            )
    try:
        table = reader(path, given)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
        ) from error
    if not table.columns:
        raise DataError(f"{path} has no columns")
    table = _without_totals(table, given)
    if "decimal" in takes:
        found = thousands(table.columns, given.decimal, given.harmonise.columns)
        table = table._replace(doubts=(*table.doubts, *found))
    try:
        columns = given.harmonise.apply(table.columns, path, given.decimal)
    except InputError as error:  # which may follow from how the file was read
        error.remedy = error.remedy or "; ".join(table.doubts)
        raise
    return table._replace(columns=columns)


def _without_totals(table: Table, given: Format) -> Table:
    """Return a table without the rows at its end that hold totals."""
    count, doubt = given.skip_end, ""
    if count is None:
        count, doubt = totals_rows(table.columns, table.row_names, given.decimal)
    columns = without_end(table.columns, count, given.decimal) if count else table.columns
    return table._replace(columns=columns, doubts=(*table.doubts, *filter(None, [doubt])))


def suffix_of(path: Path) -> str:
    """Return what names the format of a file, such as .csv or .csv.gz."""
    return "".join(path.suffixes[-2 if path.suffix.lower() == ".gz" else -1 :]).lower()


class Header(NamedTuple):
    """The first lines of a CSV file."""

    names: list[str]  # of the columns; numbers from 0 if the file does not name them
    separator: str
    lines: int  # up to the names, and those that these take
    has_names: bool  # whether the file names them
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
        empty = _empty_end(file, header.separator)
        columns, rows = (_parse_plain if is_plain else _parse_with_arrow)(
            path, file, header, given.decimal, empty
        )
    doubts = (*header.doubts, *_left_out(empty), *_encoding_doubts(path, columns, given.encoding))
    return named(columns, header.has_names, doubts, given)._replace(row_names=rows)


def _empty_end(file: BinaryIO, separator: str) -> int:
    """Return how many lines at the end of a file hold separators only."""
    file.seek(max(0, file.seek(0, io.SEEK_END) - MOST_END_BYTES))
    end = file.read()
    file.seek(0)
    lines = end.decode("utf-8", "replace").splitlines()[1:]
    kept = [k for k, line in enumerate(lines, 1) if line.strip(f'{separator} "')]
    return sum(separator in line for line in lines[max(kept, default=0) :])


def _left_out(empty: int) -> tuple[str, ...]:
    """Return the line about empty rows at the end of a file."""
    what = "row of the file is" if empty == 1 else f"{empty} rows of the file are"
    return (f"the last {what} empty and left out",) if empty else ()


def _encoding_doubts(path: Path, columns: Columns, encoding: str) -> tuple[str, ...]:
    """Return the doubt about a text that has other letters than those of its encoding."""
    found = better_encoding(path, columns, encoding)
    return (f"some letters are not those of {encoding}; say --encoding {found}",) if found else ()


def better_encoding(path: Path, columns: Columns, encoding: str) -> str:
    """Return the encoding whose letters fit a file better than the one by which it was read.

    Returns
    -------
    str
        Its name, or nothing if none does or the file is no text.
    """
    if "encoding" not in READERS[suffix_of(path)][1]:
        return ""
    has_bytes = any(
        isinstance(value, bytes)
        for column in columns.values()
        if column.dtype == object
        for value in column[:MOST_COMPARED]
    )
    if codecs.lookup(encoding).name.startswith("utf") and not has_bytes:
        return ""
    with _open(path, "utf-8") as file:
        return better(file.read(MAX_HEADER_BYTES), encoding)


def _parse_plain(
    path: Path, file: BinaryIO, header: Header, decimal: str, empty: int
) -> tuple[Columns, RowNames]:
    """Parse CSV with Python's module, to the types of Arrow, except that dates stay text."""
    text = io.StringIO(file.read().decode("utf-8-sig", "surrogateescape"), newline="")
    for _ in range(header.lines):
        text.readline()
    reader = csv.reader(text, delimiter=header.separator, strict=True)
    rows: list[list[str]] = []
    numbers: list[int] = []
    number = header.lines + 1
    try:
        for row in reader:
            if len(row) == len(header.names):
                rows.append(row)
                numbers.append(number)
            elif row:  # empty lines are skipped
                raise _wrong_width(path, number, len(row), len(header.names), not rows)
            number = header.lines + reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"cannot read {path}: line {number}: {error}") from error
    rows = rows[: len(rows) - empty]
    cells = zip(*rows, strict=True) if rows else ((),) * len(header.names)
    columns = {
        name: from_text(values, decimal)
        for name, values in zip(header.names, cells, strict=True)
        if name
    }
    return columns, RowNames("line", numbers=np.array(numbers, dtype=np.int64))


def _wrong_width(
    path: Path, line: int, width: int, expected: int, is_first: bool = False
) -> DataError:
    """Return the error for a line with more or fewer values than there are columns."""
    advice = "if the names stand below lines of a title, leave these out, as with"
    reason = f"{path}, line {line}: {width} values where {expected} are expected"
    return (
        FormatError(reason, advice, "skip", line - 1)
        if is_first and width > expected
        else DataError(reason)
    )


def _parse_with_arrow(
    path: Path, file: BinaryIO, header: Header, decimal: str, empty: int
) -> tuple[Columns, RowNames]:
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
        table = parse(use_threads=True)
        table = table.slice(0, len(table) - empty)
        return from_arrow(table), _line_numbers(file, header, len(table))
    except pa.ArrowInvalid as error:
        if not invalid:
            raise DataError(f"cannot read {path}: {error}") from error
    invalid.clear()
    with contextlib.suppress(pa.ArrowInvalid):
        parse(use_threads=False)  # only a sequential parse knows the number of the line
    row = invalid[0]
    raise _wrong_width(path, row.number, row.actual_columns, row.expected_columns)


def _line_numbers(file: BinaryIO, header: Header, rows: int) -> RowNames:
    """Return in which line each row of a file begins, of which most have a line for each row."""
    file.seek(0)
    lines = 0
    while block := file.read(1 << 20):
        lines += block.count(b"\n")
        ends_in_line = not block.endswith(b"\n")
    if lines + ends_in_line == header.lines + rows:
        return RowNames("line", header.lines + 1)
    file.seek(0)
    text = io.TextIOWrapper(file, "utf-8", "replace", newline="")
    for _ in range(header.lines):
        text.readline()
    reader = csv.reader(text, delimiter=header.separator)
    numbers: list[int] = []
    number = header.lines + 1
    for row in reader:
        if row:
            numbers.append(number)
        number = header.lines + reader.line_num + 1
    text.detach()
    return RowNames("line", numbers=np.array(numbers[:rows], dtype=np.int64))


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


def _open(path: Path, encoding: str) -> BinaryIO:
    """Open a file, decompressed and in UTF-8, of which no more is read than fits in memory."""
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
    text = begin.decode("utf-8-sig", "replace")
    skip, doubts = given.skip or 0, tuple[str, ...]()
    if given.skip is None and given.header == "auto":
        skip = max(_titles(text, separator) for separator in separators)
        doubts = skip_doubts(skip, "line")
    above = text.splitlines(True)[:skip]
    text = text[sum(map(len, above)) :]
    records = [_first_record(text, separator) for separator in separators]
    names, lines = max(records, key=lambda record: len(record[0]))
    separator = separators[records.index((names, lines))]
    found = likely(begin)
    if any("\ufffd" in name for name in names) or "utf-16" in found:
        raise FormatError(
            f"cannot read {path}: it is not text in UTF-8",
            "name its encoding, such as",
            "encoding",
            found,
        )
    if not names and text.strip():
        raise DataError(
            f"cannot read {path}: its first line has a quote that does not end, or a very long "
            "value"
        )
    if names in ([], [""]):
        raise DataError(f"{path} is empty or begins with an empty line")
    if len(begin) == MAX_HEADER_BYTES and lines == len(text.splitlines()):
        raise DataError(
            f"cannot read {path}: its first line is longer than {MAX_HEADER_BYTES} bytes"
        )
    first = names
    is_named = has_names(path, [_value(name, given.decimal) for name in first], given)
    if not is_named:
        names, lines = [str(k) for k in range(len(names))], 0
        doubts = (*doubts, *first_line_doubts(first, given))
    names, repeated = _numbered(names)
    doubts = (*doubts, *repeated, *_unnamed(names, "line", len(above) + 1))
    return Header(names, separator, len(above) + lines, is_named, doubts)


def _titles(text: str, separator: str) -> int:
    """Return how many lines stand above the names of columns, as values so separated tell it."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):
        rows.extend(itertools.islice(reader, MOST_ROWS))
    place = title_rows(rows)
    widths = {len(row) for row in rows if row}
    if place == 0 or (len(widths) == 1 and not rows[0][0].strip()):
        return 0
    above = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    for _ in range(place):
        next(above)
    return above.line_num


def skip_doubts(skip: int, word: str) -> tuple[str, ...]:
    """Return the line about the rows of a title that are left out."""
    if not skip:
        return ()
    above = f"{word} 1 is" if skip == 1 else f"{word}s 1 to {skip} are"
    return (f"the names are in {word} {skip + 1}; {above} left out; say --skip {skip}, or 0",)


def _unnamed(names: Sequence[str], word: str, line: int) -> tuple[str, ...]:
    """Return the doubt about a line of names that has none of most columns."""
    if 2 * sum(not name for name in names) <= len(names):
        return ()
    return (f"{word} {line} names few of the columns; if it is a title, say --skip {line}",)


def _numbered(names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return names of which those given more than once have a number, and doubts about these."""
    counts = Counter(names)
    own: dict[str, list[str]] = {name: [] for name in counts if name and counts[name] > 1}
    numbers = {name: count(1) for name in own}
    numbered = list(names)
    for place, name in enumerate(names):
        if name in own:
            tried = (f"{name}.{k}" for k in numbers[name])
            numbered[place] = next(one for one in tried if one not in counts)
            own[name].append(numbered[place])
    doubts = [
        f"{len(called)} columns are called {name!r}: they are read as {shorten(called)}"
        for name, called in own.items()
    ]
    return numbered, tuple(doubts)


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
    """Return the values of the first row, and how many lines it takes, those in quotes too."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        return [value.strip() for value in next(reader, [])], reader.line_num
    except csv.Error:  # quotes that do not end, or not where a value does
        return [], 0


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
    lines: list[int] = []
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
            lines.append(number)
    names = dict.fromkeys(name for record in records for name in record)
    columns = {name: from_values(record.get(name) for record in records) for name in names}
    return Table(columns, row_names=RowNames("line", numbers=np.array(lines, dtype=np.int64)))


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
                rows = [list(row) for row in book[sheet].iter_rows(values_only=True)]
            finally:
                book.close()
    except (zipfile.BadZipFile, KeyError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise DataError(f"cannot read {path}: it is no Excel file (.xlsx): {error}") from None
    doubts: tuple[str, ...] = ()
    if len(names) > 1 and given.sheet is None:
        if sum(map(_has_values, rows)) < 2:
            raise FormatError(
                f"{path} has no rows in its first sheet, {sheet!r}, of {shorten(names)}",
                "name another, such as",
                "sheet",
                names[1],
            )
        doubts = (
            f"the sheet {sheet!r} is read, the first of {shorten(names)}; name one with --sheet",
        )
    return _from_rows(path, rows, given, doubts)


def _has_values(row: Sequence[Any]) -> bool:
    return any(value is not None for value in row)


def _from_rows(path: Path, rows: list[list[Any]], given: Format, doubts: tuple[str, ...]) -> Table:
    """Make a table of the rows of a sheet; the empty ones are left out, and count as others."""
    skip = given.skip or 0
    width = max(
        (k + 1 for row in rows for k, value in enumerate(row) if value is not None), default=0
    )
    rows = [row[:width] + [None] * (width - len(row)) for row in rows]
    if given.skip is None and given.header == "auto":
        skip = title_rows(rows[:MOST_ROWS])
        doubts = (*doubts, *skip_doubts(skip if any(map(_has_values, rows[:skip])) else 0, "row"))
    kept = [k for k, row in enumerate(rows) if k >= skip and _has_values(row)]
    if not kept:
        raise DataError(f"{path} is empty")
    rows, numbers = [rows[k] for k in kept], np.array(kept) + 1
    # Other decimal signs than that of Excel are in cells of text.
    made = from_values if given.decimal == "." else partial(from_cells, decimal=given.decimal)
    first = [str(value).strip() if value is not None else "" for value in rows[0]]
    is_named = has_names(path, rows[0], given)
    if is_named:
        first, repeated = _numbered(first)
        doubts = (*doubts, *repeated, *_unnamed(first, "row", numbers[0]))
    else:
        doubts = (*doubts, *first_line_doubts(first, given))
        first = [str(k) for k in range(width)]
    rows, numbers = rows[is_named:], numbers[is_named:]
    values = zip(*rows, strict=True) if rows else [()] * width
    columns = {name: made(column) for name, column in zip(first, values, strict=True) if name}
    return named(columns, is_named, doubts, given)._replace(row_names=RowNames(numbers=numbers))


Reader = Callable[[Path, Format], Table]
TEXT = ("sep", "decimal", "encoding", "header", "skip")
# By suffix: the reader, and the fields of `Format` that it heeds.
READERS: dict[str, tuple[Reader, tuple[str, ...]]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz"), (read_csv, TEXT)),
    ".parquet": (read_parquet, ()),
    **dict.fromkeys((".feather", ".arrow"), (read_feather, ())),
    **dict.fromkeys((".jsonl", ".ndjson"), (read_json_lines, ())),
    ".xlsx": (read_excel, ("decimal", "header", "sheet", "skip")),
    ".npy": (read_npy, ()),
}
