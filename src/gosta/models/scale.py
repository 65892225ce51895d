"""Means and standard deviations of a design's columns, and what totals in shares are in these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gosta.errors import DataError, shorten
from gosta.models.arithmetic import SingularError, cholesky, dot, solve, symmetric
from gosta.runtime.arrays import Floats

# Of shares of a range; a column with less is constant but for what sites round.
LEAST_VARIANCE = 2.0**-36
# Of a column's variance, what other columns leave of it where they do not determine it.
LEAST_LEFT = 1e-9


@dataclass(frozen=True)
class Scale:
    """Standardised columns (x − mean) / deviation, where x is a share of the declared range."""

    n: float  # number of rows
    mean: Floats
    deviation: Floats  # with n as the divisor
    correlations: Floats

    @classmethod
    def of(cls, triangle: Floats, names: tuple[str, ...]) -> Scale:
        """Return it for sums of products of columns, the first of which is 1; an error if a column
        is constant.
        """
        sums = symmetric(triangle, len(names) + 1)
        n = float(sums[0, 0])
        mean = sums[0, 1:] / n
        covariance = sums[1:, 1:] / n - np.multiply.outer(mean, mean)
        variance = np.diagonal(covariance)
        constant = [name for name, one in zip(names, variance, strict=True) if one < LEAST_VARIANCE]
        if constant:
            what = "column" if len(constant) == 1 else "columns"
            raise DataError(
                f"{what} {shorten(constant)} of the model: all rows have the same value, but for a "
                "millionth of the range",
                remedy="leave it out, or declare a range nearer to its values",
            )
        deviation = np.sqrt(variance)
        correlations = covariance / np.multiply.outer(deviation, deviation)
        return cls(n, mean, deviation, correlations)

    def require_independent(self, names: tuple[str, ...]) -> None:
        """Raise an error that names columns if one of them is a combination of others."""
        try:
            cholesky(self.correlations, LEAST_LEFT)
        except SingularError as error:
            place = error.row
            before = self.correlations[:place, :place]
            shares = solve(cholesky(before), self.correlations[:place, place])
            others = [name for name, one in zip(names, shares, strict=False) if abs(one) > 1e-3]
            raise DataError(
                f"column {names[place]} of the model is a combination of {shorten(others)}: many "
                "coefficients fit equally well",
                remedy="leave one of them out, or use a penalty (--penalty 1)",
            ) from None

    def to_shares(self, coefficients: Floats) -> Floats:
        """Return coefficients of shares for those of standardised columns, intercept first."""
        slopes = coefficients[1:] / self.deviation
        return np.append(coefficients[0] - dot(slopes, self.mean), slopes)

    def gradient(self, of_shares: Floats) -> Floats:
        """Return derivatives by coefficients of standardised columns for those of shares."""
        slopes = (of_shares[1:] - self.mean * of_shares[0]) / self.deviation
        return np.append(of_shares[0], slopes)

    def second(self, of_shares: Floats) -> Floats:
        """Return second derivatives, or products of derivatives, in the same way."""
        rows = np.array([self.gradient(row) for row in of_shares])
        return np.array([self.gradient(column) for column in rows.T])
