"""The definition of a pairwise statistic: ``encode``, ``kernel``, ``local``, ``final``.

With ``x = encode(row)`` for every row, ``h_i`` the mean over j of ``kernel(x_i, x_j)``, and ``g``
the mean over i of ``local(h_i)``, the statistic is ``final(g)``. Everything else in gosta follows
from these four.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, overload

import numpy as np

from gosta.errors import DataError, GostaError, InputError
from gosta.runtime import pickling
from gosta.runtime.arrays import Booleans, Floats
from gosta.statistics.names import SUMMARIES, resolve, unknown_statistic
from gosta.views import html, numbers

if TYPE_CHECKING:
    from gosta.datasets.data import Data

Observation = Sequence[float]
Means = tuple[float, ...]
Numbers = float | tuple[float, ...]
Normalisation = Literal["U", "V"]
Options = Mapping[str, Any]  # values of a statistic's options by name
PRECISION = 1e-12  # of quantiles over pairs, and of sums of weights, relative
# Parameters of a kernel after its two or three rows, and after the first of the others, are
# options.
Kernel = Callable[..., Numbers]
Encoder = Callable[..., Floats]
Final = Callable[..., Numbers]


class Moments(NamedTuple):
    """How the mean of a kernel over all pairs follows from plain means over rows."""

    of_row: Callable[[Observation], Means]
    kernel_mean: Callable[[Means], Numbers]  # from the means of these over all rows
    # From means of moments of x to those of x + shift: (moments, shift, one), where `one` is 1 for
    # means and 0 for differences of means. None: nodes average moments of x itself, about no common
    # offset.
    shifted: Callable[[Means, Means, float], Means] | None = None


class RowSums(NamedTuple):
    """Kernel values summed over rows."""

    sums: Floats  # over the other rows j of kernel(x_i, x_j): n × k
    # kernel(x_i, x_i): n × k, or one row of zeros; None where it has not been needed
    diagonal: Floats | None


class HasOptions(Protocol):
    """What has a name and options: a statistic, a measure."""

    @property
    def name(self) -> str: ...
    @property
    def options(self) -> dict[str, Any]: ...


class Encoded(NamedTuple):
    """The observations that a statistic makes of data."""

    x: Floats  # of the complete rows: n × d
    kept: Booleans  # which rows of the data these are
    columns: tuple[str, ...]  # that were read, in that order
    # What was assumed where the user had not said it: see `gosta.statistics.assumptions`.
    assumed: dict[str, Any]


class PairValues(NamedTuple):
    """A number of each pair of rows, by its rank among all."""

    # the least number that so many pairs, or pairs of such weight, do not exceed
    quantile: Callable[[float], float]
    total: float  # number of pairs, or their weight
    ranks: Callable[[float], tuple[int, int]]  # those of the ends of an interval, by its level

    @property
    def median(self) -> float:
        """The number in the middle, or the mean of two."""
        return sum(self.quantile(self.total / 2 * (1 + end)) for end in (-PRECISION, PRECISION)) / 2

    def ends(self, level: float) -> tuple[float, float]:
        """Return the ends of the median's interval, infinite beyond the first and the last pair."""
        low, high = self.ranks(level)
        return self.quantile(low) if low >= 1 else -np.inf, self.quantile(
            high
        ) if high <= self.total else np.inf


