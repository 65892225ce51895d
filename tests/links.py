"""What tests of transports share: an ear that remembers, a loop with a time of its own, worlds of each transport."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from gosta.net.deploy import certificates
from gosta.net.deploy.certificates import Pair
from gosta.net.transport.base import REASONS, Ear, Link, Loop, Transport
from gosta.net.transport.faults import Faulty, combine
from gosta.net.transport.memory import Switch
from gosta.net.transport.tcp import Streams
from gosta.net.transport.tls import Tls

NETWORK = "0123456789abcdef"


class Listener:
    """An ear that remembers what it heard."""

    def __init__(self, *known: str) -> None:
        self.known = known
        self.links: list[Link] = []
        self.messages: list[bytes] = []
        self.closures: list[str] = []
        self.failures: list[str] = []
        self.refusals: list[str] = []
        self.details: list[str] = []
        self.answer: Callable[[Link, bytes], None] = lambda link, message: None

    def knows(self, name: str) -> bool:
        return name in self.known

    def opened(self, link: Link) -> None:
        self.links.append(link)

    def received(self, link: Link, message: bytes) -> None:
        assert link in self.links
        self.messages.append(message)
        self.answer(link, message)

    def closed(self, link: Link, why: str) -> None:
        assert why
        self.links.remove(link)
        self.closures.append(why)

    def failed(self, neighbour: str, why: str) -> None:
        assert why
        assert self.knows(neighbour)
        self.failures.append(why)

    def refused(self, reason: str, detail: str) -> None:
        assert reason in REASONS
        self.refusals.append(reason)
        self.details.append(detail)


class VirtualLoop:
    """A loop without waiting: time goes on when nothing is left to do."""

    def __init__(self) -> None:
        self._now = 0.0
        self._order = itertools.count()
        self._calls: list[tuple[float, int, Callable[..., Any], tuple[Any, ...]]] = []

    def time(self) -> float:
        return self._now

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> None:
        heapq.heappush(self._calls, (self._now + delay, next(self._order), callback, args))

    def step(self) -> bool:
        if not self._calls:
            return False
        self._now, _, callback, args = heapq.heappop(self._calls)
        callback(*args)
        return True


class World(ABC):
    """Somewhere to put nodes; each may sit on the decorator that makes faults, told to make none."""

    loop: Loop
    faulty = False

    def add(self, name: str, ear: Ear) -> Transport:
        if self.faulty:
            return Faulty(name, ear, self.loop, combine(), lambda inner: self.build(name, inner))
        return self.build(name, ear)

    @abstractmethod
    def build(self, name: str, ear: Ear) -> Transport: ...

    @abstractmethod
    def address(self, name: str) -> str: ...

    @abstractmethod
    async def start(self) -> None: ...

    @abstractmethod
    async def until(self, true: Callable[[], bool]) -> None: ...

    @abstractmethod
    async def stop(self) -> None: ...


class MemoryWorld(World):
    """Nodes in memory."""

    def __init__(self) -> None:
        self.loop: VirtualLoop = VirtualLoop()
        self.switch = Switch(self.loop, 0.01)

    def build(self, name: str, ear: Ear) -> Transport:
        return self.switch.attach(name, ear)

    def address(self, name: str) -> str:
        return name

    async def start(self) -> None:
        pass

    async def until(self, true: Callable[[], bool]) -> None:
        while not true():
            assert self.loop.step(), "nothing will happen any more"

    async def stop(self) -> None:
        for end in list(self.switch.ends.values()):
            end.close()
        while self.loop.step():
            pass


class StreamsWorld(World):
    """Nodes on sockets of this machine; with a folder for their certificates, with TLS."""

    def __init__(self, folder: Path | None) -> None:
        self.loop = asyncio.get_running_loop()
        self.authority = certificates.authority(NETWORK) if folder else None
        self.folder = folder
        self.nodes: dict[str, Streams] = {}

    def build(self, name: str, ear: Ear) -> Streams:
        tls = None
        if self.folder and self.authority:
            tls = write(self.folder / name, self.authority, issue(self.authority, name))
        self.nodes[name] = Streams(name, NETWORK, ear, tls)
        return self.nodes[name]

    def address(self, name: str) -> str:
        return self.nodes[name].address if name in self.nodes else "127.0.0.1:1"

    async def start(self) -> None:
        for streams in self.nodes.values():
            await streams.start("127.0.0.1:0")

    async def until(self, true: Callable[[], bool]) -> None:
        await until(true)

    async def stop(self) -> None:
        for streams in self.nodes.values():
            await streams.stop()


async def until(true: Callable[[], bool]) -> None:
    """Wait for something that others do."""
    while not true():
        await asyncio.sleep(0.001)


def issue(authority: Pair, name: str, network: str = NETWORK, until: datetime | None = None) -> Pair:
    start = None if until is None else until.replace(year=until.year - 1)
    return certificates.issue(authority, network, name, not_before=start, not_after=until)


def write(folder: Path, authority: Pair, own: Pair) -> Tls:
    """The files of a node."""
    folder.mkdir(parents=True, exist_ok=True)
    files = Tls(folder / "node.crt", folder / "node.key", folder / "authority.crt")
    for path, content in zip(files, (own.cert, own.key, authority.cert), strict=True):
        path.write_bytes(content)
    return files
