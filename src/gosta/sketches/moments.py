"""Sketches by sums of powers, exact but for rounding: variance, covariance, squared distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gosta import datasets
from gosta.datasets.data import Data
from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.sketches.definition import Features, Result, Sketch, single, sketch, undefined
from gosta.statistics import encode
from gosta.statistics.definition import Options


class PowerSums(Sketch):
    """Sums of products of powers of the scaled columns; the last sum counts the clipped rows."""

    is_binned = False
    finds_edges = False
    needs_range = True

    def clipped(self, totals: Floats) -> float:
        """Return the last sum."""
        return float(totals[-1])


class Moments(PowerSums):
    """The sums: products of powers of the scaled columns; last, the clipped rows.

    The zeroth power, the count, comes first. Powers up to the fourth serve the standard error.
    """

    powers: tuple[tuple[int, ...], ...]  # of each column, in each sum

    def prepare(self) -> None:
        self.size = self.features_per_row = len(self.powers) + 1
        first, last = self.axes[0], self.axes[-1]
        # The value of one unit of products of the first two powers.
        self.unit = (first.high - first.low) * (last.high - last.low)

    @property
    def squared_change(self) -> float:
        """Return the squared length of all features, which are at the same places in all rows."""
        return float(self.features_per_row)

    def features(self, x: Floats) -> Features:
        """Return the products of powers, and whether a value was clipped."""
        scaled = self.scaled(x)
        products = [(scaled**power).prod(axis=1) for power in self.powers]
        positions = np.tile(np.arange(self.size), (len(x), 1))
        return Features(positions, np.column_stack([*products, self.is_clipped(x)]))

    def count(self, totals: Floats) -> float:
        """Return the sum of zeroth powers."""
        return float(totals[0])

    def is_plausible(self, totals: Floats, tolerance: float) -> bool:
        """Check also that no mean is above 1."""
        is_below = (totals <= totals[0] + 2 * tolerance).all()
        return super().is_plausible(totals, tolerance) and bool(is_below)

    def centred(
        self, totals: Floats, first: int, second: int, product: int, rounding: float
    ) -> Result:
        """Return the covariance of two sums, from them and the sum of their product."""
        n = totals[0]
        if n < 1.5:
            return undefined()
        total = totals[product] - totals[first] * totals[second] / n
        # Each of the three sums can be off by n · rounding; the means of two are at most 1.
        error = 3 * n * rounding
        return single(*(self.unit * (total + e) / (n - 1) for e in (0.0, -error, error)))


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
        square = aabb - 2 * b * aab - 2 * a * abb + a * a * bb + b * b * aa
        square = square + 4 * a * b * ab - 3 * a * a * b * b
        return float(self.unit**2 * max(square - (ab - a * b) ** 2, 0.0) / n)


@sketch("squared-scatter")
class SquaredScatter(PowerSums):
    """Mean squared distance of two rows, 0 in different clusters, from sums of each cluster.

    The sums of a cluster: its count, each scaled column, and the squared length in units of the
    whole range's; last, for all clusters, the clipped rows.
    """

    encode = staticmethod(encode.clustered)
    has_classes = True
    bounds = (0.0, np.inf)

    def prepare(self) -> None:
        self.features_per_row = len(self.axes) + 3
        self.size = self.classes * (len(self.axes) + 2) + 1
        # Products of Python's floats, which are infinite without a warning.
        squares = [(axis.high - axis.low) * (axis.high - axis.low) for axis in self.axes]
        self.squared_widths = np.array(squares)
        if not self.squared_widths.sum() < np.inf:
            wide = self.axes[int(np.argmax(self.squared_widths))]
            raise InputError(
                f"range of {wide.column!r} = {wide.low:g}:{wide.high:g}: squares are too large"
            )

    @classmethod
    def reads_label(cls, options: Options) -> bool:
        """Return whether clusters are classes."""
        return options["centroids"] is None

    @classmethod
    def class_count(cls, options: Options, classes: Sequence[Any]) -> int:
        """Return the number of classes, or of centroids."""
        if options["centroids"] is None:
            return len(classes)
        return len(datasets.load(options["centroids"]))

    @classmethod
    def fixed_options(cls, options: dict[str, Any], data: Data | None) -> dict[str, Any]:
        """Return centroids as coordinates, where rows in one place give them."""
        if not isinstance(options["centroids"], str) or options["centroids"] != "class-means":
            return options
        if data is None:
            raise InputError(
                "centroids = 'class-means' depends on all rows: give coordinates, or leave it out"
            )
        x = encode.clustered(data)
        means = [x[x[:, -1] == label, :-1].mean(axis=0) for label in np.unique(x[:, -1])]
        return {"centroids": np.array(means)}

    def features(self, x: Floats) -> Features:
        """Return the sums of a row's cluster, and whether a value was clipped."""
        n, numbers = len(x), len(self.axes) + 2
        scaled = self.scaled(x)
        length = (scaled**2 * self.squared_widths).sum(axis=1) / self.squared_widths.sum()
        first = x[:, -1].astype(np.int64)[:, None] * numbers
        positions = np.column_stack([first + np.arange(numbers), np.full(n, self.size - 1)])
        features = [np.ones(n), scaled, np.clip(length, 0, 1), self.is_clipped(x)]
        return Features(positions, np.column_stack(features))

    def by_cluster(self, totals: Floats) -> tuple[Floats, Floats, Floats]:
        """Return counts, sums and squared lengths of clusters."""
        table = totals[:-1].reshape(self.classes, -1)
        return table[:, 0], table[:, 1:-1], table[:, -1]

    def count(self, totals: Floats) -> float:
        """Return the sum of the clusters' counts."""
        return float(self.groups_of(totals).sum())

    def groups_of(self, totals: Floats) -> Floats:
        """Return the rows of each cluster."""
        return self.by_cluster(totals)[0]

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Return twice count · squared lengths less squared sums, over clusters, by the pairs."""
        counts, sums, lengths = self.by_cluster(totals)
        n = counts.sum()
        if n < 1.5:
            return undefined()
        unit = self.squared_widths.sum()
        total = 2 * float(counts @ lengths * unit - (sums**2 @ self.squared_widths).sum())
        room = 2 * 3 * unit * rounding * float(counts @ counts)
        return single(*(part / (n * (n - 1)) for part in (total, total - room, total + room)))
