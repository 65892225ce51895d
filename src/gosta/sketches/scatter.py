"""The sketch of squared distances within clusters: exact but for rounding, from sums of each cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gosta import datasets
from gosta.datasets.data import Data
from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.sketches.definition import Axis, Features, Result, Sketch, one, sketch, undefined
from gosta.statistics import encode
from gosta.statistics.definition import Options


@sketch("squared-scatter")
class SquaredScatter(Sketch):
    """Mean squared distance of two rows, 0 in different clusters, from sums of each cluster.

    The sums of a cluster: its count, each scaled column, and the squared length in units of that of the whole range;
    last, for all clusters, the clipped rows.
    """

    encode = staticmethod(encode.clustered)
    has_classes = True
    needs_range = True
    is_binned = False
    finds_edges = False
    bounds = (0.0, np.inf)

    def __init__(
        self, axes: Sequence[Axis], classes: int = 2, options: Options | None = None
    ) -> None:
        super().__init__(axes, classes, options)
        self.features_per_row = len(axes) + 3
        self.size = classes * (len(axes) + 2) + 1
        self.squared_widths = np.array(
            [(axis.high - axis.low) * (axis.high - axis.low) for axis in axes]
        )
        if not self.squared_widths.sum() < np.inf:
            wide = axes[int(np.argmax(self.squared_widths))]
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
        return (
            len(classes)
            if options["centroids"] is None
            else len(datasets.load(options["centroids"]))
        )

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
        return {
            "centroids": np.array([x[x[:, -1] == c, :-1].mean(axis=0) for c in np.unique(x[:, -1])])
        }

    def features(self, x: Floats) -> Features:
        """Return the sums of a row's cluster, and whether a value was clipped."""
        n, d = len(x), len(self.axes)
        scaled = np.column_stack([axis.scaled(x[:, k]) for k, axis in enumerate(self.axes)])
        length = (scaled**2 * self.squared_widths).sum(axis=1) / self.squared_widths.sum()
        is_clipped = np.any(
            [(x[:, k] < a.low) | (x[:, k] > a.high) for k, a in enumerate(self.axes)], axis=0
        )
        positions = x[:, -1].astype(np.int64)[:, None] * (d + 2) + np.arange(d + 2)
        positions = np.column_stack([positions, np.full(n, self.size - 1)])
        return Features(
            positions, np.column_stack([np.ones(n), scaled, np.clip(length, 0, 1), is_clipped])
        )

    def _clusters(self, totals: Floats) -> tuple[Floats, Floats, Floats]:
        """Return counts, sums and squared lengths of clusters."""
        table = totals[:-1].reshape(self.classes, -1)
        return table[:, 0], table[:, 1:-1], table[:, -1]

    def count(self, totals: Floats) -> float:
        """Return the sum of the clusters' counts."""
        return float(self._clusters(totals)[0].sum())

    def clipped(self, totals: Floats) -> float:
        """Return the last sum."""
        return float(totals[-1])

    def groups_of(self, totals: Floats) -> Floats:
        """Return the rows of each cluster."""
        return self._clusters(totals)[0]

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Return twice count · squared lengths less squared sums, added over clusters, over the pairs."""
        counts, sums, lengths = self._clusters(totals)
        n = counts.sum()
        if n < 1.5:
            return undefined()
        unit = self.squared_widths.sum()
        total = 2 * float(counts @ lengths * unit - (sums**2 @ self.squared_widths).sum())
        room = 2 * 3 * unit * rounding * float(counts @ counts)
        return one(*(part / (n * (n - 1)) for part in (total, total - room, total + room)))
