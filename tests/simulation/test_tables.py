"""Several rows per node: placement, engines that agree, estimates without bias."""

from __future__ import annotations

import importlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from engine_runs import advance, estimates

import gosta
from gosta import graphs
from gosta.estimation import placement
from gosta.estimation.setting import make_setting
from gosta.estimation.visitor import MAX_SAMPLE_ROWS
from gosta.net.deploy import plan
from gosta.simulation import engines
from gosta.simulation.engines.compiled.engine import CompiledEngine
from gosta.simulation.engines.compiled.layouts import TableLayout
from gosta.simulation.engines.reference import ReferenceEngine

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


def test_random_placement_uses_every_row_once() -> None:
    for rows, nodes in ((569, 20), (7, 7), (10, 3), (2, 2), (1000, 999)):
        for deal in placement.DEALS:
            order, placed = placement.assign_at_random(rows, nodes, deal, 3)
            assert sorted(order) == list(range(rows))
            assert placed.rows.sum() == rows
            assert (placed.nodes, placed.rows.min() >= 1) == (nodes, True)
    assert np.ptp(placement.even(569, 20)) == 1
    assert placement.zipf(569, 20)[[0, 1, -1]].tolist() == [154, 77, 9]


def test_placement_by_column() -> None:
    data = gosta.datasets.load(PATIENTS).with_sites("hospital", exclude=True)
    kept = np.ones(N, dtype=bool)
    order, placed = placement.assign_by_column(data, kept, None, 0)
    assert [len(set(part)) for part in placed.split(PATIENTS["hospital"][order])] == [1] * 4
    numeric = gosta.datasets.load(PATIENTS).with_sites("second", exclude=False)
    order, placed = placement.assign_by_column(numeric, kept, 6, 0)
    parts = placed.split(PATIENTS["second"][order])
    assert placed.counts == (20,) * 6
    assert all(a.max() <= b.min() for a, b in pairwise(parts))


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("protocol", ["tracking", "gosta-async", "averaging"])
@pytest.mark.parametrize("nodes", [None, 9])
def test_engines_agree_to_the_last_bit(name: str, protocol: str, nodes: int | None) -> None:
    """With one row per node, only statistics with a `local` part use this engine."""
    data = {key: column[:40] for key, column in PATIENTS.items()} if nodes is None else PATIENTS
    more = {"nodes": nodes, "columns": COLUMNS[name]}
    if protocol != "tracking" and name in ("spearman-rho", "distance-correlation"):
        with pytest.raises(gosta.InputError, match="use carried-means or tracking"):
            make_setting(protocol, data, name, "cycle", 0, {}, **more)
        return
    setting = make_setting(protocol, data, name, "cycle", 0, {}, **more)
    if not setting.placement.has_tables and setting.estimand.tracked.local is None:
        return
    edges = graphs.make("watts-strogatz", setting.placement.nodes).draw(
        np.random.default_rng(1), 300
    )
    found = []
    for engine in (ReferenceEngine(setting, 0), CompiledEngine(setting, 0, TableLayout(setting))):
        batch: Any = engine.start([0])
        advance(engine, batch, edges[:100])
        advance(engine, batch, edges[100:])
        found.append((estimates(engine, batch), engine.visitors(batch)))
    for reference, compiled in zip(*found, strict=True):
        np.testing.assert_array_equal(reference, compiled)


def test_small_nodes_forget_old_homes_alike_in_both_engines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("estimation.exchange", "simulation.engines.compiled.layouts"):
        monkeypatch.setattr(f"gosta.{module}.RECENT_HOMES_PER_ROW", 1)
    monkeypatch.setattr("gosta.estimation.exchange.MIN_RECENT_HOMES", 3)
    values = np.random.default_rng(2).gamma(2, 1, 60)
    for nodes in (None, 20):
        setting = make_setting(
            "tracking", values, "gini-mean-difference", "complete", 0, {}, nodes=nodes
        )
        found = []
        for name in ("reference", "compiled"):
            engine = engines.find(name)(setting, 0)
            batch = engine.start([0])
            engine.advance(batch, 1500)
            found.append(engines.read(engine, batch))
            engine.close()
        np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("how", DEALS, ids=str)
