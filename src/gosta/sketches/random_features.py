"""Sketches by random directions that all nodes know: mean distances, and a Gaussian kernel.

The mean of |⟨w, x − y⟩| over directions w is ‖x − y‖ times a constant, so the mean distance is a
mean of differences in one dimension. Rows are projected on random directions, and each projection
is binned. With one column the only direction is exact. The mean of cos⟨w, x − y⟩ over normal w is
the Gaussian kernel (Rahimi and Recht, 2007).
"""

from __future__ import annotations

from math import exp, lgamma, pi, sqrt
from typing import Any

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import InputError
from gosta.runtime.arrays import Floats, project
from gosta.sketches.bins import sums_before
from gosta.sketches.definition import CLEAR, Features, Result, Sketch, single, sketch, undefined
from gosta.statistics import encode

SEED = 2016  # of the directions: public, and the same everywhere
# Standard errors over directions: of 32 the mean is further away in about one case in 2000.
REACH = 4.0
# Places are computed in floats: for each bin of the range, far less than this is lost of them and
# of their sums.
FLOAT_ERROR = 1e-14
FEWEST_SETS = 8  # of directions at right angles, whose means differ less than single directions do


class Projections(Sketch):
    """The sums, for each group and direction: counts and places by bin; last, the clipped rows."""

    needs_range = True
    finds_edges = False
    defaults = {"projections": 32}  # noqa: RUF012
    bounds = (0.0, np.inf)

    def prepare(self) -> None:
        d = len(self.axes)
        self.number = 1 if d == 1 else max(2, int(self.options["projections"]))
        self.bins = max(axis.bins for axis in self.axes)
        self.groups = 2 if self.has_classes else 1
        self.features_per_row = 2 * self.number + 1
        self.size = self.groups * self.number * 2 * self.bins + 1
        self.directions = _directions(d, self.number)
        self.constant = exp(lgamma(d / 2) - lgamma((d + 1) / 2)) / sqrt(pi) if d > 1 else 1.0
        self.low, self.high = np.array([[axis.low, axis.high] for axis in self.axes]).T
        spans = self.high - self.low
        # The least projection, of places from the lowest corner.
        self.start = np.minimum(self.directions, 0.0) @ spans
        self.widths = np.abs(self.directions) @ spans / self.bins

    @property
    def key(self) -> tuple[object, ...]:
        """Return also the number of directions."""
        return *super().key, self.number

    def features(self, x: Floats) -> Features:
        """Return a count and a place for each direction, and whether a value was clipped."""
        n = len(x)
        inside = np.clip(x[:, : len(self.axes)], self.low, self.high)
        # From the lowest corner: projections of large values lose digits in which rows differ.
        places = (project(inside - self.low, self.directions) - self.start) / self.widths
        bins = np.clip(places.astype(np.int64), 0, self.bins - 1)
        group = (x[:, -1] < 0).astype(np.int64) if self.has_classes else np.zeros(n, dtype=np.int64)
        first = (group[:, None] * self.number + np.arange(self.number)) * 2 * self.bins + bins
        positions = np.column_stack([first, first + self.bins, np.full(n, self.size - 1)])
        features = [np.ones_like(places), np.clip(places - bins, 0, 1), self.is_clipped(x)]
        return Features(positions, np.column_stack(features))

    def table(self, totals: Floats) -> Floats:
        """Return the totals as group × direction × (counts, places) × bin."""
        return totals[:-1].reshape(self.groups, self.number, 2, self.bins)

    def count(self, totals: Floats) -> float:
        """Return the mean over directions of the sum of counts."""
        return float(self.table(totals)[:, :, 0].sum(axis=(0, 2)).mean())

    def clipped(self, totals: Floats) -> float:
        """Return the last sum."""
        return float(totals[-1])

    def is_plausible(self, totals: Floats, tolerance: float) -> bool:
        """Check also that all directions count the same rows."""
        counts = self.table(totals)[:, :, 0].sum(axis=2)
        most = 0.5 + 4 * tolerance * sqrt(self.bins)
        return super().is_plausible(totals, tolerance) and bool(
            (np.ptp(counts, axis=1) <= most).all()
        )

    def differences(self, first: Floats, second: Floats, rounding: float) -> Floats:
        """Return sums of |x − y| over two groups: (estimate, least, largest) × direction."""
        (c, p), (e, q) = first.swapaxes(0, 1), second.swapaxes(0, 1)  # counts and places
        at = np.arange(self.bins)
        s, t = c * at + p, e * at + q
        between = s * sums_before(e) - c * sums_before(t) + t * sums_before(c) - e * sums_before(s)
        is_clear = (c > CLEAR * sqrt(self.noise)) & (e > CLEAR * sqrt(self.noise))
        raw = c * e
        c, e = np.maximum(c, 0.0), np.maximum(e, 0.0)
        p, q = np.clip(p, 0.0, c), np.clip(q, 0.0, e)
        least = np.abs(p * e - q * c)
        most = np.maximum(p * (e - q) + q * (c - p), least)
        guess = np.clip(c * e / 3, least, most)
        if self.noise > 0:  # where counts are hardly more than noise, this has no known sign
            guess = np.where(is_clear, guess, 1 / 3 * raw)
            least = np.where(is_clear, least, 0 * raw)
            most = np.where(is_clear, most, 1 / 2 * raw)
        within = np.array([part.sum(axis=1) for part in (guess, least, most)])
        room = (rounding + FLOAT_ERROR * self.bins) * c.sum(axis=1) * e.sum(axis=1) * 2
        steps = np.array([0.0, -1.0, 1.0])[:, None] * room
        return np.asarray((between.sum(axis=1) + within + steps) * self.widths)

    def mean(self, values: Floats) -> Result:
        """Return the mean over directions, and where it is with high probability."""
        value, low, high = values.mean(axis=1) / self.constant
        reach = REACH * (self._spread(values[0]) / self.constant)
        return single(value, low - reach, high + reach, is_certified=self.number == 1)

    def _spread(self, values: Floats) -> float:
        """Return the standard error of the mean over directions, or over enough sets of them."""
        if self.number == 1:
            return 0.0
        d = len(self.axes)
        sets = self.number // d
        if sets >= FEWEST_SETS:
            values = values[: sets * d].reshape(sets, d).mean(axis=1)
        return float(values.std(ddof=1)) / sqrt(len(values))


