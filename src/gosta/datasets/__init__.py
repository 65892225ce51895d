"""Data by name, from files, or from objects in memory; all input is validated here.

>>> import gosta
>>> data = gosta.datasets.load("breast-cancer")
>>> len(data), data.label
(569, 'diagnosis')
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from gosta.datasets import files
from gosta.datasets.columns import (
    Columns,
    as_column,
    concatenate,
    from_array,
    from_arrow,
    is_arrow,
    mark_decimal_sign,
)
from gosta.datasets.data import Data
from gosta.datasets.harmonise import Harmonisation, as_harmonisation
from gosta.datasets.named import DATASETS
from gosta.datasets.row_names import below
from gosta.errors import DataError, GostaError, InputError, unknown
from gosta.runtime import machine
from gosta.runtime.extras import require

__all__ = ["DATASETS", "Data", "load"]

DEFAULT_SIZE = 1000
# the columns and the working memory of a statistic (kendall-tau's: 243, measured)
BYTES_PER_ROW = 250


def load(
    source: object,
    *,
    n: int | None = None,
    seed: int | None = None,
    path: str | Path | None = None,
    sep: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: str = "auto",
    sheet: str | None = None,
    skip: int | None = None,
    skip_end: int | None = None,
    harmonise: Harmonisation | Mapping[str, Any] = MappingProxyType({}),
) -> Data:
    """Load data by name, from files, or from an object in memory.

    Parameters
    ----------
    source
        A name from ``gosta datasets``; the path of a file (.csv, .tsv, .csv.gz, .parquet, .feather,
        .jsonl, .xlsx, .npy), of a folder of such files or a pattern (``"rows/*.csv"``), or "-" for
        the standard input; a list of paths (`pathlib.Path`); a numpy array (rows × columns), pandas
        or Arrow table, mapping of columns, list of rows.
    n
        Number of rows: to draw of synthetic data (default 1000), or to take from the top of others.
    seed
        For synthetic data (default 0).
    path
        The user's own copy of the file behind ``wine-quality-red`` or ``svmguide3``.
    sep, decimal, encoding
        Of text: the character between values (by default found in the first line), the decimal
        sign, the encoding.
    header
        Whether the first line holds names: "yes", "no", or "auto": no, if it holds numbers only.
    sheet
        The sheet of an Excel file; by default the first.
    skip
        How many lines stand above the names, such as a title; by default they are found where that
        is certain, and a warning says so.
    skip_end
        How many rows at the end are left out; by default one of totals, where that is certain, and
        a warning says so.
    harmonise
        How a file's names, values and units become others: ``columns`` (``{"died":
        "verstorben"}``, the new name first), ``values`` (``{"died": {"ja": "yes"}}``), ``scale``
        (``{"risk": 0.01}``) and ``na_values`` (``["k.A.", -9]``, or by column).

    Returns
    -------
    Data
        Its columns, and which of them hold labels and scores where that is known.

    Examples
    --------
    >>> load("lognormal", n=10, seed=1)
    Data('lognormal', 10 rows, columns: income)
    >>> load([[1, 2], [3, 4], [5, 6]]).to_floats(["1"]).tolist()
    [[2.0], [4.0], [6.0]]
    """
    n = None if n is None else _integer("n", n, 1)
    file_format = files.Format(
        sep, decimal, encoding, header, sheet, skip, skip_end, as_harmonisation(harmonise)
    ).check()
    entry = DATASETS.get(source) if isinstance(source, str) else None
    if path is not None and (entry is None or entry.takes != "path"):
        able = ", ".join(name for name, e in DATASETS.items() if e.takes == "path")
        raise InputError(
            f"path = {str(path)!r} is for the data sets {able} only, not for {_called(source)}"
        )
    if seed is not None and (entry is None or entry.takes != "size"):
        raise InputError(f"seed = {seed} is for synthetic data only, not for {_called(source)}")
    if entry is not None and entry.takes == "size":
        size = DEFAULT_SIZE if n is None else n
        machine.require_memory(BYTES_PER_ROW * size, f"{size} rows of {source}")
        return entry.make(size, 0 if seed is None else _integer("seed", seed, 0))
    if entry is not None:
        if path is not None and not Path(path).is_file():
            raise DataError(f"no such file: {path}")
        data = entry.make() if path is None else entry.make(Path(path))
    elif _are_paths(source):
        data = _from_files(source, file_format)
        if decimal != ".":
            data = dataclasses.replace(data, columns=mark_decimal_sign(data.columns, decimal))
        file_format = files.DEFAULT
    else:
        data = _from_memory(source)
    for name in file_format.options():
        raise InputError(
            f"{name} = {getattr(file_format, name)!r} is for files, not for {_called(source)}; "
            "leave it out"
        )
    return data if n is None else data.head(n)


def _are_paths(source: object) -> bool:
    """Return whether a source is a path or several; a list of strings is data."""
    return isinstance(source, str | Path) or (
        isinstance(source, list | tuple)
        and bool(source)
        and all(isinstance(one, Path) for one in source)
    )


def _from_files(source: Any, file_format: files.Format) -> Data:
    """Read a file, a folder, several files, or the standard input."""
    if source == "-":
        return _from_standard_input(file_format)
    if source == "":  # an unset variable of a shell; as a path, the current folder
        raise InputError(
            "the name of the data is empty; give a file, a folder (. is the current one) or a "
            "data set"
        )
    if isinstance(source, list | tuple):
        paths, name = list(source), f"{len(source)} files"
    else:
        path, name = Path(source), str(source)
        if not path.exists() and any(sign in name for sign in "*?["):
            anchor = path.anchor or "."
            paths = sorted(Path(anchor).glob(str(path.relative_to(path.anchor))))
            if not paths:
                raise DataError(f"no file matches {name}")
        elif isinstance(source, str) and not path.suffix and not path.exists():
            raise unknown("data set or file", source, DATASETS)
        elif not path.is_dir():
            return _from_table(name, files.read(path, file_format))
        else:
            paths = sorted(
                p
                for p in path.iterdir()
                if files.suffix_of(p) in files.READERS and p.name[0] not in "._"
            )
            if not paths:
                raise DataError(
                    f"the folder {name} has no file that can be read: {', '.join(files.READERS)}"
                )
    if len(paths) == 1:
        return _from_table(str(paths[0]), files.read(paths[0], file_format))
    parts = [_from_table(str(path), files.read(path, file_format)) for path in paths]
    columns = concatenate([(part.name, part.columns) for part in parts], name)
    origin = next(
        free
        for free in ("file", *(f"file-{k}" for k in range(len(columns) + 1)))
        if free not in columns
    )
    columns[origin] = np.repeat(
        np.array([path.name for path in paths], dtype=object), [len(part) for part in parts]
    )
    named_parts = list(zip(paths, parts, strict=True))
    made, headers = _data(name, columns), {part.has_header for part in parts}
    doubts = tuple(dict.fromkeys(doubt for part in parts for doubt in part.doubts))
    return dataclasses.replace(
        made,
        files=origin,
        features=(),
        has_header=headers.pop() if len(headers) == 1 else None,
        doubts=doubts,
        row_names=below([(path.name, part.row_names, len(part)) for path, part in named_parts]),
    )


def _from_standard_input(file_format: files.Format) -> Data:
    """Read the standard input, in the format of its first bytes: text is CSV or JSON lines."""
    name = "the standard input"
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError(
            "- reads the standard input, which is a terminal; pipe a file into it: ... | gosta "
            "exact -"
        )
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "input"
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        with copy.open("rb") as file:
            begin = file.read(64).lstrip()
        suffix = next((suffix for sign, suffix in SIGNS.items() if begin.startswith(sign)), ".csv")
        copy = copy.rename(copy.with_suffix(suffix))
        try:
            return _from_table(name, files.read(copy, file_format))
        except GostaError as error:
            raise type(error)(str(error).replace(str(copy), name)) from None


def _from_table(name: str, table: files.Table) -> Data:
    return dataclasses.replace(
        _data(name, table.columns),
        has_header=table.has_header,
        doubts=table.doubts,
        row_names=table.row_names,
    )


def _integer(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} = {value!r} must be a whole number, {least} or more")
    return int(value)


# How files begin that are no CSV, and the suffix of their format.
SIGNS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".feather",
    b"PK": ".xlsx",
    b"\x93NUMPY": ".npy",
    b"{": ".jsonl",
}


def _called(source: object) -> str:
    return (
        repr(source)
        if isinstance(source, str)
        else str(source)
        if isinstance(source, Path)
        else "data in memory"
    )


def _from_memory(source: Any) -> Data:
    if isinstance(source, Data):
        return source
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        names = [str(c) for c in source.columns]
        if len(set(names)) < len(names):
            raise DataError(
                f"two columns of the data frame have the same name: {', '.join(sorted(names)[:6])}"
            )
        source = {name: source.iloc[:, k] for k, name in enumerate(names)}
    elif pandas is not None and isinstance(source, pandas.Series):
        source = {str(source.name if source.name is not None else 0): source}
    elif type(source).__module__.startswith("polars") and hasattr(source, "iter_columns"):
        # Arrow would lose the order of an Enum
        source = {column.name: column for column in source.iter_columns()}
    elif is_arrow(source):
        pa = require("pyarrow", "data", "reading Arrow data")
        try:
            return _data("the data", from_arrow(pa.table(source)))
        except pa.ArrowInvalid:  # one column, not a table
            source = {"0": source}
    if isinstance(source, Mapping):
        named = ((str(name), values) for name, values in source.items())
        return _data("the data", {name: as_column(name, values) for name, values in named})
    try:
        array = source if isinstance(source, np.ma.MaskedArray) else np.asarray(source)
    except ValueError:
        raise DataError(
            "the rows of the data have different lengths; each row needs one value per column"
        ) from None
    return _data("the data", from_array(array, "the data"))


def _data(name: str, columns: Columns) -> Data:
    """Make data of columns; by convention, 'label' holds classes and 'score' scores."""
    lengths = {len(column) for column in columns.values()}
    if lengths <= {0}:
        raise DataError(f"{name} has no rows")
    if len(lengths) > 1:
        raise DataError(f"the columns of {name} have different lengths: {sorted(lengths)}")
    label, score = (role if role in columns else None for role in ("label", "score"))
    return Data(name, columns, label, score)
