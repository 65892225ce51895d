"""Sketches of scores of two classes: counts in class × bin.

Pairs of rows in one bin are what is not known.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from gosta.measures.classification import (
    RATES,
    RECALLS,
    ROUNDING,
    Area,
    check_rate,
    partial_area,
    precision_area,
    recall_errors,
    recall_points,
    roc_errors,
    roc_points,
    standardised,
)
from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.bins import GroupCounts, sums_after, sums_before, without_noise
from gosta.sketches.definition import SHARE_ERROR, Result, single, sketch, undefined
from gosta.statistics import encode
from gosta.statistics.definition import Options

AREA_ERROR = 1e-12  # of a sum over bins: far less than this is lost to the rounding of floats
# Places in a bin and their shares of its rows (Gauss and Legendre), for rows spread over it.
PLACES, SHARES = np.polynomial.legendre.leggauss(8)


class ScoreBins(GroupCounts):
    """The sums: first the counts of positive rows in each bin, then those of negative rows."""

    encode = staticmethod(encode.scored)
    sums = "scores"
    roles = ("score",)
    has_classes = True

    def group(self, x: Floats) -> Integers:
        return (x[:, 1] < 0).astype(np.int64)

    def from_highest(self, totals: Floats) -> Floats:
        """Return counts that are not negative, from the last bin to the first: 2 × bins."""
        counts = self.table(totals)[:, ::-1]
        return without_noise(counts) if self.noise > 0 else counts

    def reached(self, totals: Floats) -> Floats:
        """Return the rows of both classes from each edge on, from the highest: 2 × (bins + 1)."""
        return np.cumsum(np.column_stack([[0.0, 0.0], self.from_highest(totals)]), axis=1)

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


class ScoreCurve(ScoreBins):
    """A curve that is read at the points of its only option."""

    shows_bins = True

    @staticmethod
    @abstractmethod
    def read_points(asked: Any, /) -> tuple[Floats, tuple[str, ...]]:
        """Return points in order, and what the values there are for."""

    def prepare(self) -> None:
        super().prepare()
        ((self.option, asked),) = self.options.items()
        self.at, self.labels = self.read_points(asked)

    @property
    def points(self) -> Options:
        return {self.option: self.at}


@sketch("roc-curve")
class RocCurve(ScoreCurve):
    """Points of the ROC curve: the highest true positive rate with a false positive rate of at most
    each of `rates`, from counts in bins.

    At the edges of bins both rates are known; between two edges the curve rises from one to the
    other.
    """

    trend = 1
    defaults = {"rates": RATES}  # noqa: RUF012
    read_points = staticmethod(roc_points)

    def _curve(self, totals: Floats) -> tuple[Floats, Floats]:
        """Return true and false positive rates at the edges of bins."""
        shares = self.cumulated(totals, -1)
        true, false = (np.concatenate([[0.0], np.clip(share, 0, 1)]) for share in shares)
        if np.isfinite([true[-1], false[-1]]).all():
            true[-1] = false[-1] = 1.0
        return true, false

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Interpolate between the edges on both sides of each rate."""
        true, false = self._curve(totals)
        if np.isnan([true[-1], false[-1]]).any():
            return undefined(self.labels)
        left = np.searchsorted(false, self.at * (1 + ROUNDING), side="right") - 1
        right = np.minimum(left + 1, len(false) - 1)
        width = false[right] - false[left]
        share = np.where(width > 0, np.clip((self.at - false[left]) / width, 0, 1), 0)
        value = true[left] + share * (true[right] - true[left])
        return Result(value, true[left], true[right], labels=self.labels, at=self.at)

    def sampling_errors(self, totals: Floats, values: Floats) -> tuple[Floats, Floats] | None:
        """Return the errors of the curve through the edges."""
        true, false = self._curve(totals)
        positives, negatives = np.maximum(self.groups_of(totals), 1.0)
        return roc_errors((false, true), self.at, values, (positives, negatives))


