"""Exact statistics against scikit-learn and scipy: ratios of times measured side by side, answers checked.

Run with: python benchmarks/exact.py
"""

from __future__ import annotations

import os
import platform
import resource
import time
from collections.abc import Callable

import numpy as np
import scipy
import sklearn
from scipy.spatial.distance import cdist
from scipy.stats import kendalltau
from sklearn.metrics import roc_auc_score

import gosta

REPEATS = 5


def best(work: Callable[[], float], repeats: int = REPEATS) -> tuple[float, float]:
    """The shortest time, and the answer."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        answer = work()
        times.append(time.perf_counter() - start)
    return min(times), float(answer)


def compare(title: str, ours: Callable[[], float], theirs: Callable[[], float], wanted: float, repeats: int) -> None:
    """Print how many times faster ours is; refuse different answers."""
    ours()  # compiled code is loaded
    our_time, our_answer = best(ours, repeats)
    their_time, their_answer = best(theirs, repeats)
    assert abs(our_answer - their_answer) <= 1e-10 * abs(their_answer), (our_answer, their_answer)
    ratio = their_time / our_time
    verdict = "ok" if ratio >= wanted else "TOO SLOW"
    print(f"{title:<58} {our_time:8.3f} s {their_time:8.3f} s {ratio:7.1f}x (wanted {wanted:g}x) {verdict}")


def scatter_by_cdist(points: np.ndarray, cells: np.ndarray) -> float:
    """The obvious way: the whole matrix of distances."""
    n = len(points)
    matrix = cdist(points, points)
    matrix *= cells[:, None] == cells[None, :]
    return float(matrix.sum() / (n * (n - 1)))


def main() -> None:
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}, "
        f"scipy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    )
    print(f"{'':<58} {'gosta':>10} {'other':>10} {'ratio':>8}")
    rng = np.random.default_rng(0)

    n = 1_000_000
    label = rng.integers(0, 2, n)
    for title, score in {
        "no ties": rng.normal(size=n) + label,
        "ties": np.round(rng.normal(size=n) + label, 2),
    }.items():
        compare(
            f"auc, n = 10^6, {title}, against roc_auc_score",
            lambda score=score: gosta.exact(score, "auc", label=label),  # type: ignore[misc]
            lambda score=score: roc_auc_score(label, score),  # type: ignore[misc]
            1,
            REPEATS,
        )
    a = rng.normal(size=n)
    for title, pair in {
        "no ties": (a, a + rng.normal(size=n)),
        "ties": (np.round(a, 2), np.round(a + rng.normal(size=n), 2)),
    }.items():
        x = np.column_stack(pair)
        compare(
            f"kendall-tau b, n = 10^6, {title}, against kendalltau",
            lambda x=x: gosta.exact(x, "kendall-tau", variant="b"),  # type: ignore[misc]
            lambda x=x: kendalltau(x[:, 0], x[:, 1]).statistic,  # type: ignore[misc]
            1,
            REPEATS,
        )

    points, cells = rng.normal(size=(20_000, 12)), rng.integers(0, 6, 20_000)

    def scatter() -> float:
        return float(gosta.exact(points, "within-cluster-scatter", label=cells))

    scatter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    scatter()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    compare(
        "within-cluster-scatter, n = 20 000, d = 12, against cdist",
        scatter,
        lambda: scatter_by_cdist(points, cells),
        4,
        1,
    )
    print(f"  memory: {grown / 1024:.0f} MiB more for gosta, {8 * len(points) ** 2 / 2**20:.0f} MiB for cdist's matrix")
    n = 100_000
    points, cells = rng.normal(size=(n, 12)), rng.integers(0, 6, n)
    start = time.perf_counter()
    scatter()
    took = time.perf_counter() - start
    print(f"within-cluster-scatter, n = 100 000, d = 12: {took:.1f} s, {1e9 * took / (n * (n - 1) / 2):.2f} ns a pair")


if __name__ == "__main__":
    main()
