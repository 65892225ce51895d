"""Journals on a real disk: killed processes, full disks, invalid files."""

from __future__ import annotations

import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from gosta.errors import NetworkError
from gosta.net.config import Task
from gosta.net.members import OpenTrust
from gosta.net.node.source import RowSource
from gosta.net.protocol.epochs import Identity, Moment, Step
from gosta.net.protocol.messages import Announcement, Receipt, Seal, decode
from gosta.net.protocol.peer import Peer
from gosta.net.protocol.records import (
    EpochStarted,
    ExchangeAborted,
    ExchangeAccepted,
    ExchangeCompleted,
    ExchangeConfirmed,
    ReceiptReceived,
    Record,
)
from gosta.net.storage import damage
from gosta.net.storage.journal import FORMAT, Journal
from gosta.net.storage.ledger import Shown
from gosta.private.log import LogEntry

WRITER = """
import sys
from pathlib import Path
from gosta.net.protocol.records import ExchangeConfirmed
from gosta.net.storage.journal import Journal
journal = Journal(Path(sys.argv[1]), durable=False)
journal.check_owner("node-0")
print("open", flush=True)
while True:
    journal.append([ExchangeConfirmed(journal.last_number + 1)])
    print(journal.last_number, flush=True)
"""


def epoch(number: int, reason: str = "") -> EpochStarted:
    return EpochStarted(Announcement(number, "node-0", reason, b""), "", None)


def exchange(folder: Path, number: int) -> ExchangeCompleted:
    task, rows = Task("0" * 16, "auc", encoded_columns=2), np.array([[1.0, 1.0]])
    source = RowSource("node-1", task, rows, [], folder, OpenTrust())
    return ExchangeCompleted(
        "node-1", number, source.estimator().contribution("node-1", 1.0), Seal(1, b"seal")
    )


def test_written_records_survive_a_killed_process(tmp_path: Path) -> None:
    """Killed at random moments, five times: every record reported as written is there, and no
    number twice.
    """
    path = tmp_path / "journal.sqlite"
    reported = 0
    for lines in (20, 3, 50, 7, 200):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "open\n"
            for _ in range(lines):
                reported = int(writer.stdout.readline())
            writer.kill()
        journal = Journal(path)
        _, records = journal.load()
        assert [record.id for record in records if isinstance(record, ExchangeConfirmed)] == list(
            range(1, len(records) + 1)
        )
        assert journal.last_number == len(records) >= reported
        journal.close()


