"""The command line: real processes where terminals, pipes or signals matter, otherwise this one."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from terminal import read_rest, read_until

import gosta
from gosta.cli.main import COMMANDS, NETWORK, NODE, main
from gosta.measures import MEASURES
from gosta.sketches import SKETCHES
from gosta.statistics import STATISTICS


class Result:
    def __init__(self, out: str, err: str, code: int) -> None:
        self.out, self.err, self.code = out, err, code


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    def call(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["gosta", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else int(bool(exit_.code))
        out, err = capsys.readouterr()
        return Result(out, err, code)

    return call


def test_json_is_the_python_value(run) -> None:  # type: ignore[no-untyped-def]
    record = json.loads(
        run("exact", "breast-cancer", "--statistic", "auc", "--interval", "95%", "--json").out
    )
    estimate = gosta.exact("breast-cancer", "auc", interval=0.95)
    assert record["value"] == estimate.value
    assert record["interval"] == {
        "low": estimate.low,
        "high": estimate.high,
        "standard_error": estimate.standard_error,
        "level": 0.95,
    }
    assert (record["n"], record["statistic"], record["data"]) == (569, "auc", "breast-cancer")
    assert record["columns"][-1] == "diagnosis"


def test_text_shows_value_interval_and_columns(run) -> None:  # type: ignore[no-untyped-def]
    shown = run(
        "exact",
        "iris",
        "-s",
        "kendall-tau",
        "-c",
        "sepal length,petal length",
        "-o",
        "variant=b",
        "--interval",
        "0.9",
    )
    value = gosta.exact(
        "iris", "kendall-tau", columns=["sepal length", "petal length"], variant="b"
    )
    assert shown.code == 0
    assert f"kendall-tau of iris: {value:.6g}" in shown.out
    assert "90 % interval" in shown.out
    assert "from sepal length, petal length" in shown.out


def test_all_statistics_at_once(run) -> None:  # type: ignore[no-untyped-def]
    shown = run("exact")
    assert shown.code == 0
    for name in STATISTICS:
        assert name in shown.out
    assert "needs columns for time, event, score" in shown.out
    records = [
        json.loads(line)
        for line in run("exact", "survival", "--json", "--n", 40, "--seed", 3).out.splitlines()
    ]
    assert {"concordance-index", "variance"} <= {r["statistic"] for r in records}
    assert {r["n"] for r in records} == {40}


def test_values_from_sums_beside_exact_ones(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    shown = run("exact", "breast-cancer", "-s", "auc", "--bins", 256, "--interval", "95%").out
    assert "0.963148  0.961128 to 0.965118  0.963136  1.2e-05  0.945201 to 0.975371" in shown
    assert "numbers: 512; a row adds to 1 of them" in shown
    rows = "\n".join(f"{k % 7 / 7},{k % 2},{'fm'[k % 3 % 2]}" for k in range(60))
    (tmp_path / "rows.csv").write_text("risk,died,sex\n" + rows)
    arguments = [
        "exact",
        tmp_path / "rows.csv",
        "-s",
        "auc,quantiles:risk",
        "--label",
        "died",
        "--score",
        "risk",
    ]
    arguments += ["--range", "risk=0:0.8", "--bins", 8, "--strata", "sex"]
    shown = run(*arguments, "--find-edges")
    assert "auc, sex = f" in shown.out
    assert "8 rows with a value beyond its range, which counts as the range's end" in shown.out
    records = [json.loads(line) for line in run(*arguments, "--json").out.splitlines()]
    assert [record["stratum"] for record in records] == ["", "sex = f", "sex = m"] * 2
    assert all(r["low"][0] <= r["exact"][0] <= r["high"][0] for r in records)
    assert "\n  0.5            13.37\n" in run("exact", "-s", "quantiles", "-c", "mean radius").out
    assert "likely, not certain" in run("exact", "-s", "mean-pairwise-distance", "--bins", 8).out


def test_files_and_own_statistics(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    csv, own = tmp_path / "t.csv", tmp_path / "own.py"
    csv.write_text("risk,died\n0.1,0\n0.4,0\n0.35,1\n0.8,1\n,1\n")
    arguments = ("exact", csv, "--statistic", "auc", "--score", "risk", "--label", "died")
    failed = run(*arguments)
    assert (failed.code, failed.out) == (2, "")
    assert failed.err == (
        "gosta: auc: column 'risk' has 1 missing or infinite value (first in line 6); "
        "drop those rows with drop_missing=True (--drop-missing)\n"
    )
    assert json.loads(run(*arguments, "--drop-missing", "--json").out)["value"] == 0.75
    own.write_text(
        "import gosta\n@gosta.statistic(name='range')\ndef f(x, y): return max(x[0], y[0])\n"
    )
    np.save(tmp_path / "x.npy", np.arange(3.0))
    shown = run("exact", tmp_path / "x.npy", "--statistic", f"{own}:range", "--json")
    assert json.loads(shown.out)["value"] == pytest.approx(5 / 3)
    STATISTICS.pop("range")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["exact", "breast-cancr"], "did you mean 'breast-cancer'"),
        (["exact", "--statistic", "acu"], "did you mean 'auc'"),
        (["exact", "none.csv"], "no such file: none.csv"),
        (["exact", "-s", "auc", "-o", "positive"], "must be written name=value"),
        (
            ["exact", "-s", "auc", "--interval", "wide"],
            "interval = 'wide' must be a level such as 95% or 0.95",
        ),
        (
            ["exact", "-s", "auc", "--interval", "95"],
            "interval = '95' must be a level such as 95% or 0.95",
        ),
        (["exact", "-s", "none.py:mine"], "no such file: none.py"),
        (["exact", "lognormal", "--n", "9999999999999"], "GiB of memory"),
        (["exact", "iris", "--columns", "nosuch"], "unknown column of iris 'nosuch'"),
        (["exact", "--interval", "7"], "interval = '7' must be a level"),
        (["exact", "--normalisation", "Q"], "normalisation = 'Q' must be U or V"),
        (["exact", "--option", "foo=1"], "unknown option 'foo'"),
        (
            ["exact", "--bins", "8"],
            "bins are for one statistic or some; name them, such as --statistic auc",
        ),
        (
            ["exact", "-s", "auc", "--bins", "8", "--normalisation", "V"],
            "sums have that of textbooks; leave it out",
        ),
        (
            ["exact", "-s", "auc", "--bins", "8", "--range", "0-1"],
            "range = '0-1' must be COLUMN=LOW:HIGH",
        ),
        (["exact", "-s", "distance-correlation", "--bins", "8"], "use kendall-tau or spearman-rho"),
    ],
)
def test_input_errors_print_one_line_and_exit_with_code_2(  # type: ignore[no-untyped-def]
    run, arguments: list[str], message: str
) -> None:
    failed = run(*arguments)
    assert failed.code == 2
    assert failed.err.startswith("gosta: ")
    assert failed.err.count("\n") == 1
    assert message in failed.err
    assert failed.out == ""


def test_unknown_option_and_command_exit_with_code_2(run) -> None:  # type: ignore[no-untyped-def]
    assert run("exact", "--colums", "a").code == 2
    assert run("exac").code == 2


def test_lists_of_names(run) -> None:  # type: ignore[no-untyped-def]
    shown = run("statistics").out
    assert all(name in shown for name in STATISTICS)
    assert all(name in run("datasets").out for name in gosta.datasets.DATASETS)
    listed = json.loads(run("statistics", "--json").out)
    assert {row["name"] for row in listed} == {*STATISTICS, *SKETCHES, *MEASURES}
    assert {row["name"] for row in listed if row["has_sums"]} == set(SKETCHES)
    assert {row["name"] for row in listed if row["is_pairwise"]} == set(STATISTICS)
    assert {row["name"] for row in json.loads(run("datasets", "--json").out)} == set(
        gosta.datasets.DATASETS
    )
    assert run("--version").out.strip() == gosta.__version__


@pytest.mark.parametrize(
    "command",
    [[command.__name__] for section in COMMANDS.values() for command in section]
    + [["network", command.__name__.replace("_", "-")] for command in NETWORK]
    + [["node", command.__name__] for command in NODE],
    ids=" ".join,
)
def test_every_command_has_a_help_text(run, command: list[str]) -> None:  # type: ignore[no-untyped-def]
    shown = run(*command, "--help")
    assert shown.code == 0, shown.err
    assert f"gosta {' '.join(command)} " in shown.out


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize(
    "command", [(), ("run",), ("exact",), ("network", "init"), ("node", "run")]
)
def test_help_fits_and_names_values_in_plain_words(run, command, width: int, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", width)
    lines = run(*command, "--help").out.splitlines()
    assert max(map(len, lines)) <= width
    assert not [
        line for line in lines if line.startswith("│ --") and ("<" in line or "completion" in line)
    ]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["netw"], ["network"]),
        (["exact", "--interv"], ["--interval"]),
        (["run", "-s", "auc,kendall-t"], ["auc,kendall-tau"]),
        (["run", "--protocol", "gosta-"], ["gosta-async", "gosta-sync"]),
        (["run", "--graph", "two"], ["two-cliques"]),
        (["graph", "two"], ["two-cliques"]),
        (["exact", "bre"], ["breast-cancer", "breath.csv"]),
    ],
)
def test_the_shell_completes_commands_options_and_names(  # type: ignore[no-untyped-def]
    run, words, found, tmp_path, monkeypatch
) -> None:
    (tmp_path / "breath.csv").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_GOSTA_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(["gosta", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert run().out.split() == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_offered_for_shells(shell: str) -> None:
    """By default the shell is detected; typer has a setting for tests, with which it is named."""
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-m", "gosta", "--show-completion", shell]
    shown = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (shown.returncode, f"_GOSTA_COMPLETE=complete_{shell}" in shown.stdout) == (0, True), (
        shown.stderr
    )


def test_options_of_a_group_stand_together_in_the_help(run) -> None:  # type: ignore[no-untyped-def]
    shown = run("run", "--help").out
    places = [
        shown.index(text)
        for text in ("Simulation", "--statistic", "--until", "Rows and columns", "--label")
    ]
    assert places == sorted(places)


def test_missing_matplotlib_is_reported_before_the_simulation(tmp_path: Path) -> None:
    script = (
        "import sys\nsys.modules['matplotlib'] = None\n"
        "sys.argv = ['gosta', 'run', '--iterations', '10000000000']\n"
        "from gosta.cli.main import main\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    message = "gosta run needs the package 'matplotlib'; install it with: pip install 'gosta[plot]'"
    assert (done.returncode, done.stderr) == (2, f"gosta: {message}\n")


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\nsys.argv = ['gosta', '--help']\nfrom gosta.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "names = {'numpy', 'numba', 'scipy', 'sklearn', 'pandas', 'pyarrow', 'pooch'}\n"
        "heavy = names & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "exact" in done.stdout


def test_exact_of_named_data_does_not_import_scikit_learn() -> None:
    script = (
        "import sys, gosta\ngosta.exact('breast-cancer', 'auc')\n"
        "heavy = {'numba', 'sklearn', 'pandas', 'pyarrow'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


LONG = [
    sys.executable,
    "-m",
    "gosta",
    "exact",
    "two-gaussians",
    "--n",
    "2000000",
    "-s",
    "mean-pairwise-distance",
]


def test_progress_bar_appears_and_ctrl_c_ends_the_computation() -> None:
    """Start a computation of hours on a terminal, wait for the progress bar, and interrupt it."""
    terminal, other = pty.openpty()
    with subprocess.Popen(
        LONG, stdout=subprocess.PIPE, stderr=other, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(other)
        shown = read_until(terminal, b"pairs")
        process.send_signal(signal.SIGINT)
        try:
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert b"mean-pairwise-distance, 1,999,999,000,000 pairs" in shown
    assert process.returncode == 130
    assert out == b""
    assert b"interrupted before there was a result" in read_rest(terminal)


@pytest.mark.parametrize("module", ["typer", "gosta.simulation.simulate", "numba"])
def test_ctrl_c_during_an_import_prints_one_line(module: str, tmp_path: Path) -> None:
    """Interrupt the process while it imports a module, before and within a command."""
    script = (
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv = ['gosta', 'run', 'iris', '-s', 'variance', '--runs', '1', '--iterations', '9', "
        "'--plot', 'none']\n"
        "from gosta.__main__ import main\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert (done.returncode, done.stderr) == (130, "gosta: interrupted before there was a result\n")


@pytest.mark.parametrize(
    ("setting", "code", "words"),
    [
        (
            {"PYTHONIOENCODING": "ascii"},
            0,
            "score: x * (mean of positive rows - mean of the others)",
        ),
        (
            {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
            0,
            "score: x * (mean of positive rows -",
        ),
        (
            {"NUMBA_DISABLE_JIT": "1"},
            2,
            "gosta: NUMBA_DISABLE_JIT is set, which switches off the compiler",
        ),
    ],
)
def test_settings_of_the_environment_end_well(
    setting: dict[str, str], code: int, words: str, tmp_path: Path
) -> None:
    command = [
        sys.executable,
        "-m",
        "gosta",
        "run",
        "--runs",
        "1",
        "--iterations",
        "9",
        "--plot",
        "none",
    ]
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LC_", "LANG", "PYTHONIO"))
    }
    done = subprocess.run(
        command, capture_output=True, cwd=tmp_path, timeout=60, env=environment | setting
    )
    assert (done.returncode, words in (done.stdout + done.stderr).decode("ascii")) == (
        code,
        True,
    ), done.stderr


def test_without_a_compiler_small_exact_values_are_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = gosta.exact("iris", "mean-pairwise-distance")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert gosta.exact("iris", "mean-pairwise-distance") == pytest.approx(expected)
    with pytest.raises(gosta.InputError, match="NUMBA_DISABLE_JIT is set"):
        gosta.exact(np.arange(9000.0), "mean-pairwise-distance")


def test_closed_pipe_prints_no_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "gosta", "exact"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait(timeout=60)


def test_ctrl_c_works_after_a_command_that_ignores_it_while_it_saves(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    before = signal.getsignal(signal.SIGINT)
    arguments = ["iris", "-s", "variance", "--runs", 1, "--iterations", 9]
    assert run("run", *arguments, "--plot", tmp_path / "plot.png").code == 0
    assert signal.getsignal(signal.SIGINT) is before


def test_theory_beside_a_simulation(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    picture = tmp_path / "theory.svg"
    shown = run(
        "theory",
        "iris",
        "-s",
        "gini-mean-difference",
        "-c",
        "petal length",
        "-g",
        "torus",
        "--plot",
        picture,
    )
    assert shown.code == 0, shown.err
    assert "spectral gap  c = " in shown.out
    assert shown.out.startswith("carried-means estimates ")
    assert "predicted: error of a single run, derived from network and kernel alone" in shown.out
    assert "expectation and bound: not known for carried-means" in shown.out
    assert (
        "neighbours have similar rows (their row means correlate by " in shown.out
    )  # iris is sorted by species
    assert all(word in picture.read_text() for word in ("<svg", "</svg>"))
    common = (
        "theory",
        "iris",
        "-s",
        "gini-mean-difference",
        "-c",
        "petal length",
        "-g",
        "complete",
        "--json",
    )
    record = json.loads(run(*common, "-p", "gosta-sync").out)
    assert record["spectral_gap"] == pytest.approx(1 / 149)
    names = ("simulated", "spread", "predicted", "expectation", "bound")
    assert {len(record[name]) for name in names} == {len(record["iterations"])}
    assert all(e <= b for e, b in zip(record["expectation"], record["bound"], strict=True))
    assert record["predicted"][0] is None
    assert "bound" not in json.loads(run(*common, "-p", "gosta-async").out)


def test_a_plot_can_be_left_out(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    """With --json there is none, so that the command works in a folder that is not writable."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(
        'data = ["iris"]\nstatistic = ["variance"]\niterations = 9\nruns = 1'
    )
    private = ["run", "iris", "-s", "variance", "--private", "--nodes", 5, "--runs", 2]
    common = ("iris", "-s", "variance", "--iterations", 9, "--runs", 1)
    for command in (["run", *common], private, ["theory", *common, "-p", "averaging"]):
        shown = run(*command, "--plot", "none")
        assert (shown.code, "plot" in shown.out) == (0, False), shown.err
        assert run(*command, "--json").code == 0
    assert (
        run("sweep", "study.toml", "--plot", "none").code
        == run("sweep", "study.toml", "--json").code
        == 0
    )
    assert not list(tmp_path.glob("*.png"))
    assert run("run", *common, "--json", "--plot", "x.svg").code == 0
    assert run("run", *common).out.endswith("plot: gosta-run.png\n")
    assert {file.name for file in tmp_path.iterdir()} == {
        "study.toml",
        "study-results",
        "x.svg",
        "gosta-run.png",
    }
    (tmp_path / "gosta-run.png").unlink()
    (tmp_path / "gosta-run.png").mkdir()  # cannot be written, even by root
    shown = run("run", *common)
    assert (shown.code, "exact value" in shown.out) == (0, True)
    assert "no plot, as gosta-run.png cannot be written; name another file with --plot" in shown.err


