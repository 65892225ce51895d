"""A node as a process: its files, its sockets, its signals."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

import msgspec

from gosta.errors import InputError
from gosta.net.config import JOURNAL, LOCK, NODE, NodeFile, read_node
from gosta.net.node import pages
from gosta.net.node.node import Log, Node, status_of
from gosta.net.node.source import Source, read_source
from gosta.net.node.status import Doubt, Neighbour, Status
from gosta.net.protocol.peer import Identity, Peer
from gosta.net.storage.journal import Journal
from gosta.net.transport.tcp import Streams
from gosta.net.transport.tls import Tls

WATCH = 1.0  # seconds between looks at the node's files
FAREWELL = 2.0  # seconds that a node that is to stop waits for an answer


def run(folder: Path) -> None:
    """Run a node until it is told to stop."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(_run(folder))
    else:
        uvloop.run(_run(folder))


async def _run(folder: Path) -> None:
    file = read_node(folder / NODE)
    log = logger(file.node.name, sys.stderr)
    asyncio.get_running_loop().set_exception_handler(
        lambda _, about: log("error", what=about["message"], why=repr(about.get("exception")))
    )
    with _alone(folder):
        source = read_source(file, folder)
        journal = Journal(folder / JOURNAL, file.node.durable)
        node = Node(
            file, _identity(file, source, journal), source, journal, asyncio.get_running_loop(), random.Random(), log
        )
        tls = _credentials(folder, log) if file.node.tls else None
        transport = Streams(file.node.name, file.network.id, node, tls)
        await transport.start(file.node.listen)
        page = await pages.serve(file.node.status, node.status) if file.node.status else None
        log("started", listen=transport.address, status=file.node.status, rows=source.own.n, epoch=node.peer.epoch)
        node.start(transport, _boot())
        try:
            await _until_told(node, folder, log)
        finally:
            node.stop()
            await transport.stop()
            if page is not None:
                page.close()
            log("stopped", epoch=node.peer.epoch, exchanges=node.peer.site.meetings)


def _credentials(folder: Path, log: Log) -> Tls:
    """The node's key and certificate, which must still be good."""
    from gosta.net.deploy.certificates import expires

    tls = Tls(folder / "cert.pem", folder / "key.pem", folder / "ca.pem")
    try:
        until = expires(tls.cert.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {tls.cert}: {error.strerror}; 'gosta network certify' makes a new one") from None
    left = until - datetime.now(UTC)
    if left < timedelta(0):
        raise InputError(f"{tls.cert} ended on {until:%Y-%m-%d}; make a new one with: gosta network certify NETWORK")
    if left < timedelta(days=30):
        log("the certificate ends soon", until=f"{until:%Y-%m-%d}")
    return tls


def _identity(file: NodeFile, source: Source, journal: Journal) -> Identity:
    birth = journal.birth(file.node.name, time.time_ns() // 1000)
    return Identity(file.node.name, file.network.id, source.fingerprint, birth)


def _boot() -> str:
    """What changes when this machine is started anew."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        import psutil

        return f"{psutil.boot_time() // 60:.0f}"


async def _until_told(node: Node, folder: Path, log: Log) -> None:
    """Watch the node's files until a signal comes; then give a pending offer time to be answered."""
    told = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, told.set)
    seen = _marks(node.file, folder)
    while not told.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(told.wait(), WATCH)
        marks = _marks(node.file, folder)
        if marks != seen and not told.is_set():
            seen = marks
            _reload(node, folder, log)
    node.pause()
    end = time.monotonic() + FAREWELL
    while node.peer.pending is not None and node.links and time.monotonic() < end:
        await asyncio.sleep(0.01)


def _reload(node: Node, folder: Path, log: Log) -> None:
    """Go by changed files; by the old ones as long as the new ones cannot be used."""
    try:
        file = read_node(folder / NODE)
        fixed = ("name", "listen", "status", "tls", "durable")
        if file.network != node.file.network or any(getattr(file.node, f) != getattr(node.file.node, f) for f in fixed):
            log("restart it to change what is computed, or one of these", settings=fixed)
            return
        node.change(file, read_source(file, folder))
        log("changed", neighbours=sorted(file.neighbours), rows=node.source.own.n)
    except InputError as error:
        log("cannot use the changed files", why=str(error))


def _marks(file: NodeFile, folder: Path) -> list[tuple[int, int] | None]:
    """What changes when the node's files do."""
    marks: list[tuple[int, int] | None] = []
    for path in (folder / NODE, folder / file.node.data):
        try:
            found = path.stat()
            marks.append((found.st_mtime_ns, found.st_size))
        except OSError:
            marks.append(None)
    return marks


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Make sure that no other process runs this node."""
    try:
        lock = (folder / LOCK).open("a+")
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}; a node keeps its journal there") from None
    with lock:
        for left in reversed(range(10)):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if not left:
                    raise InputError(f"{folder} is run by another process already; stop that one first") from None
                time.sleep(0.05)  # somebody may only be looking whether the node runs
        lock.seek(0)
        lock.truncate()
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def logger(name: str, stream: TextIO) -> Log:
    """Events as lines: JSON, or words where a person reads along."""
    person = stream.isatty()

    def log(event: str, **more: Any) -> None:
        now = datetime.now(UTC)
        if person:
            told = "  ".join(f"{key} {value}" for key, value in more.items())
            print(f"{now.astimezone():%H:%M:%S}  {event}  {told}", file=stream, flush=True)
        else:
            line = {"time": now.isoformat(timespec="milliseconds"), "node": name, "event": event, **more}
            print(msgspec.json.encode(line).decode(), file=stream, flush=True)

    return log


def stopped_peer(folder: Path) -> tuple[NodeFile, Source, Peer, Journal]:
    """A node that does not run, as its journal has it."""
    file = read_node(folder / NODE)
    source = read_source(file, folder)
    if not (folder / JOURNAL).is_file():
        raise InputError(f"{folder} has no journal yet: the node was never started; start it with: gosta node {folder}")
    journal = Journal(folder / JOURNAL, read_only=True)
    peer = Peer(_identity(file, source, journal), source, file.neighbours, file.network.interval)
    peer.restore(*journal.load())
    return file, source, peer, journal


def status_from_journal(folder: Path) -> Status:
    """What can be said of a node that does not run."""
    file, _, peer, journal = stopped_peer(folder)
    journal.close()
    neighbours = tuple(Neighbour(name, False, peer.meetings.get(name, 0), None, None) for name in file.neighbours)
    doubt = None if peer.pending is None else Doubt(peer.pending.to, 0.0)
    return status_of(file, peer, state="stopped", doubt=doubt, neighbours=neighbours, counts={}, uptime=None)
