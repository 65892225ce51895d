"""Files with titles above, empty lines and totals below; rows by the lines of their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openpyxl
import pytest

import gosta
from gosta.datasets import files, load
from gosta.datasets.titles import title_rows

TITLE = "Study XY, export of 3 March\n\n"
ROWS = "id;risk;died\nP1;0,5;ja\nP2;0,7;nein\nP3;0,9;ja\n"


@pytest.fixture(params=["csv module", "arrow"])
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "arrow":
        monkeypatch.setattr(files, "MAX_PLAIN_BYTES", 0)


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize("title", [TITLE, "Study XY;;\n;;\n", '"two\nlines"\n'])
def test_names_below_a_title_are_found(tmp_path: Path, title: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(title + ROWS)
    data = load(path, decimal=",")
    assert data.to_floats(["risk"])[:, 0].tolist() == [0.5, 0.7, 0.9]
    assert data.doubts == (
        "the names are in line 3; lines 1 to 2 are left out; say --skip 2, or 0",
    )
    said = load(path, decimal=",", skip=2)
    assert (list(said.columns), said.doubts) == (["id", "risk", "died"], ())
    assert said.row_names[0] == "line 4"


@pytest.mark.parametrize(
    "text",
    [
        "a;b\nfoo, bar;x\nbaz, qux;y\n",
        "x\n1,5\n2,5\n",
        "comment\nfoo,bar\nbaz,qux\n",
        ",value\na,1\nb,2\n",
        "a,b,c\n1,,\n,2,\n1,2,3\n",
        "1,2\n3,4\n",
    ],
)
def test_what_is_not_certain_is_no_title(tmp_path: Path, text: str) -> None:
    rows = [line.split(",") for line in text.splitlines()]
    assert title_rows(rows) == 0 or ";" in text or text.startswith("comment")
    (tmp_path / "a.csv").write_text(text)
    try:
        doubts = load(tmp_path / "a.csv").doubts
    except gosta.DataError:
        return
    assert not any("--skip" in doubt for doubt in doubts)


def test_an_error_about_a_title_names_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Study XY\nid,sex,died\nP1,F,ja\nP2,M,nein\n")
    with pytest.raises(gosta.DataError, match=r"line 2: 3 values where 1 .*, as with --skip 1 \("):
        load(path)
    assert list(load(path, skip=1).columns) == ["id", "sex", "died"]
    path.write_text("Study XY,,\nid,sex,died\nP1,F,ja\nP2,M,nein\n")
    doubt = "line 1 names few of the columns; if it is a title, say --skip 1"
    assert load(path).doubts == (doubt,)
    with pytest.raises(gosta.InputError, match="skip = -1 must be a number of lines, 0 or more"):
        load(path, skip=-1)


def test_a_sheet_with_a_title_and_totals(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (
        ["Estudo XY"],
        [],
        ["id", "risco", "óbito"],
        ["P1", 0.5, "sim"],
        [],
        ["P2", None, "não"],
        ["P3", 0.7, "sim"],
        ["Total", 1.2, None],
    ):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    data = load(tmp_path / "a.xlsx")
    assert data.doubts == (
        "the names are in row 3; rows 1 to 2 are left out; say --skip 2, or 0",
        "row 8 says 'Total': it holds totals and is left out; say --skip-end 1, or 0",
    )
    with pytest.raises(gosta.DataError, match=r"\(first in row 6\)"):
        data.to_floats(["risco"])
    assert len(data) == len(load(tmp_path / "a.xlsx", skip=2)) == 3
    assert len(load(tmp_path / "a.xlsx", skip_end=0)) == 4
    assert len(load(tmp_path / "a.xlsx", skip_end=2)) == 2


@pytest.mark.parametrize(
    ("end", "doubt"),
    [
        (
            "Summe;2,1;\n",
            "line 5 says 'Summe': it holds totals and is left out; say --skip-end 1, or 0",
        ),
        (
            ";2,1;\n",
            "the numbers of line 5 are sums of those above; if it is a total: --skip-end 1",
        ),
        (";;\n;;\n", "the last 2 rows of the file are empty and left out"),
        ("P4;0,1;nein\n", ""),
        (
            "TOTAL: 3 pacientes;;\n",
            "line 5 says 'TOTAL: 3 pacientes': it holds totals and is left out; say --skip-end 1, "
            "or 0",
        ),
        (
            "Fuente: SIH;;\n",
            "line 5 holds 'Fuente: SIH' only; if it is no row of data: --skip-end 1",
        ),
        ("Total hip;0,7;ja\n", ""),
        ("P4;total;nein\nP5;total;nein\n", ""),
    ],
)
@pytest.mark.usefixtures("_parser")
def test_totals_and_empty_lines_at_the_end(tmp_path: Path, end: str, doubt: str) -> None:
    (tmp_path / "a.csv").write_text(ROWS + end)
    assert load(tmp_path / "a.csv", decimal=",").doubts == ((doubt,) if doubt else ())


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "memory", "several"])
def test_rows_are_called_as_an_editor_shows_them(tmp_path: Path, name: str) -> None:
    called = {"a.csv": "line 6", "a.jsonl": "line 3", "several": "line 6 of b.csv"}
    values = np.array(["1", "x", None], dtype=object)
    text = 'x,y\n\n1,"two\nlines"\n\nx,0\n,0\n'
    source: object = tmp_path / name
    if name == "memory":
        source = {"x": values, "y": [0, 0, 0]}
    elif name == "several":
        for one in ("a.csv", "b.csv"):
            (tmp_path / one).write_text(text if one == "b.csv" else "x,y\n1,0\n")
        source = tmp_path
    elif name == "a.parquet":
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pa.table({"x": values.tolist()}), source)
    else:
        lines = '{"x": "1"}\n\n{"x": "x"}\n{"x": null}\n'
        (tmp_path / name).write_text(text if name == "a.csv" else lines)
    with pytest.raises(gosta.DataError, match=rf"'x' in {called.get(name, 'row 2')} where"):
        load(source).to_floats(["x"])


def test_several_rows_of_totals_are_left_out(tmp_path: Path) -> None:
    rows = "".join(f"P{k};0.{k};ja\n" for k in range(10, 40))
    (tmp_path / "a.csv").write_text(f"id;risk;died\n{rows}Summe;7.35;\nśrednia;0.245;\n")
    data = load(tmp_path / "a.csv")
    assert data.doubts == (
        "line 32 says 'Summe' and line 33 says 'średnia': they hold totals and are left out; say "
        "--skip-end 2, or 0",
    )
    assert len(data) == 30
