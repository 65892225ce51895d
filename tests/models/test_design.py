"""Designs: columns of models against patsy and formulaic, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

# X
from hypothesis import given, settings
from hypothesis import strategies as st
from patsy import dmatrix

import gosta
from gosta.datasets.data import Data
from gosta.errors import GostaError
from gosta.models.design import Design, make_design, parse_formula

ROWS = 120
TERMS = [
    "age",
    "sex",
    "stage",
    "k",
    "mean radius",
    "age:sex",
    "stage:age",
    "ns(age, df=3)",
    "age:k",
]
TERMS += ["bs(k, df=3):sex", "I(k**3)", "I(`mean radius`**2)", "log(age):stage"]
LEVELS = {"sex": ("F", "M"), "stage": ("II", "I", "III")}


def table(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(20, 90, ROWS),
        "mean radius": rng.normal(size=ROWS),
        "sex": rng.choice(["F", "M"], ROWS),
        "stage": rng.choice(["I", "II", "III"], ROWS),
        "k": rng.integers(1, 5, ROWS),
        "died": rng.choice(["no", "yes"], ROWS),
    }


def data(**changes: Any) -> Data:
    return gosta.datasets.load({**table(), **changes})


@pytest.mark.parametrize(
    "formula",
    [
        "age + sex",
        "age * sex + C(stage)",
        "stage * sex * age + k",
        "age:sex",
        "C(k) + C(k):age + np.log(age)",
        "I(age ** 2) + age + np.sqrt(age):sex",
        "stage + stage:sex",
    ],
)
def test_columns_are_those_of_patsy(formula: str) -> None:
    ours = make_design(f"~ {formula}", data=data())
    theirs = np.asarray(dmatrix(formula, table()))[:, 1:]
    found = ours.matrix(data())
    order = np.lexsort(np.round(theirs, 9))
    assert found[:, np.lexsort(np.round(found, 9))] == pytest.approx(theirs[:, order], rel=1e-12)


@pytest.mark.parametrize(("df", "knots"), [(3, []), (4, [59.0]), (6, [30.0, 45.5, 80.0])])
def test_b_splines_are_those_of_patsy(df: int, knots: list[float]) -> None:
    chosen = f"~ bs(age, df={df}, knots={knots})"
    ours = make_design(chosen, ranges={"age": (18, 100)}).matrix(data())
    theirs = dmatrix(f"bs(age, knots={knots}, lower_bound=18, upper_bound=100)", table())
    assert ours == pytest.approx(np.asarray(theirs)[:, 1:], abs=1e-12)


def test_natural_splines_span_those_of_patsy() -> None:
    ours = make_design("~ ns(age, df=4)", ranges={"age": (18, 100)})
    assert ours.factors[0][0].knots == pytest.approx((38.5, 59.0, 79.5))
    theirs = np.asarray(
        dmatrix("cr(age, knots=[38.5, 59, 79.5], lower_bound=18, upper_bound=100) - 1", table())
    )
    both = np.column_stack([np.ones(ROWS), ours.encode(data())])
    fitted = both @ np.linalg.lstsq(both, theirs, rcond=None)[0]
    assert fitted == pytest.approx(theirs, abs=1e-9)


def test_names_and_knots() -> None:
    design = make_design("~ age * sex + bs(`mean radius`, df=4) + C(k)", data=data())
    assert design.names == (
        "age",
        "sex[M]",
        *(f"bs(mean radius)[{k}]" for k in range(1, 5)),
        "k[2]",
        "k[3]",
        "k[4]",
        "age:sex[M]",
    )
    assert design.columns == ("age", "sex", "mean radius", "k")
    assert ("sex", "factor: M, against F") in design.describe()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(TERMS), min_size=1, unique=True), st.integers(0, 5))
def test_shares_and_the_same_design_of_its_terms(terms: list[str], seed: int) -> None:
    rows = gosta.datasets.load(table(seed))
    design = make_design(terms, data=rows)
    shares = design.encode(rows)
    assert shares.min() >= 0
    assert shares.max() <= 1
    again = make_design(design.terms, ranges=design.ranges, levels=design.levels)
    assert again.names == design.names
    assert (again.encode(rows) == shares).all()
    known = shares * (design.high - design.low) + design.low
    assert known == pytest.approx(design.matrix(rows), rel=1e-9, abs=1e-9)


def test_declared_ranges_and_levels() -> None:
    design = make_design(
        ["age", "mean radius", "sex", "stage"],
        ranges={"age": (30, 60), "mean radius": (-4, 4)},
        levels=LEVELS,
    )
    assert design.names == ("age", "mean radius", "sex[M]", "stage[I]", "stage[III]")
    assert design.matrix(data())[:, 0] == pytest.approx(np.clip(table()["age"], 30, 60))
    assert design.ranges == {"age": (30, 60), "mean radius": (-4, 4)}
    assert design.levels == LEVELS


def test_rows_beyond_a_range_of_rows_are_not_clipped() -> None:
    design = make_design(["age", "ns(age, df=2)"], data=data())
    beyond = gosta.datasets.load({"age": [0.0, 200.0, 300.0]})
    found = design.matrix(beyond)
    assert found[:, 0].tolist() == [0, 200, 300]
    slopes = np.diff(found[1:, 1:], axis=0) / 100
    more = gosta.datasets.load({"age": [400.0]})
    assert design.matrix(more)[0, 1:] == pytest.approx(found[2, 1:] + 100 * slopes[0])


def test_which_columns_are_factors() -> None:
    changes = {
        "grade": np.array(["1", "2", "3+"], dtype=object)[table()["k"] % 3],
        "flag": table()["age"] > 50,
        "ordered": pd.Categorical(table()["stage"], ["III", "II", "I"], ordered=True),
        "alive": np.where(table()["age"] > 50, "alive", "dead"),
    }
    rows = data(**changes)
    design = make_design(["grade", "flag", "ordered", "alive"], data=rows)
    assert design.levels == {
        "grade": ("1", "2", "3+"),
        "ordered": ("III", "II", "I"),
        "alive": ("alive", "dead"),
    }
    assert design.names[2] == "flag"


def test_text_of_many_values_is_a_factor() -> None:
    rows = data(ward=[f"ward {chr(97 + k % 20)}" for k in range(ROWS)])
    assert len(make_design(["ward"], data=rows).names) == 19


def test_names_that_python_or_models_use() -> None:
    rows = data(**{"class": table()["age"], "_0_": table()["age"] ** 2})
    assert make_design(["class", "class:sex"], data=rows).names[0] == "class"
    assert make_design("~ class + `_0_`:`mean radius`", data=rows).columns[0] == "class"
    assert make_design(["`class`"], data=rows).columns == ("class",)
    with pytest.raises(GostaError, match="a column is called 'intercept'"):
        make_design(["intercept"], data=data(intercept=table()["age"]))


def test_missing_values() -> None:
    sex = table()["sex"].astype(object)
    sex[3] = None
    age = table()["age"]
    age[7] = np.nan
    rows = data(sex=sex, age=age)
    with pytest.raises(GostaError, match="missing"):
        make_design(["age"], data=rows)
    with pytest.raises(GostaError, match=r"'sex' has 1 missing values \(first in row 4\)"):
        make_design(["sex"], data=rows)
    kept = rows.select(drop_missing=True)
    found = make_design(["age", "sex", "bs(age)"], data=kept).encode(kept)
    assert np.flatnonzero(np.isnan(found[:, 0])).tolist() == [7]
    assert np.flatnonzero(np.isnan(found[:, 1])).tolist() == [3]
    assert np.flatnonzero(np.isnan(found[:, 2:]).all(axis=1)).tolist() == [7]


def test_a_dot_is_all_other_columns() -> None:
    assert parse_formula("died ~ .", data()).terms == ("age", "`mean radius`", "sex", "stage", "k")
    assert parse_formula("~ age + sex").outcome is None


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ("~ stage:sex", r"needs their own columns, too; write stage \* sex"),
        ("a ~ b ~ c", "Operator `~` is incorrectly used"),
        ("died ~ age - 1", "leaves out the intercept"),
        ("died ~ foo(age)", r"term 'foo\(age\)' cannot be read; a term is a column"),
        ("died ~ bs(age, df=2)", "df = 2 must be a whole number, 3 to 20"),
        ("died ~ bs(age, knots=[150])", "knots must increase within"),
        ("died ~ log(`mean radius`)", "declare one above 0"),
        ("died ~ I(age + 1)", "cannot be read"),
        ("died ~ agee", "unknown column of the data 'agee'; did you mean 'age'"),
        ("died ~ age | sex", "one outcome and one sum"),
        ([], "columns is empty"),
        ([3], "3 is no column's name"),
        (["name"], "'name' has 120 different values in 120 rows"),
        (["same"], r"'same' has one value only \(3\)"),
        (["one"], r"'one' has one value only \(A\)"),
        (["comma"], "if commas are decimal signs, say so: --decimal ,"),
        (["day"], "the date '2024-01-01'"),
        (["typed"], "cells that are no numbers|where a number is needed"),
    ],
)
def test_what_is_refused(terms: Any, words: str) -> None:
    typed = np.array([str(each) for each in table()["age"]], dtype=object)
    typed[3] = "unknown"
    rows = data(
        comma=[f"{age:.1f}".replace(".", ",") for age in table()["age"]],
        day=[f"2024-01-{1 + k % 28:02}" for k in range(ROWS)],
        name=[f"n{k}" for k in range(ROWS)],
        same=[3] * ROWS,
        one=["A"] * ROWS,
        typed=typed,
    )
    with pytest.raises(GostaError, match=words):
        make_design(terms, data=rows)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "'age' has neither a range nor levels, which all sites need; declare them: --range"),
        ({"ranges": {"age": (5, 5)}}, "range of 'age' = 5:5: the first must be less"),
        ({"ranges": {"age": (0, 1)}, "levels": {"age": "ab"}}, "has a range and levels"),
        ({"ranges": {"age": (0, 1), "k": (0, 1)}}, "range of 'k': this column is not read"),
        ({"levels": {"age": ["a"]}}, r"one value only \(a\)"),
    ],
)
def test_what_is_to_be_declared(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(GostaError, match=words):
        make_design(["age"], **settings)


def test_values_that_are_not_declared() -> None:
    design: Design = make_design(["stage"], levels={"stage": ["I", "II"]})
    with pytest.raises(GostaError, match=r"has the value 'III' .*none of those declared"):
        design.encode(data())
