"""Table 1: over rows in one place as pandas has it, and by private sums within its brackets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gosta
from gosta.errors import DataError, InputError
from gosta.measures.table_one import standardised_differences
from gosta.net.config import read_network
from gosta.sketches import Bins, make_layout
from gosta.sketches.layout import BITS

LEVELS: dict[str, list[Any]] = {"sex": ["F", "M"], "ward": [1, 2, 3]}
RANGES = {"age": (-10.0, 130.0), "weight": (0.0, 200.0)}
COLUMNS = ["age", "sex", "weight", "ward"]


def make_table(seed: int, n: int = 80) -> dict[str, Any]:
    """Return columns of numbers and classes, with missing values in all but one."""
    rng = np.random.default_rng([seed, 31])
    age = np.where(rng.random(n) < 0.1, np.nan, rng.normal(60, 12, n).round())
    weight = np.where(rng.random(n) < 0.3, np.nan, rng.normal(80, 15, n))
    sex = rng.choice(["F", "M"], n).astype(object)
    sex[rng.random(n) < 0.05] = None
    return {"age": age, "sex": sex, "weight": weight, "ward": rng.choice([1, 2, 3], n)}


def exact(table: Any, *what: Any, **settings: Any) -> Any:
    return gosta.exact(table, *what, **settings)


def expected(table: dict[str, Any]) -> dict[str, float]:
    """Return the values as pandas has them."""
    frame: Any = pd.DataFrame(table)
    found: dict[str, float] = {}
    for name in ("age", "weight"):
        column = frame[name]
        found |= {f"{name}: mean": column.mean(), f"{name}: standard deviation": column.std()}
        for part in (0.25, 0.5, 0.75):
            of = np.quantile(column.dropna(), part, method="inverted_cdf")
            found[f"{name}: {100 * part:g} %"] = float(of)
    for name, classes in LEVELS.items():
        shares = frame[name].value_counts(normalize=True)
        found |= {f"{name} = {value}": shares.get(value, 0.0) for value in classes}
    return found | {f"{name}: missing": frame[name].isna().mean() for name in frame}


def test_values_are_those_of_pandas_on_200_tables() -> None:
    for seed in range(200):
        table = make_table(seed, 8 + seed)
        ours = exact(table, "table-one", columns=COLUMNS, levels=LEVELS)
        known = expected(table)
        assert set(ours.labels) == known.keys()
        wanted = [known[label] for label in ours.labels]
        np.testing.assert_allclose(ours.value, wanted, rtol=1e-12, atol=1e-14)


def test_classes_of_text_need_not_be_declared() -> None:
    table = make_table(3)
    ours = exact(table, "table-one", columns=["sex", "ward"], levels={"ward": [1, 2, 3]})
    assert ours.labels[:3] == ("sex = F", "sex = M", "sex: missing")
    with pytest.raises(InputError, match="'name' has 60 different values"):
        exact({"name": [f"n{k}" for k in range(60)]}, "table-one", columns="name")
    with pytest.raises(DataError, match="column 'sex' has the value 'M'"):
        exact(table, "table-one", columns="sex", levels={"sex": ["F", "X"]})


def test_classes_are_taken_from_rows_that_are_in_one_place(tmp_path: Path, gosta_: Any) -> None:
    table = make_table(6, 60)
    pd.DataFrame(table).to_csv(tmp_path / "rows.csv", index=False)
    words = ("--statistic", "table-one", "--columns", "age,sex", "--drop-missing")
    code, out, err = gosta_("exact", tmp_path / "rows.csv", *words, "--bins", 20)
    assert code == 0, err
    assert "sex = M" in out
    net = ("network", "init", tmp_path / "net", "--private", "--data", tmp_path / "rows.csv")
    code, _, err = gosta_(*net, "--nodes", 3, *words)
    assert code == 0, err
    task = read_network(tmp_path / "net" / "network.toml").network
    assert task.options == {"levels": {"age": [], "sex": ["F", "M"]}}
    code, _, err = gosta_("exact", tmp_path / "rows.csv", *words, "--bins", 20, "-o", "levels=3")
    assert code == 2
    assert "levels = 3 must name the classes of columns" in err


def test_by_group_and_weights() -> None:
    table = make_table(4, 200)
    frame = exact(table, "table-one", columns=["age"], by="ward")
    groups = frame[frame.group == "2"].value.iloc[0]
    kept = np.asarray(table["ward"]) == 2
    assert groups[0] == pytest.approx(np.nanmean(table["age"][kept]), rel=1e-12)
    twice = {name: np.repeat(values, 2) for name, values in table.items()}
    weighted = exact(table, "table-one", columns=COLUMNS, levels=LEVELS, weights=np.full(200, 2))
    doubled = exact(twice, "table-one", columns=COLUMNS, levels=LEVELS)
    place = [k for k, label in enumerate(weighted.labels) if "deviation" not in label]
    np.testing.assert_allclose(weighted.value[place], doubled.value[place], rtol=1e-12)


def test_brackets_of_sums_hold_the_values_on_200_tables() -> None:
    for seed in range(200):
        table = make_table(seed, 5 + seed % 60)
        settings = Bins(16, RANGES)
        layout = make_layout("table-one", settings, columns=COLUMNS, options={"levels": LEVELS})
        data = gosta.datasets.load(table).select(drop_missing=True)
        x = layout.encode(data)
        assert len(x) == len(data)
        (result,) = layout.results(layout.sums(x) / 2.0**BITS)
        whole = exact(table, "table-one", columns=COLUMNS, levels=LEVELS)
        assert result.labels == whole.labels
        for low, value, high in zip(result.low, whole.value, result.high, strict=True):
            if low is None or high is None:
                assert np.isnan(value)
            else:
                assert low <= value <= high


def test_table_one_describes_the_rows_of_the_other_statistics() -> None:
    table = make_table(5, 300)
    table["died"] = np.random.default_rng(1).integers(0, 2, 300)
    sites = [{name: values[k::3] for name, values in table.items()} for k in range(3)]
    found = gosta.private.release(
        sites,
        "auc:age,table-one:age+sex+weight+ward",
        ranges=RANGES,
        label="died",
        classes=[0, 1],
        options={"table-one": {"levels": LEVELS}},
        strata={"ward": [1, 2, 3]},
        drop_missing=True,
    )
    auc, table_one = found.results[0], found.results[4]
    has_age = np.isfinite(table["age"])
    assert auc.rows == table_one.rows == has_age.sum()
    known = expected({name: table[name][has_age] for name in COLUMNS})
    values = dict(zip(table_one.labels, table_one.value, strict=True))
    assert values["age: missing"] == 0
    for label in ("sex = F", "weight: missing", "ward = 2"):
        assert values[label] == pytest.approx(known[label], abs=1e-12), label
    ages = {"age": RANGES["age"]}
    alone = gosta.private.release(
        sites, "auc:age", ranges=ages, label="died", classes=[0, 1], drop_missing=True
    )
    assert alone.value == auc.value[0]


def test_shares_of_few_rows_are_hidden() -> None:
    table = {"sex": ["F"] * 40 + ["M"] * 37 + ["X"] * 3, "age": [50.0] * 78 + [np.nan] * 2}
    policy = gosta.private.Policy(modes=("private",), min_rows=0, min_sites=1, min_cell=5)
    found = gosta.private.release(
        [table, table],
        "table-one:sex+age",
        ranges={"age": RANGES["age"]},
        options={"table-one": {"levels": {"sex": ["F", "M", "X"]}}},
        drop_missing=True,
        policy=policy,
    )
    values = dict(zip(found.labels, found.results[0].value, strict=True))
    assert values["sex = X"] == pytest.approx(6 / 160)
    assert values["age: missing"] is None
    hidden = gosta.private.release(
        [table],
        "table-one:sex",
        options={"table-one": {"levels": {"sex": ["F", "M", "X"]}}},
        drop_missing=True,
        policy=policy,
    )
    assert hidden.results[0].value == (0.5, None, None, 0.0)


def test_noise_is_for_rows_that_become_complete() -> None:
    """A row that gets a value where it had none adds to all sums: the noise is made for that."""
    options = {"levels": LEVELS}
    both = make_layout(
        "variance:age,table-one:age+sex", Bins(4, RANGES), options={"table-one": options}
    )
    ages, sexes = ([np.nan, 50.0, 60.0], [130.0, 50.0, 60.0]), ("FFF", "MFF")
    rows = [{"age": age, "sex": list(sex)} for age, sex in zip(ages, sexes, strict=True)]
    first, second = (
        both.sums(both.encode(gosta.datasets.load(row).select(drop_missing=True))) / 2.0**BITS
        for row in rows
    )
    assert both.squared_change >= ((first - second) ** 2).sum()


def test_standardised_differences_of_groups() -> None:
    labels = ("age: mean", "age: standard deviation", "age: missing", "sex = f", "sex: missing")
    found = standardised_differences(labels, [60, 10, 0, 0.5, 0], [65, 10, 0, 0.4, 0])
    assert found["age"] == pytest.approx(-0.5)
    assert found["sex = f"] == pytest.approx(0.1 / np.sqrt((0.25 + 0.24) / 2))
    nothing = standardised_differences(labels, [60, None, 0, None, 0], [65, 10, 0, 0.4, 0])
    assert nothing == {"age": None}
    assert standardised_differences(labels[3:], [0.0, 0], [0.0, 0]) == {"sex = f": None}
