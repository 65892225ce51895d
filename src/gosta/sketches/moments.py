"""Sketches by sums of powers: variance and covariance are exact but for rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gosta.runtime.arrays import Floats
from gosta.sketches.definition import Axis, Features, Result, Sketch, one, sketch, undefined
from gosta.statistics import encode
from gosta.statistics.definition import Options


class Moments(Sketch):
    """The sums: products of powers of the scaled columns, the zeroth (the count) first; last, the clipped rows.

    Powers up to the fourth serve the standard error.
    """

    is_binned = False
    finds_edges = False
    needs_range = True
    powers: tuple[tuple[int, ...], ...]  # of each column, in each sum

    def __init__(
        self, axes: Sequence[Axis], classes: int = 2, options: Options | None = None
    ) -> None:
        super().__init__(axes, classes, options)
        self.size = self.features_per_row = len(self.powers) + 1

    @property
    def squared_change(self) -> float:
        """Return that of all features: they have the same places in all rows, and a row can be replaced by none."""
        return float(self.features_per_row)

    def scaled(self, x: Floats) -> Floats:
        """Return the columns as shares of their ranges."""
        return np.column_stack([axis.scaled(x[:, k]) for k, axis in enumerate(self.axes)])

    def features(self, x: Floats) -> Features:
        """Return the products of powers, and whether a value was clipped."""
        u = self.scaled(x)
        is_clipped = np.any(
            [(c < a.low) | (c > a.high) for c, a in zip(x.T, self.axes, strict=False)], axis=0
        )
        values = np.column_stack([*((u**power).prod(axis=1) for power in self.powers), is_clipped])
        return Features(np.tile(np.arange(self.size), (len(x), 1)), values)

    def count(self, totals: Floats) -> float:
        """Return the sum of zeroth powers."""
        return float(totals[0])

    def clipped(self, totals: Floats) -> float:
        """Return the last sum."""
        return float(totals[-1])

    def is_plausible(self, totals: Floats, tolerance: float) -> bool:
        """Check also that no mean is above 1."""
        return super().is_plausible(totals, tolerance) and bool(
            (totals <= totals[0] + 2 * tolerance).all()
        )

    @property
    def unit(self) -> float:
        """Return the value of one unit of products of the first two powers."""
        first, last = self.axes[0], self.axes[-1]
        return (first.high - first.low) * (last.high - last.low)

    def centred(
        self, totals: Floats, first: int, second: int, product: int, rounding: float
    ) -> Result:
        """Return the covariance of two sums, from them and the sum of their product."""
        n = totals[0]
        if n < 1.5:
            return undefined()
        total = totals[product] - totals[first] * totals[second] / n
        # Each of the three sums can be off by n · rounding, and the means of the first two are at most 1.
        error = 3 * n * rounding
        return one(*(self.unit * (total + e) / (n - 1) for e in (0.0, -error, error)))


@sketch("variance")
class Variance(Moments):
    """Sample variance from sums of powers."""

    encode = staticmethod(encode.value)
    roles = ("value",)
    powers = ((0,), (1,), (2,), (3,), (4,))
    bounds = (0.0, np.inf)

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Return the sum of squares less the squared sum / n, over n − 1."""
        return self.centred(totals, 1, 1, 2, rounding)

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivatives by the count, the sum and the sum of squares."""
        n, mean = totals[0], totals[1] / totals[0]
        value = (totals[2] - mean * totals[1]) / (n - 1)
        slopes = np.array([mean**2 - value, -2 * mean, 1, 0, 0, 0])
        return np.asarray(self.unit * slopes / (n - 1))

    def sampling_variance(self, totals: Floats, gradient: Floats) -> float:
        """Return the variance of (x − mean)², from the fourth central moment."""
        n = totals[0]
        m, m2, m3, m4 = totals[1:5] / n
        fourth = m4 - 4 * m * m3 + 6 * m**2 * m2 - 3 * m**4
        return float(self.unit**2 * max(fourth - (m2 - m**2) ** 2, 0.0) / n)


@sketch("covariance")
class Covariance(Moments):
    """Sample covariance of two columns from sums of products."""

    encode = staticmethod(encode.pair)
    roles = ("first", "second")
    powers = ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 1), (1, 2), (2, 2))

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Return the sum of products less the product of sums / n, over n − 1."""
        return self.centred(totals, 1, 2, 3, rounding)

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivatives by the count, both sums and the sum of products."""
        n, (first, second) = totals[0], totals[1:3] / totals[0]
        value = (totals[3] - first * second * n) / (n - 1)
        slopes = np.array([first * second - value, -second, -first, 1, *[0] * 6])
        return np.asarray(self.unit * slopes / (n - 1))

    def sampling_variance(self, totals: Floats, gradient: Floats) -> float:
        """Return the variance of (x − mean)(y − mean)."""
        n = totals[0]
        a, b, ab, aa, bb, aab, abb, aabb = totals[1:9] / n
        square = (
            aabb
            - 2 * b * aab
            - 2 * a * abb
            + a * a * bb
            + b * b * aa
            + 4 * a * b * ab
            - 3 * a * a * b * b
        )
        return float(self.unit**2 * max(square - (ab - a * b) ** 2, 0.0) / n)
