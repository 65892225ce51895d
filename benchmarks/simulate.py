"""The simulator against the obvious numpy loop and against C: ratios measured side by side, answers checked.

Run with: python benchmarks/simulate.py [--large]   (--large adds n = 10^7, which needs 4 GiB and some minutes)
"""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta import graphs
from gosta.estimation.problem import Problem
from gosta.protocols import Protocol, find
from gosta.simulation.engines.compiled import Compiled
from gosta.statistics import find as find_statistic

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
        double mean = (z[i] + z[j]) / 2;
        count[i] += 1; count[j] += 1;
        z[i] = mean + (held_i - mean) / count[i];
        z[j] = mean + (held_j - mean) / count[j];
        int32_t kept = visitor[i]; visitor[i] = visitor[j]; visitor[j] = kept;
    }
}
"""


def best(work: Callable[[], Any], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def problem(n: int, d: int) -> Problem:
    """Within-cluster scatter over n points in d dimensions and 6 cells."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=(n, d)), rng.integers(0, 6, n)])
    return Problem(find_statistic("within-cluster-scatter"), x)


def draw(n: int, count: int) -> NDArray[np.int32]:
    return graphs.complete(n).draw(np.random.default_rng(1), count)


def protocol(name: str) -> Protocol:
    found = find(name)
    assert isinstance(found, Protocol)
    return found


def numpy_sync(x: NDArray[np.float64], edges: NDArray[np.int32]) -> NDArray[np.float64]:
    """GoSta-sync the obvious way: all nodes updated at once, every iteration."""
    n = len(x)
    z, visitor = np.zeros(n), np.arange(n)
    for t, (i, j) in enumerate(edges, 1):
        y = x[visitor]
        h = np.sqrt(((x[:, :-1] - y[:, :-1]) ** 2).sum(axis=1)) * (x[:, -1] == y[:, -1])
        z = z * ((t - 1) / t) + h / t
        z[i] = z[j] = (z[i] + z[j]) / 2
        visitor[i], visitor[j] = visitor[j], visitor[i]
    return z


def sync_against_numpy(wanted: float) -> None:
    few, many = 300, 3_000_000
    task = problem(1599, 12)
    engine = Compiled(task, protocol("gosta-sync"))
    edges = draw(1599, many)
    arrays = engine.start()
    engine.advance(arrays, edges[:few], 0)
    start = time.perf_counter()
    slow = numpy_sync(task.x, edges[:few])
    theirs = (time.perf_counter() - start) / few
    np.testing.assert_allclose(engine.means(arrays, few)[:, 0], slow, rtol=1e-12)
    ours = best(lambda: engine.advance(engine.start(), edges, 0)) / many
    report("gosta-sync, n = 1599, d = 12, against all-nodes numpy", ours, theirs, wanted)


def async_against_c(loop: Any, n: int, d: int, count: int, wanted: float) -> None:
    task = problem(n, d)
    engine = Compiled(task, protocol("gosta-async"))
    edges = draw(n, count)
    arrays = engine.start()
    z, seen, visitor = np.zeros(n), np.zeros(n), np.arange(n, dtype=np.int32)

    def address(array: NDArray[Any]) -> ctypes.c_void_p:
        return array.ctypes.data_as(ctypes.c_void_p)

    def in_c() -> None:
        loop.gosta_async(
            address(task.x), ctypes.c_long(d + 1), address(z), address(seen), address(visitor), address(edges),
            ctypes.c_long(count),
        )  # fmt: skip

    in_c()
    engine.advance(arrays, edges, 0)
    np.testing.assert_array_equal(engine.means(arrays, count)[:, 0], z)
    np.testing.assert_array_equal(engine.visitors(arrays)[:, 0], visitor)
    theirs = best(in_c) / count
    ours = best(lambda: engine.advance(arrays, edges, 0)) / count
    way = "carried" if engine.layout.carried else "index"
    report(f"gosta-async, n = {n:,}, d = {d}, {way}, against C", ours, theirs, wanted)
    # Rows of x begin anywhere in a line of 64 bytes; rows of the carried table begin at one.
    row = (8 * (d + 1) + 56) / 64
    plain = 2 * (3 + 2 * row)  # estimate, count, visitor, own row, visitor's row, at both nodes
    packed = 2 * arrays["table"].shape[1] * 8 / 64 if engine.layout.carried else 2 * (2 + 2 * row)
    print(f"  lines of memory an exchange touches: {packed:.1f} in gosta, {plain:.1f} in C", flush=True)


def report(title: str, ours: float, theirs: float, wanted: float) -> None:
    ratio = theirs / ours
    verdict = "ok" if ratio >= wanted else "TOO SLOW"
    print(
        f"{title:<62} {1e9 * ours:8.1f} ns {1e9 * theirs:10.1f} ns {1e-6 / ours:7.1f} M/s {ratio:8.2f}x "
        f"(wanted {wanted:g}x) {verdict}",
        flush=True,
    )


def main() -> None:
    print(
        f"{platform.machine()}, one of {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"numpy {np.__version__}"
    )
    print(f"{'an exchange takes':<62} {'gosta':>11} {'other':>13}")
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "loop.c", Path(folder) / "loop.so"
        source.write_text(C_LOOP)
        # No contraction to fused multiply-add: both then round alike and the answers can be compared bit by bit.
        flags = ["-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC"]
        subprocess.run(["gcc", *flags, str(source), "-o", str(library), "-lm"], check=True)
        loop = ctypes.CDLL(str(library))
        sync_against_numpy(500)
        async_against_c(loop, 1599, 12, 5_000_000, 0.85)
        async_against_c(loop, 30_000, 4, 5_000_000, 0.85)
        async_against_c(loop, 200_000, 4, 5_000_000, 0.85)
        async_against_c(loop, 1_000_000, 4, 8_000_000, 1.5)
        if "--large" in sys.argv:
            async_against_c(loop, 10_000_000, 4, 8_000_000, 1.5)


if __name__ == "__main__":
    main()
