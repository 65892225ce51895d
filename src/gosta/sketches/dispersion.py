"""Sketches of one column by bins: count, sum and sum of squares of the places in each bin.

Differences between rows of two bins are exact, from counts and sums. Within a bin the sum D of |x − y| over the pairs
of c rows whose squared deviations add up to SS, in a bin of width 1, is bounded on both sides:

    max(c SS, √(c(c − 1) SS))  ≤  D  ≤  min(√(c(c² − 1)/3 · SS), k(c − k))      with k the sum of the places

The first since |x − y| ≥ (x − y)² and by one row that differs from all others, the last by rows at both ends only; the
third is Cauchy's inequality for the sorted rows, which rows in equal distances reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.sketches.definition import (
    CLEAR,
    Axis,
    Features,
    Result,
    Sketch,
    after,
    before,
    merge_starts,
    one,
    sketch,
    undefined,
    without_noise,
)
from gosta.statistics import encode
from gosta.statistics.definition import Options


class Cells(NamedTuple):
    """Totals of the bins, with rows below the range and rows above it as first and last."""

    counts: Floats
    sums: Floats  # of the values, less the lowest possible
    errors: Floats  # how far these sums can be off by rounding


class ValueBins(Sketch):
    """The sums: rows below the range, rows above it; counts, places and squared places by bin.

    The place of a value in its bin is 0 at the left end and 1 at the right end, so that rounding and noise matter less
    the narrower the bin is.
    """

    sums = "values"
    roles = ("value",)
    needs_range = True
    features_per_row = 3

    @property
    def size(self) -> int:  # type: ignore[override]
        return 2 + 3 * self.axes[0].bins

    def features(self, x: Floats) -> Features:
        """Count a row in its bin, with its place and its square; a row beyond the range only counts."""
        axis, values = self.axes[0], x[:, 0]
        bins, ends = axis.positions(values), axis.bounds
        places = np.clip((values - ends[bins]) / np.diff(ends)[bins], 0.0, 1.0)
        inside = ((values >= axis.low) & (values <= axis.high)).astype(np.float64)
        first = np.where(values < axis.low, 0, np.where(values > axis.high, 1, 2 + bins))
        positions = np.column_stack([first, 2 + axis.bins + bins, 2 + 2 * axis.bins + bins])
        return Features(
            positions, np.column_stack([np.ones(len(x)), inside * places, inside * places**2])
        )

    def bins_of(self, totals: Floats) -> Floats:
        """Return counts, places and squared places: 3 × bins."""
        return totals[2:].reshape(3, -1)

    def count(self, totals: Floats) -> float:
        """Return the sum of counts and of rows beyond the range."""
        return float(totals[: 2 + self.axes[0].bins].sum())

    def clipped(self, totals: Floats) -> float:
        """Return the rows beyond the range."""
        return float(totals[:2].sum())

    def merged(self, totals: Floats, min_cell: int) -> tuple[Sketch, Floats]:
        """Merge bins with few rows: places in the wider bin follow from those in the narrow one."""
        counts, places, squares = self.bins_of(totals)
        starts = merge_starts(counts[None], min_cell, self.axes[0].bounds)
        axis = self.axes[0].merged(starts)
        of = np.repeat(np.arange(len(starts)), np.diff([*starts, len(counts)]))
        widths = np.diff(axis.bounds)[of]
        shift, scale = (
            (self.axes[0].bounds[:-1] - axis.bounds[of]) / widths,
            np.diff(self.axes[0].bounds) / widths,
        )
        moved = [counts, shift * counts + scale * places]
        moved.append(shift**2 * counts + 2 * shift * scale * places + scale**2 * squares)
        wider = np.add.reduceat(np.array(moved), starts, axis=1)
        return type(self)([axis], self.classes, self.options), np.concatenate(
            [totals[:2], wider.ravel()]
        )

    def is_plausible(self, totals: Floats, tolerance: float) -> bool:
        """Check also that no mean place is above 1."""
        counts, places, squares = self.bins_of(totals)
        room = counts + 2 * tolerance
        return super().is_plausible(totals, tolerance) and bool(
            (places <= room).all() and (squares <= room).all()
        )

    def cells(self, totals: Floats, rounding: float) -> Cells:
        """Return counts and sums of values of all bins and of both ends."""
        axis, (counts, places, _) = self.axes[0], self.bins_of(totals)
        widths, lefts = np.diff(axis.bounds), axis.bounds[:-1] - axis.low
        sums = [[0.0], counts * lefts + widths * places, [totals[1] * (axis.high - axis.low)]]
        errors = np.concatenate([[0.0], np.maximum(counts, 0.0) * widths * rounding, [0.0]])
        return Cells(
            np.concatenate([[totals[0]], counts, [totals[1]]]), np.concatenate(sums), errors
        )

    def differences(self, totals: Floats, rounding: float) -> Floats:
        """Return the sum of |x − y| over pairs of rows: its estimate, least and largest value."""
        counts, _, errors = self.cells(totals, rounding)
        widths, (own, places, _) = np.diff(self.axes[0].bounds), self.bins_of(totals)
        low, high = before(counts)[1:-1], after(counts)[1:-1]
        # Pairs of rows of two bins, by the bins that lie between them: nothing cancels, however narrow bins are.
        between = float((low * high + low * places + high * (own - places)) @ widths)
        room = max(counts.sum(), 0.0) * errors.sum()
        inside = within(self.bins_of(totals), rounding, self.noise) @ widths
        return np.asarray(between + inside + [0.0, -room, room])

    def slopes(self, totals: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the derivatives of the sum of differences, of the count and of the sum of values by the totals."""
        axis = self.axes[0]
        cells, widths = self.cells(totals, 0.0), np.diff(axis.bounds)
        by_count, by_sum = (
            after(cells.sums) - before(cells.sums),
            before(cells.counts) - after(cells.counts),
        )
        values = np.concatenate([[0.0], axis.bounds[:-1] - axis.low, [axis.high - axis.low]])
        of_cells = by_count + by_sum * values
        bins = np.array(
            [of_cells[1:-1], by_sum[1:-1] * widths, 0 * widths]
        ) + widths * _within_slopes(self.bins_of(totals), self.noise)
        zeros = np.zeros(2 * axis.bins)
        counts = np.concatenate([np.ones(2 + axis.bins), zeros])
        return np.concatenate([[of_cells[0], of_cells[-1]], bins.ravel()]), counts, self.by_sum

    @property
    def by_sum(self) -> Floats:
        """Return the derivatives of the sum of values by the totals."""
        axis, widths = self.axes[0], np.diff(self.axes[0].bounds)
        return np.concatenate([[axis.low, axis.high], axis.bounds[:-1], widths, 0 * widths])

    def sampling_variance(self, totals: Floats, gradient: Floats) -> float:
        """Return the variance over rows of what a row contributes, taken as linear in its place within a bin."""
        counts, places, squares = self.bins_of(totals)
        a, b, c = self.bins_of(gradient)
        mean = np.clip(places / np.maximum(counts, 1e-9), 0.0, 1.0)
        spread = np.clip(squares - mean * places, 0.0, np.maximum(counts, 0.0) / 4)
        rows = np.concatenate([totals[:2], counts])
        shares = np.concatenate([gradient[:2], a + b * mean + c * mean**2])
        shares = shares - rows @ shares / max(rows.sum(), 1.0)
        return float(rows @ shares**2 + spread @ (b + 2 * c * mean) ** 2)


