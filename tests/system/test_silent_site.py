"""What the status of six real processes says when one of them hangs, or when its files are
wrong.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import ports
import pytest
from processes import Processes

from gosta.net.config import NODE_FILE
from gosta.net.deploy import plan
from gosta.net.deploy.network import Network
from gosta.net.deploy.query import view_network
from gosta.net.node.status import Status

NAMES = [f"node-{k}" for k in range(6)]
SILENT, OTHERS = "node-2", [name for name in NAMES if name != "node-2"]


def are_running(found: list[Status]) -> bool:
    return all(status.state == "running" for status in found)


def exchanges(found: list[Status], partners: list[str]) -> int:
    return sum(
        one.exchanges for status in found for one in status.neighbours if one.name in partners
    )


def is_silent(found: list[Status], name: str) -> bool:
    """Return whether a node is known to be silent to all these."""
    seen = [one for status in found for one in status.neighbours if one.name == name]
    return len(seen) == len(found) and not any(one.alive for one in seen)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    folder = tmp_path_factory.mktemp("silent") / "net"
    goal = plan.for_sites(plan.Goal("kendall-tau"), "complete", len(NAMES), 0)
    Network.create(folder, goal, port=ports.free(2 * len(NAMES)), exchanges_per_second=20.0)
    for k, name in enumerate(NAMES):
        (folder / name / "data.csv").write_text(f"a,b\n{k},{k * k}\n{k + 1},{-k}\n")
    with Processes(*(folder / name for name in NAMES)) as nodes:
        nodes.start(*NAMES)
        nodes.wait(lambda found: are_running(found) and exchanges(found, OTHERS) > 100)
        yield nodes


def test_the_others_go_on_and_say_who_is_silent(network: Processes) -> None:
    network.running[SILENT].send_signal(signal.SIGSTOP)
    silent = network.wait(lambda found: is_silent(found, SILENT) and are_running(found), OTHERS)
    before = exchanges(silent, OTHERS)
    network.wait(
        lambda found: exchanges(found, OTHERS) >= before + 200 and are_running(found), OTHERS
    )
    view = next(
        view for view in view_network(network.folders[SILENT].parent) if view.name == SILENT
    )
    assert view.state == "no answer"
    assert "does not answer" in view.reason
    network.running[SILENT].send_signal(signal.SIGCONT)
    network.wait(lambda found: are_running(found) and exchanges(found[2:3], OTHERS) > 20)


def test_changed_files_that_are_not_in_use(network: Processes) -> None:
    data, config = (network.folders["node-0"] / name for name in ("data.csv", NODE_FILE))
    good_data, good_config = data.read_text(), config.read_text()

    def wait_for_error(text: str) -> None:
        network.wait(lambda found: text in found[0].reload_error, ["node-0"])

    data.write_text("a,b\n1,x\n")
    wait_for_error("data.csv")
    config.write_text(good_config.replace("durable = false", "durable = true"))
    data.write_text(good_data)
    wait_for_error("restart the node: [network] changed, or one of name, listen")
    config.write_text(good_config)
    network.wait(lambda found: found[0].reload_error == "", ["node-0"])
