"""What is estimated: a statistic over encoded rows, its exact value and its interval."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from gosta.errors import GostaError, InputError
from gosta.estimation.carried import MAX_COMPARED
from gosta.estimation.growing_tree import MAX_DISTANCE, MAX_PRIORITY
from gosta.protocols import Protocol
from gosta.runtime import compiler
from gosta.runtime.arrays import Booleans, Floats
from gosta.statistics import pairs
from gosta.statistics.definition import Statistic, apply_to_rows, as_floats, as_tuple
from gosta.statistics.exact import (
    check_level,
    final_values,
    require_finite,
    row_means,
    row_sums,
    without_weights,
)
from gosta.statistics.intervals import (
    Spread,
    centre_values,
    gradients,
    interval_ends,
    product_degree,
    spread_of_means,
    with_mean_products,
    with_samples,
)
from gosta.statistics.joint import (
    JointStatistic,
    Member,
    Part,
    join,
    place_numbers,
    why_no_interval,
    with_locals,
)
from gosta.statistics.objectives import Objective, ObjectivePairs, require_positive

Row = Sequence[float]
# Rows up to which compiling the kernel takes longer than it saves: for all pairs, and for one value
# a row.
PLAIN_PAIRS_ROWS = 64
MAX_PLAIN_ROWS = 512
ROUNDING = 1e-9  # share of the range by which a carried mean may be beyond it


@dataclass(frozen=True, eq=False)
class ValueFunction:
    """Converts the means that nodes estimate over n rows to values of one or several statistics."""

    statistic: Statistic  # with the products of row means where an interval is wanted
    n: int
    # Mean kernel value of the rows with themselves, one number for each that the kernel returns.
    mean_diagonal: Floats
    options: Mapping[str, Any]  # of the statistic's `final`

    def _parts(self) -> Iterator[tuple[ValueFunction, Part]]:
        """Yield the function of each of several statistics, and its place."""
        assert isinstance(self.statistic, JointStatistic)
        for part in self.statistic.parts:
            final_options = part.statistic.options_by_part(
                part.statistic.own_options(self.options)
            ).get("final", {})
            yield (
                ValueFunction(
                    part.statistic, self.n, self.mean_diagonal[part.kernel], final_options
                ),
                part,
            )

    def values(self, means: Floats) -> Floats:
        """Convert means over all pairs (or of `local`), r × k, to values, r × p.

        Values have the textbook's normalisation.
        """
        statistic, n = self.statistic, self.n
        if isinstance(statistic, JointStatistic):
            return np.hstack(
                [function.values(means[:, part.means]) for function, part in self._parts()]
            )
        if statistic.normalisation == "U" and statistic.local is None:
            means = without_diagonal(means, self.mean_diagonal, n)
        if statistic.total:
            return means * (n * (n - 1 if statistic.normalisation == "U" else n) / 2)
        return final_values(statistic, means, self.options, n)

    def gradients(self, means: Floats) -> Floats:
        """Return the derivatives of values by means, at each row of means: r × p × k."""
        return gradients(self.values, means)

    def spread(self, means: Floats) -> tuple[Floats, Spread]:
        """Return the centre of each node's interval and its spread.

        They follow from its kernel means and their products.
        """
        width = len(self.mean_diagonal)

        def centres(kernel_means: Floats) -> Floats:
            return centre_values(self.statistic, kernel_means, self.n, self.values)

        # If it was added, as the last one, the value does not depend on it.
        both = self.statistic.both_first
        slopes = gradients(centres, means[:, :width], width - 1 if both == width - 1 else None)[
            :, 0
        ]
        return centres(means[:, :width])[:, 0], spread_of_means(
            self.statistic, means, slopes, self.n
        )

    def intervals(
        self, means: Floats, level: float, gossip_error: Floats | float = 0.0
    ) -> tuple[Floats, Floats, Floats]:
        """Return the ends of each node's intervals and their standard errors, each r × p.

        They are NaN where there is no interval.

        `gossip_error` is the standard error that the values have besides, in their units.
        """
        statistic = self.statistic
        if not isinstance(statistic, JointStatistic):
            centre, spread = self.spread(means)
            wide = spread._replace(error=np.hypot(spread.error, np.ravel(gossip_error)))
            low, high = interval_ends(statistic.scale, statistic.bounds, centre, wide, level)
            return low[:, None], high[:, None], spread.error[:, None]
        results = np.full((3, len(means), statistic.parts[-1].values.stop), np.nan)
        gossip = np.broadcast_to(gossip_error, results.shape[1:])
        for function, part in self._parts():
            if not part.no_interval:
                results[:, :, part.values] = function.intervals(
                    means[:, part.means], level, gossip[:, part.values]
                )
        return results[0], results[1], results[2]


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
    # Confidence level of the nodes' intervals; set it by `with_interval`.
    level: float | None = None
    data: str = ""  # name of the data, for messages and titles
    # Results of `scatter`.
    _scatters: dict[bytes, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.statistic.require_mean()
        # Compiled loops take a row as a pointer and a length.
        object.__setattr__(self, "x", np.ascontiguousarray(self.x, dtype=np.float64))
        if self.statistic.weights:
            kernel_options = self.statistic.options_by_part(self.options)["kernel"]
            object.__setattr__(
                self, "statistic", without_weights(self.statistic, self.x, kernel_options)
            )
        if self.level is None:
            return
        if isinstance(self.statistic, JointStatistic):
            made: Statistic = _with_samples_of_parts(self)
        elif self.statistic.sample_index is not None and self.statistic.both_first is None:
            made = with_samples(self.statistic, self.width, self.returns_tuple)
        else:
            return
        object.__setattr__(self, "statistic", made)
        for name in ("example", "parts"):
            self.__dict__.pop(name, None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Estimand) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        content = hashlib.blake2b(self.x.tobytes()).digest()
        return (
            self.statistic,
            tuple(sorted(self.options.items())),
            self.level,
            self.x.shape,
            content,
        )

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
        """Return the options of kernel and `final` as JSON can hold them."""
        named = self.kernel_options | self.final_options
        options = {name: named[name] for name in self.options if name in named}
        return {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in options.items()
        }

    @property
    def fingerprint(self) -> str:
        """Digest of the functions of the statistic.

        It is empty where they depend on something that cannot be hashed.
        """
        functions: list[Any] = []
        for estimand in self.parts:
            statistic = estimand.tracked
            moments = None if statistic.moments is None else tuple(statistic.moments)
            functions += [statistic.kernel, statistic.local, moments, statistic.final]
        return fingerprint_or_empty(*functions)

    @cached_property
    def parts(self) -> tuple[Estimand, ...]:
        """The estimand of each of several statistics, over its own numbers of the rows.

        For one statistic, it is the estimand itself.
        """
        if not isinstance(self.statistic, JointStatistic):
            return (self,)
        return tuple(
            Estimand(
                part.statistic,
                self.x[:, part.numbers],
                part.statistic.own_options(self.options),
                None if part.no_interval else self.level,
                self.data,
            )
            for part in self.statistic.parts
        )

    @property
    def value_places(self) -> list[slice]:
        """Which of the values are those of each statistic."""
        statistic = self.statistic
        return (
            [part.values for part in statistic.parts]
            if isinstance(statistic, JointStatistic)
            else [slice(None)]
        )

    @property
    def value_names(self) -> list[str]:
        """The name of each value, where there are several statistics."""
        return self.statistic.value_names if isinstance(self.statistic, JointStatistic) else []

    @property
    def no_intervals(self) -> tuple[str, ...]:
        """Why nodes can compute no interval, for each of several statistics.

        The text is empty where they can.
        """
        statistic = self.statistic
        return (
            tuple(part.no_interval for part in statistic.parts)
            if isinstance(statistic, JointStatistic)
            else ()
        )

    @property
    def row_widths(self) -> tuple[int, ...]:
        """How many numbers of a row each encoding has: see `gosta.statistics.joint`."""
        if not isinstance(self.statistic, JointStatistic):
            return (self.x.shape[1],)
        return tuple(
            {
                part.numbers.start: part.numbers.stop - part.numbers.start
                for part in self.statistic.parts
            }.values()
        )

    @property
    def returns_tuple(self) -> bool:
        """Whether the kernel returns a tuple, not a number."""
        return isinstance(self.example, tuple | list)

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
        """The statistic whose means nodes estimate.

        Where an interval is wanted, it has the products of row means besides.
        """
        if isinstance(self.statistic, JointStatistic):
            return with_locals(self.statistic, [part.tracked for part in self.parts])
        return (
            self.statistic if self.level is None else with_mean_products(self.statistic, self.width)
        )

    @property
    def mean_count(self) -> int:
        """Number of means that nodes estimate."""
        local = self.tracked.local
        return self.width if local is None else len(as_tuple(local((1.0,) * self.width)))

    @property
    def mean_degree(self) -> int:
        """How many kernel values are multiplied at most in a mean that nodes estimate."""
        return max(
            2 if part.level is None else product_degree(part.statistic, part.width)
            for part in self.parts
        )

    @cached_property
    def mean_bounds(self) -> Floats:
        """Lowest and highest possible value of each mean that nodes estimate: means × 2.

        They are infinite where unknown.
        """
        if len(self.parts) > 1:
            return np.vstack([part.mean_bounds for part in self.parts])
        ranges = self.tracked.mean_ranges or ((-np.inf, np.inf),) * self.mean_count
        if len(ranges) != self.mean_count:
            needed = f"one pair of numbers for each of {self.mean_count} means is needed"
            raise InputError(
                f"{self.statistic.name}: mean_ranges has {len(ranges)} pairs; {needed}"
            )
        return np.array(ranges)

    def is_valid_row(self, row: Sequence[float]) -> bool:
        """Return whether the statistic's `encode` can have made a row.

        For example, its class must exist.
        """
        if isinstance(self.statistic, JointStatistic):
            pairs_of_parts = zip(self.parts, self.statistic.parts, strict=True)
            return all(
                estimand.is_valid_row(row[part.numbers]) for estimand, part in pairs_of_parts
            )
        return self.statistic.is_row is None or bool(self.statistic.is_row(row))

    @cached_property
    def row_means(self) -> Floats:
        """Exact mean kernel value of each row with all rows, itself included: n × k."""
        if len(self.parts) > 1:
            return np.hstack([part.row_means for part in self.parts])
        return row_means(row_sums(self.statistic, self.x, self.kernel_options), "V")

    @cached_property
    def own_row_means(self) -> Floats:
        """Exact mean kernel value of each row with all rows, as `row_means`.

        It is computed in plain Python where the rows are few, as they are at most nodes of a large
        network.
        """
        if self.n > PLAIN_PAIRS_ROWS:
            return self.row_means
        rows, kernel = self.x.tolist(), self.statistic.kernel
        values = [[as_floats(kernel(a, b, **self.kernel_options)) for b in rows] for a in rows]
        return np.asarray(np.array(values).sum(axis=1) / self.n)

    @cached_property
    def own_mean(self) -> Floats:
        """Exact mean kernel value over all pairs of rows, also of a row with itself: k numbers."""
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
            reason = (
                str(error) if isinstance(error, GostaError) else f"{type(error).__name__}: {error}"
            )
            raise InputError(
                f"{self.statistic.name}: the kernel of a row with itself fails with {reason}; "
                "every node starts with its own row as visitor, so define the kernel for equal rows"
            ) from None

    @cached_property
    def moment_count(self) -> int:
        """Number of moments that the statistic is a function of."""
        assert self.statistic.moments is not None
        return len(as_tuple(self.statistic.moments.of_row(self.x[0].tolist())))

    def moments_about(self, offset: Floats) -> Floats:
        """Return each row's contribution to the moments about an offset; empty: about 0."""
        assert self.statistic.moments is not None
        return apply_to_rows(
            self.statistic.moments.of_row, self.x - offset if len(offset) else self.x
        )

    @cached_property
    def mean_row(self) -> Floats:
        """Mean of the rows, about which a node takes moments at first.

        It is empty where the statistic needs no offset.
        """
        has_offset = (
            self.statistic.moments is not None and self.statistic.moments.shifted is not None
        )
        return _column_means(self.x) if has_offset else np.zeros(0)

    @cached_property
    def means(self) -> Floats:
        """Exact values of the means that nodes estimate.

        They are means of the kernel over all pairs, or of `local` over all rows.
        """
        local, rows = self.tracked.local, self.row_means
        return _column_means(
            rows if local is None else apply_to_rows(local, self.row_values(rows))
        )[None]

    @cached_property
    def value_function(self) -> ValueFunction:
        """Conversion of means to values over these rows."""
        needed = self.leaves_out_diagonal.any() and self.tracked.local is None
        diagonal = _column_means(self.diagonal) if needed else np.zeros(self.width)
        return ValueFunction(self.tracked, self.n, diagonal, self.final_options)

    @property
    def value(self) -> Floats:
        """Exact value: p numbers. Raises `NumericalError` where it is undefined."""
        value: Floats = self.value_function.values(self.means)[0]
        require_finite(self.statistic, self.means, value)
        return value

    @cached_property
    def leaves_out_diagonal(self) -> Booleans:
        """Which kernel values are averaged over pairs of different rows: normalisation "U"."""
        return np.concatenate(
            [np.full(part.width, part.statistic.normalisation == "U") for part in self.parts]
        )

    def row_values(self, means: Floats) -> Floats:
        """Convert row means over all rows to the textbook's normalisation, for each row."""
        if not self.leaves_out_diagonal.any():
            return means
        return np.where(
            self.leaves_out_diagonal, without_diagonal(means, self.diagonal, self.n), means
        )

    def row_scale(self, n: int) -> tuple[Floats, Floats]:
        """Return factors and offsets of `row_values` over n rows.

        The row values are a row's means times the first, less the second.
        """
        is_changed = self.leaves_out_diagonal & (n > 1)
        scale = np.where(is_changed, n / max(1, n - 1), 1.0)[None]
        return scale, np.where(is_changed, self.diagonal / max(1, n - 1), 0.0)

    def over(self, x: Floats) -> Estimand:
        """Return the same estimand over other rows."""
        return replace(self, x=x)

    def with_interval(self, level: float | None) -> Estimand:
        """Return the estimand with intervals of a confidence level; None: without."""
        if level is None:
            return self
        if isinstance(self.statistic, JointStatistic):
            able = [
                estimand
                for estimand, part in zip(self.parts, self.statistic.parts, strict=True)
                if not part.no_interval
            ]
            if not able:
                raise InputError("; ".join(part.no_interval for part in self.statistic.parts))
            checked = [estimand.with_interval(level) for estimand in able]
            return replace(self, level=checked[0].level)
        made = replace(self, level=check_level(self.statistic, level, self.x))
        if made.value_function.values(made.means).shape[1] > 1:
            raise InputError(
                f"{self.statistic.name} has several values; an interval is defined for one"
            )
        return made

    def pooled_intervals(self) -> list[tuple[float, float]]:
        """Return the interval of each value computed from all rows in one place.

        Its ends are NaN where there is none.
        """
        assert self.level is not None
        low, high, _ = self.value_function.intervals(self.means, self.level)
        return list(zip(low[0].tolist(), high[0].tolist(), strict=True))

    def scatter(self, slopes: Floats) -> float:
        """Return the mean over all pairs of the squared deviation of kernel values times slopes.

        Results are cached.
        """
        key = slopes.tobytes()
        if key not in self._scatters:
            centre = float(self.means[0] @ slopes)
            total = pairs.sum_of_squares(
                self.statistic, self.x, self.kernel_options, slopes, centre
            )
            self._scatters[key] = total / self.n**2
        return self._scatters[key]


