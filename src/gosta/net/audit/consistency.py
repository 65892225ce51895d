"""Invariants over all nodes of a network: every visitor exists once, and both sides have the same exchanges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gosta.errors import NetworkError
from gosta.net.protocol.peer import Peer
from gosta.net.protocol.records import (
    EpochStarted,
    ExchangeAccepted,
    ExchangeCompleted,
    ExchangeConfirmed,
    Record,
)

AnyExchange = ExchangeAccepted | ExchangeCompleted


class Exchange(NamedTuple):
    """An exchange with the records of both sides; the responder may not have received the confirmation yet."""

    initiator: str
    responder: str
    initiator_record: ExchangeCompleted
    responder_record: ExchangeAccepted
    is_confirmed: bool

    @property
    def edge_share(self) -> float:
        """The share of exchanges over this edge, at the end where it is smaller."""
        return min(self.initiator_record.theirs.edge_share, self.responder_record.theirs.edge_share)


def exchanges_in(records: Sequence[Record]) -> list[AnyExchange]:
    """Return the exchanges that took place according to a node's records."""
    found: list[AnyExchange] = []
    accepted: ExchangeAccepted | None = None
    for record in records:
        match record:
            case EpochStarted():
                found, accepted = [], None
            case ExchangeAccepted():
                accepted = record
            case ExchangeConfirmed() if accepted is not None:
                found.append(accepted)
            case ExchangeCompleted():
                found.append(record)
    return found


def locate_visitors(peers: Mapping[str, Peer]) -> list[tuple[str, int]]:
    """Return home and number of the visitors at all nodes, or in the offers that they accepted and that took place."""
    found = []
    for name, peer in peers.items():
        homes, seals = [visitor.home for visitor in peer.estimator.visitors], list(peer.seals)
        waiting = unconfirmed(peers, name)
        if waiting is not None:
            slot = peer.estimator.leaving(waiting.partner)
            homes[slot], seals[slot] = waiting.theirs.visitor.home, waiting.seal
        found += [(home, seal.trip % peer.copies) for home, seal in zip(homes, seals, strict=True)]
    return found


def unconfirmed(peers: Mapping[str, Peer], name: str) -> ExchangeAccepted | None:
    """Return the exchange that a node accepted and its partner completed, if the confirmation has not arrived."""
    accepted = peers[name].accepted
    if accepted is None or accepted.partner not in peers:
        return None
    initiator = peers[accepted.partner]
    is_completed = (
        initiator.epoch == peers[name].epoch and initiator.completed.get(name) == accepted.id
    )
    return accepted if is_completed else None


def find_lost_or_duplicated(peers: Mapping[str, Peer]) -> list[str]:
    """Return the homes of which a visitor does not exist exactly once."""
    found = Counter(locate_visitors(peers))
    expected = Counter((name, copy) for name, peer in peers.items() for copy in range(peer.copies))
    return sorted({home for home, _ in [*(found - expected), *(expected - found)]})


def order_exchanges(
    records: Mapping[str, Sequence[Record]], peers: Mapping[str, Peer]
) -> list[Exchange]:
    """Return an epoch's exchanges in an order that agrees with all journals; raise `NetworkError` if there is none."""
    remaining: dict[str, list[AnyExchange]] = {}
    for name, own in records.items():
        waiting = unconfirmed(peers, name)
        remaining[name] = [*([] if waiting is None else [waiting]), *reversed(exchanges_in(own))]
    ordered: list[Exchange] = []
    candidates = list(remaining)
    while candidates:
        name = candidates.pop()
        first = remaining[name][-1] if remaining[name] else None
        if isinstance(first, ExchangeAccepted):
            name = first.partner
            first = remaining[name][-1] if remaining.get(name) else None
        if not isinstance(first, ExchangeCompleted):
            continue
        second = remaining[first.partner][-1] if remaining.get(first.partner) else None
        if not isinstance(second, ExchangeAccepted) or (second.partner, second.id) != (
            name,
            first.id,
        ):
            continue
        is_confirmed = second is not peers[first.partner].accepted
        ordered.append(Exchange(name, first.partner, first, second, is_confirmed))
        remaining[name].pop()
        remaining[first.partner].pop()
        candidates += [name, first.partner]
    rest = ", ".join(f"{len(own)} of {name}" for name, own in remaining.items() if own)
    if rest:
        raise NetworkError(
            f"the journals do not match: the other side lacks exchanges, or has another order: {rest}"
        )
    return ordered
