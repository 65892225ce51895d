"""The ledger of disclosures: which own rows were sent to which neighbour, and how often."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from gosta.net.storage.damage import checksum

SCHEMA = """
CREATE TABLE ledger (
    data TEXT NOT NULL, neighbour TEXT NOT NULL, first_row INTEGER NOT NULL, rows INTEGER NOT NULL,
    total INTEGER NOT NULL, times INTEGER NOT NULL,
    first_time REAL NOT NULL, last_time REAL NOT NULL, checksum BLOB NOT NULL,
    PRIMARY KEY (data, neighbour, first_row, rows)
) WITHOUT ROWID;
"""
KIND = "rows-shown"  # of entries among the records, which a snapshot moves to the ledger


class Shown(NamedTuple):
    """Own rows that are sent to a neighbour."""

    data: str  # digest of all own rows
    neighbour: str
    first_row: int  # counted from 0, in the order of the data file
    rows: int  # so many from there on; after the last row comes the first one
    total: int  # number of own rows

    def row_numbers(self) -> Iterator[int]:
        """The rows, counted from 0."""
        return ((self.first_row + k) % self.total for k in range(self.rows))


class Disclosure(NamedTuple):
    """How often own rows were sent to a neighbour, and when, in seconds since 1970."""

    shown: Shown
    times: int
    first_time: float
    last_time: float


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Disclosure).decode


def add(known: dict[Shown, Disclosure], new: Disclosure) -> None:
    """Add a disclosure to those of the same rows to the same neighbour."""
    old = known.get(new.shown)
    known[new.shown] = (
        new
        if old is None
        else Disclosure(
            new.shown, old.times + new.times, old.first_time, max(old.last_time, new.last_time)
        )
    )


def read(db: sqlite3.Connection) -> list[Disclosure]:
    """Return the ledger; raise `ValueError` if it is damaged."""
    found = []
    for *shown, times, first, last, stored in db.execute("SELECT * FROM ledger"):
        disclosure = Disclosure(msgspec.convert(shown, Shown), times, first, last)
        if _checksum(disclosure) != stored:
            raise ValueError("an entry of the ledger of disclosures does not match its checksum")
        found.append(disclosure)
    return found


def write(db: sqlite3.Connection, new: Iterable[Disclosure]) -> None:
    """Add disclosures to the ledger."""
    key = "data = ? AND neighbour = ? AND first_row = ? AND rows = ?"
    for disclosure in new:
        old = db.execute(
            f"SELECT times, first_time FROM ledger WHERE {key}", disclosure.shown[:4]
        ).fetchone()
        if old is not None:
            disclosure = Disclosure(
                disclosure.shown, old[0] + disclosure.times, old[1], disclosure.last_time
            )
        db.execute(
            "REPLACE INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*disclosure.shown, *disclosure[1:], _checksum(disclosure)),
        )


def _checksum(disclosure: Disclosure) -> bytes:
    return checksum(disclosure.times, "ledger", encode(disclosure))
