"""Powers of numbers near one, given by their distance from one, without loss of digits."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from gosta.runtime.arrays import Floats, Integers

Rates: TypeAlias = float | Floats
Times: TypeAlias = float | Floats | Integers


def power(rate: Rates, t: Times) -> Floats:
    """Return (1 − rate)^t."""
    near = np.minimum(rate, 0.5)
    return np.asarray(np.where(rate < 0.5, np.exp(t * np.log1p(-near)), np.power(1.0 - rate, t)))


def power_sum(rate: Rates, t: Times) -> Floats:
    """Return 1 + x + ... + x^(t−1) for x = 1 − rate."""
    near = np.minimum(rate, 0.5)
    lost = np.where(rate < 0.5, -np.expm1(t * np.log1p(-near)), 1 - np.power(1.0 - rate, t))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(np.abs(rate) < 1e-300, t, lost / rate))


def power_quotient(one: Floats, other: Floats, t: int) -> Floats:
    """Return (x^t − y^t)/(x − y) for x = 1 − one, y = 1 − other: the sum of x^r y^(t−1−r) over r."""
    gap = other - one
    with np.errstate(divide="ignore", invalid="ignore"):
        out: Floats = (power(one, t) - power(other, t)) / gap
    # Where the two are too near for a difference, its slope at the middle; either way ten digits are left.
    near = t * np.abs(gap) < 1e-5 * np.abs(1 - one)
    out[near] = t * power((one + other)[near] / 2, t - 1)
    return out
