"""Spectral gaps against other solvers, and predictions against simulation.

Run with: python benchmarks/theory.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

import gosta
from gosta import theory
from gosta.estimation.problem import settle
from gosta.graphs import Graph, make
from gosta.theory import prediction, spectrum

PREDICTED = [
    ("two-gaussians", "auc", None),
    ("two-gaussians", "gini-mean-difference", "x"),
    ("lognormal", "gini-mean-difference", None),
    ("clusters", "within-cluster-scatter", None),
]
NETWORKS = [
    ("complete", 1000, 100),
    ("watts-strogatz", 1000, 200),
    ("torus", 1024, 400),
    ("cycle", 1000, 6000),
    ("two-cliques", 1000, 200),
    ("star", 1000, 200),
    ("barabasi-albert", 1000, 200),
]


def timed(solve: Callable[[Graph], float], graph: Graph) -> tuple[float, float]:
    start = time.perf_counter()
    return solve(graph), time.perf_counter() - start


def lanczos(graph: Graph) -> float:
    """scipy's Lanczos on the largest eigenvalue of a shifted Laplacian."""
    matrix, n = spectrum.laplacian(graph), graph.n
    top = 2 * matrix.diagonal().max()
    shifted = LinearOperator((n, n), matvec=lambda v: top * (v - v.mean()) - matrix @ v, dtype=np.float64)
    found = eigsh(shifted, k=1, which="LA", tol=1e-6, ncv=40, return_eigenvectors=False, maxiter=10**5)
    return float(top - found[0]) / 2


def as_networkx(graph: Graph) -> Any:
    other = nx.Graph()
    other.add_edges_from(np.asarray(graph.edges).tolist())
    return other


def gaps() -> None:
    print("spectral gap, beside scipy's Lanczos and networkx where they do not take minutes")
    others = {"scipy": lanczos, "networkx": lambda g: nx.algebraic_connectivity(as_networkx(g), seed=1) / (2 * g.m)}
    for name, n, beside in [
        ("watts-strogatz", 20_000, ["scipy", "networkx"]),
        ("geometric", 20_000, ["scipy"]),
        ("geometric", 100_000, ["scipy"]),
        ("watts-strogatz", 1_000_000, []),
        ("barabasi-albert", 1_000_000, []),
    ]:
        graph = make(name, n, 1)
        ours, seconds = timed(theory.spectral_gap, graph)
        print(f"  {name:<16} n = {n:>9,}: {ours:.4e} in {seconds:6.1f} s", end="", flush=True)
        for title in beside:
            value, theirs = timed(others[title], graph)
            assert abs(value / ours - 1) < 1e-2, (value, ours)
            print(f"; {title} {theirs:.1f} s ({theirs / seconds:.1f} x)", end="", flush=True)
        print()


def predictions() -> None:
    print(
        "gosta-async: exchanges a node to 5 %, simulated (5 runs) and predicted; predicted / simulated error below 20 %"
    )
    worst = 1.0
    for data, statistic, columns in PREDICTED:
        for name, n, each in NETWORKS:
            rows = gosta.datasets.load(data, n=n)
            settings: dict[str, Any] = {"graph": name, "columns": columns}
            trace = gosta.simulate(rows, statistic, iterations=each * n, runs=5, checkpoints=200, **settings)
            setting = settle("gosta-async", rows, statistic, name, 0, {}, columns)
            at, error = trace.iterations, trace.error()["mean"].values
            guess = prediction.predicted_errors(setting, at)
            seen = error < 0.2
            ratios = guess[seen] / error[seen]
            late = np.flatnonzero(error > 0.05)
            reached = late[-1] + 1 < len(at)
            simulated = f"{2 * at[late[-1] + 1] / n:8.0f}" if reached else "       -"
            wanted = theory.predict(name, "gosta-async", 0.05, rows, statistic, columns=columns).per_node
            worst = max(worst, *ratios, *(1 / ratios))
            print(
                f"  {data + ' ' + statistic:<34} {name:<16} {simulated} {wanted:8.0f}   "
                f"errors {ratios.min():.2f} to {ratios.max():.2f}",
                flush=True,
            )
    print(f"  the worst error is off by a factor of {worst:.2f}")


def main() -> None:
    print(f"Python {sys.version.split()[0]}, numpy {np.__version__}")
    gaps()
    predictions()


if __name__ == "__main__":
    main()
