"""Validation by folds, compared with fits of each fold and statistics of their predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from fits import fit_rounded
from lifelines.datasets import load_kidney_transplant, load_rossi
from lifelines.utils import concordance_index
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import brier_score_loss, r2_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import gosta
from gosta import datasets
from gosta.errors import InputError, NumericalError
from gosta.models.definition import Model, make_model
from gosta.models.design import make_design
from gosta.models.folds import folds_of
from gosta.runtime.arrays import Floats

NAMES = ["a", "b", "c"]


def model_of(name: str, folds: int, n: int = 400) -> tuple[Model, Floats]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    predictor = x @ [1.0, -0.5, 0.0]
    y = (rng.random(n) < 1 / (1 + np.exp(-predictor))) * 1
    life, end = rng.exponential(np.exp(-predictor)), rng.exponential(2.0, n)
    columns = {"time": np.minimum(life, end), "event": (life <= end) * 1, "y": y}
    data = datasets.load({**dict(zip(NAMES, x.T, strict=True)), **columns})
    roles: dict[str, Any] = {"outcome": "y"}
    if name == "cox":
        roles = {"time": "time", "event": "event"}
    model = make_model(name, make_design(NAMES, data=data), data, folds=folds, **roles)
    return model, model.rows(data).x


def own_predictions(name: str, rows: Floats, folds: int) -> Floats:
    """Return predictions of rows by the fits without their folds."""
    place, found = rows[:, -1], np.zeros(len(rows))
    model, _ = model_of(name, 0)
    for fold in range(folds):
        fit = model.fit_rows(rows[place != fold])
        found[place == fold] = fit.predict(data_of(model, rows[place == fold]))
    return found


def data_of(model: Model, rows: Floats) -> datasets.Data:
    """Return the columns of encoded rows in their units."""
    low, high, names = model.design.low, model.design.high, model.design.names
    columns = low + rows[:, : len(names)] * (high - low)
    return datasets.load(dict(zip(names, columns.T, strict=True)))


def test_folds_follow_from_rows_alone() -> None:
    rows = np.random.default_rng(0).random((5000, 4))
    found = folds_of(rows, 7)
    order = np.random.default_rng(1).permutation(5000)
    assert (folds_of(rows[order], 7) == found[order]).all()
    assert np.bincount(found).min() > 600
    assert (folds_of(rows[:1], 7) == found[:1]).all()


def test_rows_that_are_the_same_are_in_different_folds() -> None:
    rows = np.random.default_rng(0).integers(0, 2, (1000, 3)).astype(float)
    found = folds_of(rows, 5)
    for kind in np.unique(rows, axis=0):
        counts = np.bincount(found[(rows == kind).all(axis=1)], minlength=5)
        assert counts.min() > 0.5 * counts.mean()
    table = load_rossi()
    for columns in (["fin", "paro", "wexp"], ["age"]):
        fit = gosta.fit(table, outcome="arrest", columns=columns, folds=10)
        other, given = LogisticRegression(C=1e9), (table[columns], table["arrest"])
        cut = StratifiedKFold(10, shuffle=True, random_state=0)
        theirs = cross_val_predict(other, *given, cv=cut, method="predict_proba")
        known = {one.statistic: one.value[0] for one in fit.validation}
        error = brier_score_loss(table["arrest"], theirs[:, 1])
        assert known["brier-score:validated"] == pytest.approx(error, abs=4e-3)
        assert known["brier-score:apparent"] < known["brier-score:validated"]


def test_rows_that_left_before_the_first_event_are_validated() -> None:
    table = load_kidney_transplant()
    assert (table["time"] < table["time"][table["death"] == 1].min()).any()
    fit = gosta.fit(table, "cox", time="time", event="death", folds=5)
    predicted = -fit.predict(table, out_of_fold=True)
    index = concordance_index(table["time"], predicted, table["death"])
    assert fit.validation[0].low[0] <= index <= fit.validation[0].high[0]


def test_risks_are_validated_on_rows_that_were_not_fitted() -> None:
    model, rows = model_of("logistic", 5)
    found = model.fit_rows(rows)
    alone = model_of("logistic", 0)[0].fit_rows(rows)
    assert np.allclose(found.coefficients, alone.coefficients, rtol=1e-8)
    assert np.allclose(found.robust().standard_errors, alone.robust().standard_errors, rtol=1e-6)
    assert "Validation in 5 folds, on rows that were not fitted" in found.summary()
    assert found.to_dict()["validation"][0]["statistic"] == "auc:validated"
    risks, y = own_predictions("logistic", rows, 5), rows[:, -2]
    own = 1 / (1 + np.exp(-found.linear_predictor(data_of(model, rows))))
    known = {one.statistic: one for one in found.validation}
    for name, value in {
        "auc:validated": roc_auc_score(y, risks),
        "auc:apparent": roc_auc_score(y, own),
        "brier-score:validated": brier_score_loss(y, risks),
        "brier-score:apparent": brier_score_loss(y, own),
    }.items():
        assert known[name].low[0] - 1e-9 <= value <= known[name].high[0] + 1e-9
        assert known[name].value[0] == pytest.approx(value, abs=0.003)
    slope = known["calibration-slope:validated"]
    assert 0.7 < slope.value[0] < 1.0
    assert slope.interval is not None
    assert slope.interval[0] < 1 < slope.interval[1]


def test_scores_are_validated_by_their_order() -> None:
    model, rows = model_of("cox", 4)
    found = model.fit_rows(rows).validation[0]
    hazards = own_predictions("cox", rows, 4)
    _, data = model_of("cox", 0)
    value = concordance_index(data[:, 3], -hazards, rows[:, 4])
    assert found.low[0] <= value <= found.high[0]
    assert found.value[0] == pytest.approx(value, abs=0.02)
    model, rows = model_of("auc", 4)
    found = model.fit_rows(rows).validation[0]
    value = roc_auc_score(rows[:, -2], own_predictions("auc", rows, 4))
    assert found.value[0] == pytest.approx(value, abs=0.01)


@pytest.mark.parametrize("name", ["logistic", "cox", "auc"])
def test_sums_of_rounded_features_give_the_same_validation(name: str) -> None:
    model, rows = model_of(name, 3)
    exact, found = model.fit_rows(rows), fit_rounded(model, rows, 40)
    assert np.allclose(found.coefficients, exact.coefficients, atol=1e-8)
    assert found.rounds <= 12
    for ours, theirs in zip(found.validation, exact.validation, strict=True):
        assert np.allclose(ours.value, theirs.value, atol=1e-6)
        assert ours.interval is not None


def test_folds_are_not_too_small() -> None:
    model, rows = model_of("logistic", 20, n=500)
    message = r"in a fold of the rows, .* rows for 3 columns are fewer than 10 for each"
    with pytest.raises(NumericalError, match=message):
        model.fit_rows(rows)


def test_errors() -> None:
    with pytest.raises(InputError, match=r"folds = 1 must be 2 to 20, or 0"):
        model_of("logistic", 1)
    with pytest.raises(InputError, match=r"folds = 2.5 must be a whole number"):
        model_of("logistic", 2.5)  # type: ignore[arg-type]
    data = datasets.load({"a": [1.0, 2.0, 4.0], "y": [1.0, 2.0, 3.0]})
    with pytest.raises(InputError, match=r"folds = 5: Poisson regression is not validated"):
        make_model("poisson", make_design(["a"], data=data), data, outcome="y", folds=5)


ROWS = load_breast_cancer()
NAMES_OF_ROWS = [str(name) for name in ROWS.feature_names[:8]]


def scaled(model: object) -> Pipeline:
    return make_pipeline(StandardScaler(), model)


@pytest.mark.parametrize("name", ["logistic", "linear"])
def test_predictions_are_those_of_scikit_learn_in_the_same_folds(name: str) -> None:
    x, folds = ROWS.data[:, :8], 5
    y = ROWS.target if name == "logistic" else x[:, 0] + np.sin(np.arange(len(x)))
    table = {**dict(zip(NAMES_OF_ROWS, x.T, strict=True)), "y": y}
    fit = gosta.fit(table, name, outcome="y", penalty=2.0, folds=folds)
    place = fit.model.rows(datasets.load(table).select(label="y")).x[:, -1]
    theirs = np.zeros(len(y))
    for fold in range(folds):
        if name == "logistic":
            other = scaled(LogisticRegression(C=0.5, tol=1e-12, max_iter=10_000))
        else:
            other = scaled(Ridge(alpha=2.0))
        other.fit(x[place != fold], y[place != fold])
        held_out = x[place == fold]
        theirs[place == fold] = (
            other.predict_proba(held_out)[:, 1] if name == "logistic" else other.predict(held_out)
        )
    assert fit.predict(table, out_of_fold=True) == pytest.approx(theirs, abs=1e-6)
    if name == "linear":
        assert fit.validation[0].value[0] == pytest.approx(r2_score(y, theirs), abs=1e-9)
        assert fit.validation[1].value[0] == pytest.approx(r2_score(y, fit.predict(table)))


def test_only_models_with_folds_predict_out_of_them() -> None:
    fit = gosta.fit("breast-cancer", columns=["mean radius"])
    with pytest.raises(InputError, match="was not validated; fit it with folds"):
        fit.predict("breast-cancer", out_of_fold=True)


def sites() -> pd.DataFrame:
    rng, n = np.random.default_rng(3), 600
    table = pd.DataFrame(rng.normal(size=(n, 3)), columns=NAMES)
    predictor = table["a"] - 0.5 * table["b"]
    table["died"] = (rng.random(n) < 1 / (1 + np.exp(-predictor))) * 1
    table["cost"] = predictor + rng.normal(size=n)
    life, end = rng.exponential(np.exp(-predictor)), rng.exponential(2.0, n)
    table["days"], table["seen"] = np.minimum(life, end), (life <= end) * 1
    return table.assign(hospital=np.array(["north", "south", "west", "west"])[np.arange(n) % 4])


def test_each_site_is_predicted_by_the_others() -> None:
    table = sites()
    terms: dict[str, Any] = {"columns": NAMES, "leave_out_site": "hospital"}
    fit = gosta.fit(table, outcome="died", **terms)
    known = {one.statistic: one for one in fit.left_out}
    for group in known["auc"].groups:
        is_own = table["hospital"] == group.group
        other = gosta.fit(table[~is_own], outcome="died", columns=NAMES)
        risks = table[is_own].assign(risk=other.predict(table[is_own]))
        for name in ("auc", "brier-score", "calibration-slope"):
            alone = gosta.exact(risks, name, score="risk", label="died", interval=0.95)
            found = next(one for one in known[name].groups if one.group == group.group)
            assert found[:4] == pytest.approx(alone[:4], rel=1e-9)
    compared = known["auc"].heterogeneity
    assert compared is not None
    assert compared.groups == 3
    assert known["auc"].value == compared.mean
    assert "auc, mean" in fit.summary()
    assert "Each hospital predicted by the fit to the others" in fit._repr_html_()
    assert fit.to_dict()["left_out"][0]["by"] == "hospital"
    survival = gosta.fit(table, "cox", time="days", event="seen", **terms).left_out[0]
    own = table[table["hospital"] == "north"]
    other = gosta.fit(
        table[table["hospital"] != "north"], "cox", time="days", event="seen", columns=NAMES
    )
    value = concordance_index(own["days"], -other.predict(own), own["seen"])
    assert survival.groups[0].value == pytest.approx(value, abs=1e-12)
    cost = gosta.fit(table, "linear", outcome="cost", **terms).left_out[0]
    other = gosta.fit(table[table["hospital"] != "north"], "linear", outcome="cost", columns=NAMES)
    assert cost.groups[0].value == pytest.approx(r2_score(own["cost"], other.predict(own)))


def test_a_site_of_one_class_and_one_that_the_others_cannot_predict() -> None:
    table = sites()
    table.loc[table["hospital"] == "north", "died"] = 0
    found = gosta.fit(table, outcome="died", columns=NAMES, leave_out_site="hospital").left_out
    assert found[0].groups[0].value is None
    assert found[0].groups[0].reason
    assert found[0].heterogeneity is not None
    table["only"] = np.where(table["hospital"] == "west", np.arange(len(table)), 0)
    fit = gosta.fit(table, outcome="died", columns=["a", "only"], leave_out_site="hospital")
    assert "all rows have the same value" in fit.left_out[0].groups[2].reason


def test_what_cannot_be_left_out_is_told() -> None:
    table = sites()
    given: dict[str, Any] = {"columns": ["a"], "leave_out_site": "hospital"}
    with pytest.raises(InputError, match="'hospital' has one value only; name a column of sites"):
        gosta.fit(table[table["hospital"] == "west"], outcome="died", **given)
    with pytest.raises(InputError, match="'hospital': Poisson regression is not validated"):
        gosta.fit(table, "poisson", outcome="died", **given)
    with pytest.raises(InputError, match="less those without one are this site's own"):
        gosta.private.fit([table, table, table], "logistic", "died", **given)
