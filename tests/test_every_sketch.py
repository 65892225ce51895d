"""One contract for every sketch; a new one is tested without further code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gosta
from gosta.datasets import Data
from gosta.errors import GostaError
from gosta.runtime.arrays import Floats
from gosta.sketches import SKETCHES, Bins, Layout, make_layout
from gosta.sketches.layout import BITS
from gosta.statistics import STATISTICS

every = pytest.mark.parametrize("name", SKETCHES)
RANDOM = {"mean-pairwise-distance", "energy-distance", "mmd"}  # the bracket holds with high probability
OPTIONS: dict[str, dict[str, Any]] = {"mmd": {"bandwidth": 1.5}}
RANGES = {"first": (0.0, 4.0), "second": (-1.0, 3.0), "time": (0.0, 4.0), "score": (-2.0, 3.0), "value": (0.0, 4.0)}


def column(rng: np.random.Generator, n: int) -> Floats:
    """Return numbers, most of them from 0 to 4: with ties, constant, with heavy tails, beyond the range."""
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


def make_data(seed: int, n: int | None = None) -> Data:
    rng = np.random.default_rng([9, seed])
    n = n or int(rng.choice([2, 3, 5, 12, 40, 90]))
    first, second = column(rng, n), column(rng, n)
    if seed % 3 == 0:
        second = np.where(rng.random(n) < 0.7, first, second)
    label = rng.integers(0, 2, n)
    label[:2] = 0, 1
    columns = {"first": first, "second": second - 1, "label": label, "event": rng.integers(0, 2, n)}
    columns |= {"value": first, "time": second, "score": first - 2 + label * (seed % 2)}
    return Data("rows", columns, label="label", score="score", features=("first", "second"), is_partial=True)


def layout_of(name: str, bins: int = 8, **settings: Any) -> Layout:
    columns = ("first", "second") if not SKETCHES[name].roles else ()
    options = OPTIONS.get(name, {})
    chosen = Bins(bins, RANGES, **settings)
    return make_layout(name, chosen, columns=columns, label="label", score="score", classes=(0, 1), options=options)


def exact_value(layout: Layout, data: Data) -> Floats | None:
    """Return the value of rows, with values beyond the range at its ends where they matter; None if there is none."""
    sketch, x = layout.sketches[0], layout.encode(data)
    if sketch.needs_range:
        for k, axis in enumerate(sketch.axes):
            x[:, k] = np.clip(x[:, k], axis.low, axis.high)
    with np.errstate(all="ignore"):
        value = sketch.exact(x)
    if value is None:
        columns = dict(data.columns)
        if sketch.needs_range:
            columns |= {name: x[:, k] for k, name in enumerate(layout.parts[0].columns)}
        clipped = Data("rows", columns, label="label", features=layout.parts[0].columns, has_selected_columns=True)
        try:
            value = np.atleast_1d(gosta.exact(clipped, sketch.name, options={**OPTIONS.get(sketch.name, {})}))
        except GostaError:
            return None
    return value if np.isfinite(value).all() else None


def totals_of(layout: Layout, data: Data) -> Floats:
    return np.asarray(layout.sums(layout.encode(data)) / 2.0**BITS)


def test_every_statistic_has_a_sketch_or_a_reason() -> None:
    from gosta.sketches.definition import WITHOUT_SKETCH

    built_in = {s.name for s in STATISTICS.values() if s.kernel.__module__.startswith("gosta.")}
    assert built_in - set(SKETCHES) == set(WITHOUT_SKETCH)
    assert all(made.summary.endswith(".") and "\n" not in made.summary for made in SKETCHES.values())
    for name in built_in & set(SKETCHES):
        assert SKETCHES[name].encode is STATISTICS[name].encode
        assert name == "mann-whitney" or SKETCHES[name].bounds == STATISTICS[name].bounds


@every
def test_features(name: str) -> None:
    """Features are from 0 to 1 and at most so many; counts are 0 or 1; sums of sites add up, and count every row."""
    layout = layout_of(name)
    sketch = layout.sketches[0]
    for seed in range(20):
        x = layout.encode(make_data(seed))
        positions, values = sketch.features(x)
        assert positions.shape == values.shape == (len(x), sketch.features_per_row)
        assert positions.min() >= 0
        assert positions.max() < sketch.size == layout.size
        assert values.min() >= 0
        assert values.max() <= 1
        assert not sketch.are_counts or set(np.unique(values)) <= {0.0, 1.0}
        assert all(len(set(p[v > 0])) == (v > 0).sum() for p, v in zip(positions, values, strict=True))
        sums = layout.sums(x)
        assert sketch.count(sums / 2.0**BITS) == pytest.approx(len(x), abs=1e-9)
        np.testing.assert_array_equal(layout.sums(x[: len(x) // 2]) + layout.sums(x[len(x) // 2 :]), sums)
        assert layout.is_plausible(sums / 2.0**BITS, 0.0)


@every
@pytest.mark.parametrize("min_cell", [0, 3])
def test_the_value_is_in_the_bracket(name: str, min_cell: int) -> None:
    """In all of 100 data sets; where the sketch is random in all but two, which would be more than expected."""
    missed = checked = 0
    for seed in range(100):
        data = make_data(seed)
        layout = layout_of(name, bins=[1, 2, 8, 40][seed % 4])
        value = exact_value(layout, data)
        (result,) = layout.results(totals_of(layout, data), min_cell)
        assert not result.has_value or result.rows == pytest.approx(len(data), abs=1e-9)
        if value is None or (min_cell and not result.has_value):
            continue
        checked += 1
        if result.has_value:
            is_inside = bool((np.array(result.low) <= value).all() and (value <= np.array(result.high)).all())
            assert (np.array(result.low) <= result.value).all()
            assert (np.array(result.value) <= result.high).all()
        else:
            is_inside = False
        assert is_inside or name in RANDOM, (seed, value, result)
        missed += not is_inside
    assert missed <= 2
    assert checked > 30
