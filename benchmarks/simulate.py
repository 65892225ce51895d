"""Speed of the simulator against the obvious numpy loop and against C: ratios measured side by
side, answers checked.

Run with: python benchmarks/simulate.py [--large | --smoke]   (--large adds n = 10^7: 4 GiB and some minutes)
"""

from __future__ import annotations

import ctypes

import common
import numpy as np
from engine_runs import advance, estimates
from numpy.typing import NDArray

from gosta import graphs
from gosta.estimation.estimand import Estimand
from gosta.estimation.placement import Placement
from gosta.estimation.setting import Setting
from gosta.protocols import find
from gosta.runtime.arrays import Floats
from gosta.simulation.engines.compiled.engine import CompiledEngine
from gosta.simulation.engines.compiled.layouts import OneRowLayout
from gosta.statistics import find as find_statistic

Edges = NDArray[np.int32]

C_LOOP = r"""
#include <math.h>
#include <stdint.h>
static double scatter(const double *x, const double *y, long d) {
    if (x[d - 1] != y[d - 1]) return 0.0;
    double total = 0.0;
    for (long c = 0; c < d - 1; c++) { double gap = x[c] - y[c]; total += gap * gap; }
    return sqrt(total);
}
/* GoSta-async, one array per field, visitors by index. */
void gosta_async(const double *x, long d, double *z, double *count, int32_t *visitor, const int32_t *edges, long m) {
    for (long t = 0; t < m; t++) {
        long i = edges[2 * t], j = edges[2 * t + 1];
        double held_i = scatter(x + i * d, x + visitor[i] * d, d), held_j = scatter(x + j * d, x + visitor[j] * d, d);
        double mean_i = z[i] + 0.5 * (z[j] - z[i]), mean_j = z[j] + 0.5 * (z[i] - z[j]);
        count[i] += 1; count[j] += 1;
        z[i] = mean_i + 1.0 / count[i] * (held_i - mean_i);
        z[j] = mean_j + 1.0 / count[j] * (held_j - mean_j);
        int32_t kept = visitor[i]; visitor[i] = visitor[j]; visitor[j] = kept;
    }
}
"""


class GostaRun:
    """One run of the compiled engine on edges drawn beforehand: the only part that knows the
    engine's interface.
    """

    def __init__(self, estimand: Estimand, protocol: str) -> None:
        n = estimand.n
        setting = Setting(find(protocol), estimand, Placement(n), graphs.complete(n))
        self.layout = OneRowLayout(setting)
        self.engine = CompiledEngine(setting, 0, self.layout)
        self.restart()

    def restart(self) -> None:
        self.batch = self.engine.start([0])

    def advance(self, edges: Edges) -> None:
        advance(self.engine, self.batch, edges)

    def estimates(self) -> Floats:
        return estimates(self.engine, self.batch)[0, :, 0]

    def visitors(self) -> NDArray[np.int64]:
        return self.engine.visitors(self.batch)[0, :, 0]

    @property
    def bytes_per_node(self) -> float | None:
        """Bytes of the contiguous memory of a node; None where visitors are found by index."""
        return float(self.layout.size * 8) if self.layout.is_inline else None


class CRun:
    """One run of the loop in C."""

    def __init__(self, loop: ctypes.CDLL, x: Floats) -> None:
        n = len(x)
        self.loop, self.x = loop, x
        self.z, self.count, self.visitor = np.zeros(n), np.zeros(n), np.arange(n, dtype=np.int32)

    def advance(self, edges: Edges) -> None:
        arrays = (self.z, self.count, self.visitor, edges)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
        x, width = self.x.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(self.x.shape[1])
        self.loop.gosta_async(x, width, *pointers, ctypes.c_long(len(edges)))


