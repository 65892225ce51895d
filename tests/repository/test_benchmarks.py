"""Every benchmark and example runs, on tiny sizes, and fails when an answer is wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gosta.experiments.jobs import read

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "common")


def run(script: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_benchmark_smoke(name: str) -> None:
    done = run(ROOT / "benchmarks" / f"{name}.py", "--smoke")
    assert done.returncode == 0, done.stderr
    assert "numpy" in done.stdout.splitlines()[0]  # the machine and its versions
    assert "TOO SLOW" not in done.stdout


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_wrong_answer_fails_the_benchmark(tmp_path: Path) -> None:
    """A C loop that rounds otherwise than the rule is noticed."""
    text, rule = (
        (ROOT / "benchmarks" / "simulate.py").read_text(),
        "1.0 / count[i] * (held_i - mean_i)",
    )
    assert text.count(rule) == 1
    copy = tmp_path / "simulate.py"
    copy.write_text(text.replace(rule, "(held_i - mean_i) / count[i]"))
    done = run(
        copy,
        "--smoke",
        PYTHONPATH=f"{ROOT / 'benchmarks'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    )
    assert done.returncode == 1
    assert "Arrays are not equal" in done.stderr


def test_noise_that_is_too_small_fails_the_audit_of_epsilon() -> None:
    """With half of what is needed, for each law; the test of benchmarks above shows that the right
    noise passes.
    """
    done = run(ROOT / "benchmarks" / "epsilon_audit.py", "--smoke", "--scale", "0.5")
    assert done.returncode == 1, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.endswith("| EXCEEDED |")]
    assert len(lines) > 40
    assert {line.split()[1] for line in lines} == {"laplace", "gaussian"}


def test_missing_gcc_is_one_line(tmp_path: Path) -> None:
    done = run(ROOT / "benchmarks" / "simulate.py", "--smoke", PATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "gcc is not installed: the comparisons with C are skipped\n" in done.stdout


def test_benchmarks_of_the_makefile_exist() -> None:
    words = (ROOT / "Makefile").read_text().split()
    assert {Path(word).stem for word in words if word.startswith("benchmarks/")} <= set(SCRIPTS)


def test_example_of_local_values_runs() -> None:
    done = run(ROOT / "examples" / "averaging_local_values.py")
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()[1:]
    assert [row.split()[0] for row in rows] == [
        "auc",
        "kendall-tau",
        "gini-mean-difference",
        "variance",
    ]


def test_example_of_a_sweep_is_valid() -> None:
    assert len(read(ROOT / "examples" / "sweep.toml").jobs) == 72
