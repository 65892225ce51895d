"""The design of a model: which columns are made of the columns of data, the same at every site.

A design follows from terms such as ``age``, ``sex``, ``age:sex`` or ``bs(age, df=4)``, from the
range of each column of numbers and from the levels of each factor. With rows in one place, ranges
and levels are those of the rows; otherwise they are declared.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gosta.datasets.cells import is_number, looks_numeric
from gosta.datasets.columns import value_text
from gosta.datasets.data import Data
from gosta.datasets.roles import MOST_CLASSES
from gosta.errors import DataError, InputError, shorten, unknown
from gosta.measures.logistic import spline
from gosta.runtime.arrays import Floats
from gosta.runtime.extras import require

INTERCEPT = "intercept"  # what models call their own
MOST_COLUMNS = 1000  # of a design
MOST_SPLINE = 20  # columns of a spline
CUBIC = 3  # degree of splines
FUNCTIONS = {
    "C": "C(stage): a factor, also of numbers",
    "bs": "bs(age, df=4): a cubic B-spline",
    "ns": "ns(age, df=3): a natural cubic spline, linear at both ends",
    "log": "log(age)",
    "sqrt": "sqrt(age)",
    "I": "I(age**2): a power",
}
WRITE_IT = f"a term is a column, columns joined by ':', or one of {', '.join(FUNCTIONS.values())}"

Levels = Mapping[str, Sequence[Any]]
Ranges = Mapping[str, tuple[float, float]]


class Formula(NamedTuple):
    """The parts of a formula such as ``died ~ age * sex``."""

    outcome: str | None  # the column left of the ~
    terms: tuple[str, ...]  # such as ("age", "sex", "age:sex")


@dataclass(frozen=True)
class Factor:
    """What one column of data contributes to a term."""

    text: str  # such as "bs(age, df=4)"
    column: str  # of the data
    function: str = ""  # of `FUNCTIONS`; "": the numbers themselves
    power: int = 1  # of I(age**2)
    size: int = 0  # columns of a spline
    low: float = 0.0  # the range of the column of numbers
    high: float = 1.0
    knots: tuple[float, ...] = ()  # of a spline, within the range
    is_declared: bool = False  # whether the range was: then numbers beyond it count as its ends
    levels: tuple[Any, ...] = ()  # of a factor, the reference first
    has_reference: bool = True  # whether the first level has no column

    @property
    def labels(self) -> list[str]:
        """The names of its columns."""
        if self.levels:
            return [f"{self.column}[{value_text(one)}]" for one in self._shown_levels]
        if self.size:
            return [f"{self.function}({self.column})[{k + 1}]" for k in range(self.size)]
        if self.function == "I":
            return [f"{self.column}^{self.power}"]
        return [f"{self.function}({self.column})" if self.function else self.column]

    @property
    def _shown_levels(self) -> tuple[Any, ...]:
        return self.levels[1:] if self.has_reference else self.levels

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The lowest and the highest value of each of its columns."""
        if self.levels or self.function == "bs":
            return [(0.0, 1.0)] * len(self.labels)
        ends = self._of_numbers(np.array([self.low, self.high]))
        if self.function:
            # Functions differ in their last digits by machine, and all sites need the same ends.
            ends = np.vectorize(lambda end: float(f"{end:.12g}"))(ends)
        if self.function == "I" and self.power % 2 == 0:
            inner = 0.0 if self.low < 0 < self.high else math.inf
            return [(min(inner, *column), max(column)) for column in ends.T.tolist()]
        return [(first, last) for first, last in ends.T.tolist()]

    def values(self, data: Data) -> Floats:
        """Return its columns for each row of data; NaN where a row is to be dropped."""
        if self.levels:
            codes = data.level_codes(self.column, self.levels, "levels")
            first = len(self.levels) - len(self._shown_levels)
            shown = np.arange(first, len(self.levels))
            columns: Floats = (codes[:, None] == shown).astype(np.float64)
            columns[np.isnan(codes)] = np.nan
            return columns
        x = data.to_floats([self.column])[:, 0]
        if self.is_declared or self.function in ("bs", "log", "sqrt"):
            x = np.clip(x, self.low, self.high)
        return self._of_numbers(x)

    def _of_numbers(self, x: Floats) -> Floats:
        if self.function == "bs":
            return _b_spline((x - self.low) / (self.high - self.low), self._shares)
        if self.function == "ns":
            shares = np.array([0.0, *self._shares, 1.0])
            return spline((x - self.low) / (self.high - self.low), shares)[:, 1:]
        transformed = {"log": np.log, "sqrt": np.sqrt}.get(self.function, lambda each: each)(x)
        return np.asarray(transformed**self.power)[:, None]

    @property
    def _shares(self) -> list[float]:
        """The knots as shares of the range."""
        return [(knot - self.low) / (self.high - self.low) for knot in self.knots]

    def describe(self) -> str:
        """Return in words what is known of the column."""
        if self.levels:
            first, *others = map(value_text, self.levels)
            return f"factor: {shorten(others, 12)}, against {first}"
        knots = f", knots {', '.join(f'{one:.6g}' for one in self.knots)}" if self.knots else ""
        return f"{self.low:.6g} to {self.high:.6g}{knots}"


