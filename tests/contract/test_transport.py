"""Transports: one suite for all, with and without `FaultyTransport`; then tests of single ones."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import faulty_transport as faults
import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from faulty_transport import FaultyTransport
from memory_transport import MemoryNetwork
from transports import (
    NETWORK,
    MemoryTestNetwork,
    RecordingHandler,
    TcpTestNetwork,
    TestNetwork,
    issue,
    until,
    write,
)
from virtual_clock import VirtualClock

from gosta.errors import InputError
from gosta.net import addresses
from gosta.net.deploy import certificates
from gosta.net.limits import MAX_MESSAGE_BYTES
from gosta.net.transport.base import Handler, Link, Transport
from gosta.net.transport.connection import BUFFER_BYTES, MAX_WRITE_BUFFER_BYTES, Connection
from gosta.net.transport.tcp import MAX_LINKS_PER_NEIGHBOUR, TcpTransport

TRANSPORTS: dict[str, Callable[[Path], TestNetwork]] = {
    "memory": lambda folder: MemoryTestNetwork(),
    "plain": lambda folder: TcpTestNetwork(None),
    "tls": TcpTestNetwork,
}
SIZES = [
    1,
    2,
    300,
    BUFFER_BYTES - 4,
    BUFFER_BYTES - 3,
    BUFFER_BYTES,
    MAX_MESSAGE_BYTES - 1,
    MAX_MESSAGE_BYTES,
]

Body = Callable[[TestNetwork], Awaitable[None]]
OnNetwork = Callable[[Body], None]


@pytest.fixture(params=[f"{kind}{layer}" for kind in TRANSPORTS for layer in ("", ", with faults")])
def on_network(request: pytest.FixtureRequest, tmp_path: Path) -> OnNetwork:
    kind, _, layer = request.param.partition(", ")

    async def run(body: Body) -> None:
        network = TRANSPORTS[kind](tmp_path)
        network.has_faults = bool(layer)
        try:
            async with asyncio.timeout(20):
                await body(network)
        finally:
            await network.stop()

    return lambda body: asyncio.run(run(body))


async def connect(network: TestNetwork) -> tuple[RecordingHandler, RecordingHandler, Link, Link]:
    """Return two connected neighbours, a and b, and their ends of the link."""
    a, b = RecordingHandler("b"), RecordingHandler("a")
    dialling = network.add("a", a)
    network.add("b", b)
    await network.start()
    dialling.dial("b", network.address("b"))
    await network.until(lambda: bool(a.links and b.links))
    return a, b, a.links[0], b.links[0]


async def send(network: TestNetwork, link: Link, message: bytes) -> None:
    """Send as soon as the buffer has space."""
    await network.until(lambda: link.send(message))


def test_messages_arrive_whole_and_in_order(on_network: OnNetwork) -> None:
    async def body(network: TestNetwork) -> None:
        a, b, to_b, to_a = await connect(network)
        assert (to_b.neighbour, to_a.neighbour) == ("b", "a")
        there = [bytes([k + 1]) * size for k, size in enumerate(SIZES)]
        back = [message[::-1] for message in reversed(there)]
        for one, other in zip(there, back, strict=True):
            await send(network, to_b, one)
            await send(network, to_a, other)
        await network.until(lambda: len(a.messages) == len(b.messages) == len(SIZES))
        assert b.messages == there
        assert a.messages == back

    on_network(body)


def test_many_messages_at_once(on_network: OnNetwork) -> None:
    async def body(network: TestNetwork) -> None:
        a, b, to_b, _ = await connect(network)
        messages = [b"%d " % k + bytes(k % 700) for k in range(2000)]
        b.respond = lambda link, message: (
            None if link.send(message[:5]) else b.disconnections.append("a reply was lost")
        )
        for message in messages:
            await send(network, to_b, message)
        await network.until(lambda: len(a.messages) == len(messages))
        assert b.messages == messages
        assert a.messages == [message[:5] for message in messages]
        assert b.disconnections == []

    on_network(body)


def test_a_message_sent_as_the_link_opens_arrives(on_network: OnNetwork) -> None:
    async def body(network: TestNetwork) -> None:
        class Eager(RecordingHandler):
            def on_connected(self, link: Link) -> None:
                super().on_connected(link)
                assert link.send(b"at once")

        a, b = Eager("b"), Eager("a")
        dialling = network.add("a", a)
        network.add("b", b)
        await network.start()
        dialling.dial("b", network.address("b"))
        await network.until(lambda: a.messages == b.messages == [b"at once"])

    on_network(body)


def test_both_ends_are_told_of_a_close(on_network: OnNetwork) -> None:
    async def body(network: TestNetwork) -> None:
        a, b, to_b, to_a = await connect(network)
        to_b.send(b"final message")
        to_b.close()
        to_b.close()
        assert not to_b.send(b"too late")
        await network.until(lambda: not a.links and not b.links)
        assert b.messages == [b"final message"]
        assert a.disconnections == ["closed by this node"]
        assert b.disconnections == ["closed by the other end"]
        assert not to_a.send(b"lost")

    on_network(body)


def test_a_link_closed_in_on_message_gets_no_more_messages(on_network: OnNetwork) -> None:
    async def body(network: TestNetwork) -> None:
        a, b, to_b, _ = await connect(network)
        b.respond = lambda link, message: link.close()
        for _ in range(60):  # more than is read at once
            to_b.send(b"enough" * 1000)
        await network.until(lambda: not a.links and not b.links)
        assert b.messages == [b"enough" * 1000]

    on_network(body)


def test_dialling_an_unused_address_fails(on_network: OnNetwork) -> None:
    async def body(network: TestNetwork) -> None:
        a = RecordingHandler("b")
        dialling = network.add("a", a)
        await network.start()
        dialling.dial("b", network.address("b"))
        await network.until(lambda: bool(a.dial_failures))
        assert a.dial_failures[0] in ("no node at this address", "Connection refused")
        assert a.links == []

    on_network(body)


def test_a_node_that_is_not_a_neighbour_is_rejected(on_network: OnNetwork) -> None:
    async def body(network: TestNetwork) -> None:
        a, b = RecordingHandler("b"), RecordingHandler("c")
        dialling = network.add("a", a)
        network.add("b", b)
        await network.start()
        dialling.dial("b", network.address("b"))
        await network.until(lambda: bool(a.dial_failures and b.rejections))
        assert b.rejections == ["not a neighbour"]
        assert "closed" in a.dial_failures[0]
        assert a.links == b.links == []

    on_network(body)


def test_a_closed_transport_accepts_no_connections(on_network: OnNetwork) -> None:
    async def body(network: TestNetwork) -> None:
        a, b = RecordingHandler("b"), RecordingHandler("a")
        dialling, accepting = network.add("a", a), network.add("b", b)
        await network.start()
        dialling.dial("b", network.address("b"))
        await network.until(lambda: bool(a.links and b.links))
        accepting.close()
        await network.until(lambda: not a.links and not b.links)
        dialling.dial("b", network.address("b"))
        await network.until(lambda: bool(a.dial_failures))

    on_network(body)


def on_tcp(
    tmp_path: Path, body: Callable[[TcpTestNetwork], Awaitable[None]], *, tls: bool = True
) -> None:
    async def run() -> None:
        network = TcpTestNetwork(tmp_path if tls else None)
        try:
            async with asyncio.timeout(20):
                await body(network)
        finally:
            await network.stop()

    asyncio.run(run())


@pytest.mark.parametrize("tls", [True, False])
def test_nothing_is_read_from_a_neighbour_that_does_not_read(tmp_path: Path, tls: bool) -> None:
    """Buffering replies for a neighbour that does not read them would take memory without bound."""

    async def body(network: TcpTestNetwork) -> None:
        a, b, to_b, to_a = await connect(network)
        assert isinstance(to_b, Connection)
        assert isinstance(to_a, Connection)
        b.respond = lambda link, message: (
            None
            if link.send(bytes(MAX_MESSAGE_BYTES))
            else b.dial_failures.append("a reply was lost")
        )
        to_b.transport.pause_reading()
        for _ in range(50):
            await send(network, to_b, b"?")
        await until(lambda: to_a.transport.get_write_buffer_size() > MAX_WRITE_BUFFER_BYTES)
        assert len(b.messages) < 50, "the rest is not read yet"
        assert (
            to_a.transport.get_write_buffer_size() < MAX_WRITE_BUFFER_BYTES + 2 * MAX_MESSAGE_BYTES
        )
        to_b.transport.resume_reading()
        await until(lambda: a.messages == [bytes(MAX_MESSAGE_BYTES)] * 50)
        assert b.dial_failures == []

    on_tcp(tmp_path, body, tls=tls)


@pytest.mark.parametrize("tls", [True, False])
def test_a_link_to_a_neighbour_that_does_not_read_can_be_closed(tmp_path: Path, tls: bool) -> None:
    async def body(network: TcpTestNetwork) -> None:
        a, b, to_b, to_a = await connect(network)
        assert isinstance(to_a, Connection)
        to_a.transport.pause_reading()
        for _ in range(20):
            while to_b.send(bytes(MAX_MESSAGE_BYTES)):
                pass
            await asyncio.sleep(0.005)
        to_b.close()
        await until(lambda: a.disconnections == ["closed by this node"])
        to_a.close()
        await until(lambda: not b.links)

    on_tcp(tmp_path, body, tls=tls)


def test_the_number_of_links_to_a_neighbour_is_limited(tmp_path: Path) -> None:
    async def body(network: TcpTestNetwork) -> None:
        a, b, _, first = await connect(network)
        for _ in range(MAX_LINKS_PER_NEIGHBOUR):
            network.nodes["a"].dial("b", network.address("b"))
        await until(
            lambda: (
                bool(a.disconnections and b.disconnections)
                and len(a.links) == len(b.links) == MAX_LINKS_PER_NEIGHBOUR
            )
        )
        assert first not in b.links
        assert "too many connections" in [*a.disconnections, *b.disconnections]

    on_tcp(tmp_path, body)


def test_invalid_addresses(tmp_path: Path) -> None:
    async def body(network: TcpTestNetwork) -> None:
        transport = network.build("a", RecordingHandler("b"))
        for address in (
            "nowhere",
            "127.0.0.1:",
            "127.0.0.1:70000",
            ":7000",
            "::1:7000",
            "127.0.0.1:port",
        ):
            with pytest.raises(InputError, match=r"host:port|a port"):
                await transport.start(address)
            with pytest.raises(InputError, match=r"host:port|a port"):
                transport.dial("b", address)
        for address in ("0.0.0.0:0", "192.0.2.1:7000", "[::]:0"):
            with pytest.raises(InputError, match="tls = false is for loopback only"):
                await transport.start(address)
            with pytest.raises(InputError, match="tls = false is for loopback only"):
                transport.dial("b", address)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = addresses.listening_address(taken)
            with pytest.raises(InputError, match=rf"listen = '{address}' in node.toml: .* in use"):
                await transport.start(address)

    on_tcp(tmp_path, body, tls=False)


def test_invalid_credentials(tmp_path: Path) -> None:
    authority = certificates.make_authority(NETWORK)
    good = write(tmp_path, authority, issue(authority, "a"))
    other = write(tmp_path / "other", authority, issue(authority, "a"))
    (tmp_path / "text").write_text("no certificate")
    key = load_pem_private_key(good.key.read_bytes(), None)
    secret = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    (tmp_path / "secret").write_bytes(secret)
    wrong = [
        (good._replace(key=tmp_path / "secret"), "without a password"),
        (good._replace(key=tmp_path / "none"), "cannot read .*none"),
        (good._replace(cert=tmp_path / "none"), "cannot read .*none"),
        (good._replace(authority=tmp_path / "none"), "cannot read .*none"),
        (good._replace(key=other.key), "cannot be used"),
        (good._replace(cert=tmp_path / "text"), "cannot be used"),
        (good._replace(authority=tmp_path / "text"), "cannot be used"),
    ]
    for tls, text in wrong:
        with pytest.raises(InputError, match=text):
            TcpTransport(RecordingHandler(), tls)


def test_a_crash_on_the_memory_transport() -> None:
    loop = VirtualClock()
    network = MemoryNetwork(loop, 0.01)
    a, b = RecordingHandler("b"), RecordingHandler("a")
    network.attach("a", a).dial("b", "")
    network.attach("b", b)
    loop.run_all()
    to_b, to_a = a.links[0], b.links[0]
    assert to_b.send(b"lost with the receiver")
    assert to_a.send(b"lost with the sender")
    network.detach("b")
    loop.run_all()
    assert a.messages == b.messages == []
    assert (a.disconnections, b.disconnections) == (["connection broken"], [])
    again = RecordingHandler("a")
    network.attach("b", again).dial("a", "")
    loop.run_all()
    assert again.links[0].send(b"back")
    assert to_a.send(b"from before the crash")
    loop.run_all()
    assert a.messages == [b"back"]


def test_messages_of_a_killed_process_still_arrive() -> None:
    loop = VirtualClock()
    network = MemoryNetwork(loop, 0.01)
    a, b = RecordingHandler("b"), RecordingHandler("a")
    network.attach("a", a).dial("b", "")
    network.attach("b", b)
    loop.run_all()
    assert b.links[0].send(b"sent before the crash")
    network.detach("b", flush=True)
    loop.run_all()
    assert a.messages == [b"sent before the crash"]
    assert (a.disconnections, b.disconnections) == (["connection broken"], [])


def test_a_late_copy_is_sent_over_the_connection_open_then() -> None:
    loop = VirtualClock()
    network = MemoryNetwork(loop, 0.01)
    a, b = RecordingHandler("b"), RecordingHandler("a")
    late = faults.numbered({1: [1.0], 2: [1.0, 3.0]})
    dialling = FaultyTransport("a", a, loop, late, lambda handler: network.attach("a", handler))
    network.attach("b", b)
    dialling.dial("b", "")
    loop.run(0.5)
    assert a.links[0].send(b"first")
    assert a.links[0].send(b"second")
    network.detach("b")
    loop.run(2.0)
    assert (b.messages, a.links) == ([], [])
    again = RecordingHandler("a")
    network.attach("b", again)
    dialling.dial("b", "")
    loop.run_all()
    assert again.messages == [b"second"]


@pytest.mark.parametrize("who", ["a", "b"])
def test_a_crash_during_a_dial(who: str) -> None:
    loop = VirtualClock()
    network = MemoryNetwork(loop, 0.01)
    a, b = RecordingHandler("b"), RecordingHandler("a")
    network.attach("a", a).dial("b", "")
    network.attach("b", b)
    loop.step()
    assert b.links
    assert not a.links
    network.detach(who)
    loop.run_all()
    assert a.links == []
    assert len(b.links) == (who == "b"), "a crashed node is not told"
    assert a.dial_failures == (["connection closed by the other end"] if who == "b" else [])


def test_faults_change_what_arrives() -> None:
    loop, rng, is_split = VirtualClock(), random.Random(5), [False]
    network = MemoryNetwork(loop, 0.01)
    a, b = RecordingHandler("b"), RecordingHandler("a")
    fault = faults.combine(
        faults.partition(lambda sender, receiver: is_split[0]),
        faults.loss(0.2, rng),
        faults.duplicate(0.1, rng),
        faults.delay(0.0, 1.0, rng),
    )

    def attach(handler: Handler) -> Transport:
        return network.attach("a", handler)

    dialling = FaultyTransport("a", a, loop, fault, attach)
    network.attach("b", b)
    while not a.links:
        dialling.dial("b", "")
        loop.run_all()
    for k in range(1000):
        assert a.links[0].send(b"%d" % k)
    loop.run_all()
    counts = {message: b.messages.count(message) for message in b.messages}
    assert 750 < len(counts) < 850
    assert 50 < sum(count == 2 for count in counts.values()) < 110
    assert b.messages != sorted(b.messages, key=int)

    is_split[0] = True
    arrived, failures = len(b.messages), len(a.dial_failures)
    assert a.links[0].send(b"lost")
    dialling.dial("b", "")
    loop.run_all()
    assert len(b.messages) == arrived
    assert a.dial_failures[failures:] == ["unreachable"]
