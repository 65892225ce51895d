"""A site that hangs: six real processes, of which one is stopped by SIGSTOP."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import ports
import pytest

from gosta.net.config import NODE_FILE, read_node
from gosta.net.deploy import folders, plan
from gosta.net.deploy.query import query_status, view_network
from gosta.net.node.status import Status

NAMES = [f"node-{k}" for k in range(6)]
SILENT, OTHERS = "node-2", [name for name in NAMES if name != "node-2"]
DEADLINE_SECONDS = 120.0  # generous: machines are slow, and nothing here is about speed


@contextlib.contextmanager
def running(folder: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Run all nodes of a network."""
    nodes = {name: subprocess.Popen([sys.executable, "-m", "gosta", "node", str(folder / name)]) for name in NAMES}
    try:
        yield nodes
    finally:
        for node in nodes.values():
            node.kill()
            node.wait()


def wait_until(is_reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def network(tmp_path: Path) -> Path:
    folder = tmp_path / "net"
    goal = plan.for_sites(plan.Goal("kendall-tau"), "complete", len(NAMES), 0)
    folders.create(folder, goal, port=ports.free(2 * len(NAMES)), exchanges_per_second=20.0)
    for k, name in enumerate(NAMES):
        (folder / name / "data.csv").write_text(f"a,b\n{k},{k * k}\n{k + 1},{-k}\n")
    return folder


def test_the_others_go_on_and_say_who_is_silent(network: Path) -> None:
    configs = {name: read_node(network / name / NODE_FILE) for name in NAMES}

    def statuses(names: list[str]) -> dict[str, Status]:
        found = {name: query_status(configs[name]) for name in names}
        return {name: status for name, status in found.items() if status is not None}

    def all_running(names: list[str]) -> bool:
        states = [status.state for status in statuses(names).values()]
        return states == ["running"] * len(names)

    def exchanges(names: list[str], partners: list[str]) -> int:
        seen = [one for status in statuses(names).values() for one in status.neighbours if one.name in partners]
        return sum(one.exchanges for one in seen)

    def is_known_to_be_silent() -> bool:
        seen = [one for status in statuses(OTHERS).values() for one in status.neighbours if one.name == SILENT]
        return len(seen) == len(OTHERS) and not any(one.alive for one in seen)

    with running(network) as nodes:
        wait_until(lambda: all_running(NAMES) and exchanges(OTHERS, OTHERS) > 100)
        nodes[SILENT].send_signal(signal.SIGSTOP)
        wait_until(lambda: is_known_to_be_silent() and all_running(OTHERS))
        before = exchanges(OTHERS, OTHERS)
        wait_until(lambda: exchanges(OTHERS, OTHERS) >= before + 200)
        assert all_running(OTHERS)
        views = {view.name: view for view in view_network(network)}
        assert views[SILENT].state == "no answer"
        assert "does not answer" in views[SILENT].reason
        nodes[SILENT].send_signal(signal.SIGCONT)
        wait_until(lambda: all_running(NAMES) and exchanges([SILENT], OTHERS) > 20)
