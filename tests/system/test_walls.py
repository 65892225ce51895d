"""Sites behind walls: HTTP proxies, and forwarders between sites that can only dial out."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import ports
import pytest
import test_transport
import uvloop
from middleboxes import Proxy
from namespaces import Namespaces, namespaces
from processes import GOSTA, Processes, gosta, wait_until
from transports import NETWORK, RecordingHandler, TestNetwork, named, until, write

import gosta as gosta_library
from gosta.errors import InputError
from gosta.net import addresses
from gosta.net.addresses import Address
from gosta.net.config import NETWORK_FILE, NODE_FILE, read_network, read_node
from gosta.net.deploy import certificates
from gosta.net.deploy.certificates import Pair
from gosta.net.deploy.query import query_status
from gosta.net.members import Member, MemberList, key_of
from gosta.net.node.status import Status
from gosta.net.transport import forwarding, tcp
from gosta.net.transport.base import Greeting, Handler
from gosta.net.transport.connection import MAX_WRITE_BUFFER_BYTES, Connection
from gosta.net.transport.dialling import MAX_RESPONSE_BYTES, open_socket, proxy_for
from gosta.net.transport.forwarding import BareTls, Copier, Forwarder, Waiting
from gosta.net.transport.tcp import TcpTransport
from gosta.net.transport.tls import TlsFiles, load_certificate, make_context

AUTHORITY = certificates.make_authority(NETWORK)
NAMES = ("a", "b", "c", "f", "g")  # f and g forward
PAIRS = {name: certificates.issue(AUTHORITY, NETWORK, name) for name in NAMES}


def members(*names: str, serial: int = 1) -> MemberList:
    listed = tuple(Member(name, key_of(load_certificate(PAIRS[name].cert)).hex()) for name in names)
    return MemberList(NETWORK, serial, "0" * 16, {}, listed)


ALL = members(*NAMES)


class Sites:
    """Nodes a, b, c only dial out, and all are neighbours; f and g can be reached."""

    def __init__(self, folder: Path, proxy: str = "none") -> None:
        self.folder, self.handlers, self.nodes = (
            folder,
            dict[str, RecordingHandler](),
            dict[str, TcpTransport](),
        )
        self.forwarded: list[tuple[str, str, int | None]] = []
        self.sockets: list[socket.socket] = []
        for name in NAMES:
            self.add(name, proxy)

    def files(self, name: str) -> TlsFiles:
        return write(self.folder / name, Pair(b"", AUTHORITY.cert), PAIRS[name])

    def add(self, name: str, proxy: str = "none", forwards: bool = True) -> None:
        handler = self.handlers[name] = named(
            RecordingHandler(*(set("abc") - {name} if name in "abc" else ())), name
        )
        on_forwarding = (lambda *event: self.forwarded.append(event)) if forwards else None
        self.nodes[name] = TcpTransport(handler, self.files(name), ALL, proxy, on_forwarding)

    @property
    def forwarders(self) -> dict[str, str]:
        return {name: self.nodes[name].address for name in "fg"}

    def meet(self, *pair: str) -> None:
        for name, other in (pair, pair[::-1]):
            self.nodes[name].dial(other, "", self.forwarders)

    def are_linked(self, *pair: str) -> bool:
        return all(
            any(link.neighbour == other for link in self.handlers[name].links)
            for name, other in (pair, pair[::-1])
        )

    async def ask(self, name: str, other: str, at: str = "f") -> BareTls:
        """Ask a forwarder by hand."""
        opened = await open_socket(addresses.parse(self.nodes[at].address), "none")
        self.sockets.append(opened)
        context = make_context(self.files(name), ssl.PROTOCOL_TLS_CLIENT)
        request = Greeting(name, NETWORK, note=f"forward {other}")
        return await forwarding.ask(opened, context, f"{at}.{NETWORK}", request, lambda _: None)

    async def stop(self) -> None:
        for opened in self.sockets:
            opened.close()
        for node in self.nodes.values():
            await node.stop()


Run = Callable[[Callable[[Sites], Awaitable[None]]], None]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    async def whole(body: Callable[[Sites], Awaitable[None]]) -> None:
        sites = Sites(tmp_path)
        try:
            async with asyncio.timeout(30):
                for name in "fg":
                    await sites.nodes[name].start("127.0.0.1:0")
                await body(sites)
        finally:
            await sites.stop()

    return lambda body: request.param(whole(body))


# Forwarders.


def test_messages_pass_whole_through_a_forwarder(run: Run) -> None:
    async def body(sites: Sites) -> None:
        sites.meet("b", "a")
        await until(lambda: sites.are_linked("a", "b"))
        (to_b,), (to_a,) = sites.handlers["a"].links, sites.handlers["b"].links
        assert to_b.via == to_a.via == forwarding.order("ab", "fg")[0]
        assert sites.forwarded == [("a", "b", None)] or sites.forwarded == [("b", "a", None)]
        # more than all buffers hold
        messages = [os.urandom(1 + 40_000 * k % 262_144) for k in range(40)]
        for message in messages:
            for link in (to_a, to_b):
                await until(partial(link.send, message))
        await until(
            lambda: all(len(sites.handlers[name].messages) == len(messages) for name in "ab")
        )
        assert sites.handlers["a"].messages == sites.handlers["b"].messages == messages
        to_a.close()
        await until(lambda: not sites.handlers["a"].links and len(sites.forwarded) == 2)
        assert (sites.forwarded[1][2] or 0) > 2 * sum(map(len, messages))

    run(body)


class ForwardedTestNetwork(TestNetwork):
    """Handlers that both dial a forwarder when one dials the other."""

    def __init__(self, folder: Path) -> None:
        self.sites, self.loop = Sites(folder), asyncio.get_running_loop()
        self.nodes: dict[str, TcpTransport] = {}

    def build(self, name: str, handler: Handler) -> TcpTransport:
        self.nodes[name] = node = TcpTransport(handler, self.sites.files(name), ALL)
        dial = node.dial

        def dial_both(neighbour: str, *_: object) -> None:
            dial(neighbour, "", self.sites.forwarders)
            TcpTransport.dial(self.nodes[neighbour], name, "", self.sites.forwarders)

        node.dial = dial_both  # type: ignore[assignment, method-assign]
        return node

    def address(self, name: str) -> str:
        return name

    async def start(self) -> None:
        for name in "fg":
            await self.sites.nodes[name].start("127.0.0.1:0")

    async def until(self, condition: Callable[[], bool]) -> None:
        await until(condition)

    async def stop(self) -> None:
        for node in self.nodes.values():
            await node.stop()
        await self.sites.stop()


@pytest.mark.parametrize(
    "test",
    [
        test_transport.test_messages_arrive_whole_and_in_order,
        test_transport.test_many_messages_at_once,
        test_transport.test_a_message_sent_as_the_link_opens_arrives,
        test_transport.test_both_ends_are_told_of_a_close,
        test_transport.test_a_link_closed_in_on_message_gets_no_more_messages,
    ],
)
@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_links_through_a_forwarder_are_as_others(
    tmp_path: Path, test: Callable[..., None], runner: Any
) -> None:
    async def run(body: Callable[[TestNetwork], Awaitable[None]]) -> None:
        network = ForwardedTestNetwork(tmp_path)
        try:
            async with asyncio.timeout(30):
                await body(network)
        finally:
            await network.stop()

    test(lambda body: runner(run(body)))


def test_a_forwarder_that_records_everything_reads_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All bytes that it copies are records of TLS between the two ends; of what they say, it has no
    byte.
    """
    seen: dict[Copier, bytes] = {}
    original = Copier.data_received

    def record(self: Copier, data: bytes) -> None:
        seen[self] = seen.get(self, b"") + data
        original(self, data)

    monkeypatch.setattr(Copier, "data_received", record)

    async def body(sites: Sites) -> None:
        sites.meet("a", "b")
        await until(lambda: sites.are_linked("a", "b"))
        marker = b"row 0.12345 of a patient " * 20
        for name in "ab":
            assert sites.handlers[name].links[0].send(marker + name.encode())
        await until(lambda: all(sites.handlers[name].messages for name in "ab"))
        assert len(seen) == 2
        for stream in seen.values():
            assert len(stream) > len(marker)
            assert not any(
                text in stream
                for text in (b"row 0.12345", b"patient", b"gosta ", PAIRS["a"].cert[60:90])
            )
            check_records(stream)

    run(body)


