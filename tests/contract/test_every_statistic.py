"""One contract for every registered statistic; a new one is tested without further code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracle import by_definition
from statistic_data import ALL, BUILT_IN, make_data

import gosta
from gosta.datasets import Data, load
from gosta.errors import GostaError, InputError, MissingExtraError, NumericalError
from gosta.estimation.estimand import Estimand
from gosta.runtime import extras
from gosta.runtime.arrays import Floats
from gosta.statistics import STATISTICS, Statistic
from gosta.statistics import pairs as all_pairs
from gosta.statistics.definition import Normalisation, as_floats
from gosta.statistics.exact import measure

SHORT = settings(max_examples=50)  # for each of many statistics
every = pytest.mark.parametrize("statistic", BUILT_IN, ids=lambda s: s.name)
NAMES = {
    "variance", "covariance", "gini-mean-difference", "gini-index", "kendall-tau", "auc",
    "mann-whitney",
    "within-cluster-scatter", "energy-distance", "mmd", "concordance-index", "spearman-rho",
    "distance-correlation", "mean-pairwise-distance", "squared-scatter",
    "auc-difference", "concordance-difference", "somers-d", "goodman-kruskal-gamma",
    "multiclass-auc",
    "trimmed-mean", "winsorised-mean", "theil-sen", "hodges-lehmann", "hodges-lehmann-shift",
    "ranks",
    "mann-whitney-z", "kendall-z",
}  # fmt: skip


coarse = st.integers(0, 6).map(lambda k: k / 2)
fine = st.floats(0, 1e6, allow_subnormal=False)
flag = st.integers(0, 1)


def many_rows(number: st.SearchStrategy[float]) -> st.SearchStrategy[list[tuple[float, ...]]]:
    return st.lists(st.tuples(number, number, flag, flag), min_size=2, max_size=25)


def encoded(statistic: Statistic, data: Data) -> Floats:
    try:
        return statistic.encode_rows(data, {})
    except InputError:
        assume(False)
        raise


def test_names_and_summaries() -> None:
    assert {s.name for s in ALL} == NAMES
    assert all(s.summary.endswith(".") and "\n" not in s.summary for s in ALL)


@every
@pytest.mark.parametrize("normalisation", ["U", "V"])
@SHORT
@given(rows=many_rows(coarse) | many_rows(fine))
def test_value_is_the_double_loop(
    statistic: Statistic, normalisation: Normalisation, rows: list[tuple[float, ...]]
) -> None:
    data = make_data(rows)
    x = encoded(statistic, data)
    try:
        wanted = by_definition(statistic, x, normalisation)
    except ZeroDivisionError:
        with pytest.raises(NumericalError, match="not defined"):
            measure(data, statistic, normalisation)
        return
    got = measure(data, statistic, normalisation).value
    # Differences of means cancel: a distance correlation near 0 is the root of a rounding error.
    spread = np.ptp(x, axis=0)
    scale = {
        "distance-correlation": 1e6,
        "energy-distance": spread[:-1].max(initial=0.0),
        "covariance": spread.prod(),
        "mmd": 1.0,
        "spearman-rho": 1.0,
    }
    assert got == pytest.approx(wanted, rel=1e-10, abs=1e-12 * scale.get(statistic.name, 1e-3))


@every
@SHORT
@given(rows=many_rows(coarse) | many_rows(fine))
def test_fast_row_sums_are_those_of_all_pairs(
    statistic: Statistic, rows: list[tuple[float, ...]]
) -> None:
    x = encoded(statistic, make_data(rows))
    fast = statistic.fast(x) if statistic.fast else None
    if fast is None:
        return
    options = statistic.options_by_part({})["kernel"]
    slow, diagonal = (
        all_pairs.row_sums(statistic, x, options),
        all_pairs.diagonal(statistic, x, options),
    )
    scale = np.abs(slow).max(axis=0) + 1e-300
    np.testing.assert_allclose(fast.sums / scale, slow / scale, rtol=0, atol=1e-11)
    assert fast.diagonal is not None
    np.testing.assert_array_equal(np.broadcast_to(fast.diagonal, diagonal.shape), diagonal)


@every
@SHORT
@given(rows=st.lists(st.tuples(coarse, coarse, flag, flag), min_size=2, max_size=2))
def test_kernel_is_symmetric_unless_local(
    statistic: Statistic, rows: list[tuple[float, ...]]
) -> None:
    x, y = encoded(statistic, make_data(rows)).tolist()
    if statistic.local is None:
        assert statistic(x, y) == statistic(y, x)


@every
def test_standard_error_is_that_of_the_jackknife(statistic: Statistic) -> None:
    """Leaving rows out one by one, each sample on its own, gives the standard error; of ratios, but
    for O(1/n).
    """
    rng = np.random.default_rng(3)
    rows = [
        tuple(row)
        for row in np.round(
            np.column_stack([rng.gamma(2, 1, (17, 2)), rng.integers(0, 2, (17, 2))]), 1
        )
    ]
    data = make_data(rows)
    if statistic.total or statistic.no_interval:
        with pytest.raises(InputError, match=r"is a count|has no interval"):
            measure(data, statistic, interval=0.9)
        return
    estimate = measure(data, statistic, interval=0.9)
    x = statistic.encode_rows(data, {})
    without = np.array([by_definition(statistic, np.delete(x, i, axis=0)) for i in range(len(x))])
    sample = x[:, statistic.sample_index] if statistic.sample_index is not None else np.ones(len(x))
    parts = [without[sample == s] for s in set(sample)]
    error = np.sqrt(sum((len(p) - 1) / len(p) * ((p - p.mean()) ** 2).sum() for p in parts))
    ratios = {
        "concordance-index",
        "concordance-difference",
        "gini-index",
        "energy-distance",
        "mmd",
        "somers-d",
        "goodman-kruskal-gamma",
    }
    assert estimate.standard_error == pytest.approx(
        error, rel=4 / len(x) if statistic.name in ratios else 1e-8
    )
    # A squared distance can be found to be negative, and is not in a population.
    value = max(estimate.value, 0.0) if statistic.scale == "distance" else estimate.value
    assert statistic.bounds[0] <= estimate.low <= value <= estimate.high <= statistic.bounds[1]


@every
def test_nodes_have_the_interval_of_the_rows(statistic: Statistic) -> None:
    """From the exact means of products that nodes estimate, the formula gives the interval of
    `exact`.
    """
    rng = np.random.default_rng(8)
    data = make_data(
        [
            (*row, *flags)
            for row, flags in zip(
                rng.gamma(2, 1, (30, 2)), rng.integers(0, 2, (30, 2)), strict=True
            )
        ]
    )
    x = statistic.encode_rows(data, {})
    if statistic.total or statistic.local is not None or statistic.no_interval:
        with pytest.raises(
            InputError, match=r"is a count|nodes cannot compute its interval|has no interval"
        ):
            Estimand(statistic, x).with_interval(0.9).pooled_intervals()[0]
        return
    estimate = measure(data, statistic, interval=0.9)
    pooled = Estimand(statistic, x).with_interval(0.9).pooled_intervals()[0]
    assert pooled == pytest.approx((estimate.low, estimate.high), rel=1e-9, abs=1e-12)


@every
def test_rows_in_any_order_and_any_block(
    statistic: Statistic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The value does not depend on the order of rows, nor on the size of blocks."""
    rng = np.random.default_rng(4)
    rows = [
        tuple(row)
        for row in np.column_stack([rng.gamma(2, 1, (90, 2)), rng.integers(0, 2, (90, 2))])
    ]
    once = measure(make_data(rows), statistic).value
    monkeypatch.setattr(all_pairs, "NUMBERS_PER_BLOCK", 700)
    monkeypatch.setattr(all_pairs, "NUMBERS_PER_TILE", 32)
    again = measure(make_data([rows[i] for i in rng.permutation(90)]), statistic).value
    assert again == pytest.approx(once, rel=1e-12)


