"""The status of nodes: of a running node over HTTP, of a stopped one from its journal."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import math
import sqlite3
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from gosta.errors import GostaError, InputError
from gosta.net.addresses import Address, parse
from gosta.net.config import (
    JOURNAL_FILE,
    LOCK_FILE,
    NETWORK_FILE,
    NODE_FILE,
    NetworkConfig,
    NodeConfig,
    read_node,
)
from gosta.net.deploy.folders import load_network
from gosta.net.node import lock
from gosta.net.node.status import Status
from gosta.net.node.stopped import status_from_journal
from gosta.net.protocol.report import relative_distance

TIMEOUT_SECONDS = 2.0
MAX_RESPONSE_BYTES = 1 << 22  # a status with 30,000 neighbours
QUERY_THREADS = 32
START_SECONDS = 10.0  # for a node to start and answer
LOOPBACK = {
    "0.0.0.0": "127.0.0.1",
    "::": "::1",
}  # where to reach a node that listens on all interfaces


# Made once: msgspec crashes where several threads use a type for the first time.
_decode_status = msgspec.json.Decoder(Status).decode


class View(NamedTuple):
    name: str
    state: str
    restarts: int
    status: Status | None  # from the last query that was answered, or from the journal
    reason: str = ""  # why it does not run, or cannot be asked
    is_private: bool = False  # whether the network computes private sums


def query_status(config: NodeConfig) -> Status | None:
    """Return a node's status from its status page; None if nothing answers there, or another program does."""
    answer = fetch(config, "/status", MAX_RESPONSE_BYTES)
    return None if answer is None else _read_answer(config, answer)


def _read_answer(config: NodeConfig, answer: bytes) -> Status | None:
    try:
        found = _decode_status(answer)
    except msgspec.DecodeError:
        return None
    return found if (found.network, found.node) == (config.network.id, config.node.name) else None


def fetch(config: NodeConfig, path: str, max_bytes: int) -> bytes | None:
    """Return one of a node's pages; None if nothing answers there."""
    if not config.node.status_page:
        return None
    try:
        host, port = parse(config.node.status_page)
        connection = http.client.HTTPConnection(
            LOOPBACK.get(host, host), port, timeout=TIMEOUT_SECONDS
        )
        with contextlib.closing(connection):
            connection.request("GET", path)
            return connection.getresponse().read(max_bytes)
    except (OSError, http.client.HTTPException, InputError):
        return None


def read_status(folder: Path) -> Status:
    """Return the status of the node in a folder, whether it is running or not."""
    return query_status(read_node(folder / NODE_FILE)) or status_from_journal(folder)


def view_network(folder: Path) -> list[View]:
    network = load_network(folder)
    folders, is_private = (
        [folder / name for name in network.nodes],
        network.network.private is not None,
    )
    with ThreadPoolExecutor(QUERY_THREADS) as pool:
        views = [
            _view(one, status)
            for one, status in zip(folders, pool.map(_try_query, folders), strict=True)
        ]
    return [view._replace(is_private=is_private) for view in views]


def _try_query(folder: Path) -> Status | None:
    try:
        return query_status(read_node(folder / NODE_FILE))
    except GostaError:
        return None


def _view(folder: Path, status: Status | None) -> View:
    try:
        status = status or status_from_journal(folder)
    except (GostaError, sqlite3.Error) as error:  # such as a journal that is being made
        if not folder.is_dir():
            return View(folder.name, "not on this machine", 0, None)
        return View(
            folder.name, "no answer" if lock.is_running(folder) else "stopped", 0, None, str(error)
        )
    return View(folder.name, status.state, 0, status)


