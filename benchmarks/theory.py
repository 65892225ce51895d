"""Spectral gaps against other solvers, and expectations and predictions against simulation.

Run with: python benchmarks/theory.py [--smoke]; ten minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import common
import networkx as nx
import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

import gosta
from gosta import theory
from gosta.estimation.setting import make_setting
from gosta.graphs import Graph, make
from gosta.runtime.arrays import Floats, Integers
from gosta.theory import prediction, spectrum

Subject = tuple[str, str, str | None]
Network = tuple[str, int | None, int, int]

GINI = "gini-mean-difference"
ACCURACIES = (0.1, 0.05, 0.01)
LARGE_ERROR = 0.2  # above, errors are not compared
MOST_FACTOR = 2.0  # between predicted and simulated errors and exchanges on NETWORKS and SUBJECTS
CHECKPOINTS = 90
PROTOCOLS = {"carried-means": 16, "tracking": 16, "gosta-async": 5}  # runs of each
SUBJECTS = [
    ("two-gaussians", "auc", None),
    ("two-gaussians", "gini-mean-difference", "x"),
    ("lognormal", "gini-mean-difference", None),
    ("clusters", "within-cluster-scatter", None),
]
# Number of nodes; edges drawn for each node, with momentum and of gosta-async.
NETWORKS = [
    ("complete", 1000, 60, 100),
    ("watts-strogatz", 1000, 100, 200),
    ("torus", 1024, 250, 400),
    ("cycle", 1000, 3000, 6000),
    ("two-cliques", 1000, 2000, 200),
    ("star", 1000, 100, 200),
    ("barabasi-albert", 1000, 100, 200),
]
# Other sizes, families and data than those on which the formulas were tried while they were
# derived. Rows are shuffled.
FAST = [
    ("complete", 60),
    ("watts-strogatz", 100),
    ("torus", 250),
    ("star", 100),
    ("barabasi-albert", 100),
]
SLOW = [("cycle", 2000), ("two-cliques", 1000)]
FAMILIES = [
    ("random-regular", 100),
    ("geometric", 500),
    ("hypercube", 100),
    ("path", 2000),
    ("grid", 300),
]
OTHER_NETWORKS: list[Network] = [
    (name, n, edges, edges)
    for sizes, families in (((100, 300, 3000), FAST), ((100, 300), SLOW), ((256, 1024), FAMILIES))
    for n in sizes
    for name, edges in families
]
# For as many nodes as there are rows.
NETWORKS_OF_DATA: list[Network] = [
    ("complete", None, 60, 100),
    ("watts-strogatz", None, 100, 200),
    ("geometric", None, 500, 500),
    ("cycle", None, 2000, 2000),
    ("star", None, 100, 200),
    ("barabasi-albert", None, 100, 200),
]
OTHER_SUBJECTS: list[Subject] = [
    ("breast-cancer", "auc", None),
    ("iris", "gini-mean-difference", "petal length"),
    ("wine", "within-cluster-scatter", None),
]
GAPS = [
    ("watts-strogatz", 20_000, ["scipy", "networkx"]),
    ("geometric", 20_000, ["scipy"]),
    ("geometric", 100_000, ["scipy"]),
    ("watts-strogatz", 1_000_000, []),
    ("barabasi-albert", 1_000_000, []),
]
GAPS_SMOKE = [("watts-strogatz", 600, ["scipy", "networkx"]), ("geometric", 600, ["scipy"])]


def timed(solve: Callable[[Graph], float], graph: Graph) -> tuple[float, float]:
    start = time.perf_counter()
    return solve(graph), time.perf_counter() - start


def by_scipy(graph: Graph) -> float:
    """Compute the gap by scipy's Lanczos, from the largest eigenvalue of a shifted Laplacian."""
    matrix, n = spectrum.laplacian(graph), graph.n
    top = 2 * matrix.diagonal().max()
    shifted = LinearOperator(
        (n, n), matvec=lambda v: top * (v - v.mean()) - matrix @ v, dtype=np.float64
    )
    found = eigsh(
        shifted, k=1, which="LA", tol=1e-6, ncv=40, return_eigenvectors=False, maxiter=10**5
    )
    return float(top - found[0]) / 2


def by_networkx(graph: Graph) -> float:
    other = nx.Graph()
    other.add_edges_from(np.asarray(graph.edges).tolist())
    return float(nx.algebraic_connectivity(other, seed=1) / (2 * graph.m))


def compare_gaps(cases: list[tuple[str, int, list[str]]]) -> None:
    print("spectral gap, beside scipy's Lanczos and networkx where they do not take minutes")
    others = {"scipy": by_scipy, "networkx": by_networkx}
    for name, n, beside in cases:
        graph = make(name, n, 1)
        ours, seconds = timed(theory.spectral_gap, graph)
        print(f"  {name:<16} n = {n:>9,}: {ours:.4e} in {seconds:6.1f} s", end="", flush=True)
        for title in beside:
            value, theirs = timed(others[title], graph)
            assert abs(value / ours - 1) < 1e-2, (name, title, value, ours)
            print(f"; {title} {theirs:.1f} s ({theirs / seconds:.1f} x)", end="", flush=True)
        print()


class Comparison(NamedTuple):
    """Predicted errors and exchanges of one protocol on one problem, relative to simulated ones."""

    simulated: list[float]  # exchanges a node to each accuracy; infinite if not reached
    predicted: list[float]
    errors: Floats  # predicted/simulated where the simulated one is below LARGE_ERROR

    @property
    def factor(self) -> float:
        """By what factor the worst error or number of exchanges is off, one way or the other."""
        times = [
            p / s for p, s in zip(self.predicted, self.simulated, strict=True) if np.isfinite(s)
        ]
        return float(
            max(
                np.maximum(both, 1 / both).max(initial=1.0)
                for both in (np.array(times), self.errors)
            )
        )


