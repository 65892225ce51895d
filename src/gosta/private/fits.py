"""A regression model fitted to sites' rows in one process, as networks of private sums do."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gosta import datasets
from gosta.errors import naming
from gosta.models import Fit, make_design, make_model
from gosta.models.design import parse_formula
from gosta.models.fitting import beyond_ranges
from gosta.models.layout import LEVEL, FitLayout, check_size
from gosta.models.leave_out import no_leaving_out
from gosta.private.policy import Policy
from gosta.private.releases import ANYTHING, masked_rounds, named_sites, participants_by
from gosta.private.settings import PrivateSettings


def fit(
    sites: Sequence[object] | Mapping[str, object],
    model: str,
    outcome: str | None = None,
    *,
    columns: str | Sequence[str] = (),
    formula: str | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    penalty: float = 0.0,
    drop_missing: bool = False,
    level: float = LEVEL,
    policy: Policy | None = None,
    seed: int | None = None,
    **options: Any,
) -> Fit:
    """Fit a model to the rows of several sites, of which only masked sums are known.

    Parameters
    ----------
    sites
        The rows of each site: what `gosta.datasets.load` takes. A mapping gives the sites names.
    model
        ``"logistic"``, ``"linear"``, ``"poisson"``, ``"cox"`` or ``"auc"``.
    outcome, columns, formula, penalty, drop_missing, level
        As for `gosta.fit`.
    ranges
        Lowest and highest value of each column of numbers, beyond which values count as these.
    levels
        Values of each factor, the reference first: no site need have all of them.
    policy
        A policy that all sites have; a site that it forbids to take part is left out. None: all
        take part.
    seed
        Of keys, for tests. None: the operating system's generator.
    options
        Further settings of the model, such as ``classes`` of a logistic one, or ``low`` and
        ``high``, the range of the outcome of a linear one.

    Returns
    -------
    Fit
        As that of `gosta.fit` over all rows in one place, up to rounding.

    Examples
    --------
    >>> import gosta
    >>> first = {"age": [34, 71, 58, 44, 61], "died": [0, 1, 0, 0, 0]}
    >>> second = {"age": [62, 49, 80, 38, 55, 66], "died": [1, 0, 0, 0, 1, 0]}
    >>> given = {"columns": ["age"], "ranges": {"age": (0, 120)}, "classes": [0, 1]}
    >>> found = gosta.private.fit([first, second], "logistic", "died", **given)
    >>> found.n, found.names, found.coefficients.round(3).tolist()
    (11, ('intercept', 'age'), [-4.171, 0.055])
    """
    if "leave_out_site" in options:
        raise no_leaving_out(options["leave_out_site"])
    terms = (columns,) if isinstance(columns, str) else tuple(columns)
    if formula is not None:
        parsed = parse_formula(formula)
        terms, outcome = parsed.terms, outcome or parsed.outcome
    design = make_design(terms, ranges=ranges, levels=levels)
    given = {"outcome": outcome, "penalty": penalty, **options}
    made = make_model(model, design, **{k: v for k, v in given.items() if v is not None})
    first = FitLayout.first(made)
    check_size(first)
    rows, warnings = {}, list[str]()
    for name, site in named_sites(sites).items():
        with naming(name):
            data = replace(datasets.load(site), drop_missing=drop_missing, is_partial=True)
            rows[name] = first.encode(data)
            warnings += [f"{name}: {one}" for one in beyond_ranges(made, data)]
    chosen, settings = policy or ANYTHING, PrivateSettings()
    names = participants_by(chosen, first, rows, settings)
    random = os.urandom if seed is None else np.random.default_rng(seed).bytes
    parts = {name: rows[name] for name in names}
    last, totals = masked_rounds(first, parts, settings, random, chosen.min_cell)[-1]
    assert isinstance(last, FitLayout)
    found = last.fit(totals, level, chosen.min_cell)
    return replace(found, warnings=(*warnings, *found.warnings))
