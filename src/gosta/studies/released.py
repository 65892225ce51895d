"""A study over a network of private sums: the results of its release as those of a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gosta.errors import InputError
from gosta.sketches.estimates import estimates_of
from gosta.sketches.results import StratumResult
from gosta.studies.definition import Study
from gosta.studies.questions import TABLE_ONE
from gosta.studies.results import record
from gosta.views import numbers

WAY_OUT = "take the study.toml with which the network was made"


def collect(study: Study, results: Sequence[StratumResult], how: dict[str, Any]) -> dict[str, Any]:
    """Return the results of a study from those of a release."""
    asked = {item.title: item for item in study.summed}
    level = study.study.confidence_level
    estimates = {one.statistic: one for one in estimates_of(results, level, data="private sums")}
    for title in sorted(estimates.keys() - asked.keys()):
        raise InputError(f"the network computes {title}, which is not in the study", remedy=WAY_OUT)
    for title in sorted(asked.keys() - estimates.keys()):
        raise InputError(f"the network does not compute {title} of the study", remedy=WAY_OUT)
    clipped = {one.statistic: one.clipped for one in results if not one.stratum}
    found = []
    for title, item in asked.items():
        estimate, own = estimates[title], study.options_of(item.statistic, True)
        warnings = (*estimate.warnings, *_warnings(clipped[title]))
        estimate = estimate._replace(columns=item.columns, options=own, warnings=warnings)
        found.append((item, estimate))
    rows = max((estimate.n for estimate in estimates.values()), default=0)
    complete = [estimates[title].n for title, item in asked.items() if item.question != TABLE_ONE]
    has_both = bool(complete) and len(complete) < len(asked)
    incomplete = max(rows - max(complete), 0) if has_both else None
    how = {"mode": "private sums", "data": [], **how}
    return record(study, found, how, max(complete, default=rows), incomplete)


def _warnings(clipped: float) -> tuple[str, ...]:
    """Return what to say of values beyond the ranges of the dictionary."""
    if clipped < 0.5:
        return ()
    what = f"{numbers.count(round(clipped), 'value')} beyond the declared range counted as its end"
    return (f"{what}, and the bracket is for that: widen the range, or name codes as missing",)
