"""Exact statistics against scikit-learn and scipy: ratios of times measured side by side, answers
checked.

Run with: python benchmarks/exact.py [--smoke]
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import NamedTuple

import common
import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import kendalltau
from sklearn.metrics import roc_auc_score

import gosta
from gosta.runtime.arrays import Floats


class Sizes(NamedTuple):
    """Numbers of rows, and how often each piece of work is timed."""

    sorted_rows: int
    paired_rows: int
    many_paired_rows: int
    repeats: int


FULL = Sizes(1_000_000, 20_000, 100_000, 5)
SMOKE = Sizes(2_000, 300, 400, 1)


def compare(
    title: str,
    ours: Callable[[], float],
    theirs: Callable[[], float],
    repeats: int,
    required: float | None,
) -> None:
    """Print how many times faster ours is; fail if the answers differ."""
    ours_value, theirs_value = ours(), theirs()  # also loads compiled code
    assert abs(ours_value - theirs_value) <= 1e-10 * abs(theirs_value), (
        title,
        ours_value,
        theirs_value,
    )
    common.print_ratio(title, *common.best_side_by_side(ours, theirs, repeats), required)


def scatter_by_cdist(points: Floats, cells: Floats) -> float:
    """Compute the within-cluster scatter from the full matrix of distances."""
    n = len(points)
    matrix = cdist(points, points)
    matrix *= cells[:, None] == cells[None, :]
    return float(matrix.sum() / (n * (n - 1)))


def compare_sorting(rng: np.random.Generator, sizes: Sizes, required: float | None) -> None:
    """Compare the statistics that need one sort."""
    n = sizes.sorted_rows
    label, noise = rng.integers(0, 2, n), rng.normal(size=n)
    for title, digits in (("no ties", 15), ("ties", 2)):
        score = np.round(noise + label, digits)
        compare(
            f"auc, n = {n:,}, {title}, against roc_auc_score",
            lambda score=score: float(gosta.exact(score, "auc", label=label)),  # type: ignore[misc]
            lambda score=score: float(roc_auc_score(label, score)),  # type: ignore[misc]
            sizes.repeats,
            required,
        )
    first = rng.normal(size=n)
    second = first + rng.normal(size=n)
    for title, digits in (("no ties", 15), ("ties", 2)):
        x = np.round(np.column_stack([first, second]), digits)
        compare(
            f"kendall-tau b, n = {n:,}, {title}, against kendalltau",
            lambda x=x: float(gosta.exact(x, "kendall-tau", variant="b")),  # type: ignore[misc]
            lambda x=x: float(kendalltau(x[:, 0], x[:, 1]).statistic),  # type: ignore[misc]
            sizes.repeats,
            required,
        )


def compare_pairs(rng: np.random.Generator, sizes: Sizes, required: float | None) -> None:
    """Compare a statistic that evaluates its kernel at all pairs, in time and in memory."""

    def made(n: int) -> tuple[Floats, Floats]:
        return rng.normal(size=(n, 12)), rng.integers(0, 6, n).astype(np.float64)

    def scatter() -> float:
        return float(gosta.exact(points, "within-cluster-scatter", label=cells))

    points, cells = made(sizes.paired_rows)
    scatter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    scatter()
    added_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    title = f"within-cluster-scatter, n = {len(points):,}, d = 12, against cdist"
    compare(title, scatter, lambda: scatter_by_cdist(points, cells), 1, required)
    print(
        f"  memory: {added_kib / 1024:.0f} MiB more for gosta, {8 * len(points) ** 2 / 2**20:.0f} "
        "MiB for the matrix"
    )
    points, cells = made(sizes.many_paired_rows)
    n, seconds = len(points), common.seconds_of(scatter)
    nanoseconds = 1e9 * seconds / (n * (n - 1) / 2)
    print(
        f"within-cluster-scatter, n = {n:,}, d = 12: {seconds:.1f} s, {nanoseconds:.2f} ns a pair"
    )


def main() -> None:
    smoke = common.parser(__doc__).parse_args().smoke
    sizes = SMOKE if smoke else FULL
    common.print_machine("scipy", "scikit-learn")
    common.print_heading("")
    rng = np.random.default_rng(0)
    compare_sorting(rng, sizes, None if smoke else 1)
    compare_pairs(rng, sizes, None if smoke else 4)


if __name__ == "__main__":
    main()
