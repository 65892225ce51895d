"""How often the intervals that nodes give cover the population value.

Populations whose value is known; of each, 1000 samples of 400 rows, each gossiped over once. Every node gives an
interval; one node's is looked at, a different one in every sample. The standard error of a coverage of 95 % is 0.7 %.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import asin, erf, pi
from typing import Any

import numpy as np

import gosta
from gosta.runtime import progress

ROWS = 400
Sample = Callable[[np.random.Generator], dict[str, Any]]


def scores(rng: np.random.Generator) -> dict[str, Any]:
    """Two normal classes, one standard deviation apart."""
    label = np.arange(ROWS) % 2
    return {"score": rng.normal(size=ROWS) + label, "label": label}


def heights(rng: np.random.Generator) -> dict[str, Any]:
    """Normal numbers, whose mean difference is 2/sqrt(pi)."""
    return {"x": rng.normal(size=ROWS)}


def pairs(rng: np.random.Generator) -> dict[str, Any]:
    """Normal pairs with correlation 1/2, whose Kendall's tau is 1/3."""
    first, other = rng.normal(size=(2, ROWS))
    return {"first": first, "second": 0.5 * first + 0.75**0.5 * other}


POPULATIONS: dict[str, tuple[Sample, float]] = {
    "auc": (scores, 0.5 + 0.5 * erf(0.5)),
    "gini-mean-difference": (heights, 2 / pi**0.5),
    "kendall-tau": (pairs, 2 / pi * asin(0.5)),
}


def covered(name: str, samples: int, **how: Any) -> tuple[float, float]:
    """The share of samples in which a node's interval covers the value; the same for all rows in one place."""
    sample, value = POPULATIONS[name]
    hits = [0, 0]
    for seed in range(samples):
        data = sample(np.random.default_rng(seed))
        trace = gosta.simulate(data, name, interval=0.95, runs=1, seed=seed, checkpoints=1, **how)
        low, high = (end.values[0, -1] for end in trace.intervals())
        node = seed % len(low)
        pooled = gosta.exact(data, name, interval=0.95)
        hits[0] += low[node] <= value <= high[node]
        hits[1] += pooled.low <= value <= pooled.high
    return hits[0] / samples, hits[1] / samples


def main() -> None:
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    cases: dict[str, dict[str, Any]] = {
        "a row a node, Watts-Strogatz": {"graph": "watts-strogatz"},
        "20 nodes, Zipf, Watts-Strogatz": {"graph": "watts-strogatz", "nodes": 20, "iterations": 4000},
    }
    print("| statistic | network | nodes | all rows in one place |\n| --- | --- | --- | --- |")
    with progress.bar("coverage", len(POPULATIONS) * len(cases), 0) as advance:
        for name in POPULATIONS:
            for title, how in cases.items():
                nodes, pooled = covered(name, samples, **how)
                print(f"| `{name}` | {title} | {100 * nodes:.1f} % | {100 * pooled:.1f} % |", flush=True)
                advance(1)


if __name__ == "__main__":
    main()
