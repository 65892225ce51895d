"""Harmonisation at a site: what a file holds, what became of it, and what is sent of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import ports
import pytest
from commands import command

from gosta.net.config import NODE_FILE, read_network, read_node
from gosta.net.deploy import bundles
from gosta.net.node.rows import read_rows
from gosta.net.node.source import fingerprint

RNG = np.random.default_rng(8)
N = 60
CLEAN = pd.DataFrame(
    {
        "risk": RNG.integers(0, 999, N) / 1000,
        "died": np.where(RNG.random(N) < 0.4, "yes", "no"),
        "sex": np.where(RNG.random(N) < 0.5, "F", "M"),
        "age": RNG.integers(20, 90, N),
    }
)
DICTIONARY = """
[columns.risk]
range = [0, 1]
description = "predicted risk of death"
[columns.died]
type = "class"
classes = ["no", "yes"]
[columns.sex]
type = "class"
classes = ["F", "M"]
[columns.age]
unit = "years"
range = [18, 110]
"""
GERMAN = [
    *("--decimal", ",", "--encoding", "latin-1", "--na-values", "k.A.", "--na-values", "age:-9"),
    *("--column", "died=verstorben", "--column", "risk=Risiko, geschätzt vom Modell"),
    *("--column", "sex=Geschlecht", "--column", "age=Alter"),
    *("--value", "died:ja=yes,nein=no", "--value", "sex:w=F,m=M", "--scale", "risk=0.01"),
]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    return command(capsys, monkeypatch)


def write_german(path: Path, incomplete: bool = False) -> None:
    risks = [f"{risk * 100:.1f} %".replace(".", ",") for risk in CLEAN["risk"]]
    ages = CLEAN["age"].tolist()
    if incomplete:
        risks[4] = risks[17] = "k.A."
        ages[7], ages[8] = -9, 780
    frame = pd.DataFrame(
        {
            "verstorben": CLEAN["died"].map({"yes": "ja", "no": "nein"}),
            "Geschlecht": CLEAN["sex"].map({"F": "w", "M": "m"}),
            "Risiko, geschätzt vom Modell": risks,
            "Alter": ages,
        }
    )
    frame.to_csv(path, sep=";", encoding="latin-1", index=False)


@pytest.fixture
def invitation(run: Any, tmp_path: Path) -> Path:
    (tmp_path / "dictionary.toml").write_text(DICTIONARY)
    settings: list[object] = ["--score", "risk", "--label", "died", "--strata", "sex"]
    settings += ["--dictionary", tmp_path / "dictionary.toml"]
    net = tmp_path / "net"
    code, out, err = run("network", "init", net, "--private", "--enrol", "-s", "auc", *settings)
    assert (code, err) == (0, "")
    assert "column risk      number, 0 to 1: predicted risk of death\n" in out
    return net / "invitation.json"


def request(run: Any, invitation: Path, folder: Path, *more: object) -> tuple[int, str, str]:
    place = ["--name", folder.name, "--listen", f"127.0.0.1:{ports.free()}"]
    found: tuple[int, str, str] = run("node", "request", invitation, folder, *place, *more)
    return found


def test_nothing_is_declared_twice(invitation: Path) -> None:
    task = read_network(invitation.with_name("network.toml")).network
    assert task.private is not None
    assert task.private.ranges == {"risk": (0.0, 1.0)}  # age is in no statistic
    assert task.private.strata == {"sex": ("F", "M")}
    assert task.classes == ("no", "yes")
    assert task.dictionary["age"].unit == "years"
    invited = bundles.read(invitation, bundles.Invitation).network
    assert invited == task
    assert fingerprint(task, invitation.parent) == fingerprint(invited, invitation.parent)


def test_a_harmonised_site_contributes_what_a_clean_one_does(
    run: Any, tmp_path: Path, invitation: Path
) -> None:
    write_german(tmp_path / "german.csv")
    CLEAN.to_csv(tmp_path / "clean.csv", index=False)
    found = []
    for name, options in (("german", GERMAN), ("clean", [])):
        folder = tmp_path / name
        code, out, err = request(
            run, invitation, folder, "--data", tmp_path / f"{name}.csv", *options
        )
        assert (code, err) == (0, "")
        assert "column age   number in years, 18 to 110\n" in out
        site = read_node(folder / NODE_FILE)
        found.append(read_rows(site.network, Path(site.node.data), folder, site.node.format))
    assert found[0].tobytes() == found[1].tobytes()


def test_each_column_is_shown_before_anything_is_sent(
    run: Any, tmp_path: Path, invitation: Path
) -> None:
    write_german(tmp_path / "german.csv", incomplete=True)
    file = ["--data", tmp_path / "german.csv"]
    code, out, _ = run("check", invitation, *file, *GERMAN)
    assert code == 1
    table = out.splitlines()[:5]
    assert max(map(len, table)) <= 80
    assert table[0].split() == ["column", "in", "the", "file", "found", "became", "missing", "out"]
    assert table[1].split()[:2] == ["risk", "Risiko,"]
    assert table[1].split()[-2:] == ["2", "0"]
    assert table[2].startswith("  died    verstorben     text nein, ja ")
    assert table[4].startswith("  age     Alter          number -9 to 780 ")
    assert table[4].split()[-2:] == ["1", "1"]
    assert "missing in fewer than 10 of the rows\n         complete the rows, or leave them" in out
    code, out, _ = run("check", invitation, *file, *GERMAN, "--drop-missing", "--json")
    assert code == 0
    views = {
        one["view"]["name"]: one["view"]
        for one in map(json.loads, out.splitlines())
        if "view" in one
    }
    assert views["died"] == {
        "name": "died",
        "source": "verstorben",
        "found": views["died"]["found"],
        "became": "no, yes",
        "missing": 0,
        "out": 0,
    }
    report = tmp_path / "report.txt"
    run("check", invitation, *file, *GERMAN, "--report", report)
    for value in ("ja", "k.A.", "780", "-9"):
        assert f" {value}" not in report.read_text()


def test_wrong_names_and_values_are_findings(run: Any, tmp_path: Path, invitation: Path) -> None:
    write_german(tmp_path / "german.csv")
    file = ["--data", tmp_path / "german.csv"]
    out = run("check", invitation, *file, "--encoding", "latin-1", "--column", "died=verstorben")[1]
    assert "columns: the file has died, Geschlecht, Risiko" in out
    assert "column risk: not in the file\n         'Risiko, geschätzt vom Modell' seems to" in out
    assert "say what they mean (--value died:nein=no,ja=yes)" in out
    out = run("check", invitation, *file, "--encoding", "latin-1", "--column", "died=tot")[1]
    assert "unknown column of" in out
    code, _, err = run("check", invitation)
    assert (code, "name them with --data" in err) == (2, True)


def test_a_site_leaves_incomplete_rows_out(run: Any, tmp_path: Path, invitation: Path) -> None:
    write_german(tmp_path / "german.csv", incomplete=True)
    data = ["--data", tmp_path / "german.csv", *GERMAN]
    code, _, err = request(run, invitation, tmp_path / "a", *data)
    assert code == 2
    assert err.endswith("correct them, or leave those rows out with --drop-missing\n")
    assert request(run, invitation, tmp_path / "a", *data, "--drop-missing")[0] == 0
    assert read_node(tmp_path / "a" / NODE_FILE).network.drop_missing
    # What is tried comes on top of what node.toml says.
    shown = run("check", tmp_path / "a", "--na-values", "age:780")[1].splitlines()
    assert next(line for line in shown if line.startswith("  age")).split()[-2:] == ["2", "0"]


def test_check_names_cells_beyond_the_range_codes_without_cells_and_all_unknown_values(
    run: Any, tmp_path: Path, invitation: Path
) -> None:
    write_german(tmp_path / "german.csv", incomplete=True)
    file = ["--data", tmp_path / "german.csv"]
    out = run("check", invitation, *file, *GERMAN, "--na-values", "risk:104,2%")[1]
    assert "line 10 has '780'; if it stands for a missing value: --na-values age:780" in out
    assert "'risk:104,2%' is not in the file" in out
    words = [word for word in GERMAN if not word.startswith("died:ja")]
    words.insert(words.index("--value"), "--drop-missing")
    words.remove("--value")
    out = run("check", invitation, *file, *words)[1]
    assert re.search(r"the classes 'ja' \(first in line \d+\), 'nein' \(first in line \d+\)", out)
    assert "rows: cannot be used before the errors above are corrected" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[columns.risk]\nranges = [0, 1]\n", "unknown field `ranges`"),
        ("[columns.risk]\nrange = [1, 0]\n", "must be the lowest and the highest number"),
        ("risk = 1\n", "missing required field `columns`"),
        ("", "missing required field `columns`"),
    ],
)
def test_mistakes_in_a_dictionary(run: Any, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "dictionary.toml"
    file.write_text(text)
    given = ["-s", "auc", "--score", "risk", "--label", "died", "--dictionary", file]
    code, _, err = run("network", "init", tmp_path / "net", "--private", *given)
    assert (code, err.count("\n")) == (2, 1)
    assert message in err


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ((), "ok"),
        (("--value", "died:yes=no,no=yes"), "error"),
        (("--value", "event:1=0,0=1"), "error"),
        (("--scale", "days=0.0329"), "error"),  # a site that counts months
        (("--scale", "days=0.9"), "warning"),
    ],
)
def test_outcomes_that_contradict_times_and_events_are_found(
    run: Any, tmp_path: Path, options: tuple[str, ...], level: str
) -> None:
    rng = np.random.default_rng(4)
    days = rng.integers(1, 900, 80)
    events = (days < 700) & (rng.random(80) < 0.7)
    rows = [
        f"{rng.random():.3f},{'yes' if event and day < 365 else 'no'},{day},{int(event)}"
        for day, event in zip(days.tolist(), events.tolist(), strict=True)
    ]
    (tmp_path / "rows.csv").write_text("\n".join(["risk,died,days,event", *rows, ""]))
    asked = ("--label", "died", "--score", "risk", "--time", "days", "--event", "event")
    given = ("--range", "days=0:900", "--times", "365", "--horizon", "365", "--yes")
    study, net = str(tmp_path / "study"), str(tmp_path / "net")
    run("study", "init", study, *asked, *given)
    run("network", "init", net, "--study", study, "--enrol")
    file = str(tmp_path / "rows.csv")
    shown = run("check", f"{net}/invitation.json", "--data", file, "--json", *options)
    found = {one["check"]: one for one in map(json.loads, shown[1].splitlines())}
    assert found["outcome"]["level"] == level
    assert found["outcome"]["text"].startswith("died and event before 365 contradict each other in")
    assert (found["rows"]["level"] == "error") == (level == "error")
    site = ("--name", "a", "--address", "outbound", "--data", file)
    code, _, err = run("node", "request", f"{net}/invitation.json", tmp_path / "a", *site, *options)
    assert code == 0
    assert ("warning: died and event before 365 contradict" in err) == (level != "ok")
    code, out, _ = run("study", "run", study, "--data", str(tmp_path / "a"))
    assert code == 0
    assert ("days in the study's unit" in " ".join(out.split())) == (level == "error")
