"""Numbers as text: estimates, errors, percentages, counts, intervals and durations.

>>> number(0.96313619), number([1.5, None]), number(math.nan)
('0.963136', '1.5, -', '-')
>>> interval(0.25, 0.75), interval(None, None)
('0.25 to 0.75', '-')
>>> short(0.9), short(12.345), short(-0.00012345), short(1234.5), short(None), short(0.01, 0.2)
('0.900', '12.3', '−0.0001', '1,234', '-', '0.010')
>>> percent(0.12345), percent(0.9999, "g"), percent(None)
('12.3 %', '99.99 %', '-')
>>> error(0.0123), error(421.0), error(0.0123, relative=False)
('1.23 %', '421 x', '0.0123')
>>> error([0.01, None, 0.87])
'1 %, -, 87 %'
>>> count(1234567), count(1, "run"), count(4, "run"), count(1e13), count(float("inf"))
('1,234,567', '1 run', '4 runs', '1.00e+13', 'more than 9e15')
>>> duration(1.52), duration(75), duration(3960), duration(None)
('1.5 s', '1 min 15 s', '1 h 6 min', '-')
>>> milliseconds(0.00123), milliseconds(0.3), milliseconds(None)
('1.2 ms', '300 ms', '-')
"""

from __future__ import annotations

import math
from collections.abc import Sequence

NONE = "-"  # stands for a value that does not exist
WITHHELD = "withheld"  # stands for a number of rows that is not told
MINUS, ABOUT = "\N{MINUS SIGN}", "\N{ALMOST EQUAL TO}"
NOTHING = 1e-12  # in texts for readers, smaller numbers are 0
MAX_EXACT = 2**53  # floats count exactly up to here


def number(value: float | Sequence[float | None] | None, digits: int = 6) -> str:
    """Format an estimate with one or several components."""
    if value is None or value != value:
        return NONE
    if isinstance(value, int | float):
        return f"{value:.{digits}g}"
    return ", ".join(number(part, digits) for part in value)


def p_value(value: float | None) -> str:
    """Format a p-value: with two digits, and below 0.0001 as a power of ten.

    >>> [p_value(p) for p in (0.72345, 0.0499, 0.000555, 5.5e-5, 1.234e-12, 1.0, float("nan"))]
    ['0.72', '0.050', '0.00056', '5.5e-5', '1.2e-12', '1.0', '-']
    """
    if value is None or math.isnan(value):
        return NONE
    if value == 0 or value >= 1e-4:
        return f"{value:#.2g}"
    digits, _, exponent = f"{value:.1e}".partition("e")
    return f"{digits}e{int(exponent)}"


def interval(low: float | None, high: float | None, digits: int = 6) -> str:
    """Format the ends of an interval."""
    if low is None or high is None or math.isnan(low):
        return NONE
    return f"{number(low, digits)} to {number(high, digits)}"


def short(value: float | None, *others: float) -> str:
    """Format a value for a reader who compares it with others: about three digits.

    With `others`, such as the ends of its interval, it has as many decimals as these need.
    """
    if value is None or not math.isfinite(value):
        return NONE
    most = max(abs(one) for one in (value, *others) if math.isfinite(one))
    if NOTHING < most < 1e-4:
        return f"{value:.3g}".replace("-", MINUS)
    decimals = 0 if most >= 1000 else 1 if most >= 10 else 4 if NOTHING < most < 0.00995 else 3
    text = f"{value:,.{decimals}f}"
    is_zero = not text.strip("-0.")
    return text.lstrip("-") if is_zero else text.replace("-", MINUS)


def short_interval(value: float, low: float, high: float) -> str:
    """Format the ends of an interval or bracket with as many decimals as `short` gives the value.

    >>> short_interval(0.71, 0.682, 0.74), short_interval(0.1, -0.05, 0.25)
    ('0.682 to 0.740', '−0.050 to 0.250')
    """
    return " to ".join(short(end, value, low, high) for end in (low, high))


def percent(share: float | None, spec: str = ".3g") -> str:
    """Format a share as a percentage."""
    return NONE if share is None else f"{100 * share:{spec}} %"


def error(value: float | Sequence[float | None] | None, relative: bool = True) -> str:
    """Format an error: a relative one in per cent, from 10 upwards as a factor; others as numbers.

    Several errors, one for each value of an estimate, are separated by commas.
    """
    if isinstance(value, Sequence):
        return ", ".join(error(part, relative) for part in value)
    if value is None or math.isnan(value):
        return NONE
    if not relative:
        return number(value, 3)
    return percent(value) if abs(value) < 10 else f"{value:.3g} x"


def count(value: float, noun: str = "") -> str:
    """Format how many there are, with a noun in the singular if given."""
    text = "more than 9e15"
    if value < MAX_EXACT:
        text = f"{value:,.0f}" if value < 1e12 else f"{value:.2e}"
    return f"{text} {noun}{'s' * (text != '1')}" if noun else text


def size(rows: int | None, error: float = 0.0) -> str:
    """Format the number of rows of a value, which can have an error or not be told.

    >>> size(1481), size(1500, 240.0), size(None)
    ('n = 1,481', 'n ≈ 1,500', 'n withheld')
    """
    if rows is None:
        return f"n {WITHHELD}"
    return f"n {ABOUT if error else '='} {rows:,}"


def about(value: float, error: float) -> int:
    """Return a number of rows to the digits that its error leaves.

    >>> about(1481.3, 240.0)
    1500
    """
    step = 10 ** max(math.floor(math.log10(error)), 0) if error > 0 else 1
    return round(value / step) * step


def about_count(value: float, error: float) -> str:
    """Format how many there are; with an error, a sign says that the number is not exact.

    >>> about_count(1481.3, 0.0), about_count(1481.3, 240.0)
    ('1,481', '≈1,500')
    """
    return f"{ABOUT * (error > 0)}{count(about(value, error))}"


def duration(seconds: float | None) -> str:
    """Format a time span."""
    if seconds is None:
        return NONE
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def milliseconds(seconds: float | None) -> str:
    """Format a short time span."""
    return NONE if seconds is None else f"{1000 * seconds:.{1 if seconds < 0.01 else 0}f} ms"
