"""Which counts of a table to leave out, so that small ones do not follow from those that are shown.

That is complementary cell suppression, as statistical offices do it: a count below the least that
is shown is left out. While it, or a small sum of such counts in a line of the table, follows from
the sums of lines that are known, so is the next smallest count of the line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from gosta.runtime.arrays import Booleans, Floats, Integers

CLOSE_TO_0 = 1e-9  # of products of sums of counts, which are 0 or about 1


class Line(NamedTuple):
    """Counts that add up to a count, as indices; the sum is known if it has no index."""

    members: Integers
    total: int | None


def suppressed(
    counts: Floats,
    groups: Sequence[tuple[int, Sequence[int]]],
    untold: Sequence[int],
    min_cell: int,
    first: Booleans | bool = False,
) -> Booleans:
    """Return which counts to leave out of a table.

    `counts` is rows of people × classes. The first row is all of them, `groups` has rows and those
    that add up to them, and `untold` are rows that are not shown.
    `first` says which classes of the first row are left out in any case.
    """
    hidden = (counts > 0) & (counts < min_cell)
    hidden[0] |= first & (counts[0] > 0)
    hidden[list(untold)] = True
    lines = list(_lines(counts.shape, groups))
    flat = hidden.ravel()
    while flat.any() and (place := _next(counts.ravel(), flat, lines, min_cell)) is not None:
        flat[place] = True
    hidden = flat.reshape(counts.shape)
    hidden[list(untold)] = False
    return hidden


def _lines(shape: tuple[int, ...], groups: Sequence[tuple[int, Sequence[int]]]) -> Iterator[Line]:
    """Yield the lines of a table: the classes of each row, and the groups of each class."""
    places = np.arange(shape[0] * shape[1]).reshape(shape)
    if shape[1] > 1:
        yield from (Line(row, None) for row in places)
    for whole, rows in groups:
        yield from (Line(places[list(rows), k], int(places[whole, k])) for k in range(shape[1]))


def _next(counts: Floats, hidden: Booleans, lines: Sequence[Line], min_cell: int) -> int | None:
    """Return the count to leave out next; None if nothing small follows from the others."""
    free = _undetermined(hidden, lines)
    for line in lines:
        for chosen in _small_sums(counts, hidden, line, min_cell):
            if np.abs(free[chosen].sum(axis=0)).max(initial=0.0) < CLOSE_TO_0:
                crossing = [one.members for one in lines if np.isin(chosen, one.members).any()]
                for places in (line.members, *crossing, np.arange(len(hidden))):
                    shown = places[~hidden[places]]
                    if len(shown):  # a count of 0 only where there is no other
                        sizes = np.where(counts[shown] > 0, counts[shown], np.inf)
                        return int(shown[np.argmin(sizes)])
    return None


def _undetermined(hidden: Booleans, lines: Sequence[Line]) -> Floats:
    """Return directions in which counts can change without a change of what is known.

    A sum of counts follows from what is known if no direction changes it.
    """
    equations = np.zeros((len(lines) + 1, len(hidden)))
    for equation, line in zip(equations, lines, strict=False):
        equation[line.members] = 1.0
        if line.total is not None:
            equation[line.total] = -1.0
    _, sizes, directions = np.linalg.svd(equations[:, hidden])
    kept = directions[(sizes > CLOSE_TO_0).sum() :]
    free = np.zeros((len(hidden), len(kept)))
    free[hidden] = kept.T
    return free


def _small_sums(counts: Floats, hidden: Booleans, line: Line, min_cell: int) -> Iterator[list[int]]:
    """Yield the counts of a line that are left out and small together."""
    if line.total is not None and hidden[line.total] and 0 < counts[line.total] < min_cell:
        yield [line.total]
    own = [place for place in line.members.tolist() if hidden[place] and counts[place] < min_cell]
    for taken in range(1, len(own) + 1):
        for chosen in combinations(own, taken):
            if 0 < counts[list(chosen)].sum() < min_cell:
                yield list(chosen)
