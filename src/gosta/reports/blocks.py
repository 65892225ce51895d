"""What a report consists of: sections of paragraphs, tables and pictures, without a format."""

from __future__ import annotations

from typing import NamedTuple

from gosta.statistics.pictures import Picture


class Text(NamedTuple):
    """A paragraph."""

    text: str


class Table(NamedTuple):
    """A table; a line break within a cell separates a value from what is said of it.

    A line in parentheses, such as an interval, stands beside the value where there is room.
    """

    caption: str
    heading: list[str]
    rows: list[list[str]]
    is_detail: bool = False  # of a picture: shown on request only


class Figures(NamedTuple):
    """Pictures beside each other."""

    pictures: list[Picture]


class List(NamedTuple):
    """Several short texts."""

    items: list[str]


Block = Text | Table | Figures | List


class Section(NamedTuple):
    """A heading and what stands below it."""

    title: str
    blocks: list[Block]

    @property
    def anchor(self) -> str:
        """Return the name by which the table of contents finds it."""
        return "-".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split())


class Report(NamedTuple):
    """All that a report shows."""

    title: str
    subtitle: str  # of which rows, computed how and when
    sections: list[Section]
