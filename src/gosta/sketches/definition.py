"""The definition of a sketch: numbers of rows that are summed, and the statistic of their totals.

Every row has a few features, each a number from 0 to 1 at a position of the vector of sums. Only
the vector's total over all rows is known in the end. The statistic follows from it up to a bracket:
two numbers between which the value over the rows themselves certainly lies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import InputError, shorten
from gosta.measures.definition import MEASURES
from gosta.runtime.arrays import Booleans, Floats, Integers
from gosta.statistics.definition import STATISTICS, Encoder, Options
from gosta.statistics.names import unknown_statistic

# More rows than any network has; larger totals are not sums of features. Sums with a wrong mask are
# random numbers of 64 bits, 24 of them after the point: one in 256 is not larger than this.
MOST_ROWS = 2.0**32
# Counts of at least this many standard deviations of the noise are certainly not noise alone.
CLEAR = 4.0
# Of a share, or of a difference of two: more than is lost to the rounding of floats.
SHARE_ERROR = 1e-15


@dataclass(frozen=True)
class Axis:
    """The bins of one column: bin k holds values from edge k - 1 up to, and without, edge k."""

    column: str  # its name, in messages
    low: float  # the declared range: values beyond it count as its ends
    high: float
    # Between the bins, increasing, within the range; one less than there are bins.
    edges: tuple[float, ...] = ()
    # Whether bins cut a range anywhere; declared edges can separate values that repeat.
    is_smooth: bool = False

    @property
    def bins(self) -> int:
        return len(self.edges) + 1

    @property
    def bounds(self) -> Floats:
        """Return where bins begin and end: low, the edges, high."""
        return np.array([self.low, *self.edges, self.high])

    @property
    def outer_bounds(self) -> Floats:
        """Return the bounds with a bin for values below the range, and one for those above."""
        return np.concatenate([[self.low], self.bounds, [self.high]])

    def positions(self, values: Floats) -> Integers:
        """Return the bin of each value."""
        return np.searchsorted(np.array(self.edges), values, side="right")

    def scaled(self, values: Floats) -> Floats:
        """Return values as shares of the range, from 0 to 1."""
        return np.clip((values - self.low) / (self.high - self.low), 0.0, 1.0)

    def merged(self, starts: Sequence[int]) -> Axis:
        """Return the axis whose bins begin at these bins of this one; the first is 0."""
        edges = tuple(self.edges[start - 1] for start in starts[1:])
        # Where most bins were merged, what is left of the shape of the distribution is not smooth.
        is_smooth = self.is_smooth and 2 * len(starts) > self.bins
        return Axis(self.column, self.low, self.high, edges, is_smooth)


class Features(NamedTuple):
    """The features of rows that can differ from zero: the same number for each row."""

    positions: Integers  # in the vector of sums: n × features_per_row
    values: Floats  # from 0 to 1: n × features_per_row; 0 where a row has fewer


class Result(NamedTuple):
    """The value or values of a statistic that follow from sums."""

    value: Floats
    low: Floats  # the bracket: the value over the rows themselves is between low
    high: Floats  # and high
    # Whether it certainly is; otherwise it is with high probability, since the sketch is random.
    is_certified: bool = True
    labels: tuple[str, ...] = ()  # for each of several values what it is
    at: Floats | None = None  # of a curve: the place of each value on the horizontal axis
    counts: Floats | None = None  # of a curve: rows that each value rests on, where they are shown


class Tables(NamedTuple):
    """Totals of one statistic whose results are shown beside each other."""

    totals: Sequence[Floats]  # first those over all rows
    # Places of totals that add up to others, after the place of these.
    groups: Sequence[tuple[int, Sequence[int]]]
    shown: int  # of the totals, the first ones; others are of strata that are hidden
    columns: Collection[str]  # of strata
    hidden: Collection[str]  # names of strata, such as "sex = f"


def single(value: float, low: float, high: float, is_certified: bool = True) -> Result:
    """Return the result of one value and its bracket."""
    if not np.isfinite([value, low]).all():
        value = low = high = np.nan
    return Result(np.array([value]), np.array([low]), np.array([high]), is_certified)


def undefined(labels: tuple[str, ...] = ("",)) -> Result:
    """Return the result where there is no value."""
    none = np.full(len(labels), np.nan)
    return Result(none, none, none)


def in_order(values: Floats, trend: int) -> Floats:
    """Return increasing values (trend 1), decreasing ones (-1) or the same (0), near these."""
    if trend == 0:
        return values
    upper = np.maximum.accumulate(trend * values, axis=-1)
    lower = np.minimum.accumulate(trend * values[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(trend * (upper + lower) / 2)


class Sketch(ABC):
    """One statistic, for given bins and options, as a function of sums.

    The encoded row has one number for each column, in the order of `roles`, then the class if there
    are classes.
    """

    # That of the statistic or measure.
    name: ClassVar[str]
    summary: ClassVar[str]  # one line on what it measures
    # From data to rows of numbers; the encoder of the statistic or measure.
    encode: ClassVar[Encoder]
    # Sketches with the same word here (and axes, options) share their sums.
    sums: ClassVar[str] = ""
    roles: ClassVar[tuple[str, ...]] = ()  # of the columns that it takes; none: any number
    repeats_role: ClassVar[bool] = False  # whether there can be more columns of the last role
    has_classes: ClassVar[bool] = False  # whether a label is needed
    # Whether the value depends on values, not on their order only.
    needs_range: ClassVar[bool] = False
    has_missing: ClassVar[bool] = False  # whether rows with missing values count, encoded as NaN
    is_binned: ClassVar[bool] = True
    shows_bins: ClassVar[bool] = False  # whether values of a result are those of bins: a curve
    finds_edges: ClassVar[bool] = True  # whether edges can be found by a first sum
    defaults: ClassVar[dict[str, Any]] = {}  # of its options, beside those of `encode`
    bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)  # of the value in a population
    trend: ClassVar[int] = 0  # of the values of a curve: 1 if they increase, -1 if they decrease

    size: int  # numbers in the vector of sums
    features_per_row: int  # that are not zero, at most
    are_counts: bool = False  # whether all features are 0 or 1
    noise: float = 0.0  # the variance that each total has by noise

    def __init__(
        self, axes: Sequence[Axis], classes: int = 2, options: Options | None = None
    ) -> None:
        """Make the sketch for the axis of each column (without edges where it is not binned)."""
        self.axes, self.classes = tuple(axes), classes
        given = {name: value for name, value in (options or {}).items() if name in self.defaults}
        self.options = {**self.defaults, **given}
        self.prepare()

    def prepare(self) -> None:  # noqa: B027
        """Check the options, and compute what follows from axes, classes and options."""

    @classmethod
    def reads_label(cls, options: Options) -> bool:
        """Return whether rows cannot be encoded without a label, for these options of `encode`."""
        return cls.has_classes

    @classmethod
    def class_count(cls, options: Options, classes: Sequence[Any]) -> int:
        """Return how many classes or clusters encoded rows can have."""
        return 2

    @classmethod
    def fixed_options(cls, options: dict[str, Any], data: Data | None) -> dict[str, Any]:
        """Return options of `encode` that do not depend on rows; an error if rows are needed."""
        return options

    @classmethod
    def roles_of(cls, names: Sequence[str]) -> tuple[str, ...]:
        """Return the role of each column."""
        more = len(names) - len(cls.roles) if cls.repeats_role else 0
        return (*cls.roles, *cls.roles[-1:] * more) or tuple(names)

    @classmethod
    def cuts(cls, options: Options) -> Mapping[str, Floats]:
        """Return for roles of columns the values at which their bins are to have an edge."""
        return {}

    @classmethod
    def has_axis(cls, role: str, column: str, options: Options) -> bool:
        """Return whether a column has a range, for these options of `encode`."""
        return role != "event" and (cls.needs_range or cls.is_binned)

    @property
    def width(self) -> int:
        """Return how many numbers an encoded row has."""
        return len(self.axes) + self.has_classes

    @property
    def key(self) -> tuple[object, ...]:
        """Return what the sums depend on, beside the encoded rows."""
        return self.sums or self.name, self.axes, self.classes

    @property
    def squared_change(self) -> float:
        """Return the squared length of the most by which replacing a row changes the sums."""
        return 2.0 * self.features_per_row

    @abstractmethod
    def features(self, x: Floats) -> Features:
        """Return the features of encoded rows, n × width."""

    @abstractmethod
    def count(self, totals: Floats) -> float:
        """Return the number of rows."""

    def clipped(self, totals: Floats) -> float:
        """Return the number of rows with a value beyond the range, where that matters."""
        return 0.0

    @abstractmethod
    def result(self, totals: Floats, rounding: float = 0.0) -> Result:
        """Return the statistic of the features' totals over all rows; NaN where it is not defined.

        `rounding` is the most by which a feature of a row was changed by rounding. Without noise
        the value is within the bracket, or is moved there. Totals with noise, some of which can be
        negative, give a value with little bias (no total is set to 0 for being negative), or NaN.
        """

    def with_noise(self, totals: Floats, noise: float) -> Sketch:
        """Return the sketch for totals like these, each with noise of this variance."""
        made = copy(self)
        made.noise = noise
        return made

    def finished(self, found: Result, errors: Floats) -> Result:
        """Return the result to show of totals with noise, from `found` and its errors by noise."""
        return found

    def gradient(self, totals: Floats) -> Floats | None:
        """Return the derivative of the value by each total; None: it has no interval."""
        return None

    def sampling_variance(self, totals: Floats, gradient: Floats) -> float:
        """Return the variance of the value over samples of rows; here for one count a row."""
        mean = totals @ gradient / max(totals.sum(), 1.0)
        return float(totals @ (gradient - mean) ** 2)

    def sampling_errors(self, totals: Floats, values: Floats) -> tuple[Floats, Floats] | None:
        """Return the standard errors of several values over samples of rows, where they are known.

        With them come the numbers of rows that each value rests on.
        """
        return None

    def intervals(self, totals: Floats, level: float) -> tuple[Floats, Floats, Floats] | None:
        """Return ends of intervals and standard errors by a way of their own; None: by errors."""
        return None

    def centre(self, totals: Floats, value: Floats) -> Floats:
        """Return what intervals are about: the value, or what replaces it to have less bias."""
        return value

    def degrees(self, totals: Floats, gradient: Floats) -> float:
        """Return the degrees of freedom of the sampling variance."""
        return max(self.count(totals) - 1, 1.0)

    def groups_of(self, totals: Floats) -> Floats:
        """Return the number of rows of each group (class, cluster) that is counted on its own."""
        return np.array([self.count(totals)])

    def beside(self, tables: Tables, min_cell: int) -> Sequence[Sketch]:
        """Return the sketch for each of the totals that are shown beside each other."""
        return [self] * tables.shown

    def merged(self, totals: Floats, min_cell: int) -> tuple[Sketch, Floats]:
        """Return a sketch and its totals in whose bins no group is small, if none is in all."""
        return self, totals

    @property
    def without_edge(self) -> Floats:
        """Return the points asked for that lie inside a bin since small ones were merged."""
        return np.zeros(0)

    def is_plausible(self, totals: Floats, tolerance: float) -> bool:
        """Return whether totals can be sums of features, with errors of at most `tolerance`."""
        if self.are_counts and tolerance == 0 and (totals % 1 != 0).any():
            return False
        return bool(
            np.isfinite(totals).all()
            and totals.min() >= -tolerance
            and totals.max() <= MOST_ROWS + tolerance
        )

    @property
    def points(self) -> Options:
        """Return the options of the measure that say at which points a curve is shown."""
        return {}

    def scaled(self, x: Floats) -> Floats:
        """Return the columns of encoded rows as shares of their ranges."""
        return np.column_stack([axis.scaled(x[:, k]) for k, axis in enumerate(self.axes)])

    def is_clipped(self, x: Floats) -> Booleans:
        """Return which encoded rows have a value beyond the range of its column."""
        beyond = [(x[:, k] < a.low) | (x[:, k] > a.high) for k, a in enumerate(self.axes)]
        return np.asarray(np.any(beyond, axis=0))

    def with_merged_bins(self, starts: Sequence[int]) -> Sketch:
        """Return the sketch whose bins of the first column begin at these bins of this one."""
        axes = [self.axes[0].merged(starts), *self.axes[1:]]
        return type(self)(axes, self.classes, self.options)


SKETCHES: dict[str, type[Sketch]] = {}
AnySketch = TypeVar("AnySketch", bound=type[Sketch])
# Why statistics that have no sketch have none, and what to do.
WITHOUT_SKETCH: Mapping[str, str] = {
    "within-cluster-scatter": "use squared-scatter, the mean squared distance",
    "distance-correlation": "use kendall-tau or spearman-rho",
    "multiclass-auc": "use auc with positive=... for each class",
    "somers-d": "use kendall-tau",
    "goodman-kruskal-gamma": "use kendall-tau",
    "theil-sen": "use kendall-tau",
    "mann-whitney-z": "use auc with an interval",
    "kendall-z": "use kendall-tau with an interval",
    "trimmed-mean": "use quantiles",
    "hodges-lehmann": "use quantiles",
    "hodges-lehmann-shift": "use auc",
    "ranks": "use quantiles, among which a site finds its own rows",
    "winsorised-mean": "use quantiles",
    "survival-calibration-intercept": "use survival-observed-expected-ratio",
    "survival-calibration-slope": "use survival-calibration",
    "survival-smooth-calibration": "use survival-calibration",
    "survival-calibration-error": "use survival-calibration",
}


def sketch(name: str) -> Callable[[AnySketch], AnySketch]:
    """Register a sketch by its name; the first sentence of its docstring is its summary."""

    def register(made: AnySketch) -> AnySketch:
        made.name = name
        made.summary = " ".join((made.__doc__ or "").partition("\n\n")[0].split())
        if name in MEASURES:
            made.encode = staticmethod(MEASURES[name].encode)
            made.has_missing = MEASURES[name].has_missing
            made.bounds = MEASURES[name].bounds
        SKETCHES[name] = made
        return made

    return register


def find_sketch(name: str) -> type[Sketch]:
    """Return the sketch of a statistic; an error that says what to do if there is none."""
    if name in SKETCHES:
        return SKETCHES[name]
    if "@" in name:
        weights = name.partition("@")[2]
        raise InputError(
            f"statistic = {name!r}: private sums have no row weights",
            remedy=f"leave out @{weights}",
        )
    known = shorten(list(SKETCHES), 30)
    is_file = name.endswith(".py") or ".py:" in name
    if not (name in WITHOUT_SKETCH or name in STATISTICS or is_file):
        raise unknown_statistic(name, SKETCHES)
    remedy = WITHOUT_SKETCH.get(name, f"those with one: {known}")
    raise InputError(
        f"statistic = {name!r} is not a function of sums, so there is no private sum of it",
        remedy=remedy,
    )
