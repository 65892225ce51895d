"""Results from sums as estimates: a value with a bracket, and its strata as groups.

Strata by one column, or by one combination of columns, are groups beside each other; those by
others are told apart from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from gosta.measures.definition import Measure, definition_of
from gosta.sketches.results import StratumResult
from gosta.statistics.definition import Statistic
from gosta.statistics.estimate import Estimate
from gosta.statistics.heterogeneity import of_groups
from gosta.views import numbers


def estimates_of(
    results: Iterable[StratumResult], level: float | None, **known: Any
) -> Iterator[Estimate]:
    """Yield an estimate of each statistic, with its strata as groups.

    `results` are in order: each statistic over all rows, then in its strata. `known` are further
    fields of the estimates, such as the name of the data.
    """
    for _, members in groupby(results, key=lambda result: result.statistic):
        first, *strata = members
        pooled = estimate_of(first, level)._replace(**known)
        by_columns: dict[str, list[Estimate]] = {}
        for stratum in strata:
            by = ", ".join(name for name, _ in _pairs(stratum))
            by_columns.setdefault(by, []).append(_group(stratum, level))
        made = []
        for by, groups in by_columns.items():
            compared = level and of_groups(groups, level, _definition(first).bounds)
            made.append(
                pooled._replace(by=by, groups=tuple(groups), heterogeneity=compared or None)
            )
        yield pooled.with_groupings(made)


def differences_of(results: Sequence[StratumResult], level: float | None) -> list[Estimate]:
    """Return the value of each statistic in each stratum less that in the largest one."""
    with_strata = {result.statistic for result in results if result.stratum}
    compared = (result for result in results if result.statistic in with_strata)
    grouped = [one for estimate in estimates_of(compared, level) for one in estimate.grouped]
    return [difference for one in grouped for difference in one.differences]


def estimate_of(result: StratumResult, level: float | None) -> Estimate:
    """Return a result as an estimate with a bracket; a curve has arrays for numbers."""
    if not result.has_value:
        is_told = result.rows is not None
        rows = round(result.rows) if is_told else None
        reason = result.why if is_told else f"{numbers.WITHHELD}: {result.why}"
        return Estimate(None, statistic=result.statistic, n=rows, reason=reason)
    low, high = result.interval or (np.nan, np.nan)
    if result.intervals:
        low, high = np.array(result.intervals, dtype=np.float64).T
    value, *bracket = (
        end[0] if len(end) == 1 else np.array(end, dtype=np.float64)
        for end in (result.value, result.low, result.high)
    )
    definition = _definition(result)
    error: Any = np.nan if result.standard_error is None else result.standard_error
    if result.standard_errors:
        error = np.array(result.standard_errors, dtype=np.float64)
    return Estimate(
        value,
        low,
        high,
        error,
        level,
        (bracket[0], bracket[1]),
        result.labels,
        statistic=result.statistic,
        n=round(result.rows),
        at=np.array(result.at) if result.at else None,
        counts=np.array(result.counts) if result.counts else None,
        axes=definition.axes if isinstance(definition, Measure) else None,
        null_value=definition.null_value,
    )


def _definition(result: StratumResult) -> Statistic | Measure:
    return definition_of(result.statistic.partition(":")[0])


def _group(stratum: StratumResult, level: float | None) -> Estimate:
    name = ", ".join(value for _, value in _pairs(stratum))
    return estimate_of(stratum, level)._replace(group=name)


def _pairs(stratum: StratumResult) -> Sequence[tuple[str, str]]:
    """Return the columns and values of a stratum such as "sex = f, ward = a"."""
    parts = (part.partition(" = ") for part in stratum.stratum.split(", "))
    return [(column, value) for column, _, value in parts]
