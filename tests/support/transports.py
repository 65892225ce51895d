"""Shared by tests of transports: a handler that records its calls, and a test network for each
transport.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from faulty_transport import FaultyTransport, combine
from memory_transport import MemoryNetwork
from virtual_clock import VirtualClock

from gosta.net.deploy import certificates
from gosta.net.deploy.certificates import Pair
from gosta.net.transport.base import REJECTION_REASONS, Greeting, Handler, Link, Loop, Transport
from gosta.net.transport.tcp import TcpTransport
from gosta.net.transport.tls import TlsFiles

NETWORK = "0123456789abcdef"


class RecordingHandler:
    """A handler that records its calls."""

    def __init__(self, *neighbours: str) -> None:
        self.neighbours = neighbours
        self.greeting = Greeting("", NETWORK)
        self.mismatches: list[str] = []
        self.links: list[Link] = []
        self.messages: list[bytes] = []
        self.disconnections: list[str] = []
        self.dial_failures: list[str] = []
        self.rejections: list[str] = []
        self.details: list[str] = []
        self.respond: Callable[[Link, bytes], None] = lambda link, message: None

    def is_neighbour(self, name: str) -> bool:
        return name in self.neighbours

    def on_connected(self, link: Link) -> None:
        self.links.append(link)

    def on_message(self, link: Link, message: bytes) -> None:
        assert link in self.links
        self.messages.append(message)
        self.respond(link, message)

    def on_disconnected(self, link: Link, reason: str) -> None:
        assert reason
        self.links.remove(link)
        self.disconnections.append(reason)

    def on_dial_failed(self, neighbour: str, reason: str) -> None:
        assert reason
        assert self.is_neighbour(neighbour)
        self.dial_failures.append(reason)

    def on_mismatch(self, neighbour: str, setting: str, detail: str) -> None:
        assert self.is_neighbour(neighbour)
        assert detail
        self.mismatches.append(setting)

    def on_rejected(self, reason: str, detail: str) -> None:
        assert reason in REJECTION_REASONS
        self.rejections.append(reason)
        self.details.append(detail)


def named(handler: RecordingHandler, name: str) -> RecordingHandler:
    """Let a handler greet with a name."""
    handler.greeting = handler.greeting._replace(name=name)
    return handler


class TestNetwork(ABC):
    """A network of handlers; with `has_faults`, each on a `FaultyTransport` without any fault."""

    __test__ = False  # for pytest

    loop: Loop
    has_faults = False

    def add(self, name: str, handler: RecordingHandler) -> Transport:
        named(handler, name)
        if self.has_faults:
            return FaultyTransport(
                name, handler, self.loop, combine(), lambda inner: self.build(name, inner)
            )
        return self.build(name, handler)

    @abstractmethod
    def build(self, name: str, handler: Handler) -> Transport: ...

    @abstractmethod
    def address(self, name: str) -> str: ...

    @abstractmethod
    async def start(self) -> None: ...

    @abstractmethod
    async def until(self, condition: Callable[[], bool]) -> None: ...

    @abstractmethod
    async def stop(self) -> None: ...


class MemoryTestNetwork(TestNetwork):
    """Handlers on the memory transport."""

    def __init__(self) -> None:
        self.loop: VirtualClock = VirtualClock()
        self.memory = MemoryNetwork(self.loop, 0.01)

    def build(self, name: str, handler: Handler) -> Transport:
        return self.memory.attach(name, handler)

    def address(self, name: str) -> str:
        return name

    async def start(self) -> None:
        pass

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            assert self.loop.step(), "no timer is left"

    async def stop(self) -> None:
        for transport in list(self.memory.transports.values()):
            transport.close()
        self.loop.run_all()


class TcpTestNetwork(TestNetwork):
    """Handlers on sockets of this machine; with TLS if there is a folder for certificates."""

    def __init__(self, folder: Path | None) -> None:
        self.loop = asyncio.get_running_loop()
        self.authority = certificates.make_authority(NETWORK) if folder else None
        self.folder = folder
        self.nodes: dict[str, TcpTransport] = {}

    def build(self, name: str, handler: Handler) -> TcpTransport:
        tls = None
        if self.folder and self.authority:
            tls = write(self.folder / name, self.authority, issue(self.authority, name))
        self.nodes[name] = TcpTransport(handler, tls)
        return self.nodes[name]

    def address(self, name: str) -> str:
        return self.nodes[name].address if name in self.nodes else "127.0.0.1:1"

    async def start(self) -> None:
        for transport in self.nodes.values():
            await transport.start("127.0.0.1:0")

    async def until(self, condition: Callable[[], bool]) -> None:
        await until(condition)

    async def stop(self) -> None:
        for transport in self.nodes.values():
            await transport.stop()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    while not condition():
        await asyncio.sleep(0.001)


def issue(
    authority: Pair, name: str, network: str = NETWORK, until: datetime | None = None
) -> Pair:
    start = None if until is None else until.replace(year=until.year - 1)
    return certificates.issue(authority, network, name, not_before=start, not_after=until)


def write(folder: Path, authority: Pair, own: Pair) -> TlsFiles:
    """Write the files of a node."""
    folder.mkdir(parents=True, exist_ok=True)
    files = TlsFiles(folder / "node.crt", folder / "node.key", folder / "authority.crt")
    for path, content in zip(files, (own.cert, own.key, authority.cert), strict=True):
        path.write_bytes(content)
    files.key.chmod(0o600)
    return files
