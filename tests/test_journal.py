"""Journals on a real disk: killed processes, full disks, invalid files."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gosta.errors import NetworkError
from gosta.net.config import Task
from gosta.net.node.source import Source
from gosta.net.protocol.peer import Identity, Peer
from gosta.net.protocol.records import EpochStarted, ExchangeCompleted, OfferSent, OfferWithdrawn, Record
from gosta.net.storage.journal import FORMAT, Journal

WRITER = """
import sys
from pathlib import Path
from gosta.net.protocol.records import OfferSent
from gosta.net.storage.journal import Journal
journal = Journal(Path(sys.argv[1]), durable=False)
print(journal.incarnation("node-0", 5), flush=True)
while True:
    journal.append([OfferSent(journal.last_number + 1, "node-1")])
    print(journal.last_number, flush=True)
"""


def test_written_records_survive_a_killed_process(tmp_path: Path) -> None:
    """Killed at random moments, five times: every record reported as written is there, and no number twice."""
    path = tmp_path / "journal.sqlite"
    reported = 0
    for lines in (20, 3, 50, 7, 200):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "5\n"
            for _ in range(lines):
                reported = int(writer.stdout.readline())
            writer.kill()
        journal = Journal(path)
        _, records = journal.load()
        assert [record.id for record in records if isinstance(record, OfferSent)] == list(range(1, len(records) + 1))
        assert journal.last_number == len(records) >= reported
        journal.close()


def test_a_full_disk_changes_nothing_and_writing_works_again_later(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
    journal._db.execute(f"PRAGMA max_page_count = {pages}")
    big: list[Record] = [EpochStarted(1, "", "x" * 100_000, 1, None), OfferSent(1, "node-1")]
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
    contribution = (
        Source("node-1", Task("0" * 16, "auc", encoded_columns=2), np.array([[1.0, 1.0]]), [], tmp_path)
        .estimator()
        .contribution(1.0)
    )
    completed = ExchangeCompleted("node-1", 1, 1, False, contribution, b"reply")
    journal.append([EpochStarted(1, "", "", 1, None), completed, OfferSent(1, "node-1"), OfferWithdrawn(1)])
    journal.append([EpochStarted(2, "", "", 1, None), completed, OfferSent(2, "node-1")])
    journal.save_snapshot(b"all")
    assert journal.load() == (b"all", [])
    assert journal.load_epoch() == (EpochStarted(2, "", "", 1, None), [completed])
    journal.append([OfferWithdrawn(2)])
    assert journal.last_number == 8
    journal.close()
    again = Journal(tmp_path / "journal.sqlite", read_only=True)
    assert again.load() == (b"all", [OfferWithdrawn(2)])
    assert again.last_number == 8
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
    assert journal.incarnation("node-0", 7) == 7
    assert journal.incarnation("node-0", 9) == 7
    with pytest.raises(NetworkError, match=r"that of node-0, not of node-1"):
        journal.incarnation("node-1", 7)
    assert not journal.may_be_truncated("this boot")
    journal.mark_open("this boot")
    assert not journal.may_be_truncated("this boot")
    assert journal.may_be_truncated("another boot")
    journal.close()
    journal = Journal(path)
    assert not journal.may_be_truncated("another boot")  # it was closed properly
    durable = Journal(tmp_path / "durable.sqlite", durable=True)
    durable.incarnation("node-0", 5)
    durable.mark_open("this boot")
    assert not durable.may_be_truncated("another boot")
    durable.close()
    journal._db.execute("INSERT INTO records VALUES (1, 'exchange-completed', x'00ff00')")
    with pytest.raises(NetworkError, match="damaged"):
        journal.load()
    journal._db.execute("PRAGMA user_version = 99")
    journal.close()
    with pytest.raises(NetworkError, match=f"has format 99, and this version of gosta reads format {FORMAT}"):
        Journal(path)


def test_a_restored_peer_equals_the_original(tmp_path: Path) -> None:
    """From a snapshot at any moment and the records after it, bit for bit."""
    rows = [np.random.default_rng(k).normal(size=(5 + 20 * k, 2)) for k in range(2)]
    task = Task("0" * 16, "kendall-tau", encoded_columns=2, confidence_level=0.9)
    journals = [Journal(tmp_path / f"{k}.sqlite") for k in range(2)]
    names = ["node-0", "node-1"]

    def peer(k: int) -> Peer:
        source = Source(names[k], task, rows[k], [names[1 - k]], tmp_path)
        made = Peer(Identity(names[k], task.id, "statistic", 1), source, [names[1 - k]], 0.9)
        made.restore(*journals[k].load())
        return made

    both = [peer(0), peer(1)]
    for k in range(2):
        step = both[k].start_epoch("first start")
        journals[k].append(step.records)
        both[k].apply(step.records[0])
    for turn in range(60):
        k = turn % 3 % 2
        offer = both[k].offer(names[1 - k])
        messages = [(k, 1 - k, message) for _, message in offer.messages]
        journals[k].append(offer.records)
        both[k].apply(offer.records[0])
        while messages:
            sender, receiver, message = messages.pop()
            for step in both[receiver].receive(names[sender], message):
                journals[receiver].append(step.records)
                for record in step.records:
                    both[receiver].apply(record)
                messages += [(receiver, 1 - receiver, reply) for _, reply in step.messages]
        if turn % 7 == 3:
            journals[k].save_snapshot(both[k].snapshot())
        for one in range(2):
            assert peer(one).snapshot() == both[one].snapshot()
    assert both[0].estimator.exchanges == 60
    for journal in journals:
        journal.close()
