"""The status of a node: what its pages, `gosta status` and Prometheus report."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from gosta.net.config import NodeConfig
from gosta.net.node.contact import Rejection
from gosta.net.protocol.epochs import NodePeer
from gosta.net.protocol.peer import Peer
from gosta.net.protocol.records import PartReport
from gosta.net.protocol.report import value_of
from gosta.net.protocol.sums import SumPeer
from gosta.private.accounting import total_epsilon
from gosta.sketches.results import StratumResult

# Prefix of counters that have a table and a metric of their own.
REJECTED = "rejected: "
# What may happen to a site's sums if a total is without it, or with it again.
RISK = "sums could be computed from the totals with and without it"
NO_SUM = "the total cannot be a sum over rows"
# What each state of a node means: first those that it is in by itself.
OWN_STATES = {
    "running": "It exchanges with neighbours.",
    "converged": "Its expected error is at most until in its node.toml: it offers no exchange, and "
    "accepts those of others.",
    "stalled": "It is connected, but has had no exchange for five seconds, or the usual time of "
    "twenty exchanges: neighbours are silent or busy, or one side rejects what the other sends.",
    "alone": "All neighbours that answer are in another epoch, and one side does not follow the "
    "other; the rejections, here and there, have the reason.",
    "joining": "Private sums: it waits for the sites that have not joined the epoch yet, until the "
    "deadline.",
    "contributing": "Private sums: it waits for contributions of participants, until the deadline.",
    "complete": "Private sums: the contributions of all participants are in.",
    "suppressed": "Private sums: the policy of this site, or of another participant, forbids the "
    "release, or an agreement is missing.",
    "implausible": "Private sums: no rows can have such a total, so that a contribution is wrong; "
    "who deviates is named and left out, where that can be found out.",
    "disconnected": "No neighbour is connected; the log has the reason.",
    "mismatch": "No neighbour is connected, and at least one computes something else, is of "
    "another network or runs another version; the list of neighbours names the setting that "
    "differs.",
    "row limit reached": "Its own rows were sent as often as max_disclosures in its node.toml "
    "allows: it takes part in no exchange.",
    "disk error": "Its journal cannot be written. It closed its connections, so that nobody waits "
    "for it, and retries every second; nothing is lost.",
    "withdrawn": "Its data file was deleted, or its policy cannot be read or forbids what runs: it "
    "takes part in nothing. Its rows are no longer in the estimate; of private sums, the last "
    "result with them stays shown.",
}
# Then those that `gosta status` and `gosta network up` see from outside.
STATES = {
    **OWN_STATES,
    "stopped": "It does not run; what is shown is from its journal.",
    "starting": "Its process was started and does not answer yet.",
    "no answer": "Its process runs, but its status page does not answer.",
    "restarting soon": "Its process ended, and will be started again.",
    "failed": "Its process ended with exit code 2: its files have to be corrected before it is "
    "started again.",
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
    # The setting, such as "statistic", in which the two differ, so that they do not exchange.
    mismatch: str = ""
    # How long it is still suspended, after too many messages that were rejected.
    suspended_seconds: float = 0.0
    via: str = ""  # forwarder through which it is connected; empty: directly


class SumStatus(msgspec.Struct, frozen=True):
    """What a node of private sums reports."""

    results: tuple[StratumResult, ...]  # of the last release
    participants: tuple[str, ...]  # in the last release
    left_out: tuple[str, ...]  # members that were not in the last release
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
    # When the rows that this site contributes were read from its file; None: it has none.
    rows_of: float | None
    why_older: str  # why these are not the rows of the file; empty if they are
    needed_agreements: tuple[str, ...]  # sites whose agreement a participant waits for
    # What sites did that are left out, as far as this one would leave them out too.
    left_out_reasons: dict[str, str]


class Status(msgspec.Struct, frozen=True):
    """The state of a node, its estimate and its neighbours at one moment."""

    node: str
    network: str
    statistic: str
    protocol: str
    state: str  # "running", "converged", "stalled", "disconnected", ...: see docs/how-to/network.md
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
    # Serial number of a newer member list that waits to be accepted; 0: none.
    proposed_list: int = 0
    disk_error: str = ""  # why the journal cannot be written
    # Events since the node started: "offers", "rejected: REASON", ...
    counters: dict[str, int] = {}
    sums: SumStatus | None = None  # of a node of private sums
    # `expected_error` of each value, where the statistic has several.
    value_errors: tuple[float | None, ...] = ()
    statistics: tuple[PartReport, ...] = ()  # each of several that are estimated together
    # Values of its own complete rows, of a statistic with a value for each row.
    row_values: tuple[float, ...] = ()
    uptime_seconds: float | None = None  # None: read from the journal of a stopped node
    version: str = ""  # of gosta
    list_serial: int = 0  # serial number of its member list; 0: there is none
    # When it entered the epoch, or started in it; in seconds since 1970.
    epoch_time: float | None = None
    journal_bytes: int = 0  # on the disk
    list_fingerprint: str = ""  # of that list, to be compared with other sites'
    list_conflict: str = ""  # why the member list cannot be trusted
    # When the certificates of "node", "authority" and "coordinator" end; in seconds since 1970.
    certificate_ends: dict[str, float] = {}


def make_status(
    config: NodeConfig, peer: NodePeer, neighbours: tuple[Neighbour, ...], state: str, **fields: Any
) -> Status:
    """Return a status; `fields` are those that only the running node knows."""
    task, announcement = config.network, peer.announcement
    differences = [one.difference for one in neighbours if one.difference is not None]
    if isinstance(peer, Peer):
        protocol, of_peer = task.protocol, _fields_of_rows(peer)
    else:
        assert isinstance(peer, SumPeer)
        protocol, of_peer = "private sums", _fields_of_sums(peer, state)
    return Status(
        node=peer.name,
        network=task.id,
        statistic=task.statistic,
        protocol=protocol,
        state=state,
        epoch=announcement.epoch,
        epoch_origin=announcement.origin,
        epoch_reason=announcement.reason,
        sites=len(peer.trust.members),
        confidence_level=task.confidence_level,
        max_difference=max(differences, default=None),
        neighbours=neighbours,
        **of_peer,
        **fields,
    )


def _fields_of_rows(peer: Peer) -> dict[str, Any]:
    """Return the fields of a status that follow from a peer that exchanges rows."""
    report, estimator, members = peer.report(), peer.estimator, peer.trust.members
    has_row_values = estimator.rows.estimand.statistic.is_per_row
    fields: dict[str, Any] = {
        "exchanges": estimator.exchanges,
        "rows": estimator.rows.count,
        "rows_declared": sum(members.values()) if all(members.values()) else 0,
        "row_values": tuple(estimator.row_values().tolist()) if has_row_values else (),
    }
    if report is None:
        return fields | {
            "rows_seen": estimator.known_rows,
            "sites_seen": len(estimator.homes),
            "missing": tuple(name for name in members if name not in estimator.homes),
            "estimate": None,
            "low": None,
            "high": None,
            "expected_error": None,
            "estimate_epoch": peer.epoch,
        }
    return fields | {
        "rows_seen": report.rows,
        "sites_seen": report.sites,
        "missing": report.missing,
        "estimate": report.value,
        "low": report.low,
        "high": report.high,
        "expected_error": report.expected_error,
        "value_errors": report.value_errors,
        "statistics": report.statistics,
        "estimate_epoch": report.epoch,
    }


def _fields_of_sums(peer: SumPeer, state: str) -> dict[str, Any]:
    """Return the fields of a status that follow from a peer that contributes to private sums."""
    report, sums = peer.report, _sums_of(peer, state)
    first = report.results[0] if report is not None and report.results else None
    has_value = first is not None and first.has_value
    interval = first.interval if first is not None and has_value else None
    values = first.value if first is not None and has_value else ()
    return {
        "exchanges": 0,
        "rows": peer.source.file_rows.rows,
        "rows_seen": 0 if first is None else max(0, round(first.rows or 0)),
        "rows_declared": 0,
        "sites_seen": len(sums.participants),
        "missing": sums.left_out,
        "estimate": tuple(value for value in values if value is not None) or None,
        "low": interval[0] if interval else None,
        "high": interval[1] if interval else None,
        "expected_error": 0.0 if has_value else None,
        "estimate_epoch": peer.epoch if report is None else report.epoch,
        "sums": sums,
    }


def _sums_of(peer: SumPeer, state: str) -> SumStatus:
    report, epoch, policy = peer.report, peer.current, peer.source.policy
    rows, why_older = peer.choice()
    spent = [past.spent for past in peer.history() if past.spent is not None]
    has_reason = state != "stopped" or bool(epoch.suppressed)
    left_out = () if report is None else report.left_out
    return SumStatus(
        results=() if report is None else report.results,
        participants=() if report is None else report.participants,
        left_out=tuple(name for name in left_out if name in peer.members),
        joined=tuple(sorted(name for name, join in epoch.joins.items() if join.key)),
        missing=tuple(peer.missing()),
        refused=tuple(epoch.refusals),
        reason=explain(peer) if has_reason else "",
        law="none" if report is None else report.law,
        epsilon=peer.source.settings.epsilon or 0.0,
        delta=peer.source.settings.delta,
        spent_epsilon=total_epsilon(spent, policy.delta_budget) if spent else 0.0,
        epsilon_budget=policy.epsilon_budget,
        contributions=sum(entry.event == "contribution" for entry in peer.log),
        releases=sum(entry.event == "release" for entry in peer.log),
        layout=peer.source.layout.fingerprint,
        release_time=None if report is None else report.time,
        rows_of=None if rows is None else rows.time,
        why_older=why_older,
        needed_agreements=peer.needed_agreements,
        left_out_reasons=peer.left_out_reasons(),
    )


def difference(estimate: tuple[float, ...] | None, peer: Peer, neighbour: str) -> float | None:
    """Return the relative distance of a neighbour's last payload from the node's own estimate."""
    payload = peer.payloads.get(neighbour)
    theirs = None if payload is None else value_of(peer.estimator, payload)
    if estimate is None or theirs is None or not any(estimate):
        return None
    return max(
        math.dist(estimate[place], theirs[place]) / (math.hypot(*estimate[place]) or 1.0)
        for place in peer.estimator.rows.estimand.value_places
    )


# Why a node of private sums is in its state.


def explain(peer: SumPeer) -> str:
    """Return the reason of the state of a node of private sums, in words for its operator.

    It may tell the number of this site's rows, so it is for this site only.
    """
    epoch = peer.current
    if peer.conflict:
        return peer.conflict
    if others := peer.other_lists():
        lists = ", ".join(f"{name} has list {epoch.joins[name].list_serial}" for name in others)
        accept = "at all sites: gosta node accept FOLDER"
        return f"this site has member list {peer.trust.serial}, {lists}; {accept}"
    if epoch.suppressed and not (peer.name in epoch.refusals and epoch.refusals[peer.name].needs):
        return f"declined by this site: {epoch.suppressed}"
    if epoch.refusals:
        reasons = [_explain_need(peer, name) for name in peer.needed_agreements]
        refusals = epoch.refusals.items()
        others = [name for name, said in refusals if not said.needs and name != peer.name]
        if others:
            reasons.append(f"declined by {', '.join(others)}, whose own status says why")
        return "; ".join(reasons)
    if epoch.implausible is not None:
        return _explain_implausible(peer)
    if peer.is_left_out():
        if peer.has_noise:
            return "left out of this epoch; the status of others says why"
        return f"left out of this epoch, as its {RISK}; if it agrees to that: {_agree(peer.name)}"
    match peer.state():
        case "joining":
            return _explain_joining(peer)
        case "contributing":
            return f"no contribution yet of {', '.join(peer.missing())}"
    return ""


def _explain_joining(peer: SumPeer) -> str:
    joins = peer.current.joins
    if peer.name not in joins:
        return "this site has not joined yet"
    silent = [name for name in peer.members if name not in joins]
    if not silent:
        return ""
    waits = f"waits for {peer.source.settings.deadline_seconds:g} s at most"
    remove = f"the coordinator: gosta network remove NETWORK {min(silent)}"
    return f"not joined yet: {', '.join(silent)}; {waits}; to go on without it at once, {remove}"


def _explain_need(peer: SumPeer, name: str) -> str:
    """Return who waits for the agreement of a site, why, and what to do."""
    refusals, join = peer.current.refusals.items(), peer.current.joins.get(name)
    waiting = [refusing for refusing, said in refusals if name in said.needs]
    who = f"{', '.join(waiting)} {'waits' if len(waiting) == 1 else 'wait'}"
    if peer.memory.companions and name not in peer.missing_agreements(peer.current.participants):
        return f"{who} for an agreement about {name}, and this site finds no reason for that"
    if name == peer.name:
        return f"{who}, since this site's {RISK}; to agree: {_agree(name)}"
    if join is not None and join.key and not join.agrees:
        agree = f"it has to agree, there: gosta network agree ITS_FOLDER {name}"
        return f"{who}, since {name}'s {RISK}; {agree}"
    if peer.name not in waiting:
        return f"{who}, since {name}'s {RISK}"
    if join is not None and join.key:
        what = f"{name} has another key than in earlier totals, and the former site's {RISK}"
        return f"{what}; if it is the same site, or to go on all the same: {_agree(name)}"
    agree = f"wait for it, or agree to go on without it: {_agree(name)}"
    return f"{name} takes no part, and its {RISK}; {agree}"


def _agree(name: str) -> str:
    return f"gosta network agree FOLDER {name}"


def _explain_implausible(peer: SumPeer) -> str:
    round_, lacking = peer.current.implausible, peer.missing()
    if peer.name in lacking and round_ is not None and (why := peer.opening_over_budget(round_)):
        return f"{NO_SUM}, and this site cannot help to find out why: {why}"
    if lacking:
        return f"{NO_SUM}; not opened yet by {', '.join(lacking)}"
    if peer.current.suspects:
        pairs = " and ".join(f"{first} or {second}" for first, second in peer.current.suspects)
        return f"{NO_SUM}: {pairs} deviates; the coordinator has to remove one"
    return (
        f"{NO_SUM}, and nobody deviates by so much that it can be said who; the coordinator has to "
        "leave out sites one after the other"
    )
