"""Private sums of real processes over mutual TLS, each with a file of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import ports
import pytest
from commands import command

import gosta
from gosta.net.config import read_node
from gosta.net.deploy.query import query_status
from gosta.net.node.status import Status

NODES = 5
WAIT_SECONDS = 60.0
RNG = np.random.default_rng(8)


class Sites:
    """Processes of nodes, and the rows in their files."""

    def __init__(self, folder: Path) -> None:
        self.folders = [folder / f"node-{k}" for k in range(NODES)]
        self.rows: list[np.ndarray[Any, Any]] = [np.empty(0)] * NODES
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def write(self, site: int, rows: int = 40) -> None:
        died = RNG.integers(0, 2, rows)
        risk = np.clip(RNG.normal(0.3 + 0.1 * site + 0.2 * died, 0.2), 0, 1)
        self.rows[site] = np.column_stack([risk, died])
        lines = [f"{r!r},{d:.0f}" for r, d in self.rows[site].tolist()]
        (self.folders[site] / "data.csv").write_text("risk,died\n" + "\n".join(lines) + "\n")

    def start(self, *sites: int) -> None:
        for site in sites:
            arguments = [sys.executable, "-m", "gosta", "node", str(self.folders[site])]
            with (self.folders[site] / "log.jsonl").open("ab") as log:
                self.processes[site] = subprocess.Popen(arguments, stderr=log)

    def stop(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            assert process.wait(20) == 0

    def statuses(self) -> list[Status | None]:
        return [query_status(read_node(folder / "node.toml")) for folder in self.folders]

    def wait(self, condition: Callable[[list[Status]], bool]) -> list[Status]:
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            found = [status for status in self.statuses() if status is not None]
            if condition(found):
                return found
            time.sleep(0.1)
        raise AssertionError([(status.node, status.state, status.sums) for status in found])

    def exact(self) -> float:
        rows = np.concatenate(self.rows)
        return float(gosta.exact({"risk": rows[:, 0], "died": rows[:, 1]}, "auc", columns="risk", label="died"))


@pytest.fixture
def gosta_(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    return command(capsys, monkeypatch)


@pytest.fixture
def sites(tmp_path: Path, gosta_: Any) -> Iterator[Sites]:
    folder, task = tmp_path / "net", ["--statistic", "auc", "--score", "risk", "--label", "died", "--classes", "0,1"]
    task += ["--range", "risk=0:1", "--bins", "256", "--nodes", str(NODES), "--port", str(ports.free(2 * NODES))]
    assert gosta_("network", "init", folder, "--private", *task)[0] == 0
    made = Sites(folder)
    yield made
    for process in made.processes.values():
        process.kill()
        process.wait()


def are_complete(epoch: int) -> Callable[[list[Status]], bool]:
    return lambda found: (
        len(found) == NODES and all(one.state == "complete" and one.estimate_epoch >= epoch for one in found)
    )


def test_five_sites(sites: Sites, gosta_: Any) -> None:
    network = sites.folders[0].parent
    for site in range(NODES):
        sites.write(site)
    sites.start(*range(NODES))
    first = sites.wait(are_complete(1))
    results = {status.sums.results for status in first if status.sums is not None}
    (((result,)),) = results
    assert result.low[0] <= sites.exact() <= result.high[0]
    assert result.rows == 40 * NODES

    sites.processes[3].kill()
    sites.processes[3].wait()
    for site in (0, 1, 2, 4):
        sites.write(site, 50)
    sites.wait(lambda found: len(found) == NODES - 1 and max(one.epoch for one in found) > first[0].epoch)
    sites.write(3, 50)
    sites.start(3)
    epoch = max(status.epoch for status in sites.statuses() if status is not None)
    second = sites.wait(are_complete(epoch))
    assert {len(status.sums.participants) for status in second if status.sums is not None} == {NODES}
    assert all(
        status.sums.results[0].low[0] <= sites.exact() <= status.sums.results[0].high[0]
        for status in second
        if status.sums is not None
    )
    code, text, _ = gosta_("audit", sites.folders[2], "--json")
    assert code == 0
    entries = [json.loads(line)["entry"] for line in text.splitlines() if "entry" in json.loads(line)]
    assert {entry["event"] for entry in entries} >= {"contribution", "release"}
    sites.stop()
    code, text, _ = gosta_("network", "verify", network)
    assert code == 0, text
    assert "bit for bit" in text


def test_a_killed_node_continues_with_its_release(sites: Sites, gosta_: Any) -> None:
    for site in range(NODES):
        sites.write(site)
    sites.start(*range(NODES))
    first = sites.wait(are_complete(1))
    for site in range(NODES):
        sites.processes[site].kill()
        sites.processes[site].wait()
    code, text, _ = gosta_("status", sites.folders[1])
    assert code == 0
    assert "stopped" in text
    sites.start(*range(NODES))
    again = sites.wait(are_complete(first[0].epoch))
    assert {status.estimate for status in again} == {first[0].estimate}
    assert {status.epoch for status in again} == {first[0].epoch}, "no new epoch, and so no new contribution"
    sites.stop()