@dataclass(frozen=True, eq=False)
class ObjectiveValues(ValueFunction):
    """Converts parameters of nodes to the objective there."""

    pairs: ObjectivePairs

    def values(self, means: Floats) -> Floats:
        """Return the objective at several points: points × 1."""
        return self.pairs.values(means)[:, None]


class ObjectiveEstimand(Estimand):
    """An objective over encoded rows: nodes have a state for each parameter."""

    @property
    def objective(self) -> Objective:
        """The objective."""
        assert isinstance(self.statistic, Objective)
        return self.statistic

    @property
    def penalty(self) -> float:
        """Factor of half the squared length of the parameters."""
        return require_positive("penalty", self.final_options["penalty"])

    @property
    def pace(self) -> float:
        """Factor of the steps of protocols: the option by a usual curvature of the loss."""
        factor = require_positive("pace", self.final_options["pace"])
        return factor / (self.objective.loss.curvature * self.objective.pairs.size)

    @property
    def mean_count(self) -> int:
        """Number of parameters."""
        return self.objective.pairs.count(self.x.shape[1] - 1)

    @property
    def fingerprint(self) -> str:
        """Digest of the functions that nodes compute."""
        return fingerprint_or_empty(self.objective.loss.slope, self.objective.pairs.feature)

    @cached_property
    def pairs(self) -> ObjectivePairs:
        """The objective over all pairs of rows."""
        return ObjectivePairs(self.objective, self.x, self.penalty)

    @cached_property
    def means(self) -> Floats:
        """Parameters at which the objective is least."""
        return self.pairs.minimum[None]

    @cached_property
    def value_function(self) -> ValueFunction:
        """Conversion of parameters to the objective over these rows."""
        return ObjectiveValues(self.statistic, self.n, np.zeros(1), {}, self.pairs)

    def gradient(self, own: Row, others: Sequence[Row], point: Sequence[float]) -> list[float]:
        """Return the summed gradient of the loss at a point, of a row with each of others."""
        feature, slope = self.objective.pairs.feature, self.objective.loss.slope
        total = [0.0] * len(point)
        for other in others:
            features = [feature(own, other, c) for c in range(len(point))]
            margin = 0.0
            for number, parameter in zip(features, point, strict=True):
                margin += number * parameter
            share = slope(margin)
            for c, number in enumerate(features):
                total[c] += share * number
        return total


