"""Data by name, from files, or from objects in memory, checked once here.

>>> import gosta
>>> data = gosta.datasets.load("breast-cancer")
>>> len(data), data.label
(569, 'diagnosis')
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gosta.datasets import files, packaged, synthetic
from gosta.datasets.data import Data, as_column, is_arrow
from gosta.errors import InputError, unknown
from gosta.runtime import machine

__all__ = ["DATASETS", "Data", "load"]


class Entry(NamedTuple):
    """A data set that has a name: what it is and how it is had."""

    summary: str
    make: Callable[..., Data]
    takes: str = ""  # "path": the user may give the file; "size": made on demand from n and seed


DATASETS = {
    "breast-cancer": Entry("569 tumours, 30 measurements each, benign or malignant", packaged.breast_cancer),
    "iris": Entry("150 flowers of 3 species, 4 lengths each", packaged.iris),
    "wine": Entry("178 wines of 3 cultivars, 13 chemical measurements each", packaged.wine),
    "digits": Entry("1797 handwritten digits, 64 grey values each", packaged.digits),
    "wine-quality-red": Entry(
        "1599 red wines, 11 measurements and a mark (the paper's; extra 'paper')",
        packaged.wine_quality_red,
        "path",
    ),
    "svmguide3": Entry(
        "1260 rows of 21 features in two classes (the paper's; extra 'paper')", packaged.svmguide3, "path"
    ),
    "two-gaussians": Entry(
        "two overlapping classes in the plane (made from n and seed)", synthetic.two_gaussians, "size"
    ),
    "clusters": Entry("five round clusters in the plane (made from n and seed)", synthetic.clusters, "size"),
    "lognormal": Entry("incomes, one column (made from n and seed)", synthetic.lognormal, "size"),
    "survival": Entry(
        "lifetimes, partly censored, and a risk score (made from n and seed)", synthetic.survival, "size"
    ),
}
DEFAULT_SIZE = 1000
BYTES_A_ROW = 250  # the columns and the hungriest statistic's work on them (kendall-tau's: 243, measured)


def load(source: Any, *, n: int | None = None, seed: int | None = None, path: str | Path | None = None) -> Data:
    """Load data by name, from a file, or from what is in memory.

    Parameters
    ----------
    source
        A name from ``gosta datasets``; the path of a .csv, .tsv, .csv.gz, .parquet or .npy file; a numpy
        array (rows × columns), pandas or Arrow table, mapping of columns, or list of rows.
    n
        Rows: how many to make of synthetic data (default 1000), or how many to take from the top of others.
    seed
        For synthetic data (default 0).
    path
        The user's own copy of the file behind ``wine-quality-red`` or ``svmguide3``.

    Examples
    --------
    >>> load("lognormal", n=10, seed=1)
    Data('lognormal', 10 rows, columns: income)
    >>> load([[1, 2], [3, 4], [5, 6]]).to_floats(["1"]).tolist()
    [[2.0], [4.0], [6.0]]
    """
    n = None if n is None else _whole("n", n, 1)
    entry = DATASETS.get(source) if isinstance(source, str) else None
    if path is not None and (entry is None or entry.takes != "path"):
        able = ", ".join(name for name, e in DATASETS.items() if e.takes == "path")
        raise InputError(f"path = {str(path)!r} goes with the data sets {able} only, not with {_called(source)}")
    if seed is not None and (entry is None or entry.takes != "size"):
        raise InputError(f"seed = {seed} goes with synthetic data only, not with {_called(source)}")
    if entry is not None and entry.takes == "size":
        size = DEFAULT_SIZE if n is None else n
        machine.require_memory(BYTES_A_ROW * size, f"{size} rows of {source}")
        return entry.make(size, 0 if seed is None else _whole("seed", seed, 0))
    if entry is not None:
        data = entry.make(_existing(path)) if path is not None else entry.make()
    else:
        data = _from_file(source) if isinstance(source, str | Path) else _from_memory(source)
    return data if n is None else data.head(n)


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} = {value!r} must be a whole number, {least} or more")
    return int(value)


def _called(source: Any) -> str:
    return repr(source) if isinstance(source, str) else str(source) if isinstance(source, Path) else "data in memory"


def _existing(path: str | Path) -> Path:
    if not Path(path).is_file():
        raise InputError(f"no such file: {path}")
    return Path(path)


def _from_file(source: str | Path) -> Data:
    path = Path(source)
    if isinstance(source, str) and not path.suffix and not path.exists():
        raise unknown("data set or file", source, DATASETS)
    return _data(str(source), files.read(path))


def _from_memory(source: Any) -> Data:
    if isinstance(source, Data):
        return source
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        names = [str(c) for c in source.columns]
        if len(set(names)) < len(names):
            raise InputError(f"two columns of the data frame have the same name: {', '.join(sorted(names)[:6])}")
        source = {name: source.iloc[:, k] for k, name in enumerate(names)}
    elif pandas is not None and isinstance(source, pandas.Series):
        source = {str(source.name if source.name is not None else 0): source}
    elif is_arrow(source):
        import pyarrow as pa

        try:
            source = files.from_arrow(pa.table(source))
        except pa.ArrowInvalid:  # one column, not a table
            source = {"0": source}
    if isinstance(source, Mapping):
        return _data("the data", {str(k): v for k, v in source.items()})
    try:
        array = source if isinstance(source, np.ma.MaskedArray) else np.asarray(source)
    except ValueError:
        raise InputError("the rows of the data have different lengths; each row needs one value per column") from None
    return _data("the data", files.from_array(array, "the data"))


def _data(name: str, given: Mapping[str, Any]) -> Data:
    """Columns by convention: 'label' holds classes, 'score' scores."""
    columns = {called: as_column(called, values) for called, values in given.items()}
    lengths = {len(column) for column in columns.values()}
    if lengths <= {0}:
        raise InputError(f"{name} has no rows")
    if len(lengths) > 1:
        raise InputError(f"the columns of {name} have different lengths: {sorted(lengths)}")
    return Data(
        name,
        columns,
        label="label" if "label" in columns else None,
        score="score" if "score" in columns else None,
    )
