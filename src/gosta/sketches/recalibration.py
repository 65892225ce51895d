"""Sketches of calibration intercept and slope: a logistic regression on the logits of risks."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import ClassVar

import numpy as np

from gosta.errors import NumericalError
from gosta.measures.logistic import Fit, expit, fit, leverages
from gosta.runtime.arrays import Floats
from gosta.sketches.definition import Result, sketch, undefined
from gosta.sketches.risk_moments import Combination, RiskMoments, risk_variance


class Recalibration(RiskMoments):
    """A coefficient of logit(risk of a row) = a + b · logit(predicted risk), or of b = 1.

    The likelihood equations are sums over rows of p(a + bz) and z·p(a + bz), combined from
    moments. What is not known of them moves the solution by a bounded step, as the negative log
    likelihood is convex, and its second derivative falls by a factor of exp(−r) at most where no
    logit moves by more than r (Bach 2010, self-concordant analysis of logistic regression).
    """

    place: ClassVar[int] = 0  # of the coefficient
    powers: ClassVar[int] = 2  # of z, from 0 on: how many coefficients there are

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        found = self.fit(totals)
        if found is None:
            return undefined()
        value = found.coefficients[[self.place]]
        if self.noise > 0:
            return Result(value, value, value)
        reach = self.reach(found, totals, rounding)[self.place]
        return Result(value, value - reach, value + reach)

    def fit(self, totals: Floats) -> Fit | None:
        """Return the fit to places that have the moments of the rows; None if there is none."""
        sums = self.table(totals)
        if self.groups_of(totals).min() < 0.5:
            return None
        target = np.array([(part * sums[0]).sum() for part in self.known])
        for z, weights in self.places(sums.sum(axis=0)):
            design = np.stack([z**power for power in range(self.powers)], axis=-1)
            with suppress(NumericalError):
                return fit(design, target, weights, z if self.powers == 1 else 0.0)
        return None

    @property
    def known(self) -> list[Floats]:
        """Return the factors of the columns of the design, which are moments."""
        return [self.one_factors, self.logit_factors][: self.powers]

    def line(self, found: Fit) -> tuple[float, float]:
        """Return intercept and slope."""
        first, *rest = found.coefficients.tolist()
        return first, rest[0] if rest else 1.0

    def expected(self, found: Fit) -> list[Combination]:
        """Return z^k · p(a + bz) as combinations of moments, for each column of the design."""
        (intercept, slope), z = self.line(found), self.grid.z
        risks, bend = expit(intercept + slope * z), self.bend(found)
        near = np.abs(z) + self.grid.step[:, None] / 2
        both = [
            self.combination(risks, slope**2 * bend),
            self.combination(z * risks, (near * slope**2 + 2 * abs(slope)) * bend),
        ]
        return both[: self.powers]

    def curvatures(self, found: Fit) -> list[Combination]:
        """Return z^k · p(1 − p), the second derivatives, for k up to 2."""
        (intercept, slope), z = self.line(found), self.grid.z
        variance, bend = risk_variance(intercept + slope * z), self.bend(found)
        near, steep = np.abs(z) + self.grid.step[:, None] / 2, abs(slope)
        bends: list[Floats] = [
            steep**2 + 0 * near,
            near * steep**2 + 2 * steep,
            near**2 * steep**2 + 4 * near * steep + 2,
        ]
        return [
            self.combination(z**k * variance, bends[k] * bend) for k in range(2 * self.powers - 1)
        ]

    def bend(self, found: Fit) -> Floats:
        """Return a bound of p(1 − p) at a + bz near each place."""
        intercept, slope = self.line(found)
        near = np.exp(abs(slope) * self.grid.step[:, None] / 2)
        return np.asarray(risk_variance(intercept + slope * self.grid.z) * near)

    def reach(self, found: Fit, totals: Floats, rounding: float) -> Floats:
        """Return how far each coefficient over the rows themselves can be; infinity: anywhere."""
        sums = self.table(totals)
        expected, missing = self.sums_of(self.expected(found), totals, rounding)
        for k, part in enumerate(self.known):
            factors = np.stack([part, 0 * part])
            missing[k] += abs(float((part * sums[0]).sum()) - expected[k])
            missing[k] += self.error_of(factors, totals, rounding)
        values, errors = self.sums_of(self.curvatures(found), totals, rounding)
        places = np.add.outer(np.arange(self.powers), np.arange(self.powers))
        # A symmetric matrix that is off by E is not below itself less the row sums of E.
        least = values[places] - np.diag(errors[places].sum(axis=1))
        filled = np.flatnonzero(sums[:, 0].sum(axis=0) > 0.5)
        ends = self.logits[[filled[0], filled[-1] + 1]]
        corners = np.stack([ends**power for power in range(self.powers)], axis=-1)
        return reach_of(least, missing, corners)

    def sums_of(
        self, parts: list[Combination], totals: Floats, rounding: float
    ) -> tuple[Floats, Floats]:
        """Return the sums of functions over all rows, and the most by which each is off."""
        both = self.table(totals).sum(axis=0)
        values = [float((part.factors * both).sum()) for part in parts]
        errors = [
            float(part.rest @ both[0])
            + self.error_of(np.stack([part.factors] * 2), totals, rounding)
            for part in parts
        ]
        return np.array(values), np.array(errors)

    def gradient(self, totals: Floats) -> Floats | None:
        found = self.fit(totals)
        if found is None:
            return None
        by_sums = [
            np.stack([known - expected.factors, -expected.factors])
            for known, expected in zip(self.known, self.expected(found), strict=True)
        ]
        row = np.linalg.inv(found.information)[self.place]
        return np.asarray(np.tensordot(row, by_sums, axes=1).ravel())

    def sampling_variance(self, totals: Floats, gradient: Floats) -> float:
        """Return the variance of the jackknife, with the leverage of a row of each bin."""
        found = self.fit(totals)
        if found is None:
            return np.nan
        (intercept, slope), z = self.line(found), self.mean_logits(totals)
        design = np.stack([z**power for power in range(self.powers)], axis=-1)
        leverage = leverages(design, np.ones(len(z)), intercept + slope * z, found)
        return float(self.sampling_covariance(totals, gradient[None], leverage)[0, 0])


def reach_of(least: Floats, missing: Floats, corners: Floats) -> Floats:
    """Return how far coefficients can be from where the gradient is at most `missing`.

    `least` is a lower bound of the second derivative there, `corners` are rows of the design whose
    logits move most. With g the length of the gradient, by the inverse of the second derivative,
    and ρ the most by which a logit moves in a step of length 1, the step r fulfils
    1 − exp(−ρr) ≤ ρg.
    """
    infinite = np.full(len(missing), np.inf)
    if not np.isfinite(least).all() or np.linalg.eigvalsh(least).min() <= 0:
        return infinite
    inverse = np.linalg.inv(least)
    signed = np.array(list(product((-1.0, 1.0), repeat=len(missing)))) * missing
    length = np.sqrt(np.einsum("ij,jk,ik->i", signed, inverse, signed).max())
    moved = np.sqrt(np.einsum("ij,jk,ik->i", corners, inverse, corners).max())
    if not moved * length < 1:
        return infinite
    return np.asarray(-np.log1p(-moved * length) / moved * np.sqrt(np.diag(inverse)))


@sketch("calibration-in-the-large")
class CalibrationInTheLarge(Recalibration):
    """Number to add to the logits of all risks so that as many positive rows are expected as there
    are.
    """

    powers = 1


@sketch("calibration-intercept")
class CalibrationIntercept(Recalibration):
    """Intercept of the recalibration, from moments of the risk and of its logit in bins."""


@sketch("calibration-slope")
class CalibrationSlope(Recalibration):
    """Slope of the recalibration, from moments of the risk and of its logit in bins."""

    place = 1
