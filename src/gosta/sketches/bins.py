"""Counts of rows in bins: sums over bins, noise, merging of small bins, edges from a first sum."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import prod
from typing import ClassVar

import numpy as np

from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.definition import Axis, Features, Result, Sketch, in_order, single

# The bins of a first sum that finds edges.
FEWEST_FINE_BINS = 256
MOST_FINE_BINS = 2048
NO_STEPS = np.zeros(0)


def sums_before(counts: Floats, axis: int = -1) -> Floats:
    """Return sums over the bins before each bin."""
    sums: Floats = np.cumsum(counts, axis=axis) - counts
    return sums


def sums_after(counts: Floats, axis: int = -1) -> Floats:
    """Return sums over the bins after each bin."""
    sums: Floats = counts.sum(axis=axis, keepdims=True) - np.cumsum(counts, axis=axis)
    return sums


def without_noise(counts: Floats) -> Floats:
    """Return counts that are not negative; their running sums stay near those of the noisy ones.

    Setting negative counts to 0 would add rows that are not there, more the more bins there are.
    Here the sums are replaced by the middle between the least and the largest increasing ones
    around them; without noise nothing changes.
    """
    sums = in_order(np.cumsum(counts, axis=-1), 1)
    return np.diff(np.maximum(sums, 0.0), axis=-1, prepend=0.0)


def merge_starts(
    counts: Floats, min_cell: int, ends: Floats, worth: Floats | None = None
) -> list[int]:
    """Return where bins begin after neighbours are merged.

    The edges between bins that are lost are those of the least `worth`.

    Every group's count is 0 or at least `min_cell` then. `counts` is groups × bins, `ends` where
    bins begin and end; no group is small altogether. The width of brackets grows with the pairs of
    rows of different groups in one bin (of one group: with pairs times width), so of all ways the
    one with the least sum of these over bins is chosen.
    """
    bins = counts.shape[1]
    kept = np.zeros(bins + 1)  # worth of the edges up to the beginning of each bin
    if worth is not None:
        kept[1:bins] = np.cumsum(worth)
    of_lost_edge = counts.sum() ** 2 * max(1.0, ends[-1] - ends[0])  # more than all bins cost
    sums = np.concatenate([np.zeros((len(counts), 1)), np.cumsum(counts, axis=1)], axis=1)
    best = np.full(bins + 1, np.inf)  # the least cost of all bins before each
    best[0] = 0.0
    last = np.zeros(bins + 1, dtype=np.int64)  # where the last bin before each begins, at that cost
    for stop in range(1, bins + 1):
        cells = sums[:, stop : stop + 1] - sums[:, :stop]  # of bins from each start up to this one
        is_small = ((cells > 0) & (cells < min_cell)).any(axis=0)
        total = cells.sum(axis=0)
        widths = ends[stop] - ends[:stop]
        pairs = (total**2 - (cells**2).sum(axis=0)) / 2 if len(counts) > 1 else total**2 * widths
        # Among equally good ways the one with most bins.
        lost = of_lost_edge * (kept[stop - 1] - kept[:stop])
        costs = np.where(is_small, np.inf, best[:stop] + pairs + lost - 1e-9)
        last[stop] = int(np.argmin(costs))
        best[stop] = costs[last[stop]]
    starts = [bins]
    while starts[-1] > 0:
        starts.append(int(last[starts[-1]]))
    return starts[:0:-1]


def merge_starts_of_each(
    counts: Floats, min_cell: int, axis: Axis, asked: Floats, steps: Floats = NO_STEPS
) -> list[Integers]:
    """Return where bins of each group begin after small ones are merged, each group on its own.

    So where one group is small nothing is hidden of the others. As few as possible of the values
    asked for lose their edge, and of the steps between them.
    """
    worth = np.where(np.isin(axis.edges, steps), 1.0, 0.0)
    worth[np.isin(axis.edges, asked)] = worth.sum() + 1
    return [np.array(merge_starts(one[None], min_cell, axis.bounds, worth)) for one in counts]


def without_edge(axis: Axis, asked: Floats, starts: Sequence[Integers]) -> Floats:
    """Return the values asked for that lie inside a bin of a group since small ones were merged."""
    edges = np.array(axis.edges)
    kept = [np.isin(asked, edges[own[1:] - 1]) for own in starts]
    return np.asarray(asked[np.isin(asked, edges) & ~np.all(kept, axis=0)])


class Counts(Sketch):
    """The sums: counts in a table of cells; each row counts in one cell."""

    features_per_row = 1
    are_counts = True

    def prepare(self) -> None:
        self.size = prod(self.shape)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the table."""

    @abstractmethod
    def cells(self, x: Floats) -> Integers:
        """Return the cell of each encoded row, as an index of the flattened table."""

    def features(self, x: Floats) -> Features:
        """Count a row in its cell."""
        return Features(self.cells(x)[:, None], np.ones((len(x), 1)))

    def count(self, totals: Floats) -> float:
        """Return the sum of all counts."""
        return float(totals.sum())

    def table(self, totals: Floats) -> Floats:
        """Return the counts as a table."""
        return totals.reshape(self.shape)


class GroupCounts(Counts):
    """The sums: counts of each group of rows in each bin of the first column."""

    groups: ClassVar[int] = 2

    @property
    def shape(self) -> tuple[int, ...]:
        return self.groups, self.axes[0].bins

    @abstractmethod
    def group(self, x: Floats) -> Integers:
        """Return the group of each encoded row."""

    def cells(self, x: Floats) -> Integers:
        return self.group(x) * self.axes[0].bins + self.axes[0].positions(x[:, 0])

    def groups_of(self, totals: Floats) -> Floats:
        """Return the rows of each group."""
        return np.asarray(self.table(totals).sum(axis=1))

    def merged(self, totals: Floats, min_cell: int) -> tuple[Sketch, Floats]:
        """Merge bins in which a group is small."""
        counts = self.table(totals)
        starts = merge_starts(counts, min_cell, self.axes[0].bounds)
        return self.with_merged_bins(starts), np.add.reduceat(counts, starts, axis=1).ravel()


class AxisCounts(Counts):
    """The sums of a first round that finds edges: counts of one number in fine bins."""

    name = "edges"
    summary = "Counts that find edges."

    def __init__(self, axis: Axis, number: int) -> None:
        super().__init__([axis])
        # The number's position in the encoded row of the statistic that the edges are for.
        self.number = number

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.axes[0].bins,)

    def cells(self, x: Floats) -> Integers:
        return self.axes[0].positions(x[:, self.number])

    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Return the number of rows: a first round has no other value."""
        rows = float(totals.sum())
        return single(rows, rows, rows)


def fine_bins(bins: int) -> int:
    """Return into how many bins a first sum cuts a range, to find the edges of `bins` bins."""
    return min(max(8 * bins, FEWEST_FINE_BINS), MOST_FINE_BINS)


def quantile_edges(axis: Axis, totals: Floats, bins: int) -> tuple[float, ...]:
    """Choose edges of an axis so that bins hold about equally many rows.

    Only integers are compared, so that all sites find the same edges, to the last bit.
    """
    # With noise also negative ones, which add up to nothing.
    counts = [int(count) for count in np.rint(totals)]
    total = sum(counts)
    if total <= 0:
        return axis.edges[:: -(-axis.bins // bins)]
    passed = 0
    chosen: list[float] = []
    for edge, count in zip(axis.edges, counts, strict=False):
        passed += count
        if passed * bins >= (len(chosen) + 1) * total and len(chosen) < bins - 1:
            chosen.append(edge)
    return tuple(chosen)
