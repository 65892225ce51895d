"""What the status of six real processes says when one of them hangs, or when its files are wrong."""

from __future__ import annotations

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


class Network:
    """The processes of a network's nodes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.configs = {name: read_node(folder / name / NODE_FILE) for name in NAMES}
        command = [sys.executable, "-m", "gosta", "node"]
        self.processes = {name: subprocess.Popen([*command, str(folder / name)]) for name in NAMES}

    def kill(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def statuses(self, names: list[str]) -> list[Status]:
        return [status for name in names if (status := query_status(self.configs[name])) is not None]

    def are_running(self, names: list[str]) -> bool:
        return [status.state for status in self.statuses(names)] == ["running"] * len(names)

    def exchanges(self, names: list[str], partners: list[str]) -> int:
        seen = [one for status in self.statuses(names) for one in status.neighbours if one.name in partners]
        return sum(one.exchanges for one in seen)

    def is_silent(self, name: str, to: list[str]) -> bool:
        """Return whether a node is known to be silent to all these."""
        seen = [one for status in self.statuses(to) for one in status.neighbours if one.name == name]
        return len(seen) == len(to) and not any(one.alive for one in seen)


def wait_until(is_reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    folder = tmp_path_factory.mktemp("silent") / "net"
    goal = plan.for_sites(plan.Goal("kendall-tau"), "complete", len(NAMES), 0)
    folders.create(folder, goal, port=ports.free(2 * len(NAMES)), exchanges_per_second=20.0)
    for k, name in enumerate(NAMES):
        (folder / name / "data.csv").write_text(f"a,b\n{k},{k * k}\n{k + 1},{-k}\n")
    nodes = Network(folder)
    try:
        wait_until(lambda: nodes.are_running(NAMES) and nodes.exchanges(OTHERS, OTHERS) > 100)
        yield nodes
    finally:
        nodes.kill()


def test_the_others_go_on_and_say_who_is_silent(network: Network) -> None:
    network.processes[SILENT].send_signal(signal.SIGSTOP)
    wait_until(lambda: network.is_silent(SILENT, OTHERS) and network.are_running(OTHERS))
    before = network.exchanges(OTHERS, OTHERS)
    wait_until(lambda: network.exchanges(OTHERS, OTHERS) >= before + 200)
    assert network.are_running(OTHERS)
    view = next(view for view in view_network(network.folder) if view.name == SILENT)
    assert view.state == "no answer"
    assert "does not answer" in view.reason
    network.processes[SILENT].send_signal(signal.SIGCONT)
    wait_until(lambda: network.are_running(NAMES) and network.exchanges([SILENT], OTHERS) > 20)


def test_changed_files_that_are_not_in_use(network: Network) -> None:
    data, config = (network.folder / "node-0" / name for name in ("data.csv", NODE_FILE))
    good_data, good_config = data.read_text(), config.read_text()

    def has_error(text: str) -> bool:
        return any(text in status.reload_error for status in network.statuses(["node-0"]))

    data.write_text("a,b\n1,x\n")
    wait_until(lambda: has_error("data.csv"))
    config.write_text(good_config.replace("durable = false", "durable = true"))
    data.write_text(good_data)
    wait_until(lambda: has_error("restart the node: [network] changed, or one of name, listen"))
    config.write_text(good_config)
    wait_until(lambda: network.statuses(["node-0"])[0].reload_error == "")
