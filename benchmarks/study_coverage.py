"""Coverage of the 95 % intervals of a validation study, in one place and by sums.

Populations whose values are known: those over a fine grid of risks with weights. Of each, samples
of several sizes; the sums are those of 64 bins. A curve is covered at each of its points: the table
has the mean over points, and the worst one. The standard error of a coverage of 95 % in 1000
samples is 0.7 %.

Run with: python benchmarks/study_coverage.py [--samples N] [--only NAME] [--smoke]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import common
import numpy as np
from scipy.stats import norm, qmc

import gosta
from gosta.errors import GostaError
from gosta.runtime import progress
from gosta.runtime.arrays import Booleans, Floats
from gosta.sketches import SKETCHES

LEVEL = 0.95
SAMPLES = 1000
SMOKE_SAMPLES = 2
SIZES = (100, 400, 2000)
# Intervals of samples of 400 rows and more must cover as often, but in cases that say why not.
LEAST = 0.92
GRID = 20_001
TIME_GRID = 401  # squared, of risks and times
HORIZON = 1.5  # of predicted risks of an event
PAIR_GRID = 2**17  # points of two numbers that are spread evenly
SURVIVAL_GRID = 2**14  # points of four such numbers
Columns = dict[str, Floats]
Options = Mapping[str, Any]


class Population(NamedTuple):
    """Rows with weights that have the population's values, and samples of such rows."""

    title: str
    grid: Columns  # the weights are the column "weight"
    sample: Callable[[np.random.Generator, int], Columns]
    arguments: Options  # of `gosta.exact`: which columns have which role
    sums: Options  # of `gosta.exact` by sums: bins and ranges; none if there is no sketch


class Case(NamedTuple):
    """A statistic of a population."""

    statistic: str
    population: Population
    options: Options = {}  # noqa: RUF012
    why_hard: str = ""  # why it need not cover


def predicted_risks(
    mean: float, spread: float, intercept: float = 0.0, slope: float = 1.0
) -> Population:
    """Return rows with normal logits of predicted risks, and outcomes of this recalibration."""

    def risk_of(logit: Floats) -> Floats:
        return np.asarray(1 / (1 + np.exp(-logit)))

    def sample(rng: np.random.Generator, n: int) -> Columns:
        logit = mean + spread * rng.normal(size=n)
        ill = rng.random(n) < risk_of(intercept + slope * logit)
        return {"risk": risk_of(logit), "ill": ill.astype(np.float64)}

    normal = np.linspace(-6, 6, GRID)
    logit, weight = mean + spread * normal, np.exp(-(normal**2) / 2)
    share = risk_of(intercept + slope * logit)
    grid = {
        "risk": np.tile(risk_of(logit), 2),
        "ill": np.repeat([1.0, 0.0], GRID),
        "weight": np.concatenate([weight * share, weight * (1 - share)]),
    }
    roles = {"score": "risk", "label": "ill"}
    title = f"logits of mean {mean:g} and deviation {spread:g}"
    if (intercept, slope) != (0.0, 1.0):
        title += f", outcomes of {intercept:g} + {slope:g} · logit"
    return Population(title, grid, sample, roles, {"bins": 64, "ranges": {"risk": (0.0, 1.0)}})


def two_risks(mean: float, spread: float, correlation: float) -> Population:
    """Return rows whose outcomes have the first of two predicted risks, of correlated logits."""

    def risks_of(first: Floats, other: Floats) -> Columns:
        second = correlation * first + np.sqrt(1 - correlation**2) * other
        pair = {"new": first, "old": second}
        return {name: 1 / (1 + np.exp(-(mean + spread * z))) for name, z in pair.items()}

    def sample(rng: np.random.Generator, n: int) -> Columns:
        risks = risks_of(*rng.normal(size=(2, n)))
        return {**risks, "ill": (rng.random(n) < risks["new"]).astype(np.float64)}

    points = norm.ppf(qmc.Sobol(2, seed=1).random(PAIR_GRID)).T
    risks = risks_of(*points)
    grid = {name: np.tile(risk, 2) for name, risk in risks.items()} | {
        "ill": np.repeat([1.0, 0.0], PAIR_GRID),
        "weight": np.concatenate([risks["new"], 1 - risks["new"]]),
    }
    roles = {"columns": ["new", "old"], "label": "ill"}
    title = f"two logits of correlation {correlation:g}, mean {mean:g}, deviation {spread:g}"
    ranges = dict.fromkeys(risks, (0.0, 1.0))
    return Population(title, grid, sample, roles, {"bins": 64, "ranges": ranges})