def check_records(stream: bytes) -> None:
    """Check that bytes are records of TLS 1.3: after the hello, all are encrypted."""
    kinds = []
    while len(stream) >= 5:
        kinds.append(stream[0])
        assert stream[1:3] in (b"\x03\x01", b"\x03\x03")
        stream = stream[5 + int.from_bytes(stream[3:5], "big") :]
    assert kinds[0] == 22
    assert set(kinds[1:]) <= {20, 23}


class Liar(Forwarder):
    """A member that does not forward, but speaks TLS itself with one of the two, in the name of the
    other.
    """

    # of a client and of a server, with its own certificate
    contexts: tuple[ssl.SSLContext, ssl.SSLContext]
    greets_as = "a"

    async def _forward(self, *pair: Waiting) -> None:
        loop = asyncio.get_running_loop()
        for one in sorted(pair, key=lambda one: one.member):
            one.connection.send(forwarding.PAIRED)
            assert await one.answer == forwarding.READY
            end = Copier()
            transport: Any = await end.take_over(one.connection)
            transport.write(forwarding.START)
            try:
                protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
                is_client = one.member == "b"  # which expects a, the client
                tls: Any = await loop.start_tls(
                    transport,
                    protocol,
                    self.contexts[not is_client],
                    server_side=not is_client,
                    server_hostname=f"b.{NETWORK}" if is_client else None,
                )
                greeting = Greeting(self.greets_as, NETWORK).encode()
                tls.write(len(greeting).to_bytes(4, "big") + greeting)
                await asyncio.sleep(0.2)
            except OSError:
                pass


