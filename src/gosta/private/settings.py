"""What a network of private sums computes, beyond the statistic and its columns; the same at all sites."""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec

from gosta.errors import InputError

MAX_BINS = 8192  # of a column: with two classes they fill a vector of sums
MAX_DEADLINE_SECONDS = 7 * 86400.0
# by default; fewer suit only columns that are spread evenly over their range
LEAST_BINS, MOST_BINS = (16, 64)
RELEASES_IN_BUDGET = 10  # for which the budget of a new policy.toml is enough


class PrivateSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bins, strata, noise and deadlines of private sums."""

    bins: int = 64  # of each column that is binned
    # lowest and highest value by column; "" for columns not named
    ranges: dict[str, tuple[float, float]] = {}
    # between bins, by column, instead of bins of equal width
    edges: dict[str, tuple[float, ...]] = {}
    find_edges: bool = False  # whether a first sum over bins of equal width finds edges, so that bins hold equally many
    # values of columns; each combination has results of its own
    strata: dict[str, tuple[str | int | float, ...]] = {}
    epsilon: float | None = None  # of the differential privacy of one release; None: no noise
    delta: float = 0.0
    # sites that may combine what they know without weakening epsilon and delta for others
    colluding: int = 1
    # that a site has to join an epoch, and then to contribute; then it is left out
    deadline_seconds: float = 600.0


def suggested_bins(rows: int | None, epsilon: float | None) -> int:
    """Return a number of bins for which the errors of bins and of noise are of one size; without noise the most.

    Found by trying 4 to 64 bins for the AUC of 569 to 50,000 rows with epsilon 1 and 4. If the number of rows is not
    known, it is the least.
    """
    if epsilon is None:
        return MOST_BINS
    return (
        LEAST_BINS
        if rows is None
        else min(max(round((rows * epsilon) ** 0.4 / 3), LEAST_BINS), MOST_BINS)
    )


def check_settings(settings: PrivateSettings, place: str = "") -> None:
    """Raise `InputError` for values that no network can use; `place` stands before their names in messages."""
    if not 2 <= settings.bins <= MAX_BINS:
        raise InputError(
            f"{place}bins = {settings.bins!r} must be a whole number from 2 to {MAX_BINS:,}"
        )
    for column, ends in settings.ranges.items():
        if not (all(map(math.isfinite, ends)) and ends[0] < ends[1]):
            where = f"{place}ranges = {column}={ends[0]:g}:{ends[1]:g}"
            raise InputError(
                f"{where} must be the lowest and the highest value, in this order, such as risk=0:1"
            )
    for column, edges in settings.edges.items():
        if not (
            edges and all(map(math.isfinite, edges)) and all(a < b for a, b in pairwise(edges))
        ):
            raise InputError(
                f"{place}edges of {column!r} must be increasing numbers, such as risk=0.1,0.5"
            )
        if len(edges) >= MAX_BINS:
            raise InputError(
                f"{place}edges of {column!r} are {len(edges):,}; {MAX_BINS - 1:,} is the limit"
            )
    for column, levels in settings.strata.items():
        if not levels or len({str(level) for level in levels}) < len(levels):
            raise InputError(
                f"{place}strata of {column!r} must name each value once, such as sex=f,m"
            )
    epsilon, delta = settings.epsilon, settings.delta
    if epsilon is not None and not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(
            f"{place}epsilon = {epsilon!r} must be a positive number, such as 1; leave it out for no noise"
        )
    if not 0 <= delta < 1:
        raise InputError(
            f"{place}delta = {delta!r} must be a probability, far below one over the number of rows"
        )
    if delta and epsilon is None:
        raise InputError(
            f"{place}delta = {delta!r} is for differential privacy; give epsilon too, such as 1"
        )
    if settings.colluding < 0:
        raise InputError(
            f"{place}colluding = {settings.colluding!r} must be a number of sites, 0 or more"
        )
    if not 1 <= settings.deadline_seconds <= MAX_DEADLINE_SECONDS:
        raise InputError(
            f"{place}deadline_seconds = {settings.deadline_seconds!r} must be from 1 to {MAX_DEADLINE_SECONDS:,.0f}"
        )
