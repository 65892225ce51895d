"""Several statistics at once, groups of rows, how much groups differ, and what was assumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import ports
import pytest
import scipy.stats
from commands import command

import gosta
from gosta.errors import InputError
from gosta.statistics import estimate_tables
from gosta.statistics.distributions import chi_squared_quantile, chi_squared_tail
from gosta.statistics.heterogeneity import heterogeneity
from gosta.statistics.references import parse_references


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    return command(capsys, monkeypatch)


def patients(n: int = 160) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    risk = rng.normal(size=n).round(1)
    ill = risk + rng.normal(size=n) > 0
    hospital = rng.choice(list("abc"), n).astype(object)
    hospital[:1], ill[1:4] = "lone", True
    hospital[1:4] = "one class"
    return pd.DataFrame(
        {
            "risk": risk,
            "age": rng.integers(20, 90, n),
            "hospital": hospital,
            "ill": np.where(ill, "case", "other"),
        }
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    patients().to_csv(tmp_path / "patients.csv", index=False)
    return tmp_path / "patients.csv"


def test_chi_squared_is_scipys() -> None:
    rng = np.random.default_rng(0)
    for degrees in (1, 2, 3, 7, 40, 500):
        for x in scipy.stats.chi2.rvs(degrees, size=20, random_state=rng) * rng.uniform(0.1, 3, 20):
            assert chi_squared_tail(x, degrees) == pytest.approx(
                scipy.stats.chi2.sf(x, degrees), rel=1e-10
            )
            share = float(rng.uniform(0.001, 0.999))
            assert chi_squared_quantile(share, degrees) == pytest.approx(
                scipy.stats.chi2.ppf(share, degrees), rel=1e-10
            )


# Vaccinated ill and healthy, not vaccinated ill and healthy: the thirteen trials of BCG in Colditz
# and others (1994).
BCG = [
    (4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619),
    (33, 5036, 47, 5761),
    (180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892), (29, 7470, 45, 7232),
    (17, 1699, 65, 1600),
    (186, 50448, 141, 27197), (5, 2493, 3, 2338), (27, 16886, 29, 17825),
]  # fmt: skip


def test_heterogeneity_of_the_bcg_trials_is_that_of_metafor() -> None:
    """As published in the documentation of metafor: DerSimonian and Laird's estimates, the
    Q-profile's interval.
    """
    values = [np.log(a / (a + b)) - np.log(c / (c + d)) for a, b, c, d in BCG]
    errors = [np.sqrt(1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)) for a, b, c, d in BCG]
    found = heterogeneity(values, errors)
    assert found is not None
    assert (found.groups, found.degrees) == (13, 12)
    assert found.q == pytest.approx(152.2330, abs=1e-4)
    assert found.i_squared == pytest.approx(0.9212, abs=1e-4)
    assert found.spread is not None
    assert found.spread_interval is not None
    assert found.spread**2 == pytest.approx(0.3088, abs=1e-4)
    assert [end**2 for end in found.spread_interval] == pytest.approx([0.1197, 1.1115], abs=1e-4)
    assert found.mean == pytest.approx(-0.7141, abs=1e-4)
    assert found.mean_interval == pytest.approx((-1.0644, -0.3638), abs=1e-4)
    assert found.p_value == pytest.approx(scipy.stats.chi2.sf(found.q, 12), rel=1e-8)


def test_interval_of_i_squared() -> None:
    """Four equal groups have 0 % to 84.7 %, whatever their values: Higgins and Thompson's
    formula.
    """
    same = heterogeneity([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0])
    assert same is not None
    assert (same.q, same.i_squared, same.spread_interval) == (0.0, 0.0, (0.0, 0.0))
    assert same.i_squared_interval == pytest.approx((0.0, 0.847), abs=5e-4)
    two = heterogeneity([1.0, 3.0], [0.5, 0.5])
    assert two is not None
    assert two.i_squared_interval is None
    assert two.q == pytest.approx(8.0)
    assert heterogeneity([1.0], [0.5]) is None
    assert heterogeneity([1.0, 2.0], [0.5, 0.0]) is None
    assert heterogeneity([1.0, 2.0], [1e200, 1e250]) is None


def test_a_spread_is_one_of_possible_values_and_of_three_groups_or_more() -> None:
    """Aucs of three small groups spread by at most 1/2; without bounds that would be 4."""
    values, errors = [0.1, 0.9, 0.5], [0.05, 0.05, 0.05]
    free = heterogeneity(values, errors)
    assert free is not None
    assert free.spread_interval is not None
    assert free.spread_interval[1] > 2
    found = heterogeneity(values, errors, bounds=(0.0, 1.0))
    assert found is not None
    assert found.spread_interval == (free.spread_interval[0], 0.5)
    assert 0.0 <= found.mean_interval[0] <= found.mean_interval[1] <= 1.0
    two = heterogeneity(values[:2], errors[:2], bounds=(0.0, 1.0))
    assert two is not None
    assert (two.spread, two.spread_interval) == (None, None)


def test_groups_of_several_columns_are_those_of_their_combinations() -> None:
    frame = patients().assign(sex=lambda table: np.where(table.age % 2, "f", "m"))
    frame = frame[frame.hospital.isin(list("abc"))]
    table = gosta.exact(frame, ["auc:risk"], label="ill", by=["sex", "hospital"])
    again = gosta.exact(frame, ["auc:risk"], label="ill", by="sex,hospital").set_index("group")
    assert list(table.group[:6]) == ["f, a", "f, b", "f, c", "m, a", "m, b", "m, c"]
    for sex, hospital in (("f", "b"), ("m", "c")):
        own = frame[(frame.sex == sex) & (frame.hospital == hospital)]
        value = again.loc[f"{sex}, {hospital}", "value"]
        assert value == pytest.approx(gosta.exact(own, "auc", label="ill", columns="risk"))
    with pytest.raises(InputError, match="unknown column of the data 'ward'"):
        gosta.exact(frame, ["auc:risk"], label="ill", by="sex,ward")


def test_several_statistics_are_those_computed_one_by_one() -> None:
    table = gosta.exact(
        patients(), ["auc:risk", "kendall-tau:risk+age", "quantiles:age"], label="ill", interval=0.9
    )
    assert table["statistic"].tolist() == ["auc:risk", "kendall-tau:risk+age", "quantiles:age"]
    one = gosta.exact(patients(), "auc", label="ill", columns="risk", interval=0.9)
    assert table.loc[0, ["value", "low", "high", "standard_error"]].tolist() == list(one[:4])
    other = gosta.exact(patients(), "kendall-tau", columns=["risk", "age"], interval=0.9)
    assert table.loc[1, ["value", "low", "high", "standard_error"]].tolist() == list(other[:4])
    assert table["value"][2] == list(np.ravel(gosta.exact(patients(), "quantiles", columns="age")))
    assert table["low"][2] <= table["value"][2] <= table["high"][2]


def test_options_go_to_the_statistics_that_have_them() -> None:
    table = gosta.exact(patients(), ["kendall-tau:risk+age", "variance:risk"], variant="b")
    assert table["value"][0] == gosta.exact(
        patients(), "kendall-tau", columns=["risk", "age"], variant="b"
    )
    with pytest.raises(
        InputError,
        match="unknown option of kendall-tau:risk\\+age 'varient'; did you mean 'variant'",
    ):
        gosta.exact(patients(), ["kendall-tau:risk+age"], varient="b")


def test_groups() -> None:
    frame = patients()
    table = gosta.exact(frame, ["auc:risk"], label="ill", by="hospital", positive="case").set_index(
        "group"
    )
    for group in "abc":
        own = gosta.exact(
            frame[frame.hospital == group],
            "auc",
            label="ill",
            columns="risk",
            positive="case",
            interval=0.95,
        )
        assert table.loc[group, ["value", "low", "high"]].tolist() == pytest.approx(
            [own.value, own.low, own.high]
        )
    pooled = gosta.exact(frame, "auc", label="ill", columns="risk", positive="case")
    assert table.loc["all rows", "value"] == pooled
    assert table.loc["mean of groups", "value"] == pytest.approx(
        table.loc[list("abc"), "value"].mean()
    )
    assert table.loc["lone", "reason"] == "one complete row only"
    assert table.loc["one class", "reason"] == "rows of one class only: case"
    assert table.loc[["lone", "one class"], "value"].isna().all()
    y, low, high = table.loc[list("abc"), ["value", "low", "high"]].to_numpy(dtype=float).T
    towards_others = np.where(y > np.average(y, weights=(high - low) ** -2), y - low, high - y)
    errors = towards_others / scipy.stats.norm.ppf(0.975)
    wanted = heterogeneity(y.tolist(), errors.tolist(), bounds=(0.0, 1.0))
    assert wanted is not None
    found = table.attrs["heterogeneity"]["auc:risk"]
    assert (found["groups"], found["q"]) == (3, pytest.approx(wanted.q))
    assert (found["mean"], found["spread"]) == pytest.approx((wanted.mean, wanted.spread))


def test_groups_share_what_is_derived_from_the_data() -> None:
    """The direction of a score from several columns is that of all rows, also in the groups."""
    frame = patients()
    table = gosta.exact(
        frame.drop(columns="age").assign(second=frame.risk**2), "auc", label="ill", by="hospital"
    )
    x = np.column_stack([frame.risk, frame.risk**2])
    positive = frame.ill == "other"
    score = x @ (x[positive].mean(axis=0) - x[~positive].mean(axis=0))
    own = frame.hospital == "a"
    assert table["value"][0] == pytest.approx(
        gosta.exact({"s": score[own], "label": frame.ill[own]}, "auc")
    )


@pytest.mark.parametrize("name", ["trimmed-mean", "winsorised-mean", "uno-concordance"])
def test_groups_of_statistics_that_take_ranks_from_all_rows(name: str) -> None:
    frame = patients()
    frame = frame.assign(time=frame.age, event=frame.risk > -0.5, second=frame.risk)
    columns = {"uno-concordance": ["time", "event", "second"]}.get(name, ["risk"])
    options = {"horizon": 60} if name == "uno-concordance" else {}
    table = gosta.exact(
        frame, name, columns=columns, label="ill", by="hospital", options=options
    ).set_index("group")
    for group in "abc":
        own = gosta.exact(
            frame[frame.hospital == group], name, columns=columns, label="ill", options=options
        )
        assert table.loc[group, "value"] == pytest.approx(own)


def test_groups_with_missing_values_are_named() -> None:
    frame = patients()
    frame.loc[frame.hospital == "b", "age"] = np.nan
    frame.loc[5, "hospital"] = None
    table = gosta.exact(frame, ["variance:age"], by="hospital", drop_missing=True).set_index(
        "group"
    )
    assert table.loc["b", "reason"] == "no complete row"
    complete = frame[frame.age.notna() & frame.hospital.notna()]
    assert table.loc["all rows", "n"] == len(complete)
    assert table.loc["all rows", "value"] == pytest.approx(complete.age.var())
    assert table["assumed"].iloc[0]["rows_dropped"] == len(frame) - len(complete)


def test_without_pandas_there_is_a_list_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate_tables, "is_installed", lambda name: False)
    (record,) = gosta.exact({"a": [1.0, 2.0, 4.0]}, ["variance"])
    assert (record["statistic"], record["value"]) == ("variance", pytest.approx(7 / 3))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("auc,,variance", "a comma too many"),
        ("auc:", "must end with a column, such as auc:age"),
        (" ", "statistic is empty"),
    ],
)
def test_names_of_several_statistics(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_references(text)


def test_several_on_the_command_line(run: Any, file: Path) -> None:
    arguments = ["exact", file, "--label", "ill", "--positive", "case", "--json", "-s"]
    both = [
        json.loads(line)
        for line in run(*arguments, "auc:risk,kendall-tau:risk+age")[1].splitlines()
    ]
    again = [
        json.loads(line)
        for line in run(*arguments, "auc:risk", "-s", "kendall-tau:risk+age")[1].splitlines()
    ]
    assert [one["statistic"] for one in both] == ["auc:risk", "kendall-tau:risk+age"]
    assert [one["value"] for one in both] == [one["value"] for one in again]
    assert both[1]["assumed"]["variant"] == "a"
    assert both[0]["assumed"] | {"columns_left_out": 0} == {
        "positive": "case", "negative": ["other"], "positive_was_given": True, "rows_dropped": 0,
        "header": True,
        "columns_left_out": 0,
    }  # fmt: skip
    assert both[0]["assumed"]["columns_left_out"] == ["age", "hospital"]
    table = run(
        *[one for one in arguments if one != "--json"],
        "auc:risk,kendall-tau:risk+age",
        "--interval",
        "95%",
    )[1]
    assert "kendall-tau:risk+age: options: variant = a" in table
    assert "95 % interval" in table


def test_groups_on_the_command_line(run: Any, file: Path) -> None:
    arguments = [
        "exact",
        file,
        "--label",
        "ill",
        "--score",
        "risk",
        "-s",
        "auc",
        "--positive",
        "case",
    ]
    shown = run(*arguments, "--by", "hospital")[1]
    assert "rows of one class only: case" in shown
    assert "mean of 3 groups" in shown
    assert "Cochran's Q" in shown
    record = json.loads(run(*arguments, "--by", "hospital", "--json")[1])
    assert [group["group"] for group in record["groups"]] == ["a", "b", "c", "lone", "one class"]
    assert record["heterogeneity"]["degrees"] == 2
    assert record["groups"][0]["interval"]["level"] == 0.95
    assert run(*arguments, "--by", "hospital", "--bins", 8)[2].endswith("(--strata hospital)\n")
    few = run(
        "exact", file, "-s", "mann-whitney", "--label", "ill", "--score", "risk", "--by", "hospital"
    )[1]
    assert "how much the groups differ beyond chance is not known" in few


def test_the_positive_class_is_said_and_doubted(run: Any, file: Path) -> None:
    arguments = ["exact", file, "--label", "ill", "--score", "risk", "-s", "auc"]
    shown = run(*arguments)[1]
    assert "positive class: other, against case (--positive names another)" in shown
    assert "warning: the positive class is 'other'" in shown
    assert "the names suggest 'case': --positive case" in shown
    record = json.loads(run(*arguments, "--json")[1])
    assert (record["assumed"]["positive"], len(record["warnings"])) == ("other", 1)
    right = run(*arguments, "--positive", "case")[1]
    assert "warning" not in right
    assert "positive class" not in right
    assert "columns left out: age, hospital" in right
    assert "--option positive=" in run(*arguments, "--positive", "case", "-o", "positive=other")[2]


def test_simulations_and_networks_say_it_too(run: Any, file: Path, tmp_path: Path) -> None:
    arguments = [file, "--label", "ill", "--score", "risk", "--nodes", 4, "--graph", "complete"]
    common = ["run", *arguments, "--runs", 1, "--iterations", 40, "--plot", tmp_path / "x.png"]
    shown = run(*common)[1]
    assert "positive class: other, against case" in shown
    assert "warning: the positive class is 'other'" in shown
    record = json.loads(run(*common, "--json")[1])
    assert (record["assumed"]["positive"], len(record["warnings"])) == ("other", 1)
    right = run(*common, "--positive", "case")[1]
    assert "warning" not in right
    for statistic, line in {
        "auc": "positive class: other",
        "auc,variance:age": "auc: positive class: other",
    }.items():
        arguments += ["-s", statistic, "--port", ports.free()]
        made = run("network", "init", tmp_path / statistic, "--data", *arguments)[1]
        assert f"  {line}, against case" in made
        assert "warning: the positive class is 'other'" in made


def test_a_column_that_names_no_groups(run: Any, file: Path) -> None:
    assert run("exact", file, "-s", "variance:risk", "--by", "age", "--n", 9)[2].endswith(
        "that names groups\n"
    )


def test_an_auc_below_one_half_is_doubted(run: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("risk,group\n1,a\n2,b\n3,a\n1,b\n")
    shown = run("exact", tmp_path / "t.csv", "-s", "auc", "--label", "group", "--score", "risk")[1]
    assert "warning: auc is below 0.5: rows of 'b' score lower than those of 'a'" in shown


def test_a_column_of_scores_that_is_left_out_is_named(run: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,score\n1,5\n2,6\n4,9\n")
    shown = run("exact", tmp_path / "t.csv", "-s", "variance")[1]
    assert "from age" in shown
    assert (
        "warning: the column 'score' is taken for scores and left out; to use it as a number: "
        "--columns score" in shown
    )
    assert "warning" not in run("exact", tmp_path / "t.csv", "-s", "variance", "-c", "age")[1]


def test_a_score_from_class_means_and_dropped_rows_are_said(run: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,label\n1,5,0\n2,6,1\n4,9,0\n,9,1\n3,3,1\n")
    shown = run("exact", tmp_path / "t.csv", "-s", "auc", "--drop-missing")[1]
    assert "score: x · (mean of positive rows − mean of the others), from several columns" in shown
    assert "left out: 1 row with missing or infinite values" in shown


def test_groups_of_three_rows_have_no_interval_of_distance_correlation() -> None:
    columns = {"x": [1.0, 2.0, 4.0, 3.0, 5.0, 9.0], "y": [2.0, 1.0, 5.0, 3.0, 8.0, 7.0]}
    table = gosta.exact(columns | {"group": list("aaabbb")}, ["distance-correlation"], by="group")
    for k in (0, 1):
        assert table["value"][k] > 0
        assert "not defined without row" in table["reason"][k]


def test_statistics_of_one_score_are_computed_for_each_of_several() -> None:
    rows = patients()
    table = gosta.exact(rows, ["auc", "auc-difference"], score=["risk", "age"], label="ill")
    assert table["statistic"].tolist() == ["auc:risk", "auc:age", "auc-difference"]
    alone = [gosta.exact(rows, "auc", score=name, label="ill") for name in ("risk", "age")]
    assert table["value"].tolist()[:2] == alone
    assert table["value"][2] == pytest.approx(alone[0] - alone[1])
    areas: Any = gosta.exact(rows, "average-precision", score=["risk", "age"], label="ill")
    assert areas["statistic"].tolist() == ["average-precision:risk", "average-precision:age"]
