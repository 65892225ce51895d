"""Replaying a network: its recorded exchanges computed again, without messages or journals."""

from __future__ import annotations

from typing import NamedTuple

from gosta.estimation.exchange import Estimator, LocalRows, exchange, first_state
from gosta.net.audit.verify import Journals


class Replay(NamedTuple):
    """The number of exchanges replayed and of nodes compared, and the nodes whose state differs in any bit."""

    exchanges: int
    nodes: int
    differing: list[str]
    # nodes that wait for the confirmation of their last exchange, and are not compared
    waiting: list[str]


def replay(journals: Journals) -> Replay:
    """Compute an epoch's exchanges again and compare final states, except of nodes that wait for a confirmation."""
    nodes: dict[str, Estimator] = {}
    for name, peer in journals.peers.items():
        rows = LocalRows(peer.estimator.rows.estimand)
        protocol = peer.estimator.protocol
        nodes[name] = Estimator(name, protocol, rows, first_state(rows, protocol))
    exchanges = journals.exchanges()
    for one in exchanges:
        exchange(nodes[one.initiator], nodes[one.responder], one.edge_share)
    behind = {one.responder for one in exchanges if not one.is_confirmed}
    compared = {name: node for name, node in nodes.items() if name not in behind}
    peers = journals.peers
    differing = [
        name
        for name, node in compared.items()
        if node.snapshot() != peers[name].estimator.snapshot()
    ]
    return Replay(len(exchanges), len(compared), differing, sorted(behind))
