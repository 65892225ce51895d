"""Sketches of the smooth calibration curve, and of the distance of predicted risks from it."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from gosta.errors import NumericalError
from gosta.measures.calibration import ERRORS, KNOTS, distance_ends, distinct_knots
from gosta.measures.definition import numbers_of
from gosta.measures.distribution import weighted_quantiles
from gosta.measures.logistic import Fit, expit, fit, leverages, logit, spline
from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.bins import without_noise
from gosta.sketches.definition import Result, sketch, undefined
from gosta.sketches.recalibration import reach_of
from gosta.sketches.risk_moments import GRID, LEAST_RISK, Combination, RiskMoments
from gosta.statistics.definition import Options

RISKS = (0.01, 0.02, 0.05, *(k / 20 for k in range(2, 20)))  # at which a smooth curve is shown


class Spline(NamedTuple):
    """A logistic regression on a spline, fitted to places of bins."""

    knots: Floats
    columns: Floats  # of the spline, at all places of the grid
    fit: Fit

    def curve(self, logits: Floats) -> Floats:
        """Return the logits that are expected at logits of predicted risks."""
        return np.asarray(spline(logits, self.knots) @ self.fit.coefficients)


class Smooth(RiskMoments):
    """The smooth curve, fitted to places of bins that have the moments of each class."""

    def curves(self, totals: Floats, at: Floats, rounding: float) -> list[Floats] | None:
        """Return the share that is expected at logits: estimate, least and largest value.

        The last two are estimated: knots can be at both ends of their bins, and the curve is off by
        the rest of the combinations of moments, at the grid.
        """
        middle = self.spline(totals)
        if middle is None:
            return None
        curve = middle.curve(at)
        if self.noise > 0:
            return [expit(curve)] * 3
        reach = self.reach(totals, middle, at, rounding)
        if not len(middle.knots):
            reach = np.full(len(at), np.inf)
        lows, highs = [curve - reach], [curve + reach]
        bins = self.knot_bins(totals)[0]
        for knots in product(*np.column_stack([self.logits[bins], self.logits[bins + 1]])):
            moved = self.fitted(totals, np.array(knots))
            if moved is None:
                moved, reach = middle, np.full(len(at), np.inf)
            else:
                reach = self.reach(totals, moved, at, rounding)
            lows.append(moved.curve(at) - reach)
            highs.append(moved.curve(at) + reach)
        return [expit(curve), expit(np.min(lows, axis=0)), expit(np.max(highs, axis=0))]

    def spline(self, totals: Floats) -> Spline | None:
        """Return the spline with knots in the middle of where they can be, or else a line."""
        if self.groups_of(totals).min() < 0.5:
            return None
        knots = self.knot_bins(totals)[1]
        for places in (0, 1):
            for chosen in (knots, knots[:0]):
                found = self.fitted(totals, chosen, places)
                if found is not None:
                    return found
        return None

    def knot_bins(self, totals: Floats) -> tuple[Integers, Floats]:
        """Return the bins of the knots, and these as logits.

        In a bin, logits are taken to be spread evenly, with their mean and variance.
        """
        sums = self.table(totals).sum(axis=0)
        rows = without_noise(sums[0])
        below = np.cumsum(rows)
        bins = np.clip(np.searchsorted(below, KNOTS * below[-1]), 0, len(rows) - 1)
        own = np.maximum(rows[bins], 0.5)
        share = np.clip((KNOTS * below[-1] - below[bins] + rows[bins]) / own, 0, 1)
        low, high = self.extents(sums)[:, bins]
        return bins, self.logits[bins] + (low + share * (high - low)) * np.diff(self.logits)[bins]

    @staticmethod
    def extents(sums: Floats) -> Floats:
        """Return where the logits of bins begin and end if they are spread evenly, from 0 to 1."""
        mean, square = np.clip(sums[3:] / np.maximum(sums[0], 0.5), 0.0, 1.0)
        reach = np.sqrt(3 * np.maximum(square - mean**2, 0.0))
        return np.asarray(np.clip([mean - reach, mean + reach], 0.0, 1.0))

    def fitted(self, totals: Floats, knots: Floats, choice: int = 0) -> Spline | None:
        """Return the spline with these knots; None if it has no best fit to a choice of places."""
        knots, sums = distinct_knots(knots), self.table(totals)
        positive = self.places(sums[0])[choice][1]
        z, both = self.places(sums.sum(axis=0))[choice]
        columns = spline(z, knots)
        try:
            found = fit(columns, columns.T @ positive, both)
        except NumericalError:
            return None
        return Spline(knots, spline(self.grid.z.ravel(), knots), found)

    def parts(self, found: Spline) -> list[tuple[Combination, Combination]]:
        """Return each column of the spline, and it times the risk, as combinations of moments."""
        risks, shape = expit(found.columns @ found.fit.coefficients), self.grid.z.shape
        return [
            (
                self.combination(column.reshape(shape)),
                self.combination((column * risks).reshape(shape)),
            )
            for column in found.columns.T
        ]

    def covariance(self, totals: Floats, found: Spline) -> Floats:
        """Return that of the coefficients, by the derivatives of the fit by all totals."""
        by_sums = [
            np.stack([column.factors - risk.factors, -risk.factors])
            for column, risk in self.parts(found)
        ]
        gradients = np.tensordot(np.linalg.inv(found.fit.information), by_sums, axes=1)
        z = self.mean_logits(totals)
        leverage = leverages(spline(z, found.knots), np.ones(len(z)), found.curve(z), found.fit)
        return self.sampling_covariance(totals, gradients.reshape(len(by_sums), -1), leverage)

    def reach(self, totals: Floats, found: Spline, at: Floats, rounding: float) -> Floats:
        """Return how far the curve at logits can be off for its knots."""
        sums = self.table(totals)
        rows = np.maximum(sums[:, 0], 0.0)
        missing = np.zeros(found.columns.shape[1])
        for k, parts in enumerate(self.parts(found)):
            known = float((parts[0].factors * sums[0]).sum())
            missing[k] = abs(known - float((parts[1].factors * sums.sum(axis=0)).sum()))
            for part, weighed in zip(parts, (rows[0], rows.sum(axis=0)), strict=True):
                missing[k] += float(part.rest @ weighed)
                missing[k] += self.error_of(np.stack([part.factors] * 2), totals, rounding)
        corners = found.columns[np.repeat(rows.sum(axis=0) > 0.5, GRID)]
        reach = reach_of(found.fit.information, missing, corners)
        # The same step in all directions.
        inverse, shown = np.linalg.inv(found.fit.information), spline(at, found.knots)
        lengths = np.sqrt(np.einsum("ij,jk,ik->i", shown, inverse, shown))
        return np.asarray(lengths * reach[0] / np.sqrt(inverse[0, 0]))


@sketch("smooth-calibration-curve")
class SmoothCalibrationCurve(Smooth):
    """Smooth calibration curve: the share of positive rows that is expected at a predicted risk."""

    defaults = {"risks": RISKS}  # noqa: RUF012

    def prepare(self) -> None:
        super().prepare()
        self.risks = numbers_of("risks", self.options["risks"], (0.0, 1.0))

    @property
    def points(self) -> Options:
        return {"risks": self.risks, "floor": LEAST_RISK}

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        labels = tuple(f"risk {risk:g}" for risk in self.risks)
        curves = self.curves(totals, logit(self.risks, LEAST_RISK), rounding)
        if curves is None:
            return undefined(labels)
        value, low, high = curves
        return Result(value, low, high, False, labels, self.risks)

    def sampling_errors(self, totals: Floats, values: Floats) -> tuple[Floats, Floats] | None:
        """Return errors by the derivatives of the fit by all totals, for its knots."""
        found = self.spline(totals)
        if found is None:
            return None
        shown = spline(logit(self.risks, LEAST_RISK), found.knots)
        slopes = (values * (1 - values))[:, None] * shown
        variances = np.diag(slopes @ self.covariance(totals, found) @ slopes.T)
        return np.sqrt(variances), np.full(len(values), self.count(totals))


@sketch("calibration-error")
class CalibrationError(Smooth):
    """Distance of predicted risks from the smooth calibration curve: its mean over rows (ICI), its
    median, its 90 % quantile and its maximum.
    """

    labels = ERRORS

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Take the distances at places of bins; least and largest in each bin for the bracket."""
        z = self.grid.z
        curves = self.curves(totals, z.ravel(), rounding)
        sums = self.table(totals).sum(axis=0)
        rows = without_noise(sums[0])
        if curves is None or not rows.sum() > 0:
            return undefined(self.labels)
        middle, low, high = (curve.reshape(z.shape) - expit(z) for curve in curves)
        # Risks beyond the least one are moved for their logits only.
        nearest = np.maximum(np.maximum(low, -high) - LEAST_RISK, 0.0)
        farthest = np.maximum(np.abs(low), np.abs(high)) + LEAST_RISK
        least = self.errors(nearest.min(axis=1), rows)
        most = self.errors(farthest.max(axis=1), rows)
        value = self.distances(sums, np.abs(middle))
        return Result(np.clip(value, least, most), least, most, False, self.labels)

    def intervals(self, totals: Floats, level: float) -> tuple[Floats, Floats, Floats] | None:
        """Draw the coefficients of the curve, as over rows in one place."""
        found, risks = self.spline(totals), expit(self.grid.z)
        if found is None:
            return None
        sums = self.table(totals).sum(axis=0)
        columns = spline(self.grid.z.ravel(), found.knots)

        def distances(coefficients: Floats) -> Floats:
            curve = expit(columns @ coefficients).reshape(risks.shape)
            return self.distances(sums, np.abs(curve - risks))

        return distance_ends(
            found.fit.coefficients, self.covariance(totals, found), distances, level
        )

    def distances(self, sums: Floats, at_places: Floats) -> Floats:
        """Return the mean, the quantiles and the maximum of distances at places of bins."""
        rows = without_noise(sums[0])
        weights = self.weights(sums).clip(0.0)
        weights *= (rows / np.maximum(weights.sum(axis=1), 1e-300))[:, None]
        value = self.errors(at_places.ravel(), weights.ravel())
        # Of rows that are spread evenly in each bin: at other places there may be none.
        value[-1] = max(
            np.take_along_axis(at_places, place[:, None], 1)[rows > 0].max()
            for place in np.rint(self.extents(sums) * (GRID - 1)).astype(np.int64)
        )
        return value

    @staticmethod
    def errors(distances: Floats, weights: Floats) -> Floats:
        """Return the mean, the quantiles and the maximum of distances."""
        mean = weights @ distances / weights.sum()
        quantiles = weighted_quantiles(distances, weights, np.array([0.5, 0.9]))
        return np.array([mean, *quantiles, distances[weights > 0].max()])
