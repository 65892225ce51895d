"""Transports: one suite for all of them, with and without the layer that makes faults; then what only one can do."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from links import NETWORK, Listener, MemoryWorld, StreamsWorld, VirtualLoop, World, issue, until, write

from gosta.errors import InputError
from gosta.net import addresses
from gosta.net.deploy import certificates
from gosta.net.transport import faults
from gosta.net.transport.base import LARGEST, Ear, Link, Transport
from gosta.net.transport.connection import WAITING, Connection
from gosta.net.transport.faults import Faulty
from gosta.net.transport.frames import BUFFER
from gosta.net.transport.memory import Switch
from gosta.net.transport.tcp import PER_NEIGHBOUR, Streams

WORLDS = ["memory", "plain", "tls"]
SIZES = [1, 2, 300, BUFFER - 4, BUFFER - 3, BUFFER, LARGEST - 1, LARGEST]

Body = Callable[[World], Awaitable[None]]
Inside = Callable[[Body], None]


@pytest.fixture(params=[f"{kind}{layer}" for kind in WORLDS for layer in ("", ", faulty")])
def inside(request: pytest.FixtureRequest, tmp_path: Path) -> Inside:
    kind, _, layer = request.param.partition(", ")

    async def whole(body: Body) -> None:
        world = MemoryWorld() if kind == "memory" else StreamsWorld(tmp_path if kind == "tls" else None)
        world.faulty = bool(layer)
        try:
            async with asyncio.timeout(20):
                await body(world)
        finally:
            await world.stop()

    return lambda body: asyncio.run(whole(body))


async def joined(world: World) -> tuple[Listener, Listener, Link, Link]:
    """Two neighbours, a and b, and their ends of a link."""
    a, b = Listener("b"), Listener("a")
    calling = world.add("a", a)
    world.add("b", b)
    await world.start()
    calling.dial("b", world.address("b"))
    await world.until(lambda: bool(a.links and b.links))
    return a, b, a.links[0], b.links[0]


async def send(world: World, link: Link, message: bytes) -> None:
    """Send, as soon as there is room."""
    await world.until(lambda: link.send(message))


def test_messages_arrive_whole_and_in_order(inside: Inside) -> None:
    async def body(world: World) -> None:
        a, b, to_b, to_a = await joined(world)
        assert (to_b.neighbour, to_a.neighbour) == ("b", "a")
        there = [bytes([k + 1]) * size for k, size in enumerate(SIZES)]
        back = [message[::-1] for message in reversed(there)]
        for one, other in zip(there, back, strict=True):
            await send(world, to_b, one)
            await send(world, to_a, other)
        await world.until(lambda: len(a.messages) == len(b.messages) == len(SIZES))
        assert b.messages == there
        assert a.messages == back

    inside(body)


def test_many_at_once(inside: Inside) -> None:
    async def body(world: World) -> None:
        a, b, to_b, _ = await joined(world)
        messages = [b"%d " % k + bytes(k % 700) for k in range(2000)]
        b.answer = lambda link, message: None if link.send(message[:5]) else b.closures.append("an answer was lost")
        for message in messages:
            await send(world, to_b, message)
        await world.until(lambda: len(a.messages) == len(messages))
        assert b.messages == messages
        assert a.messages == [message[:5] for message in messages]
        assert b.closures == []

    inside(body)


def test_a_message_sent_as_the_link_opens_arrives(inside: Inside) -> None:
    async def body(world: World) -> None:
        class Eager(Listener):
            def opened(self, link: Link) -> None:
                super().opened(link)
                assert link.send(b"at once")

        a, b = Eager("b"), Eager("a")
        calling = world.add("a", a)
        world.add("b", b)
        await world.start()
        calling.dial("b", world.address("b"))
        await world.until(lambda: a.messages == b.messages == [b"at once"])

    inside(body)


def test_both_ends_hear_of_a_close(inside: Inside) -> None:
    async def body(world: World) -> None:
        a, b, to_b, to_a = await joined(world)
        to_b.send(b"last words")
        to_b.close()
        to_b.close()
        assert not to_b.send(b"too late")
        await world.until(lambda: not a.links and not b.links)
        assert b.messages == [b"last words"]
        assert a.closures == ["closed here"]
        assert b.closures == ["closed by the other end"]
        assert not to_a.send(b"to nobody")

    inside(body)


def test_a_link_closed_from_within_a_message_hears_no_more(inside: Inside) -> None:
    async def body(world: World) -> None:
        a, b, to_b, _ = await joined(world)
        b.answer = lambda link, message: link.close()
        for _ in range(60):  # more than is read at once
            to_b.send(b"enough" * 1000)
        await world.until(lambda: not a.links and not b.links)
        assert b.messages == [b"enough" * 1000]

    inside(body)


def test_calling_nobody_fails(inside: Inside) -> None:
    async def body(world: World) -> None:
        a = Listener("b")
        calling = world.add("a", a)
        await world.start()
        calling.dial("b", world.address("b"))
        await world.until(lambda: bool(a.failures))
        assert a.failures[0] in ("nobody is there", "Connection refused")
        assert a.links == []

    inside(body)


def test_a_caller_who_is_no_neighbour_is_refused(inside: Inside) -> None:
    async def body(world: World) -> None:
        a, b = Listener("b"), Listener("c")
        calling = world.add("a", a)
        world.add("b", b)
        await world.start()
        calling.dial("b", world.address("b"))
        await world.until(lambda: bool(a.failures and b.refusals))
        assert b.refusals == ["not a neighbour"]
        assert "hung up" in a.failures[0]
        assert a.links == b.links == []

    inside(body)


def test_a_closed_transport_takes_no_more(inside: Inside) -> None:
    async def body(world: World) -> None:
        a, b = Listener("b"), Listener("a")
        calling, called = world.add("a", a), world.add("b", b)
        await world.start()
        calling.dial("b", world.address("b"))
        await world.until(lambda: bool(a.links and b.links))
        called.close()
        await world.until(lambda: not a.links and not b.links)
        calling.dial("b", world.address("b"))
        await world.until(lambda: bool(a.failures))

    inside(body)


def on_streams(tmp_path: Path, body: Callable[[StreamsWorld], Awaitable[None]], *, tls: bool = True) -> None:
    async def whole() -> None:
        world = StreamsWorld(tmp_path if tls else None)
        try:
            async with asyncio.timeout(20):
                await body(world)
        finally:
            await world.stop()

    asyncio.run(whole())


@pytest.mark.parametrize("tls", [True, False])
def test_who_does_not_read_is_not_read_from(tmp_path: Path, tls: bool) -> None:
    """Were answers kept for one who does not take them, memory would grow without bound."""

    async def body(world: StreamsWorld) -> None:
        a, b, to_b, to_a = await joined(world)
        assert isinstance(to_b, Connection)
        assert isinstance(to_a, Connection)
        b.answer = lambda link, message: None if link.send(bytes(LARGEST)) else b.failures.append("an answer was lost")
        to_b.transport.pause_reading()
        for _ in range(200):
            await send(world, to_b, b"?")
        await until(lambda: to_a.transport.get_write_buffer_size() > WAITING)
        assert len(b.messages) < 200, "the rest waits, unread"
        assert to_a.transport.get_write_buffer_size() < WAITING + 2 * LARGEST
        to_b.transport.resume_reading()
        await until(lambda: a.messages == [bytes(LARGEST)] * 200)
        assert b.failures == []

    on_streams(tmp_path, body, tls=tls)


@pytest.mark.parametrize("tls", [True, False])
def test_a_link_to_one_who_does_not_read_can_be_closed(tmp_path: Path, tls: bool) -> None:
    async def body(world: StreamsWorld) -> None:
        a, b, to_b, to_a = await joined(world)
        assert isinstance(to_a, Connection)
        to_a.transport.pause_reading()
        for _ in range(20):
            while to_b.send(bytes(LARGEST)):
                pass
            await asyncio.sleep(0.005)
        to_b.close()
        await until(lambda: a.closures == ["closed here"])
        to_a.close()
        await until(lambda: not b.links)

    on_streams(tmp_path, body, tls=tls)


def test_a_neighbour_has_a_few_links_at_most(tmp_path: Path) -> None:
    async def body(world: StreamsWorld) -> None:
        a, b, _, first = await joined(world)
        for _ in range(PER_NEIGHBOUR):
            world.nodes["a"].dial("b", world.address("b"))
        await until(lambda: bool(a.closures and b.closures) and len(a.links) == len(b.links) == PER_NEIGHBOUR)
        assert first not in b.links
        assert "too many connections" in [*a.closures, *b.closures]

    on_streams(tmp_path, body)


def test_addresses_that_cannot_be_used(tmp_path: Path) -> None:
    async def body(world: StreamsWorld) -> None:
        streams = world.build("a", Listener("b"))
        for address in ("nowhere", "127.0.0.1:", "127.0.0.1:70000", ":7000", "::1:7000", "127.0.0.1:port"):
            with pytest.raises(InputError, match=r"host:port|a port"):
                await streams.start(address)
            with pytest.raises(InputError, match=r"host:port|a port"):
                streams.dial("b", address)
        for address in ("0.0.0.0:0", "192.0.2.1:7000", "[::]:0"):
            with pytest.raises(InputError, match="tls = false is for loopback only"):
                await streams.start(address)
            with pytest.raises(InputError, match="tls = false is for loopback only"):
                streams.dial("b", address)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = addresses.bound(taken)
            with pytest.raises(InputError, match=rf"listen = '{address}' in node.toml: .* in use"):
                await streams.start(address)

    on_streams(tmp_path, body, tls=False)


def test_credentials_that_cannot_be_used(tmp_path: Path) -> None:
    authority = certificates.authority(NETWORK)
    good = write(tmp_path, authority, issue(authority, "a"))
    other = write(tmp_path / "other", authority, issue(authority, "a"))
    (tmp_path / "text").write_text("no certificate")
    key = load_pem_private_key(good.key.read_bytes(), None)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
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
            Streams("a", NETWORK, Listener(), tls)


def test_a_crash_in_memory() -> None:
    loop = VirtualLoop()
    switch = Switch(loop, 0.01)
    a, b = Listener("b"), Listener("a")
    switch.attach("a", a).dial("b", "")
    switch.attach("b", b)
    while loop.step():
        pass
    to_b, to_a = a.links[0], b.links[0]
    assert to_b.send(b"never heard")
    assert to_a.send(b"lost with the sender")
    switch.detach("b")
    while loop.step():
        pass
    assert a.messages == b.messages == []
    assert (a.closures, b.closures) == (["the connection broke"], [])
    again = Listener("a")
    switch.attach("b", again).dial("a", "")
    while loop.step():
        pass
    assert again.links[0].send(b"back")
    assert to_a.send(b"from beyond")
    while loop.step():
        pass
    assert a.messages == [b"back"]


@pytest.mark.parametrize("who", ["a", "b"])
def test_a_crash_while_a_call_is_under_way(who: str) -> None:
    loop = VirtualLoop()
    switch = Switch(loop, 0.01)
    a, b = Listener("b"), Listener("a")
    switch.attach("a", a).dial("b", "")
    switch.attach("b", b)
    loop.step()
    assert b.links
    assert not a.links
    switch.detach(who)
    while loop.step():
        pass
    assert a.links == []
    assert len(b.links) == (who == "b"), "only who crashed never hears of it"
    assert a.failures == (["it hung up"] if who == "b" else [])


def test_faults() -> None:
    loop, rng, apart = VirtualLoop(), random.Random(5), [False]
    switch = Switch(loop, 0.01)
    a, b = Listener("b"), Listener("a")
    fate = faults.combine(
        faults.partition(lambda sender, receiver: apart[0]),
        faults.loss(0.2, rng),
        faults.duplicate(0.1, rng),
        faults.delay(0.0, 1.0, rng),
    )

    def attach(ear: Ear) -> Transport:
        return switch.attach("a", ear)

    calling = Faulty("a", a, loop, fate, attach)
    switch.attach("b", b)
    while not a.links:
        calling.dial("b", "")
        while loop.step():
            pass
    for k in range(1000):
        assert a.links[0].send(b"%d" % k)
    while loop.step():
        pass
    counts = {message: b.messages.count(message) for message in b.messages}
    assert 750 < len(counts) < 850
    assert 50 < sum(count == 2 for count in counts.values()) < 110
    assert b.messages != sorted(b.messages, key=int)

    apart[0] = True
    arrived, failures = len(b.messages), len(a.failures)
    assert a.links[0].send(b"nowhere")
    calling.dial("b", "")
    while loop.step():
        pass
    assert len(b.messages) == arrived
    assert a.failures[failures:] == ["out of reach"]