@every
@pytest.mark.parametrize("interval", [None, 0.9])
def test_without_numba_the_value_is_the_same(
    statistic: Statistic, interval: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (statistic.total or statistic.no_interval) and interval is not None:
        return
    rng = np.random.default_rng(5)
    rows = [
        tuple(row)
        for row in np.column_stack([rng.gamma(2, 1, (40, 2)), rng.integers(0, 2, (40, 2))])
    ]
    data = make_data(rows)

    def values() -> list[Any]:
        estimates = [measure(data, statistic, norm, interval) for norm in ("U", "V")]
        return [estimate[:5] if interval else estimate.value for estimate in estimates]

    compiled = values()
    monkeypatch.setattr(extras, "is_installed", lambda module: module != "numba")
    np.testing.assert_allclose(values(), compiled, rtol=1e-14)


def test_without_numba_many_rows_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda module: module != "numba")
    x = np.random.default_rng(0).normal(size=(10_000, 2))
    with pytest.raises(MissingExtraError, match=r"10000 rows .*pip install 'gosta\[fast\]'"):
        gosta.exact(x, "mean-pairwise-distance")
    assert gosta.exact(x, "spearman-rho") == pytest.approx(0.0, abs=0.05)


@every
def test_two_rows_give_a_value_or_an_error(statistic: Statistic) -> None:
    data = make_data([(1.0, 2.0, 0, 1), (3.0, 5.0, 1, 1)])
    try:
        value = measure(data, statistic).value
    except GostaError as error:
        assert statistic.name in str(error)
    else:
        assert isinstance(value, float)
        assert np.isfinite(value)


