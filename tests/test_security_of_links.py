"""Who is turned away, and why, on real sockets; honest neighbours go on meanwhile."""

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
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from links import NETWORK, Listener, StreamsWorld, issue, until, write

from gosta.net import addresses
from gosta.net.deploy import certificates
from gosta.net.deploy.certificates import Pair
from gosta.net.transport import tcp as streams
from gosta.net.transport import tls
from gosta.net.transport.base import LARGEST
from gosta.net.transport.connection import GREETING
from gosta.net.transport.frames import frame
from gosta.net.transport.tcp import HANDSHAKES, Streams

HELLO = frame(f"a.{NETWORK}".encode())
YESTERDAY, TOMORROW = (datetime.now(UTC) + timedelta(days=days) for days in (-1, 1))


class Town:
    """b and its honest neighbour a, and whoever else comes."""

    def __init__(self, world: StreamsWorld, folder: Path) -> None:
        assert world.authority
        self.world, self.folder, self.authority = world, folder, world.authority
        self.a, self.b = Listener("b"), Listener("a")

    async def settle(self) -> None:
        self.world.build("a", self.a)
        self.world.build("b", self.b)
        await self.world.start()
        self.world.nodes["a"].dial("b", self.address)
        await until(lambda: bool(self.a.links and self.b.links))
        self.b.answer = lambda link, message: self.b.closures.append("no room") if not link.send(message) else None

    @property
    def address(self) -> str:
        return self.world.address("b")

    async def check(self) -> None:
        """The honest link works."""
        heard = len(self.a.messages)
        assert self.a.links[0].send(b"still there?")
        await until(lambda: self.a.messages[heard:] == [b"still there?"])

    def context(self, own: Pair | None) -> ssl.SSLContext:
        """What somebody calls with who does not care who answers."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if own:
            files = write(self.folder / "caller", self.authority, own)
            context.load_cert_chain(files.cert, files.key)
        return context

    async def add(self, name: str, ear: Listener, own: Pair) -> Streams:
        """A node with a certificate of its own choice."""
        files = write(self.folder / "chosen", self.authority, own)
        self.world.nodes["chosen"] = Streams(name, NETWORK, ear, files)
        await self.world.nodes["chosen"].start("127.0.0.1:0")
        return self.world.nodes["chosen"]


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Town], Awaitable[None]]], None]:
    monkeypatch.setattr(streams, "PATIENCE", 0.5)

    async def whole(body: Callable[[Town], Awaitable[None]]) -> None:
        world = StreamsWorld(tmp_path)
        town = Town(world, tmp_path)
        try:
            async with asyncio.timeout(20):
                await town.settle()
                await body(town)
                await town.check()
        finally:
            await world.stop()

    return lambda body: asyncio.run(whole(body))


InTown = Callable[[Callable[[Town], Awaitable[None]]], None]


async def say(address: str, context: ssl.SSLContext | None, words: bytes, *, stay: bool = True) -> bytes:
    """Connect, say something, and hear what comes until the other end hangs up."""
    try:
        reader, writer = await asyncio.open_connection(*addresses.parse(address), ssl=context)
    except OSError:
        return b""
    try:
        writer.write(words)
        return await reader.read() if stay else b""
    except OSError:
        return b""
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def old_tls(town: Town) -> ssl.SSLContext:
    context = town.context(issue(town.authority, "a"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def signed_by_a_node(town: Town) -> Pair:
    """A certificate signed by a node, which calls itself an authority."""
    node = issue(town.authority, "a")
    subject = x509.load_pem_x509_certificate(node.cert).subject
    return issue(signed(node.key, subject, node.key), "a")


def signed(key: bytes, issuer: x509.Name, signing: bytes) -> Pair:
    """An authority that somebody vouches for who may or may not."""
    own, other = load_pem_private_key(key, None), load_pem_private_key(signing, None)
    assert isinstance(own, ec.EllipticCurvePrivateKey)
    assert isinstance(other, ec.EllipticCurvePrivateKey)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "an authority")])
    builder = x509.CertificateBuilder(issuer, subject, own.public_key(), 1, YESTERDAY, TOMORROW)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return Pair(key, builder.sign(other, hashes.SHA256()).public_bytes(Encoding.PEM))


# Who, whether with TLS and how, what they say, and the reason for which they are turned away.
CALLERS: dict[str, tuple[Callable[[Town], ssl.SSLContext | None], bytes, str]] = {
    "no certificate": (lambda town: town.context(None), HELLO, "stranger"),
    "plain bytes": (lambda town: None, HELLO, "stranger"),
    "a browser": (lambda town: None, b"GET / HTTP/1.1\r\nHost: b\r\n\r\n", "stranger"),
    "garbage": (lambda town: None, random.Random(1).randbytes(5000), "stranger"),
    "garbage after the beginning of TLS": (
        lambda town: None,
        b"\x16\x03\x01\x02\x00\x01" + random.Random(2).randbytes(511),
        "stranger",
    ),
    "silence": (lambda town: None, b"", "stranger"),
    "another authority": (lambda town: town.context(issue(certificates.authority(NETWORK), "a")), HELLO, "authority"),
    "a node that plays authority": (lambda town: town.context(signed_by_a_node(town)), HELLO, "authority"),
    "expired": (lambda town: town.context(issue(town.authority, "a", until=YESTERDAY)), HELLO, "expired"),
    "not a neighbour": (
        lambda town: town.context(issue(town.authority, "c")),
        frame(f"c.{NETWORK}".encode()),
        "not a neighbour",
    ),
    "in another's name": (lambda town: town.context(issue(town.authority, "c")), HELLO, "not a neighbour"),
    "of another network": (
        lambda town: town.context(issue(town.authority, "a", "fedcba9876543210")),
        frame(b"a.fedcba9876543210"),
        "not a neighbour",
    ),
    "of another network, in another's name": (
        lambda town: town.context(issue(town.authority, "a", "fedcba9876543210")),
        HELLO,
        "not a neighbour",
    ),
    "a name without a network": (lambda town: town.context(issue(town.authority, "a")), frame(b"a"), "not a neighbour"),
    "bytes that are no name": (
        lambda town: town.context(issue(town.authority, "a")),
        frame(b"\xff"),
        "not a neighbour",
    ),
    "old TLS": (old_tls, HELLO, "stranger"),
    "a certificate, then silence": (lambda town: town.context(issue(town.authority, "a")), b"", "handshake"),
    "half a greeting": (lambda town: town.context(issue(town.authority, "a")), HELLO[:-3], "handshake"),
    "an empty greeting": (lambda town: town.context(issue(town.authority, "a")), bytes(4), "handshake"),
    "a long greeting": (
        lambda town: town.context(issue(town.authority, "a")),
        frame(bytes(GREETING + 1)),
        "handshake",
    ),
}


@pytest.mark.parametrize("who", CALLERS)
def test_callers_who_are_turned_away(town: InTown, who: str) -> None:
    make, words, reason = CALLERS[who]

    async def body(town: Town) -> None:
        assert await say(town.address, make(town), words) == b"", "not a word to them"
        await until(lambda: bool(town.b.refusals))
        assert town.b.refusals == [reason], town.b.details
        assert town.b.details[0].startswith("127.0.0.1:")
        assert len(town.b.links) == 1

    town(body)


def test_who_hangs_up_before_the_handshake_is_counted(town: InTown) -> None:
    async def body(town: Town) -> None:
        await say(town.address, None, b"", stay=False)
        await until(lambda: bool(town.b.refusals))
        assert town.b.refusals == ["handshake"]

    town(body)


def test_a_crowd_of_silent_callers_does_not_keep_a_neighbour_out(town: InTown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PATIENCE", 10.0)

    async def body(town: Town) -> None:
        crowd = [asyncio.create_task(say(town.address, None, b"")) for _ in range(HANDSHAKES + 20)]
        await until(lambda: len(town.b.refusals) == 20)
        town.world.nodes["a"].dial("b", town.address)
        await until(lambda: len(town.a.links) == 2)
        assert set(town.b.refusals) == {"stranger"}
        for silent in crowd:
            silent.cancel()
        await asyncio.wait(crowd)

    town(body)


@pytest.mark.parametrize(
    ("own", "why"),
    [
        (lambda town: issue(town.authority, "c"), "Hostname mismatch"),
        (lambda town: issue(town.authority, "b", "fedcba9876543210"), "Hostname mismatch"),
        (lambda town: issue(town.authority, "b", until=YESTERDAY), "expired"),
        (lambda town: issue(certificates.authority(NETWORK), "b"), "unable to get local issuer"),
    ],
)
def test_a_node_that_is_not_the_one_called(town: InTown, own: Callable[[Town], Pair], why: str) -> None:
    async def body(town: Town) -> None:
        ear = Listener("a")
        impostor = await town.add("b", ear, own(town))
        town.world.nodes["a"].dial("b", impostor.address)
        await until(lambda: bool(town.a.failures and ear.refusals))
        assert why in town.a.failures[0]
        assert ear.links == []
        assert len(town.a.links) == 1

    town(body)


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        (lambda town: issue(town.authority, "a", until=YESTERDAY), "expired"),
        (lambda town: issue(certificates.authority(NETWORK), "a"), "authority"),
        (lambda town: issue(town.authority, "c"), "not a neighbour"),
    ],
)
def test_a_caller_learns_that_it_is_not_accepted(town: InTown, own: Callable[[Town], Pair], reason: str) -> None:
    async def body(town: Town) -> None:
        ear = Listener("b")
        caller = await town.add("a", ear, own(town))
        caller.dial("b", town.address)
        await until(lambda: bool(ear.failures and town.b.refusals))
        assert town.b.refusals == [reason]
        assert "may not accept this node's certificate" in ear.failures[0]
        assert ear.links == []
        assert len(town.b.links) == 1

    town(body)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", None])
def test_something_else_at_the_address(town: InTown, answer: bytes | None) -> None:
    async def body(town: Town) -> None:
        async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if answer is None:
                await reader.read()
            writer.write(answer or b"")
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

        server = await asyncio.start_server(other, "127.0.0.1", 0)
        town.world.nodes["a"].dial("b", addresses.bound(server.sockets[0]))
        await until(lambda: bool(town.a.failures))
        server.close()

    town(body)


@pytest.mark.parametrize("length", [0, LARGEST + 1, 2**32 - 1])
def test_a_neighbour_whose_frame_has_a_wrong_length_is_hung_up_on(town: InTown, length: int) -> None:
    async def body(town: Town) -> None:
        context = town.context(issue(town.authority, "a"))
        heard = await say(town.address, context, HELLO + frame(b"first") + length.to_bytes(4, "big") + b"more")
        assert heard == frame(f"b.{NETWORK}".encode()) + frame(b"first")
        await until(lambda: bool(town.b.closures))
        assert f"{length} bytes" in town.b.closures[0]
        assert town.b.messages == [b"first"]
        assert town.b.refusals == ["frame"]

    town(body)


def test_a_neighbour_who_stops_in_the_middle_of_a_frame(town: InTown) -> None:
    async def body(town: Town) -> None:
        context = town.context(issue(town.authority, "a"))
        half = asyncio.create_task(say(town.address, context, HELLO + frame(bytes(LARGEST))[:-1]))
        await until(lambda: len(town.b.links) == 2)
        await town.check()
        town.b.links[1].close()
        await half
        await until(lambda: town.b.closures == ["closed here"])

    town(body)


def test_a_neighbour_who_breaks_off(town: InTown) -> None:
    async def body(town: Town) -> None:
        address = addresses.parse(town.address)
        reader, writer = await asyncio.open_connection(*address, ssl=town.context(issue(town.authority, "a")))
        writer.write(HELLO)
        await reader.readexactly(4)
        link = town.b.links[1]
        writer.transport.abort()
        await until(lambda: len(town.b.closures) == 1)
        assert not link.send(b"to nobody")

    town(body)


def test_plain_callers_must_be_neighbours_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PATIENCE", 0.5)
    wrong = {
        frame(f"c.{NETWORK}".encode()): "not a neighbour",
        frame(b"a.fedcba9876543210"): "not a neighbour",
        b"GET / HTTP/1.1\r\n\r\n": "stranger",
        bytes(4): "stranger",
        b"": "stranger",
    }

    async def whole() -> None:
        world = StreamsWorld(None)
        ear = Listener("a")
        world.build("b", ear)
        await world.start()
        try:
            async with asyncio.timeout(20):
                for words in wrong:
                    assert await say(world.address("b"), None, words) == b""
                await until(lambda: len(ear.refusals) == len(wrong))
        finally:
            await world.stop()
        assert ear.refusals == list(wrong.values())

    asyncio.run(whole())


def test_an_authority_below_another_is_enough(tmp_path: Path) -> None:
    root = certificates.authority(NETWORK)
    key = certificates.authority(NETWORK).key
    below = signed(key, x509.load_pem_x509_certificate(root.cert).subject, root.key)

    async def whole() -> None:
        world = StreamsWorld(tmp_path)
        world.authority = below
        a, b = Listener("b"), Listener("a")
        world.build("a", a)
        world.build("b", b)
        await world.start()
        try:
            async with asyncio.timeout(20):
                world.nodes["a"].dial("b", world.address("b"))
                await until(lambda: bool(a.links and b.links))
        finally:
            await world.stop()

    asyncio.run(whole())


def test_contexts_are_strict(tmp_path: Path) -> None:
    authority = certificates.authority(NETWORK)
    for context in tls.contexts(write(tmp_path, authority, issue(authority, "a"))):
        assert context.minimum_version == ssl.TLSVersion.TLSv1_3
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert context.check_hostname == (context.protocol == ssl.PROTOCOL_TLS_CLIENT)
        assert context.num_tickets == 0 or context.check_hostname
