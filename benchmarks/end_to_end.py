"""Speed of gosta.simulate from end to end: cores, protocols, and C, as ratios measured side by
side, answers checked.

Times are those of the runs with all their readings (`trace.info.seconds`), without compilation and
the exact value.

Run with: python benchmarks/end_to_end.py [--smoke]
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import common
import numpy as np

import gosta
from gosta.runtime.machine import available_cores, limit_cores
from gosta.simulation.trace import Trace

REQUIRED_SPEEDUPS = {2: 1.8, 16: 10.0}  # by number of cores

# numpy's SeedSequence, PCG64 and bounded integers, a generator for each block of edges as in
# `gosta.schedule`.
C_LOOP = r"""
#include <math.h>
#include <stdint.h>
typedef unsigned __int128 uint128;
enum { BLOCK = 1 << 16, EDGES = 0, POOL = 4 };
typedef struct { uint128 state, increment; uint32_t spare; int has_spare; } Generator;

static uint32_t hash(uint32_t value, uint32_t *constant, uint32_t factor) {
    value ^= *constant;
    *constant *= factor;
    value *= *constant;
    return value ^ value >> 16;
}
static uint32_t mix(uint32_t a, uint32_t b) {
    uint32_t mixed = 0xca01f9ddu * a - 0x4973f715u * b;
    return mixed ^ mixed >> 16;
}
static void step(Generator *rng) {
    const uint128 factor = (uint128)2549297995355413924ULL << 64 | 4865540595714422341ULL;
    rng->state = rng->state * factor + rng->increment;
}
static Generator seeded(uint32_t seed, uint32_t run, uint32_t block) {
    const uint32_t entropy[POOL + 3] = {seed, 0, 0, 0, run, EDGES, block};
    uint32_t pool[POOL], words[8], constant = 0x43b0d7e5u;
    for (int k = 0; k < POOL; k++) pool[k] = hash(entropy[k], &constant, 0x931e8875u);
    for (int from = 0; from < POOL; from++)
        for (int to = 0; to < POOL; to++)
            if (from != to) pool[to] = mix(pool[to], hash(pool[from], &constant, 0x931e8875u));
    for (int from = POOL; from < POOL + 3; from++)
        for (int to = 0; to < POOL; to++) pool[to] = mix(pool[to], hash(entropy[from], &constant, 0x931e8875u));
    constant = 0x8b51f9ddu;
    for (int k = 0; k < 8; k++) words[k] = hash(pool[k % POOL], &constant, 0x58f38dedu);
    uint128 numbers[2];
    for (int k = 0; k < 2; k++) {
        const uint32_t *word = words + 4 * k;
        numbers[k] = (uint128)((uint64_t)word[1] << 32 | word[0]) << 64 | ((uint64_t)word[3] << 32 | word[2]);
    }
    Generator rng = {0, numbers[1] << 1 | 1, 0, 0};
    step(&rng);
    rng.state += numbers[0];
    step(&rng);
    return rng;
}
static uint32_t next(Generator *rng) {
    rng->has_spare = !rng->has_spare;
    if (!rng->has_spare) return rng->spare;
    step(rng);
    uint64_t folded = (uint64_t)(rng->state >> 64) ^ (uint64_t)rng->state;
    int turn = rng->state >> 122;
    uint64_t number = folded >> turn | folded << (-turn & 63);
    rng->spare = number >> 32;
    return (uint32_t)number;
}
static uint32_t below(Generator *rng, uint32_t bound) {
    uint64_t product = (uint64_t)next(rng) * bound;
    if ((uint32_t)product < bound) {
        uint32_t least = -bound % bound;
        while ((uint32_t)product < least) product = (uint64_t)next(rng) * bound;
    }
    return product >> 32;
}
static double gini(const double *x, const double *y, long d) { return fabs(x[0] - y[0]); }
static double scatter(const double *x, const double *y, long d) {
    if (x[d - 1] != y[d - 1]) return 0.0;
    double total = 0.0;
    for (long c = 0; c < d - 1; c++) { double gap = x[c] - y[c]; total += gap * gap; }
    return sqrt(total);
}
/* GoSta-async, as in simulate.py, on edges that it draws: one by one, or a block ahead. */
typedef double Kernel(const double *, const double *, long);
#define ARGUMENTS const double *x, double *z, double *count, int32_t *visitor, const int32_t *edges, long d, long m, \
    long seed, long iterations
