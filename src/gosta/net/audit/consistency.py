"""Invariants over all nodes of a network: every visitor exists once, and both sides have the same exchanges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gosta.errors import NetworkError
from gosta.estimation.exchange import Visitor
from gosta.net.protocol import messages as wire
from gosta.net.protocol.peer import Peer
from gosta.net.protocol.records import ExchangeCompleted


class Exchange(NamedTuple):
    """An exchange with the records of both sides; the initiator may not have received the reply yet."""

    initiator: str
    responder: str
    id: int
    initiator_record: ExchangeCompleted | None
    responder_record: ExchangeCompleted

    @property
    def edge_share(self) -> float:
        """The share of exchanges over this edge, at the end where it is smaller."""
        reply = wire.decode(self.responder_record.reply)
        assert isinstance(reply, wire.Accept)
        return min(self.responder_record.theirs.edge_share, reply.contribution.edge_share)


def locate_visitors(peers: Mapping[str, Peer]) -> dict[str, Visitor]:
    """Return the visitor at each node, or in the accepting reply that is in transit to it."""
    found = {name: peer.estimator.visitors[0] for name, peer in peers.items()}
    for name, peer in peers.items():
        reply = reply_in_transit(peers, name)
        if reply is not None and reply.epoch == peer.epoch:
            found[name] = reply.contribution.visitor
    return found


def reply_in_transit(peers: Mapping[str, Peer], name: str) -> wire.Accept | None:
    """Return the acceptance of a node's pending offer, if it was sent and has not arrived."""
    initiator = peers[name]
    if initiator.pending is None or initiator.pending.to not in peers:
        return None
    last = peers[initiator.pending.to].replies.get(name)
    if last is None or (last.incarnation, last.id) != (initiator.incarnation, initiator.pending.id):
        return None
    reply = wire.decode(last.message)
    return reply if isinstance(reply, wire.Accept) else None


def find_lost_or_duplicated(peers: Mapping[str, Peer]) -> list[str]:
    """Return the homes whose visitor does not exist exactly once."""
    homes = Counter(visitor.home for visitor in locate_visitors(peers).values())
    return sorted(name for name in {*homes, *peers} if homes[name] != 1 or name not in peers)


def order_exchanges(records: Mapping[str, Sequence[ExchangeCompleted]], peers: Mapping[str, Peer]) -> list[Exchange]:
    """Return an epoch's exchanges in an order that agrees with all journals; raise `NetworkError` if there is none."""
    remaining = {name: list(reversed(own)) for name, own in records.items()}
    ordered: list[Exchange] = []
    candidates = list(remaining)
    while candidates:
        name = candidates.pop()
        pending = peers[name].pending
        if remaining[name] and remaining[name][-1].is_initiator:
            name = remaining[name][-1].partner
        elif not remaining[name] and pending is not None:
            name = pending.to
        if not remaining.get(name) or remaining[name][-1].is_initiator:
            continue
        second = remaining[name][-1]
        initiator = second.partner
        theirs = remaining.get(initiator, [])
        if theirs and theirs[-1].is_initiator and (theirs[-1].partner, theirs[-1].id) == (name, second.id):
            first = theirs.pop()
        elif not theirs and initiator in peers and reply_in_transit(peers, initiator) is not None:
            first = None
        else:
            continue
        remaining[name].pop()
        ordered.append(Exchange(initiator, name, second.id, first, second))
        candidates += [name, initiator]
    rest = ", ".join(f"{len(own)} of {name}" for name, own in remaining.items() if own)
    if rest:
        raise NetworkError(f"the journals do not match: the other side lacks exchanges, or has another order: {rest}")
    return ordered
