"""The definition of a sketch: which numbers of a row are summed over all rows, and the statistic of their totals.

Every row has a few features, each a number from 0 to 1 at a position of the vector of sums. Only the vector's total
over all rows is known in the end. The statistic follows from it up to a bracket: two numbers between which the value
over the rows themselves certainly lies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta.runtime.arrays import Floats

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Axis:
    """The bins of one column: bin k holds values from edge k - 1 up to, and without, edge k."""

    column: str  # its name, in messages
    low: float  # the declared range: values beyond it count as its ends
    high: float
    edges: tuple[float, ...]  # between the bins, increasing, within the range; one less than there are bins

    @property
    def bins(self) -> int:
        return len(self.edges) + 1

    def positions(self, values: Floats) -> Integers:
        """Return the bin of each value."""
        return np.searchsorted(np.array(self.edges), values, side="right")

    def scaled(self, values: Floats) -> Floats:
        """Return values as shares of the range, from 0 to 1."""
        return np.clip((values - self.low) / (self.high - self.low), 0.0, 1.0)


class Features(NamedTuple):
    """The features of rows that are not zero: so many for each row."""

    positions: Integers  # in the vector of sums: n × features_per_row
    values: Floats  # from 0 to 1: n × features_per_row


class Result(NamedTuple):
    """The value or values of a statistic that follow from sums."""

    value: Floats
    low: Floats  # the bracket: where the value over the rows themselves lies,
    high: Floats
    is_certified: bool = True  # certainly; or only with high probability, since the sketch itself is random
    labels: tuple[str, ...] = ()  # of several values, one each


class Sketch(ABC):
    """One statistic, for given bins and options, as a function of sums."""

    name: ClassVar[str]  # of the statistic; a sketch that has no pairwise statistic has a name of its own
    summary: ClassVar[str]  # one line on what it measures

    size: int  # numbers in the vector of sums
    features_per_row: int  # that are not zero, at most
    are_counts: bool = False  # whether all features are 0 or 1
    axes: tuple[Axis, ...] = ()

    @abstractmethod
    def features(self, x: Floats) -> Features:
        """Return the features of encoded rows, n × d."""

    @abstractmethod
    def count(self, totals: Floats) -> float:
        """Return the number of rows."""

    @abstractmethod
    def result(self, totals: Floats) -> Result:
        """Return the statistic of the features' totals over all rows; NaN where it is not defined."""


SKETCHES: dict[str, type[Sketch]] = {}
Options = Mapping[str, Any]
Names = Sequence[str]