def within(bins: Floats, rounding: float, noise: float = 0.0) -> Floats:
    """Return the sums of |x − y| over pairs of rows in a bin of width 1: estimate, least, largest; 3 × bins.

    In a bin whose count is hardly more than noise, rows are taken to be uniform, so that the noise has no known sign.
    """
    c = np.maximum(bins[0], 0.0)
    k = np.clip(bins[1], 0.0, c)
    spread = np.clip(bins[2] - k**2 / np.maximum(c, 1e-9), 0.0, c / 4)
    room = 3 * c * rounding  # of the sum of squares, and of the mean, which is at most 1, twice
    least, largest = np.maximum(spread - room, 0.0), np.minimum(spread + room, c / 4)
    low = np.maximum(c * least, np.sqrt(np.maximum(c * (c - 1), 0.0) * least))
    high = np.minimum(
        np.sqrt(np.maximum(c * (c**2 - 1), 0.0) / 3 * largest), k * (c - k) + c**2 * rounding
    )
    # The mean over uniform rows.
    guess = np.sqrt(c**2 * np.maximum(c - 1, 0.0) / 3 * spread)
    found = np.array([np.clip(guess, low, np.maximum(low, high)), low, np.maximum(low, high)])
    if noise > 0:
        uniform = np.outer([1 / 6, 0, 1 / 4], bins[0] * (bins[0] - 1))
        found = np.where(bins[0] > CLEAR * np.sqrt(noise), found, uniform)
    return found