@pytest.mark.parametrize("name", ["a", "f"])
def test_a_forwarder_cannot_pretend_to_be_one_of_the_two(run: Run, name: str) -> None:
    async def body(sites: Sites) -> None:
        for forwarder in "fg":
            files, transport = sites.files(forwarder), sites.nodes[forwarder]
            liar = Liar(lambda *_: None)
            kinds = ssl.PROTOCOL_TLS_CLIENT, ssl.PROTOCOL_TLS_SERVER
            liar.contexts = tuple(make_context(files, kind) for kind in kinds)  # type: ignore[assignment]
            liar.greets_as = name
            transport._forwarder = liar
        sites.handlers["b"].neighbours = ("a", "f", "g")
        sites.meet("a", "b")
        await until(lambda: all(sites.handlers[one].dial_failures for one in "ab"))
        assert "Hostname mismatch" in sites.handlers["a"].dial_failures[0]
        assert not any(handler.links for handler in sites.handlers.values())

    run(body)


def test_a_forwarder_that_dies_is_replaced(run: Run) -> None:
    async def body(sites: Sites) -> None:
        first, second = forwarding.order("ab", "fg")
        sites.meet("a", "b")
        await until(lambda: sites.are_linked("a", "b"))
        await sites.nodes[first].stop()
        await until(lambda: all(sites.handlers[name].disconnections for name in "ab"))
        sites.meet("a", "b")
        await until(lambda: sites.are_linked("a", "b"))
        assert sites.handlers["a"].links[0].via == second

    run(body)


def test_two_meet_where_only_one_forwarder_is_reachable_for_both(run: Run) -> None:
    async def body(sites: Sites) -> None:
        first, second = forwarding.order("ab", "fg")
        sites.nodes["a"].dial("b", "", sites.forwarders)
        sites.nodes["b"].dial("a", "", {first: "127.0.0.1:1", second: sites.nodes[second].address})
        await until(lambda: sites.are_linked("a", "b"))
        assert sites.handlers["a"].links[0].via == second
        await until(lambda: not sites.nodes[first]._forwarder._waiting)  # type: ignore[union-attr]

    run(body)


def test_one_end_breaks_off_while_the_other_sends(run: Run) -> None:
    async def body(sites: Sites) -> None:
        problems: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, problem: problems.append(problem)
        )
        for _ in range(10):
            sites.meet("a", "b")
            await until(lambda: sites.are_linked("a", "b"))
            (to_b,), (to_a,) = sites.handlers["a"].links, sites.handlers["b"].links
            while to_a.send(bytes(60_000)):
                pass
            cast("Any", to_b).transport.abort()
            await until(lambda: not sites.handlers["a"].links and not sites.handlers["b"].links)
        assert problems == []

    run(body)


def test_a_forwarder_whose_links_end_is_asked_last(run: Run) -> None:
    """One that ends, silences or corrupts links on purpose is left alone while there are others."""

    async def body(sites: Sites) -> None:
        used = []
        for _ in range(4):
            sites.meet("a", "b")
            await until(lambda: sites.are_linked("a", "b"))
            (to_b,) = sites.handlers["a"].links
            used.append(to_b.via)
            to_b.close()
            await until(lambda: not sites.handlers["a"].links and not sites.handlers["b"].links)
        assert used == forwarding.order("ab", "fg") * 2

    run(body)


def test_a_forwarder_that_failed_is_asked_again_while_others_are_waited_at(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp, "NEXT_FORWARDER_SECONDS", 0.05)
    monkeypatch.setattr(tcp, "RETRY_FORWARDER_SECONDS", 0.2)

    async def body(sites: Sites) -> None:
        address = sites.nodes["g"].address
        await sites.nodes["g"].stop()
        sites.add("g")
        for name, other in ("ab", "ba"):
            places = {"f": sites.nodes["f"].address, "g": address}
            assert sites.nodes["f"]._forwarder is not None
            sites.nodes["f"]._forwarder._waiting = _NobodyWaits()  # it never pairs
            sites.nodes[name].dial(other, "", places)
        await asyncio.sleep(0.3)
        await sites.nodes["g"].start(address)
        await until(lambda: sites.are_linked("a", "b"))
        assert sites.handlers["a"].links[0].via == "g"

    run(body)


class _NobodyWaits(dict[Any, Any]):
    def pop(self, *arguments: Any) -> Any:
        return arguments[-1]


