"""Statistics of times to an event from sums: brackets, intervals, merged bins, shared sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gosta
from gosta.datasets import load
from gosta.runtime.arrays import Floats
from gosta.sketches import Bins, Layout, StratumResult, make_layout
from gosta.sketches.layout import BITS

RANGES = {"time": (0.0, 1000.0)} | dict.fromkeys(["score", "second", "third"], (0.0, 1.0))
OPTIONS: dict[str, dict[str, Any]] = {
    "kaplan-meier": {"times": [200, 365, 700]},
    "numbers-at-risk": {"times": [200, 365, 700]},
    "time-dependent-auc": {"times": [200, 365]},
    "uno-concordance": {"horizon": 500},
    "concordance-index": {},
    "survival-brier-score": {"horizon": 365},
    "survival-calibration": {"horizon": 365, "cuts": [0.3, 0.6]},
    "survival-observed-expected-ratio": {"horizon": 365},
    "integrated-brier-score": {"times": [200, 365, 700]},
}
COLUMNS = {"integrated-brier-score": ["time", "event", "score", "second", "third"]}
Rows = dict[str, Floats]


def rows(seed: int, n: int | None = None) -> Rows:
    """Return times in days, weeks or months, some beyond the range, and risks with ties."""
    rng = np.random.default_rng([8, seed])
    n = n or int(rng.choice([15, 60, 200, 400]))
    unit, normal = rng.choice([1, 7, 30]), rng.normal(size=n)
    time = rng.exponential(np.exp(6 - 0.8 * normal))
    censored = np.minimum(rng.exponential(rng.choice([300, 1000, 1e5]), n), 900 + 300 * (seed % 2))
    risk = np.round(1 - np.exp(-np.exp(0.7 * normal - 0.4)), int(rng.integers(1, 4)))
    ends = np.ceil(np.minimum(time, censored) / unit) * unit
    later = {"second": np.sqrt(risk), "third": np.cbrt(risk)}
    return {"time": ends, "event": (time <= censored).astype(float), "score": risk, **later}


def layout_of(name: str, bins: int = 32, **settings: Any) -> Layout:
    roles: dict[str, Any] = {"columns": COLUMNS.get(name, ()), "score": "score"}
    return make_layout(name, Bins(bins, RANGES, **settings), options=OPTIONS[name], **roles)


def over_rows(data: Rows, name: str, **settings: Any) -> Any:
    roles = {"columns": COLUMNS[name]} if name in COLUMNS else {"score": "score"}
    return gosta.exact(data, name, options=OPTIONS[name], **roles, **settings)


def from_sums(layout: Layout, data: Rows, **settings: Any) -> StratumResult:
    totals = layout.sums(layout.encode(load(data))) / 2.0**BITS
    return layout.results(totals, **settings)[0]


@pytest.mark.parametrize("name", OPTIONS)
def test_the_value_is_in_the_bracket_of_200_tables(name: str) -> None:
    checked = 0
    for seed in range(200):
        data, min_cell = rows(seed), [0, 5][seed % 2]
        layout = layout_of(name, [8, 16, 32][seed % 3])
        result = from_sums(layout, data, min_cell=min_cell)
        if not result.has_value or len(result.value) < len(OPTIONS[name].get("cuts", ())) + 1:
            continue  # few rows of a kind, or groups that were merged
        exact = np.atleast_1d(np.array(over_rows(data, name), dtype=float))
        low, value, high = (
            np.array(part, dtype=float) for part in (result.low, result.value, result.high)
        )
        shown = ~np.isnan(value)
        assert (low <= exact)[shown].all()
        assert (exact <= high)[shown].all()
        assert ((low <= value) & (value <= high))[shown].all()
        checked += bool(shown.any())
    assert checked > 100


@pytest.mark.parametrize("name", sorted(set(OPTIONS) - {"numbers-at-risk"}))
def test_intervals_are_about_those_of_rows_in_one_place(name: str) -> None:
    data = rows(5, 1500)
    result = from_sums(layout_of(name, 64), data, level=0.95)
    exact = over_rows(data, name, interval=0.95)
    ends = np.array(result.intervals or [result.interval], dtype=float).T
    wanted = np.array([np.atleast_1d(exact.low), np.atleast_1d(exact.high)])
    widths = wanted[1] - wanted[0]
    assert (np.abs(ends - wanted) < 0.12 * widths + 0.002).all()


def test_times_keep_their_edges_when_bins_are_merged() -> None:
    data = rows(4, 1500)
    result = from_sums(layout_of("kaplan-meier", 64), data, min_cell=10)
    exact = np.array(gosta.exact(data, "kaplan-meier", options=OPTIONS["kaplan-meier"]))
    assert (np.subtract(result.high, result.low) < 0.02).all()
    assert (np.abs(np.array(result.value) - exact) < 0.01).all()
    at_risk = from_sums(layout_of("numbers-at-risk", 64), data, min_cell=10)
    assert list(at_risk.value) == [np.sum(data["time"] >= time) for time in (200, 365, 700)]


def test_a_few_rows_that_are_censored_early_do_not_hide_when_events_are() -> None:
    for seed in (5, 6):
        data = rows(seed, 1500)
        early = (data["time"] < 365) & (data["event"] == 0)
        assert 0 < early.sum() < 20
        result = from_sums(layout_of("kaplan-meier", 64), data, min_cell=10)
        assert (np.subtract(result.high, result.low) < 0.01).all()
        exact = np.array(gosta.exact(data, "kaplan-meier", options=OPTIONS["kaplan-meier"]))
        assert ((result.low <= exact) & (exact <= result.high)).all()


def test_statistics_of_the_same_columns_share_their_sums() -> None:
    def size(names: str, **options: Any) -> int:
        return make_layout(names, Bins(32, RANGES), score="score", options=options).size

    assert size("time-dependent-auc,concordance-index", times="200,365") == size(
        "time-dependent-auc", times="200,365"
    )
    assert size("concordance-index,uno-concordance", horizon=365) == size(
        "uno-concordance", horizon=365
    )
    risks = "survival-brier-score,survival-calibration,survival-observed-expected-ratio"
    assert size(risks, horizon=365) == size("survival-brier-score", horizon=365)


def test_with_noise_values_stay_near() -> None:
    data, rng = rows(5, 1500), np.random.default_rng(2)
    for name in ("kaplan-meier", "time-dependent-auc", "survival-brier-score", "uno-concordance"):
        layout = layout_of(name, 12)
        totals = layout.sums(layout.encode(load(data))) / 2.0**BITS
        (plain,) = layout.results(totals)
        noisy = totals + 2.0 * rng.normal(size=layout.size)
        (result,) = layout.results(noisy, noise_variance=4.0, level=0.95)
        assert result.has_value
        assert not result.is_certified
        assert np.array(result.value) == pytest.approx(np.array(plain.value), abs=0.06)


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(gosta.InputError, match="times = 2000 must lie within the range of 'time'"):
        make_layout(
            "time-dependent-auc", Bins(8, RANGES), score="score", options={"times": "365,2000"}
        )
    with pytest.raises(gosta.InputError, match="horizon is missing"):
        make_layout("survival-brier-score", Bins(8, RANGES), score="score")


def test_the_integrated_brier_score_is_the_mean_over_time_of_those_at_horizons() -> None:
    data = rows(5, 1500)
    edges: dict[str, Any] = {
        "edges": {"time": [float(time) for time in (100, 200, 365, 500, 700, 850)]}
    }
    parts = []
    for horizon, risk in zip((200, 365, 700), ("score", "second", "third"), strict=True):
        layout = make_layout(
            "survival-brier-score",
            Bins(1, RANGES, **edges),
            columns=["time", "event", risk],
            options={"horizon": horizon},
        )
        parts.append(from_sums(layout, data))
    whole = from_sums(layout_of("integrated-brier-score", 1, **edges), data)
    shares = np.array([165, 500, 335]) / 1000
    for end in ("value", "low", "high"):
        wanted = shares @ np.array([getattr(part, end)[0] for part in parts])
        assert getattr(whole, end)[0] == pytest.approx(wanted, rel=1e-6)


def test_steps_of_a_curve_give_way_to_times_that_were_asked_for() -> None:
    """Between a step and the time after it there are fewer events than may be shown."""
    days = np.repeat([340.0, 355.0, 370.0, 900.0], [40, 3, 6, 60])
    data = {"time": days, "event": (days < 400).astype(float)}
    steps = [float(step) for step in range(50, 1000, 50)]
    found = []
    for options in ({"times": [365, *steps]}, {"times": 365, "steps": steps}):
        layout = make_layout("kaplan-meier", Bins(20, RANGES), options=options)
        result = from_sums(layout, data, min_cell=5)
        place = list(result.at).index(365)
        found.append((result.high[place] - result.low[place], result.without_edge))
    assert found[0][0] > 0.05
    assert 365.0 in found[0][1]
    assert found[1] == (pytest.approx(0.0, abs=1e-9), ())
