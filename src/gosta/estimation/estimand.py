"""What is estimated: a statistic over encoded rows, its exact value, its normalisation and its interval."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from gosta.errors import GostaError, InputError
from gosta.protocols import Protocol
from gosta.runtime import compiler
from gosta.runtime.arrays import Floats
from gosta.statistics import pairs
from gosta.statistics.definition import Statistic, apply_to_rows, as_floats, as_tuple
from gosta.statistics.exact import check_level, final_values, require_finite, row_means, row_sums, without_weights
from gosta.statistics.intervals import (
    Spread,
    centre_values,
    gradients,
    interval_ends,
    spread_of_means,
    with_mean_products,
    with_samples,
)

# Rows up to which compiling the kernel takes longer than it saves: for all pairs, and for one value a row.
PLAIN_PAIRS_ROWS = 64
MAX_PLAIN_ROWS = 512


@dataclass(frozen=True, eq=False)
class ValueFunction:
    """Converts the means that nodes estimate to values of the statistic over n rows."""

    statistic: Statistic  # with the products of row means where an interval is wanted
    n: int
    mean_diagonal: Floats  # mean kernel value of the rows with themselves, one number for each that the kernel returns
    options: Mapping[str, Any]  # of the statistic's `final`

    def values(self, means: Floats) -> Floats:
        """Convert means over all pairs (or of `local`), r × k, to values in the textbook's normalisation, r × p."""
        statistic, n = self.statistic, self.n
        if statistic.normalisation == "U" and statistic.local is None:
            means = without_diagonal(means, self.mean_diagonal, n)
        if statistic.total:
            return means * (n * (n - 1 if statistic.normalisation == "U" else n) / 2)
        return final_values(statistic, means, dict(self.options))

    def gradients(self, means: Floats) -> Floats:
        """Return the derivative of each value with respect to each mean, at each row of means: r × p × k."""
        return gradients(self.values, means)

    def spread(self, means: Floats) -> tuple[Floats, Spread]:
        """Return what each node's interval is about, and its spread, from its kernel means and their products."""
        width = len(self.mean_diagonal)

        def centres(kernel_means: Floats) -> Floats:
            return centre_values(self.statistic, kernel_means, self.n, self.values)

        slopes = gradients(centres, means[:, :width])[:, 0]
        return centres(means[:, :width])[:, 0], spread_of_means(self.statistic, means, slopes, self.n)

    def intervals(
        self, means: Floats, level: float, gossip_error: Floats | float = 0.0
    ) -> tuple[Floats, Floats, Floats]:
        """Return the lower and upper ends of each node's interval, NaN where it has none, and its standard error.

        `gossip_error` is the standard error that the values have besides, in their units.
        """
        centre, spread = self.spread(means)
        wide = spread._replace(error=np.hypot(spread.error, gossip_error))
        return *interval_ends(self.statistic.scale, self.statistic.bounds, centre, wide, level), spread.error


def _column_means(rows: Floats) -> Floats:
    """Return the mean of each column, added pairwise."""
    return np.array([column.mean() for column in rows.T])


def without_diagonal(means: Floats, diagonal: Floats, n: int) -> Floats:
    """Convert means over all pairs to means over pairs of different rows."""
    return (n * means - diagonal) / (n - 1)