def test_requests_that_a_forwarder_refuses(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(forwarding, "MAX_CONNECTIONS_PER_MEMBER", 2)

    async def body(sites: Sites) -> None:
        async def refusal(name: str, other: str) -> str:
            with pytest.raises(ConnectionError) as caught:
                await sites.ask(name, other)
            return str(caught.value)

        assert "no such member" in await refusal("a", "stranger")
        assert "no such member" in await refusal("a", "a")
        held = [await sites.ask("a", "b"), await sites.ask("a", "c")]
        assert "2 connections of one member" in await refusal("a", "g")
        held.append(await sites.ask("b", "c"))
        assert "3 connections at most" in await refusal("c", "g")
        assert sites.handlers["f"].rejections == ["forwarding"] * 4
        for tls in held:
            tls._socket.close()
        await until(lambda: not sites.nodes["f"]._forwarder._waiting)  # type: ignore[union-attr]
        held = [await sites.ask("c", "a")]  # there is room again
        again = await sites.ask("c", "a")  # which replaces it
        with pytest.raises(ConnectionError):
            await held[0].receive()
        sites.nodes["f"].reload_tls(sites.files("f"), members("a", "b", "f", "g", serial=2))
        with pytest.raises(ConnectionError):  # c is no member any more
            await again.receive()
        with pytest.raises(ConnectionError):
            await sites.ask("c", "a")
        assert sites.handlers["f"].rejections[-1] == "not a neighbour"

    run(body)


def test_removed_members_and_others_are_not_forwarded(run: Run) -> None:
    async def body(sites: Sites) -> None:
        sites.meet("a", "b")
        await until(lambda: sites.are_linked("a", "b"))
        for name in "fg":
            sites.nodes[name].reload_tls(sites.files(name), members("a", "f", "g", serial=2))
        await until(lambda: not sites.handlers["a"].links and not sites.handlers["b"].links)
        sites.meet("a", "b")
        await until(lambda: all(sites.handlers[name].dial_failures for name in "ab"))
        assert (
            "refuses to forward: 'there is no such member'" in sites.handlers["a"].dial_failures[0]
        )
        assert {"not a neighbour", "forwarding"} == set(sites.handlers["f"].rejections)

    run(body)


def test_a_node_that_does_not_forward_says_so(run: Run) -> None:
    async def body(sites: Sites) -> None:
        for name in "fg":
            await sites.nodes[name].stop()
            sites.add(name, forwards=False)
            await sites.nodes[name].start("127.0.0.1:0")
        sites.meet("a", "b")
        await until(lambda: all(sites.handlers[name].dial_failures for name in "ab"))
        assert (
            "f: it refuses to forward: 'it does not forward'"
            in sites.handlers["a"].dial_failures[0]
        )

    run(body)


def test_a_neighbour_that_does_not_come_and_a_forwarder_that_is_another_one(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "WAIT_SECONDS", 0.1)

    async def body(sites: Sites) -> None:
        sites.nodes["a"].dial(
            "b", "", {"f": sites.nodes["f"].address, "c": sites.nodes["g"].address}
        )
        await until(lambda: bool(sites.handlers["a"].dial_failures))
        (reason,) = sites.handlers["a"].dial_failures
        assert "f: b did not come" in reason
        assert "c: certificate of the other end: Hostname mismatch" in reason

    run(body)


def test_a_member_that_does_not_read_fills_no_buffer(run: Run) -> None:
    async def body(sites: Sites) -> None:
        sites.meet("a", "b")
        await until(lambda: sites.are_linked("a", "b"))
        (to_b,), (to_a,) = sites.handlers["a"].links, sites.handlers["b"].links
        assert isinstance(to_b, Connection)
        assert isinstance(to_a, Connection)
        to_a.transport.pause_reading()
        message, sent = b"x" * 100_000, 0
        while to_b.send(message) or not await stays(lambda: not to_b.send(message)):
            sent += 1
            await asyncio.sleep(0)
        forwarder = sites.nodes[to_b.via]._forwarder
        assert forwarder is not None
        waiting = [
            cast("asyncio.Transport", one).get_write_buffer_size()
            for one in forwarder._forwarded.values()
        ]
        assert 0 < max(waiting) <= MAX_WRITE_BUFFER_BYTES + 256 * 1024  # and what was read at once
        to_a.transport.resume_reading()
        await until(lambda: len(sites.handlers["b"].messages) >= sent)

    run(body)


async def stays(condition: Callable[[], bool]) -> bool:
    """Return whether a condition holds at twenty times in a row."""
    for _ in range(20):
        if not condition():
            return False
        await asyncio.sleep(0.005)
    return True


def test_what_is_sent_too_early_or_never_ends_a_pair(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member that answers PAIRED wrongly, or not, costs the other one a moment; nothing is left
    at the forwarder.
    """
    monkeypatch.setattr(forwarding, "SWITCH_SECONDS", 0.2)

    async def body(sites: Sites) -> None:
        for answer in (b"", b"hello"):
            one, other = await sites.ask("a", "b"), await sites.ask("b", "a")
            assert await one.receive() == await other.receive() == forwarding.PAIRED
            await one.send(forwarding.READY)
            if answer:
                await other.send(answer)
            with pytest.raises(ConnectionError):
                await forwarding_end(one)
        early = await sites.ask("a", "b")
        await early.send(forwarding.READY)  # before it is paired
        with pytest.raises(ConnectionError):
            await early.receive()
        other = await sites.ask("b", "a")
        again = await sites.ask("a", "b")
        assert await other.receive() == await again.receive() == forwarding.PAIRED
        for one in (other, again):
            await one.send(forwarding.READY)
            one._socket.send(b"hello")  # before START
        for one in (other, again):
            one._socket.close()
        forwarder = sites.nodes["f"]._forwarder
        assert forwarder is not None
        await until(lambda: forwarder._connections.total() == 0)

    run(body)


async def forwarding_end(tls: BareTls) -> None:
    if not await asyncio.get_running_loop().sock_recv(tls._socket, 100):
        raise ConnectionResetError


# Proxies.


async def proxied(
    folder: Path, proxy: Proxy, setting: str = "http://{}"
) -> tuple[Sites, asyncio.Server]:
    """Return sites; site a dials b.example through a proxy, and b is at f's place."""
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    sites = Sites(folder, setting.format(f"127.0.0.1:{port}"))
    await sites.nodes["b"].start("127.0.0.1:0")
    if proxy.hosts is not None:
        proxy.hosts = {"b.example:7400": sites.nodes["b"].address, "b.example:7402": "127.0.0.1:1"}
    return sites, server


CREDENTIALS = "me:a p%ss:word"
QUOTED = "http://me:a%20p%25ss%3Aword@{}"


@pytest.mark.parametrize(
    ("credentials", "setting", "address", "problem"),
    [
        ("", "http://{}", "b.example:7400", ""),
        (CREDENTIALS, QUOTED, "b.example:7400", ""),
        (CREDENTIALS, "http://{}", "b.example:7400", "it wants user and password"),
        (
            CREDENTIALS,
            "http://me:wrong@{}",
            "b.example:7400",
            "it does not accept user and password",
        ),
        (
            "",
            "http://{}",
            "c.example:7400",
            "it does not permit connections to c.example:7400 (status 403)",
        ),
        ("", "http://{}", "b.example:7402", "it cannot connect to b.example:7402 (status 502)"),
        ("", "http://127.0.0.1:1", "b.example:7400", "proxy 127.0.0.1:1: Connection refused"),
    ],
)
@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_links_through_a_proxy(
    tmp_path: Path, runner: Any, credentials: str, setting: str, address: str, problem: str
) -> None:
    async def body() -> None:
        proxy = Proxy(credentials, {})
        sites, server = await proxied(tmp_path, proxy, setting)
        a, b = sites.handlers["a"], sites.handlers["b"]
        async with asyncio.timeout(20), server:
            sites.nodes["a"].dial("b", address)
            if problem:
                await until(lambda: bool(a.dial_failures))
                assert problem in a.dial_failures[0]
                assert "word" not in a.dial_failures[0].replace("password", "")
            else:
                await until(lambda: bool(a.links and b.links))
                assert a.links[0].send(b"hello")
                await until(lambda: b.messages == [b"hello"])
                assert proxy.requests == [address]
            await sites.stop()

    runner(body())


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"SSH-2.0-server\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nmore",
        b"x" * 3 * MAX_RESPONSE_BYTES,
    ],
)
def test_answers_of_something_else_than_a_proxy(tmp_path: Path, answer: bytes) -> None:
    class Other(Proxy):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()

    async def body() -> None:
        sites, server = await proxied(tmp_path, Other())
        async with asyncio.timeout(20), server:
            sites.nodes["a"].dial("b", "b.example:7400")
            await until(lambda: bool(sites.handlers["a"].dial_failures))
            assert "proxy 127.0.0.1:" in sites.handlers["a"].dial_failures[0]
            await sites.stop()

    asyncio.run(body())


