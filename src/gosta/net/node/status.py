"""The status of a node: what its pages, `gosta status` and Prometheus report."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from gosta.net.config import NodeConfig
from gosta.net.protocol.peer import Peer
from gosta.net.protocol.report import value_of


class Neighbour(msgspec.Struct, frozen=True):
    """A neighbour as seen by the node."""

    name: str
    connected: bool
    exchanges: int  # with this node, in this epoch
    silent_seconds: float | None  # since its last message; None: none so far
    difference: float | None  # relative distance of its last estimate from the node's own
    mismatch: str = ""  # the setting, such as "statistic", in which the two differ, so that they do not exchange


class PendingOffer(msgspec.Struct, frozen=True):
    to: str
    seconds: float  # since it was sent first


class Status(msgspec.Struct, frozen=True):
    """The state of a node, its estimate and its neighbours at one moment."""

    node: str
    network: str
    statistic: str
    protocol: str
    state: str  # "running", "disconnected", "mismatch", "waiting for reply", "disk error", "stopped"
    epoch: int
    exchanges: int  # in this epoch
    rows: int  # its own
    rows_seen: int  # held by the nodes whose visitors it has seen, its own included
    nodes_seen: int
    estimate: tuple[float, ...] | None
    low: float | None  # ends of the confidence interval
    high: float | None
    confidence_level: float | None
    expected_error: float | None  # relative error of gossip that the node expects
    estimate_epoch: int  # an earlier epoch's estimate is reported until this epoch's is better
    max_difference: float | None  # the largest `difference` of a neighbour
    pending_offer: PendingOffer | None
    neighbours: tuple[Neighbour, ...]
    counters: dict[str, int] = {}  # events since the node started: "offers", "busy", "rejected: REASON", ...
    uptime_seconds: float | None = None  # None: read from the journal of a stopped node


def make_status(config: NodeConfig, peer: Peer, neighbours: tuple[Neighbour, ...], **fields: Any) -> Status:
    """Return a status with all fields that follow from a peer filled in."""
    report, estimator, task = peer.report(), peer.estimator, config.network
    return Status(
        node=peer.identity.name,
        network=task.id,
        statistic=task.statistic,
        protocol=task.protocol,
        epoch=peer.epoch,
        exchanges=estimator.exchanges,
        rows=estimator.rows.count,
        rows_seen=estimator.known_rows,
        nodes_seen=len(estimator.homes),
        estimate=report.value if report else None,
        low=report.low if report else None,
        high=report.high if report else None,
        confidence_level=task.confidence_level,
        expected_error=report.expected_error if report else None,
        estimate_epoch=report.epoch if report else peer.epoch,
        neighbours=neighbours,
        max_difference=max((one.difference for one in neighbours if one.difference is not None), default=None),
        **fields,
    )


def difference(own: tuple[float, ...] | None, peer: Peer, neighbour: str) -> float | None:
    """Return the relative distance of a neighbour's last payload from the node's own estimate."""
    theirs = value_of(peer.estimator, peer.payloads[neighbour]) if neighbour in peer.payloads else None
    if own is None or theirs is None or not any(own):
        return None
    return math.dist(own, theirs) / math.hypot(*own)
