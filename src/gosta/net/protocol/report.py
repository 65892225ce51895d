"""A node's report: its estimate, a confidence interval, and the error that it expects."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from gosta.estimation.exchange import Site
from gosta.estimation.problem import Whole
from gosta.estimation.stopping import PER_DOUBLING, READINGS, remaining
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import apply_to_rows
from gosta.statistics.exact import interval_bounds

SUFFICIENT_ERROR = 0.01  # relative; at this, a new epoch's estimate replaces the old one, however good that was


class Report(msgspec.Struct, frozen=True, array_like=True):
    """An estimate with its interval and expected error."""

    epoch: int
    value: tuple[float, ...]
    low: float | None
    high: float | None
    expected_error: float | None  # relative, of gossip; None: too few readings so far
    fingerprint: str  # of the statistic and protocol

    def is_better_than(self, previous: Report | None) -> bool:
        """Return whether to report this instead of an earlier epoch's report.

        That is the case if its expected error is sufficient, or at most that of the other, or at most the distance of
        the two estimates: then the other no longer holds.
        """
        if previous is None:
            return True
        if self.expected_error is None or len(self.value) != len(previous.value):
            return False
        distance = math.dist(self.value, previous.value) / (math.hypot(*self.value) or 1.0)
        return self.expected_error <= max(SUFFICIENT_ERROR, previous.expected_error or 0.0, distance)


class Readings:
    """A node's estimates at exponentially growing numbers of exchanges, from which it estimates its error."""

    def __init__(self, times: tuple[int, ...] = (), values: tuple[tuple[float, ...], ...] = ()) -> None:
        self.times, self.values = list(times), list(values)

    def record(self, site: Site) -> None:
        """Add the current estimate if a reading is due."""
        following = math.ceil(self.times[-1] * 2 ** (1 / PER_DOUBLING)) if self.times else PER_DOUBLING
        value = value_of(site) if site.meetings >= following else None
        if value is not None:
            self.times = [*self.times, site.meetings][-READINGS:]
            self.values = [*self.values, value][-READINGS:]

    def expected_error(self) -> float | None:
        """Return the relative error that the last reading is expected to have; None: too few readings."""
        if not self.times or len({len(value) for value in self.values}) > 1:
            return None
        found = float(remaining([np.array([value]) for value in self.values], self.times)[0])
        return found if np.isfinite(found) else None


def _whole(site: Site) -> Whole:
    own = site.table.own
    return Whole(own.statistic, site.rows_met, site.mean_diagonal, own.parts.get("final", {}))


def _means(site: Site, estimates: Floats) -> Floats:
    moments = site.table.own.statistic.moments
    if moments is None or site.protocol.begins != "moments":
        return estimates
    return apply_to_rows(moments[1], estimates)


def value_of(site: Site, estimates: tuple[float, ...] | None = None) -> tuple[float, ...] | None:
    """Return the statistic from a site's estimates, or from a neighbour's payload; None if it is not defined yet."""
    means = _means(site, np.array([site.estimates() if estimates is None else estimates]))
    if site.rows_met < 2:
        return None
    value = _whole(site).value(means)[0]
    return tuple(value.tolist()) if np.isfinite(value).all() else None


def make_report(site: Site, readings: Readings, epoch: int, level: float | None, fingerprint: str) -> Report | None:
    """Return a site's report; None if it has no estimate yet."""
    value = value_of(site) if site.meetings else None
    if value is None:
        return None
    low = high = None
    if level is not None and site.rows_met > 2:
        whole, width = _whole(site), site.table.width
        error = float(whole.standard_errors(np.array([site.estimates()]), width)[0])
        if np.isfinite(error):
            low, high = map(float, interval_bounds(whole.statistic, value[0], error, level))
    return Report(epoch, value, low, high, readings.expected_error(), fingerprint)
