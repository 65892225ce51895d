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
from gosta.models.layout import LEVEL, FitLayout
from gosta.models.leave_out import no_leaving_out
from gosta.models.noisy import NoisyLayout, first_round
from gosta.private.accounting import gaussian_mu
from gosta.private.noise import choose_noise
from gosta.private.policy import Policy
from gosta.private.releases import ANYTHING, masked_rounds, named_sites, participants_by
from gosta.private.settings import PrivateSettings, check_settings


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
    epsilon: float | None = None,
    delta: float = 1e-6,
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
    epsilon, delta
        Of the differential privacy of the fit for a row, of all rounds together; without epsilon
        there is no noise.
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
    settings = PrivateSettings(epsilon=epsilon, delta=0.0 if epsilon is None else delta)
    check_settings(settings)
    first = first_round(made, epsilon, settings.delta, gaussian_mu)
    rows, warnings = {}, list[str]()
    for name, site in named_sites(sites).items():
        with naming(name):
            data = replace(datasets.load(site), drop_missing=drop_missing, is_partial=True)
            rows[name] = first.encode(data)
            if epsilon is None:  # noise hides no counts of a site
                warnings += [f"{name}: {one}" for one in beyond_ranges(made, data)]
    chosen = policy or ANYTHING
    names = participants_by(chosen, first, rows, settings)
    random = os.urandom if seed is None else np.random.default_rng(seed).bytes
    parts = {name: rows[name] for name in names}
    if isinstance(first, NoisyLayout):
        first.require_rows(sum(map(len, parts.values())))
    last, totals = masked_rounds(first, parts, settings, random, chosen.min_cell)[-1]
    assert isinstance(last, FitLayout)
    variance = choose_noise(settings, last, len(parts)).variance
    found = last.fit(totals, level, chosen.min_cell, variance)
    return replace(found, warnings=(*warnings, *found.warnings))
