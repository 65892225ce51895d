"""What a pairwise statistic is: ``encode``, ``kernel``, ``local``, ``final``.

With ``x = encode(row)`` for every row, ``h_i`` the mean over j of ``kernel(x_i, x_j)``, and ``g`` the mean
over i of ``local(h_i)``, the statistic is ``final(g)``. Everything else in gosta follows from these four.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from gosta.datasets.data import Data
from gosta.errors import InputError, unknown
from gosta.runtime.arrays import Floats
from gosta.statistics import encode as encoders

Observation = Sequence[float]
Normalisation = Literal["U", "V"]
Function = Callable[..., Any]


class RowSums(NamedTuple):
    """Sums over the other rows j of kernel(x_i, x_j), n × k; and kernel(x_i, x_i), n × k or one row of zeros.

    The diagonal is None where it has not been needed.
    """

    sums: Floats
    diagonal: Floats | None


@dataclass(frozen=True)
class Statistic:
    """A pairwise statistic; build one with the decorator `statistic`.

    Attributes
    ----------
    name, summary
        What it is called, and one line on what it says.
    kernel
        Function of two observations, giving one number or a tuple; symmetric unless there is a ``local``.
        Further parameters are options and need numbers as defaults.
    encode
        Function of `Data`, giving the n × d numbers the kernel needs: what will travel. Further parameters
        are options.
    local
        Function of one row's means ``h`` (a tuple, one number per kernel value), giving a tuple; absent, h itself.
        It is compiled like the kernel.
    moments
        For statistics that are functions of plain means: a function of one observation, giving a tuple, and one of the
        means of these over all rows, giving the mean of the kernel over all pairs.
    final
        Function of the means over all rows (a tuple), giving the value; absent, the mean or means themselves.
        Further parameters are options. Both are faster if they can take arrays in place of numbers.
    fast
        The row sums in O(n log n) where that is known; None for data it does not handle.
    normalisation
        The textbook's: "U" leaves pairs (i, i) out, "V" counts them.
    total
        The value is the sum over unordered pairs, not the mean.
    sample_index
        Position in the observation of the sign that tells two samples apart, for two-sample statistics.
    bounds
        Values the population value cannot leave: intervals are cut there.
    """

    name: str
    summary: str
    kernel: Function
    encode: Function
    local: Function | None = None
    moments: tuple[Function, Function] | None = None
    final: Function | None = None
    fast: Callable[[Floats], RowSums | None] | None = None
    normalisation: Normalisation = "U"
    total: bool = False
    sample_index: int | None = None
    bounds: tuple[float, float] = (-np.inf, np.inf)

    def __call__(self, x: Observation, y: Observation, **options: float) -> Any:
        """The kernel of two observations."""
        return self.kernel(x, y, **options)

    @property
    def options(self) -> dict[str, object]:
        """What may be set, with defaults: the further parameters of encode, kernel and final."""
        return {name: default for part in self._parts() for name, default in part[1].items()}

    def _parts(self) -> Iterator[tuple[str, dict[str, object]]]:
        for part, own in (("encode", 1), ("kernel", 2), ("final", 1)):
            function = getattr(self, part)
            if function is not None:
                yield part, _further(function, own)

    def options_by_part(self, options: Mapping[str, object]) -> dict[str, dict[str, Any]]:
        """Options sorted by the part they belong to, the kernel's complete."""
        for name in options:
            if name not in self.options:
                known = ", ".join(f"{k}={v!r}" for k, v in self.options.items()) or "none"
                raise InputError(f"{self.name} has no option {name!r}; its options are: {known}")
        parts = {
            part: {name: options.get(name, default) for name, default in own.items()} for part, own in self._parts()
        }
        for name, value in parts["kernel"].items():
            if isinstance(value, bool) or not isinstance(value, int | float | np.number):
                raise InputError(f"{self.name}: option {name} = {value!r} must be a number")
        return parts

    def encode_rows(self, data: Data, options: Mapping[str, object]) -> Floats:
        """What the kernel needs of each complete row."""
        return self.encode_complete_rows(data, options)[0]

    def encode_complete_rows(self, data: Data, options: Mapping[str, object]) -> tuple[Floats, NDArray[np.bool_]]:
        """The same, and which rows are complete."""
        try:
            x = np.ascontiguousarray(self.encode(data, **self.options_by_part(options)["encode"]), dtype=np.float64)
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None
        except Exception as error:  # whatever a user's function may do
            raise InputError(f"{self.name}: encode fails with {type(error).__name__}: {error}") from error
        if x.ndim != 2:
            raise InputError(f"{self.name}: encode gives an array of shape {x.shape}; rows x numbers are needed")
        kept: NDArray[np.bool_] = np.ones(len(x), dtype=np.bool_)
        if data.drop_missing:
            kept = np.asarray(~np.isnan(x).any(axis=1))
            if data.by is not None and len(kept) == len(data):
                kept &= ~np.isnan(data.site_codes()[0])
            x = x[kept]
        self._check_enough(x, data)
        return x, kept

    def _check_enough(self, x: Floats, data: Data) -> None:
        """Refuse rows that are too few for a value; those of one site need not be enough alone."""
        try:
            data.check_row_count(len(x))
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None
        if self.sample_index is not None and not data.is_partial and np.ptp(x[:, self.sample_index]) == 0:
            raise InputError(f"{self.name}: needs two classes, the complete rows of {data.name} have one only")