Term = tuple[Factor, ...]


@dataclass(frozen=True)
class Design:
    """The columns of a model, made of those of data; build one with `make_design`.

    Examples
    --------
    >>> import gosta
    >>> rows = gosta.datasets.load({"age": [40.0, 50.0, 70.0], "sex": ["F", "M", "F"]})
    >>> design = make_design(["age", "sex", "age:sex"], data=rows)
    >>> design.names
    ('age', 'sex[M]', 'age:sex[M]')
    >>> design.encode(rows).round(2).tolist()
    [[0.0, 0.0, 0.0], [0.33, 1.0, 0.71], [1.0, 0.0, 0.0]]
    >>> make_design(["age:sex"], ranges={"age": (0, 99)}, levels={"sex": ["M", "F"]}).names
    ('age:sex[M]', 'age:sex[F]')
    """

    factors: tuple[Term, ...]  # those of each term

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms as texts, of which `make_design` makes the same design."""
        return tuple(":".join(factor.text for factor in term) for term in self.factors)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of data that are read."""
        return tuple(self._by_column)

    @property
    def _by_column(self) -> dict[str, Factor]:
        return {factor.column: factor for term in self.factors for factor in term}

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The range of each column of numbers."""
        known = self._by_column.items()
        return {name: (one.low, one.high) for name, one in known if not one.levels}

    @property
    def declared_ranges(self) -> dict[str, tuple[float, float]]:
        """The ranges that do not follow from the rows."""
        known = self._by_column.items()
        return {name: (one.low, one.high) for name, one in known if one.is_declared}

    @property
    def levels(self) -> dict[str, tuple[Any, ...]]:
        """The levels of each factor, the reference first."""
        return {name: one.levels for name, one in self._by_column.items() if one.levels}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of the design."""
        parts = [[factor.labels for factor in term] for term in self.factors]
        return tuple(":".join(labels) for part in parts for labels in itertools.product(*part))

    @cached_property
    def low(self) -> Floats:
        """The lowest value of each column."""
        return self._ends[:, 0]

    @cached_property
    def high(self) -> Floats:
        """The highest value of each column."""
        return self._ends[:, 1]

    @cached_property
    def _ends(self) -> Floats:
        ends = []
        for term in self.factors:
            for bounds in itertools.product(*(factor.bounds for factor in term)):
                corners = [math.prod(corner) for corner in itertools.product(*bounds)]
                ends.append((min(corners), max(corners)))
        return np.array(ends)

    def matrix(self, data: Data) -> Floats:
        """Return the columns in their own units, rows × columns; NaN where a row is dropped."""
        made = {factor: factor.values(data) for term in self.factors for factor in term}
        parts = []
        for term in self.factors:
            part = made[term[0]]
            for factor in term[1:]:
                part = (part[:, :, None] * made[factor][:, None, :]).reshape(len(data), -1)
            parts.append(part)
        return np.column_stack(parts)

    def encode(self, data: Data) -> Floats:
        """Return the columns as shares of their ranges, from 0 to 1."""
        shares = self.matrix(data)
        shares -= self.low
        shares /= self.high - self.low
        return np.clip(shares, 0.0, 1.0, out=shares)

    def describe(self) -> list[tuple[str, str]]:
        """Return for each column of data that is read what is known of it, in words."""
        return [(name, factor.describe()) for name, factor in self._by_column.items()]


