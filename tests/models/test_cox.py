"""Fits of Cox models, compared with lifelines and statsmodels."""

from __future__ import annotations

import warnings
from typing import Any

import lifelines
import lifelines.datasets
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from fits import fit_rounded

from gosta import datasets
from gosta.errors import InputError, NumericalError
from gosta.models import Fit, Model, make_design, make_model
from gosta.models.cox import joined_starts


def simulated(n: int, seed: int, digits: int | None = None) -> pd.DataFrame:
    """Return rows with an event or not; with digits, some at the same time."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)) * [1, 10, 0.1] + [0, 50, 2]
    flag = (rng.random(n) < 0.3).astype(float)
    life = rng.exponential(np.exp(-x @ [0.6, -0.03, 4.0] + 0.5 * flag))
    end = rng.exponential(np.median(life) * 2, n)
    time = np.minimum(life, end) * 100 / np.median(life)
    if digits is not None:
        time = np.round(time, digits)
    columns = dict(zip("abc", x.T, strict=True))
    return pd.DataFrame({**columns, "flag": flag, "time": time, "event": (life <= end) * 1})


DATA = {
    "rossi": (lifelines.datasets.load_rossi, "week", "arrest"),
    "lung": (lambda: lifelines.datasets.load_lung().dropna(), "time", "status"),
    "leukemia": (lifelines.datasets.load_leukemia, "t", "status"),
    "larynx": (lifelines.datasets.load_larynx, "time", "death"),
    "no ties": (lambda: simulated(800, 0), "time", "event"),
    "ties": (lambda: simulated(500, 1, -1), "time", "event"),
}


def model_of(frame: pd.DataFrame, time: str, event: str, **options: Any) -> tuple[Model, Any]:
    others = (time, event, options.get("strata"))
    data = datasets.load(frame)
    design = make_design([name for name in frame if name not in others], data=data)
    made = make_model(
        "cox", design, data, time=time, event=event, **{"min_rows_per_column": 0, **options}
    )
    return made, data


def fit(frame: pd.DataFrame, time: str, event: str, **options: Any) -> Fit:
    model, data = model_of(frame, time, event, **options)
    return model.fit_rows(model.rows(data).x)


def theirs(frame: pd.DataFrame, time: str, event: str, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lifelines.CoxPHFitter(**options.pop("settings", {})).fit(
            frame, time, event, fit_options={"precision": 1e-13}, **options
        )


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_fits_are_those_of_others(name: str, ties: str) -> None:
    make, time, event = DATA[name]
    frame = make()
    found = fit(frame, time, event, ties=ties)
    x = frame.drop(columns=[time, event])
    other = sm.PHReg(frame[time], x.to_numpy(float), status=frame[event], ties=ties).fit(disp=0)
    assert np.allclose(found.coefficients, other.params, rtol=1e-8)
    assert np.allclose(found.standard_errors, other.bse, rtol=1e-8)
    assert np.allclose(found.p_values, other.pvalues, rtol=1e-6)
    assert found.log_likelihood == pytest.approx(other.llf, rel=1e-10)
    assert found.events == frame[event].sum()
    assert found.rounds <= 10
    if ties == "efron":
        again = theirs(frame, time, event)
        assert np.allclose(found.coefficients, again.params_, rtol=1e-6)
        hazards = again.predict_partial_hazard(frame)
        assert np.allclose(found.predict(datasets.load(frame)), hazards, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_robust_errors_and_baseline_are_those_of_lifelines(seed: int) -> None:
    frame = simulated(300, seed)
    found, robust = fit(frame, "time", "event"), theirs(frame, "time", "event", robust=True)
    assert np.allclose(found.robust().standard_errors, robust.standard_errors_, rtol=1e-7)
    hazard = robust.baseline_hazard_["baseline hazard"]
    baseline = found.baselines[0]
    assert np.allclose(hazard.loc[baseline.times], baseline.hazard, rtol=1e-7)
    survival = robust.baseline_survival_["baseline survival"]
    assert np.allclose(survival.loc[baseline.times], baseline.survival, rtol=1e-7)


def test_errors_by_groups_are_those_of_lifelines() -> None:
    frame = simulated(300, 3)
    groups = np.arange(300) % 30
    model, data = model_of(frame, "time", "event")
    found = model.fit_rows(model.rows(data).x, groups=groups).robust()
    other = theirs(frame.assign(group=groups), "time", "event", cluster_col="group")
    few = np.sqrt(30 / 29)
    assert np.allclose(found.standard_errors, few * other.standard_errors_, rtol=1e-6)


def test_robust_errors_with_ties_are_those_of_the_derivatives_by_rows() -> None:
    model, data = model_of(simulated(120, 0, -1), "time", "event")
    rows = model.rows(data).x
    states = [model.first()]
    while not states[-1].is_last:
        states.append(model.following(states[-1], model.totals(rows, states[-1])))
    width = rows.shape[1] - model.response_width
    columns = np.column_stack([np.ones(len(rows)), rows[:, :width]])
    scores = model.scores(columns, rows[:, width:], states[-1])
    assert np.abs(scores.sum(axis=0)).max() < 1e-4


def test_strata_have_their_own_baselines() -> None:
    frame = simulated(600, 3, 0)
    frame["site"] = np.where(frame.a > 0.5, "north", "south")
    found = fit(frame, "time", "event", strata="site")
    other = theirs(frame, "time", "event", strata="site")
    assert np.allclose(found.coefficients, other.params_, rtol=1e-6)
    assert np.allclose(found.standard_errors, other.standard_errors_, rtol=1e-6)
    assert found.log_likelihood == pytest.approx(other.log_likelihood_, rel=1e-9)
    assert [one.stratum for one in found.baselines] == ["site = north", "site = south"]


def test_penalties_are_those_of_lifelines_times_the_rows() -> None:
    frame = simulated(400, 4)
    other = theirs(frame, "time", "event", settings={"penalizer": 0.1})
    # Its standard deviations divide by n − 1.
    found = fit(frame, "time", "event", penalty=0.1 * 400 * 400 / 399)
    assert np.allclose(found.coefficients, other.params_, rtol=1e-3)


@pytest.mark.parametrize("name", ["rossi", "lung", "ties", "no ties"])
def test_sums_of_rounded_features_give_the_same_coefficients(name: str) -> None:
    make, time, event = DATA[name]
    model, data = model_of(make(), time, event)
    rows = model.rows(data).x
    exact = model.fit_rows(rows)
    for bits, room in ((32, 1e-5), (40, 1e-7)):
        found = fit_rounded(model, rows, bits)
        gaps = (found.coefficients - exact.coefficients) / exact.standard_errors
        assert np.abs(gaps).max() < room
        assert np.allclose(found.standard_errors, exact.standard_errors, rtol=room)
        robust = exact.robust().standard_errors
        assert np.allclose(found.robust().standard_errors, robust, rtol=1e-3)


def test_declared_times() -> None:
    frame = simulated(500, 5, 0)
    exact = fit(frame, "time", "event")
    # A grid on which all times lie, with many times without an event.
    grid = tuple(np.arange(0.0, frame.time.max() + 1))
    assert np.allclose(fit(frame, "time", "event", times=grid).coefficients, exact.coefficients)
    gaps = []
    for bins in (20, 100):
        edges = tuple(np.quantile(frame.time, np.arange(bins) / bins))
        found = fit(frame, "time", "event", times=tuple(sorted(set(edges))))
        gaps.append(np.abs((found.coefficients - exact.coefficients) / exact.standard_errors).max())
    assert gaps[0] < 0.5
    assert gaps[1] < 0.2


def at_least_3(events: float, rows: float) -> bool:
    """Return whether there are 3 events, and 4 rows."""
    return events >= 3 and rows >= 4


def test_bins_with_few_events_are_joined() -> None:
    rows = np.array([9.0, 2, 1, 3, 1, 3, 1])
    assert joined_starts(np.array([0.0, 2, 0, 3, 0, 1, 1]), rows, at_least_3) == (1,)
    assert joined_starts(np.array([0.0, 2, 0, 3, 0, 3, 1]), rows, at_least_3) == (1, 5)
    assert joined_starts(np.zeros(3), np.ones(3), at_least_3) == ()
    # The last bin takes several before it where the rows of one are not enough either.
    rows_of_last = np.array([9.0, 4, 0, 3, 0, 3, 0])
    assert joined_starts(np.array([0.0, 3, 0, 3, 0, 3, 0]), rows_of_last, at_least_3) == (1, 3)
    frame = simulated(600, 6, 0)
    found = fit(frame, "time", "event", min_cell=5)
    exact = fit(frame, "time", "event")
    assert min(one.events.min() for one in found.baselines) >= 5
    assert np.abs((found.coefficients - exact.coefficients) / exact.standard_errors).max() < 0.25
    assert "times with events are joined in" in found.warnings[0]
    assert exact.warnings == ()


def test_large_linear_predictors_are_found_by_larger_limits() -> None:
    frame = simulated(500, 7)
    frame.loc[0, "a"] = 60.0  # 27 standard deviations from the mean
    frame.loc[0, ["time", "event"]] = [frame.time.min() / 2, 1]
    model, data = model_of(frame, "time", "event")
    found = model.fit_rows(model.rows(data).x)
    assert np.allclose(found.coefficients, theirs(frame, "time", "event").params_, rtol=1e-5)


def test_errors() -> None:
    frame = simulated(200, 8)
    with pytest.raises(NumericalError, match=r"the same value in all rows with an event"):
        fit(frame.assign(early=1 - frame.event), "time", "event")
    with pytest.raises(InputError, match=r"times = 'a' must be numbers"):
        fit(frame, "time", "event", times="a")
    with pytest.raises(InputError, match=r"ties = 'exact' must be efron or breslow"):
        fit(frame, "time", "event", ties="exact")
    place = np.where(np.cumsum(frame.event) < 5, "b", "a")
    with pytest.raises(NumericalError, match=r"stratum place = b: fewer than 7 events"):
        fit(frame.assign(place=place), "time", "event", strata="place", min_cell=7)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_bins_have_as_many_rows_as_columns_in_each_sum_that_is_shown(ties: str) -> None:
    """Among these are differences of two sums: over rows without an event."""
    rng = np.random.default_rng(5)
    names = [f"x{k}" for k in range(8)]
    made = make_model(
        "cox",
        make_design(names, ranges=dict.fromkeys(names, (0.0, 1.0))),
        time="time",
        event="event",
        times=tuple(np.arange(60.0)),
        ties=ties,
        min_cell=5,
    )
    time, event = rng.integers(0, 60, 900), rng.random(900) < 0.5
    x = np.column_stack([rng.random((900, 8)), time, event, np.zeros(900)])
    state = made.following(made.first(), made.totals(x, made.first()))
    assert len(state.edges[0]) > 10
    place = np.searchsorted(state.edges[0], x[:, 8], side="right") - 1
    events = np.bincount(place, event)
    others = np.bincount(place) - events
    assert events.min() >= (8 if ties == "efron" else 5)
    assert (events + others).min() >= 8
    if ties == "efron":
        assert set(others[others < 8]) <= {0}
    # Too few rows for one bin: a site must not show their columns.
    few = np.column_stack(
        [rng.random((81, 8)), np.arange(81) % 60, np.arange(81) < 78, 0 * x[:81, 0]]
    )
    after = made.following(made.first(), made.totals(few, made.first()))
    assert (after.failure == "") == (ties == "breslow")
    if ties == "efron":
        assert "fewer than 8 rows have one, or have none" in after.failure
