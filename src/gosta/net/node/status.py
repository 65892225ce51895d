"""The status of a node: what its pages, `gosta status` and Prometheus report."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from gosta.net.config import NodeConfig
from gosta.net.node.rejections import Rejection
from gosta.net.protocol.peer import Peer
from gosta.net.protocol.report import PartReport, value_of
from gosta.sketches.layout import StratumResult

# What each state of a node means: first those that it is in by itself.
OWN_STATES = {
    "running": "It exchanges with neighbours.",
    "converged": "Its expected error is at most until in its node.toml: it offers no exchange, and accepts those of "
    "others.",
    "stalled": "It is connected, but has had no exchange for five seconds, or the usual time of twenty exchanges: "
    "neighbours are silent or busy, or one side rejects what the other sends.",
    "alone": "All neighbours that answer are in another epoch, and one side does not follow the other; the rejections, "
    "here and there, have the reason.",
    "joining": "Private sums: it waits for the sites that have not joined the epoch yet, until the deadline.",
    "contributing": "Private sums: it waits for contributions of participants, until the deadline.",
    "complete": "Private sums: the contributions of all participants are in.",
    "suppressed": "Private sums: the policy of this site, or of another participant, forbids the release, or an "
    "agreement is missing.",
    "implausible": "Private sums: no rows can have such a total, so that a contribution is wrong; who deviates is "
    "named and left out, where that can be found out.",
    "disconnected": "No neighbour is connected; the log has the reason.",
    "mismatch": "No neighbour is connected, and at least one computes something else, is of another network or runs "
    "another version; the list of neighbours names the setting that differs.",
    "row limit reached": "Its own rows were sent as often as max_disclosures in its node.toml allows: it takes part "
    "in no exchange.",
    "disk error": "Its journal cannot be written. It closed its connections, so that nobody waits for it, and "
    "retries every second; nothing is lost.",
    "withdrawn": "Its data file was deleted, or its policy cannot be read or forbids what runs: it takes part in "
    "nothing. Its rows are no longer in the estimate; of private sums, the last result with them stays shown.",
}
# Then those that `gosta status` and `gosta network up` see from outside.
STATES = {
    **OWN_STATES,
    "stopped": "It does not run; what is shown is from its journal.",
    "starting": "Its process was started and does not answer yet.",
    "no answer": "Its process runs, but its status page does not answer.",
    "restarting soon": "Its process ended, and will be started again.",
    "failed": "Its process ended with exit code 2: its files have to be corrected before it is started again.",
    "no status page": "It runs, and status_page in its node.toml is empty.",
    "not on this machine": "Its folder is somewhere else.",
}


class Neighbour(msgspec.Struct, frozen=True):
    """A neighbour as seen by the node."""

    name: str
    exchanges: int  # with this node, in this epoch
    connected: bool = False
    alive: bool = False  # heard from within the last two seconds
    silent_seconds: float | None = None  # since its last message; None: none so far
    round_trip_seconds: float | None = None
    difference: float | None = None  # relative distance of its last estimate from the node's own
    epoch: int = 0  # that it announced last
    mismatch: str = ""  # the setting, such as "statistic", in which the two differ, so that they do not exchange
    suspended_seconds: float = (
        0.0  # for which it is still suspended, after too many messages that were rejected
    )
    via: str = ""  # forwarder through which it is connected; empty: directly


class SumStatus(msgspec.Struct, frozen=True):
    """What a node of private sums reports."""

    results: tuple[StratumResult, ...]  # of the last release
    participants: tuple[str, ...]  # in it
    left_out: tuple[str, ...]  # members that were not
    joined: tuple[str, ...]  # in the current epoch
    missing: tuple[str, ...]  # participants of the current epoch that have not contributed
    refused: tuple[str, ...]  # participants whose policy forbids the current epoch's release
    reason: str  # of the state, for this site only
    law: str  # of the release's noise: "none", "laplace" or "gaussian"
    epsilon: float  # of a release; 0: no noise
    delta: float
    spent_epsilon: float  # by all contributions of this site
    epsilon_budget: float
    contributions: int  # of this site so far
    releases: int
    layout: str  # fingerprint of the sums
    release_time: float | None  # in seconds since 1970
    rows_of: (
        float | None
    )  # when the rows that this site contributes were read from its file; None: it has none
    why_older: str  # why these are not the rows of the file; empty if they are
    needed_agreements: tuple[str, ...]  # sites whose agreement a participant waits for
    left_out_reasons: dict[
        str, str
    ]  # what sites did that are left out, as far as this one would leave them out too


class Status(msgspec.Struct, frozen=True):
    """The state of a node, its estimate and its neighbours at one moment."""

    node: str
    network: str
    statistic: str
    protocol: str
    state: str  # "running", "converged", "stalled", "alone", "disconnected", ...: see docs/how-to/network.md
    epoch: int
    epoch_origin: str  # the node that started it
    epoch_reason: str
    exchanges: int  # in this epoch
    rows: int  # its own
    rows_seen: int  # held by the sites whose rows count in the estimate
    rows_declared: int  # by all members; 0: not all have declared
    sites_seen: int  # whose rows count in the estimate
    sites: int  # members of the network; 0: there is no member list
    missing: tuple[str, ...]  # members whose rows do not count in the estimate
    estimate: tuple[float, ...] | None
    low: float | None  # ends of the confidence interval; of several statistics in `statistics`
    high: float | None
    confidence_level: float | None
    expected_error: float | None  # relative error of gossip that the node expects
    estimate_epoch: int  # an earlier epoch's estimate is reported until this epoch's is better
    max_difference: float | None  # the largest `difference` of a neighbour
    neighbours: tuple[Neighbour, ...]
    rejections: tuple[Rejection, ...] = ()  # since the node started, the latest first
    reload_error: str = ""  # why changed files are not in use
    proposed_list: int = (
        0  # serial number of a newer member list that waits to be accepted; 0: none
    )
    disk_error: str = ""  # why the journal cannot be written
    counters: dict[
        str, int
    ] = {}  # events since the node started: "offers", "rejected: REASON", ...
    sums: SumStatus | None = None  # of a node of private sums
    value_errors: tuple[
        float | None, ...
    ] = ()  # `expected_error` of each value, where the statistic has several
    statistics: tuple[PartReport, ...] = ()  # each of several that are estimated together
    row_values: tuple[
        float, ...
    ] = ()  # of its own complete rows, of a statistic with a value for each
    uptime_seconds: float | None = None  # None: read from the journal of a stopped node
    version: str = ""  # of gosta
    list_serial: int = 0  # serial number of its member list; 0: there is none
    epoch_time: float | None = (
        None  # when it entered the epoch, or started in it; in seconds since 1970
    )
    journal_bytes: int = 0  # on the disk
    list_fingerprint: str = ""  # of that list, to be compared with other sites'
    list_conflict: str = ""  # why the member list cannot be trusted
    certificate_ends: dict[
        str, float
    ] = {}  # of "node", "authority" and "coordinator"; in seconds since 1970


def make_status(
    config: NodeConfig, peer: Peer, neighbours: tuple[Neighbour, ...], **fields: Any
) -> Status:
    """Return a status with all fields that follow from a peer filled in."""
    report, estimator, task, members = (
        peer.report(),
        peer.estimator,
        config.network,
        peer.trust.members,
    )
    current = (
        len(estimator.homes),
        estimator.known_rows,
        tuple(name for name in members if name not in estimator.homes),
    )
    sites_seen, rows_seen, missing = (
        (report.sites, report.rows, report.missing) if report else current
    )
    return Status(
        node=peer.identity.name,
        network=task.id,
        statistic=task.statistic,
        protocol=task.protocol,
        epoch=peer.epoch,
        epoch_origin=peer.announcement.origin,
        epoch_reason=peer.announcement.reason,
        exchanges=estimator.exchanges,
        rows=estimator.rows.count,
        rows_seen=rows_seen,
        rows_declared=sum(members.values()) if all(members.values()) else 0,
        sites_seen=sites_seen,
        sites=len(members),
        missing=missing,
        estimate=report.value if report else None,
        low=report.low if report else None,
        high=report.high if report else None,
        confidence_level=task.confidence_level,
        expected_error=report.expected_error if report else None,
        value_errors=report.value_errors if report else (),
        statistics=report.statistics if report else (),
        estimate_epoch=report.epoch if report else peer.epoch,
        row_values=tuple(estimator.row_values().tolist())
        if estimator.rows.estimand.statistic.is_per_row
        else (),
        neighbours=neighbours,
        max_difference=max(
            (one.difference for one in neighbours if one.difference is not None), default=None
        ),
        **fields,
    )


def difference(own: tuple[float, ...] | None, peer: Peer, neighbour: str) -> float | None:
    """Return the relative distance of a neighbour's last payload from the node's own estimate."""
    theirs = (
        value_of(peer.estimator, peer.payloads[neighbour]) if neighbour in peer.payloads else None
    )
    if own is None or theirs is None or not any(own):
        return None
    estimand = peer.estimator.rows.estimand
    return max(
        math.dist(own[one], theirs[one]) / (math.hypot(*own[one]) or 1.0)
        for one in estimand.value_places
    )
