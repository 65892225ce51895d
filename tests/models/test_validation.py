"""Validation by folds, compared with fits of each fold and statistics of their predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fits import fit_rounded
from lifelines.utils import concordance_index
from sklearn.metrics import brier_score_loss, roc_auc_score

from gosta import datasets
from gosta.errors import InputError, NumericalError
from gosta.models.definition import Model, make_model
from gosta.models.design import make_design
from gosta.models.folds import fold_of
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
    place, found = fold_of(rows, folds), np.zeros(len(rows))
    model, _ = model_of(name, 0)
    names = list(model.design.names)
    for fold in range(folds):
        fit = model.fit_rows(rows[place != fold])
        shares = rows[place == fold, : len(names)]
        low, high = model.design.low, model.design.high
        data = datasets.load(dict(zip(names, (low + shares * (high - low)).T, strict=True)))
        found[place == fold] = fit.predict(data)
    return found


def test_folds_follow_from_rows_alone() -> None:
    rows = np.random.default_rng(0).random((5000, 4))
    found = fold_of(rows, 7)
    order = np.random.default_rng(1).permutation(5000)
    assert (fold_of(rows[order], 7) == found[order]).all()
    assert np.bincount(found).min() > 600
    assert (fold_of(rows[:1], 7) == found[:1]).all()


def test_risks_are_validated_on_rows_that_were_not_fitted() -> None:
    model, rows = model_of("logistic", 5)
    found = model.fit_rows(rows)
    alone = model_of("logistic", 0)[0].fit_rows(rows)
    assert np.allclose(found.coefficients, alone.coefficients, rtol=1e-8)
    assert np.allclose(found.robust().standard_errors, alone.robust().standard_errors, rtol=1e-6)
    assert "on rows that were not fitted (5 folds): auc 0.68" in found.summary()
    assert found.to_dict()["validation"][0]["statistic"] == "auc"
    risks, y = own_predictions("logistic", rows, 5), rows[:, -1]
    known = {one.statistic: one for one in found.validation}
    for name, value in {
        "auc": roc_auc_score(y, risks),
        "brier-score": brier_score_loss(y, risks),
    }.items():
        assert known[name].low[0] - 1e-9 <= value <= known[name].high[0] + 1e-9
        assert known[name].value[0] == pytest.approx(value, abs=0.003)
    slope = known["calibration-slope"]
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
    value = roc_auc_score(rows[:, -1], own_predictions("auc", rows, 4))
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
    with pytest.raises(InputError, match=r"folds = 5: linear regression is not validated"):
        make_model("linear", make_design(["a"], data=data), data, outcome="y", folds=5)
