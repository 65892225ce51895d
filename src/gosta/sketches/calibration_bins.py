"""Sketches of calibration in bins of the predicted risk: the curve, Brier's parts, and a test."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import NamedTuple

import numpy as np

from gosta.measures.calibration import BRIER_PARTS, bin_labels, brier_part_ends, chi_squared_terms
from gosta.measures.definition import numbers_of
from gosta.runtime.arrays import Booleans, Floats, Integers
from gosta.sketches.bins import merge_starts
from gosta.sketches.definition import CLEAR, SHARE_ERROR, Result, Sketch, sketch, undefined
from gosta.sketches.risk_moments import RiskMoments
from gosta.statistics.definition import Options
from gosta.statistics.distributions import chi_squared_tail

CUTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # between the bins of a curve, by default


class RiskTotals(NamedTuple):
    """Totals of bins of risks."""

    rows: Floats
    observed: Floats  # positive rows
    expected: Floats  # sums of risks
    error: Floats  # of these, by rounding
    labels: tuple[str, ...]


class RiskCurve(RiskMoments):
    """Bins of risks that are shown, between `cuts`: their rows, positive rows and sums of risks."""

    shows_bins = True
    defaults = {"cuts": None}  # noqa: RUF012

    def prepare(self) -> None:
        super().prepare()
        edges = np.array(self.axes[0].edges)
        chosen = np.isin(edges, self.cuts(self.options)["score"])
        # The bin with which each shown one begins.
        self.starts = np.concatenate([[0], np.flatnonzero(chosen) + 1])

    @classmethod
    def cuts(cls, options: Options) -> Mapping[str, Floats]:
        given = options.get("cuts")
        return {"score": numbers_of("cuts", CUTS if given is None else given, (0.0, 1.0))}

    @property
    def points(self) -> Options:
        cuts = self.ends[self.starts[1:]]
        return {"cuts": cuts} if len(cuts) else {"groups": 1, "cuts": None}

    def shown(self, sums: Floats) -> Floats:
        """Return sums over the bins that are shown together."""
        return np.asarray(np.add.reduceat(sums, self.starts, axis=-1))

    def merged(self, totals: Floats, min_cell: int) -> tuple[Sketch, Floats]:
        """Show bins together in which a class is small."""
        counts = self.shown(self.table(totals)[:, 0])
        ends = np.append(self.ends[self.starts], 1.0)
        made = copy(self)
        made.starts = self.starts[merge_starts(counts, min_cell, ends)]
        return made, totals

    def with_noise(self, totals: Floats, noise: float) -> Sketch:
        """Show bins together until each has more rows than noise."""
        made = copy(self)
        made.noise = noise
        rows = self.table(totals)[:, 0].sum(axis=0)
        starts, stops = [0], [*self.starts[1:].tolist(), len(rows)]
        for stop in stops:
            if rows[starts[-1] : stop].sum() > CLEAR * np.sqrt(2 * noise * (stop - starts[-1])):
                starts.append(stop)
        made.starts = np.array(starts[:-1] or [0])
        return made

    def is_shown(self, rows: Floats) -> Booleans:
        """Return which of the bins that are shown together have rows."""
        return np.asarray((rows > 0.5) | (self.noise > 0))

    def places_shown(self, totals: Floats) -> Integers:
        """Return for each bin the one of `bins` in which it is; any for one without rows."""
        rows = self.shown(self.table(totals)[:, 0].sum(axis=0))
        together = np.diff(np.append(self.starts, len(self.widths)))
        return np.repeat(np.cumsum(self.is_shown(rows)) - 1, together).clip(0)

    def bins(self, totals: Floats, rounding: float) -> RiskTotals:
        """Return the totals of bins that are shown and have rows."""
        sums = self.table(totals)
        rows = self.shown(sums[:, 0])
        filled = np.flatnonzero(self.is_shown(rows.sum(axis=0)))
        both = sums.sum(axis=0)
        expected = self.shown((self.risk_factors * both).sum(axis=0))
        error = self.shown(self.widths * both[0]) * rounding
        labels = bin_labels(np.append(self.ends[self.starts], 1.0), filled)
        numbers = rows.sum(axis=0)[filled]
        return RiskTotals(numbers, rows[0, filled], expected[filled], error[filled], labels)


@sketch("calibration-curve")
class CalibrationCurve(RiskCurve):
    """Share of positive rows in bins of the predicted risk, at the mean risk of each bin."""

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Divide positive rows by rows, and sums of risks by rows."""
        bins = self.bins(totals, rounding)
        if not len(bins.rows):
            return undefined()
        value = bins.observed / bins.rows
        at = bins.expected / bins.rows
        return Result(value, value, value, labels=bins.labels, at=at, counts=bins.rows)

    def sampling_errors(self, totals: Floats, values: Floats) -> tuple[Floats, Floats] | None:
        """Return the errors of shares of the rows of bins."""
        rows = np.maximum(self.bins(totals, 0.0).rows, 1.0)
        return np.sqrt(values * (1 - values) / rows), rows