def two_survival_scores(correlation: float) -> Population:
    """Return rows with exponential times, of which a third is censored, and two scores."""

    def rows_of(first: Floats, other: Floats, event: Floats, censored: Floats) -> Columns:
        second = correlation * first + np.sqrt(1 - correlation**2) * other
        died, left = (-np.log1p(-share) for share in (event, censored))
        died = died * np.exp(-first)
        time = np.minimum(died, 2 * left)
        return {"time": time, "event": 1.0 * (died <= 2 * left), "new": first, "old": second}

    def sample(rng: np.random.Generator, n: int) -> Columns:
        return rows_of(*rng.normal(size=(2, n)), *rng.random((2, n)))

    points = qmc.Sobol(4, seed=1).random(SURVIVAL_GRID)
    grid = rows_of(*norm.ppf(points[:, :2]).T, *points[:, 2:].T)
    grid["weight"] = np.ones(SURVIVAL_GRID)
    roles = {"columns": ["time", "event", "new", "old"]}
    ranges = {"time": (0.0, 4.0), "new": (-3.5, 3.5), "old": (-3.5, 3.5)}
    title = f"two survival scores of correlation {correlation:g}"
    return Population(title, grid, sample, roles, {"bins": 32, "ranges": ranges})


def times_to_events(censoring: float) -> Population:
    """Return rows with a time to an event that grows with their risk, censored in samples."""

    def columns(normal: Floats, time: Floats) -> Columns:
        hazard = np.exp(0.6 * normal - 0.6)  # slightly wrong
        early, risk = (1 - np.exp(-until * hazard) for until in (HORIZON / 2, HORIZON))
        return {"time": time, "event": np.ones(len(time)), "early": early, "risk": risk}

    def times(normal: Floats, share: Floats) -> Floats:
        return np.asarray(-np.log1p(-share) * np.exp(0.6 - 0.8 * normal))

    def sample(rng: np.random.Generator, n: int) -> Columns:
        normal = rng.normal(size=n)
        made = columns(normal, times(normal, rng.random(n)))
        censored = rng.exponential(1 / censoring, n)
        made["event"] = (made["time"] <= censored).astype(np.float64)
        made["time"] = np.minimum(made["time"], censored)
        return made

    normal, share = np.linspace(-5, 5, TIME_GRID), (np.arange(TIME_GRID) + 0.5) / TIME_GRID
    normal, share = np.repeat(normal, TIME_GRID), np.tile(share, TIME_GRID)
    grid = columns(normal, times(normal, share)) | {"weight": np.exp(-(normal**2) / 2)}
    sums = {"bins": 64, "ranges": {"risk": (0.0, 1.0), "time": (0.0, 6.0)}}
    title = f"times to an event, {1 / censoring:.2g} to censoring"
    return Population(title, grid, sample, {"score": "risk"}, sums)


FEW = "Wald's test of three coefficients rejects too often with 32 events in few bins."
LITTLE_CENSORED, MUCH_CENSORED = times_to_events(0.2), times_to_events(0.6)
TWO_TIMES: Options = {"columns": ["time", "event", "early", "risk"]}
TIME_BINS: Options = {"bins": 64, "ranges": {"time": (0.0, 6.0)}}
TWO_TIMES_BINS: Options = {
    "bins": 64,
    "ranges": {"time": (0.0, 6.0), "early": (0.0, 1.0), "risk": (0.0, 1.0)},
}
OF_TIMES: Mapping[str, Options] = {
    "uno-concordance": {"horizon": 2.0},
    "time-dependent-auc": {"times": (0.5, 1.5)},
    "survival-brier-score": {"horizon": HORIZON},
    "survival-calibration": {"horizon": HORIZON, "cuts": (0.35, 0.6)},
    "survival-observed-expected-ratio": {"horizon": HORIZON},
    "survival-calibration-intercept": {"horizon": HORIZON},
    "survival-calibration-slope": {"horizon": HORIZON},
    "survival-smooth-calibration": {"horizon": HORIZON, "risks": (0.3, 0.5, 0.7)},
    "survival-calibration-error": {"horizon": HORIZON},
}
COMMON, RARE = predicted_risks(-0.5, 1.5), predicted_risks(-3.0, 1.2)
EXTREME = predicted_risks(-0.5, 1.5, 0.3, 0.7)  # risks that are too extreme, and too low
SLIGHT = predicted_risks(-0.5, 1.5, 0.0, 0.9)  # slightly too extreme
TWO, ALIKE = two_risks(-0.5, 1.5, 0.7), two_risks(-2.0, 1.2, 0.95)
TWO_SURVIVAL = two_survival_scores(0.7)
AT = {"thresholds": (0.2, 0.4, 0.6)}
CASES = [
    Case("auc", COMMON),
    Case("auc", RARE),
    Case("partial-auc", COMMON, {"max_fpr": 0.2}),
    Case("partial-auc", RARE, {"max_fpr": 0.2}),
    Case("average-precision", COMMON),
    Case("average-precision", RARE),
    Case("roc-curve", COMMON, {"rates": (0.1, 0.3, 0.5, 0.7)}),
    Case("roc-curve", RARE, {"rates": (0.1, 0.3, 0.5, 0.7)}),
    Case("precision-recall-curve", COMMON, {"recalls": (0.2, 0.5, 0.8)}),
    Case("precision-recall-curve", RARE, {"recalls": (0.2, 0.5, 0.8)}),
    Case("sensitivity", COMMON, AT),
    Case("specificity", COMMON, AT),
    Case("positive-predictive-value", COMMON, AT),
    Case("negative-predictive-value", COMMON, AT),
    Case("f1-score", COMMON, AT),
    Case("net-benefit", COMMON, AT),
    Case("net-benefit", RARE, {"thresholds": (0.02, 0.05, 0.1)}),
    Case("net-benefit-of-all", COMMON, AT),
    *(
        Case(name, population)
        for population in (EXTREME, RARE)
        for name in (
            "brier-score",
            "scaled-brier-score",
            "log-loss",
            "observed-expected-ratio",
            "calibration-in-the-large",
            "calibration-intercept",
            "calibration-slope",
        )
    ),
    Case("brier-parts", EXTREME, {"cuts": (0.2, 0.4, 0.6)}),
    Case("calibration-curve", EXTREME, {"cuts": (0.2, 0.4, 0.6)}),
    Case("calibration-curve", RARE, {"cuts": (0.03, 0.1)}),
    Case("smooth-calibration-curve", EXTREME, {"risks": (0.1, 0.3, 0.5, 0.8)}),
    Case("smooth-calibration-curve", RARE, {"risks": (0.02, 0.05, 0.2)}),
    *(Case("calibration-error", population) for population in (EXTREME, SLIGHT, COMMON)),
    Case("calibration-error", RARE, {}, FEW),
    Case("auc-difference", TWO),
    Case("auc-difference", ALIKE),
    Case("brier-difference", TWO),
    Case("brier-difference", ALIKE),
    Case("integrated-discrimination", TWO),
    Case("integrated-discrimination", ALIKE),
    Case("net-reclassification", TWO, AT),
    Case("net-reclassification", ALIKE, {"thresholds": (0.05, 0.1, 0.2)}),
    Case("concordance-difference", TWO_SURVIVAL),
    *(
        Case(name, population, options)
        for population in (LITTLE_CENSORED, MUCH_CENSORED)
        for name, options in OF_TIMES.items()
    ),
    *(
        Case("kaplan-meier", population._replace(sums=TIME_BINS), {"times": (0.5, 1.5)})
        for population in (LITTLE_CENSORED, MUCH_CENSORED)
    ),
    *(
        Case(
            "integrated-brier-score",
            population._replace(arguments=TWO_TIMES, sums=TWO_TIMES_BINS),
            {"times": (HORIZON / 2, HORIZON)},
        )
        for population in (LITTLE_CENSORED, MUCH_CENSORED)
    ),
]


