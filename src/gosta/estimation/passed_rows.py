"""Rows that nodes pass on: all that a node was sent, and what it sends each neighbour next.

Each row goes once over each edge, in the order in which rows came. So a node knows a new row after
nearly every exchange, on any network, where a visitor that wanders takes long to leave its
neighbourhood.
"""

from __future__ import annotations

Row = tuple[float, ...]


class PassedRows:
    """What a node knows of rows.

    Attributes
    ----------
    rows
        All rows that it knows by their home, in the order in which they came; its own is the first.
    came_from
        Name of the neighbour from which each of them came.
    sent
        For each neighbour the place of the first row that was not considered for it yet.
    """

    def __init__(self, home: str, row: Row) -> None:
        self.rows = {home: row}
        self.came_from = [""]
        self.sent: dict[str, int] = {}

    def place_for(self, neighbour: str) -> int:
        """Return the place of the row that a neighbour is sent next; 0, the own: none is new."""
        place = self.sent.get(neighbour, 0)
        while place < len(self.came_from) and self.came_from[place] == neighbour:
            place += 1
        return place if place < len(self.came_from) else 0

    def row_for(self, neighbour: str) -> tuple[str, Row]:
        """Return home and numbers of the row that a neighbour is sent next."""
        return list(self.rows.items())[self.place_for(neighbour)]

    def exchange(self, neighbour: str, home: str, row: Row) -> None:
        """Note that a neighbour was sent the next row, and take in the one that came."""
        self.sent[neighbour] = max(self.sent.get(neighbour, 0), self.place_for(neighbour) + 1)
        if home not in self.rows:
            self.rows[home] = row
            self.came_from.append(neighbour)
