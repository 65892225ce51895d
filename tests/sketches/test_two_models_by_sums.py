"""Two models by sums: p-values, how both scores vary together, and differences between strata."""

from __future__ import annotations

import numpy as np
import pytest

import gosta
from gosta.runtime.arrays import Floats
from gosta.sketches import Bins, StratumResult, make_layout
from gosta.sketches.layout import BITS
from gosta.statistics.distributions import interval_p

RANGES = {"new": (0.0, 1.0), "old": (0.0, 1.0), "time": (0.0, 4.0)}
NAMES = (
    "auc-difference",
    "concordance-difference",
    "brier-difference",
    "integrated-discrimination",
    "net-reclassification",
)


def make_table(seed: int, n: int, noise: float) -> dict[str, Floats]:
    """Return two risks, alike but for noise, an outcome, and a time to an event."""
    rng = np.random.default_rng([33, seed])
    died = rng.integers(0, 2, n).astype(np.float64)
    score = rng.normal(size=n) + died
    table = {
        name: 1 / (1 + np.exp(-score - level * rng.normal(size=n)))
        for name, level in (("new", 0.0), ("old", noise))
    }
    time = rng.exponential(size=n) * np.exp(-score / 2)
    return {**table, "died": died, "time": np.minimum(time, 3.9), "event": died}


def by_sums(table: dict[str, Floats], name: str, bins: int, level: float = 0.95) -> StratumResult:
    columns = "time+event+new+old" if name.startswith("concordance") else "new+old"
    data = gosta.datasets.load(table)
    settings = Bins(bins, RANGES)
    layout = make_layout(f"{name}:{columns}", settings, label="died", data=data)
    (result,) = layout.results(layout.sums(layout.encode(data)) / 2.0**BITS, level=level)
    return result


def over_rows(table: dict[str, Floats], name: str) -> gosta.Estimate:
    columns = ["new", "old"]
    if name.startswith("concordance"):
        columns = ["time", "event", *columns]
    return gosta.exact(table, name, columns=columns, label="died", interval=0.95)


@pytest.mark.parametrize("name", NAMES)
def test_standard_error_and_p_value_by_sums_are_near_those_over_rows(name: str) -> None:
    for noise in (0.3, 1.0):
        table = make_table(1, 1500, noise)
        wanted = over_rows(table, name)
        found = by_sums(table, name, 32)
        errors = found.standard_errors or (found.standard_error,)
        np.testing.assert_allclose(errors, np.ravel(wanted.standard_error), rtol=0.12)
        ends = np.array(found.intervals or (found.interval,), dtype=np.float64)
        each = np.column_stack([found.value, ends]).tolist()
        own = [interval_p(value, low, high, 0.95) for value, low, high in each]
        np.testing.assert_allclose(found.p_values, own)
        np.testing.assert_allclose(found.p_values, np.ravel(wanted.p_value), rtol=1.0, atol=0.06)


@pytest.mark.parametrize("name", NAMES)
def test_value_over_rows_is_in_the_bracket(name: str) -> None:
    for seed in range(200):
        table = make_table(seed, 12 + seed, 0.5)
        if seed % 2:
            table |= {column: np.round(table[column], 1) for column in ("new", "old", "time")}
        found = by_sums(table, name, 4 + seed % 13)
        wanted = np.ravel(over_rows(table, name).value)
        assert (np.array(found.low) <= wanted).all()
        assert (wanted <= np.array(found.high)).all()


def test_error_of_the_difference_of_a_score_from_itself_is_small() -> None:
    table = make_table(3, 1000, 0.0)
    one = gosta.exact(table, "auc", score="new", label="died", interval=0.95)
    found = by_sums(table, "auc-difference", 64)
    assert found.value == (0.0,)
    assert found.standard_error is not None
    assert found.standard_error < 0.15 * one.standard_error


def test_intervals_of_a_difference_of_aucs_cover_what_they_say() -> None:
    """Of 300 samples of 200 rows, at 95 %, between 270 and 297 cover the true difference."""
    true = by_sums(make_table(999, 100_000, 0.7), "auc-difference", 200).value[0]
    covered = 0
    for seed in range(300):
        interval = by_sums(make_table(seed, 200, 0.7), "auc-difference", 32).interval
        assert interval is not None
        covered += interval[0] <= true <= interval[1]
    assert 270 <= covered <= 297


def test_differences_between_strata_are_those_of_independent_values() -> None:
    table = make_table(5, 900, 0.5)
    ward = np.random.default_rng(0).choice(["a", "b", "c"], 900, p=[0.2, 0.5, 0.3])
    release = gosta.private.release(
        [{**table, "ward": ward}],
        "auc:new,net-reclassification:new+old",
        label="died",
        classes=(0, 1),
        ranges={"new": (0.0, 1.0), "old": (0.0, 1.0)},
        strata={"ward": ("a", "b", "c")},
        interval=0.9,
    )
    first, second, *others = release.differences
    assert (first.group, second.group) == ("a less b", "c less b")
    assert [np.shape(one.value) for one in others] == [(3,), (3,)]
    _, a, b, _ = release.results[:4]
    assert first.value == pytest.approx(a.value[0] - b.value[0])
    assert first.bracket == pytest.approx((a.low[0] - b.high[0], a.high[0] - b.low[0]))
    assert a.standard_error is not None
    assert b.standard_error is not None
    assert first.standard_error == pytest.approx(np.hypot(a.standard_error, b.standard_error))
    assert first.p_value == interval_p(first.value, first.low, first.high, 0.9)
