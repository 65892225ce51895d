"""Sweeps from Python: settings as lists or values in memory, results as tables and plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gosta
from gosta.errors import InputError
from gosta.experiments import run
from gosta.experiments.jobs import Job, read

QUICK: dict[str, Any] = {"protocol": "gosta-async", "runs": 2, "checkpoints": 4, "workers": 1}


@pytest.fixture(scope="module")
def sizes() -> gosta.SweepResult:
    """Return a sweep over n and two protocols; a torus of 41 nodes fails."""
    settings = {**QUICK, "protocol": ["gosta-async", "averaging"], "iterations_per_node": 20}
    return gosta.sweep(
        "iris", "variance", graph=["complete", "torus"], n=[20, 41, 80], seeds=2, **settings
    )


def test_jobs_have_the_numbers_of_simulate(sizes: gosta.SweepResult) -> None:
    trace = gosta.simulate(
        gosta.datasets.load("iris", n=80),
        "variance",
        graph="torus",
        protocol="gosta-async",
        seed=1,
        runs=2,
        checkpoints=4,
        iterations=1600,
    )
    found = sizes.to_xarray().sel(graph="torus", protocol="gosta-async", n=80, seed=1)
    assert found["iteration"].values.tolist() == trace.iterations.tolist()
    assert found["error"].values.tolist() == trace.error()["mean"].values.tolist()
    rows = sizes.to_pandas().query(
        "graph == 'torus' and protocol == 'gosta-async' and n == 80 and seed == 1"
    )
    assert rows["error"].tolist() == trace.error()["mean"].values.tolist()
    assert set(rows["nodes"]) == {80}


def test_results_have_a_dimension_for_each_swept_setting(sizes: gosta.SweepResult) -> None:
    data = sizes.to_xarray()
    assert dict(data.sizes) == {"graph": 2, "protocol": 2, "n": 3, "seed": 2, "checkpoint": 4}
    assert data["protocol"].values.tolist() == ["gosta-async", "averaging"]  # as they were given
    assert data["error"].sel(n=41, graph="torus").isnull().all()
    assert data["error"].sel(n=41, graph="complete").notnull().all()
    assert "low" not in data
    assert len(sizes.failed) == 4
    assert all(
        reason.startswith("torus: 41 nodes do not fill a rectangle")
        for reason in sizes.failed.values()
    )
    assert repr(sizes) == "SweepResult(24 jobs over graph, protocol, n, seed, 4 failed)"
    last = sizes.last()
    assert last.columns[:4].tolist() == ["graph", "protocol", "n", "seed"]
    assert len(last) == 20
    assert "by" not in last
    shown = sizes._repr_html_()
    assert shown.count("<table>") == 2
    assert "torus: 41 nodes do not fill" in shown
    assert "4 jobs failed:" in str(sizes)


def test_plots_are_against_a_swept_number_or_iterations(sizes: gosta.SweepResult) -> None:
    against_n = sizes.plot()  # n has three values
    assert against_n.shape == (1, 2)
    (ax, torus) = against_n[0]
    assert [ax.get_xlabel(), ax.get_title(), ax.get_xscale(), ax.get_yscale()] == [
        "n",
        "complete",
        "linear",
        "log",
    ]
    assert [line.get_xdata().tolist() for line in ax.lines] == [[20.0, 41.0, 80.0]] * 2
    assert [line.get_xdata().tolist() for line in torus.lines] == [[20.0, 80.0]] * 2
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["20", "41", "80"]
    means = (
        sizes.last()
        .query("graph == 'complete' and protocol == 'gosta-async'")
        .groupby("n")["error"]
        .mean()
    )
    assert ax.lines[0].get_ydata().tolist() == pytest.approx(means.tolist())
    curves = sizes.plot("iterations")
    assert [len(panel.lines) for panel in curves[0]] == [6, 4]
    assert curves[0, 0].get_xlabel() == "iterations / number of nodes"
    with pytest.raises(
        InputError,
        match="against = 'nodes' is not a number that is swept; choose from: iterations, n",
    ):
        sizes.plot("nodes")


def test_rows_at_nodes_and_intervals_are_swept() -> None:
    by = ["", "petal length"]
    result = gosta.sweep(
        "iris",
        "variance",
        columns="sepal length",
        nodes=[5, 10],
        by=by,
        interval=0.9,
        iterations_per_node=50,
        **{**QUICK, "protocol": "tracking"},
    )
    data = result.to_xarray()
    assert data["by"].values.tolist() == by
    for nodes in (5, 10):
        for column in by:
            trace = gosta.simulate(
                "iris",
                "variance",
                columns="sepal length",
                protocol="tracking",
                runs=2,
                checkpoints=4,
                nodes=nodes,
                by=column or None,
                interval=0.9,
                iterations_per_node=50,
            )
            found = data.sel(nodes=nodes, by=column)
            assert found["error"].values.tolist() == trace.error()["mean"].values.tolist()
            assert found["iteration"].values[-1] == 50 * nodes
            low = trace.intervals()[0].mean(("run", "node")).values
            assert found["low"].values == pytest.approx(low, nan_ok=True)
    assert np.isfinite(data["high"].isel(checkpoint=-1)).all()
    assert set(result.to_pandas()["n"]) == {150}
    even = gosta.sweep("iris", "variance", nodes=5, deal=["zipf", "even"], **QUICK)
    assert even.last()["deal"].tolist() == ["zipf", "even"]
    assert even.last()["error"].nunique() == 2


def test_runs_that_stop_keep_their_numbers() -> None:
    result = gosta.sweep("iris", "variance", until=[0.2, 0.1], **QUICK)
    trace = gosta.simulate("iris", "variance", protocol="gosta-async", runs=2, until=0.1)
    assert result.to_pandas().groupby("until")["iteration"].max().nunique() == 2
    errors = trace.data["mean"].values
    at_end = [row[np.isfinite(row)][-1] for row in errors]
    last = result.last().set_index("until")
    assert last["error"][0.1] == pytest.approx(np.mean(at_end))
    assert last["stopped"][0.1] == trace.data["stopped"].values.mean()
    data = result.to_xarray()
    assert data["error"].isel(checkpoint=-1).notnull().all()
    assert data["stopped"].dims == ("until",)
    assert data["stopped"].sel(until=0.1) == last["stopped"][0.1]
    assert [line.split()[:2] for line in str(result).splitlines()[2:4]] == [
        ["20", "%"],
        ["10", "%"],
    ]


def test_parameters_of_families_are_swept() -> None:
    names = [f"watts-strogatz:k={k},p={p}" for p in (0.1, 0.5) for k in (4, 6, 10)]
    result = gosta.sweep("iris", "variance", graph=names, **QUICK)
    assert result.to_xarray()["graph"].values.tolist() == names
    panels = result.plot()
    assert [(ax.get_title(), ax.get_xlabel()) for ax in panels[0]] == [
        ("watts-strogatz:p=0.1", "k"),
        ("watts-strogatz:p=0.5", "k"),
    ]
    assert panels[0, 0].lines[0].get_xdata().tolist() == [4.0, 6.0, 10.0]
    assert [tick.get_text() for tick in result.plot("p")[0, 0].get_xticklabels()] == ["0.1", "0.5"]


def test_faults_and_graphs_that_change_are_swept() -> None:
    changing = "watts-strogatz:k=8,p=0.1,cycle@500"
    result = gosta.sweep(
        "iris", "variance", graph=[changing, "cycle"], loss=[0, 0.2, 0.5], away=0.1, **QUICK
    )
    trace = gosta.simulate(
        "iris",
        "variance",
        graph=changing,
        loss=0.2,
        away=0.1,
        protocol="gosta-async",
        runs=2,
        checkpoints=4,
    )
    found = result.to_xarray().sel(loss=0.2, graph=changing)
    assert found["error"].values.tolist() == trace.error()["mean"].values.tolist()
    (ax, _) = result.plot()[0]
    assert ax.get_xlabel() == "loss"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0 %", "20 %", "50 %"]
    with pytest.raises(InputError, match=r"graph: no such file: a.csv"):
        gosta.sweep("iris", "variance", graph="cycle,a.csv@500")


def own_statistic(scale: float) -> gosta.Statistic:
    def scaled_gap(x: Sequence[float], y: Sequence[float]) -> float:
        return scale * abs(x[0] - y[0])

    made = gosta.statistic(scaled_gap)
    gosta.statistics.STATISTICS.pop("scaled-gap")
    return made


def test_values_in_memory_are_swept_kept_and_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame({"a": np.arange(12.0) ** 2, "b": list("xyz") * 4})
    ring = gosta.graphs.cycle(12)
    protocol = replace(gosta.protocols.find("u2"), name="mine")
    settings = {
        **QUICK,
        "columns": "a",
        "protocol": [protocol, gosta.protocols.find("u2")],
        "out": tmp_path / "kept",
    }

    def found(scale: float = 1.0, rows: Any = frame) -> gosta.SweepResult:
        tables = {"one": rows, "two": rows[["a"]]}
        graphs = [ring, "cycle", replace(ring, weights=np.arange(1.0, 13.0)), ring.to_networkx()]
        return gosta.sweep(tables, own_statistic(scale), graph=graphs, **settings)

    first = found().to_xarray()
    assert first["data"].values.tolist() == ["one", "two"]
    assert first["protocol"].values.tolist() == ["mine", "u2"]
    assert first["graph"].values.tolist() == ["cycle (2)", "cycle", "cycle (3)", "cycle (4)"]
    errors = first["error"]
    assert (errors.sel(graph="cycle") == errors.sel(graph="cycle (2)")).all()
    assert (errors.sel(graph="cycle") != errors.sel(graph="cycle (3)")).any()
    ran: list[str] = []
    compute = run.run_job

    def noted(job: Job, *rest: Any) -> Any:
        ran.append(job.key)
        return compute(job, *rest)

    monkeypatch.setattr(run, "run_job", noted)
    assert found().to_xarray().equals(first)
    assert ran == []
    found(scale=2.0)
    assert len(ran) == 16
    found(rows=frame.assign(b=list("xyy") * 4))  # another text in a column
    assert len(ran) == 24
    assert len(list((tmp_path / "kept").iterdir())) == 40


def test_studies_are_read_and_take_no_other_settings(tmp_path: Path) -> None:
    text = 'data = "iris"\nstatistic = "variance"\nprotocol = "gosta-async"\nruns = 2\n'
    text += "checkpoints = 4\n"
    path = tmp_path / "sweep.toml"
    path.write_text(
        text
        + 'nodes = [5, 10]\nby = ["", "petal length"]\ngraph = "watts-strogatz:k=4"\nuntil = 0.2\n'
    )
    assert [job["by"] for job in read(path).jobs] == [None, "petal length"] * 2
    assert gosta.sweep(path, workers=1).to_xarray().sizes["nodes"] == 2
    with pytest.raises(InputError, match=r"graph, runs: the sweep .*sweep.toml has all settings"):
        gosta.sweep(str(path), graph="torus", runs=2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"grahp": "torus"}, "unknown key 'grahp'; did you mean 'graph'?"),
        (
            {"k": [2, 4]},
            "unknown key 'k'; k is a parameter of watts-strogatz: write graph = "
            '["watts-strogatz:k=2", ',
        ),
        ({"n": np.array([10, 2.5])}, "n = 10.0 must be a whole number of rows"),
        (
            {"nodes": [5, 1]},
            "nodes = 1 must be a whole number of nodes, 2 or more, or a list of such",
        ),
        ({"deal": "odd"}, 'deal = \'odd\' must be "zipf" or "even"'),
        ({"until": 1}, "until = 1 must be a relative error between 0 and 1"),
        ({"interval": [0.9, 95.0]}, "interval = 95.0 must be a confidence level between 0 and 1"),
        ({"graph": "watts-strogatz:m=3"}, "graph = 'watts-strogatz:m=3': unknown parameter 'm'"),
        ({"graph": [[0, 1], [1, 2]]}, "graph: list of shape (2,) is not a graph"),
        (
            {"data": [1.0, 2.0]},
            "data: a list has several data sets, and 1.0 is none; give one column as an array",
        ),
        (
            {"statistic": "variance,auc"},
            "statistic: 'variance,auc': a job is of one statistic; give a list",
        ),
        ({"statistic": None}, "statistic is missing"),
        ({"protocol": 3}, "protocol = 3 is neither a name nor a protocol"),
        (
            {"statistic": "spearman-rho", "protocol": "u2"},
            "none of 1 job could be simulated: spearman-rho is a functi",
        ),
    ],
)
def test_invalid_settings_are_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        gosta.sweep(**{"data": "iris", "statistic": "variance", "workers": 1, **settings})
    assert str(caught.value).startswith(message)
