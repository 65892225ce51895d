"""A node as a process: sockets, signals, log, and what it tells a service manager."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TextIO

import msgspec

from gosta.errors import NetworkError
from gosta.net.addresses import parse
from gosta.net.config import HEAD_FILE, JOURNAL_FILE, NODE_FILE, NodeConfig, read_node
from gosta.net.node import lock, pages
from gosta.net.node.contact import Log
from gosta.net.node.credentials import ListFolder, certificate_ends, load_credentials
from gosta.net.node.log_file import LogRotation
from gosta.net.node.node import Environment, Node
from gosta.net.node.reload import CredentialWatcher, FileWatcher
from gosta.net.node.requests import RequestWatcher
from gosta.net.node.restore import restore_peer
from gosta.net.node.row_node import RowNode
from gosta.net.node.source import read_row_source, read_sum_source
from gosta.net.node.status import Status
from gosta.net.node.sum_node import SumNode
from gosta.net.storage.contributions import find_damage
from gosta.net.storage.journal import Journal
from gosta.net.transport.tcp import TcpTransport

POLL_SECONDS = 1.0  # between checks for changed files
GOODBYE_SECONDS = 0.1  # for signatures of neighbours that stop at the same time
STOP_TIMEOUT_SECONDS = 2.0  # for the exchange under way before the node stops
LINK_CHECK_SECONDS = 60.0  # between checks of the neighbours' certificates
SOCKET_VARIABLE = "NOTIFY_SOCKET"  # names the socket of the service manager


class Watcher(Protocol):
    """Something that is looked after every second while a node runs."""

    def poll(self) -> None: ...


def run(folder: Path) -> None:
    """Run a node until SIGTERM or SIGINT."""
    lock.check_platform()
    try:
        import uvloop
    except ImportError:
        asyncio.run(_run(folder))
    else:
        uvloop.run(_run(folder))


async def _run(folder: Path) -> None:
    config = read_node(folder / NODE_FILE)
    log = make_logger(config.node.name, sys.stderr)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(
        lambda _, it: log("error", message=it["message"], reason=repr(it.get("exception")))
    )
    with lock.hold(folder):
        tls, keyring = load_credentials(folder, config, log) if config.node.tls else (None, None)
        node, journal = _make_node(config, folder, loop, log)
        if keyring:
            node.lists = ListFolder(folder, config.network.id, log)
            node.certificate_ends = certificate_ends(folder)
        settings, listed = config.node, keyring.list if keyring else None
        transport = TcpTransport(
            node, tls, listed, settings.proxy, node.on_forwarding if settings.forward else None
        )
        await transport.start(config.node.listen)
        address = config.node.status_page
        names = {
            settings.name,
            *(parse(place).host for place in (settings.listen, settings.advertise) if place),
        }
        page = None
        if address:
            page = await pages.serve(address, node.status, journal, names, node.release)
        log("started", listen=transport.address, status_page=address, epoch=node.peer.epoch)
        node.start(transport, _boot_id())
        checks = loop.create_task(_check_links(transport))
        try:
            watchers: list[Watcher] = [
                FileWatcher(node, folder, log),
                RequestWatcher(node, folder, log),
                LogRotation(folder),
            ]
            if keyring:
                watchers.insert(0, CredentialWatcher(node, transport, folder, log))
            await _until_signal(node, watchers, Notifier(node.status, log))
        finally:
            checks.cancel()
            node.stop()
            await transport.stop()
            if page is not None:
                page.close()
            log("stopped", epoch=node.peer.epoch)


def _make_node(
    config: NodeConfig, folder: Path, loop: asyncio.AbstractEventLoop, log: Log
) -> tuple[Node, Journal]:
    """Restore a node from its folder."""
    settings, path = config.node, folder / JOURNAL_FILE
    environment = Environment(loop, random.Random(), log)
    if config.network.private is None:
        source, keep = read_row_source(config, folder), settings.keep_exchanges
        journal = Journal(
            path, settings.durable, keep_exchanges=keep, secure_delete=settings.secure_delete
        )
        return RowNode(config, restore_peer(config, source, journal), journal, environment), journal
    sums = read_sum_source(config, folder)
    # Secret keys of earlier epochs must not be found on the disk. Nor may a loss of power make
    # the node say two different things, or forget what it spent.
    journal = Journal(path, durable=True, keep_exchanges=0, secure_delete=True)
    peer, head = restore_peer(config, sums, journal), folder / HEAD_FILE
    if damage := find_damage(head, journal.contributions()):
        journal.close()
        what = f"journal {path} is not this site's last one: its log of contributions {damage}"
        move = f"or move it and {head} away, and what this site contributed is forgotten"
        raise NetworkError(f"{what}; put back the last one; {move}")
    return SumNode(config, peer, journal, environment, head), journal


async def _check_links(transport: TcpTransport) -> None:
    """End links whose certificates expire while they are open."""
    while True:
        await asyncio.sleep(LINK_CHECK_SECONDS)
        transport.check_links()


def _boot_id() -> str:
    """Return a text that changes when this machine boots."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        import psutil

        return f"{psutil.boot_time() // 60:.0f}"


