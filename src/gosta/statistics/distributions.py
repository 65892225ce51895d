"""Tails and quantiles of distributions that the standard library lacks, so that the base install needs no scipy."""

from __future__ import annotations

import math

RELATIVE_PRECISION = 1e-16
MOST_TERMS = 100_000  # of a series; about √x are needed


def chi_squared_tail(x: float, degrees: float) -> float:
    """Return the probability that a chi-squared variable exceeds x: the regularised upper incomplete gamma function.

    By its series below the mean and by Legendre's continued fraction (Lentz's method) above it.

    >>> round(chi_squared_tail(3.841458820694124, 1), 12), chi_squared_tail(0.0, 3)
    (0.05, 1.0)
    """
    if not x > 0:
        return 1.0
    if math.isinf(x):
        return 0.0
    a, z = degrees / 2, x / 2
    front = math.exp(a * math.log(z) - z - math.lgamma(a))
    if z < a + 1:
        return max(0.0, 1.0 - front * _series(a, z))
    return min(1.0, front * _fraction(a, z))


def chi_squared_quantile(share: float, degrees: float) -> float:
    """Return the value below which a chi-squared variable lies with a probability, by bisection.

    >>> round(chi_squared_quantile(0.95, 1), 9)
    3.841458821
    """
    low, high = 0.0, max(1.0, 2 * degrees)
    while chi_squared_tail(high, degrees) > 1 - share:
        low, high = high, 2 * high
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return high
        if chi_squared_tail(middle, degrees) > 1 - share:
            low = middle
        else:
            high = middle


def _series(a: float, z: float) -> float:
    """Return the lower incomplete gamma function over z^a e^−z."""
    term = total = 1 / a
    for k in range(1, MOST_TERMS):
        term *= z / (a + k)
        total += term
        if term < total * RELATIVE_PRECISION:
            break
    return total


def _fraction(a: float, z: float) -> float:
    """Return the upper incomplete gamma function over z^a e^−z."""
    tiny = 1e-300
    b = z + 1 - a
    c, d = 1 / tiny, 1 / b
    value = d
    for k in range(1, MOST_TERMS):
        factor = -k * (k - a)
        b += 2
        d = 1 / (factor * d + b or tiny)
        c = b + factor / c or tiny
        value *= c * d
        if abs(c * d - 1) < 4e-16:
            break
    return value
