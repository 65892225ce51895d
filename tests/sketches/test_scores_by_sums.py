"""Curves, areas and shares at thresholds by sums: in their brackets, exact where they can be."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

import gosta
from gosta.measures import MEASURES
from gosta.measures.intervals import estimate
from gosta.measures.thresholds import RATIOS
from gosta.runtime.arrays import Floats
from gosta.sketches import Bins, Layout, StratumResult, make_layout
from gosta.sketches.layout import BITS

CURVES = ("roc-curve", "precision-recall-curve")
AREAS = ("average-precision", "partial-auc")
POINTS: dict[str, Any] = {
    "thresholds": "0,0.11,0.3,0.5,0.85,0.999",
    "rates": "0,0.01,0.2,0.55,1",
    "recalls": "0.001,0.2,0.55,1",
    "max_fpr": 0.23,
}


def rows(seed: int, n: int | None = None) -> Floats:
    """Return encoded rows: risks with ties, at ends of bins and at thresholds, and classes."""
    rng = np.random.default_rng([17, seed])
    n = n or int(rng.choice([2, 5, 20, 70, 200]))
    sign = np.where(rng.random(n) < rng.choice([0.1, 0.5, 0.9]), 1.0, -1.0)
    sign[:2] = 1.0, -1.0
    risk = np.clip(rng.random(n) ** rng.choice([0.5, 1, 4]) + 0.1 * sign, 0, 1)
    risk = np.round(risk, int(rng.choice([1, 2, 15])))
    return np.column_stack([risk, sign])


def layout_of(names: str, bins: int = 8, low: float = 0.0, **settings: Any) -> Layout:
    known = {"thresholds", "rates", "recalls", "max_fpr"}
    options = {k: v for k, v in POINTS.items() if k in known and _has(names, k)}
    ranges = Bins(bins, {"risk": (low, 1.0)}, **settings)
    return make_layout(names, ranges, label="ill", score="risk", classes=(0, 1), options=options)


def _has(names: str, option: str) -> bool:
    return any(option in MEASURES[name].options for name in names.split(",") if name in MEASURES)


def options_of(name: str) -> dict[str, Any]:
    return {k: v for k, v in POINTS.items() if k in MEASURES[name].options}


def result_of(x: Floats, layout: Layout, **given: Any) -> StratumResult:
    (result,) = layout.results(layout.sums(x) / 2.0**BITS, **given)
    return result


def floats(values: Any) -> Floats:
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize("name", [*CURVES, *AREAS, *RATIOS])
@pytest.mark.parametrize("min_cell", [0, 4])
def test_brackets_hold_in_200_tables(name: str, min_cell: int) -> None:
    checked = 0
    for seed in range(200):
        x = rows(seed)
        start = -0.1 if seed % 2 else 0.15  # some values and thresholds are beyond the range
        layout = layout_of(name, [1, 3, 10, 64][seed % 4], start)
        if seed % 5 == 0:
            layout = layout_of(name, edges={"risk": (0.1, 0.2, 0.55, 0.9)})
        result = result_of(x, layout, min_cell=min_cell, level=0.9)
        if not result.has_value:
            assert min_cell or name == "precision-recall-curve"
            continue
        exact = MEASURES[name].over(x, None, options_of(name)).value
        low, value, high = map(floats, (result.low, result.value, result.high))
        there = np.isfinite(exact) & np.isfinite(value)
        assert (there == np.isfinite(exact))[1:].all() or layout.sketches[0].axes[0].low > 0.11
        assert ((low <= exact) & (exact <= high))[there].all(), (seed, exact, result)
        assert ((low <= value) & (value <= high))[np.isfinite(value)].all()
        assert result.is_certified
        checked += int(there.sum())
    assert checked > 90


@pytest.mark.parametrize("name", RATIOS)
def test_values_and_intervals_at_thresholds_are_those_of_the_rows(name: str) -> None:
    for seed in range(50):
        x = rows(seed)
        result = result_of(x, layout_of(name, low=-0.1), level=0.95)
        found = estimate(MEASURES[name], x, None, options_of(name), 0.95)
        np.testing.assert_allclose(floats(result.value), found.value, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(floats(result.standard_errors), found.standard_error, rtol=1e-9)
        np.testing.assert_allclose(
            floats(result.intervals).T, [found.low, found.high], rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(floats(result.high), floats(result.low), atol=3e-12)


def test_one_threshold_has_a_standard_error_and_an_interval() -> None:
    rng = np.random.default_rng(5)
    risk = rng.random(400)
    table = {"risk": risk, "ill": (rng.random(400) < risk).astype(int)}
    given: dict[str, Any] = {"score": "risk", "label": "ill", "interval": 0.95}
    for name in ("sensitivity", "net-benefit"):
        exact = gosta.exact(table, name, thresholds=0.3, **given)
        by_sums = gosta.exact(table, name, thresholds=0.3, bins=16, **given)
        for end in ("value", "low", "high", "standard_error"):
            assert getattr(by_sums, end) == pytest.approx(getattr(exact, end), rel=1e-9)
        assert by_sums.bracket == pytest.approx((exact.value, exact.value), abs=1e-11)
    for name in (*CURVES, *AREAS):
        options = options_of(name)
        exact = gosta.exact(table, name, **options, **given)
        by_sums = gosta.exact(table, name, **options, bins=64, **given)
        for end in ("low", "high"):
            ours, theirs = (np.ravel(getattr(one, end)) for one in (by_sums, exact))
            np.testing.assert_allclose(ours, theirs, atol=0.07)


def test_all_take_the_same_sums() -> None:
    names = ",".join([*CURVES, *AREAS, *RATIOS, "auc", "kolmogorov-smirnov"])
    layout = layout_of(names, bins=10)
    edges = {k / 10 for k in range(1, 10)} | {0.11, 0.3, 0.5, 0.85, 0.999}
    assert layout.size == 2 * (len(edges) + 1)
    assert {axis.edges for sketch in layout.sketches for axis in sketch.axes} == {
        tuple(sorted(edges))
    }
    x = rows(3, 500)
    for result in layout.results(layout.sums(x) / 2.0**BITS):
        if result.statistic in RATIOS:
            least = not RATIOS[result.statistic].by_odds  # a score can be below its range, no risk
            widths = floats(result.high) - floats(result.low)
            assert widths[least:].max() < 1e-9


@pytest.mark.parametrize("name", AREAS)
def test_where_rows_of_a_bin_have_one_score_areas_are_exact(name: str) -> None:
    for seed in range(20):
        x = rows(seed, 150)
        x[:, 0] = np.round(x[:, 0], 1)
        layout = layout_of(name, edges={"risk": tuple(k / 10 - 0.05 for k in range(1, 11))})
        exact = MEASURES[name].over(x, None, options_of(name))
        result = result_of(x, layout)
        assert result.value[0] == pytest.approx(exact.value[0], rel=1e-12)
        found = estimate(MEASURES[name], x, None, options_of(name), 0.95)
        assert result.standard_error == pytest.approx(found.standard_error, rel=0.01)


def test_merging_keeps_the_thresholds_that_it_can() -> None:
    x = np.column_stack(
        [np.repeat([0.05, 0.15, 0.4, 0.7], [30, 3, 40, 20]), np.tile([1, -1, 1], 31)]
    )
    layout = layout_of("sensitivity", bins=40)
    result = result_of(x, layout, min_cell=5)
    exact = MEASURES["sensitivity"].over(x, None, options_of("sensitivity")).value
    widths = dict(zip(result.labels, floats(result.high) - floats(result.low), strict=True))
    is_known = {label for label, width in widths.items() if width < 1e-11}
    assert is_known >= {"score >= 0.3", "score >= 0.5"}  # or 0.11, as 3 rows are from it to 0.3
    assert "score >= 0.11" not in is_known
    assert (floats(result.low) <= exact).all()
    assert (exact <= floats(result.high)).all()
    sketch: Any = layout.sketches[0]
    merged, totals = sketch.merged(layout.sums(x) / 2.0**BITS, 5)
    for counts, starts in zip(totals.reshape(2, -1), merged.starts, strict=True):
        cells = np.add.reduceat(counts, starts)
        assert ((cells == 0) | (cells >= 5)).all()


def test_a_small_class_hides_nothing_of_the_other_one() -> None:
    rng = np.random.default_rng(5)
    risk = rng.beta(2, 4, 900)
    x = np.column_stack([risk, np.where(rng.random(900) < risk**1.2, 1.0, -1.0)])
    thresholds = np.arange(1, 20) / 20
    options = {"thresholds": thresholds.tolist()}
    bins = Bins(2, {"risk": (0.0, 1.0)})  # all edges are thresholds
    layout = make_layout(
        "net-benefit", bins, label="ill", score="risk", classes=(0, 1), options=options
    )
    sketch: Any = layout.sketches[0]
    merged, totals = sketch.merged(layout.sums(x) / 2.0**BITS, 5)
    edges = [set(np.array(merged.axes[0].edges)[starts[1:] - 1]) for starts in merged.starts]
    assert edges[0] != edges[1]
    for counts, kept in zip(totals.reshape(2, -1), edges, strict=True):
        assert len(kept) == most_edges(counts, 5)
    result = result_of(x, layout, min_cell=5)
    exact = MEASURES["net-benefit"].over(x, None, options).value
    low, high = floats(result.low), floats(result.high)
    assert ((low <= exact) & (exact <= high)).all()
    assert (high - low < 1e-11).sum() == len(edges[0] & edges[1])


def most_edges(counts: Floats, min_cell: int) -> int:
    """Return the most edges that can be left between bins, by trying all last bins."""
    best = [0] + [-99] * len(counts)
    for stop in range(1, len(counts) + 1):
        for start in range(stop):
            rows = counts[start:stop].sum()
            if rows == 0 or rows >= min_cell:
                best[stop] = max(best[stop], best[start] + 1)
    return best[-1] - 1


def test_noise_hides_single_points_only() -> None:
    rng = np.random.default_rng(2)
    risk = rng.random(3000) ** 3
    x = np.column_stack([risk, np.where(rng.random(3000) < risk, 1.0, -1.0)])
    layout = layout_of("positive-predictive-value", bins=16)
    totals = layout.sums(x) / 2.0**BITS
    exact = (
        MEASURES["positive-predictive-value"]
        .over(x, None, options_of("positive-predictive-value"))
        .value
    )
    inside = missing = 0
    for _ in range(20):
        noisy = totals + 10.0 * rng.normal(size=len(totals))
        (result,) = layout.results(noisy, noise_variance=100.0, level=0.95)
        low, value, high = map(floats, (result.low, result.value, result.high))
        assert np.isfinite(value[:5]).all()
        assert not result.is_certified
        inside += int(((low <= exact) & (exact <= high))[:5].sum())
        missing += bool(np.isnan(value[5]))  # few rows have a risk of 0.999
        ends = floats(result.intervals)
        assert (ends[:5, 0] <= value[:5]).all()
        assert (value[:5] <= ends[:5, 1]).all()
    assert inside >= 90
    assert missing > 0


def test_points_without_a_value_survive_messages() -> None:
    x = np.column_stack([np.full(20, 0.4), np.tile([1.0, -1.0], 10)])
    result = result_of(x, layout_of("positive-predictive-value"))
    assert result.value[-1] is None
    for coder in (msgspec.json, msgspec.msgpack):
        assert coder.decode(coder.encode(result), type=StratumResult) == result
