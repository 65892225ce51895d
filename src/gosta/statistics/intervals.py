"""Confidence intervals for the population.

One formula serves rows in one place and nodes of a network.

A statistic that is a function of mean kernel values varies, from one sample of rows to another,
with 4/n times the variance over rows of ψ = (slopes of the function) · (row means). Two samples
contribute two variances, which for the AUC is DeLong's formula. A node has no row means but its
own: it estimates the means over all rows of their products, from which the same numbers follow.

The ends are value ± t · error on a scale on which the statistic is about symmetric (the field
`scale`), transformed back; t is Student's quantile, with Satterthwaite's degrees of freedom. Where
the skewness of ψ is known, both reaches are Hall's instead, and where the standard error grows with
the value, the upper one takes that into account. docs/explanation/intervals.md says why, and what
it covers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import combinations_with_replacement
from math import factorial, prod
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import Means, Numbers, RowSums, Statistic, apply_to_rows, as_tuple
from gosta.statistics.distributions import student_quantile

NEGLIGIBLE = 1e-9  # share of the range of values: a smaller standard error is none
ROUNDING = 1e-12  # the same where there is no range, relative to the value
# Relative, of the differences of the fourth order that slopes come from: they are right to 1e-12.
STEP = 1e-4
# Kernel values up to which nodes also estimate the fourth power of ψ, for heavy tails: 4 means for
# one, 14 for two.
MAX_HEAVY_WIDTH = 2
FEW_TRIALS = 3.0  # so many disjoint pairs of rows tell nothing about their spread


class Spread(NamedTuple):
    """How values vary from one sample of rows to another: one number for each value."""

    error: Floats  # standard error; infinite where there is no value
    degrees: Floats  # of freedom, of its square
    trials: Floats  # independent pairs of rows that the value rests on
    skewness: Floats | float = float("nan")  # of the value; NaN: not known


class Scale(NamedTuple):
    """A function to a scale on which intervals are symmetric, its derivative, and the way back."""

    forward: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]


SCALES: Mapping[str, Scale] = {
    "plain": Scale(lambda v: v, np.ones_like, lambda z: z),
    "log": Scale(np.log, lambda v: 1 / v, np.exp),
    "reciprocal": Scale(
        lambda v: -1 / v, lambda v: v**-2.0, lambda z: np.where(z < 0, -1 / z, np.inf)
    ),
    # Of the place between two bounds; for −1 and 1 that is twice Fisher's z.
    "logit": Scale(
        lambda v: np.log(v / (1 - v)), lambda v: 1 / (v * (1 - v)), lambda z: 1 / (1 + np.exp(-z))
    ),
    # Of a share that survives, a product over times, and of the share that does not.
    "log-log": Scale(
        lambda v: np.log(-np.log(v)), lambda v: 1 / (v * np.log(v)), lambda z: np.exp(-np.exp(z))
    ),
    "complementary log-log": Scale(
        lambda v: np.log(-np.log1p(-v)),
        lambda v: 1 / ((v - 1) * np.log1p(-v)),
        lambda z: -np.expm1(-np.exp(z)),
    ),
    # Of the square of a value between 0 and 1: Fisher's z, and the root of the ends.
    "root": Scale(np.arctanh, lambda v: 1 / (1 - v * v), lambda z: np.sqrt(np.tanh(z).clip(0.0))),
    # Of a squared distance between distributions, which is 0 where they are equal.
    "distance": Scale(lambda v: v, np.ones_like, lambda z: z.clip(0.0)),
}
SURVIVAL = ("log-log", "complementary log-log")  # on which the quantile is the normal one
BOUNDED = ("logit", "root", *SURVIVAL)  # scales of values between two bounds
# where standard errors grow with the root of the value, from little at 0
GROWING = ("root", "distance")
# where Hall's transformation on the plain scale is better, if the skewness is known
SKEWED = ("plain", "log")


def interval_ends(
    scale: str, bounds: tuple[float, float], centre: Floats, spread: Spread, level: float
) -> tuple[Floats, Floats]:
    """Return the lower and upper ends of intervals; NaN where there is none.

    Where the standard error is zero, as of the AUC of perfectly separated rows, and the value lies
    between two bounds, the interval is Wilson's for a share of as many independent trials as there
    are disjoint pairs of rows. Otherwise there is none: rows that are all alike say nothing about
    the population.
    """
    if scale not in SCALES:
        raise InputError(f"scale = {scale!r} must be one of: {', '.join(SCALES)}")
    origin, unit = (bounds[0], bounds[1] - bounds[0]) if scale in BOUNDED else (0.0, 1.0)
    value, error = (np.clip(centre, *bounds) - origin) / unit, spread.error / unit
    with np.errstate(all="ignore"):
        degrees = np.full(value.shape, np.inf) if scale in SURVIVAL else spread.degrees
        quantile = _student_quantiles(level, degrees)
        low, high = _ends_on(SCALES[scale], value, error, quantile, quantile)
        span = bounds[1] - bounds[0]
        is_known = error > ROUNDING * np.maximum(np.abs(value), span if np.isfinite(span) else 0.0)
        has_few = np.full(value.shape, False)
        others: Sequence[Floats] = [np.full_like(value, np.nan)] * 2
        if scale in SKEWED:
            skewed = _ends_on(
                SCALES["plain"], value, error, *_hall_reaches(quantile, spread.skewness)
            )
            # Far from normal, the lower end can be none: negative for a variance.
            has_skewness = np.isfinite(skewed[0])
            low = np.where(has_skewness & (skewed[0] > bounds[0]), skewed[0], low)
            high = np.where(has_skewness, skewed[1], high)
        if scale in GROWING:
            reach = _growing_reach(
                quantile, SCALES[scale].forward(value) / (error * SCALES[scale].slope(value))
            )
            high = _ends_on(SCALES[scale], value, error, quantile, reach)[1]
        if scale in BOUNDED:
            least = 0.0 if scale == "root" else NEGLIGIBLE
            is_known = (error > NEGLIGIBLE) & (value >= least) & (value <= 1 - NEGLIGIBLE)
            has_few = (spread.trials <= FEW_TRIALS) & (scale == "logit")
            others = [
                end ** (0.5 if scale == "root" else 1.0)
                for end in wilson_ends(value, spread.trials, level)
            ]
        ends = [
            np.where(is_known & ~has_few, end, o)
            for end, o in zip((low, high), others, strict=True)
        ]
        has_none = ~np.isfinite(error) | np.isnan(value)
        low, high = (
            np.where(has_none, np.nan, np.clip(origin + unit * end, *bounds)) for end in ends
        )
    return low, high


def ends_by_errors(
    scale: str,
    bounds: tuple[float, float],
    values: Floats,
    errors: Floats,
    trials: Floats,
    level: float,
) -> tuple[Floats, Floats]:
    """Return the ends of intervals of values with these errors, resting on so many rows each.

    On the scale "share" they are Wilson's, which take the rows only.
    """
    if scale == "share":
        return wilson_ends(values, trials, level)
    spread = Spread(errors, np.maximum(trials - 1, 1.0), trials)
    return interval_ends(scale, bounds, values, spread, level)


def _ends_on(
    scale: Scale, value: Floats, error: Floats, down: Floats, up: Floats
) -> tuple[Floats, Floats]:
    """Return both ends, so many standard errors below and above the value on a scale."""
    middle, unit = scale.forward(value), error * scale.slope(value)
    return scale.back(middle - down * unit), scale.back(middle + up * unit)


def _hall_reaches(quantile: Floats, skewness: Floats | float) -> tuple[Floats, Floats]:
    """Return how many standard errors an interval reaches down and up, for a skewness of the value.

    Studentised values are skew the other way. Hall's cubic transformation (1992) removes that, and
    can be inverted.
    """
    skew = np.where(np.abs(skewness) < ROUNDING, ROUNDING, skewness)

    def inverse(z: Floats) -> Floats:
        return np.asarray(3 / skew * (np.cbrt(1 + skew * (z - skew / 6)) - 1))

    return inverse(quantile), -inverse(-quantile)


def _growing_reach(quantile: Floats, value: Floats) -> Floats:
    """Return the upper reach where the variance is proportional to the true value.

    It is in units of the standard error.

    The upper end is that value whose own standard error reaches back to what was found, as in
    Wilson's interval. The variance was found at the value, but not at 0, where it is not 0: so it
    is taken as one at the value plus one error.
    """
    found = np.maximum(value, 0.0)
    growth = quantile**2 / (found + 1)
    reach: Floats = found - value + growth / 2 + np.sqrt(growth * found + growth**2 / 4)
    return reach


def _student_quantiles(level: float, degrees: Floats) -> Floats:
    distinct, places = np.unique(degrees, return_inverse=True)
    if (
        len(distinct) > 1
    ):  # of many nodes: three digits are enough, and most quantiles are known already
        distinct = np.array([float(f"{number:.3g}") for number in distinct.tolist()])
    quantiles = np.array([_student_quantile(level, number) for number in distinct.tolist()])
    return np.asarray(quantiles[places.reshape(degrees.shape)])


_student_quantile = lru_cache(maxsize=4096)(student_quantile)


def wilson_ends(share: Floats, trials: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's interval for a share of independent trials."""
    z = NormalDist().inv_cdf(0.5 + level / 2)
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    reach = (
        z / (1 + z * z / trials) * np.sqrt(share * (1 - share) / trials + z * z / (4 * trials**2))
    )
    # The formula gives 1 for a share of 1 but for rounding.
    return np.where(share <= 0, 0.0, middle - reach), np.where(share >= 1, 1.0, middle + reach)


