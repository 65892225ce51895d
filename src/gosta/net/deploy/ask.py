"""Asking nodes how they are, on their status pages."""

from __future__ import annotations

import http.client
import math
from collections.abc import Sequence

import msgspec

from gosta.errors import InputError
from gosta.net.addresses import parse
from gosta.net.config import NodeFile
from gosta.net.node.status import Status

SECONDS = 2.0  # until an answer is not waited for any more
MOST_BYTES = 1 << 22  # of an answer
HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # where to call a node that listens everywhere


def ask(node: NodeFile, seconds: float = SECONDS) -> Status | None:
    """What a node says of itself on its status page; None where nobody answers, or somebody else."""
    if not node.node.status:
        return None
    try:
        host, port = parse(node.node.status)
        connection = http.client.HTTPConnection(HERE.get(host, host), port, timeout=seconds)
        try:
            connection.request("GET", "/status")
            found = msgspec.json.decode(connection.getresponse().read(MOST_BYTES), type=Status)
            return found if (found.network, found.node) == (node.network.id, node.node.name) else None
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, msgspec.DecodeError, InputError):
        return None


def spread(statuses: Sequence[Status]) -> tuple[tuple[float, ...], float] | None:
    """The mean of the nodes' estimates, and the largest distance of one from it, relative to its size.

    None where a node has no estimate, or where their sizes differ.
    """
    estimates = [status.estimate for status in statuses if status.estimate]
    if not estimates or len(estimates) < len(statuses) or len(set(map(len, estimates))) > 1:
        return None
    mean = tuple(math.fsum(parts) / len(estimates) for parts in zip(*estimates, strict=True))
    farthest = max(math.dist(mean, estimate) for estimate in estimates)
    return mean, farthest / (math.hypot(*mean) or 1.0)


def within(statuses: Sequence[Status], error: float) -> bool:
    """Whether all nodes think that they are as near as that to the value, in the latest epoch."""
    epoch = max((status.epoch for status in statuses), default=0)
    return all(
        status.expected_error is not None and status.expected_error <= error and status.estimate_epoch == epoch
        for status in statuses
    )
