"""Rounding what follows from rows in one place before all sites see it: ranges of columns, bandwidths, centres."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np

from gosta.runtime.arrays import Floats

STEPS_IN_RANGE = 20  # of which a range consists, at most
ROOM = (
    2.0**-20
)  # by which a range around one value is wider than it: see `sketches/layout_builder.py`
LEAST_DIGITS, MOST_DIGITS = 2, 15  # significant ones
MAX_SHARE = 0.1  # of the least distance between centres, by which rounding may move one


def round_range(low: float, high: float) -> tuple[float, float]:
    """Return a range that contains another one, with ends at multiples of 1, 2 or 5 times a power of ten.

    >>> round_range(0.0123, 0.9871), round_range(6.981, 28.11)
    ((0.0, 1.0), (6.0, 30.0))
    """
    largest = max(abs(low), abs(high), 1.0)
    is_one_value = abs((high - low) / (2 * ROOM * largest) - 1) < 1e-3
    step = _step((largest if is_one_value else high - low) / STEPS_IN_RANGE)
    ends = (
        float((Decimal(end) / step).to_integral_value(rounding) * step) + 0.0
        for end, rounding in ((low, ROUND_FLOOR), (high, ROUND_CEILING))
    )
    rounded_low, rounded_high = ends
    return (rounded_low, rounded_high) if math.isfinite(rounded_high - rounded_low) else (low, high)


def _step(least: float) -> Decimal:
    """Return the least of the numbers 1, 2 or 5 times a power of ten that is not below another one."""
    exponent = math.floor(math.log10(least))
    steps = (Decimal(factor).scaleb(exponent) for factor in (1, 2, 5, 10))
    return next((step for step in steps if float(step) >= least), Decimal(1).scaleb(exponent + 1))


def round_number(number: float) -> float:
    """Return a number with few digits.

    >>> round_number(0.012345)
    0.012
    """
    return float(f"{number:.{LEAST_DIGITS}g}")


def round_centres(centres: Floats) -> Floats:
    """Return centres of clusters, one a row, with as few digits as keep them apart from each other."""
    if len(centres) < 2:
        return _with_digits(centres, LEAST_DIGITS)
    distances = np.sqrt(((centres[:, None] - centres[None]) ** 2).sum(axis=-1))
    least = distances[~np.eye(len(centres), dtype=bool)].min()
    for digits in range(LEAST_DIGITS, MOST_DIGITS + 1):
        rounded = _with_digits(centres, digits)
        if np.sqrt(((rounded - centres) ** 2).sum(axis=-1)).max() <= MAX_SHARE * least:
            return rounded
    return centres


def _with_digits(centres: Floats, digits: int) -> Floats:
    rounded: Floats = np.array(
        [[float(f"{number:.{digits}g}") for number in row] for row in centres.tolist()]
    )
    return rounded
