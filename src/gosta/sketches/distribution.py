"""Sketches of how one column is distributed: mean differences, the Lorenz curve, quantiles.

The first three are functions of the count, the sum and the sum of squares of the places in each
bin. Differences between rows of two bins are exact, from counts and sums. Within a bin the sum D of
|x − y| over the pairs of c rows whose squared deviations add up to SS, in a bin of width 1, is
bounded on both sides:

    max(c SS, √(c(c − 1) SS))  ≤  D  ≤  min(√(c(c² − 1)/3 · SS), k(c − k)),

where k is the sum of the places.

The first since |x − y| ≥ (x − y)² and by one row that differs from all others, the last by rows at
both ends only; the third is Cauchy's inequality for the sorted rows, which rows in equal distances
reach.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gosta.errors import InputError
from gosta.measures import distribution  # noqa: F401
from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.bins import Counts, merge_starts, sums_after, sums_before, without_noise
from gosta.sketches.definition import CLEAR, Features, Result, Sketch, single, sketch, undefined
from gosta.statistics import encode


class Cells(NamedTuple):
    """Totals of the bins, with rows below the range and rows above it as first and last."""

    counts: Floats
    sums: Floats  # of the values, less the lowest possible
    errors: Floats  # how far these sums can be off by rounding


class ValueBins(Sketch):
    """The sums: rows below the range, rows above it; counts, places and squared places by bin.

    The place of a value in its bin is 0 at the left end and 1 at the right end, so that rounding
    and noise matter less the narrower the bin is.
    """

    sums = "values"
    roles = ("value",)
    needs_range = True
    features_per_row = 3

    def prepare(self) -> None:
        self.axis = self.axes[0]
        self.widths = np.diff(self.axis.bounds)
        self.size = 2 + 3 * self.axis.bins

    def features(self, x: Floats) -> Features:
        """Count a row in its bin, with its place and its square if it is within the range."""
        axis, values = self.axis, x[:, 0]
        bins = axis.positions(values)
        places = np.clip((values - axis.bounds[bins]) / self.widths[bins], 0.0, 1.0)
        inside = ((values >= axis.low) & (values <= axis.high)).astype(np.float64)
        first = np.where(values < axis.low, 0, np.where(values > axis.high, 1, 2 + bins))
        positions = np.column_stack([first, 2 + axis.bins + bins, 2 + 2 * axis.bins + bins])
        features = [np.ones(len(x)), inside * places, inside * places**2]
        return Features(positions, np.column_stack(features))

    def by_bin(self, totals: Floats) -> Floats:
        """Return counts, places and squared places: 3 × bins."""
        return totals[2:].reshape(3, -1)

    def count(self, totals: Floats) -> float:
        """Return the sum of counts and of rows beyond the range."""
        return float(totals[: 2 + self.axis.bins].sum())

    def clipped(self, totals: Floats) -> float:
        """Return the rows beyond the range."""
        return float(totals[:2].sum())

    def merged(self, totals: Floats, min_cell: int) -> tuple[Sketch, Floats]:
        """Merge bins with few rows: places in the wider bin follow from those in the narrow one."""
        counts, places, squares = self.by_bin(totals)
        starts = merge_starts(counts[None], min_cell, self.axis.bounds)
        made = self.with_merged_bins(starts)
        bounds = made.axes[0].bounds
        wide_bin = np.repeat(np.arange(len(starts)), np.diff([*starts, len(counts)]))
        wide_widths = np.diff(bounds)[wide_bin]
        shift = (self.axis.bounds[:-1] - bounds[wide_bin]) / wide_widths
        scale = self.widths / wide_widths
        wide_places = shift * counts + scale * places
        wide_squares = shift**2 * counts + 2 * shift * scale * places + scale**2 * squares
        wide = np.add.reduceat(np.array([counts, wide_places, wide_squares]), starts, axis=1)
        return made, np.concatenate([totals[:2], wide.ravel()])

    def is_plausible(self, totals: Floats, tolerance: float) -> bool:
        """Check also that no mean place is above 1."""
        counts, places, squares = self.by_bin(totals)
        room = counts + 2 * tolerance
        is_below = (places <= room).all() and (squares <= room).all()
        return super().is_plausible(totals, tolerance) and bool(is_below)

    def cells(self, totals: Floats, rounding: float) -> Cells:
        """Return counts and sums of values of all bins and of both ends."""
        axis = self.axis
        counts, places, _ = self.by_bin(totals)
        sums = counts * (axis.bounds[:-1] - axis.low) + self.widths * places
        errors = np.maximum(counts, 0.0) * self.widths * rounding
        return Cells(
            np.concatenate([[totals[0]], counts, [totals[1]]]),
            np.concatenate([[0.0], sums, [totals[1] * (axis.high - axis.low)]]),
            np.concatenate([[0.0], errors, [0.0]]),
        )

    def differences(self, totals: Floats, rounding: float) -> Floats:
        """Return the sum of |x − y| over pairs of rows: its estimate, least and largest value."""
        cells = self.cells(totals, rounding)
        counts, places, _ = self.by_bin(totals)
        lower, higher = sums_before(cells.counts)[1:-1], sums_after(cells.counts)[1:-1]
        # Pairs of rows of two bins, by the bins between them: nothing cancels in narrow bins.
        between = float(
            (lower * higher + lower * places + higher * (counts - places)) @ self.widths
        )
        room = max(cells.counts.sum(), 0.0) * cells.errors.sum()
        inside = within(self.by_bin(totals), rounding, self.noise) @ self.widths
        return np.asarray(between + inside + [0.0, -room, room])

    def slopes(self, totals: Floats) -> tuple[Floats, Floats]:
        """Return the derivatives of the sum of differences and of the count by the totals."""
        axis, widths = self.axis, self.widths
        cells = self.cells(totals, 0.0)
        by_count = sums_after(cells.sums) - sums_before(cells.sums)
        by_sum = sums_before(cells.counts) - sums_after(cells.counts)
        values = np.concatenate([[0.0], axis.bounds[:-1] - axis.low, [axis.high - axis.low]])
        by_cell = by_count + by_sum * values
        by_bin = np.array([by_cell[1:-1], by_sum[1:-1] * widths, 0 * widths])
        by_bin += widths * _slopes_within(self.by_bin(totals), self.noise)
        of_count = np.concatenate([np.ones(2 + axis.bins), np.zeros(2 * axis.bins)])
        return np.concatenate([[by_cell[0], by_cell[-1]], by_bin.ravel()]), of_count

    def sampling_variance(self, totals: Floats, gradient: Floats) -> float:
        """Return the variance of what rows contribute, linear in their places in bins."""
        counts, places, squares = self.by_bin(totals)
        by_count, by_place, by_square = self.by_bin(gradient)
        mean = np.clip(places / np.maximum(counts, 1e-9), 0.0, 1.0)
        spread = np.clip(squares - mean * places, 0.0, np.maximum(counts, 0.0) / 4)
        rows = np.concatenate([totals[:2], counts])
        shares = np.concatenate([gradient[:2], by_count + by_place * mean + by_square * mean**2])
        shares = shares - rows @ shares / max(rows.sum(), 1.0)
        return float(rows @ shares**2 + spread @ (by_place + 2 * by_square * mean) ** 2)


def within(bins: Floats, rounding: float, noise: float = 0.0) -> Floats:
    """Return the sums of |x − y| over pairs of rows in bins of width 1: estimate, least, largest.

    In a bin whose count is hardly more than noise, rows are taken to be uniform, so that the noise
    has no known sign.
    """
    c = np.maximum(bins[0], 0.0)
    k = np.clip(bins[1], 0.0, c)
    spread = np.clip(bins[2] - k**2 / np.maximum(c, 1e-9), 0.0, c / 4)
    room = 3 * c * rounding  # of the sum of squares, and of the mean, which is at most 1, twice
    least, largest = np.maximum(spread - room, 0.0), np.minimum(spread + room, c / 4)
    low = np.maximum(c * least, np.sqrt(np.maximum(c * (c - 1), 0.0) * least))
    by_cauchy = np.sqrt(np.maximum(c * (c**2 - 1), 0.0) / 3 * largest)
    high = np.maximum(low, np.minimum(by_cauchy, k * (c - k) + c**2 * rounding))
    uniform_mean = np.sqrt(c**2 * np.maximum(c - 1, 0.0) / 3 * spread)
    sums = np.array([np.clip(uniform_mean, low, high), low, high])
    if noise > 0:
        uniform = np.outer([1 / 6, 0, 1 / 4], bins[0] * (bins[0] - 1))
        sums = np.where(bins[0] > CLEAR * np.sqrt(noise), sums, uniform)
    return sums


def _slopes_within(bins: Floats, noise: float) -> Floats:
    """Return the derivatives of the estimate by each number of a bin: 3 × bins."""
    slopes = np.zeros_like(bins)
    step = 1e-5 * np.maximum(bins[0], 1.0)
    for k in range(3):
        shift = np.zeros((3, 1))
        shift[k] = 1.0
        up, down = (within(bins + side * shift * step, 0.0, noise)[0] for side in (1, -1))
        slopes[k] = (up - down) / (2 * step)
    return slopes


@sketch("gini-mean-difference")
class GiniMeanDifference(ValueBins):
    """Mean absolute difference of two rows from sums in bins."""

    encode = staticmethod(encode.value)
    bounds = (0.0, np.inf)

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Divide the sum of differences by the number of pairs."""
        n = self.count(totals)
        if n < 1.5:
            return undefined()
        return single(*self.differences(totals, rounding) * 2 / (n * (n - 1)))

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivative of 2D / n(n − 1)."""
        n = self.count(totals)
        by_differences, by_count = self.slopes(totals)
        value = self.differences(totals, 0.0)[0] * 2 / (n * (n - 1))
        return np.asarray((2 * by_differences - value * (2 * n - 1) * by_count) / (n * (n - 1)))


class PositiveValueBins(ValueBins):
    """Bins of values that are not negative."""

    encode = staticmethod(encode.positive_value)

    def prepare(self) -> None:
        super().prepare()
        axis = self.axis
        if axis.low < 0:
            raise InputError(
                f"range of {axis.column!r} = {axis.low:g}:{axis.high:g} must not be negative"
            )
        # Derivatives of the sum of values by the totals.
        ends = [axis.low, axis.high]
        self.by_sum = np.concatenate([ends, axis.bounds[:-1], self.widths, 0 * self.widths])

    def sum_of_values(self, totals: Floats, rounding: float) -> tuple[float, float]:
        """Return the sum of all values, and its largest error; 0 where it may be noise alone."""
        cells = self.cells(totals, rounding)
        total = float(cells.sums.sum() + self.axis.low * cells.counts.sum())
        if self.noise > 0 and total < CLEAR * np.sqrt(self.noise) * np.linalg.norm(self.by_sum):
            return 0.0, 0.0
        return total, float(cells.errors.sum())


@sketch("gini-index")
class GiniIndex(PositiveValueBins):
    """Inequality from 0 to 1, mean absolute difference over twice the mean, from sums in bins."""

    bounds = (0.0, 1.0)

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Divide the sum of differences by n times the sum of values."""
        n = self.count(totals)
        total, error = self.sum_of_values(totals, rounding)
        if n < 1.5 or total <= 0:
            return undefined()
        value, low, high = self.differences(totals, rounding)
        high = high / (n * (total - error)) if total > error else 1.0
        return single(value / (n * total), low / (n * (total + error)), high)

    def centre(self, totals: Floats, value: Floats) -> Floats:
        """Return the mean difference over pairs of different rows, over twice the mean."""
        n = self.count(totals)
        return np.asarray(value * n / (n - 1))

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivative of D / (n · sum)."""
        n = self.count(totals)
        total, _ = self.sum_of_values(totals, 0.0)
        by_differences, by_count = self.slopes(totals)
        value = self.differences(totals, 0.0)[0] / (n * total)
        return np.asarray(
            by_differences / (n * total) - value * (by_count / n + self.by_sum / total)
        )


@sketch("lorenz-curve")
class LorenzCurve(PositiveValueBins):
    """Points of the Lorenz curve, from sums in bins."""

    defaults = {"parts": 10}  # noqa: RUF012
    shows_bins = True
    trend = 1

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Add up bins; the lowest rows of the bin where a share ends have at most its mean."""
        n = self.count(totals)
        total, _ = self.sum_of_values(totals, rounding)
        parts = int(self.options["parts"])
        labels = tuple(f"lowest {100 * k / parts:g} %" for k in range(1, parts))
        if n < 0.5 or total <= 0:
            return undefined(labels)
        cells = self.cells(totals, rounding)
        counts = without_noise(cells.counts)
        sums = without_noise(cells.sums + cells.counts * self.axis.low)
        wanted = np.arange(1, parts) / parts * counts.sum()
        cell = np.minimum(np.searchsorted(np.cumsum(counts), wanted), len(counts) - 1)
        left, right = self.axis.outer_bounds[cell], self.axis.outer_bounds[cell + 1]
        rows = counts[cell]
        taken = wanted - sums_before(counts)[cell]
        mean = np.clip(sums[cell] / np.maximum(rows, 1e-9), left, right)
        least = np.maximum(taken * left, sums[cell] - (rows - taken) * right)
        # Of rows spread evenly around the mean, as far as the nearer end.
        reach = np.minimum(mean - left, right - mean)
        guess = taken * (mean - reach * (1 - taken / np.maximum(rows, 1e-9)))
        value, low, high = (
            np.clip((sums_before(sums)[cell] + part) / total, 0.0, 1.0)
            for part in (np.clip(guess, least, taken * mean), least, taken * mean)
        )
        room = 4 * cells.errors.sum() / total
        low, high = np.minimum(value, low - room), np.maximum(value, high + room)
        return Result(value, low, high, labels=labels)


