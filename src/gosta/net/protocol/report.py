"""A node's report: its estimate, a confidence interval, and the error that it expects."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from gosta.errors import GostaError
from gosta.estimation.exchange import Estimator
from gosta.estimation.setting import kernel_means
from gosta.estimation.stopping import MAX_READINGS, READINGS_PER_DOUBLING, expected_errors, gossip_errors

SUFFICIENT_ERROR = 0.01  # relative; at this, a new epoch's estimate replaces the old one, however good that was


class Report(msgspec.Struct, frozen=True, array_like=True):
    epoch: int
    value: tuple[float, ...]
    low: float | None
    high: float | None
    expected_error: float | None  # relative, of gossip; None: too few readings so far
    fingerprint: str  # of the statistic, the protocol and the members
    sites: int  # whose rows count
    rows: int  # at these sites together
    missing: tuple[str, ...]  # members whose rows do not count
    value_errors: tuple[float | None, ...] = ()  # `expected_error` of each value, where the statistic has several

    def is_better_than(self, previous: Report | None) -> bool:
        """Return whether to report this instead of an earlier epoch's report."""
        if previous is None:
            return True
        if self.expected_error is None or len(self.value) != len(previous.value):
            return False
        distance = math.dist(self.value, previous.value) / (math.hypot(*self.value) or 1.0)
        # A distance above the expected error means that the earlier estimate no longer holds.
        return self.expected_error <= max(SUFFICIENT_ERROR, previous.expected_error or 0.0, distance)


class Readings:
    """A node's estimates at exponentially growing numbers of exchanges, from which it estimates its error."""

    def __init__(self, times: tuple[int, ...] = (), values: tuple[tuple[float, ...], ...] = ()) -> None:
        self.times, self.values = list(times), list(values)

    def record(self, estimator: Estimator) -> None:
        due = math.ceil(self.times[-1] * 2 ** (1 / READINGS_PER_DOUBLING)) if self.times else READINGS_PER_DOUBLING
        value = value_of(estimator) if estimator.exchanges >= due else None
        if value is not None:
            self.times = [*self.times, estimator.exchanges][-MAX_READINGS:]
            self.values = [*self.values, value][-MAX_READINGS:]

    def value_errors(self, estimator: Estimator) -> tuple[float | None, ...]:
        """Return `expected_error` of each value, where the statistic has several."""
        width = len(self.values[-1]) if self.values else 1
        if width == 1:
            return ()
        parts = [Readings(tuple(self.times), tuple((value[c],) for value in self.values)) for c in range(width)]
        return tuple(part.expected_error(estimator) for part in parts)

    def expected_error(self, estimator: Estimator) -> float | None:
        """Return the relative error that the last reading is expected to have; None: too few readings."""
        if not self.times or len({len(value) for value in self.values}) > 1:
            return None
        sampled = None if estimator.protocol.averages_moments else len(estimator.homes)
        values = [np.array([value]) for value in self.values]
        found = float(expected_errors(values, self.times, sampled, self.times[-1])[0])
        return found if np.isfinite(found) else None


def value_of(estimator: Estimator, estimates: tuple[float, ...] | None = None) -> tuple[float, ...] | None:
    """Return the statistic from a node's estimates, or from a neighbour's payload; None if it is not defined yet."""
    if estimator.known_rows < 2:
        return None
    means = np.array([estimator.estimates() if estimates is None else estimates[: len(estimator.states)]])
    if estimator.protocol.averages_moments:  # about any offset: the value is the same
        means = kernel_means(estimator.rows.estimand.statistic, means)
    try:
        value = estimator.value_function.values(means)[0]
    except GostaError:  # a user's function that does not take these means
        return None
    return tuple(value.tolist()) if np.isfinite(value).all() else None


def make_report(
    estimator: Estimator,
    readings: Readings,
    epoch: int,
    level: float | None,
    fingerprint: str,
    missing: tuple[str, ...] = (),
) -> Report | None:
    """Return a node's report; None if it has no estimate yet."""
    value = value_of(estimator) if estimator.exchanges else None
    if value is None:
        return None
    low = high = None
    error, counted = readings.expected_error(estimator), (len(estimator.homes), estimator.known_rows)
    if level is not None and estimator.known_rows > 2:
        gossip = gossip_errors(np.array(value), np.array([np.inf if error is None else error]))
        ends = estimator.value_function.intervals(np.array([estimator.estimates()]), level, gossip)[:2]
        if np.isfinite(ends).all():
            low, high = float(ends[0][0]), float(ends[1][0])
    return Report(epoch, value, low, high, error, fingerprint, *counted, missing, readings.value_errors(estimator))
