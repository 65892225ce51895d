"""Validation that leaves out one site after the other (internal–external).

The rows of each site are predicted by the fit to those of the others. With private sums there is
none: sums over all sites less those without one are this site's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import GostaError, InputError
from gosta.measures.definition import Measure, definition_of
from gosta.measures.intervals import estimate as measured
from gosta.runtime.arrays import Floats, Integers
from gosta.statistics.estimate import Estimate
from gosta.statistics.exact import measure_encoded
from gosta.statistics.heterogeneity import of_groups

if TYPE_CHECKING:
    from gosta.models.definition import Model

R_SQUARED = "r-squared"  # which is no statistic of its own
LEAST_SITES = 2


def leave_out_sites(model: Model, data: Data, level: float) -> tuple[Estimate, ...]:
    """Return each statistic of a validation, of the sites as groups, with their mean as its value.

    `data` have sites.
    """
    if not model.validation:
        raise InputError(
            f"leave_out_site = {data.by!r}: {model.title} is not validated", remedy="leave it out"
        )
    model = replace(model, folds=0)
    data = data.take(~np.isnan(data.site_codes()[0]))
    rows = model.rows(data)
    data = data.take(rows.kept)
    codes, names = data.site_codes()
    if len(names) < LEAST_SITES:
        raise InputError(
            f"leave_out_site = {data.by!r} has one value only", remedy="name a column of sites"
        )
    of_sites = [
        _predicted(model, data, rows.x, codes.astype(np.int64), place)
        for place in range(len(names))
    ]
    found = []
    for name in model.validation.split(","):
        groups = [
            _estimate(name, x, level)._replace(statistic=name, group=str(site))
            for site, x in zip(names, of_sites, strict=True)
        ]
        found.append(_summary(name, groups, level)._replace(by=data.by, data=data.name))
    return tuple(found)


def no_leaving_out(column: object) -> InputError:
    """Return the error for private sums."""
    return InputError(
        f"leave_out_site = {column!r}: of private sums, those over all sites less those without "
        "one are this site's own, so no site is left out",
        remedy="validate with folds (--option folds=5)",
    )


def _predicted(
    model: Model, data: Data, x: Floats, codes: Integers, place: int
) -> Floats | GostaError:
    """Return the encoded rows of a site with predictions by the fit to others: prediction and
    outcome, in the order in which statistics have them; or why there are none.
    """
    own = codes == place
    response = x[own, len(model.design.names) :]
    try:
        predictions = model.fit_rows(x[~own]).predict(data.take(own))
    except GostaError as error:
        return error
    outcome = model.validation_outcome(response)
    if "event" in outcome:
        return np.column_stack([*outcome.values(), predictions])
    (values,) = outcome.values()
    unit, offset = (2.0, -1.0) if model.validation != R_SQUARED else model.outcome_unit
    return np.column_stack([predictions, offset + unit * values])


def _estimate(name: str, x: Floats | GostaError, level: float) -> Estimate:
    """Return a statistic of the rows of a site."""
    if isinstance(x, GostaError):
        return Estimate(None, reason=x.reason, remedy=x.remedy)
    if name == R_SQUARED:
        return Estimate(_explained(x), n=len(x))
    definition = definition_of(name)
    try:
        if isinstance(definition, Measure):
            found = measured(definition, x, None, {}, level)
        else:
            found = measure_encoded(definition, x, definition.normalisation, level, {})
    except GostaError as error:
        found = Estimate(None, reason=error.reason, remedy=error.remedy)
    return found._replace(n=len(x))


def _explained(x: Floats) -> float:
    """Return the share of the outcome's variance that predictions explain."""
    errors, gaps = x[:, 1] - x[:, 0], x[:, 1] - x[:, 1].mean()
    return 1 - float(errors @ errors) / float(gaps @ gaps) if gaps.any() else math.nan


def _summary(name: str, groups: Sequence[Estimate], level: float) -> Estimate:
    """Return the mean of sites, whose weights allow for differences beyond chance."""
    bounds = (-math.inf, 1.0) if name == R_SQUARED else definition_of(name).bounds
    compared = of_groups(groups, level, bounds)
    known = [float(one.value) for one in groups if one.value is not None]
    found = Estimate(
        sum(known) / len(known) if known else None,
        statistic=name,
        n=sum(one.n or 0 for one in groups),
        groups=tuple(groups),
    )
    if compared is None:
        return found
    low, high = compared.mean_interval
    return found._replace(
        value=compared.mean, low=low, high=high, level=level, heterogeneity=compared
    )
