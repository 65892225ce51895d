"""Coverage of the intervals that nodes give for the population value.

Populations whose value is known; of each, 1000 samples of 400 rows, each gossiped over once. Every
node gives an interval; one node's is checked, a different one in every sample. The standard error
of a coverage of 95 % is 0.7 %. In the last network rows are in its order, after the default number
of iterations: nodes have met rows like their own.

Run with: python benchmarks/intervals.py [--samples N | --smoke]
"""

from __future__ import annotations

from collections.abc import Callable
from math import asin, erf, pi
from typing import Any

import common
import numpy as np
from scipy.spatial import cKDTree

import gosta
from gosta.graphs.graph import Graph
from gosta.runtime import progress
from gosta.runtime.arrays import Floats

ROWS = 400
LEVEL = 0.95
SMOKE_SAMPLES = 3
LEAST_COVERAGE = 0.92  # 95 % less four standard errors with 1000 samples
LEAST_COVERAGE_SORTED = 0.88  # docs/explanation/protocols.md says why
LEAST_COVERAGE_SMOKE = 0.6
# between the mean widths of nodes' intervals and of those from all rows; not for SORTED
MOST_WIDTH_FACTOR = 1.5
SORTED = "one row per node, sorted, geometric"
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
    SORTED: {},
}


def left_to_right(seed: int) -> Graph:
    """Return a connected geometric graph whose nodes are numbered from left to right."""
    rng, radius = np.random.default_rng(seed), np.sqrt(2 * np.log(ROWS) / (np.pi * ROWS))
    while True:
        points = rng.random((ROWS, 2))
        near = cKDTree(points[np.argsort(points[:, 0])]).query_pairs(radius, output_type="ndarray")
        try:
            return Graph("geometric", ROWS, near).check()
        except gosta.InputError:  # it is not connected
            continue


def coverage(name: str, samples: int, title: str) -> tuple[float, float, float]:
    """Return the share of samples in which an interval covers the value, a node's and that of all
    rows together, and how many times wider the first are.
    """
    (sample, value), settings = POPULATIONS[name], NETWORKS[title]
    hits, widths = [0, 0], [0.0, 0.0]
    for seed in range(samples):
        data = sample(np.random.default_rng(seed))
        if title == SORTED:
            # by the last column: the label, where there is one
            order = np.lexsort(list(data.values()))
            data, settings = (
                {column: values[order] for column, values in data.items()},
                {"graph": left_to_right(seed)},
            )
        trace = gosta.simulate(
            data, name, interval=LEVEL, runs=1, seed=seed, checkpoints=1, **settings
        )
        low, high = (end.values[0, -1] for end in trace.intervals())
        node = seed % len(low)
        pooled = gosta.exact(data, name, interval=LEVEL)
        for k, (start, end) in enumerate([(low[node], high[node]), (pooled.low, pooled.high)]):
            hits[k] += start <= value <= end
            widths[k] += end - start
    wider = widths[0] / widths[1]
    assert title == SORTED or 1 / MOST_WIDTH_FACTOR < wider < MOST_WIDTH_FACTOR, (name, widths)
    return hits[0] / samples, hits[1] / samples, wider


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    arguments = parser.parse_args()
    samples, least = arguments.samples, LEAST_COVERAGE
    if arguments.smoke:
        samples, least = SMOKE_SAMPLES, LEAST_COVERAGE_SMOKE
    common.print_machine("numba")
    print(
        "| statistic | network | nodes | all rows in one place | wider |\n| --- | --- | --- | --- "
        "| --- |"
    )
    with progress.bar("coverage", len(POPULATIONS) * len(NETWORKS), 0) as advance:
        for name in POPULATIONS:
            for title in NETWORKS:
                nodes, pooled, wider = coverage(name, samples, title)
                shares = f"{100 * nodes:.1f} % | {100 * pooled:.1f} % | {wider:.2f} x"
                print(f"| `{name}` | {title} | {shares} |", flush=True)
                wanted = min(least, LEAST_COVERAGE_SORTED) if title == SORTED else least
                assert pooled >= least, (name, pooled)
                assert nodes >= wanted, (name, title, nodes)
                advance(1)


if __name__ == "__main__":
    main()
