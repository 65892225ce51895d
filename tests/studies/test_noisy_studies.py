"""Studies with noise: what is said of it before, and what results do not pretend to know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gosta.datasets import Data
from gosta.datasets.dictionary import Column
from gosta.net.config import MIN_SITES
from gosta.private.noise import choose_noise
from gosta.private.settings import PrivateSettings
from gosta.studies.definition import Asked, Study
from gosta.studies.noise import count_errors, effect_of_noise, warning_of_noise
from gosta.studies.released import collect
from gosta.views.numbers import about

COLUMNS = {
    "risk": Column(range=(0.0, 1.0)),
    "died": Column("class", classes=("no", "yes")),
    "sex": Column("class", classes=("F", "M")),
    "age": Column(range=(18.0, 100.0)),
}


def make(epsilon: float | None, groups: tuple[str, ...] = ("sex",), **asked: Any) -> Study:
    questions = asked.pop("questions", ("table-one", "discrimination", "calibration"))
    privacy = PrivateSettings(20, epsilon=epsilon, delta=1e-6 if epsilon else 0.0)
    return Study(Asked(questions, "", "died", ("risk",), groups=groups), COLUMNS, privacy)


def rows(n: int, rng: np.random.Generator) -> Data:
    positive = rng.random(n) < 0.5
    columns = {
        "risk": np.clip(rng.random(n) * 0.9 + 0.1 * positive, 0, 1),
        "died": np.where(positive, "yes", "no"),
        "sex": rng.choice(["F", "M"], n),
        "age": rng.uniform(20, 95, n),
    }
    return Data("rows", columns)


def released(study: Study, n: int, seed: int) -> dict[str, Any]:
    """Return the results of a release over n rows with noise."""
    rng, layout = np.random.default_rng(seed), study.layout()
    totals = layout.sums(layout.encode(rows(n, rng))).view(np.int64) / 2.0**24
    variance = choose_noise(study.privacy, layout, MIN_SITES).variance
    totals = totals + rng.normal(size=len(totals)) * np.sqrt(variance)
    results = layout.results(totals, noise_variance=variance, level=0.95)
    return collect(study, results, {"epsilon": study.privacy.epsilon})


def test_without_noise_there_is_nothing_to_say() -> None:
    assert effect_of_noise(make(None)) is None
    assert warning_of_noise(make(None)) == ""


def test_less_is_asked_or_a_larger_epsilon_taken_where_noise_hides_all() -> None:
    assert "take fewer groups or set a larger epsilon (about" in warning_of_noise(make(0.5))
    assert warning_of_noise(make(50.0)) == ""
    few = effect_of_noise(make(2.0, (), questions=("discrimination",)))
    many = effect_of_noise(make(2.0, ()))
    assert few is not None
    assert many is not None
    assert few.good_rows < many.good_rows
    assert "rows have no value of auc" in many.text


@pytest.mark.parametrize(("factor", "least", "most"), [(0.5, 0, 1), (3.0, 5, 6)])
def test_groups_of_about_as_few_rows_as_is_said_have_no_value(
    factor: float, least: int, most: int
) -> None:
    study = make(3.0, ())
    effect = effect_of_noise(study)
    assert effect is not None
    n = round(factor * effect.least_rows)
    found = [released(study, n, seed)["estimates"] for seed in range(6)]
    aucs = [one["value"] for all_ in found for one in all_ if one["name"] == "auc"]
    assert least <= sum(value is not None for value in aucs) <= most


def test_numbers_of_rows_are_those_that_noise_lets_one_know() -> None:
    assert [about(1481.3, error) for error in (0.0, 0.3, 9.9, 240.0, 5e3)] == [
        *(1481, 1481, 1481, 1500, 1000)
    ]
    study = make(4.0)
    found = released(study, 1500, 3)
    error = found["how"]["rows_error"]
    assert abs(found["rows"] - 1500) < 4 * error
    assert found["rows"] % 10 == 0
    assert found["incomplete_rows"] is None
    assert error <= 2**0.5 * max(count_errors(study, MIN_SITES).values())


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_table_one_has_no_impossible_numbers(epsilon: float) -> None:
    for seed in range(5):
        (table,) = (
            one
            for one in released(make(epsilon), 400, seed)["estimates"]
            if one["name"] == "table-one"
        )
        for part in (table, *table["groups"]):
            for label, value in zip(part.get("labels", ()), part["value"] or (), strict=False):
                if value is None or np.isnan(value):
                    continue
                column, is_number, what = label.partition(": ")
                if not is_number or what == "missing":
                    assert 0 <= value <= 1
                elif what == "standard deviation":
                    assert value > 0
                else:
                    low, high = COLUMNS[column].range or (0.0, 0.0)
                    assert low <= value <= high
