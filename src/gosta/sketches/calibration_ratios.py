"""Sketches of Brier scores, log loss and observed risk: ratios of sums over predicted risks."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gosta.runtime.arrays import Floats
from gosta.sketches.definition import SHARE_ERROR, Result, single, sketch, undefined
from gosta.sketches.risk_moments import Combination, RiskMoments, risk_variance


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
        return total, self.error_of(factors, totals, rounding) + SHARE_ERROR * abs(total)

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
            np.logaddexp(0.0, z), risk_variance(z) * np.exp(self.grid.step / 2)[:, None]
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
