"""Coverage of the intervals that nodes give for the population value.

Populations whose value is known; of each, 1000 samples of 400 rows, each gossiped over once. Every node gives an
interval; one node's is checked, a different one in every sample. The standard error of a coverage of 95 % is 0.7 %.

Run with: python benchmarks/intervals.py [--samples N | --smoke]
"""

from __future__ import annotations

from collections.abc import Callable
from math import asin, erf, pi
from typing import Any

import common
import numpy as np

import gosta
from gosta.runtime import progress
from gosta.runtime.arrays import Floats

ROWS = 400
LEVEL = 0.95
SMOKE_SAMPLES = 3
LEAST_COVERAGE = 0.92  # 95 % less four standard errors with 1000 samples
LEAST_COVERAGE_SMOKE = 0.6
MOST_WIDTH_FACTOR = 1.3  # between the mean widths of nodes' intervals and of those from all rows
Sample = Callable[[np.random.Generator], dict[str, Floats]]


def scores(rng: np.random.Generator) -> dict[str, Floats]:
    """Draw two normal classes, one standard deviation apart."""
    label = np.arange(ROWS) % 2.0
    return {"score": rng.normal(size=ROWS) + label, "label": label}


def heights(rng: np.random.Generator) -> dict[str, Floats]:
    """Draw normal numbers, whose mean difference is 2/sqrt(pi)."""
    return {"x": rng.normal(size=ROWS)}


def pairs(rng: np.random.Generator) -> dict[str, Floats]:
    """Draw normal pairs with correlation 1/2, whose Kendall's tau is 1/3."""
    first, other = rng.normal(size=(2, ROWS))
    return {"first": first, "second": 0.5 * first + 0.75**0.5 * other}


POPULATIONS: dict[str, tuple[Sample, float]] = {
    "auc": (scores, 0.5 + 0.5 * erf(0.5)),
    "gini-mean-difference": (heights, 2 / pi**0.5),
    "kendall-tau": (pairs, 2 / pi * asin(0.5)),
}
NETWORKS: dict[str, dict[str, Any]] = {
    "one row per node, Watts-Strogatz": {"graph": "watts-strogatz"},
    "20 nodes, Zipf, Watts-Strogatz": {"graph": "watts-strogatz", "nodes": 20, "iterations": 4000},
}


def coverage(name: str, samples: int, settings: dict[str, Any]) -> tuple[float, float]:
    """Return the share of samples in which an interval covers the value: a node's, and that of all rows together."""
    sample, value = POPULATIONS[name]
    hits, widths = [0, 0], [0.0, 0.0]
    for seed in range(samples):
        data = sample(np.random.default_rng(seed))
        trace = gosta.simulate(data, name, interval=LEVEL, runs=1, seed=seed, checkpoints=1, **settings)
        low, high = (end.values[0, -1] for end in trace.intervals())
        node = seed % len(low)
        pooled = gosta.exact(data, name, interval=LEVEL)
        for k, (start, end) in enumerate([(low[node], high[node]), (pooled.low, pooled.high)]):
            hits[k] += start <= value <= end
            widths[k] += end - start
    assert 1 / MOST_WIDTH_FACTOR < widths[0] / widths[1] < MOST_WIDTH_FACTOR, (name, widths)
    return hits[0] / samples, hits[1] / samples


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    arguments = parser.parse_args()
    samples, least = arguments.samples, LEAST_COVERAGE
    if arguments.smoke:
        samples, least = SMOKE_SAMPLES, LEAST_COVERAGE_SMOKE
    common.print_machine("numba")
    print("| statistic | network | nodes | all rows in one place |\n| --- | --- | --- | --- |")
    with progress.bar("coverage", len(POPULATIONS) * len(NETWORKS), 0) as advance:
        for name in POPULATIONS:
            for title, settings in NETWORKS.items():
                nodes, pooled = coverage(name, samples, settings)
                print(f"| `{name}` | {title} | {100 * nodes:.1f} % | {100 * pooled:.1f} % |", flush=True)
                assert min(nodes, pooled) >= least, (name, title, nodes, pooled)
                advance(1)


if __name__ == "__main__":
    main()