def test_a_full_disk_changes_nothing_and_writing_works_again_later(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
    journal._db.execute(f"PRAGMA max_page_count = {pages}")
    big: list[Record] = [
        msgspec.structs.replace(epoch(1), digest="x" * 100_000),
        ExchangeAborted(1, "withdrawn"),
    ]
    with pytest.raises(sqlite3.OperationalError, match="full"):
        journal.append(big)
    assert journal.load() == (None, [])
    assert journal.last_number == 0
    journal._db.execute("PRAGMA max_page_count = 1000000")
    journal.append(big)
    assert journal.load() == (None, big)
    journal.close()


def test_a_snapshot_keeps_the_exchanges_of_the_epoch_only(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    completed, receipt = (
        exchange(tmp_path, 1),
        ReceiptReceived("node-1", Receipt(2, 1, b"d" * 16, b"s" * 64)),
    )
    accepted = ExchangeAccepted("node-1", 1, completed.theirs, completed.seal)
    journal.append([epoch(1), completed, accepted, ExchangeConfirmed(1)])
    journal.append([epoch(2), completed, receipt, accepted])
    journal.save_snapshot(b"all")
    assert journal.load() == (b"all", [])
    assert journal.load_epoch() == (epoch(2), [completed, accepted])
    journal.append([ExchangeConfirmed(1), receipt])
    assert journal.last_number == 10
    journal.close()
    again = Journal(tmp_path / "journal.sqlite", read_only=True)
    assert again.load() == (b"all", [ExchangeConfirmed(1), receipt])
    assert again.load_epoch()[1] == [completed, accepted, ExchangeConfirmed(1)]
    assert again.last_number == 10
    again.close()


def test_invalid_journals(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"this is a text and not a database" * 100)
    with pytest.raises(NetworkError, match="move it away"):
        Journal(path)
    path.unlink()
    with pytest.raises(NetworkError, match="cannot be used"):
        Journal(tmp_path / "nowhere" / "journal.sqlite")
    journal = Journal(path)
    journal.check_owner("node-0")
    journal.check_owner("node-0")
    with pytest.raises(NetworkError, match=r"that of node-0, not of node-1"):
        journal.check_owner("node-1")
    assert not journal.may_be_truncated("this boot")
    journal.mark_open("this boot")
    assert not journal.may_be_truncated("this boot")
    assert journal.may_be_truncated("another boot")
    journal.close()
    journal = Journal(path)
    assert not journal.may_be_truncated("another boot")  # it was closed properly
    durable = Journal(tmp_path / "durable.sqlite", durable=True)
    durable.check_owner("node-0")
    durable.mark_open("this boot")
    assert not durable.may_be_truncated("another boot")
    durable.close()
    journal._db.execute(
        "INSERT INTO records VALUES (1, 'exchange-completed', x'00ff00', x'0011223344556677')"
    )
    with pytest.raises(
        NetworkError, match=r"is damaged: record 1 does not match its checksum; move it away"
    ):
        journal.load()
    journal._db.execute("PRAGMA user_version = 99")
    journal.close()
    with pytest.raises(
        NetworkError, match=f"has format 99, and this version of gosta reads format {FORMAT}"
    ):
        Journal(path)


def fill(folder: Path) -> Journal:
    """Write some hundred records, disclosures and two snapshots."""
    journal = Journal(folder / "journal.sqlite")
    journal.check_owner("node-0")
    journal.mark_open("boot")
    for k in range(300):
        shown = [Shown("digest", f"node-{k % 4}", 8 * (k % 9), 8, 70)] if k % 3 == 0 else []
        journal.append([epoch(1, "x" * 20) if k == 0 else ExchangeAborted(k, "withdrawn")], shown)
        if k in (80, 200):
            journal.save_snapshot(bytes(range(256)) * 10)
    return journal


def copy_files(folder: Path, target: Path) -> Path:
    """Copy a journal as it is on disk, as if its process had been killed."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for name in ("journal.sqlite", "journal.sqlite-wal"):
        if (folder / name).exists():
            shutil.copy(folder / name, target / name)
    return target / "journal.sqlite"


def read_state(path: Path, read_only: bool) -> object:
    """Return everything that a journal holds; None if it says that records are missing."""
    journal = Journal(path, read_only=read_only)
    try:
        if not read_only and journal.may_be_truncated("boot"):
            return None
        journal.check_owner("node-0")
        return journal.last_number, journal.load(), journal.load_epoch(), journal.ledger()
    finally:
        journal._db.close()


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("read_only", [False, True])
def test_damaged_bytes_are_found_or_change_nothing(
    tmp_path: Path, killed: bool, read_only: bool
) -> None:
    """Changed bytes and cut files, in the database and in its write-ahead log: one line, or the
    same state.
    """
    journal = fill(tmp_path)
    if not killed:
        journal.close()
    whole = {
        file.name: file.read_bytes()
        for file in copy_files(tmp_path, tmp_path / "whole").parent.iterdir()
    }
    state = read_state(tmp_path / "whole" / "journal.sqlite", read_only=True)
    rng, detected = random.Random(f"{killed} {read_only}"), 0
    for k in range(100):
        path = copy_files(tmp_path, tmp_path / "damaged")
        file = path.parent / rng.choice(sorted(whole))
        content = bytearray(file.read_bytes())
        if k % 5 == 0:
            content = content[: rng.randrange(len(content))]
        else:
            content[rng.randrange(len(content) if k % 5 > 1 else 200)] ^= rng.randrange(1, 256)
        file.write_bytes(content)
        try:
            found = read_state(path, read_only)
        except NetworkError as error:
            assert "\n" not in str(error)
            assert str(path) in str(error)
            detected += 1
        else:
            assert found == state or (found is None and killed and not read_only), (k, file)
            detected += found is None
    assert detected > 30
    if killed:
        journal.close()


def test_a_process_killed_in_the_middle_of_a_write_loses_no_record(tmp_path: Path) -> None:
    """The log ends in its header, or in a frame's header without the page: nothing was acknowledged
    after that.
    """
    journal = fill(tmp_path)
    path = copy_files(tmp_path, tmp_path / "copy")
    log = tmp_path / "copy" / "journal.sqlite-wal"
    state = read_state(path, read_only=True)
    content = log.read_bytes()
    log.write_bytes(content + content[32:56])
    assert damage.is_intact(log)
    assert read_state(path, read_only=True) == state
    for end, is_intact in (
        (0, True),
        (20, False),
        (32, True),
        (56, True),
        (57, False),
        (32 + 4120, True),
    ):
        log.write_bytes(content[:end])
        assert damage.is_intact(log) == is_intact
    journal.close()


def test_a_missing_write_ahead_log_is_found(tmp_path: Path) -> None:
    journal = fill(tmp_path)
    path = copy_files(tmp_path, tmp_path / "copy")
    (tmp_path / "copy" / "journal.sqlite-wal").unlink()
    with pytest.raises(
        NetworkError, match=r"last records are missing.*start the node, and it starts a new epoch"
    ):
        Journal(path, read_only=True)
    assert read_state(path, read_only=False) is None
    journal.close()
    path.write_bytes(b"")
    with pytest.raises(NetworkError, match="is damaged: it is empty"):
        Journal(path)


@pytest.mark.parametrize(("keep", "kept"), [(0, 0), (25, 30), (1000, 105)])
def test_a_journal_keeps_the_last_exchanges_of_the_epoch(
    tmp_path: Path, keep: int, kept: int
) -> None:
    """At least so many, also after a restart; the start of the epoch stays."""
    journal = Journal(tmp_path / "journal.sqlite", keep_exchanges=keep)
    journal.append([epoch(1)] + [exchange(tmp_path, 1000)] * 20)
    journal.save_snapshot(b"1")
    start = epoch(2)
    journal.append([start, *[exchange(tmp_path, k) for k in range(5)]])
    for k in range(10):
        journal.append([exchange(tmp_path, 5 + 10 * k + j) for j in range(10)])
        journal.append([ExchangeAborted(k, "withdrawn")])
        journal.save_snapshot(b"2")
        if k == 6:
            journal.close()
            journal = Journal(tmp_path / "journal.sqlite", keep_exchanges=keep)
    first, records = journal.load_epoch()
    assert first == start
    assert [record.id for record in records if isinstance(record, ExchangeCompleted)] == list(
        range(105)
    )[105 - kept :]
    assert journal.load() == (b"2", [])
    journal.close()


@pytest.mark.parametrize("secure", [False, True])
def test_secure_delete_leaves_no_deleted_rows_on_the_disk(tmp_path: Path, secure: bool) -> None:
    journal = Journal(tmp_path / "journal.sqlite", keep_exchanges=0, secure_delete=secure)
    secret = b"a row of somebody else"
    completed = msgspec.structs.replace(exchange(tmp_path, 1), seal=Seal(1, secret * 50))
    for _ in range(100):
        journal.append([completed])
    journal.save_snapshot(secret * 1000)
    journal.save_snapshot(b"nothing")
    found = [file.name for file in tmp_path.iterdir() if secret in file.read_bytes()]
    assert bool(found) == (not secure)
    journal.close()


def test_disclosures_survive_epochs_snapshots_and_restarts(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite", keep_exchanges=0)
    journal.append([epoch(1)], [Shown("a", "node-1", 64, 8, 70)])
    journal.append([], [Shown("a", "node-1", 64, 8, 70)])
    journal.save_snapshot(b"1")
    journal.append([], [Shown("a", "node-2", 64, 8, 70)])
    journal.append([epoch(2)])
    journal.close()
    journal = Journal(tmp_path / "journal.sqlite", keep_exchanges=0)
    journal.append([], [Shown("a", "node-1", 64, 8, 70)])
    journal.append([], [Shown("a", "node-1", 2, 8, 70)])
    journal.append([], [Shown("b", "node-1", 0, 1, 1)])
    assert journal.load() == (b"1", [epoch(2)])
    for _ in range(2):
        often = dict.fromkeys([64, 65, 66, 67, 68, 69, 0, 1], 4)
        assert journal.disclosures("a") == often | dict.fromkeys(range(2, 10), 1)
        found = journal.ledger()
        assert [(one.shown.neighbour, one.shown.first_row, one.times) for one in found] == [
            ("node-1", 64, 3), ("node-2", 64, 1), ("node-1", 2, 1), ("node-1", 0, 1),
        ]  # fmt: skip
        assert list(found[0].shown.row_numbers()) == [64, 65, 66, 67, 68, 69, 0, 1]
        assert found[0].first_time < found[1].first_time < found[0].last_time
        journal.save_snapshot(b"2")
    assert journal.load() == (b"2", [])
    journal.close()


def test_a_probe_tells_whether_the_disk_can_be_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal.probe()
    pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
    free = journal._db.execute("PRAGMA freelist_count").fetchone()[0]
    journal._db.execute(f"PRAGMA max_page_count = {pages}")
    journal._db.execute(f"INSERT INTO records VALUES (1, '', zeroblob({(free - 1) * 4000}), x'')")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        journal.probe()
    journal._db.execute(f"PRAGMA max_page_count = {2 * pages + 100}")
    journal.probe()
    journal.close()


def test_a_restored_peer_equals_the_original(tmp_path: Path) -> None:
    """From a snapshot at any moment and the records after it, bit for bit."""
    rows = [np.random.default_rng(k).normal(size=(5 + 20 * k, 2)) for k in range(2)]
    task = Task("0" * 16, "kendall-tau", encoded_columns=2, confidence_level=0.9)
    journals = [Journal(tmp_path / f"{k}.sqlite") for k in range(2)]
    names = ["node-0", "node-1"]

    def peer(k: int) -> Peer:
        source = RowSource(names[k], task, rows[k], [names[1 - k]], tmp_path, OpenTrust())
        made = Peer(
            Identity(names[k], task.id, "statistic"), source, [names[1 - k]], OpenTrust(), 0.9
        )
        made.restore(*journals[k].load())
        return made

    both = [peer(0), peer(1)]

    def carry_out(k: int, step: Step) -> list[tuple[int, bytes]]:
        journals[k].append(step.records)
        for record in step.records:
            both[k].apply(record)
        return [(1 - k, message) for _, message in step.messages]

    for k in range(2):
        carry_out(k, both[k].start_epoch("first start"))
    for turn in range(60):
        k = turn % 3 % 2
        messages = carry_out(k, both[k].offer(names[1 - k], turn))
        messages += carry_out(k, both[k].ping(names[1 - k], 0))
        while messages:
            receiver, message = messages.pop(0)
            for step in both[receiver].handle(
                names[1 - receiver], decode(message), Moment(1e9, 1e9)
            ):
                messages += carry_out(receiver, step)
        if turn % 7 == 3:
            journals[k].save_snapshot(both[k].snapshot())
        for one in range(2):
            assert peer(one).snapshot() == both[one].snapshot()
    assert both[0].estimator.exchanges == 60
    for journal in journals:
        journal.close()


def test_a_disk_that_is_full_at_the_end_of_a_transaction_leaves_no_gap(tmp_path: Path) -> None:
    """The node goes on once there is space, and is killed: its journal is not damaged."""
    journal = Journal(
        tmp_path / "journal.sqlite", durable=True, keep_exchanges=0, secure_delete=True
    )
    journal.check_owner("node-0")
    journal.append([epoch(1)])
    entry = LogEntry(
        0.0,
        "release",
        1,
        "node-0",
        1,
        "",
        "auc",
        (),
        8,
        (),
        "",
        0,
        None,
        "none",
        0.0,
        0.0,
        0.0,
        (),
        (),
        0,
    )
    big = msgspec.structs.replace(epoch(2), digest="x" * 20_000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        size = (tmp_path / "journal.sqlite-wal").stat().st_size + 8192
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        with pytest.raises(sqlite3.OperationalError):
            journal.append([big], (), [entry])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert (journal.last_number, journal.contributions()) == (1, [])
    journal.probe()
    journal.append([big], (), [entry])
    shutil.copytree(tmp_path, tmp_path / "killed")
    assert Journal(tmp_path / "killed" / "journal.sqlite").load() == (None, [epoch(1), big])