def gradients(
    function: Callable[[Floats], Floats], means: Floats, used: int | None = None
) -> Floats:
    """Return the derivative of each value of a function by each mean: r × p × k.

    It is taken at each row of means.

    `used` is how many of the means, the first ones, the function depends on; by default all.
    """
    largest = np.abs(means[:, :used]).max(axis=1, keepdims=True)
    steps = np.maximum(np.abs(means), largest * 1e-3) * STEP + 1e-300
    changes = []
    for c in range(means.shape[1]):
        step = np.where(np.arange(means.shape[1]) == c, steps, 0.0)
        with np.errstate(invalid="ignore"):  # where there is no value
            near, far = (function(means + f * step) - function(means - f * step) for f in (1, 2))
            changes.append((8 * near - far) / (12 * steps[:, c : c + 1]))
    return np.stack(changes, axis=2)


def centre_values(
    statistic: Statistic, means: Floats, n: int, final_values: Callable[[Floats], Floats]
) -> Floats:
    """Return what intervals are about: the value, or what replaces it to have no bias."""
    if statistic.centre is None:
        return final_values(means)
    return apply_to_rows(lambda m: statistic.centre(m, n), means)  # type: ignore[misc]


def spread_of_rows(
    statistic: Statistic, means: Floats, slopes: Floats, sample: Floats | None
) -> Spread:
    """Return the spread of a value from means of all rows, n × k, and its slopes by each mean."""
    n, psi = len(means), means @ slopes
    if np.ptp(psi) <= ROUNDING * float((np.abs(means) @ np.abs(slopes)).max()):
        psi = np.full(n, psi[0])  # what differs is rounding
    trials = _trials(statistic, means.mean(axis=0)[None], n)
    if sample is None:
        gaps = psi - psi.mean()
        higher = [
            (gaps**k).mean() if is_heavy(statistic, means.shape[1]) else np.nan for k in (3, 4)
        ]
        second, third, fourth = (np.array([moment]) for moment in ((gaps**2).mean(), *higher))
        return _one_sample(second, third, fourth, trials, n)
    parts = [psi[sample > 0], psi[sample < 0]]
    return _two_samples([(len(p), np.array([p.var()])) for p in parts], n)


