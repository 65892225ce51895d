"""The exact value of a pairwise statistic over rows in one place, and its confidence interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from types import MappingProxyType
from typing import Any

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import DataError, GostaError, InputError, NumericalError
from gosta.runtime.arrays import Floats
from gosta.statistics import assumptions, pairs, triples
from gosta.statistics.definition import (
    Normalisation,
    Options,
    RowSums,
    Statistic,
    apply_to_rows,
    as_tuple,
    find,
)
from gosta.statistics.estimate import ALL_TRIPLES, POPULATION, Estimate
from gosta.statistics.intervals import (
    ROUNDING,
    Spread,
    centre_values,
    gradients,
    interval_ends,
    spread_of_rows,
)
from gosta.statistics.triples import Sampling
from gosta.statistics.weighting import weighted

Columns = str | int | Sequence[str | int]
ALIKE = "every row contributes the same, which says nothing about others"
LEAST_SAMPLE = 100  # of triples
# Of the interval for the value over all triples, where none for the population is asked for.
SAMPLE_LEVEL = 0.95


def measure(
    data: Data,
    statistic: str | Statistic,
    normalisation: Normalisation | None = None,
    interval: float | None = None,
    options: Options = MappingProxyType({}),
    sampling: Sampling | None = None,
) -> Estimate:
    """Compute a statistic over data whose columns are selected, and report what was used."""
    chosen = find(statistic)
    norm = normalisation or chosen.normalisation
    if norm not in ("U", "V"):
        raise InputError(
            f"normalisation = {norm!r} must be 'U' (pairs of different rows) or 'V' (all pairs)"
        )
    chosen.options_by_part(options)  # reports wrong ones before the data are read
    encoded = chosen.encode_complete_rows(data, options)
    n = len(encoded.x)
    estimate = measure_encoded(chosen, encoded.x, norm, interval, options, sampling)
    assumed = assumptions.collect(data, encoded, chosen, options, n)
    tuples = f"{comb(n, chosen.degree):,} {chosen.tuples}"
    columns = [name for name in encoded.columns if name != data.weights]
    return estimate._replace(
        statistic=chosen.name,
        data=data.name,
        n=n,
        columns=tuple(sorted(columns, key=lambda name: name == data.label)),
        options=dict(options),
        normalisation=norm,
        weights=data.weights,
        tuples=tuples if sampling is None else f"{sampling.size:,} of {tuples}",
        assumed=assumed,
        warnings=assumptions.doubts(data, chosen, assumed, estimate.value),
    )


def measure_encoded(
    statistic: Statistic,
    x: Floats,
    norm: Normalisation,
    interval: float | None,
    options: Options,
    sampling: Sampling | None = None,
) -> Estimate:
    """Compute a statistic over encoded rows, with an interval if asked for.

    With `sampling`, it is computed from a random sample of triples.
    """
    level = None if interval is None else check_level(statistic, interval, x)
    if statistic.degree > 2 and norm == "V":
        raise InputError(
            f"normalisation = 'V': {statistic.name} is a mean over triples of different rows",
            remedy="leave it out",
        )
    if sampling is not None:
        return _sampled_value(statistic, x, level, statistic.options_by_part(options), sampling)
    return _value(statistic, x, norm, level, statistic.options_by_part(options))


def value_of_rows(statistic: Statistic, x: Floats, options: Options) -> float | Floats:
    """Return the value over encoded rows, with the textbook's normalisation."""
    if len(x) < 2:
        raise DataError(f"{statistic.name} needs at least two rows, there are {len(x)}")
    parts = statistic.options_by_part(options)
    value: float | Floats = _value(statistic, x, statistic.normalisation, None, parts).value
    return value