@dataclass(frozen=True, eq=False)
class Estimand:
    """A statistic with its options over encoded rows in one place."""

    statistic: Statistic
    x: Floats = field(repr=False)  # encoded rows, n × d
    options: Mapping[str, Any] = field(default_factory=dict)
    level: float | None = None  # confidence level of the nodes' intervals; set it by `with_interval`
    data: str = ""  # name of the data, for messages and titles
    _scatters: dict[bytes, float] = field(default_factory=dict, init=False, repr=False)  # see `scatter`

    def __post_init__(self) -> None:
        self.statistic.require_mean()
        # Compiled loops take a row as a pointer and a length.
        object.__setattr__(self, "x", np.ascontiguousarray(self.x, dtype=np.float64))
        if self.statistic.weights:
            kernel_options = self.statistic.options_by_part(self.options)["kernel"]
            object.__setattr__(self, "statistic", without_weights(self.statistic, self.x, kernel_options))
        if self.level is not None and self.statistic.sample_index is not None and self.statistic.both_first is None:
            made = with_samples(self.statistic, self.width, isinstance(self.example, tuple | list))
            object.__setattr__(self, "statistic", made)
            del self.__dict__["example"]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Estimand) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        content = hashlib.blake2b(self.x.tobytes()).digest()
        return self.statistic, tuple(sorted(self.options.items())), self.level, self.x.shape, content

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.x)

    @cached_property
    def kernel_options(self) -> dict[str, Any]:
        """Options of the kernel, complete with defaults."""
        return self.statistic.options_by_part(self.options)["kernel"]

    @cached_property
    def final_options(self) -> dict[str, Any]:
        """Options of the statistic's `final`."""
        return self.statistic.options_by_part(self.options).get("final", {})

    @property
    def json_options(self) -> dict[str, Any]:
        """Return the options of kernel and `final`, as JSON can hold them: all that a resumed run needs."""
        named = self.kernel_options | self.final_options
        given = {name: named[name] for name in self.options if name in named}
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}

    @property
    def fingerprint(self) -> str:
        """Digest of the functions of the statistic; empty where they depend on something that cannot be hashed."""
        statistic = self.tracked
        moments = None if statistic.moments is None else tuple(statistic.moments)
        return fingerprint_or_empty(statistic.kernel, statistic.local, moments, statistic.final)

    @cached_property
    def example(self) -> Any:
        """Result of the kernel for one pair of rows."""
        return pairs.example(self.statistic, self.x, self.kernel_options)

    @property
    def width(self) -> int:
        """Number of values that the kernel returns."""
        return len(as_tuple(self.example))

    @cached_property
    def tracked(self) -> Statistic:
        """The statistic whose means nodes estimate: with the products of row means where an interval is wanted."""
        return self.statistic if self.level is None else with_mean_products(self.statistic, self.width)

    @property
    def mean_count(self) -> int:
        """Number of means that nodes estimate."""
        local = self.tracked.local
        return self.width if local is None else len(as_tuple(local((1.0,) * self.width)))

    @cached_property
    def mean_bounds(self) -> Floats:
        """Lowest and highest possible value of each mean that nodes estimate; infinite where unknown: means × 2."""
        ranges = self.tracked.mean_ranges or ((-np.inf, np.inf),) * self.mean_count
        if len(ranges) != self.mean_count:
            needed = f"one pair of numbers for each of {self.mean_count} means is needed"
            raise InputError(f"{self.statistic.name}: mean_ranges has {len(ranges)} pairs; {needed}")
        return np.array(ranges)

    def is_valid_row(self, row: Sequence[float]) -> bool:
        """Return whether the statistic's `encode` can have made a row: its class exists, for example."""
        return self.statistic.is_row is None or bool(self.statistic.is_row(row))

    @cached_property
    def row_means(self) -> Floats:
        """Exact mean kernel value of each row with all rows, itself included: n × k."""
        return row_means(row_sums(self.statistic, self.x, self.kernel_options), "V")

    @cached_property
    def own_row_means(self) -> Floats:
        """`row_means`, in plain Python where the rows are few, as they are at most nodes of a large network."""
        if self.n > PLAIN_PAIRS_ROWS:
            return self.row_means
        rows, kernel = self.x.tolist(), self.statistic.kernel
        values = [[as_floats(kernel(a, b, **self.kernel_options)) for b in rows] for a in rows]
        return np.asarray(np.array(values).sum(axis=1) / self.n)

    @cached_property
    def own_mean(self) -> Floats:
        """Exact mean kernel value over all pairs of rows, pairs of a row with itself included: k numbers."""
        return _column_means(self.own_row_means)

    @cached_property
    def diagonal(self) -> Floats:
        """Kernel of each row with itself: n × k."""
        try:
            if self.n > MAX_PLAIN_ROWS:
                return pairs.diagonal(self.statistic, self.x, self.kernel_options)
            kernel, options = self.statistic.kernel, self.kernel_options
            return np.array([as_floats(kernel(row, row, **options)) for row in self.x.tolist()])
        except Exception as error:  # a user's function can raise anything
            reason = str(error) if isinstance(error, GostaError) else f"{type(error).__name__}: {error}"
            raise InputError(
                f"{self.statistic.name}: the kernel of a row with itself fails with {reason}; every node starts with "
                "its own row as visitor, so define the kernel for equal rows"
            ) from None

    @cached_property
    def moment_count(self) -> int:
        """Number of moments that the statistic is a function of."""
        assert self.statistic.moments is not None
        return len(as_tuple(self.statistic.moments.of_row(self.x[0].tolist())))

    def moments_about(self, offset: Floats) -> Floats:
        """Return each row's contribution to the moments about an offset, which is empty where there is none."""
        assert self.statistic.moments is not None
        return apply_to_rows(self.statistic.moments.of_row, self.x - offset if len(offset) else self.x)

    @cached_property
    def mean_row(self) -> Floats:
        """Mean of the rows, about which a node takes moments at first; empty where the statistic needs no offset."""
        has_offset = self.statistic.moments is not None and self.statistic.moments.shifted is not None
        return _column_means(self.x) if has_offset else np.zeros(0)

    @cached_property
    def means(self) -> Floats:
        """Exact values of the means that nodes estimate: of the kernel over all pairs, or of `local` over all rows."""
        local, rows = self.tracked.local, self.row_means
        return _column_means(rows if local is None else apply_to_rows(local, self.row_values(rows)))[None]

    @cached_property
    def value_function(self) -> ValueFunction:
        """Conversion of means to values over these rows."""
        needed = self.tracked.normalisation == "U" and self.tracked.local is None
        diagonal = _column_means(self.diagonal) if needed else np.zeros(self.width)
        return ValueFunction(self.tracked, self.n, diagonal, self.final_options)

    @property
    def value(self) -> Floats:
        """Exact value: p numbers. Raises `NumericalError` where it is undefined."""
        value: Floats = self.value_function.values(self.means)[0]
        require_finite(self.statistic, self.means, value)
        return value

    def row_values(self, means: Floats) -> Floats:
        """Convert row means over all rows to the textbook's normalisation, for each row."""
        return without_diagonal(means, self.diagonal, self.n) if self.tracked.normalisation == "U" else means

    @property
    def row_scale(self) -> tuple[float, Floats]:
        """Factor and offset of `row_values`: the row's mean is multiplied by the first, the second subtracted."""
        if self.tracked.normalisation == "V":
            return 1.0, np.zeros((self.n, self.width))
        return self.n / (self.n - 1), self.diagonal / (self.n - 1)

    def over(self, x: Floats) -> Estimand:
        """Return the same estimand over other rows."""
        return replace(self, x=x)

    def with_interval(self, level: float | None) -> Estimand:
        """Return the estimand with intervals of a confidence level; None: without."""
        if level is None:
            return self
        checked = replace(self, level=check_level(self.statistic, level, self.x))
        if checked.value_function.values(checked.means).shape[1] > 1:
            raise InputError(f"{self.statistic.name} has several values; an interval is defined for one")
        return checked

    def pooled_interval(self) -> tuple[float, float]:
        """Return the interval computed from all rows in one place."""
        assert self.level is not None
        low, high, _ = self.value_function.intervals(self.means, self.level)
        return float(low[0]), float(high[0])

    def scatter(self, slopes: Floats) -> float:
        """Return the mean over all pairs of the squared deviation of kernel values times slopes; cached."""
        key = slopes.tobytes()
        if key not in self._scatters:
            centre = float(self.means[0] @ slopes)
            total = pairs.sum_of_squares(self.statistic, self.x, self.kernel_options, slopes, centre)
            self._scatters[key] = total / self.n**2
        return self._scatters[key]