async def _until_signal(node: Node, watchers: Sequence[Watcher], notifier: Notifier) -> None:
    """Reload changed files until a signal arrives; then wait for the exchange under way."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    notifier.ready()
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), POLL_SECONDS)
        for watcher in () if stop.is_set() else (*watchers, notifier):
            watcher.poll()
    notifier.stopping()
    node.pause()
    await asyncio.sleep(GOODBYE_SECONDS)
    deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
    while not node.is_idle and node.links and time.monotonic() < deadline:
        await asyncio.sleep(0.01)


def make_logger(name: str, stream: TextIO) -> Log:
    """Return a function that logs events as lines: plain text on a terminal, JSON elsewhere."""
    is_terminal = stream.isatty()

    def log(event: str, **fields: Any) -> None:
        now = datetime.now(UTC)
        if is_terminal:
            shown = "  ".join(f"{key} {value}" for key, value in fields.items())
            print(f"{now.astimezone():%H:%M:%S}  {event}  {shown}", file=stream, flush=True)
        else:
            line = {
                "time": now.isoformat(timespec="milliseconds"),
                "node": name,
                "event": event,
                **fields,
            }
            print(msgspec.json.encode(line).decode(), file=stream, flush=True)

    return log


class Notifier:
    """Tells the service manager, if there is one, that a node is ready, runs, or is about to stop.

    Messages are those of systemd (sd_notify), to the socket that NOTIFY_SOCKET names. They are sent
    from the node's event loop, so that a node that hangs sends none, and a manager with a watchdog
    (WatchdogSec) starts it anew.
    """

    def __init__(self, status: Callable[[], Status], log: Log) -> None:
        self._status, self._log = status, log
        address = os.environ.get(SOCKET_VARIABLE, "")
        # The name of an abstract socket begins with @, others are paths.
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._has_failed = False

    def ready(self) -> None:
        self._send_state("READY=1")

    def poll(self) -> None:
        """Say that the node runs."""
        self._send_state("WATCHDOG=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def _send_state(self, message: str) -> None:
        if self._address:
            now = self._status()
            sites = f"{now.sites_seen} of {now.sites or now.sites_seen} sites"
            self._send(f"{message}\nSTATUS={now.state}, {sites}, epoch {now.epoch}")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        try:
            with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as manager:
                manager.setblocking(False)
                manager.connect(self._address)
                manager.send(message.encode())
        except BlockingIOError:
            pass  # the manager is busy: the next message comes in a second
        except OSError as error:
            if not self._has_failed:
                self._has_failed = True
                self._log("service manager does not answer", reason=error.strerror or str(error))
