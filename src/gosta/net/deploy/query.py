"""The status of nodes: of a running node over HTTP, of a stopped one from its journal."""

from __future__ import annotations

import contextlib
import http.client
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from gosta.errors import GostaError, InputError
from gosta.net.addresses import parse
from gosta.net.config import NODE_FILE, NodeConfig, read_node
from gosta.net.deploy.folders import load_network
from gosta.net.node import lock
from gosta.net.node.status import Status
from gosta.net.node.stopped import status_from_journal
from gosta.net.protocol.report import relative_distance

TIMEOUT_SECONDS = 2.0
MAX_RESPONSE_BYTES = 1 << 22  # a status with 30,000 neighbours
QUERY_THREADS = 32
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # where to reach a node that listens on all interfaces


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
    try:
        found = None if answer is None else _decode_status(answer)
    except msgspec.DecodeError:
        return None
    is_node = found is not None and (found.network, found.node) == (config.network.id, config.node.name)
    return found if is_node else None


def fetch(config: NodeConfig, path: str, max_bytes: int) -> bytes | None:
    """Return one of a node's pages; None if nothing answers there."""
    if not config.node.status_page:
        return None
    try:
        host, port = parse(config.node.status_page)
        connection = http.client.HTTPConnection(LOOPBACK.get(host, host), port, timeout=TIMEOUT_SECONDS)
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
    folders, is_private = [folder / name for name in network.nodes], network.network.private is not None
    with ThreadPoolExecutor(QUERY_THREADS) as pool:
        views = [_view(one, status) for one, status in zip(folders, pool.map(_try_query, folders), strict=True)]
    return [view._replace(is_private=is_private) for view in views]


def _try_query(folder: Path) -> Status | None:
    try:
        return query_status(read_node(folder / NODE_FILE))
    except GostaError:
        return None


def _view(folder: Path, status: Status | None) -> View:
    try:
        status = status or status_from_journal(folder)
    except GostaError as error:
        if not folder.is_dir():
            return View(folder.name, "not on this machine", 0, None)
        return View(folder.name, "no answer" if lock.is_running(folder) else "stopped", 0, None, str(error))
    return View(folder.name, status.state, 0, status)


def spread(statuses: Sequence[Status]) -> tuple[tuple[float, ...], float] | None:
    """Return the mean of the nodes' estimates and the largest relative distance from it; None if one has none."""
    estimates = [status.estimate for status in statuses if status.estimate]
    if not estimates or len(estimates) < len(statuses) or len(set(map(len, estimates))) > 1:
        return None
    mean = tuple(math.fsum(parts) / len(estimates) for parts in zip(*estimates, strict=True))
    return mean, max(relative_distance(estimate, mean, statuses[0].statistics) for estimate in estimates)


def all_within(statuses: Sequence[Status], error: float) -> bool:
    """Return whether all nodes have an estimate over all sites, of the latest epoch, that is accurate enough."""
    epoch = max((status.epoch for status in statuses), default=0)
    if any(status.sums is not None for status in statuses):  # a site that does not take part has no result
        is_done = all(one.state in ("complete", "suppressed") and one.epoch == epoch for one in statuses)
        return is_done and any(one.state == "complete" for one in statuses)
    errors = [one.expected_error for one in statuses if one.estimate_epoch == epoch and not one.missing]
    return len(errors) == len(statuses) and all(expected is not None and expected <= error for expected in errors)
