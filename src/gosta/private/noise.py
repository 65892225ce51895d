"""Noise of differential privacy, in shares: those of all honest sites have the law together.

Noise lives on the grid on which features are summed, multiples of 2^-bits, so that nothing is lost
to rounding of floats and the total tells nothing but its value. Of two laws the one with less
variance is taken:

* discrete Laplace, P(k) ∝ exp(−|k| ε/Δ₁), for (ε, 0): a share is the difference of two Pólya
(negative binomial)
  numbers, and a sum of n shares with index 1/n has the law exactly. Only if all features are
  counts: the grid is 1.
* discrete Gaussian, for (ε, δ): a sum of discrete Gaussian numbers is one again, up to
exp(−2π²·32²/2), if each has a
  standard deviation of 32 grid units or more.

Neighbouring data differ in one row, which is replaced: with f features of a row, each from 0 to 1,
the sums move by at most Δ₁ = 2f, or Δ₂ = √(2f); less where the same features of all rows are not
zero.

Numbers are drawn with a table of cumulative probabilities, computed with integers to 2^-64, from 64
bits each of the operating system's generator. A discrete Gaussian number of a large standard
deviation is A + 8B + 64C + ..., whose summands are of one table with a standard deviation of at
least 32: by the convolution lemma (Micciancio and Walter) the sum is discrete Gaussian up to
exp(−2π²·(32/8.1)²), which is 10^-134.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from gosta.errors import InputError
from gosta.private.accounting import LEAST_EPSILON, MAX_EPSILON, gaussian_epsilon, gaussian_mu
from gosta.private.settings import PrivateSettings
from gosta.runtime.arrays import Floats, Integers, Words

Random = Callable[[int], bytes]

SUM_BITS = 24  # of fractions that are summed
LEAST_DEVIATION = 32.0  # grid units
LEVEL_FACTOR = 8  # between the summands of a Gaussian number of a large standard deviation
# On a grid δ is larger than the formula for real numbers says, by less than this factor of σ.
GRID_MARGIN = 1.0005
PRECISION_BITS = 192  # of probabilities in tables, of which 64 are kept
MAX_TABLE = 1 << 18  # numbers in a table: a second's work


class Summed(Protocol):
    """What noise has to know of the sums."""

    @property
    def features_per_row(self) -> int: ...
    @property
    def squared_change(self) -> float: ...
    @property
    def are_counts(self) -> bool: ...
    @property
    def bits(self) -> int: ...
    @property
    def most_features(self) -> int: ...
    @property
    def budget_share(self) -> float: ...


class Noise(NamedTuple):
    """The noise of one total."""

    law: str  # "none", "laplace" or "gaussian"
    # Of the honest sites' total, in units of features: the Laplace law's, or the standard
    # deviation.
    scale: float
    bits: int  # the grid is 2^-bits
    epsilon: float  # of the total
    delta: float
    participants: int = 1
    shares: int = 1  # that have the law together: those of all participants but the colluding ones

    @property
    def variance(self) -> float:
        """Variance of the total of all participants, in units of features."""
        return self.participants / self.shares * _variance(self.law, self.scale)

    @property
    def reach(self) -> float:
        """The largest noise of a total, in units of features, but once in a billion totals."""
        deviation = math.sqrt(self.variance)
        return (
            math.ceil(40 * max(deviation, self.scale)) if self.law == "laplace" else 10 * deviation
        )


NO_NOISE = Noise("none", 0.0, SUM_BITS, 0.0, 0.0)


def choose_noise(
    settings: PrivateSettings, sums: Summed, participants: int, rows: Sequence[int] = ()
) -> Noise:
    """Return the noise of one total; of two, if edges are found first, each has half of epsilon.

    Rounds of a fit have shares of μ², which add up to that of epsilon and delta.

    `rows` are the most that each participant can have, if that is known.
    """
    if settings.epsilon is None:
        return NO_NOISE._replace(bits=_exact_bits(sums, rows))
    if settings.epsilon < LEAST_EPSILON:
        raise InputError(
            f"epsilon = {settings.epsilon:g} is so much noise that nothing is left; "
            f"set at least {LEAST_EPSILON:g}"
        )
    if settings.epsilon > MAX_EPSILON:
        raise InputError(
            f"epsilon = {settings.epsilon:g} is next to no privacy; set at most {MAX_EPSILON:g}"
        )
    rounds = 2 if settings.find_edges else 1
    epsilon, delta = settings.epsilon / rounds, settings.delta / rounds
    if sums.budget_share < 1:
        mu = math.sqrt(sums.budget_share) * gaussian_mu(epsilon, delta)
        epsilon = gaussian_epsilon(mu, delta)
    shares = participants - settings.colluding
    if shares < 1:
        raise InputError(
            f"colluding = {settings.colluding} of {participants} participants leaves no site whose "
            f"noise counts; set it to at most {participants - 1}"
        )
    laws = []
    if sums.are_counts:
        laws.append(
            Noise(
                "laplace",
                2 * sums.features_per_row / epsilon,
                0,
                epsilon,
                0.0,
                participants,
                shares,
            )
        )
    if delta > 0:
        deviation = GRID_MARGIN * math.sqrt(sums.squared_change) / gaussian_mu(epsilon, delta)
        least = math.ceil(math.log2(LEAST_DEVIATION * math.sqrt(shares) / deviation))
        bits = max(0, least) if sums.are_counts else max(sums.bits, least)
        laws.append(Noise("gaussian", deviation, bits, epsilon, delta, participants, shares))
    if not laws:
        raise InputError(
            "delta = 0 suits statistics that are functions of counts only; set it, such as to 1e-6"
        )
    chosen = min(laws, key=lambda noise: noise.variance)
    if chosen.law == "laplace" and _laplace_table_size(chosen.scale) > MAX_TABLE:
        raise InputError(
            f"epsilon = {settings.epsilon:g} is too small without a delta; "
            "set delta, such as to 1e-6"
        )
    return chosen


def _exact_bits(sums: Summed, rows: Sequence[int]) -> int:
    """Return how many binary digits of fractions are summed without noise: those of the sums.

    They are fewer where totals would not be exact in a float64, or sums of pads, which are up to
    7.5 times those of a site, in 60 bits.
    """
    if not rows:
        return sums.bits
    total, largest = sum(rows), 7.5 * max(rows) * sums.most_features
    most = min(53 - math.log2(max(total, 1)), 60 - math.log2(max(largest, 1)))
    return max(min(sums.bits, math.floor(most)), min(sums.bits, SUM_BITS))


def draw(noise: Noise, size: int, random: Random = os.urandom) -> Words:
    """Draw one site's share of the noise, in grid units, modulo 2^64."""
    total = np.zeros(size, dtype=np.int64)
    if noise.law == "laplace":
        table = _polya_table(noise.scale, noise.shares)
        total = _look_up(table, size, random) - _look_up(table, size, random)
    elif noise.law == "gaussian":
        deviation, levels = _levels(noise.scale * 2**noise.bits / math.sqrt(noise.shares))
        table = _gaussian_table(deviation)
        for level in range(levels):
            total += (_look_up(table, size, random) - len(table) // 2) * LEVEL_FACTOR**level
    return total.view(np.uint64)


def _look_up(table: Words, size: int, random: Random) -> Integers:
    return np.searchsorted(
        table, np.frombuffer(random(8 * size), dtype="<u8").astype(np.uint64), side="right"
    )


def _levels(deviation: float) -> tuple[float, int]:
    """Return the standard deviation of each summand of a number, and how many there are."""
    levels = 1
    while deviation / _spread(levels + 1) >= LEAST_DEVIATION:
        levels += 1
    return deviation / _spread(levels), levels


def _spread(levels: int) -> float:
    """Return the standard deviation of A + 8B + 64C + ... in units of that of each."""
    return math.sqrt(sum(LEVEL_FACTOR ** (2 * level) for level in range(levels)))


def _variance(law: str, scale: float) -> float:
    if law == "laplace":
        ratio = math.exp(-1 / scale)
        return 2 * ratio / (1 - ratio) ** 2
    return scale**2


def _laplace_table_size(scale: float) -> int:
    return math.ceil(64 * math.log(2) * scale) + 2


@lru_cache(maxsize=16)
def _polya_table(scale: float, shares: int) -> Words:
    """Return the cumulative probabilities, times 2^64, of a negative binomial number.

    Its index is 1/shares.

    P(0) = (1 − a)^(1/shares), P(k + 1) = P(k) · a · (k + 1/shares) / (k + 1), a = exp(−1/scale).
    """
    with localcontext() as context:
        context.prec = 80
        a = (-1 / Decimal(scale)).exp()
        first = ((1 - a).ln() / shares).exp()
        unit = Decimal(2) ** PRECISION_BITS
        ratio, probability = int(a * unit), int(first * unit)
    cumulated, sums = 0, []
    for k in range(_laplace_table_size(scale)):
        cumulated += probability
        sums.append(cumulated)
        probability = probability * ratio * (k * shares + 1) // (shares * (k + 1)) >> PRECISION_BITS
    return _rounded(sums, 1 << PRECISION_BITS)


@lru_cache(maxsize=16)
def _gaussian_table(deviation: float) -> Words:
    """Return the cumulative probabilities of −K, ..., K − 1 times 2^64; K is 10 deviations.

    The weight of k is exp(−k²/2σ²): the ratio of the weights of k + 1 and k is q^(2k + 1), where q
    = exp(−1/2σ²).
    """
    with localcontext() as context:
        context.prec = 80
        unit = Decimal(2) ** PRECISION_BITS
        q = int((-1 / (2 * Decimal(deviation) ** 2)).exp() * unit)
    weight, ratio, weights = 1 << PRECISION_BITS, q, []
    for _ in range(math.ceil(10 * deviation) + 1):
        weights.append(weight)
        weight = weight * ratio >> PRECISION_BITS
        ratio = (ratio * q >> PRECISION_BITS) * q >> PRECISION_BITS
    cumulated, sums = 0, []
    for weight in [*weights[:0:-1], *weights[:-1]]:  # that of K is what remains
        cumulated += weight
        sums.append(cumulated)
    return _rounded(sums, cumulated + weights[-1])


def _rounded(sums: list[int], whole: int) -> Words:
    """Return shares of a whole as numbers of 64 bits.

    Those that round to the whole are the largest number.
    """
    return np.array([min((part << 64) // whole, 2**64 - 1) for part in sums], dtype=np.uint64)


class SumsOfRows(Protocol):
    """What a site adds up over its rows."""

    @property
    def size(self) -> int: ...
    def sums(self, x: Floats, bits: int) -> Words:
        """Return the sums over encoded rows, in grid units modulo 2^64."""


def site_vector(sums: SumsOfRows, x: Floats, noise: Noise, random: Random = os.urandom) -> Words:
    """Return the sums over a site's rows and its share of the noise, in grid units modulo 2^64."""
    return sums.sums(x, noise.bits) + draw(noise, sums.size, random)


def open_totals(vectors: Iterable[Words], noise: Noise) -> tuple[Integers, Floats]:
    """Return the total of all contributions, in grid units and in units of features."""
    # Sums of numbers with a sign wrap as those of words do.
    exact: Integers = np.array([vector.view(np.int64) for vector in vectors]).sum(axis=0)
    return exact, np.asarray(exact / 2.0**noise.bits)
