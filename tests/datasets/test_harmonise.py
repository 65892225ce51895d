"""Files of other languages, codes and units end in the numbers of a clean file, bit for bit."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest
from commands import command
from hypothesis import given
from hypothesis import strategies as st

import gosta
from gosta.datasets import load
from gosta.datasets.harmonise import Harmonisation, as_harmonisation, parse
from gosta.net.config import NODE_FILE, NodeConfig, NodeSettings, Task, read_node, write
from gosta.sketches import Bins
from gosta.sketches.layout_builder import make_layout

RNG = np.random.default_rng(31)
N = 300
CLEAN = pd.DataFrame(
    {
        "risk": RNG.beta(2, 5, N).round(4),
        "died": np.where(RNG.random(N) < 0.3, "yes", "no"),
        "sex": np.where(RNG.random(N) < 0.5, "F", "M"),
        "age": RNG.integers(18, 99, N).astype(float),
        "cost": RNG.lognormal(8, 1, N).round(2),
    }
)
CLEAN.loc[RNG.random(N) < 0.05, "age"] = np.nan
CLEAN.loc[RNG.random(N) < 0.05, "risk"] = np.nan
GERMAN: dict[str, Any] = {
    "columns": {
        "died": "verstorben",
        "risk": "Risiko",
        "sex": "Geschlecht",
        "age": "Alter",
        "cost": "Kosten €",
    },
    "values": {"died": {"ja": "yes", "nein": "no"}, "sex": {"w": "F", "m": "M"}},
    "scale": {"risk": 0.01, "cost": 1, "age": 1},
    "na_values": {"": ["k.A."], "age": [-9]},
}


def german_number(number: float, digits: int) -> str:
    """Return a number with a decimal comma and points between thousands."""
    return f"{number:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def per_cent(risk: float) -> str:
    """Return a risk in per cent, digit by digit, since products of floats are rounded."""
    digits = f"{round(risk * 10**4):05d}"
    return f"{int(digits[:-2])},{digits[-2:]} %"


def write_german(path: Path) -> None:
    lines = ["verstorben;Geschlecht;Risiko;Alter;Kosten €"]
    for row in CLEAN.itertuples():
        cells = (
            {"yes": "ja", "no": "nein "}[row.died],
            {"F": "w", "M": "m"}[row.sex],
            "k.A." if np.isnan(row.risk) else per_cent(row.risk),
            "-9" if np.isnan(row.age) else f"{row.age:.0f} J.",
            german_number(row.cost, 2),
        )
        lines.append(";".join(cells))
    path.write_text("\n".join(lines), encoding="cp1252")


def write_french(path: Path) -> None:
    frame = pd.DataFrame(
        {
            "décès": CLEAN["died"].map({"yes": "oui", "no": "non"}),
            "sexe": CLEAN["sex"],
            "risque": CLEAN["risk"],
            "âge": CLEAN["age"],
            "coût": CLEAN["cost"],
            "admission": pd.date_range("2020-01-01", periods=N).strftime("%d/%m/%Y"),
        }
    )
    frame.to_csv(path, sep=";", decimal=",", index=False, na_rep="ND")


FRENCH = {
    "columns": {
        "died": "décès", "sex": "sexe", "risk": "risque", "age": "âge", "cost": "coût"
    },
    "values": {"died": {"oui": "yes", "non": "no"}},
    "na_values": ["ND"],
}  # fmt: skip


def write_excel(path: Path) -> None:
    """Write a book with numbers, text and codes in one column, and decimal commas in text."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["died", "sex", "risk", "age", "cost"])
    for k, row in enumerate(CLEAN.itertuples()):
        risk = "unknown" if np.isnan(row.risk) else row.risk
        age: Any = 999 if np.isnan(row.age) else int(row.age)
        cost: Any = repr(row.cost).replace(".", ",") if k % 2 else row.cost
        sheet.append([int(row.died == "yes"), row.sex, risk, age, cost])
    book.save(path)


EXCEL = {
    "values": {"died": {"1": "yes", "0": "no"}},
    "na_values": {"risk": ["unknown"], "age": [999]},
}
QUESTIONS = {"auc": ["risk"], "gini-index": ["cost"], "kendall-tau": ["age", "risk"]}


@pytest.fixture
def clean(tmp_path: Path) -> gosta.datasets.Data:
    CLEAN.to_csv(tmp_path / "clean.csv", index=False)
    return load(tmp_path / "clean.csv")


