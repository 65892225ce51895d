"""One contract for every sketch; a new one is tested without further code."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sketch_cases import COLUMNS, OPTIONS, RISK_RANGES, RISKS, SCORES

import gosta
from gosta.datasets import Data
from gosta.errors import GostaError
from gosta.measures import MEASURES
from gosta.runtime.arrays import Floats
from gosta.sketches import SKETCHES, Bins, Layout, StratumResult, make_layout
from gosta.sketches.layout import BITS
from gosta.statistics import STATISTICS

every = pytest.mark.parametrize("name", SKETCHES)
# The bracket holds with high probability, or is estimated.
RANDOM = {"mean-pairwise-distance", "energy-distance", "mmd"}
RANDOM |= {"smooth-calibration-curve", "calibration-error"}
RANGES = {
    "first": (0.0, 4.0),
    "second": (-1.0, 3.0),
    "time": (0.0, 4.0),
    "score": (-2.0, 3.0),
    "value": (0.0, 4.0),
}


def column(rng: np.random.Generator, n: int) -> Floats:
    """Return numbers, most of them from 0 to 4: with ties, constant, with heavy tails, beyond the
    range.
    """
    kind = rng.integers(6)
    if kind == 0:
        return np.full(n, rng.integers(0, 5) / 2.0)
    if kind == 1:
        return rng.integers(0, 9, n) / 2
    if kind == 2:
        return np.exp(2 * rng.normal(size=n))
    if kind == 3:
        return np.abs(rng.standard_cauchy(n))
    return rng.gamma(2, 1, n) if kind == 4 else 4 * rng.random(n)


def make_data(seed: int, n: int | None = None, name: str = "") -> Data:
    rng = np.random.default_rng([9, seed])
    n = n or int(rng.choice([2, 3, 5, 12, 40, 90]))
    first, second = column(rng, n), column(rng, n)
    if seed % 3 == 0:
        second = np.where(rng.random(n) < 0.7, first, second)
    label = rng.integers(0, 2, n)
    label[:2] = 0, 1
    columns = {"first": first, "second": second - 1, "label": label, "event": rng.integers(0, 2, n)}
    columns |= {"value": first, "time": second, "score": first - 2 + label * (seed % 2)}
    if name in RISKS:
        columns["score"] = columns["score"] + 2
        columns |= {score: np.clip(columns[score] / 4, 0.0, 1.0) for score in SCORES}
    return Data(
        "rows", columns, label="label", score="score", features=("first", "second"), is_partial=True
    )


def layout_of(name: str, bins: int = 8, **settings: Any) -> Layout:
    options = OPTIONS.get(name, {})
    ranges = RANGES | {"score": RISK_RANGES["score"]} if name in RISKS else RANGES
    chosen = Bins(bins, ranges, **settings)
    return make_layout(
        name,
        chosen,
        columns=COLUMNS.get(name, ()),
        label="label",
        score="score",
        classes=(0, 1),
        options=options,
    )


def exact_value(layout: Layout, data: Data) -> Floats | None:
    """Return the value of rows, with values beyond the range at its ends where they matter; None if
    there is none.
    """
    sketch, x = layout.sketches[0], layout.encode(data)
    if sketch.needs_range:
        for k, axis in enumerate(sketch.axes):
            x[:, k] = np.clip(x[:, k], axis.low, axis.high)
    if sketch.name in MEASURES:
        options = {**sketch.options, **sketch.points}
        try:
            value = MEASURES[sketch.name].over(x, None, options).value
        except GostaError:
            return None
    else:
        columns = dict(data.columns)
        if sketch.needs_range:
            columns |= {name: x[:, k] for k, name in enumerate(layout.parts[0].columns)}
        clipped = Data(
            "rows",
            columns,
            label="label",
            features=layout.parts[0].columns,
            has_selected_columns=True,
        )
        try:
            value = np.atleast_1d(
                gosta.exact(clipped, sketch.name, options={**OPTIONS.get(sketch.name, {})})
            )
        except GostaError:
            return None
    return value if np.isfinite(value).any() else None


def floats(values: Sequence[float | None]) -> Floats:
    """Return the values of a result, with NaN where there is none at a point of a curve."""
    return np.array(values, dtype=np.float64)


def is_inside(result: StratumResult, value: Floats) -> bool:
    """Return whether the values that are defined are in their brackets."""
    low, high = floats(result.low), floats(result.high)
    return bool((np.isnan(value) | ((low <= value) & (value <= high))).all())


def totals_of(layout: Layout, data: Data) -> Floats:
    return np.asarray(layout.sums(layout.encode(data)) / 2.0**BITS)


def test_every_statistic_has_a_sketch_or_a_reason() -> None:
    from gosta.sketches.definition import WITHOUT_SKETCH

    built_in = {s.name for s in STATISTICS.values() if s.kernel.__module__.startswith("gosta.")}
    assert (built_in | set(MEASURES)) - set(SKETCHES) == set(WITHOUT_SKETCH)
    assert all(
        made.summary.endswith(".") and "\n" not in made.summary for made in SKETCHES.values()
    )
    for name in built_in & set(SKETCHES):
        assert SKETCHES[name].encode is STATISTICS[name].encode
        assert name == "mann-whitney" or SKETCHES[name].bounds == STATISTICS[name].bounds


@every
def test_features(name: str) -> None:
    """Features are from 0 to 1, at most `features_per_row`; counts are 0 or 1; sums of sites add up
    and count all rows.
    """
    layout = layout_of(name)
    sketch = layout.sketches[0]
    for seed in range(20):
        x = layout.encode(make_data(seed, name=name))
        positions, values = sketch.features(x)
        assert positions.shape == values.shape == (len(x), sketch.features_per_row)
        assert positions.min() >= 0
        assert positions.max() < sketch.size == layout.size
        assert values.min() >= 0
        assert values.max() <= 1
        assert not sketch.are_counts or set(np.unique(values)) <= {0.0, 1.0}
        assert all(
            len(set(p[v > 0])) == (v > 0).sum() for p, v in zip(positions, values, strict=True)
        )
        sums = layout.sums(x)
        assert sketch.count(sums / 2.0**BITS) == pytest.approx(len(x), abs=1e-9)
        np.testing.assert_array_equal(
            layout.sums(x[: len(x) // 2]) + layout.sums(x[len(x) // 2 :]), sums
        )
        assert layout.is_plausible(sums / 2.0**BITS, 0.0)


@every
def test_replacing_a_row_also_by_none_changes_the_sums_by_no_more_than_is_said(name: str) -> None:
    layout = layout_of(name)
    for seed in range(20):
        sums = [
            np.asarray(layout.sums(row[None]) / 2.0**BITS)
            for row in layout.encode(make_data(seed, 12, name))
        ]
        changes = [first - second for first in sums for second in [*sums, 0 * first]]
        assert max(change @ change for change in changes) <= layout.squared_change + 1e-9


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("spearman-rho", {}),
        ("kendall-tau", {"variant": "b"}),
        ("concordance-index", {}),
        ("log-rank", {}),
    ],
)
def test_what_is_not_defined_has_no_value(name: str, options: dict[str, Any]) -> None:
    """A column that is constant, no pair of times that can be compared, events only where one class
    is left.
    """
    layout = make_layout(name, Bins(8, RANGES), label="label", classes=(0, 1), options=options)
    x = np.tile([1.0, 0.0, 1.0], (30, 1))[:, : layout.width]
    if name == "log-rank":
        x = np.column_stack(
            [np.arange(30) / 10, np.arange(30) >= 20, np.where(np.arange(30) < 20, 1.0, -1.0)]
        )
    elif name != "concordance-index":
        x[:, 1] = np.arange(30) / 10 - 1
    (result,) = layout.results(layout.sums(x) / 2.0**BITS)
    assert not result.has_value


def merged_layout(layout: Layout, totals: Floats, min_cell: int) -> Layout:
    """Return the layout with the axes that merging small bins leaves; also of sketches whose
    results show no bins.
    """
    sketch = layout.sketches[0]
    groups = sketch.groups_of(totals)
    if ((groups > 0) & (groups < min_cell)).any():
        return layout
    made, _ = sketch.merged(totals, min_cell)
    changed = replace(layout, parts=(layout.parts[0]._replace(sketch=made),))
    return layout if made is sketch else changed


@every
@pytest.mark.parametrize("min_cell", [0, 3])
def test_the_value_is_in_the_bracket(name: str, min_cell: int) -> None:
    """In all of 100 data sets; where the sketch is random in all but two, which would be more than
    expected.
    """
    missed = checked = 0
    for seed in range(100):
        data = make_data(seed, name=name)
        layout = layout_of(name, bins=[1, 2, 8, 40][seed % 4])
        if min_cell:
            layout = merged_layout(layout, totals_of(layout, data), min_cell)
        value = exact_value(layout, data)
        (result,) = layout.results(totals_of(layout, data), min_cell)
        assert not result.has_value or result.rows == pytest.approx(len(data), abs=1e-9)
        if value is None or (min_cell and not result.has_value):
            continue
        checked += 1
        if result.has_value:
            found = is_inside(result, value)
            there = np.isfinite(floats(result.value))
            assert (floats(result.low) <= floats(result.value))[there].all()
            assert (floats(result.value) <= floats(result.high))[there].all()
        elif name in (
            "spearman-rho",
            "concordance-index",
        ):  # no value where all rows are in one bin
            axes = [k for k, axis in enumerate(layout.sketches[0].axes) if axis.bins >= 1]
            x = layout.encode(data)
            assert (
                min(len(set(layout.sketches[0].axes[k].positions(x[:, k]).tolist())) for k in axes)
                == 1
            )
            continue
        else:
            found = False
        assert found or name in RANDOM, (seed, value, result)
        missed += not found
    assert missed <= 2
    assert checked >= 30


@every
def test_rounding_with_few_digits_is_part_of_the_bracket(name: str) -> None:
    for bits in (4, 9):
        for seed in range(8):
            data = make_data(seed, 60, name)
            layout = layout_of(name)
            value = exact_value(layout, data)
            totals = layout.sums(layout.encode(data), bits) / 2.0**bits
            (result,) = layout.results(totals, bits=bits)
            if value is not None and name not in RANDOM:
                assert result.has_value
                assert is_inside(result, value)


@every
def test_more_bins_narrow_the_bracket(name: str) -> None:
    data = make_data(4, 800, name)
    widths = []
    for bins in (4, 60):
        layout = layout_of(name, bins)
        (result,) = layout.results(totals_of(layout, data))
        widths.append(float(np.nanmax(floats(result.high) - floats(result.low))))
    if SKETCHES[name].is_binned and widths[0] > 1e-6:  # else all that counts is at an edge
        assert widths[1] < widths[0]
    if name not in RANDOM | {"mann-whitney", "log-rank"}:
        assert widths[1] < {True: 0.1, False: 1e-4}[SKETCHES[name].is_binned]


@every
def test_gradient_is_that_of_differences(name: str) -> None:
    layout = layout_of(name, 12)
    sketch, totals = layout.sketches[0], totals_of(layout, make_data(47, 400, name))
    gradient = sketch.gradient(totals)
    if gradient is None:
        return
    for position in np.random.default_rng(0).permutation(len(totals))[:40]:
        step = np.zeros(len(totals))
        step[position] = 1e-4
        up, down = (sketch.result(totals + s).value[0] for s in (step, -step))
        assert (up - down) / 2e-4 == pytest.approx(
            gradient[position], abs=1e-6 * np.abs(gradient).max()
        )


@every
def test_standard_error_is_that_of_the_jackknife(name: str) -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 600)
    columns = {"first": 4 * rng.random(600), "second": 4 * rng.random(600) - 1, "label": label}
    columns |= {
        "event": rng.integers(0, 2, 600),
        "time": 4 * rng.random(600),
        "score": rng.random(600) + 0.3 * label,
    }
    columns["value"] = columns["first"]
    if name in RISKS:
        columns["score"] = np.asarray(columns["score"] / 2)
        columns["first"] = np.asarray(columns["first"] / 4)
        columns["score"] = np.asarray(columns["score"] / 1.3)
        columns["second"] = np.sqrt(columns["score"])
    data = Data("rows", columns, label="label", score="score", features=("first", "second"))
    layout = layout_of(name, 40)
    (result,) = layout.results(totals_of(layout, data), level=0.9)
    if result.standard_error is None:
        assert layout.sketches[0].gradient(totals_of(layout, data)) is None or len(result.value) > 1
        return
    own = {"columns": COLUMNS[name]} if name in COLUMNS and SKETCHES[name].roles else {}
    wanted = gosta.exact(data, name, interval=0.9, options=OPTIONS.get(name, {}), **own)
    assert result.standard_error == pytest.approx(wanted.standard_error, rel=0.03)
    assert result.interval == pytest.approx(
        (wanted.low, wanted.high), abs=0.05 * wanted.standard_error + 0.01
    )
    (noisy,) = layout.results(totals_of(layout, data), noise_variance=0.25, level=0.9)
    gradient = layout.sketches[0].gradient(totals_of(layout, data))
    assert gradient is not None
    assert (
        noisy.standard_error is not None
    )  # by draws, which may show more than the derivative does
    ratio = noisy.standard_error / np.hypot(result.standard_error, 0.5 * np.linalg.norm(gradient))
    assert 0.99 < ratio < 1.3


@every
def test_noise_gives_a_sensible_value_or_none(name: str) -> None:
    layout = layout_of(name, 12)
    totals, rng = totals_of(layout, make_data(47, 400, name)), np.random.default_rng(1)
    low, high = SKETCHES[name].bounds
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scale in (0.1, 10.0, 1000.0):
            for base in [totals, 0 * totals] * 5:
                noisy = base + scale * rng.normal(size=len(totals))
                (result,) = layout.results(noisy, noise_variance=scale**2, level=0.95)
                value, least, most = map(floats, (result.value, result.low, result.high))
                there = np.isfinite(value)
                assert np.isfinite([*least[there], *most[there], result.rows, result.clipped]).all()
                assert np.isnan([*least[~there], *most[~there]]).all()
                assert result.has_value == bool(result.value)
                assert (least <= value)[there].all()
                assert (value <= most)[there].all()
                assert ((low <= value) & (value <= high))[there].all()
                assert not result.is_certified


@pytest.mark.parametrize(
    "name",
    [
        "spearman-rho",
        "concordance-index",
        "kaplan-meier",
        "log-rank",
        "kolmogorov-smirnov",
        "gini-index",
    ],
)
def test_the_value_without_noise_is_within_low_and_high_with_noise(name: str) -> None:
    """Of 30 draws in all but 6: with the promised 95 % each, that fails for one seed in 3000."""
    layout = layout_of(name, 16)
    totals, rng = totals_of(layout, make_data(47, 1500, name)), np.random.default_rng(3)
    (plain,) = layout.results(totals)
    misses = 0.0
    for _ in range(30):
        (noisy,) = layout.results(totals + 2.0 * rng.normal(size=len(totals)), noise_variance=4.0)
        shown = len(noisy.value)  # of a curve, those at which enough rows are left
        assert shown
        assert noisy.labels == plain.labels[:shown]
        low, value, high = np.array(noisy.low), np.array(plain.value[:shown]), np.array(noisy.high)
        misses += float(np.mean((value < low) | (value > high)))
    assert misses <= 6


def test_a_log_rank_test_with_noise_rejects_as_often_as_it_says() -> None:
    """Of 100 data sets without a difference 5 have p < 0.05; more than 14 would have one seed in
    10,000.
    """
    layout, rng, rejected = layout_of("log-rank", 16), np.random.default_rng(4), 0
    for _ in range(100):
        x = np.column_stack(
            [rng.exponential(size=600), rng.random(600) < 0.7, rng.choice([-1.0, 1.0], 600)]
        )
        totals = layout.sums(x) / 2.0**BITS + 3.0 * rng.normal(size=layout.size)
        (result,) = layout.results(totals, noise_variance=9.0)
        rejected += result.value[1] < 0.05
    assert rejected <= 14


def test_values_of_sketches_alone_are_those_of_others() -> None:
    """scikit-learn's ROC curve, scipy's Kolmogorov-Smirnov, numpy's quantiles, lifelines' curve and
    test.
    """
    from lifelines import KaplanMeierFitter
    from lifelines.statistics import logrank_test
    from scipy.stats import ks_2samp
    from sklearn.metrics import roc_curve

    for seed in range(10):
        rng = np.random.default_rng(seed)
        label, event = np.arange(80) % 2, rng.integers(0, 2, 80)
        score, time = np.round(rng.normal(size=80) + label, 1), np.round(rng.gamma(2, 1, 80), 1)
        table = {"score": score, "label": label, "time": time, "event": event}
        false, true, _ = roc_curve(label, score, drop_intermediate=False)
        rates = [0.01, 0.05, *np.arange(1, 10) / 10]
        wanted = [true[false <= rate + 1e-12].max() for rate in rates]
        np.testing.assert_allclose(
            gosta.exact(table, "roc-curve", label="label", score="score", rates=rates), wanted
        )
        largest = ks_2samp(score[label == 1], score[label == 0]).statistic
        assert gosta.exact(
            table, "kolmogorov-smirnov", label="label", score="score"
        ) == pytest.approx(largest)
        deciles = np.quantile(time, np.arange(1, 10) / 10, method="inverted_cdf")
        np.testing.assert_array_equal(gosta.exact(table, "quantiles", columns="time"), deciles)
        test = logrank_test(
            time[label == 1], time[label == 0], event[label == 1], event[label == 0]
        )
        np.testing.assert_allclose(
            gosta.exact(table, "log-rank", label="label"), [test.test_statistic, test.p_value]
        )
        layout = layout_of("kaplan-meier", 20)
        x = np.column_stack([time, event]).astype(float)
        curve = KaplanMeierFitter().fit(time, event)
        times = layout.sketches[0].times  # type: ignore[attr-defined]
        wanted = [float(curve.predict(np.nextafter(t, 0))) for t in times]
        np.testing.assert_allclose(
            MEASURES["kaplan-meier"].over(x, None, layout.sketches[0].points).value, wanted
        )
