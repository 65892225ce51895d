"""Connections that are rejected on real sockets, and why; links of neighbours keep working."""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from transports import NETWORK, RecordingHandler, TcpTestNetwork, issue, named, until, write

from gosta.net import addresses
from gosta.net.deploy import certificates
from gosta.net.deploy.certificates import Pair
from gosta.net.limits import MAX_MESSAGE_BYTES, VERSION
from gosta.net.transport import tcp, tls
from gosta.net.transport.base import Greeting
from gosta.net.transport.connection import MAX_GREETING_BYTES, encode_frame
from gosta.net.transport.tcp import MAX_HANDSHAKES, TcpTransport

GREETING = encode_frame(Greeting("a", NETWORK).encode())
YESTERDAY, TOMORROW = (datetime.now(UTC) + timedelta(days=days) for days in (-1, 1))


class Setup:
    """Node b, connected to its neighbour a, for others to connect to."""

    def __init__(self, network: TcpTestNetwork, folder: Path) -> None:
        assert network.authority
        self.network, self.folder, self.authority = network, folder, network.authority
        self.a, self.b = RecordingHandler("b"), RecordingHandler("a")

    async def connect(self) -> None:
        self.network.add("a", self.a)
        self.network.add("b", self.b)
        await self.network.start()
        self.network.nodes["a"].dial("b", self.address)
        await until(lambda: bool(self.a.links and self.b.links))
        self.b.respond = lambda link, message: (
            self.b.disconnections.append("buffer full") if not link.send(message) else None
        )

    @property
    def address(self) -> str:
        return self.network.address("b")

    async def check(self) -> None:
        """Check that the link of a and b works."""
        received = len(self.a.messages)
        assert self.a.links[0].send(b"still there?")
        await until(lambda: self.a.messages[received:] == [b"still there?"])

    def context(self, own: Pair | None) -> ssl.SSLContext:
        """Return the context of a client that does not check who answers."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if own:
            files = write(self.folder / "client", self.authority, own)
            context.load_cert_chain(files.cert, files.key)
        return context

    async def add(self, name: str, handler: RecordingHandler, own: Pair) -> TcpTransport:
        """Add a node with a given certificate."""
        files = write(self.folder / "chosen", self.authority, own)
        self.network.nodes["chosen"] = TcpTransport(named(handler, name), files)
        await self.network.nodes["chosen"].start("127.0.0.1:0")
        return self.network.nodes["chosen"]


@pytest.fixture
def setup(tmp_path: Path) -> Callable[[Callable[[Setup], Awaitable[None]]], None]:
    async def run(body: Callable[[Setup], Awaitable[None]]) -> None:
        network = TcpTestNetwork(tmp_path)
        setup = Setup(network, tmp_path)
        try:
            async with asyncio.timeout(20):
                await setup.connect()
                await body(setup)
                await setup.check()
        finally:
            await network.stop()

    return lambda body: asyncio.run(run(body))


WithSetup = Callable[[Callable[[Setup], Awaitable[None]]], None]


async def send(
    address: str, context: ssl.SSLContext | None, data: bytes, *, wait: bool = True
) -> bytes:
    """Connect, send bytes, and return those received until the other end closes."""
    try:
        reader, writer = await asyncio.open_connection(*addresses.parse(address), ssl=context)
    except OSError:
        return b""
    try:
        writer.write(data)
        return await reader.read() if wait else b""
    except OSError:
        return b""
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def tls_1_2(setup: Setup) -> ssl.SSLContext:
    context = setup.context(issue(setup.authority, "a"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def signed_by_a_node(setup: Setup) -> Pair:
    """Return a certificate signed by a node, whose own certificate is not that of an authority."""
    node = issue(setup.authority, "a")
    subject = x509.load_pem_x509_certificate(node.cert).subject
    return issue(signed(node.key, subject, node.key), "a")


def signed(key: bytes, issuer: x509.Name, signing: bytes) -> Pair:
    """Return an authority signed by another key."""
    own, other = load_pem_private_key(key, None), load_pem_private_key(signing, None)
    assert isinstance(own, ed25519.Ed25519PrivateKey)
    assert isinstance(other, ed25519.Ed25519PrivateKey)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "an authority")])
    builder = x509.CertificateBuilder(issuer, subject, own.public_key(), 1, YESTERDAY, TOMORROW)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return Pair(key, builder.sign(other, None).public_bytes(Encoding.PEM))


# Client: its TLS context, the bytes it sends, and the reason for which it is rejected.
CLIENTS: dict[str, tuple[Callable[[Setup], ssl.SSLContext | None], bytes, str]] = {
    "no certificate": (lambda setup: setup.context(None), GREETING, "unauthenticated"),
    "plain bytes": (lambda setup: None, GREETING, "unauthenticated"),
    "a browser": (lambda setup: None, b"GET / HTTP/1.1\r\nHost: b\r\n\r\n", "unauthenticated"),
    "garbage": (lambda setup: None, random.Random(1).randbytes(5000), "unauthenticated"),
    "garbage after the beginning of TLS": (
        lambda setup: None,
        b"\x16\x03\x01\x02\x00\x01" + random.Random(2).randbytes(511),
        "unauthenticated",
    ),
    "silence": (lambda setup: None, b"", "unauthenticated"),
    "another authority": (
        lambda setup: setup.context(issue(certificates.make_authority(NETWORK), "a")),
        GREETING,
        "authority",
    ),
    "signed by a node": (
        lambda setup: setup.context(signed_by_a_node(setup)),
        GREETING,
        "authority",
    ),
    "expired": (
        lambda setup: setup.context(issue(setup.authority, "a", until=YESTERDAY)),
        GREETING,
        "expired",
    ),
    "not a neighbour": (
        lambda setup: setup.context(issue(setup.authority, "c")),
        encode_frame(Greeting("c", NETWORK).encode()),
        "not a neighbour",
    ),
    "with another node's name": (
        lambda setup: setup.context(issue(setup.authority, "c")),
        GREETING,
        "not a neighbour",
    ),
    "another network": (
        lambda setup: setup.context(issue(setup.authority, "a", "fedcba9876543210")),
        encode_frame(Greeting("a", "fedcba9876543210").encode()),
        "not a neighbour",
    ),
    "another network, with another node's name": (
        lambda setup: setup.context(issue(setup.authority, "a", "fedcba9876543210")),
        GREETING,
        "not a neighbour",
    ),
    "a name without a network": (
        lambda setup: setup.context(issue(setup.authority, "a")),
        encode_frame(b"a"),
        "not a neighbour",
    ),
    "a name that is not ASCII": (
        lambda setup: setup.context(issue(setup.authority, "a")),
        encode_frame(b"\xff"),
        "not a neighbour",
    ),
    "TLS 1.2": (tls_1_2, GREETING, "unauthenticated"),
    "a certificate, then silence": (
        lambda setup: setup.context(issue(setup.authority, "a")),
        b"",
        "handshake",
    ),
    "half a greeting": (
        lambda setup: setup.context(issue(setup.authority, "a")),
        GREETING[:-3],
        "handshake",
    ),
    "an empty greeting": (
        lambda setup: setup.context(issue(setup.authority, "a")),
        bytes(4),
        "handshake",
    ),
    "a long greeting": (
        lambda setup: setup.context(issue(setup.authority, "a")),
        encode_frame(bytes(MAX_GREETING_BYTES + 1)),
        "handshake",
    ),
}


SILENT = ("silence", "a certificate, then silence", "half a greeting")


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_that_are_rejected(
    setup: WithSetup, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_context, data, reason = CLIENTS[client]

    async def body(setup: Setup) -> None:
        if client in SILENT:
            monkeypatch.setattr(tcp, "HANDSHAKE_TIMEOUT_SECONDS", 1.0)
        assert await send(setup.address, make_context(setup), data) == b"", (
            "nothing is sent to them"
        )
        await until(lambda: bool(setup.b.rejections))
        assert setup.b.rejections == [reason], setup.b.details
        assert setup.b.details[0].startswith("127.0.0.1:")
        assert len(setup.b.links) == 1

    setup(body)


def test_a_client_that_closes_before_the_handshake_is_counted(setup: WithSetup) -> None:
    async def body(setup: Setup) -> None:
        await send(setup.address, None, b"", wait=False)
        await until(lambda: bool(setup.b.rejections))
        assert setup.b.rejections == ["handshake"]

    setup(body)


def test_many_silent_clients_do_not_keep_a_neighbour_out(
    setup: WithSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp, "HANDSHAKE_TIMEOUT_SECONDS", 20.0)

    async def body(setup: Setup) -> None:
        clients = [
            asyncio.create_task(send(setup.address, None, b"")) for _ in range(MAX_HANDSHAKES + 20)
        ]
        await until(lambda: len(setup.b.rejections) == 20)
        setup.network.nodes["a"].dial("b", setup.address)
        await until(lambda: len(setup.a.links) == 2)
        assert set(setup.b.rejections) == {"unauthenticated"}
        for silent in clients:
            silent.cancel()
        await asyncio.wait(clients)

    setup(body)


@pytest.mark.parametrize(
    ("own", "why"),
    [
        (lambda setup: issue(setup.authority, "c"), "Hostname mismatch"),
        (lambda setup: issue(setup.authority, "b", "fedcba9876543210"), "Hostname mismatch"),
        (lambda setup: issue(setup.authority, "b", until=YESTERDAY), "expired"),
        (
            lambda setup: issue(certificates.make_authority(NETWORK), "b"),
            "unable to get local issuer",
        ),
    ],
)
def test_a_node_that_is_not_the_one_dialled(
    setup: WithSetup, own: Callable[[Setup], Pair], why: str
) -> None:
    async def body(setup: Setup) -> None:
        handler = RecordingHandler("a")
        impostor = await setup.add("b", handler, own(setup))
        setup.network.nodes["a"].dial("b", impostor.address)
        await until(lambda: bool(setup.a.dial_failures and handler.rejections))
        assert why in setup.a.dial_failures[0]
        assert handler.links == []
        assert len(setup.a.links) == 1

    setup(body)


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        (lambda setup: issue(setup.authority, "a", until=YESTERDAY), "expired"),
        (lambda setup: issue(certificates.make_authority(NETWORK), "a"), "authority"),
        (lambda setup: issue(setup.authority, "c"), "not a neighbour"),
    ],
)
def test_a_dialling_node_learns_that_it_was_rejected(
    setup: WithSetup, own: Callable[[Setup], Pair], reason: str
) -> None:
    async def body(setup: Setup) -> None:
        handler = RecordingHandler("b")
        dialling = await setup.add("a", handler, own(setup))
        dialling.dial("b", setup.address)
        await until(lambda: bool(handler.dial_failures and setup.b.rejections))
        assert setup.b.rejections == [reason]
        assert "may reject this certificate" in handler.dial_failures[0]
        assert handler.links == []
        assert len(setup.b.links) == 1

    setup(body)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", None])
def test_another_program_at_the_address(
    setup: WithSetup, answer: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(setup: Setup) -> None:
        monkeypatch.setattr(tcp, "HANDSHAKE_TIMEOUT_SECONDS", 0.5)

        async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if answer is None:
                await reader.read()
            writer.write(answer or b"")
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

        server = await asyncio.start_server(other, "127.0.0.1", 0)
        setup.network.nodes["a"].dial("b", addresses.listening_address(server.sockets[0]))
        await until(lambda: bool(setup.a.dial_failures))
        server.close()

    setup(body)


@pytest.mark.parametrize("length", [0, MAX_MESSAGE_BYTES + 1, 2**32 - 1])
def test_a_frame_of_invalid_length_closes_the_connection(setup: WithSetup, length: int) -> None:
    async def body(setup: Setup) -> None:
        context = setup.context(issue(setup.authority, "a"))
        received = await send(
            setup.address,
            context,
            GREETING + encode_frame(b"first") + length.to_bytes(4, "big") + b"more",
        )
        assert received == encode_frame(Greeting("b", NETWORK).encode()) + encode_frame(b"first")
        await until(lambda: bool(setup.b.disconnections))
        assert f"{length} bytes" in setup.b.disconnections[0]
        assert setup.b.messages == [b"first"]
        assert setup.b.rejections == ["frame"]

    setup(body)


def test_a_neighbour_that_stops_in_the_middle_of_a_frame(setup: WithSetup) -> None:
    async def body(setup: Setup) -> None:
        context = setup.context(issue(setup.authority, "a"))
        half = asyncio.create_task(
            send(setup.address, context, GREETING + encode_frame(bytes(MAX_MESSAGE_BYTES))[:-1])
        )
        await until(lambda: len(setup.b.links) == 2)
        await setup.check()
        setup.b.links[1].close()
        await half
        await until(lambda: setup.b.disconnections == ["closed by this node"])

    setup(body)


def test_a_neighbour_that_aborts_the_connection(setup: WithSetup) -> None:
    async def body(setup: Setup) -> None:
        address = addresses.parse(setup.address)
        reader, writer = await asyncio.open_connection(
            *address, ssl=setup.context(issue(setup.authority, "a"))
        )
        writer.write(GREETING)
        await reader.readexactly(4)
        await until(lambda: len(setup.b.links) == 2)
        link = setup.b.links[1]
        writer.transport.abort()
        await until(lambda: len(setup.b.disconnections) == 1)
        assert not link.send(b"lost")

    setup(body)


def test_without_tls_only_neighbours_are_accepted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "HANDSHAKE_TIMEOUT_SECONDS", 0.5)
    wrong = {
        encode_frame(Greeting("c", NETWORK).encode()): "not a neighbour",
        encode_frame(Greeting("a", "fedcba9876543210").encode()): "not a neighbour",
        b"GET / HTTP/1.1\r\n\r\n": "unauthenticated",
        bytes(4): "unauthenticated",
        b"": "unauthenticated",
    }

    async def run() -> None:
        network = TcpTestNetwork(None)
        handler = RecordingHandler("a")
        network.add("b", handler)
        await network.start()
        try:
            async with asyncio.timeout(20):
                for data in wrong:
                    assert await send(network.address("b"), None, data) == b""
                await until(lambda: len(handler.rejections) == len(wrong))
        finally:
            await network.stop()
        assert handler.rejections == list(wrong.values())

    asyncio.run(run())


def test_an_intermediate_authority_is_accepted(tmp_path: Path) -> None:
    root = certificates.make_authority(NETWORK)
    key = certificates.make_authority(NETWORK).key
    intermediate = signed(key, x509.load_pem_x509_certificate(root.cert).subject, root.key)

    async def run() -> None:
        network = TcpTestNetwork(tmp_path)
        network.authority = intermediate
        a, b = RecordingHandler("b"), RecordingHandler("a")
        network.add("a", a)
        network.add("b", b)
        await network.start()
        try:
            async with asyncio.timeout(20):
                network.nodes["a"].dial("b", network.address("b"))
                await until(lambda: bool(a.links and b.links))
        finally:
            await network.stop()

    asyncio.run(run())


def test_tls_contexts_are_strict(tmp_path: Path) -> None:
    authority = certificates.make_authority(NETWORK)
    files = write(tmp_path, authority, issue(authority, "a"))
    for protocol in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT):
        context = tls.make_context(files, protocol)
        assert context.minimum_version == ssl.TLSVersion.TLSv1_3
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert context.check_hostname == (context.protocol == ssl.PROTOCOL_TLS_CLIENT)
        assert context.num_tickets == 0 or context.check_hostname


@pytest.mark.parametrize(
    ("other", "setting"),
    [
        (Greeting("a", NETWORK, "89abcdef"), "statistic"),
        (Greeting("a", NETWORK, version=VERSION + 1), "version"),
        (None, "version"),
    ],
)
def test_ends_that_cannot_exchange_part_after_the_greeting(
    setup: Callable[[Callable[[Setup], Awaitable[None]]], None],
    other: Greeting | None,
    setting: str,
) -> None:
    """Also with a node of wire version 2, whose greeting is its name."""

    async def body(setup: Setup) -> None:
        raw = f"a.{NETWORK}".encode() if other is None else other.encode()
        received = await send(
            setup.address, setup.context(issue(setup.authority, "a")), encode_frame(raw)
        )
        assert received == encode_frame(Greeting("b", NETWORK).encode())  # so that it learns why
        assert setup.b.mismatches == [setting]
        await setup.check()

    setup(body)
