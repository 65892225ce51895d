"""The engine on a GPU: bit equality with the compiled engine, and speed beside it, on the machine
that this runs on.

Run with: python benchmarks/gpu.py [SECTION ...] [--smoke]   (about 6 minutes on a GPU)
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import common
import numpy as np

from gosta import schedule

if "--smoke" in sys.argv:  # before numba is imported, and what takes edges by blocks
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    sys.setswitchinterval(1e-5)  # the simulator polls its threads
    # of products beyond 64 bits, which the generator of numbers is made of
    warnings.simplefilter("ignore")
    schedule.BLOCK = 128

import gosta
from gosta import protocols
from gosta.estimation.estimand import Estimand
from gosta.estimation.placement import Placement
from gosta.estimation.setting import Setting, protocol_for
from gosta.graphs.graph import Graph
from gosta.graphs.tree import with_tree
from gosta.runtime.arrays import Floats
from gosta.schedule import Schedule
from gosta.simulation.engines.compiled.engine import CompiledEngine
from gosta.simulation.engines.compiled.layouts import CarriedLayout, OneRowLayout
from gosta.simulation.engines.gpu import device
from gosta.simulation.engines.gpu.edges import Edges
from gosta.simulation.engines.gpu.engine import make
from gosta.statistics import find

SEED = 1
NODES = 1599
RUNS = 264  # twice as many as an H200 has multiprocessors
STATISTICS = (
    "gini-mean-difference", "gini-index", "mean-pairwise-distance", "kendall-tau", "auc",
    "concordance-index",
    "within-cluster-scatter", "energy-distance",
)  # fmt: skip
PROTOCOLS = tuple(
    name
    for name in protocols.PROTOCOLS
    if isinstance(protocols.find(name), protocols.Protocol) and not protocols.find(name).minimises
)


def rows_of(statistic: str, n: int, d: int = 12) -> Floats:
    """Return rows at random as a statistic takes them; observations of d numbers where it takes
    any.
    """
    rng = np.random.default_rng(5)
    points, signs = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n)
    columns: dict[str, Any] = {
        "gini-mean-difference": [points[:, 0]],
        "gini-index": [rng.random(n) + 0.5],
        "mean-pairwise-distance": [points],
        "kendall-tau": [np.round(points[:, :2], 2)],
        "auc": [np.round(points[:, 0], 2), signs],
        "concordance-index": [rng.exponential(size=n), rng.integers(0, 2, n), points[:, 0]],
        "within-cluster-scatter": [points, rng.integers(0, 6, n)],
        "energy-distance": [points, signs],
    }
    return np.ascontiguousarray(np.column_stack(columns[statistic]), dtype=np.float64)


@functools.cache
def ring_with_chords(n: int) -> Graph:
    """Return a ring with a chord at each node, to another at random."""
    i = np.arange(n)
    j = (i + 2 + np.random.default_rng(0).integers(0, n - 3, n)) % n
    edges = np.concatenate([np.column_stack([i, (i + 1) % n]), np.column_stack([i, j])])
    return Graph("ring with chords", n, edges.astype(np.int32))


def setting_of(statistic: str, protocol: str, n: int) -> Setting:
    """Return a statistic, a protocol and a graph."""
    estimand = Estimand(find(statistic), rows_of(statistic, n))
    rule, graph = protocol_for(protocol, estimand.statistic, False, False), ring_with_chords(n)
    return Setting(rule, estimand, Placement(n), with_tree(graph) if rule.uses_tree else graph)


def differences(setting: Setting, runs: int, iterations: int, has_blocks: bool) -> tuple[int, int]:
    """Return how many nodes are not the compiled engine's, bit for bit, after some iterations; and
    their number.
    """
    original = device.max_shared_bytes
    try:
        if not has_blocks:
            device.max_shared_bytes = lambda: 0
        ours = make(setting, SEED)
    finally:
        device.max_shared_bytes = original
    theirs = CompiledEngine(setting, SEED, ours.layout)  # type: ignore[attr-defined]
    found = []
    for engine in (ours, theirs):
        batch = engine.start(range(runs))
        for iteration in (1, iterations // 3, iterations):
            engine.advance(batch, iteration)()
        found.append(
            [
                np.ascontiguousarray(array).view(np.uint8)
                for array in engine.snapshot(batch).values()
            ]
        )
        engine.close()
    unequal = sum(int((a != b).any(axis=-1).sum()) for a, b in zip(*found, strict=True))
    return unequal, runs * setting.placement.nodes


def check_statistic(statistic: str, names: Iterable[str], n: int, iterations: int) -> list[str]:
    """Compare both loops of all protocols with the compiled engine; return a line for each
    combination.
    """
    lines = []
    for protocol in names:
        for has_blocks in (True, False):
            setting = setting_of(statistic, protocol, n)
            unequal, _ = differences(setting, 2 if has_blocks else 1, iterations, has_blocks)
            loop = "a block a run" if has_blocks else "one run"
            lines.append(
                f"{statistic:24} {protocol:14} {loop:14} "
                f"{'same bits' if not unequal else f'{unequal} nodes differ'}"
            )
    return lines


def check_bits(smoke: bool) -> None:
    """All statistics and protocols with both loops."""
    if smoke:
        lines = check_statistic("auc", ("gosta-async", "tracking"), 30, 100)
    else:
        workers = min(len(STATISTICS), os.cpu_count() or 1)
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            work = [
                pool.submit(check_statistic, name, PROTOCOLS, NODES, 200_000) for name in STATISTICS
            ]
            lines = [line for one in work for line in one.result()]
    print("\n".join(lines))
    wrong = [line for line in lines if not line.endswith("same bits")]
    print(f"{len(lines)} combinations, {len(wrong)} with any bit different", flush=True)
    assert not wrong


def check_sizes(smoke: bool) -> None:
    """Large networks, and the edges that are drawn."""
    for n, statistic, protocol in (
        (100_000, "within-cluster-scatter", "tracking"),
        (1_000_000, "gini-mean-difference", "gosta-async"),
        (1_000_000, "gini-mean-difference", "tracking"),
        (10_000_000, "gini-mean-difference", "gosta-async"),
        (10_000_000, "gini-mean-difference", "tracking"),
    ):
        if not smoke:
            unequal, count = differences(
                setting_of(statistic, protocol, n), 1, min(8 * n, 1 << 24), has_blocks=True
            )
            print(
                f"n = {n:.0e}, {statistic}, {protocol}: {unequal} of {count} nodes differ",
                flush=True,
            )
            assert not unequal
    rng, chords = np.random.default_rng(3), ring_with_chords(100 if smoke else 100_000)
    for graph in (
        chords,
        Graph("weighted", chords.n, chords.edges, rng.random(chords.m) + 0.1),
        Graph("complete", 1599, None),
        Graph("complete, many numbers rejected", 60_000, None),
        Graph("complete, numbers of 64 bits", 1_000_000, None),
        with_tree(Graph("complete with a tree", 1599, None)),
    ):
        if smoke and graph is not chords:
            continue
        edges, blocks = Edges(graph, 3, True), 1 if smoke else 3
        runs = device.cuda().to_device(np.array([7]))
        drawn, shares = edges.draw(runs, 5, blocks, edges.allocate(blocks), 0)
        there, numbers = Schedule(graph, 3, 7), [b * schedule.BLOCK for b in range(5, 5 + blocks)]
        expected = np.concatenate([there.edges(first, first + schedule.BLOCK) for first in numbers])
        np.testing.assert_array_equal(
            drawn.copy_to_host()[0].view(np.int32).reshape(-1, 2), expected
        )
        if edges.has_shares:
            expected_shares = np.concatenate(
                [there.edge_shares(first, first + schedule.BLOCK) for first in numbers]
            )
            np.testing.assert_array_equal(shares.copy_to_host()[0], expected_shares)
        print(f"edges of {graph.name}: same bits as numpy's", flush=True)


def speed(engine: Any, runs: int, iterations: int) -> float:
    """Return the exchanges per second of some runs, edges drawn."""
    batch, draws = engine.start(range(runs)), engine.setting.protocol.draws
    first = iterations // 10
    engine.advance(batch, first)()
    start = time.perf_counter()
    engine.advance(batch, iterations)()
    return float(runs * draws * (iterations - first) / (time.perf_counter() - start))


def print_speed(
    title: str, statistic: str, protocol: str, n: int, runs: int, iterations: int, share: int
) -> None:
    """Print exchanges per second on the GPU and, for a part of the exchanges, on all cores."""
    setting = setting_of(statistic, protocol, n)
    engine = make(setting, SEED)
    ours = speed(engine, runs, iterations)
    engine.close()
    layout = (
        CarriedLayout(setting)
        if setting.gossip.carries_means
        else OneRowLayout(setting, is_inline=n > 10 * NODES)
    )
    theirs = CompiledEngine(setting, SEED, layout)
    fewer = min(runs, 2 * (os.cpu_count() or 1))
    other = speed(theirs, fewer, max(10, iterations * runs // fewer // share))
    theirs.close()
    print(f"{title:<60} {ours / 1e9:8.3f} {other / 1e9:8.3f} {ours / other:7.1f}x", flush=True)


def check_speed(smoke: bool) -> None:
    """The table of docs/explanation/simulation.md."""
    print(f"{'10^9 exchanges a second':<60} {'GPU':>8} {'CPU':>8}")
    one = [("gini-mean-difference", "gosta-async", n) for n in (100_000, 1_000_000, 10_000_000)]
    one += [("within-cluster-scatter", "tracking", n) for n in (100_000, 1_000_000, 10_000_000)]
    for statistic, protocol, n in [("auc", "gosta-async", 60)] if smoke else one:
        total = 200 if smoke else 1 << 30 if protocol == "gosta-async" else 1 << 29
        print_speed(
            f"one run, n = {n:.0e}, {protocol}, {statistic}", statistic, protocol, n, 1, total, 100
        )
    many = [
        ("gini-mean-difference", "gosta-async"),
        ("gini-mean-difference", "tracking"),
        ("auc", "tracking"),
    ]
    many += [("within-cluster-scatter", "tracking"), ("gini-mean-difference", "carried-means")]
    for statistic, protocol in [("auc", "tracking")] if smoke else many:
        n, runs, total = (30, 2, 100) if smoke else (NODES, RUNS, 20_000_000)
        print_speed(
            f"{runs} runs, n = {n}, {protocol}, {statistic}",
            statistic,
            protocol,
            n,
            runs,
            total,
            100,
        )


def check_simulate(smoke: bool) -> None:
    """`gosta.simulate` from end to end."""
    jobs = [("gpu", 1000, 10_000_000), ("gpu", 50, 1_000_000), ("compiled", 50, 1_000_000)]
    n = NODES
    if smoke:
        n, jobs = 30, [("gpu", 2, 100), ("compiled", 2, 100)]
    x, traces = rows_of("gini-mean-difference", n), {}
    for engine, runs, iterations in jobs:
        start = time.perf_counter()
        trace = gosta.simulate(
            x, "gini-mean-difference", graph="watts-strogatz", protocol="tracking", runs=runs,
            iterations=iterations,
            checkpoints=5 if smoke else 100, engine=engine, seed=SEED,
        )  # fmt: skip
        traces[engine] = trace
        seconds = time.perf_counter() - start
        rate = runs * iterations / trace.info.seconds / 1e9
        title = f"simulate, {engine}, {runs} runs of {iterations:.0e}"
        print(
            f"{title:<60} {seconds:8.2f} s, {trace.info.seconds:.2f} s without preparing; "
            f"{rate:.3f} 10^9/s",
            flush=True,
        )
    for name in ("mean", "spread", "median", "estimate"):
        np.testing.assert_array_equal(
            traces["gpu"].data[name].values, traces["compiled"].data[name].values
        )


SECTIONS = {
    "bits": check_bits,
    "sizes": check_sizes,
    "speed": check_speed,
    "simulate": check_simulate,
}


def main() -> None:
    """Run some sections, or all."""
    parser = common.parser(__doc__)
    parser.add_argument(
        "sections", nargs="*", choices=[*SECTIONS, []], help="all of them by default"
    )
    arguments = parser.parse_args()
    if not arguments.smoke:
        device.require_gpu()
    common.print_machine("numba", "numba-cuda")
    print(device.description(), flush=True)
    for name in arguments.sections or SECTIONS:
        start = time.perf_counter()
        SECTIONS[name](arguments.smoke)
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
