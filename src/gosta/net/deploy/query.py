"""The status of nodes: of a running node over HTTP, of a stopped one from its journal."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import sqlite3
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from gosta.errors import GostaError, InputError, NetworkError
from gosta.net.addresses import parse
from gosta.net.config import JOURNAL_FILE, LOCK_FILE, NETWORK_FILE, NODE_FILE, NodeConfig
from gosta.net.deploy.network import Network, is_network, task_of
from gosta.net.deploy.node_folder import NodeFolder
from gosta.net.node import lock
from gosta.net.node.restore import load_peer
from gosta.net.node.status import Neighbour, Status, make_status

TIMEOUT_SECONDS = 2.0
MAX_RESPONSE_BYTES = 1 << 22  # a status with 30,000 neighbours
QUERY_THREADS = 32
START_SECONDS = 10.0  # for a node to start and answer
# Where to reach a node that listens on all interfaces.
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}

# Made once: msgspec crashes where several threads use a type for the first time.
_decode_status = msgspec.json.Decoder(Status).decode


class View(NamedTuple):
    """What is known of a node now."""

    name: str
    state: str
    restarts: int
    status: Status | None  # from the last query that was answered, or from the journal
    reason: str = ""  # why it does not run, or cannot be asked
    is_private: bool = False  # whether the network computes private sums


def query_status(config: NodeConfig) -> Status | None:
    """Return a node's status from its status page; None if the node does not answer there."""
    answer = fetch(config, "/status", MAX_RESPONSE_BYTES)
    if answer is None:
        return None
    try:
        status = _decode_status(answer)
    except msgspec.DecodeError:
        return None
    is_this_node = (status.network, status.node) == (config.network.id, config.node.name)
    return status if is_this_node else None


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


def status_from_journal(folder: Path) -> Status:
    """Return the last status of a node that is not running."""
    if lock.is_running(folder):
        why = "the node is running but does not answer, or has no status_page in node.toml"
        raise NetworkError(f"{folder}: {why}")
    config, peer, journal = load_peer(folder)
    with contextlib.closing(journal):
        neighbours = tuple(
            Neighbour(name, exchanges=peer.exchanges_with(name)) for name in config.neighbours
        )
        return make_status(config, peer, neighbours, state="stopped")


def read_status(folder: Path) -> Status:
    """Return the status of the node in a folder, whether it is running or not."""
    return query_status(NodeFolder(folder).read()) or status_from_journal(folder)


def query_all(configs: Sequence[NodeConfig | None]) -> list[Status | None]:
    """Return the statuses of nodes, which are queried at once; None where there is none."""
    with ThreadPoolExecutor(QUERY_THREADS) as pool:
        queries = [
            None if config is None else pool.submit(query_status, config) for config in configs
        ]
        return [None if query is None else query.result() for query in queries]


def view_network(folder: Path) -> list[View]:
    """Query all nodes of a network."""
    network = Network.read(folder)
    nodes = [network.node(name) for name in network.config.nodes]
    statuses = query_all([_try_read(node) for node in nodes])
    is_private = network.task.private is not None
    return [
        _view(node, status)._replace(is_private=is_private)
        for node, status in zip(nodes, statuses, strict=True)
    ]


def _try_read(node: NodeFolder) -> NodeConfig | None:
    try:
        return node.read()
    except GostaError:
        return None


def _view(node: NodeFolder, status: Status | None) -> View:
    try:
        status = status or status_from_journal(node.path)
    except (GostaError, sqlite3.Error) as error:  # such as a journal that is being made
        if not node.path.is_dir():
            return View(node.name, "not on this machine", 0, None)
        state = "no answer" if node.is_running else "stopped"
        return View(node.name, state, 0, None, str(error))
    return View(node.name, status.state, 0, status)


class Poller:
    """Queries the nodes of a network on this machine, or one node, again and again."""

    def __init__(self, folder: Path) -> None:
        """`folder` is a network's, or a node's."""
        self.folder = folder
        self.network = Network.read(folder).config if is_network(folder) else None
        self.task = task_of(folder)
        self._modified: dict[Path, int] = {}
        self._configs: dict[NodeFolder, NodeConfig] = {}
        self._statuses: dict[NodeFolder, Status] = {}  # from the last answers
        self._stopped: dict[NodeFolder, View] = {}  # of nodes that have not answered so far

    async def views(self) -> list[View]:
        """Query all nodes at once; a node that does not answer keeps its last status."""
        with contextlib.suppress(InputError, OSError):  # a file that is being edited
            if self.network is not None and self._is_modified(self.folder / NETWORK_FILE):
                self.network = Network.read(self.folder).config
        nodes = [NodeFolder(self.folder)]
        if self.network is not None:
            nodes = [NodeFolder(self.folder / name) for name in self.network.nodes]
        configs = [self._config(node) for node in nodes]
        statuses = await asyncio.to_thread(query_all, configs)
        return list(map(self._view, nodes, configs, statuses))

    def _view(self, node: NodeFolder, config: NodeConfig | None, status: Status | None) -> View:
        if status is not None:
            self._statuses[node] = status
            return View(status.node, status.state, 0, status)
        if config is None or not node.is_running:
            return self._view_stopped(node)
        state = "starting"
        if time.time() - (node.path / LOCK_FILE).stat().st_mtime > START_SECONDS:
            state = "no answer"
        if not config.node.status_page:
            state = "no status page"
        return View(config.node.name, state, 0, self._statuses.get(node))

    def _config(self, node: NodeFolder) -> NodeConfig | None:
        try:
            if self._is_modified(node.path / NODE_FILE):
                self._configs[node] = node.read()
        except (GostaError, OSError):  # a file that is being edited, or is not on this machine
            pass
        return self._configs.get(node)

    def _view_stopped(self, node: NodeFolder) -> View:
        """Return the last status, or what the journal says, which is read again if it changed."""
        name = self._configs[node].node.name if node in self._configs else node.name
        if node in self._statuses and node.path.is_dir():
            return View(name, "stopped", 0, self._statuses[node])
        if node not in self._stopped or self._is_modified(node.path / JOURNAL_FILE):
            self._stopped[node] = _view(node, None)
        return self._stopped[node]._replace(name=name)

    def _is_modified(self, path: Path) -> bool:
        """Return whether a file is another than at the last call."""
        modified = path.stat().st_mtime_ns if path.exists() else 0
        before, self._modified[path] = self._modified.get(path), modified
        return modified != before


def all_within(statuses: Sequence[Status], error: float) -> bool:
    """Return whether all nodes have an accurate estimate over all sites, of the latest epoch."""
    epoch = max((status.epoch for status in statuses), default=0)
    if any(status.sums is not None for status in statuses):
        # A site that does not take part has no result.
        states = {status.state for status in statuses}
        is_current = all(status.epoch == epoch for status in statuses)
        return is_current and "complete" in states and states <= {"complete", "suppressed"}
    return all(
        status.estimate_epoch == epoch
        and not status.missing
        and status.expected_error is not None
        and status.expected_error <= error
        for status in statuses
    )
