"""The base install, without extras: what works, and the one line that says what to install for the
rest.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import ports
import pytest

from gosta.runtime import extras

ROOT = Path(__file__).parents[2]
OPTIONAL = [
    "numba",
    "llvmlite",
    "scipy",
    "pandas",
    "pyarrow",
    "sklearn",
    "pooch",
    "xarray",
    "matplotlib",
    "pyamg",
]
OPTIONAL += ["openpyxl"]
SCRIPT = f"""
import sys
sys.modules |= dict.fromkeys({OPTIONAL!r})  # importing one raises ModuleNotFoundError
from gosta.cli.main import main
sys.exit(main())
"""


def light(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=120,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = "".join(f"{k % 7}.5,{k % 5},{'yes' if k % 3 else 'no'}\n" for k in range(30))
    (tmp_path / "rows.csv").write_text("a,b,died\n" + rows)
    (tmp_path / "mine.py").write_text(
        "import gosta\n@gosta.statistic(name='gap')\ndef gap(x, y): return abs(x[0] - y[0])\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["statistics"],
        ["datasets"],
        ["protocols"],
        [
            "exact",
            "rows.csv",
            "--statistic",
            "auc",
            "--score",
            "a",
            "--label",
            "died",
            "--interval",
            "95%",
        ],
        ["exact", "rows.csv", "--statistic", "kendall-tau", "--columns", "a,b"],
        ["exact", "rows.csv", "--statistic", "mean-pairwise-distance", "--columns", "a,b"],
        ["exact", "rows.csv", "--statistic", "mine.py:gap", "--columns", "a"],
        [
            "network",
            "init",
            "net",
            "--nodes",
            "4",
            "--data",
            "rows.csv",
            "--statistic",
            "variance",
            "--columns",
            "a",
        ],
    ],
    ids=" ".join,
)
def test_works_without_extras(arguments: list[str], folder: Path) -> None:
    port = ["--port", str(ports.free())] * (arguments[0] == "network")
    done = light(*arguments, *port, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [
        (["run", "rows.csv", "--statistic", "variance", "--columns", "a"], "numba", "sim,plot"),
        (["sweep", "sweep.toml"], "numba", "sim,plot,data"),
        (["reproduce"], "numba", "paper"),
        (["graph", "torus"], "scipy", "theory"),
        (["exact", "breast-cancer", "--statistic", "auc"], "scikit-learn", "data"),
        (["exact", "rows.parquet", "--statistic", "auc"], "pyarrow", "data"),
        (["exact", "rows.xlsx", "--statistic", "auc"], "openpyxl", "excel"),
    ],
    ids=["run", "sweep", "reproduce", "graph", "scikit-learn", "parquet", "excel"],
)
def test_missing_extras_are_one_line(
    arguments: list[str], package: str, extra: str, folder: Path
) -> None:
    (folder / "rows.parquet").write_bytes(b"PAR1")
    (folder / "rows.xlsx").write_bytes(b"PK")
    done = light(*arguments, cwd=folder)
    assert done.returncode == 2
    assert re.fullmatch(
        rf".*needs the package '{package}'.*pip install 'gosta\[{extra}\]'\n", done.stderr
    ), done.stderr


def test_extras_bring_the_modules_that_are_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for extra, modules in extras.MODULES.items():
        lines = [
            line
            for name in [extra, *re.findall(r"\w+", str(project[extra]))]
            for line in project.get(name, ())
        ]
        assert set(modules) <= {re.split(r"[<>=;\[]", line)[0] for line in lines}
    assert set(project) - {"all", "dev", "docs", "gpu", "ray"} <= set(
        re.findall(r"\w+", project["all"][0])
    )


def test_a_network_of_private_sums_runs_without_extras(folder: Path) -> None:
    def gosta(*arguments: str) -> str:
        done = light(*arguments, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    rows = "".join(f"{k % 7},{'yes' if k % 3 else 'no'}\n" for k in range(60))
    (folder / "more.csv").write_text("a,died\n" + rows)
    task = [
        "--statistic",
        "auc",
        "--score",
        "a",
        "--label",
        "died",
        "--positive",
        "yes",
        "--private",
        "--range",
        "a=0:8",
    ]
    gosta(
        "network",
        "init",
        "net",
        "--nodes",
        "4",
        "--data",
        "more.csv",
        *task,
        "--port",
        str(ports.free()),
    )
    gosta("network", "up", "net", "--for", "60", "--until", "1%")
    gosta("network", "verify", "net")
