"""The exact value of a statistic over data in one place, and its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gosta import datasets
from gosta.datasets.data import Data
from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.statistics import pairs
from gosta.statistics.definition import Normalisation, RowSums, Statistic, apply_to_rows, find


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
    label: Any = None,
    score: Any = None,
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
        datasets.load(data).select(columns, label, score, drop_missing),
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
    parts = chosen.options_by_part(options)
    x = chosen.encode_rows(data, options)
    level = None if interval is None else check_level(chosen, interval, x)
    value = exact_value(chosen, x, norm, level, parts["kernel"], parts.get("final", {}))
    return Measurement(value, chosen, len(x), sorted(data.used_columns, key=lambda name: name == data.label), norm)


def exact_value(
    statistic: Statistic,
    x: Floats,
    norm: Normalisation,
    level: float | None,
    kernel_options: dict[str, Any],
    final_options: dict[str, Any],
) -> float | Floats | Estimate:
    """The value over encoded rows, with its interval if a level is given."""
    rows = row_sums(statistic, x, kernel_options, with_diagonal=norm == "V")
    if statistic.total:
        return float(_total(rows, norm)[0] / 2)
    means = _means(statistic, rows, norm)
    value = require_finite(statistic, means, final_values(statistic, means[None], final_options)[0])
    if level is None:
        return value
    if not isinstance(value, float):
        raise InputError(f"{statistic.name} gives several numbers; an interval is for one")
    values = final_values(statistic, _leave_one_out_means(statistic, x, rows, norm, kernel_options), final_options)[
        :, 0
    ]
    if np.isnan(values).any():
        raise InputError(
            f"{statistic.name} is not defined without row {np.isnan(values).argmax() + 1}, so it has no interval here"
        )
    error = _jackknife(values, None if statistic.sample_index is None else x[:, statistic.sample_index])
    low, high = interval_bounds(statistic, value, error, level)
    return Estimate(value, float(low), float(high), error, level)


def interval_bounds(statistic: Statistic, value: Any, error: Any, level: float) -> tuple[Any, Any]:
    """Where intervals begin and end, from values and their standard errors."""
    reach = NormalDist().inv_cdf(0.5 + level / 2) * error
    return np.maximum(statistic.bounds[0], value - reach), np.minimum(statistic.bounds[1], value + reach)


def row_sums(statistic: Statistic, x: Floats, kernel_options: dict[str, Any], with_diagonal: bool = True) -> RowSums:
    """Sums over the other rows of kernel(x_i, x_j): the fast form if there is one, else all pairs."""
    with np.errstate(all="ignore"):  # what overflows is found in the value
        fast = statistic.fast(x) if statistic.fast else None
    if fast is not None:
        return fast
    sums = pairs.row_sums(statistic, x, kernel_options)
    return RowSums(sums, pairs.diagonal(statistic, x, kernel_options) if with_diagonal else None)


def row_means(rows: RowSums, norm: Normalisation) -> Floats:
    """The mean kernel value of each row with the others, or with all: n × k."""
    n = len(rows.sums)
    if norm == "U":
        return rows.sums / (n - 1)
    assert rows.diagonal is not None
    return (rows.sums + rows.diagonal) / n


def check_level(statistic: Statistic, interval: float, x: Floats) -> float:
    """A confidence level that the data can bear."""
    if isinstance(interval, bool) or not isinstance(interval, int | float | np.floating) or not 0 < interval < 1 - 1e-9:
        raise InputError(f"interval = {interval!r} must lie between 0 and 1, such as 0.95")
    if statistic.total:
        raise InputError(
            f"{statistic.name} is a count, which has no value in a population; ask for the interval of auc"
        )
    if len(x) < 3:
        raise InputError(f"an interval needs at least three rows, there are {len(x)}")
    if statistic.sample_index is not None and min(np.unique(x[:, statistic.sample_index], return_counts=True)[1]) < 2:
        raise InputError("an interval needs at least two rows of each class")
    return float(interval)


def _means(statistic: Statistic, rows: RowSums, norm: Normalisation) -> Floats:
    """Means over all rows of `local` of the row means."""
    if statistic.local is None:
        n = len(rows.sums)
        return _total(rows, norm) / n / (n if norm == "V" else n - 1)
    return np.array([part.mean() for part in _apply(statistic, "local", row_means(rows, norm)).T])


def _total(rows: RowSums, norm: Normalisation) -> Floats:
    """Sums over all pairs, column by column: only along one column does numpy add up pairwise, without drift."""
    parts = rows if norm == "V" else rows[:1]
    return sum(np.array([column.sum() for column in part.T]) for part in parts if part is not None)  # type: ignore[return-value]


def _leave_one_out_means(
    statistic: Statistic, x: Floats, rows: RowSums, norm: Normalisation, options: dict[str, Any]
) -> Floats:
    """The same, for each row as if it were not there."""
    n = len(x)
    own = rows.diagonal if norm == "V" and rows.diagonal is not None else np.zeros((1, 1))
    count = n - 1 if norm == "V" else n - 2
    if statistic.local is not None:
        return pairs.leave_one_out_means(statistic, x, options, rows.sums + own, count)
    return (_total(rows, norm) - 2 * rows.sums - own) / ((n - 1) * count)


def final_values(statistic: Statistic, means: Floats, options: dict[str, Any]) -> Floats:
    """From means over all rows, m × k, to values, m × p; NaN where there is none."""
    return _apply(statistic, "final", means, **options) if statistic.final else means


def _apply(statistic: Statistic, part: str, rows: Floats, **options: Any) -> Floats:
    try:
        return apply_to_rows(getattr(statistic, part), rows, **options)
    except InputError:
        raise
    except Exception as error:  # whatever a user's function may do
        raise InputError(f"{statistic.name}: {part} fails with {type(error).__name__}: {error}") from error


def require_finite(statistic: Statistic, means: Floats, values: Floats) -> float | Floats:
    """A number, or an array of several; refused where it is none."""
    if not np.isfinite(means).all():
        raise InputError(f"{statistic.name} is not finite here: the numbers are too large; use smaller units")
    if not np.isfinite(values).all():
        raise InputError(
            f"{statistic.name} is not defined here: it divides by zero, as when a column is constant, "
            "a class has a single row, or no two rows can be compared"
        )
    return float(values[0]) if len(values) == 1 else values


def _jackknife(values: Floats, sample: Floats | None) -> float:
    """Standard error from values without one row each; two samples are two sources of chance."""
    parts = [values] if sample is None else [values[sample > 0], values[sample < 0]]
    return float(np.sqrt(sum((len(p) - 1) / len(p) * ((p - p.mean()) ** 2).sum() for p in parts)))
