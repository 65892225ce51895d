"""Columns in roles: as declared, as named, and as guessed from their names and values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gosta
from gosta.datasets.roles import Roles, could_play, guess_roles

RNG = np.random.default_rng(3)
N = 60


def patients(**columns: Any) -> dict[str, Any]:
    risk = RNG.random(N)
    return {
        "patient_no": np.arange(1, N + 1),
        "days": RNG.integers(1, 900, N),
        "old": RNG.random(N),
        "risk": risk,
        "dead": (RNG.random(N) < risk).astype(int),
        "sex": RNG.choice(["f", "m"], N),
        **columns,
    }


def guess(columns: dict[str, Any]) -> Roles:
    data = gosta.datasets.load(columns)
    return guess_roles(data, list(data.columns))


def test_roles_are_declared() -> None:
    data = patients()
    named = gosta.exact(data, "concordance-index", time="days", event="dead", score="risk")
    assert named == gosta.exact(data, "concordance-index", columns=["days", "dead", "risk"])
    renamed = {"time": data["days"], "event": data["dead"], "x": data["old"], "s": data["risk"]}
    assert gosta.exact(renamed, "concordance-index", score="s") == named
    values = gosta.exact(
        data, "concordance-index", time=data["days"], event=data["dead"], score=data["risk"]
    )
    assert values == named


def test_selected_columns_fill_the_roles_that_are_not_declared() -> None:
    data = patients()
    both = gosta.exact(
        data,
        ["concordance-index:risk", "concordance-index:old", "kaplan-meier"],
        time="days",
        event="dead",
    )
    expected = [
        gosta.exact(data, "concordance-index", columns=["days", "dead", score])
        for score in ("risk", "old")
    ]
    assert list(both["value"][:2]) == expected


def test_columns_named_like_roles_are_taken_whatever_their_order() -> None:
    data = patients()
    three = {"risk": data["risk"], "event": data["dead"], "time": data["days"]}
    expected = gosta.exact(data, "concordance-index", columns=["days", "dead", "risk"])
    assert gosta.exact(three, "concordance-index") == expected


def test_several_scores() -> None:
    data = patients()
    two = gosta.exact(data, "auc-difference", score=["risk", "old"], label="dead")
    assert two == gosta.exact(data, "auc-difference", columns=["risk", "old"], label="dead")
    compared = gosta.test(data, "delong", score=["risk", "old"], label="dead")
    assert compared == gosta.test(data, "auc", columns=["risk", "old"], label="dead")
    assert list(compared.values) == ["auc of risk", "auc of old"]
    each: Any = gosta.exact(data, "auc", score=["risk", "old"], label="dead")
    assert each["statistic"].tolist() == ["auc:risk", "auc:old"]
    with pytest.raises(gosta.DataError, match=r"takes one score, and there are 2 .*auc:risk"):
        gosta.simulate(data, "auc", score=["risk", "old"], label="dead")
    chosen = gosta.exact(data, ["auc:old"], score=["risk", "old"], label="dead")
    assert chosen["value"][0] == gosta.exact(data, "auc", score="old", label="dead")
    with pytest.raises(gosta.InputError, match="give each column of scores once"):
        gosta.exact(data, "auc-difference", score=["risk", "risk"], label="dead")


def test_an_error_names_the_missing_roles_and_the_columns_that_could_play_them() -> None:
    with pytest.raises(gosta.DataError) as caught:
        gosta.exact(patients(), "concordance-index", score="risk")
    assert "name the time with --time (days" in str(caught.value)
    assert "name the event with --event (dead?)" in str(caught.value)
    assert "--score" not in str(caught.value)


def test_private_sums_take_the_same_roles() -> None:
    sites = [patients(), patients()]
    roles: dict[str, Any] = {"time": "days", "event": "dead"}
    ranges = {"days": (0, 1000), "risk": (0, 1)}
    by_role = gosta.private.release(
        sites, "concordance-index", ranges=ranges, score="risk", **roles
    )
    by_order = gosta.private.release(
        sites, "concordance-index", ranges=ranges, columns=["days", "dead", "risk"]
    )
    beside = gosta.private.release(sites, "concordance-index:risk", ranges=ranges, **roles)
    assert by_role.value == by_order.value == beside.value


GERMAN = {
    "Fallnummer": np.arange(4711, 4711 + N),
    "PLZ": RNG.choice([10115, 20095, 50667, 80331, 1067, 70173, 60311, 4109, 28195, 30159, 1], N),
    "Geburtsjahr": RNG.integers(1930, 1990, N),
    "Aufnahme": [f"{1 + k % 28:02d}.03.2024" for k in range(N)],
    "Alter": RNG.integers(40, 90, N),
    "Zeit": RNG.integers(1, 2000, N),
    "Risiko": RNG.random(N) * 100,
    "verstorben": RNG.integers(0, 2, N),
    "Geschlecht": RNG.choice(["w", "m"], N),
}


def test_a_german_file_is_understood() -> None:
    roles = guess(GERMAN)
    assert roles.times == ["Zeit"]
    assert roles.scores[0] == "Risiko"
    assert roles.binary == ["verstorben", "Geschlecht"]
    assert roles.events == ["verstorben"]
    assert roles.numbers == ["Alter", "Zeit", "Risiko"]
    assert set(roles.identifiers) == {"Fallnummer", "PLZ"}
    assert set(roles.dates) == {"Geburtsjahr", "Aufnahme"}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("patient_no", np.arange(1, N + 1)),
        ("ID", RNG.permutation(N) + 100),
        ("MRN", RNG.permutation(90_000)[:N] + 10_000),
        ("x", np.arange(1, N + 1)),
        ("zip", RNG.integers(10_000, 99_999, N)),
        ("code postal", RNG.choice([75001, 75002, 69001] * 4, N)),
        ("visit", 20_240_100 + RNG.integers(1, 28, N)),
        ("birth_year", RNG.integers(1930, 1990, N)),
        ("datum", RNG.integers(40_000, 45_000, N)),
        ("name", [f"person {k}" for k in range(N)]),
    ],
)
def test_identifiers_and_dates_are_never_proposed(name: str, values: Any) -> None:
    roles = guess({name: values, "risk": RNG.random(N), "dead": RNG.integers(0, 2, N)})
    assert name not in [*roles.numbers, *roles.scores, *roles.times, *roles.classes]
    assert roles.scores == ["risk"]
    assert roles.binary == ["dead"]


def test_a_score_is_known_by_its_name_or_by_its_range() -> None:
    columns = {"age": RNG.integers(40, 90, N), "m1": RNG.random(N), "died": RNG.integers(0, 2, N)}
    assert guess(columns).scores[0] == "m1"
    assert guess({**columns, "riskScore": RNG.normal(size=N)}).scores[0] == "riskScore"


def test_columns_that_could_play_a_role_are_those_of_its_type() -> None:
    data = gosta.datasets.load(patients())
    assert could_play(data, "time") == ["days"]
    assert could_play(data, "event") == ["dead"]
    assert could_play(data, "score")[0] == "risk"


def test_events_have_names_in_several_languages() -> None:
    data = patients()
    expected = gosta.exact(data, "concordance-index", time="days", event="dead", score="risk")
    for yes, no in (("ja", "nein"), ("verstorben", "lebt"), ("Dead", "alive"), ("oui", "non")):
        named = {**data, "dead": np.where(np.array(data["dead"]) == 1, yes, no)}
        found = gosta.exact(
            named, "concordance-index", interval=0.95, time="days", event="dead", score="risk"
        )
        assert found.value == expected
        assert f"event: {yes}, as 1" in found.text()
        assert guess(named).events == ["dead"]
        released = gosta.private.release(
            [named, named],
            "concordance-index",
            ranges={"days": (0, 1000), "risk": (0, 1)},
            time="days",
            event="dead",
            score="risk",
        )
        assert released.bracket[0] <= released.value <= released.bracket[1]
    with pytest.raises(gosta.DataError, match="'perhaps' in row 1 where a number is needed"):
        gosta.exact(
            {**data, "dead": np.array(["perhaps", *["no"] * (N - 1)])},
            "concordance-index",
            time="days",
            event="dead",
            score="risk",
        )
