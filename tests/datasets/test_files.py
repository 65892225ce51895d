"""Files that people have: Excel, Feather, JSON lines, folders, the standard input; separators,
first lines, dates.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from commands import command
from pyarrow import feather

import gosta
from gosta.datasets import files, load

FRAME = pd.DataFrame(
    {"risk": [0.1, 0.4, 0.35, 0.8], "age": [61, 54, 70, 66], "ill": ["no", "no", "yes", "yes"]}
)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    return command(capsys, monkeypatch)


def write(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".xlsx":
        book = openpyxl.Workbook()
        for row in [list(frame.columns), *frame.astype(object).to_numpy().tolist()]:
            book.active.append(row)
        book.save(path)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif path.suffix == ".feather":
        feather.write_feather(pa.Table.from_pandas(frame), str(path))
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.txt", "t.xlsx", "t.jsonl", "t.feather", "t.parquet"])
def test_formats(name: str, tmp_path: Path) -> None:
    data = load(write(FRAME, tmp_path / name))
    assert list(data.columns) == ["risk", "age", "ill"]
    np.testing.assert_array_equal(data.to_floats(["risk", "age"]), FRAME[["risk", "age"]])
    assert data.columns["age"].dtype.kind == "i"
    assert gosta.exact(tmp_path / name, "auc", score="risk", label="ill") == 0.75


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t.jsonl", "t.feather", "t.parquet"])
def test_standard_input(
    name: str, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = write(FRAME, tmp_path / name).read_bytes()
    source = SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", source)
    code, out, _ = run("exact", "-", "-s", "auc", "--score", "risk", "--label", "ill", "--json")
    assert (code, json.loads(out)["value"], json.loads(out)["data"]) == (
        0,
        0.75,
        "the standard input",
    )
    source.buffer = io.BytesIO(b"a,b\n1\n")
    assert (
        run("exact", "-")[2] == "gosta: the standard input, line 2: 1 values where 2 are expected\n"
    )
    source.isatty = lambda: True
    assert "pipe a file into it" in run("exact", "-")[2]


def test_folders_and_several_files(tmp_path: Path, run: Any) -> None:
    write(FRAME[:2], tmp_path / "a.csv")
    write(FRAME[2:][["ill", "age", "risk"]], tmp_path / "b.parquet")
    (tmp_path / "notes.md").write_text("not data")
    (tmp_path / "_SUCCESS").write_text("")
    for source in (
        tmp_path,
        str(tmp_path / "*.[cp]*"),
        [tmp_path / "a.csv", tmp_path / "b.parquet"],
    ):
        data = load(source)
        assert (len(data), data.files, data.features) == (4, "file", ("risk", "age", "ill"))
        assert data.columns["file"].tolist() == ["a.csv", "a.csv", "b.parquet", "b.parquet"]
        assert gosta.exact(data, "auc", score="risk", label="ill") == 0.75
    out = run(
        "exact", tmp_path / "a.csv", tmp_path / "b.parquet", "-s", "variance:risk", "--by", "file"
    )[1]
    assert "2 files, 4 rows" in out
    assert "b.parquet" in out
    write(FRAME.drop(columns="age"), tmp_path / "c.csv")
    with pytest.raises(
        gosta.DataError, match=r"c\.csv lacks the column 'age' of .*a\.csv; all files need the same"
    ):
        load(tmp_path)
    with pytest.raises(gosta.DataError, match="no file matches"):
        load(str(tmp_path / "*.nothing"))


TEXT = "mark;größe\n1,5;a\n2,5;b\n4,0;c\n"


@pytest.mark.parametrize("max_plain_bytes", [1 << 30, -1], ids=["csv module", "arrow"])
def test_separator_decimal_sign_and_encoding(
    max_plain_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_PLAIN_BYTES", max_plain_bytes)
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT.encode("latin-1"))
    with pytest.raises(
        gosta.DataError, match="not text in UTF-8; name its encoding, such as --encoding latin-1"
    ):
        load(path)
    data = load(path, decimal=",", encoding="latin-1")
    assert data.to_floats(["mark"]).ravel().tolist() == [1.5, 2.5, 4.0]
    assert list(data.columns) == ["mark", "größe"]
    path.write_bytes(TEXT.encode("utf-16"))
    assert load(path, decimal=",", encoding="utf-16").columns["größe"].tolist() == ["a", "b", "c"]
    path.write_text("a:b\n1:2\n3:4\n")
    assert load(path, sep=":").to_floats(["b"]).ravel().tolist() == [2.0, 4.0]
    path.write_text("a;b\n1,5;2\n2,5;4\n")
    with pytest.raises(
        gosta.DataError, match="'1,5' in line 2 where a number is needed; if commas are decimal"
    ):
        gosta.exact(path, "variance", columns="a")
    path.write_text("1,5;2\n2,5;4\n")
    assert load(path, decimal=",").columns["0"].tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sep": "::"}, "sep = '::' must be one character"),
        (
            {"sep": ",", "decimal": ","},
            "sep = ',' must be one character, not a quote nor the decimal sign ','",
        ),
        ({"decimal": "'"}, 'decimal = "\'" must be . or ,'),
        ({"encoding": "latin-99"}, "encoding = 'latin-99' is not known"),
        ({"header": "maybe"}, "header = 'maybe' must be yes, no or auto"),
        ({"sheet": "one"}, "sheet = 'one' is not for .csv files"),
    ],
)
def test_options_that_are_not_possible(options: dict[str, str], words: str, tmp_path: Path) -> None:
    with pytest.raises(gosta.InputError) as caught:
        load(write(FRAME, tmp_path / "t.csv"), **options)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_options_of_files_are_for_files() -> None:
    with pytest.raises(gosta.InputError, match="header = 'no' is for files, not for 'iris'"):
        load("iris", header="no")


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_first_lines_are_said_and_doubted(suffix: str, tmp_path: Path) -> None:
    def made(*rows: list[Any], **options: Any) -> gosta.Data:
        path = write(
            pd.DataFrame(rows[1:], columns=rows[0], dtype=object), tmp_path / f"t.{suffix}"
        )
        return load(path, **options)

    years = made([2019, 2020], [3, 4], [5, 6])
    assert (years.has_header, len(years)) == (False, 3)
    assert (
        "(2019, 2020) holds numbers only and is taken for data; say --header no, or yes"
        in years.doubts[0]
    )
    named = made([2019, 2020], [3, 4], [5, 6], header="yes")
    assert (list(named.columns), len(named), named.has_header, named.doubts) == (
        ["2019", "2020"],
        2,
        True,
        (),
    )
    assert made([2019, 2020], [3, 4], header="no").doubts == ()
    data = made(["f", 61], ["m", 54], ["f", 70])
    assert data.has_header
    assert (
        "the first line is taken for names, though 'f' is also a value below it" in data.doubts[0]
    )
    assert list(made(["f", 61], ["m", 54], header="no").columns) == ["0", "1"]
    assert "though '61' is a number" in made(["f", 61], ["m", 54], ["m", 70]).doubts[0]
    assert made(["sex", "age"], ["m", 54], ["f", 70]).doubts == ()


def test_doubts_are_shown(run: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("2019,2020\n1,2\n3,5\n")
    shown = run("exact", tmp_path / "t.csv", "-s", "covariance")[1]
    assert "warning: the first line (2019, 2020) holds numbers only and is taken for data" in shown
    record = json.loads(
        run("exact", tmp_path / "t.csv", "-s", "covariance", "--header", "yes", "--json")[1]
    )
    assert (record["assumed"]["header"], record["n"], record["warnings"]) == (True, 2, [])


def test_excel(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    book = openpyxl.Workbook()
    book.active.title = "first"
    book.active.append([None, None])
    book.active.append(["day", "x", None, "y"])
    book.active.append([dt.datetime(2024, 1, 2), 1, None, "#N/A"])
    book.active.append([dt.datetime(2024, 1, 3), 2.5, None, 3])
    book.create_sheet("second").append(["z"])
    book["second"].append([7])
    book.save(path)
    data = load(path)
    assert (list(data.columns), len(data)) == (["day", "x", "y"], 2)
    assert data.doubts == (
        "the sheet 'first' is read, the first of first, second; name one with --sheet",
    )
    np.testing.assert_array_equal(
        data.select(drop_missing=True).to_floats(["x", "y"]), [[1.0, np.nan], [2.5, 3.0]]
    )
    assert load(path, sheet="second").columns["z"].tolist() == [7]
    with pytest.raises(
        gosta.InputError, match=r"unknown sheet of .* 'secnd'; did you mean 'second'"
    ):
        load(path, sheet="secnd")
    with pytest.raises(
        gosta.DataError,
        match="the date '2024-01-02 00:00:00' in row 3 where a number is needed; turn",
    ):
        gosta.exact(path, "variance", columns="day")
    path.write_bytes(b"nothing")
    with pytest.raises(gosta.DataError, match="it is no Excel file"):
        load(path)
    (tmp_path / "t.xls").write_bytes(b"old")
    with pytest.raises(gosta.DataError, match=r"save it as \.xlsx or \.csv"):
        load(tmp_path / "t.xls")
    book.create_sheet("cover", 0)
    book.save(path)
    with pytest.raises(
        gosta.DataError,
        match="'cover', of cover, first, second; name another, such as --sheet first",
    ):
        load(path)


@pytest.mark.parametrize(
    "column",
    [
        ["2024-01-02", "2024-01-03"],
        ["2.1.2024", "3.1.2024"],
        ["2024-01-02 10:30", "2024-01-02 11:30"],
        pd.to_datetime(pd.Series(["2024-01-02", "2024-01-03"])),
        pd.to_datetime(pd.Series(["2024-01-02", "2024-01-03"])).dt.tz_localize("UTC"),
        pa.array([1, 2], pa.date32()),
    ],
    ids=["iso", "german", "time", "pandas", "time zone", "arrow"],
)
def test_dates_are_refused_with_a_way_out(column: Any) -> None:
    with pytest.raises(
        gosta.DataError, match=r"date.* where .*number.* needed; turn them into numbers first"
    ):
        gosta.exact({"day": column, "x": [1.0, 2.0]}, "variance", columns="day")


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1, "b": "x"}\n\n{"b": "y", "c": true}\n{"a": 2.5, "b": null}\n')
    data = load(path)
    assert {name: values.tolist() for name, values in data.columns.items() if name != "a"} == {
        "b": ["x", "y", None], "c": [None, True, None],
    }  # fmt: skip
    np.testing.assert_array_equal(data.columns["a"], [1.0, np.nan, 2.5])
    for text, words in (("{\n", "line 1 is not JSON"), ("[1]\n", "line 1 is not an object")):
        path.write_text(text)
        with pytest.raises(gosta.DataError, match=words):
            load(path)


class Enum:
    """What polars' type of ordered categories looks like."""

    categories = ("yes", "no")


