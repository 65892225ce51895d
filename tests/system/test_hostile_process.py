"""Real processes, TLS and journals: one site of six runs a malicious node with its own key and
certificate.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from attacks import storm
from hostile import HostileNode
from ports import free
from processes import Processes, gosta, wait_until

from gosta.net.addresses import parse
from gosta.net.config import JOURNAL_FILE, NODE_FILE, read_node
from gosta.net.node.credentials import load_credentials
from gosta.net.node.node import Environment
from gosta.net.node.restore import restore_peer
from gosta.net.node.source import estimand_of, read_row_source
from gosta.net.node.status import Status
from gosta.net.storage.journal import Journal
from gosta.net.transport.base import Greeting
from gosta.net.transport.tcp import TcpTransport
from gosta.net.transport.tls import TlsFiles, make_context

ATTACKER = "node-2"


async def attack(folder: Path, is_enough: Callable[[], bool]) -> None:
    """Run a malicious node until it is enough, and meanwhile half frames and a client that does not
    read.
    """
    config, loop = read_node(folder / NODE_FILE), asyncio.get_running_loop()
    files, keyring = load_credentials(folder, config, lambda *_, **__: None)
    journal = Journal(folder / JOURNAL_FILE)
    peer = restore_peer(config, read_row_source(config, folder), journal)
    environment = Environment(loop, random.Random(1), lambda *_, **__: None)
    node = HostileNode(config, peer, journal, environment)
    node.attack = storm
    transport = TcpTransport(node, files, keyring.list)
    await transport.start(config.node.listen)
    node.start(transport)
    await asyncio.gather(
        asyncio.to_thread(wait_until, is_enough),
        *(
            send_half_frames(files, node.greeting, address)
            for address in config.neighbours.values()
        ),
    )
    node.stop()
    await transport.stop()


async def send_half_frames(files: TlsFiles, greeting: Greeting, address: str) -> None:
    """Greet, send half a frame, a frame that is too long, and many messages without reading the
    answers.
    """
    context, (host, port) = make_context(files, ssl.PROTOCOL_TLS_CLIENT), parse(address)
    context.check_hostname = False
    raw = greeting.encode()
    for data in (b"\0\0\1\0half", b"\xff\xff\xff\xffmore", b"\0\0\0\2\x91\xa4" * 10_000):
        try:
            _, writer = await asyncio.open_connection(host, port, ssl=context)
            writer.write(len(raw).to_bytes(4, "big") + raw + data)
            await asyncio.sleep(0.5)
            writer.close()
        except OSError:
            pass


def exact_value(folder: Path, names: list[str]) -> float:
    configs = {name: read_node(folder / name / NODE_FILE) for name in names}
    rows = [read_row_source(configs[name], folder / name).estimand.x for name in names]
    return float(estimand_of(configs[names[0]].network, np.concatenate(rows), folder).value[0])


def test_a_malicious_node_among_six(tmp_path: Path) -> None:
    folder = tmp_path / "network"
    made = gosta(
        "network",
        "init",
        folder,
        "--nodes",
        6,
        "--graph",
        "complete",
        "--data",
        "breast-cancer",
        "--exchanges-per-second",
        40,
        "--port",
        free(12),
    )
    assert made.returncode == 0, made.stderr
    honest = [f"node-{k}" for k in range(6) if f"node-{k}" != ATTACKER]
    with Processes(*(folder / name for name in honest)) as processes:

        def is_suspended() -> bool:
            seen = [
                one
                for status in processes.statuses()
                for one in status.neighbours
                if one.name == ATTACKER
            ]
            return len(seen) == len(honest) and all(one.suspended_seconds > 0 for one in seen)

        processes.start(*honest)
        processes.wait(lambda found: all(one.state == "running" for one in found))
        asyncio.run(attack(folder / ATTACKER, is_suspended))
        removed = gosta("network", "remove", folder, ATTACKER, "--delete")
        assert removed.returncode == 0, removed.stderr
        exact = exact_value(folder, honest)

        def are_right(found: list[Status]) -> bool:
            return all(
                one.state == "running"
                and one.sites_seen == 5
                and one.estimate_epoch == one.epoch
                and one.estimate is not None
                and one.estimate[0] == pytest.approx(exact, rel=0.01)
                for one in found
            )

        processes.wait(are_right)
        for name in honest:
            processes.kill(name)
            processes.start(name)
        processes.wait(are_right)
        processes.stop()
    for name in honest:
        assert "error" not in [
            json.loads(line)["event"] for line in processes.log(name).splitlines()
        ]
    verified = gosta("network", "verify", folder)
    assert verified.returncode == 0, verified.stdout + verified.stderr
