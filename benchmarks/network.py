"""Exchanges a second of two nodes, beside a bare echo; through a forwarder; where the time goes;
bytes; many nodes.

The echo is asyncio's streams with mutual TLS and msgspec: two processes, an offer there and back,
decoded and encoded at both ends. An exchange is such a round trip, a confirmation, three writes to
two journals, and the rule at both ends. Round trips of links, direct and through a forwarder, are
of two and three processes with the nodes' own transport.

Run with: python benchmarks/network.py [--smoke]
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import common
import numpy as np
import ports
import psutil
import uvloop
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hostile import make_trusts
from virtual_network import START_TIME, VirtualNetwork

import gosta
from gosta.net.config import read_node
from gosta.net.node.credentials import load_credentials
from gosta.net.node.source import read_row_source
from gosta.net.protocol import messages as wire
from gosta.net.protocol.epochs import Identity
from gosta.net.protocol.peer import Peer
from gosta.net.protocol.records import ExchangeCompleted
from gosta.net.storage.journal import Journal
from gosta.net.transport.base import Greeting, Link
from gosta.net.transport.connection import encode_frame
from gosta.net.transport.tcp import TcpTransport


class Sizes(NamedTuple):
    """Extent of the measurements."""

    seconds: float
    """Duration of each measurement."""
    rounds: int
    """Measurements of the echo and of the pair, in turn."""
    calls: int
    """Calls of each part of an exchange."""
    nodes: int
    """Nodes of the large network."""
    graph: str
    rate: str
    """Exchanges a second that each of them initiates."""


FULL = Sizes(6.0, 3, 3000, 64, "watts-strogatz", "2")
SMOKE = Sizes(0.3, 1, 20, 3, "complete", "50")
REQUIRED = 0.25  # of the echo's round trips
REQUIRED_FORWARDED = 0.4  # of direct round trips
MOST_ERROR = 0.05
WINDOW_SECONDS = 0.05  # in which round trips are counted


def make_network(folder: Path, nodes: int, graph: str, port: int, *more: str) -> Path:
    subprocess.run(
        [
            *common.GOSTA,
            "network",
            "init",
            str(folder),
            "--data",
            "breast-cancer",
            "--statistic",
            "auc",
            "--nodes",
            str(nodes),
            "--graph",
            graph,
            "--deal",
            "even",
            "--port",
            str(port),
            *more,
        ],
        check=True,
        capture_output=True,
    )
    return folder


def set_key(file: Path, name: str, value: str) -> None:
    text, count = re.subn(rf"^{name} = .*$", f"{name} = {value}", file.read_text(), flags=re.M)
    assert count == 1, f"{file} has {count} lines for {name}"
    file.write_text(text)


def offer_of(folder: Path) -> tuple[Peer, bytes]:
    """Return a node of that network and an offer of it as it is sent."""
    file = read_node(folder / "node.toml")
    source = read_row_source(file, folder)
    identity = Identity(file.node.name, file.network.id, source.fingerprint)
    peer = Peer(identity, source, file.neighbours, source.trust, file.network.confidence_level)
    for record in peer.start_epoch("benchmark").records:
        peer.apply(record)
    return peer, peer.offer(next(iter(file.neighbours)), 1).messages[0][1]


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


async def round_trips(folder: Path, port: int, message: bytes, seconds: float) -> float:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    context.load_verify_locations(folder / "ca.pem")
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    offer, done, start = wire.decode(message), 0, time.perf_counter()
    while time.perf_counter() < start + seconds:
        raw = wire.encode(offer)
        writer.write(len(raw).to_bytes(4, "big") + raw)
        assert wire.decode(await read(reader)) == offer
        done += 1
    rate = done / (time.perf_counter() - start)
    writer.close()
    return rate


def echo(folder: Path, message: bytes, seconds: float) -> float:
    """Return the round trips a second of the bare echo."""
    port = ports.free(1)
    command = [sys.executable, __file__, "--echo", str(folder / "node-1"), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        try:
            return asyncio.run(round_trips(folder / "node-0", port, message, seconds))
        finally:
            server.kill()


class End:
    """A handler of links that answers every message with the same, or that counts the answers."""

    def __init__(self, name: str, network: str, message: bytes = b"") -> None:
        self.greeting, self.message, self.count = Greeting(name, network), message, 0
        self.is_linked = asyncio.Event()

    def is_neighbour(self, name: str) -> bool:
        return name in ("node-0", "node-1")

    def on_connected(self, link: Link) -> None:
        if self.message:
            link.send(self.message)
        self.is_linked.set()

    def on_message(self, link: Link, message: bytes) -> None:
        self.count += 1
        link.send(message)

    def on_dial_failed(self, neighbour: str, reason: str) -> None:
        sys.exit(f"no link to {neighbour}: {reason}")

    def on_disconnected(self, link: Link, reason: str) -> None: ...

    def on_mismatch(self, neighbour: str, setting: str, detail: str) -> None: ...

    def on_rejected(self, reason: str, detail: str) -> None: ...


async def run_end(folder: Path, neighbour: str, bytes_: int, seconds: float) -> None:
    """Run one end of a link, or the forwarder; print round trips a second if there are seconds to
    measure.
    """
    file = read_node(folder / "node.toml")
    tls, keyring = load_credentials(folder, file, lambda *_, **__: None)
    handler = End(file.node.name, file.network.id, b"x" * bytes_)
    transport = TcpTransport(handler, tls, keyring.list, on_forwarding=lambda *_: None)
    await transport.start(file.node.listen)
    print("ready", flush=True)
    if neighbour and (file.neighbours[neighbour] == "" or seconds):
        transport.dial(neighbour, file.neighbours[neighbour], file.forwarders)
    if not seconds:
        await asyncio.Event().wait()
    await handler.is_linked.wait()
    rates, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        before, start = handler.count, time.perf_counter()
        await asyncio.sleep(WINDOW_SECONDS)
        rates.append((handler.count - before) / (time.perf_counter() - start))
    print(np.quantile(rates, 0.9), flush=True)  # other programs disturb most of them
    await transport.stop()


def link_round_trips(folder: Path, bytes_: int, seconds: float) -> float:
    """Return the round trips a second of a link between node-0 and node-1; node-2 forwards, if that
    is needed.
    """
    with contextlib.ExitStack() as stack:
        ends = [
            ("node-2", "", 0, 0.0),
            ("node-1", "node-0", 0, 0.0),
            ("node-0", "node-1", bytes_, seconds),
        ]
        for name, *more in ends:
            command = [sys.executable, __file__, "--end", str(folder / name), *map(str, more)]
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(process.kill)
            assert process.stdout is not None
            process.stdout.readline()
            output = process.stdout
        return float(output.readline())


def forwarded(place: Path, bytes_: int, sizes: Sizes) -> float:
    """Print round trips and exchanges, direct and through a forwarder; return the ratio of round
    trips.
    """
    (place / "path.txt").write_text("0 1\n1 2\n")
    folders, first = [], ports.free(12)
    for k, hosts in enumerate((("127.0.0.1",), ("outbound", "outbound", "127.0.0.1"))):
        given = [word for host in hosts for word in ("--host", host)]
        port = first + 6 * k
        folder = make_network(
            place / f"path-{k}", 3, str(place / "path.txt"), port, "--n", "64", *given
        )
        for name, rate in (("node-0", "1e9"), ("node-1", "0.0"), ("node-2", "0.0")):
            set_key(folder / name / "node.toml", "exchanges_per_second", rate)
            set_key(folder / name / "node.toml", "max_exchanges_per_second", "1e9")
        folders.append((folder, port))
    seconds, rounds = sizes.seconds / sizes.rounds, 2 * sizes.rounds - 1
    trips = [
        [link_round_trips(folder, bytes_, seconds) for folder, _ in folders] for _ in range(rounds)
    ]
    direct, through = np.median(trips, axis=0)
    ratio = float(through / direct)
    print(
        f"round trips of a link: {direct:,.0f} a second; through a forwarder {through:,.0f}, "
        f"{ratio:.2f} of that"
    )
    if sizes.rounds > 1:
        direct, through = (exchanges(folder, port, sizes.seconds, 3) for folder, port in folders)
        print(
            f"exchanges: {direct:,.0f} a second; through a forwarder {through:,.0f}, "
            f"{through / direct:.2f} of that"
        )
    return ratio


@contextlib.contextmanager
def running(folder: Path, names: list[str]) -> Iterator[list[psutil.Process]]:
    started = [
        psutil.Popen([*common.GOSTA, "node", str(folder / name)], stderr=subprocess.DEVNULL)
        for name in names
    ]
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
    return {"exchanges": 0, "state": "not there", "estimate": None, "counters": {}}


def exchanges(folder: Path, port: int, seconds: float, nodes: int = 2) -> float:
    """Return the exchanges a second of two nodes; one of them initiates all, as fast as they
    can.
    """
    names = [f"node-{k}" for k in range(nodes)]
    for name in names:
        (folder / name / "journal.sqlite").unlink(missing_ok=True)
    with running(folder, names):
        while status(port + 1)["exchanges"] < 100:
            time.sleep(0.1)
        first, start = status(port + 1)["exchanges"], time.perf_counter()
        time.sleep(seconds)
        rate = (status(port + 1)["exchanges"] - first) / (time.perf_counter() - start)
    command = [*common.GOSTA, "network", "verify", str(folder)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    false = [line for line in checked.stdout.splitlines() if line.startswith("NO")]
    assert not false or (nodes > 2 and "every node has an estimate" in false[0]), (
        checked.stdout
    )  # one may be idle
    assert rate > 0
    return float(rate)


def microseconds(work: Callable[[], object], calls: int) -> float:
    def repeat() -> None:
        for _ in range(calls):
            work()

    return common.seconds_of(repeat) / calls * 1e6


def parts(folder: Path, message: bytes, calls: int) -> dict[str, float]:
    """Return what the parts of an exchange take in one process, in microseconds."""
    peer, _ = offer_of(folder / "node-1")
    offer = wire.decode(message)
    assert isinstance(offer, wire.Offer)
    completed = ExchangeCompleted("node-0", 1, offer.contribution, offer.seal)
    found = {}
    for durable in (False, True):
        with tempfile.TemporaryDirectory() as place:
            journal = Journal(Path(place) / "journal.sqlite", durable)
            write = partial(journal.append, [completed])
            found["a write" + " that survives a loss of power" * durable] = microseconds(
                write, calls
            )
            journal.close()
    found["validating a message"] = microseconds(
        lambda: peer._check("node-0", offer.contribution, offer.seal), calls
    )
    found["the rule, one side"] = microseconds(lambda: peer.apply(completed), calls)
    found["encode and decode"] = microseconds(lambda: wire.decode(wire.encode(offer)), calls)
    return found


def bytes_of_exchange(protocol: str, columns: int) -> int:
    """Return the bytes of an exchange of two nodes with one row each: its three frames, signatures
    included.
    """
    names = [f"node-{k}" for k in range(4)]
    trusts = make_trusts(
        dict.fromkeys(names, 1), {name: Ed25519PrivateKey.generate() for name in names}
    )
    rows, ring = (
        np.random.default_rng(0).normal(size=(4, columns)),
        [(0, 1), (1, 2), (2, 3), (3, 0)],
    )
    options: dict[str, Any] = {
        "statistic": "mean-pairwise-distance",
        "protocol": protocol,
        "trusts": trusts,
    }
    network = VirtualNetwork(np.split(rows, 4), ring, **options)
    network.clock.run(60.0)
    first, second = network.peers["node-0"], network.peers["node-1"]
    first.pending = first.accepted = second.pending = second.accepted = None
    (_, offer), id = first.offer("node-1", int(START_TIME * 1e6)).messages[0], int(START_TIME * 1e6)
    sent = [offer, second._encode_accept("node-0", id), wire.encode(wire.Confirm(id))]
    return sum(len(encode_frame(one)) for one in sent)


def print_bytes() -> None:
    print("bytes of an exchange, one row of d numbers at each node, one kernel value:")
    for protocol in ("gosta-async", "tracking", "carried-means"):
        found = [f"{bytes_of_exchange(protocol, d):,} for d = {d}" for d in (1, 12)]
        print(f"  {protocol}: {', '.join(found)}")


def many_nodes(folder: Path, port: int, sizes: Sizes) -> None:
    """Run many nodes on this machine at their usual rate; print their state and what they take."""
    names, status_ports = (
        [f"node-{k}" for k in range(sizes.nodes)],
        [port + 2 * k + 1 for k in range(sizes.nodes)],
    )
    started = time.perf_counter()
    with running(folder, names) as processes:
        while not all(status(each)["exchanges"] for each in status_ports):
            time.sleep(0.5)
        up = time.perf_counter() - started
        before, start = [status(each)["exchanges"] for each in status_ports], time.perf_counter()
        cpu = sum(sum(process.cpu_times()[:2]) for process in processes)
        time.sleep(4 * sizes.seconds)
        statuses = [status(each) for each in status_ports]
        elapsed = time.perf_counter() - start
        busy = (
            (sum(sum(process.cpu_times()[:2]) for process in processes) - cpu)
            / elapsed
            / psutil.cpu_count()
        )
        memory = [process.memory_info().rss / 2**20 for process in processes]
        unique = [process.memory_full_info().uss / 2**20 for process in processes]
    done = sum(s["exchanges"] for s in statuses) - sum(before)
    exact = gosta.exact("breast-cancer", "auc")
    off = np.array([abs(s["estimate"][0] / exact - 1) for s in statuses])
    unanswered = sum(s["counters"].get("offers without an answer", 0) for s in statuses) / sum(
        s["counters"]["offers"] for s in statuses
    )
    states = {s["state"] for s in statuses}
    print(
        f"{sizes.nodes} nodes, rate {sizes.rate} a node: all had an exchange {up:.0f} s after the "
        "first was started"
    )
    rate = done / 2 / elapsed
    print(
        f"  {rate:.0f} exchanges a second, {100 * busy:.0f} % of all cores, {100 * unanswered:.1f} "
        "% without an answer"
    )
    print(
        f"  states: {', '.join(sorted(states))}; estimates off by at most {100 * off.max():.2g} %"
    )
    print(
        f"  memory of a node: {np.median(memory):.0f} MiB, {np.median(unique):.0f} MiB of them its "
        "own"
    )
    assert states == {"running"}, states
    assert off.max() < MOST_ERROR, off


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument(
        "--echo", nargs=2, metavar=("FOLDER", "PORT"), help="serve as the other end of the echo"
    )
    parser.add_argument(
        "--end",
        nargs=4,
        metavar=("FOLDER", "NEIGHBOUR", "BYTES", "SECONDS"),
        help="an end of a link",
    )
    arguments = parser.parse_args()
    if arguments.echo:
        asyncio.run(serve_echo(Path(arguments.echo[0]), int(arguments.echo[1])))
        return
    if arguments.end:
        folder, neighbour, bytes_, seconds = arguments.end
        uvloop.run(run_end(Path(folder), neighbour, int(bytes_), float(seconds)))
        return
    sizes = SMOKE if arguments.smoke else FULL
    common.print_machine("msgspec", "psutil")
    port = ports.free(2 * sizes.nodes)
    with tempfile.TemporaryDirectory() as place:
        pair = make_network(Path(place) / "pair", 2, "complete", port, "--n", "64")
        files = [pair / f"node-{k}" / "node.toml" for k in (0, 1)]
        for file, rate in zip(files, ("1e9", "0.0"), strict=True):
            set_key(file, "exchanges_per_second", rate)
            set_key(file, "max_exchanges_per_second", "1e9")
        message = offer_of(pair / "node-0")[1]
        rates = [
            (echo(pair, message, sizes.seconds), exchanges(pair, port, sizes.seconds))
            for _ in range(sizes.rounds)
        ]
        bare, ours = np.median(rates, axis=0)
        ratio = float(np.median([exchange / trip for trip, exchange in rates]))
        print(f"round trips of a bare echo, {len(message)} bytes: {bare:,.0f} a second")
        print(f"exchanges of two nodes, the same offers: {ours:,.0f} a second, {ratio:.2f} of that")
        through = forwarded(Path(place), len(message), sizes)
        for name, taken in parts(pair, message, sizes.calls).items():
            print(f"  {name}: {taken:.0f} us")
        for file in files:
            set_key(file, "durable", "true")
        if not arguments.smoke:
            durable = exchanges(pair, port, sizes.seconds)
            print(f"with a journal that survives a loss of power: {durable:,.0f} a second")
        print_bytes()
        many = make_network(
            Path(place) / "many",
            sizes.nodes,
            sizes.graph,
            port,
            "--exchanges-per-second",
            sizes.rate,
        )
        many_nodes(many, port, sizes)
    assert arguments.smoke or ratio >= REQUIRED, f"{ratio:.2f} is less than {REQUIRED:.2f}"
    assert arguments.smoke or through >= REQUIRED_FORWARDED, (
        f"{through:.2f} is less than {REQUIRED_FORWARDED:.2f}"
    )


if __name__ == "__main__":
    main()