def spread_of_means(statistic: Statistic, means: Floats, slopes: Floats, n: int) -> Spread:
    """Return the spread of a value from means that nodes estimate, products included."""
    width = slopes.shape[1]
    products = _products(statistic, width)
    place = {(c,): c for c in range(width)} | {
        chosen: width + k for k, chosen in enumerate(products)
    }

    def power(exponent: int, *others: int) -> Floats:
        total = np.zeros(len(means))
        for chosen in combinations_with_replacement(range(width), exponent):
            repeats = prod(factorial(chosen.count(c)) for c in set(chosen))
            at = place.get(tuple(sorted((*others, *chosen))))
            if at is not None:
                factor = (
                    factorial(exponent) / repeats * np.prod([slopes[:, c] for c in chosen], axis=0)
                )
                total += factor * means[:, at]
        return total

    with np.errstate(all="ignore"):
        first, second = power(1), power(2)
        both = statistic.both_first
        if both is None:
            m2, m3, m4 = second - first**2, *[np.full(len(means), np.nan)] * 2
            if is_heavy(statistic, width):
                m3 = power(3) - 3 * second * first + 2 * first**3
                m4 = power(4) - 4 * power(3) * first + 6 * second * first**2 - 3 * first**4
            return _one_sample(m2, m3, m4, _trials(statistic, means[:, :width], n), n)
        # A row's mean of the indicator is the same number for all rows of the first sample, and 0
        # for the others.
        share = means[:, place[(both, both)]] / means[:, both]
        count = share * n if statistic.normalisation == "V" else 1 + share * (n - 1)
        count = np.clip(np.rint(np.nan_to_num(count, nan=2.0)), 2, max(2, n - 2))
        of_first = power(1, both) / share, power(2, both) / share
        parts = []
        for rows, total, squares in (
            (count, *of_first),
            (n - count, first - of_first[0], second - of_first[1]),
        ):
            parts.append((rows, squares * n / rows - (total * n / rows) ** 2))
        return _two_samples(parts, n)


