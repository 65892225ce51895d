"""Carried means: what they conserve, that estimates never diverge and have no lasting bias, small
and odd networks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from engine_runs import advance, conserved_sums, estimates, one_row_engine, small_graph
from hypothesis import given, settings
from hypothesis import strategies as st

import gosta
from gosta import graphs
from gosta.estimation.setting import Setting, make_setting
from gosta.graphs import GRAPHS as FAMILIES
from gosta.protocols.protocol import COPIES
from gosta.runtime.arrays import Floats
from gosta.simulation.engines.compiled.engine import CompiledEngine

NAME = "carried-means"


class Run(NamedTuple):
    """One run on a random small graph, after some exchanges."""

    setting: Setting
    engine: CompiledEngine
    batch: Any

    @property
    def relative_errors(self) -> Floats:
        """Relative error of each node; at the start it is 1."""
        values = self.setting.values(estimates(self.engine, self.batch))[0]
        found: Floats = np.abs(values / self.setting.target - 1.0).max(axis=1)
        return found


def run_on_small_graph(
    seed: int, iterations: int | None = None, statistic: str = "gini-mean-difference"
) -> Run:
    """Run so many iterations, by default 500 times the number of nodes.

    Two of three graphs have weights.
    """
    rng = np.random.default_rng(seed)
    graph = small_graph(rng, weighted=bool(seed % 3))
    setting = make_setting(NAME, rng.lognormal(size=graph.n), statistic, graph, seed, {})
    engine = one_row_engine(setting, is_inline=False)
    batch = engine.start([0])
    edges, chosen = graph.draw_with_numbers(
        rng, 500 * graph.n if iterations is None else iterations
    )
    advance(engine, batch, edges, graph.edge_shares_of(chosen))
    engine.close()
    return Run(setting, engine, batch)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), exchanges=st.integers(1, 3000))
@pytest.mark.parametrize("statistic", ["gini-mean-difference", "gini-index"])
def test_sums_are_conserved(statistic: str, seed: int, exchanges: int) -> None:
    """Summed over nodes, `ahead` + `owed` equals what visitors have been counted with, and how many
    were counted.
    """
    found = run_on_small_graph(seed, exchanges, statistic)
    left, right = conserved_sums(found.engine, found.batch)
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), exchanges=st.integers(1, 3000))
def test_every_row_has_two_visitors(seed: int, exchanges: int) -> None:
    found = run_on_small_graph(seed, exchanges)
    homes = found.engine.visitors(found.batch).ravel()
    assert (np.bincount(homes) == COPIES).all()


def test_no_divergence_on_a_thousand_small_graphs() -> None:
    """Weights over several orders of magnitude.

    1000 exchanges a node: no estimate is further off than at first.
    """
    left = [run_on_small_graph(seed).relative_errors.max() for seed in range(1000)]
    assert max(left) <= 1
    assert np.median(left) < 1e-3


@pytest.mark.parametrize("graph", FAMILIES)
def test_no_lasting_bias_on_any_family(graph: str) -> None:
    """After 20 000 exchanges a node, which hubs and sorted rows would bias for ever if they counted
    for more.
    """
    rows = np.sort(np.random.default_rng(1).lognormal(size=64))
    trace = gosta.simulate(
        rows, "gini-mean-difference", graph=graph, iterations=64 * 10_000, runs=4, checkpoints=1
    )
    estimates = trace.data["estimates"].values[:, -1] / trace.target - 1.0
    assert np.abs(estimates).max() < 0.02
    assert np.abs(estimates.mean()) < 0.005


@pytest.mark.parametrize("graph", FAMILIES)
def test_not_worse_than_gosta_anywhere(graph: str) -> None:
    """After the first n exchanges; 20 runs on the same edges.

    Where both are stuck, 5 % are allowed.
    """
    rows = gosta.datasets.load("wine-quality-red").shuffle(3).head(64)
    common: dict[str, Any] = {
        "columns": "alcohol",
        "graph": graph,
        "runs": 20,
        "seed": 3,
        "iterations": 64 * 200,
    }
    ours, theirs = (
        gosta.simulate(
            rows, "gini-mean-difference", protocol=name, spacing="log", checkpoints=40, **common
        )
        for name in (NAME, "gosta-async")
    )
    late = ours.iterations >= 64
    assert ((ours.error()["mean"] / theirs.error()["mean"]).values[late] < 1.05).all()


@pytest.mark.parametrize("rows", [[1.0, 3.0], [1.0, 2.0, 6.0]])
@pytest.mark.parametrize("graph", ["complete", "path"])
def test_two_and_three_nodes(rows: list[float], graph: str) -> None:
    """Visitors of two nodes can only go back and forth.

    Nodes that remember all rows are soon exact.
    """
    trace = gosta.simulate(rows, "gini-mean-difference", graph=graph, iterations=1000, runs=3)
    np.testing.assert_allclose(trace.data["estimates"].values[:, -1], trace.target, rtol=1e-4)


def test_rows_that_are_all_alike() -> None:
    """Every kernel value is the same, so that every node has it as soon as a few visitors are
    counted.
    """
    same = gosta.simulate([2.0] * 20, "gini-mean-difference", graph="cycle", iterations=500, runs=2)
    assert (same.data["estimates"].values == 0).all()
    graph = graphs.load("cycle", n=20)
    table = np.column_stack([np.arange(20.0), np.arange(20.0)])  # every pair is concordant
    ordered = gosta.simulate(table, "kendall-tau", graph=graph, iterations=20 * 300, runs=2)
    np.testing.assert_allclose(ordered.data["estimates"].values[:, -1], 1.0, rtol=1e-3)


@pytest.mark.parametrize("protocol", [NAME, "tracking"])
def test_pairs_of_a_row_with_itself_are_counted_right(protocol: str) -> None:
    """Kernels that are not 0 there, few nodes, many exchanges: the value counts all pairs, visitors
    do not.
    """
    settings: dict[str, Any] = {
        "graph": "cycle",
        "iterations": 400_000,
        "runs": 4,
        "protocol": protocol,
    }
    trace = gosta.simulate([1.0, 2.0, 4.0, 9.0], "gini-index", **settings)
    assert float(trace.error()["mean"][-1]) < 0.01