def test_estimates_converge_to_the_value_over_all_rows(name: str, how: dict[str, Any]) -> None:
    """However uneven and different the nodes are: no bias is left after 60 000 exchanges."""
    columns = COLUMNS[name]
    trace = gosta.simulate(
        PATIENTS,
        name,
        columns=columns,
        graph="complete",
        iterations=60_000,
        runs=4,
        checkpoints=3,
        **how,
    )
    assert trace.target == pytest.approx(gosta.exact(PATIENTS, name, columns=columns), rel=1e-12)
    assert float(trace.error()["mean"][-1]) < 0.01


def test_a_sample_of_large_tables_is_right_on_average() -> None:
    """Rows sorted by their value and nodes far larger than samples: the mean over runs finds the
    exact value.
    """
    data = np.sort(np.random.default_rng(1).gamma(2, 1, 40 * MAX_SAMPLE_ROWS))
    trace = gosta.simulate(
        data,
        "gini-mean-difference",
        nodes=5,
        graph="cycle",
        iterations=20_000,
        runs=8,
        checkpoints=2,
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


@pytest.mark.parametrize(
    "name", ["auc", "gini-mean-difference", "gini-index", "within-cluster-scatter"]
)
def test_incomplete_rows_are_left_out_of_the_right_sites(name: str) -> None:
    frame = (
        pd.DataFrame(PATIENTS).astype({"hospital": object, "label": object}).drop(columns="score")
    )
    frame.loc[[3, 50], "second"], frame.loc[[10, 60], "hospital"], frame.loc[[20, 70], "label"] = (
        np.nan,
        None,
        None,
    )
    used = ["second"] if name.startswith("gini") else ["second", "label"]
    trace = gosta.simulate(
        frame,
        name,
        columns="second",
        by="hospital",
        drop_missing=True,
        graph="complete",
        iterations=9,
        runs=1,
    )
    whole = frame.dropna(subset=[*used, "hospital"])
    wanted = [
        gosta.exact(own[used], name, columns="second") for _, own in whole.groupby("hospital")
    ]
    assert trace.setting.local_values()[:, 0].tolist() == pytest.approx(wanted)
    assert trace.target == pytest.approx(gosta.exact(whole[used], name, columns="second"))


def test_rows_are_at_the_node_of_their_sites_name(tmp_path: Path) -> None:
    networkx: Any = importlib.import_module("networkx")
    common: dict[str, Any] = {"by": "hospital", "runs": 1}
    star = [("d", "b"), ("d", "a"), ("d", "c")]
    (tmp_path / "star.csv").write_text("\n".join(",".join(pair) for pair in star))
    for graph in (
        networkx.Graph(star),
        str(tmp_path / "star.csv"),
        [(str(tmp_path / "star.csv"), 0), ("cycle", 5)],
    ):
        trace = gosta.simulate(PATIENTS, "auc", graph=graph, iterations=9, **common)
        assert np.asarray(trace.setting.graph.edges).tolist() == [[3, 1], [3, 0], [3, 2]]
        assert trace.estimates["node"].values.tolist() == ["a", "b", "c", "d"]
    trace.save(tmp_path / "t.nc")
    longer = gosta.resume(tmp_path / "t.nc", iterations=18)
    assert longer.node_names == ["a", "b", "c", "d"]
    shown = longer.to_dict()
    assert (shown["nodes"], len(shown["local_values"])) == (["a", "b", "c", "d"], 4)
    longer.report(tmp_path / "run.html")
    assert '"node_names":["a","b","c","d"]' in (tmp_path / "run.html").read_text(encoding="utf-8")
    data = gosta.datasets.load(PATIENTS)
    network = plan.for_data(
        plan.Goal("auc"), data, str(tmp_path / "star.csv"), None, None, "hospital", 0
    )
    assert (network.sites, network.edges[0]) == (("a", "b", "c", "d"), (3, 1))

    # Sites that are numbers: by number where the graph has the same, in their order where it is
    # numbered from 0.
    numbered = PATIENTS | {"hospital": np.array([7, 8, 9])[np.arange(N) % 3]}
    for nodes, edges in (
        ((9, 7, 8), [[2, 0], [0, 1]]),
        ((0, 1, 2), [[0, 1], [1, 2]]),
        ((3, 4, 5), [[0, 1], [1, 2]]),
    ):
        trace = gosta.simulate(
            numbered, "auc", graph=networkx.path_graph(nodes), iterations=9, **common
        )
        assert (np.asarray(trace.setting.graph.edges).tolist(), trace.node_names) == (
            edges,
            ["7", "8", "9"],
        )
    with pytest.raises(
        gosta.InputError, match=r"only the graph has x, only the data a; use the same names"
    ):
        gosta.simulate(PATIENTS, "auc", graph=networkx.path_graph(list("dbcx")), **common)
    with pytest.raises(gosta.InputError, match=r"has 5 nodes \(d, b, c, a, x\) where 4 are needed"):
        gosta.simulate(PATIENTS, "auc", graph=networkx.path_graph(list("dbcax")), **common)
    # Names say nothing where rows are dealt at random.
    assert not gosta.simulate(
        PATIENTS, "auc", graph=networkx.path_graph(list("dbcx")), nodes=4, runs=1, iterations=9
    ).node_names


def test_few_nodes_are_all_neighbours_by_default() -> None:
    for how, graph in (
        ({"nodes": 4}, "complete"),
        ({"by": "hospital"}, "complete"),
        ({"nodes": 9}, "watts-strogatz"),
    ):
        trace = gosta.simulate(PATIENTS, "auc", iterations=5, runs=1, engine="reference", **how)
        assert trace.setting.graph_name == graph
    goal, data = plan.Goal("auc"), gosta.datasets.load(PATIENTS)
    assert plan.for_data(goal, data, None, None, None, "hospital", 0).graph == "complete"
    assert plan.for_sites(plan.Goal("gini-index"), None, None, 0).graph == "watts-strogatz"


def test_columns_that_were_chosen_stay_chosen() -> None:
    chosen = gosta.datasets.load("breast-cancer").select(columns="mean area")
    trace = gosta.simulate(chosen, "auc", by="mean radius", nodes=20, iterations=10, runs=1)
    assert trace.target == pytest.approx(
        gosta.exact("breast-cancer", "auc", columns="mean area"), rel=1e-12
    )
    all_columns = gosta.simulate(
        "breast-cancer", "auc", by="mean radius", nodes=20, iterations=10, runs=1
    )
    assert all_columns.target == pytest.approx(gosta.exact("breast-cancer", "auc"), rel=1e-12)
    names = np.arange(569) % 7
    apart = gosta.simulate("breast-cancer", "auc", by=names, iterations=10, runs=1)
    assert apart.setting.placement.nodes == 7
    assert apart.target == pytest.approx(gosta.exact("breast-cancer", "auc"), rel=1e-12)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"deal": "even"}, "requires nodes"),
        ({"by": "hospital", "deal": "even"}, "requires nodes"),
        ({"nodes": 4, "deal": 3}, "deal"),
        ({"by": "hospital", "nodes": 3}, "holds text"),
        ({"nodes": 3, "graph": "watts-strogatz"}, "or another graph"),
    ],
    ids=str,
)
def test_invalid_placements(how: dict[str, Any], message: str) -> None:
    with pytest.raises(gosta.InputError, match=message):
        gosta.simulate(PATIENTS, "auc", **{"graph": "complete", "iterations": 10, "runs": 1, **how})
