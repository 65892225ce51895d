"""What follows of counts of censored rows and events in time bins, whose order is not known.

For values, half of the events of a bin come before its censored rows and half after them, where
bins cut a range; otherwise rows in one bin have the same time. Brackets allow every order.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

import numpy as np

from gosta.errors import InputError
from gosta.measures.definition import numbers_of
from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.bins import Counts, GroupCounts, sums_after
from gosta.sketches.definition import CLEAR, Axis, Sketch
from gosta.statistics.definition import Options

MOST_TIMES = 10  # at which a curve is shown
LEAST_ROWS = 1e-9  # a divisor in place of a number of rows that is 0, or negative by noise
PLACES = 3  # in a time bin: of its first events, its censored rows, its last events


def shown_edges(axis: Axis) -> Floats:
    """Return up to ten edges of time bins, at which a curve is shown."""
    edges = np.array(axis.edges or (axis.high,))
    shown = np.linspace(0, len(edges) - 1, min(MOST_TIMES, len(edges))).astype(int)
    return np.asarray(edges[np.unique(shown)])


def edge_numbers(axis: Axis, name: str, times: Floats) -> Integers:
    """Return how many bins end by each time, which is an edge of a bin."""
    beyond = times[(times <= axis.low) | (times >= axis.high)]
    if len(beyond):
        raise InputError(
            f"{name} = {beyond[0]:g} must lie within the range of {axis.column!r}, {axis.low:g} to "
            f"{axis.high:g}",
            remedy=f"declare a wider one (--range {axis.column}={axis.low:g}:{2 * beyond[0]:g})",
        )
    return np.searchsorted(axis.edges, times, side="right")


def product_limits(ending: Floats, others: Floats) -> tuple[Floats, Floats, Floats]:
    """Return Kaplan and Meier's curve at the ends of bins: estimate, least and largest share.

    `ending` counts what the curve is about. The other rows that leave in the same bin can all do
    so before, or after them.
    """
    at_risk = sums_after(ending + others) + ending + others
    curves = []
    for leaving in (0.5, 1.0, 0.0):  # the share of other rows that leave before
        risk = np.maximum(at_risk - leaving * others, np.maximum(ending, LEAST_ROWS))
        ones = np.ones((*ending.shape[:-1], 1))
        curves.append(np.concatenate([ones, np.cumprod((risk - ending) / risk, axis=-1)], axis=-1))
    value, low, high = curves
    return value, low, high


def event_weights(censored: Floats, events: Floats) -> tuple[Floats, Floats]:
    """Return the least and the largest 1/G that an event of each bin can count by.

    Until an event at most all rows of its bin are censored that are, after all of its other events.
    """
    _, low, high = product_limits(censored, events)
    at_risk = sums_after(censored + events) + censored + events
    risk = np.maximum(at_risk - events + 1, censored + LEAST_ROWS)
    shares = high[:-1], low[:-1] * (1 - censored / risk)
    least, most = (1 / np.maximum(share, LEAST_ROWS) for share in shares)  # 0 where none is left
    return least, most


class PlacedCounts(Counts):
    """The sums: censored rows, then events; each in time bin × a cell of another number.

    `rows` and `weights` are rows that stand for them, with which a measure can be computed.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        return 2, self.axes[0].bins, self.axes[-1].bins

    def cells(self, x: Floats) -> Integers:
        _, time_bins, cells = self.shape
        return (x[:, 1].astype(np.int64) * time_bins + self.axes[0].positions(x[:, 0])) * (
            cells
        ) + self.cell_of_score(x[:, -1])

    def cell_of_score(self, scores: Floats) -> Integers:
        """Return the cell of the last number of each row."""
        return self.axes[-1].positions(scores)

    def rows(self, *scores: Floats) -> Floats:
        """Return the rows that stand for the counts: place, event and scores of each cell."""
        _, bins, cells = self.shape
        inner = np.arange(PLACES) if self.axes[0].is_smooth else np.zeros(PLACES)
        whole = np.zeros((PLACES, bins, cells))
        times = whole + PLACES * np.arange(bins)[:, None] + inner[:, None, None]
        is_event = whole + np.array([1.0, 0.0, 1.0])[:, None, None]
        columns = times, is_event, *(whole + score for score in scores)
        return np.column_stack([column.ravel() for column in columns])

    def weights(self, counts: Floats) -> Floats:
        """Return how many rows each of `rows` stands for."""
        censored, events = counts
        return np.stack([events / 2, censored, events / 2]).ravel()

    def folded(self, slopes: Floats) -> Floats:
        """Return derivatives by the counts, of those by the weights of `rows`."""
        first, censored, last = slopes.reshape(PLACES, *self.shape[1:])
        return np.stack([censored, (first + last) / 2]).ravel()

    def places(self, name: str, times: Floats) -> Floats:
        """Return times, which are edges of bins, as places of `rows`."""
        return PLACES * edge_numbers(self.axes[0], name, times).astype(np.float64)


class TimeCurve(Sketch):
    """A curve that is shown at `times`, or at up to ten edges of time bins."""

    defaults = {"times": None}  # noqa: RUF012

    def prepare(self) -> None:
        super().prepare()
        times = self.options["times"]
        self.times = shown_edges(self.axes[0]) if times is None else numbers_of("times", times)

    @classmethod
    def cuts(cls, options: Options) -> Mapping[str, Floats]:
        times = options.get("times")
        return {} if times is None else {"time": numbers_of("times", times)}

    @property
    def points(self) -> Options:
        return {"times": self.times}


class TimeBins(GroupCounts):
    """The sums: counts in group × time bin.

    Groups are censored rows and events, of each class if there are classes.
    """

    def prepare(self) -> None:
        super().prepare()
        # How many bins are used one by one; with noise only the sum of all later ones is.
        self.clear = self.axes[0].bins

    def group(self, x: Floats) -> Integers:
        group = x[:, 1].astype(np.int64)
        return group + 2 * (x[:, 2] < 0) if self.has_classes else group

    def with_noise(self, totals: Floats, noise: float) -> Sketch:
        """Find the bins at whose end the rows at risk, of each class, are more than noise."""
        made = copy(self)
        leaving = totals.reshape(-1, 2, self.axes[0].bins).sum(axis=1)
        left = np.arange(self.axes[0].bins)[::-1]
        least = CLEAR * np.sqrt(2 * noise * left)
        is_clear = (sums_after(leaving) > least).all(axis=0) & (left > 0)
        made.noise, made.clear = noise, int(np.cumprod(is_clear).sum())
        return made

    def counts(self, totals: Floats) -> Floats:
        """Return the counts of each group: groups × bins, with bins that are not clear as one."""
        counts = self.table(totals)
        return np.column_stack([counts[:, : self.clear], counts[:, self.clear :].sum(axis=1)])
