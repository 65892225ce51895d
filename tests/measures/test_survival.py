"""Measures of times to an event, compared with lifelines and scikit-survival.

scikit-survival divides by G at the time of an event, we just before it: the same where no row is
censored at that time. Its cases at a time have an event until then, ours before it. So it gives our
numbers where censored rows end a moment later, at the last number before a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lifelines import KaplanMeierFitter
from sksurv.metrics import (
    brier_score,
    concordance_index_ipcw,
    cumulative_dynamic_auc,
    integrated_brier_score,
)
from sksurv.util import Surv

import gosta
from gosta.measures import MEASURES
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import Options

MOMENT = 1e-6  # less than the times of rows differ by
HORIZON = 2.0


def rows(seed: int, n: int | None = None) -> Floats:
    """Return times with ties, events, and risks with ties; now and then few events, or one row."""
    rng = np.random.default_rng([31, seed])
    n = n or int(rng.choice([4, 7, 20, 60, 150]))
    risk = np.round(rng.random(n), int(rng.integers(1, 4)))
    time = np.ceil(rng.exponential(3 - 2 * risk, n) * 4) / 4
    censored = np.ceil(rng.exponential(rng.choice([1.5, 4, 40]), n) * 4) / 4
    event = time <= censored
    event[np.argmin(np.minimum(time, censored))] = True
    return np.column_stack([np.minimum(time, censored), event, risk])


def theirs(x: Floats) -> Any:
    """Return times for scikit-survival: censored rows end a moment later."""
    event = x[:, 1] > 0
    return Surv.from_arrays(event, x[:, 0] + np.where(event, 0.0, MOMENT))


def value(name: str, x: Floats, options: Options = {}) -> Floats:  # noqa: B006
    return MEASURES[name].over(x, None, options).value


@pytest.mark.parametrize("seed", range(200))
def test_values_are_those_of_others(seed: int) -> None:
    x = rows(seed)
    survival, end = theirs(x), x[:, 0].max()
    curve = KaplanMeierFitter().fit(x[:, 0], x[:, 1])
    found = MEASURES["kaplan-meier"].over(x)
    np.testing.assert_allclose(
        found.value, curve.predict(found.at).to_numpy().ravel(), rtol=1e-12, atol=1e-13
    )
    table = curve.event_table
    at_risk = table["at_risk"].to_numpy()[1:]
    np.testing.assert_array_equal(
        value("numbers-at-risk", x, {"times": table.index[1:].to_numpy()}), at_risk
    )
    try:
        wanted = concordance_index_ipcw(survival, survival, x[:, 2], tied_tol=1e-12)[0]
    except ValueError:  # no pair can be compared
        wanted = np.nan
    np.testing.assert_allclose(value("uno-concordance", x)[0], wanted, rtol=1e-12)
    times = np.array([t for t in (0.75, 1.5, HORIZON, 2.25) if x[:, 0].min() < t <= end])
    if len(times) < 2:
        return
    just_before = np.nextafter(times, 0)
    auc = cumulative_dynamic_auc(survival, survival, x[:, 2], just_before, tied_tol=1e-12)[0]
    np.testing.assert_allclose(
        value("time-dependent-auc", x, {"times": times}), auc, rtol=1e-12, equal_nan=True
    )
    risks = np.column_stack([x[:, 2] ** k for k in range(1, len(times) + 1)])
    several = np.column_stack([x[:, :2], risks])
    brier = brier_score(survival, survival, 1 - risks, just_before)[1]
    np.testing.assert_allclose(
        value("survival-brier-score", several, {"times": times}), brier, rtol=1e-12
    )
    mean = integrated_brier_score(survival, survival, 1 - risks, just_before)
    np.testing.assert_allclose(
        value("integrated-brier-score", several, {"times": times})[0], mean, rtol=1e-12
    )


OPTIONS: dict[str, dict[str, Any]] = {
    "kaplan-meier": {"times": [0.75, 1.5, 2.25]},
    "numbers-at-risk": {"times": [0.75, 1.5, 2.25]},
    "time-dependent-auc": {"times": [1.5, 2.25]},
    "survival-brier-score": {"horizon": HORIZON},
    "integrated-brier-score": {"times": [1.0, 2.0, 2.5]},
    "survival-calibration": {"horizon": HORIZON, "cuts": [0.3, 0.6]},
    "survival-observed-expected-ratio": {"horizon": HORIZON},
    "uno-concordance": {"horizon": 2.5},
}


def encoded(name: str, x: Floats) -> Floats:
    return np.column_stack([x, x[:, 2] ** 2, x[:, 2] ** 3]) if name[:3] == "int" else x


@pytest.mark.parametrize("name", OPTIONS)
def test_weights_are_repeated_rows(name: str) -> None:
    for seed in range(20):
        x = encoded(name, rows(seed))
        counts = np.random.default_rng(seed).integers(0, 4, len(x))
        counts[:3] = 1
        weighted = MEASURES[name].over(x, counts.astype(float), OPTIONS[name]).value
        repeated = value(name, np.repeat(x, counts, axis=0), OPTIONS[name])
        np.testing.assert_allclose(weighted, repeated, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", OPTIONS)
def test_influence_is_the_derivative_by_the_share_of_a_row(name: str) -> None:
    measure, step = MEASURES[name], 1e-5
    for seed in range(3):
        x, rng = encoded(name, rows(seed, 60)), np.random.default_rng(seed)
        weights = rng.uniform(0.5, 2.0, len(x))
        influence = measure.over(x, weights, OPTIONS[name]).influence
        if influence is None:
            assert measure.over(x, weights, OPTIONS[name]).errors is not None or measure.no_interval
            return
        for row in range(0, len(x), 7):
            up, down = (
                measure.over(x, weights + s * (np.arange(len(x)) == row), OPTIONS[name]).value
                for s in (step, -step)
            )
            slope = (up - down) / (2 * step) * weights.sum()
            np.testing.assert_allclose(influence[row], slope, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(weights @ influence, 0, atol=1e-8)


def test_intervals_of_the_curve_are_those_of_lifelines() -> None:
    for seed in range(30):
        x = rows(seed)
        curve = KaplanMeierFitter().fit(x[:, 0], x[:, 1])
        ends = curve.confidence_interval_
        found: Any = gosta.exact({"time": x[:, 0], "event": x[:, 1]}, "kaplan-meier", interval=0.95)
        between = (found.value > 0) & (found.value < 1)
        times = found.at[between]
        np.testing.assert_allclose(found.low[between], ends.iloc[:, 0][times], rtol=1e-12)
        np.testing.assert_allclose(found.high[between], ends.iloc[:, 1][times], rtol=1e-12)


def test_calibration_is_the_curve_of_each_group() -> None:
    x = rows(11, 150)
    found: Any = gosta.exact(
        {"time": x[:, 0], "event": x[:, 1], "score": x[:, 2]},
        "survival-calibration",
        interval=0.95,
        horizon=HORIZON,
        cuts="0.2,0.4,0.7",
    )
    edges = [0.2, 0.4, 0.7]
    assert found.labels[1] == "risk 0.2 to 0.4"
    for k, own in enumerate(np.split(np.sort(x[:, 2]), np.searchsorted(np.sort(x[:, 2]), edges))):
        group = x[np.isin(x[:, 2], own)]
        curve = KaplanMeierFitter().fit(group[:, 0], group[:, 1])
        last = curve.confidence_interval_.loc[: HORIZON - MOMENT].iloc[-1]
        assert found.at[k] == pytest.approx(group[:, 2].mean())
        assert found.value[k] == pytest.approx(1 - curve.predict(HORIZON - MOMENT), rel=1e-12)
        assert (found.low[k], found.high[k]) == pytest.approx(
            (1 - last.iloc[1], 1 - last.iloc[0]), rel=1e-10
        )
    whole = KaplanMeierFitter().fit(x[:, 0], x[:, 1])
    ratio = value("survival-observed-expected-ratio", x, {"horizon": HORIZON})[0]
    assert ratio == pytest.approx((1 - whole.predict(HORIZON - MOMENT)) / x[:, 2].mean())


def test_a_row_censored_at_the_time_of_an_event_counts_as_seen_there() -> None:
    """Uno's weight is 1/G just before the event; scikit-survival's has fallen at that time."""
    x = np.array([[1.0, 1, 0.9], [1.0, 0, 0.1], [2.0, 1, 0.3], [2.0, 0, 0.6], [3.0, 0, 0.4]])
    before, after = 1.0, 0.75  # G before and after the first time
    wanted = (4 / before**2 + 0 / after**2) / (4 / before**2 + 2 / after**2)
    assert value("uno-concordance", x)[0] == pytest.approx(wanted, rel=1e-12)
    survival = Surv.from_arrays(x[:, 1] > 0, x[:, 0])
    second = 0.75 * 0.5
    other = (4 / after**2 + 0 / second**2) / (4 / after**2 + 2 / second**2)
    assert concordance_index_ipcw(survival, survival, x[:, 2])[0] == pytest.approx(other)


def test_what_is_missing_or_wrong_is_said() -> None:
    data = {"time": [1.0, 2.0, 3.0], "event": [1, 0, 1], "score": [0.2, 0.1, 0.4]}
    with pytest.raises(gosta.InputError, match=r"horizon is missing: .*horizon=365"):
        gosta.exact(data, "survival-brier-score")
    with pytest.raises(gosta.InputError, match="needs two columns of risks or more"):
        gosta.exact(data, "integrated-brier-score", times=2)
    with pytest.raises(gosta.InputError, match="one for each of 1 columns of risks"):
        gosta.exact(data, "integrated-brier-score", times=[2, 3])
    data["score"] = [20, 10, 40]
    with pytest.raises(gosta.DataError, match="risk score must lie from 0 to 1, row 1 has 20"):
        gosta.exact(data, "survival-calibration", horizon=2)


def test_without_events_nobody_has_had_one_until_the_last_time() -> None:
    x = np.array([[1.0, 0.0], [4.0, 0.0], [3.0, 0.0]])
    curve = MEASURES["kaplan-meier"].over(x)
    assert curve.value.tolist() == [1.0]
    assert curve.labels == ("from 4 on",)


@pytest.mark.parametrize(("last_event", "is_known"), [(1.0, True), (0.0, False)])
def test_the_brier_score_beyond_follow_up_is_known_only_if_all_had_events(
    last_event: float, is_known: bool
) -> None:
    x = np.array([[1.0, 1.0, 0.4], [2.0, 0.0, 0.2], [3.0, last_event, 0.3]])
    value = MEASURES["survival-brier-score"].over(x, options={"horizon": 9.0}).value
    assert np.isfinite(value).all() == is_known


@pytest.mark.parametrize("name", ["uno-concordance", "survival-brier-score"])
@pytest.mark.parametrize("horizon", ["soon", "", -1.0, 0.0, float("nan"), "1,2"])
def test_a_horizon_is_one_number_above_0(name: str, horizon: Any) -> None:
    with pytest.raises(gosta.InputError, match=r"horizon = .* must be"):
        MEASURES[name].over(
            np.array([[1.0, 1.0, 0.4], [2.0, 0.0, 0.2]]), None, {"horizon": horizon}
        )
