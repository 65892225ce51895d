"""Nodes that receive single messages, and the states that follow."""

from __future__ import annotations

from typing import Any

import msgspec

from gosta.net.protocol import messages as wire
from gosta.net.protocol.epochs import Moment, Step
from gosta.net.protocol.peer import Peer

NOW = 1.8e9  # seconds since 1970
replace = msgspec.structs.replace


def apply(peer: Peer, step: Step) -> None:
    for record in step.records:
        peer.apply(record)


def state_of(peer: Peer) -> tuple[Any, ...]:
    return peer.epoch, peer.pending, peer.accepted, peer.transcripts, peer.trips, peer.snapshot()


def receive(
    peer: Peer, sender: str, message: wire.AnyMessage | bytes, now: float = NOW
) -> list[wire.AnyMessage]:
    """Let a peer handle a message, and return its answers."""
    answers = []
    decoded = wire.decode(message) if isinstance(message, bytes) else message
    for step in peer.handle(sender, decoded, Moment(now, now)):
        apply(peer, step)
        answers += [wire.decode(raw) for _, raw in step.messages]
    return answers


def offer_of(peer: Peer, to: str, id: int) -> wire.Offer:
    message = wire.decode(peer.offer(to, id).messages[0][1])
    assert isinstance(message, wire.Offer)
    return message
