"""Nodes with tables: hospitals that see different patients, and many rows a node."""

from __future__ import annotations

import time

import numpy as np

import gosta


def main() -> None:
    trace = gosta.simulate(
        "breast-cancer", "gini-mean-difference", columns="mean radius", nodes=20, by="mean radius",
        iterations=40_000, runs=20, checkpoints=25,
    )  # fmt: skip
    for at in (0, -1):
        error = float(trace.error()["mean"][at])
        print(f"20 hospitals by size of tumour, {trace.iterations[at]:,} exchanges: error {100 * error:.2f} %")
    rng, rows = np.random.default_rng(0), 20 * 10**5
    score = rng.gamma(2, 1, rows)
    data = {"score": score, "label": rng.random(rows) < score / 10}
    seconds = []
    for exchanges in (1, 500):
        start = time.perf_counter()
        trace = gosta.simulate(data, "auc", nodes=20, deal="even", runs=1, iterations=exchanges, checkpoints=1)
        seconds.append(time.perf_counter() - start)
    error, each = float(trace.error()["mean"][-1]), (seconds[1] - seconds[0]) / 499
    print(f"20 nodes of 100,000 rows, AUC, 500 exchanges: error {100 * error:.3f} %, {1000 * each:.1f} ms an exchange")


if __name__ == "__main__":
    main()