def scatter_estimand(n: int, d: int) -> Estimand:
    """Return the within-cluster scatter over n points in d dimensions and 6 cells."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=(n, d)), rng.integers(0, 6, n)])
    return Estimand(find_statistic("within-cluster-scatter"), x)


def draw(n: int, count: int) -> Edges:
    return graphs.complete(n).draw(np.random.default_rng(1), count)


def numpy_sync(x: Floats, edges: Edges) -> Floats:
    """Run GoSta-sync the obvious way: all nodes updated at once, every iteration."""
    n = len(x)
    z, visitor = np.zeros(n), np.arange(n)
    for t, (i, j) in enumerate(edges, 1):
        y = x[visitor]
        h = np.sqrt(((x[:, :-1] - y[:, :-1]) ** 2).sum(axis=1)) * (x[:, -1] == y[:, -1])
        z = z * ((t - 1) / t) + h / t
        z[i] = z[j] = (z[i] + z[j]) / 2
        visitor[i], visitor[j] = visitor[j], visitor[i]
    return z


def sync_against_numpy(n: int, d: int, few: int, many: int, required: float | None) -> None:
    estimand, edges = scatter_estimand(n, d), draw(n, many)
    run = GostaRun(estimand, "gosta-sync")
    run.advance(edges[:few])
    np.testing.assert_allclose(run.estimates(), numpy_sync(estimand.x, edges[:few]), rtol=1e-12)
    run.restart()
    ours, theirs = common.best_side_by_side(
        lambda: run.advance(edges), lambda: numpy_sync(estimand.x, edges[:few])
    )
    common.print_ratio(
        f"gosta-sync, n = {n:,}, d = {d}, against all-nodes numpy",
        ours / many,
        theirs / few,
        required,
    )


def async_against_c(loop: ctypes.CDLL, n: int, d: int, count: int, required: float | None) -> None:
    estimand, edges = scatter_estimand(n, d), draw(n, count)
    ours, theirs = GostaRun(estimand, "gosta-async"), CRun(loop, estimand.x)
    ours.advance(edges)
    theirs.advance(edges)
    np.testing.assert_array_equal(ours.estimates(), theirs.z)
    np.testing.assert_array_equal(ours.visitors(), theirs.visitor)
    times = common.best_side_by_side(lambda: ours.advance(edges), lambda: theirs.advance(edges))
    way = "inline" if ours.bytes_per_node else "by index"
    title = f"gosta-async, n = {n:,}, d = {d}, {way}, against C"
    common.print_ratio(title, times[0] / count, times[1] / count, required)
    # Rows of x begin anywhere in a cache line of 64 bytes; nodes of the inline layout begin at one.
    row = (8 * (d + 1) + 56) / 64
    plain = 2 * (3 + 2 * row)  # estimate, count, visitor, own row, visitor's row, at both nodes
    packed = 2 * ours.bytes_per_node / 64 if ours.bytes_per_node else 2 * (2 + 2 * row)
    million = 1e-6 * count / times[0]
    print(
        f"  {million:.1f} M exchanges/s; cache lines an exchange touches: {packed:.1f} in gosta, "
        f"{plain:.1f} in C"
    )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--large", action="store_true", help="add n = 10^7")
    arguments = parser.parse_args()
    common.print_machine("numba")
    common.print_heading("seconds an exchange, on one core")
    if arguments.smoke:
        sync_against_numpy(50, 3, 300, 300, None)
        cases: list[tuple[int, int, int, float | None]] = [
            (300, 3, 200_000, None),
            (120_000, 4, 20_000, None),
        ]
    else:
        sync_against_numpy(1599, 12, 300, 3_000_000, 500)
        cases = [
            (1599, 12, 5_000_000, 0.9),
            (30_000, 4, 5_000_000, 0.85),
            (200_000, 4, 5_000_000, 0.85),
        ]
        cases += [(n, 4, 8_000_000, 1.5) for n in (1_000_000, 10_000_000)[: 1 + arguments.large]]
    with common.compiled_c(C_LOOP) as loop:
        if loop is not None:
            for case in cases:
                async_against_c(loop, *case)


if __name__ == "__main__":
    main()
