"""Counts of few rows: they are left out, and do not follow from what is shown."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest

import gosta
from gosta.measures.table_one import MISSING
from gosta.private.policy import Policy
from gosta.runtime.arrays import Booleans, Floats
from gosta.sketches.estimates import estimates_of
from gosta.sketches.suppression import suppressed
from gosta.statistics.estimate import Estimate

LEAST = 5


def follows(known: list[Floats], wanted: Floats) -> bool:
    """Return whether a sum of counts follows from sums that are known."""
    if not known:
        return False
    rows = np.array(known).T
    found = np.linalg.lstsq(rows, wanted, rcond=None)[0]
    return bool(np.allclose(rows @ found, wanted, atol=1e-9))


def told(cells: Floats, hidden: Booleans, untold: bool) -> list[Floats]:
    """Return the sums of cells (groups × classes) that a table shows, as 0 and 1 for each cell."""
    shown = []
    places = np.arange(cells.size).reshape(cells.shape)
    for k, row in enumerate(places):
        is_shown = not (untold and k == len(places) - 1)
        chosen = [[place] for place, is_left in zip(row, hidden[k + 1], strict=True) if not is_left]
        shown += [*chosen, list(row)] if is_shown else []
    shown += [list(places[:, c]) for c in range(cells.shape[1]) if not hidden[0, c]]
    shown.append(list(places.ravel()))
    return [np.bincount(own, minlength=cells.size).astype(float) for own in shown]


@pytest.mark.parametrize("untold", [False, True])
def test_small_counts_of_random_tables_follow_from_nothing(untold: bool) -> None:
    rng = np.random.default_rng(3)
    tables = 0
    while tables < 300:
        shape = rng.integers(2, 6), rng.integers(1, 5)
        cells = np.asarray(rng.negative_binomial(1, 0.05, shape), dtype=np.float64)
        cells[rng.random(shape) < 0.1] = 0
        if (cells.sum(axis=1) < LEAST).any():
            continue  # such groups are not shown at all
        tables += 1
        counts = np.vstack([cells.sum(axis=0), cells])
        last = [len(cells)] if untold else []
        hidden = suppressed(counts, [(0, range(1, len(counts)))], last, LEAST)
        small = (counts > 0) & (counts < LEAST)
        small[last] = False
        assert hidden[small].all()
        known = told(cells, hidden, untold)
        places = np.arange(cells.size).reshape(cells.shape)
        for line in [*places, *places.T]:
            for chosen in chain.from_iterable(combinations(line, k) for k in range(1, 4)):
                if 0 < cells.ravel()[list(chosen)].sum() < LEAST:
                    wanted = np.bincount(chosen, minlength=cells.size).astype(float)
                    assert not follows(known, wanted), (cells, hidden)


def test_tables_without_small_counts_are_whole() -> None:
    counts = np.array([[20.0, 30, 0], [12, 30, 0], [8, 0, 0]])
    assert not suppressed(counts, [(0, [1, 2])], [], LEAST).any()


def make_rows(seed: int) -> dict[str, Any]:
    """Return rows with a small ward, few deaths of one sex, and a few missing stages."""
    rng = np.random.default_rng(seed)
    n = 240
    ward = rng.choice(["a", "b", "c", "d"], n, p=[0.5, 0.3, 0.185, 0.015])
    risk, time = rng.random(n), rng.exponential(4, n).round(1) + 0.1
    stage = rng.choice([1.0, 2.0, 3.0, np.nan], n, p=[0.6, 0.35, 0.03, 0.02])
    return {
        "ward": ward,
        "sex": rng.choice(["f", "m"], n),
        "risk": risk,
        "died": (rng.random(n) < risk).astype(int),
        "stage": stage,
        "age": np.where(rng.random(n) < 0.01, np.nan, rng.integers(30, 90, n)),
        "time": time,
        "event": (rng.random(n) < 0.6).astype(int),
    }


LEVELS: dict[str, list[Any]] = {
    "ward": ["a", "b", "c", "d"],
    "sex": ["f", "m"],
    "stage": [1, 2, 3],
    "died": [0, 1],
}


def release(rows: dict[str, Any], groups: tuple[str, ...]) -> dict[str, Estimate]:
    found = gosta.private.release(
        [{name: values[k::3] for name, values in rows.items()} for k in range(3)],
        "auc:risk,numbers-at-risk:time+event,table-one:ward+sex+stage+died+age",
        ranges={"risk": (0, 1), "age": (0, 100), "time": (0, 60)},
        strata={"ward": LEVELS["ward"], "sex": LEVELS["sex"]},
        groups=groups,
        classes=[0, 1],
        options={"table-one": {"levels": LEVELS}, "numbers-at-risk": {"times": [1, 2, 8]}},
        drop_missing=True,
        policy=Policy(modes=("private",), min_rows=0, min_sites=1, min_cell=LEAST),
        score="risk",
        label="died",
        time="time",
        event="event",
    )
    return {one.statistic.partition(":")[0]: one for one in estimates_of(found.results, 0.95)}


def told_counts(found: dict[str, Estimate], rows: dict[str, Any]) -> list[tuple[Booleans, str]]:
    """Return which rows each number of a release counts, and what it is."""
    counted = []
    table = found["table-one"]
    rounded = {
        label.partition(":")[0]
        for one in (table, *(g for e in table.grouped for g in e.groups if g.value is not None))
        for label, value in zip(one.labels, np.ravel(one.value), strict=True)
        if label.endswith(MISSING) and np.isnan(value)
    }
    for name, pooled in found.items():
        for by, one in [("", pooled), *((e.by or "", g) for e in pooled.grouped for g in e.groups)]:
            if one.value is None:
                continue
            own = np.ones(len(rows["ward"]), dtype=bool)
            for column, value in zip(by.split(", "), (one.group or "").split(", "), strict=True):
                own &= not by or rows[column] == value
            counted.append((own, f"n of {one.group}"))
            assert one.n == own.sum()
            if name == "table-one":
                values = dict(zip(one.labels, np.ravel(one.value).tolist(), strict=True))
                counted += list(told_shares(values, own, rows, rounded))
    return counted


def told_shares(
    values: dict[str, float], own: Booleans, rows: dict[str, Any], rounded: set[str]
) -> list[tuple[Booleans, str]]:
    """Return which rows are counted by the shares of a Table 1 whose number of rows is known."""
    counted = []
    for label, share in values.items():
        column, _, value = label.partition(" = ")
        name = column.partition(":")[0]
        present = ~np.isnan(rows[name]) if rows[name].dtype.kind == "f" else own | True
        if label == f"{name}: {MISSING}" and np.isfinite(share):
            counted.append((own & ~present, label))
            assert share == pytest.approx((own & ~present).sum() / own.sum(), abs=1e-12)
        if value and np.isfinite(share):
            chosen = own & (rows[name].astype(str) == {"stage": f"{value}.0"}.get(name, value))
            exact = chosen.sum() / (own & present).sum()
            assert abs(share - exact) < LEAST / own.sum()
            if name not in rounded:
                assert share == pytest.approx(exact, abs=1e-12)
                counted.append((chosen, label))
            else:  # a share of a whole number of steps tells no number of rows with a value
                assert share * own.sum() / LEAST == pytest.approx(
                    round(share * own.sum() / LEAST), abs=1e-9
                )
    return counted


@pytest.mark.parametrize("groups", [("ward",), ("ward", "sex"), ("ward+sex",), ("ward+sex", "sex")])
def test_no_difference_of_what_a_release_shows_tells_a_small_count(groups: tuple[str, ...]) -> None:
    hidden = 0
    for seed in range(12):
        rows = make_rows(seed)
        found = release(rows, groups)
        hidden += sum(group.value is None for group in found["auc"].grouped[0].groups)
        counted = told_counts(found, rows)
        distinct = {own.tobytes(): (own, what) for own, what in counted}
        masks = np.array([own for own, _ in distinct.values()]).astype(np.int64)
        for taken in (1, 2, 3):
            for places in combinations(range(len(masks)), taken):
                left = masks - masks[list(places)].sum(axis=0)
                is_set = left.min(axis=1) >= 0
                sizes = left.sum(axis=1)
                assert not (is_set & (sizes > 0) & (sizes < LEAST)).any(), (seed, places)
    assert hidden > 0
