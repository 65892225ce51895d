"""A study over a network of private sums: the results of its release as those of a study."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

import numpy as np

from gosta.errors import InputError
from gosta.measures import MEASURES
from gosta.sketches.results import StratumResult
from gosta.statistics.estimate import Estimate
from gosta.studies.definition import Study
from gosta.studies.results import record

NO_VALUE = "too few rows in a group, all in one class, or too much noise"


def collect(study: Study, results: Sequence[StratumResult], how: dict[str, Any]) -> dict[str, Any]:
    """Return the results of a study from those of a release."""
    asked = {item.title: item for item in study.summed}
    by_title: dict[str, list[StratumResult]] = {title: [] for title in asked}
    for result in results:
        if result.statistic not in by_title:
            raise InputError(
                f"the network computes {result.statistic}, which the study does not ask",
                remedy="take the study.toml with which the network was made",
            )
        by_title[result.statistic].append(result)
    found = []
    for title, parts in by_title.items():
        if not parts:
            raise InputError(
                f"the network does not compute {title}, which the study asks",
                remedy="take the study.toml with which the network was made",
            )
        found.append((asked[title], _estimate(study, title, parts)))
    rows = max((round(result.rows) for result in results if not result.stratum), default=0)
    return record(study, found, {"mode": "private sums", "data": [], **how}, rows, None)


def _estimate(study: Study, title: str, parts: Sequence[StratumResult]) -> Estimate:
    groups = [_of_stratum(study, title, part) for part in parts if part.stratum]
    (pooled,) = (_of_stratum(study, title, part) for part in parts if not part.stratum)
    if not groups:
        return pooled
    return pooled._replace(by=", ".join(study.study.groups), groups=tuple(groups))


def _of_stratum(study: Study, title: str, result: StratumResult) -> Estimate:
    name, _, columns = title.partition(":")
    common: dict[str, Any] = {
        "statistic": title,
        "data": "private sums",
        "columns": tuple(columns.split("+")),
        "group": result.stratum or None,
        "n": round(result.rows),
    }
    if not result.has_value:
        return Estimate(None, reason=NO_VALUE, **common)
    low, high = _interval(result)
    return Estimate(
        _plain(result.value),
        low=low,
        high=high,
        standard_error=nan if result.standard_error is None else result.standard_error,
        level=study.study.confidence_level if result.interval or result.intervals else None,
        bracket=(_plain(result.low), _plain(result.high)),
        labels=result.labels,
        at=np.array(result.at) if result.at else None,
        axes=MEASURES[name].axes if name in MEASURES else None,
        options=study.options_of(name),
        **common,
    )


def _interval(result: StratumResult) -> tuple[Any, Any]:
    """Return the ends of the interval or intervals of a result; NaN: it has none."""
    if result.interval is not None:
        return result.interval
    if not result.intervals:
        return nan, nan
    low, high = np.array(result.intervals, dtype=np.float64).T
    return low, high


def _plain(values: Sequence[float | None]) -> Any:
    """Return one number, or an array with NaN where there is none."""
    numbers = np.array(values, dtype=np.float64)
    return float(numbers[0]) if len(numbers) == 1 else numbers