def _within_slopes(bins: Floats, noise: float) -> Floats:
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
        return one(*self.differences(totals, rounding) * 2 / (n * (n - 1)))

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivative of 2D / n(n − 1)."""
        n, (differences, counts, _) = self.count(totals), self.slopes(totals)
        value = self.differences(totals, 0.0)[0] * 2 / (n * (n - 1))
        return np.asarray((2 * differences - value * (2 * n - 1) * counts) / (n * (n - 1)))


class PositiveValueBins(ValueBins):
    """Bins of values that are not negative."""

    encode = staticmethod(encode.positive_value)

    def __init__(
        self, axes: Sequence[Axis], classes: int = 2, options: Options | None = None
    ) -> None:
        super().__init__(axes, classes, options)
        if axes[0].low < 0:
            raise InputError(
                f"range of {axes[0].column!r} = {axes[0].low:g}:{axes[0].high:g} must not be negative"
            )

    def sum_of_values(self, totals: Floats, rounding: float) -> tuple[float, float]:
        """Return the sum of all values, and how far it can be off; 0 where it may be noise alone."""
        cells = self.cells(totals, rounding)
        total = float(cells.sums.sum() + self.axes[0].low * cells.counts.sum())
        if self.noise > 0 and total < CLEAR * np.sqrt(self.noise) * np.linalg.norm(self.by_sum):
            return 0.0, 0.0
        return total, float(cells.errors.sum())


@sketch("gini-index")
class GiniIndex(PositiveValueBins):
    """Inequality from 0 to 1, mean absolute difference over twice the mean, from sums in bins."""

    bounds = (0.0, 1.0)

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Divide the sum of differences by n times the sum of values."""
        n, (total, error) = self.count(totals), self.sum_of_values(totals, rounding)
        if n < 1.5 or total <= 0:
            return undefined()
        value, low, high = self.differences(totals, rounding)
        high = high / (n * (total - error)) if total > error else 1.0
        return one(value / (n * total), low / (n * (total + error)), high)

    def centre(self, totals: Floats, value: Floats) -> Floats:
        """Return the mean difference over pairs of different rows, over twice the mean."""
        n = self.count(totals)
        return np.asarray(value * n / (n - 1))

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivative of D / (n · sum)."""
        n, total = self.count(totals), self.sum_of_values(totals, 0.0)[0]
        differences, counts, sums = self.slopes(totals)
        value = self.differences(totals, 0.0)[0] / (n * total)
        return np.asarray(differences / (n * total) - value * (counts / n + sums / total))


@sketch("lorenz-curve")
class LorenzCurve(PositiveValueBins):
    """Points of the Lorenz curve: the share of the total that the lowest 10 %, 20 %, ... of the rows have."""

    defaults = {"parts": 10}  # noqa: RUF012
    bounds = (0.0, 1.0)
    shows_bins = True
    trend = 1

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Add up bins; of the bin where a share of the rows ends, its lowest rows have at most its mean."""
        n, (total, _) = self.count(totals), self.sum_of_values(totals, rounding)
        parts = int(self.options["parts"])
        labels = tuple(f"lowest {100 * k / parts:g} %" for k in range(1, parts))
        if n < 0.5 or total <= 0:
            return undefined(labels)
        counts, sums, errors = self.cells(totals, rounding)
        counts, sums = without_noise(counts), without_noise(sums + counts * self.axes[0].low)
        axis = self.axes[0]
        ends = np.concatenate([[axis.low], axis.bounds, [axis.high]])
        wanted = np.arange(1, parts) / parts * counts.sum()
        cell = np.minimum(np.searchsorted(np.cumsum(counts), wanted), len(counts) - 1)
        taken, left = wanted - before(counts)[cell], counts[cell]
        mean = np.clip(sums[cell] / np.maximum(left, 1e-9), ends[cell], ends[cell + 1])
        least = np.maximum(taken * ends[cell], sums[cell] - (left - taken) * ends[cell + 1])
        # Of rows spread evenly around the mean, as far as the nearer end.
        reach = np.minimum(mean - ends[cell], ends[cell + 1] - mean)
        guess = taken * (mean - reach * (1 - taken / np.maximum(left, 1e-9)))
        points = (
            before(sums)[cell] + part
            for part in (np.clip(guess, least, taken * mean), least, taken * mean)
        )
        value, low, high = (np.clip(part / total, 0.0, 1.0) for part in points)
        room = 4 * errors.sum() / total
        return Result(
            value, np.minimum(value, low - room), np.maximum(value, high + room), labels=labels
        )

    def exact(self, x: Floats, weights: Floats | None = None) -> Floats:
        """Interpolate the shares of sorted rows."""
        order, parts = np.argsort(x[:, 0]), int(self.options["parts"])
        counts = np.ones(len(x)) if weights is None else weights[order]
        rows, shares = (
            np.concatenate([[0.0], np.cumsum(part)]) for part in (counts, counts * x[order, 0])
        )
        return np.asarray(
            np.interp(np.arange(1, parts) / parts * rows[-1], rows, shares) / shares[-1]
        )