def _value(
    statistic: Statistic,
    x: Floats,
    norm: Normalisation,
    level: float | None,
    options: Mapping[str, Options],
) -> Estimate:
    if statistic.median is not None:
        return _median(statistic, x, norm, level)
    kernel_options, final_options = options["kernel"], options.get("final", {})
    statistic = without_weights(statistic, x, kernel_options)
    rows = row_sums(statistic, x, kernel_options, with_diagonal=norm == "V")
    if statistic.total:
        return Estimate(float(_total(rows, norm)[0] / 2))
    if statistic.is_per_row:
        own = row_means(rows, norm)
        return Estimate(own[:, 0] / own[:, 1] if own.shape[1] > 1 else own[:, 0])
    means = _means(statistic, rows, norm)
    value = require_finite(
        statistic, means, final_values(statistic, means[None], final_options, len(x))[0]
    )
    if level is None:
        return Estimate(value)
    if not isinstance(value, float):
        raise InputError(f"{statistic.name} has several values", remedy="an interval is for one")
    centre, spread, error = _spread(statistic, x, rows, norm, options)
    low, high = interval_ends(statistic.scale, statistic.bounds, np.array([centre]), spread, level)
    if np.isnan([low, high]).any():
        raise NumericalError(f"{statistic.name} has no interval here: {ALIKE}")
    return Estimate(
        value, float(low[0]), float(high[0]), error, level, null_value=statistic.null_value
    )


def _sampled_value(
    statistic: Statistic,
    x: Floats,
    level: float | None,
    options: Mapping[str, Options],
    sampling: Sampling,
) -> Estimate:
    """Return the mean over a random sample of triples, with its standard error by sampling.

    With a level, the interval is for the population, and the standard error that of the rows too.
    """
    if statistic.degree == 2:
        raise InputError(
            f"sample = {sampling.size}: {statistic.name} is computed over all pairs",
            remedy="leave it out",
        )
    kernel_options, final_options = options["kernel"], options.get("final", {})
    statistic = without_weights(statistic, x, kernel_options)
    sample, n = triples.draw(statistic, x, kernel_options, sampling), len(x)
    means = np.array([part.mean() for part in sample.values.T])[None]
    value = require_finite(
        statistic, means, final_values(statistic, means, final_options, len(x))[0]
    )
    if not isinstance(value, float):
        raise InputError(
            f"{statistic.name} has several values", remedy="a sample gives the error of one"
        )
    psi = (
        sample.values
        @ gradients(lambda m: final_values(statistic, m, final_options, len(x)), means)[0, 0]
    )
    variance = float(psi.var(ddof=1)) / sampling.size
    if level is not None:
        variance += 9 * triples.variance_of_rows(psi, sample.rows, n) / n
    spread = Spread(
        np.array([np.sqrt(variance)]), np.array([n - 1.0 if level else np.inf]), np.array([n / 3])
    )
    shown = SAMPLE_LEVEL if level is None else level
    low, high = interval_ends(statistic.scale, statistic.bounds, np.array([value]), spread, shown)
    return Estimate(
        value,
        float(low[0]),
        float(high[0]),
        float(spread.error[0]),
        shown,
        covers=ALL_TRIPLES if level is None else POPULATION,
    )


def _median(statistic: Statistic, x: Floats, norm: Normalisation, level: float | None) -> Estimate:
    """Return the median of the kernel over pairs of rows."""
    assert statistic.median is not None
    rows, weights = (x[:, :-1], x[:, -1]) if statistic.weights else (x, None)
    with np.errstate(over="ignore", invalid="ignore"):
        require_finite(statistic, np.ptp(rows, axis=0), np.zeros(1))  # differences of rows
        pair_values = statistic.median(rows, weights, norm == "V")
        value = pair_values.median if pair_values.total > 0 else np.nan
    require_finite(statistic, np.zeros(1), np.array([value]))
    if level is None:
        return Estimate(value)
    if weights is not None:
        raise InputError(
            f"{statistic.name} has no interval: it depends on the number of rows, which weights "
            "are not"
        )
    low, high = pair_values.ends(level)
    if low == high and pair_values.quantile(1) == pair_values.quantile(pair_values.total):
        raise NumericalError(f"{statistic.name} has no interval here: {ALIKE}")
    return Estimate(value, low, high, np.nan, level)


