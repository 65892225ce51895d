"""Names of columns and values in other languages."""

from __future__ import annotations

import pytest

from gosta.datasets.meanings import level_of, likeness


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("risk", "Ryzyko zgonu"),
        ("died", "Zgon"),
        ("died", "Óbito"),
        ("age", "Wiek (lata)"),
        ("days", "Dni obserwacji"),
        ("risk_new", "Risiko_neu_%"),
        ("sex", "Geschlecht"),
        ("height", "Größe"),
    ],
)
def test_the_column_that_is_meant_is_the_likest(wanted: str, name: str) -> None:
    others = ["Ryzyko zgonu", "Wiek (lata)", "Dni obserwacji", "Geschlecht", "PatNr", name]
    assert max(others, key=lambda one: likeness(wanted, one)) == name
    assert likeness(wanted, "Bemerkung") == 0


def test_values_that_mean_a_declared_one() -> None:
    answers = [level_of(value, ("no", "yes")) for value in ("tak", "NIE", "não", 1, 0.0, "perhaps")]
    assert answers == ["yes", "no", "no", "yes", "no", None]
    assert [level_of(value, (0, 1)) for value in ("zmarł", "żyje")] == [1, 0]
    assert [level_of(value, ("f", "m")) for value in ("K", "w", "Mężczyzna", "V", "x")] == [
        *"ffmf",
        None,
    ]
    assert level_of("fem", ("female", "male")) == "female"
    assert level_of("no", ("A", "B")) is None