def compare(protocol: str, subject: Subject, network: Network, shuffle: bool = False) -> Comparison:
    (data, statistic, columns), (name, n, momentum_edges, gosta_edges) = subject, network
    rows = gosta.datasets.load(data, n=n)
    rows = rows.shuffle(5) if shuffle else rows
    edges = gosta_edges if protocol == "gosta-async" else momentum_edges
    trace = gosta.simulate(
        rows,
        statistic,
        graph=name,
        protocol=protocol,
        columns=columns,
        iterations=edges * len(rows),
        runs=PROTOCOLS[protocol],
        checkpoints=CHECKPOINTS,
        spacing="log",
    )
    at, error = trace.iterations, trace.error()["mean"].values
    setting = make_setting(protocol, rows, statistic, name, 0, {}, columns=columns)
    errors = (prediction.predicted_errors(setting, at) / error)[error < LARGE_ERROR]
    predicted = [
        theory.predict(setting.graph, protocol, a, rows, statistic, columns=columns)
        for a in ACCURACIES
    ]
    simulated = [2 * first_below(at, error, accuracy) / len(rows) for accuracy in ACCURACIES]
    return Comparison(simulated, [one.per_node for one in predicted], errors)


def first_below(at: Integers, error: Floats, accuracy: float) -> float:
    """Return the iteration from which on the error is below an accuracy, between checkpoints."""
    above = np.flatnonzero(error > accuracy)
    last = above[-1] if len(above) else 0
    if last + 1 == len(at):
        return np.inf
    places, errors = np.log(at[last : last + 2]), np.log(error[last : last + 2])
    return float(np.exp(np.interp(-np.log(accuracy), -errors, places)))


def print_comparison(title: str, found: Comparison) -> None:
    times = "".join(
        f" {_cell(s):>7} /{p:7.0f}" for s, p in zip(found.simulated, found.predicted, strict=True)
    )
    errors = f"{found.errors.min():.2f} to {found.errors.max():.2f}" if len(found.errors) else "-"
    print(f"  {title:<52}{times}   {errors}", flush=True)


def _cell(exchanges: float) -> str:
    return f"{exchanges:.0f}" if np.isfinite(exchanges) else "-"


def compare_predictions(
    title: str, subjects: Sequence[Subject], networks: Sequence[Network], is_other: bool = False
) -> None:
    """Print predictions, and check those of the usual networks and data."""
    print(
        f"{title}: exchanges that a node takes part in until the error is 10 %, 5 %, 1 %, "
        "simulated / predicted;"
    )
    print(f"predicted / simulated error where the simulated one is below {100 * LARGE_ERROR:g} %")
    for protocol, runs in PROTOCOLS.items():
        if is_other and protocol == "gosta-async":
            continue
        factors = []
        print(f"{protocol}, {runs} runs")
        for subject in subjects:
            for network in networks:
                found = compare(protocol, subject, network, is_other)
                factors.append(found.factor)
                size = "" if network[1] is None else f" {network[1]}"
                print_comparison(f"{subject[0]} {subject[1]} {network[0]}{size}", found)
        within = sum(factor < MOST_FACTOR for factor in factors)
        print(
            f"  within a factor of {MOST_FACTOR:g}: {within} of {len(factors)}; worst "
            f"{max(factors):.2f}",
            flush=True,
        )
        assert within == len(factors) or is_other, factors


def compare_expectations(runs: int) -> None:
    """Compare the recursion for GoSta-async with many runs on small graphs with skewed data."""
    print(
        f"expectation of gosta-async, off the mean over {runs} runs at the worst node, relative to "
        "the value"
    )
    for n in (6, 10, 20):
        rows = np.random.default_rng(1).gamma(0.3, 1, n)
        for name in ("complete", "cycle", "path", "star"):
            trace = gosta.simulate(
                rows,
                GINI,
                graph=name,
                protocol="gosta-async",
                iterations=100,
                runs=runs,
                checkpoints=20,
            )
            expected = theory.expectation("gosta-async", rows, GINI, name, trace.iterations)
            value = make_setting("gosta-async", rows, GINI, name, 0, {}).target[0, 0]
            off = np.abs(trace.estimates.mean("run").values.T - expected).max(axis=0) / value
            cells = ", ".join(
                f"{100 * off[k]:.1f} % after {trace.iterations[k]}" for k in (0, 3, 19)
            )
            print(f"  {name:<10} n = {n:>2}: {cells}", flush=True)


def main() -> None:
    smoke = common.parser(__doc__).parse_args().smoke
    common.print_machine("scipy", "networkx", "pyamg")
    compare_gaps(GAPS_SMOKE if smoke else GAPS)
    compare_expectations(200 if smoke else 20_000)
    if smoke:
        compare_predictions(
            "small", SUBJECTS[1:2], [("complete", 300, 60, 60), ("torus", 300, 100, 100)]
        )
        return
    compare_predictions("n = 1000", SUBJECTS, NETWORKS)
    compare_predictions("other sizes and families", SUBJECTS, OTHER_NETWORKS, is_other=True)
    compare_predictions("other data", OTHER_SUBJECTS, NETWORKS_OF_DATA, is_other=True)


if __name__ == "__main__":
    main()
