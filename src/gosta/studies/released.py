"""A study over a network of private sums: the results of its release as those of a study."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gosta.errors import InputError
from gosta.net.config import MIN_SITES
from gosta.sketches.estimates import estimates_of
from gosta.sketches.results import StratumResult
from gosta.statistics.estimate import Estimate
from gosta.studies.definition import Study
from gosta.studies.noise import count_errors
from gosta.studies.results import record
from gosta.views import numbers
from gosta.views.numbers import about

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
    inside = {title: _inside_bins(results, title) for title in asked}
    errors, terms = _count_errors(study, how), study.layout().terms
    found = []
    for title, item in asked.items():
        estimate, own = estimates[title], study.options_of(item.statistic, True)
        warnings = (
            *estimate.warnings,
            *inside[title],
            *_warnings(clipped[title], errors.get(title, 0.0)),
        )
        estimate = estimate._replace(columns=item.columns, options=own, warnings=warnings)
        estimate = _with_rows(estimate, errors[title], terms) if errors else estimate
        found.append((item, estimate))
    how = {"mode": "private sums", "data": [], **how}
    if errors:
        rows, error = _rows_with_noise(estimates, errors, terms)
        return record(study, found, {**how, "rows_error": error}, rows, None)
    rows = max((estimate.n or 0 for estimate in estimates.values()), default=0)
    return record(study, found, how, rows, None)


def _count_errors(study: Study, how: Mapping[str, Any]) -> dict[str, float]:
    """Return the errors by noise of the numbers of rows of a group; none without noise."""
    if study.privacy.epsilon is None:
        return {}
    return count_errors(study, len(how.get("participants") or ()) or MIN_SITES)


def _with_rows(estimate: Estimate, error: float, terms: Mapping[str, int]) -> Estimate:
    """Return an estimate with numbers of rows to the digits that noise leaves."""
    whole = _about(estimate, error * math.sqrt(terms[""]))
    grouped = []
    for one in estimate.grouped:
        own = error * math.sqrt(terms[one.by or ""])
        groups = tuple(_about(group, own) for group in one.groups)
        grouped.append(whole._replace(by=one.by, groups=groups, heterogeneity=one.heterogeneity))
    return whole.with_groupings(grouped)


def _about(estimate: Estimate, error: float) -> Estimate:
    return estimate if estimate.n is None else estimate._replace(n=about(estimate.n, error))


def _rows_with_noise(
    estimates: Mapping[str, Estimate], errors: Mapping[str, float], terms: Mapping[str, int]
) -> tuple[int, float]:
    """Return about how many rows there are, by the count with the least noise, and its error."""
    counted = [title for title, estimate in estimates.items() if estimate.n] or list(estimates)
    title = min(counted, key=lambda one: errors[one])
    error = errors[title] * math.sqrt(terms[""])
    return about(estimates[title].n or 0, error), error


def _inside_bins(results: Sequence[StratumResult], title: str) -> tuple[str, ...]:
    """Return what to say of times that lie inside bins that were merged."""
    found = [one for one in results if one.statistic == title and one.without_edge]
    places = (
        f"{one.stratum or 'all rows'}: " + ", ".join(f"{point:g}" for point in one.without_edge)
        for one in found
    )
    if not found:
        return ()
    return (
        f"few rows are near {'; '.join(places)}: what is there is between the ends of the bracket",
    )


def _warnings(clipped: float, error: float) -> tuple[str, ...]:
    """Return what to say of values beyond the ranges of the dictionary."""
    if clipped < max(0.5, 3 * error):  # fewer may be noise
        return ()
    what = f"{numbers.count(round(clipped), 'value')} beyond the declared range counted as its end"
    return (f"{what}, and the bracket is for that: widen the range, or name codes as missing",)
