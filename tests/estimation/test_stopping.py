"""Nodes that stop by themselves: the error that they expect, and that they keep their promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_runs import interrupting

import gosta
from gosta.estimation import stopping
from gosta.simulation.runner import Interrupted


def test_expected_error_of_a_node() -> None:
    """The factor times the root mean square of the last changes, the last of which counts the
    most.
    """
    times = stopping.reading_times(10, 10_000).tolist()
    assert times[0] == 10
    assert times[-1] == 10_000
    assert times[stopping.READINGS_PER_DOUBLING] == 20
    still = [np.ones((3, 1))] * (stopping.READINGS_PER_DOUBLING + stopping.MIN_CHANGES)
    assert (stopping.expected_errors(still[1:], times[: len(still) - 1]) == np.inf).all()
    assert (stopping.expected_errors(still, times[: len(still)]) == 0).all()
    moved = [*still[:-1], np.array([[1.0], [1.1], [0.0]])]
    # of each change, 1/4 is forgotten at every reading
    kept = 0.75 ** np.arange(stopping.MIN_CHANGES)
    change = 2.5 * 0.1 / np.sqrt(kept.sum()) / 1.1
    assert stopping.expected_errors(moved, times[: len(moved)]) == pytest.approx(
        [0.0, change, np.inf]
    )
    sampled = stopping.expected_errors(moved, times[: len(moved)], nodes=10**9, exchanges=50)
    assert sampled == pytest.approx([0.02, change, np.inf])


@pytest.mark.parametrize(("power", "ratio"), [(0.0, 1.0), (0.75, 1.35)])
def test_change_over_a_doubling_is_as_large_as_the_error_of_a_running_mean(
    power: float, ratio: float
) -> None:
    """What the rule rests on: their standard deviations are equal, so without its factor the rule
    is the error's.

    Where values count in proportion to their number to a power, as in means that visitors carry,
    changes are larger.
    """
    times = stopping.reading_times(10, 4000).tolist()
    values = np.random.default_rng(0).normal(10.0, 1.0, size=(4000, 500))
    weights = np.arange(1.0, 4001.0)[:, None] ** power
    means = np.cumsum(weights * values, axis=0) / np.cumsum(weights, axis=0)
    readings = [means[t - 1][:, None] for t in times]
    expected = stopping.expected_errors(readings, times, nodes=10) / stopping.RULE.factor
    error = readings[-1][:, 0] / 10.0 - 1.0
    assert np.sqrt((expected**2).mean()) == pytest.approx(ratio * error.std(), rel=0.1)


@pytest.mark.parametrize(
    ("statistic", "graph"), [("auc", "torus"), ("gini-mean-difference", "watts-strogatz")]
)
def test_nodes_stop_and_keep_their_promise(statistic: str, graph: str) -> None:
    """In 38 of 40 runs.

    With a true rate of 98 % that fails for one set of seeds in twenty, and these are fixed.
    """
    rows = gosta.datasets.load("breast-cancer").shuffle(0).head(196)
    trace = gosta.simulate(
        rows, statistic, columns=None if statistic == "auc" else 0, graph=graph, until=0.02, runs=40
    )
    ends = np.isfinite(trace.data["mean"].values).sum(axis=1) - 1
    assert trace.is_complete
    assert (trace.data["stopped"].values == trace.iterations[ends]).all()
    assert (trace.data["median"].values[np.arange(40), ends] < 0.02).sum() >= 38
    stops = trace.data["stopped"].values
    assert trace.iterations[-1] == trace.info.iterations == stops.max()
    assert (
        f"up to {stops.max()}, 40 stopped by their nodes after {stops.min()} to {stops.max()})"
        in repr(trace)
    )
    errors = trace.error()["mean"]
    assert np.isfinite(errors).all()
    assert errors[-1] == pytest.approx(trace.data["mean"].values[np.arange(40), ends].mean())
    assert errors[0] == pytest.approx(trace.data["mean"].values[:, 0].mean())


@pytest.mark.parametrize("n", [10, 20, 50])
def test_small_networks_keep_their_promise(n: int) -> None:
    """In 56 of 60 runs.

    With a true rate of 98 % that fails for one set of seeds in a hundred, and these are fixed.
    """
    kept = 0
    for seed in range(6):
        rows = np.random.default_rng(seed).lognormal(size=n)
        trace = gosta.simulate(
            rows, "gini-index", graph="watts-strogatz", until=0.02, runs=10, seed=seed
        )
        ends = np.isfinite(trace.data["mean"].values).sum(axis=1) - 1
        kept += int((trace.data["median"].values[np.arange(10), ends] < 0.02).sum())
    assert kept >= 56


def test_a_value_that_few_pairs_decide_is_not_missed() -> None:
    """Of 25 pairs one is ordered wrong: nodes that have not met it yet see no change at all."""
    rows = {"score": [1.0, 2, 3, 4, 6, 5, 7, 8, 9, 10], "label": np.arange(10) >= 5}
    trace = gosta.simulate(
        rows, "auc", label="label", score="score", graph="watts-strogatz", until=0.01, runs=40
    )
    ends = np.isfinite(trace.data["mean"].values).sum(axis=1) - 1
    assert (trace.data["median"].values[np.arange(40), ends] < 0.01).sum() >= 39


def test_a_run_that_is_resumed_stops_where_it_would_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    common: dict[str, Any] = {"graph": "complete", "runs": 2, "until": 0.02}
    whole = gosta.simulate("iris", "gini-mean-difference", **common)
    with pytest.raises(Interrupted) as interrupted, interrupting(monkeypatch, iteration=5000):
        gosta.simulate("iris", "gini-mean-difference", **common)
    half = interrupted.value.trace
    assert not half.is_complete
    half.save(tmp_path / "half.nc")
    again = gosta.resume(tmp_path / "half.nc")
    np.testing.assert_array_equal(again.data["stopped"], whole.data["stopped"])
    np.testing.assert_array_equal(again.data["mean"], whole.data["mean"])


def test_resuming_beyond_the_end_keeps_the_ratio_of_reading_times() -> None:
    common: dict[str, Any] = {"columns": "petal length", "graph": "cycle", "runs": 2, "until": 0.05}
    short = gosta.simulate("iris", "gini-mean-difference", iterations=4096, **common)
    longer = gosta.resume(short, iterations=60_000)
    whole = gosta.simulate("iris", "gini-mean-difference", iterations=60_000, **common)
    assert len(longer.iterations) <= len(whole.iterations) + 1
    np.testing.assert_array_equal(longer.data["stopped"] > 0, whole.data["stopped"] > 0)