@overload
def statistic(kernel: Function) -> Statistic: ...
@overload
def statistic(
    kernel: None = None, *, name: str | None = None, encode: Function = encoders.features, **parts: Any
) -> Callable[[Function], Statistic]: ...
def statistic(
    kernel: Function | None = None, *, name: str | None = None, encode: Function = encoders.features, **parts: Any
) -> Any:
    """Make a statistic of a plain function of two observations, and enter it in the table by its name.

    Parameters
    ----------
    kernel
        Function of two observations, each a row of numbers (``x[0]``, ``len(x)``), giving a number or a tuple. It
        must not depend on their order. Plain arithmetic, ``math``, loops and other plain functions may be used:
        it runs as it is and compiled. Parameters after the first two are options.
    name
        Defaults to the function's, with hyphens.
    encode, local, moments, final, fast, normalisation, total, sample_index, bounds
        See `Statistic`. By default every column of the data is part of the observation.

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
    >>> gosta.exact([0.0, 0.5, 3.0], huber_scatter)
    1.5416666666666667
    >>> gosta.exact([0.0, 0.5, 3.0], "huber-scatter", delta=10)
    2.5833333333333335
    """
    if kernel is None:
        return lambda function: _enter(function, name, encode, parts)
    return _enter(kernel, name, encode, parts)


def _enter(kernel: Function, name: str | None, encode: Function, parts: dict[str, Any]) -> Statistic:
    if not isinstance(kernel, FunctionType):
        raise InputError(f"a kernel must be a plain function of two observations (def or lambda), not {kernel!r}")
    title = name or kernel.__name__.replace("_", "-")
    summary = (inspect.getdoc(kernel) or "").partition("\n\n")[0].replace("\n", " ")
    further = _further(kernel, 2)
    for option, default in further.items():
        if isinstance(default, bool) or not isinstance(default, int | float):
            raise InputError(f"{title}: the kernel's option {option!r} needs a number as default, not {default!r}")
    made = Statistic(title, summary, kernel, encode, **parts)
    if made.total and (made.final or made.local):
        raise InputError(f"{title}: a total is a plain sum over pairs, it takes neither local nor final")
    old = STATISTICS.get(title)
    if old is not None and old.kernel.__module__ != kernel.__module__:
        raise InputError(f"there is a statistic called {title!r} already; choose another name")
    STATISTICS[title] = made
    return made


STATISTICS: dict[str, Statistic] = {}


def find(what: str | Statistic) -> Statistic:
    """A statistic by its name, or itself."""
    if isinstance(what, Statistic):
        return what
    if not isinstance(what, str):
        raise InputError(
            f"statistic = {what!r} is neither a name nor a statistic; decorate a function with @gosta.statistic"
        )
    if what not in STATISTICS:
        raise unknown("statistic", what, STATISTICS)
    return STATISTICS[what]


def apply_to_rows(function: Function, rows: Floats, **options: Any) -> Floats:
    """A function of a tuple of numbers, for every row: all rows at once if it can, else one by one.

    Where it is not defined (a division by zero, the root of a negative number) the result is NaN. It has a column for
    each number the function gives.
    """
    with np.errstate(all="ignore"):
        try:
            parts = as_tuple(function(tuple(rows.T), **options))
            columns = np.empty((len(rows), len(parts)))
            for c, part in enumerate(parts):
                columns[:, c] = part
            return columns
        except InputError:
            raise
        except (TypeError, ValueError):
            values = [_apply_one(function, row, options) for row in rows.tolist()]
    width = max(map(len, values))
    return np.array([value if len(value) == width else (np.nan,) * width for value in values])


def _apply_one(function: Function, row: list[float], options: dict[str, Any]) -> tuple[float, ...]:
    try:
        return as_floats(function(tuple(row), **options))
    except (ArithmeticError, ValueError):
        return (np.nan,)


def as_tuple(result: Any) -> tuple[Any, ...]:
    """What a function gave, one number or several, as a tuple."""
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def as_floats(result: Any) -> tuple[float, ...]:
    """The same, as floats."""
    return tuple(map(float, as_tuple(result)))


def _further(function: Function, own: int) -> dict[str, object]:
    parameters = list(inspect.signature(function).parameters.values())[own:]
    return {p.name: None if p.default is p.empty else p.default for p in parameters}