class Poller:
    """Queries the nodes of a network on this machine, or one node, again and again."""

    def __init__(self, folder: Path) -> None:
        """`folder` is a network's, or a node's."""
        self.folder = folder
        self.network: NetworkConfig | None = (
            load_network(folder) if (folder / NETWORK_FILE).exists() else None
        )
        self.task = (
            read_node(folder / NODE_FILE).network if self.network is None else self.network.network
        )
        self._modified: dict[Path, int] = {}
        self._configs: dict[Path, NodeConfig] = {}
        self._statuses: dict[Path, Status] = {}  # of the last answers
        self._stopped: dict[Path, View] = {}  # of nodes that have not answered so far

    async def views(self) -> list[View]:
        """Query all nodes at once; a node that does not answer keeps its last status."""
        with contextlib.suppress(InputError, OSError):  # a file that is being edited
            if self.network is not None and self._is_modified(self.folder / NETWORK_FILE):
                self.network = load_network(self.folder)
        folders = (
            [self.folder]
            if self.network is None
            else [self.folder / name for name in self.network.nodes]
        )
        return await asyncio.gather(*map(self._view, folders))

    async def _view(self, folder: Path) -> View:
        config = self._config(folder)
        found = None if config is None else await _query_status(config)
        if found is not None:
            self._statuses[folder] = found
            return View(found.node, found.state, 0, found)
        if config is None or not lock.is_running(folder):
            return self._view_stopped(folder)
        state = (
            "no answer"
            if time.time() - (folder / LOCK_FILE).stat().st_mtime > START_SECONDS
            else "starting"
        )
        state = state if config.node.status_page else "no status page"
        return View(config.node.name, state, 0, self._statuses.get(folder))

    def _config(self, folder: Path) -> NodeConfig | None:
        try:
            if self._is_modified(folder / NODE_FILE):
                self._configs[folder] = read_node(folder / NODE_FILE)
        except (GostaError, OSError):  # a file that is being edited, or is not on this machine
            pass
        return self._configs.get(folder)

    def _view_stopped(self, folder: Path) -> View:
        """Return the last status, or what the journal says; it is not read again unless it changed."""
        name = self._configs[folder].node.name if folder in self._configs else folder.name
        if folder in self._statuses and folder.is_dir():
            return View(name, "stopped", 0, self._statuses[folder])
        if folder not in self._stopped or self._is_modified(folder / JOURNAL_FILE):
            self._stopped[folder] = _view(folder, None)
        return self._stopped[folder]._replace(name=name)

    def _is_modified(self, path: Path) -> bool:
        """Return whether a file is another than at the last call."""
        modified = path.stat().st_mtime_ns if path.exists() else 0
        before, self._modified[path] = self._modified.get(path), modified
        return modified != before


async def _query_status(config: NodeConfig) -> Status | None:
    """Return a node's status as `query_status` does, without a thread."""
    if not config.node.status_page:
        return None
    host, port = parse(config.node.status_page)
    request = f"GET /status HTTP/1.0\r\nHost: {Address(host, port)}\r\n\r\n".encode()
    writer = None
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            reader, writer = await asyncio.open_connection(LOOPBACK.get(host, host), port)
            writer.write(request)
            answer = bytearray()
            while len(answer) <= MAX_RESPONSE_BYTES and (
                part := await reader.read(MAX_RESPONSE_BYTES)
            ):
                answer += part
    except OSError:  # TimeoutError is one
        return None
    finally:
        if writer is not None:
            writer.transport.abort()
    head, _, body = bytes(answer).partition(b"\r\n\r\n")
    return _read_answer(config, body) if head.split(b" ", 2)[1:2] == [b"200"] else None


def spread(statuses: Sequence[Status]) -> tuple[tuple[float, ...], float] | None:
    """Return the mean of the nodes' estimates and the largest relative distance from it; None if one has none."""
    estimates = [status.estimate for status in statuses if status.estimate]
    if not estimates or len(estimates) < len(statuses) or len(set(map(len, estimates))) > 1:
        return None
    mean = tuple(math.fsum(parts) / len(estimates) for parts in zip(*estimates, strict=True))
    return mean, max(
        relative_distance(estimate, mean, statuses[0].statistics) for estimate in estimates
    )


def all_within(statuses: Sequence[Status], error: float) -> bool:
    """Return whether all nodes have an estimate over all sites, of the latest epoch, that is accurate enough."""
    epoch = max((status.epoch for status in statuses), default=0)
    if any(
        status.sums is not None for status in statuses
    ):  # a site that does not take part has no result
        is_done = all(
            one.state in ("complete", "suppressed") and one.epoch == epoch for one in statuses
        )
        return is_done and any(one.state == "complete" for one in statuses)
    errors = [
        one.expected_error for one in statuses if one.estimate_epoch == epoch and not one.missing
    ]
    return len(errors) == len(statuses) and all(
        expected is not None and expected <= error for expected in errors
    )
