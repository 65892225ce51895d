"""Sketches of predicted risks: their number, places and squared places in bins of each class.

Places are those of the risk and of its logit, so that sums of 1, p, p², z and z² over the rows of a
bin are known. Any other function of the risk is a combination of these but for a rest, which is
small, and whose largest value in the bin bounds what is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from functools import cached_property, lru_cache
from itertools import product
from typing import ClassVar, NamedTuple

import numpy as np

from gosta.errors import InputError, NumericalError
from gosta.measures.calibration import (
    BRIER_PARTS,
    ERRORS,
    KNOTS,
    bin_labels,
    chi_squared_terms,
    distinct_knots,
)
from gosta.measures.definition import numbers_of
from gosta.measures.distribution import weighted_quantiles
from gosta.measures.logistic import Fit, expit, fit, leverages, logit, spline
from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.bins import merge_starts, without_noise
from gosta.sketches.definition import CLEAR, Features, Result, Sketch, single, sketch, undefined
from gosta.statistics import encode
from gosta.statistics.definition import Options
from gosta.statistics.distributions import chi_squared_tail

# Risks nearer to 0 or 1 are moved there for their logits, which would be infinite.
LEAST_RISK = 1e-6
CUTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # between the bins of a curve, by default
RISKS = (0.01, 0.02, 0.05, *(k / 20 for k in range(2, 20)))  # at which a smooth curve is shown
MOMENTS = 5  # of the rows of a class in a bin: 1, p, p², z, z², in units of the bin
GRID = 33  # risks of a bin at which functions are combined
# Directions of moments that are shorter are left out: they would only carry rounding and noise.
LEAST_DIRECTION = 1e-3
FLOAT_ERROR = 1e-15  # of a difference of two shares: more than is lost to the rounding of floats


class Grid(NamedTuple):
    """Places in each bin, and functions of them: bins × places, and × moments."""

    z: Floats  # logits
    moments: Floats  # what a row there adds to each sum
    inverse: Floats  # from values of a function to its combination of moments
    bend: Floats  # bounds of the second derivatives of moments, by the logit, near each place
    step: Floats  # between places, of each bin


class Combination(NamedTuple):
    """A function of the logit, as a combination of moments."""

    factors: Floats  # of the moments: moments × bins
    rest: Floats  # the most by which it is off anywhere in a bin


class RiskMoments(Sketch):
    """The sums of each class and moment in each bin of the risk.

    Bins reach from 0 to 1, whatever range is declared for their edges.
    """

    encode = staticmethod(encode.risk)
    sums = "risks"
    roles = ("score",)
    has_classes = True
    features_per_row = MOMENTS

    def prepare(self) -> None:
        axis = self.axes[0]
        if axis.edges and not 0 < axis.edges[0] <= axis.edges[-1] < 1:
            raise InputError(
                f"range of {axis.column!r} = {axis.low:g}:{axis.high:g} must lie between 0 and 1, "
                "as predicted risks do",
                remedy=f"--range {axis.column}=0:1",
            )
        self.ends, self.logits = _bounds(axis.edges)
        self.widths = np.diff(self.ends)
        self.size = 2 * MOMENTS * axis.bins

    @property
    def points(self) -> Options:
        return {"floor": LEAST_RISK}

    def features(self, x: Floats) -> Features:
        """Count a row in its bin, with its place and that of its logit, and their squares."""
        bins, k = self.axes[0].bins, self.axes[0].positions(x[:, 0])
        first = (x[:, 1] < 0) * (MOMENTS * bins) + k
        positions = first[:, None] + bins * np.arange(MOMENTS)
        place = (x[:, 0] - self.ends[k]) / self.widths[k]
        span = np.diff(self.logits)[k]
        of_logit = (logit(x[:, 0], LEAST_RISK) - self.logits[k]) / np.where(span > 0, span, 1.0)
        return Features(positions, _moments(place, of_logit))

    def table(self, totals: Floats) -> Floats:
        """Return the totals as classes (positive, negative) × moments × bins."""
        return totals.reshape(2, MOMENTS, -1)

    def count(self, totals: Floats) -> float:
        return float(self.table(totals)[:, 0].sum())

    def groups_of(self, totals: Floats) -> Floats:
        """Return the rows of each class."""
        return np.asarray(self.table(totals)[:, 0].sum(axis=1))

    def sampling_variance(self, totals: Floats, gradient: Floats) -> float:
        return float(self.sampling_variances(totals, gradient[None])[0])

    def sampling_variances(
        self, totals: Floats, gradients: Floats, leverage: Floats | float = 0.0
    ) -> Floats:
        """Return the variances of values with these gradients, of rows that are alike in a bin.

        `leverage` is that of a row of each bin in a regression.
        """
        sums = self.table(totals)
        rows = np.maximum(sums[:, 0], 0.0)
        shares = sums / np.where(rows > 0, rows, np.inf)[:, None]
        by_row = (gradients.reshape(-1, *sums.shape) * shares).sum(axis=2)
        number = rows.sum()
        mean = (by_row * rows).sum(axis=(1, 2), keepdims=True) / number
        spread = (rows * ((by_row - mean) / (1 - leverage)) ** 2).sum(axis=(1, 2))
        return np.asarray(spread * number / max(number - 1, 1.0))

    # Sums over rows are Σ factors · totals: factors are classes × moments × bins.

    def factors(self, positive: Floats, negative: Floats) -> Floats:
        """Return factors of a sum over rows, from those of the rows of each class."""
        return np.stack([positive, negative])

    @cached_property
    def risk_factors(self) -> Floats:
        """Return the factors of the sum of risks."""
        low, width, none = self.ends[:-1], self.widths, 0 * self.widths
        return np.array([low, width, none, none, none])

    @cached_property
    def square_factors(self) -> Floats:
        """Return the factors of the sum of squared risks."""
        low, width, none = self.ends[:-1], self.widths, 0 * self.widths
        return np.array([low**2, 2 * low * width, width**2, none, none])

    @cached_property
    def logit_factors(self) -> Floats:
        """Return the factors of the sum of logits."""
        none = 0 * self.widths
        return np.array([self.logits[:-1], none, none, np.diff(self.logits), none])

    @cached_property
    def one_factors(self) -> Floats:
        """Return the factors of the number of rows."""
        none = 0 * self.widths
        return np.array([none + 1, none, none, none, none])

    @cached_property
    def brier_factors(self) -> Floats:
        """Return the factors of the sum of squared errors: (1 − p)² and p²."""
        positive = self.one_factors - 2 * self.risk_factors + self.square_factors
        return np.stack([positive, self.square_factors])

    def error_of(self, factors: Floats, totals: Floats, rounding: float) -> float:
        """Return the most by which a sum is off as features were rounded."""
        rows = self.table(totals)[:, 0]
        # Of risks beyond the least one, the logit is moved, and the risk is not.
        moved = np.zeros((MOMENTS, len(self.widths)))
        if np.abs(factors[..., 3:, :]).max() > 0:
            moved[1:3, [0, -1]] = 2 * LEAST_RISK / self.widths[[0, -1]]
        changes = np.abs(factors) * (rounding + moved)
        return float((changes[:, 1:].sum(axis=1) * np.abs(rows)).sum())

    @property
    def grid(self) -> Grid:
        return _grid(self.axes[0].edges)

    def combination(self, values: Floats, bend: Floats | float = 0.0) -> Combination:
        """Return a function as a combination of moments, from its values at the grid.

        `bend` bounds its second derivative near each place.
        """
        grid = self.grid
        factors = (grid.inverse @ values[..., None])[..., 0]
        rest = np.abs(values - (grid.moments @ factors[..., None])[..., 0]).max(axis=1)
        bent = (bend + (grid.bend @ np.abs(factors)[..., None])[..., 0]).max(axis=1)
        return Combination(factors.T, rest + grid.step**2 / 8 * bent)

    def weights(self, sums: Floats) -> Floats:
        """Return weights of the places of the grid, whose moments are these: moments × bins."""
        return np.asarray((np.swapaxes(self.grid.inverse, 1, 2) @ sums.T[..., None])[..., 0])

    def mean_logits(self, totals: Floats) -> Floats:
        """Return the mean logit of the rows of each bin."""
        sums = self.table(totals).sum(axis=0)
        shares = np.clip(sums[3] / np.maximum(sums[0], 0.5), 0.0, 1.0)
        return np.asarray(self.logits[:-1] + shares * np.diff(self.logits))

    def places(self, sums: Floats) -> list[tuple[Floats, Floats]]:
        """Return logits with weights whose moments are these: two choices.

        The first one has all moments, but weights can be negative, so that there may be no fit. The
        second one has the mean logit of each bin, with the rows at both of its ends.
        """
        ends = np.concatenate([self.logits[:-1], self.logits[1:]])
        weights = np.concatenate([sums[0] - sums[3], sums[3]])
        return [(self.grid.z.ravel(), self.weights(sums).ravel()), (ends, weights)]


def _bounds(edges: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Return where bins begin and end, as risks and as logits."""
    ends = np.array([0.0, *edges, 1.0])
    return ends, logit(ends, LEAST_RISK)


