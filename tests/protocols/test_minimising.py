"""Protocols that minimise objectives: the paper's pseudo-code, engines, invariants, speed."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest
from engine_runs import advance

import gosta
from gosta import graphs
from gosta.estimation.passed_rows import PassedRows
from gosta.estimation.setting import Setting, make_setting
from gosta.protocols.dual_averaging import STEP
from gosta.runtime.arrays import Floats
from gosta.simulation.engines import read
from gosta.simulation.engines.compiled import engine as compiled
from gosta.simulation.engines.reference import ReferenceEngine

PROTOCOLS = ["dual-averaging", "dual-averaging-sync", "gradient-tracking"]
PACE = 0.1


def setting_of(protocol: str, objective: str, **options: float) -> Setting:
    data = gosta.datasets.load("breast-cancer", n=20)
    chosen = data.select(list(data.features)[:3])
    return make_setting(protocol, chosen, objective, "watts-strogatz", 0, {"pace": PACE} | options)


def edges_of(setting: Setting, count: int) -> Any:
    return setting.graph.draw(np.random.default_rng(1), count)


def pseudo_code(setting: Setting, edges: Any, is_synchronous: bool) -> Floats:
    """Algorithms of the paper with means of gradients in place of sums: returns mean points."""
    estimand: Any = setting.estimand
    x, parameters = estimand.x, estimand.mean_count
    dual, point, mean = (np.zeros((len(x), parameters)) for _ in range(3))
    visitor, count = np.arange(len(x)), np.zeros(len(x))
    for i, j in edges:
        dual[[i, j]] = dual[[i, j]].mean(axis=0)
        visitor[[i, j]] = visitor[[j, i]]
        for k in range(len(x)) if is_synchronous else (i, j):
            z = estimand.objective.pairs.of_rows(x[k : k + 1], x[visitor[k]][None])[0]
            is_own = visitor[k] == k
            gradient = 0 * z if is_own else estimand.objective.loss.slope(z @ point[k]) * z
            count[k] += 1
            dual[k] += (gradient - dual[k]) / count[k]
            point[k] = -dual[k] / (1 / (estimand.pace * STEP * sqrt(count[k])) + estimand.penalty)
            mean[k] += (point[k] - mean[k]) / count[k]
    return mean


@pytest.mark.parametrize("objective", ["pairwise-logistic", "metric-hinge"])
@pytest.mark.parametrize("protocol", PROTOCOLS[:2])
def test_dual_averaging_is_that_of_the_paper(protocol: str, objective: str) -> None:
    setting = setting_of(protocol, objective)
    edges, engine = edges_of(setting, 400), compiled.make(setting, 0)
    batch = engine.start([0])
    advance(engine, batch, edges)
    expected = pseudo_code(setting, edges, protocol.endswith("sync"))
    np.testing.assert_allclose(read(engine, batch)[0], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("objective", ["pairwise-hinge", "metric-squared"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_engines_agree_to_the_last_bit(protocol: str, objective: str) -> None:
    setting = setting_of(protocol, objective)
    edges, states = edges_of(setting, 300), []
    for engine in (ReferenceEngine(setting, 0), compiled.make(setting, 0)):
        batch: Any = engine.start([0])
        advance(engine, batch, edges[:101])
        advance(engine, batch, edges[101:])
        states.append((read(engine, batch), engine.visitors(batch)))
    for one, other in zip(*states, strict=True):
        np.testing.assert_array_equal(one, other)


def test_tracked_gradients_are_those_of_all_nodes() -> None:
    setting = setting_of("gradient-tracking", "pairwise-logistic")
    engine = compiled.make(setting, 0)
    batch = engine.start([0])
    advance(engine, batch, edges_of(setting, 1500))
    states = batch.state["nodes"][0][:, : 3 * setting.state_count].reshape(20, -1, 3)
    _, track, gradient = states.sum(axis=0).T
    np.testing.assert_allclose(track, gradient, atol=1e-12)
    # Every node knows all rows by then, so that the sum of gradients is that of the objective.
    assert (batch.state["counts"] == 20).all()


def test_nodes_find_the_minimum_and_agree() -> None:
    setting = setting_of("gradient-tracking", "pairwise-squared", pace=4.0, penalty=0.01)
    engine = compiled.make(setting, 0)
    batch = engine.start([0])
    advance(engine, batch, edges_of(setting, 200_000))
    points, minimum = read(engine, batch)[0], setting.estimand.means[0]
    np.testing.assert_allclose(points, np.broadcast_to(minimum, points.shape), atol=1e-6)


def test_gradient_tracking_is_within_one_per_cent_long_before_dual_averaging() -> None:
    """With the best of several step sizes (benchmarks/objectives.py has more)."""
    data = gosta.datasets.load("breast-cancer", n=80)
    where: Any = {"graph": "watts-strogatz", "runs": 1, "checkpoints": 2}
    tracking = gosta.simulate(data, "pairwise-logistic", iterations=80 * 90, **where)
    assert tracking.setting.protocol.label == "carried-means (gradient-tracking)"
    assert float(tracking.error()["mean"][-1]) < 0.01
    for pace in (0.3, 1.0, 3.0):
        plain = gosta.simulate(
            data, "pairwise-logistic", protocol="dual-averaging", iterations=80 * 450, pace=pace,
            **where,
        )  # fmt: skip
        assert float(plain.error()["mean"][-1]) > 0.01


def test_dual_averaging_is_below_its_bound() -> None:
    data = gosta.datasets.load("two-gaussians", n=20)
    for graph in ("complete", "cycle"):
        trace = gosta.simulate(
            data, "pairwise-logistic", protocol="dual-averaging-sync", graph=graph, runs=2,
            iterations=2000, checkpoints=4, pace=0.1,
        )  # fmt: skip
        above = trace.estimates.values.max(axis=(0, 2)) - float(trace.target)
        for iterations, most in zip(trace.iterations.tolist(), above, strict=True):
            terms = gosta.theory.dual_averaging_bound(
                data, "pairwise-logistic", graph, iterations, pace=0.1
            )
            assert 0 < most < sum(terms)
    with pytest.raises(gosta.InputError, match="no bound"):
        gosta.theory.dual_averaging_bound(data, "pairwise-squared", "cycle", 10)


def test_rows_go_over_each_edge_once() -> None:
    rows = PassedRows("b", (2.0,))
    assert rows.row_for("a") == ("b", (2.0,))
    rows.exchange("a", "a", (1.0,))
    assert rows.row_for("a") == ("b", (2.0,))  # nothing is new to a: its own row again
    assert rows.row_for("c") == ("b", (2.0,))
    rows.exchange("c", "c", (3.0,))
    assert [rows.row_for(name)[0] for name in "ac"] == ["c", "a"]
    rows.exchange("a", "a", (1.0,))
    assert list(rows.rows) == ["b", "a", "c"]
    assert rows.row_for("a")[0] == "b"


def test_protocols_are_for_objectives_or_for_statistics() -> None:
    with pytest.raises(gosta.InputError, match=r"auc is a statistic.*carried-means"):
        gosta.simulate("two-gaussians", "auc", protocol="dual-averaging", iterations=10)
    with pytest.raises(gosta.InputError, match="pairwise-logistic is an objective"):
        gosta.simulate("two-gaussians", "pairwise-logistic", protocol="gosta-async", iterations=10)
    with pytest.raises(gosta.InputError, match="one row per node only"):
        gosta.simulate("two-gaussians", "pairwise-logistic", nodes=5, iterations=10)
    with pytest.raises(gosta.InputError, match="has no interval"):
        gosta.simulate("two-gaussians", "pairwise-logistic", interval=0.95, iterations=10)


def test_a_trace_is_saved_and_continued(tmp_path: Any) -> None:
    arguments: Any = {"graph": graphs.make("cycle", 20), "runs": 2, "checkpoints": 4}
    data = gosta.datasets.load("two-gaussians", n=20)
    whole = gosta.simulate(data, "metric-logistic", iterations=800, **arguments)
    half = gosta.simulate(data, "metric-logistic", iterations=400, **arguments)
    half.save(tmp_path / "half.nc")
    resumed = gosta.resume(tmp_path / "half.nc", iterations=800)
    np.testing.assert_array_equal(resumed.estimates[:, -1], whole.estimates[:, -1])
