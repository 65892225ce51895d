"""Rows and identifiers that are there twice, and those that are only alike."""

from __future__ import annotations

import numpy as np
import pytest

from gosta.datasets import load
from gosta.datasets.copies import copied_rows, repeated_ids

N = 200
RNG = np.random.default_rng(5)
NONE = np.zeros(N, dtype=np.bool_)
ROWS = {
    "date": RNG.integers(1, 600, N).astype(str).astype(object),
    "age": np.append(RNG.integers(20, 90, N - 1), np.nan),
    "sex": RNG.choice(["f", "m"], N).astype(object),
}


def test_copies_are_told_from_rows_that_are_alike_by_chance() -> None:
    assert not copied_rows(load(ROWS)).any()
    twice = {name: np.concatenate([values, values[-3:]]) for name, values in ROWS.items()}
    assert np.flatnonzero(copied_rows(load(twice))).tolist() == [N, N + 1, N + 2]
    assert not copied_rows(load({"sex": ROWS["sex"], "died": ROWS["sex"][::-1]})).any()


@pytest.mark.parametrize(
    ("name", "values", "is_id"),
    [
        ("Nr", [*range(N - 2), 5, 6], True),
        ("x", [*range(N - 2), 5, 6], True),
        ("x", [f"P{k:04}" for k in [*range(N - 2), 5, 6]], True),
        ("days", RNG.integers(1, 1500, N).tolist(), False),
        ("patient", RNG.integers(1, 20, N).tolist(), False),
        ("Nr", list(range(N)), False),
        ("seen", [f"2020-01-{k}" for k in [*range(N - 2), 5, 6]], False),
    ],
)
def test_values_that_name_rows_are_told_by_their_name_or_form(
    name: str, values: list[object], is_id: bool
) -> None:
    data = load({**ROWS, name: values})
    assert list(repeated_ids(data, NONE)) == [name] * is_id
