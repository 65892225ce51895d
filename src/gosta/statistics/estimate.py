"""A value with its interval, and all that it was computed from.

It is shown as text, as plain values for JSON, and as a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, isnan, nan
from typing import Any, NamedTuple

import numpy as np

from gosta.runtime.arrays import Floats, Integers
from gosta.statistics import assumptions, pictures
from gosta.statistics.definition import Normalisation
from gosta.statistics.differences import differences
from gosta.statistics.distributions import interval_p
from gosta.statistics.heterogeneity import Heterogeneity
from gosta.views import html, numbers, plots, terminal

MOST_SHOWN = 20  # values of one statistic in a line, and points of a curve in a table
CURVE_DIGITS = 4  # of a table of a curve
MOST_POINTS = 11  # shown of a curve that has more than MOST_SHOWN
POPULATION, ALL_TRIPLES = "the population", "all triples"  # what an interval can be for
NO_HETEROGENEITY = "it takes one value, and two groups with an interval"


class Estimate(NamedTuple):
    """A value of a statistic with its interval, and what it was computed from.

    Examples
    --------
    >>> import gosta
    >>> found = gosta.exact("breast-cancer", "auc", interval=0.95)
    >>> f"{found.value:.3f}, {found.low:.3f} to {found.high:.3f}"
    '0.963, 0.945 to 0.975'
    >>> f"{found:.3f}", round(found, 3)
    ('0.963', 0.963)
    >>> found.n, found.columns[-1], found.assumed["positive"]
    (569, 'diagnosis', 'malignant')
    """

    # Of the statistic over the rows: a number, or an array of several; None: see `reason`.
    value: Any
    low: Any = nan  # lower end of the interval, or lower ends
    high: Any = nan  # upper end of the interval, or upper ends
    # Of the value or values, for rows drawn from the population; NaN: not known.
    standard_error: Any = nan
    level: float | None = None  # confidence level of the interval, such as 0.95; None: no interval
    # From sums in bins: the value over the rows is between these two, numbers or arrays.
    bracket: tuple[Any, Any] | None = None
    # Of a statistic of several values: what each is for, such as "before 30".
    labels: tuple[str, ...] = ()
    statistic: str = ""  # as it was asked for
    data: str = ""  # the name of the data
    group: str | None = None  # of rows that it is the value of; None: all rows
    n: Any = None  # number of complete rows; None: not told
    reason: str = ""  # why there is no value, or no interval though one was asked for
    remedy: str = ""  # what to do then; "" if the reason says so
    columns: tuple[str, ...] = ()  # of the data that were used, the label last
    options: Mapping[str, Any] = {}  # of the statistic that were given
    normalisation: Normalisation | None = None  # None for a statistic that is not pairwise
    weights: str | None = None  # the column of weights
    tuples: str = ""  # how many pairs or triples of rows were counted, in words
    covers: str = POPULATION  # what the interval is for; of a sample of triples: all of these
    seconds: float | None = None  # that the computation took, if it was measured
    # What the user had not said: see `gosta.statistics.assumptions`.
    assumed: Mapping[str, Any] = {}
    warnings: tuple[str, ...] = ()  # what to have a look at, one sentence each
    by: str | None = None  # the column of groups of rows
    groups: tuple[Estimate, ...] = ()  # the estimates of these groups
    heterogeneity: Heterogeneity | None = None  # how much the groups differ beyond chance
    # By several columns, each alone: the same estimate with the groups by one of them.
    groupings: tuple[Estimate, ...] = ()
    at: Any = None  # of a curve: places of its values on the horizontal axis
    axes: tuple[str, str] | None = None  # of a curve: names of its horizontal and vertical axis
    null_value: float | None = None  # the value that the p-value is for; None: there is none
    counts: Any = None  # of a curve: number of rows that each value rests on, where it is known
    n_error: float = 0.0  # standard error of `n` and of other numbers of rows, by noise

    def __float__(self) -> float:
        """Return the value, if it is one number."""
        if np.size(self.value) != 1:
            raise TypeError(
                f"this estimate has {np.size(self.value)} values; take one of estimate.value"
            )
        return float(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        """Return the value or values as an array."""
        return np.array(self.value, dtype=dtype)

    def __format__(self, spec: str) -> str:
        """Format the value as a number; without a format, all numbers."""
        return format(float(self), spec) if spec else str(self)

    def __round__(self, digits: int | None = None) -> float:
        """Round the value, if it is one number."""
        return round(float(self), digits)

    def __repr__(self) -> str:
        if self.at is not None:
            points = f"{self.statistic}: {np.size(self.value):,} points"
            return f"Estimate({points}, value, at{', low, high' * (self.level is not None)})"
        names = ["value"]
        if self.level is not None:
            names += ["low", "high", "standard_error", "level"]
        if self.bracket is not None:
            names.append("bracket")
        if self.labels:
            names.append("labels")
        return f"Estimate({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def _repr_html_(self) -> str:
        if self.value is not None and (self.labels or self.at is not None):
            title = f"{self.statistic} of {self.n:,} rows"
            return html.table(self.table(digits=CURVE_DIGITS), heading=True, caption=title)
        rows = {"value": numbers.number(self.value)}
        if self.level is not None:
            name = f"{numbers.percent(self.level, 'g')} interval"
            rows[name] = numbers.interval(self.low, self.high)
            rows["standard error"] = numbers.number(self.standard_error, 3)
        if self.p_value is not None:
            rows["p-value"] = ", ".join(map(numbers.p_value, np.ravel(self.p_value).tolist()))
        if self.bracket is not None:
            rows["bracket"] = numbers.interval(*self.bracket)
        return html.table(rows.items(), caption="Estimate")

    @property
    def size(self) -> str:
        """The number of rows as a text, which tells whether it is exact."""
        return numbers.size(self.n, self.n_error)

    @property
    def p_value(self) -> Any:
        """The two-sided p-value, or p-values, of the test that the interval inverts.

        So it is below 0.05 where a 95 % interval excludes the value to compare with, which only
        differences have: 0. None where there is no such value.
        """
        if self.null_value is None or self.value is None or self.level is None:
            return None
        parts = np.broadcast_arrays(self.value, self.low, self.high)
        each = zip(*(np.ravel(part).tolist() for part in parts), strict=True)
        level, null = self.level, self.null_value
        found = [interval_p(value, low, high, level, null) for value, low, high in each]
        return found[0] if np.ndim(self.value) == 0 else np.array(found)

    @property
    def plain_value(self) -> Any:
        """The value as Python's own numbers, with None for points of a curve without a value."""
        return _finite(self.value) if isinstance(self.value, np.ndarray) else self.value

    @property
    def group_values(self) -> list[Any]:
        """The values of the groups that have one."""
        return [group.plain_value for group in self.groups if group.plain_value is not None]

    @property
    def differences(self) -> tuple[Estimate, ...]:
        """The value of each group less that of the largest one; empty where no errors are known."""
        return differences(self.groups)

    def with_groupings(self, grouped: Sequence[Estimate]) -> Estimate:
        """Return the estimate with the groups of others, each by one column."""
        return grouped[0] if len(grouped) == 1 else self._replace(groupings=tuple(grouped))

    @property
    def grouped(self) -> tuple[Estimate, ...]:
        """The estimate with its groups, once for each column that they are by."""
        return self.groupings or ((self,) if self.by is not None else ())

    @property
    def mean_of_groups(self) -> Any:
        """The mean of the groups' own values, each counting once; None: there is none."""
        values = self.group_values
        if len({np.size(value) for value in values}) != 1:
            return None
        means = np.mean(np.array(values, dtype=np.float64), axis=0)
        return _finite(means) if isinstance(means, np.ndarray) else float(means)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, as the command line prints it with ``--json``."""
        record: dict[str, Any] = {"data": self.data, **self._numbers()}
        del record["group"]
        record |= {
            "columns": list(self.columns),
            "options": dict(self.options),
            "normalisation": self.normalisation,
            "assumed": dict(self.assumed),
            "warnings": list(self.warnings),
        }
        if self.seconds is not None:
            record["seconds"] = round(self.seconds, 6)
        if self.tuples:
            record["tuples"] = self.tuples
        if self.weights is not None:
            record["weights"] = self.weights
        if self.by is not None:
            record |= self._groups()
        if self.groupings:
            record["groupings"] = [one._groups() for one in self.groupings]
        return record

    def plot(self, ax: Any = None) -> Any:
        """Draw the curve with its intervals, or the values of groups, and return the axes.

        Without `ax` into a new figure, which notebooks show.
        """
        ax = plots.shown_figure(*pictures.CURVE_SIZE).add_subplot() if ax is None else ax
        pictures.draw_one(self, ax)
        return ax

    def _groups(self) -> dict[str, Any]:
        """Return the groups and how they differ as plain values."""
        compared = self.heterogeneity
        return {
            "by": self.by,
            "groups": [group._numbers() for group in self.groups],
            "differences": [difference._numbers() for difference in self.differences],
            "mean_of_groups": self.mean_of_groups,
            "groups_in_mean": len(self.group_values),
            "heterogeneity": None if compared is None else compared._asdict(),
            "heterogeneity_reason": NO_HETEROGENEITY if compared is None else "",
        }

    def _numbers(self) -> dict[str, Any]:
        """Return the value and its interval as plain values."""
        record: dict[str, Any] = {
            "statistic": self.statistic,
            "group": self.group,
            "n": self.n,
            "value": None if self.value is None else _finite(self.value),
            "reason": self._reason_and_remedy,
        }
        if self.level is not None:
            ends = {"low": self.low, "high": self.high, "standard_error": self.standard_error}
            record["interval"] = {name: _finite(value) for name, value in ends.items()}
            record["interval"]["level"] = self.level if self.covers == POPULATION else None
        if self.p_value is not None:
            record |= {"p_value": _finite(self.p_value), "null_value": self.null_value}
        if self.bracket is not None:
            record["bracket"] = [_finite(end) for end in self.bracket]
        if self.labels:
            record["labels"] = list(self.labels)
        if self.axes is not None:
            record["axes"] = list(self.axes)
        for name in ("at", "counts"):
            if getattr(self, name) is not None:
                record[name] = np.asarray(getattr(self, name)).tolist()
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Estimate:
        """Return the estimate of plain values, as `to_dict` gives them.

        >>> found = Estimate(0.8, 0.7, 0.9, level=0.95, statistic="auc", n=50)
        >>> Estimate.from_dict(found.to_dict()).high
        0.9
        """
        known = {name: record[name] for name in cls._fields if record.get(name) is not None}
        interval = record.get("interval") or {}
        known |= {name: interval[name] for name in interval if interval[name] is not None}
        for name in ("value", "low", "high", "standard_error", "at", "counts"):
            if isinstance(known.get(name), list):
                known[name] = np.array(known[name], dtype=np.float64)
        for name in ("labels", "axes", "columns", "warnings"):
            known[name] = tuple(known[name]) if name in known else cls._field_defaults[name]
        if "bracket" in known:
            low, high = (np.array(end, dtype=np.float64) for end in known["bracket"])
            known["bracket"] = (low, high) if low.ndim else (float(low), float(high))
        known |= {"value": known.get("value"), **_groups_of(record)}
        own = [_groups_of(one) | {"by": one["by"]} for one in record.get("groupings", ())]
        known["groupings"] = tuple(cls(**{**known, **one, "groupings": ()}) for one in own)
        return cls(**known)

    @property
    def _reason_and_remedy(self) -> str:
        return "; ".join(filter(None, [self.reason, self.remedy]))

    def row(self) -> dict[str, Any]:
        """Return the value and its interval as a row of a data frame."""
        has_interval, error = self.level is not None, self.standard_error
        return {
            "statistic": self.statistic,
            "group": "all rows" if self.group is None else self.group,
            "n": self.n,
            "value": self.plain_value,
            "low": _finite(self.low) if has_interval else None,
            "high": _finite(self.high) if has_interval else None,
            "standard_error": _finite(error) if has_interval else None,
            "p_value": None if self.p_value is None else _finite(self.p_value),
            "reason": self._reason_and_remedy,
        }

    def table(self, digits: int = 6) -> list[list[str]]:
        """Return the lines of a table of several values: what each is for, value, interval.

        Of a long curve there are some points, from the first to the last. The first line is the
        heading.
        """
        values, shown = np.ravel(self.value), np.arange(np.size(self.value))
        heads, heading = self.labels, ["", "value"]
        if self.at is not None:
            heading, shown = list(self.axes or heading), points_shown(values)
            heads = tuple(numbers.number(x, digits) for x in np.ravel(self.at).tolist())
        cells = [
            numbers.p_value(values[k])
            if heads[k] == "p-value"
            else numbers.number(values[k], digits)
            for k in shown
        ]
        columns = [[heads[k] for k in shown], cells]
        pairs: dict[str, Any] = {}
        if self.level is not None and np.size(self.low) == len(values):
            pairs[f"{numbers.percent(self.level, 'g')} interval"] = (self.low, self.high)
        if self.bracket is not None:
            pairs["bracket"] = self.bracket
        for name, pair in pairs.items():
            low, high = (np.ravel(end)[shown].tolist() for end in pair)
            columns.append(
                [numbers.interval(*ends, digits) for ends in zip(low, high, strict=True)]
            )
            heading.append(name)
        if self.p_value is not None:
            columns.append([numbers.p_value(p) for p in np.ravel(self.p_value)[shown].tolist()])
            heading.append("p")
        return [heading, *map(list, zip(*columns, strict=True))]

    def _table_lines(self) -> list[str]:
        """Return the table of several values, and how many points of a curve it leaves out."""
        is_curve = self.at is not None
        heading, *rows = self.table(digits=CURVE_DIGITS if is_curve else 6)
        has_heading = is_curve or len(heading) > 2
        lines = [terminal.columns([heading, *rows] if has_heading else rows, right=[1])]
        points = int(np.isfinite(np.ravel(self.value)).sum())
        if is_curve and len(rows) < points:
            lines.append(f"  {len(rows)} of {points:,} points (--json: all; --plot draws them)")
        return lines

    def _interval_line(self) -> str:
        """Return the interval of one value, with its standard error and p-value if known."""
        what = f"{numbers.percent(self.level, 'g')} interval"
        what += f" for {self.covers}" * (self.covers != POPULATION)
        line = f"  {numbers.interval(self.low, self.high)} ({what})"
        if isnan(self.standard_error):
            return line
        return f"{line}, standard error {numbers.number(self.standard_error, 3)}{p_text(self)}"

    def text(self) -> str:
        """Return the value, its interval, and what it was computed from, in lines."""
        value = self.plain_value
        is_long = self.at is None and isinstance(value, list) and len(value) == self.n > MOST_SHOWN
        has_table = bool(self.labels) or self.at is not None
        shown = "one value for each row, below" if is_long else numbers.number(value)
        lines = [f"{self.statistic} of {self.data}: {'' if has_table else shown}".rstrip()]
        if has_table:
            lines += self._table_lines()
        elif self.level is not None:
            lines.append(self._interval_line())
        seconds = "" if self.seconds is None else f"{self.seconds:.2g} s"
        sizes = ["" if self.n is None else f"{self.n:,} rows", self.tuples, seconds]
        lines.append(f"  {', '.join(size for size in sizes if size)}")
        by_weights = f", weighted by {self.weights}" * bool(self.weights)
        lines.append(f"  from {shown_columns(self.columns)}{by_weights}")
        lines += [f"  {terminal.printable(line)}" for line in assumptions.text(self.assumed)]
        if isinstance(value, list) and is_long:
            lines += [f"  row {k}: {numbers.number(each)}" for k, each in enumerate(value, 1)]
        return "\n".join([*lines, *warning_lines([self])])


def _groups_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the groups of plain values, and how they differ."""
    compared = record.get("heterogeneity")
    return {
        "groups": tuple(Estimate.from_dict(group) for group in record.get("groups", ())),
        "heterogeneity": None if compared is None else Heterogeneity(**compared),
    }