def parse_formula(text: str, data: Data | None = None) -> Formula:
    """Return the parts of a formula; with data, a dot stands for all other columns.

    >>> parse_formula("died ~ age * sex + bs(bmi, df=4)")
    Formula(outcome='died', terms=('age', 'sex', 'bs(bmi, df=4)', 'age:sex'))
    """
    formulaic = require("formulaic", "fit", "reading a formula")
    others = list(data.features) if data is not None else None
    context = {"__formulaic_variables_available__": others} if others is not None else {}
    try:
        parsed = formulaic.Formula(text, _context=context)
    except (formulaic.errors.FormulaParsingError, formulaic.errors.FormulaSyntaxError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"formula = {text!r}: {reason}", remedy="such as 'died ~ age + sex'"
        ) from None
    left = list(getattr(parsed, "lhs", ()))
    right = getattr(parsed, "rhs", parsed)
    if len(left) > 1 or isinstance(right, tuple) or not all(hasattr(t, "factors") for t in right):
        raise InputError(f"formula = {text!r} must be of one outcome and one sum of terms")
    terms = [":".join(map(_factor_text, term.factors)) for term in right]
    if "1" not in terms:
        raise InputError(
            f"formula = {text!r} leaves out the intercept, which models have", remedy="remove it"
        )
    outcome = [factor for term in left for factor in term.factors][:1]
    apart = {"1", *map(_factor_text, outcome)}  # a dot stands for the outcome, too
    names = [factor.expr.strip("`") for factor in outcome]
    return Formula(next(iter(names), None), tuple(term for term in terms if term not in apart))


def _factor_text(factor: Any) -> str:
    """Return the text of a factor of formulaic, which takes the backticks from a column's name."""
    return _quoted(factor.expr) if factor.eval_method.value == "lookup" else str(factor.expr)


def make_design(
    terms: str | Sequence[str],
    *,
    ranges: Ranges | None = None,
    levels: Levels | None = None,
    data: Data | None = None,
) -> Design:
    """Return the design of a formula, or of a list of columns and other terms.

    Parameters
    ----------
    terms
        A formula, such as ``"~ age * sex"``, or a list of columns and terms, such as ``["age",
        "sex", "age:sex", "bs(bmi, df=4)"]``.
    ranges
        Lowest and highest number of columns; values beyond count as these.
    levels
        Levels of factors, the reference first.
    data
        Rows from which ranges and levels follow that are not declared.

    Returns
    -------
    Design
        The columns of the model.

    Examples
    --------
    >>> make_design(["age", "sex"], ranges={"age": (0, 110)}, levels={"sex": ["F", "M"]}).names
    ('age', 'sex[M]')
    """
    listed = parse_formula(terms, data).terms if isinstance(terms, str) else tuple(terms)
    if not listed:
        raise InputError("columns is empty: name at least one column for the model")
    known = _Known(dict(ranges or {}), dict(levels or {}), data)
    made = [tuple(known.factor(text) for text in known.parts(term)) for term in listed]
    made = list({frozenset(f.text for f in term): term for term in made}.values())
    known.check_all_read(made)
    design = Design(tuple(_coded(term, made) for term in made))
    if INTERCEPT in design.names:
        raise InputError(
            f"a column is called {INTERCEPT!r}, as the model's own coefficient",
            remedy=f"give it another name (--column NAME={INTERCEPT})",
        )
    if len(design.names) > MOST_COLUMNS:
        raise InputError(
            f"the model has {len(design.names):,} columns, at most {MOST_COLUMNS:,} are possible",
            remedy="leave out factors of many levels",
        )
    return design


