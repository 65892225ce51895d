"""Measures of times to an event: Kaplan and Meier's curve, the log-rank test.

An encoded row is a time and 1 for an event then or 0 if it is censored, and for the test +1 or −1
for its class.
"""

from __future__ import annotations

from math import erfc, nan, sqrt
from typing import Any

import numpy as np

from gosta.measures.definition import Measured, measure, numbers_of
from gosta.runtime.arrays import Booleans, Floats
from gosta.statistics import encode


@measure(encode=encode.event_times, bounds=(0.0, 1.0), axes=("time", "share without an event"))
def kaplan_meier(x: Floats, weights: Floats, times: Any = None) -> Measured:
    """Kaplan-Meier curve, the share without an event before a time: at `times`, or at all times of
    events.
    """
    ends, place = np.unique(x[:, 0], return_inverse=True)
    leaving, died = (
        np.bincount(place.reshape(-1), part) for part in (weights, weights * (x[:, 1] > 0))
    )
    risk = np.cumsum(leaving[::-1])[::-1]
    factors = 1 - np.divide(died, risk, out=np.zeros(len(ends)), where=died > 0)
    if times is None:
        shown = ends[died > 0]
        values = np.array([np.prod(factors[ends <= time]) for time in shown])
        return Measured(values, labels=tuple(f"at {time:g}" for time in shown), at=shown)
    shown = numbers_of("times", times)
    values = np.array([np.prod(factors[ends < time]) for time in shown])
    return Measured(values, labels=tuple(f"before {time:g}" for time in shown), at=shown)


@measure(
    encode=encode.grouped_event_times,
    bounds=(0.0, np.inf),
    no_interval="it is a test",
    no_weights="a test depends on the number of rows, which weights are not",
)
def log_rank(x: Floats, weights: Floats) -> Measured:
    """Log-rank test of two classes: the statistic, which is chi-squared with one degree of freedom,
    and its p-value.
    """
    counted = x[weights > 0]
    z = log_rank_z(counted)
    return Measured(np.array([z * z, erfc(abs(z) / sqrt(2))]), labels=("chi-squared", "p-value"))


def log_rank_z(x: Floats) -> float:
    """Return observed less expected events of the first class, in standard deviations."""
    times, place = np.unique(x[:, 0], return_inverse=True)
    place = place.reshape(-1)
    has_event, is_first = x[:, 1] > 0, x[:, 2] > 0

    def count(rows: Booleans) -> Floats:
        return np.bincount(place[rows], minlength=len(times)).astype(np.float64)

    def count_at_risk(rows: Booleans) -> Floats:
        return np.cumsum(count(rows)[::-1])[::-1]

    at_risk = count_at_risk(np.ones(len(x), dtype=np.bool_))
    share = count_at_risk(is_first) / at_risk
    events = count(has_event)
    gap = (count(has_event & is_first) - events * share).sum()
    ties = (at_risk - events) / np.maximum(at_risk - 1, 1.0)
    variance = (events * share * (1 - share) * ties).sum()
    return float(gap / sqrt(variance)) if variance > 0 else nan
