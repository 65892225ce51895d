"""A node's report: its estimate, a confidence interval, and the error that it expects."""

from __future__ import annotations

import math

import numpy as np

from gosta.errors import GostaError
from gosta.estimation.carried import MIN_COUNTED, means_of
from gosta.estimation.exchange import Estimator
from gosta.estimation.setting import kernel_means
from gosta.estimation.stopping import (
    INTERVAL_RULE,
    MAX_READINGS,
    READINGS_PER_DOUBLING,
    RULE,
    Rule,
    expected_errors,
    gossip_errors,
)  # fmt: skip
from gosta.net.protocol.records import PartReport, Report
from gosta.runtime.arrays import Floats
from gosta.statistics.joint import JointStatistic


class Readings:
    """A node's estimates at growing numbers of exchanges, from which it estimates its error."""

    def __init__(
        self, times: tuple[int, ...] = (), values: tuple[tuple[float, ...], ...] = ()
    ) -> None:
        self.times, self.values = list(times), list(values)

    def record(self, estimator: Estimator) -> None:
        due = (
            math.ceil(self.times[-1] * 2 ** (1 / READINGS_PER_DOUBLING))
            if self.times
            else READINGS_PER_DOUBLING
        )
        if (
            not estimator.has_all_rows
        ):  # estimates over some of the rows tell nothing of later changes
            self.times, self.values = [], []
            return
        value = value_of(estimator) if estimator.exchanges >= due else None
        if value is not None:
            self.times = [*self.times, estimator.exchanges][-MAX_READINGS:]
            self.values = [*self.values, value][-MAX_READINGS:]

    def value_errors(self, estimator: Estimator) -> tuple[float | None, ...]:
        """Return `expected_error` of each value, where the statistic has several."""
        width = len(self.values[-1]) if self.values else 1
        if width == 1:
            return ()
        return tuple(self.expected_error(estimator, slice(c, c + 1)) for c in range(width))

    def expected_error(
        self, estimator: Estimator, place: slice | None = None, rule: Rule = RULE
    ) -> float | None:
        """Return the relative error that the last reading is expected to have.

        None: too few readings, or rows missing.

        `place` is that of the values of one of several statistics; without it, the largest error of
        all counts.
        """
        if (
            not self.times
            or len({len(value) for value in self.values}) > 1
            or not estimator.has_all_rows
        ):
            return None
        sampled, found = None if estimator.protocol.averages_moments else len(estimator.homes), 0.0
        for place_ in estimator.rows.estimand.value_places if place is None else [place]:
            values = [np.array([value[place_]]) for value in self.values]
            found = max(
                found, float(expected_errors(values, self.times, sampled, self.times[-1], rule)[0])
            )
        return found if np.isfinite(found) else None


def value_of(
    estimator: Estimator, payload: tuple[float, ...] | None = None
) -> tuple[float, ...] | None:
    """Return the statistic from a node's estimates, or from a neighbour's payload.

    None if it is not defined yet.
    """
    if estimator.known_rows < 2:
        return None
    told = (
        [estimator.protocol.read(state, 0.0) for state in estimator.states]
        if payload is None
        else payload
    )
    if (
        payload is not None and estimator.growing is not None
    ):  # what it tells a child: the sum of all that it knows
        told = payload[1 : 2 * len(estimator.states) : 2]
    means = np.array([told[: len(estimator.states)]])
    if estimator.protocol.counts_rows:
        if means[0, -1] <= MIN_COUNTED:
            return None
        means = means_of(means)
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
    rows = estimator.known_rows if estimator.growing is None else round(estimator.row_count)
    estimand, counted = estimator.rows.estimand, (len(estimator.homes), rows)
    places, error = estimand.value_places, readings.expected_error(estimator)
    errors = (
        [error]
        if len(places) == 1
        else [readings.expected_error(estimator, place) for place in places]
    )
    ends: list[tuple[float | None, float | None]] = [(None, None)] * len(places)
    if level is not None and estimator.known_rows > 2:
        expected = [readings.expected_error(estimator, place, INTERVAL_RULE) for place in places]
        own = zip(
            places, [np.array([np.inf if one is None else one]) for one in expected], strict=True
        )
        gossip = np.concatenate([gossip_errors(np.array(value[place]), one) for place, one in own])
        low, high, _ = estimator.value_function.intervals(
            np.array([estimator.estimates()]), level, gossip[None]
        )
        ends = [_finite_ends(low[0, place], high[0, place]) for place in places]
    parts: tuple[PartReport, ...] = ()
    if isinstance(estimand.statistic, JointStatistic):
        found = zip(estimand.statistic.parts, ends, errors, strict=True)
        parts = tuple(
            PartReport(p.title, value[p.values], *e, one, p.no_interval) for p, e, one in found
        )
        ends = [(None, None)]
    each = readings.value_errors(estimator)
    return Report(epoch, value, *ends[0], error, fingerprint, *counted, missing, each, parts)


def _finite_ends(low: Floats, high: Floats) -> tuple[float | None, float | None]:
    return (float(low[0]), float(high[0])) if np.isfinite([low[0], high[0]]).all() else (None, None)
