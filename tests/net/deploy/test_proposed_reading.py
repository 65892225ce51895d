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
            ["columns: the file has ID, Sexo, Risco (%),", "row 94 says 'Total'", "age:999"],
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
