"""Journals on a real disk: processes that are killed, disks that are full, files that are none."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gosta import InputError
from gosta.net.config import Task
from gosta.net.node.source import Source
from gosta.net.protocol.peer import Identity, Peer
from gosta.net.storage.journal import AnyRecord, Began, Journal, Met, Offered, Withdrawn

WRITER = """
import sys
from pathlib import Path
from gosta.net.storage.journal import Journal, Offered
journal = Journal(Path(sys.argv[1]), durable=False)
print(journal.birth("node-0", 5), flush=True)
while True:
    journal.append([Offered(journal.last + 1, "node-1")])
    print(journal.last, flush=True)
"""


def test_nothing_written_is_lost_with_its_process(tmp_path: Path) -> None:
    """Killed at any moment, five times over: all that was told to be written is there, and no number twice."""
    path = tmp_path / "journal.sqlite"
    told = 0
    for lines in (20, 3, 50, 7, 200):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "5\n"
            for _ in range(lines):
                told = int(writer.stdout.readline())
            writer.kill()
        journal = Journal(path)
        _, records = journal.load()
        assert [record.id for record in records if isinstance(record, Offered)] == list(range(1, len(records) + 1))
        assert journal.last == len(records) >= told
        journal.close()


def test_a_full_disk_changes_nothing_and_is_over_when_it_is_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
    journal._db.execute(f"PRAGMA max_page_count = {pages}")
    big: list[AnyRecord] = [Began(1, "", "x" * 100_000, 1, None), Offered(1, "node-1")]
    with pytest.raises(sqlite3.OperationalError, match="full"):
        journal.append(big)
    assert journal.load() == (None, [])
    assert journal.last == 0
    journal._db.execute("PRAGMA max_page_count = 1000000")
    journal.append(big)
    assert journal.load() == (None, big)
    journal.close()


def test_remembering_keeps_the_meetings_of_the_epoch_only(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    side = Source("node-1", Task("0" * 16, "auc", encoded=2), np.array([[1.0, 1.0]]), [], tmp_path).site().side(1.0)
    met = Met("node-1", 1, 1, False, side, b"reply")
    journal.append([Began(1, "", "", 1, None), met, Offered(1, "node-1"), Withdrawn(1)])
    journal.append([Began(2, "", "", 1, None), met, Offered(2, "node-1")])
    journal.remember(b"all")
    assert journal.load() == (b"all", [])
    assert journal.epoch() == (Began(2, "", "", 1, None), [met])
    journal.append([Withdrawn(2)])
    assert journal.last == 8
    journal.close()
    again = Journal(tmp_path / "journal.sqlite", read_only=True)
    assert again.load() == (b"all", [Withdrawn(2)])
    assert again.last == 8
    again.close()


def test_files_that_are_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"this is no database at all, but a text that somebody put here" * 100)
    with pytest.raises(InputError, match="move it away"):
        Journal(path)
    path.unlink()
    with pytest.raises(InputError, match="cannot be used"):
        Journal(tmp_path / "nowhere" / "journal.sqlite")
    journal = Journal(path)
    assert journal.birth("node-0", 7) == 7
    assert journal.birth("node-0", 9) == 7
    with pytest.raises(InputError, match=r"that of node-0, not of node-1"):
        journal.birth("node-1", 7)
    assert not journal.may_lack_its_end("this boot")
    journal.opened("this boot")
    assert not journal.may_lack_its_end("this boot")
    assert journal.may_lack_its_end("another boot")
    journal.close()
    journal = Journal(path)
    assert not journal.may_lack_its_end("another boot")  # it was closed in order
    durable = Journal(tmp_path / "durable.sqlite", durable=True)
    durable.birth("node-0", 5)
    durable.opened("this boot")
    assert not durable.may_lack_its_end("another boot")
    durable.close()
    journal._db.execute("INSERT INTO records VALUES (1, 'met', x'00ff00')")
    with pytest.raises(InputError, match="damaged"):
        journal.load()
    journal._db.execute("PRAGMA user_version = 99")
    journal.close()
    with pytest.raises(InputError, match="format is 99"):
        Journal(path)


def test_a_peer_from_its_journal_is_the_peer_itself(tmp_path: Path) -> None:
    """Remembered at any moment, and from records after that: the same to the last bit."""
    rows = [np.random.default_rng(k).normal(size=(5 + 20 * k, 2)) for k in range(2)]
    task = Task("0" * 16, "kendall-tau", encoded=2, interval=0.9)
    journals = [Journal(tmp_path / f"{k}.sqlite") for k in range(2)]
    names = ["node-0", "node-1"]

    def peer(k: int) -> Peer:
        source = Source(names[k], task, rows[k], [names[1 - k]], tmp_path)
        made = Peer(Identity(names[k], task.id, "statistic", 1), source, [names[1 - k]], 0.9)
        made.restore(*journals[k].load())
        return made

    both = [peer(0), peer(1)]
    for k in range(2):
        step = both[k].begin("first start")
        journals[k].append(step.records)
        both[k].apply(step.records[0])
    for turn in range(60):
        k = turn % 3 % 2
        offer = both[k].offer(names[1 - k])
        messages = [(k, 1 - k, message) for _, message in offer.sends]
        journals[k].append(offer.records)
        both[k].apply(offer.records[0])
        while messages:
            sender, receiver, message = messages.pop()
            for step in both[receiver].receive(names[sender], message):
                journals[receiver].append(step.records)
                for record in step.records:
                    both[receiver].apply(record)
                messages += [(receiver, 1 - receiver, reply) for _, reply in step.sends]
        if turn % 7 == 3:
            journals[k].remember(both[k].memory())
        for one in range(2):
            assert peer(one).memory() == both[one].memory()
    assert both[0].site.meetings == 60
    for journal in journals:
        journal.close()