def join_estimands(
    members: Sequence[Member],
    widths: Sequence[int],
    x: Floats,
    options: Mapping[str, Any],
    data: str = "",
) -> Estimand:
    """Return the estimand of one or several statistics over encoded rows."""
    if len(members) == 1:
        is_objective = isinstance(members[0].statistic, Objective)
        return (ObjectiveEstimand if is_objective else Estimand)(
            members[0].statistic, x, options, data=data
        )
    parts: list[Part] = []
    estimands = []
    kernel = values = 0
    for member, numbers in zip(members, place_numbers(members, widths), strict=True):
        estimand = Estimand(member.statistic, x[:, numbers], member.statistic.own_options(options))
        estimands.append(estimand)
        count = _count_values(estimand)
        places = slice(kernel, kernel + estimand.width), slice(0, 0), slice(values, values + count)
        reason = why_no_interval(estimand.statistic, estimand.width, count)
        parts.append(Part(member.title, estimand.statistic, numbers, *places, reason))
        kernel, values = kernel + estimand.width, values + count
    return Estimand(
        join(parts, [estimand.returns_tuple for estimand in estimands], options),
        x,
        options,
        data=data,
    )


def _count_values(estimand: Estimand) -> int:
    means = np.ones((1, estimand.mean_count))
    return int(final_values(estimand.statistic, means, estimand.final_options, estimand.n).shape[1])


