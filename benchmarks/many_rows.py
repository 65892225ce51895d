"""Nodes that hold many rows each: hospitals that see different patients, and 100,000 rows a node.

Run with: python benchmarks/many_rows.py [--smoke]
"""

from __future__ import annotations

import common
import numpy as np

import gosta

HOSPITALS = 20


def different_patients(exchanges: int, runs: int, allowed: float) -> None:
    """Print how close hospitals come whose patients have tumours of different sizes."""
    trace = gosta.simulate(
        "breast-cancer", "gini-mean-difference", columns="mean radius", nodes=HOSPITALS,
        by="mean radius",
        iterations=exchanges, runs=runs, checkpoints=25,
    )  # fmt: skip
    errors = trace.error()["mean"].values
    for at in (0, -1):
        exchanged = f"{trace.iterations[at]:,} exchanges"
        print(
            f"{HOSPITALS} hospitals by size of tumour, {exchanged}: error {100 * errors[at]:.2f} %"
        )
    assert errors[-1] < allowed, errors[-1]


def large_nodes(rows_per_node: int, exchanges: int, allowed: float) -> None:
    """Print what an exchange costs at nodes with many rows."""
    rng, rows = np.random.default_rng(0), HOSPITALS * rows_per_node
    score = rng.gamma(2, 1, rows)
    data = {"score": score, "label": rng.random(rows) < score / 10}

    def run(iterations: int) -> float:
        trace = gosta.simulate(
            data, "auc", nodes=HOSPITALS, deal="even", runs=1, iterations=iterations, checkpoints=1
        )
        return float(trace.error()["mean"][-1])

    startup = common.seconds_of(lambda: run(1))
    errors: list[float] = []
    seconds = common.seconds_of(lambda: errors.append(run(exchanges)))
    each = 1000 * (seconds - startup) / (exchanges - 1)
    print(
        f"{HOSPITALS} nodes of {rows_per_node:,} rows, AUC, {exchanges} exchanges: "
        f"error {100 * errors[0]:.3f} %, {each:.1f} ms an exchange"
    )
    assert errors[0] < allowed, errors[0]


def main() -> None:
    smoke = common.parser(__doc__).parse_args().smoke
    common.print_machine("numba")
    different_patients(*(4_000, 2, 0.03) if smoke else (40_000, 20, 0.002))
    large_nodes(*(100, 500, 0.02) if smoke else (100_000, 500, 0.001))


if __name__ == "__main__":
    main()