def test_which_addresses_are_dialled_through_which_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    there = Address("b.example", 7400)
    assert proxy_for(there, "") is None
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    found = proxy_for(there, "")
    assert found is not None
    assert found.address == Address("proxy.example", 3128)
    assert proxy_for(there, "none") is None
    own = proxy_for(there, "http://other.example")
    assert own is not None
    assert own.address == Address("other.example", 80)
    for host in ("127.0.0.1", "localhost", "::1"):
        assert proxy_for(Address(host, 7400), "") is None
        assert proxy_for(Address(host, 7400), "http://other.example") is None
    monkeypatch.setenv("NO_PROXY", "site.example,.example, 10.0.0.0/8,fd00::/8,nonsense/x")
    assert proxy_for(there, "") is None
    assert (
        proxy_for(Address("10.77.0.1", 7400), "") is proxy_for(Address("fd00::2", 7400), "") is None
    )
    assert proxy_for(Address("11.77.0.1", 7400), "") == found
    assert proxy_for(Address("b.test", 7400), "") == found
    monkeypatch.setenv("HTTPS_PROXY", "socks5://me:secret@proxy.example:1080")
    with pytest.raises(
        InputError, match=r"HTTPS_PROXY = 'socks5://proxy.example:1080' must be an HTTP proxy"
    ):
        proxy_for(Address("b.test", 7400), "")


