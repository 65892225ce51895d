"""What all sites of a network declare of a model: given, from a dictionary, or from the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gosta import datasets
from gosta.datasets.dictionary import Column
from gosta.errors import GostaError
from gosta.models.layout import FitLayout
from gosta.net.config import Task
from gosta.net.deploy import plan
from gosta.net.deploy.fit_plan import FitGoal, declare_fit
from gosta.net.node.rows import sums_of
from gosta.private.settings import PrivateSettings

ROWS = {
    "age": [31.5, 40.2, 77.0, 55.1, 62.3, 48.8] * 5,
    "bmi": [22.0, 31.0, 27.5, 24.1, 0.7, 28.0] * 5,
    "sex": ["F", "M", "M"] * 10,
    "died": ["no", "no", "yes", "no", "yes"] * 6,
    "days": [3, 14, 15, 92, 65, 35] * 5,
    "seen": [1, 0, 1] * 10,
    "ward": ["a", "b"] * 15,
}
DICTIONARY = {
    "age": Column(range=(18, 110)),
    "sex": Column("class", classes=("M", "F")),
    "bmi": Column(range=(10, 60)),
    "died": Column("class", classes=("no", "yes")),
}


def declared(model: str, terms: Any, settings: dict[str, Any] | None = None, **given: Any) -> Task:
    options = given.pop("options", {"outcome": "died"})
    goal = FitGoal(model, terms, options, given.pop("levels", {}))
    private = PrivateSettings(**(settings or {}))
    return declare_fit(goal, private, given.pop("dictionary", {}), **given).task


def model_of(task: Task) -> Any:
    found = sums_of(task)
    assert isinstance(found, FitLayout)
    return found.model


def test_what_the_rows_say_is_rounded_outwards() -> None:
    task = declared("logistic", ["age", "sex", "log(bmi)"], data=datasets.load(ROWS))
    assert task.private is not None
    assert task.fit is not None
    assert task.private.ranges["age"] == (30.0, 80.0)
    assert task.private.ranges["bmi"][0] == 0.7, "there are logarithms of it"
    assert task.fit.levels == {"sex": ("F", "M")}
    assert task.options == {"outcome": "died", "classes": ["no", "yes"]}
    assert model_of(task).coefficient_names == ("intercept", "age", "sex[M]", "log(bmi)")


def test_a_dictionary_says_ranges_levels_and_classes() -> None:
    task = declared("logistic", ["age", "sex"], dictionary=DICTIONARY)
    assert task.private is not None
    assert task.private.ranges == {"age": (18.0, 110.0)}
    assert model_of(task).design.names == ("age", "sex[F]")
    assert task.options["classes"] == ["no", "yes"]
    given = {"ranges": {"age": (0.0, 99.0)}}
    task = declared(
        "logistic", ["age", "sex"], given, dictionary=DICTIONARY, levels={"sex": ("F", "M")}
    )
    assert task.private is not None
    assert task.private.ranges == {"age": (0.0, 99.0)}
    assert model_of(task).design.names == ("age", "sex[M]")


def test_the_range_of_an_outcome_is_an_option() -> None:
    task = declared("linear", ["age"], dictionary=DICTIONARY, options={"outcome": "bmi"})
    assert (task.options["low"], task.options["high"]) == (10, 60)
    task = declared("poisson", ["age"], data=datasets.load(ROWS), options={"outcome": "days"})
    assert "low" not in task.options
    assert task.options["high"] >= 92


@pytest.mark.parametrize(
    ("times", "wanted"),
    [("0:9:3", [0, 3, 6, 9]), ("1,2,30", [1, 2, 30]), (None, list(range(3, 93)))],
)
def test_times_lie_on_a_grid(times: str | None, wanted: list[float]) -> None:
    options = {"time": "days", "event": "seen", "times": times}
    rows = None if times else datasets.load(ROWS)
    task = declared("cox", ["age"], {"ranges": {"age": (0, 99)}}, options=options, data=rows)
    assert task.options["times"] == wanted
    assert model_of(task).times == tuple(wanted)


def test_times_that_are_no_whole_numbers_are_in_bins() -> None:
    rows = datasets.load({**ROWS, "days": np.linspace(0.3, 99.1, 30)})
    options = {"time": "days", "event": "seen"}
    task = declared("cox", ["age"], data=rows, options=options)
    assert task.options["times"][0] == 0.0
    assert len(task.options["times"]) == 200


def test_strata_of_a_cox_model_are_declared() -> None:
    options = {"time": "days", "event": "seen"}
    settings = {"strata": {"ward": ()}}
    task = declared("cox", ["age"], settings, data=datasets.load(ROWS), options=options)
    assert task.private is not None
    assert not task.private.strata
    assert model_of(task).stratum_names == ["ward = a", "ward = b"]


def test_rows_of_data_go_to_nodes_with_the_columns_of_the_model() -> None:
    goal = FitGoal("logistic", "died ~ age", {"min_rows_per_column": 1.0})
    rows = datasets.load(ROWS)
    made = plan.for_fit(goal, PrivateSettings(), "complete", 3, 0, data=rows, deal="even")
    assert [text.split("\n")[0] for text in made.data_files] == ["age,died"] * 3
    assert made.counts == (10, 10, 10)


@pytest.mark.parametrize(
    ("model", "options", "settings", "message"),
    [
        ("logistic", {"outcome": "x"}, {}, "classes of the outcome 'x' are missing"),
        ("linear", {"outcome": "x"}, {}, "the range of the outcome 'x' is missing"),
        ("cox", {"time": "t", "event": "e"}, {}, "times of a Cox model are missing"),
        ("cox", {"time": "t", "event": "e", "times": "1:x"}, {}, "times = '1:x' must be"),
        ("linear", {"outcome": "x"}, {"strata": {"a": ("b",)}}, "range of the outcome"),
        ("logistic", {"outcome": "died"}, {"strata": {"a": ("b",)}}, "strata: logistic"),
        ("cox", {"time": "t", "event": "e"}, {"strata": {"a": ()}}, "needs the values of all"),
        ("logistic", {}, {}, "logistic regression needs the outcome"),
        ("cox", {"outcome": "died", "event": "e"}, {}, "Cox regression needs the time"),
        ("logistic", {"outcome": "died"}, {"find_edges": True}, "find_edges is for statistics"),
        ("logistic", {"outcome": "died"}, {"ranges": {"dose": (0, 1)}}, "range of 'dose'"),
        ("logit", {"outcome": "died"}, {}, "logit"),
    ],
)
def test_what_is_missing_is_told(
    model: str, options: dict[str, Any], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(GostaError, match=message):
        declared(model, ["age"], settings, options=options, dictionary=DICTIONARY)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_rounds": 40}, "max_rounds = 40: 12 is the limit"),
        ({"ties": "efron"}, "logistic has no option 'ties'"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    task = declared(
        "logistic", ["age"], options={"outcome": "died", **options}, dictionary=DICTIONARY
    )
    with pytest.raises(GostaError, match=message):
        sums_of(task)