def _directions(d: int, number: int) -> Floats:
    """Return random directions in d dimensions, in sets of d at right angles."""
    if d == 1:
        return np.ones((1, 1))
    rng = np.random.default_rng([SEED, d])
    sets = [np.linalg.qr(rng.normal(size=(d, d)))[0].T for _ in range(-(-number // d))]
    # Twelve digits: linear algebra differs in the last ones from machine to machine.
    return np.round(np.concatenate(sets)[:number], 12)


@sketch("mean-pairwise-distance")
class MeanPairwiseDistance(Projections):
    """Mean Euclidean distance of two rows from bins of random projections."""

    encode = staticmethod(encode.features)

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Average the mean differences of all directions."""
        table, n = self.table(totals)[0], self.count(totals)
        if n < 1.5:
            return undefined()
        return self.mean(self.differences(table, table, rounding) / (n * (n - 1)))


@sketch("energy-distance")
class EnergyDistance(Projections):
    """Energy distance of two samples from bins of random projections."""

    encode = staticmethod(encode.two_samples)
    has_classes = True

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Average twice the mean difference across the samples less those within."""
        first, second = self.table(totals)
        m, n = (float(part[:, 0].sum(axis=1).mean()) for part in (first, second))
        if min(m, n) < 0.5:
            return undefined()
        across = self.differences(first, second, rounding) * 2 / (m * n)
        within_first = self.differences(first, first, rounding) / m**2
        within_second = self.differences(second, second, rounding) / n**2
        return self.mean(across - (within_first + within_second)[[0, 2, 1]])


@sketch("mmd")
class MaximumMeanDiscrepancy(Sketch):
    """Squared maximum mean discrepancy under a Gaussian kernel from random Fourier features.

    The sums of each sample: its count, then (1 + cos⟨w, x⟩)/2 and (1 + sin⟨w, x⟩)/2 for each of
    some w from a seed that all know.
    """

    encode = staticmethod(encode.scaled_samples)
    has_classes = True
    is_binned = False
    finds_edges = False
    defaults = {"frequencies": 256}  # noqa: RUF012

    def prepare(self) -> None:
        d = len(self.axes)
        self.number = max(2, int(self.options["frequencies"]))
        self.frequencies = np.random.default_rng([SEED, d]).normal(size=(self.number, d))
        self.features_per_row = 2 * self.number + 1
        self.size = 2 * self.features_per_row

    @property
    def key(self) -> tuple[object, ...]:
        """Return also the number of frequencies."""
        return *super().key, self.number

    @classmethod
    def fixed_options(cls, options: dict[str, Any], data: Data | None) -> dict[str, Any]:
        """Return the bandwidth as a number, where rows in one place give it."""
        if options["bandwidth"] is not None:
            return options
        if data is None:
            raise InputError(
                "bandwidth is missing: by default it depends on all rows (--option bandwidth=1.5)"
            )
        x = encode.two_samples(data, options["positive"])
        return {**options, "bandwidth": float(np.sqrt(x[:, :-1].var(axis=0).sum()))}

    def features(self, x: Floats) -> Features:
        """Return the count, cosines and sines of a row, at the place of its sample."""
        phases = project(x[:, :-1], self.frequencies)
        waves = [(1 + np.cos(phases)) / 2, (1 + np.sin(phases)) / 2]
        start = (x[:, -1] < 0) * self.features_per_row
        positions = start[:, None] + np.arange(self.features_per_row)
        return Features(positions, np.clip(np.column_stack([np.ones(len(x)), *waves]), 0.0, 1.0))

    def _samples(self, totals: Floats) -> tuple[Floats, Floats]:
        """Return counts of both samples; sums of cosines and sines: sample × 2 × frequency."""
        table = totals.reshape(2, -1)
        counts = table[:, 0]
        return counts, (2 * table[:, 1:] - counts[:, None]).reshape(2, 2, -1)

    def count(self, totals: Floats) -> float:
        """Return the sum of both counts."""
        return float(self._samples(totals)[0].sum())

    def is_plausible(self, totals: Floats, tolerance: float) -> bool:
        """Check also that no mean is above 1."""
        table = totals.reshape(2, -1)
        is_below = (table <= table[:, :1] + 2 * tolerance).all()
        return super().is_plausible(totals, tolerance) and bool(is_below)

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Return mean kernels within both samples, of different rows, less twice the one across."""
        counts, sums = self._samples(totals)
        if counts.min() < 1.5:
            return undefined()
        m, n = counts
        first, second = ((part**2).sum(axis=0) for part in sums)
        across = (sums[0] * sums[1]).sum(axis=0)
        values = (first - m) / (m * (m - 1)) + (second - n) / (n * (n - 1)) - 2 * across / (m * n)
        value = float(values.mean())
        # Sums of cosines are off by at most 2 · rows · rounding, their means are at most 1.
        room = 32 * rounding * max(m / (m - 1), n / (n - 1))
        reach = REACH * float(values.std(ddof=1)) / sqrt(self.number) + room
        return single(value, value - reach, value + reach, is_certified=False)