def values_of(found: Any) -> Floats:
    """Return the values of what `gosta.exact` returns."""
    return np.atleast_1d(np.array(getattr(found, "value", found), dtype=np.float64))


def covers(case: Case, rows: Columns, true: Floats, sums: Options) -> Booleans | None:
    """Return which values the intervals of a sample cover; None where there are none."""
    arguments = {**case.population.arguments, **case.options, **sums}
    try:
        found = gosta.exact(rows, case.statistic, interval=LEVEL, **arguments)
    except GostaError:
        return None
    low, high = np.atleast_1d(found.low), np.atleast_1d(found.high)
    return np.asarray((low <= true) & (true <= high))


def coverage(case: Case, n: int, samples: int, sums: Options) -> Floats:
    """Return how often each value is covered by the intervals of samples of n rows."""
    population = case.population
    arguments = {**population.arguments, **case.options, "weights": "weight"}
    true = values_of(gosta.exact(population.grid, case.statistic, **arguments))
    seeds = (np.random.default_rng([seed, n]) for seed in range(samples))
    found = [covers(case, population.sample(rng, n), true, sums) for rng in seeds]
    known = [one for one in found if one is not None]
    assert len(known) > 0.9 * samples, (case, n, len(known))
    return np.asarray(np.mean(known, axis=0))


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--only", help="a statistic: only its rows of the table")
    arguments = parser.parse_args()
    samples = SMOKE_SAMPLES if arguments.smoke else arguments.samples
    sizes = SIZES[1:2] if arguments.smoke else SIZES
    cases = [case for case in CASES if arguments.only in (None, case.statistic)]
    common.print_machine()
    start = time.perf_counter()
    print("| statistic | population | rows | covers | worst point | by sums | worst point |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with progress.bar("coverage", len(cases) * len(sizes), 0) as advance:
        for case in cases:
            for n in sizes:
                has_sums = case.population.sums and case.statistic in SKETCHES
                sums = [case.population.sums] if has_sums else []
                ways = [coverage(case, n, samples, way) for way in [{}, *sums]]
                ends = [f"{100 * share:.1f} %" for way in ways for share in (way.mean(), way.min())]
                ends += [""] * (4 - len(ends))
                title = f"`{case.statistic}` | {case.population.title} | {n}"
                print(f"| {title} | {' | '.join(ends)} |", flush=True)
                if samples >= SAMPLES and n >= SIZES[1]:
                    assert case.why_hard or min(way.min() for way in ways) >= LEAST, case
                advance(1)
    for reason in dict.fromkeys(case.why_hard for case in cases if case.why_hard):
        print(f"\n{reason}")
    print(f"\n{samples} samples each, {time.perf_counter() - start:.0f} seconds")


if __name__ == "__main__":
    main()
