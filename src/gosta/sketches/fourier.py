"""The sketch of the maximum mean discrepancy by random Fourier features (Rahimi and Recht, 2007)."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.sketches.definition import Axis, Features, Result, Sketch, one, sketch, undefined
from gosta.sketches.projections import REACH, SEED, projected
from gosta.statistics import encode
from gosta.statistics.definition import Options


@sketch("mmd")
class MaximumMeanDiscrepancy(Sketch):
    """Squared maximum mean discrepancy under a Gaussian kernel from random Fourier features.

    The kernel is the mean of cos⟨w, x − y⟩ over normal w. The sums of each sample: its count, then (1 + cos⟨w, x⟩)/2
    and (1 + sin⟨w, x⟩)/2 for each of some w from a seed that all know.
    """

    encode = staticmethod(encode.scaled_samples)
    has_classes = True
    is_binned = False
    finds_edges = False
    defaults = {"frequencies": 256}  # noqa: RUF012

    def __init__(
        self, axes: Sequence[Axis], classes: int = 2, options: Options | None = None
    ) -> None:
        super().__init__(axes, classes, options)
        self.number = max(2, int(self.options["frequencies"]))
        self.frequencies = np.random.default_rng([SEED, len(axes)]).normal(
            size=(self.number, len(axes))
        )
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
        phases = projected(x[:, :-1], self.frequencies)
        values = np.column_stack(
            [np.ones(len(x)), (1 + np.cos(phases)) / 2, (1 + np.sin(phases)) / 2]
        )
        start = (x[:, -1] < 0) * self.features_per_row
        return Features(
            start[:, None] + np.arange(self.features_per_row), np.clip(values, 0.0, 1.0)
        )

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
        return super().is_plausible(totals, tolerance) and bool(
            (table <= table[:, :1] + 2 * tolerance).all()
        )

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Return mean kernels within both samples, without pairs of a row with itself, less twice that across."""
        counts, sums = self._samples(totals)
        if counts.min() < 1.5:
            return undefined()
        m, n = counts
        first, second = ((part**2).sum(axis=0) for part in sums)
        across = (sums[0] * sums[1]).sum(axis=0)
        values = (first - m) / (m * (m - 1)) + (second - n) / (n * (n - 1)) - 2 * across / (m * n)
        # Sums of cosines are off by at most 2 · rows · rounding, their means are at most 1.
        room = 32 * rounding * max(m / (m - 1), n / (n - 1))
        reach = REACH * float(values.std(ddof=1)) / sqrt(self.number) + room
        return one(
            float(values.mean()),
            float(values.mean() - reach),
            float(values.mean() + reach),
            is_certified=False,
        )
