"""Differential privacy of Gaussian noise, and of several releases together.

A release is (ε, δ)-private for a row if replacing the row changes the probability of no outcome by
more than a factor e^ε, up to δ. Gaussian noise with standard deviation σ, where replacing a row
moves the total by at most Δ, is described completely by μ = Δ/σ (Gaussian differential privacy,
Dong, Roth and Su):

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)        (Balle and Wang)

and several such releases by the root of the sum of their μ². Other mixtures are bounded by
concentrated differential privacy (zCDP): ρ = μ²/2 for Gaussian noise, ε²/2 for (ε, 0), and the sum
of ρ for several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

LEAST_EPSILON = 1e-6  # noise of a million rows
MAX_EPSILON = 100.0  # beyond which there is no privacy, and numbers below underflow
STEPS = 100  # of halving an interval: more than a float has digits


class Spent(NamedTuple):
    """The privacy of one release, for one row."""

    law: str  # of the noise: "laplace" or "gaussian"
    epsilon: float
    delta: float = 0.0
    # rows that one person has at most: privacy of a person is that of so many rows at once
    rows_per_person: int = 1


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return δ(ε) of Gaussian noise."""
    if mu == 0:
        return 0.0
    return max(
        0.0, _normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * _normal(-mu / 2 - epsilon / mu)
    )


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest μ for which Gaussian noise is (ε, δ)-private."""
    return _largest(lambda mu: gaussian_delta(epsilon, mu) <= delta, 0.0, 50.0)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest ε for which Gaussian noise is (ε, δ)-private; infinite beyond 100."""
    if delta <= 0:
        return 0.0 if mu == 0 else math.inf
    return _smallest_epsilon(lambda epsilon: gaussian_delta(epsilon, mu) <= delta)


def concentrated_epsilon(rho: float, delta: float) -> float:
    """Return the smallest known ε for which ρ-zCDP implies (ε, δ) (Canonne, Kamath and Steinke).

    Infinite beyond 100.

    δ = min over α > 1 of exp((α − 1)(αρ − ε)) / (α − 1) · (1 − 1/α)^α, whose logarithm is convex in
    log(α − 1).
    """
    if delta <= 0:
        return 0.0 if rho == 0 else math.inf

    def log_delta(epsilon: float, log_excess: float) -> float:
        excess = math.exp(log_excess)
        alpha = 1 + excess
        return excess * (alpha * rho - epsilon) - log_excess + alpha * math.log1p(-1 / alpha)

    def is_private(epsilon: float) -> bool:
        low, high = -20.0, 20.0
        for _ in range(STEPS):
            third = (high - low) / 3
            if log_delta(epsilon, low + third) < log_delta(epsilon, high - third):
                high -= third
            else:
                low += third
        return log_delta(epsilon, (low + high) / 2) <= math.log(delta)

    return _smallest_epsilon(is_private)


def total_epsilon(spent: Sequence[Spent], delta: float) -> float:
    """Return ε such that several releases together are (ε, δ)-private for a person.

    Infinite if there is none.

    >>> total_epsilon([Spent("laplace", 1.0), Spent("laplace", 0.5)], 1e-6)
    1.5
    >>> round(total_epsilon([Spent("gaussian", 1.0, 1e-6)] * 4, 1e-6), 2)
    2.12
    """
    pure = [
        release.epsilon * release.rows_per_person for release in spent if release.law == "laplace"
    ]
    squares = [
        (gaussian_mu(release.epsilon, release.delta) * release.rows_per_person) ** 2
        for release in spent
        if release.law != "laplace"
    ]
    simple = sum(pure) + (gaussian_epsilon(math.sqrt(sum(squares)), delta) if squares else 0.0)
    if not pure or delta <= 0:
        return simple
    return min(
        simple,
        concentrated_epsilon(sum(epsilon**2 for epsilon in pure) / 2 + sum(squares) / 2, delta),
    )


def _normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _largest(is_allowed: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_allowed(middle) else (low, middle)
    return low


def _smallest_epsilon(is_private: Callable[[float], bool]) -> float:
    if is_private(0.0):
        return 0.0
    if not is_private(MAX_EPSILON):
        return math.inf
    return -_largest(lambda negative: is_private(-negative), -MAX_EPSILON, 0.0)