@lru_cache(maxsize=4)  # sketches of one column have the same, and results of strata
def _grid(edges: tuple[float, ...]) -> Grid:
    """Return places in bins between edges, equally spaced by the logit."""
    ends, logits = _bounds(edges)
    places, span = np.linspace(0, 1, GRID), np.diff(logits)
    z = logits[:-1, None] + span[:, None] * places
    width, step = np.diff(ends)[:, None], span / (GRID - 1)
    u = np.clip((expit(z) - ends[:-1, None]) / width, 0.0, 1.0)
    moments = _moments(u, places + 0 * u)
    slope = _variance(z) * np.exp(step[:, None] / 2) / width  # of u, anywhere near
    squares = np.where(span > 0, 2 / np.where(span > 0, span, 1.0) ** 2, 0.0)[:, None] + 0 * u
    bend = np.stack([0 * u, slope, 2 * slope**2 + 2 * slope, 0 * u, squares], axis=-1)
    inverse = np.linalg.pinv(moments, rcond=LEAST_DIRECTION).astype(np.float64)
    return Grid(z, moments, inverse, bend, step)


def _moments(place: Floats, of_logit: Floats) -> Floats:
    """Return 1 and the powers of places in bins, from 0 to 1."""
    u, v = np.clip(place, 0.0, 1.0), np.clip(of_logit, 0.0, 1.0)
    return np.stack([np.ones_like(u), u, u * u, v, v * v], axis=-1)