# Folders of networks.


def places(folder: Path) -> tuple[str, str, dict[str, str], dict[str, str]]:
    config = read_node(folder / NODE_FILE)
    return config.node.listen, config.node.advertise, config.neighbours, config.forwarders


def test_networks_with_sites_that_only_dial_out(gosta_: Any, tmp_path: Path) -> None:
    net, port = tmp_path / "net", ports.free(12)
    hosts = [
        word for host in ("a.example", "outbound", "Outbound", "[::1]") for word in ("--host", host)
    ]
    code, out, _ = gosta_(
        "network", "init", net, "--data", "breast-cancer", "--nodes", 4, "--port", port, *hosts
    )
    assert code == 0
    assert "dial out only  node-1, node-2" in out
    # with the two others on one machine
    reached = {"node-0": f"a.example:{port}", "node-3": f"[::1]:{port + 4}"}
    everybody = {
        "node-0": reached["node-0"],
        "node-1": "",
        "node-2": "",
        "node-3": reached["node-3"],
    }
    assert read_network(net / NETWORK_FILE).nodes == everybody
    neighbours = {name: {k: v for k, v in everybody.items() if k != name} for name in everybody}
    assert places(net / "node-0") == (
        f"0.0.0.0:{port}",
        reached["node-0"],
        neighbours["node-0"],
        {},
    )
    assert places(net / "node-1") == ("", "", neighbours["node-1"], reached)
    assert places(net / "node-3") == (reached["node-3"], "", neighbours["node-3"], {})
    code, out, _ = gosta_("network", "add", net, "--host", "b.example", "--neighbours", "node-3")
    assert code == 0
    reached["node-4"] = f"b.example:{port}"
    assert places(net / "node-1") == (
        "",
        "",
        neighbours["node-1"],
        reached,
    )  # no new neighbour, a new forwarder
    assert gosta_("network", "remove", net, "node-0")[0] == 0
    del reached["node-0"], neighbours["node-1"]["node-0"]
    assert places(net / "node-1") == ("", "", neighbours["node-1"], reached)
    (net / "node-2").rename(tmp_path / "node-2")
    code, out, _ = gosta_("network", "remove", net, "node-4")
    assert (
        "node-2's folder is on another machine; set in its node.toml, in [forwarders]: node-3 = "
        '"[::1]' in out
    )
    code, out, err = gosta_("network", "remove", net, "node-3")
    assert (code, "no member can be reached" in err) == (2, True)
    code, _, err = gosta_(
        "network",
        "init",
        tmp_path / "dark",
        "--data",
        "breast-cancer",
        "--nodes",
        3,
        "--host",
        "outbound",
    )
    assert (code, err.count("\n")) == (2, 1)
    assert "no member can be reached" in err


def test_enrolment_of_sites_that_only_dial_out(gosta_: Any, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("risk,died\n0.1,0\n0.7,1\n0.3,1\n")

    def call(*arguments: object) -> str:
        code, out, err = gosta_(*arguments)
        assert code == 0, err
        return str(out)

    net = tmp_path / "net"
    call(
        "network", "init", net, "--score", "risk", "--label", "died", "--classes", "0,1", "--enrol"
    )
    requests = {"a": "a.example:443", "b": "outbound", "c": "outbound"}
    for name, address in requests.items():
        more = ("--name", name, "--address", address, "--data", rows)
        call("node", "request", net / "invitation.json", tmp_path / name, *more)
    code, _, err = gosta_(
        "node",
        "request",
        net / "invitation.json",
        tmp_path / "d",
        "--name",
        "d",
        "--address",
        "outbound",
        "--listen",
        "0.0.0.0:7400",
    )
    assert (code, "does not listen" in err) == (2, True)

    def sign(*names: str) -> str:
        out = call(
            "network", "sign", net, *(tmp_path / name / "request.json" for name in names), "--yes"
        )
        for name in requests:
            call("node", "join", net / "bundles" / f"{name}.json", tmp_path / name, "--yes")
        return out

    assert "outbound" in sign("a", "b", "c")
    assert (
        read_node(tmp_path / "a" / NODE_FILE).node.status_page == "127.0.0.1:7443"
    )  # 444 is for root
    assert places(tmp_path / "a") == ("0.0.0.0:443", "a.example:443", {"b": "", "c": ""}, {})
    assert places(tmp_path / "b") == (
        "",
        "",
        {"a": "a.example:443", "c": ""},
        {"a": "a.example:443"},
    )
    # it moved
    call("node", "request", net / "invitation.json", tmp_path / "b", "--address", "b.example:7400")
    assert "new address" in sign("b")
    assert places(tmp_path / "b")[:2] == ("0.0.0.0:7400", "b.example:7400")
    assert places(tmp_path / "c") == ("", "", {"a": "a.example:443", "b": "b.example:7400"}, {})
    call("node", "request", net / "invitation.json", tmp_path / "b", "--address", "outbound")
    sign("b")
    assert places(tmp_path / "b") == (
        "",
        "",
        {"a": "a.example:443", "c": ""},
        {"a": "a.example:443"},
    )
    assert places(tmp_path / "c")[3] == {"a": "a.example:443"}


# Whole networks.

RECORDER = """
import sys
from pathlib import Path
from gosta.net.node.service import run
from gosta.net.transport.forwarding import Copier

original = Copier.data_received
def record(self, data):
    with open(f"{sys.argv[2]}-{id(self)}", "ab") as file:
        file.write(data)
    original(self, data)
Copier.data_received = record
run(Path(sys.argv[1]))
"""
MIDDLEBOXES = str(Path(__file__).parents[1] / "support" / "middleboxes.py")
PLACES = {
    "node-0": "open",
    "node-1": "inside",
    "node-2": "first",
    "node-3": "second",
    "node-4": "proxied",
}
OUTBOUND = {"node-2", "node-3", "node-4"}
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")
}
PROXIED = {"HTTPS_PROXY": "http://site:secret@10.78.0.1:3128"}