def without_weights(statistic: Statistic, x: Floats, kernel_options: Options) -> Statistic:
    """Return a statistic with weights as a plain one, whose kernel takes them as last numbers."""
    if not statistic.weights:
        return statistic
    example = pairs.example(statistic, x[:, :-1], kernel_options)
    return weighted(statistic, len(as_tuple(example)), isinstance(example, tuple | list))


def _spread(
    statistic: Statistic,
    x: Floats,
    rows: RowSums,
    norm: Normalisation,
    options: Mapping[str, Options],
) -> tuple[float, Spread, float]:
    """Return what an interval is about, its spread, and the standard error of the value itself."""
    kernel_options, n = options["kernel"], len(x)

    def final(means: Floats) -> Floats:
        return final_values(statistic, means, options.get("final", {}), n)

    def centres(means: Floats, count: int) -> Floats:
        return centre_values(statistic, means, count, final)

    means = _means(statistic, rows, norm)[None]
    centre, sample = (
        centres(means, n)[0, 0],
        None if statistic.sample_index is None else x[:, statistic.sample_index],
    )
    if statistic.local is None:
        slopes = gradients(lambda m: centres(m, n), means)[0, 0]
        spread = spread_of_rows(statistic, row_means(rows, norm), slopes, sample)
        if spread.error[0] <= ROUNDING * float(
            np.abs(slopes * means[0]).sum()
        ):  # differences of means cancel
            spread = spread._replace(error=np.zeros(1))
        if (
            statistic.degree > 2
        ):  # the jackknife's factor is 9(n − 1)/(n − 3)², of pairs 4(n − 1)/(n − 2)²
            spread = spread._replace(
                error=spread.error * 1.5 * (n - 2) / (n - 3), trials=np.array([n / 3])
            )
        error = float(spread.error[0])
        return centre, spread, error if error > ROUNDING * abs(centre) else 0.0
    left_out = _left_out_means(statistic, x, rows, norm, kernel_options)
    values = np.column_stack([final(left_out), centres(left_out, n - 1)])
    if np.isnan(values).any() or np.isnan(centre):
        row = np.isnan(values).any(axis=1).argmax() + 1
        raise NumericalError(
            f"{statistic.name} is not defined without row {row}, so it has no interval here"
        )
    error, of_centre = (_jackknife(v, sample) for v in values.T)
    return centre, Spread(np.array([of_centre]), np.array([n - 1.0]), np.array([n / 2])), error


def row_sums(
    statistic: Statistic, x: Floats, kernel_options: Options, with_diagonal: bool = True
) -> RowSums:
    """Return sums over the other rows of kernel(x_i, x_j).

    They are computed by the fast form if there is one, else over all pairs.
    """
    if statistic.degree > 2:  # such that the mean over the other rows is that over two others
        return RowSums(triples.row_sums(statistic, x, kernel_options) * 2 / (len(x) - 2), None)
    with np.errstate(all="ignore"):  # overflows are found in the value
        fast = statistic.fast(x) if statistic.fast else None
    if fast is not None:
        return fast
    sums = pairs.row_sums(statistic, x, kernel_options)
    return RowSums(sums, pairs.diagonal(statistic, x, kernel_options) if with_diagonal else None)


def row_means(rows: RowSums, norm: Normalisation) -> Floats:
    """Return the mean kernel value of each row with others ("U") or all rows ("V"): n × k."""
    n = len(rows.sums)
    if norm == "U":
        return rows.sums / (n - 1)
    assert rows.diagonal is not None
    return (rows.sums + rows.diagonal) / n


