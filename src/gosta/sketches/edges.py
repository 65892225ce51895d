"""Edges of bins that a first sum finds: from many bins of equal width to fewer with equally many rows."""

from __future__ import annotations

import numpy as np

from gosta.runtime.arrays import Floats
from gosta.sketches.definition import Axis, Features, Result, Sketch, one

FEWEST, MOST = 256, 2048  # of the bins of a first sum


def fine_bins(bins: int) -> int:
    """Return into how many bins of equal width a first sum cuts a range, to choose edges for so many bins."""
    return min(max(8 * bins, FEWEST), MOST)


class AxisCounts(Sketch):
    """The sums of the first round: counts of one number of the encoded row in fine bins."""

    name = "edges"
    summary = "Counts that find edges."
    features_per_row = 1
    are_counts = True

    def __init__(self, axis: Axis, number: int) -> None:
        super().__init__([axis])
        self.number = (
            number  # its position in the encoded row of the statistic that the edges are for
        )
        self.size = axis.bins

    def features(self, x: Floats) -> Features:
        """Count a row in its bin."""
        return Features(self.axes[0].positions(x[:, self.number])[:, None], np.ones((len(x), 1)))

    def count(self, totals: Floats) -> float:
        """Return the sum of all counts."""
        return float(totals.sum())

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Return the number of rows: a first round has no other value."""
        rows = float(totals.sum())
        return one(rows, rows, rows)


def quantile_edges(axis: Axis, totals: Floats, bins: int) -> tuple[float, ...]:
    """Return edges among those of an axis so that bins hold about equally many rows.

    Only integers are compared, so that all sites find the same edges, to the last bit.
    """
    counts = [
        int(count) for count in np.rint(totals)
    ]  # with noise also negative ones, which add up to nothing
    total, passed = sum(counts), 0
    if total <= 0:
        return axis.edges[:: -(-axis.bins // bins)]
    chosen: list[float] = []
    for edge, count in zip(axis.edges, counts, strict=False):
        passed += count
        if passed * bins >= (len(chosen) + 1) * total and len(chosen) < bins - 1:
            chosen.append(edge)
    return tuple(chosen)
