"""Faults in simulations: exchanges that do not take place, graphs that change, neighbours that are
alike.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from commands import command
from engine_runs import conserved_sums, one_row_engine

import gosta
from gosta import graphs
from gosta.errors import InputError
from gosta.estimation.placement import assortativity, neighbouring_order
from gosta.estimation.setting import make_setting
from gosta.graphs import load_changing
from gosta.graphs.changing import is_changing
from gosta.graphs.graph import Graph
from gosta.protocols.protocol import COPIES
from gosta.schedule import BLOCK, Failures, Faults, Schedule
from gosta.simulation.edges import STREAM_SIZE, EdgeDrawer

ALL_FAULTS = Faults(loss=0.2, away=0.1, away_for=3.0, partition=(300, 900))
# One statistic and one number of columns, since each loop is compiled anew for others.
DATA = "iris", "gini-mean-difference"
SAME: dict[str, Any] = {
    "graph": "cycle",
    "iterations": 1500,
    "runs": 2,
    "seed": 5,
    "checkpoints": 7,
}
FAULTS: dict[str, Any] = {"loss": 0.2, "away": 0.1, "away_for": 3, "partition": (300, 900)}
CHANGING: dict[str, Any] = {"graph": "cycle,complete@400,repeat@700"}


@pytest.mark.parametrize("protocol", ["carried-means", "tracking", "u2", "flooding"])
def test_engines_agree_to_the_last_bit(protocol: str) -> None:
    for more in (FAULTS, {**FAULTS, **CHANGING}):
        settings = {**SAME, **more, "protocol": protocol}
        one, two = (
            gosta.simulate(*DATA, engine=engine, **settings) for engine in ("compiled", "reference")
        )
        assert one.data.identical(two.data)


def test_engines_agree_for_tables() -> None:
    settings = {**SAME, **FAULTS, **CHANGING, "nodes": 9, "protocol": "tracking", "interval": 0.9}
    one, two = (
        gosta.simulate(*DATA, engine=engine, **settings) for engine in ("compiled", "reference")
    )
    np.testing.assert_array_equal(one.estimates, two.estimates)


RING = graphs.load("watts-strogatz", n=300, seed=0)
WEIGHTED = Graph(
    "weights", 300, RING.edges, np.exp(np.random.default_rng(0).normal(0.0, 3.0, RING.m))
)
SEVERAL = load_changing([(RING, 0), (WEIGHTED, 700), ("complete", 20_000), ("repeat", 70_001)], 300)


@pytest.mark.parametrize("faults", [None, ALL_FAULTS], ids=["all exchanges", "faults"])
def test_edges_of_graphs_that_change_are_those_of_the_schedule(faults: Faults | None) -> None:
    failures = [None if faults is None else Failures(faults, 300, 3) for _ in "ab"]
    drawer, runs = EdgeDrawer(SEVERAL, 3, has_shares=True, failures=failures[0]), np.array([0, 3])
    streams, bounds = (
        np.zeros((2, STREAM_SIZE), dtype=np.uint64),
        [0, 1, 5000, BLOCK, 2 * BLOCK + 77],
    )
    parts = [drawer.draw(streams, runs, first, last) for first, last in pairwise(bounds)]
    blocks = [(first, min(first + BLOCK, bounds[-1])) for first in range(0, bounds[-1], BLOCK)]
    for k, run in enumerate(runs.tolist()):
        schedule = Schedule(SEVERAL, 3, run, failures[1])
        drawn = np.concatenate([edges[k] for edges, _ in parts])
        np.testing.assert_array_equal(
            drawn, np.concatenate([schedule.edges(*block) for block in blocks])
        )
        shares = np.concatenate([part[k] for _, part in parts])
        np.testing.assert_array_equal(
            shares, np.concatenate([schedule.edge_shares(*block) for block in blocks])
        )
        counts = schedule.failed(bounds[-1])
        assert counts.tolist() == [(drawn[:, 0] == reason).sum() for reason in (-1, -2, -3)]
    first, last = BLOCK + 1001, BLOCK + 7500  # a stream that is continued
    again, _ = drawer.draw(np.zeros((2, STREAM_SIZE), dtype=np.uint64), runs, first, last)
    np.testing.assert_array_equal(again[1], Schedule(SEVERAL, 3, 3, failures[1]).edges(first, last))


def test_edges_come_from_the_graph_in_force() -> None:
    changing, draws = load_changing("path,star@300,cycle@400,repeat@1000", 20), 5000
    drawn = np.sort(Schedule(changing, 1, 0).edges(0, draws), axis=1)
    for k, (i, j) in enumerate(drawn.tolist()):
        name = "path" if k % 1000 < 300 else "star" if k % 1000 < 400 else "cycle"
        is_edge = {"path": j == i + 1, "star": i == 0, "cycle": j == i + 1 or (i, j) == (0, 19)}
        assert is_edge[name], (k, i, j)


def test_the_clock_of_graphs_that_change() -> None:
    """19 edges for 1000 draws, then 190: the time is their Poisson clocks', within five standard
    deviations.
    """
    schedule = Schedule(load_changing("path,complete@1000", 20), 1, 0)
    assert abs(schedule.time(1000) * 19 / 1000 - 1) < 5 / np.sqrt(1000)
    assert abs((schedule.time(3000) - schedule.time(1000)) * 190 / 2000 - 1) < 5 / np.sqrt(2000)


def test_how_many_messages_are_lost() -> None:
    """An exchange takes two messages; five standard deviations of a binomial share."""
    edges = Schedule(RING, 7, 0, Failures(Faults(loss=0.1), 300, 7)).edges(0, BLOCK)
    assert abs((edges[:, 0] == -1).mean() - 0.19) < 5 * np.sqrt(0.19 * 0.81 / BLOCK)
    assert ((edges < 0).sum(axis=1) != 1).all()


def test_how_many_nodes_are_away_and_for_how_long() -> None:
    """Seen every fifth of an exchange, over 200 exchanges of 1000 nodes: some 5000 absences.

    The bounds are five standard deviations of the share, seven of the mean length.
    """
    n, failures = 1000, Failures(Faults(away=0.2, away_for=8.0), 1000, 3)
    nodes = np.arange(n, dtype=np.int32)[None]
    states = np.array(
        [failures._is_away(0, first, nodes)[0] for first in range(0, 100 * n, n // 10)]
    )
    assert abs(states.mean() - 0.2) < 0.012
    changes, lengths = np.diff(states.astype(int), axis=0), []
    for own in changes.T:
        starts, ends = (np.flatnonzero(own == change) for change in (1, -1))
        ends = ends[ends > starts[0]] if len(starts) else ends[:0]
        lengths += (ends - starts[: len(ends)]).tolist()
    assert len(lengths) > 3000
    assert abs(np.mean(lengths) / 5 - 8.0) < 0.4


def test_a_partition_separates_halves() -> None:
    complete = graphs.complete(40)
    failures = Failures(Faults(partition=(100, 300)), 40, 0)
    marked, drawn = (Schedule(complete, 2, 0, one).edges(0, 1000) for one in (failures, None))
    crosses = (drawn[:, 0] < 20) != (drawn[:, 1] < 20)
    times = np.arange(1000)
    np.testing.assert_array_equal(marked[:, 0] < 0, crosses & (times >= 100) & (times < 300))


def test_a_run_with_faults_is_one_of_the_exchanges_that_take_place() -> None:
    """Nodes that count no ticks do not notice exchanges that did not take place.

    What visitors carry is conserved.
    """
    x = np.random.default_rng(1).lognormal(size=40)
    setting = make_setting(
        "carried-means", x, "gini-mean-difference", "watts-strogatz", 0, {}, faults=ALL_FAULTS
    )
    engine = one_row_engine(setting, is_inline=False)
    batch, same = engine.start([0]), engine.start([0])
    engine.advance(batch, 4000)
    schedule = Schedule(setting.graph, 0, 0, Failures(ALL_FAULTS, 40, 0))
    edges, shares = schedule.edges(0, 4000), schedule.edge_shares(0, 4000)
    takes_place = edges[:, 0] >= 0
    engine.advance_edges(same, 0, edges[takes_place], shares[takes_place])
    np.testing.assert_array_equal(batch.state["nodes"], same.state["nodes"])
    assert (np.bincount(engine.visitors(batch).ravel()) == COPIES).all()
    left, right = conserved_sums(engine, batch)
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "more", [{"protocol": "u2"}, {"nodes": 9, "protocol": "tracking", "interval": 0.9}]
)
def test_a_run_that_is_continued_has_the_same_faults(more: dict[str, Any], tmp_path: Path) -> None:
    settings = {**SAME, **FAULTS, **CHANGING, **more, "clocks": True}
    whole = gosta.simulate(*DATA, **{**settings, "iterations": 3000, "checkpoints": 10})
    part = gosta.simulate(*DATA, **{**settings, "iterations": 900, "checkpoints": 3})
    part.save(tmp_path / "part.nc")
    again = gosta.Trace.load(tmp_path / "part.nc")
    assert again.info == part.info
    continued = gosta.resume(tmp_path / "part.nc", iterations=3000)
    assert continued.data.identical(whole.data)
    assert continued.setting.faults == ALL_FAULTS
    assert continued.setting.graph_name == "cycle, complete from 400, again from 700"


def test_what_a_trace_says_about_faults() -> None:
    trace = gosta.simulate(*DATA, **{**SAME, **FAULTS, "protocol": "tracking"})
    failed = trace.data["failed"]
    assert failed.dims == ("run", "iteration", "fault")
    assert failed["fault"].values.tolist() == ["loss", "away", "partition"]
    last = failed.isel(iteration=-1).mean("run")
    # Nothing is sent to a node that is away or separated; a message that is lost is sent.
    sent = 1500 - float(last.sel(fault=["away", "partition"]).sum())
    without = gosta.simulate(*DATA, **{**SAME, "protocol": "tracking"})
    assert trace.units[-1] == round(without.units[-1] / 1500 * sent)
    assert "failed" not in without.data


def test_nodes_stop_by_themselves_despite_faults() -> None:
    settings: dict[str, Any] = {
        "graph": "complete",
        "runs": 4,
        "until": 0.03,
        "loss": 0.3,
        "away": 0.2,
    }
    trace = gosta.simulate(*DATA, **settings)
    assert (trace.data["stopped"] > 0).all()
    last = np.isfinite(trace.data["median"].values).sum(axis=1) - 1
    assert (trace.data["median"].values[np.arange(4), last] < 0.03).all()


def test_faults_cost_exchanges_and_nothing_else() -> None:
    """Half of the messages lost: after four times as many iterations the error is the same, within
    a factor of 1.3.
    """
    x = np.random.default_rng(0).lognormal(size=200)
    settings: dict[str, Any] = {"graph": "watts-strogatz", "runs": 20, "checkpoints": 1}
    found = [
        float(
            gosta.simulate(x, "gini-mean-difference", iterations=t, loss=loss, **settings).error()[
                "mean"
            ][-1]
        )
        for t, loss in ((10_000, 0.0), (40_000, 0.5))
    ]
    assert 1 / 1.3 < found[0] / found[1] < 1.3


def test_neighbours_that_are_alike() -> None:
    table = {
        "value": np.random.default_rng(3).lognormal(size=200),
        "size": np.random.default_rng(4).normal(size=200),
    }

    def measured(share: float, graph: str = "watts-strogatz", nodes: int | None = None) -> float:
        chosen: dict[str, Any] = {
            "columns": "value",
            "by": "size",
            "homophily": share,
            "nodes": nodes,
        }
        setting = make_setting("tracking", table, "gini-mean-difference", graph, 0, {}, **chosen)
        assert setting.placement.nodes == (nodes or 200)
        assert setting.homophily is not None
        assert setting.homophily.share == share
        return setting.homophily.assortativity

    found = np.array([measured(share) for share in (0.0, 0.5, 0.9, 1.0)])
    assert abs(found[0]) < 5 / np.sqrt(400)
    # Both ends of an edge are in order with the probability share².
    np.testing.assert_allclose(found / found[3], [0.0, 0.25, 0.81, 1.0], atol=0.2)
    assert found[3] > 0.8
    assert measured(1.0, "cycle", nodes=20) > 0.8


def test_rows_stay_together_where_neighbours_are_alike() -> None:
    """All rows are there, those of a node are neighbours in order, and a column of text will do."""
    values = np.random.default_rng(0).permutation(60).astype(float)
    table = {"value": values, "ward": [f"w{int(value) // 20}" for value in values]}
    setting = make_setting(
        "tracking",
        table,
        "gini-mean-difference",
        "cycle",
        0,
        {},
        columns="value",
        nodes=12,
        by="value",
        homophily=0.5,
    )
    assert sorted(setting.estimand.x[:, 0]) == sorted(values)
    assert all(np.ptp(x) == 4 for x in setting.placement.split(setting.estimand.x))
    by_ward = make_setting(
        "tracking",
        table,
        "gini-mean-difference",
        "cycle",
        0,
        {},
        columns="value",
        by="ward",
        homophily=1.0,
    )
    assert by_ward.homophily is not None
    assert by_ward.homophily.assortativity > 0.9


@pytest.mark.parametrize(
    "name", ["watts-strogatz", "star", "geometric", "complete", "barabasi-albert"]
)
def test_assortativity_is_that_of_networkx(name: str) -> None:
    graph, values = graphs.make(name, 60, seed=1), np.random.default_rng(0).normal(size=60)
    other = nx.complete_graph(60) if graph.edges is None else nx.Graph(graph.edges.tolist())
    nx.set_node_attributes(other, dict(enumerate(values.tolist())), "value")
    expected = nx.numeric_assortativity_coefficient(other, "value")
    assert assortativity(graph, values) == pytest.approx(expected)
    assert sorted(neighbouring_order(graph)) == list(range(60))
    assert assortativity(graph, np.ones(60)) == 0.0


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "loss": ({"loss": 1.0}, "loss = 1.0 must be a number from 0 to less than 1"),
    "away": ({"away": "5%"}, "away = '5%' must be a number from 0 to less than 1"),
    "away for": (
        {"away": 0.1, "away_for": 0.5},
        "away_for = 0.5 must be a number of exchanges, 1 or more",
    ),
    "nobody away": ({"away_for": 5}, "away_for = 5 requires away"),
    "partition": ({"partition": (9, 3)}, "partition = (9, 3) must be two iterations"),
    "homophily": (
        {"homophily": 2, "by": "target"},
        "homophily = 2 must be a share of the nodes, from 0 to 1",
    ),
    "homophily of what": ({"homophily": 0.5}, "homophily = 0.5 requires by"),
    "order of graphs": (
        {"graph": "cycle@9,star@3"},
        "graph: graphs change at 9, 3; give iterations that begin with 0",
    ),
    "time of a graph": (
        {"graph": "cycle,star@9,path"},
        "from which iteration on is 'path' in force?",
    ),
    "whole time of a graph": (
        {"graph": "cycle,path@1e9"},
        "'1e9' after @ must be a whole number of iterations",
    ),
    "name of a graph": (
        {"graph": "cycle,stra@9"},
        "unknown graph or file 'stra'; did you mean 'star'?",
    ),
    "size of a graph": (
        {"graph": [("cycle", 0), (graphs.path(3), 9)]},
        "path has 3 nodes where 150 are needed",
    ),
    "end of a run": (
        {"graph": "cycle,star@900", "iterations": 900},
        "graph: star is in force from iteration 900 on, and runs end before; give more iterations "
        "(--iterations)",
    ),
    "tree": (
        {"graph": "cycle,star@9", "protocol": "relay"},
        "protocol relay passes on sums along a tree of one graph",
    ),
    "server": (
        {"loss": 0.1, "protocol": "master-node"},
        "protocol master-node has a server that reaches every node",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    settings, message = MISTAKES[name]
    with pytest.raises(InputError) as caught:
        gosta.simulate(*DATA, **settings)
    assert message in str(caught.value)


def test_studies_with_files_of_graphs_that_change(tmp_path: Path) -> None:
    """Files of graphs are read beside the sweep, and every job gives the numbers of
    `gosta.simulate`.
    """
    lines = [f"{k},{(k + 1) % 150}" for k in range(150)]
    (tmp_path / "ring.csv").write_text("\n".join(lines))
    (tmp_path / "sweep.toml").write_text(
        """data = "iris"