@sketch("quantiles")
class Quantiles(Counts):
    """Values below which 10 %, 20 %, ... of the rows are, from counts in bins.

    The sums: rows below the range, the counts of bins, rows above the range. With n rows, the
    quantile k/m is the smallest value that at least nk/m rows do not exceed.
    """

    roles = ("value",)
    needs_range = True
    defaults = {"parts": 10}  # noqa: RUF012
    shows_bins = True
    trend = 1

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.axes[0].bins + 2,)

    def cells(self, x: Floats) -> Integers:
        axis, values = self.axes[0], x[:, 0]
        inside = np.where(values > axis.high, axis.bins, axis.positions(values))
        return np.where(values < axis.low, 0, 1 + inside)

    def clipped(self, totals: Floats) -> float:
        """Return the rows beyond the range."""
        return float(totals[0] + totals[-1])

    def merged(self, totals: Floats, min_cell: int) -> tuple[Sketch, Floats]:
        """Merge bins with few rows."""
        starts = merge_starts(totals[None, 1:-1], min_cell, self.axes[0].bounds)
        counts = np.add.reduceat(totals[1:-1], starts)
        return self.with_merged_bins(starts), np.concatenate([totals[:1], counts, totals[-1:]])

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Find the bin of the row that is the quantile; within it, rows are spread evenly."""
        parts = int(self.options["parts"])
        labels = tuple(f"{100 * k / parts:g} %" for k in range(1, parts))
        counts = without_noise(totals)
        n = round(float(counts.sum()))
        if n < 1:
            return undefined(labels)
        rank = np.array([_rank(k, parts, n) for k in range(1, parts)])
        cell = np.minimum(np.searchsorted(np.cumsum(counts), rank - 1e-6), len(counts) - 1)
        bounds = self.axes[0].outer_bounds
        low, high = bounds[cell], bounds[cell + 1]
        passed = (rank - 0.5 - sums_before(counts)[cell]) / np.maximum(counts[cell], 0.5)
        value = low + np.clip(passed, 0.0, 1.0) * (high - low)
        return Result(value, low, high, labels=labels)


def _rank(k: int, parts: int, n: int) -> int:
    """Return the rank from 1 of the row that is the quantile k/parts."""
    return max(1, -(-k * n // parts))