def _one_sample(m2: Floats, m3: Floats, m4: Floats, trials: Floats, n: int) -> Spread:
    """Return a spread from central moments of ψ: by the formula of the jackknife.

    The variance of a variance is (kurtosis − 1)/n of its square, as of χ² with 2n/(kurtosis − 1)
    degrees of freedom.
    """
    with np.errstate(all="ignore"):
        degrees = 2 * n / np.clip(m4 / m2**2 - 1, 2.0, None)
        degrees = np.clip(np.nan_to_num(degrees, nan=np.inf), 1.0, n - 1.0)
        # of n numbers it cannot be more
        skewness = np.clip(m3 / np.maximum(m2, 0.0) ** 1.5 / np.sqrt(n), -1.0, 1.0)
        return Spread(_root(m2 * 4 * (n - 1) / (n - 2) ** 2), degrees, trials, skewness)


def _two_samples(parts: Sequence[tuple[Floats | int, Floats]], n: int) -> Spread:
    """Return a spread from the rows of two samples and the variances of ψ in them."""
    with np.errstate(all="ignore"):
        terms = [4 / n**2 * rows * np.maximum(m2, 0.0) * rows / (rows - 1) for rows, m2 in parts]
        total = terms[0] + terms[1]
        least = np.minimum(parts[0][0], parts[1][0])
        degrees = total**2 / sum(
            t**2 / (rows - 1) for t, (rows, _) in zip(terms, parts, strict=True)
        )
        degrees = np.where(np.isfinite(degrees), np.maximum(degrees, least - 1.0), least - 1.0)
        return Spread(
            _root(total), np.maximum(degrees, 1.0), np.broadcast_to(least, total.shape) * 1.0
        )


def _root(variance: Floats) -> Floats:
    return np.sqrt(np.where(np.isfinite(variance), np.maximum(variance, 0.0), np.inf))


def _trials(statistic: Statistic, means: Floats, n: int) -> Floats:
    share = statistic.comparable
    return n / 2 * (np.ones(len(means)) if share is None else np.clip(means[:, share], 2 / n, 1.0))


def is_heavy(statistic: Statistic, width: int) -> bool:
    """Return whether few rows can dominate the error, so that its degrees are estimated too."""
    ranges = statistic.mean_ranges[:width]
    is_bounded = bool(ranges) and bool(np.isfinite(ranges).all())
    return statistic.sample_index is None and width <= MAX_HEAVY_WIDTH and not is_bounded


