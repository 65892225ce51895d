"""Traces: reading, saving, resuming, drawing; and mistakes."""

from __future__ import annotations

import json
import math
import os
import pty
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_runs import interrupting
from terminal import read_rest, read_until

import gosta
from gosta.simulation import runner
from gosta.simulation.runner import Interrupted
from gosta.statistics import STATISTICS


def short(**more: Any) -> gosta.Trace:
    settings: dict[str, Any] = {
        "graph": "complete",
        "iterations": 3000,
        "runs": 3,
        "checkpoints": 10,
        **more,
    }
    return gosta.simulate("iris", "gini-mean-difference", **settings)


def test_what_a_trace_holds() -> None:
    trace = short()
    assert trace.iterations.tolist() == list(range(300, 3001, 300))
    assert trace.estimates.dims == ("run", "iteration", "node")
    error = trace.error()
    relative = abs(trace.estimates - trace.data["target"]) / trace.data["target"]
    np.testing.assert_allclose(error["mean"], relative.mean(("node", "run")))
    np.testing.assert_allclose(error["spread"], relative.std("node").mean("run"))
    assert trace.units.tolist() == (16 * trace.iterations).tolist()
    assert list(trace.to_pandas().columns) == ["mean", "spread", "units"]
    assert trace.is_complete


def test_checkpoints_in_equal_ratios() -> None:
    trace = short(spacing="log", checkpoints=5, iterations=10_000)
    assert trace.iterations.tolist() == [1, 10, 100, 1000, 10_000]


