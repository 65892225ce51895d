"""``gosta.fit``: against statsmodels, what it shows, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from lifelines import CoxPHFitter
from lifelines.datasets import load_rossi

import gosta
from gosta.errors import GostaError
from gosta.models.showing import WIDTH

ROWS = 400


def patients(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, sex = rng.uniform(20, 90, ROWS), rng.choice(["F", "M"], ROWS)
    stage = rng.choice(["I", "II", "III"], ROWS)
    eta = -4 + 0.05 * age + 0.5 * (sex == "M") + 0.8 * (stage == "III")
    table = {"age": age, "sex": sex, "stage": stage, "visits": rng.poisson(np.exp(eta / 3 + 1))}
    table["weight of the patient at admission, in kg"] = rng.normal(70, 12, ROWS)
    return pd.DataFrame(
        {**table, "died": np.where(rng.random(ROWS) < 1 / (1 + np.exp(-eta)), 1, 0)}
    )


@pytest.mark.parametrize(
    ("model", "formula"),
    [
        ("logistic", "died ~ age + sex + stage"),
        ("logistic", "died ~ age * sex + bs(age, df=5)".replace("age *", "visits *")),
        ("linear", "visits ~ age * sex + stage"),
        ("poisson", "visits ~ age + sex * stage"),
    ],
)
def test_formulas_fit_as_in_statsmodels(model: str, formula: str) -> None:
    ours = gosta.fit(patients(), model, formula=formula)
    families: dict[str, Callable[..., Any]] = {"logistic": smf.logit, "linear": smf.ols}
    knots = "knots=[{}, {}]".format(*_knots(patients()["age"]))
    families["poisson"] = smf.poisson
    theirs = families[model](formula.replace("df=5", knots), patients()).fit(
        **({} if model == "linear" else {"disp": 0, "method": "newton", "tol": 1e-12})
    )
    order = [_their_name(name) for name in ours.names]
    assert ours.coefficients == pytest.approx(theirs.params[order].to_numpy(), rel=1e-7, abs=1e-9)
    assert ours.standard_errors == pytest.approx(theirs.bse[order].to_numpy(), rel=1e-6)
    assert ours.p_values == pytest.approx(theirs.pvalues[order].to_numpy(), rel=1e-5, abs=1e-12)
    assert ours.log_likelihood == pytest.approx(theirs.llf)
    share = theirs.rsquared if model == "linear" else theirs.prsquared
    assert ours.r_squared == pytest.approx(share)
    found = theirs.conf_int().loc[order].to_numpy()
    assert np.column_stack([ours.low, ours.high]) == pytest.approx(found, rel=1e-6, abs=1e-9)


def _knots(values: Any) -> list[float]:
    low, high = values.min(), values.max()
    return [low + (high - low) * k / 3 for k in (1, 2)]


def _their_name(name: str) -> str:
    if name == "intercept":
        return "Intercept"
    spline = name.startswith("bs(age)")
    if spline:
        knots = "knots=[{}, {}]".format(*_knots(patients()["age"]))
        place = int(name.removeprefix("bs(age)[").removesuffix("]")) - 1
        return f"bs(age, {knots})[{place}]"
    return name.replace("[", "[T.")


@pytest.mark.parametrize("kind", ["HC0"])
def test_robust_errors_are_those_of_statsmodels(kind: str) -> None:
    ours = gosta.fit(patients(), formula="died ~ age + sex", robust=True)
    theirs = smf.logit("died ~ age + sex", patients()).fit(disp=0, tol=1e-12, cov_type=kind)
    order = [_their_name(name) for name in ours.names]
    assert ours.standard_errors == pytest.approx(theirs.bse[order].to_numpy(), rel=1e-6)
    assert ours.errors == "robust"


def test_columns_outcomes_and_values() -> None:
    rows = patients()
    by_formula = gosta.fit(rows, formula="died ~ age + sex")
    by_columns = gosta.fit(rows, columns=["age", "sex"], outcome="died")
    by_values = gosta.fit(rows, columns=["age", "sex"], outcome=rows.died.to_numpy())
    assert by_formula.names == by_columns.names == ("intercept", "age", "sex[M]")
    assert (by_formula.coefficients == by_columns.coefficients).all()
    assert (by_values.coefficients == by_columns.coefficients).all()
    assert gosta.fit(rows, outcome="died").names[-2:] == (
        "visits",
        "weight of the patient at admission, in kg",
    )
    other = gosta.fit(rows, outcome="died", columns="sex", levels={"sex": ["M", "F"]})
    assert other.names == ("intercept", "sex[F]")
    assert gosta.fit(rows, outcome="died", columns="sex", positive=0).coefficients == pytest.approx(
        -gosta.fit(rows, outcome="died", columns="sex").coefficients
    )


def test_rows_with_missing_values() -> None:
    rows = patients()
    rows.loc[3, "sex"], rows.loc[5, "age"], rows["died"] = None, np.nan, rows.died.astype(object)
    rows.loc[9, "died"] = None
    with pytest.raises(GostaError, match="missing"):
        gosta.fit(rows, outcome="died", columns=["age", "sex"])
    found = gosta.fit(rows, outcome="died", columns=["age", "sex"], drop_missing=True)
    complete = gosta.fit(rows.drop(index=[3, 5, 9]), outcome="died", columns=["age", "sex"])
    assert found.n == ROWS - 3
    assert found.coefficients == pytest.approx(complete.coefficients, abs=1e-12)
    assert "left out: 3 rows with missing" in found.summary()
    predicted = found.predict(gosta.datasets.load(rows).select(drop_missing=True))
    assert np.flatnonzero(np.isnan(predicted)).tolist() == [3, 5]


def test_predictions_are_those_of_statsmodels_beyond_the_rows_too() -> None:
    rows = patients()
    ours = gosta.fit(rows, formula="died ~ age + sex")
    theirs = smf.logit("died ~ age + sex", rows).fit(disp=0, tol=1e-12)
    others = patients(1)
    others.loc[0, "age"] = 120.0
    assert ours.predict(others) == pytest.approx(theirs.predict(others).to_numpy(), rel=1e-7)


def test_the_summary_fits_a_terminal() -> None:
    found = gosta.fit(patients(), outcome="died", penalty=0.5, columns=list(patients())[:-1])
    lines = found.summary().splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert lines[0] == "Logistic regression of died (1, against 0)"
    assert "  factors: sex (M against F), stage (II, III against I)" in lines
    assert "  weight of the patient at admission, in kg" in lines
    assert str(found) == found.summary()
    assert repr(found) == "Fit(logistic regression, 400 rows, 7 coefficients)"
    assert "AIC" in gosta.fit(patients(), outcome="died").summary()
    assert "odds ratio" in found._repr_html_()
    assert "<td>penalty" not in found._repr_html_()


def test_plain_values() -> None:
    found = gosta.fit(patients(), "linear", formula="visits ~ age + sex")
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert record["model"] == "linear"
    assert [one["name"] for one in record["coefficients"]] == list(found.names)
    assert record["coefficients"][1]["coefficient"] == found.coefficients[1]
    assert record["levels"] == {"sex": ["F", "M"]}
    assert np.array(record["robust_covariance"]) == pytest.approx(found.robust_covariance)


def test_pictures() -> None:
    found = gosta.fit(patients(), outcome="died", columns=["age", "sex", "stage"])
    ax = found.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == list(found.names[1:])
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "odds ratio for one unit more"
    assert gosta.fit(patients(), "linear", formula="visits ~ age").plot().get_xscale() == "linear"
    with pytest.raises(GostaError, match="has no baseline"):
        found.plot_baseline()
    assert len(found.draw().axes) == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, r"needs the outcome; name it with --outcome \(died"),
        ({"outcome": "stage"}, "needs two classes"),
        ({"outcome": "die"}, "did you mean 'died'"),
        ({"model": "logit", "outcome": "died"}, "unknown model 'logit'"),
        ({"formula": "died ~ age", "columns": ["age"]}, "formula and columns are both given"),
        ({"formula": "died ~ age", "outcome": "died"}, "give one of the two"),
        ({"outcome": "died", "strata": "stage"}, "strata = .*logistic regression has none"),
        ({"outcome": "visits", "model": "linear", "positive": 1}, "positive = 1"),
        ({"outcome": "died", "ties": "efron"}, "logistic has no option 'ties'"),
        ({"outcome": "died", "penalty": -1.0}, "penalty = -1.0"),
        ({"outcome": "died", "columns": ["age", "died"]}, "'died' is the outcome and explains it"),
        ({"outcome": "stage", "model": "linear"}, "where a number is needed"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(GostaError, match=words):
        gosta.fit(patients(), **settings)


@pytest.fixture
def gosta_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, str]]:
    """Return a function that runs the command beside patients.csv and gives what is printed."""
    from gosta.cli.main import main

    monkeypatch.chdir(tmp_path)
    patients().to_csv("patients.csv", index=False)

    def run(*arguments: str) -> tuple[str, str]:
        monkeypatch.setattr("sys.argv", ["gosta", "fit", "patients.csv", *arguments])
        try:
            main()
        except SystemExit as ended:
            assert ended.code in (0, 2)
        out, err = capsys.readouterr()
        return out, err

    return run


def test_the_command(gosta_fit: Callable[..., tuple[str, str]]) -> None:
    out, err = gosta_fit("--outcome", "died", "--columns", "age,sex,bs(age, df=4):sex")
    assert "combination of" in err
    out, err = gosta_fit("--outcome", "died", "--columns", "age,sex,stage", "--model", "logistic")
    expected = gosta.fit("patients.csv", outcome="died", columns=["age", "sex", "stage"])
    assert (out.strip(), err) == (expected.summary(), "")
    out, err = gosta_fit("--formula", "died ~ age * sex", "--levels", "sex=M,F", "--json")
    record = json.loads(out)
    assert [one["name"] for one in record["coefficients"]][2:] == ["sex[F]", "age:sex[F]"]
    out, err = gosta_fit("--outcome", "died", "--columns", "age", "--plot", "forest.svg")
    assert "plot: forest.svg" in out
    assert Path("forest.svg").stat().st_size > 1000


def test_errors_of_the_command(gosta_fit: Callable[..., tuple[str, str]]) -> None:
    for arguments, words in {
        ("--outcome", "died", "--columns", "agee"): "did you mean 'age'",
        ("--outcome", "died", "--columns", "age,"): "a name is empty",
        ("--outcome", "died", "--level", "3"): "level = '3' must be",
        ("--outcome", "died", "--range", "age=5"): "must be COLUMN=LOW:HIGH",
        ("--outcome", "died", "--plot", "x.gif"): "must end in .png",
        ("--outcome", "died", "--option", "ties"): "must be written name=value",
    }.items():
        out, err = gosta_fit(*arguments)
        assert out == ""
        assert words in err
        assert err.count("\n") == 1


def test_strata_baselines_and_their_pictures() -> None:
    rossi = load_rossi()
    found = gosta.fit(
        rossi, "cox", time="week", event="arrest", columns=["age", "prio"], strata="race"
    )
    theirs = CoxPHFitter().fit(
        rossi[["week", "arrest", "age", "prio", "race"]],
        "week",
        "arrest",
        strata=["race"],
        fit_options={"precision": 1e-12},
    )
    assert found.coefficients == pytest.approx(theirs.params_.to_numpy(), abs=1e-7)
    assert found.summary().startswith("Cox regression of week, arrest, by strata of race\n")
    assert len(found.draw().axes) == 2
    labels = [text.get_text() for text in found.plot_baseline().get_legend().get_texts()]
    assert labels == ["race = 0", "race = 1"]
    assert len(found.to_dict()["baselines"]) == 2
    with pytest.raises(GostaError, match=r"Cox regression of .* needs the time; name it"):
        gosta.fit(rossi, "cox", event="arrest")


def test_errors_by_site_are_those_of_statsmodels() -> None:
    rows = patients()
    ours = gosta.fit(rows, formula="died ~ age + sex", by_site="stage")
    kind = {"cov_type": "cluster", "cov_kwds": {"groups": rows.stage, "use_correction": False}}
    theirs = smf.logit("died ~ age + sex", rows).fit(disp=0, tol=1e-12, **kind)
    order = [_their_name(name) for name in ours.names]
    expected = theirs.bse[order].to_numpy() * np.sqrt(3 / 2)
    assert ours.standard_errors == pytest.approx(expected, rel=1e-6)
    assert "robust, by stage" in ours.summary()
    assert "warning: standard errors by 3 sites are too small" in ours.summary()
    assert gosta.fit(rows, outcome="died", by_site="stage").names[:3] == (
        "intercept",
        "age",
        "sex[M]",
    )
    rows.loc[4, "stage"] = None
    found = gosta.fit(rows, formula="died ~ age", by_site="stage", drop_missing=True)
    assert (found.n, found.assumed["rows_dropped"]) == (ROWS - 1, 1)


def test_times_and_events_explain_nothing() -> None:
    rows = {"age": [50.0, 61, 72, 43], "time": [3.0, 2, 1, 4], "event": [1, 0, 1, 1]}
    assert gosta.fit(rows, "cox", min_rows_per_column=1, penalty=1).names == ("age",)


def test_identifiers_and_dates_explain_nothing_unless_they_are_named() -> None:
    rows = patients()
    rows["patient"] = [f"P{k}" for k in range(ROWS)]
    rows["admitted"] = pd.date_range("2024-01-01", periods=ROWS).strftime("%Y-%m-%d")
    found = gosta.fit(rows, outcome="died")
    assert "columns left out: patient, admitted" in found.summary()
    assert found.names == gosta.fit(patients(), outcome="died").names
    assert "left out" not in gosta.fit(rows, formula="died ~ age").summary()


def test_few_rows_are_fitted_with_a_warning() -> None:
    x = np.random.default_rng(0).normal(size=(20, 6))
    rows = {**{f"x{k}": column for k, column in enumerate(x.T)}, "y": x[:, 0] + x[:, 1] ** 2}
    found = gosta.fit(rows, "linear", outcome="y")
    assert "20 rows for 6 columns are fewer than 10 for each" in found.warnings[0]
    with pytest.raises(gosta.NumericalError, match=r"20 rows for 6 columns are fewer than 4"):
        gosta.fit(rows, "linear", outcome="y", min_rows_per_column=4)
