"""Real processes, TLS and journals: one site of six runs a malicious node with its own key and certificate."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attacks import storm
from chaos import Processes, gosta
from hostile import HostileNode
from ports import free

from gosta.net.addresses import parse
from gosta.net.config import JOURNAL_FILE, NODE_FILE, read_node
from gosta.net.node.credentials import load_credentials
from gosta.net.node.source import estimand_of, read_source
from gosta.net.node.stopped import restore_peer
from gosta.net.storage.journal import Journal
from gosta.net.transport.base import Greeting
from gosta.net.transport.tcp import TcpTransport
from gosta.net.transport.tls import TlsFiles, make_context

ATTACKER = "node-2"


def statuses(folder: Path) -> dict[str, dict[str, Any]]:
    found = map(json.loads, gosta("status", folder, "--json").stdout.splitlines())
    return {one["node"]: one for one in found}


def wait_for(folder: Path, condition: Callable[[dict[str, dict[str, Any]]], bool]) -> dict[str, dict[str, Any]]:
    end, found = time.monotonic() + 90.0, {}
    while time.monotonic() < end:
        found = statuses(folder)
        if all("exchanges" in one for one in found.values()) and condition(found):
            return found
        time.sleep(0.5)
    raise AssertionError(f"timeout: {found}")


async def attack(folder: Path, seconds: float) -> None:
    """Run a malicious node, and meanwhile half frames and a client that does not read."""
    config, loop = read_node(folder / NODE_FILE), asyncio.get_running_loop()
    files, keyring = load_credentials(folder, config, lambda *_, **__: None)
    journal = Journal(folder / JOURNAL_FILE)
    peer = restore_peer(config, read_source(config, folder), journal)
    node = HostileNode(config, peer, journal, loop, random.Random(1), lambda *_, **__: None)
    node.attack = storm
    transport = TcpTransport(node, files, keyring.list)
    await transport.start(config.node.listen)
    node.start(transport)
    await asyncio.gather(
        asyncio.sleep(seconds),
        *(send_half_frames(files, node.greeting, address) for address in config.neighbours.values()),
    )
    node.stop()
    await transport.stop()


async def send_half_frames(files: TlsFiles, greeting: Greeting, address: str) -> None:
    """Greet, send half a frame, a frame that is too long, and many messages without reading the answers."""
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
    rows = [read_source(configs[name], folder / name).estimand.x for name in names]
    return float(estimand_of(configs[names[0]].network, np.concatenate(rows), folder).value[0])


def test_a_malicious_node_among_six(tmp_path: Path) -> None:
    folder = tmp_path / "network"
    made = gosta("network", "init", folder, "--nodes", 6, "--graph", "complete", "--data", "breast-cancer",
                 "--exchanges-per-second", 20, "--port", free(12))  # fmt: skip
    assert made.returncode == 0, made.stderr
    processes = Processes(folder, 6, seed=0)
    honest = [name for name in processes.names if name != ATTACKER]
    try:
        for name in honest:
            processes.start(name)
        asyncio.run(attack(folder / ATTACKER, 8.0))
        during = statuses(folder)
        assert all(during[name]["exchanges"] + during[name]["epoch"] > 1 for name in honest)
        reasons = {
            one["reason"] for name in honest for one in during[name]["rejections"] if one["neighbour"] == ATTACKER
        }
        assert reasons
        removed = gosta("network", "remove", folder, ATTACKER, "--delete")
        assert removed.returncode == 0, removed.stderr
        exact = exact_value(folder, honest)

        def is_right(found: dict[str, dict[str, Any]]) -> bool:
            return all(
                one["state"] == "running"
                and one["sites_seen"] == 5
                and one["estimate_epoch"] == one["epoch"]
                and one["estimate"][0] == pytest.approx(exact, rel=0.01)
                for one in found.values()
            )

        wait_for(folder, is_right)
        for name in honest:
            processes.kill(name)
            processes.start(name)
        wait_for(folder, is_right)
    finally:
        processes.stop()
    for name in honest:
        events = [json.loads(line)["event"] for line in (folder / name / "log.jsonl").read_text().splitlines()]
        assert "error" not in events
    verified = gosta("network", "verify", folder)
    assert verified.returncode == 0, verified.stdout + verified.stderr