statistic = "gini-mean-difference"
protocol = "tracking"
graph = ["cycle", "ring.csv,complete@400,repeat@700"]
loss = 0.2
away = 0.1
away_for = 3
partition = [300, 900]
iterations = 1500
runs = 2
seed = 5
checkpoints = 7
"""
    )
    result = gosta.sweep(tmp_path / "sweep.toml", workers=1)
    assert result.failed == {}
    assert set(result.to_pandas()["partition"]) == {"300-900"}
    errors = result.to_xarray()["error"]
    for graph, settings in (("cycle", {}), ("ring.csv,complete@400,repeat@700", CHANGING)):
        trace = gosta.simulate(*DATA, **{**SAME, **FAULTS, **settings, "protocol": "tracking"})
        np.testing.assert_allclose(errors.sel(graph=graph), trace.error()["mean"])


def test_only_simulations_have_graphs_that_change() -> None:
    for given in ({"n": 150}, {"data": "iris", "statistic": "gini-mean-difference"}):
        with pytest.raises(
            InputError, match="graph = 'cycle,star@9': only simulations have graphs that change"
        ):
            gosta.theory.predict("cycle,star@9", "gosta-async", **given)
    assert is_changing("watts-strogatz:k=8,p=0.1,torus@20000")
    assert not is_changing("watts-strogatz:k=8,p=0.1")
    assert not is_changing("mail@home.csv")
    assert not is_changing([(0, 1), (1, 2)])
    assert graphs.load([(np.int64(0), np.int64(1)), (np.int64(1), np.int64(2))]).m == 2


def test_the_command_says_what_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [
        "iris",
        "-s",
        "gini-mean-difference",
        "--iterations",
        2000,
        "--runs",
        2,
        "--plot",
        tmp_path / "run.png",
    ]
    faults = [
        "--loss",
        "20%",
        "--away",
        "0.1",
        "--away-for",
        5,
        "--partition",
        "500-700",
        "--graph",
        "cycle,star@99",
    ]
    gosta_run = command(capsys, monkeypatch)
    record = json.loads(gosta_run("run", *options, *faults, "--json")[1])
    assert [record["faults"][name] for name in ("loss", "partition", "drawn")] == [
        0.2,
        [500, 700],
        2000,
    ]
    assert record["graph"] == "cycle, star from 99"
    text = gosta_run("run", *options, *faults, "--by", "sepal length", "--homophily", 0.5)[1]
    assert f"of 2,000 exchanges drawn, {record['faults']['failed']['loss']} (" in text
    assert "homophily: 50 % of the nodes are in order; correlation between neighbours" in text
    assert "faults" not in json.loads(
        gosta_run("run", *options, "--loss", "0%", "--away", "0", "--json")[1]
    )
    for wrong, message in (
        (["--loss", "100%"], "loss = '100%' must be a share such as 10% or 0.1, below 100%"),
        (
            ["--partition", "9"],
            "partition = '9' must be two iterations, FROM-TO, such as 5000-15000",
        ),
        (
            ["--loss", "0.1", "--private"],
            "iterations is for exchanges of rows; leave it out with --private",
        ),
    ):
        code, _, said = gosta_run("run", *options, *wrong)
        assert (code, said.strip()) == (2, f"gosta: {message}")