def _variance(logits: Floats) -> Floats:
    """Return p(1 − p), which bounds the derivatives of p by the logit, and its own."""
    return np.asarray(expit(logits) * expit(-logits))


class Ratio(RiskMoments):
    """A function of two sums over rows and of the numbers of both classes."""

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Return the value, and those with the sum as small and as large as it can be."""
        total, error = self.total(totals, rounding)
        rows = self.groups_of(totals)
        if rows.sum() < 0.5:
            return undefined()
        value, *ends = (self.value_of(total + e, rows) for e in (0.0, -error, error))
        return single(value, min(ends), max(ends))

    def total(self, totals: Floats, rounding: float) -> tuple[float, float]:
        """Return the sum, and the most by which it can be off."""
        factors = self.sum_factors
        total = float((factors * self.table(totals)).sum())
        return total, self.error_of(factors, totals, rounding) + FLOAT_ERROR * abs(total)

    @property
    def sum_factors(self) -> Floats:
        """Return the factors of the sum."""
        return self.brier_factors

    def value_of(self, total: float, rows: Floats) -> float:
        """Return the value from the sum, and the rows of both classes."""
        return total / float(rows.sum())

    def slopes(self, total: float, rows: Floats) -> tuple[float, float, float]:
        """Return the derivatives of the value by the sum and by the rows of each class."""
        number = float(rows.sum())
        return 1 / number, -total / number**2, -total / number**2

    def gradient(self, totals: Floats) -> Floats | None:
        by_sum, *by_rows = self.slopes(self.total(totals, 0.0)[0], self.groups_of(totals))
        gradient = by_sum * self.sum_factors
        gradient[:, 0] += np.array(by_rows)[:, None]
        return np.asarray(gradient.ravel())


@sketch("brier-score")
class BrierScore(Ratio):
    """Mean squared difference of the predicted risk and what happened, exact but for rounding."""


@sketch("scaled-brier-score")
class ScaledBrierScore(Ratio):
    """Share by which the Brier score is below that of predicting the prevalence for all rows."""

    def value_of(self, total: float, rows: Floats) -> float:
        """Divide the sum of squared errors by that of the prevalence."""
        if rows.min() < 0.5:
            return np.nan
        return 1 - total * float(rows.sum() / rows.prod())

    def slopes(self, total: float, rows: Floats) -> tuple[float, float, float]:
        """Return the derivatives of 1 − total · (1/positive + 1/negative)."""
        positive, negative = rows.tolist()
        return -(1 / positive + 1 / negative), total / positive**2, total / negative**2


@sketch("log-loss")
class LogLoss(Ratio):
    """Mean of minus the logarithm of the risk that was predicted for what happened; risks nearer
    than 0.000001 to 0 or 1 are moved there.
    """

    @cached_property
    def loss(self) -> Combination:
        """Return log(1 + exp z), the loss of negative rows; that of positive ones is z less."""
        z = self.grid.z
        return self.combination(
            np.logaddexp(0.0, z), _variance(z) * np.exp(self.grid.step / 2)[:, None]
        )

    @property
    def sum_factors(self) -> Floats:
        return np.stack([self.loss.factors - self.logit_factors, self.loss.factors])

    def total(self, totals: Floats, rounding: float) -> tuple[float, float]:
        """Add the rest of the combination to the error."""
        total, error = super().total(totals, rounding)
        return total, error + float(self.loss.rest @ np.abs(self.table(totals)[:, 0]).sum(axis=0))


@sketch("observed-expected-ratio")
class ObservedExpectedRatio(Ratio):
    """Number of positive rows, divided by the sum of predicted risks."""

    @property
    def sum_factors(self) -> Floats:
        return np.stack([self.risk_factors] * 2)

    def value_of(self, total: float, rows: Floats) -> float:
        """Divide the positive rows by the sum of risks."""
        return float(rows[0]) / total if total > 0 else np.nan

    def slopes(self, total: float, rows: Floats) -> tuple[float, float, float]:
        """Return the derivatives of positive/total."""
        return -float(rows[0]) / total**2, 1 / total, 0.0


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
        variance, bend = _variance(intercept + slope * z), self.bend(found)
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
        return np.asarray(_variance(intercept + slope * self.grid.z) * near)

    def reach(self, found: Fit, totals: Floats, rounding: float) -> Floats:
        """Return how far each coefficient over the rows themselves can be; infinity: anywhere."""
        sums = self.table(totals)
        both = sums.sum(axis=0)

        def over(parts: list[Combination]) -> tuple[Floats, Floats]:
            values = [float((part.factors * both).sum()) for part in parts]
            errors = [
                float(part.rest @ both[0])
                + self.error_of(np.stack([part.factors] * 2), totals, rounding)
                for part in parts
            ]
            return np.array(values), np.array(errors)

        expected, missing = over(self.expected(found))
        for k, part in enumerate(self.known):
            factors = np.stack([part, 0 * part])
            missing[k] += abs(float((part * sums[0]).sum()) - expected[k])
            missing[k] += self.error_of(factors, totals, rounding)
        values, errors = over(self.curvatures(found))
        places = np.add.outer(np.arange(self.powers), np.arange(self.powers))
        # A symmetric matrix that is off by E is not below itself less the row sums of E.
        least = values[places] - np.diag(errors[places].sum(axis=1))
        filled = np.flatnonzero(both[0] > 0.5)
        ends = self.logits[[filled[0], filled[-1] + 1]]
        corners = np.stack([ends**power for power in range(self.powers)], axis=-1)
        return reach_of(least, missing, corners)

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
        return float(self.sampling_variances(totals, gradient[None], leverage)[0])


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

    def bins(self, totals: Floats, rounding: float) -> RiskTotals:
        """Return the totals of bins that are shown and have rows."""
        sums = self.table(totals)
        rows = self.shown(sums[:, 0])
        filled = np.flatnonzero((rows.sum(axis=0) > 0.5) | (self.noise > 0))
        both = sums.sum(axis=0)
        expected = self.shown((self.risk_factors * both).sum(axis=0))
        error = self.shown(self.widths * both[0]) * rounding
        labels = bin_labels(np.append(self.ends[self.starts], 1.0), filled)
        numbers = rows.sum(axis=0)[filled]
        return RiskTotals(numbers, rows[0, filled], expected[filled], error[filled], labels)


class RiskTotals(NamedTuple):
    """Totals of bins of risks."""

    rows: Floats
    observed: Floats  # positive rows
    expected: Floats  # sums of risks
    error: Floats  # of these, by rounding
    labels: tuple[str, ...]


@sketch("calibration-curve")
class CalibrationCurve(RiskCurve):
    """Share of positive rows in bins of the predicted risk, at the mean risk of each bin."""

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Divide positive rows by rows, and sums of risks by rows."""
        bins = self.bins(totals, rounding)
        if not len(bins.rows):
            return undefined()
        value = bins.observed / bins.rows
        return Result(value, value, value, labels=bins.labels, at=bins.expected / bins.rows)

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
        error = self.error_of(self.brier_factors, totals, rounding) / number + FLOAT_ERROR
        rest = brier + resolution - uncertainty
        value = np.array([reliability, resolution, uncertainty, rest - reliability])
        low = np.array([least, resolution, uncertainty, rest - most - error]) - FLOAT_ERROR
        high = np.array([most, resolution, uncertainty, rest - least + error]) + FLOAT_ERROR
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
        rows = self.shown(self.table(totals)[:, 0].sum(axis=0))
        places = np.repeat(
            np.cumsum((rows > 0.5) | (self.noise > 0)) - 1,
            np.diff(np.append(self.starts, len(self.widths))),
        ).clip(0)
        by_rows, by_positive, by_risk = slopes[:, :, places].swapaxes(0, 1)
        gradients = np.array(
            [
                np.stack(
                    [
                        self.one_factors * (by_rows[k] + by_positive[k]),
                        self.one_factors * by_rows[k],
                    ]
                )
                + self.risk_factors * by_risk[k]
                for k in range(3)
            ]
        )
        parts = gradients[0] - gradients[1] + gradients[2]
        gradients = np.append(gradients, [self.brier_factors - parts], axis=0) / number
        errors = np.sqrt(self.sampling_variances(totals, gradients.reshape(4, -1)))
        return errors, np.full(4, number)


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
        by_sums = [
            np.stack([column.factors - risk.factors, -risk.factors])
            for column, risk in self.parts(found)
        ]
        shown = spline(logit(self.risks, LEAST_RISK), found.knots)
        slopes = (values * (1 - values))[:, None] * shown @ np.linalg.inv(found.fit.information)
        gradients = np.tensordot(slopes, by_sums, axes=1).reshape(len(values), -1)
        z = self.mean_logits(totals)
        columns, fitted = spline(z, found.knots), found.curve(z)
        leverage = leverages(columns, np.ones(len(z)), fitted, found.fit)
        variances = self.sampling_variances(totals, gradients, leverage)
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
        weights = self.weights(sums).clip(0.0)
        weights *= (rows / np.maximum(weights.sum(axis=1), 1e-300))[:, None]
        distances = np.abs(middle)
        value = self.errors(distances.ravel(), weights.ravel())
        # Of rows that are spread evenly in each bin: at other places there may be none.
        value[-1] = max(
            np.take_along_axis(distances, place[:, None], 1)[rows > 0].max()
            for place in np.rint(self.extents(sums) * (GRID - 1)).astype(np.int64)
        )
        least = self.errors(nearest.min(axis=1), rows)
        most = self.errors(farthest.max(axis=1), rows)
        return Result(np.clip(value, least, most), least, most, False, self.labels)

    @staticmethod
    def errors(distances: Floats, weights: Floats) -> Floats:
        """Return the mean, the quantiles and the maximum of distances."""
        mean = weights @ distances / weights.sum()
        quantiles = weighted_quantiles(distances, weights, np.array([0.5, 0.9]))
        return np.array([mean, *quantiles, distances[weights > 0].max()])
