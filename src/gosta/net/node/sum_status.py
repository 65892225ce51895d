"""The status of a node that contributes to private sums."""

from __future__ import annotations

from typing import Any

from gosta.net.config import NodeConfig
from gosta.net.node.status import Neighbour, Status, SumStatus
from gosta.net.protocol.sum_reasons import explain
from gosta.net.protocol.sums import SumPeer
from gosta.private.accounting import total_epsilon


def make_sum_status(
    config: NodeConfig, peer: SumPeer, neighbours: tuple[Neighbour, ...], **fields: Any
) -> Status:
    """Return a status with all fields that follow from a peer filled in."""
    report, task, policy = peer.report, config.network, peer.source.policy
    first = report.results[0] if report is not None and report.results else None
    has_value = first is not None and first.has_value
    rows, why_older = peer.choice()
    spent = [one.spent for one in peer.history() if one.spent is not None]
    sums = SumStatus(
        results=() if report is None else report.results,
        participants=() if report is None else report.participants,
        left_out=()
        if report is None
        else tuple(name for name in report.left_out if name in peer.members),
        joined=tuple(sorted(name for name, join in peer.current.joins.items() if join.key)),
        missing=tuple(peer.missing()),
        refused=tuple(peer.current.refusals),
        reason=""
        if fields.get("state") == "stopped" and not peer.current.suppressed
        else explain(peer),
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
    interval = first.interval if first is not None and has_value else None
    return Status(
        node=peer.name,
        network=task.id,
        statistic=task.statistic,
        protocol="private sums",
        epoch=peer.epoch,
        epoch_origin=peer.announcement.origin,
        epoch_reason=peer.announcement.reason,
        exchanges=0,
        rows=peer.source.file_rows.rows,
        rows_seen=0 if first is None else max(0, round(first.rows)),
        rows_declared=0,
        sites_seen=len(sums.participants),
        sites=len(peer.members),
        missing=sums.left_out,
        estimate=first.value if first is not None and has_value else None,
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        confidence_level=task.confidence_level,
        expected_error=0.0 if has_value else None,
        estimate_epoch=peer.epoch if report is None else report.epoch,
        max_difference=None,
        neighbours=neighbours,
        sums=sums,
        **fields,
    )