class EnumColumn:
    """A column of polars, of which Arrow's interface keeps the values only."""

    dtype = Enum()

    def __arrow_c_stream__(self, schema: Any = None) -> Any:
        return pa.chunked_array([["no", "yes", "yes", "no"]]).__arrow_c_stream__(schema)


def test_the_order_of_categories_is_respected(tmp_path: Path) -> None:
    """The last in order is positive: "no" here, against the alphabet."""
    ordered = pd.Series(pd.Categorical(["no", "yes", "yes", "no"], ["yes", "no"], ordered=True))
    frame = pd.DataFrame({"x": [4.0, 1.0, 2.0, 3.0], "ill": ordered})
    assert gosta.exact(frame, "auc", label="ill") == 1.0
    for name in ("t.parquet", "t.feather"):
        assert gosta.exact(write(frame, tmp_path / name), "auc", label="ill") == 1.0
    assert gosta.exact({"x": frame["x"], "ill": EnumColumn()}, "auc", label="ill") == 1.0
    unordered = frame.assign(ill=ordered.astype(str))
    assert gosta.exact(unordered, "auc", label="ill") == 0.0


def test_statistics_that_fit_a_file(run: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    n = 60
    frame = pd.DataFrame({
        "patient id": range(n), "age": rng.integers(20, 90, n), "risk": rng.normal(size=n).round(2),
        "arm": rng.choice(["case", "other"], n), "days": rng.exponential(size=n).round(2),
        "event": rng.integers(0, 2, n), "hospital": rng.choice(list("abc"), n), "day": "2024-01-02",
    })  # fmt: skip
    frame.loc[3, "age"] = np.nan
    path = tmp_path / "my rows.csv"
    frame.to_csv(path, index=False, sep=";")
    found = json.loads(run("statistics", "--for", path, "--sep", ";", "--json")[1])
    commands = {one["name"]: one["command"] for one in found}
    file = f"gosta exact '{path}' -s"
    assert commands["auc"] == f"{file} auc --score risk --label event --sep ';'"
    assert commands["roc-curve"] == f"{file} roc-curve --score risk --label event --sep ';'"
    assert commands["variance"] == f"{file} variance --columns age --drop-missing --sep ';'"
    assert commands["gini-index"] == f"{file} gini-index --columns age --drop-missing --sep ';'"
    assert (
        commands["concordance-index"]
        == f"{file} concordance-index --score risk --time days --event event --sep ';'"
    )
    log_rank = f"{file} log-rank --label arm --time days --event event --positive case --sep ';'"
    assert commands["log-rank"] == log_rank
    assert not [one for one in found if bool(one["command"]) == bool(one["reason"])]
    for one in found:
        if one["name"] in (
            "auc",
            "gini-index",
            "kendall-tau",
            "roc-curve",
            "log-rank",
            "quantiles",
        ):
            code, _, error = run(*shlex.split(one["command"])[1:])
            assert (code, error) == (0, ""), one["command"]
    shown = run("statistics", "--for", path, "--sep", ";")[1]
    assert shown.startswith("score     risk\noutcome   event\ntime      days\nevent     event\n")
    assert "not used  patient id" in shown
    assert len(shown.splitlines()) <= 32
    assert max(len(line) for line in shown.splitlines() if str(path) not in line) <= 80
    reasons = {one["name"]: one["reason"] for one in found}
    assert reasons["multiclass-auc"].startswith("needs three classes")
    assert reasons["auc-difference"].startswith("needs two scores, known by their names")
    assert "name it with --for" in run("statistics", "--label", "arm")[2]


def test_the_positive_class_of_curves_is_said(run: Any, tmp_path: Path) -> None:
    path = write(FRAME.assign(ill=["other", "other", "case", "case"]), tmp_path / "t.csv")
    for more in ([], ["--bins", 8]):
        shown = run("exact", path, "-s", "roc-curve", "--score", "risk", "--label", "ill", *more)[1]
        assert "positive class: other, against case" in shown
        assert "the names suggest 'case': --positive case" in shown
        right = run(
            "exact",
            path,
            "-s",
            "roc-curve",
            "--score",
            "risk",
            "--label",
            "ill",
            "--positive",
            "case",
            *more,
        )[1]
        assert "warning" not in right


@pytest.mark.parametrize("plain_bytes", [1 << 20, 0])
def test_names_that_are_there_twice_get_a_number(
    tmp_path: Path, plain_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gosta.datasets.files.MAX_PLAIN_BYTES", plain_bytes)
    (tmp_path / "x.csv").write_text("a,b,a,a.1,c,c\n1,2,3,4,5,6\n5,6,7,8,9,1\n")
    data = load(tmp_path / "x.csv")
    assert list(data.columns) == ["a.2", "b", "a.3", "a.1", "c.1", "c.2"]
    assert data.doubts[0] == "2 columns are called 'a': they are read as a.2, a.3"
    with pytest.raises(gosta.InputError, match=r"'a'; did you mean 'a\.2' or 'a\.3' or 'a\.1'\?"):
        data.select("a")


def test_names_of_a_sheet_that_are_there_twice_get_a_number(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in (["Nota", "x", "Nota"], ["a", 1, None], ["b", 2, "c"]):
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    assert list(load(tmp_path / "x.xlsx").columns) == ["Nota.1", "x", "Nota.2"]


def test_rows_that_are_left_keep_their_number() -> None:
    data = load({"x": [1.0, 2.0, np.nan, 4.0]}).take(slice(1, None))
    assert data.take([2]).row_names[0] == "row 4"
    with pytest.raises(gosta.DataError, match="first in row 3"):
        data.to_floats(["x"])
