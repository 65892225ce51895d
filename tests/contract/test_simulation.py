"""Protocols and engines: same numbers everywhere, and those of the paper's pseudo-code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engine_runs import advance, estimates, one_row_engine
from hypothesis import given, settings
from hypothesis import strategies as st

import gosta
from gosta import graphs
from gosta.estimation.estimand import Estimand
from gosta.estimation.placement import Placement
from gosta.estimation.setting import Setting
from gosta.protocols import PROTOCOLS, CollectingProtocol, Protocol
from gosta.runtime.arrays import Floats
from gosta.schedule import BLOCK, Schedule
from gosta.simulation.engines.compiled import engine as compiled
from gosta.simulation.engines.reference import ReferenceEngine
from gosta.simulation.trace import SNAPSHOT
from gosta.statistics import find
from gosta.statistics import statistic as make_statistic

RULES = [p for p in PROTOCOLS.values() if isinstance(p, Protocol) and not p.minimises]
STATISTICS = [
    "gini-mean-difference",
    "auc",
    "within-cluster-scatter",
    "kendall-tau",
    "mmd",
    "concordance-index",
]
GRAPHS = ["complete", "cycle", "star", "watts-strogatz"]
every_rule = pytest.mark.parametrize("protocol", RULES, ids=lambda p: p.name)


def estimand_of(name: str, n: int = 24) -> Estimand:
    rng = np.random.default_rng(n)
    table = {
        "first": rng.normal(size=n),
        "second": np.round(rng.normal(size=n), 1),
        "label": np.arange(n) % 2,
    }
    table |= {
        "value": rng.gamma(2, 1, n),
        "time": rng.exponential(size=n),
        "event": rng.integers(0, 2, n),
    }
    table |= {"score": rng.normal(size=n)}
    found = find(name)
    data = gosta.datasets.load(table)
    if name in ("within-cluster-scatter", "mmd"):
        data = data.select(["first", "second", "value"])
    return Estimand(found, found.encode_rows(data, {}))


def setting_of(name: str, protocol: Protocol, graph: str = "complete", n: int = 24) -> Setting:
    return Setting(protocol, estimand_of(name, n), Placement(n), graphs.make(graph, n))


def edges_of(graph: str, n: int, count: int, seed: int = 0) -> Any:
    return graphs.make(graph, n).draw(np.random.default_rng(seed), count)


@every_rule
@pytest.mark.parametrize("name", STATISTICS)
def test_engines_agree_to_the_last_bit(protocol: Protocol, name: str) -> None:
    """Every rule with every statistic; each of them with rows inside the nodes' cells and outside,
    in turn.
    """
    is_inline = (RULES.index(protocol) + STATISTICS.index(name)) % 2 == 1
    for graph in GRAPHS:
        setting = setting_of(name, protocol, graph)
        edges = edges_of(graph, 24, 600)
        reference = ReferenceEngine(setting, 0)
        expected = reference.start([0])
        advance(reference, expected, edges)
        engine = one_row_engine(setting, is_inline)
        batch = engine.start([0])
        advance(engine, batch, edges[:202])
        advance(engine, batch, edges[202:])
        np.testing.assert_array_equal(estimates(engine, batch), estimates(reference, expected))
        np.testing.assert_array_equal(engine.visitors(batch), reference.visitors(expected))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_whole_simulations_agree_to_the_last_bit(protocol: str) -> None:
    statistic = "pairwise-logistic" if PROTOCOLS[protocol].minimises else "auc"
    data = gosta.datasets.load("two-gaussians", n=100)
    traces = [
        gosta.simulate(
            data, statistic, graph="cycle", protocol=protocol, iterations=1500, runs=2,
            seed=5, checkpoints=7,
            engine=engine,
        )
        for engine in ("compiled", "reference")
    ]  # fmt: skip
    for trace in traces[1:]:
        np.testing.assert_array_equal(trace.estimates, traces[0].estimates)
        np.testing.assert_array_equal(trace.units, traces[0].units)


def kernel_matrix(estimand: Estimand) -> Floats:
    rows = estimand.x.tolist()
    return np.array([[estimand.statistic.kernel(a, b) for b in rows] for a in rows])


def pseudo_code(name: str, h: Floats, edges: Any) -> Floats:
    """The paper's algorithms as they are printed, all nodes updated at every iteration."""
    n = len(h)
    z, y, y2, m = np.zeros(n), np.arange(n), np.arange(n), np.zeros(n)
    nodes = np.arange(n)
    for t, (i, j) in enumerate(edges if name != "u2" else edges[::2], 1):
        pair = [i, j]
        if name == "u1":
            y[pair] = y[pair[::-1]]
            z = (t - 1) / t * z + h[nodes, y] / t
        elif name == "u2":
            z = (t - 1) / t * z + h[y, y2] / t
            y[pair] = y[pair[::-1]]
            k, m2 = edges[2 * t - 1]
            y2[[k, m2]] = y2[[m2, k]]
        elif name == "gosta-sync":
            z = (t - 1) / t * z + h[nodes, y] / t
            z[pair] = z[pair].mean()
            y[pair] = y[pair[::-1]]
        else:
            p = 0.37  # cancels
            m[pair] += 1 / p
            z[pair] = z[pair].mean()
            z[pair] = (1 - 1 / (p * m[pair])) * z[pair] + h[pair, y[pair]] / (p * m[pair])
            y[pair] = y[pair[::-1]]
    return z