SETTINGS: list[dict[str, Any]] = [
    {"clocks": True},
    {"protocol": "relay", "graph": "watts-strogatz"},
    {"graph": "cycle,complete@100,repeat@300", "loss": 0.1, "partition": (5, 900)},
    {"by": "petal length", "homophily": 0.5},
    {"nodes": 11, "by": "petal length", "interval": 0.9},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_saving_and_loading(settings: dict[str, Any], tmp_path: Path) -> None:
    trace = short(**settings)
    trace.save(tmp_path / "run.nc")
    again = gosta.Trace.load(tmp_path / "run.nc")
    assert again.data.identical(trace.data)
    assert again.info == trace.info
    assert not again.missing
    ours, theirs = trace.setting, again.setting
    for name in ("protocol", "estimand", "placement", "faults", "homophily", "graph_name"):
        assert getattr(theirs, name) == getattr(ours, name), name
    for graph, saved in zip(ours.graphs, theirs.graphs, strict=True):
        for name in ("edges", "weights", "parents"):
            np.testing.assert_array_equal(getattr(saved, name), getattr(graph, name))
    assert again.to_dict() == trace.to_dict()
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


def test_traces_of_other_formats_are_refused_in_one_line(tmp_path: Path) -> None:
    trace = short()
    data = trace.data.assign_attrs(gosta=json.dumps({"format": "gosta trace 6", "nodes": 150}))
    data.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    with pytest.raises(gosta.InputError) as error:
        gosta.Trace.load(tmp_path / "run.nc")
    assert str(error.value).endswith(
        "run.nc has the format 'gosta trace 6', this version reads 'gosta trace 7'; "
        "simulate it again"
    )


WAYS: list[dict[str, Any]] = [
    {"protocol": name} for name in ("gosta-async", "u2", "flooding", "master-node")
]
WAYS += [{"nodes": nodes, "interval": interval} for nodes in (None, 11) for interval in (None, 0.9)]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_interrupted_and_resumed_is_uninterrupted(
    way: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that stop wherever they happen to be go on to the same numbers."""
    whole = short(**way, iterations=60_000, clocks=True)
    with pytest.raises(Interrupted) as interrupted, interrupting(monkeypatch, iteration=6000):
        short(**way, iterations=60_000, clocks=True)
    part = interrupted.value.trace
    assert not part.is_complete
    assert np.isfinite(part.data["mean"]).any()
    part.save(tmp_path / "part.nc")
    resumed = gosta.resume(tmp_path / "part.nc")
    assert resumed.is_complete
    for name in set(whole.data.data_vars) - {"time"}:
        np.testing.assert_array_equal(resumed.data[name], whole.data[name])
    np.testing.assert_allclose(resumed.data["time"], whole.data["time"], rtol=1e-12)


def test_resuming_needs_the_same_statistic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gosta.statistics.definition.STATISTICS", dict(STATISTICS))
    made = gosta.statistic(name="scaled-gap")(lambda x, y, scale=2: scale * abs(x[0] - y[0]))
    settings: dict[str, Any] = {
        "graph": "complete",
        "iterations": 1000,
        "runs": 2,
        "scale": np.int64(3),
    }
    part = gosta.simulate("lognormal", made, **settings)
    whole = gosta.simulate(
        "lognormal", made, **{**settings, "iterations": 2000, "checkpoints": 200}
    )
    np.testing.assert_array_equal(gosta.resume(part, iterations=2000).estimates, whole.estimates)
    part.save(tmp_path / "part.nc")
    gosta.statistic(name="scaled-gap")(lambda x, y, scale=2: scale * (x[0] - y[0]) ** 2)
    np.testing.assert_array_equal(gosta.resume(part, iterations=2000).estimates, whole.estimates)
    read = gosta.Trace.load(tmp_path / "part.nc")
    with pytest.raises(gosta.InputError, match="the statistic scaled-gap has changed"):
        gosta.resume(read)
    assert repr(read) == repr(part)
    np.testing.assert_array_equal(read.estimates, part.estimates)
    with pytest.raises(gosta.InputError, match="copy the file that it was read from"):
        read.save(tmp_path / "again.nc")


def test_going_beyond_the_end() -> None:
    longer = gosta.resume(short(), iterations=6000)
    np.testing.assert_array_equal(
        longer.estimates, short(iterations=6000, checkpoints=20).estimates
    )


def test_resuming_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine with fewer cores than the one that saved the trace."""
    whole, part = short(runs=5, iterations=6000, checkpoints=20), short(runs=5)
    monkeypatch.setattr(runner, "MAX_BATCH_BYTES", 1)
    monkeypatch.setattr("gosta.runtime.machine.available_cores", lambda: 2)
    np.testing.assert_array_equal(gosta.resume(part, iterations=6000).estimates, whole.estimates)


def test_large_runs_keep_summaries_only(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = short()
    monkeypatch.setattr(runner, "MAX_ESTIMATES", 100)
    monkeypatch.setattr(runner, "MAX_BATCH_BYTES", 100)
    small = short()
    np.testing.assert_array_equal(small.error()["mean"], whole.error()["mean"])
    with pytest.raises(gosta.InputError, match="too many to keep"):
        _ = small.estimates
    with pytest.raises(gosta.InputError, match="cannot be continued"):
        gosta.resume(small)


def test_a_target_of_zero_gives_absolute_errors() -> None:
    x = np.array([(0, 0), (1, 1), (0, 1), (1, 0)] * 5, dtype=float)
    trace = gosta.simulate(x, "covariance", graph="complete", iterations=5000, runs=2)
    assert trace.target == 0.0
    assert not trace.is_relative
    np.testing.assert_allclose(trace.error()["mean"], abs(trace.estimates).mean(("node", "run")))
    assert "absolute" in trace.error().attrs["error"]


def test_where_there_is_nothing_to_be_wrong_about(tmp_path: Path) -> None:
    """Constant data: the error is 0 throughout, and a picture is drawn all the same."""
    trace = gosta.simulate(np.ones(20), "variance", graph="cycle", iterations=500, runs=2)
    assert float(trace.error()["mean"].max()) == 0.0
    trace.plot().figure.savefig(tmp_path / "zero.png")


def test_an_undefined_target_is_refused() -> None:
    with pytest.raises(gosta.NumericalError, match="kendall-tau is not defined here"):
        gosta.simulate(np.ones((10, 2)), "kendall-tau", graph="complete", variant="b")


def test_a_final_that_is_not_defined_early_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gosta.statistics.definition.STATISTICS", dict(STATISTICS))
    made = gosta.statistic(name="root", final=lambda m: math.sqrt(m[0]))(
        lambda x, y: 1.0 + x[0] ** 2 * y[0] ** 2
    )
    trace = gosta.simulate("lognormal", made, graph="complete", iterations=200, runs=1)
    assert np.isfinite(trace.estimates).all()


def test_u1_finds_row_means() -> None:
    trace = short(protocol="u1", iterations=60_000)
    x = gosta.datasets.load("iris").to_floats(["sepal length"])
    means = np.abs(x - x.T).sum(axis=1) / 149
    np.testing.assert_allclose(trace.target, means, rtol=1e-12)
    assert float(trace.error()["mean"][-1]) < 0.2


def test_one_checkpoint_is_the_last_iteration() -> None:
    assert short(spacing="log", checkpoints=1).iterations.tolist() == [3000]
    assert short(iterations=5, checkpoints=10**12).iterations.tolist() == [1, 2, 3, 4, 5]


def test_times_do_not_depend_on_checkpoints() -> None:
    one, many = (short(clocks=True, iterations=200_000, checkpoints=c) for c in (1, 37))
    np.testing.assert_array_equal(one.data["time"][:, -1], many.data["time"][:, -1])
    part = short(clocks=True, iterations=70_000, checkpoints=7)
    longer = gosta.resume(part, iterations=200_000)
    np.testing.assert_array_equal(longer.data["time"][:, -1], one.data["time"][:, -1])


def test_plot(tmp_path: Path) -> None:
    axes = short().plot()
    assert axes.get_ylabel() == "relative error"
    axes.figure.savefig(tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"iterations": 0}, "iterations = 0 must be a whole number from 1 to"),
        ({"iterations": 10**19}, "iterations = 10000000000000000000 must be"),
        ({"iterations": True}, "iterations = True must be"),
        ({"protocol": None}, "protocol = None is neither a name nor a protocol"),
        ({"runs": 0}, "runs = 0 must be"),
        ({"runs": 2.5}, "runs = 2.5 must be"),
        ({"checkpoints": 0}, "checkpoints = 0 must be"),
        ({"seed": -1}, "seed = -1 must be"),
        ({"spacing": "cubic"}, "unknown spacing 'cubic'"),
        ({"engine": "fpga"}, "unknown engine 'fpga'; there are: compiled, gpu, reference"),
        ({"protocol": "gosta-asinc"}, "unknown protocol 'gosta-asinc'; did you mean 'gosta-async'"),
        ({"graph": "tours"}, "unknown graph .*'torus'"),
        ({"graph": gosta.graphs.complete(7)}, r"7.*150|150.*7"),
    ],
)
def test_mistakes(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(gosta.InputError, match=message):
        short(**arguments)


def test_more_mistakes(tmp_path: Path) -> None:
    with pytest.raises(gosta.InputError, match="spearman-rho is a function of each row's own mean"):
        gosta.simulate("iris", "spearman-rho", graph="complete", protocol="u2")
    with pytest.raises(gosta.InputError, match="GiB of memory"):
        gosta.simulate(
            "lognormal",
            "variance",
            graph="complete",
            runs=10**9,
            checkpoints=10**6,
            iterations=10**6,
        )
    (tmp_path / "bad.nc").write_bytes(b"no netcdf")
    foreign = short().data.assign_attrs(gosta="[1]")
    foreign.to_netcdf(tmp_path / "foreign.nc", engine="h5netcdf")
    for name in ("bad.nc", "foreign.nc"):
        with pytest.raises(gosta.InputError, match=f"cannot read .*{name}: it is not a trace"):
            gosta.Trace.load(tmp_path / name)
    for iterations in (50, 0, "7", 1e6):
        with pytest.raises(gosta.InputError, match="iterations = "):
            gosta.resume(short(), iterations=iterations)  # type: ignore[arg-type]
    with pytest.raises(gosta.InputError, match="no such file"):
        gosta.resume(tmp_path / "none.nc")
    with pytest.raises(gosta.InputError, match="cannot write"):
        short().save(tmp_path / "nowhere" / "run.nc")


def command(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gosta", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def test_a_trace_is_not_saved_under_the_name_of_another_format(tmp_path: Path) -> None:
    trace = gosta.simulate("iris", "variance", iterations=10, runs=1)
    with pytest.raises(gosta.InputError, match=r"run.csv' must end in .nc, .*to_pandas\(\).to_csv"):
        trace.save(tmp_path / "run.csv")
    assert not list(tmp_path.iterdir())


def test_run_on_the_command_line(tmp_path: Path) -> None:
    arguments = [
        "iris",
        "-s",
        "gini-mean-difference",
        "-p",
        "gosta-sync,u2",
        "--iterations",
        5000,
        "--runs",
        2,
        "--json",
    ]
    done = command(
        "run", *arguments, "--graph", "torus", "--out", "r.nc", "--plot", "run.png", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r["protocol"] for r in records] == ["gosta-sync", "u2"]
    for record in records:
        wanted = {
            "protocol",
            "statistic",
            "graph",
            "n",
            "edges",
            "iterations",
            "runs",
            "seed",
            "exact",
            "estimate",
        }
        assert wanted | {"error", "spread", "units", "seconds"} <= set(record)
        assert record["exact"] == pytest.approx(gosta.exact("iris", "gini-mean-difference"))
        trace = gosta.Trace.load(tmp_path / f"r-{record['protocol']}.nc")
        assert record["error"] == float(trace.error()["mean"][-1])
    assert (tmp_path / "run.png").stat().st_size > 10_000
    shown = command("run", "--iterations", 2000, "--runs", 2, "--plot", "a.svg", folder=tmp_path)
    assert shown.returncode == 0
    assert "auc of breast-cancer on watts-strogatz: 569 nodes" in shown.stdout
    assert (tmp_path / "a.svg").exists()


def test_run_mistakes_on_the_command_line(tmp_path: Path) -> None:
    for arguments, message in [
        (("--graph", "torus"), "569"),
        (("--protocol", "gosta"), "unknown protocol 'gosta'"),
        (("--plot", "a.docx"), "must end in .png, .svg or .pdf"),
        (("--against", "time"), "must be 'iterations' or 'units'"),
        (("--resume", "none.nc"), "no such file: none.nc"),
        (("--iterations", "0"), "iterations = 0"),
        (("--plot", "no/where.png"), "there is no folder no"),
        (("--out", "no/where.nc"), "there is no folder no"),
    ]:
        done = command("run", *arguments, folder=tmp_path)
        assert done.returncode == 2
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
        assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_resuming_takes_no_new_settings(tmp_path: Path) -> None:
    short().save(tmp_path / "run.nc")
    refused = command("run", "--resume", "run.nc", "--runs", 77, folder=tmp_path)
    assert refused.returncode == 2
    assert "runs is for new runs only" in refused.stderr


def test_a_file_that_cannot_be_written_loses_nothing_else(tmp_path: Path) -> None:
    """As on a full disk: files may not grow beyond 64 KiB."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "gosta",
            "run",
            "iris",
            "-s",
            "variance",
            "--runs",
            "2",
            "--out",
            "run.nc",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16)),
    )
    assert done.returncode == 2
    assert "variance of iris" in done.stdout
    assert done.stderr == "gosta: cannot write run.nc: File too large\n"
    assert not (tmp_path / "run.nc").exists()
    assert not (tmp_path / "run.nc.part").exists()


def test_control_c_keeps_what_was_computed(tmp_path: Path) -> None:
    """A real process on a real terminal, a real signal: the file holds the part, and resuming gives
    the whole.
    """
    settings = [
        "run",
        "iris",
        "-s",
        "variance",
        "-g",
        "complete",
        "--runs",
        "2",
        "--checkpoints",
        "400",
    ]
    settings += ["--iterations", "20000000", "--json"]
    terminal, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gosta", *settings, "--out", "part.nc"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=other,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(other)
    read_until(terminal, b"iterations/s")
    process.send_signal(signal.SIGINT)
    said = read_rest(terminal)  # before waiting: a terminal that nobody reads holds a process up
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"interrupted; the numbers are those of the checkpoints reached" in said
    assert not json.loads(out)["complete"]
    resumed = command("run", "--resume", "part.nc", "--json", folder=tmp_path)
    whole = command(*settings, folder=tmp_path)
    first, second = json.loads(resumed.stdout), json.loads(whole.stdout)
    assert first["complete"]
    assert first["estimate"] == second["estimate"]
    assert first["error"] == second["error"]
