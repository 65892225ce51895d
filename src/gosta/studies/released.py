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
    found = [
        (
            item,
            estimates[title]._replace(
                columns=item.columns, options=study.options_of(item[1], True)
            ),
        )
        for title, item in asked.items()
    ]
    rows = max((estimate.n for estimate in estimates.values()), default=0)
    complete = [estimates[title].n for title, item in asked.items() if item[0] != TABLE_ONE]
    incomplete = rows - max(complete) if complete and len(complete) < len(asked) else None
    how = {"mode": "private sums", "data": [], **how}
    return record(study, found, how, max(complete, default=rows), incomplete)
