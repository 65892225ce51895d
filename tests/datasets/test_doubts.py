"""Doubts about values: codes among numbers, and decimal commas that were read as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import command

from gosta.datasets import load
from gosta.datasets.doubts import comma_column, far_values

AGES = np.random.default_rng(5).integers(19, 98, 100).tolist()


@pytest.mark.parametrize(
    ("numbers", "named"),
    [
        ([*AGES, 999], "999"),
        ([*AGES, 999, 999], "999"),
        ([*AGES, -9], "-9"),
        ([*AGES, 99], ""),
        ([*AGES, 950], ""),
        (AGES[:10], ""),
        ([999] * 40, ""),
    ],
)
def test_codes_among_numbers_are_named(numbers: list[int], named: str) -> None:
    hint = f"age: {named} is far from the others; is it a code for missing? --na-values age:{named}"
    assert far_values(load({"age": numbers})) == ([hint] if named else [])


def test_decimal_commas_read_as_text_are_found(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("n;risk\n1;0,5\n2;k.A.\n3;0,7\n4;0,1\n")
    assert comma_column(load(tmp_path / "x.csv")) == "risk"
    assert comma_column(load(tmp_path / "x.csv", decimal=",")) == ""


def test_dots_between_thousands_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("days;risk\n397;12,5 %\n1.006;3,5 %\n640;8,1 %\n1.020;2,2 %\n1.385;9,9 %\n")
    said = "days has 1.006 beside whole numbers up to 999; if '.' stands between thousands there: "
    assert load(path).doubts == (f"{said}--decimal , --scale days=1",)
    assert comma_column(load(path)) == "risk"
    rules = {"scale": {"days": 1, "risk": 0.01}}
    data = load(path, decimal=",", harmonise=rules)
    assert data.columns["days"].tolist() == [397, 1006, 640, 1020, 1385]
    path.write_text("days;risk\n397;0.5\n1.006;0.125\n640;0.75\n")
    assert load(path).doubts == (f"{said}write these numbers without it in the file",)
    path.write_text("days;risk\n397;0.5\n1.06;0.125\n640;0.75\n")
    assert load(path).doubts == ()


def test_the_command_line_shows_doubts(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    run = command(capsys, monkeypatch)
    rows = [f"{k % 2};0,{k:02};{age}" for k, age in enumerate([*AGES, 999])]
    (tmp_path / "x.csv").write_text("\n".join(["died;risk;age", *rows, ""]))
    err = run("statistics", "--for", tmp_path / "x.csv")[2]
    assert "risk has decimal commas, so that it is read as text: --decimal ," in err
    options = ["--label", "died", "--score", "risk", "--decimal", ",", "--yes"]
    _, out, err = run("study", "init", tmp_path / "s", "--data", tmp_path / "x.csv", *options)
    assert "statistics for" in out
    assert "warning: age: 999 is far from the others" in err
