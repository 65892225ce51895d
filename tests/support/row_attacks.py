"""What a member can compute of rows from the totals of a fit's rounds, without noise.

If columns have few possible values, all possible rows are known, and only how many there are of
each is not. Totals are sums over rows, so these numbers solve linear equations, one for each number
of each round, and are not negative: where rows are few, there is one solution.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from gosta.models import Model, make_design, make_model
from gosta.models.cox import Cox
from gosta.models.layout import BITS, FitLayout

Floats = np.ndarray[Any, np.dtype[np.float64]]
AGES = np.arange(101) / 100  # as shares of their range
WEEKS = 40
RANGES = {"age": (0, 100), "sex": (0, 1)}


class Shares(NamedTuple):
    """Of the rows, what a member computes, and what rows of other people have in common with it."""

    computed: float
    by_chance: float


def attack_logistic(n: int, rng: np.random.Generator) -> Shares:
    """Compute rows of a logistic model of age and sex, among all that there can be."""
    given: dict[str, Any] = {"outcome": "died", "classes": (0, 1), "min_rows_per_column": 0}
    model = make_model("logistic", make_design(["age", "sex"], ranges=RANGES), **given)
    possible = combined(AGES, [0, 1], [0, 1])
    rows, others = (patients(n, rng)[:, [0, 1, 3]] for _ in range(2))
    found = solve(rounds_of(model, rows), possible)
    chance = common(counts(others, possible), rows, possible)
    return shares([common(found, rows, possible)], [chance], n)


def attack_cox(n: int, min_cell: int, rng: np.random.Generator) -> Shares:
    """Compute rows of a Cox model of age and sex, in each bin of time by its own sums."""
    times = tuple(range(WEEKS))
    given: dict[str, Any] = {"time": "weeks", "event": "seen", "times": times}
    model = make_model("cox", make_design(["age", "sex"], ranges=RANGES), **given)
    assert isinstance(model, Cox)
    rows, others = (np.column_stack([patients(n, rng), np.zeros(n)]) for _ in range(2))
    rounds = rounds_of(model, rows, min_cell)[1:]
    bins = model.bins(rounds[0][0].state)
    computed, chance = [], []
    for number, start in enumerate(bins.starts.tolist()):
        possible = combined(AGES, [0, 1], [start], [0, 1], [0])
        inside, other = (x[bins.place[x[:, 2].astype(int)] == number] for x in (rows, others))
        inside[:, 2] = other[:, 2] = start  # which week of the bin, no sum tells
        computed.append(common(solve(rounds, possible, in_bins=True), inside, possible))
        chance.append(common(counts(other, possible), inside, possible))
    return shares(computed, chance, n)


def patients(n: int, rng: np.random.Generator) -> Floats:
    """Return age, sex, week and whether there was an event, as models encode them."""
    age, sex = rng.integers(30, 90, n), rng.integers(0, 2, n)
    weeks = np.floor(rng.exponential(20 * np.exp(-(age - 60) / 40))).clip(0, WEEKS - 1)
    return np.column_stack([age / 100, sex, weeks, rng.random(n) < 0.3 + 0.005 * age])


def combined(*values: Sequence[float] | Floats) -> Floats:
    """Return all combinations of values, one in each row."""
    grid = np.meshgrid(*[np.asarray(one, dtype=float) for one in values], indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, len(values))


def rounds_of(model: Model, rows: Floats, min_cell: int = 0) -> list[tuple[FitLayout, Floats]]:
    """Return the sums of each round, and their totals, as all members know them."""
    found = []
    current: FitLayout | None = FitLayout.first(model)
    while current is not None:
        found.append((current, np.asarray(current.sums(rows).view(np.int64) / 2.0**BITS)))
        current = current.following(found[-1][1], min_cell)
    return found


def solve(
    rounds: list[tuple[FitLayout, Floats]], possible: Floats, in_bins: bool = False
) -> Floats:
    """Return how many rows there are of each possible kind, as far as totals tell.

    With `in_bins`, from the sums of bins to which only these kinds of rows contribute.
    """
    left, right = [], []
    for layout, totals in rounds:
        places, values = layout.model.features(possible, layout.state)
        added = np.zeros((layout.size, len(possible)))
        kinds = np.arange(len(possible))[:, None]
        np.add.at(added, (places, kinds), np.floor(values * 2.0**BITS + 0.5) / 2.0**BITS)
        terms = layout.model.empty_terms(layout.state)
        is_binned = np.repeat([one.bins is not None for one in terms], [one.size for one in terms])
        used = added.any(axis=1) & (is_binned if in_bins else True)
        left.append(added[used])
        right.append(totals[used])
    found = nnls(np.vstack(left), np.concatenate(right), maxiter=100_000)[0]
    return np.asarray(np.rint(found))


def counts(rows: Floats, possible: Floats) -> Floats:
    """Return how many rows are of each possible kind."""
    place = {tuple(row): k for k, row in enumerate(possible.tolist())}
    places = np.array([place[tuple(row)] for row in rows.tolist()], dtype=int)
    return np.bincount(places, minlength=len(possible)).astype(float)


def common(found: Floats, rows: Floats, possible: Floats) -> float:
    """Return how many rows are among those that were found."""
    return float(np.minimum(found, counts(rows, possible)).sum())


def shares(computed: Iterable[float], by_chance: Iterable[float], n: int) -> Shares:
    return Shares(sum(computed) / n, sum(by_chance) / n)