class WalledProcesses:
    """Processes in namespaces: an open site, one inside a router, two that dial out only, one
    behind a proxy.
    """

    def __init__(self, spaces: Namespaces, network: Path) -> None:
        self.spaces, self.network = spaces, network
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, place: str, *command: str, **environment: str) -> None:
        with (self.network / f"{name}.log").open("ab") as log:
            whole = self.spaces.command(place, *command)
            self.running[name] = subprocess.Popen(
                whole, stdout=log, stderr=log, env={**ENVIRONMENT, **environment}
            )

    def start_node(self, name: str, **environment: str) -> None:
        folder = str(self.network / name)
        recording = [sys.executable, "-c", RECORDER, folder, str(self.network / "record")]
        self.start(
            name,
            PLACES[name],
            *(recording if name not in OUTBOUND else [*GOSTA, "node", folder]),
            **environment,
        )

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def status(self, name: str) -> Status | None:
        return self.spaces.call(
            PLACES[name], query_status, read_node(self.network / name / NODE_FILE)
        )

    def wait(
        self, condition: Callable[[dict[str, Status]], bool], *names: str
    ) -> dict[str, Status]:
        found: dict[str, Status] = {}

        def is_reached() -> bool:
            found.update(
                {name: status for name in names if (status := self.status(name)) is not None}
            )
            return len(found) == len(names) and condition(found)

        wait_until(is_reached, lambda: found)
        return found


def edges(statuses: dict[str, Status]) -> dict[tuple[str, str], tuple[int, str]]:
    """Return the exchanges over each edge, seen from both ends, and the forwarder."""
    return {
        (name, one.name): (one.exchanges, one.via)
        for name, status in statuses.items()
        for one in status.neighbours
    }


