"""Several statistics of one table, over all rows and over groups of them.

Rows are encoded once, over the whole table, and then cut into groups: so every group has the same
positive class, the same direction of the score, the same bandwidth. Only where a row's part depends
on its rank among the others (trimmed means) are groups encoded one by one. The value
over all rows counts pairs across groups too; beside it stand the mean of the groups' own values,
and how much these differ beyond chance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gosta.datasets.data import Data, SeveralScoresError
from gosta.errors import DataError, GostaError, InputError, naming, unknown
from gosta.measures import MEASURES, Measure
from gosta.measures.intervals import estimate as measured
from gosta.runtime.arrays import Booleans
from gosta.statistics import assumptions
from gosta.statistics.definition import Normalisation, Options, Statistic, find, with_weights
from gosta.statistics.estimate import Estimate
from gosta.statistics.exact import measure, measure_encoded
from gosta.statistics.heterogeneity import of_groups
from gosta.statistics.references import load_statistic, parse_references
from gosta.statistics.triples import Sampling

LEVEL = 0.95  # of intervals of groups and beside brackets, unless another is asked for


def compute(
    data: Data,
    statistics: Sequence[str | Statistic | Measure],
    *,
    by: object = None,
    normalisation: Normalisation | None = None,
    interval: float | None = None,
    options: Options | None = None,
    sampling: Sampling | None = None,
) -> list[Estimate]:
    """Compute statistics over selected columns; with `by`, over groups of rows too.

    One that takes one score is computed for each score.
    """
    items = [item for given in statistics for item in _items(given)]
    if not items:
        raise InputError("statistic is empty: name at least one, such as auc")
    if by is not None:
        data, interval = data.with_sites(by, exclude=True), interval or LEVEL
        count = len(replace(data, drop_missing=True).site_codes()[1])
        if 2 * count > len(data):
            what = f"by = {data.by!r} has {count} different values in {len(data)} rows"
            raise InputError(what, remedy="choose a column that names groups")
    given_options = dict(options or {})
    known = {name for item in items for name in item.statistic.options}
    for name in given_options:
        if name not in known:
            titles = ", ".join(item.title for item in items)
            raise unknown(f"option of {titles}", name, sorted(known))
    estimates: list[Estimate] = []
    for item in items:
        try:
            estimates.append(_compute(item, data, normalisation, interval, given_options, sampling))
        except SeveralScoresError:
            for score in data.scores:
                own = item._replace(title=f"{item.title}:{score}", columns=(score,))
                estimates.append(
                    _compute(own, data, normalisation, interval, given_options, sampling)
                )
    return estimates


class _Item(NamedTuple):
    """A statistic that was asked for."""

    title: str  # as it was written
    columns: tuple[str, ...]  # empty: those selected for all statistics
    statistic: Statistic | Measure


def _items(given: str | Statistic | Measure) -> Iterator[_Item]:
    """Yield the statistics that a text names, or the one that is given."""
    if isinstance(given, Measure):
        yield _Item(given.name, (), given)
        return
    if not isinstance(given, str):
        yield _Item(find(given).name, (), given)
        return
    for title, name, columns in parse_references(given):
        yield _Item(title, columns, MEASURES.get(name) or load_statistic(name))


def _compute(
    item: _Item,
    data: Data,
    normalisation: Normalisation | None,
    interval: float | None,
    options: dict[str, Any],
    sampling: Sampling | None,
) -> Estimate:
    title, columns, statistic = item
    own = {name: value for name, value in options.items() if name in statistic.options}
    data = data.select(columns or None)
    start = time.perf_counter()
    with naming(title):
        if isinstance(statistic, Statistic) and data.weights is not None:
            statistic = with_weights(statistic, data.weights)
        if isinstance(statistic, Measure):
            if normalisation is not None:
                reason = f"normalisation = {normalisation!r}: it is no mean over pairs"
                raise InputError(reason, remedy="leave it out")
            estimate = _of_measure(title, statistic, data, interval, own)
        else:
            norm = normalisation or statistic.normalisation
            estimate = _pairwise(title, statistic, data, norm, interval, own, sampling)
    return estimate._replace(seconds=time.perf_counter() - start)


def _pairwise(
    title: str,
    statistic: Statistic,
    data: Data,
    norm: Normalisation,
    interval: float | None,
    options: dict[str, Any],
    sampling: Sampling | None,
) -> Estimate:
    total, names = len(data), _names(data)
    if data.by is not None:  # rows without a group are left out everywhere
        read = statistic.encode_complete_rows(data, options).columns
        data = replace(data.take(data.complete_rows(read)), drop_missing=False)
    reason = remedy = ""
    try:
        pooled = measure(data, statistic, norm, interval, options, sampling)
    except GostaError as error:
        if interval is None:
            raise
        pooled = measure(data, statistic, norm, None, options, sampling)
        reason, remedy = error.reason, error.remedy
    assumed = {**pooled.assumed, "rows_dropped": total - pooled.n}
    pooled = pooled._replace(statistic=title, reason=reason, remedy=remedy, assumed=assumed)
    if data.by is None:
        return pooled
    x = statistic.encode_rows(data, options)
    # Otherwise what a row becomes depends on its group.
    is_cut = statistic.no_interval == "" and len(x) == len(data)
    if data.label in pooled.columns:
        data = replace(data, declared_classes=tuple(data.class_codes()[1]))

    def measure_group(chosen: Booleans) -> Estimate:
        index = statistic.sample_index
        group = replace(data.take(chosen), by=None)
        rows = x[chosen] if is_cut else statistic.encode_rows(group, options)
        if index is not None and np.ptp(rows[:, index]) == 0:
            there = _class_of(rows[0, index], pooled.assumed)
            raise DataError(f"rows of one class only: {there}")
        try:
            return measure_encoded(statistic, rows, norm, interval, options, sampling)
        except GostaError as error:
            if interval is None:
                raise
            estimate = measure_encoded(statistic, rows, norm, None, options, sampling)
            return estimate._replace(reason=error.reason, remedy=error.remedy)

    return _with_groups(pooled, data, names, measure_group, interval or LEVEL, statistic.bounds)


def _class_of(sign: float, assumed: Mapping[str, Any]) -> str:
    return str(assumed["positive"] if sign > 0 else ", ".join(assumed["negative"]))


def _of_measure(
    title: str, measure: Measure, data: Data, interval: float | None, options: dict[str, Any]
) -> Estimate:
    names, total = _names(data), len(data)
    if measure.completed is not None:
        options = measure.completed(data, options)
    encoded = measure.encode_rows(data, options)
    kept, weights = encoded.kept, data.row_weights()
    if weights is not None:
        kept = kept & ~np.isnan(weights)
        weights = weights[kept]
    data = replace(data.take(kept), drop_missing=False)
    x = encoded.x[kept[encoded.kept]]

    def estimate(chosen: Booleans) -> Estimate:
        own = None if weights is None else weights[chosen]
        return measured(measure, x[chosen], own, options, interval)

    columns = [name for name in encoded.columns if name != data.weights]
    reads_label = data.label in columns
    assumed, warnings = assumptions.of_classes(data, [measure.name] if reads_label else [], options)
    pooled = estimate(np.ones(len(x), dtype=np.bool_))
    left_out = assumptions.left_out(data, [*columns, data.weights], len(data), total)
    pooled = pooled._replace(
        statistic=title,
        data=data.name,
        n=len(data),
        reason=f"{title} has no interval: {measure.no_interval}"
        if interval is not None and measure.no_interval
        else "",
        columns=tuple(sorted(columns, key=lambda name: name == data.label)),
        options=options,
        weights=data.weights,
        assumed=assumed | left_out,
        warnings=(*warnings, *([f"{title}: {measure.caution}"] if measure.caution else [])),
    )
    if data.by is None:
        return pooled
    return _with_groups(pooled, data, names, estimate, interval or LEVEL, measure.bounds)


def _names(data: Data) -> list[Any]:
    return data.site_codes()[1] if data.by is not None else []


def _with_groups(
    pooled: Estimate,
    data: Data,
    names: Sequence[Any],
    measure_group: Callable[[Booleans], Estimate],
    level: float,
    bounds: tuple[float, float],
) -> Estimate:
    """Return an estimate over complete rows with those of its groups; `names` has all groups."""
    codes, present = data.site_codes()
    title, groups = pooled.statistic, []
    for name in names:
        chosen = codes == (present.index(name) if name in present else np.nan)
        n = int(chosen.sum())
        try:
            if n < 2:
                raise DataError("one complete row only" if n else "no complete row")
            estimate = measure_group(chosen)
        except GostaError as error:
            estimate = Estimate(None, reason=error.reason, remedy=error.remedy)
        groups.append(estimate._replace(statistic=title, group=str(name), n=n))
    compared = of_groups(groups, level, bounds)
    return pooled._replace(by=data.by, groups=tuple(groups), heterogeneity=compared)
