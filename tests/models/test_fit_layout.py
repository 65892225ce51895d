"""The sums of a round of a fit, as private sums take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gosta.models import make_design, make_model
from gosta.models.folds import folds_of
from gosta.models.layout import BITS, FitLayout
from gosta.private.noise import choose_noise
from gosta.private.settings import PrivateSettings
from gosta.private.snapshots import block_digests, count_changes, take_snapshot
from gosta.runtime.arrays import Floats

RNG = np.random.default_rng(3)
N = 500
RANGES = {"age": (0.0, 100.0), "dose": (-4.0, 4.0)}
CASES: dict[str, dict[str, Any]] = {
    "logistic": {"outcome": "y", "classes": (0, 1)},
    "linear": {"outcome": "y", "low": 0.0, "high": 1.0},
    "poisson": {"outcome": "y", "high": 3.0},
    "auc": {"outcome": "y", "classes": (0, 1)},
    "cox": {"time": "t", "event": "y", "times": tuple(range(1, 21))},
}


def layout(name: str, **others: Any) -> FitLayout:
    return FitLayout.first(
        make_model(name, make_design(list(RANGES), ranges=RANGES), **CASES[name], **others)
    )


def rows(name: str) -> Floats:
    """Return encoded rows: shares of ranges, then the response."""
    x = RNG.random((N, 2))
    y = (RNG.random(N) < 0.2 + 0.6 * x[:, 0]).astype(float)
    if name == "cox":
        return np.column_stack([x, RNG.integers(0, 20, N), y, np.zeros(N)])
    return np.column_stack([x, y / 3 if name == "poisson" else y])


def rounds(first: FitLayout, x: Floats) -> list[tuple[FitLayout, Floats]]:
    found: list[tuple[FitLayout, Floats]] = []
    current: FitLayout | None = first
    while current is not None:
        totals = current.sums(x).view(np.int64) / 2.0**BITS
        found.append((current, totals))
        current = current.following(totals)
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("folds", [0, 3])
def test_sums_are_those_of_features_and_plausible(name: str, folds: int) -> None:
    if folds and name == "poisson":
        return
    x = rows(name)
    if folds:
        x = np.column_stack([x, folds_of(x, folds)])
    found = rounds(layout(name, folds=folds), x)
    assert 2 <= len(found) <= 12
    assert len({one.fingerprint for one, _ in found}) == len(found)
    for one, totals in found:
        parts = [one.sums(part).view(np.int64) / 2.0**BITS for part in np.split(x, [7, 200])]
        assert np.array_equal(totals, np.sum(parts, axis=0)), "a row adds the same anywhere"
        assert totals == pytest.approx(one.model.totals(x, one.state), abs=N * 2.0**-BITS)
        assert one.is_plausible(totals, 0.0, N)
        assert not one.is_plausible(totals, 0.0, N - 1)
        for wrong in (-1.0, N + 1.0):
            assert not one.is_plausible(np.append(totals[:-1], wrong), 0.0, 10 * N)
        assert one.most_features >= one.features_per_row
        assert one.blocks == found[0][0].blocks
        assert one.shown
    last, totals = found[-1]
    fit = last.fit(totals)
    assert fit.coefficients == pytest.approx(last.model.fit_rows(x).coefficients, abs=1e-8)
    result = last.results(totals, level=0.9)[0]
    assert result.labels == fit.names
    assert result.rows == N


def test_changes_of_each_column_are_counted_apart() -> None:
    one, x = layout("logistic"), rows("logistic")
    changed = x.copy()
    changed[:, 0] += 1e-9
    changed[0, 2] = 1 - changed[0, 2]
    before, after = (
        block_digests(one, take_snapshot(part, one, None, 0.0), b"key") for part in (x, changed)
    )
    assert [count_changes(before[name], after[name]) for name in before] == [N, 0, 1]


@pytest.mark.parametrize(("declared", "bits"), [(100, 40), (100_000, 34), (5_000_000, 29)])
def test_fractions_have_the_bits_that_declared_rows_leave(declared: int, bits: int) -> None:
    """Totals are exact in a float64, and sums of pads in 60 bits."""
    one = layout("logistic")
    noise = choose_noise(PrivateSettings(), one, 3, [declared] * 3)
    assert noise.bits == bits
    assert 3 * declared * 2.0**bits <= 2**53
    assert 7.5 * declared * one.features_per_row * 2.0**bits <= 2**60


def test_larger_cells_of_an_epoch_change_no_fingerprint() -> None:
    one, x = layout("logistic"), rows("logistic")
    x[:, 1] = np.arange(N) < 4
    totals = one.sums(x).view(np.int64) / 2.0**BITS
    assert one.following(totals) is not None
    assert one.following(totals, min_cell=5) is None
    assert "fewer than 5 rows" in one.results(totals, min_cell=5)[0].why
    following = one.following(totals, min_cell=3)
    assert following == one.following(totals)