def _with_samples_of_parts(estimand: Estimand) -> JointStatistic:
    """Return several statistics with kernels as intervals need them."""
    joint, parts, start = estimand.statistic, [], 0
    assert isinstance(joint, JointStatistic)
    if all(
        own.statistic is part.statistic
        for own, part in zip(estimand.parts, joint.parts, strict=True)
    ):
        return joint
    for own, part in zip(estimand.parts, joint.parts, strict=True):
        parts.append(part._replace(statistic=own.statistic, kernel=slice(start, start + own.width)))
        start += own.width
    return join(parts, [own.returns_tuple for own in estimand.parts], estimand.options)


def kernel_ranges(estimand: Estimand) -> Floats:
    """Return the lowest and highest possible mean of each kernel value: values × 2.

    They are infinite where unknown.
    """
    if len(estimand.parts) > 1:
        return np.vstack([kernel_ranges(part) for part in estimand.parts])
    statistic, unknown = estimand.statistic, ((-np.inf, np.inf),) * estimand.width
    return np.array(
        statistic.mean_ranges if statistic.mean_ranges and statistic.local is None else unknown
    )


def mean_bounds(estimand: Estimand, protocol: Protocol) -> Floats:
    """Return the lowest and highest estimate of each mean that a node can have: numbers × 2."""
    if protocol.averages_moments:
        return np.array([(-np.inf, np.inf)] * estimand.moment_count)
    means = estimand.mean_bounds
    # The last number is the share of rows.
    low, high = (np.vstack([means, [0.0, 1.0]]) if protocol.carries_means else means).T
    is_bounded = np.isfinite(high - low) & np.isfinite(protocol.overshoot)
    with np.errstate(invalid="ignore"):  # infinite ranges
        margin = np.where(is_bounded, protocol.overshoot * (high - low), np.inf)
    # Nodes start from zero.
    return np.column_stack([np.minimum(low, 0.0) - margin, np.maximum(high, 0.0) + margin])


