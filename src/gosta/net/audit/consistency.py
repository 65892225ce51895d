"""Invariants over all nodes: every visitor exists once, both sides have the same exchanges.

What the two ends of each edge say about their exchanges is compared also after their records were
deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from gosta.errors import NetworkError
from gosta.net.protocol import messages as wire
from gosta.net.protocol.peer import EMPTY, Peer, Transcript
from gosta.net.protocol.records import (
    EpochStarted,
    ExchangeAccepted,
    ExchangeCompleted,
    ExchangeConfirmed,
    Record,
)

AnyExchange = ExchangeAccepted | ExchangeCompleted


class Exchange(NamedTuple):
    """An exchange with the records of both sides.

    The responder may not have received the confirmation yet.
    """

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
    """Return home and number of all visitors, also those in exchanges that are not confirmed."""
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
    """Return the exchange that a node accepted and its partner completed, if not confirmed."""
    accepted = peers[name].accepted
    if accepted is None or accepted.partner not in peers:
        return None
    initiator = peers[accepted.partner]
    is_same_epoch = initiator.epoch == peers[name].epoch
    is_completed = is_same_epoch and initiator.completed.get(name) == accepted.id
    return accepted if is_completed else None


def find_lost_or_duplicated(peers: Mapping[str, Peer]) -> list[str]:
    """Return the homes of which a visitor does not exist exactly once."""
    found = Counter(locate_visitors(peers))
    expected = Counter((name, copy) for name, peer in peers.items() for copy in range(peer.copies))
    return sorted({home for home, _ in [*(found - expected), *(expected - found)]})


def order_exchanges(
    records: Mapping[str, Sequence[Record]], peers: Mapping[str, Peer]
) -> list[Exchange]:
    """Return an epoch's exchanges in an order that agrees with all journals.

    Raise `NetworkError` if there is none.
    """
    remaining: dict[str, list[AnyExchange]] = {}
    for name, recorded in records.items():
        waiting = unconfirmed(peers, name)
        remaining[name] = [
            *([] if waiting is None else [waiting]),
            *reversed(exchanges_in(recorded)),
        ]
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
        if not isinstance(second, ExchangeAccepted):
            continue
        if (second.partner, second.id) != (name, first.id):
            continue
        is_confirmed = second is not peers[first.partner].accepted
        ordered.append(Exchange(name, first.partner, first, second, is_confirmed))
        remaining[name].pop()
        remaining[first.partner].pop()
        candidates += [name, first.partner]
    rest = ", ".join(f"{len(left)} of {name}" for name, left in remaining.items() if left)
    if rest:
        raise NetworkError(
            "the journals do not match: "
            f"the other side lacks exchanges, or has another order: {rest}"
        )
    return ordered


# Edges.


class End(NamedTuple):
    """One end of an edge."""

    peer: Peer
    partner: str
    transcript: Transcript
    total: int  # of its exchanges with the partner, with one that is not confirmed
    kept: list[AnyExchange]  # the last of them that its journal has

    def record(self, number: int) -> AnyExchange | None:
        """Return the record of an exchange, counted from 1."""
        place = number - 1 - (self.total - len(self.kept))
        return self.kept[place] if 0 <= place < len(self.kept) else None


class Coverage(NamedTuple):
    """Signatures of neighbours: how many, over how many exchanges of how many.

    The wrong ones; the unknown ones.
    """

    signatures: int
    signed: int
    exchanges: int
    wrong: list[str]
    unknown: list[str]


def find_edges(
    records: Mapping[str, Sequence[Record]], peers: Mapping[str, Peer]
) -> list[tuple[End, End]]:
    """Return both ends of the edges with exchanges."""
    kept: dict[tuple[str, str], list[AnyExchange]] = {}
    waiting = {name: unconfirmed(peers, name) for name in peers}
    for name, recorded in records.items():
        last = waiting[name]
        for record in [*exchanges_in(recorded), *([] if last is None else [last])]:
            kept.setdefault((name, record.partner), []).append(record)

    def end(name: str, partner: str) -> End:
        transcript, last = peers[name].transcripts.get(partner, EMPTY), waiting[name]
        count = transcript.exchanges + (last is not None and last.partner == partner)
        return End(peers[name], partner, transcript, count, kept.get((name, partner), []))

    both = [(end(a, b), end(b, a)) for a, b in combinations(peers, 2)]
    return [(first, second) for first, second in both if first.total or second.total]


def find_different_counts(edges: Sequence[tuple[End, End]]) -> list[str]:
    """Return the edges whose ends count other exchanges, or have other digests of them."""
    wrong = []
    for first, second in edges:
        a, b = second.partner, first.partner
        is_confirmed = first.transcript.exchanges == second.transcript.exchanges
        if first.total != second.total:
            wrong.append(f"{a} counts {first.total:,} with {b}, and {b} {second.total:,} with {a}")
        elif is_confirmed and first.transcript != second.transcript:
            wrong.append(f"{a} and {b} have other numbers in their {first.total:,} exchanges")
    return wrong


def compare_kept(edges: Sequence[tuple[End, End]]) -> tuple[int, list[str]]:
    """Return how many exchanges both ends still have, and the edges where these differ."""
    common, wrong = 0, []
    for first, second in edges:
        count = min(len(first.kept), len(second.kept))
        common += count
        pairs = zip(first.kept[-count:] if count else [], second.kept[-count:], strict=False)
        if any(
            one.id != other.id or _is_accepted(one) == _is_accepted(other) for one, other in pairs
        ):
            wrong.append(f"{second.partner} and {first.partner}")
    return common, wrong


def check_receipts(edges: Sequence[tuple[End, End]]) -> Coverage:
    """Check that neighbours' last signatures, and later exchanges, lead to the states."""
    signatures = signed = total = 0
    wrong: list[str] = []
    unknown: list[str] = []
    for own, other in (ends for edge in edges for ends in (edge, edge[::-1])):
        total += own.transcript.exchanges
        receipt = own.peer.receipts.get(own.partner)
        if receipt is None:
            continue
        signatures, signed = signatures + 1, signed + receipt.exchanges
        content = wire.signed_receipt(
            own.peer.identity.network, own.partner, own.peer.name, receipt
        )
        is_genuine = own.peer.trust.verify(own.partner, content, receipt.signature)
        reached = _continue(Transcript(receipt.exchanges, receipt.digest), own, other)
        if reached is None:
            unknown.append(f"{own.partner} for {own.peer.name}")
        elif not is_genuine or receipt.epoch != own.peer.epoch or reached != own.transcript:
            wrong.append(f"{own.partner} for {own.peer.name}")
    return Coverage(signatures, signed, total, wrong, unknown)


def _continue(transcript: Transcript, own: End, other: End) -> Transcript | None:
    """Continue a transcript with the exchanges after it; None if their records were deleted."""
    for number in range(transcript.exchanges + 1, own.transcript.exchanges + 1):
        first, second = own.record(number), other.record(number)
        if first is None or second is None:
            return None
        accepted, completed = (first, second) if _is_accepted(first) else (second, first)
        transcript = transcript.extended(first.id, accepted.theirs, completed.theirs)
    return transcript


def _is_accepted(record: AnyExchange) -> bool:
    return isinstance(record, ExchangeAccepted)
