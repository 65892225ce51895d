"""Values of measures over rows, with standard errors and intervals for the population.

A measure that says how much each row moves its value has the standard error of the infinitesimal
jackknife; others are computed again over samples of the rows, drawn with replacement (bootstrap).
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from gosta.errors import NumericalError
from gosta.measures.definition import NO_VALUE, Measure, Measured
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import Options
from gosta.statistics.estimate import Estimate
from gosta.statistics.intervals import ends_by_errors

DRAWS = 1000  # of the bootstrap
SEED = 2016  # of the draws, so that the same rows give the same interval everywhere


def standard_errors(influence: Floats, weights: Floats) -> Floats:
    """Return the standard errors of values from what each row contributes to them, n × values."""
    chosen = weights > 0
    rows, shares = int(chosen.sum()), weights[chosen] / weights.sum()
    if rows < 2:
        return np.full(influence.shape[1], np.nan)
    squares = (shares[:, None] * influence[chosen]) ** 2
    return np.asarray(np.sqrt(squares.sum(axis=0) * rows / (rows - 1)))


def bootstrap(measure: Measure, x: Floats, weights: Floats, options: Options) -> Floats:
    """Return the values over samples of the rows, drawn with replacement: draws × values.

    Samples without a value, as those of one class, are left out.
    """
    rng = np.random.default_rng(SEED)
    draws = []
    for _ in range(DRAWS):
        chosen = np.bincount(rng.integers(len(x), size=len(x)), minlength=len(x))
        with suppress(NumericalError):
            draws.append(measure.over(x, weights * chosen, options).value)
    return np.array(draws)


def estimate(
    measure: Measure,
    x: Floats,
    weights: Floats | None = None,
    options: Options = {},  # noqa: B006
    level: float | None = None,
) -> Estimate:
    """Return the value over encoded rows, with an interval at a level if one is given."""
    found = measure.over(x, weights, options)
    if not np.isfinite(found.value).any():
        raise NumericalError(f"{measure.name} is not defined here: {NO_VALUE}")
    result = Estimate(
        _plain(found.value),
        labels=found.labels,
        at=found.at,
        axes=measure.axes,
        counts=None if found.at is None else found.trials,
    )
    if level is None or measure.no_interval:
        return result
    low, high, errors = ends(measure, found, x, weights, options, level)
    return result._replace(
        low=_plain(low),
        high=_plain(high),
        standard_error=_plain(errors),
        level=level,
        null_value=measure.null_value,
    )


@np.errstate(all="ignore")
def ends(
    measure: Measure,
    found: Measured,
    x: Floats,
    weights: Floats | None,
    options: Options,
    level: float,
) -> tuple[Floats, Floats, Floats]:
    """Return the ends of intervals of values, and their standard errors."""
    counted = np.ones(len(x)) if weights is None else weights
    trials = np.full(len(found.value), float((counted > 0).sum()))
    trials = trials if found.trials is None else found.trials
    if found.ends is not None:
        return found.ends(level)
    if found.influence is None and found.errors is None:
        draws = bootstrap(measure, x, counted, options)
        low, high = np.nanquantile(draws, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        # Distances grow by chance, so all draws can lie above the value.
        ends_of_draws = np.fmin(low, found.value), np.fmax(high, found.value)
        return *ends_of_draws, np.nanstd(draws, axis=0, ddof=1)
    errors = found.errors
    if errors is None:
        assert found.influence is not None
        errors = standard_errors(found.influence, counted)
    low, high = ends_by_errors(measure.scale, measure.bounds, found.value, errors, trials, level)
    return low, high, errors


def _plain(values: Floats) -> float | Floats:
    return float(values[0]) if len(values) == 1 else values
