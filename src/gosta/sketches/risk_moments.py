"""Sums over rows of predicted risks: their number, places and squared places in bins of each class.

Places are those of the risk and of its logit, so that sums of 1, p, p², z and z² over the rows of a
bin are known. Any other function of the risk is a combination of these but for a rest, which is
small, and whose largest value in the bin bounds what is not known.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from gosta.errors import InputError
from gosta.measures.logistic import expit, logit
from gosta.runtime.arrays import Floats
from gosta.sketches.definition import Features, Sketch
from gosta.statistics import encode
from gosta.statistics.definition import Options

# Risks nearer to 0 or 1 are moved there for their logits, which would be infinite.
LEAST_RISK = 1e-6
MOMENTS = 5  # of the rows of a class in a bin: 1, p, p², z, z², in units of the bin
GRID = 33  # risks of a bin at which functions are combined
# Directions of moments that are shorter are left out: they would only carry rounding and noise.
LEAST_DIRECTION = 1e-3


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
        return float(self.sampling_covariance(totals, gradient[None])[0, 0])

    def sampling_covariance(
        self, totals: Floats, gradients: Floats, leverage: Floats | float = 0.0
    ) -> Floats:
        """Return the covariance of values with these gradients, of rows that are alike in a bin.

        `leverage` is that of a row of each bin in a regression.
        """
        sums = self.table(totals)
        rows = np.maximum(sums[:, 0], 0.0)
        shares = sums / np.where(rows > 0, rows, np.inf)[:, None]
        by_row = (gradients.reshape(-1, *sums.shape) * shares).sum(axis=2)
        number = rows.sum()
        mean = (by_row * rows).sum(axis=(1, 2), keepdims=True) / number
        gaps = (np.sqrt(rows) * (by_row - mean) / (1 - leverage)).reshape(len(by_row), -1)
        return np.asarray(gaps @ gaps.T * number / max(number - 1, 1.0))

    # Sums over rows are Σ factors · totals: factors are classes × moments × bins.

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
    slope = risk_variance(z) * np.exp(step[:, None] / 2) / width  # of u, anywhere near
    squares = np.where(span > 0, 2 / np.where(span > 0, span, 1.0) ** 2, 0.0)[:, None] + 0 * u
    bend = np.stack([0 * u, slope, 2 * slope**2 + 2 * slope, 0 * u, squares], axis=-1)
    inverse = np.linalg.pinv(moments, rcond=LEAST_DIRECTION).astype(np.float64)
    return Grid(z, moments, inverse, bend, step)


def _moments(place: Floats, of_logit: Floats) -> Floats:
    """Return 1 and the powers of places in bins, from 0 to 1."""
    u, v = np.clip(place, 0.0, 1.0), np.clip(of_logit, 0.0, 1.0)
    return np.stack([np.ones_like(u), u, u * u, v, v * v], axis=-1)


def risk_variance(logits: Floats) -> Floats:
    """Return p(1 − p), which bounds the derivatives of p by the logit, and its own."""
    return np.asarray(expit(logits) * expit(-logits))
