"""Sweeps: reading sweeps, running their jobs on any backend, continuing after interruptions and
crashes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gosta
from gosta.errors import ClusterError, GostaError, InputError, MissingExtraError, UnsupportedError
from gosta.estimation.setting import Setting
from gosta.experiments import backends, panels
from gosta.experiments.backends import Failure, Task
from gosta.experiments.jobs import Sweep, read
from gosta.experiments.run import Outcome, ResultFolder, run_jobs
from gosta.experiments.sweep import SweepResult
from gosta.runtime import machine
from gosta.simulation.engines import ENGINES, Engine, reference

GRID = """
data = "iris"
statistic = ["variance", "mean-pairwise-distance"]
graph = ["complete", "cycle"]
protocol = ["gosta-async", "u2"]
n = [50, 80]
seeds = 2
runs = 2
checkpoints = 5
iterations_per_node = 20
"""


def written(folder: Path, text: str = GRID, name: str = "sweep.toml") -> Sweep:
    (folder / name).write_text(text)
    return read(folder / name)


def numbers(plan: Sweep, outcome: Outcome) -> pd.DataFrame:
    assert not outcome.interrupted
    return outcome.results.frame(plan.jobs)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("grid")


@pytest.fixture(scope="module")
def grid(folder: Path) -> Sweep:
    return written(folder)


@pytest.fixture(scope="module")
def expected(grid: Sweep, folder: Path) -> pd.DataFrame:
    """Return the numbers of a sweep in this process, one job after the other."""
    return numbers(grid, run_jobs(grid, folder / "expected", workers=1))


def test_every_combination_is_a_job_with_the_numbers_of_simulate(
    grid: Sweep, expected: pd.DataFrame
) -> None:
    assert len(grid.jobs) == 2**5
    assert len({job.key for job in grid.jobs}) == 2**5
    job = grid.jobs[-1]
    trace = gosta.simulate(
        gosta.datasets.load("iris", n=80),
        "mean-pairwise-distance",
        graph="cycle",
        protocol="u2",
        seed=1,
        runs=2,
        checkpoints=5,
        iterations=1600,
    )
    rows = expected[expected["job"] == job.key]
    assert rows["iteration"].tolist() == trace.iterations.tolist()
    assert rows["error"].tolist() == trace.error()["mean"].values.tolist()
    assert rows["spread"].tolist() == trace.error()["spread"].values.tolist()
    assert rows["units"].tolist() == trace.units.tolist()
    assert rows["estimate"].tolist() == trace.data["estimate"].mean("run").values.tolist()
    assert set(rows["exact"]) == {trace.target}
    assert set(
        zip(rows["graph"], rows["protocol"], rows["n"], rows["seed"], rows["runs"], strict=True)
    ) == {("cycle", "u2", 80, 1, 2)}


def test_result_folder_is_one_data_set(grid: Sweep, folder: Path, expected: pd.DataFrame) -> None:
    assert len(list((folder / "expected").iterdir())) == len(grid.jobs)
    read_back = pd.read_parquet(folder / "expected")
    keys = ["job", "iteration"]
    pd.testing.assert_frame_equal(
        read_back.sort_values(keys, ignore_index=True),
        expected.sort_values(keys, ignore_index=True),
    )


def test_two_workers_give_the_same_numbers_as_one(
    grid: Sweep, expected: pd.DataFrame, tmp_path: Path
) -> None:
    pd.testing.assert_frame_equal(numbers(grid, run_jobs(grid, tmp_path, workers=2)), expected)


def test_jobs_that_an_engine_does_not_support_are_compiled(
    grid: Sweep, expected: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reference_of_one_protocol(setting: Setting, seed: int) -> Engine[Any]:
        if setting.protocol.name != grid.jobs[0]["protocol"]:
            raise UnsupportedError("only one protocol")
        made.append(setting.protocol.name)
        return reference.make(setting, seed)

    made: list[str] = []
    monkeypatch.setitem(ENGINES, "one", reference_of_one_protocol)
    pd.testing.assert_frame_equal(
        numbers(grid, run_jobs(grid, tmp_path, workers=1, engine="one")), expected
    )
    assert len(made) == sum(job["protocol"] == grid.jobs[0]["protocol"] for job in grid.jobs)


def test_finished_jobs_are_kept_and_damaged_ones_run_again(grid: Sweep, tmp_path: Path) -> None:
    few = Sweep(grid.jobs[:4], grid.loaded)
    first = run_jobs(few, tmp_path, workers=1)
    before = numbers(few, first)
    files = [first.results.path(job) for job in few.jobs]
    untouched = files[0].stat().st_ino
    files[1].write_bytes(files[1].read_bytes()[:-100])
    files[2].write_bytes(b"")
    pd.DataFrame({"a": [1]}).to_parquet(files[3])
    again = run_jobs(few, tmp_path, workers=1)
    assert again.finished_before == 1
    assert files[0].stat().st_ino == untouched
    pd.testing.assert_frame_equal(numbers(few, again), before)


def test_jobs_finished_by_another_machine_are_skipped(
    grid: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = Sweep(grid.jobs[:3], grid.loaded)
    done: list[str] = []
    write = ResultFolder.write

    def write_all(self: ResultFolder, job: Any, result: Any) -> None:
        """Write all results, as if other machines had finished the other jobs."""
        done.append(job.key)
        for other in few.jobs:
            write(self, other, result)

    monkeypatch.setattr(ResultFolder, "write", write_all)
    run_jobs(few, tmp_path, workers=1)
    assert len(done) == 1
    assert len(list(tmp_path.iterdir())) == 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Start two workers, processes of this machine that communicate over loopback."""
    distributed = pytest.importorskip("distributed")
    import dask

    with (
        pytest.MonkeyPatch.context() as patch,
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
        ) as started,
    ):
        # workers that were killed start again at leisure
        patch.setattr(backends, "WORKER_TIMEOUT_SECONDS", 180)
        yield started


