"""The exact value of a statistic over data in one place, and its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta import datasets
from gosta.datasets.data import Data, Floats
from gosta.errors import InputError
from gosta.statistics import pairs
from gosta.statistics.definition import Normalisation, RowSums, Statistic, find


class Estimate(NamedTuple):
    """A value with its interval for the population the rows were drawn from."""

    value: float
    low: float
    high: float
    standard_error: float
    level: float


def exact(
    data: Any,
    statistic: str | Statistic,
    *,
    columns: str | int | Sequence[str | int] | None = None,
    label: str | int | NDArray[Any] | Sequence[Any] | None = None,
    score: str | int | None = None,
    normalisation: Normalisation | None = None,
    interval: float | None = None,
    drop_missing: bool = False,
    **options: Any,
) -> Any:
    """Compute a pairwise statistic over all rows.

    Parameters
    ----------
    data
        A data set's name, a file, or an object in memory: see `gosta.datasets.load`.
    statistic
        A name from ``gosta statistics`` or what ``@gosta.statistic`` made.
    columns
        The columns to use, by name or position; needed where the data have more than the statistic takes.
    label, score
        The column of classes (or the classes themselves) and the column of scores. Without a score column, rows are
        scored by their only column, or of several by x · (difference of the class means).
    normalisation
        "U" leaves out pairs of a row with itself, "V" counts them. Default: the textbook's choice.
    interval
        Confidence level, such as 0.95: gives an `Estimate` with a jackknife interval, which for the AUC
        is DeLong's.
    drop_missing
        Leave out rows with missing or infinite values instead of refusing them.
    **options
        The statistic's own, such as ``variant="b"`` for ``kendall-tau``.

    Returns
    -------
    float, array or Estimate
        A number; an array for a statistic of several numbers; an `Estimate` where an interval was asked for.

    Examples
    --------
    >>> import gosta
    >>> gosta.exact([1.0, 2.0, 4.0], "gini-mean-difference")
    2.0
    >>> gosta.exact({"risk": [0.1, 0.4, 0.35, 0.8], "ill": [0, 0, 1, 1]}, "auc", columns="risk", label="ill")
    0.75
    >>> estimate = gosta.exact("breast-cancer", "auc", interval=0.95)
    >>> f"{estimate.value:.3f}, {estimate.low:.3f} to {estimate.high:.3f}"
    '0.963, 0.948 to 0.978'
    """
    return measure(
        datasets.load(data).choose(columns, label, score, drop_missing),
        statistic,
        normalisation,
        interval,
        options,
    ).value


class Measurement(NamedTuple):
    """A value and how it came about."""

    value: float | Floats | Estimate
    statistic: Statistic
    n: int
    columns: list[str]
    normalisation: Normalisation


def measure(
    data: Data,
    statistic: str | Statistic,
    normalisation: Normalisation | None = None,
    interval: float | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Measurement:
    """Compute a statistic over data whose columns are chosen, and tell what was used."""
    chosen = find(statistic)
    norm = normalisation or chosen.normalisation
    if norm not in ("U", "V"):
        raise InputError(f"normalisation = {norm!r} must be 'U' (pairs of different rows) or 'V' (all pairs)")
    parts = chosen.split(options)
    x = chosen.encoded(data, options)
    level = None if interval is None else _level(chosen, interval, x)
    value = _value(chosen, x, norm, level, parts["kernel"], parts.get("final", {}))
    return Measurement(value, chosen, len(x), sorted(data.used, key=lambda name: name == data.label), norm)


def _value(
    statistic: Statistic,
    x: Floats,
    norm: Normalisation,
    level: float | None,
    kernel_options: dict[str, Any],
    final_options: dict[str, Any],
) -> float | Floats | Estimate:
    rows = statistic.fast(x) if statistic.fast else None
    if rows is None:
        rows = pairs.row_sums(statistic, x, kernel_options)
    if statistic.total:
        return float(_total(rows, norm)[0] / 2)
    value = _finish(statistic, _means(statistic, rows, norm), final_options)
    if level is None:
        return value
    if not isinstance(value, float):
        raise InputError(f"{statistic.name} gives several numbers; an interval is for one")
    without = _means_without_one(statistic, x, rows, norm, kernel_options)
    values = np.array([_finish(statistic, means, final_options) for means in without])
    error = _jackknife(values, None if statistic.sample is None else x[:, statistic.sample])
    reach = NormalDist().inv_cdf(0.5 + level / 2) * error
    low, high = statistic.bounds
    return Estimate(value, max(low, value - reach), min(high, value + reach), error, level)


def _level(statistic: Statistic, interval: float, x: Floats) -> float:
    if isinstance(interval, bool) or not isinstance(interval, int | float) or not 0 < interval < 1:
        raise InputError(f"interval = {interval!r} must lie between 0 and 1, such as 0.95")
    if statistic.total:
        raise InputError(
            f"{statistic.name} is a count, which has no value in a population; ask for the interval of auc"
        )
    if len(x) < 3:
        raise InputError(f"an interval needs at least three rows, there are {len(x)}")
    if statistic.sample is not None and min(np.unique(x[:, statistic.sample], return_counts=True)[1]) < 2:
        raise InputError("an interval needs at least two rows of each class")
    return float(interval)


def _means(statistic: Statistic, rows: RowSums, norm: Normalisation) -> Floats:
    """Means over all rows of `local` of the row means."""
    n = len(rows.sums)
    if statistic.local is None:
        return _total(rows, norm) / n / (n if norm == "V" else n - 1)
    h = rows.sums / n if norm == "V" else (rows.sums - rows.diagonal) / (n - 1)
    return np.array([np.mean(part) for part in statistic.local(tuple(h.T))])


def _total(rows: RowSums, norm: Normalisation) -> Floats:
    """Sums over all pairs, column by column: only along one column does numpy add up pairwise, without drift."""
    sums, own = (np.array([column.sum() for column in part.T]) for part in rows)
    return sums if norm == "V" else sums - own


def _means_without_one(
    statistic: Statistic, x: Floats, rows: RowSums, norm: Normalisation, options: dict[str, Any]
) -> Floats:
    """The same, for each row as if it were not there."""
    if statistic.local is not None:
        return pairs.means_without_one(statistic, x, options, rows, norm == "V")
    n = len(x)
    sums, own = (rows.sums, rows.diagonal) if norm == "V" else (rows.sums - rows.diagonal, 0.0)
    return (_total(rows, norm) - 2 * sums + own) / ((n - 1) * (n - 1 if norm == "V" else n - 2))


def _finish(statistic: Statistic, means: Floats, options: dict[str, Any]) -> float | Floats:
    """From means over all rows to the value."""
    numbers = tuple(means.tolist())
    try:
        value = statistic.final(numbers, **options) if statistic.final else numbers
    except ZeroDivisionError:
        raise InputError(
            f"{statistic.name} is not defined here: it divides by zero, as when a column is constant, "
            "a class has a single row, or no two rows can be compared"
        ) from None
    if isinstance(value, tuple) and len(value) == 1:
        value = value[0]
    return np.array(value, dtype=np.float64) if isinstance(value, tuple | list | np.ndarray) else float(value)


def _jackknife(values: Floats, sample: Floats | None) -> float:
    """Standard error from values without one row each; two samples are two sources of chance."""
    parts = [values] if sample is None else [values[sample > 0], values[sample < 0]]
    return float(np.sqrt(sum((len(p) - 1) / len(p) * ((p - p.mean()) ** 2).sum() for p in parts)))