def p_text(estimate: Estimate) -> str:
    """Return the p-value of one value, to be shown after others."""
    p = estimate.p_value
    return "" if p is None or not isfinite(p) else f", p = {numbers.p_value(p)}"


def points_shown(values: Any) -> Integers:
    """Return which points of a curve a table shows: those with a value, or some of very many."""
    known = np.flatnonzero(np.isfinite(np.asarray(values, dtype=np.float64)))
    if len(known) <= MOST_SHOWN:
        return known
    places = np.linspace(0, len(known) - 1, MOST_POINTS).round().astype(np.int64)
    return np.asarray(known[places], dtype=np.int64)


def _finite(values: Any) -> float | list[float | None] | None:
    """Return plain numbers, with None for those that are not finite, which JSON does not know."""
    if np.ndim(values) == 0:
        return float(values) if isfinite(values) else None
    return [value if isfinite(value) else None for value in np.asarray(values).tolist()]


def warning_lines(estimates: Sequence[Estimate]) -> list[str]:
    """Return the warnings of estimates, each once."""
    warnings = dict.fromkeys(warning for estimate in estimates for warning in estimate.warnings)
    return [f"warning: {terminal.printable(warning)}" for warning in warnings]


def shown_columns(names: Sequence[str]) -> str:
    """Return the names of a few columns, or the first and the last one of many."""
    if len(names) <= 3:
        return ", ".join(names)
    return f"{names[0]}, ..., {names[-1]} ({len(names)} columns)"
