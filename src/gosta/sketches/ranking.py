"""Sketches of scores of two classes: counts in class × bin.

Pairs of rows in one bin are what is not known.
"""

from __future__ import annotations

import numpy as np

from gosta.measures.classification import RATES
from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.bins import GroupCounts, sums_after, sums_before, without_noise
from gosta.sketches.definition import Result, single, sketch, undefined
from gosta.statistics import encode

FLOAT_ERROR = 1e-15  # of a difference of two shares: more than is lost to the rounding of floats


class ScoreBins(GroupCounts):
    """The sums: first the counts of positive rows in each bin, then those of negative rows."""

    encode = staticmethod(encode.scored)
    sums = "scores"
    roles = ("score",)
    has_classes = True

    def group(self, x: Floats) -> Integers:
        return (x[:, 1] < 0).astype(np.int64)

    def cumulated(self, totals: Floats, step: int = 1) -> tuple[Floats, Floats]:
        """Return the shares of positive and of negative rows in all bins up to each.

        From the first bin on, or with step −1 from the last one; NaN where a class has no row.
        Counts are added, not shares, whose sums are rounded.
        """
        counts = self.table(totals)[:, ::step]
        numbers = counts.sum(axis=1, keepdims=True)
        sums = without_noise(counts).cumsum(axis=1)
        positive, negative = np.where(numbers >= 0.5, sums / np.maximum(numbers, 0.5), np.nan)
        return positive, negative

    def wins(self, totals: Floats) -> Floats:
        """Return the pairs in which the positive row is higher: estimate, least and largest value.

        Half of the pairs in one bin count; where bins cut a range, more if positive rows become
        more frequent within the bin: with densities 1 + a(u − ½) and 1 + b(u − ½) at places u, the
        share is ½ + (a − b)/12.
        """
        positive, negative = self.table(totals)
        half = float(positive @ (sums_before(negative) + negative / 2))
        alike = float(positive @ negative) / 2
        won = half + float(positive @ self.lift(negative))
        return np.array([won, half - alike, half + alike])

    def pairs(self, totals: Floats) -> float:
        """Return the pairs of a positive and a negative row; NaN where a class has no row."""
        rows = self.groups_of(totals)
        return float(rows.prod()) if rows.min() >= 0.5 else np.nan

    def lift(self, counts: Floats) -> Floats:
        """Return what the slopes of both densities add to the pairs that one row of each bin wins.

        With slopes from the bin before to the bin after, only products of neighbouring bins remain:
        1/12 of each, if all widths are equal.
        """
        if not self.axes[0].is_smooth or len(counts) < 2:
            return np.zeros_like(counts)
        widths = np.diff(self.axes[0].bounds)
        # Beyond the ends the density goes on as it is.
        padded = np.concatenate([widths[:1], widths, widths[-1:]])
        middles = np.cumsum(padded) - padded / 2
        share = widths**2 / (middles[2:] - middles[:-2]) / 12
        factors = share[:-1] / widths[1:] + share[1:] / widths[:-1]
        from_left = np.append(0.0, factors * counts[:-1])
        return np.asarray(from_left - np.append(factors * counts[1:], 0.0))


@sketch("auc")
class Auc(ScoreBins):
    """Area under the ROC curve from counts of both classes in bins."""

    bounds = (0.0, 1.0)

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Divide by the number of pairs; those in one bin can all be ordered either way."""
        return single(*self.wins(totals) / self.pairs(totals))

    def gradient(self, totals: Floats) -> Floats | None:
        """Return (share of the other class that a row beats, less the AUC) / rows of its class."""
        positive, negative = self.table(totals)
        positives, negatives = positive.sum(), negative.sum()
        value = self.wins(totals)[0] / (positives * negatives)
        beaten = sums_before(negative) + negative / 2 + self.lift(negative)
        beaten_by = sums_after(positive) + positive / 2 - self.lift(positive)
        by_positive = (beaten / negatives - value) / positives
        by_negative = (beaten_by / positives - value) / negatives
        return np.concatenate([by_positive, by_negative])

    def sampling_variance(self, totals: Floats, gradient: Floats) -> float:
        """Return DeLong's variance, of scores that are equal within a bin."""
        return float(self._variances(totals, gradient)[0].sum())

    def degrees(self, totals: Floats, gradient: Floats) -> float:
        """Return Satterthwaite's degrees of freedom."""
        variances, degrees = self._variances(totals, gradient)
        joint = variances.sum() ** 2 / (variances**2 / degrees).sum()
        return float(max(joint, degrees.min()) if np.isfinite(joint) else degrees.min())

    def _variances(self, totals: Floats, gradient: Floats) -> tuple[Floats, Floats]:
        """Return what each class contributes to the variance, and its degrees of freedom."""
        counts, slopes = self.table(totals), self.table(gradient)
        rows = counts.sum(axis=1)
        degrees = np.maximum(rows - 1, 1)
        return (counts * slopes**2).sum(axis=1) * (rows / degrees), degrees


@sketch("mann-whitney")
class MannWhitney(ScoreBins):
    """Number of pairs of a positive and a negative row in which the positive one scores higher,
    from counts in bins.
    """

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Count pairs."""
        return undefined() if np.isnan(self.pairs(totals)) else single(*self.wins(totals))


@sketch("roc-curve")
class RocCurve(ScoreBins):
    """Points of the ROC curve, from counts in bins.

    At the edges of bins both rates are known; between two edges the curve rises from one to the
    other.
    """

    shows_bins = True
    trend = 1
    labels = tuple(f"false positive rate {rate:g}" for rate in RATES)

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Interpolate between the edges on both sides of each rate."""
        shares = self.cumulated(totals, -1)
        true, false = (np.concatenate([[0.0], np.clip(share, 0, 1)]) for share in shares)
        if np.isnan([true[-1], false[-1]]).any():
            return undefined(self.labels)
        true[-1] = false[-1] = 1.0
        rates = np.array(RATES)
        right = np.searchsorted(false, rates * (1 + 1e-12), side="right")  # the edge beyond
        left = right - 1
        share = np.clip((rates - false[left]) / (false[right] - false[left]), 0, 1)
        value = true[left] + share * (true[right] - true[left])
        return Result(value, true[left], true[right], labels=self.labels)


@sketch("kolmogorov-smirnov")
class KolmogorovSmirnov(ScoreBins):
    """Largest difference of the distribution functions of two classes, from counts in bins."""

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Return the largest difference at an edge; in a bin one function can rise first."""
        ends = self.cumulated(totals)
        starts = [np.append(0.0, end[:-1]) for end in ends]
        value = float(np.abs(ends[0] - ends[1]).max())
        high = max(float((ends[k] - starts[1 - k]).max()) for k in (0, 1))
        low = min(value, 1.0) - FLOAT_ERROR
        return single(min(value, 1.0), low, max(value, high) + FLOAT_ERROR)
