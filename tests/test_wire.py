"""The wire format: its test vectors, and messages that are rejected."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_network import VirtualNetwork

from gosta.net.config import Task
from gosta.net.node.source import fingerprint
from gosta.net.protocol import messages as wire
from gosta.net.protocol.peer import Peer
from gosta.net.protocol.records import EpochStarted, ExchangeCompleted

PAGE = (Path(__file__).parents[1] / "docs" / "wire.md").read_text(encoding="utf-8")
VECTORS = re.findall(r"```\n(.+)\n([0-9a-f]+)\n```", PAGE)
PARTS = [np.array([[0.5, 1.0], [1.5, -1.0], [2.5, 1.0]]), np.array([[0.0, -1.0], [1.0, 1.0]])]


def test_vectors_in_the_documentation() -> None:
    assert len(VECTORS) == 6
    for text, hexadecimal in VECTORS:
        raw = bytes.fromhex(hexadecimal)
        message = wire.decode(raw)
        assert wire.encode(message) == raw
        assert msgspec.msgpack.decode(raw) == json.loads(text)
        assert type(message).__struct_config__.tag == json.loads(text)[0]
    assert fingerprint(Task("0123456789abcdef", "auc"), Path()) in PAGE


def test_fingerprints_of_different_tasks_differ() -> None:
    tasks = [
        Task("0" * 16, "auc"),
        Task("0" * 16, "auc", protocol="gosta-async"),
        Task("0" * 16, "auc", confidence_level=0.95),
        Task("0" * 16, "auc", classes=("a", "b")),
        Task("0" * 16, "auc", classes=("b", "a")),
        Task("0" * 16, "kendall-tau"),
        Task("0" * 16, "kendall-tau", options={"variant": "b"}),
    ]
    assert len({fingerprint(task, Path()) for task in tasks}) == len(tasks)
    assert fingerprint(Task("1" * 16, "auc", columns=("a",), encoded_columns=2), Path()) == fingerprint(
        tasks[0], Path()
    )


def pair() -> tuple[Peer, wire.Offer]:
    """Return a peer, and an offer that it would accept."""
    network = VirtualNetwork(PARTS, [(0, 1)], statistic="auc", exchanges_per_second=0.0)
    first, second = network.peers.values()
    offer = wire.decode(first.offer("node-1").messages[0][1])
    assert isinstance(offer, wire.Offer)
    return second, offer


def state_of(peer: Peer) -> tuple[Any, ...]:
    return peer.epoch, peer.pending, peer.incarnations, peer.estimator.snapshot()


def reply_to(peer: Peer, message: wire.AnyMessage) -> wire.AnyMessage:
    (step,) = peer.receive("node-0", wire.encode(message))
    assert not any(isinstance(record, ExchangeCompleted | EpochStarted) for record in step.records)
    return wire.decode(step.messages[0][1])


def changed(offer: wire.Offer, **fields: Any) -> wire.Offer:
    return msgspec.structs.replace(offer, contribution=offer.contribution._replace(**fields))


def test_an_offer_is_accepted() -> None:
    peer, offer = pair()
    (step,) = peer.receive("node-0", wire.encode(offer))
    assert isinstance(wire.decode(step.messages[0][1]), wire.Accept)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("epoch", 2**40, "epoch"),
        ("version", 1, "version"),
        ("network", "f" * 16, "network"),
        ("fingerprint", "f" * 16, "statistic"),
        ("epoch", 0, "epoch"),
    ],
)
def test_offers_of_other_networks_are_declined_with_the_reason(field: str, value: Any, reason: str) -> None:
    peer, offer = pair()
    before = state_of(peer)
    reply = reply_to(peer, msgspec.structs.replace(offer, **{field: value}))
    assert isinstance(reply, wire.Decline)
    assert reply.reason == reason
    assert state_of(peer) == before


def invalid_contributions(offer: wire.Offer) -> list[wire.Offer]:
    payload, visitor = offer.contribution.payload, offer.contribution.visitor
    wrong = [
        changed(offer, payload=payload[:-1]),
        changed(offer, payload=(*payload, 0.0)),
        changed(offer, payload=(math.nan, 0.0)),
        changed(offer, payload=(math.inf, 0.0)),
        changed(offer, payload=(1e300, 0.0)),
        changed(offer, exchanges=-1),
        changed(offer, edge_share=0.0),
        changed(offer, edge_share=math.nan),
        changed(offer, edge_share=2.0),
        changed(offer, rows=0),
    ]
    parts: dict[str, Any] = {
        "home": "",
        "rows": 0,
        "sample": (*visitor.sample, visitor.sample[0]),
        "correction": (0.0,),
        "diagonal": (math.nan, 0.0),
    }
    wrong += [changed(offer, visitor=visitor._replace(**{name: value})) for name, value in parts.items()]
    rows = ((1.0,), (1.0, 1.0, 1.0), (math.nan, 1.0), (math.inf, 1.0), (-1e60, 1.0))
    wrong += [changed(offer, visitor=visitor._replace(sample=(row, *visitor.sample[1:]))) for row in rows]
    wrong.append(changed(offer, visitor=visitor._replace(home="h" * 65)))
    wrong.append(changed(offer, visitor=visitor._replace(home="node-1", rows=8, sample=visitor.sample)))
    return wrong


def test_invalid_visitors_and_numbers_are_declined_and_change_nothing() -> None:
    peer, offer = pair()
    before = state_of(peer)
    for wrong in invalid_contributions(offer):
        for more in ({}, {"epoch": offer.epoch + 1}, {"incarnation": offer.incarnation + 1}):
            reply = reply_to(peer, msgspec.structs.replace(wrong, **more))
            if more and wrong.contribution.visitor.home == "node-1":
                continue  # in another epoch it can have other rows
            assert isinstance(reply, wire.Decline), wrong
            assert reply.reason == "visitor"
            assert state_of(peer) == before
            assert peer.replies == {}
    for field in ("network", "fingerprint"):
        reply_to(peer, msgspec.structs.replace(offer, incarnation=offer.incarnation + 10**9, **{field: "another"}))
        assert peer.replies == {}


def test_an_invalid_accept_leaves_the_offer_pending() -> None:
    peer, offer = pair()
    for record in peer.offer("node-0").records:
        peer.apply(record)
    before = state_of(peer)
    for wrong in invalid_contributions(offer):
        head = (wrong.version, wrong.network, wrong.fingerprint, wrong.epoch, wrong.incarnation)
        with pytest.raises(wire.Rejected, match="visitor"):
            list(peer.receive("node-0", wire.encode(wire.Accept(*head, 1, wrong.contribution))))
        assert state_of(peer) == before


def test_replies_without_a_pending_offer_are_stale() -> None:
    peer, offer = pair()
    head = (offer.version, offer.network, offer.fingerprint, offer.epoch, offer.incarnation)
    for reply in (wire.Accept(*head, 1, offer.contribution), wire.Busy(*head, 1), wire.Decline(*head, 1, "no")):
        with pytest.raises(wire.Rejected, match="stale"):
            list(peer.receive("node-0", wire.encode(reply)))


def test_a_replayed_offer_gets_the_old_reply_or_none() -> None:
    peer, offer = pair()
    (step,) = peer.receive("node-0", wire.encode(offer))
    for record in step.records:
        peer.apply(record)
    for record in peer.offer("node-0").records:
        peer.apply(record)
    after = state_of(peer)
    (again,) = peer.receive("node-0", wire.encode(offer))
    assert (again.records, again.messages) == ((), step.messages)
    newer = msgspec.structs.replace(offer, id=offer.id + 5)
    (rejected,) = peer.receive("node-0", wire.encode(newer))
    assert isinstance(wire.decode(rejected.messages[0][1]), wire.Busy)
    for record in rejected.records:
        peer.apply(record)
    for late in (offer, changed(offer, exchanges=7), changed(newer, exchanges=7)):
        reply = reply_to(peer, late)
        assert isinstance(reply, wire.Decline)
        assert reply.reason == "stale"
    assert state_of(peer) == after


def test_replies_without_a_pending_offer_start_no_epoch() -> None:
    peer, offer = pair()
    before = state_of(peer)
    head = (offer.version, offer.network, offer.fingerprint, offer.epoch + 5, offer.incarnation + 1)
    for reply in (wire.Accept(*head, 1, offer.contribution), wire.Busy(*head, 1), wire.Decline(*head, 1, "epoch")):
        with pytest.raises(wire.Rejected, match="stale"):
            list(peer.receive("node-0", wire.encode(reply)))
    assert state_of(peer) == before


def test_a_decline_for_another_statistic_withdraws_the_offer() -> None:
    """Otherwise the offer would stay pending."""
    peer, offer = pair()
    for record in peer.offer("node-0").records:
        peer.apply(record)
    head = (offer.version, offer.network, "another", offer.epoch, offer.incarnation)
    (step,) = peer.receive("node-0", wire.encode(wire.Decline(*head, 1, "statistic")))
    assert step.event == "declined: statistic"
    for record in step.records:
        peer.apply(record)
    assert peer.pending is None


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_bytes_cause_an_error(data: st.DataObject) -> None:
    """Random bytes, and messages with changed bytes: rejected or answered, never an error, never a state with NaN."""
    peer, offer = pair()
    raw = bytearray(data.draw(st.one_of(st.just(wire.encode(offer)), st.binary(max_size=300))))
    for _ in range(data.draw(st.integers(0, 4))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        for step in peer.receive("node-0", bytes(raw)):
            for record in step.records:
                peer.apply(record)
    except wire.Rejected as rejected:
        assert str(rejected) in PAGE
    assert all(math.isfinite(number) for state in peer.estimator.states for number in state)


def test_deeply_nested_arrays_are_malformed() -> None:
    with pytest.raises(wire.Rejected, match="malformed"):
        wire.decode(b"\x91" * 100_000)
