"""Querying running nodes for their status over HTTP."""

from __future__ import annotations

import http.client
import math
from collections.abc import Sequence

import msgspec

from gosta.errors import InputError
from gosta.net.addresses import parse
from gosta.net.config import NodeConfig
from gosta.net.node.status import Status

TIMEOUT_SECONDS = 2.0
MAX_RESPONSE_BYTES = 1 << 22  # a status with 30,000 neighbours
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # where to reach a node that listens on all interfaces


def query_status(config: NodeConfig, timeout_seconds: float = TIMEOUT_SECONDS) -> Status | None:
    """Return a node's status from its status page; None if nothing answers there, or another program does."""
    if not config.node.status_page:
        return None
    try:
        host, port = parse(config.node.status_page)
        connection = http.client.HTTPConnection(LOOPBACK.get(host, host), port, timeout=timeout_seconds)
        try:
            connection.request("GET", "/status")
            found = msgspec.json.decode(connection.getresponse().read(MAX_RESPONSE_BYTES), type=Status)
            return found if (found.network, found.node) == (config.network.id, config.node.name) else None
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, msgspec.DecodeError, InputError):
        return None


def spread(statuses: Sequence[Status]) -> tuple[tuple[float, ...], float] | None:
    """Return the mean of the nodes' estimates and the largest relative distance of one of them from it.

    None if a node has no estimate, or estimates differ in length.
    """
    estimates = [status.estimate for status in statuses if status.estimate]
    if not estimates or len(estimates) < len(statuses) or len(set(map(len, estimates))) > 1:
        return None
    mean = tuple(math.fsum(parts) / len(estimates) for parts in zip(*estimates, strict=True))
    farthest = max(math.dist(mean, estimate) for estimate in estimates)
    return mean, farthest / (math.hypot(*mean) or 1.0)


def all_within(statuses: Sequence[Status], error: float) -> bool:
    """Return whether every node has an estimate of the latest epoch with at most this expected error."""
    epoch = max((status.epoch for status in statuses), default=0)
    return all(
        status.expected_error is not None and status.expected_error <= error and status.estimate_epoch == epoch
        for status in statuses
    )