def _products(statistic: Statistic, width: int) -> list[tuple[int, ...]]:
    """Return which row means are multiplied: each two, for two samples with the indicator too."""
    products = list(combinations_with_replacement(range(width), 2))
    both = statistic.both_first
    if (
        both is not None
    ):  # the value does not depend on an indicator that was added, the last of the kernel values
        products += [
            tuple(sorted((both, *pair)))  # type: ignore[misc]
            for pair in products
            if both < width - 1 or both not in pair
        ]
    if is_heavy(statistic, width):
        products += [
            chosen  # type: ignore[misc]
            for degree in (3, 4)
            for chosen in combinations_with_replacement(range(width), degree)
        ]
    return list(dict.fromkeys(products))


def product_degree(statistic: Statistic, width: int) -> int:
    """Return how many row means are multiplied at most."""
    return max(map(len, _products(statistic, width)))


def with_mean_products(statistic: Statistic, width: int) -> Statistic:
    """Return a statistic for which products of a row's means are averaged too."""
    if statistic.no_interval:
        raise InputError(f"{statistic.name} has no interval: {statistic.no_interval}")
    if statistic.local is not None:
        reason = "nodes cannot compute its interval, which depends on more than each row's own mean"
        raise InputError(
            reason,
            remedy="gosta.exact computes it over rows in one place",
            statistic=statistic.name,
        )
    products = _products(statistic, width)
    parts = [f"h[{c}]" for c in range(width)] + [
        " * ".join(f"h[{c}]" for c in chosen) for chosen in products
    ]
    local = eval(f"lambda h: ({', '.join(parts)},)")  # written out, as compiled code needs it
    original = statistic.final or (lambda m: m)

    def final(m: Means, **options: object) -> Numbers:
        return as_tuple(original(tuple(m[:width]), **options))

    final.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    ranges = statistic.mean_ranges
    of_products = (
        tuple(_product_range([ranges[c] for c in chosen], chosen) for chosen in products)
        if ranges
        else ()
    )
    return replace(
        statistic, local=local, moments=None, final=final, mean_ranges=ranges + of_products
    )


def _product_range(
    ranges: list[tuple[float, float]], chosen: tuple[int, ...]
) -> tuple[float, float]:
    if not np.isfinite(ranges).all():
        return -np.inf, np.inf
    low, high = ranges[0]
    for first, last in ranges[1:]:
        corners = [a * b for a in (low, high) for b in (first, last)]
        low, high = min(corners), max(corners)
    return max(low, 0.0) if all(chosen.count(c) % 2 == 0 for c in chosen) else low, high


@cache
def with_samples(statistic: Statistic, width: int, returns_tuple: bool) -> Statistic:
    """Return a statistic whose kernel also says whether both rows are in the first sample."""
    column, fast, original = (
        statistic.sample_index,
        statistic.fast,
        statistic.final or (lambda m: m),
    )
    if column is None or statistic.both_first is not None:
        return statistic
    options = statistic.options_by_part({})["kernel"]
    value = f"kernel(x, y{''.join(f', {name}' for name in options)})"
    both = "1.0 * (x[{0}] > 0.0) * (y[{0}] > 0.0)".format("len(x) - 1" if column == -1 else column)
    parameters = "".join(f", {name}={default!r}" for name, default in options.items())
    # Written out and a function of `kernel`, so that both are compiled.
    text = (
        f"lambda kernel: lambda x, y{parameters}: {value if returns_tuple else f'({value},)'} + "
        f"({both},)"
    )

    def fast_too(x: Floats) -> RowSums | None:
        rows = None if fast is None else fast(x)
        if rows is None or rows.diagonal is None:
            return None
        own = np.where(x[:, column] > 0, 1.0, 0.0)[:, None]
        diagonal = np.broadcast_to(rows.diagonal, rows.sums.shape)
        return RowSums(np.hstack([rows.sums, own * (own.sum() - 1)]), np.hstack([diagonal, own]))

    def final(m: Means, **options: object) -> Numbers:
        return as_tuple(original(tuple(m[:width]), **options))

    final.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    ranges = (*statistic.mean_ranges, (0.0, 1.0)) if statistic.mean_ranges else ()
    return replace(
        statistic,
        kernel=eval(text)(statistic.kernel),
        fast=fast_too,
        final=final,
        mean_ranges=ranges,
        both_first=width,
    )
