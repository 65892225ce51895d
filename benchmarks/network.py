"""How many exchanges a second two nodes manage, beside a bare echo; where the time goes; many nodes on one machine.

Run with: python benchmarks/network.py

The echo is asyncio's streams with mutual TLS and msgspec: two processes, an offer there and back, decoded and encoded
at both ends. An exchange is such a round trip, three writes to two journals, and the meeting itself at both ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import re
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import psutil

import gosta
from gosta.net.config import read_node
from gosta.net.node.source import fingerprint, read_source
from gosta.net.protocol import messages as wire
from gosta.net.protocol.peer import Identity, Peer
from gosta.net.storage.journal import Journal, Met

SECONDS = 6.0  # of each measurement
WANTED = 1 / 3
MANY = 64
PORT = 17400
GOSTA = [sys.executable, "-m", "gosta"]


def network(folder: Path, nodes: int, graph: str, port: int, *more: str) -> Path:
    subprocess.run(
        [*GOSTA, "network", "init", str(folder), "--data", "breast-cancer", "--statistic", "auc", "--nodes", str(nodes),
         "--graph", graph, "--deal", "even", "--port", str(port), *more],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


def set_line(file: Path, name: str, value: str) -> None:
    file.write_text(re.sub(rf"^{name} = .*$", f"{name} = {value}", file.read_text(), flags=re.M))


def offer_of(folder: Path) -> tuple[Peer, bytes]:
    """A node of that network after one meeting, and an offer of it as it travels."""
    file = read_node(folder / "node.toml")
    identity = Identity(file.node.name, file.network.id, fingerprint(file.network, folder), 10**15)
    peer = Peer(identity, read_source(file, folder), file.neighbours, file.network.interval)
    for record in peer.begin("").records:
        peer.apply(record)
    return peer, peer.offer(next(iter(file.neighbours))).sends[0][1]


async def serve_echo(folder: Path, port: int) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    context.load_verify_locations(folder / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                message = wire.encode(wire.decode(await read(reader)))
                writer.write(len(message).to_bytes(4, "big") + message)

    async with await asyncio.start_server(answer, "127.0.0.1", port, ssl=context) as server:
        print("ready", flush=True)
        await server.serve_forever()


async def read(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


async def round_trips(folder: Path, port: int, message: bytes) -> float:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    context.load_verify_locations(folder / "ca.pem")
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    offer, done, start = wire.decode(message), 0, time.perf_counter()
    while time.perf_counter() < start + SECONDS:
        raw = wire.encode(offer)
        writer.write(len(raw).to_bytes(4, "big") + raw)
        assert wire.decode(await read(reader)) == offer
        done += 1
    rate = done / (time.perf_counter() - start)
    writer.close()
    return rate


def echo(folder: Path, message: bytes) -> float:
    command = [sys.executable, __file__, "--echo", str(folder / "node-1"), str(PORT + 90)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        try:
            return asyncio.run(round_trips(folder / "node-0", PORT + 90, message))
        finally:
            server.kill()


@contextlib.contextmanager
def running(folder: Path, names: list[str]) -> Iterator[list[psutil.Process]]:
    started = [psutil.Popen([*GOSTA, "node", str(folder / name)], stderr=subprocess.DEVNULL) for name in names]
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(20)


def status(port: int) -> dict[str, Any]:
    with (
        contextlib.suppress(URLError, ConnectionError, TimeoutError),
        urlopen(f"http://127.0.0.1:{port}/status") as page,
    ):
        found: dict[str, Any] = json.load(page)
        return found
    return {"exchanges": 0, "state": "not there", "estimate": None, "counts": {}}


def exchanges(folder: Path) -> float:
    """Exchanges a second of two nodes, of which one begins them all as fast as they can."""
    for name in ("node-0", "node-1"):
        (folder / name / "journal.sqlite").unlink(missing_ok=True)
    with running(folder, ["node-0", "node-1"]):
        while status(PORT + 1)["exchanges"] < 100:
            time.sleep(0.1)
        first, start = status(PORT + 1)["exchanges"], time.perf_counter()
        time.sleep(SECONDS)
        rate = (status(PORT + 1)["exchanges"] - first) / (time.perf_counter() - start)
    checked = subprocess.run([*GOSTA, "network", "verify", str(folder)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    return float(rate)


def microseconds(work: Callable[[], object], times: int = 3000) -> float:
    start = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - start) / times * 1e6


def parts(folder: Path, message: bytes) -> dict[str, float]:
    """What the parts of an exchange take in one process."""
    peer, _ = offer_of(folder / "node-1")
    offer = wire.decode(message)
    assert isinstance(offer, wire.Offer)
    met = Met("node-0", 1, 1, False, offer.side, message)
    found = {}
    for durable in (False, True):
        with tempfile.TemporaryDirectory() as place:
            journal = Journal(Path(place) / "journal.sqlite", durable)
            write = partial(journal.append, [met])
            found["a write" + " that survives a loss of power" * durable] = microseconds(write)
            journal.close()
    found["the meeting, one side"] = microseconds(lambda: peer.apply(met))
    found["checking what came"] = microseconds(lambda: peer._fits(offer))
    found["encode and decode"] = microseconds(lambda: wire.decode(wire.encode(offer)))
    return found


def many(folder: Path) -> None:
    """Many nodes on this machine at their usual rate: are they well, and what do they take?"""
    names, ports = [f"node-{k}" for k in range(MANY)], [PORT + 2 * k + 1 for k in range(MANY)]
    started = time.perf_counter()
    with running(folder, names) as processes:
        while not all(status(port)["exchanges"] for port in ports):
            time.sleep(0.5)
        up = time.perf_counter() - started
        before, start = [status(port)["exchanges"] for port in ports], time.perf_counter()
        cpu = sum(sum(process.cpu_times()[:2]) for process in processes)
        time.sleep(4 * SECONDS)
        statuses = [status(port) for port in ports]
        elapsed = time.perf_counter() - start
        busy = (sum(sum(process.cpu_times()[:2]) for process in processes) - cpu) / elapsed / psutil.cpu_count()
        memory = [process.memory_info().rss / 2**20 for process in processes]
        unique = [process.memory_full_info().uss / 2**20 for process in processes]
    done = sum(s["exchanges"] for s in statuses) - sum(before)
    exact = gosta.exact("breast-cancer", "auc")
    off = np.array([abs(s["estimate"][0] / exact - 1) for s in statuses])
    repeated = sum(s["counts"].get("repeated", 0) for s in statuses) / sum(s["counts"]["offers"] for s in statuses)
    states = ", ".join(sorted({s["state"] for s in statuses}))
    print(f"{MANY} nodes, rate 2 a node: all met somebody {up:.0f} s after the first was started; states: {states}")
    rate = done / 2 / elapsed
    print(f"  {rate:.0f} exchanges a second, {100 * busy:.0f} % of all cores, {100 * repeated:.1f} % repeated")
    print(f"  estimates off by at most {100 * off.max():.2g} %")
    print(f"  memory of a node: {np.median(memory):.0f} MiB, {np.median(unique):.0f} MiB of them its own")
    assert {s["state"] for s in statuses} == {"running"}
    assert off.max() < 0.05


def main() -> None:
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as place:
        pair = network(Path(place) / "pair", 2, "complete", PORT, "--n", "64")
        set_line(pair / "node-0" / "node.toml", "rate", "1e9")
        set_line(pair / "node-1" / "node.toml", "rate", "0.0")
        for k in (0, 1):
            set_line(pair / f"node-{k}" / "node.toml", "most", "1e9")
        message = offer_of(pair / "node-0")[1]
        bare, pairs = zip(*((echo(pair, message), exchanges(pair)) for _ in range(3)), strict=True)
        ratio = float(np.median(np.divide(pairs, bare)))
        print(f"round trips of a bare echo, {len(message)} bytes: {np.median(bare):,.0f} a second")
        print(f"exchanges of two nodes, the same offers: {np.median(pairs):,.0f} a second, {ratio:.2f} of that")
        for name, taken in parts(pair, message).items():
            print(f"  {name}: {taken:.0f} us")
        for k in (0, 1):
            set_line(pair / f"node-{k}" / "node.toml", "durable", "true")
        print(f"the same where the journal is to survive a loss of power: {exchanges(pair):,.0f} a second")
        many(network(Path(place) / "many", MANY, "watts-strogatz", PORT, "--rate", "2"))
    assert ratio >= WANTED, f"{ratio:.2f} is less than {WANTED:.2f}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--echo"]:
        asyncio.run(serve_echo(Path(sys.argv[2]), int(sys.argv[3])))
    else:
        main()