def test_workers_without_the_package_are_rejected(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "PACKAGE", "no-such-package")
    with pytest.raises(
        ClusterError, match=r"workers cannot run the jobs .* install the same gosta there"
    ):
        list(backends.run_on_dask(iter([]), cluster.scheduler_address))


def test_killed_worker_of_a_cluster_changes_no_numbers(
    grid: Sweep,
    expected: pd.DataFrame,
    cluster: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    victims = [nanny.process.pid for nanny in cluster.workers.values()][:1]
    write = ResultFolder.write

    def kill_then_write(self: ResultFolder, job: Any, result: Any) -> None:
        while victims:
            os.kill(victims.pop(), signal.SIGKILL)
        write(self, job, result)

    monkeypatch.setattr(ResultFolder, "write", kill_then_write)
    outcome = run_jobs(grid, tmp_path, backend="dask", scheduler=cluster.scheduler_address)
    assert not victims
    assert not outcome.failed
    pd.testing.assert_frame_equal(numbers(grid, outcome), expected)


def test_job_that_kills_every_worker_fails_alone(cluster: Any) -> None:
    tasks: list[Task[int]] = [
        Task(0, partial(os._exit, 1)),
        *(Task(k, partial(int, k)) for k in range(1, 6)),
    ]
    results = backends.run_on_dask(iter(tasks), cluster.scheduler_address)
    found = dict(results)
    assert isinstance(found.pop(0), Failure)
    assert found == {k: k for k in range(1, 6)}


def test_clusters_take_statistics_graphs_and_protocols_themselves(cluster: Any) -> None:
    from distributed import Client

    def gap(x: Sequence[float], y: Sequence[float]) -> float:
        return abs(x[0] - y[0])

    own = gosta.statistic(name="cluster-gap")(gap)
    gosta.statistics.STATISTICS.pop("cluster-gap")
    settings: dict[str, Any] = {
        "graph": gosta.graphs.torus(10, 15),
        "protocol": gosta.protocols.find("u2"),
        "runs": 1,
    }
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        trace = client.submit(
            gosta.simulate, gosta.datasets.load("iris"), own, **settings, pure=False
        ).result()
    assert trace.data.equals(gosta.simulate("iris", own, **settings).data)


def test_cluster_without_workers_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(backends, "WORKER_TIMEOUT_SECONDS", 0.2)
    with (
        distributed.LocalCluster(
            n_workers=0, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as empty,
        pytest.raises(
            ClusterError, match=r"no worker started within .* start some: dask worker tcp://"
        ),
    ):
        list(backends.run_on_dask(iter([]), empty.scheduler_address))


def test_ray_gives_the_same_numbers(
    grid: Sweep, folder: Path, expected: pd.DataFrame, tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    done = command(
        "sweep", folder / "sweep.toml", "--backend", "ray", "--out", "results", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    pd.testing.assert_frame_equal(ResultFolder(tmp_path / "results").frame(grid.jobs), expected)


def command(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gosta", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def test_interrupt_keeps_finished_jobs_and_the_same_command_continues(tmp_path: Path) -> None:
    """Send the signal to the command and its workers alike, as a terminal does."""
    plan = written(
        tmp_path,
        'data = "iris"\nstatistic = "variance"\nprotocol = "u2"\nseeds = 20\nruns = 1\niterations '
        "= 2_000_000\n",
    )
    kept = tmp_path / "sweep-results"
    process = subprocess.Popen(
        [sys.executable, "-m", "gosta", "sweep", "sweep.toml", "--workers", "2"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not list(kept.glob("*.parquet")):
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    finished = len(list(kept.glob("*.parquet")))
    assert process.returncode == 130
    kept_jobs = f"{finished} of 20 jobs are finished and kept in sweep-results"
    assert said == f"gosta: interrupted; {kept_jobs}; run the same command again to continue\n"
    assert 1 <= finished < 20
    assert len(list(kept.iterdir())) == finished
    done = command("sweep", "sweep.toml", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    uninterrupted = numbers(plan, run_jobs(plan, tmp_path / "expected", workers=1))
    pd.testing.assert_frame_equal(ResultFolder(kept).frame(plan.jobs), uninterrupted)
    assert [json.loads(line)["seed"] for line in done.stdout.splitlines()] == list(range(20))


def test_failing_jobs_are_reported_and_the_others_run(tmp_path: Path) -> None:
    plan = written(
        tmp_path,
        'data = "iris"\nstatistic = ["variance", "spearman-rho"]\ngraph = ["complete", "torus"]\nn '
        "= [100, 101]\n"
        'runs = 1\niterations = 100\nprotocol = "gosta-async"\n',
    )
    done = command("sweep", "sweep.toml", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr == ""
    assert "3 of 8 jobs finished: sweep-results; plot: sweep-results.png" in done.stdout
    assert "5 jobs failed" in done.stdout
    assert "variance of iris, gosta-async on torus, n = 101, seed 0" in done.stdout
    assert "torus: 101 nodes do not fill a rectangle" in done.stdout
    assert "spearman-rho is a function of each row's own mean" in done.stdout
    assert (tmp_path / "sweep-results.png").stat().st_size > 10_000
    outcome = run_jobs(plan, tmp_path / "sweep-results", workers=1)
    assert (outcome.finished_before, len(outcome.failed)) == (3, 5)
    records = SweepResult(plan, outcome.results.frame(plan.jobs), outcome.failed).records
    assert ["failed" in record for record in records] == [
        job.key in outcome.failed for job in plan.jobs
    ]
    written(tmp_path, 'data = "iris"\nstatistic = "spearman-rho"\nprotocol = "u2"\n', "none.toml")
    none = command("sweep", "none.toml", folder=tmp_path)
    assert none.returncode == 2
    assert (
        none.stderr
        == "gosta: none.toml: none of its 1 jobs could be computed; see the reasons above\n"
    )


def test_files_of_the_user_are_sent_with_the_jobs(tmp_path: Path) -> None:
    """Read data, edges and a statistic from files beside the sweep; changed content makes other
    jobs.
    """
    (tmp_path / "x.csv").write_text("a,b\n" + "".join(f"{k % 7},{k * k % 11}\n" for k in range(20)))
    (tmp_path / "ring.edges").write_text("".join(f"{k} {(k + 1) % 20}\n" for k in range(20)))
    own = """import gosta
@gosta.statistic(name='sweep-gap', final=lambda m: (m[0], 2 * m[0]))
def f(x, y): return abs(x[0] - y[0])
"""
    (tmp_path / "own.py").write_text(own)
    text = 'data = "x.csv"\nstatistic = "own.py:sweep-gap"\ncolumns = "a"\nruns = 1\n'
    text += 'graph = ["ring.edges", "complete"]\n'
    plan = written(tmp_path, text + "checkpoints = 3\n")
    outcome = run_jobs(plan, tmp_path / "out", workers=2)
    assert not outcome.failed
    frame = numbers(plan, outcome)
    assert set(frame["graph"]) == {"ring.edges", "complete"}
    assert frame["component"].tolist() == [0, 1] * 6
    a = [k % 7 for k in range(20)]
    exact = sum(abs(p - q) for p in a for q in a) / 380
    assert frame.loc[frame["component"] == 1, "exact"].tolist() == pytest.approx([2 * exact] * 6)
    assert [type(r["exact"]) for r in SweepResult(plan, frame, {}).records] == [list, list]
    (tmp_path / "x.csv").write_text("a,b\n" + "".join(f"{k % 5},{k}\n" for k in range(20)))
    changed = read(tmp_path / "sweep.toml")
    assert {job.key for job in changed.jobs}.isdisjoint(job.key for job in plan.jobs)
    gosta.statistics.STATISTICS.pop("sweep-gap")


BASE = 'data = "iris"\nstatistic = "variance"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "data = iris",
            "sweep.toml is not TOML: Invalid value (at line 1, column 8); a line is like graph = ",
        ),
        (BASE + 'data = "wine"', "sweep.toml is not TOML: Cannot overwrite a value"),
        (BASE + 'grahp = "torus"', "sweep.toml: unknown key 'grahp'; did you mean 'graph'?"),
        (
            BASE + "n = 2.5",
            "sweep.toml: n = 2.5 must be a whole number of rows, 2 or more, or a list of such",
        ),
        (BASE + 'n = ["many"]', "sweep.toml: n = 'many' must be a whole number of rows"),
        (BASE + "n = [10, true]", "sweep.toml: n = true must be a whole number of rows"),
        (BASE + "n = []", "sweep.toml: n = [] is empty; give a whole number of rows"),
        (BASE + "seed = -1", "sweep.toml: seed = -1 must be a whole number, not negative"),
        (BASE + "seeds = [1, 2]", "sweep.toml: seeds = [1, 2] must be a number of seeds"),
        (BASE + "seeds = 2\nseed = 1", "sweep.toml: seed and seeds exclude each other"),
        (
            BASE + "iterations = 5\niterations_per_node = 5",
            "sweep.toml: iterations and iterations_per_node exclude",
        ),
        (BASE + "iterations = 0", "sweep.toml: iterations = 0 must be a whole number, 1 or more"),
        (BASE + "runs = 1e3", "sweep.toml: runs = 1000.0 must be a whole number"),
        (BASE + 'spacing = "cubic"', 'sweep.toml: spacing = \'cubic\' must be "linear" or "log"'),
        (BASE + "spacing = []", "sweep.toml: spacing = [] must be"),
        (BASE + 'drop_missing = "yes"', "sweep.toml: drop_missing = 'yes' must be true or false"),
        (BASE + "options = 3", "sweep.toml: options = 3 must be options of the statistics"),
        (BASE + "[options]\nvariant = 'b'", "sweep.toml: options: unknown option 'variant'"),
        (BASE + "graph = [['torus']]", "sweep.toml: graph = ['torus'] must be a family of graphs"),
        (
            BASE + "protocol = 'gosta'",
            "sweep.toml: protocol: unknown protocol 'gosta'; did you mean",
        ),
        (
            BASE + "graph = 'tours'",
            "sweep.toml: graph: unknown graph or file 'tours'; did you mean 'torus'?",
        ),
        (BASE + "graph = 'no.edges'", "sweep.toml: graph: no such file: no.edges"),
        (
            'data = "irs"\nstatistic = "variance"',
            "sweep.toml: data: unknown data set or file 'irs'; did you mean",
        ),
        ('data = "no.csv"\nstatistic = "variance"', "sweep.toml: data: no such file: no.csv"),
        (
            'data = "iris"\nstatistic = "varianc"',
            "sweep.toml: statistic: unknown statistic 'varianc'; did you mean",
        ),
        (
            'data = "iris"\nstatistic = "no.py:mine"',
            "sweep.toml: statistic = 'no.py:mine': no such",
        ),
        ('data = "iris"', "sweep.toml: statistic is missing; give a name from 'gosta statistics'"),
        ("", "sweep.toml: data is missing; give a name from 'gosta datasets' or a file"),
        (
            BASE + "seeds = 10000000000",
            "sweep.toml: 10,000,000,000 jobs are more than 1,000,000; split the sweep",
        ),
        ("a = " + "[" * 5000, "sweep.toml is not TOML"),
    ],
)
def test_invalid_studies_are_rejected(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sweep.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        read("sweep.toml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_invalid_arguments_of_sweep_are_rejected(
    grid: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rejected(kind: type[GostaError], message: str, **settings: Any) -> None:
        with pytest.raises(kind, match=message):
            run_jobs(grid, tmp_path / "out", **settings)

    rejected(InputError, "backend = 'slurm' must be local or dask or ray", backend="slurm")
    rejected(InputError, "requires the address of a scheduler", backend="dask")
    rejected(InputError, "requires a cluster", scheduler="tcp://head:8786")
    rejected(InputError, "workers = 0 must be 1 or more", workers=0)
    rejected(InputError, "unknown engine 'cpu'; did you mean 'gpu'", engine="cpu")
    rejected(InputError, "workers = 2 requires --backend local", backend="ray", workers=2)
    monkeypatch.setattr(backends, "CONNECT_TIMEOUT_SECONDS", 0.2)
    rejected(
        ClusterError,
        "no Dask scheduler answers there",
        backend="dask",
        scheduler="tcp://127.0.0.1:9",
    )
    rejected(ClusterError, "no Dask scheduler answers there", backend="dask", scheduler="head")
    for package, backend in (("distributed", "dask"), ("ray", "ray")):
        monkeypatch.setitem(sys.modules, package, None)
        rejected(
            MissingExtraError,
            rf"pip install 'gosta\[{backend}\]'",
            backend=backend,
            scheduler="tcp://head:1",
        )
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write into the folder .*file"):
        run_jobs(grid, tmp_path / "file")
    (tmp_path / "latin.toml").write_bytes(b"data = '\xe9'")
    for name, message in (
        ("latin.toml", "not text in UTF-8"),
        ("none.toml", "no such file"),
        (".", "is not a file"),
    ):
        with pytest.raises(InputError, match=message):
            read(tmp_path / name)


def test_invalid_command_lines_are_rejected(tmp_path: Path) -> None:
    written(tmp_path, BASE)
    for arguments, message in [
        (("none.toml",), "no such file: none.toml"),
        (("sweep.toml", "--plot", "a.docx"), "must end in .png, .svg or .pdf"),
        (("sweep.toml", "--out", "no/where"), "there is no folder no"),
        (("sweep.toml", "--backend", "slurm"), "must be local or dask or ray"),
        (
            ("sweep.toml", "--against", "n"),
            "against = 'n' is not a number that is swept; choose from: iterations",
        ),
    ]:
        done = command("sweep", *arguments, folder=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.toml"]


def test_table_of_many_jobs_averages_seeds(grid: Sweep, expected: pd.DataFrame) -> None:
    table = str(SweepResult(grid, expected, {}))
    assert "means over 2 seeds" in table
    assert len(table.splitlines()) == 1 + 1 + 16 + 1
    few = str(SweepResult(Sweep(grid.jobs[:2], grid.loaded), expected, {}))
    assert "data iris, statistic variance, graph complete, protocol gosta-async, n 50" in few
    assert [line.split()[0] for line in few.splitlines()[1:4]] == ["seed", "0", "1"]


def test_plot_has_a_panel_for_each_statistic_and_graph(grid: Sweep, expected: pd.DataFrame) -> None:
    figure = panels.draw(expected, "grid", grid)[0, 0].figure
    assert [ax.get_title() for ax in figure.axes] == ["complete", "cycle", "", ""]
    assert [len(ax.lines) for ax in figure.axes] == [4] * 4
    assert [text.get_text() for text in figure.legends[0].texts] == [
        "gosta-async",
        "u2",
        "n = 50",
        "n = 80",
    ]
    alone = expected[(expected["n"] == 50) & (expected["graph"] == "cycle")].assign(
        error=0.0, spacing="log"
    )
    few = Sweep(
        [job for job in grid.jobs if job["n"] == 50 and job["graph"] == "cycle"], grid.loaded
    )
    assert panels.draw(alone, "zero", few).shape == (2, 1)


def test_values_do_not_depend_on_the_number_of_cores() -> None:
    values = []
    for cores in (1, 2, 5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(machine, "available_cores", lambda cores=cores: cores)
            values.append(gosta.exact("wine", "mean-pairwise-distance"))
    assert len(set(values)) == 1
    with machine.limit_cores(1):
        assert machine.available_cores() == 1
