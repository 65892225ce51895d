"""The text that names statistics and their columns: "auc:risk,kendall-tau@weight:age+risk,mine.py:gap"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gosta.errors import InputError


class Wanted(NamedTuple):
    """A statistic that was asked for."""

    title: str  # as it was written
    name: str  # of the statistic; FILE.py:NAME for one's own; with row weights NAME@COLUMN
    columns: tuple[str, ...]  # empty: those selected for all statistics

    @property
    def weights(self) -> str:
        """The column of weights; empty: rows have none."""
        return self.name.partition("@")[2]


def parse(texts: str | Sequence[str]) -> list[Wanted]:
    """Parse NAME or NAME:COLUMN+COLUMN, separated by commas; NAME can be FILE.py:NAME, or NAME@COLUMN with weights.

    >>> [(one.name, one.columns) for one in parse("auc,kendall-tau:age+risk")]
    [('auc', ()), ('kendall-tau', ('age', 'risk'))]
    >>> parse("mine.py:gap:age")
    [Wanted(title='mine.py:gap:age', name='mine.py:gap', columns=('age',))]
    """
    given = [texts] if isinstance(texts, str) else texts
    titles = [title.strip() for text in given for title in text.split(",")]
    found = [_wanted(title) for title in titles if title]
    if not found:
        raise InputError("statistic is empty: name at least one, such as auc")
    for title in titles:
        if not title:
            raise InputError(f"statistic = {','.join(given)!r} has a comma too many")
    return found


def _wanted(title: str) -> Wanted:
    name, _, columns = title.partition(":")
    if name.endswith(".py"):
        own, _, columns = columns.partition(":")
        name = f"{name}:{own}" if own else name
    if title.endswith((":", "+")):
        raise InputError(f"statistic = {title!r} must end with a column, such as {name}:age")
    return Wanted(title, name, tuple(columns.split("+")) if columns else ())