def test_row_means_are_not_taken_for_the_statistic(run) -> None:  # type: ignore[no-untyped-def]
    shown = run(
        "run",
        "breast-cancer",
        "-s",
        "auc",
        "-p",
        "u1,gosta-async",
        "--iterations",
        100,
        "--plot",
        "none",
    ).out
    assert f"exact value {gosta.exact('breast-cancer', 'auc'):.6g};" in shown
    assert (
        "u1: estimates each row's means of the 2 numbers from which auc is computed, not auc; exact"
        in shown
    )
    assert "gosta-async: estimates" not in shown


def test_data_without_a_name_are_rejected(run) -> None:  # type: ignore[no-untyped-def]
    shown = run("exact", "", "-s", "variance")
    assert (shown.code, "the name of the data is empty" in shown.err) == (2, True)


def test_one_row_fits_no_statistic(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "one.csv").write_text("a,b\n1,2\n")
    shown = run("statistics", "--for", tmp_path / "one.csv")
    assert (shown.code, "no statistic: needs two rows; the data has one" in shown.err) == (2, True)


@pytest.mark.parametrize("protocols", ["carried-means", "carried-means,gosta-async"])
def test_the_summary_of_a_run_fits_a_terminal(run, protocols: str) -> None:  # type: ignore[no-untyped-def]
    shown = run("run", "-p", protocols, "--iterations", 100, "--plot", "none")
    assert max(map(len, shown.out.splitlines())) <= 80, shown.out


