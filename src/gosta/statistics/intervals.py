"""Intervals from a network: besides row means, nodes estimate the means of their products, two at a time.

A statistic that is a function of mean kernel values varies, from one sample of rows to another, with 4/n times the
variance over rows of (slopes of the function) · (row means): for the AUC that is DeLong's variance, but for a share of
1/(rows in the smaller class).
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np

from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import Means, Numbers, Statistic, as_tuple


def with_mean_products(statistic: Statistic, width: int) -> Statistic:
    """Return a statistic for which the products of each two of a row's means are averaged too."""
    if statistic.no_interval:
        raise InputError(f"{statistic.name} has no interval: {statistic.no_interval}")
    if statistic.local is not None:
        reason = "nodes cannot compute its interval, which depends on more than each row's own mean"
        raise InputError(f"{statistic.name}: {reason}; gosta.exact computes it over rows in one place")
    pairs = list(combinations_with_replacement(range(width), 2))
    parts = [f"h[{c}]" for c in range(width)] + [f"h[{a}] * h[{b}]" for a, b in pairs]
    local = eval(f"lambda h: ({', '.join(parts)},)")  # written out, as compiled code needs it
    original = statistic.final or (lambda m: m)

    def final(m: Means, **options: object) -> Numbers:
        return as_tuple(original(tuple(m[:width]), **options))

    final.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    ranges = statistic.mean_ranges
    products = tuple(_product_range(ranges[a], ranges[b], a == b) for a, b in pairs) if ranges else ()
    return replace(statistic, local=local, moments=None, final=final, mean_ranges=ranges + products)


def _product_range(first: tuple[float, float], second: tuple[float, float], is_square: bool) -> tuple[float, float]:
    if not np.isfinite([first, second]).all():
        return -np.inf, np.inf
    corners = [a * b for a in first for b in second]
    return max(min(corners), 0.0) if is_square else min(corners), max(corners)


def standard_errors(means: Floats, slopes: Floats, n: int) -> Floats:
    """Return each node's standard error by the jackknife's formula; infinite where a node has no value yet.

    A row of `means` holds a node's means and mean products, one of `slopes` the derivatives of its value by the means;
    n is the number of rows in the population.
    """
    variance, width = np.zeros(len(means)), slopes.shape[1]
    with np.errstate(all="ignore"):
        for position, (a, b) in enumerate(combinations_with_replacement(range(width), 2), width):
            covariance = means[:, position] - means[:, a] * means[:, b]
            variance += (1 if a == b else 2) * slopes[:, a] * slopes[:, b] * covariance
    variance = np.where(np.isfinite(variance), np.maximum(variance, 0.0), np.inf)
    errors: Floats = np.sqrt(variance * 4 * (n - 1) / (n - 2) ** 2)
    return errors