def test_synthetic_data_have_known_values() -> None:
    assert gosta.exact(load("survival", n=50), "concordance-index") > 0.5
    assert gosta.exact(load("lognormal", n=10_000), "gini-index") == pytest.approx(0.5205, abs=0.02)
    assert gosta.exact(load("two-gaussians", n=10_000), "auc") == pytest.approx(0.8413, abs=0.02)


extreme = st.sampled_from([0.0, 5e-324, 1e-300, 1.0, 1e50])


@every
@SHORT
@given(rows=many_rows(coarse) | many_rows(fine) | many_rows(extreme) | many_rows(st.just(3.0)))
def test_means_are_within_their_ranges(statistic: Statistic, rows: list[tuple[float, ...]]) -> None:
    """Of all kernel values where there is no `local`; also of products of row means, which
    intervals need.
    """
    x = encoded(statistic, make_data(rows))
    has_interval = not (statistic.total or statistic.no_interval or statistic.local is not None)
    levels = [None, 0.9] if has_interval else [None]
    for level in levels:
        estimand = Estimand(statistic, x, level=level)
        low, high = estimand.mean_bounds.T
        local, kernel = estimand.tracked.local or (lambda h: h), estimand.statistic.kernel
        single = [as_floats(local(as_floats(kernel(a, b)))) for a in x.tolist() for b in x.tolist()]
        means = [as_floats(local(tuple(h))) for h in estimand.own_row_means.tolist()]
        assert (low - 1e-12 <= np.array(single + means)).all()
        assert (np.array(single + means) <= high + 1e-12).all()
    assert all(map(estimand.is_valid_row, x.tolist()))


def test_rows_of_classes_that_do_not_exist_are_not_valid() -> None:
    for name, row in [
        ("auc", (0.5, 0.0)), ("mann-whitney", (0.5, 2.0)), ("mmd", (0.5, 1e9)),
        ("energy-distance", (0.5, 0.0)),
        ("concordance-index", (1.0, 0.5, 1.0)), ("within-cluster-scatter", (1.0, 0.5)),
        ("within-cluster-scatter", (1.0, -1.0)), ("squared-scatter", (1.0, 0.5)),
        ("gini-index", (-1.0,)),
    ]:  # fmt: skip
        assert not Estimand(STATISTICS[name], np.array([row])).is_valid_row(row)
    assert Estimand(STATISTICS["variance"], np.ones((1, 1))).is_valid_row((-1.0,))


def test_ranges_of_a_wrong_number_are_an_error() -> None:
    wrong = replace(STATISTICS["auc"], mean_ranges=((0.0, 2.0),))
    with pytest.raises(
        InputError, match="auc: mean_ranges has 1 pairs; one pair of numbers for each of 2 means"
    ):
        assert Estimand(wrong, np.ones((2, 2))).mean_bounds is not None


def test_rows_that_are_columns_of_a_wider_table() -> None:
    wide = np.random.default_rng(4).random((50, 5))
    for name in ("mean-pairwise-distance", "squared-scatter"):
        narrow = np.column_stack([wide[:, 1:3], wide[:, 3] > 0.5])
        sliced = np.column_stack([wide[:, :1], narrow])[:, 1:]
        assert not sliced.flags.c_contiguous
        assert Estimand(STATISTICS[name], sliced).value == Estimand(STATISTICS[name], narrow).value
