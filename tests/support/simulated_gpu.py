"""Checks of the GPU engine that need a process of their own: python tests/support/simulated_gpu.py
CHECK

All but `assembly` run on numba's simulator of a GPU, with blocks of the schedule so small that it
takes seconds.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from gosta import schedule

if sys.argv[1] == "assembly":
    os.environ["NUMBA_FORCE_CUDA_CC"] = "9.0"
else:
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    sys.setswitchinterval(1e-5)  # the simulator polls its threads
    schedule.BLOCK = 64  # before other modules take it
    # numpy warns of products beyond 64 bits, which the generator is made of
    warnings.simplefilter("ignore")

import gosta
from gosta import graphs, protocols
from gosta.errors import GostaError
from gosta.estimation.estimand import Estimand
from gosta.estimation.placement import Placement
from gosta.estimation.setting import Setting, protocol_for
from gosta.graphs.graph import Graph
from gosta.graphs.tree import with_tree
from gosta.simulation import edges as compiled_edges
from gosta.simulation.engines import reference
from gosta.simulation.engines.gpu import device
from gosta.simulation.engines.gpu.edges import Edges
from gosta.simulation.engines.gpu.engine import GpuEngine, choose_layout, make
from gosta.statistics import find

compiled_edges.PIECE = min(compiled_edges.PIECE, schedule.BLOCK)  # a part of a block

RNG = np.random.default_rng(3)
PROTOCOLS = [
    name
    for name in protocols.PROTOCOLS
    if isinstance(protocols.find(name), protocols.Protocol) and not protocols.find(name).minimises
]


def rows_of(statistic: str, n: int) -> Any:
    signs = RNG.choice([-1.0, 1.0], n)
    signs[:2] = -1.0, 1.0
    columns = {
        "gini-mean-difference": [RNG.normal(size=n)],
        "auc": [RNG.normal(size=n).round(1), signs],
        "kendall-tau": [RNG.normal(size=(n, 2)).round(1)],
        "within-cluster-scatter": [RNG.normal(size=(n, 2)), RNG.integers(0, 2, n)],
        "concordance-index": [RNG.exponential(size=n), RNG.integers(0, 2, n), RNG.normal(size=n)],
    }
    return np.ascontiguousarray(np.column_stack(columns[statistic]), dtype=np.float64)


def setting_of(statistic: str, protocol: str, n: int = 14) -> Setting:
    estimand = Estimand(find(statistic), rows_of(statistic, n))
    rule, graph = (
        protocol_for(protocol, estimand.statistic, False, False),
        graphs.load("barabasi-albert", n=n, seed=0),
    )
    return Setting(rule, estimand, Placement(n), with_tree(graph) if rule.uses_tree else graph)


@contextmanager
def shared_bytes(size: int) -> Iterator[None]:
    original = device.max_shared_bytes
    device.max_shared_bytes = lambda: size
    try:
        yield
    finally:
        device.max_shared_bytes = original


def compare_with_reference(setting: Setting, has_blocks: bool) -> None:
    stops, found, last = np.array([1, 20]), [], 70 // setting.protocol.draws
    with shared_bytes(1 << 15 if has_blocks else 0):
        engines = make(setting, 5), reference.make(setting, 5)
    for one in engines:
        batch = one.start([0, 2])
        first = one.advance(batch, 20, stops)().copy()
        batch.active[0] = False
        found.append([first, one.advance(batch, last, np.array([last]))().copy()])
        one.close()
    for ours, expected in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, expected)


def check_protocols() -> None:
    for protocol in PROTOCOLS:
        for has_blocks in (True, False):
            compare_with_reference(setting_of("gini-mean-difference", protocol), has_blocks)


def check_statistics() -> None:
    for statistic in ("auc", "kendall-tau", "within-cluster-scatter", "concordance-index"):
        for protocol in ("gosta-async", "tracking"):
            compare_with_reference(setting_of(statistic, protocol), has_blocks=True)
    compare_with_reference(setting_of("auc", "tracking"), has_blocks=False)
    with shared_bytes(8 * (7 + device.SIMULATED_THREADS)):  # claims and the queue fit, no more
        assert make(setting_of("auc", "tracking"), 0).has_blocks  # type: ignore[attr-defined]


def check_draws() -> None:
    """Edges are those of the schedule, of every kind of graph."""
    star = graphs.load("barabasi-albert", n=20, seed=0)
    for graph in (
        star,
        Graph("weighted", star.n, star.edges, RNG.random(star.m) + 0.1),
        Graph("complete", 20, None),
        Graph("complete, many numbers rejected", 60_000, None),
        Graph("complete, numbers of 64 bits", 100_000, None),
        with_tree(Graph("complete with a tree", 20, None)),
    ):
        edges, size = Edges(graph, 3, True), schedule.BLOCK
        drawn, shares = edges.draw(
            device.cuda().to_device(np.array([0, 4])), 1, 2, edges.allocate(4), 0
        )
        for run, ours, own_shares in zip(
            (0, 4), drawn.copy_to_host(), [*shares.copy_to_host()] * 2, strict=False
        ):
            expected = schedule.Schedule(graph, 3, run)
            blocks = [expected.edges(k * size, (k + 1) * size) for k in (1, 2)]
            np.testing.assert_array_equal(
                ours.view(np.int32).reshape(-1, 2), np.concatenate(blocks), graph.name
            )
            if edges.has_shares:
                expected_shares = [expected.edge_shares(k * size, (k + 1) * size) for k in (1, 2)]
                np.testing.assert_array_equal(
                    own_shares, np.concatenate(expected_shares), graph.name
                )


def check_traces() -> None:
    """Whole simulations, continued ones as well, equal those of the compiled engine."""
    x = RNG.normal(size=12)
    weighted = Graph("weighted", 12, graphs.load("cycle", n=12, seed=0).edges, RNG.random(12) + 0.5)
    jobs: tuple[dict[str, Any], ...] = (
        {
            "protocol": "tracking",
            "runs": 2,
            "iterations": 80,
            "checkpoints": 3,
            "clocks": True,
            "graph": weighted,
        },
        {"protocol": "u2", "runs": 2, "iterations": 30, "checkpoints": 2, "graph": "complete"},
        {"protocol": "gosta-async", "runs": 2, "iterations": 70, "until": 0.5},
        {
            "protocol": "tracking",
            "statistic": "variance",
            "runs": 1,
            "iterations": 60,
            "checkpoints": 2,
        },
    )
    for options in jobs:
        found = []
        for name in ("gpu", "compiled"):
            trace = gosta.simulate(
                x, **{"statistic": "gini-mean-difference", "engine": name, **options}
            )
            found.append(gosta.resume(trace, iterations=100))
        for variable, array in found[1].data.items():
            np.testing.assert_array_equal(
                found[0].data[variable].values, array.values, str(variable)
            )


def check_guards() -> None:
    """What a kernel cannot do on a GPU is said, and what fails there is noticed."""

    @gosta.statistic(name="raises")
    def raises(x: Any, y: Any) -> float:
        if x[0] > 1e9:
            raise ValueError
        return abs(float(x[0] - y[0]))

    @gosta.statistic(name="out-of-range")
    def out_of_range(x: Any, y: Any) -> float:
        return abs(float(x[int(x[1])] - y[int(y[1])]))

    x = np.column_stack([RNG.normal(size=12), np.zeros(12)])
    base = setting_of("gini-mean-difference", "gosta-async", 12)
    try:
        make(Setting(base.protocol, Estimand(raises, x), base.placement, base.graph), 0)
        raise AssertionError
    except GostaError as error:
        assert (
            str(error)
            == "raises raises or asserts, which it cannot on a GPU; use engine='compiled'"
        )
    x[3, 1] = 7.0
    estimand = Estimand(out_of_range, x)
    estimand.__dict__["example"] = 1.0  # as if no row of the examples were wrong
    ours = make(Setting(base.protocol, estimand, base.placement, base.graph), 0)
    assert np.isnan(ours.advance(ours.start([0]), 100, np.array([100]))()).any()
    try:
        batch = ours.start([0])
        ours._started += 2  # type: ignore[attr-defined]
        ours.advance(batch, 10)()
        raise AssertionError
    except GostaError as error:
        assert "out-of-range: 2 exchanges were not finished on the GPU" in str(error)
    device.free_memory = lambda: 1000
    try:
        ours.start([0])
        raise AssertionError
    except GostaError as error:
        assert "GPU memory and 0.0 GiB are free; use fewer runs, or use engine='compiled'" in str(
            error
        )


def check_assembly() -> None:
    """Compiled without a driver: nothing is fused, and nothing is in local memory, which is
    slow.
    """
    real = device.cuda()
    from numba import typeof
    from numba.cuda import cuda_paths, dispatcher

    cuda_paths._get_nvrtc_path = lambda: None
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))
    fake = SimpleNamespace(
        to_device=lambda array, stream=0: array, jit=real.jit, compile_ptx=real.compile_ptx
    )
    fake.stream = fake.event = lambda: None
    device.free_memory = lambda: 1 << 30
    device.cache_bytes = lambda: 0
    device.cuda = lambda: fake
    texts: list[tuple[str, str]] = []

    def prepare(self: device.Kernel, arguments: tuple[Any, ...]) -> None:
        texts.append((self.function.__name__, self.ptx(tuple(typeof(one) for one in arguments))))

    device.Kernel.prepare = prepare  # type: ignore[method-assign]
    for statistic, protocol, size in (
        ("gini-mean-difference", "gosta-async", 0),
        ("gini-mean-difference", "u2", 1 << 15),
        ("auc", "tracking", 0),
        ("within-cluster-scatter", "tracking", 1 << 15),
        ("within-cluster-scatter", "carried-means", 0),
    ):
        setting = setting_of(statistic, protocol)
        with shared_bytes(size):
            GpuEngine(setting, 0, choose_layout(setting))
    names = [name for name, _ in texts]
    assert {*names} == {"draw_blocks", "advance_side_by_side", "advance_one", "read_runs"}, names
    for name, text in texts:
        assert ".entry" in text, name
        assert not re.findall(r"\bfma\S*f64|\b(?:ld|st)\.local", text), name
    assert any("mul.f64" in text or "mul.rn.f64" in text for _, text in texts)


if __name__ == "__main__":
    globals()[f"check_{sys.argv[1]}"]()
    print("ok")
