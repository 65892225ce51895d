"""Snapshots of rows: which changes of a file count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gosta.private.settings import PrivateSettings
from gosta.private.snapshots import block_digests, count_changes, take_snapshot
from gosta.sketches import make_layout

LAYOUT = make_layout("covariance", PrivateSettings(ranges={"": (0.0, 16.0)}), columns=("a", "b"))
ROWS = [[1.0, 2.0], [3.0, 4.0], [3.0, 4.0], [0.0, 1.0]]
KEY = b"k" * 32


def digests(rows: Any, people: Any = None, key: bytes = KEY) -> list[bytes]:
    return [
        *block_digests(LAYOUT, take_snapshot(np.array(rows), LAYOUT, people, 0.0), key).values()
    ]


@pytest.mark.parametrize(
    ("rows", "changed"),
    [
        ([[-0.0, 1], [3, 4], [1, 2], [3, 4]], 0),  # another order, another zero
        ([[1, 2], [3, 4], [0, 1]], 1),  # one of two equal rows left
        ([[1, 2], [3, 4], [3, 5], [0, 1]], 1),  # one replaced
        ([[1, 2], [3, 4], [3, 5], [9, 9], [0, 1]], 2),
    ],
)
def test_changed_rows_are_counted(rows: list[list[float]], changed: int) -> None:
    assert [count_changes(*pair) for pair in zip(digests(ROWS), digests(rows), strict=True)] == [
        changed
    ]


def test_who_lacks_the_key_learns_nothing_from_digests() -> None:
    assert count_changes(digests(ROWS)[0], digests(ROWS, key=b"l" * 32)[0]) == 4


@pytest.mark.parametrize(
    ("rows", "people", "changed"),
    [
        ([1, 0, 2, 3], ["ann", "ann", "bob", "bob"], [0, 0]),
        ([0, 1, 2, 3], ["p1", "p1", "p2", "p2"], [0, 0]),  # new pseudonyms
        ([0, 1, 2, 3], ["ann", "bob", "bob", "bob"], [0, 2]),  # a row of another person
        ([0, 1, 2, 2], ["ann", "ann", "bob", "bob"], [1, 1]),
        ([0, 1, 2, 3, 3], ["ann", "ann", "bob", "bob", "cy"], [1, 1]),
    ],
)
def test_changed_people_are_counted_without_their_names(
    rows: list[int], people: list[str], changed: list[int]
) -> None:
    before, after = (
        digests(ROWS, ["ann", "ann", "bob", "bob"]),
        digests(np.array(ROWS)[rows], people),
    )
    assert [count_changes(*pair) for pair in zip(before, after, strict=True)] == changed


def test_the_order_of_lines_does_not_matter() -> None:
    people = np.array(["ann", "bob", "ann", "cy"])
    one = take_snapshot(np.array(ROWS), LAYOUT, people, 0.0)
    other = take_snapshot(np.array(ROWS)[::-1], LAYOUT, people[::-1], 1.0)
    assert one.digest == other.digest
    assert one.digest != take_snapshot(np.array(ROWS), LAYOUT, people[::-1], 0.0).digest


@pytest.mark.parametrize(
    ("corrected", "what"), [((0.11, 1.0), "in a narrow bin"), ((0.1, -1.0), "a label")]
)
def test_digests_of_a_first_round_show_what_either_round_adds_up(
    corrected: tuple[float, float], what: str
) -> None:
    """The first round has narrow bins and no classes; the second one has classes and wide bins."""
    settings = PrivateSettings(bins=4, ranges={"": (0.0, 1.0)}, find_edges=True)
    layout = make_layout("auc", settings, score="score", label="label", classes=(0, 1))
    before, after = (
        block_digests(layout, take_snapshot(np.array(rows), layout, None, 0.0), KEY)
        for rows in ([(0.1, 1.0), (0.9, -1.0)], [corrected, (0.9, -1.0)])
    )
    assert len(before) == 2
    assert [count_changes(before[name], after[name]) for name in before].count(1) == 1, what
