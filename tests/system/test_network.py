"""Real processes, sockets, TLS and journals: from `init` to a verified network, also when nodes are
killed.
"""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from chaos import run_chaos
from ports import free
from processes import GOSTA, Processes, gosta

import gosta as package
from gosta.net.deploy import certificates
from gosta.net.storage.journal import Journal


def statuses(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a network of eight nodes until all expect an error of at most 1 %."""
    folder = tmp_path_factory.mktemp("network") / "my-network"
    made = gosta(
        "network",
        "init",
        "--nodes",
        8,
        "--graph",
        "watts-strogatz",
        "--statistic",
        "auc",
        "--data",
        "breast-cancer",
        "--exchanges-per-second",
        40,
        "--port",
        free(16),
        folder,
    )
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
        assert (status["state"], status["restarts"]) == ("running", 0)


def test_verify_finds_no_error(finished: Path, gosta_: Any) -> None:
    code, out, err = gosta_("network", "verify", finished)
    assert code == 0, out + err
    assert out.count("yes  ") == 6
    assert "NO" not in out


def test_replay_leads_to_the_same_states_bit_for_bit(finished: Path, gosta_: Any) -> None:
    found = json.loads(gosta_("replay", finished, "--json")[1])
    assert found["differing"] == []
    assert found["nodes"] == 8
    assert found["exchanges"] > 100


def test_status_of_stopped_nodes(finished: Path, gosta_: Any) -> None:
    (one,) = statuses(gosta_("status", finished / "node-3", "--json")[1])
    assert one["state"] == "stopped"
    assert one["exchanges"] > 10
    assert len(statuses(gosta_("status", finished, "--json")[1])) == 8


def test_verify_detects_changes(finished: Path, tmp_path: Path, gosta_: Any) -> None:
    """Another node's journal, other rows, and a missing record."""
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    shutil.copy(copy / "node-1" / "journal.sqlite", copy / "node-2" / "journal.sqlite")
    code, _, err = gosta_("network", "verify", copy)
    assert code == 2
    assert "that of node-1, not of node-2" in err
    shutil.copytree(finished, again := tmp_path / "again")
    table = again / "node-5" / "data.csv"
    table.write_text(table.read_text() + "1.5,-1.0\n")
    code, _, err = gosta_("network", "verify", again)
    assert code == 2
    assert "node-5 has other rows" in err
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
    code, out, _ = gosta_("network", "verify", third)
    assert code == 1
    assert "NO " in out
    for statement, error in (
        (
            "UPDATE records SET body = zeroblob(length(body)) WHERE number = 7",
            "7 does not match its checksum; move it",
        ),
        ("DELETE FROM records WHERE number = 7", "record 7 is missing"),
    ):
        with sqlite3.connect(path) as journal:
            journal.execute(statement)
        journal.close()
        code, _, err = gosta_("network", "verify", third)
        assert (code, err.count("\n")) == (2, 1)
        assert error in err


def test_nodes_killed_at_random(tmp_path: Path) -> None:
    """Killed without warning at any moment: nothing is lost or duplicated."""
    *findings, replayed = run_chaos(tmp_path / "network", nodes=5, seconds=8.0, seed=1)
    assert [finding["claim"] for finding in findings if not finding["holds"]] == []
    assert replayed["differing"] == []


def test_a_node_reloads_its_files_and_stops_at_a_signal(tmp_path: Path, gosta_: Any) -> None:
    """New rows at one node, one node removed: all nodes estimate the value over the remaining
    rows.
    """
    folder = tmp_path / "network"
    gosta_(
        "network",
        "init",
        folder,
        "--nodes",
        4,
        "--graph",
        "complete",
        "--data",
        "breast-cancer",
        "--exchanges-per-second",
        40,
        "--port",
        free(8),
    )
    nodes = Processes(*(folder / f"node-{k}" for k in range(4)))
    up = [*GOSTA, "network", "up", str(folder)]
    with subprocess.Popen(up, stdout=subprocess.PIPE, text=True) as running:
        nodes.wait_for_exchanges(30)
        table = folder / "node-0" / "data.csv"
        lines = table.read_text().splitlines()
        table.write_text("\n".join(lines[: len(lines) // 2]) + "\n")
        kept = 569 - (len(lines) - len(lines) // 2)
        first = nodes.wait(
            lambda found: all(
                one.epoch == one.estimate_epoch and one.rows_seen == kept for one in found
            )
        )
        running.send_signal(signal.SIGINT)
        output = running.communicate(timeout=60)[0]
    assert running.returncode == 0
    assert "gosta network verify" in output
    assert gosta_("network", "verify", folder)[0] == 0
    assert gosta_("network", "remove", folder, "node-2")[0] == 0
    del nodes.folders["node-2"]
    with subprocess.Popen([*up, "--json"], stdout=subprocess.PIPE, text=True) as running:
        nodes.wait(
            lambda found: all(one.epoch > first[0].epoch and one.sites_seen == 3 for one in found)
        )
        running.send_signal(signal.SIGINT)
        output = running.communicate(timeout=60)[0]
    assert [status["node"] for status in statuses(output)] == ["node-0", "node-1", "node-3"]
    assert gosta_("network", "verify", folder)[0] == 0


def test_new_and_expired_certificates(finished: Path, tmp_path: Path, gosta_: Any) -> None:
    shutil.copytree(finished, folder := tmp_path / "network")
    old = (folder / "node-1" / "cert.pem").read_bytes()
    assert "node-1" in gosta_("network", "certify", folder, "node-1")[1]
    assert (folder / "node-1" / "cert.pem").read_bytes() != old
    authority = certificates.Pair(
        *((folder / "authority" / name).read_bytes() for name in ("key.pem", "cert.pem"))
    )
    network = json.loads((finished / "status.json").read_text().splitlines()[0])["network"]
    then = datetime.now(UTC) - timedelta(days=9)
    ended = certificates.issue(
        authority, network, "node-1", not_before=then, not_after=then + timedelta(days=1)
    )
    (folder / "node-1" / "cert.pem").write_bytes(ended.cert)
    (folder / "node-1" / "key.pem").write_bytes(ended.key)
    code, _, err = gosta_("node", folder / "node-1")
    assert code == 2
    assert "expired on" in err
    assert "gosta network certify" in err