@pytest.mark.parametrize("name", ["u1", "u2", "gosta-sync", "gosta-async"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_lazy_sums_equal_the_eager_pseudo_code(name: str, graph: str) -> None:
    protocol = PROTOCOLS[name]
    assert isinstance(protocol, Protocol)
    setting, edges = setting_of("gini-mean-difference", protocol, graph), edges_of(graph, 24, 3000)
    engine = compiled.make(setting, 0)
    batch = engine.start([0])
    advance(engine, batch, edges)
    expected = pseudo_code(name, kernel_matrix(setting.estimand), edges)
    np.testing.assert_allclose(estimates(engine, batch)[0, :, 0], expected, rtol=1e-12)


@every_rule
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 400))
def test_visitors_stay_a_permutation_of_the_data(protocol: Protocol, seed: int, count: int) -> None:
    if not protocol.visitors:
        return
    setting = setting_of("gini-mean-difference", protocol)
    for is_inline in (False, True):
        engine = one_row_engine(setting, is_inline)
        batch = engine.start([0])
        advance(engine, batch, edges_of("watts-strogatz", 24, count * protocol.draws, seed))
        held = engine.visitors(batch)[0]
        if protocol.carries_means:
            assert (np.bincount(held.ravel(), minlength=24) == protocol.held_visitors).all()
        else:
            assert (np.sort(held, axis=0) == np.arange(24)[:, None]).all()


def test_averaging_keeps_its_sum_and_finds_the_value() -> None:
    trace = gosta.simulate(
        "iris",
        "gini-mean-difference",
        graph="complete",
        protocol="averaging",
        iterations=6000,
        runs=3,
    )
    np.testing.assert_allclose(trace.estimates.mean("node"), trace.target, rtol=1e-12)
    assert float(trace.error()["mean"][-1]) < 1e-9


@pytest.mark.parametrize("graph", ["complete", "watts-strogatz", "torus"])
def test_gosta_beats_u2_as_in_the_paper(graph: str) -> None:
    """Within-cluster scatter of the red wines, n = 1599: lower error and spread at every checkpoint
    after the third.
    """
    errors = {}
    for protocol in ("gosta-sync", "u2"):
        trace = gosta.simulate(
            "wine-quality-red", "within-cluster-scatter", centroids="class-means", graph=graph,
            protocol=protocol,
            iterations=200_000, runs=10, checkpoints=40,
        )  # fmt: skip
        errors[protocol] = trace.error()
    assert (errors["gosta-sync"]["mean"] < errors["u2"]["mean"])[3:].all()
    assert (errors["gosta-sync"]["spread"] < errors["u2"]["spread"])[3:].all()


def test_collecting_estimates_are_exact_over_the_observations_held() -> None:
    n, steps = 12, 25
    x = estimand_of("gini-mean-difference", n).x
    for name in ("flooding", "master-node"):
        trace = gosta.simulate(
            x, "gini-mean-difference", graph="cycle", protocol=name, iterations=steps, runs=1
        )
        arrays = {
            k.removeprefix(SNAPSHOT): v[0]
            for k, v in trace.resume_data.items()
            if k.startswith(SNAPSHOT)
        }
        for node in range(n):
            if name == "flooding":
                held = arrays["held"][node, : arrays["size"][node]]
                assert set(held) == set(np.flatnonzero(arrays["has"][node]))
            else:
                held = np.union1d(np.flatnonzero(arrays["sent"]), [node])
            mean = np.abs(x[held] - x[held].T).mean()
            assert float(trace.estimates[0, -1, node]) == pytest.approx(
                mean * n / (n - 1), rel=1e-12
            )


