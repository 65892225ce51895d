"""Quantiles from counts in bins: certain up to the bin."""

from __future__ import annotations

import numpy as np

from gosta.runtime.arrays import Floats
from gosta.sketches.definition import (
    Features,
    Result,
    Sketch,
    before,
    merge_starts,
    sketch,
    undefined,
    without_noise,
)
from gosta.statistics import encode

ROUNDING = 1e-12  # relative, of sums of weights


@sketch("quantiles")
class Quantiles(Sketch):
    """Values below which 10 %, 20 %, ... of the rows are, from counts in bins.

    The sums: rows below the range, the counts of bins, rows above the range. With n rows, the quantile k/m is the
    smallest value that at least nk/m rows do not exceed.
    """

    encode = staticmethod(encode.value)
    roles = ("value",)
    needs_range = True
    features_per_row = 1
    are_counts = True
    defaults = {"parts": 10}  # noqa: RUF012
    shows_bins = True
    trend = 1

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.axes[0].bins + 2

    def features(self, x: Floats) -> Features:
        """Count a row in its bin, or as one beyond the range."""
        axis, values = self.axes[0], x[:, 0]
        inside = np.where(values > axis.high, axis.bins, axis.positions(values))
        return Features(np.where(values < axis.low, 0, 1 + inside)[:, None], np.ones((len(x), 1)))

    def count(self, totals: Floats) -> float:
        """Return the sum of all counts."""
        return float(totals.sum())

    def clipped(self, totals: Floats) -> float:
        """Return the rows beyond the range."""
        return float(totals[0] + totals[-1])

    def merged(self, totals: Floats, min_cell: int) -> tuple[Sketch, Floats]:
        """Merge bins with few rows."""
        starts = merge_starts(totals[None, 1:-1], min_cell, self.axes[0].bounds)
        counts = np.add.reduceat(totals[1:-1], starts)
        axis = self.axes[0].merged(starts)
        return type(self)([axis], self.classes, self.options), np.concatenate(
            [totals[:1], counts, totals[-1:]]
        )

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Find the bin of the row that is the quantile; within, rows are taken to be spread evenly."""
        parts, axis = int(self.options["parts"]), self.axes[0]
        labels = tuple(f"{100 * k / parts:g} %" for k in range(1, parts))
        counts = without_noise(totals)
        n = round(float(counts.sum()))
        if n < 1:
            return undefined(labels)
        rank = np.array([_rank(k, parts, n) for k in range(1, parts)])
        cell = np.minimum(np.searchsorted(np.cumsum(counts), rank - 1e-6), len(counts) - 1)
        ends = np.concatenate([[axis.low], axis.bounds, [axis.high]])
        low, high = ends[cell], ends[cell + 1]
        share = np.clip(
            (rank - 0.5 - before(counts)[cell]) / np.maximum(counts[cell], 0.5), 0.0, 1.0
        )
        return Result(low + share * (high - low), low, high, labels=labels)

    def exact(self, x: Floats, weights: Floats | None = None) -> Floats:
        """Return the values themselves."""
        parts = int(self.options["parts"])
        order = np.argsort(x[:, 0], kind="stable")
        if weights is None:
            places = np.array([_rank(k, parts, len(x)) - 1 for k in range(1, parts)])
        else:
            below = np.cumsum(weights[order])
            places = np.searchsorted(
                below, below[-1] * np.arange(1, parts) / parts * (1 - ROUNDING)
            )
        return np.asarray(x[order[places], 0])


def _rank(k: int, parts: int, n: int) -> int:
    """Return the rank from 1 of the row that is the quantile k/parts."""
    return max(1, -(-k * n // parts))