def kernel_ranges(estimand: Estimand) -> Floats:
    """Return the lowest and highest possible mean of each kernel value; infinite where unknown: values × 2."""
    statistic, unknown = estimand.statistic, ((-np.inf, np.inf),) * estimand.width
    return np.array(statistic.mean_ranges if statistic.mean_ranges and statistic.local is None else unknown)


def payload_bounds(estimand: Estimand, protocol: Protocol) -> Floats:
    """Return the lowest and highest value of each number that a node sends as its payload: numbers × 2."""
    if protocol.averages_moments:
        numbers = estimand.moment_count * protocol.payload_size + len(estimand.mean_row)
        return np.array([(-np.inf, np.inf)] * numbers)
    low, high = estimand.mean_bounds.T
    is_bounded = np.isfinite(high - low) & np.isfinite(protocol.overshoot)
    with np.errstate(invalid="ignore"):  # infinite ranges
        margin = np.where(is_bounded, protocol.overshoot * (high - low), np.inf)
    # Nodes start from zero.
    bounds = np.column_stack([np.minimum(low, 0.0) - margin, np.maximum(high, 0.0) + margin])
    return np.repeat(bounds, protocol.payload_size, axis=0)


def fingerprint_or_empty(*parts: Any) -> str:
    """Return a digest of functions and numbers; empty where they depend on something that cannot be hashed."""
    try:
        return compiler.fingerprint(*parts)[:16]
    except compiler.UnstableContentError:
        return ""


def norms(values: Floats) -> Floats:
    """Return the Euclidean norm of the last axis."""
    return np.abs(values[..., 0]) if values.shape[-1] == 1 else np.sqrt((values**2).sum(axis=-1))


def scale_of(target: Floats) -> float:
    """Return what relative errors are relative to: the norm of the exact value, or its mean over the nodes' own."""
    return float(norms(target).mean())
