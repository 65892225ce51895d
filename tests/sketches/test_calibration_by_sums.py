"""Calibration by sums: brackets on difficult tables, options, small cells, noise, few numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gosta.datasets import Data
from gosta.errors import GostaError, InputError
from gosta.measures import MEASURES
from gosta.measures.intervals import estimate
from gosta.runtime.arrays import Floats
from gosta.sketches import Bins, Layout, StratumResult, make_layout
from gosta.sketches.layout import BITS

CERTIFIED = (
    "brier-score", "scaled-brier-score", "brier-parts", "log-loss", "observed-expected-ratio",
    "calibration-in-the-large", "calibration-intercept", "calibration-slope", "calibration-curve",
    "hosmer-lemeshow",
)  # fmt: skip
ESTIMATED = ("smooth-calibration-curve", "calibration-error")
LEAST = 1e-6  # risks nearer to 0 or 1 are moved there for their logits


def rows_of(seed: int, n: int | None = None) -> Floats:
    """Return risks and classes: even, in tails, low, with ties, with 0 and 1, or close together."""
    rng = np.random.default_rng([32, seed])
    n = n or int(rng.choice([10, 40, 150, 600]))
    kinds = [
        rng.random(n),
        rng.beta(0.2, 0.3, n),
        rng.beta(1, 30, n),
        rng.integers(0, 11, n) / 10,
        np.where(rng.random(n) < 0.2, rng.integers(0, 2, n), rng.random(n)),
        0.3 + 0.01 * rng.normal(size=n),
    ]
    risks = kinds[seed % 6]
    classes = np.where(rng.random(n) < np.clip(risks, 0.05, 0.95) ** rng.uniform(0.5, 2), 1.0, -1.0)
    classes[:2] = 1, -1
    return np.column_stack([risks, classes])


def layout_of(name: str, bins: int = 64, **settings: Any) -> Layout:
    options = settings.pop("options", {})
    ranges = settings.pop("ranges", {"risk": (0.0, 1.0)})
    chosen = Bins(bins, ranges, **settings)
    return make_layout(name, chosen, label="died", score="risk", classes=(0, 1), options=options)


def result_of(layout: Layout, x: Floats, **settings: Any) -> StratumResult:
    (result,) = layout.results(layout.sums(x) / 2.0**BITS, **settings)
    return result


def exact_of(layout: Layout, x: Floats) -> Floats | None:
    made = layout.sketches[0]
    try:
        value = MEASURES[made.name].over(x, None, {**made.options, **made.points}).value
    except GostaError:
        return None
    return value if np.isfinite(value).all() else None


def ends(result: StratumResult) -> tuple[Floats, Floats]:
    return np.array(result.low, dtype=float), np.array(result.high, dtype=float)


@pytest.mark.parametrize("name", CERTIFIED)
def test_brackets_hold_the_values_of_200_tables(name: str) -> None:
    checked = 0
    for seed in range(200):
        x, layout = rows_of(seed), layout_of(name, [64, 10, 3, 100][seed // 6 % 4])
        value = exact_of(layout, x)
        if value is None:
            continue
        result = result_of(layout, x)
        low, high = ends(result)
        assert result.is_certified
        assert (low <= value).all(), (seed, value, low)
        assert (value <= high).all(), (seed, value, high)
        checked += 1
    assert checked > 120


@pytest.mark.parametrize("name", ESTIMATED)
def test_estimated_brackets_hold_most_values(name: str) -> None:
    inside = []
    for seed in range(200):
        x, layout = rows_of(seed), layout_of(name, [64, 10, 3, 100][seed // 6 % 4])
        value = exact_of(layout, x)
        if value is not None:
            result = result_of(layout, x)
            low, high = ends(result)
            assert not result.is_certified
            inside.append(bool(((low <= value) & (value <= high)).all()))
    assert len(inside) > 120
    assert np.mean(inside) > 0.97


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("brier-score", 1e-8),
        ("scaled-brier-score", 1e-7),
        ("brier-parts", 1e-8),
        ("log-loss", 1e-4),
        ("observed-expected-ratio", 1e-7),
        ("calibration-in-the-large", 1e-3),
        ("calibration-intercept", 5e-3),
        ("calibration-slope", 5e-3),
        ("smooth-calibration-curve", 0.02),
        ("calibration-error", 0.05),
    ],
)
def test_brackets_of_64_bins_are_narrow(name: str, most: float) -> None:
    rng = np.random.default_rng(5)
    z = rng.normal(-1, 1.3, 3000)
    risks = 1 / (1 + np.exp(-z))
    x = np.column_stack([risks, np.where(rng.random(3000) < risks**1.2, 1.0, -1.0)])
    low, high = ends(result_of(layout_of(name), x))
    assert (high - low).max() < most


def test_intervals_by_sums_are_those_of_rows() -> None:
    x = rows_of(0, 3000)
    for name in (*CERTIFIED, "smooth-calibration-curve"):
        layout = layout_of(name)
        result = result_of(layout, x, level=0.95)
        found = MEASURES[name]
        if found.no_interval:
            assert result.interval is None
            assert not result.intervals
            continue
        made = layout.sketches[0]
        wanted = estimate(found, x, None, {**made.options, **made.points}, 0.95)
        interval = [result.interval] if result.interval else result.intervals
        width = np.max(np.atleast_1d(wanted.high) - np.atleast_1d(wanted.low))
        np.testing.assert_allclose(
            np.array(interval).T, np.atleast_2d([wanted.low, wanted.high]).reshape(2, -1),
            atol=0.03 * width,
        )  # fmt: skip


def test_all_of_them_share_a_block_that_fits_beside_others() -> None:
    layout = layout_of(",".join((*CERTIFIED, *ESTIMATED)))
    assert layout.size == 10 * 72  # 64 bins, and 8 cuts that are no edges of these
    assert layout.features_per_row == 5
    assert layout_of("auc,roc-curve,brier-score,calibration-slope").size == 2 * 64 + 10 * 64


def test_bins_of_curves_are_cut_where_it_is_said() -> None:
    x = rows_of(0, 600)
    layout = layout_of("calibration-curve", 7, options={"cuts": "0.05,0.3"})
    result = result_of(layout, x)
    assert result.labels == ("risk 0 to 0.05", "risk 0.05 to 0.3", "risk 0.3 to 1")
    wanted = MEASURES["calibration-curve"].over(x, None, {"cuts": "0.05,0.3"})
    np.testing.assert_allclose(np.array(result.value, dtype=float), wanted.value, rtol=1e-12)
    assert wanted.at is not None
    np.testing.assert_allclose(np.array(result.at, dtype=float), wanted.at, rtol=1e-6)
    assert result.labels == wanted.labels


def test_small_bins_are_shown_together() -> None:
    x = rows_of(0, 150)
    for name in ("calibration-curve", "brier-parts", "hosmer-lemeshow"):
        layout = layout_of(name)
        result = result_of(layout, x, min_cell=8)
        (merged, _) = layout.sketches[0].merged(layout.sums(x) / 2.0**BITS, 8)
        edges = np.array(merged.points.get("cuts", ()))
        place = np.searchsorted(edges, x[:, 0], side="right")
        counts = np.array(
            [np.bincount(place[x[:, 1] == sign], minlength=len(edges) + 1) for sign in (1, -1)]
        )
        assert 1 < counts.shape[1] < 10
        assert ((counts == 0) | (counts >= 8)).all()
        wanted = MEASURES[name].over(x, None, {"cuts": edges}).value
        np.testing.assert_allclose(
            np.array(result.value, dtype=float), wanted, rtol=1e-5, atol=1e-7
        )


def test_ranges_place_edges_and_change_nothing_else() -> None:
    x = rows_of(2, 600)  # risks mostly below 0.1
    layout = layout_of("calibration-slope", ranges={"risk": (0.0, 0.2)})
    result = result_of(layout, x)
    value, (low, high) = exact_of(layout, x), ends(result)
    assert value is not None
    assert result.clipped == 0
    assert low[0] <= value[0] <= high[0]
    with pytest.raises(InputError, match=r"range of 'risk' = -1:1 must lie between 0 and 1"):
        layout_of("brier-score", ranges={"risk": (-1.0, 1.0)})


def test_one_class_has_no_calibration() -> None:
    x = np.column_stack([np.linspace(0.1, 0.9, 30), np.ones(30)])
    for name in ("scaled-brier-score", "calibration-slope", "calibration-in-the-large", *ESTIMATED):
        assert not result_of(layout_of(name), x).has_value
    assert result_of(layout_of("brier-score"), x).has_value


def test_values_with_noise_are_near_those_without() -> None:
    """Noise with a deviation of 5 on 20,000 rows; low and high hold the value in most draws."""
    x, rng = rows_of(0, 20_000), np.random.default_rng(6)
    for name in (*CERTIFIED, *ESTIMATED):
        layout = layout_of(name, 20)
        totals = layout.sums(x) / 2.0**BITS
        value = exact_of(layout, x)
        assert value is not None
        if name == "hosmer-lemeshow":
            (result,) = layout.results(totals + rng.normal(size=len(totals)), noise_variance=1.0)
            assert not result.has_value
            continue
        inside = []
        for _ in range(5):
            noisy = totals + 5 * rng.normal(size=len(totals))
            (result,) = layout.results(noisy, noise_variance=25.0, level=0.95)
            low, high = ends(result)
            inside.append((low <= value) & (value <= high))
            assert np.abs(np.array(result.value, dtype=float) - value).max() < 0.1, name
        assert np.mean(inside) > 0.7, (name, value, low, high)


def test_sites_add_up_and_strata_have_values_of_their_own() -> None:
    x = rows_of(0, 600)
    data = Data(
        "rows",
        {"risk": x[:, 0], "died": (x[:, 1] > 0) * 1, "sex": np.array(["f", "m"] * 300)},
        label="died",
        score="risk",
    )
    layout = make_layout(
        "calibration-slope", Bins(64, {"risk": (0.0, 1.0)}, strata={"sex": ("f", "m")}),
        label="died", score="risk", classes=(0, 1),
    )  # fmt: skip
    sums = layout.sums(layout.encode(data))
    results = layout.results(sums / 2.0**BITS)
    for result, rows in zip(results, (x, x[::2], x[1::2]), strict=True):
        (value,), (low, high) = MEASURES["calibration-slope"].over(rows).value, ends(result)
        assert low[0] <= value <= high[0]
