"""Estimators: scikit-learn's own checks, and coefficients against scikit-learn and lifelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from lifelines import CoxPHFitter
from lifelines.datasets import load_rossi
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from gosta.models import (
    GostaAUCRanker,
    GostaClassifier,
    GostaCox,
    GostaPoissonRegressor,
    GostaRegressor,
)

# Their outcome is no count.
NOT_OF_COUNTS = {
    "check_n_features_in_after_fitting",
    "check_regressors_train",
    "check_regressor_data_not_an_array",
    "check_regressors_no_decision_function",
    "check_fit_idempotent",
    "check_fit_check_is_fitted",
    "check_n_features_in",
}
NEEDS_A_SETTING = {"check_array_api_input"}  # of scipy, before it is imported
CHECKED = [
    (GostaClassifier(), NEEDS_A_SETTING),
    (GostaRegressor(), NEEDS_A_SETTING),
    (GostaPoissonRegressor(), NEEDS_A_SETTING | NOT_OF_COUNTS),
]
CHECKS = [
    pytest.param(estimator, check, id=f"{type(estimator).__name__}-{check.func.__name__}-{k}")
    for one, left_out in CHECKED
    for k, (estimator, check) in enumerate(estimator_checks_generator(one))
    if check.func.__name__ not in left_out
]


@pytest.mark.filterwarnings("ignore")  # checks of scikit-learn make warnings of their own
@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def standardised(model: Any, x: Any) -> Any:
    return np.ravel(model.coef_) * np.std(x, axis=0)


@pytest.mark.parametrize("penalty", [0.3, 1.0, 20.0])
def test_logistic_regression_is_that_of_scikit_learn(penalty: float) -> None:
    x, y = load_breast_cancer(return_X_y=True)
    ours = GostaClassifier(penalty=penalty).fit(x, y)
    theirs = make_pipeline(
        StandardScaler(), LogisticRegression(C=1 / penalty, tol=1e-12, solver="newton-cholesky")
    ).fit(x, y)
    assert standardised(ours, x) == pytest.approx(np.ravel(theirs[-1].coef_), abs=1e-8)
    assert ours.predict_proba(x) == pytest.approx(theirs.predict_proba(x), abs=1e-8)
    assert (ours.predict(x) == theirs.predict(x)).all()


@pytest.mark.parametrize("penalty", [0.0, 1.0, 50.0])
def test_linear_regression_is_that_of_scikit_learn(penalty: float) -> None:
    x, y = load_diabetes(return_X_y=True)
    ours = GostaRegressor(penalty=penalty).fit(x, y)
    theirs = make_pipeline(StandardScaler(), Ridge(alpha=penalty)).fit(x, y)
    assert ours.predict(x) == pytest.approx(theirs.predict(x), rel=1e-9)
    assert ours.score(x, y) == pytest.approx(theirs.score(x, y), rel=1e-9)


def test_poisson_regression_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    y = rng.poisson(np.exp(0.5 + x @ [0.3, -0.2, 0.0]))
    ours = GostaPoissonRegressor(penalty=3.0).fit(x, y)
    scaled = make_pipeline(StandardScaler(), PoissonRegressor(alpha=3.0 / 300, tol=1e-12))
    assert ours.predict(x) == pytest.approx(scaled.fit(x, y).predict(x), rel=1e-6)


def test_labels_pipelines_and_searches() -> None:
    x, y = load_breast_cancer(return_X_y=True, as_frame=True)
    names = np.where(y == 1, "benign", "malignant")
    model = GostaClassifier().fit(x[["mean radius", "mean texture"]], names)
    assert list(model.classes_) == ["benign", "malignant"]
    assert list(model.feature_names_in_) == ["mean radius", "mean texture"]
    assert "mean texture" in model.result_.summary()
    assert cross_val_score(GostaClassifier(), x, y, scoring="roc_auc").min() > 0.98
    search = GridSearchCV(GostaClassifier(), {"penalty": [0.1, 1.0, 10.0]}, cv=3).fit(x, y)
    assert search.best_score_ > 0.96


def test_factors_in_a_pipeline() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"stage": rng.choice(["I", "II", "III"], 200)})
    model = make_pipeline(OneHotEncoder(sparse_output=False), GostaClassifier())
    assert model.fit(rows, rows.stage == "II").score(rows, rows.stage == "II") == 1


def test_cox_regression_is_that_of_lifelines() -> None:
    rossi = load_rossi()
    x = rossi.drop(columns=["week", "arrest"])
    y = np.array(
        list(zip(rossi.arrest == 1, rossi.week, strict=True)),
        dtype=[("event", bool), ("time", float)],
    )
    ours = GostaCox(penalty=0.0).fit(x, y)
    theirs = CoxPHFitter().fit(rossi, "week", "arrest", fit_options={"precision": 1e-12})
    assert ours.coef_ == pytest.approx(theirs.params_.to_numpy(), abs=1e-7)
    expected = theirs.predict_log_partial_hazard(x).to_numpy()
    assert ours.predict(x) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(ValueError, match="two fields"):
        GostaCox().fit(x, rossi.week)


def test_scores_of_the_auc_are_those_of_ridge_over_all_pairs() -> None:
    x, y = load_diabetes(return_X_y=True)
    x, y = x[:120], y[:120] > 150
    ours = GostaAUCRanker(penalty=0.01).fit(x, y)
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    pairs = (scaled[y][:, None] - scaled[~y][None]).reshape(-1, x.shape[1])
    theirs = Ridge(alpha=0.01 * len(pairs), fit_intercept=False).fit(pairs, np.ones(len(pairs)))
    assert standardised(ours, x) == pytest.approx(theirs.coef_, rel=1e-8)
    assert ours.score(x, y) == pytest.approx(roc_auc_score(y, ours.decision_function(x)))
