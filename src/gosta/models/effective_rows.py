"""Of how many rows weighted sums are in effect.

After the first round of a fit, rows are weighted by what the coefficients so far predict for them.
These follow from totals, which a member can falsify: coefficients far beyond the best ones give a
few rows, or one, nearly all the weight, and then their columns follow from the sums. Nobody can
tell false totals from others, but each site can tell of its own rows what their weights are.

The effective number of rows of a sum with weights w is (Σ w)² / Σ w²: n if n rows have the same
weight, and 1 if one row has all. Where it is at least m at each site, it is over all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from gosta.runtime.arrays import Floats, Integers

if TYPE_CHECKING:
    from gosta.models.definition import Model, State
    from gosta.models.terms import Term

# Of a site's rows. In fits of fifteen data sets, sums were of at least a twenty-fourth of them.
LEAST_SHARE = 1 / 30


def few_rows(model: Model, rows: Floats, state: State) -> str:
    """Return why sums over a site's rows would be of too few of them; "" if they are not."""
    for term in model.weighted_terms(rows, state):
        for effective, count in effective_rows(term):
            needed = min(model.min_rows_per_column * len(model.design.names), LEAST_SHARE * count)
            if effective < needed:
                return (
                    f"by their weights, sums of round {state.rounds + 1} would be of "
                    f"{effective:.1f} of its {count:,} rows, {needed:.1f} needed (outlying rows, "
                    "or another site that moved the coefficients)"
                )
    return ""


def effective_rows(term: Term) -> Iterator[tuple[float, int]]:
    """Yield the effective number of rows, and that of rows, of sums with columns: of all rows, of
    those in each bin, and of what is missing to sums without weights, which are known.
    """
    counted = np.ones(len(term.weights), bool) if term.counted is None else term.counted
    weights = term.weights[counted]
    places = np.zeros(len(weights), dtype=np.int64)
    yield from _of_groups(weights, places)
    if term.order == 1:
        yield from _of_groups(1 - weights, places)
    if term.bins is not None:
        yield from _of_groups(weights, term.bins[counted])


def _of_groups(weights: Floats, places: Integers) -> Iterator[tuple[float, int]]:
    counts = np.bincount(places)
    largest = np.zeros(len(counts))
    np.maximum.at(largest, places, weights)
    shares = weights / np.where(largest > 0, largest, 1.0)[places]
    sums = np.bincount(places, shares), np.bincount(places, shares**2)
    for count, total, squares in zip(counts.tolist(), *sums, strict=True):
        if squares > 0:
            yield float(total**2 / squares), count