def columns_read(terms: Sequence[str], declared: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the columns of data that terms read; `declared` are names that need no quotes.

    >>> columns_read(["age:sex", "bs(bmi, df=4)"])
    ('age', 'sex', 'bmi')
    """
    known = _Known(dict.fromkeys(declared, (0.0, 1.0)), {}, None)
    parts = (part for term in terms for part in known.parts(term))
    return tuple(dict.fromkeys(_parsed(part)[1] for part in parts))


def _coded(term: Term, terms: Sequence[Term]) -> Term:
    """Return a term whose factors have a reference where its margin is a term, too.

    A factor has a column for each level in ``age:sex`` without ``age``: a slope for each sex.
    """
    present = [frozenset(), *(frozenset(factor.text for factor in one) for one in terms)]
    texts = frozenset(factor.text for factor in term)
    full = [f for f in term if f.levels and texts - {f.text} not in present]
    if sum(bool(factor.levels) for factor in term) > 1 and len(full) > 1:
        name, other = full[0].text, ":".join(factor.text for factor in term)
        raise InputError(
            f"term {other!r} of factors needs their own columns, too",
            remedy=f"write {other.replace(':', ' * ')}, or add {name!r}",
        )
    return tuple(replace(f, has_reference=f not in full) if f.levels else f for f in term)


class _Known:
    """What is declared of columns, and the data from which the rest follows."""

    def __init__(self, ranges: dict[str, Any], levels: dict[str, Any], data: Data | None) -> None:
        self.ranges, self.levels, self.data = ranges, levels, data
        self.names = list(data.columns) if data is not None else [*ranges, *levels]
        for name in ranges:
            if name in levels:
                raise InputError(f"column {name!r} has a range and levels; declare one of the two")

    def parts(self, term: object) -> list[str]:
        """Return the factors of a term; a column's name stands for the column, whatever it is."""
        if not isinstance(term, str) or not term.strip():
            raise InputError(f"columns = {term!r} is no column's name", remedy=WRITE_IT)
        if term in self.names:
            return [_quoted(term)]
        pieces = re.findall(r"(?:`[^`]*`|\([^()]*(?:\([^()]*\)[^()]*)*\)|[^:`(])+", term)
        return list(dict.fromkeys(piece.strip() for piece in pieces))

    def factor(self, text: str) -> Factor:
        """Return the factor that a text stands for."""
        function, name, options = _parsed(text)
        name = self._column(name)
        is_factor = function == "C" or (not function and self._is_factor(name))
        if is_factor:
            return Factor(text, name, "C", levels=self._levels(name))
        if name in self.levels:
            raise InputError(f"term {text!r} is of numbers, and {name!r} has levels")
        low, high = self._range(name)
        made = Factor(text, name, function, low=low, high=high, is_declared=name in self.ranges)
        if (function == "log" and low <= 0) or (function == "sqrt" and low < 0):
            raise InputError(
                f"term {text!r}: the range of {name!r} is {low:g} to {high:g}",
                remedy=f"declare one above 0 (--range {name}=LOW:HIGH), or use {name!r} itself",
            )
        if function == "I":
            return replace(made, power=options["power"])
        return _with_knots(made, options) if function in ("bs", "ns") else made

    def check_all_read(self, terms: Iterable[Term]) -> None:
        """Raise an error for a range or levels of a column that no term reads."""
        read = list(dict.fromkeys(factor.column for term in terms for factor in term))
        for what, given in (("range", self.ranges), ("levels", self.levels)):
            for name in given:
                if name not in read:
                    raise InputError(
                        f"{what} of {name!r}: this column is not read",
                        remedy=f"those that are: {shorten(read)}",
                    )

    def _column(self, name: str) -> str:
        if name in self.names:
            return name
        if self.data is not None:
            raise unknown(f"column of {self.data.name}", name, self.names)
        raise InputError(
            f"column {name!r} has neither a range nor levels, which all sites need",
            remedy=f"declare them: --range {name}=0:100, or --levels {name}=A,B for a factor",
        )

    def _is_factor(self, name: str) -> bool:
        if name in self.levels or name in self.ranges or self.data is None:
            return name in self.levels
        column = self.data.columns[name]
        if column.dtype.kind not in "OUS":
            return False
        known = dict(column.dtype.metadata or {})
        if known.get("order"):
            return True
        present = {value for value in column.tolist() if value is not None and value == value}
        decimal = known.get("decimal", ".")
        if all(not isinstance(value, str) or is_number(value, decimal) for value in present):
            return False
        # Of more values, some of which look like numbers, an error says what is wrong with them.
        return len(present) <= MOST_CLASSES or not any(map(looks_numeric, present))

    def _levels(self, name: str) -> tuple[Any, ...]:
        if name not in self.levels and self.data is None:
            raise InputError(
                f"column {name!r} is a factor: its levels are missing",
                remedy=f"declare them, the reference first: --levels {name}=A,B",
            )
        if name in self.levels:
            found = tuple(self.levels[name])
        else:
            assert self.data is not None
            found = tuple(self.data.levels_of(name))
            if len(found) > max(MOST_CLASSES, len(self.data) / 2):
                what = f"column {name!r} has {len(found)} different values in {len(self.data)} rows"
                raise InputError(what, remedy="leave it out, or name a column of few values")
        if len(found) < 2:
            raise DataError(
                f"column {name!r} has one value only ({shorten([value_text(v) for v in found])})",
                remedy="leave it out of the model",
            )
        return found

    def _range(self, name: str) -> tuple[float, float]:
        if name in self.ranges:
            try:
                low, high = map(float, self.ranges[name])
            except (TypeError, ValueError):
                raise InputError(
                    f"range of {name!r} = {self.ranges[name]!r} must be two numbers",
                    remedy="such as (0, 100)",
                ) from None
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise InputError(
                    f"range of {name!r} = {low:g}:{high:g}: the first must be less than the second"
                )
            return low, high
        if self.data is None:
            raise InputError(f"the range of {name!r} is missing: declare it (--range {name}=0:100)")
        values = self.data.to_floats([name])[:, 0]
        values = values[~np.isnan(values)]
        if not len(values) or values.min() == values.max():
            shown = f"one value only ({values[0]:g})" if len(values) else "no value"
            raise DataError(f"column {name!r} has {shown}", remedy="leave it out of the model")
        return float(values.min()), float(values.max())


def _parsed(text: str) -> tuple[str, str, dict[str, Any]]:
    """Return function, column and options of a factor such as ``bs(age, df=4)``."""
    if text.isidentifier():
        return "", text, {}
    names: list[str] = []

    def hide(found: re.Match[str]) -> str:
        names.append(found[1])
        return f"_{len(names) - 1}_"

    bad = InputError(f"term {text!r} cannot be read", remedy=WRITE_IT)
    try:
        node = ast.parse(re.sub(r"`([^`]*)`", hide, text.strip()), mode="eval").body
    except SyntaxError:
        raise bad from None

    def name_of(one: ast.expr) -> str:
        if not isinstance(one, ast.Name):
            raise bad
        hidden = re.fullmatch(r"_(\d+)_", one.id)
        return names[int(hidden[1])] if hidden else one.id

    if isinstance(node, ast.Name):
        return "", name_of(node), {}
    if not isinstance(node, ast.Call) or not node.args:
        raise bad
    function = ast.unparse(node.func).removeprefix("np.")
    if function not in FUNCTIONS or len(node.args) > 1:
        raise bad
    try:
        options = {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
        inner = node.args[0]
        if function == "I" and isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Pow):
            options["power"] = ast.literal_eval(inner.right)
            inner = inner.left
    except ValueError:
        raise bad from None
    allowed = {"bs": {"df", "knots"}, "ns": {"df", "knots"}, "I": {"power"}}.get(function, set())
    power = options.get("power", 2)
    if set(options) - allowed or not isinstance(power, int) or not 2 <= power <= 9:
        raise bad
    if function == "I" and "power" not in options:
        raise bad
    return function, name_of(inner), options


def _with_knots(factor: Factor, options: Mapping[str, Any]) -> Factor:
    """Return a spline with its knots: those given, or at equal distances within the range."""
    extra = CUBIC if factor.function == "bs" else 1  # columns without any inner knot
    knots = options.get("knots", ())
    size = options.get("df", len(knots) + extra if "knots" in options else 4)
    if not isinstance(size, int) or not extra <= size <= MOST_SPLINE:
        raise InputError(
            f"term {factor.text!r}: df = {size!r} must be a whole number, {extra} to {MOST_SPLINE}"
        )
    inner = size - extra
    low, high = factor.low, factor.high
    if "knots" not in options:
        knots = [low + (high - low) * ((k + 1) / (inner + 1)) for k in range(inner)]
    ends = [low, *map(float, knots), high]
    if len(knots) != inner or any(a >= b for a, b in itertools.pairwise(ends)):
        raise InputError(
            f"term {factor.text!r}: knots must increase within {low:g} to {high:g}, and be df less "
            f"{extra} of them"
        )
    return replace(factor, size=size, knots=tuple(ends[1:-1]))


def _b_spline(shares: Floats, knots: Sequence[float]) -> Floats:
    """Return the cubic B-splines of numbers from 0 to 1, but the first: they add up to 1."""
    at = np.array([0.0] * (CUBIC + 1) + list(knots) + [1.0] * (CUBIC + 1))
    place = np.clip(np.searchsorted(at, shares, side="right") - 1, CUBIC, len(at) - CUBIC - 2)
    basis = (place[:, None] == np.arange(len(at) - 1)).astype(np.float64)
    basis[np.isnan(shares)] = np.nan
    for degree in range(1, CUBIC + 1):
        count = len(at) - 1 - degree
        left, right = at[:count], at[degree + 1 : degree + 1 + count]
        below = at[degree : degree + count] - left
        above = right - at[1 : 1 + count]
        rising = (shares[:, None] - left) / np.where(below > 0, below, 1.0)
        falling = (right - shares[:, None]) / np.where(above > 0, above, 1.0)
        basis = rising * basis[:, :count] + falling * basis[:, 1 : count + 1]
    return np.asarray(basis[:, 1:])


def _quoted(name: str) -> str:
    """Return a column's name as it stands in a term."""
    return name if name.isidentifier() else f"`{name}`"
