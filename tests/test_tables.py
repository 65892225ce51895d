"""Tables at the nodes: dealing, engines that agree, estimates that are right."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import gosta
from gosta import graphs
from gosta.estimation import placement as deal
from gosta.estimation.problem import SAMPLE, settle
from gosta.protocols import Protocol
from gosta.simulation.engines.sites import Sites
from gosta.simulation.engines.tables import Tables

RNG = np.random.default_rng(7)
N = 120
SCORES = RNG.normal(size=N)
PATIENTS = {
    "score": SCORES,
    "label": np.arange(N) % 3 == 0,
    "second": np.exp(0.7 * SCORES + 0.5 * RNG.normal(size=N)),
    "hospital": np.array(list("aabbbcdddd"))[RNG.integers(0, 10, N)],
}
COLUMNS: dict[str, Any] = {
    "auc": None,
    "gini-mean-difference": "second",
    "kendall-tau": ["score", "second"],
    "spearman-rho": ["score", "second"],
    "distance-correlation": ["score", "second"],
    "variance": "second",
}
DEALS: list[dict[str, Any]] = [{"nodes": 12}, {"nodes": 12, "deal": "even"}, {"by": "hospital"}]
DEALS.append({"by": "second", "nodes": 12})


def test_dealing_loses_and_invents_no_row() -> None:
    for rows, nodes in ((569, 20), (7, 7), (10, 3), (2, 2), (1000, 999)):
        for how in deal.TABLE:
            order, sizes = deal.by_chance(rows, nodes, how, 3)
            assert sorted(order) == list(range(rows))
            assert sizes.sum() == rows
            assert (len(sizes), sizes.min() >= 1) == (nodes, True)
    assert np.ptp(deal.even(569, 20)) == 1
    assert deal.zipf(569, 20)[[0, 1, -1]].tolist() == [154, 77, 9]


def test_dealing_by_a_column() -> None:
    data = gosta.datasets.load(PATIENTS).with_sites("hospital", exclude=True)
    kept = np.ones(N, dtype=bool)
    order, sizes = deal.by_column(data, kept, None, 0)
    names = PATIENTS["hospital"][order]
    assert [len(set(part)) for part in np.split(names, np.cumsum(sizes)[:-1])] == [1] * 4
    order, sizes = deal.by_column(gosta.datasets.load(PATIENTS).with_sites("second", exclude=False), kept, 6, 0)
    parts = np.split(PATIENTS["second"][order], np.cumsum(sizes)[:-1])
    assert sizes.tolist() == [20] * 6
    assert all(a.max() <= b.min() for a, b in pairwise(parts))


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("protocol", ["tracking", "gosta-async", "averaging"])
@pytest.mark.parametrize("nodes", [None, 9])
def test_engines_agree_to_the_last_bit(name: str, protocol: str, nodes: int | None) -> None:
    """Without tables, only statistics with a `local` part go this way."""
    data = {key: column[:40] for key, column in PATIENTS.items()} if nodes is None else PATIENTS
    more = {"nodes": nodes, "columns": COLUMNS[name]}
    if protocol != "tracking" and name in ("spearman-rho", "distance-correlation"):
        with pytest.raises(gosta.InputError, match="tracking can"):
            settle(protocol, data, name, "cycle", 0, {}, **more)
        return
    setting = settle(protocol, data, name, "cycle", 0, {}, **more)
    if not setting.problem.tables:
        return
    assert isinstance(setting.protocol, Protocol)
    edges = graphs.make("watts-strogatz", setting.problem.nodes).draw(np.random.default_rng(1), 300)
    means = []
    for engine in (Sites(setting.problem, setting.protocol), Tables(setting.problem, setting.protocol)):
        arrays = engine.start()
        engine.advance(arrays, edges[:100], 0)
        engine.advance(arrays, edges[100:], 100)
        means.append(engine.means(arrays, 300))
    np.testing.assert_array_equal(means[0], means[1])


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("how", DEALS, ids=str)
def test_estimates_find_the_value_over_all_rows(name: str, how: dict[str, Any]) -> None:
    """However uneven and unlike the nodes: no bias beyond what 60 000 exchanges leave."""
    columns = COLUMNS[name]
    trace = gosta.simulate(
        PATIENTS, name, columns=columns, graph="complete", iterations=60_000, runs=4, checkpoints=3, **how
    )
    assert trace.target == pytest.approx(gosta.exact(PATIENTS, name, columns=columns), rel=1e-12)
    assert float(trace.error()["mean"][-1]) < 0.01


def test_a_sample_of_large_tables_is_right_on_average() -> None:
    """Rows sorted by their value and nodes far larger than samples: the mean over runs finds the exact value."""
    data = np.sort(np.random.default_rng(1).gamma(2, 1, 40 * SAMPLE))
    trace = gosta.simulate(
        data, "gini-mean-difference", nodes=5, graph="cycle", iterations=20_000, runs=8, checkpoints=2
    )
    assert float(trace.data["estimate"][:, -1].mean()) == pytest.approx(trace.target, rel=2e-3)


@pytest.mark.parametrize("name", ["spearman-rho", "distance-correlation", "gini-mean-difference"])
def test_two_nodes_are_enough(name: str) -> None:
    """Each sees itself and the other by turns."""
    interval = 0.9 if name == "gini-mean-difference" else None
    trace = gosta.simulate(
        PATIENTS,
        name,
        columns=COLUMNS[name],
        by="label",
        graph="complete",
        iterations=20_000,
        runs=2,
        interval=interval,
    )
    assert float(trace.error()["mean"][-1]) < 0.01


def test_columns_that_were_chosen_stay_chosen() -> None:
    chosen = gosta.datasets.load("breast-cancer").select(columns="mean area")
    trace = gosta.simulate(chosen, "auc", by="mean radius", nodes=20, iterations=10, runs=1)
    assert trace.target == pytest.approx(gosta.exact("breast-cancer", "auc", columns="mean area"), rel=1e-12)
    all_columns = gosta.simulate("breast-cancer", "auc", by="mean radius", nodes=20, iterations=10, runs=1)
    assert all_columns.target == pytest.approx(gosta.exact("breast-cancer", "auc"), rel=1e-12)
    names = np.arange(569) % 7
    apart = gosta.simulate("breast-cancer", "auc", by=names, iterations=10, runs=1)
    assert (apart.about["n"], apart.target) == (7, pytest.approx(gosta.exact("breast-cancer", "auc"), rel=1e-12))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"deal": "even"}, "goes with nodes"),
        ({"by": "hospital", "deal": "even"}, "goes with nodes"),
        ({"nodes": 4, "deal": 3}, "deal"),
        ({"by": "hospital", "nodes": 3}, "holds text"),
        ({"nodes": 3, "graph": "watts-strogatz"}, "another family such as complete"),
    ],
    ids=str,
)
def test_mistakes_in_dealing(how: dict[str, Any], message: str) -> None:
    with pytest.raises(gosta.InputError, match=message):
        gosta.simulate(PATIENTS, "auc", **{"graph": "complete", "iterations": 10, "runs": 1, **how})
