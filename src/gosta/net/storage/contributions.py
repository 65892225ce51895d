"""The log of contributions to private sums: what left this site.

Entries are only ever added, and form a hash chain.

The hash of an entry is SHA-256 of the hash before it, 32 zero bytes for the first, and of the
entry's JSON. Whoever has noted the last hash finds every later change of an entry before it, and
every entry that was removed.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from gosta.errors import NetworkError
from gosta.private.log import LogEntry
from gosta.runtime.files import write_atomically

SCHEMA = """
CREATE TABLE IF NOT EXISTS contributions (
    number INTEGER PRIMARY KEY, entry TEXT NOT NULL, hash BLOB NOT NULL
);
"""
FIRST_HASH = bytes(32)
MAX_HEAD_BYTES = 1000
INSERT = "INSERT INTO contributions VALUES (?, ?, ?)"


class Logged(NamedTuple):
    """An entry as it is in the log."""

    number: int  # counted from 1
    text: str  # its JSON
    hash: bytes

    @property
    def entry(self) -> LogEntry:
        try:
            return msgspec.json.decode(self.text, type=LogEntry)
        except msgspec.DecodeError as error:
            raise NetworkError(
                f"entry {self.number} of the log of contributions is damaged: {error}"
            ) from None

    def line(self) -> str:
        """Return the entry as a line of JSON, with its text as it was hashed."""
        return f'{{"number":{self.number},"hash":"{self.hash.hex()}","entry":{self.text}}}'


def next_hash(previous: bytes, text: str) -> bytes:
    return hashlib.sha256(previous + text.encode()).digest()


def extend(last: Logged | None, entries: Sequence[LogEntry]) -> list[Logged]:
    """Return new entries as they continue the log."""
    number, hash = (0, FIRST_HASH) if last is None else (last.number, last.hash)
    found = []
    for entry in entries:
        text = msgspec.json.encode(entry).decode()
        number, hash = number + 1, next_hash(hash, text)
        found.append(Logged(number, text, hash))
    return found


def read(db: sqlite3.Connection) -> list[Logged]:
    """Return the log; empty also where the journal is of a version without one."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'contributions'").fetchone() is None:
        return []
    return [
        Logged(*row)
        for row in db.execute("SELECT number, entry, hash FROM contributions ORDER BY number")
    ]


def find_break(log: Sequence[Logged]) -> int | None:
    """Return the number of the first entry that does not continue the chain; None if all do."""
    hash = FIRST_HASH
    for number, entry in enumerate(log, 1):
        if entry.number != number or next_hash(hash, entry.text) != entry.hash:
            return number
        hash = entry.hash
    return None


def find_damage(head: Path, log: Sequence[Logged]) -> str:
    """Return why a log cannot be all that left the site; empty if it can."""
    number = find_break(log)
    return (
        find_lost(head, log)
        if number is None
        else f"was changed: entry {number}, or one before it was removed"
    )


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of the file beside the journal that says where its log ended last."""

    number: int
    hash: str


def write_head(path: Path, log: Sequence[Logged]) -> None:
    """Note a log's last entry outside the journal, so that an older journal is recognised."""
    hash = log[-1].hash if log else FIRST_HASH
    write_atomically(path, msgspec.json.encode(Head(len(log), hash.hex())), mode=0o600)


def find_lost(path: Path, log: Sequence[Logged]) -> str:
    """Return why a log cannot be the site's last one, as the file that `write_head` writes says.

    Empty if it can.
    """
    try:
        head = msgspec.json.decode(path.read_bytes()[:MAX_HEAD_BYTES], type=Head)
    except FileNotFoundError:
        return ""
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"cannot be compared with {path.name}: {error}"
    if not head.number or any(
        entry.number == head.number and entry.hash.hex() == head.hash for entry in log
    ):
        return ""
    return f"ends at entry {len(log)}, and {path.name} tells of entry {head.number}"