@sketch("brier-parts")
class BrierParts(RiskCurve):
    """Brier score in parts: reliability less resolution plus uncertainty (Murphy), and what risks
    within a bin add.
    """

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Return the parts; sums of risks and of squared errors are off by rounding."""
        bins = self.bins(totals, rounding)
        number = float(bins.rows.sum())
        if number < 0.5:
            return undefined(BRIER_PARTS)
        gaps = np.abs(bins.expected - bins.observed)
        reliability, least, most = (
            float(((gaps + e).clip(0.0) ** 2 / bins.rows).sum()) / number
            for e in (0.0, -bins.error, bins.error)
        )
        prevalence = float(bins.observed.sum()) / number
        lifts = bins.observed / bins.rows - prevalence
        resolution = float(bins.rows @ lifts**2) / number
        uncertainty = prevalence * (1 - prevalence)
        brier = float((self.brier_factors * self.table(totals)).sum()) / number
        error = self.error_of(self.brier_factors, totals, rounding) / number + SHARE_ERROR
        rest = brier + resolution - uncertainty
        value = np.array([reliability, resolution, uncertainty, rest - reliability])
        low = np.array([least, resolution, uncertainty, rest - most - error]) - SHARE_ERROR
        high = np.array([most, resolution, uncertainty, rest - least + error]) + SHARE_ERROR
        return Result(value, low, high, labels=BRIER_PARTS)

    def sampling_errors(self, totals: Floats, values: Floats) -> tuple[Floats, Floats] | None:
        """Return errors by the derivatives of the parts by all totals."""
        bins = self.bins(totals, 0.0)
        number = float(bins.rows.sum())
        observed, gaps = bins.observed / bins.rows, (bins.expected - bins.observed) / bins.rows
        prevalence = float(bins.observed.sum()) / number
        # By the rows of a bin, its positive rows and its sum of risks; ratios by the rows of all.
        slopes = np.array(
            [
                [-(gaps**2), -2 * gaps, 2 * gaps],
                [-(observed**2) + prevalence**2, 2 * (observed - prevalence), 0 * gaps],
                [0 * gaps, 0 * gaps + 1 - 2 * prevalence, 0 * gaps],
            ]
        )
        of_bins = slopes[:, :, None, self.places_shown(totals)]  # parts × 3 × 1 × bins
        by_rows, by_positive, by_risk = of_bins.swapaxes(0, 1)
        by_class = np.stack([by_rows + by_positive, by_rows], axis=1)
        gradients = self.one_factors * by_class + (self.risk_factors * by_risk)[:, None]
        parts = gradients[0] - gradients[1] + gradients[2]
        gradients = np.append(gradients, [self.brier_factors - parts], axis=0) / number
        covariance = self.sampling_covariance(totals, gradients.reshape(4, -1))
        return np.sqrt(np.diag(covariance)), np.full(4, number)

    def intervals(self, totals: Floats, level: float) -> tuple[Floats, Floats, Floats] | None:
        """Return the intervals of the parts as over rows in one place."""
        values, rows = self.result(totals).value, self.groups_of(totals)
        found = self.sampling_errors(totals, values)
        assert found is not None
        prevalence, number = float(rows[0] / rows.sum()), float(rows.sum())
        return brier_part_ends(values, found[0], prevalence, number, level)


@sketch("hosmer-lemeshow")
class HosmerLemeshow(RiskCurve):
    """Hosmer-Lemeshow test of calibration in bins of the risk: chi-squared, with as many degrees of
    freedom as there are bins, and its p-value.
    """

    labels = ("chi-squared", "p-value")

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Add the terms of bins, each of which grows with the distance of its sum of risks from its
        positive rows. Noise would be taken for miscalibration, so there is no value then.
        """
        bins = self.bins(totals, rounding)
        if self.noise > 0 or not len(bins.rows):
            return undefined(self.labels)
        ends = [np.clip(bins.expected + e, 0.0, bins.rows) for e in (-bins.error, bins.error)]
        best = np.clip(bins.observed, *ends)
        terms = [
            chi_squared_terms(bins.rows, bins.observed, e) for e in (bins.expected, best, *ends)
        ]
        chi, least = float(terms[0].sum()), float(terms[1].sum())
        most = float(np.maximum(terms[2], terms[3]).sum())
        if not np.isfinite(chi):
            return undefined(self.labels)
        values, lows, highs = (
            np.array([c, self.p_value(c, len(bins.rows))]) for c in (chi, least, most)
        )
        low, high = np.array([lows[0], highs[1]]), np.array([highs[0], lows[1]])
        return Result(values, low, high, labels=self.labels)

    @staticmethod
    def p_value(chi: float, degrees: int) -> float:
        return chi_squared_tail(chi, degrees) if np.isfinite(chi) else 0.0
