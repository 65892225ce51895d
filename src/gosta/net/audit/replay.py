"""Replaying a network: its recorded exchanges computed again, without messages or journals."""

from __future__ import annotations

from typing import NamedTuple

from gosta.estimation.exchange import Site, Table
from gosta.net.audit.verify import Journals


class Replay(NamedTuple):
    """The number of exchanges replayed and of nodes compared, and the nodes whose state differs in any bit."""

    exchanges: int
    nodes: int
    differing: list[str]


def replay(journals: Journals) -> Replay:
    """Compute the exchanges of an epoch again from the nodes' rows, and compare the final states bit for bit.

    Nodes whose last reply is still in transit are not compared.
    """
    problem, protocol = journals.problem, journals.protocol
    first = problem.first_states(protocol)
    sites = {
        name: Site(name, protocol, Table(own), state)
        for name, own, state in zip(journals.peers, problem.at_nodes, first, strict=True)
    }
    exchanges = journals.exchanges()
    for exchange in exchanges:
        pair = sites[exchange.initiator], sites[exchange.responder]
        sides = [site.side(exchange.edge_share) for site in pair]
        for site, theirs in zip(pair, reversed(sides), strict=True):
            site.meet(theirs, exchange.edge_share)
    behind = {exchange.initiator for exchange in exchanges if exchange.initiator_record is None}
    compared = {name: site for name, site in sites.items() if name not in behind}
    differing = [name for name, site in compared.items() if site.memory() != journals.peers[name].site.memory()]
    return Replay(len(exchanges), len(compared), differing)