def assert_same(found: gosta.datasets.Data, clean: gosta.datasets.Data) -> None:
    for name in clean.columns:
        assert found.columns[name].dtype == clean.columns[name].dtype, name
        assert found.columns[name].tobytes() == clean.columns[name].tobytes() or (
            found.columns[name].tolist() == clean.columns[name].tolist()
        ), name
    for statistic, columns in QUESTIONS.items():
        values = [
            gosta.exact(one, statistic, columns=columns, label="died", drop_missing=True)
            for one in (found, clean)
        ]
        assert values[0] == values[1]


@pytest.mark.parametrize("plain_bytes", [1 << 20, 0])
def test_german_file(
    clean: Any, tmp_path: Path, plain_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gosta.datasets.files.MAX_PLAIN_BYTES", plain_bytes)  # Arrow reads it, too
    write_german(tmp_path / "german.csv")
    found = load(tmp_path / "german.csv", decimal=",", encoding="cp1252", harmonise=GERMAN)
    assert_same(found, clean)


@pytest.mark.parametrize("plain_bytes", [1 << 20, 0])
def test_french_file(
    clean: Any, tmp_path: Path, plain_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gosta.datasets.files.MAX_PLAIN_BYTES", plain_bytes)
    write_french(tmp_path / "french.csv")
    found = load(tmp_path / "french.csv", decimal=",", harmonise=FRENCH)
    assert_same(found, clean)


def test_excel_file(clean: Any, tmp_path: Path) -> None:
    write_excel(tmp_path / "sheet.xlsx")
    assert_same(load(tmp_path / "sheet.xlsx", decimal=",", harmonise=EXCEL), clean)


@given(st.integers(-(10**9), 10**9), st.integers(0, 6), st.integers(-3, 3))
def test_numbers_in_another_unit_are_those_of_a_file_in_that_unit(
    digits: int, places: int, shift: int
) -> None:
    number, factor = float(f"{digits}e-{places}"), float(f"1e{shift}")
    rules = Harmonisation(scale={"x": factor})
    assert rules.apply({"x": np.array([number])}, "x.csv")["x"].tolist() == [
        float(f"{digits}e{shift - places}")
    ]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"columns": {"died": "tot"}}, "unknown column of .*x.csv 'tot'; there are: a, b"),
        ({"columns": {"b": "a"}}, "has a column 'b' already, so that 'a' cannot have this name"),
        ({"values": {"died": {"1": "yes"}}}, "unknown column of .*x.csv 'died'"),
        ({"na_values": {"c": [1]}}, "unknown column of .*x.csv 'c'"),
        ({"scale": {"a": 0}}, "scale of 'a' = 0.0 must be a number other than 0"),
        ({"colums": {}}, "harmonise: Object contains unknown field `colums`; give columns, values"),
        ({"scale": {"b": 1}}, r"numbers in 'J.' \(2 cells\) and 'M.' \(1 cells\); write all in"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, rules: dict[str, Any], message: str) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,3 J.\n2,4 J.\n3,5 M.\n")
    with pytest.raises(gosta.InputError, match=message):
        load(tmp_path / "x.csv", harmonise=rules)


def test_names_can_be_swapped_and_values_recoded(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,x\n2,y\n9,z\n")
    rules = {"columns": {"a": "b", "b": "a"}, "values": {"b": {"2": 7, "9": ""}}}
    found = load(tmp_path / "x.csv", harmonise=rules).columns
    assert list(found) == ["b", "a"]
    np.testing.assert_array_equal(found["b"], [1, 7, np.nan])
    assert found["a"].tolist() == ["x", "y", "z"]


def test_dates_and_columns_without_codes_stay_as_they_are(tmp_path: Path) -> None:
    frame = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=3), "n": [1, 2, 3]})
    frame.to_parquet(tmp_path / "x.parquet")
    found = load(tmp_path / "x.parquet", harmonise={"na_values": ["k.A.", -9]}).columns
    assert found["day"].dtype.kind == "M"
    assert found["n"].dtype == np.int64