def payload_bounds(estimand: Estimand, protocol: Protocol) -> Floats:
    """Return the lowest and highest value of each number of a payload: numbers × 2."""
    if (
        protocol.uses_tree
    ):  # sums, which are bounded by counts (`gosta.net.protocol.checks`); the place in the tree
        count = estimand.moment_count if protocol.averages_moments else estimand.mean_count
        offset = len(estimand.mean_row) if protocol.averages_moments else 0
        sums = [(-np.inf, np.inf)] * (2 * protocol.state_count(count) + offset)
        return np.array([*sums, (0.0, MAX_PRIORITY), (0.0, MAX_DISTANCE), (0.0, 1.0)])
    if protocol.averages_moments:
        numbers = estimand.moment_count * protocol.payload_size + len(estimand.mean_row)
        return np.array([(-np.inf, np.inf)] * numbers)
    bounds = np.repeat(mean_bounds(estimand, protocol), protocol.payload_size, axis=0)
    if not protocol.carries_means:
        return bounds
    means = estimand.mean_bounds
    slack = ROUNDING * (means[:, 1] - means[:, 0])
    carried = np.column_stack(
        [np.minimum(means[:, 0], 0.0) - slack, np.maximum(means[:, 1], 0.0) + slack]
    )
    return np.vstack([bounds, [0.0, MAX_COMPARED], carried, carried])


def fingerprint_or_empty(*parts: Any) -> str:
    """Return a digest of functions and numbers.

    It is empty where they depend on something that cannot be hashed.
    """
    try:
        return compiler.fingerprint(*parts)[:16]
    except compiler.UnstableContentError:
        return ""


def norms(values: Floats) -> Floats:
    """Return the Euclidean norm of the last axis."""
    return np.abs(values[..., 0]) if values.shape[-1] == 1 else np.sqrt((values**2).sum(axis=-1))


def scale_of(target: Floats) -> float:
    """Return what relative errors are relative to.

    It is the norm of the exact value, or its mean over nodes that have targets of their own.
    """
    return float(norms(target).mean())


def relative_errors(estimates: Floats, target: Floats) -> Floats:
    """Return the errors of estimates, relative to the target, or absolute where it is 0."""
    errors, scale = norms(estimates - target), scale_of(target)
    return errors / scale if scale > 0 else errors
