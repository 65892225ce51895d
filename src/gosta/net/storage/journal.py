"""The journal of a node: its records in order, and from time to time a snapshot of its state, in SQLite.

A record is written before any message that follows from it is sent. The state of a node follows from its records alone,
so a node that was killed restores the snapshot, applies the records after it and continues.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from gosta.errors import NetworkError
from gosta.net.protocol import records
from gosta.net.protocol.records import EpochStarted, Record, tag_of

MAX_KEPT_EXCHANGES = 100_000  # for verify and replay, some 60 MB; older ones are deleted
FORMAT = 3  # of the SQLite tables and records
LOCK_TIMEOUT_SECONDS = 1.0

SCHEMA = """
CREATE TABLE records (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE snapshot (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE node (one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL, boot_id TEXT NOT NULL);
"""
STARTED = tag_of(EpochStarted)
LAST_START = f"SELECT max(number) FROM records WHERE kind = '{STARTED}'"


class Journal:
    def __init__(self, path: Path | str, durable: bool = False, read_only: bool = False) -> None:
        self.path = path
        self._durable, self._read_only = durable, read_only
        try:
            self._open()
        except (sqlite3.DatabaseError, OSError) as error:
            raise self._unusable(error) from error

    def _open(self) -> None:
        has_wal = Path(f"{self.path}-wal").exists()
        read_uri = f"{Path(self.path).absolute().as_uri()}?mode=ro{'' if has_wal else '&immutable=1'}"
        target = read_uri if self._read_only else str(self.path)
        self._db = sqlite3.connect(target, isolation_level=None, uri=self._read_only, timeout=LOCK_TIMEOUT_SECONDS)
        if not self._read_only:
            if self.path != ":memory:":
                Path(self.path).chmod(0o600)  # it holds rows of other nodes
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")  # no other process, not even to read
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'NORMAL'}")
        found = self._db.execute("PRAGMA user_version").fetchone()[0]
        if found == 0 and not self._read_only:
            self._db.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT;")
        elif found != FORMAT:
            hint = "run the version that wrote it, or move it away, and the node starts anew with a new epoch"
            formats = f"has format {found}, and this version of gosta reads format {FORMAT}"
            raise NetworkError(f"journal {self.path} {formats}: {hint}")
        numbers = "SELECT max(number) FROM (SELECT number FROM records UNION ALL SELECT number FROM snapshot)"
        self.last_number: int = self._db.execute(numbers).fetchone()[0] or 0

    def _unusable(self, error: Exception) -> NetworkError:
        if "locked" in str(error):
            return NetworkError(f"journal {self.path} is in use by a process that runs this node; stop that one first")
        hint = "if it is damaged, move it away: the node then starts anew, and the network starts a new epoch"
        if "disk" in str(error):  # SQLite: disk I/O error, database or disk is full
            hint = "free space on its disk, or repair the disk; the journal itself is not damaged by that"
        return NetworkError(f"journal {self.path} cannot be used: {error}; {hint}")

    def check_owner(self, name: str) -> None:
        """Make this the journal of a node; raise `NetworkError` if it is another node's."""
        owner = self._db.execute("SELECT name FROM node").fetchone()
        if owner is not None and owner[0] != name:
            raise NetworkError(f"journal {self.path} is that of {owner[0]}, not of {name}; use another folder")
        if owner is None and not self._read_only:
            self._db.execute("INSERT INTO node VALUES (1, ?, '')", (name,))

    def disclose(self, data: str, to: str, first_row: int, rows: int, of: int) -> None:
        pass

    def disclosures(self, data: str) -> dict[int, int]:
        return {}

    def probe(self) -> None:
        """Try to write; raise `sqlite3.Error` if that fails."""
        self._db.execute("UPDATE node SET boot_id = boot_id")

    def may_be_truncated(self, boot_id: str) -> bool:
        """Return whether records may be missing: not durable, not closed, and the machine has booted since."""
        last = self._db.execute("SELECT boot_id FROM node").fetchone()[0]
        return not self._durable and last not in ("", boot_id)

    def mark_open(self, boot_id: str) -> None:
        """Note that the journal is being written to, since this boot of the machine."""
        self._db.execute("UPDATE node SET boot_id = ?", (boot_id,))

    def append(self, new: Sequence[Record]) -> None:
        """Write records, all or none."""
        with self._transaction() if len(new) > 1 else contextlib.nullcontext():  # one statement is a transaction
            for number, record in enumerate(new, self.last_number + 1):
                row = number, tag_of(record), records.encode(record)
                self._db.execute("INSERT INTO records VALUES (?, ?, ?)", row)
        self.last_number += len(new)

    def save_snapshot(self, snapshot: bytes) -> None:
        """Save the state after all records so far; delete those that neither verify nor replay need."""
        last = self.last_number
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?)", (last, snapshot))
            self._db.execute(f"DELETE FROM records WHERE number < ({LAST_START})")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def load(self) -> tuple[bytes | None, list[Record]]:
        """Return the last snapshot, if any, and the records after it."""
        try:
            row = self._db.execute("SELECT number, body FROM snapshot").fetchone()
            number, snapshot = (0, None) if row is None else row
            return snapshot, self._select("number > ?", number)
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error

    def load_epoch(self) -> tuple[EpochStarted | None, list[Record]]:
        """Return the start of the last epoch, and its records as far as they are kept."""
        started = self._select(f"number = ({LAST_START})")
        return (started[0] if started else None), self._select(f"number > coalesce(({LAST_START}), 0)")  # type: ignore[return-value]

    def _select(self, where: str, *values: int) -> list[Record]:
        rows = self._db.execute(f"SELECT body FROM records WHERE {where} ORDER BY number", values)
        try:
            return [records.decode(body) for (body,) in rows]
        except (msgspec.DecodeError, sqlite3.DatabaseError) as error:
            raise self._unusable(error) from error

    def close(self) -> None:
        """Close the file and note that no record is missing."""
        if not self._read_only:
            with contextlib.suppress(sqlite3.Error):  # on a full disk; the next start treats it as a crash
                self._db.execute("UPDATE node SET boot_id = ''")
        self._db.close()
