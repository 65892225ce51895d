"""Noise has its law, in shares and in total.

(ε, δ) are what they should be, by formula and by measurement.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from gosta.errors import InputError
from gosta.private import noise as module
from gosta.private.accounting import (
    Spent,
    concentrated_epsilon,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    total_epsilon,
)
from gosta.private.noise import NO_NOISE, Noise, choose_noise, draw
from gosta.private.settings import PrivateSettings
from gosta.runtime.arrays import Floats

FALSE_ALARM = 1e-6  # of each test below, over seeds


class Sums(NamedTuple):
    features_per_row: int = 1
    are_counts: bool = True
    bits: int = 24
    most_features: int = 1
    budget_share: float = 1.0

    @property
    def squared_change(self) -> float:
        return 2.0 * self.features_per_row


def noise_of(
    epsilon: float, delta: float = 0.0, participants: int = 4, colluding: int = 1, **sums: Any
) -> Noise:
    settings = PrivateSettings(epsilon=epsilon, delta=delta, colluding=colluding)
    return choose_noise(settings, Sums(**sums), participants)


def honest_total(noise: Noise, size: int, seed: int) -> NDArray[np.int64]:
    """Draw the noise of all sites but the colluding ones, which know their own."""
    random = np.random.default_rng(seed).bytes
    return sum(
        (draw(noise, size, random).view(np.int64) for _ in range(noise.shares)),
        np.zeros(size, dtype=np.int64),
    )


def check_law(sample: NDArray[np.int64], low: int, probabilities: Floats) -> None:
    """Compare counts with the probabilities of low, low + 1, ..., the rest with what remains."""
    counts = np.bincount(
        np.clip(sample - low, -1, len(probabilities)) + 1, minlength=len(probabilities) + 2
    )
    inside, rest = counts[1:-1], counts[0] + counts[-1]
    expected = len(sample) * np.append(probabilities, 1 - probabilities.sum())
    assert stats.chisquare(np.append(inside, rest), expected).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("epsilon", "shares"), [(1.0, 1), (1.0, 19), (0.3, 3), (4.0, 7)])
def test_laplace_shares_add_up_to_the_law(epsilon: float, shares: int) -> None:
    noise = noise_of(epsilon, participants=shares + 1)
    assert (noise.law, noise.scale, noise.bits) == ("laplace", 2 / epsilon, 0)
    a, reach = math.exp(-epsilon / 2), round(10 / epsilon) + 1
    k = np.arange(-reach, reach + 1)
    check_law(honest_total(noise, 50_000, shares), -reach, (1 - a) / (1 + a) * a ** np.abs(k))


def test_a_laplace_share_is_a_difference_of_negative_binomials() -> None:
    a, shares = math.exp(-0.5), 7
    table = module._polya_table(2.0, shares).astype(float) / 2**64
    assert np.allclose(
        table, stats.nbinom(1 / shares, 1 - a).cdf(np.arange(len(table))), rtol=1e-12, atol=0
    )
    assert (module._polya_table(2.0, shares)[-1] >> np.uint64(8)) == 2**56 - 1  # nothing is cut off


@pytest.mark.parametrize("deviation", [32.0, 47.3])
def test_gaussian_table_is_the_law(deviation: float) -> None:
    table = module._gaussian_table(deviation)
    k = np.arange(-(len(table) // 2), len(table) // 2)
    weights = np.exp(-(k**2) / (2 * deviation**2))
    assert np.allclose(
        table.astype(float) / 2**64, np.cumsum(weights) / weights.sum(), rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize(
    ("sums", "levels"), [({"features_per_row": 12}, 1), ({"are_counts": False}, 7)]
)
def test_gaussian_shares_add_up_to_the_law(sums: dict[str, Any], levels: int) -> None:
    noise = noise_of(1.0, 1e-6, **sums)
    assert noise.law == "gaussian"
    share = noise.scale * 2**noise.bits / math.sqrt(noise.shares)
    deviation, found = module._levels(share)
    assert deviation >= module.LEAST_DEVIATION
    assert found == levels
    sample = honest_total(noise, 100_000, seed=3) / (noise.scale * 2**noise.bits)
    edges = stats.norm.ppf(np.linspace(0, 1, 101)[1:-1])
    counts = np.bincount(np.searchsorted(edges, sample + 1e-9), minlength=100)
    if levels > 1:  # else the grid is visible
        assert stats.chisquare(counts).pvalue > FALSE_ALARM
    assert stats.kstest(sample, "norm").statistic < 0.02
    assert abs(sample.var() - 1) < 5 * math.sqrt(2 / len(sample))


def test_sum_of_levels_is_discrete_gaussian() -> None:
    """A + 8B against the law itself, number by number, exactly: no multiple of 8 is more probable
    than others.
    """
    one = np.exp(-(np.arange(-320, 321) ** 2) / (2 * 32.0**2))
    spread = np.zeros(8 * 640 + 1)
    spread[::8] = one
    found = np.convolve(one / one.sum(), spread / spread.sum())
    k = np.arange(len(found)) - len(found) // 2
    law = np.exp(-(k**2) / (2 * 65 * 32.0**2))
    near = np.abs(k) < 1000
    assert np.allclose(found[near], (law / law.sum())[near], rtol=1e-9)


def test_variance_counts_every_participant() -> None:
    noise = noise_of(1.0, participants=4, colluding=2)
    random = np.random.default_rng(4).bytes
    sample = np.sum([draw(noise, 100_000, random).view(np.int64) for _ in range(4)], axis=0)
    assert noise.variance == pytest.approx(sample.var(), rel=0.05)
    assert noise.variance == pytest.approx(2 * noise_of(1.0, participants=4, colluding=0).variance)


def test_choice_of_the_law() -> None:
    assert choose_noise(PrivateSettings(), Sums(), 5) == NO_NOISE
    assert not draw(NO_NOISE, 5).any()
    assert noise_of(1.0, 1e-6).law == "laplace"  # one feature: less variance
    assert noise_of(1.0, 1e-6, features_per_row=20).law == "gaussian"
    assert noise_of(1.0, 1e-6, are_counts=False)[2:5] == (24, 1.0, 1e-6)
    halved = choose_noise(PrivateSettings(epsilon=1.0, find_edges=True), Sums(), 5)
    assert (halved.epsilon, halved.scale) == (0.5, 4.0)
    for wrong, message in (
        ({"are_counts": False}, "delta = 0 suits"),
        ({"colluding": 4}, "colluding = 4 of 4 participants"),
        ({"epsilon": 1e-6}, "epsilon = 1e-06 is too small"),
        ({"epsilon": 101.0}, "next to no privacy"),
    ):
        with pytest.raises(InputError, match=message):
            noise_of(**({"epsilon": 1.0} | wrong))


@pytest.mark.parametrize(
    ("epsilon", "mu"), [(0.1, 0.2), (1.0, 0.5), (1.0, 3.0), (4.0, 1.0), (8.0, 2.0)]
)
def test_delta_of_gaussian_noise_is_the_integral(epsilon: float, mu: float) -> None:
    start = mu / 2 - epsilon / mu  # where one density is e^ε times the other

    def excess(x: float) -> float:
        return float(stats.norm.pdf(x) - math.exp(epsilon) * stats.norm.pdf(x - mu))

    expected = integrate.quad(
        excess, start - 40, start, epsabs=0, epsrel=1e-9, limit=500, points=[start - 5]
    )[0]
    assert gaussian_delta(epsilon, mu) == pytest.approx(expected, rel=1e-7)
    assert gaussian_mu(epsilon, expected) == pytest.approx(mu, rel=1e-7)
    assert gaussian_epsilon(mu, expected) == pytest.approx(epsilon, rel=1e-7)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-6), (4.0, 1e-6), (8.0, 1e-9)])
def test_delta_on_the_grid_is_not_exceeded(epsilon: float, delta: float) -> None:
    """The exact δ of the coarsest grid: a row leaves one cell for another, and the loss depends on
    their difference.
    """
    deviation = module.GRID_MARGIN * math.sqrt(2) / gaussian_mu(epsilon, delta)
    unit = 2 ** max(0, math.ceil(math.log2(module.LEAST_DEVIATION / deviation)))
    sigma = deviation * unit
    k = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
    law = np.exp(-(k**2) / (2 * sigma**2))
    difference = np.convolve(law, law) / law.sum() ** 2
    loss = (unit**2 - unit * np.arange(2 * k[0], 2 * k[-1] + 1)) / sigma**2
    found = np.sum(difference * np.maximum(0, 1 - np.exp(epsilon - loss)))
    assert 0.95 * delta < found < delta


def test_composition_of_releases() -> None:
    assert gaussian_delta(1.0, 1.0) == pytest.approx(0.126936737507)  # Φ(-1/2) - e Φ(-3/2)
    one = Spent("gaussian", 1.0, 1e-6)
    mu = gaussian_mu(1.0, 1e-6)
    assert total_epsilon([one], 1e-6) == pytest.approx(1.0)
    assert total_epsilon([one] * 9, 1e-6) == pytest.approx(gaussian_epsilon(3 * mu, 1e-6))
    assert total_epsilon([one._replace(rows_per_person=3)], 1e-6) == pytest.approx(
        gaussian_epsilon(3 * mu, 1e-6)
    )
    assert total_epsilon([one], 0.0) == math.inf
    assert total_epsilon([], 1e-6) == 0.0
    small = Spent("laplace", 0.01)
    assert total_epsilon([small] * 3, 0.0) == pytest.approx(0.03)
    many = total_epsilon([small] * 10_000, 1e-6)
    assert many == pytest.approx(
        concentrated_epsilon(0.5, 1e-6), rel=1e-9
    )  # a hundred by simple addition
    mixed = total_epsilon([one, small], 1e-6)
    assert 1 < mixed <= 1.01 + 1e-9


@pytest.mark.parametrize(("rho", "delta"), [(0.01, 1e-6), (0.5, 1e-6), (2.0, 1e-10)])
def test_concentrated_privacy_lies_between_known_bounds(rho: float, delta: float) -> None:
    """Above what Gaussian noise with this ρ costs exactly, below the simple formula of Bun and
    Steinke.
    """
    exact, simple = (
        gaussian_epsilon(math.sqrt(2 * rho), delta),
        rho + 2 * math.sqrt(rho * math.log(1 / delta)),
    )
    found = concentrated_epsilon(rho, delta)
    assert exact < found < simple
    alpha = 1 + np.exp(np.linspace(-10, 10, 200_001))
    bound = (alpha - 1) * (alpha * rho - found) - np.log(alpha - 1) + alpha * np.log1p(-1 / alpha)
    assert bound.min() == pytest.approx(math.log(delta), rel=1e-6)


def measured_epsilon(noise: Noise, delta: float, draws: int = 200_000) -> float:
    """Return a lower confidence bound of ε: how well a row's place in one of two cells can be told
    from the totals.

    The most powerful test takes the difference of the two cells; 20 thresholds, both directions.
    The probability that the bound exceeds the true ε is below `FALSE_ALARM`.
    """
    unit = 2**noise.bits
    first, second = (honest_total(noise, 2 * draws, seed).reshape(2, draws) for seed in (1, 2))
    with_row = (first[0] + unit) - first[1]
    replaced = second[0] - (second[1] + unit)
    found, level = 0.0, FALSE_ALARM / 80
    for threshold in np.linspace(-3, 3, 20) * math.sqrt(2 * noise.variance) * unit:
        for a, b in (
            (with_row > threshold, replaced > threshold),
            (replaced <= threshold, with_row <= threshold),
        ):
            least = stats.beta.ppf(level, a.sum(), draws - a.sum() + 1) if a.any() else 0.0
            most = stats.beta.ppf(1 - level, b.sum() + 1, draws - b.sum()) if not b.all() else 1.0
            if least > delta:
                found = max(found, math.log((least - delta) / most))
    return found


@pytest.mark.parametrize(
    "noise",
    [noise_of(1.0), noise_of(2.0, 1e-3), noise_of(1.0, 1e-3, are_counts=False)],
    ids=["1", "2", "gaussian"],
)
def test_privacy_audit(noise: Noise) -> None:
    """What can be measured does not exceed ε; with half the noise it does."""
    assert noise.epsilon * 0.5 < measured_epsilon(noise, noise.delta) <= noise.epsilon
    halved = noise._replace(scale=noise.scale / 2)
    assert measured_epsilon(halved, noise.delta) > noise.epsilon
