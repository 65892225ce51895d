"""Harmonisation of a site's file: its names, values, units and missing codes become the network's.

It is done where a file is read, so that everything after it sees the rows as a file would hold them
that was written in the words of the network. Numbers in another unit are multiplied as decimal
numbers, by which 12.3 per cent becomes the float that is written 0.123.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gosta.datasets.cells import with_point
from gosta.datasets.columns import MISSING, Columns, from_cells, match_key
from gosta.errors import DataError, InputError, unknown
from gosta.runtime.settings_file import Key

ALL_COLUMNS = ""  # the name under which missing codes of all columns stand
# A number with signs between thousands, and what follows it, such as a unit or a percent sign.
MEASURE = re.compile(r"\s*([-+]?\d[\d.,'’\s]*?)\s*([^\d\s.,'’][^\d]*)?")
THOUSANDS = re.compile(r"([-+]?[1-9]\d{0,2})((?:[.,'’\s]\d{3})+)")
Values = str | int | float


class Harmonisation(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    repr_omit_defaults=True,
):
    """How a file's names, values and units become those of the network.

    Examples
    --------
    >>> rules = Harmonisation({"died": "verstorben"}, {"died": {"ja": "yes"}}, {"risk": 0.01})
    >>> raw = {"verstorben": np.array(["ja", "yes"], dtype=object), "risk": np.array([12.3, 45.0])}
    >>> {name: column.tolist() for name, column in rules.apply(raw, "data.csv").items()}
    {'died': ['yes', 'yes'], 'risk': [0.123, 0.45]}
    """

    columns: Annotated[
        dict[str, str], Key("name in the network, and the name of the column in the file")
    ] = {}
    values: Annotated[
        dict[str, dict[str, Values]],
        Key("of a column: what the file holds, and what it stands for in the network"),
    ] = {}
    scale: Annotated[
        dict[str, float],
        Key(
            "by which the numbers of a column are multiplied; its cells may have a unit, a percent "
            "sign or signs between thousands"
        ),
    ] = {}
    na_values: Annotated[
        dict[str, tuple[Values, ...]] | tuple[Values, ...],
        Key('that stand for a missing value, in all columns or by column; "": in all'),
    ] = {}

    def check(self, place: str = "") -> None:
        """Raise `InputError` for factors that are no numbers to multiply with."""
        for name, factor in self.scale.items():
            if not (math.isfinite(factor) and factor != 0):
                raise InputError(
                    f"{place}scale of {name!r} = {factor!r} must be a number other than 0, such as "
                    "0.01"
                )

    @property
    def codes(self) -> Mapping[str, tuple[Values, ...]]:
        """The values that mean "missing", by column."""
        codes = self.na_values
        return codes if isinstance(codes, Mapping) else {ALL_COLUMNS: codes}

    def missing(self, name: str, decimal: str = ".") -> set[float | str]:
        """Return the keys of values that stand for a missing one in a column."""
        codes = (*self.codes.get(ALL_COLUMNS, ()), *self.codes.get(name, ()))
        return set[float | str]().union(*(_keys(code, decimal) for code in codes))

    def unused_codes(self, columns: Columns, source: object, decimal: str = ".") -> list[str]:
        """Return the values for missing ones that no cell of a file has, as options name them."""
        renamed = self._rename(columns, source)
        unused = []
        for name, codes in self.codes.items():
            read = renamed.values() if name == ALL_COLUMNS else [renamed[name]]
            cells = {cell for column in read for cell in _plain(column.tolist())}
            known = set[float | str]().union(*(_keys(cell, decimal) for cell in cells))
            known |= MISSING  # readers have replaced these
            own = [code for code in codes if known.isdisjoint(_keys(code, decimal))]
            unused += [f"{name}:{code}" if name else str(code) for code in own]
        return unused

    def updated(self, other: Harmonisation) -> Harmonisation:
        """Return these rules and others, which count where both say something.

        >>> Harmonisation({"a": "x"}).updated(Harmonisation({"a": "y", "b": "z"})).columns
        {'a': 'y', 'b': 'z'}
        """
        values = {
            name: {**self.values.get(name, {}), **other.values.get(name, {})}
            for name in (*self.values, *other.values)
        }
        return Harmonisation(
            {**self.columns, **other.columns},
            values,
            {**self.scale, **other.scale},
            {
                name: (*self.codes.get(name, ()), *other.codes.get(name, ()))
                for name in (*self.codes, *other.codes)
            },
        )

    def limited_to(self, columns: Columns) -> Harmonisation:
        """Return the rules of columns that a file has.

        >>> Harmonisation({"a": "x", "b": "y"}, scale={"b": 2.0}).limited_to({"x": np.ones(1)})
        Harmonisation(columns={'a': 'x'})
        """
        own = {name: theirs for name, theirs in self.columns.items() if theirs in columns}
        names = {ALL_COLUMNS, *own, *(columns.keys() - set(own.values()))}
        codes = self.na_values
        if isinstance(codes, Mapping):
            codes = {name: some for name, some in codes.items() if name in names}
        return Harmonisation(
            own,
            {name: values for name, values in self.values.items() if name in names},
            {name: factor for name, factor in self.scale.items() if name in names},
            codes,
        )

    def apply(self, columns: Columns, source: object, decimal: str = ".") -> Columns:
        """Return the columns of a file in the words of the network."""
        renamed = self._rename(columns, source)
        for name in (*self.values, *self.scale, *self.codes):
            if name not in renamed and name != ALL_COLUMNS:
                raise unknown(f"column of {source}", name, renamed)
        return {name: self._column(name, column, decimal) for name, column in renamed.items()}

    def _rename(self, columns: Columns, source: object) -> dict[str, NDArray[Any]]:
        names: dict[str, list[str]] = {}
        for name, theirs in self.columns.items():
            if theirs not in columns:
                raise unknown(f"column of {source}", theirs, columns)
            if name in columns and name not in self.columns.values():
                raise DataError(
                    f"{source} has a column {name!r} already, so that {theirs!r} cannot have this "
                    "name; rename one of the two"
                )
            names.setdefault(theirs, []).append(name)
        return {
            name: column
            for theirs, column in columns.items()
            for name in names.get(theirs, [theirs])
        }

    def _column(self, name: str, column: NDArray[Any], decimal: str) -> NDArray[Any]:
        missing = self.missing(name, decimal)
        meaning = {match_key(key): value for key, value in self.values.get(name, {}).items()}
        if missing or meaning:
            column = _replace(column, missing, meaning, decimal)
        if name in self.scale:
            column = _multiply(_measures(name, column, decimal), self.scale[name])
        return column


def as_harmonisation(given: Harmonisation | Mapping[str, Any]) -> Harmonisation:
    """Return rules that may be given as a mapping of their four kinds."""
    if isinstance(given, Harmonisation):
        return given
    try:
        return msgspec.convert(dict(given), Harmonisation)
    except (msgspec.ValidationError, TypeError) as error:
        raise InputError(
            f"harmonise: {error}; give columns, values, scale and na_values, such as "
            '{"columns": {"died": "verstorben"}}'
        ) from None


def _replace(
    column: NDArray[Any],
    missing: set[float | str],
    meaning: Mapping[float | str, Values],
    decimal: str,
) -> NDArray[Any]:
    """Return a column with other values, of the type that a file with these would have."""
    if column.dtype.kind not in "OUbiuf":  # dates
        return column
    if column.dtype.kind in "biuf":
        known = [key for key in (*missing, *meaning) if isinstance(key, float)]
        if not np.isin(column, known).any():
            return column
    cells = column.tolist()
    changed = _changes(_plain(cells), missing, meaning, decimal)
    if not changed:
        return column
    return from_cells(
        [changed.get(cell, cell) if isinstance(cell, Values | Decimal) else cell for cell in cells],
        decimal,
    )


def _changes(
    cells: set[Any], missing: set[float | str], meaning: Mapping[float | str, Values], decimal: str
) -> dict[Any, Values | None]:
    """Return what the cells stand for that are to be changed; None: a missing value.

    Capitals do not count in values with a meaning, unless two of these differ by them only.
    """
    folded = {_fold(key): value for key, value in meaning.items()}
    if len(folded) < len(meaning):
        folded = {}
    found: dict[Any, Values | None] = {}
    for cell in cells:
        key = _cell_key(cell)
        if not missing.isdisjoint(_keys(cell, decimal)):
            found[cell] = None
        elif key in meaning:
            found[cell] = meaning[key]
        elif _fold(key) in folded:
            found[cell] = folded[_fold(key)]
    return found


def _fold(key: float | str) -> float | str:
    return key.casefold() if isinstance(key, str) else key


def _plain(cells: Iterable[Any]) -> set[Any]:
    """Return the different numbers and texts among cells."""
    return {cell for cell in cells if isinstance(cell, Values | Decimal) and cell == cell}


def _keys(value: Any, decimal: str) -> set[float | str]:
    """Return the keys of a value, one of which it shares with other forms of the same number.

    >>> _keys("104,2 %", ",") & _keys(104.2, ",")
    {104.2}
    """
    number = with_point(str(value).strip().removesuffix("%").rstrip(), decimal)
    return {_cell_key(value), match_key(number)}


def _cell_key(value: Any) -> float | str:
    """Return the key of a cell, whose spaces at the ends do not count."""
    return match_key(value.strip() if isinstance(value, str) else value)


def _measures(name: str, column: NDArray[Any], decimal: str) -> NDArray[Any]:
    """Return a column of numbers without units and signs between thousands."""
    if column.dtype != object:
        return column
    units = Counter[str]()
    cells = [_bare_number(value, decimal, units) for value in column.tolist()]
    if len(units) > 1:
        shown = " and ".join(f"{unit!r} ({count} cells)" for unit, count in units.most_common(3))
        raise DataError(
            f"column {name!r} has numbers in {shown}", remedy="write all in one unit in the file"
        )
    return from_cells(cells, decimal)


def _bare_number(value: Any, decimal: str, units: Counter[str]) -> Any:
    """Return the number in a cell as text, and count its unit; other values as they are."""
    if not isinstance(value, str) or not (found := MEASURE.fullmatch(value)):
        return value
    number, unit = found.groups()
    if unit:
        units[unit.strip()] += 1
    whole, point, fraction = number.rpartition(decimal)
    if not point:
        whole, fraction = number, ""
    if THOUSANDS.fullmatch(whole):
        whole = re.sub(r"[.,'’\s]", "", whole)
    return whole + point + fraction


def _multiply(column: NDArray[Any], factor: float) -> NDArray[Any]:
    """Return numbers in another unit, each the float nearest to the product of decimals."""
    if column.dtype.kind not in "biuf":
        return column  # whoever needs numbers says what is wrong
    exact = Decimal(repr(factor))
    return np.array([_product(value, exact) for value in column.tolist()], dtype=np.float64)


def _product(value: float, factor: Decimal) -> float:
    return float(Decimal(repr(+value)) * factor) if math.isfinite(value) else value


def parse(
    column: Iterable[str] = (),
    value: Iterable[str] = (),
    scale: Iterable[str] = (),
    na_values: Iterable[str] = (),
) -> Harmonisation:
    """Return the rules that options of the command line give.

    >>> parse(["died=verstorben"], ["died:ja=yes"], ["risk=0.01"]).columns
    {'died': 'verstorben'}
    """
    return Harmonisation(
        dict(_split(text, "column", "died=verstorben") for text in column),
        _parse_values(value),
        _parse_scale(scale),
        _parse_na_values(na_values),
    )


def _parse_values(texts: Iterable[str]) -> dict[str, dict[str, Values]]:
    """Parse COLUMN:VALUE=MEANING, with several by commas.

    >>> _parse_values(["died:ja=yes,nein=no", "sex:w=F"])
    {'died': {'ja': 'yes', 'nein': 'no'}, 'sex': {'w': 'F'}}
    """
    found: dict[str, dict[str, Values]] = {}
    for text in texts:
        name, colon, pairs = text.partition(":")
        if not (name and colon):
            raise InputError(f"value = {text!r} must be COLUMN:VALUE=MEANING, such as died:ja=yes")
        own = found.setdefault(name, {})
        own |= dict(_split(pair, "value", "died:ja=yes,nein=no") for pair in pairs.split(","))
    return found


def _parse_scale(texts: Iterable[str]) -> dict[str, float]:
    """Parse COLUMN=FACTOR.

    >>> _parse_scale(["risk=0.01"])
    {'risk': 0.01}
    """
    found = {}
    for text in texts:
        name, factor = _split(text, "scale", "risk=0.01")
        try:
            found[name] = float(factor)
        except ValueError:
            raise InputError(f"scale = {text!r} must be COLUMN=FACTOR, such as risk=0.01") from None
    return found


def _parse_na_values(texts: Iterable[str]) -> dict[str, tuple[Values, ...]]:
    """Parse COLUMN:VALUE, or several items by commas, of which the first names no column.

    What begins with a column has one value, which may have commas; a value with a colon is written
    after another one.

    >>> _parse_na_values(["k.A.,-9,age:999", ":n:a", "risk:104,2%"])
    {'': ('k.A.', '-9', 'n:a'), 'age': ('999',), 'risk': ('104,2%',)}
    """
    found: dict[str, tuple[Values, ...]] = {}
    for text in texts:
        items = text.split(",")
        for item in [text] if ":" in items[0] else items:
            name, colon, code = item.partition(":")
            if not colon:
                name, code = ALL_COLUMNS, item
            found[name] = (*found.get(name, ()), code.strip())
    return found


def _split(text: str, option: str, example: str) -> tuple[str, str]:
    name, equals, rest = text.partition("=")
    if not (name.strip() and equals):
        raise InputError(f"{option} = {text!r} must be written as in {example}")
    return name.strip(), rest.strip()