def check_level(statistic: Statistic, interval: float, x: Floats) -> float:
    """Return a confidence level if the statistic and the rows allow an interval."""
    if (
        isinstance(interval, bool)
        or not isinstance(interval, int | float | np.floating)
        or not 0 < interval < 1 - 1e-9
    ):
        raise InputError(f"interval = {interval!r} must lie between 0 and 1, such as 0.95")
    if statistic.total:
        raise InputError(
            f"{statistic.name} is a count, which has no value in a population",
            remedy="use the interval of auc",
        )
    if statistic.no_interval:
        raise InputError(f"{statistic.name} has no interval: {statistic.no_interval}")
    if statistic.is_per_row:
        raise InputError(
            f"{statistic.name} has a value for each row", remedy="an interval is for one"
        )
    if len(x) <= statistic.degree:
        least = "three" if statistic.degree == 2 else "four"
        raise DataError(f"an interval needs at least {least} rows, there are {len(x)}")
    sample = statistic.sample_index
    if sample is not None and min(np.unique(x[:, sample], return_counts=True)[1]) < 2:
        raise DataError("an interval needs at least two rows of each class")
    return float(interval)


def _means(statistic: Statistic, rows: RowSums, norm: Normalisation) -> Floats:
    """Return the means over all rows of `local` of the row means."""
    if statistic.local is None:
        n = len(rows.sums)
        with np.errstate(over="ignore"):
            means = _total(rows, norm) / n / (n if norm == "V" else n - 1)
        # Of numbers near the largest float, the mean is one where the sum is not.
        return (
            means
            if np.isfinite(means).all()
            else np.array([part.mean() for part in row_means(rows, norm).T])
        )
    return np.array([part.mean() for part in _apply(statistic, "local", row_means(rows, norm)).T])


def _total(rows: RowSums, norm: Normalisation) -> Floats:
    """Return sums over all pairs; numpy adds pairwise, without drift, along one column only."""
    parts = rows if norm == "V" else rows[:1]
    sums = [np.array([column.sum() for column in part.T]) for part in parts if part is not None]
    return np.asarray(sum(sums))


def _left_out_means(
    statistic: Statistic, x: Floats, rows: RowSums, norm: Normalisation, options: Options
) -> Floats:
    """Return the means over all rows but one of `local` of the row means, for each row left out."""
    n = len(x)
    own = rows.diagonal if norm == "V" and rows.diagonal is not None else np.zeros((1, 1))
    count = n - 1 if norm == "V" else n - 2
    if statistic.local is not None:
        return pairs.leave_one_out_means(statistic, x, options, rows.sums + own, count)
    return (_total(rows, norm) - 2 * rows.sums - own) / ((n - 1) * count)


def final_values(statistic: Statistic, means: Floats, options: Options, n: int) -> Floats:
    """Return values, m × p, from means over all n rows, m × k; NaN where there is no value."""
    if statistic.final is None:
        return means
    return _apply(
        statistic, "final", means, **options, **({"rows": n} if statistic.final_needs_rows else {})
    )


def _apply(statistic: Statistic, part: str, means: Floats, /, **options: Any) -> Floats:
    try:
        return apply_to_rows(getattr(statistic, part), means, **options)
    except GostaError:
        raise
    except Exception as error:  # a user's function can raise anything
        raise InputError(
            f"{part} fails with {type(error).__name__}: {error}", statistic=statistic.name
        ) from error


def require_finite(statistic: Statistic, means: Floats, values: Floats) -> float | Floats:
    """Return a number, or an array of several; raise an error unless all are finite."""
    if not np.isfinite(means).all():
        raise NumericalError(
            f"{statistic.name} is not finite here: the numbers are too large",
            remedy="use larger units",
        )
    if not np.isfinite(values).all():
        cases = "a column is constant, a class has a single row, or no two rows can be compared"
        raise NumericalError(
            f"{statistic.name} is not defined here: it divides by zero, as when {cases}"
        )
    return float(values[0]) if len(values) == 1 else values


def _jackknife(values: Floats, sample: Floats | None) -> float:
    """Return the standard error from leave-one-out values; two samples contribute two variances."""
    parts = [values] if sample is None else [values[sample > 0], values[sample < 0]]
    return float(np.sqrt(sum((len(p) - 1) / len(p) * ((p - p.mean()) ** 2).sum() for p in parts)))
