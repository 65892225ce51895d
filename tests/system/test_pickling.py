"""Graphs, statistics, protocols, data and results in other processes: pools of spawned processes
and joblib.
"""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import joblib
import numpy as np
import pytest

import gosta
from gosta.graphs import GRAPHS, make
from gosta.protocols import PROTOCOLS, Protocol, averaging, gosta_async
from gosta.statistics import STATISTICS
from gosta.statistics.definition import with_weights


@gosta.statistic(name="pickled-gap")
def pickled_gap(x: Sequence[float], y: Sequence[float]) -> float:
    """Mean difference of the first numbers, of a module that other processes import."""
    return abs(x[0] - y[0])


def local_statistic(scale: float) -> gosta.Statistic:
    """Return a statistic whose kernel no other process can import, as in a notebook."""

    @gosta.statistic(name="local-gap")
    def gap(x: Sequence[float], y: Sequence[float]) -> float:
        return scale * abs(x[0] - y[0])

    STATISTICS.pop("local-gap")
    return gap


def local_protocol() -> Protocol:
    """Return a protocol with a rule that no other process can import."""

    def read(me: averaging.State, tick: float) -> float:
        return me.z + 0.0 * tick

    assert isinstance(gosta_async.protocol, Protocol)
    return replace(gosta_async.protocol, name="local", read=read)


def copied(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("family", GRAPHS)
def test_graphs_keep_edges_weights_and_spectra(family: str) -> None:
    graph = make(family, 16)
    assert graph.degrees.sum() == 2 * graph.m  # computed once, and not pickled
    other = copied(graph)
    assert (other.name, other.n, other.m) == (graph.name, graph.n, graph.m)
    assert "degrees" not in vars(other)
    assert np.array_equal(other.degrees, graph.degrees)
    assert (graph.spectrum is None) == (other.spectrum is None)
    if graph.spectrum is not None:
        assert np.array_equal(other.spectrum(), graph.spectrum())
    if graph.edges is not None:
        weighted = copied(replace(graph, weights=np.arange(1.0, graph.m + 1)))
        assert np.array_equal(weighted.edges, graph.edges)
        assert np.array_equal(weighted.weights, np.arange(1.0, graph.m + 1))


def test_built_in_statistics_and_protocols_are_pickled_by_name() -> None:
    for statistic in STATISTICS.values():
        assert copied(statistic) is statistic or not statistic.kernel.__module__.startswith(
            "gosta."
        )
    weighted = with_weights(gosta.statistics.find("auc"), "w")
    assert copied(weighted).name == "auc@w"
    assert copied(weighted).kernel is weighted.kernel
    for protocol in PROTOCOLS.values():
        assert copied(protocol) == protocol


def test_changed_and_local_ones_are_pickled_by_value() -> None:
    assert copied(replace(gosta.statistics.find("auc"), bounds=(0.5, 1.0))).bounds == (0.5, 1.0)
    assert copied(pickled_gap) is pickled_gap
    assert copied(local_statistic(2.0))([1.0], [4.0]) == 6.0
    assert copied(local_protocol()).read(averaging.State(1.0), 1.0) == 1.0


def test_results_are_pickled() -> None:
    estimate = gosta.exact("breast-cancer", "auc", interval=0.95)
    assert copied(estimate) == estimate
    predicted = gosta.theory.predict("torus", "gosta-async", n=64)
    assert copied(predicted) == predicted
    tested = gosta.test("breast-cancer", "mann-whitney", columns="mean radius")
    assert repr(copied(tested)) == repr(tested)  # its standard error is NaN
    data = gosta.datasets.load("iris")
    assert copied(data).columns.keys() == data.columns.keys()


def test_pools_of_processes_take_and_return_them() -> None:
    data, graph = gosta.datasets.load("iris"), make("torus", 150)
    statistics = [gosta.statistics.find("variance"), pickled_gap, local_statistic(2.0)]
    simulate = partial(
        gosta.simulate, data, graph=graph, protocol=local_protocol(), runs=1, iterations=500
    )
    expected = [gosta.exact(data, one) for one in statistics]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(partial(gosta.exact, data), statistics) == expected
        (trace,) = pool.map(simulate, statistics[:1])
    assert isinstance(trace, gosta.Trace)
    assert trace.data.equals(simulate(statistics[0]).data)
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(gosta.exact)(data, one) for one in statistics)
    assert found == expected
