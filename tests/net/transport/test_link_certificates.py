"""Links and certificates: keys of the member list; certificates that are replaced or expire."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import uvloop
from transports import NETWORK, RecordingHandler, named, until, write
from virtual_clock import shifted

from gosta.net.deploy import certificates
from gosta.net.deploy.certificates import Pair
from gosta.net.members import Member, MemberList, key_of
from gosta.net.transport import tls
from gosta.net.transport.tcp import TcpTransport
from gosta.net.transport.tls import TlsFiles, load_certificate

AUTHORITY = certificates.make_authority(NETWORK)
PAIRS = {name: certificates.issue(AUTHORITY, NETWORK, name) for name in ("a", "b")}


def key(pair: Pair) -> str:
    return key_of(load_certificate(pair.cert)).hex()


def renew(authority: Pair, name: str) -> bytes:
    return certificates.certify(authority, NETWORK, name, bytes.fromhex(key(PAIRS[name])))


def members(pairs: dict[str, Pair], *revoked: Pair, serial: int = 1) -> MemberList:
    listed = tuple(Member(name, key(pair)) for name, pair in pairs.items())
    return MemberList(NETWORK, serial, "0" * 16, {}, listed, tuple(map(key, revoked)))


class Two:
    """Nodes a and b; a dials."""

    def __init__(self, folder: Path, pairs: dict[str, Pair], *lists: MemberList | None) -> None:
        self.folder, self.a, self.b = folder, RecordingHandler("b"), RecordingHandler("a")
        handlers = zip("ab", (self.a, self.b), lists, strict=True)
        self.nodes = {
            name: TcpTransport(named(handler, name), self.write(name, pairs[name]), one)
            for name, handler, one in handlers
        }

    def write(self, name: str, pair: Pair, *authorities: Pair) -> TlsFiles:
        given = authorities or (AUTHORITY,)
        return write(self.folder / name, Pair(b"", b"".join(one.cert for one in given)), pair)

    async def connect(self) -> None:
        self.nodes["a"].dial("b", self.nodes["b"].address)
        await until(lambda: bool(self.a.links and self.b.links))


Body = Callable[[Two], Awaitable[None]]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., None]:
    async def whole(body: Body, pairs: dict[str, Pair], lists: Any) -> None:
        two = Two(tmp_path, pairs, *lists)
        try:
            async with asyncio.timeout(20):
                for node in two.nodes.values():
                    await node.start("127.0.0.1:0")
                await body(two)
        finally:
            for node in two.nodes.values():
                await node.stop()

    return lambda body, pairs, *lists: request.param(whole(body, pairs, lists))


def test_members_connect(run: Any) -> None:
    async def body(two: Two) -> None:
        await two.connect()
        for node in two.nodes.values():
            node.check_links()
        assert two.a.links[0].send(b"hello")
        await until(lambda: two.b.messages == [b"hello"])

    run(body, PAIRS, members(PAIRS), members(PAIRS))


OTHER = certificates.issue(AUTHORITY, NETWORK, "a")


@pytest.mark.parametrize(
    ("known", "detail"),
    [
        (members({"b": PAIRS["b"]}, serial=7), "a is not in member list 7"),
        (members(PAIRS | {"a": OTHER}), "the key of a is not its key in member list 1"),
        (members(PAIRS | {"a": OTHER}, PAIRS["a"]), "the key of a is revoked"),
        (members({"b": PAIRS["b"], "c": PAIRS["a"]}), "a is not in member list 1"),
    ],
)
def test_certified_nodes_that_are_not_members(run: Any, known: MemberList, detail: str) -> None:
    async def body(two: Two) -> None:
        two.nodes["a"].dial("b", two.nodes["b"].address)
        await until(lambda: bool(two.a.dial_failures))
        assert two.b.rejections == ["key"]
        assert detail in two.b.details[0]
        assert two.b.links == []

    run(body, PAIRS, members(PAIRS), known)


def test_the_dialling_end_checks_the_key_too(run: Any) -> None:
    async def body(two: Two) -> None:
        two.nodes["a"].dial("b", two.nodes["b"].address)
        await until(lambda: bool(two.a.dial_failures))
        assert two.a.dial_failures == ["the key of b is not its key in member list 1"]

    other = PAIRS | {"b": certificates.issue(AUTHORITY, NETWORK, "b")}
    run(body, PAIRS, members(other), members(PAIRS))


def test_expired_certificates_end_links(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    pairs = PAIRS | {"a": certificates.issue(AUTHORITY, NETWORK, "a", not_after=tomorrow)}

    async def body(two: Two) -> None:
        await two.connect()
        monkeypatch.setattr(tls, "datetime", shifted(days=2))
        two.nodes["a"].check_links()
        assert len(two.a.links) == 1
        two.nodes["b"].check_links()
        await until(lambda: not two.a.links and not two.b.links)
        assert two.b.rejections == ["expired"]
        assert "the certificate of a expired on" in two.b.disconnections[0]

    run(body, pairs, members(pairs), members(pairs))


def test_a_new_certificate_of_the_same_key_leaves_links_open(run: Any) -> None:
    renewed = renew(AUTHORITY, "a")

    async def body(two: Two) -> None:
        await two.connect()
        files = two.write("a", Pair(PAIRS["a"].key, renewed))
        two.nodes["a"].reload_tls(files, members(PAIRS))
        two.nodes["a"].dial("b", two.nodes["b"].address)
        await until(lambda: len(two.a.links) == len(two.b.links) == 2)

    run(body, PAIRS, members(PAIRS), members(PAIRS))


def test_a_new_list_ends_the_links_of_former_members(run: Any) -> None:
    async def body(two: Two) -> None:
        await two.connect()
        without = members({"b": PAIRS["b"]}, PAIRS["a"], serial=2)
        two.nodes["b"].reload_tls(two.write("b", PAIRS["b"]), without)
        await until(lambda: not two.a.links and not two.b.links)
        assert two.b.disconnections == ["a is not in member list 2"]
        two.nodes["a"].dial("b", two.nodes["b"].address)
        await until(lambda: two.b.rejections == ["key", "key"])

    run(body, PAIRS, members(PAIRS), members(PAIRS))


def test_an_authority_is_replaced_while_links_are_open(run: Any) -> None:
    new = certificates.make_authority(NETWORK)

    async def body(two: Two) -> None:
        await two.connect()
        for name in "ab":  # 1: all trust both authorities
            two.nodes[name].reload_tls(two.write(name, PAIRS[name], AUTHORITY, new), members(PAIRS))
        assert (len(two.a.links), len(two.b.links)) == (1, 1)
        for name in "ab":  # 2: certificates of the new one
            pair = Pair(PAIRS[name].key, renew(new, name))
            two.nodes[name].reload_tls(two.write(name, pair, AUTHORITY, new), members(PAIRS))
        assert (len(two.a.links), len(two.b.links)) == (1, 1)
        for name in "ab":  # 3: the old one is no longer trusted
            pair = Pair(PAIRS[name].key, renew(new, name))
            two.nodes[name].reload_tls(two.write(name, pair, new), members(PAIRS))
        await until(lambda: not two.a.links and not two.b.links)
        await two.connect()

    run(body, PAIRS, members(PAIRS), members(PAIRS))