def test_units_are_those_of_the_paper() -> None:
    d = 7
    wanted = {
        "tracking": 2 * (d + 3),
        "carried-means": 2
        * (d + 7),  # as tracking, the share counted, rows compared with, two means
        "gosta-async": 2 * (d + 1),
        "gosta-sync": 2 * (d + 1),
        "u1": 2 * d,
        "u2": 4 * d,
        "averaging": 2,
    }
    for name, units in wanted.items():
        protocol = PROTOCOLS[name]
        assert isinstance(protocol, Protocol)
        assert protocol.units(d, 1) == units
    flooding, master = PROTOCOLS["flooding"], PROTOCOLS["master-node"]
    assert isinstance(flooding, CollectingProtocol)
    assert isinstance(master, CollectingProtocol)
    assert flooding.sent(10, 100, d) == 10 * 2 * (d + 1)
    assert [master.sent(t, 100, d) for t in (1, 3, 100, 200)] == [
        100 * d * k for k in (2, 4, 101, 101)
    ]


def test_schedule_is_a_function_of_seed_run_and_block() -> None:
    graph = graphs.make("watts-strogatz", 50)
    one, same, other = Schedule(graph, 1, 0), Schedule(graph, 1, 0), Schedule(graph, 1, 1)
    third, fourth = (3 * BLOCK, 4 * BLOCK), (4 * BLOCK, 5 * BLOCK)
    np.testing.assert_array_equal(one.edges(*third), same.edges(*third))
    np.testing.assert_array_equal(one.edges(3 * BLOCK + 7, 3 * BLOCK + 9), same.edges(*third)[7:9])
    assert not np.array_equal(one.edges(*third), one.edges(*fourth))
    assert not np.array_equal(one.edges(*third), other.edges(*third))
    child = np.random.SeedSequence(1).spawn(2)[1]
    assert child.spawn_key == (1,)
    assert one.edges(0, BLOCK).shape == (BLOCK, 2)
    # Poisson clocks: BLOCK gaps of mean 1/m; the mean lies within 5 standard errors but for one
    # seed in a million.
    assert one.time(BLOCK) / BLOCK * graph.m == pytest.approx(1, abs=5 / np.sqrt(BLOCK))
    assert one.time(BLOCK + 5) > one.time(BLOCK) == same.time(BLOCK)


def test_estimates_do_not_depend_on_checkpoints_or_number_of_runs() -> None:
    few = gosta.simulate(
        "iris", "variance", graph="torus", iterations=200_000, runs=1, checkpoints=2
    )
    many = gosta.simulate(
        "iris", "variance", graph="torus", iterations=200_000, runs=4, checkpoints=50, clocks=True
    )
    np.testing.assert_array_equal(few.estimates[0, -1], many.estimates[0, -1])
    assert many.data["time"].values[:, -1] == pytest.approx(
        200_000 / many.setting.graph.m, rel=0.02
    )


def test_weighted_edges_and_own_graphs() -> None:
    """A graph whose weights leave one edge nearly silent gets stuck where an even one does not."""
    chain = np.array([(k, k + 1) for k in range(9)])
    weights = np.where(np.arange(9) == 4, 1e-9, 1.0)
    data = np.repeat([0.0, 1.0], 5)
    even = gosta.simulate(
        data, "gini-mean-difference", graph=graphs.from_edges(chain), iterations=50_000, runs=2
    )
    stuck = gosta.simulate(
        data,
        "gini-mean-difference",
        graph=graphs.from_edges(chain, weights=weights),
        iterations=50_000,
        runs=2,
    )
    assert float(even.error()["mean"][-1]) < 0.1
    assert float(stuck.error()["mean"][-1]) == 1.0


def test_statistics_of_several_numbers() -> None:
    made = make_statistic(name="two-numbers")(lambda x, y: (abs(x[0] - y[0]), (x[0] - y[0]) ** 2))
    try:
        trace = gosta.simulate(
            "iris", made, columns="sepal width", graph="complete", iterations=30_000, runs=2
        )
        assert trace.estimates.dims == ("run", "iteration", "node", "value")
        np.testing.assert_allclose(trace.target, gosta.exact("iris", made, columns="sepal width"))
        assert float(trace.error()["mean"][-1]) < 0.1
    finally:
        from gosta.statistics import STATISTICS

        STATISTICS.pop("two-numbers")


@pytest.mark.parametrize(
    "name", ["auc", "variance", "gini-mean-difference", "mann-whitney", "energy-distance"]
)
def test_target_is_the_exact_value(name: str) -> None:
    trace = gosta.simulate(
        "two-gaussians", name, columns="x", graph="complete", iterations=10, runs=1
    )
    assert trace.target == pytest.approx(gosta.exact("two-gaussians", name, columns="x"), rel=1e-12)
