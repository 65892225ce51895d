"""Coverage of the 95 % intervals of `gosta.exact`: the table of docs/explanation/intervals.md.

Populations whose value is known; of each, 1000 samples. "plain" is the interval value ± 1.96
standard errors, clipped, for comparison. The standard error of a coverage of 95 % is 0.7 %.

Run with: python benchmarks/interval_coverage.py [--samples N | --smoke]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from math import asin, exp, inf, log, pi, sqrt
from statistics import NormalDist
from typing import NamedTuple

import common
import numpy as np

import gosta
from gosta.runtime import progress
from gosta.runtime.arrays import Floats
from gosta.statistics import find

LEVEL = 0.95
SAMPLES = 1000
SMOKE_SAMPLES = 2
# which intervals from 50 rows on must cover, or docs/explanation/intervals.md says why they do not
LEAST = 0.92
NORMAL = NormalDist()
Columns = dict[str, Floats]


class Case(NamedTuple):
    """Samples of a population, and its value."""

    statistic: str
    population: str
    rows: str
    value: float
    sample: Callable[[np.random.Generator], Columns]
    # docs/explanation/intervals.md says why coverage is below 92 % although there are 50 rows
    is_hard: bool = False
    options: dict[str, float] = {}  # noqa: RUF012


def classes(
    auc: float, positive: int, negative: int, is_hard: bool = False, tail: bool = False
) -> Case:
    """Return two normal classes of equal variance, or two exponential ones of different means."""

    def sample(rng: np.random.Generator) -> Columns:
        label = np.repeat([1.0, 0.0], [positive, negative])
        noise = rng.exponential(size=len(label)) if tail else rng.normal(size=len(label))
        ratio, shift = auc / (1 - auc), sqrt(2) * NORMAL.inv_cdf(auc)
        return {"score": noise * ratio**label if tail else noise + shift * label, "label": label}

    return Case(
        "auc",
        f"{'exponential' if tail else 'normal'}, AUC {auc:g}",
        f"{positive} + {negative}",
        auc,
        sample,
        is_hard,
    )


def correlated(statistic: str, rho: float, n: int) -> Case:
    """Return normal pairs of a correlation; times and scores for the concordance index."""
    names = ("time", "score") if statistic == "concordance-index" else ("first", "second")

    def sample(rng: np.random.Generator) -> Columns:
        first, other = rng.normal(size=(2, n))
        second = rho * first + sqrt(1 - rho**2) * other
        if names[0] == "time":
            return {"time": np.exp(first), "score": -second, "event": np.ones(n)}
        return dict(zip(names, (first, second), strict=True))

    tau = 2 / pi * asin(rho)
    values = {
        "kendall-tau": tau, "spearman-rho": 6 / pi * asin(rho / 2),
        "concordance-index": (1 + tau) / 2,
        "distance-correlation": sqrt(_distance_covariance(rho) / _distance_covariance(1.0)),
        "covariance": rho,
    }  # fmt: skip
    title = f"normal, correlation {rho:g}" if rho else "independent normal"
    return Case(statistic, title, str(n), values[statistic], sample)


def _distance_covariance(rho: float) -> float:
    """Return the distance covariance of normal pairs, but for a factor (Székely, Rizzo and Bakirov
    2007).
    """
    return rho * asin(rho) + sqrt(1 - rho**2) - rho * asin(rho / 2) - sqrt(4 - rho**2) + 1


def spread(statistic: str, sigma: float, n: int, is_hard: bool = False) -> Case:
    """Return lognormal rows, or normal ones if sigma is 0."""
    gini = 2 * NORMAL.cdf(sigma / sqrt(2)) - 1
    values = {
        "variance": (exp(sigma**2) - 1) * exp(sigma**2) if sigma else 1.0,
        "gini-mean-difference": 2 * gini * exp(sigma**2 / 2) if sigma else 2 / sqrt(pi),
        "gini-index": gini,
    }

    def sample(rng: np.random.Generator) -> Columns:
        x = rng.normal(size=n)
        return {"x": np.exp(sigma * x) if sigma else x}

    return Case(
        statistic,
        f"lognormal, σ = {sigma:g}" if sigma else "normal",
        str(n),
        values[statistic],
        sample,
        is_hard,
    )


def shifted(statistic: str, shift: float, n: int) -> Case:
    """Return two normal samples whose means differ."""
    distance = 2 * sqrt(1 / pi) * exp(-(shift**2) / 4) + shift * (
        1 - 2 * NORMAL.cdf(-shift / sqrt(2))
    )
    values = {
        "energy-distance": 2 * distance - 4 / sqrt(pi),
        "mmd": 2 / sqrt(3) * (1 - exp(-(shift**2) / 6)),  # with a bandwidth of 1
    }

    def sample(rng: np.random.Generator) -> Columns:
        label = np.repeat([1.0, 0.0], n)
        return {"x": rng.normal(size=2 * n) + shift * label, "label": label}

    title = f"normal, {shift:g} apart" if shift else "normal, equal"
    options = {"bandwidth": 1.0} if statistic == "mmd" else {}
    return Case(statistic, title, f"{n} + {n}", values[statistic], sample, options=options)


CASES = [
    classes(0.7, 10, 10), classes(0.96, 10, 10), classes(0.96, 25, 25), classes(0.99, 10, 10),
    classes(0.99, 25, 25),
    classes(0.96, 200, 200), classes(0.96, 2, 98), classes(0.7, 2, 98),
    classes(0.96, 25, 25, tail=True), classes(0.99, 100, 100, tail=True, is_hard=True),
    *(
        correlated("kendall-tau", rho, n)
        for rho, n in ((0.0, 10), (0.5, 20), (0.9, 20), (0.5, 100))
    ),
    *(
        correlated("spearman-rho", rho, n)
        for rho, n in ((0.0, 10), (0.5, 20), (0.9, 20), (0.5, 100))
    ),
    *(correlated("concordance-index", rho, n) for rho, n in ((0.5, 20), (0.9, 20), (0.5, 100))),
    *(correlated("covariance", rho, n) for rho, n in ((0.5, 20), (0.5, 100))),
    *(correlated("distance-correlation", 0.0, n) for n in (20, 100, 400)),
    *(correlated("distance-correlation", rho, 100) for rho in (0.3, 0.7)),
    *(spread(name, 0.0, n) for name in ("variance", "gini-mean-difference") for n in (20, 50)),
    *(spread("gini-mean-difference", 1.0, n) for n in (50, 200)),
    *(spread("gini-index", sigma, 50, is_hard=sigma > 0.5) for sigma in (0.5, 1.0, 2.0)),
    spread("gini-index", 1.0, 200), spread("gini-index", 2.0, 200, is_hard=True),
    spread("variance", 0.5, 50), spread("variance", 1.0, 50, is_hard=True),
    spread("variance", 1.0, 200),
    *(shifted(name, shift, n) for name in ("energy-distance", "mmd")
      for shift, n in ((0.0, 25), (0.3, 100), (0.5, 25), (1.0, 100))),
]  # fmt: skip


def measure(case: Case, samples: int) -> Iterator[tuple[bool, bool, float]]:
    """Yield for each sample whether the interval covers the value, whether the plain one does, and
    the width.
    """
    reach, (least, most) = NORMAL.inv_cdf(0.5 + LEVEL / 2), find(case.statistic).bounds
    for seed in range(samples):
        data = case.sample(np.random.default_rng([seed, len(case.population)]))
        found = gosta.exact(data, case.statistic, interval=LEVEL, **case.options)
        assert -inf < found.low < found.high < inf, (case, seed, found)
        low, high = (
            max(least, found.value - reach * found.standard_error),
            found.value + reach * found.standard_error,
        )
        yield (
            found.low <= case.value <= found.high,
            low <= case.value <= min(most, high),
            log(found.high - found.low),
        )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    arguments = parser.parse_args()
    samples = SMOKE_SAMPLES if arguments.smoke else arguments.samples
    common.print_machine()
    start = time.perf_counter()
    print(
        "| statistic | population | rows | covers | plain | typical width |\n| --- | --- | --- | "
        "--- | --- | --- |"
    )
    with progress.bar("coverage", len(CASES), 0) as advance:
        for case in CASES:
            covers, plain, width = np.array(list(measure(case, samples)), dtype=np.float64).T
            shares = f"{100 * covers.mean():.1f} % | {100 * plain.mean():.1f} %"
            title = f"`{case.statistic}` | {case.population} | {case.rows}"
            print(f"| {title} | {shares} | {exp(np.median(width)):.2g} |", flush=True)
            rows = sum(map(int, case.rows.split("+")))
            if arguments.samples >= SAMPLES and not arguments.smoke:
                assert case.is_hard or rows < 50 or covers.mean() >= LEAST, case
            advance(1)
    print(f"\n{samples} samples each, {time.perf_counter() - start:.0f} seconds")


if __name__ == "__main__":
    main()
