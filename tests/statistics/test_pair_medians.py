"""Medians over pairs (Theil–Sen, Hodges–Lehmann), ranks of rows, survival at given times: against
others' code.
"""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import scipy.stats
from commands import command
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from patients import make_network
from statistic_data import make_data

import gosta
from gosta.errors import GostaError, InputError, NumericalError
from gosta.estimation.estimand import Estimand
from gosta.runtime.arrays import Floats
from gosta.statistics import STATISTICS, Statistic, pair_medians
from gosta.statistics.definition import with_weights
from gosta.statistics.exact import measure

TIGHT = 1e-10
MEDIANS = [s for s in STATISTICS.values() if s.median is not None]
every_median = pytest.mark.parametrize("statistic", MEDIANS, ids=lambda s: s.name)
sizes, seeds, digits = st.integers(3, 40), st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 8])


def sample(n: int, seed: int, rounding: int, columns: int = 2) -> Floats:
    return np.round(np.random.default_rng(seed).normal(size=(n, columns)), rounding)


@every_median
@pytest.mark.parametrize("most_sorted", [pair_medians.MOST_SORTED, 0])
@pytest.mark.parametrize("seed", range(3))
def test_value_is_the_weighted_median_of_the_kernel(
    statistic: Statistic, most_sorted: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_medians, "MOST_SORTED", most_sorted)
    rng = np.random.default_rng(seed)
    rows = np.column_stack([np.round(rng.gamma(2, 1, (40, 2)), 1), rng.integers(0, 2, (40, 2))])
    data, weights = make_data([tuple(row) for row in rows]), rng.gamma(1, 2, 40)
    x = statistic.encode_rows(data, {}).tolist()
    for norm in ("U", "V"):
        index = [(i, j) for i in range(40) for j in range(i + (norm == "U"), 40)]
        values = np.array([statistic.kernel(x[i], x[j]) for i, j in index])
        counted = ~np.isnan(values)
        assert measure(data, statistic, norm).value == pytest.approx(
            np.median(values[counted]), rel=TIGHT, abs=1e-11
        )
        products = np.array([weights[i] * weights[j] for i, j in index])[counted]
        wanted = np.quantile(values[counted], 0.5, weights=products, method="inverted_cdf")
        found = measure(data.with_weights(weights), with_weights(statistic, "weights"), norm).value
        assert found == pytest.approx(wanted, rel=TIGHT, abs=1e-11)


@given(sizes, seeds, digits)
def test_theil_sen(n: int, seed: int, rounding: int) -> None:
    x = sample(n, seed, rounding)
    if np.ptp(x[:, 0]) == 0:
        with pytest.raises(GostaError, match="theil-sen is not defined here"):
            gosta.exact(x, "theil-sen")
        return
    theirs = scipy.stats.theilslopes(x[:, 1], x[:, 0], alpha=0.9)
    try:
        ours = gosta.exact(x, "theil-sen", interval=0.9)
    except NumericalError as error:
        assert "every row contributes the same" in str(error)
        assert theirs.low_slope == theirs.high_slope
        return
    assert ours.value == pytest.approx(theirs.slope, rel=TIGHT, abs=1e-12)
    if np.isfinite([ours.low, ours.high]).all():
        assert (ours.low, ours.high) == pytest.approx(
            (theirs.low_slope, theirs.high_slope), rel=TIGHT, abs=1e-12
        )


@given(sizes, seeds, digits)
def test_hodges_lehmann(n: int, seed: int, rounding: int) -> None:
    v = sample(n, seed, rounding)[:, 0]
    walsh = np.sort([(v[i] + v[j]) / 2 for i in range(n) for j in range(i, n)])
    ours = gosta.exact(v, "hodges-lehmann", interval=0.9)
    assert ours.value == pytest.approx(np.median(walsh), rel=TIGHT, abs=1e-12)
    # The ends are the means whose shift the signed-rank test just does not reject.
    if rounding == 8 and np.isfinite(ours.low):
        for end, side in ((ours.low, -1), (ours.high, 1)):
            inside, outside = (
                scipy.stats.wilcoxon(v - end - side * gap).pvalue for gap in (-1e-9, 1e-9)
            )
            assert outside <= 0.1 < inside


def test_interval_of_hodges_lehmann_is_that_of_all_signs() -> None:
    """Of 2^10 signs of the ranks 1 to 10, those with a sum of at most 10 are 43: 8 is R's
    qsignrank(0.025, 10).
    """
    n = 10
    sums = np.array([sum(k + 1 for k in range(n) if signs >> k & 1) for signs in range(2**n)])
    rank = max(r for r in range(1, 28) if np.mean(sums <= r - 1) <= 0.025)
    v = np.random.default_rng(1).normal(size=n)
    walsh = np.sort(
        [(v[i] + v[j]) / 2 for i, j in [*combinations(range(n), 2), *((i, i) for i in range(n))]]
    )
    ours = gosta.exact(v, "hodges-lehmann", interval=0.95)
    assert (ours.low, ours.high) == pytest.approx((walsh[rank - 1], walsh[-rank]), rel=1e-12)