@dataclass(frozen=True, repr=False)
class Statistic:
    """A pairwise statistic; build one with the decorator `statistic`.

    Attributes
    ----------
    kernel
        Function of two observations that returns one number or a tuple; symmetric unless there is a
        ``local``. Further parameters are options and need numbers as defaults. A third parameter
        without default is a third observation: ``gosta.exact`` then averages over triples of rows.
    encode
        Function of `Data` that returns the n × d numbers the kernel needs, which are what nodes
        exchange. Further parameters are options.
    local
        Function of one row's means ``h`` (a tuple, one number per kernel value) that returns a
        tuple; absent, h itself. It is compiled like the kernel.
    moments
        For statistics that are functions of plain means: a function of one observation that returns
        a tuple, and one of the means of these over all rows that returns the mean of the kernel
        over all pairs. If that does not depend on where zero is, a third that shifts such means
        (see `Moments`): nodes then keep moments about a common offset, so that no digits cancel
        where values are large and close together.
    final
        Function of the means over all rows (a tuple) that returns the value; absent, the mean or
        means themselves. Further parameters are options, but `rows` is the number of rows.
        ``local`` and ``final`` are faster if they accept arrays in place of numbers.
    fast
        Function that computes the row sums in O(n log n); it returns None for data it does not
        handle.
    mean_ranges
        Lowest and highest possible value of each mean that nodes estimate: of each kernel value or,
        where there is a ``local``, of each of its values. Nodes of a network reject numbers beyond.
        Empty where there are no bounds.
    is_row
        Function of an observation that returns whether `encode` can have made it. Nodes of a
        network reject others.
    scale
        Scale on which intervals are symmetric, one of `intervals.SCALES`: "plain", "log",
        "reciprocal", "logit" (between finite bounds), "root", "distance".
    null_value
        Value that the p-value of an estimate is for, such as 0 of a difference; None: it has none.
    centre
        Function of the means over all rows and their number that intervals are about, where the
        value has a bias.
    comparable
        Which kernel value is 1 for pairs of rows that count and 0 for others, where the value is a
        share of the first.
    median
        Function of encoded rows, their weights or None, and whether pairs of a row with itself
        count, that returns the kernel's values by rank. Then the value is their median, not their
        mean. The kernel is NaN for pairs that do not count. Nodes cannot average medians.
    is_per_row
        Whether the value is each row's own mean, not the mean over all rows.
    both_first
        Which kernel value is 1 for two rows of the first sample and 0 for others. Where a statistic
        of two samples has none, nodes add it to compute intervals.

    Examples
    --------
    >>> import gosta
    >>> gini = gosta.statistics.find("gini-mean-difference")
    >>> gini
    Statistic('gini-mean-difference')
    >>> gini([1.0], [4.0])
    3.0
    """

    name: str  # by which it is found, and shown in tables
    summary: str  # one line on what it measures
    kernel: Kernel
    encode: Encoder
    local: Callable[[Means], Means] | None = None
    moments: Moments | None = None
    final: Final | None = None
    fast: Callable[[Floats], RowSums | None] | None = None
    # the textbook's: "U" leaves pairs (i, i) out, "V" counts them
    normalisation: Normalisation = "U"
    total: bool = False  # whether the value is the sum over unordered pairs instead of the mean
    sample_index: int | None = None  # in the observation, of the sign that separates two samples
    # of the value in a population: intervals are clipped there
    bounds: tuple[float, float] = (-np.inf, np.inf)
    mean_ranges: tuple[tuple[float, float], ...] = ()
    is_row: Callable[[Observation], bool] | None = None
    # Why there is no interval, such as that `encode` takes from all rows what leaving out a row
    # would change.
    no_interval: str = ""
    scale: str = "plain"
    null_value: float | None = None
    centre: Callable[[Means, int], Numbers] | None = None
    comparable: int | None = None
    both_first: int | None = None
    median: Callable[[Floats, Floats | None, bool], PairValues] | None = None
    is_per_row: bool = False
    degree: int = 2  # rows that the kernel takes: 2 or 3
    # The column of the rows' weights, if they have any; the weight is the last number of an
    # observation, and the kernel takes the others. See `with_weights` and `weighting`.
    weights: str = ""

    def __call__(self, *rows: Observation, **options: float) -> Numbers:
        """Return the kernel's value for two observations, or as many as it takes."""
        return self.kernel(*rows, **options)

    def __repr__(self) -> str:
        options = "".join(f", {name}={default!r}" for name, default in self.options.items())
        return f"Statistic({self.name!r}{options})"

    def _repr_html_(self) -> str:
        options = ", ".join(f"{name} = {default!r}" for name, default in self.options.items())
        rows = {"summary": self.summary} if self.summary else {}
        kind = "a sum" if self.total else "a mean"
        rows |= {
            "options": options or "none",
            "normalisation": f"{self.normalisation}, {kind} over {self.tuples}",
        }
        if np.isfinite(self.bounds).any():
            rows["bounds"] = numbers.interval(*self.bounds)
        return html.table(rows.items(), caption=f"Statistic: {self.name}")

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle a built-in statistic by name, an imported one by module, others by value."""
        registered = STATISTICS.get(self.unweighted_name)
        if self.is_built_in and registered is not None:
            same = (
                replace(with_weights(registered, self.weights), is_row=self.is_row)
                if self.weights
                else registered
            )
            if same == self:
                return find, (self.name,)
        module, name = self.kernel.__module__, self.kernel.__qualname__
        if module != "__main__" and pickling.find_attribute(module, name) is self:
            return _import, (module, name)
        return pickling.by_value(self)

    @property
    def tuples(self) -> str:
        """What the kernel is averaged over, in words."""
        return "pairs" if self.degree == 2 else "triples"

    @property
    def unweighted_name(self) -> str:
        """Name of the statistic without the column of weights."""
        return self.name.removesuffix(f"@{self.weights}") if self.weights else self.name

    @property
    def options(self) -> dict[str, object]:
        """Names and defaults of all options: the further parameters of encode, kernel and final."""
        return {
            name: default for _, options in self._options() for name, default in options.items()
        }

    def _options(self) -> Iterator[tuple[str, dict[str, object]]]:
        for part, skip in (("encode", 1), ("kernel", self.degree), ("final", 1)):
            function = getattr(self, part)
            if function is not None:
                defaults = _option_defaults(function, skip)
                yield (
                    part,
                    {
                        name: value
                        for name, value in defaults.items()
                        if (part, name) != ("final", "rows")
                    },
                )

    @cached_property
    def final_needs_rows(self) -> bool:
        """Whether `final` takes the number of rows."""
        return self.final is not None and "rows" in inspect.signature(self.final).parameters

    def own_options(self, options: Options) -> dict[str, Any]:
        """Return those of the options that this statistic has."""
        return {name: value for name, value in options.items() if name in self.options}

    def options_by_part(self, options: Options) -> dict[str, dict[str, Any]]:
        """Return the options of "encode", "kernel" and "final", completed with their defaults."""
        for name in options:
            if name not in self.options:
                known = ", ".join(f"{k}={v!r}" for k, v in self.options.items()) or "none"
                raise InputError(
                    f"{self.name} has no option {name!r}", remedy=f"its options are: {known}"
                )
        parts = {
            part: {name: options.get(name, default) for name, default in defaults.items()}
            for part, defaults in self._options()
        }
        for name, value in parts["kernel"].items():
            if isinstance(value, bool) or not isinstance(value, int | float | np.number):
                raise InputError(f"option {name} = {value!r} must be a number", statistic=self.name)
        return parts

    @property
    def is_built_in(self) -> bool:
        """Whether the kernel is one of gosta's, and neither a user's nor several in one."""
        return (self.kernel.__module__ or "").startswith("gosta.")

    def require_mean(self) -> None:
        """Raise `InputError` for a statistic that is no function of means, so not for nodes."""
        if self.median is not None:
            why = "is a median over pairs of rows, which nodes cannot average"
            raise InputError(
                f"{self.name} {why}", remedy="gosta.exact computes it over rows in one place"
            )
        if self.degree > 2:
            why = (
                "has a kernel of three rows, and in an exchange a node's rows meet those of one "
                "other"
            )
            raise InputError(
                f"{self.name} {why}", remedy="gosta.exact computes it over rows in one place"
            )

    def encode_rows(self, data: Data, options: Options) -> Floats:
        """Return the observations of all complete rows: n × d."""
        return self.encode_complete_rows(data, options).x

    def encode_complete_rows(self, data: Data, options: Options) -> Encoded:
        """Return the observations of all complete rows, and what was read and assumed for them."""
        return encode_complete_rows(
            self.name, data, lambda table: self._encode(table, options), self.sample_index
        )

    def _encode(self, data: Data, options: Options) -> Floats:
        weighted = data.with_weights(self.weights) if self.weights else data
        weights = weighted.row_weights()
        x = np.ascontiguousarray(
            self.encode(weighted, **self.options_by_part(options)["encode"]), dtype=np.float64
        )
        if x.ndim != 2:
            raise InputError(
                f"encode returns an array of shape {x.shape}", remedy="rows x numbers are needed"
            )
        if weights is None:
            return x
        if len(x) == len(weights):
            return np.column_stack([x, weights])
        if not data.drop_missing:
            raise InputError(
                f"encode returns {len(x)} rows of {len(weights)}, so that their weights "
                "are not known"
            )
        return x  # some rows are not complete, and the others will be encoded again


def encode_complete_rows(
    name: str, data: Data, encode: Callable[[Data], Floats], sample_index: int | None = None
) -> Encoded:
    """Return the rows that a statistic makes of data, those that are complete.

    `sample_index` is the place of the sign that separates two samples, which both need rows.
    """
    logged, log = data.logged()
    try:
        x, kept = encode(logged), np.ones(len(data), dtype=np.bool_)
        if data.drop_missing:
            kept = data.complete_rows(log.columns)
            if not kept.all():
                x = encode(replace(logged.take(kept), drop_missing=False))
            # A user's function may read columns in its own way.
            has_all = ~np.isnan(x).any(axis=1)
            if not has_all.all() and len(x) == kept.sum():
                kept[kept] = has_all
            x = x[has_all]
        if data.by is not None and len(x) != kept.sum():
            raise InputError(
                f"encode returns {len(x)} rows of {kept.sum()}, so that their sites are not known"
            )
        data.check_row_count(len(x))
        if sample_index is not None and not data.is_partial and np.ptp(x[:, sample_index]) == 0:
            raise DataError(f"needs two classes, the complete rows of {data.name} have one only")
    except GostaError as error:
        error.statistic = name
        raise
    except Exception as error:  # a user's function can raise anything
        raise InputError(
            f"encode fails with {type(error).__name__}: {error}", statistic=name
        ) from error
    if data.log is not None:
        data.log.update(log)
    return Encoded(x, kept, tuple(log.columns), log.assumed)


def features(data: Data) -> Floats:
    """Encode a row as all its feature columns."""
    return data.to_floats(data.features)


@overload
def statistic(kernel: Kernel) -> Statistic: ...
@overload
def statistic(
    *, name: str | None = None, encode: Encoder = ..., **parts: Any
) -> Callable[[Kernel], Statistic]: ...
def statistic(
    kernel: Kernel | None = None,
    *,
    name: str | None = None,
    encode: Encoder = features,
    **parts: Any,
) -> Statistic | Callable[[Kernel], Statistic]:
    """Make a statistic from a plain function of two observations, and register it by its name.

    Parameters
    ----------
    kernel
        Function of two observations, each a row of numbers (``x[0]``, ``len(x)``), that returns a
        number or a tuple. It must not depend on their order. It can use plain arithmetic, ``math``,
        loops and other plain functions: it runs both interpreted and compiled. Parameters after the
        first two are options. A third one without default is a third observation.
    name
        Defaults to the function's name, with hyphens.
    encode, local, moments, final, fast, normalisation, total, sample_index, bounds, mean_ranges,
    is_row, no_interval, scale, centre, comparable, both_first, median, is_per_row
        See `Statistic`. By default every column of the data is part of the observation.

    Returns
    -------
    Statistic
        Or, if only options are given, a decorator that makes one of a function.

    Examples
    --------
    >>> import gosta
    >>> @gosta.statistic(name="huber-scatter")
    ... def huber_scatter(x, y, delta=1.0):
    ...     "Mean Huber loss of the difference of two rows."
    ...     total = 0.0
    ...     for c in range(len(x)):
    ...         gap = abs(x[c] - y[c])
    ...         total += 0.5 * gap * gap if gap < delta else delta * (gap - 0.5 * delta)
    ...     return total
    >>> huber_scatter
    Statistic('huber-scatter', delta=1.0)
    >>> gosta.exact([0.0, 0.5, 3.0], huber_scatter)
    1.5416666666666667
    >>> gosta.exact([0.0, 0.5, 3.0], "huber-scatter", delta=10)
    2.5833333333333335
    """
    if kernel is None:
        return lambda function: _register(function, name, encode, parts)
    return _register(kernel, name, encode, parts)


def _register(
    kernel: Kernel, name: str | None, encode: Encoder, parts: dict[str, Any]
) -> Statistic:
    if not isinstance(kernel, FunctionType):
        raise InputError(
            f"a kernel must be a plain function of two observations (def or lambda), not {kernel!r}"
        )
    title = name or kernel.__name__.replace("_", "-")
    summary = (inspect.getdoc(kernel) or "").partition("\n\n")[0].replace("\n", " ")
    parameters = list(inspect.signature(kernel).parameters.values())
    degree = 3 if len(parameters) > 2 and parameters[2].default is inspect.Parameter.empty else 2
    for option, default in _option_defaults(kernel, degree).items():
        if isinstance(default, bool) or not isinstance(default, int | float):
            what = f"the kernel's option {option!r} needs a number as default, not {default!r}"
            raise InputError(what, remedy="a kernel takes two or three rows", statistic=title)
    if parts.get("moments") is not None:
        parts = {**parts, "moments": Moments(*parts["moments"])}
    for part in TWO_ROWS_ONLY if degree > 2 else ():
        if parts.get(part) is not None:
            raise InputError(
                f"a kernel of three rows has no {part}", remedy="leave it out", statistic=title
            )
    made = Statistic(title, summary, kernel, encode, degree=degree, **parts)
    if made.total and (made.final or made.local):
        raise InputError(
            "a total is a plain sum over pairs and has neither local nor final", statistic=title
        )
    old = STATISTICS.get(title)
    if old is not None and old.kernel.__module__ != kernel.__module__:
        raise InputError(
            f"there is already a statistic called {title!r}", remedy="choose another name"
        )
    STATISTICS[title] = made
    SUMMARIES[title] = summary
    return made


# Parts of a statistic that kernels of three rows do not have.
TWO_ROWS_ONLY = (
    "local",
    "moments",
    "fast",
    "normalisation",
    "total",
    "sample_index",
    "centre",
    "median",
    "comparable",
)
STATISTICS: dict[str, Statistic] = {}
OBJECTIVES: dict[str, Statistic] = {}  # of `gosta.statistics.objectives`, for nodes only


def find(statistic: str | Statistic) -> Statistic:
    """Return the statistic of a name.

    NAME@COLUMN is the statistic of rows with weights. A statistic itself is returned as it is.

    Parameters
    ----------
    statistic
        A name from ``gosta statistics``, with ``@COLUMN`` for rows with weights; or a `Statistic`.

    Returns
    -------
    Statistic
        The statistic, which is a function of two observations.

    Examples
    --------
    >>> find("auc").name, find("auc@weight").weights
    ('auc', 'weight')
    """
    if isinstance(statistic, Statistic):
        return statistic
    if not isinstance(statistic, str):
        raise InputError(
            f"statistic = {statistic!r} is neither a name nor a statistic",
            remedy="make one with @gosta.statistic",
        )
    if statistic in OBJECTIVES:
        return OBJECTIVES[statistic]
    name, at, weights = resolve(statistic).partition("@")
    if name not in STATISTICS:
        if name in SUMMARIES:
            reason = f"statistic = {name!r} is no mean over pairs of rows, which nodes exchange"
            remedy = "gosta.exact and gosta.private.release have it"
            raise InputError(reason, remedy=remedy)
        raise unknown_statistic(name)
    return with_weights(STATISTICS[name], weights) if at else STATISTICS[name]


def _import(module: str, name: str) -> object:
    importlib.import_module(module)
    return pickling.find_attribute(module, name)


def with_weights(statistic: Statistic, column: str) -> Statistic:
    """Return a statistic of rows with weights, called NAME@COLUMN.

    A pair of rows counts by the product of their weights.

    >>> with_weights(find("auc"), "weight").name
    'auc@weight'
    """
    if not column:
        raise InputError(f"statistic = '{statistic.name}@' must end with the column of weights")
    if statistic.weights:
        raise InputError(
            f"{statistic.name} has weights already", remedy=f"leave out those in {column!r}"
        )
    if statistic.final_needs_rows:
        raise InputError(
            f"{statistic.name} depends on the number of rows",
            remedy=f"leave out the weights in {column!r}",
        )
    index, is_row = statistic.sample_index, statistic.is_row
    return replace(
        statistic,
        name=f"{statistic.name}@{column}",
        weights=column,
        moments=None,
        sample_index=index - 1 if index is not None and index < 0 else index,
        mean_ranges=(),
        is_row=lambda row: row[-1] >= 0.0 and (is_row is None or is_row(row[:-1])),
        comparable=None,
        both_first=None,
    )


def collect_options(
    statistic: HasOptions,
    options: Options | None,
    keywords: Options,
    function: Callable[..., Any],
    arguments: Options,
) -> dict[str, Any]:
    """Return the options of a statistic that were given to a function.

    They are given as a mapping, its parameter ``options``, or as plain keywords.

    Without a mapping, a name that is an option and a parameter of the function is an error.
    `arguments` are the values of the function's parameters: its ``locals()``.
    """
    given = dict(options or {})
    for name in keywords.keys() & given.keys():
        raise InputError(
            f"option {name!r} is given twice, in options and as {name}=...",
            statistic=statistic.name,
        )
    parameters = inspect.signature(function).parameters
    for name in keywords.keys() - statistic.options.keys():
        near = difflib.get_close_matches(name, [*statistic.options, *parameters], n=1, cutoff=0.8)
        if near and near[0] in parameters:
            raise InputError(
                f"gosta.{function.__name__} has no parameter {name!r}",
                remedy=f"did you mean {near[0]!r}?",
            )
    for name in statistic.options.keys() & parameters.keys() if options is None else ():
        if arguments[name] is not parameters[name].default:
            raise InputError(
                f"{name} is an option of {statistic.name} and a parameter of "
                f"gosta.{function.__name__}; give the "
                f"option as options={{{name!r}: ...}}, or options={{}} if the parameter is meant"
            )
    return {**given, **keywords}


def apply_to_rows(function: Callable[..., Any], rows: Floats, /, **options: Any) -> Floats:
    """Return the values of a function of several numbers for every row: n × the count of values.

    The function is called once with columns in place of numbers if it accepts them, else row by
    row. Where it is not defined (a division by zero, the root of a negative number) the result is
    NaN.
    """
    with np.errstate(all="ignore"):
        try:
            values = as_tuple(function(tuple(rows.T), **options))
            columns = np.empty((len(rows), len(values)))
            for c, value in enumerate(values):
                columns[:, c] = value
            return columns
        except InputError:
            raise
        except (TypeError, ValueError):
            results = [_apply_to_row(function, row, options) for row in rows.tolist()]
    width = max(map(len, results))
    return np.array([result if len(result) == width else (np.nan,) * width for result in results])


def _apply_to_row(
    function: Callable[..., Any], row: list[float], options: dict[str, Any]
) -> tuple[float, ...]:
    try:
        return as_floats(function(tuple(row), **options))
    except (ArithmeticError, ValueError):
        return (np.nan,)


def as_tuple(result: Numbers | list[float]) -> tuple[float, ...]:
    """Return the result of a function, one number or several, as a tuple."""
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def as_floats(result: Numbers | list[float]) -> tuple[float, ...]:
    """Return the result of a function, one number or several, as a tuple of Python floats."""
    return tuple(map(float, as_tuple(result)))


def _option_defaults(function: Callable[..., Any], skip: int) -> dict[str, object]:
    """Return parameters after the first few with their defaults; None for those without."""
    parameters = list(inspect.signature(function).parameters.values())[skip:]
    return {p.name: None if p.default is p.empty else p.default for p in parameters}