def test_bound_draws_theory_over_runs(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    plain, theory = tmp_path / "plain.png", tmp_path / "theory.png"
    common = (
        "run",
        "iris",
        "-s",
        "gini-mean-difference",
        "-c",
        "petal length",
        "-p",
        "u2,flooding",
        "--runs",
        "2",
    )
    assert run(*common, "--plot", plain).code == 0
    assert run(*common, "--plot", theory, "--bound").code == 0
    assert plain.read_bytes() != theory.read_bytes()
    shown = run("run", "iris", *common[2:6], "--runs", "2", "--plot", theory, "--bound")
    assert "gosta: expectation and bound: not known for carried-means" in shown.err
    assert "gosta: neighbours have similar rows" in shown.err  # iris is sorted by species


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["theory", "-p", "flooding"], "there is no theory for flooding"),
        (["theory", "--plot", "nowhere/x.png"], "there is no folder nowhere"),
        (["theory", "--plot", "x.txt"], "must end in .png, .svg or .pdf"),
        (["theory", "--n", "569", "-g", "torus"], "do not fill a rectangle"),
    ],
)
def test_theory_rejects_input_in_one_line(run, arguments: list[str], words: str) -> None:  # type: ignore[no-untyped-def]
    shown = run(*arguments)
    assert shown.code == 2
    assert words in shown.err
    assert shown.err.count("\n") == 1


