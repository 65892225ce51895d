"""The journal of a node: its records in order, and snapshots of its state, in SQLite.

A record is written before any message that follows from it is sent. The state of a node follows
from its records alone, so a node that was killed restores the snapshot, applies the records after
it and continues. Everything that is read has a checksum; SQLite's own structure and its write-ahead
log are checked when the journal is opened.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gosta.errors import NetworkError
from gosta.net.protocol import records
from gosta.net.protocol.records import (
    EpochStarted,
    ExchangeCompleted,
    ExchangeConfirmed,
    ReceiptReceived,
    Record,
    tag_of,
)
from gosta.net.storage import contributions, damage, ledger
from gosta.net.storage.contributions import Logged
from gosta.net.storage.damage import checksum
from gosta.net.storage.ledger import Disclosure, Shown
from gosta.private.log import LogEntry

KEEP_EXCHANGES = 100_000  # last exchanges that stay for verify and replay, some 100 MB
FORMAT = 4  # version of the SQLite tables and records
LOCK_TIMEOUT_SECONDS = 1.0  # that another process may keep the file locked
PROBE_BYTES = 1 << 16  # a disk with less space than this counts as full
STRETCH_RECORDS = 512  # exchanges of earlier processes are counted, and deleted, in such stretches
STARTED = tag_of(EpochStarted)
RECEIPT = tag_of(ReceiptReceived)
EXCHANGES = tag_of(ExchangeCompleted), tag_of(ExchangeConfirmed)  # one at either side

SCHEMA = f"""
CREATE TABLE records (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL, checksum BLOB NOT NULL
);
CREATE TABLE snapshot (
    one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, body BLOB NOT NULL,
    checksum BLOB NOT NULL
);
CREATE TABLE node (
    one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL, boot_id TEXT NOT NULL,
    checksum BLOB NOT NULL
);
CREATE TABLE probe (one INTEGER PRIMARY KEY CHECK (one = 1), body BLOB NOT NULL);
{ledger.SCHEMA}"""
INSERT = "INSERT INTO records VALUES (?, ?, ?, ?)"
LAST_START = f"SELECT max(number) FROM records WHERE kind = '{STARTED}'"
# What reading a damaged file can raise; `checksum` fails with a value of another type than it was
# written with.
DAMAGE = (
    sqlite3.Error,
    msgspec.MsgspecError,
    OSError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
)

kind_of = functools.cache(tag_of)


class Retention:
    """Which records are no longer needed: all but the last exchanges of the epoch, and its start.

    It counts in memory, so that the journal is not searched for them.
    """

    def __init__(self, keep_exchanges: int) -> None:
        self._keep_exchanges = keep_exchanges
        # The last number, and the exchanges, of each stretch of records, in order.
        self._stretches: deque[tuple[int, int]] = deque()
        self._exchanges = 0  # in all stretches together
        self._new_exchanges = 0  # after the last stretch
        self._boundary = 0  # records up to this number are not needed,
        self._start = 0  # but for the start of the epoch, which has this number
        self._receipts: list[int] = []  # since the last snapshot, which has them

    def add(self, number: int, kind: str) -> None:
        """Take note of a record."""
        if kind in EXCHANGES:
            self._new_exchanges += 1
        elif kind == STARTED:
            self._stretches.clear()
            self._exchanges = self._new_exchanges = 0
            self._boundary, self._start = number - 1, number
        elif kind == RECEIPT:
            self._receipts.append(number)

    def add_stretch(self, last_number: int, exchanges: int) -> None:
        """Take note of the exchanges up to a record."""
        self._stretches.append((last_number, exchanges))
        self._exchanges += exchanges

    def expire(self, last_number: int) -> tuple[int, int, list[int]]:
        """End a stretch.

        Return up to which number records can go, the one that stays, and receipts that can go.
        """
        self.add_stretch(last_number, self._new_exchanges)
        self._new_exchanges = 0
        while self._stretches and self._exchanges - self._stretches[0][1] >= self._keep_exchanges:
            self._boundary, exchanges = self._stretches.popleft()
            self._exchanges -= exchanges
        receipts, self._receipts = self._receipts, []
        return self._boundary, self._start, receipts


class Journal:
    """A journal that is open for writing, and locked, or only for reading."""

    def __init__(
        self,
        path: Path | str,
        durable: bool = False,
        read_only: bool = False,
        *,
        keep_exchanges: int = KEEP_EXCHANGES,
        secure_delete: bool = False,
    ) -> None:
        self.path = path
        self._durable, self._read_only, self._secure_delete = durable, read_only, secure_delete
        self._retention = Retention(keep_exchanges)
        self._shown: dict[Shown, Disclosure] = {}  # since the last snapshot
        with self._reporting_damage():
            self._log_is_complete = self._check_log()
            self._connect()
            try:
                self._check()
            except BaseException:
                self._db.close()
                raise

    # Opening.

    def _check_log(self) -> bool:
        """Return whether the write-ahead log is complete.

        To be called first, since SQLite repairs or deletes it.
        """
        if self.path == ":memory:" or not Path(self.path).exists():
            return True
        if not Path(self.path).stat().st_size:
            raise ValueError("it is empty")
        log = Path(f"{self.path}-wal")
        return log.exists() and damage.is_intact(log)

    def _connect(self) -> None:
        has_log = Path(f"{self.path}-wal").exists()
        read_uri = (
            f"{Path(self.path).absolute().as_uri()}?mode=ro{'' if has_log else '&immutable=1'}"
        )
        target = read_uri if self._read_only else str(self.path)
        self._db = sqlite3.connect(
            target, isolation_level=None, uri=self._read_only, timeout=LOCK_TIMEOUT_SECONDS
        )

    def _check(self) -> None:
        if not self._read_only:
            if self.path != ":memory:":
                Path(self.path).chmod(0o600)  # it holds rows of other nodes
            # half the time of a write; others cannot even read
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'NORMAL'}")
            self._db.execute(f"PRAGMA secure_delete = {'ON' if self._secure_delete else 'OFF'}")
        found = self._db.execute("PRAGMA user_version").fetchone()[0]
        if found == 0 and not self._read_only:
            self._db.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT;")
        elif found != FORMAT:
            hint = (
                "run the version that wrote it, or move it away, "
                "and the node starts anew with a new epoch"
            )
            formats = f"has format {found}, and this version of gosta reads format {FORMAT}"
            raise NetworkError(f"journal {self.path} {formats}: {hint}")
        (problem,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if problem != "ok":
            raise ValueError(problem.splitlines()[-1])
        if not self._read_only:
            self._db.executescript(contributions.SCHEMA)  # absent in journals of earlier versions
        last = self._db.execute("SELECT max(number) FROM records").fetchone()[0] or 0
        self.last_number: int = max(last, self._read_snapshot()[0])
        self._owner = self._read_owner()
        if not self._read_only:
            self._count_records()
            for entry in self._entries():
                ledger.add(self._shown, entry)
            ledger.read(self._db)
        elif self._may_lack_records():
            missing = (
                "its last records are missing, as its write-ahead "
                "log is damaged, ends early or is not there"
            )
            raise NetworkError(
                f"journal {self.path}: {missing}; start the node, and it starts a new epoch"
            )

    def _count_records(self) -> None:
        """Count what is there, so that records can be deleted later without a search."""
        for number, kind, _ in self._rows("kind IN (?, ?)", STARTED, RECEIPT):
            self._retention.add(number, kind)
        counted = f"kind IN {EXCHANGES} AND number > coalesce(({LAST_START}), 0)"
        stretches = (
            "SELECT max(number), count(*) FROM records WHERE "
            f"{counted} GROUP BY number / {STRETCH_RECORDS}"
        )
        for last_number, exchanges in self._db.execute(stretches):
            self._retention.add_stretch(last_number, exchanges)

    @contextlib.contextmanager
    def _reporting_damage(self) -> Iterator[None]:
        """Turn what a damaged or locked file raises into a `NetworkError`."""
        try:
            yield
        except DAMAGE as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> NetworkError:
        reason = str(error)
        if isinstance(error, sqlite3.OperationalError) and "locked" in reason:
            return NetworkError(
                f"journal {self.path} is in use by a process that runs this node; "
                "stop that one first"
            )
        if isinstance(error, OSError) or "unable to open" in reason:
            return NetworkError(
                f"journal {self.path} cannot be used: {reason}; is its folder there, and yours?"
            )
        # A disk I/O error, or a full disk.
        if isinstance(error, sqlite3.OperationalError) and "disk" in reason:
            hint = (
                "free space on its disk, or repair the disk; "
                "the journal itself is not damaged by that"
            )
            return NetworkError(f"journal {self.path} cannot be used: {reason}; {hint}")
        hint = "move it away: the node then starts anew, and the network starts a new epoch"
        return NetworkError(f"journal {self.path} is damaged: {reason}; {hint}")

    # The node that the journal belongs to.

    def _read_owner(self) -> tuple[str, str] | None:
        row = self._db.execute("SELECT name, boot_id, checksum FROM node").fetchone()
        if row is not None and _owner_checksum(row[0], row[1]) != row[2]:
            raise ValueError("the name of its node does not match its checksum")
        return None if row is None else (row[0], row[1])

    def _write_owner(self, name: str, boot_id: str) -> None:
        self._db.execute(
            "REPLACE INTO node VALUES (1, ?, ?, ?)", (name, boot_id, _owner_checksum(name, boot_id))
        )
        self._owner = name, boot_id

    def check_owner(self, name: str) -> None:
        """Make this the journal of a node; raise `NetworkError` if it is another node's."""
        if self._owner is not None and self._owner[0] != name:
            raise NetworkError(
                f"journal {self.path} is that of {self._owner[0]}, "
                f"not of {name}; use another folder"
            )
        if self._owner is None and not self._read_only:
            self._write_owner(name, "")

    def may_be_truncated(self, boot_id: str) -> bool:
        """Return whether records may be missing: part of the log, or what a reboot lost."""
        last = "" if self._owner is None else self._owner[1]
        return self._may_lack_records() or (not self._durable and last not in ("", boot_id))

    def _may_lack_records(self) -> bool:
        was_closed = self._owner is None or not self._owner[1]
        return not was_closed and not self._log_is_complete

    def mark_open(self, boot_id: str) -> None:
        """Note that the journal is being written to, since this boot of the machine."""
        assert self._owner is not None
        self._write_owner(self._owner[0], boot_id)
        self._empty_log()  # the note is in the database itself: from now on, a missing log is found

    def _empty_log(self) -> None:
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # Writing.

    def append(
        self, new: Sequence[Record], shown: Sequence[Shown] = (), entries: Sequence[LogEntry] = ()
    ) -> None:
        """Write records, which own rows are sent together with them, and entries of the log.

        All or none.
        """
        number, rows = self.last_number, []
        for record in new:
            number += 1
            kind, body = kind_of(type(record)), records.encode(record)
            rows.append((number, kind, body, checksum(number, kind, body)))
        now = time.time()
        disclosures = [Disclosure(rows_shown, 1, now, now) for rows_shown in shown]
        for disclosure in disclosures:
            number += 1
            body = ledger.encode(disclosure)
            rows.append((number, ledger.KIND, body, checksum(number, ledger.KIND, body)))
        insert = (
            INSERT + ", (?, ?, ?, ?)" * (len(rows) - 1),
            [value for row in rows for value in row],
        )
        if entries:
            log = self.contributions()
            with self._transaction():
                if rows:
                    self._db.execute(*insert)
                self._db.executemany(
                    contributions.INSERT, contributions.extend(log[-1] if log else None, entries)
                )
        elif rows:  # one statement is a transaction
            self._db.execute(*insert)
        # not before: a transaction can fail at its end, when the disk is full
        self.last_number = number
        for number, kind, _, _ in rows:
            self._retention.add(number, kind)
        for disclosure in disclosures:
            ledger.add(self._shown, disclosure)

    def save_snapshot(self, snapshot: bytes) -> None:
        """Save the state after all records so far.

        Delete those that neither verify nor replay need.
        """
        last = self.last_number
        boundary, kept, receipts = self._retention.expire(last)
        with self._transaction():
            row = last, snapshot, checksum(last, "snapshot", snapshot)
            self._db.execute("REPLACE INTO snapshot VALUES (1, ?, ?, ?)", row)
            ledger.write(self._db, self._shown.values())
            self._db.execute(
                "DELETE FROM records WHERE number <= ? AND number != ?", (boundary, kept)
            )
            delete = f"DELETE FROM records WHERE number = ? AND kind = '{RECEIPT}'"
            self._db.executemany(delete, [(number,) for number in receipts])
        self._shown.clear()
        if self._secure_delete:
            self._empty_log()  # it still has what was deleted

    def probe(self) -> None:
        """Write and delete something, to find out whether that is possible again.

        Raise `sqlite3.Error` if not.
        """
        self._db.execute("REPLACE INTO probe VALUES (1, zeroblob(?))", (PROBE_BYTES,))
        self._db.execute("DELETE FROM probe")
        self._empty_log()  # of writes that failed halfway

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

    # Reading.

    @property
    def size_bytes(self) -> int:
        """Bytes on the disk, those of the write-ahead log included."""
        files = Path(self.path), Path(f"{self.path}-wal")
        return sum(file.stat().st_size for file in files if file.exists())

    def load(self) -> tuple[bytes | None, list[Record]]:
        """Return the last snapshot, if any, and the records after it."""
        with self._reporting_damage():
            number, snapshot = self._read_snapshot()
            found = []
            for expected, row in enumerate(self._rows("number > ?", number), number + 1):
                if row[0] != expected:
                    raise ValueError(f"record {expected} is missing")
                if row[1] != ledger.KIND:
                    found.append(records.decode(row[2]))
            return snapshot, found

    def load_epoch(self) -> tuple[EpochStarted | None, list[Record]]:
        """Return the start of the last epoch, and those records of its exchanges that are kept."""
        with self._reporting_damage():
            start = self._db.execute(LAST_START).fetchone()[0] or 0
            # All kinds are read, since the kind of a damaged record may be another one than that
            # which was written.
            found = [
                records.decode(body)
                for _, kind, body in self._rows("number >= ?", start)
                if kind != ledger.KIND
            ]
            started = found.pop(0) if found and isinstance(found[0], EpochStarted) else None
            return started, [record for record in found if not isinstance(record, ReceiptReceived)]

    def ledger(self) -> list[Disclosure]:
        """Return which own rows were sent to whom, how often and when; the earliest first."""
        with self._reporting_damage():
            found: dict[Shown, Disclosure] = {}
            for disclosure in [*ledger.read(self._db), *self._entries()]:
                ledger.add(found, disclosure)
            return sorted(found.values(), key=lambda disclosure: disclosure.first_time)

    def contributions(self) -> list[Logged]:
        """Return the log of contributions to private sums.

        `contributions.find_break` checks its chain.
        """
        with self._reporting_damage():
            return contributions.read(self._db)

    def disclosures(self, data: str) -> Counter[int]:
        """Return how often each of the rows with this digest was sent."""
        times: Counter[int] = Counter()
        for disclosure in self.ledger():
            if disclosure.shown.data == data:
                for row in disclosure.shown.row_numbers():
                    times[row] += disclosure.times
        return times

    def _read_snapshot(self) -> tuple[int, bytes | None]:
        row = self._db.execute("SELECT number, body, checksum FROM snapshot").fetchone()
        if row is None:
            return 0, None
        if checksum(row[0], "snapshot", row[1]) != row[2]:
            raise ValueError("the snapshot does not match its checksum")
        return row[0], row[1]

    def _entries(self) -> list[Disclosure]:
        """Return what was disclosed since the last snapshot."""
        rows = self._rows("number > ?", self._read_snapshot()[0])
        return [ledger.decode(body) for _, kind, body in rows if kind == ledger.KIND]

    def _rows(self, where: str, *values: Any) -> Iterator[tuple[int, str, bytes]]:
        query = f"SELECT number, kind, body, checksum FROM records WHERE {where} ORDER BY number"
        for number, kind, body, stored in self._db.execute(query, values):
            if checksum(number, kind, body) != stored:
                raise ValueError(f"record {number} does not match its checksum")
            yield number, kind, body

    def close(self) -> None:
        """Close the file and note that no record is missing."""
        if not self._read_only and self._owner is not None:
            # On a full disk this fails, and the next start treats it as a crash.
            with contextlib.suppress(sqlite3.Error):
                self._write_owner(self._owner[0], "")
        self._db.close()


def _owner_checksum(name: str, boot_id: str) -> bytes:
    return checksum(1, "node", f"{name} {boot_id}".encode())
