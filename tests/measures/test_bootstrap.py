"""Intervals of measures by bootstrap."""

from __future__ import annotations

import numpy as np

import gosta


def test_an_interval_by_bootstrap_holds_its_value() -> None:
    """Of distributions that are equal, most samples have a larger distance than the rows."""
    x = np.arange(60) // 2 / 30
    table = {"score": x, "label": np.arange(60) % 2}
    found = gosta.exact(table, "kolmogorov-smirnov", score="score", label="label", interval=0.95)
    assert found.value == found.low == 0.0
    assert found.high > 0.1
