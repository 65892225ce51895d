"""Messy files: the first check says all, and its last line reads the file as it is meant."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest
from commands import command

import gosta

N = 90
RNG = np.random.default_rng(21)
CLEAN = pd.DataFrame(
    {
        "risk": np.round(RNG.beta(2, 4, N), 3),
        "risk_new": np.round(RNG.beta(2, 4, N), 3),
        "died": np.where(RNG.random(N) < 0.4, "yes", "no"),
        "sex": np.where(RNG.random(N) < 0.5, "f", "m"),
        "age": RNG.integers(20, 90, N),
    }
)
CLEAN.loc[[4, 9], "risk"] = np.nan
TITLES = ("Export z 3 marca", "")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    return command(capsys, monkeypatch)


@pytest.fixture
def invitation(run: Any, tmp_path: Path) -> Path:
    asked = ("--label", "died", "--score", "risk,risk_new", "--group", "sex", "--yes")
    declared = ("--classes", "died=no,yes", "--classes", "sex=f,m", "--range", "age=18:100")
    assert run("study", "init", tmp_path / "study", *asked, *declared)[0] == 0
    code, _, err = run(
        "network", "init", tmp_path / "net", "--study", tmp_path / "study", "--enrol"
    )
    assert (code, err) == (0, "")
    return tmp_path / "net" / "invitation.json"


def comma(values: Any, code: str, factor: float = 1) -> list[str]:
    return [
        code if np.isnan(value) else f"{factor * value:.3f}".replace(".", ",") for value in values
    ]


def polish(path: Path) -> None:
    frame = pd.DataFrame(
        {
            "Nr": range(N),
            "Płeć": CLEAN["sex"].map({"f": "K", "m": "M"}),
            "Ryzyko zgonu": comma(CLEAN["risk"], "b.d."),
            "Ryzyko nowe": comma(CLEAN["risk_new"], "b.d."),
            "Zgon": CLEAN["died"].map({"yes": "zmarł", "no": "żyje"}),
            "Wiek": CLEAN["age"],
        }
    )
    table = frame.to_csv(sep=";", index=False)
    path.write_text("\n".join([*TITLES, table]) + ";;;;;\n", encoding="cp1250")


def portuguese(path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["Estudo XY, exportação de 3 de março"])
    book.active.append([])
    book.active.append(["ID", "Sexo", "Risco (%)", "Risco novo (%)", "Óbito", "Idade"])
    for k, one in CLEAN.iterrows():
        risk = None if np.isnan(one["risk"]) else round(100 * one["risk"], 1)
        died = "sim" if one["died"] == "yes" else "não"
        new = round(100 * one["risk_new"], 1)
        book.active.append([k, one["sex"].upper(), risk, new, died, one["age"]])
    book.active["F6"] = 999
    book.active.append(["Total"])
    book.save(path)


def german(path: Path) -> None:
    frame = pd.DataFrame(
        {
            "verstorben": CLEAN["died"].map({"yes": "ja", "no": "nein"}),
            "Geschlecht": CLEAN["sex"].map({"f": "w", "m": "m"}),
            "Risiko": comma(CLEAN["risk"], "k.A."),
            "Risiko neu": [f"{one} %" for one in comma(CLEAN["risk_new"], "", 100)],
            "Alter": CLEAN["age"],
        }
    )
    frame.to_csv(path, sep=";", index=False)


@pytest.mark.parametrize(
    ("write", "name", "told"),
    [
        (polish, "a.csv", ["--encoding cp1250"]),
        (
            portuguese,
            "a.xlsx",
            [
                "columns: the file has ID, Sexo, Risco (%),",
                "row 94 says 'Total': it holds",
                "age:999",
            ],
        ),
        (german, "a.csv", ["'verstorben' seems to be it: --column died=verstorben", "k.A."]),
    ],
)
def test_the_last_line_of_a_check_reads_a_messy_file(
    run: Any, tmp_path: Path, invitation: Path, write: Any, name: str, told: list[str]
) -> None:
    write(tmp_path / name)
    code, out, _ = run("check", invitation, "--data", tmp_path / name)
    assert code == 1
    assert all(text in out for text in told)
    words = shlex.split(out.splitlines()[-1])
    code, out, _ = run("check", invitation, "--data", tmp_path / name, *words, "--json")
    findings = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert {one["check"] for one in findings if one["level"] != "ok"} <= {"data"}
    for score in ("risk", "risk_new"):
        asked = ("--score", score, "--label", "died", "--drop-missing", "--json")
        found = run("exact", tmp_path / name, "-s", "auc", *asked, *words)[1]
        clean = gosta.exact(CLEAN, "auc", score=score, label="died", drop_missing=True)
        assert json.loads(found)["value"] == pytest.approx(clean, abs=1e-12)


def test_a_request_with_a_messy_file_names_the_check(
    run: Any, tmp_path: Path, invitation: Path
) -> None:
    german(tmp_path / "a.csv")
    site = ("--name", "a", "--address", "outbound", "--data", tmp_path / "a.csv")
    code, _, err = run("node", "request", invitation, tmp_path / "a", *site)
    assert (code, err.count("\n")) == (2, 1)
    check = f"gosta check {invitation} --data {tmp_path / 'a.csv'}"
    assert err.endswith(f"; '{check}' says how the file could be read\n")


def test_values_and_units_are_said_in_one_hint(run: Any, tmp_path: Path, invitation: Path) -> None:
    frame = CLEAN.assign(risk=100 * CLEAN["risk"], sex=CLEAN["sex"].map({"f": "Frau", "m": "Mann"}))
    frame.to_csv(tmp_path / "a.csv", index=False)
    out = run("check", invitation, "--data", tmp_path / "a.csv")[1]
    assert "of per cent, this makes shares: --scale risk=0.01" in out
    assert "(--value sex:Frau=f,Mann=m)" in out or "(--value sex:Mann=m,Frau=f)" in out
    assert out.splitlines()[-1].split()[0] == "--value"


def test_a_clean_file_has_no_proposal(run: Any, tmp_path: Path, invitation: Path) -> None:
    CLEAN.to_csv(tmp_path / "a.csv", index=False)
    code, out, _ = run("check", invitation, "--data", tmp_path / "a.csv")
    assert (code, "options" in out) == (0, False)


def test_columns_and_values_that_no_name_tells_are_said_to_be_open(
    run: Any, tmp_path: Path, invitation: Path
) -> None:
    names = {"risk": "P1", "risk_new": "P2", "died": "overleden", "sex": "x", "age": "leeftijd"}
    values = {"sex": CLEAN["sex"].map({"f": "1e", "m": "2e"})}
    CLEAN.assign(**values).rename(columns=names).to_csv(tmp_path / "a.csv", index=False)
    code, out, _ = run("check", invitation, "--data", tmp_path / "a.csv", "--json")
    findings = [json.loads(line) for line in out.splitlines()]
    left = {one["text"]: one for one in findings if one["check"] == "still open"}
    assert code == 1
    risks = left["which column of the file is risk and which risk_new"]
    assert risks["detail"] == "by their values: P1, P2"
    assert risks["hint"] == "--column risk=... --column risk_new=..."
    assert "which column of the file is sex" in left
    assert findings[-1]["text"].startswith("these are not all")
    named = ("--column", "sex=x", "--column", "risk=P1", "--column", "risk_new=P2")
    out = run("check", invitation, "--data", tmp_path / "a.csv", *named)[1]
    assert "sex:1e=...,2e=..." in out or "sex:2e=...,1e=..." in out


def test_per_cent_codes_and_the_second_sheet_are_found_at_once(
    run: Any, tmp_path: Path, invitation: Path
) -> None:
    risks = (100 * CLEAN["risk"]).fillna(999)
    book = openpyxl.Workbook()
    book.active.append(["Leia-me"])
    sheet = book.create_sheet("Doentes")
    sheet.append(["risk", "risk_new", "died", "sex", "age"])
    for k, one in CLEAN.iterrows():
        sheet.append([risks[k], one["risk_new"], one["died"], one["sex"], one["age"]])
    book.save(tmp_path / "a.xlsx")
    out = run("check", invitation, "--data", tmp_path / "a.xlsx")[1]
    last = "--sheet Doentes --scale risk=0.01 --na-values risk:999"
    assert out.splitlines()[-1].strip() == last


def test_options_that_are_given_in_part_are_completed(
    run: Any, tmp_path: Path, invitation: Path
) -> None:
    risks = (100 * CLEAN["risk"]).fillna(999).round(1)
    news = [f"{one} %" for one in comma(CLEAN["risk_new"], "", 100)]
    CLEAN.assign(risk=risks).to_csv(tmp_path / "a.csv", index=False)
    CLEAN.assign(risk_new=news).to_csv(tmp_path / "b.csv", index=False, sep=";", decimal=",")
    for name, given in (("a", ["--scale", "risk=0.01"]), ("b", ["--scale", "risk_new=0.01"])):
        file = ("--data", tmp_path / f"{name}.csv")
        out = run("check", invitation, *file, *given)[1]
        assert "with these the file seems to be read" in out
        words = shlex.split(out.splitlines()[-1])
        assert run("check", invitation, *file, *words)[0] == 0


def test_a_column_that_is_not_there_stops_no_check(
    run: Any, tmp_path: Path, invitation: Path
) -> None:
    CLEAN.to_csv(tmp_path / "a.csv", index=False)
    named = ("--column", "age=leeftijd", "--scale", "lactate=2")
    code, out, _ = run("check", invitation, "--data", tmp_path / "a.csv", *named, "--drop-missing")
    assert code == 1
    assert "unknown column of a.csv 'leeftijd'; there are: risk, risk_new" in out
    assert "values of died: all declared: no, yes" in out


def test_risks_of_another_unit_and_copies_are_found(
    run: Any, tmp_path: Path, invitation: Path
) -> None:
    frame = pd.concat([CLEAN, CLEAN[3:6]]).assign(Nr=[*range(N), 3, 7, 8])
    frame.loc[:2, "Nr"] = 50
    frame.to_csv(tmp_path / "a.csv", index=False)
    file = ("--data", tmp_path / "a.csv", "--drop-missing", "--json")
    found = [json.loads(one) for one in run("check", invitation, *file)[1].splitlines()]
    assert [one["detail"] for one in found if one["check"] == "copies"] == [
        "1 row: line 92",
        "5 rows: line 3, line 4, line 52, line 93, line 94",
    ]
    out = run("check", invitation, *file, "--scale", "risk=0.01")[1]
    found = [json.loads(one) for one in out.splitlines()]
    hint = next(one["hint"] for one in found if one["check"] == "risks of risk")
    assert hint.endswith("If their unit is another: leave out --scale risk")
    (CLEAN.assign(risk=CLEAN["risk"] / 100)).to_csv(tmp_path / "a.csv", index=False)
    assert "If their unit is another: --scale risk=100" in run("check", invitation, *file)[1]
