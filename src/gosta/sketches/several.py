"""Several statistics of one table, over all rows and over groups of them: records with all that was assumed.

Rows are encoded once, over the whole table, and then cut into groups: so every group has the same positive class, the
same direction of the score, the same bandwidth. Only where a row's part depends on its rank among the others (trimmed
means, partial AUC) are groups encoded one by one. The value over all rows counts pairs across groups too; beside it
stand the mean of the groups' own values, and how much these differ beyond chance.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from math import comb, isfinite
from typing import Any, NamedTuple

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import DataError, GostaError, InputError, NumericalError, unknown
from gosta.runtime.arrays import Booleans, Floats
from gosta.runtime.extras import is_installed
from gosta.sketches.definition import SKETCHES
from gosta.sketches.exact import compare
from gosta.sketches.layout_builder import Bins, option_names
from gosta.statistics import STATISTICS, assumptions
from gosta.statistics import exact as rows
from gosta.statistics.definition import Normalisation, Options, Statistic, find, with_weights
from gosta.statistics.exact import Estimate, measure_encoded
from gosta.statistics.heterogeneity import Heterogeneity, heterogeneity
from gosta.statistics.references import Reference, load_statistic, parse_references
from gosta.statistics.triples import Sampling

Measure = Callable[[Booleans], float | Floats | Estimate]  # the value over some of the rows
LEVEL = 0.95  # of intervals of groups, unless another is asked for


class Finding(NamedTuple):
    """A value over all rows or over a group, or the reason why there is none."""

    statistic: str  # as it was asked for
    group: str | None  # None: all rows
    n: int  # complete rows
    value: float | list[float] | None
    low: float | None  # of the interval; None: no interval
    high: float | None
    standard_error: float | None
    reason: str  # why there is no value, or no interval though one was asked for


class Group(NamedTuple):
    """Findings of the groups of one statistic, and what follows from them."""

    findings: list[Finding]
    mean: float | list[float] | None  # of the groups' own values, each counting once
    groups: int  # in that mean
    heterogeneity: Heterogeneity | None
    reason: str  # why there is no heterogeneity


class Result(NamedTuple):
    """One statistic over all rows, and over groups if these were asked for."""

    pooled: Finding
    columns: list[str]
    options: dict[str, Any]
    normalisation: Normalisation | None  # None for a statistic that is not pairwise
    assumed: Mapping[str, Any]
    warnings: tuple[str, ...]
    labels: tuple[str, ...] = ()  # of the numbers of a curve
    by: str | None = None
    grouped: Group | None = None
    weights: str | None = None  # the column of weights
    tuples: str = ""  # how many pairs or triples of rows were counted, in words
    seconds: float = 0.0  # that the computation took

    def record(self, level: float | None) -> dict[str, Any]:
        """Return all of it as plain values; `level` is that of the intervals."""
        record = _record(self.pooled, level)
        del record["group"]
        record |= {
            "columns": self.columns,
            "options": self.options,
            "normalisation": self.normalisation,
        }
        record |= {
            "assumed": dict(self.assumed),
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 6),
        }
        if self.tuples:
            record["tuples"] = self.tuples
        if self.weights is not None:
            record["weights"] = self.weights
        if self.labels:
            record["labels"] = list(self.labels)
        if self.grouped is not None:
            found = self.grouped
            record |= {"by": self.by, "groups": [_record(one, level) for one in found.findings]}
            record |= {"mean_of_groups": found.mean, "groups_in_mean": found.groups}
            record["heterogeneity"] = (
                None if found.heterogeneity is None else found.heterogeneity._asdict()
            )
            record["heterogeneity_reason"] = found.reason
        return record


def _record(finding: Finding, level: float | None) -> dict[str, Any]:
    record = {
        name: getattr(finding, name) for name in ("statistic", "group", "n", "value", "reason")
    }
    if finding.low is not None:
        ends = {"low": finding.low, "high": finding.high, "standard_error": finding.standard_error}
        record["interval"] = {
            k: v if v is not None and isfinite(v) else None for k, v in ends.items()
        } | {"level": level}
    return record


def compute(
    data: Data,
    statistics: Sequence[str | Statistic],
    *,
    by: object = None,
    normalisation: Normalisation | None = None,
    interval: float | None = None,
    options: Options | None = None,
    sampling: Sampling | None = None,
) -> list[Result]:
    """Compute statistics over data whose columns are selected; with `by`, over groups of rows too, with intervals."""
    wanted = [
        one
        for given in statistics
        for one in (parse_references(given) if isinstance(given, str) else [find(given)])
    ]
    if not wanted:
        raise InputError("statistic is empty: name at least one, such as auc")
    if by is not None:
        data, interval = data.with_sites(by, exclude=True), interval or LEVEL
        count = len(dataclasses.replace(data, drop_missing=True).site_codes()[1])
        if 2 * count > len(data):
            what = f"by = {data.by!r} has {count} different values in {len(data)} rows"
            raise InputError(f"{what}; choose a column that names groups")
    found = [(one, _find(one)) for one in wanted]
    given, known = dict(options or {}), {name for _, one in found for name in _options(one)}
    for name in given:
        if name not in known:
            raise unknown(
                f"option of {', '.join(_title(one) for one in wanted)}", name, sorted(known)
            )
    return [
        _compute(one, statistic, data, normalisation, interval, given, sampling)
        for one, statistic in found
    ]


def as_table(results: Sequence[Result]) -> Any:
    """Return a pandas data frame, one row for each statistic and group; a list of dictionaries without pandas.

    The frame's `attrs["heterogeneity"]` holds Cochran's Q, I² and the spread between groups of each statistic.
    """
    records = []
    for result in results:
        common = {
            "columns": result.columns,
            "warnings": list(result.warnings),
            "assumed": dict(result.assumed),
        }
        has_groups = result.grouped is not None
        for finding in [*(result.grouped.findings if result.grouped else []), result.pooled]:
            record = finding._asdict()
            record["group"] = "all rows" if finding.group is None else finding.group
            if not has_groups:
                del record["group"]
            records.append(record | common)
        if result.grouped is not None:
            records += [one | common for one in _summaries(result.pooled, result.grouped)]
    if not is_installed("pandas"):
        return records
    import pandas as pd

    frame = pd.DataFrame(records)
    with_groups = {
        one.pooled.statistic: one.grouped.heterogeneity
        for one in results
        if one.grouped is not None
    }
    if with_groups:
        frame.attrs["heterogeneity"] = {
            k: None if v is None else v._asdict() for k, v in with_groups.items()
        }
    return frame


def _summaries(pooled: Finding, found: Group) -> list[dict[str, Any]]:
    empty = pooled._replace(value=None, low=None, high=None, standard_error=None, reason="")
    rows_of = [one for one in found.findings if one.value is not None]
    means = [
        empty._replace(group="mean of groups", n=sum(one.n for one in rows_of), value=found.mean)
    ]
    if found.heterogeneity is not None:
        low, high = found.heterogeneity.mean_interval
        n = sum(one.n for one in rows_of if one.standard_error)
        means.append(
            empty._replace(
                group="random-effects mean", n=n, value=found.heterogeneity.mean, low=low, high=high
            )
        )
    return [one._asdict() for one in means]


def _title(wanted: Reference | Statistic) -> str:
    return wanted.title if isinstance(wanted, Reference) else wanted.name


def _find(wanted: Reference | Statistic) -> Statistic | str:
    """Return a pairwise statistic, or the name of one that is a function of sums only."""
    if isinstance(wanted, Statistic):
        return wanted
    if wanted.name in SKETCHES and wanted.name not in STATISTICS:
        return wanted.name
    return load_statistic(wanted.name)


def _options(statistic: Statistic | str) -> set[str]:
    return (
        option_names(SKETCHES[statistic]) if isinstance(statistic, str) else set(statistic.options)
    )


def _compute(
    wanted: Reference | Statistic,
    statistic: Statistic | str,
    data: Data,
    normalisation: Normalisation | None,
    interval: float | None,
    options: dict[str, Any],
    sampling: Sampling | None,
) -> Result:
    title = _title(wanted)
    own = {name: value for name, value in options.items() if name in _options(statistic)}
    # Selecting makes a copy, which notes the columns that this statistic reads.
    data = data.select(wanted.columns or None if isinstance(wanted, Reference) else None)
    start = time.perf_counter()
    try:
        if isinstance(statistic, Statistic) and data.weights is not None:
            statistic = with_weights(statistic, data.weights)
        if isinstance(statistic, str):
            if normalisation is not None:
                raise InputError(
                    f"normalisation = {normalisation!r}: it is no mean over pairs; leave it out"
                )
            found = _not_pairwise(title, statistic, data, interval, own)
        else:
            norm = normalisation or statistic.normalisation
            found = _pairwise(title, statistic, data, norm, interval, own, sampling)
        weights, columns = data.weights, [name for name in found.columns if name != data.weights]
        return found._replace(columns=columns, weights=weights, seconds=time.perf_counter() - start)
    except GostaError as error:
        name = statistic if isinstance(statistic, str) else statistic.name
        raise type(error)(f"{title}: {str(error).removeprefix(name + ': ')}") from None


def _pairwise(
    title: str,
    statistic: Statistic,
    data: Data,
    norm: Normalisation,
    interval: float | None,
    options: dict[str, Any],
    sampling: Sampling | None,
) -> Result:
    total, names = len(data), _names(data)
    if data.by is not None:  # rows without a group are left out everywhere
        statistic.encode_rows(data, options)
        data = dataclasses.replace(data.take(data.complete_rows()), drop_missing=False)
    reason = ""
    try:
        found = rows.measure(data, statistic, norm, interval, options, sampling)
    except GostaError as error:
        if interval is None:
            raise
        found = rows.measure(data, statistic, norm, None, options, sampling)
        reason = str(error)
    pooled = _finding(title, None, found.n, found.value, reason)
    assumed = {**found.assumed, "rows_dropped": total - found.n}
    result = Result(pooled, found.columns, options, norm, assumed, found.warnings, by=data.by)
    count = f"{comb(found.n, statistic.degree):,} {statistic.tuples}"
    result = result._replace(tuples=count if sampling is None else f"{sampling.size:,} of {count}")
    if data.by is None:
        return result
    x = statistic.encode_rows(data, options)
    # else what a row becomes depends on its group
    is_cut = statistic.no_interval == "" and len(x) == len(data)
    if data.label in found.columns:
        data = dataclasses.replace(data, declared_classes=tuple(data.class_codes()[1]))

    def measure(chosen: Booleans) -> float | Floats | Estimate:
        index = statistic.sample_index
        own = (
            x[chosen]
            if is_cut
            else statistic.encode_rows(dataclasses.replace(data.take(chosen), by=None), options)
        )
        if index is not None and np.ptp(own[:, index]) == 0:
            raise DataError(f"rows of one class only: {_class_of(own[0, index], found.assumed)}")
        try:
            return measure_encoded(statistic, own, norm, interval, options, sampling)
        except GostaError as error:
            if interval is None:
                raise
            estimate = measure_encoded(statistic, own, norm, None, options, sampling)
            raise _NoIntervalError(estimate, str(error)) from None

    return result._replace(grouped=_group(title, data, names, measure, interval or LEVEL))


def _class_of(sign: float, assumed: Mapping[str, Any]) -> str:
    return str(assumed["positive"] if sign > 0 else ", ".join(assumed["negative"]))


class _NoIntervalError(GostaError):
    """There is a value, but no interval."""

    def __init__(self, value: float | Floats | Estimate, reason: str) -> None:
        super().__init__(reason)
        self.value = value


def _not_pairwise(
    title: str, name: str, data: Data, interval: float | None, options: dict[str, Any]
) -> Result:
    names, total, label = _names(data), len(data), data.label
    made = compare(data, name, Bins(), None, options).layout
    (part,) = made.parts
    weights, kept = data.row_weights(), made.complete_rows(data)
    kept = kept if weights is None else kept & ~np.isnan(weights)
    data = dataclasses.replace(data.take(kept), drop_missing=False)
    if part.has_label:
        data = dataclasses.replace(data, declared_classes=made.classes)
    columns = [*part.columns, *([label] if part.has_label and label is not None else [])]

    def value_of(table: Data) -> tuple[float | Floats, tuple[str, ...]]:
        found = compare(dataclasses.replace(table, by=None), name, Bins(), None, options)
        if found.exact[0] is None:
            raise NumericalError(
                "not defined here: there are too few rows, or all are in one class"
            )
        value = found.exact[0]
        return value[0] if len(value) == 1 else np.array(value), found.results[0].labels

    value, labels = value_of(data)
    reason = f"{title} has no interval: it is no mean over pairs" if interval is not None else ""
    left_out = [
        column for column in data.columns if column not in (*columns, data.by, data.weights)
    ]
    assumed, warnings = assumptions.of_classes(data, [name] if part.has_label else [], options)
    assumed |= {"columns_left_out": left_out, "rows_dropped": total - len(data)}
    if data.has_header is not None:
        assumed["header"] = data.has_header
    pooled = _finding(title, None, len(data), value, reason)
    result = Result(pooled, columns, options, None, assumed, warnings, tuple(labels), data.by)
    if data.by is None:
        return result
    grouped = _group(
        title, data, names, lambda chosen: value_of(data.take(chosen))[0], interval or LEVEL
    )
    return result._replace(grouped=grouped)


def _names(data: Data) -> list[Any]:
    return data.site_codes()[1] if data.by is not None else []


def _finding(
    title: str, group: str | None, n: int, value: float | Floats | Estimate | None, reason: str = ""
) -> Finding:
    if isinstance(value, Estimate):
        error = None if np.isnan(value.standard_error) else value.standard_error
        return Finding(title, group, n, value.value, value.low, value.high, error, reason)
    plain = value.tolist() if isinstance(value, np.ndarray) else value
    return Finding(title, group, n, plain, None, None, None, reason)


def _group(title: str, data: Data, names: Sequence[Any], measure: Measure, level: float) -> Group:
    """Compute a statistic over groups of complete rows; `names` are those of all groups."""
    codes, present = data.site_codes()
    findings = []
    for name in names:
        chosen = codes == (present.index(name) if name in present else np.nan)
        n = int(chosen.sum())
        try:
            if n < 2:
                raise DataError("one complete row only" if n else "no complete row")
            found = _finding(title, str(name), n, measure(chosen))
        except _NoIntervalError as error:
            found = _finding(title, str(name), n, error.value, str(error))
        except GostaError as error:
            found = _finding(title, str(name), n, None, str(error).removeprefix(f"{title}: "))
        findings.append(found)
    values = [one.value for one in findings if one.value is not None]
    mean: float | list[float] | None = None
    if values and len({np.size(value) for value in values}) == 1:
        means = np.mean(np.array(values, dtype=np.float64), axis=0)
        mean = means.tolist() if isinstance(means, np.ndarray) else float(means)
    usable = [one for one in findings if one.standard_error]
    found_between = heterogeneity(
        [one.value for one in usable],  # type: ignore[misc]
        [one.standard_error for one in usable],  # type: ignore[misc]
        level,
    )
    reason = "" if found_between else "it takes two groups with a standard error that is not 0"
    return Group(findings, mean, len(values), found_between, reason)
