"""What a network of private sums computes, beyond the statistic and its columns."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Annotated

import msgspec

from gosta.errors import InputError
from gosta.runtime.settings_file import Key, check_numbers

MAX_BINS = 8192  # of a column: with two classes they fill a vector of sums
MAX_DEADLINE_SECONDS = 7 * 86_400
# by default; fewer suit only columns that are spread evenly over their range
LEAST_BINS, MOST_BINS = (16, 64)
RELEASES_IN_BUDGET = 10  # for which the budget of a new policy.toml is enough


class PrivateSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bins, strata, noise and deadlines of private sums."""

    bins: Annotated[int, Key("of each column", 2, MAX_BINS)] = 64
    ranges: Annotated[
        dict[str, tuple[float, float]],
        Key(
            "lowest and highest value of a column, beyond which values count as these; of the name "
            '"": of columns not named'
        ),
    ] = {}
    edges: Annotated[
        dict[str, tuple[float, ...]],
        Key("between the bins of a column, instead of bins of equal width"),
    ] = {}
    find_edges: Annotated[
        bool, Key("whether a first sum finds edges, so that bins hold equally many rows")
    ] = False
    strata: Annotated[
        dict[str, tuple[str | int | float, ...]],
        Key("columns and their values; there are results for each combination, or by groups"),
    ] = {}
    groups: Annotated[
        tuple[str, ...],
        Key(
            "of strata: a column alone, or several, such as sex+ward, whose values are combined; "
            "without it, all columns of strata"
        ),
    ] = ()
    epsilon: Annotated[
        float | None, Key("of the differential privacy of a release; without it there is no noise")
    ] = None
    delta: Annotated[float, Key("of the differential privacy of a release")] = 0.0
    colluding: Annotated[
        int, Key("sites that may combine what they know despite epsilon and delta of others", 0)
    ] = 1
    deadline_seconds: Annotated[
        float,
        Key(
            "seconds that a site has to join, and then to contribute to each round, before the "
            "others go on without it",
            1,
            MAX_DEADLINE_SECONDS,
        ),
    ] = 600.0


class FitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all sites declare of a regression model, beside ranges of columns and options."""

    terms: Annotated[
        tuple[str, ...], Key("of the model: columns, or such as C(stage), bs(age, df=4), age:sex")
    ]
    levels: Annotated[
        dict[str, tuple[str | int | float, ...]],
        Key("all values of each factor, the reference first"),
    ] = {}


def suggested_bins(rows: int | None, epsilon: float | None) -> int:
    """Return a number of bins for which the errors of bins and of noise are of one size.

    Found by trying 4 to 64 bins for the AUC of 569 to 50,000 rows with epsilon 1 and 4. Without
    noise it is the most, and if the number of rows is not known, it is the least.
    """
    if epsilon is None:
        return MOST_BINS
    return (
        LEAST_BINS
        if rows is None
        else min(max(round((rows * epsilon) ** 0.4 / 3), LEAST_BINS), MOST_BINS)
    )


def check_groups(
    groups: Sequence[str], columns: Collection[str], key: str = "groups", where: str = "columns"
) -> None:
    """Raise `InputError` for groups that name a column twice, or one that is not there."""
    seen: list[set[str]] = []
    for one in groups:
        names = one.split("+")
        for name in names:
            if name not in columns:
                raise InputError(f"{key} = {one!r}: {name!r} is not in {where}: add it there")
        if len({*names}) < len(names) or {*names} in seen:
            raise InputError(f"{key} = {', '.join(groups)}: give each column or combination once")
        seen.append({*names})


def check_settings(settings: PrivateSettings, place: str = "") -> None:
    """Raise `InputError` for values that no network can use; `place` stands before their keys."""
    check_numbers(settings, place)
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
    check_groups(settings.groups, settings.strata, f"{place}groups", f"{place}strata")
    epsilon, delta = settings.epsilon, settings.delta
    if epsilon is not None and not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(
            f"{place}epsilon = {epsilon!r} must be a positive number, such as 1; leave it out for "
            "no noise"
        )
    if not 0 <= delta < 1:
        raise InputError(
            f"{place}delta = {delta!r} must be a probability, far below one over the number of rows"
        )
    if delta and epsilon is None:
        raise InputError(
            f"{place}delta = {delta!r} is for differential privacy; give epsilon too, such as 1"
        )
