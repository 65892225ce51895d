"""What a node reports: its estimate, an interval, and how far off it thinks it is."""

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

GOAL = 0.01  # a relative error at which a new epoch's estimate is good enough, whatever the last one's was


class Report(msgspec.Struct, frozen=True, array_like=True):
    """An estimate, and what can be said of it."""

    epoch: int
    value: tuple[float, ...]
    low: float | None
    high: float | None
    expected_error: float | None  # relative, of gossip; None: too early to tell
    statistic: str  # the fingerprint of what it is of

    def better(self, than: Report | None) -> bool:
        """Whether to report this instead of what an earlier epoch found.

        That is so if it is good enough, or as good as the other was, or if the two are further apart than this one is
        expected to be wrong: then the other is no longer right.
        """
        if than is None:
            return True
        if self.expected_error is None or len(self.value) != len(than.value):
            return False
        apart = math.dist(self.value, than.value) / (math.hypot(*self.value) or 1.0)
        return self.expected_error <= max(GOAL, than.expected_error or 0.0, apart)


class Readings:
    """A node's estimates at equal ratios of its meetings: what it can judge its error by."""

    def __init__(self, times: tuple[int, ...] = (), values: tuple[tuple[float, ...], ...] = ()) -> None:
        self.times, self.values = list(times), list(values)

    def note(self, site: Site) -> None:
        """Read the estimate, if it is time to."""
        following = math.ceil(self.times[-1] * 2 ** (1 / PER_DOUBLING)) if self.times else PER_DOUBLING
        value = value_of(site) if site.meetings >= following else None
        if value is not None:
            self.times = [*self.times, site.meetings][-READINGS:]
            self.values = [*self.values, value][-READINGS:]

    def expected_error(self) -> float | None:
        """The relative error that the last reading is expected to have."""
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
    """The statistic, from a site's estimates or those that another told it; None while there is none."""
    means = _means(site, np.array([site.estimates() if estimates is None else estimates]))
    if site.rows_met < 2:
        return None
    value = _whole(site).value(means)[0]
    return tuple(value.tolist()) if np.isfinite(value).all() else None


def report(site: Site, readings: Readings, epoch: int, level: float | None, statistic: str) -> Report | None:
    """What there is to report; None while there is nothing."""
    value = value_of(site) if site.meetings else None
    if value is None:
        return None
    low = high = None
    if level is not None and site.rows_met > 2:
        whole, width = _whole(site), site.table.width
        error = float(whole.standard_errors(np.array([site.estimates()]), width)[0])
        if np.isfinite(error):
            low, high = map(float, interval_bounds(whole.statistic, value[0], error, level))
    return Report(epoch, value, low, high, readings.expected_error(), statistic)
