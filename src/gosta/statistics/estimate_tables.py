"""Several estimates together: as lines of text, and as a data frame."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np

from gosta.runtime.extras import is_installed
from gosta.statistics import assumptions
from gosta.statistics.estimate import (
    NO_HETEROGENEITY,
    Estimate,
    p_text,
    shown_columns,
    warning_lines,
)
from gosta.statistics.heterogeneity import compared_groups
from gosta.views import numbers, terminal

MOST_WIDE = 40  # characters of several values in a cell of a table
MOST_LINES = 5  # values of one statistic with a line each beside other statistics or groups


def as_frame(estimates: Sequence[Estimate]) -> Any:
    """Return a pandas data frame, with a row for each statistic and group.

    Without pandas it is a list of dictionaries. The frame's `attrs["estimates"]` holds what
    `Estimate.from_dict` takes, such as to draw groups, and `attrs["heterogeneity"]`
    Cochran's Q, I² and the spread between groups of each statistic.
    """
    records = []
    for estimate in estimates:
        common = {
            "columns": list(estimate.columns),
            "warnings": list(estimate.warnings),
            "assumed": dict(estimate.assumed),
        }
        rows = [part.row() for part in (*estimate.groups, estimate)]
        if estimate.by is None:
            del rows[0]["group"]
        else:
            rows += [*(part.row() for part in estimate.differences), *_summary_rows(estimate)]
        records += [row | common for row in rows]
    if not is_installed("pandas"):
        return records
    import pandas as pd

    frame = pd.DataFrame(records)
    frame.attrs["estimates"] = [estimate.to_dict() for estimate in estimates]
    compared = {
        estimate.statistic: estimate.heterogeneity
        for estimate in estimates
        if estimate.by is not None
    }
    if compared:
        frame.attrs["heterogeneity"] = {
            name: None if found is None else found._asdict() for name, found in compared.items()
        }
    return frame


def _summary_rows(pooled: Estimate) -> list[dict[str, Any]]:
    """Return the means of the groups as rows of a data frame."""
    groups = [group for group in pooled.groups if group.value is not None]
    mean = Estimate(
        pooled.mean_of_groups,
        statistic=pooled.statistic,
        group="mean of groups",
        n=sum(group.n for group in groups),
    )
    compared = pooled.heterogeneity
    if compared is None:
        return [mean.row()]
    n = sum(group.n for group in compared_groups(groups))
    random_effects = mean._replace(
        group="random-effects mean",
        n=n,
        value=compared.mean,
        low=compared.mean_interval[0],
        high=compared.mean_interval[1],
        level=compared.level,
    )
    return [mean.row(), random_effects.row()]


def table_text(
    estimates: Sequence[Estimate], reasons: Sequence[tuple[str, str]], level: float | None
) -> str:
    """Return a line for each statistic, or for each of its groups, and what was assumed below.

    `reasons` are names of other statistics, and why they do not fit the data; `level` is that of
    the intervals that were asked for.
    """
    first = estimates[0]
    by = first.by
    heading = ["statistic", *([by] if by else []), "rows", "value"]
    if level is not None:
        heading.append(f"{numbers.percent(level, 'g')} interval")
    cells = [[*heading, "" if by else "columns"]]
    for estimate in (one for several in estimates for one in _single_values(several)):
        if by:
            cells += _group_cells(estimate)
        else:
            cells.append(_cells(estimate, level is not None, shown_columns(estimate.columns)))
    none = [numbers.NONE] * (len(heading) - 1)
    cells += [[title, *none, reason] for title, reason in reasons]
    right = [heading.index("rows"), heading.index("value")]
    by_weights = "" if first.weights is None else f", weighted by {first.weights}"
    rows = numbers.count(first.n + first.assumed["rows_dropped"], "row")
    lines = [
        terminal.printable(f"{first.data}, {rows}{by_weights}"),
        terminal.columns(cells, right=right),
    ]
    if by:
        lines += [
            f"{terminal.printable(estimate.statistic)}: {_differences(estimate)}"
            for estimate in estimates
            if np.ndim(estimate.value) == 0
        ]
    titles_by_line: dict[str, list[str]] = {}
    for estimate in estimates:
        for line in assumptions.text({**estimate.assumed, "columns_left_out": []}):
            titles_by_line.setdefault(line, []).append(estimate.statistic)
    lines += [
        terminal.printable(f"{', '.join(titles)}: {line}")
        for line, titles in titles_by_line.items()
    ]
    return "\n".join([*lines, *warning_lines(estimates)])


def _single_values(estimate: Estimate) -> list[Estimate]:
    """Return an estimate for each of a few values that have names and intervals."""
    names = estimate.labels if np.ndim(estimate.low) and np.size(estimate.low) <= MOST_LINES else ()
    return [_single_value(estimate, k) for k in range(len(names))] or [estimate]


def _single_value(estimate: Estimate, place: int) -> Estimate:
    """Return the estimate of one of several values, also in groups that have them."""
    if np.ndim(estimate.value) == 0:
        return estimate
    numbers_of = {
        name: getattr(estimate, name)[place]
        for name in ("value", "low", "high", "standard_error", "degrees")
        if np.ndim(getattr(estimate, name))
    }
    if isnan(numbers_of["value"]):
        numbers_of["value"] = None
    return estimate._replace(
        **numbers_of,
        statistic=f"{estimate.statistic}: {estimate.labels[place]}",
        labels=(),
        at=None,
        groups=tuple(_single_value(group, place) for group in estimate.groups),
    )


def _cells(estimate: Estimate, has_interval: bool, last: str) -> list[str]:
    value, ends = numbers.number(estimate.plain_value), [numbers.NONE]
    if np.ndim(estimate.value):
        is_curve = estimate.at is not None
        if is_curve or len(value) > MOST_WIDE:
            what = "points" if is_curve else "values"
            value = f"{np.size(estimate.value):,} {what} (--json)"
    elif estimate.level is not None:
        ends = [numbers.interval(estimate.low, estimate.high)]
        ends[0] += p_text(estimate)
    return [
        estimate.statistic,
        numbers.NONE if estimate.n is None else f"{estimate.n:,}",
        value,
        *ends * has_interval,
        estimate.reason or last,
    ]


def _group_cells(pooled: Estimate) -> list[list[str]]:
    """Return the cells of all groups, of all rows, and of the means of the groups."""
    lines = [
        ["", estimate.group or "all rows", *_cells(estimate, True, "")[1:]]
        for estimate in (*pooled.groups, pooled)
    ]
    lines[0][0] = pooled.statistic
    title = f"mean of {numbers.count(len(pooled.group_values), 'group')}"
    if pooled.at is None or np.ndim(pooled.value) == 0:
        lines.append(["", title, "", numbers.number(pooled.mean_of_groups), "", ""])
    compared = pooled.heterogeneity
    if compared is not None:
        mean, ends = numbers.number(compared.mean), numbers.interval(*compared.mean_interval)
        lines.append(["", "random-effects mean", "", mean, ends, ""])
    lines += [["", str(one.group), *_cells(one, True, "")[1:]] for one in pooled.differences]
    return lines


def _differences(pooled: Estimate) -> str:
    """Return in words how much the groups differ."""
    compared = pooled.heterogeneity
    if compared is None:
        return f"how much the groups differ beyond chance is not known: {NO_HETEROGENEITY}"
    share = numbers.percent(compared.i_squared)
    if compared.i_squared_interval is not None:
        share += f" ({' to '.join(map(numbers.percent, compared.i_squared_interval))})"
    spread = ""
    if compared.spread_interval is not None:
        ends = numbers.interval(*compared.spread_interval, 3)
        spread = f"; spread between groups {numbers.number(compared.spread, 3)} ({ends})"
    groups = numbers.count(compared.groups, "group")
    test = f"Cochran's Q {numbers.number(compared.q, 4)} of {groups}"
    p = f"p = {numbers.p_value(compared.p_value)}"
    return f"{test}, {p}; I² {share}{spread}"
