"""A coordinator that signs two member lists with one serial number: sites find that out, and
stop.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import ports
import pytest
from processes import Processes, gosta
from sum_network import SumNetwork

from gosta.net import members
from gosta.net.deploy import authority
from gosta.net.deploy.network import Network
from gosta.net.deploy.node_folder import NodeFolder
from gosta.net.members import MEMBERS_FILE, MemberList, read_list

INIT = ("--private", "--statistic", "auc", "--score", "mean radius", "--range", "mean radius=5:30")


@pytest.fixture
def net(tmp_path: Path) -> Path:
    folder = tmp_path / "net"
    place = ("--nodes", 4, "--deal", "even", "--data", "breast-cancer", "--port", ports.free(8))
    done = gosta("network", "init", folder, *INIT, *place)
    assert done.returncode == 0, done.stderr
    return folder


def sign_another(net: Path, node: str) -> MemberList:
    """Give a node another list with the serial number of the first one, in which somebody may
    contribute more rows.
    """
    signer = authority.read(net, Network.read(net).task.id)
    listed = read_list(net / MEMBERS_FILE).list
    more = tuple(msgspec.structs.replace(one, rows=5_000_000) for one in listed.members)
    other = signer.sign(msgspec.structs.replace(listed, members=more))
    NodeFolder(net / node).install(other, (net / node / "ca.pem").read_bytes())
    return other.list


def test_two_lists_with_one_serial_number_stop_all_contributions(net: Path) -> None:
    other = sign_another(net, "node-2")
    names = [f"node-{k}" for k in range(4)]
    with Processes(*(net / name for name in names)) as processes:
        processes.start(*names)
        found = processes.wait(lambda all_: all(one.list_conflict for one in all_))
        assert {one.list_serial for one in found} == {1}
        assert len({one.list_fingerprint for one in found}) == 2
        assert members.list_fingerprint(other) in {one.list_fingerprint for one in found}
        assert "signed two member lists with the serial number 1" in found[0].list_conflict
        epoch = max(one.epoch for one in found)
        assert gosta("network", "epoch", net / "node-0").returncode == 0
        processes.wait(
            lambda all_: all(one.epoch > epoch and one.state == "suppressed" for one in all_)
        )
        shown = gosta("status", net / "node-0").stdout
        assert "two member lists" in " ".join(shown.split())
        processes.stop()
    assert (net / "node-0" / members.CONFLICT_FILE).exists()
    assert "signed two member lists" in " ".join(gosta("check", net / "node-1").stdout.split())


def test_a_list_with_another_serial_number_is_no_conflict() -> None:
    network = SumNetwork(
        [np.random.default_rng(0).random((12, 1)) for _ in range(3)], [(0, 1), (1, 2), (0, 2)]
    )
    network.clock.run(5.0)
    network.remove_member("node-2")
    network.clock.run(20.0)
    assert not any(node.list_conflict for node in network.nodes.values())