@sketch("precision-recall-curve")
class PrecisionRecallCurve(ScoreCurve):
    """Points of the precision-recall curve: the precision at the highest score from which on each
    of `recalls` is reached, from counts in bins.
    """

    defaults = {"recalls": RECALLS}  # noqa: RUF012
    read_points = staticmethod(recall_points)

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Interpolate in the bin in which a recall is reached; its negative rows can come last."""
        true, false = self.reached(totals)
        if not true[-1] >= 0.5:
            return undefined(self.labels)
        wanted = self.at * true[-1]
        right = np.searchsorted(true, wanted * (1 - ROUNDING), side="left")
        left = np.maximum(right - 1, 0)
        width = np.maximum(true[right] - true[left], ROUNDING)
        share = np.clip((wanted - true[left]) / width, 0, 1)
        low = wanted / (wanted + false[right])
        high = true[right] / (true[right] + false[left])
        value = wanted / (wanted + false[left] + share * (false[right] - false[left]))
        if not self.axes[0].is_smooth:
            value = true[right] / (true[right] + false[right])
        return Result(value, low, np.maximum(high, value), labels=self.labels, at=self.at)

    def sampling_errors(self, totals: Floats, values: Floats) -> tuple[Floats, Floats] | None:
        """Return the errors of the curve through the edges."""
        reached = self.reached(totals)
        positives, negatives = np.maximum(reached[:, -1], 1.0)
        shares = reached / np.array([[positives], [negatives]])
        return recall_errors(shares, self.at, (positives, negatives))


class ScoreArea(ScoreBins):
    """An area below a curve, with a standard error by its derivatives."""

    @abstractmethod
    def area(self, counts: Floats) -> Area:
        """Return the area of counts in bins, from the highest bin on."""

    @abstractmethod
    def ends(self, counts: Floats) -> tuple[float, float]:
        """Return between which values the area certainly lies, whatever the order in bins is."""

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Compute the area with rows spread over bins, and with the worst and the best order."""
        counts = self.from_highest(totals)
        value, (low, high) = self.area(counts).value, self.ends(counts)
        if not low <= high:
            return undefined()
        return single(min(max(value, low), high), low - AREA_ERROR, high + AREA_ERROR)

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivatives by both classes."""
        found = self.area(self.from_highest(totals))
        return np.concatenate([found.by_positive[::-1], found.by_negative[::-1]])

    def sampling_variance(self, totals: Floats, gradient: Floats) -> float:
        """Add the variances of both classes, each estimated from its own rows."""
        rows = self.groups_of(totals)
        squares = self.table(totals * gradient**2).sum(axis=1)
        return float(squares @ (rows / np.maximum(rows - 1, 1.0)))

    def degrees(self, totals: Floats, gradient: Floats) -> float:
        """Return those of the smaller class."""
        return max(float(self.groups_of(totals).min()) - 1, 1.0)


@sketch("average-precision")
class AveragePrecision(ScoreArea):
    """Mean precision over the positive rows, from counts in bins."""

    def area(self, counts: Floats) -> Area:
        if not self.axes[0].is_smooth:  # rows in one bin have the same score
            return precision_area(counts)
        # A positive row counts itself, and on average half of it is at its place.
        return precision_area(counts, (PLACES + 1) / 2, SHARES / 2, 0.5)

    def ends(self, counts: Floats) -> tuple[float, float]:
        """Order the positive rows of each bin after, and all at once before, its negative ones.

        After them the j-th one has a precision of g(T + j) with g(t) = t/(t + F), which is at least
        the integral of the concave g from T + j − ½ to T + j + ½.
        """
        (positive, negative), (true, false) = counts, np.cumsum(counts, axis=1) - counts
        total, last = positive.sum(), false + negative
        if not total >= 0.5:
            return np.nan, np.nan
        least = positive - last * np.log1p(positive / (true + 0.5 + last))
        reached = true + positive
        most = positive * reached / np.maximum(reached + false, ROUNDING)
        return float(least.sum() / total), float(most.sum() / total)


@sketch("partial-auc")
class PartialAuc(ScoreArea):
    """Area under the ROC curve up to a false positive rate, `max_fpr`, standardised to 1/2 without
    information, from counts in bins.
    """

    defaults = {"max_fpr": 0.1}  # noqa: RUF012

    def prepare(self) -> None:
        super().prepare()
        self.max_fpr = check_rate(self.options["max_fpr"])

    def area(self, counts: Floats) -> Area:
        return partial_area(counts, self.max_fpr)

    def ends(self, counts: Floats) -> tuple[float, float]:
        """Take the true positive rates at the edges on both sides of each bin for those in it."""
        rows = counts.sum(axis=1)
        if not rows.min() >= 0.5:
            return np.nan, np.nan
        true, false = np.cumsum(counts, axis=1) / rows[:, None]
        widths = np.diff(np.minimum(np.append(0.0, false), self.max_fpr))
        least, most = (float(widths @ rate) for rate in (true - counts[0] / rows[0], true))
        return standardised(least, self.max_fpr), standardised(most, self.max_fpr)


@sketch("kolmogorov-smirnov")
class KolmogorovSmirnov(ScoreBins):
    """Largest difference of the distribution functions of two classes, from counts in bins."""

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Return the largest difference at an edge; in a bin one function can rise first."""
        ends = self.cumulated(totals)
        starts = [np.append(0.0, end[:-1]) for end in ends]
        value = float(np.abs(ends[0] - ends[1]).max())
        high = max(float((ends[k] - starts[1 - k]).max()) for k in (0, 1))
        low = min(value, 1.0) - SHARE_ERROR
        return single(min(value, 1.0), low, max(value, high) + SHARE_ERROR)
