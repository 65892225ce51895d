"""Verifying a stopped network, and replaying it, from the journals of all its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gosta.errors import NetworkError, shorten
from gosta.estimation.estimand import Estimand, relative_errors
from gosta.estimation.exchange import Estimator, LocalRows, exchange, first_state
from gosta.net.audit import consistency
from gosta.net.audit.consistency import Exchange
from gosta.net.audit.findings import Finding, Problems
from gosta.net.config import Task
from gosta.net.deploy.network import Network
from gosta.net.node import lock
from gosta.net.node.restore import load_peer
from gosta.net.node.source import fingerprint
from gosta.net.protocol.peer import Peer
from gosta.net.protocol.records import Record
from gosta.views import numbers

ERROR_TOLERANCE = 3.0  # relative errors may be this many times the largest expected one
MIN_TOLERANCE = 0.01  # relative error that is always allowed
UNKNOWN_TOLERANCE = 0.5  # relative error where there were too few exchanges to expect one

Edges = Sequence[tuple[consistency.End, consistency.End]]


class Journals(NamedTuple):
    """The journals of all nodes of a network, and their rows together."""

    task: Task
    folder: Path  # of a node, with the files that the task names
    peers: dict[str, Peer]
    records: dict[str, list[Record]]  # of the last epoch

    @property
    def estimand(self) -> Estimand:
        estimands = [peer.estimator.rows.estimand for peer in self.peers.values()]
        return estimands[0].over(np.concatenate([estimand.x for estimand in estimands]))

    @property
    def truncated(self) -> list[str]:
        """Nodes whose journals no longer have all exchanges of the epoch."""
        return [
            name
            for name, kept in self.records.items()
            if len(consistency.exchanges_in(kept)) < self.peers[name].estimator.exchanges
        ]

    def exchanges(self) -> list[Exchange]:
        """Return all exchanges of the epoch, in an order that agrees with every journal."""
        if self.truncated:
            lost = f"{self.truncated[0]} no longer has the first exchanges of this epoch"
            raise NetworkError(
                f"{lost}: its journal keeps the last ones only, see keep_exchanges in node.toml"
            )
        return consistency.order_exchanges(self.records, self.peers)


def load_journals(folder: Path) -> Journals:
    network = Network.read(folder).config
    peers, records = {}, {}
    for name in network.nodes:
        if lock.is_running(folder / name):
            raise NetworkError(
                f"{name} is running, and its journal changes; stop the network first"
            )
        _, peer, journal = load_peer(folder / name)
        records[name] = journal.load_epoch()[1]
        journal.close()
        if peer.identity.fingerprint != fingerprint(network.network, folder):
            raise NetworkError(
                f"[network] in {name}/node.toml and in network.toml differ; correct one of them"
            )
        assert isinstance(peer, Peer)
        peers[name] = peer
        if peer.epoch == 0:
            raise NetworkError(
                f"{name} has not started an epoch: "
                "it ended right after its start, see its log.jsonl"
            )
        if peer.digest != peer.source.digest:
            why = "its files changed after it stopped; restore them, or run the network again first"
            raise NetworkError(
                f"{name} has other rows, neighbours or settings than in its last epoch: {why}"
            )
    return Journals(network.network, folder / next(iter(peers)), peers, records)


def verify(journals: Journals) -> list[Finding]:
    """Return all findings; only the first one if the nodes are in different epochs."""
    epochs = sorted({peer.epoch for peer in journals.peers.values()})
    same = Finding(
        "all nodes are in one epoch", len(epochs) == 1, f"epoch {', '.join(map(str, epochs))}"
    )
    if not same.holds:
        return [same]
    found = consistency.find_edges(journals.records, journals.peers)
    findings = [
        same,
        _check_visitors(journals),
        _check_counts(found),
        _check_exchanges(journals, found),
    ]
    # Without TLS, nothing is signed.
    if all(peer.trust.members for peer in journals.peers.values()):
        findings.append(_check_receipts(found))
    return [*findings, *_check_estimates(journals)]


def _check_visitors(journals: Journals) -> Finding:
    peers = journals.peers
    wrong = consistency.find_lost_or_duplicated(peers)
    waiting = [name for name in peers if consistency.unconfirmed(peers, name) is not None]
    copies = {peer.copies for peer in peers.values()} - {1}
    each = "".join(f" nodes, {count} each" for count in copies)
    evidence = f"{len(peers) - len(wrong)} of {len(peers)}{each}, {len(waiting)} of them in transit"
    return Problems(wrong).finding("every visitor exists exactly once", evidence)


def _check_counts(ends: Edges) -> Finding:
    claim = (
        "both ends of every edge count the same exchanges, "
        "with the same digest of all that was sent"
    )
    evidence = f"{numbers.count(len(ends), 'edge')} with exchanges"
    return Problems(consistency.find_different_counts(ends)).finding(claim, evidence)


def _check_exchanges(journals: Journals, ends: Edges) -> Finding:
    claim = "both sides have the same exchanges, in an order that agrees with both journals"
    if not journals.truncated:
        try:
            return Finding(claim, True, f"{len(journals.exchanges()):,} exchanges")
        except NetworkError as error:
            return Finding(claim, False, str(error))
    common, wrong = consistency.compare_kept(ends)
    total = sum(first.total for first, _ in ends)
    lost = f"{shorten(journals.truncated)} deleted the first ones (keep_exchanges in node.toml)"
    same = "" if wrong else " are the same at both"
    evidence = f"the {common:,} of {total:,} that both sides still have{same}"
    differing = [f"those of {pair} differ" for pair in wrong]
    return Problems(differing, [lost]).finding(claim, evidence)


def _check_receipts(ends: Edges) -> Finding:
    claim = "the neighbours' last signatures are over the exchanges that the journals have"
    checked = consistency.check_receipts(ends)
    if not checked.signatures:
        return Finding(claim, None, "nothing is signed yet")
    evidence = (
        f"{checked.signatures:,} signatures over {checked.signed:,} "
        f"of the {checked.exchanges:,} at either side"
    )
    unknown = [f"exchanges after the one for {pair} were deleted" for pair in checked.unknown]
    return Problems(checked.wrong, unknown).finding(claim, evidence)


def _check_estimates(journals: Journals) -> list[Finding]:
    """Compare the estimates of each statistic with its value over all rows."""
    found = {name: peer.report() for name, peer in journals.peers.items()}
    reports = [report for report in found.values() if report is not None]
    if len(reports) < len(found):
        missing = ", ".join(name for name, report in found.items() if report is None)
        return [Finding("every node has an estimate", False, f"none at {missing}")]
    estimand = journals.estimand
    values, findings = np.array([report.value for report in reports]), []
    for k, place in enumerate(estimand.value_places):
        parts = [report.statistics[k] if report.statistics else report for report in reports]
        exact = estimand.value[place]
        errors = relative_errors(values[:, place], exact)
        tolerance, why = _tolerance([part.expected_error for part in parts])
        evidence = (
            f"exact {numbers.number(exact.tolist())}; error {numbers.error(errors.mean())} on "
            f"average, {numbers.error(errors.max())} at most; tolerance "
            f"{numbers.error(tolerance)}, {why}"
        )
        subject = f" of {reports[0].statistics[k].statistic}" if reports[0].statistics else ""
        claim = f"estimates{subject} agree with the value over all rows"
        findings.append(Finding(claim, bool(errors.max() <= tolerance), evidence))
    return findings


def _tolerance(expected: Sequence[float | None]) -> tuple[float, str]:
    """Return the relative error that estimates may have, and why, from what nodes expect."""
    known = [error for error in expected if error is not None]
    if len(known) < len(expected):
        return UNKNOWN_TOLERANCE, "too few exchanges for an expected error"
    tolerance = max(MIN_TOLERANCE, ERROR_TOLERANCE * max(known))
    return tolerance, "from the errors that the nodes expect"


class Replay(NamedTuple):
    """What replaying an epoch found."""

    exchanges: int  # that were replayed
    nodes: int  # whose states were compared
    differing: list[str]  # nodes whose state differs in any bit
    waiting: list[str]  # nodes that wait for a confirmation, and are not compared


def replay(journals: Journals) -> Replay:
    """Compute an epoch's exchanges again, and compare the states of nodes that do not wait."""
    nodes: dict[str, Estimator] = {}
    for name, peer in journals.peers.items():
        rows = LocalRows(peer.estimator.rows.estimand)
        protocol = peer.estimator.protocol
        nodes[name] = Estimator(name, protocol, rows, first_state(rows, protocol))
    exchanges = journals.exchanges()
    for done in exchanges:
        exchange(nodes[done.initiator], nodes[done.responder], done.edge_share)
    behind = {done.responder for done in exchanges if not done.is_confirmed}
    compared = {name: node for name, node in nodes.items() if name not in behind}
    peers = journals.peers
    differing = [
        name
        for name, node in compared.items()
        if node.snapshot() != peers[name].estimator.snapshot()
    ]
    return Replay(len(exchanges), len(compared), differing, sorted(behind))
