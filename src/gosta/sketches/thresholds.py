"""Sketches of measures at thresholds of a score: counts of both classes on both sides of each.

Bins have an edge at every threshold, so these counts are known. Only where small bins are merged,
or a threshold is not within the range, a threshold lies within a bin: rows of this bin can be on
either side of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

import numpy as np

from gosta.measures.thresholds import RATIOS, RISKS, ratio_errors, threshold_labels
from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.bins import merge_starts_of_each
from gosta.sketches.definition import Result, Sketch, sketch, undefined
from gosta.sketches.ranking import ScoreBins
from gosta.statistics.definition import Options


class AtThresholds(ScoreBins):
    """A ratio of true and false positives and negatives, at each of `thresholds`."""

    shows_bins = True
    defaults = {"thresholds": 0.5}  # noqa: RUF012

    def prepare(self) -> None:
        super().prepare()
        self.ratio = RATIOS[self.name]
        self.at = self.ratio.points(self.options["thresholds"])
        self.labels = threshold_labels(self.at)
        self.starts = [np.arange(self.axes[0].bins)] * 2  # of the bins of each class that are known

    @classmethod
    def cuts(cls, options: Options) -> Mapping[str, Floats]:
        thresholds = options.get("thresholds", cls.defaults["thresholds"])
        return {"score": RATIOS[cls.name].points(thresholds)}

    def _above(self, totals: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the rows of both classes from the thresholds on: least, about and most; and all.

        About: as if rows were spread evenly over a bin in which a threshold lies.
        """
        reached = self.reached(totals)[:, ::-1]  # from the beginning of each bin on
        groups = zip(reached, self.starts, strict=True)
        each = [self._above_of(rows[[*starts, -1]], starts) for rows, starts in groups]
        least, about, most = np.stack(each, axis=1)
        return least, about, most, reached[:, :1]

    def _above_of(self, reached: Floats, starts: Integers) -> Floats:
        """Return the rows of one class from the thresholds on: least, about and most.

        `starts` are those of its bins, `reached` its rows from the beginning of each on.
        """
        bounds = self.axes[0].bounds[[*starts, -1]]
        place = np.searchsorted(bounds[1:-1], self.at, side="right")
        left, right = bounds[place], bounds[place + 1]
        share = np.clip((self.at - left) / (right - left), 0, 1)
        most, beyond = reached[place], reached[place + 1]
        is_edge = (place > 0) & (self.at == left)
        is_edge |= self.ratio.by_odds & (self.at <= 0)  # no risk is less
        about = most + np.where(is_edge, 0.0, share) * (beyond - most)
        return np.array([np.where(is_edge, most, beyond), about, most])

    def _cells(self, totals: Floats) -> Floats:
        """Return true and false positives and negatives: lowest value, about, highest; each 4 × k.

        The value rises with the true positives and falls with the false ones.
        """
        least, about, most, rows = self._above(totals)
        ends = [(least[0], most[1]), about, (most[0], least[1])]
        return np.array([np.vstack([end, rows - end]) for end in map(np.array, ends)])

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Compute the ratios with all rows of a bin on the one or on the other side."""
        low, value, high = (self.ratio.over(cells, self.at)[0] for cells in self._cells(totals))
        if not totals.sum() >= 0.5:
            return undefined(self.labels)
        # Where one end has no rows to divide by, rows of the bin give the ratio that they all have.
        low, high = (np.where(np.isnan(end), value, end) for end in (low, high))
        low, high = np.minimum(low, value), np.maximum(high, value)
        return Result(value, low, high, labels=self.labels, at=self.at)

    def sampling_errors(self, totals: Floats, values: Floats) -> tuple[Floats, Floats] | None:
        """Return the errors of ratios of counts."""
        cells, rows = self._cells(totals)[1], max(self.count(totals), 2.0)
        slopes = self.ratio.over(cells, self.at)[1]
        return ratio_errors(slopes, cells, rows), self.ratio.rows(cells)

    def merged(self, totals: Floats, min_cell: int) -> tuple[Sketch, Floats]:
        """Merge small bins of each class on its own; as few thresholds as possible lose an edge."""
        made = copy(self)
        made.starts = merge_starts_of_each(self.table(totals), min_cell, self.axes[0], self.at)
        return made, totals


@sketch("sensitivity")
class Sensitivity(AtThresholds):
    """Share of the positive rows whose score is at least a threshold, from counts in bins."""


@sketch("specificity")
class Specificity(AtThresholds):
    """Share of the negative rows whose score is below a threshold, from counts in bins."""


@sketch("positive-predictive-value")
class PositivePredictiveValue(AtThresholds):
    """Share of positive rows among those whose score is at least a threshold, from counts in
    bins.
    """


@sketch("negative-predictive-value")
class NegativePredictiveValue(AtThresholds):
    """Share of negative rows among those whose score is below a threshold, from counts in bins."""


@sketch("f1-score")
class F1Score(AtThresholds):
    """Harmonic mean of precision and recall at a threshold, from counts in bins."""


@sketch("net-benefit")
class NetBenefit(AtThresholds):
    """Net benefit of treating rows whose predicted risk is at least a threshold, from counts in
    bins.
    """

    defaults = {"thresholds": RISKS}  # noqa: RUF012


@sketch("net-benefit-of-all")
class NetBenefitOfAll(AtThresholds):
    """Net benefit of treating all rows, from the counts of both classes."""

    defaults = {"thresholds": RISKS}  # noqa: RUF012
