"""Fits written into files, and rows predicted from these."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lifelines import CoxPHFitter
from lifelines.datasets import load_rossi

import gosta
from gosta.errors import InputError

ROSSI = load_rossi()
Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("logistic", {"outcome": "arrest", "columns": ["fin", "ns(age, df=3)", "C(race)"]}),
        (
            "linear",
            {"outcome": "age", "columns": ["fin", "prio:C(race)"], "ranges": {"prio": (0, 9)}},
        ),
        ("poisson", {"outcome": "prio", "columns": ["age", "C(paro)"], "penalty": 1.0}),
        ("auc", {"outcome": "arrest", "columns": ["age", "prio"]}),
        ("logistic", {"outcome": "arrest", "columns": ["age", "prio"], "folds": 3}),
        ("cox", {"time": "week", "event": "arrest", "columns": ["fin", "age"], "ties": "breslow"}),
        ("cox", {"time": "week", "event": "arrest", "columns": ["age"], "strata": "paro"}),
        ("logistic", {"outcome": "arrest", "columns": ["age"], "leave_out_site": "paro"}),
    ],
)
def test_what_is_read_is_what_was_written(
    tmp_path: Path, model: str, options: dict[str, Any]
) -> None:
    fit = gosta.fit(ROSSI, model, **options)
    gosta.models.save(fit, tmp_path / "model.json")
    found = gosta.models.load(tmp_path / "model.json")
    assert found.summary() == fit.summary()
    assert json.dumps(found.to_dict()) == json.dumps(fit.to_dict())
    assert (found.predict(ROSSI) == fit.predict(ROSSI)).all()
    if "folds" in options:
        both = (one.predict(ROSSI, out_of_fold=True) for one in (fit, found))
        assert (next(both) == next(both)).all()
    assert found.robust().summary() == fit.robust().summary()
    wider = ROSSI.assign(age=ROSSI["age"] * 2, prio=ROSSI["prio"] * 2)
    assert (found.predict(wider) == fit.predict(wider)).all()


def test_risks_until_a_time() -> None:
    columns = ["fin", "age", "prio"]
    fit = gosta.fit(ROSSI, "cox", time="week", event="arrest", columns=columns, ties="breslow")
    theirs = CoxPHFitter().fit(ROSSI[[*columns, "week", "arrest"]], "week", "arrest")
    for time in (1, 20, 52):
        survival = theirs.predict_survival_function(ROSSI, times=[time]).iloc[0]
        assert fit.predict(ROSSI, time) == pytest.approx(1 - survival, abs=2e-3)
    stratified = gosta.fit(
        ROSSI, "cox", time="week", event="arrest", columns=["age"], strata="paro"
    )
    with pytest.raises(InputError, match="time = 20: the Cox regression has a baseline for each"):
        stratified.predict(ROSSI, 20)
    with pytest.raises(InputError, match="time = 1: the linear regression has no times"):
        gosta.fit(ROSSI, "linear", outcome="age", columns=["prio"]).predict(ROSSI, 1)


def test_files_get_a_column_of_predictions(tmp_path: Path, gosta_: Run) -> None:
    rows = {"Alter": ["50,5", "60", "k.A."], "Tot": ["ja", "nein", "nein"]}
    file, model, scored = tmp_path / "a.csv", tmp_path / "m.json", tmp_path / "scored.csv"
    with file.open("w", newline="") as text:
        writer = csv.writer(text, delimiter=";")
        writer.writerows([list(rows), *zip(*rows.values(), strict=True)])
    ages = np.linspace(40, 80, 60)
    known = {"age": ages, "died": np.where(np.arange(60) % 3 == 0, 0, (ages > 55) * 1)}
    fit = gosta.fit(known, outcome="died", columns=["age"], penalty=1.0)
    gosta.models.save(fit, model)
    words = ("--decimal", ",", "--na-values", "k.A.", "--column", "age=Alter")
    _, shown, _ = gosta_("predict", file, *words, "-m", model, "--out", scored, "--name", "risk")
    assert shown == f"{scored}: 3 rows, 1 without a prediction\n"
    found = gosta.datasets.load(scored)
    assert list(found.columns) == ["age", "Tot", "risk"]
    assert found.columns["risk"][:2] == pytest.approx(fit.predict({"age": [50.5, 60.0]}))
    assert np.isnan(found.columns["risk"][2])
    code, _, error = gosta_("predict", scored, "-m", model, "--out", scored, "--name", "risk")
    assert code == 2
    assert "has a column of this name; choose another one" in error


def test_fit_writes_a_model(tmp_path: Path, gosta_: Run) -> None:
    model = tmp_path / "model.json"
    words = ("breast-cancer", "--columns", "mean radius", "--out", model)
    assert gosta_("fit", *words)[1].endswith(f"model: {model}\n")
    assert gosta.models.load(model).names == ("intercept", "mean radius")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "ridge"}, "unknown model 'ridge'"),
        ({"names": ["intercept"]}, "coefficients are of intercept"),
        ({"coefficients": [1.0]}, "there are 2 coefficients"),
        ({"options": {"colour": 1}}, "logistic has no option 'colour'"),
        ({"ranges": {}}, "'mean radius' has neither a range nor levels"),
        ({"means": "a"}, "does not hold a fitted model"),
        ({"colour": 1}, "does not hold a fitted model"),
    ],
)
def test_wrong_files(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    file = tmp_path / "model.json"
    gosta.models.save(gosta.fit("breast-cancer", columns=["mean radius"]), file)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(InputError, match=message):
        gosta.models.load(file)
    with pytest.raises(InputError, match="no such file"):
        gosta.models.load(tmp_path / "none.json")
