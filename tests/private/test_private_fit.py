"""Models fitted to several sites' rows in one process, against those of other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lifelines
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import gosta
from gosta.errors import GostaError
from gosta.private import Policy
from gosta.private import fit as private_fit

RNG = np.random.default_rng(7)
N = 700
CUTS = (40, 300)  # rows of three uneven sites
CLOSE = 1e-6
RANGES = {"age": (0, 120), "dose": (-5, 5)}
LEVELS = {"sex": ("F", "M")}


def make_rows() -> dict[str, Any]:
    age, dose = RNG.uniform(20, 90, N), RNG.normal(size=N).clip(-5, 5)
    sex = RNG.choice(["F", "M"], N)
    eta = -3 + 0.04 * age + 0.7 * (sex == "M") + 0.4 * dose
    died = (RNG.random(N) < 1 / (1 + np.exp(-eta))).astype(int)
    died[: CUTS[0]] = 0  # the first site has one class only
    weeks = np.ceil(RNG.exponential(30 * np.exp(-eta / 3))).clip(1, 40)
    return {
        "age": age,
        "dose": dose,
        "sex": sex,
        "died": died,
        "weeks": weeks,
        "seen": (weeks < 40).astype(int),
        "cost": 3 * age + 10 * dose + RNG.normal(size=N),
        "visits": RNG.poisson(np.exp(eta / 3).clip(0, 20)),
    }


ROWS = make_rows()
X = np.column_stack([ROWS["age"], ROWS["sex"] == "M", ROWS["dose"]]).astype(float)
WITH_ONE = sm.add_constant(X)


def parts(rows: Mapping[str, Any] = ROWS) -> list[dict[str, Any]]:
    return [
        {name: values[place] for name, values in rows.items()}
        for place in np.split(np.arange(N), CUTS)
    ]


def fitted(model: str, outcome: str | None = None, **others: Any) -> gosta.models.Fit:
    given = {"columns": ("age", "sex", "dose"), "ranges": RANGES, "levels": LEVELS} | others
    return private_fit(parts(), model, outcome, seed=0, **given)


def check(found: gosta.models.Fit, values: Any, errors: Any) -> None:
    assert np.abs((found.coefficients - values) / errors).max() < CLOSE
    assert found.standard_errors == pytest.approx(errors, rel=CLOSE)
    assert found.rounds <= 12


def test_logistic() -> None:
    found = fitted("logistic", "died", classes=(0, 1))
    other = sm.Logit(ROWS["died"], WITH_ONE).fit(disp=0, tol=1e-14)
    check(found, other.params, other.bse)
    robust = sm.Logit(ROWS["died"], WITH_ONE).fit(disp=0, tol=1e-14, cov_type="HC0")
    assert found.robust().standard_errors == pytest.approx(robust.bse, rel=CLOSE)
    assert found.log_likelihood == pytest.approx(other.llf, rel=1e-8)


def test_a_formula_names_the_outcome() -> None:
    given: dict[str, Any] = {"ranges": RANGES, "classes": (0, 1)}
    found = private_fit(parts(), "logistic", formula="died ~ age + ns(dose, df=2)", **given)
    here = gosta.fit(ROWS, "logistic", formula="died ~ age + ns(dose, df=2)", ranges=RANGES)
    assert found.names == here.names
    assert np.abs((found.coefficients - here.coefficients) / here.standard_errors).max() < CLOSE


def test_logistic_with_penalty() -> None:
    found = fitted("logistic", "died", classes=(0, 1), penalty=2.0)
    scaler = StandardScaler().fit(X)
    other = LogisticRegression(C=0.5, tol=1e-12, max_iter=10_000)
    other.fit(scaler.transform(X), ROWS["died"])
    assert found.coefficients[1:] * scaler.scale_ == pytest.approx(other.coef_[0], abs=CLOSE)


def test_linear() -> None:
    found = fitted("linear", "cost", low=-100, high=500)
    other = sm.OLS(ROWS["cost"], WITH_ONE).fit()
    check(found, other.params, other.bse)


def test_poisson() -> None:
    found = fitted("poisson", "visits", high=60)
    other = sm.Poisson(ROWS["visits"], WITH_ONE).fit(disp=0, method="newton", tol=1e-14)
    check(found, other.params, other.bse)


@pytest.mark.parametrize("strata", [(), (("sex", ("F", "M")),)])
def test_cox_on_a_grid_of_weeks(strata: tuple[Any, ...]) -> None:
    columns = ("age", "dose") if strata else ("age", "sex", "dose")
    given: dict[str, Any] = {"levels": {}} if strata else {}
    found = fitted(
        "cox",
        time="weeks",
        event="seen",
        times=tuple(range(1, 41)),
        strata=strata,
        columns=columns,
        **given,
    )
    table = pd.DataFrame({name: ROWS[name] for name in ("age", "dose", "weeks", "seen")})
    if not strata:
        table.insert(1, "sex", (ROWS["sex"] == "M").astype(int))
    else:
        table["sex"] = ROWS["sex"]
    precise = {"precision": 1e-12}
    other = lifelines.CoxPHFitter().fit(
        table, "weeks", "seen", strata=["sex"] if strata else None, fit_options=precise
    )
    check(found, other.params_.to_numpy(), other.standard_errors_.to_numpy())


def test_folds_validate_as_in_one_place() -> None:
    found = fitted("logistic", "died", classes=(0, 1), folds=4)
    terms: dict[str, Any] = {"columns": ["age", "sex", "dose"], "levels": LEVELS, "ranges": RANGES}
    exact = gosta.fit(ROWS, "logistic", outcome="died", folds=4, **terms)
    assert found.rounds <= 12
    assert len(found.validation) == 8
    for ours, theirs in zip(found.validation, exact.validation, strict=True):
        assert ours.value == pytest.approx(theirs.value, rel=1e-6, abs=1e-6)


def test_auc_is_that_of_one_place() -> None:
    found = fitted("auc", "died", classes=(0, 1), penalty=0.1)
    here = gosta.fit(
        ROWS, "auc", outcome="died", columns=["age", "sex", "dose"], ranges=RANGES, penalty=0.1
    )
    assert found.coefficients == pytest.approx(here.coefficients, abs=CLOSE)


@pytest.mark.parametrize(
    ("changes", "others", "message"),
    [
        ({"dose": ROWS["age"] / 30}, {}, "column dose of the model is a combination of age"),
        ({"died": (ROWS["age"] > 50) * 1}, {}, "--penalty 1"),
        ({"died": np.zeros(N, int)}, {}, "no row over all sites is positive"),
        ({"dose": np.full(N, 2.0)}, {}, "column dose of the model: all rows have the same value"),
        (
            {"sex": np.where(np.arange(N) < 3, "M", "F")},
            {"policy": Policy(min_cell=5)},
            r"column sex\[M\] of the model has fewer than 5 rows",
        ),
        ({}, {"columns": ("age", "age:dose"), "levels": {}, "min_rows_per_column": 400}, "700 row"),
        ({}, {"columns": ()}, "columns is empty"),
        ({}, {"ranges": {**RANGES, "age": (0,)}}, r"range of 'age' = \(0,\) must be two numbers"),
        ({"dose": np.where(np.arange(N) == 50, np.nan, ROWS["dose"])}, {}, "site-1: column 'dose'"),
        ({"sex": np.where(np.arange(N) == 50, "X", ROWS["sex"])}, {}, "none of those declared"),
        ({"age": np.where(np.arange(N) == 50, "old", "60")}, {}, "where a number is needed"),
        ({}, {"classes": (0, 1), "ties": "efron"}, "logistic has no option 'ties'"),
        ({}, {"policy": Policy(statistics=("auc",))}, "suppressed by policy"),
        ({}, {"policy": Policy(min_rows_per_column=11)}, "10 rows for each column of the model"),
    ],
)
def test_what_cannot_be_fitted_is_told(
    changes: dict[str, Any], others: dict[str, Any], message: str
) -> None:
    given = {"columns": ("age", "sex", "dose"), "ranges": RANGES, "levels": LEVELS} | others
    given.setdefault("classes", (0, 1))
    with pytest.raises(GostaError, match=message):
        private_fit(parts({**ROWS, **changes}), "logistic", "died", seed=0, **given)


def test_a_site_without_rows_or_a_column_is_named() -> None:
    sites = parts()
    given: dict[str, Any] = {"columns": "age", "ranges": {"age": (0, 120)}, "classes": (0, 1)}
    assert private_fit(sites, "logistic", "died", **given).names == ("intercept", "age")
    none = {name: values[:0] for name, values in sites[0].items()}
    with pytest.raises(GostaError, match=r"^south: .* no rows"):
        private_fit({"north": sites[0], "south": none}, "logistic", "died", **given)
    with pytest.raises(GostaError, match=r"^south: unknown column of .* 'age'"):
        private_fit({"north": sites[0], "south": {"died": [0, 1]}}, "logistic", "died", **given)


def test_values_beyond_ranges_are_told() -> None:
    found = fitted("linear", "cost", low=0, high=200)
    assert all(one.startswith("site-") for one in found.warnings)
    assert "'cost'" in found.warnings[0]
    assert "beyond 0 to 200, counted as the nearest of these ends" in found.warnings[0]


def test_a_range_that_is_much_too_wide_makes_no_column_of_0_and_1() -> None:
    wide = {**RANGES, "age": (0, 1e6)}
    found = fitted("logistic", "died", classes=(0, 1), ranges=wide, policy=Policy(min_cell=5))
    exact = fitted("logistic", "died", classes=(0, 1))
    assert found.coefficients == pytest.approx(exact.coefficients, abs=1e-5)
