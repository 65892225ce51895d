"""Weighted sums of which a few rows have nearly all the weight."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gosta.models import Model, make_design, make_model
from gosta.models.definition import State
from gosta.models.effective_rows import LEAST_SHARE, effective_rows, few_rows
from gosta.models.folds import folds_of
from gosta.models.terms import Term

Floats = np.ndarray[Any, np.dtype[np.float64]]
RNG = np.random.default_rng(11)
ROWS, COLUMNS, FARTHEST = 1000, 5, 30.0
TIMES = {"time": "t", "event": "e", "times": (1.0, 2.0)}
OPTIONS: dict[str, dict[str, Any]] = {
    "logistic": {"outcome": "y", "classes": (0, 1)},
    "poisson": {"outcome": "y", "high": 9.0},
    "cox": TIMES,
}


def of_term(weights: list[float], *others: Any, **fields: Any) -> list[tuple[float, int]]:
    term = Term(np.array(weights), np.ones((len(weights), 2)), *others, **fields)
    return [(round(effective, 3), count) for effective, count in effective_rows(term)]


def make(name: str, **options: Any) -> tuple[Model, Floats]:
    """Return a model of normal columns, and its rows."""
    names = [f"x{k}" for k in range(COLUMNS)]
    made = make_model(
        name,
        make_design(names, ranges=dict.fromkeys(names, (-6.0, 6.0))),
        **{**OPTIONS[name], **options},
    )
    shares = np.clip(RNG.normal(size=(ROWS, COLUMNS)) / 12 + 0.5, 0.0, 1.0)
    outcome = np.zeros((ROWS, made.response_width))
    outcome[:, 0] = RNG.random(ROWS) < 0.4
    if name == "cox":
        outcome[:, 1] = RNG.random(ROWS) < 0.4
    rows = np.column_stack([shares, outcome])
    return made, np.column_stack([rows, folds_of(rows, made.folds)]) if made.folds else rows


def moved(made: Model, rows: Floats, rank: int, largest: float) -> tuple[State, Floats]:
    """Return a state with coefficients of a random direction, whose boundary lies beyond the row of
    that rank, and the predictors of rows.
    """
    state = made.following(made.first(), made.totals(rows, made.first()))
    direction = RNG.normal(size=COLUMNS)
    direction *= largest / np.abs(direction).max()
    scale = made.scale(state)
    predictors = (rows[:, :COLUMNS] - scale.mean) / scale.deviation @ direction
    intercept = [np.sort(-predictors)[rank] - 5.0] * made.has_intercept
    return replace(state, coefficients=(*intercept, *direction.tolist())), predictors


def test_the_effective_number_of_rows() -> None:
    assert of_term([0.5] * 8, 2) == [(8.0, 8)]
    assert of_term([1, 0, 0, 0], 2) == [(1.0, 4)]
    assert of_term([1e-200, 1e-220, 0], 2) == [(1.0, 3)]
    assert of_term([0.0, 0.0], 2) == []
    # Sums of columns less those of w times columns are sums of 1 − w times columns.
    assert of_term([1, 1, 1, 0], 1) == [(3.0, 4), (1.0, 4)]
    bins = {"bins": np.array([0, 0, 1, 1]), "bin_count": 2}
    assert of_term([1, 1, 1, 0], 2, **bins) == [(3.0, 4), (2.0, 2), (1.0, 2)]
    counted = np.array([True, True, True, False])
    assert of_term([1, 1, 1, 0], 2, **bins, counted=counted) == [(3.0, 3), (2.0, 2), (1.0, 1)]


def test_sums_of_a_row_at_the_edge_are_refused() -> None:
    """With the largest coefficients that there can be, one row has nearly all the weight."""
    made, rows = make("logistic")
    shares = []
    for _ in range(100):
        state, predictors = moved(made, rows, 0, FARTHEST)
        risks = 1 / (1 + np.exp(-predictors - state.coefficients[0]))
        weights = risks * (1 - risks)
        shares.append(weights.max() / weights.sum())
        assert "sums of round 2 would be of" in few_rows(made, rows, state)
    assert np.mean(np.array(shares) > 0.9) > 0.8


@pytest.mark.parametrize("name", ["poisson", "cox"])
def test_sums_of_the_largest_hazards_are_refused(name: str) -> None:
    made, rows = make(name)
    for _ in range(50):
        state, _ = moved(made, rows, 0, FARTHEST)
        assert f"of its {ROWS:,} rows" in few_rows(made, rows, state)


def test_in_sums_that_are_not_refused_no_row_has_much_weight() -> None:
    made, rows = make("logistic")
    taken = 0
    for _ in range(300):
        state, predictors = moved(made, rows, int(RNG.integers(500)), RNG.uniform(0.3, FARTHEST))
        if few_rows(made, rows, state):
            continue
        risks = 1 / (1 + np.exp(-predictors - state.coefficients[0]))
        taken += 1
        for weights in (risks, 1 - risks, risks * (1 - risks)):
            assert weights.max() / weights.sum() < 1 / np.sqrt(ROWS * LEAST_SHARE)
    assert taken > 30


def test_few_rows_and_a_setting_of_0_are_not_refused() -> None:
    made, rows = make("logistic")
    state, _ = moved(made, rows, 0, FARTHEST)
    assert few_rows(made, rows, state)
    assert not few_rows(replace(made, min_rows_per_column=0), rows, state)
    assert not few_rows(made, rows[:25], state)
    assert not few_rows(made, rows[:0], state)
    assert not few_rows(made, rows, made.first())


def test_fits_without_a_fold_are_looked_at_over_their_rows() -> None:
    made, rows = make("logistic", folds=2)
    state, _ = moved(made, rows, 0, FARTHEST)
    fine = made.following(made.first(), made.totals(rows, made.first()))
    assert not few_rows(made, rows, fine)
    assert few_rows(made, rows, replace(fine, others=(fine.others[0], replace(state, others=()))))
