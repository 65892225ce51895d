"""Models of known data sets, cut into four uneven sites in the order of the outcome, against those
of scikit-learn, statsmodels and lifelines.
"""

from __future__ import annotations

import itertools
from typing import Any

import lifelines
import lifelines.datasets
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import gosta
from gosta.net.deploy.shared_settings import round_range
from gosta.private import fit as private_fit

CLOSE = 1e-6  # standard errors


def by_sites(table: pd.DataFrame, columns: list[str], model: str, **options: Any) -> gosta.Fit:
    """Return the fit of sites of 1/50, about 1/7, 1/6 and the rest of the rows."""
    outcome = options.get("outcome", options.get("event"))
    table = table.sort_values(outcome, kind="stable").reset_index(drop=True)
    n = len(table)
    ends = [0, max(3, n // 50), n // 6, n // 3, n]
    sites = [
        {name: table[name].to_numpy()[a:b] for name in table} for a, b in itertools.pairwise(ends)
    ]
    ends_of = {name: (float(table[name].min()), float(table[name].max())) for name in columns}
    ranges = {name: round_range(*both) for name, both in ends_of.items()}
    found = private_fit(sites, model, columns=columns, ranges=ranges, seed=0, **options)
    assert found.n == n
    assert found.rounds <= 12
    return found


def check(found: gosta.Fit, values: Any, errors: Any) -> None:
    assert np.abs((found.coefficients - np.asarray(values)) / np.asarray(errors)).max() < CLOSE


def bundled(name: str) -> pd.DataFrame:
    table: pd.DataFrame = getattr(sm.datasets, name).load_pandas().data
    return table


@pytest.mark.parametrize(
    ("name", "outcome", "columns"),
    [
        ("spector", "GRADE", ["GPA", "TUCE", "PSI"]),
        ("anes96", "vote", ["popul", "TVnews", "selfLR", "age", "educ", "income"]),
        ("fair", "unfaithful", ["rate_marriage", "age", "yrs_married", "children", "educ"]),
    ],
)
def test_logistic(name: str, outcome: str, columns: list[str]) -> None:
    table = bundled(name)
    if name == "fair":
        table = table.assign(unfaithful=(table["affairs"] > 0).astype(int))
    found = by_sites(table, columns, "logistic", outcome=outcome, classes=(0, 1))
    other = sm.Logit(table[outcome], sm.add_constant(table[columns])).fit(disp=0, tol=1e-14)
    check(found, other.params, other.bse)


@pytest.mark.parametrize("load", [datasets.load_breast_cancer, datasets.load_wine])
def test_logistic_with_penalty(load: Any) -> None:
    """All 30 columns of the cancer data, which are nearly collinear."""
    x, outcome = load().data, (load().target == 1).astype(int)
    names = [f"x{k}" for k in range(x.shape[1])]
    table = pd.DataFrame(x, columns=names).assign(y=outcome)
    found = by_sites(table, names, "logistic", outcome="y", classes=(0, 1), penalty=1.0)
    scaler = StandardScaler().fit(x)
    other = LogisticRegression(C=1, tol=1e-14, max_iter=1000, solver="newton-cholesky")
    other.fit(scaler.transform(x), outcome)
    slopes = found.coefficients[1:]
    assert np.abs(slopes - other.coef_[0] / scaler.scale_).max() < 1e-6 * np.abs(slopes).max()
    assert np.abs((slopes - other.coef_[0] / scaler.scale_) / found.standard_errors[1:]).max() < (
        CLOSE
    )


@pytest.mark.parametrize(
    ("name", "outcome", "columns"),
    [("diabetes", "y", [f"x{k}" for k in range(10)]), ("fair", "affairs", ["age", "educ"])],
)
def test_linear(name: str, outcome: str, columns: list[str]) -> None:
    if name == "diabetes":
        loaded = datasets.load_diabetes()
        table = pd.DataFrame(loaded.data, columns=columns).assign(y=loaded.target)
    else:
        table = bundled(name)
    low, high = round_range(table[outcome].min(), table[outcome].max())
    found = by_sites(table, columns, "linear", outcome=outcome, low=low, high=high)
    other = sm.OLS(table[outcome], sm.add_constant(table[columns])).fit()
    check(found, other.params, other.bse)


def test_poisson() -> None:
    table = bundled("randhie").iloc[::4]
    columns = ["lncoins", "idp", "lpi", "fmde", "physlm", "disea", "hlthg", "hlthf", "hlthp"]
    found = by_sites(table, columns, "poisson", outcome="mdvis", high=100)
    model = sm.Poisson(table["mdvis"], sm.add_constant(table[columns]))
    other = model.fit(disp=0, method="newton", tol=1e-14, maxiter=100)
    check(found, other.params, other.bse)


@pytest.mark.parametrize(
    ("name", "time", "event", "columns"),
    [
        ("rossi", "week", "arrest", ["fin", "age", "race", "wexp", "mar", "paro", "prio"]),
        ("gbsg2", "time", "cens", ["age", "tsize", "pnodes", "progrec", "estrec"]),
        ("larynx", "time", "death", ["age", "Stage_II", "Stage_III", "Stage_IV"]),
        ("kidney_transplant", "time", "death", ["age", "black_male", "black_female"]),
    ],
)
def test_cox(name: str, time: str, event: str, columns: list[str]) -> None:
    table = getattr(lifelines.datasets, f"load_{name}")()[[*columns, time, event]].astype(float)
    times = tuple(np.unique(table[time][table[event] == 1]).tolist())
    found = by_sites(table, columns, "cox", time=time, event=event, times=times)
    other = lifelines.CoxPHFitter().fit(table, time, event, fit_options={"precision": 1e-13})
    check(found, other.params_, other.standard_errors_)