@given(sizes, seeds, digits)
def test_shift_is_that_of_the_test(n: int, seed: int, rounding: int) -> None:
    v, label = sample(n, seed, rounding)[:, 0], np.arange(n) % 3 == 0
    ours = gosta.exact(v, "hodges-lehmann-shift", label=label)
    gaps = (v[label][:, None] - v[~label]).ravel()
    assert ours == pytest.approx(np.median(gaps), rel=TIGHT, abs=1e-12)
    if label.sum() > 1 and np.ptp(gaps) > 0:
        effect = gosta.test(v, "mann-whitney", label=label, level=0.9).effect
        assert effect is not None
        assert gosta.exact(v, "hodges-lehmann-shift", label=label, interval=0.9)[:3] == effect[:3]


@given(sizes, seeds, digits)
def test_ranks(n: int, seed: int, rounding: int) -> None:
    v = sample(n, seed, rounding)[:, 0]
    wanted = scipy.stats.percentileofscore(v, v, kind="mean") / 100
    np.testing.assert_allclose(gosta.exact(v, "ranks"), wanted, rtol=TIGHT)
    weights = np.random.default_rng(seed).integers(0, 4, n)
    if weights.any():
        wanted = scipy.stats.percentileofscore(np.repeat(v, weights), v, kind="mean") / 100
        np.testing.assert_allclose(gosta.exact(v, "ranks", weights=weights), wanted, rtol=TIGHT)


def test_nodes_estimate_the_rank_of_their_own_row() -> None:
    v = np.random.default_rng(2).normal(size=50)
    trace = gosta.simulate(v, "ranks", protocol="u1", graph="complete", runs=1, iterations=40_000)
    found = trace.data["estimates"].values[0, -1].ravel()
    np.testing.assert_allclose(found, gosta.exact(v, "ranks"), atol=0.06)


@pytest.mark.parametrize("statistic", ["ranks", "ranks@second"])
def test_real_nodes_estimate_the_ranks_of_their_own_rows(statistic: str) -> None:
    network, estimand = make_network(statistic, columns="score")
    network.clock.run(60.0)
    network.check()
    weights = estimand.x[:, 1] if "@" in statistic else None
    wanted = gosta.exact(estimand.x[:, 0], "ranks", weights=weights)
    found = np.concatenate([peer.estimator.row_values() for peer in network.peers.values()])
    np.testing.assert_allclose(found, wanted, atol=0.06)


@every_median
def test_nodes_say_why_they_cannot(statistic: Statistic) -> None:
    rows = make_data([(1.0, 2.0, 0, 1), (3.0, 5.0, 1, 1), (2.0, 1.0, 1, 0), (4.0, 1.0, 0, 0)])
    why = "is a median over pairs of rows, which nodes cannot average"
    with pytest.raises(InputError, match=why):
        Estimand(statistic, statistic.encode_rows(rows, {}))
    with pytest.raises(InputError, match=why):
        gosta.simulate(rows, statistic)
    with pytest.raises(
        InputError, match="ranks has a value for each row, a simulation of carried-means reads one"
    ):
        gosta.simulate(rows, "ranks", columns="first", graph="complete")
    with pytest.raises(InputError, match="ranks:first has a value for each row; estimate it alone"):
        gosta.simulate(rows, ["ranks:first", "variance:first"])
    with pytest.raises(InputError, match="depends on the number of rows, which weights are not"):
        measure(rows.with_weights([1, 1, 2, 1]), with_weights(statistic, "weights"), interval=0.9)


def test_survival_at_given_times_is_that_of_lifelines() -> None:
    rng = np.random.default_rng(3)
    table = {"time": np.round(rng.exponential(5, 60), 1), "event": rng.integers(0, 2, 60)}
    times = [0.05, 1.05, 4.05, 100.0]
    theirs = (
        KaplanMeierFitter().fit(table["time"], table["event"]).survival_function_at_times(times)
    )
    assert gosta.exact(table, "kaplan-meier", times=times) == pytest.approx(
        theirs.to_numpy(), rel=TIGHT
    )
    binned: Any = gosta.exact(table, "kaplan-meier", times="0.05,1.05,4.05,100", bins=16)
    assert (binned.bracket[0] <= theirs.to_numpy() + 1e-6).all()
    assert (theirs.to_numpy() <= binned.bracket[1] + 1e-6).all()
    with pytest.raises(InputError, match="times = 'soon' must be numbers"):
        gosta.exact(table, "kaplan-meier", times="soon")


def test_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run = command(capsys, monkeypatch)
    code, out, _ = run("exact", "iris", "-s", "ranks", "-c", "sepal length", "--n", "30")
    wanted = np.ravel(
        gosta.exact(gosta.datasets.load("iris", n=30), "ranks", columns="sepal length")
    )[-1]
    assert (code, f"  row 30: {wanted:.6g}" in out) == (0, True)
    record = json.loads(
        run(
            "exact",
            "iris",
            "-s",
            "hodges-lehmann",
            "-c",
            "sepal length",
            "--interval",
            "95%",
            "--json",
        )[1]
    )
    assert record["interval"]["standard_error"] is None
    assert (
        "standard error"
        not in run(
            "exact",
            "iris",
            "-s",
            "theil-sen",
            "-c",
            "sepal length,petal length",
            "--interval",
            "95%",
        )[1]
    )
    assert "has a value for each row: --statistic ranks" in run("exact", "iris")[1]


def test_samples_with_the_same_values_have_no_interval() -> None:
    """The energy distance is 0 by cancellation, and so is its standard error: rounding is not taken
    for one.
    """
    with pytest.raises(NumericalError, match="energy-distance has no interval here"):
        gosta.exact([1.0, 2.0, 3.0] * 2, "energy-distance", label=[0, 0, 0, 1, 1, 1], interval=0.95)