def test_run_with_several_rows_per_node_intervals_and_stopping(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    common = ["run", "--runs", 2, "--plot", tmp_path / "x.png"]
    both = run(*common, "--nodes", 20, "-p", "tracking,gosta-async", "--json").out.splitlines()
    first = json.loads(both[0])
    assert (len(both), first["n"], first["rows"], len(first["local_values"])) == (2, 20, 569, 20)
    shown = run(*common, "--nodes", 20, "--by", "mean radius", "--interval", "95%").out
    assert "averaging the nodes' own values would give 0.91" in shown
    assert "95 % interval for the population: 0.9" in shown
    assert "times as wide, as they count the error of gossip that is left" in shown
    few = run(*common, "--nodes", 20, "--interval", "95%", "--iterations", 20, "--json").out
    assert json.loads(few)["interval"]["widening"] is None
    record = json.loads(run(*common, "--until", "2%", "--json").out)
    assert record["until"]["stopped"] == 2
    assert "stopped after" in run(*common, "--until", "2%").out
    assert (
        "no run stopped at 0.01 % within 800 iterations"
        in run(*common, "--until", "0.01%", "--iterations", 800, "--nodes", 20).out
    )
    assert "a function of plain means" in run(*common, "-s", "variance").out
    saved = tmp_path / "run.nc"
    assert (
        run(*common, "--nodes", 20, "--interval", "90%", "--until", "2%", "--out", saved).code == 0
    )
    assert "90 % interval" in run("run", "--resume", saved, "--plot", tmp_path / "y.png").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--nodes", "1"], "nodes = 1 must be a whole number from 2 to the number of rows, 569"),
        (["--nodes", "600"], "nodes = 600 must be"),
        (["--nodes", "20", "--deal", "poisson"], "deal"),
        (["--nodes", "20", "-p", "u2"], "u2 supports one row per node"),
        (["--by", "mean radius"], "give nodes=... (--nodes)"),
        (["--by", "hospital"], "hospital"),
        (["--until", "0%"], "until = '0%' must be an error such as 1% or 0.01"),
        (["--until", "much"], "until = 'much'"),
        (["--interval", "100%"], "interval = '100%' must be a level"),
        (["--out", "run.csv"], "out = 'run.csv' must end in .nc"),
        (["--plot", "x.txt"], "must end in .png, .svg or .pdf; none for no plot"),
        (["--interval", "95%", "-p", "gosta-async"], "an interval requires each row's own mean"),
    ],
)
def test_run_rejects_input_in_one_line(run, arguments: list[str], words: str) -> None:  # type: ignore[no-untyped-def]
    shown = run("run", *arguments)
    assert shown.code == 2
    assert words in shown.err
    assert shown.err.count("\n") == 1
