"""What a node must not forget: its records in order, and now and then all that follows from them, in SQLite.

A record is written before anything that follows from it is said. What a node keeps in memory follows from its records
alone, so a node that was killed reads them and goes on.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from gosta.errors import InputError
from gosta.estimation.exchange import Side
from gosta.net.protocol.report import Report

KEPT = 100_000  # meetings that can be replayed, some 60 MB; older ones are forgotten
FORMAT = 1  # of the tables and records
Count = Annotated[int, msgspec.Meta(ge=0)]


class Record(msgspec.Struct, frozen=True, array_like=True):
    """Something that happened to a node."""


class Began(Record, frozen=True, tag="began"):
    """An epoch, over rows with this digest; what was reported until then."""

    epoch: Count
    digest: str
    why: str
    birth: Count  # of the node, from now on
    report: Report | None


class Offered(Record, frozen=True, tag="offered"):
    """It will offer a meeting, and do nothing else until there is an answer."""

    id: Count
    to: str


class Withdrawn(Record, frozen=True, tag="withdrawn"):
    """The answer was no."""

    id: Count


class Met(Record, frozen=True, tag="met"):
    """A meeting: with whom, in whose words, and what was answered if the other began it."""

    partner: str
    birth: Count
    id: Count
    begun: bool
    theirs: Side
    reply: bytes


class Refused(Record, frozen=True, tag="refused"):
    """An offer that was answered with no, for good."""

    partner: str
    birth: Count
    id: Count
    mark: bytes  # of what was offered
    reply: bytes


AnyRecord = Began | Offered | Withdrawn | Met | Refused
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(AnyRecord).decode

TABLES = """
CREATE TABLE records (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE memory (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE node (one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL, birth INTEGER NOT NULL, boot TEXT);
"""


class Journal:
    """The file of a node's records."""

    def __init__(self, path: Path | str, durable: bool = False, read_only: bool = False) -> None:
        self.path = path
        self._durable, self._read_only = durable, read_only
        try:
            self._open()
        except (sqlite3.DatabaseError, OSError) as error:
            raise self._damaged(error) from error

    def _open(self) -> None:
        unfinished = Path(f"{self.path}-wal").exists()
        only = f"{Path(self.path).absolute().as_uri()}?mode=ro{'' if unfinished else '&immutable=1'}"
        self._db = sqlite3.connect(
            only if self._read_only else str(self.path), isolation_level=None, uri=self._read_only, timeout=1.0
        )
        if not self._read_only:
            if self.path != ":memory:":
                Path(self.path).chmod(0o600)  # it holds rows of others
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")  # nobody else writes, or reads while the node runs
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'NORMAL'}")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and not self._read_only:
            self._db.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {FORMAT}; COMMIT;")
        elif version != FORMAT:
            raise sqlite3.DatabaseError(f"its format is {version}, not {FORMAT}")
        counts = "SELECT max(number) FROM (SELECT number FROM records UNION ALL SELECT number FROM memory)"
        self.last: int = self._db.execute(counts).fetchone()[0] or 0

    def _damaged(self, error: Exception) -> InputError:
        if "locked" in str(error):
            return InputError(f"journal {self.path} is in use by a process that runs this node; stop that one first")
        return InputError(
            f"journal {self.path} cannot be used: {error}; if it is damaged, move it away: "
            "the node then begins anew, and the network a new epoch"
        )

    def birth(self, name: str, now: int) -> int:
        """When this journal was made, by the clock; it must be that node's."""
        known = self._db.execute("SELECT name, birth FROM node").fetchone()
        if known is not None and known[0] != name:
            whose = f"{known[0]}, not of {name}; give {name} a folder of its own"
            raise InputError(f"journal {self.path} is that of {whose}")
        if known is None and not self._read_only:
            self._db.execute("INSERT INTO node VALUES (1, ?, ?, '')", (name, now))
        return now if known is None else int(known[1])

    def may_lack_its_end(self, boot: str) -> bool:
        """Whether it was not closed, is not durable, and the machine was started anew (another `boot`) since."""
        last = self._db.execute("SELECT boot FROM node").fetchone()[0]
        return not self._durable and last not in ("", boot)

    def opened(self, boot: str) -> None:
        """It is written to from now on, while the machine runs."""
        self._db.execute("UPDATE node SET boot = ?", (boot,))

    def append(self, records: Sequence[AnyRecord]) -> None:
        """Write records, all or none."""
        rows = [(self.last + k, type(r).__struct_config__.tag, _encode(r)) for k, r in enumerate(records, 1)]
        with self._together() if len(rows) > 1 else contextlib.nullcontext():  # a statement is a transaction by itself
            for row in rows:
                self._db.execute("INSERT INTO records VALUES (?, ?, ?)", row)
        self.last += len(rows)

    def remember(self, memory: bytes) -> None:
        """Keep all that follows from the records so far; of these, only the meetings of this epoch are kept."""
        with self._together():
            self._db.execute("INSERT OR REPLACE INTO memory VALUES (1, ?, ?)", (self.last, memory))
            self._db.execute("DELETE FROM records WHERE number <= ? AND kind NOT IN ('met', 'began')", (self.last,))
            self._db.execute(
                "DELETE FROM records WHERE number < (SELECT max(number) FROM records WHERE kind = 'began') "
                "OR (kind = 'met' AND number <= ?)",
                (self.last - KEPT,),
            )

    @contextlib.contextmanager
    def _together(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def load(self) -> tuple[bytes | None, list[AnyRecord]]:
        """What was remembered last, and the records after that."""
        try:
            row = self._db.execute("SELECT number, body FROM memory").fetchone()
            number, memory = (0, None) if row is None else row
            return memory, self._records("number > ?", number)
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from error

    def epoch(self) -> tuple[Began | None, list[Met]]:
        """The beginning of the last epoch, and its meetings as far as they are kept."""
        began = self._records("number = (SELECT max(number) FROM records WHERE kind = 'began')")
        since = "number > coalesce((SELECT max(number) FROM records WHERE kind = 'began'), 0) AND kind = 'met'"
        return (began[0] if began else None), self._records(since)  # type: ignore[return-value]

    def _records(self, where: str, *values: int) -> list[AnyRecord]:
        rows = self._db.execute(f"SELECT body FROM records WHERE {where} ORDER BY number", values)
        try:
            return [_decode(body) for (body,) in rows]
        except (msgspec.DecodeError, sqlite3.DatabaseError) as error:
            raise self._damaged(error) from error

    def close(self) -> None:
        """Close the file, in order."""
        if not self._read_only:
            with contextlib.suppress(sqlite3.Error):  # a full disk: it will look as after a crash
                self._db.execute("UPDATE node SET boot = ''")
        self._db.close()
