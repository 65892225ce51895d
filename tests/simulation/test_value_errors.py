"""Statistics of several values: each value has an error of its own, in simulations and at nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gosta
from gosta import protocols
from gosta.estimation import stopping
from gosta.estimation.estimand import Estimand
from gosta.estimation.exchange import Estimator, LocalRows, first_state
from gosta.net.protocol.report import Readings
from gosta.simulation.trace_summary import summary_text
from gosta.statistics import STATISTICS
from gosta.views import numbers


def test_each_value_of_a_statistic_has_an_error_of_its_own() -> None:
    """The error of a vector is that of its largest value: a small one that is far off does not show
    in it.
    """

    def large_and_small(x: Any, y: Any) -> Any:
        return 1000.0 + abs(x[0] - y[0]), (x[0] - y[0]) ** 4

    rows = np.random.default_rng(0).normal(size=30)
    trace = gosta.simulate(
        rows, gosta.statistic(name="large-and-small")(large_and_small), iterations=300, runs=1
    )
    found = trace.to_dict()
    last = np.abs(trace.estimates.values[0, -1] / trace.target - 1).mean(axis=0)
    assert found["errors"] == pytest.approx(last.tolist())
    assert found["errors"][1] > 5 * found["error"]
    assert f"error of each value, by itself: {numbers.error(found['errors'])}" in summary_text(
        [found]
    )


def test_nodes_expect_an_error_of_each_value() -> None:
    own = LocalRows(Estimand(STATISTICS["gini-mean-difference"], np.array([[1.0], [2.0]])))
    tracking = protocols.find("tracking")
    assert isinstance(tracking, protocols.Protocol)
    node = Estimator("a", tracking, own, first_state(own, tracking))
    times = tuple(stopping.reading_times(100, 1000).tolist())
    readings = Readings(times, tuple((1000.0, 1.0 + 100.0 / t) for t in times))
    both = readings.expected_error(node)
    large, small = readings.value_errors(node)
    assert both is not None
    assert small is not None
    assert large == 0.0
    assert small > 100 * both
    assert Readings(times, tuple((1.0,) for _ in times)).value_errors(node) == ()
