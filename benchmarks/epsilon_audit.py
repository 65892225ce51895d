"""Empirical audit of ε: how well two tables that differ in one row can be told apart by what is
released.

For every sketch, law of noise and several numbers of shares: two neighbouring tables whose sums
differ most, and many releases of both, each the sums plus the noise of all honest sites
(participants less the colluding ones, which know their own). Events are thresholds of the
likelihood ratio of the two tables, over all totals and over the one that differs most. If the
release is (ε, δ)-private, an event has P ≤ e^ε P' + δ: so its frequencies give a lower bound of ε,

    ε ≥ log((lower bound of P − δ) / upper bound of P'),

with the bounds of Clopper and Pearson. The largest over all events is printed beside the ε that is
claimed. Budgets take Gaussian noise for more than that, for noise of some μ = change / deviation:
so Φ⁻¹(P) − Φ⁻¹(P') ≤ μ for every event, which frequencies near ½ bound more closely; the last
number is the ε of the largest lower bound of μ. If either is larger than what is claimed, the noise
is too small, and the exit status is 1. By Bonferroni's correction, over all lines, events, sides
and bounds, noise that is right fails for less than one seed in 10,000 (`FALSE_ALARM`); the seed is
fixed.

Run with: python benchmarks/epsilon_audit.py [--smoke] [--scale 0.5]
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import common
import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sketch_cases import OPTIONS as CASE_OPTIONS
from sketch_cases import STRATA, Case, encode, make_table, rounds_of, sums_of

from gosta.private.accounting import gaussian_epsilon
from gosta.private.noise import Noise, Random, choose_noise, draw
from gosta.private.settings import PrivateSettings
from gosta.runtime import progress
from gosta.runtime.arrays import Booleans, Floats
from gosta.sketches import SKETCHES, Layout

RELEASES, SMOKE_RELEASES = 100_000, 3_000
FALSE_ALARM = 1e-4  # over seeds, of the whole table
THRESHOLDS = 21  # of each likelihood ratio
ROUNDING = 1e-9  # of likelihood ratios, at whose values thresholds can be
POOL, OTHERS = (
    80,
    10,
)  # rows from which the two are chosen that differ, and rows that both tables have
NUMBERS_AT_ONCE = 1 << 21
# Fewer random directions and frequencies than by default, so that the audit takes minutes.
OPTIONS: dict[str, dict[str, Any]] = CASE_OPTIONS | {
    "mean-pairwise-distance": {"projections": 8},
    "energy-distance": {"projections": 8},
    "mmd": {"bandwidth": 1.5, "frequencies": 16},
}
Whole = NDArray[np.int64]


class Audit(NamedTuple):
    """One line of the table."""

    case: Case
    epsilon: float = 1.0
    delta: float = 0.0
    participants: int = 5
    colluding: int = 1


class Round(NamedTuple):
    """What is released in one round: noise, and by how much the sums of the first table exceed
    those of the second.
    """

    noise: Noise
    change: Whole  # in grid units, where it is not 0

    @property
    def reach(self) -> float:
        """Largest likelihood ratio (its logarithm) that has to be considered: for Gaussian noise 3
        deviations.
        """
        if self.noise.law == "laplace":
            return float(np.abs(self.change).sum()) / self.unit
        return 3 * math.sqrt(float((self.change.astype(np.float64) ** 2).sum())) / self.unit

    @property
    def unit(self) -> float:
        """Scale of the noise in grid units."""
        return self.noise.scale * 2.0**self.noise.bits

    @property
    def largest(self) -> Round:
        """The release of that total only which differs most between the two tables."""
        return self._replace(change=self.change[[int(np.argmax(np.abs(self.change)))]])

    def ratios(self, noise: Whole) -> Floats:
        """Return the logarithms of the likelihood ratio for releases of the first table, then of
        the second.
        """
        drawn, change = noise / self.unit, self.change / self.unit
        if self.noise.law == "laplace":
            own = np.abs(drawn)
            return np.array(
                [
                    (np.abs(drawn + change) - own).sum(axis=1),
                    (own - np.abs(drawn - change)).sum(axis=1),
                ]
            )
        along, half = drawn @ change, change @ change / 2
        return np.array([along + half, along - half])


def audits() -> list[Audit]:
    """Return the lines of the table: each sketch with each law that suits it, then shares, strata
    and rounds.
    """
    found = []
    for name, made in SKETCHES.items():
        case = Case(name, name, {"options": OPTIONS.get(name, {})})
        found += [Audit(case)] * made.are_counts + [Audit(case, delta=0.01)]
    auc, variance = Case("auc", "auc"), Case("variance", "variance")
    for participants, colluding in ((1, 0), (2, 1), (20, 3)):
        found += [
            Audit(auc, participants=participants, colluding=colluding),
            Audit(auc, delta=0.01, participants=participants, colluding=colluding),
            Audit(variance, delta=0.01, participants=participants, colluding=colluding),
        ]
    found += [Audit(auc, epsilon) for epsilon in (0.1, 4.0)]
    found += [
        Audit(variance, epsilon, delta)
        for epsilon, delta in ((0.1, 0.01), (4.0, 0.01), (1.0, 1e-6))
    ]
    several = "auc,gini-index:value,variance:value,quantiles:value"
    return [
        *found,
        Audit(Case("auc in strata", "auc", {"strata": STRATA})),
        Audit(Case("variance in strata", "variance", {"strata": STRATA}), delta=0.01),
        Audit(Case("counts of four", "auc,quantiles:value,kendall-tau,log-rank")),
        Audit(Case("counts of four", "auc,quantiles:value,kendall-tau,log-rank"), delta=0.01),
        Audit(Case("several in strata", several, {"strata": STRATA}), delta=0.01),
        Audit(Case("auc, edges found", "auc", {"find_edges": True})),
        Audit(Case("gini-index, edges found", "gini-index", {"find_edges": True}), delta=0.01),
    ]


def prepare(audit: Audit) -> list[Round]:
    """Return the rounds of a release of the two neighbouring tables that differ most, of those that
    are tried.
    """
    layouts = rounds_of(audit.case)
    settings = PrivateSettings(
        epsilon=audit.epsilon,
        delta=audit.delta,
        colluding=audit.colluding,
        find_edges=len(layouts) > 1,
    )
    noises = [choose_noise(settings, layout, audit.participants) for layout in layouts]
    table = make_table(POOL + OTHERS, 1)
    rows, tables = farthest(layouts, noises, table), []
    for row in rows:
        chosen = np.array([*range(POOL, POOL + OTHERS), row])
        tables.append({name: column[chosen] for name, column in table.items()})
    found = []
    for layout, noise in zip(layouts, noises, strict=True):
        first, second = (sums_of(layout, encode(layout, one), noise.bits) for one in tables)
        found.append(Round(noise, (first - second)[first != second]))
    return found


def farthest(layouts: list[Layout], noises: list[Noise], table: dict[str, Any]) -> tuple[int, int]:
    """Return two rows of the pool of which one in place of the other changes the sums most, as the
    law measures it.
    """
    found = np.zeros((POOL, POOL))
    for layout, noise in zip(layouts, noises, strict=True):
        x = encode(layout, table)[:POOL]
        own = np.array([sums_of(layout, row[None], noise.bits) for row in x]) / 2.0**noise.bits
        power = 1 if noise.law == "laplace" else 2
        found += np.array([(np.abs(own - row) ** power).sum(axis=1) for row in own])
    first, second = np.unravel_index(int(np.argmax(found)), found.shape)
    return int(first), int(second)


def draw_total(one: Round, releases: int, scale: float, random: Random) -> Whole:
    """Draw the noise of all honest sites together: releases × totals."""
    noise, size = one.noise._replace(scale=one.noise.scale * scale), len(one.change)
    shares = (draw(noise, releases * size, random).view(np.int64) for _ in range(noise.shares))
    return sum(shares, np.zeros(releases * size, dtype=np.int64)).reshape(releases, size)


def counts_of(
    rounds: list[Round], releases: int, scale: float, random: Random
) -> tuple[Whole, Whole]:
    """Count the releases of the first and of the second table in which each likelihood ratio is
    above a threshold.
    """
    widest = max(len(one.change) for one in rounds)
    alone = [one.largest for one in rounds]
    thresholds = [
        np.linspace(-1, 1, THRESHOLDS) * sum(one.reach for one in chosen)
        for chosen in (rounds, alone)
    ]
    counts = np.zeros((2, 2, THRESHOLDS), dtype=np.int64)  # table × all totals or one × threshold
    for size in chunks(releases, max(1, NUMBERS_AT_ONCE // widest)):
        ratios = np.zeros((2, 2, size))
        for one, single in zip(rounds, alone, strict=True):
            noise = draw_total(one, size, scale, random)
            at = int(np.argmax(np.abs(one.change)))
            ratios += np.stack([one.ratios(noise), single.ratios(noise[:, [at]])], axis=1)
        for k, steps in enumerate(thresholds):
            above: Booleans = ratios[:, k, :, None] >= steps - ROUNDING
            counts[:, k] += above.sum(axis=1)
    return counts[0].ravel(), counts[1].ravel()


def chunks(total: int, most: int) -> Iterator[int]:
    """Yield numbers that add up to the total."""
    for start in range(0, total, most):
        yield min(most, total - start)


def lower_bounds(
    first: Whole, second: Whole, releases: int, delta: float, level: float
) -> tuple[float, float]:
    """Return the largest lower bounds of ε and of μ over all events, their complements, and both
    orders of the tables.

    `level` is the probability that one bound of a frequency is wrong.
    """
    one = np.concatenate([first, second, releases - first, releases - second])
    other = np.concatenate([second, first, releases - second, releases - first])
    least = np.where(one > 0, stats.beta.ppf(level, np.maximum(one, 1), releases - one + 1), 0.0)
    most = np.where(
        other < releases, stats.beta.ppf(1 - level, other + 1, np.maximum(releases - other, 1)), 1.0
    )
    epsilon = math.log(max(float(((least - delta) / most).max()), 1.0))
    return epsilon, max(float((stats.norm.ppf(least) - stats.norm.ppf(most)).max()), 0.0)


def check(audit: Audit, releases: int, scale: float, level: float, random: Random) -> bool:
    """Print a line of the table; return whether a lower bound exceeds what is claimed."""
    rounds = prepare(audit)
    first, second = counts_of(rounds, releases, scale, random)
    found, mu = lower_bounds(first, second, releases, audit.delta, level)
    laws = {one.noise.law for one in rounds}
    by_mu = gaussian_epsilon(mu, audit.delta) if laws == {"gaussian"} else 0.0
    is_exceeded = max(found, by_mu) > audit.epsilon
    differ = " + ".join(str(len(one.change)) for one in rounds)
    shares = f"{rounds[0].noise.shares} of {audit.participants}"
    words = [
        ", ".join(laws),
        audit.case.title,
        differ,
        shares,
        f"{audit.epsilon:g}",
        f"{audit.delta:g}",
    ]
    words += [
        f"{found:.2f}",
        f"{by_mu:.2f}" if laws == {"gaussian"} else "",
        "EXCEEDED" if is_exceeded else "ok",
    ]
    print(f"| {' | '.join(words)} |", flush=True)
    return is_exceeded


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--releases", type=int, default=RELEASES)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="multiply the noise, to see how the audit fails"
    )
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    releases = SMOKE_RELEASES if arguments.smoke else arguments.releases
    common.print_machine("scipy")
    lines, start, exceeded = audits(), time.perf_counter(), 0
    level = FALSE_ALARM / (
        len(lines) * 4 * 2 * THRESHOLDS * 2
    )  # sides, ratios, thresholds, and two bounds of each
    print(
        "| law | sketch | totals that differ | shares of noise "
        f"| ε | δ | ε is at least | by μ | |\n{'| --- ' * 9}|"
    )
    with progress.bar("audit", len(lines), 0) as advance:
        for number, audit in enumerate(lines):
            random = np.random.default_rng([arguments.seed, number]).bytes
            exceeded += check(audit, releases, arguments.scale, level, random)
            advance(1)
    print(f"\n{releases:,} releases of each table, {time.perf_counter() - start:.0f} seconds")
    print(
        "noise that is right exceeds ε in any line for less than one seed in "
        f"{1 / FALSE_ALARM:,.0f}"
    )
    print(f"{exceeded} of {len(lines)} lines exceed what is claimed")
    sys.exit(1 if exceeded else 0)


if __name__ == "__main__":
    main()
