"""Questions of `gosta study init` at a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gosta.studies.definition import read_study

pty = pytest.importorskip("pty")


def dialogue(folder: Path, lines: list[str], *words: str) -> str:
    """Return what the command prints when these lines are typed."""
    terminal, inside = pty.openpty()
    command = [sys.executable, "-m", "gosta", "study", "init", str(folder), *words]
    process = subprocess.Popen(
        command, stdin=inside, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    os.close(inside)
    os.write(terminal, "".join(f"{line}\n" for line in lines).encode())
    printed = process.communicate(timeout=60)[0]
    os.close(terminal)
    assert process.returncode == 0, printed
    return printed


def test_classes_ranges_and_horizon_are_asked_and_answers_kept(tmp_path: Path) -> None:
    first = ["Falls", "died", "risk", "", "days", "fell", "", "soon", "sex"]
    of_columns = ["alive,dead", "", "", ""]  # the classes of sex are missing, and the range of days
    again = ["", "", "", "", "", "", "", "365", ""]
    out = dialogue(tmp_path / "new", [*first, *of_columns, *again, "", "f,m", "", "0:730"])
    assert "horizon = 'soon' must be a number" in out
    assert "Column of the outcome (empty: none) [died]: " in out
    study = read_study(tmp_path / "new")
    assert (study.study.title, study.study.horizon) == ("Falls", 365.0)
    assert study.columns["died"].classes == ("alive", "dead")
    assert study.columns["sex"].classes == ("f", "m")
    assert study.columns["risk"].range == (0.0, 1.0)
    assert study.columns["days"].range == (0.0, 730.0)


def test_what_options_say_is_not_asked(tmp_path: Path) -> None:
    words = ("--title", "Falls", "--score", "risk", "--threshold", "0.2", "--label", "died")
    out = dialogue(tmp_path / "new", ["", "", "", "", "-"], *words, "--classes", "died=no,yes")
    assert out.count("[") == 0
    assert "Title" not in out
    assert read_study(tmp_path / "new").study.time is None
