"""What rows are called in messages: a line of a text file, a row of a sheet, or a position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class RowNames:
    """The names of the rows of a table, or of some of them.

    Examples
    --------
    >>> names = RowNames("line", first=2)
    >>> names[0], names.take(np.array([3, 7]), 8)[1], RowNames()[0]
    ('line 2', 'line 9', 'row 1')
    """

    word: str = "row"  # what is counted
    first: int = 1  # number of the table's first row, if `numbers` does not say it
    numbers: Numbers | None = None  # of the table's rows, where some are left out between them
    places: Numbers | None = None  # of these rows in the table; None: all
    # Tables below each other, each with its name, the names of its rows, and how many it has.
    parts: tuple[tuple[str, RowNames, int], ...] = ()

    def __getitem__(self, place: int | np.integer[Any]) -> str:
        place = int(place if self.places is None else self.places[place])
        for file, names, count in self.parts:
            if place < count:
                return f"{names[place]} of {file}"
            place -= count
        number = self.first + place if self.numbers is None else self.numbers[place]
        return f"{self.word} {number}"

    def take(self, rows: Any, count: int) -> RowNames:
        """Return the names of some of the rows, which are that many: as an array is indexed."""
        places = np.arange(count) if self.places is None else self.places
        return replace(self, places=places[rows])


def below(parts: Sequence[tuple[str, RowNames, int]]) -> RowNames:
    """Return the names of the rows of several tables, one below the other."""
    return parts[0][1] if len(parts) == 1 else RowNames(parts=tuple(parts))
