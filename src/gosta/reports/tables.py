"""The statistics of a study, and tables of their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gosta.reports import texts
from gosta.reports.blocks import List, Table
from gosta.statistics.estimate import Estimate
from gosta.views import numbers

BRACKET = "bracket "  # before the ends of one
WIDE_BRACKET = "wide bracket"
INCLUDES_0 = "; bracket includes 0"  # after a p-value
LEAST_P = 1e-4  # smaller ones are not told apart


class Found(NamedTuple):
    """One statistic of a study."""

    question: str
    name: str  # of the statistic
    estimate: Estimate
    score: str  # its column of scores, or columns; "" if it has none

    @property
    def title(self) -> str:
        """Return its name in the words of the field."""
        return texts.TITLES.get(self.name, self.name.replace("-", " "))

    @property
    def heading(self) -> str:
        """Return its name and its score, as a heading."""
        return f"{capital(self.title)}, {self.score}".removesuffix(", ")


def values_table(found: Sequence[Found], has_meanings: bool = False) -> Table:
    """Return a table of single values: a line for each statistic, a column for each score."""
    scores = list(dict.fromkeys(one.score for one in found))
    by_title: dict[str, dict[str, str]] = {}
    for one in found:
        title = capital(one.title)
        if has_meanings and one.name in texts.MEANINGS:
            title += f"\n{texts.MEANINGS[one.name]}"
        by_title.setdefault(title, {})[one.score] = value_cells(one.estimate)[0]
    rows = [[title, *(row.get(score, "") for score in scores)] for title, row in by_title.items()]
    heading = ["", *(score or "value" for score in scores)]
    what = "Differences" if found[0].question == "comparison" else "Values"
    return Table(with_intervals(what, found), heading, rows)


def groups_without_value(found: Iterable[Found]) -> list[List]:
    """Return which groups have no value, and why: one that is withheld once, for all statistics."""
    said = dict.fromkeys(
        f"{group.group}{'' if group.n is None else f', {one.heading}'}: {group.reason}"
        for one in found
        for group in one.estimate.groups
        if group.value is None and group.reason
    )
    return [List([*said])] if said else []


def value_cells(estimate: Estimate) -> list[str]:
    """Return each value, with its interval, bracket and p-value in lines below."""
    values = np.ravel(np.asarray(estimate.value, dtype=np.float64))
    pairs = {} if estimate.level is None else {"": (estimate.low, estimate.high)}
    if estimate.bracket is not None:
        pairs[BRACKET] = estimate.bracket
    found = {word: np.column_stack([np.ravel(end) for end in pair]) for word, pair in pairs.items()}
    p_values = np.nan if estimate.p_value is None else np.ravel(estimate.p_value)
    cells = []
    for k, p_value in enumerate(np.broadcast_to(p_values, len(values)).tolist()):
        own = {word: ends[k].tolist() for word, ends in found.items() if len(ends) == len(values)}
        is_p = estimate.labels[k : k + 1] == ("p-value",)
        lines = _value_lines(float(values[k]), own, p_text if is_p else numbers.short)
        if np.isfinite(p_value):
            bracket = own.get(BRACKET, [np.nan])
            includes = bracket[0] <= 0 <= bracket[-1] and values[k] != 0
            equals = "" if p_value < LEAST_P else "= "
            lines.append(f"p {equals}{p_text(p_value)}{INCLUDES_0 * bool(includes)}")
        cells.append("\n".join(lines))
    return cells


def _value_lines(
    value: float, pairs: Mapping[str, Sequence[float]], show: Callable[..., str]
) -> list[str]:
    """Return a value, and below it the ends of its interval, in parentheses, and its bracket."""
    known = {word: pair for word, pair in pairs.items() if np.isfinite(pair).all()}
    ends = [end for pair in pairs.values() for end in pair if np.isfinite(end)]
    lines = [show(value, *ends)]
    for word, pair in known.items():
        shown = [show(end, value, *ends) for end in pair]
        if set(shown) != {lines[0]}:  # otherwise it is exact as it is shown
            text = " to ".join(shown)
            lines.append(f"{word}{text}" if word else f"({text})")
    if BRACKET in pairs and BRACKET not in known and np.isfinite(value):
        lines.append(WIDE_BRACKET)
    return lines


def p_text(p_value: float, *_: float) -> str:
    """Return a p-value as papers have it.

    >>> p_text(0.0312), p_text(2e-9)
    ('0.031', '< 0.0001')
    """
    return f"< {LEAST_P:.4f}" if p_value < LEAST_P else numbers.p_value(p_value)


def with_intervals(what: str, found: Sequence[Found]) -> str:
    """Return a caption that names the level of the intervals, if there are some."""
    known = [one.estimate for one in found if np.isfinite(one.estimate.low).any()]
    level = next((estimate.level for estimate in known if estimate.level is not None), None)
    return what if level is None else f"{what} with {percent(level)} intervals"


def percent(level: float) -> str:
    return numbers.percent(level, "g")


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]