static inline __attribute__((always_inline)) void run(Kernel kernel, int ahead, ARGUMENTS) {
    Generator rng;
    uint32_t block[BLOCK];
    for (long t = 0; t < iterations; t++) {
        if (t % BLOCK == 0) {
            rng = seeded(seed, 0, t / BLOCK);
            for (long k = 0; ahead && k < BLOCK; k++) block[k] = below(&rng, m);
        }
        long drawn = ahead ? block[t % BLOCK] : below(&rng, m), i = edges[2 * drawn], j = edges[2 * drawn + 1];
        double held_i = kernel(x + i * d, x + visitor[i] * d, d), held_j = kernel(x + j * d, x + visitor[j] * d, d);
        double mean_i = z[i] + 0.5 * (z[j] - z[i]), mean_j = z[j] + 0.5 * (z[i] - z[j]);
        count[i] += 1; count[j] += 1;
        z[i] = mean_i + 1.0 / count[i] * (held_i - mean_i);
        z[j] = mean_j + 1.0 / count[j] * (held_j - mean_j);
        int32_t kept = visitor[i]; visitor[i] = visitor[j]; visitor[j] = kept;
    }
}
#define PASSED x, z, count, visitor, edges, d, m, seed, iterations
void gini_one_by_one(ARGUMENTS) { run(gini, 0, PASSED); }
void gini_ahead(ARGUMENTS) { run(gini, 1, PASSED); }
void scatter_one_by_one(ARGUMENTS) { run(scatter, 0, PASSED); }
void scatter_ahead(ARGUMENTS) { run(scatter, 1, PASSED); }
"""


def simulate(statistic: str, protocol: str, n: int, **options: Any) -> Trace:
    """Simulate the Gini mean difference of one column, or the scatter of 12 within 6 clusters."""
    rng = np.random.default_rng(0)
    if statistic == "gini":
        return gosta.simulate(
            rng.normal(size=n), "gini-mean-difference", protocol=protocol, **options
        )
    x, clusters = rng.normal(size=(n, 12)), rng.integers(0, 6, n)
    return gosta.simulate(x, "within-cluster-scatter", label=clusters, protocol=protocol, **options)


def shortest(*works: Callable[[], float]) -> list[float]:
    """Call functions that return a time in turn, so that a busy moment hits all; return the
    shortest time of each.
    """
    return [
        min(times)
        for times in zip(*([work() for work in works] for _ in range(common.REPEATS)), strict=True)
    ]


def cores_against_one(
    protocol: str, n: int, runs: int, iterations: int, cores: Sequence[int], judge: bool
) -> None:
    traces: dict[int, Trace] = {}

    def seconds_on(number: int) -> float:
        with limit_cores(number):
            traces[number] = simulate("gini", protocol, n, runs=runs, iterations=iterations)
        return traces[number].info.seconds

    seconds_on(1)
    one, *times = shortest(*(lambda number=number: seconds_on(number) for number in (1, *cores)))
    for number, seconds in zip(cores, times, strict=True):
        assert traces[number].data.identical(traces[1].data)
        required = REQUIRED_SPEEDUPS.get(number) if judge else None
        common.print_ratio(
            f"{protocol}, gini, {runs} runs, {number} cores against 1", seconds, one, required
        )


def tracking_against_async(n: int, iterations: int, required: float | None) -> None:
    def seconds_of(protocol: str) -> float:
        trace = simulate("scatter", protocol, n, runs=1, iterations=iterations)
        assert trace.error()["mean"][-1] < 0.5
        return trace.info.seconds / iterations

    seconds_of("tracking")
    seconds_of("gosta-async")
    ours, theirs = shortest(lambda: seconds_of("tracking"), lambda: seconds_of("gosta-async"))
    common.print_ratio("tracking, scatter, one run, against gosta-async", ours, theirs, required)


def simulate_against_c(
    loop: ctypes.CDLL, statistic: str, n: int, iterations: int, required: float | None
) -> None:
    trace = simulate(statistic, "gosta-async", n, runs=1, iterations=iterations)
    x, edges = trace.setting.estimand.x, trace.setting.graph.edges
    assert edges is not None
    values = trace.estimates.values[0, -1]

    def ours() -> float:
        again = simulate(statistic, "gosta-async", n, runs=1, iterations=iterations)
        return again.info.seconds / iterations

    def theirs(way: str) -> float:
        z, count, visitor = np.zeros(n), np.zeros(n), np.arange(n, dtype=np.int32)
        places = [array.ctypes.data_as(ctypes.c_void_p) for array in (x, z, count, visitor, edges)]
        numbers = [
            ctypes.c_long(number)
            for number in (x.shape[1], len(edges), trace.info.seed, iterations)
        ]
        seconds = common.seconds_of(lambda: getattr(loop, f"{statistic}_{way}")(*places, *numbers))
        np.testing.assert_array_equal(values, trace.setting.values(z[None, :, None])[0, :, 0])
        return seconds / iterations

    times = shortest(ours, lambda: theirs("one_by_one"), lambda: theirs("ahead"))
    common.print_ratio(
        f"gosta-async, {statistic}, one run, against C", times[0], min(times[1:]), required
    )


def main() -> None:
    smoke = common.parser(__doc__).parse_args().smoke
    common.print_machine("numba")
    common.print_heading("seconds, on several cores")
    n, runs, iterations = (500, 4, 5000) if smoke else (1599, 48, 1_000_000)
    cores = [number for number in (2, 4, 8, 16, 32, 64) if number < available_cores()]
    cores = [2] if smoke else [*cores, available_cores()]
    for protocol in ("carried-means", "tracking", "gosta-async"):
        cores_against_one(protocol, n, runs, iterations, cores, judge=not smoke)
    common.print_heading("seconds an exchange, on one core")
    with limit_cores(1), common.compiled_c(C_LOOP) as loop:
        tracking_against_async(n, 30_000 if smoke else 5_000_000, None if smoke else 0.75)
        if loop is not None:
            for statistic in ("gini", "scatter"):
                simulate_against_c(
                    loop, statistic, n, 100_000 if smoke else 40_000_000, None if smoke else 0.85
                )


if __name__ == "__main__":
    main()