def test_options_of_the_command_line(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    write_german(tmp_path / "german.csv")
    CLEAN.to_csv(tmp_path / "clean.csv", index=False)
    run = command(capsys, monkeypatch)
    question = ["-s", "auc", "--label", "died", "--score", "risk", "--drop-missing", "--json"]
    options = [
        "--decimal",
        ",",
        "--encoding",
        "cp1252",
        "--column",
        "died=verstorben",
        "--column",
        "risk=Risiko",
    ]
    options += ["--value", "died:ja=yes,nein=no", "--scale", "risk=0.01", "--na-values", "k.A."]
    options += ["--na-values", "Alter:-9"]
    found, clean = (
        json.loads(run("exact", tmp_path / name, *question, *given)[1])
        for name, given in (("german.csv", options), ("clean.csv", []))
    )
    assert found["value"] == clean["value"]
    for option, message in {
        "--column=died": "column = 'died' must be written as in died=verstorben",
        "--value=ja=yes": "value = 'ja=yes' must be COLUMN:VALUE=MEANING, such as died:ja=yes",
        "--scale=risk=%": "scale = 'risk=%' must be COLUMN=FACTOR, such as risk=0.01",
    }.items():
        code, _, err = run("exact", tmp_path / "german.csv", option)
        assert (code, err.count("\n")) == (2, 1)
        assert message in err


def test_rules_survive_in_node_toml(tmp_path: Path) -> None:
    rules = as_harmonisation(GERMAN)
    node = NodeSettings("a", "", data="german.csv", decimal=",", encoding="cp1252", harmonise=rules)
    task = Task("0123456789abcdef", "auc", columns=("risk",), label="died", drop_missing=True)
    write(tmp_path / NODE_FILE, NodeConfig(task, node, {}))
    text = (tmp_path / NODE_FILE).read_text()
    assert '\n[node.harmonise.columns]\ndied = "verstorben"\n' in text
    assert '\n[node.harmonise.values.died]\nja = "yes"\n' in text
    assert read_node(tmp_path / NODE_FILE).node == node
    head, _, tail = text.partition("[node.harmonise.columns]")
    by_hand = head.replace("[node]\n", '[node]\nharmonise.na_values = ["k.A.", -9]\n')
    (tmp_path / NODE_FILE).write_text(by_hand + "[neighbours]" + tail.partition("[neighbours]")[2])
    assert read_node(tmp_path / NODE_FILE).node.format.harmonise.missing("x") == {"k.A.", -9.0}


@pytest.mark.parametrize(
    ("cells", "decimal", "message"),
    [
        (
            "0,5 0,7 k.A. 1 k.A.",
            ",",
            r"column 'x' has 2 cells that are no numbers \('k.A.', first in line 4\); if they "
            r"stand for missing values: --na-values k.A. \(na_values of harmonise\)",
        ),
        ("0,5 0,7 k.A. 1 2", ".", "'0,5' in line 2 where .*; if commas .* say so: --decimal ,"),
        ("0,5 0,7 1 2 3", ".", "'0,5' in line 2 where .*; if commas .* say so: --decimal ,"),
        ("0,5 0.7 1", ".", "'0,5' in line 2 .*, and '0.7' in line 3; write all with one decimal"),
        ("0,5 0.7 1", ",", "'0.7' in line 3 .*, and '0,5' in line 2; write all with one decimal"),
        ("0.5 0.7 1", ",", "'0.5' in line 2 where .*; if points .*, leave out --decimal ,$"),
        ("1.234 7 1", ",", "leave out --decimal ,; if points stand between .*: --scale x=1"),
        ("12,5% 3% 4%", ",", r"has 3 cells .*'12,5%', .*; for per cent .*: --scale x=0.01 \("),
        ("12,5% 3% 4%", ".", "for per cent as shares: --decimal , --scale x=0.01"),
        ("61_J. 65_J.", ".", r"'61 J.', first in line 2\); for the numbers without their unit: -"),
        ("1.234,5 999 1", ".", "signs between thousands: --decimal , --scale x=1"),
        ("1,234,567 999 1", ".", "for numbers with signs between thousands: --scale x=1"),
        ("a b c 1", ".", "has 'a' in line 2 where a number is needed; correct the row or"),
        ("2020-01-31 1 2", ".", "has the date '2020-01-31' in line 2"),
    ],
)
def test_errors_name_the_real_cause(tmp_path: Path, cells: str, decimal: str, message: str) -> None:
    lines = cells.replace(" ", "\n").replace("_", " ")
    (tmp_path / "x.csv").write_text(f"x;y\n{lines}\n".replace("\n", ";0\n").replace("x;y;0", "x;y"))
    with pytest.raises(gosta.DataError, match=message) as found:
        load(tmp_path / "x.csv", sep=";", decimal=decimal).to_floats(["x"])
    # What the message says, said, gives numbers.
    option = re.search(r"--(scale|na-values) (\S+)", str(found.value))
    if option:
        rules = parse(**{option[1].replace("-", "_"): [option[2]]})
        sign = "," if "--decimal ," in str(found.value) else decimal
        if "leave out" in str(found.value) or cells.startswith("0,5"):
            sign = ","
        data = load(tmp_path / "x.csv", sep=";", decimal=sign, harmonise=rules)
        assert np.isfinite(data.select(drop_missing=True).to_floats(["x"])).any()


def test_points_between_thousands_are_never_read_as_decimals(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("x;y\n1.234;0\n999;0\n", encoding="utf-8")
    with pytest.raises(gosta.DataError, match=r"'1\.234' in line 2"):
        gosta.exact(load(tmp_path / "x.csv", decimal=","), "variance", columns=["x"])


@pytest.mark.parametrize(
    ("negative", "positive"),
    [
        ("nein", "ja"),
        ("Nein", "JA"),
        ("non", "oui"),
        ("no", "sí"),
        ("no", "si"),
        ("no", "yes"),
        ("n", "y"),
        ("false", "true"),
        ("alive", "dead"),
        ("lebt", "verstorben"),
        ("vivant", "décédé"),
        ("vivant", "de\u0301ce\u0301de\u0301"),
        ("control", "case"),
        ("survived", "died"),
        ("-", "+"),
    ],
)
def test_known_pairs_set_the_positive_class(negative: str, positive: str) -> None:
    frame = {"risk": [0.1, 0.2, 0.3, 0.9], "died": [negative, positive, negative, positive]}
    assert gosta.exact(frame, "auc", columns=["risk"], label="died") == 0.75
    found = gosta.exact(frame, "auc", columns=["risk"], label="died", interval=0.95)
    assert isinstance(found, gosta.Estimate)
    assert found.warnings == ()
    assert f"positive class: {positive}, against {negative} (--positive names another)" in (
        found.text()
    )
    other = gosta.exact(
        frame, "auc", columns=["risk"], label="died", options={"positive": negative}
    )
    assert other == 0.25


def test_an_order_that_somebody_gave_stands() -> None:
    died = pd.Categorical(["no", "yes", "no", "yes"], categories=["yes", "no"], ordered=True)
    frame = pd.DataFrame({"risk": [0.1, 0.2, 0.3, 0.9], "died": died})
    assert gosta.exact(frame, "auc", columns=["risk"], label="died") == 0.25
    found = gosta.exact(frame, "auc", columns=["risk"], label="died", interval=0.95)
    assert isinstance(found, gosta.Estimate)
    assert "the names suggest 'yes'" in found.warnings[0]


def test_names_that_say_little_only_warn() -> None:
    frame = {"risk": [0.1, 0.2, 0.3, 0.9], "arm": ["zz", "died", "zz", "died"]}
    found = gosta.exact(frame, "auc", columns=["risk"], label="arm", interval=0.95)
    assert isinstance(found, gosta.Estimate)
    assert found.value == 0.25
    assert "the names suggest 'died': --positive died" in found.warnings[0]


def test_sums_order_known_pairs_alike() -> None:
    data = load({"risk": [0.1, 0.2, 0.3, 0.9], "label": ["nein", "ja", "nein", "ja"]})
    layout = make_layout("auc", Bins(8), columns=["risk"], label="label", data=data)
    assert layout.classes == ("nein", "ja")


def messy_cells(numbers: list[float | None], rng: np.random.Generator) -> dict[str, Any]:
    """Write numbers as somebody somewhere does, and say how they are to be read."""
    decimal = str(rng.choice([".", ","]))
    unit = str(rng.choice(["", " %", "%", " J.", " mmol/l", " €"]))
    between = str(rng.choice(["", " ", "'", "." if decimal == "," else ","]))
    code = str(rng.choice(["k.A.", "-9", "ND", "999999", "n/d", "?", "12:00"]))
    places = int(rng.choice([0, -2, 3]))
    factor = float(f"1e{places}")
    cells = []
    for number in numbers:
        if number is None:
            cells.append(code)
            continue
        text = f"{Decimal(repr(number)).scaleb(-places):,f}"
        cells.append(text.replace(",", "_").replace(".", decimal).replace("_", between) + unit)
    return {"cells": cells, "decimal": decimal, "code": code, "factor": factor}


@pytest.mark.parametrize("seed", range(200))
def test_random_messy_files_are_the_clean_one(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    drawn = rng.lognormal(4, 3, n).round(int(rng.integers(0, 4))).tolist()
    numbers = [None if rng.random() < 0.2 else number for number in drawn]
    classes = rng.choice(["no", "yes"], n).tolist()
    no, yes = [("nein", "ja"), ("non", "oui"), ("0", "1"), ("FALSE", "TRUE"), ("2", "1")][
        int(rng.integers(5))
    ]
    mess = messy_cells(numbers, rng)
    names, encoding = ("größe (m)", "verstorben?"), str(rng.choice(["utf-8", "latin-1", "cp1252"]))
    encoding = "cp1252" if "€" in "".join(mess["cells"]) else encoding
    marks = [{"no": no, "yes": yes}[one] for one in classes]
    harmonise = {
        "columns": {"x": names[0], "died": names[1]},
        "values": {"died": {no: "no", yes: "yes"}},
        "scale": {"x": mess["factor"]},
        "na_values": {"x": [mess["code"]]},
    }
    if rng.random() < 0.3:
        path = tmp_path / "messy.xlsx"
        book = openpyxl.Workbook()
        assert book.active is not None
        for row in [names, *zip(mess["cells"], marks, strict=True)]:
            book.active.append(row)
        book.save(path)
        given = {"decimal": mess["decimal"]}
    else:
        path = tmp_path / "messy.csv"
        rows = [";".join(row) for row in [names, *zip(mess["cells"], marks, strict=True)]]
        path.write_text("\n".join([*rows, ""]), encoding=encoding)
        given = {"decimal": mess["decimal"], "encoding": encoding, "sep": ";"}
    (tmp_path / "clean.csv").write_text(
        "\n".join(
            [
                "x,died",
                *(f"{x!r},{c}".removeprefix("None") for x, c in zip(numbers, classes, strict=True)),
                "",
            ]
        )
    )
    found, clean = load(path, **given, harmonise=harmonise), load(tmp_path / "clean.csv")
    assert found.columns["died"].tolist() == clean.columns["died"].tolist()
    values = [one.columns["x"].astype(float).tobytes() for one in (found, clean)]
    assert values[0] == values[1]


def test_capitals_do_not_matter_unless_two_values_differ_by_them() -> None:
    raw = {"x": np.array(["Ja", "JA ", "ja", "nein", None], dtype=object)}
    rules = Harmonisation(values={"x": {"ja": "yes", "NEIN": "no"}})
    assert rules.apply(raw, "x.csv")["x"].tolist() == ["yes", "yes", "yes", "no", None]
    rules = Harmonisation(values={"x": {"ja": "yes", "Ja": "maybe"}})
    assert rules.apply(raw, "x.csv")["x"].tolist() == ["maybe", "JA ", "yes", "nein", None]


def test_cells_that_are_neither_numbers_nor_text_stay() -> None:
    cells = np.empty(3, dtype=object)
    cells[:] = [[1], {"a": 2}, "k.A."]
    found = Harmonisation(na_values=("k.A.",)).apply({"x": cells}, "x.jsonl")["x"]
    assert found.tolist() == [[1], {"a": 2}, None]


@pytest.mark.parametrize("code", ["104,2%", "104.2", "104,2", "104,20 %"])
def test_a_code_of_a_column_may_have_a_comma_and_any_form_of_its_number(
    tmp_path: Path, code: str
) -> None:
    (tmp_path / "x.csv").write_text("risk;n\n12,5%;1\n104,2%;2\n30 %;3\n")
    rules = parse(scale=["risk=0.01"], na_values=[f"risk:{code}"])
    data = load(tmp_path / "x.csv", decimal=",", harmonise=rules)
    np.testing.assert_array_equal(data.columns["risk"], [0.125, np.nan, 0.3])
    raw = load(tmp_path / "x.csv", decimal=",").columns
    assert rules.unused_codes(raw, "x.csv", ",") == []


def test_codes_that_no_cell_has_are_named() -> None:
    raw = {"age": np.array([61, 999]), "sex": np.array(["f", "k.A."], dtype=object)}
    rules = parse(na_values=["k.A.,-9,age:999", "sex:999", "NA"])
    assert rules.na_values == {"": ("k.A.", "-9", "NA"), "age": ("999",), "sex": ("999",)}
    assert rules.unused_codes(raw, "x.csv") == ["-9", "sex:999"]