def test_sites_behind_walls(tmp_path: Path) -> None:
    net = tmp_path / "net"
    with namespaces(
        "internet", "open", "router", "inside", "first", "second", "proxy", "proxied"
    ) as spaces:
        spaces.ip("internet", "link", "add", "bridge", "type", "bridge")
        spaces.ip("internet", "link", "set", "bridge", "up")
        for k, name in enumerate(("open", "router", "first", "second", "proxy")):
            spaces.wire(name, f"10.77.0.{10 + k}/24", "internet")
        # nobody else has a way there
        spaces.wire("inside", "192.168.7.2/24", "router", "192.168.7.1/24")
        # which has no way anywhere else
        spaces.wire("proxied", "10.78.0.2/24", "proxy", "10.78.0.1/24")
        spaces.ip("first", "route", "add", "blackhole", "10.77.0.13/32")
        spaces.ip("second", "route", "add", "blackhole", "10.77.0.12/32")
        hosts = ("10.77.0.10", "10.77.0.11", "outbound", "outbound", "outbound")
        given = [word for host in hosts for word in ("--host", host)]
        made = gosta(
            "network",
            "init",
            net,
            "--data",
            "breast-cancer",
            "--nodes",
            5,
            "--port",
            ports.free(10),
            *given,
            "--exchanges-per-second",
            20,
        )
        assert made.returncode == 0, made.stderr
        processes = WalledProcesses(spaces, net)
        inside = read_node(net / "node-1" / NODE_FILE).node
        port = addresses.parse(inside.listen).port
        assert (inside.listen, inside.advertise) == (f"0.0.0.0:{port}", f"10.77.0.11:{port}")
        assert read_node(net / "node-0" / NODE_FILE).node.listen == inside.listen
        try:
            python = sys.executable
            processes.start(
                "router",
                "router",
                python,
                MIDDLEBOXES,
                "port",
                f"10.77.0.11:{port}",
                f"192.168.7.2:{port}",
            )
            processes.start(
                "proxy", "proxy", python, MIDDLEBOXES, "proxy", "10.78.0.1:3128", "site:secret"
            )
            for name in PLACES:
                processes.start_node(name, **(PROXIED if name == "node-4" else {}))
            found = processes.wait(
                lambda found: (
                    all(count >= 5 for count, _ in edges(found).values())
                    and all(
                        one.sites_seen == 5 and (one.expected_error or 1.0) < 0.01
                        for one in found.values()
                    )
                ),
                *PLACES,
            )
            assert len(edges(found)) == 20
            used = {
                via for (name, other), (_, via) in edges(found).items() if {name, other} <= OUTBOUND
            }
            assert used <= {"node-0", "node-1"}
            assert "" not in used
            assert all(
                not via
                for (name, other), (_, via) in edges(found).items()
                if not {name, other} <= OUTBOUND
            )
            exact = gosta_library.exact("breast-cancer", "auc")
            values = [one.estimate[0] for one in found.values() if one.estimate]
            assert values == pytest.approx([exact] * 5, rel=0.03)
            check_recorded(net)
            checked = subprocess.run(
                spaces.command("proxied", *GOSTA, "check", str(net / "node-4")),
                env={**ENVIRONMENT, **PROXIED},
                capture_output=True,
                text=True,
                check=False,
            )
            assert checked.stdout.count("reached, and it computes the same") == 2, checked.stdout
            (killed,) = {
                edges(found)[one][1] for one in (("node-2", "node-3"), ("node-3", "node-2"))
            }
            processes.kill(killed)
            other = ({"node-0", "node-1"} - {killed}).pop()
            before = edges(found)

            def is_replaced(found: dict[str, Status]) -> bool:
                now = {one: state for one, state in edges(found).items() if set(one) <= OUTBOUND}
                return all(
                    via == other and count > before[one][0] for one, (count, via) in now.items()
                )

            processes.wait(is_replaced, *OUTBOUND)
        finally:
            for name in list(processes.running):
                processes.kill(name)


def check_recorded(net: Path) -> None:
    """Check that forwarders saw nothing but TLS: no row, no word of a message, no name but in the
    first hello.
    """
    streams = [path.read_bytes() for path in net.glob("record-*")]
    assert len(streams) >= 6  # two for each of three edges
    numbers = np.loadtxt(net / "node-2" / "data.csv", delimiter=",", skiprows=1).ravel()
    for stream in streams:
        check_records(stream)
        assert not any(word in stream for word in (b"offer", b"accept", b"confirm", b"gosta "))
        assert not any(
            struct.pack(">d", number) in stream
            for number in numbers
            if number not in (0.0, 1.0, -1.0)
        )


@pytest.mark.parametrize("is_private", [False, True], ids=["rows", "private sums"])
def test_a_site_whose_only_way_is_a_forwarder(tmp_path: Path, is_private: bool) -> None:
    """On a path of three, two of them only dial out: all that the last one says and hears goes
    through a forwarder.
    """
    (tmp_path / "path.txt").write_text("0 1\n1 2\n")
    net, first = tmp_path / "net", ports.free(6)
    more = ("--private", "--bins", 16) if is_private else ("--exchanges-per-second", 50)
    made = gosta(
        "network",
        "init",
        net,
        "--data",
        "breast-cancer",
        "--graph",
        tmp_path / "path.txt",
        "--port",
        first,
        "--host",
        "127.0.0.1",
        "--host",
        "outbound",
        "--host",
        "outbound",
        *more,
    )
    assert made.returncode == 0, made.stderr
    with Processes(*(net / f"node-{k}" for k in range(3))) as nodes:
        nodes.start("node-0", "node-1", "node-2")
        if is_private:
            found = nodes.wait(lambda all_: all(one.state == "complete" for one in all_))
            assert all(one.sums is not None and len(one.sums.participants) == 3 for one in found)
        else:
            found = nodes.wait(
                lambda all_: all(one.sites_seen == 3 and one.exchanges > 20 for one in all_)
            )
        assert [one.via for status in found for one in status.neighbours] == [
            "",
            "",
            "node-0",
            "node-0",
        ]
        assert found[0].counters["connections forwarded"] == 1
        checked = gosta("check", net / "node-2")
        assert checked.returncode == 0, checked.stdout
        assert (
            "neighbour node-1: it only dials out, as this node: a forwarder connects the two"
            in checked.stdout
        )
        assert f"forwarder node-0: 127.0.0.1:{first}: reached" in checked.stdout
        nodes.stop()
    checked = gosta("check", net / "node-2")
    assert "no forwarder answers that it forwards" in checked.stdout
    verified = gosta("network", "verify", net)
    assert verified.returncode == 0, verified.stdout
