"""Real processes, sockets, TLS and journals: from `init` to a verified network, also when nodes are killed."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from chaos import gosta, run_chaos
from ports import free

import gosta as package
from gosta.net.deploy import certificates
from gosta.net.storage.journal import Journal


def statuses(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a network of eight nodes until all expect an error of at most 1 %."""
    folder = tmp_path_factory.mktemp("network") / "my-network"
    made = gosta("network", "init", "--nodes", 8, "--graph", "watts-strogatz", "--statistic", "auc", "--data",
                 "breast-cancer", "--exchanges-per-second", 40, "--port", free(16), folder)  # fmt: skip
    assert made.returncode == 0, made.stderr
    run = gosta("network", "up", folder, "--until", "1%", "--json")
    assert run.returncode == 0, run.stderr
    (folder / "status.json").write_text(run.stdout)
    return folder


def test_all_nodes_estimate_the_value_over_all_rows(finished: Path) -> None:
    exact = package.exact("breast-cancer", "auc", interval=0.95)
    found = statuses((finished / "status.json").read_text())
    assert len(found) == 8
    for status in found:
        assert status["estimate"][0] == pytest.approx(exact.value, rel=0.02)
        assert status["low"] == pytest.approx(exact.low, abs=0.02)
        assert status["high"] == pytest.approx(exact.high, abs=0.02)
        assert (status["state"], status["epoch"], status["restarts"]) == ("running", 1, 0)


def test_verify_finds_no_error(finished: Path) -> None:
    verified = gosta("network", "verify", finished)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert verified.stdout.count("yes  ") == 6
    assert "NO" not in verified.stdout


def test_replay_leads_to_the_same_states_bit_for_bit(finished: Path) -> None:
    replayed = gosta("replay", finished, "--json")
    found = json.loads(replayed.stdout)
    assert found["differing"] == []
    assert found["nodes"] == 8
    assert found["exchanges"] > 100


def test_status_of_stopped_nodes(finished: Path) -> None:
    (one,) = statuses(gosta("status", finished / "node-3", "--json").stdout)
    assert one["state"] == "stopped"
    assert one["exchanges"] > 10
    assert len(statuses(gosta("status", finished, "--json").stdout)) == 8


def test_verify_detects_changes(finished: Path, tmp_path: Path) -> None:
    """Another node's journal, other rows, and a missing record."""
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    shutil.copy(copy / "node-1" / "journal.sqlite", copy / "node-2" / "journal.sqlite")
    wrong = gosta("network", "verify", copy)
    assert wrong.returncode == 2
    assert "that of node-1, not of node-2" in wrong.stderr
    shutil.copytree(finished, again := tmp_path / "again")
    table = again / "node-5" / "data.csv"
    table.write_text(table.read_text() + "1.5,-1.0\n")
    wrong = gosta("network", "verify", again)
    assert wrong.returncode == 2
    assert "node-5 has other rows" in wrong.stderr
    shutil.copytree(finished, third := tmp_path / "third")
    path = third / "node-5" / "journal.sqlite"
    whole = Journal(path, read_only=True)
    start, records = whole.load_epoch()
    whole.close()
    path.unlink()
    half = Journal(path)
    half.check_owner("node-5")
    assert start is not None
    half.append([start, *records[: len(records) // 2]])
    half.close()
    wrong = gosta("network", "verify", third)
    assert wrong.returncode == 1
    assert "NO " in wrong.stdout

    def tamper(statement: str) -> subprocess.CompletedProcess[str]:
        with sqlite3.connect(path) as journal:
            journal.execute(statement)
        journal.close()
        return gosta("network", "verify", third)

    wrong = tamper("UPDATE records SET body = zeroblob(length(body)) WHERE number = 7")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "record 7 does not match its checksum; move it away" in wrong.stderr
    wrong = tamper("DELETE FROM records WHERE number = 7")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "record 7 is missing" in wrong.stderr


def test_nodes_killed_at_random(tmp_path: Path) -> None:
    """Killed without warning at any moment: nothing is lost or duplicated."""
    *findings, replayed = run_chaos(tmp_path / "network", nodes=5, seconds=8.0, seed=1)
    assert [finding["claim"] for finding in findings if not finding["holds"]] == []
    assert replayed["differing"] == []


def test_a_node_reloads_its_files_and_stops_at_a_signal(tmp_path: Path) -> None:
    """New rows at one node, one node removed: all nodes estimate the value over the remaining rows."""
    folder = tmp_path / "network"
    gosta("network", "init", folder, "--nodes", 4, "--graph", "complete", "--data", "breast-cancer",
          "--exchanges-per-second", 40, "--port", free(8))  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "gosta", "network", "up", str(folder)], stdout=subprocess.PIPE, text=True
    ) as up:
        wait_for(folder, lambda found: all(status["exchanges"] > 30 for status in found))
        table = folder / "node-0" / "data.csv"
        lines = table.read_text().splitlines()
        table.write_text("\n".join(lines[: len(lines) // 2]) + "\n")
        kept = 569 - (len(lines) - len(lines) // 2)
        wait_for(folder, lambda found: all((one["estimate_epoch"], one["rows_seen"]) == (2, kept) for one in found))
        up.send_signal(signal.SIGINT)
        output = up.communicate(timeout=60)[0]
    assert up.returncode == 0
    assert "gosta network verify" in output
    assert gosta("network", "verify", folder).returncode == 0
    left = gosta("network", "remove", folder, "node-2")
    assert left.returncode == 0, left.stderr
    run = gosta("network", "up", folder, "--for", 12, "--json")
    assert [(status["node"], status["epoch"]) for status in statuses(run.stdout)] == [
        ("node-0", 3),
        ("node-1", 3),
        ("node-3", 3),
    ]
    assert gosta("network", "verify", folder).returncode == 0


def test_new_and_expired_certificates(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, folder := tmp_path / "network")
    old = (folder / "node-1" / "cert.pem").read_bytes()
    assert "node-1" in gosta("network", "certify", folder, "node-1").stdout
    assert (folder / "node-1" / "cert.pem").read_bytes() != old
    authority = certificates.Pair(*((folder / "authority" / name).read_bytes() for name in ("key.pem", "cert.pem")))
    network = json.loads((finished / "status.json").read_text().splitlines()[0])["network"]
    then = datetime.now(UTC) - timedelta(days=9)
    ended = certificates.issue(authority, network, "node-1", not_before=then, not_after=then + timedelta(days=1))
    (folder / "node-1" / "cert.pem").write_bytes(ended.cert)
    (folder / "node-1" / "key.pem").write_bytes(ended.key)
    rejected = gosta("node", folder / "node-1")
    assert rejected.returncode == 2
    assert "expired on" in rejected.stderr
    assert "gosta network certify" in rejected.stderr


def wait_for(folder: Path, condition: Any) -> None:
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        found = statuses(gosta("status", folder, "--json").stdout)
        if all("exchanges" in status for status in found) and condition(found):
            return
        time.sleep(0.2)
    pytest.fail(f"timeout: {found}")
