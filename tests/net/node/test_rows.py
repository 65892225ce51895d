"""Reading a site's rows: encodings, and rows that are rejected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gosta
from gosta.errors import InputError
from gosta.net.config import Task
from gosta.net.members import OpenTrust
from gosta.net.node.rows import read_rows
from gosta.net.node.source import RowSource
from gosta.statistics import find

CLASSES: dict[str, Any] = {"label": "ill", "classes": ("no", "yes")}
HEAD = "risk,age,ill"
ROWS = ["0.1,30,no", "0.9,64,yes", "0.4,51,no", "0.7,80,yes", "0.2,44,no", "0.8,23,yes"]


def task(statistic: str, **fields: Any) -> Task:
    return Task("0123456789abcdef", statistic, **fields)


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join([*lines, ""]))
    return path


@pytest.fixture
def sites(tmp_path: Path) -> list[Path]:
    """One class at the first two, a single row at the last."""
    parts = [ROWS[0::2], [ROWS[1], ROWS[3]], [ROWS[5]]]
    return [write(tmp_path / f"{k}.csv", HEAD, *part) for k, part in enumerate(parts)]


@pytest.mark.parametrize(
    ("statistic", "fields"),
    [
        ("auc", {"score": "risk", **CLASSES}),
        ("auc", {"score": "risk", **CLASSES, "options": {"positive": "no"}}),
        ("mmd", {"columns": ("risk", "age"), **CLASSES, "options": {"bandwidth": 2.0}}),
        ("within-cluster-scatter", {"columns": ("risk", "age"), **CLASSES}),
        ("gini-index", {"columns": ("age",)}),
        ("kendall-tau", {"columns": ("risk", "age")}),
    ],
)
def test_sites_encode_rows_as_if_they_were_pooled(
    sites: list[Path], tmp_path: Path, statistic: str, fields: dict[str, Any]
) -> None:
    pooled_file = write(tmp_path / "all.csv", HEAD, *ROWS[0::2], ROWS[1], ROWS[3], ROWS[5])
    chosen = gosta.datasets.load(pooled_file).select(
        fields.get("columns"), fields.get("label"), fields.get("score")
    )
    pooled = find(statistic).encode_rows(chosen, fields.get("options", {}))
    own = np.concatenate([read_rows(task(statistic, **fields), site) for site in sites])
    if (
        statistic == "mmd"
    ):  # rows in one place are centred, which leaves their differences as they are
        own[:, :-1] -= own[:, :-1].mean(axis=0)
    np.testing.assert_allclose(own, pooled, rtol=0, atol=1e-12 if statistic == "mmd" else 0)


@pytest.mark.parametrize("file", ["all", "0", "1", "2"])
@pytest.mark.parametrize(
    ("statistic", "fields"),
    [
        ("auc", {"columns": ("risk", "age")}),
        ("mmd", {"columns": ("risk", "age")}),
        (
            "within-cluster-scatter",
            {"columns": ("risk", "age"), "options": {"centroids": "class-means"}},
        ),
    ],
)
def test_encodings_that_depend_on_other_rows_are_rejected(
    sites: list[Path], tmp_path: Path, file: str, statistic: str, fields: dict[str, Any]
) -> None:
    assert sites
    write(tmp_path / "all.csv", HEAD, *ROWS)
    with pytest.raises(
        InputError, match=r"depends on other rows|name one score column|give one: bandwidth"
    ):
        read_rows(task(statistic, **CLASSES, **fields), tmp_path / f"{file}.csv")


def test_repeated_rows_do_not_hide_the_dependence_on_other_rows(tmp_path: Path) -> None:
    twice = write(tmp_path / "d.csv", HEAD, *ROWS, *ROWS)
    with pytest.raises(InputError, match="depends on other rows"):
        read_rows(task("mmd", columns=("risk",), **CLASSES), twice)


def test_declared_classes_determine_the_encoding(tmp_path: Path) -> None:
    numbers = write(tmp_path / "n.csv", "risk,ill", "0.5,1", "0.25,2")
    for declared in (("2", "1"), (2, 1), (2.0, "01")):
        x = read_rows(task("auc", score="risk", label="ill", classes=declared), numbers)
        assert x.tolist() == [[0.5, 1.0], [0.25, -1.0]]
    flags = write(tmp_path / "f.csv", "risk,ill", "0.5,true", "0.25,false")
    assert read_rows(task("auc", score="risk", label="ill", classes=("true", "false")), flags)[
        :, 1
    ].tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("lines", "fields", "message"),
    [
        (
            ["1,maybe"],
            {"classes": ("no", "yes")},
            r"class 'maybe' \(first in line 2\), which is none of .*: no, yes",
        ),
        (["1,no", "2,yes"], {}, "declare these for all sites"),
        (["1,no"], {"classes": ("no",)}, "needs two classes"),
        (["1,no"], {"classes": ("1", "01")}, "each class"),
        (["1e51,no"], {"classes": ("no", "yes")}, "use larger units"),
        ([",no"], {"classes": ("no", "yes")}, "missing"),
        (
            [",no"],
            {"classes": ("no", "yes"), "drop_missing": True},
            "needs at least one complete row, .* has 0",
        ),
        ([], {"classes": ("no", "yes")}, "has no rows"),
        (["x,no"], {"classes": ("no", "yes")}, "where a number is needed"),
        (["1,no"], {"classes": ("no", "yes"), "options": {"nosuch": 1}}, "has no option 'nosuch'"),
    ],
)
def test_invalid_data_files(
    tmp_path: Path, lines: list[str], fields: dict[str, Any], message: str
) -> None:
    data = write(tmp_path / "data.csv", "risk,ill", *lines)
    with pytest.raises(InputError, match=message):
        read_rows(task("auc", score="risk", label="ill", **fields), data)


def test_drop_missing_leaves_out_incomplete_rows(tmp_path: Path) -> None:
    data = write(tmp_path / "data.csv", "risk,ill", "1,no", ",yes", "3,")
    x = read_rows(task("auc", score="risk", drop_missing=True, **CLASSES), data)
    assert x.tolist() == [[1.0, -1.0]]


def test_a_site_can_have_zeros_only(tmp_path: Path) -> None:
    data = write(tmp_path / "data.csv", "income", "0")
    assert read_rows(task("gini-index"), data).tolist() == [[0.0]]
    with pytest.raises(InputError, match="not all zero"):
        gosta.exact({"income": [0.0, 0.0]}, "gini-index")


def test_encoded_files_are_read_unchanged(tmp_path: Path) -> None:
    data = write(tmp_path / "data.csv", "x1,x2", "0.1,-1.0", "1e-300,1.0")
    assert read_rows(task("auc", encoded_columns=2), data).tolist() == [[0.1, -1.0], [1e-300, 1.0]]


def test_user_statistics_and_files_of_options_are_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import gosta\n@gosta.statistic(name='site-own')\ndef f(x, y): return max(x[0], y[0])\n"
    )
    write(tmp_path / "centres.csv", "a,b", "0,0", "9,9")
    data = write(tmp_path / "data.csv", "a,b", "1,2", "8,8")
    assert read_rows(task("own.py:site-own"), data).tolist() == [[1, 2], [8, 8]]
    celled = task("within-cluster-scatter", options={"centroids": "centres.csv"})
    assert read_rows(celled, data).tolist() == [[1, 2, 0], [8, 8, 1]]


def test_a_file_with_another_number_of_columns(tmp_path: Path) -> None:
    data = write(tmp_path / "data.csv", "x1", "0.1", "0.2")
    with pytest.raises(InputError, match="has the columns x1 where x1, x2 are needed"):
        read_rows(task("auc", encoded_columns=2), data)


def test_a_failing_kernel_is_reported(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import gosta\n@gosta.statistic(name='odd-one')\ndef f(x, y): return nothing_here\n"
    )
    odd = Task("0" * 16, "own.py:odd-one", confidence_level=0.95, encoded_columns=1)
    with pytest.raises(InputError, match="the kernel fails with NameError"):
        RowSource("node-0", odd, np.array([[1.0]]), [], tmp_path, OpenTrust())
