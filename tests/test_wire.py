"""The wire format: its vectors, and what is refused of it."""

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
from world import World

from gosta.net.config import Task
from gosta.net.node.source import fingerprint
from gosta.net.protocol import messages as wire
from gosta.net.protocol.peer import Peer
from gosta.net.storage.journal import Began, Met

PAGE = (Path(__file__).parents[1] / "docs" / "wire.md").read_text(encoding="utf-8")
VECTORS = re.findall(r"```\n(.+)\n([0-9a-f]+)\n```", PAGE)
PARTS = [np.array([[0.5, 1.0], [1.5, -1.0], [2.5, 1.0]]), np.array([[0.0, -1.0], [1.0, 1.0]])]


def test_vectors_of_the_document() -> None:
    assert len(VECTORS) == 6
    for text, hexadecimal in VECTORS:
        raw = bytes.fromhex(hexadecimal)
        message = wire.decode(raw)
        assert wire.encode(message) == raw
        assert msgspec.msgpack.decode(raw) == json.loads(text)
        assert type(message).__struct_config__.tag == json.loads(text)[0]
    assert fingerprint(Task("0123456789abcdef", "auc"), Path()) in PAGE


def test_fingerprints_tell_what_differs() -> None:
    tasks = [
        Task("0" * 16, "auc"),
        Task("0" * 16, "auc", protocol="gosta-async"),
        Task("0" * 16, "auc", interval=0.95),
        Task("0" * 16, "auc", classes=("a", "b")),
        Task("0" * 16, "auc", classes=("b", "a")),
        Task("0" * 16, "kendall-tau"),
        Task("0" * 16, "kendall-tau", options={"variant": "b"}),
    ]
    assert len({fingerprint(task, Path()) for task in tasks}) == len(tasks)
    assert fingerprint(Task("1" * 16, "auc", columns=("a",), encoded=2), Path()) == fingerprint(tasks[0], Path())


def pair() -> tuple[Peer, wire.Offer]:
    """A node, and an offer that it would accept."""
    world = World(PARTS, [(0, 1)], statistic="auc", rate=0.0)
    first, second = world.peers.values()
    offer = wire.decode(first.offer("node-1").sends[0][1])
    assert isinstance(offer, wire.Offer)
    return second, offer


def kept(peer: Peer) -> tuple[Any, ...]:
    return peer.epoch, peer.pending, peer.births, peer.site.memory()


def answered(peer: Peer, message: wire.AnyMessage) -> wire.AnyMessage:
    (step,) = peer.receive("node-0", wire.encode(message))
    assert not any(isinstance(record, Met | Began) for record in step.records)
    return wire.decode(step.sends[0][1])


def changed(offer: wire.Offer, **side: Any) -> wire.Offer:
    return msgspec.structs.replace(offer, side=offer.side._replace(**side))


def test_an_offer_is_accepted() -> None:
    peer, offer = pair()
    (step,) = peer.receive("node-0", wire.encode(offer))
    assert isinstance(wire.decode(step.sends[0][1]), wire.Accept)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("epoch", 2**40, "epoch"),
        ("version", 2, "version"),
        ("network", "f" * 16, "network"),
        ("statistic", "f" * 16, "statistic"),
        ("epoch", 0, "epoch"),
    ],
)
def test_offers_of_others_are_declined_with_the_reason(field: str, value: Any, reason: str) -> None:
    peer, offer = pair()
    before = kept(peer)
    answer = answered(peer, msgspec.structs.replace(offer, **{field: value}))
    assert isinstance(answer, wire.Decline)
    assert answer.reason == reason
    assert kept(peer) == before


def wrong_sides(offer: wire.Offer) -> list[wire.Offer]:
    side, visitor = offer.side, offer.side.visitor
    wrong = [
        changed(offer, told=side.told[:-1]),
        changed(offer, told=(*side.told, 0.0)),
        changed(offer, told=(math.nan, 0.0)),
        changed(offer, told=(math.inf, 0.0)),
        changed(offer, told=(1e300, 0.0)),
        changed(offer, meetings=-1),
        changed(offer, pace=0.0),
        changed(offer, pace=math.nan),
        changed(offer, pace=2.0),
        changed(offer, rows=0),
    ]
    parts: dict[str, Any] = {
        "home": "",
        "rows": 0,
        "sample": (*visitor.sample, visitor.sample[0]),
        "missing": (0.0,),
        "diagonal": (math.nan, 0.0),
    }
    wrong += [changed(offer, visitor=visitor._replace(**{name: value})) for name, value in parts.items()]
    rows = ((1.0,), (1.0, 1.0, 1.0), (math.nan, 1.0), (math.inf, 1.0), (-1e60, 1.0))
    wrong += [changed(offer, visitor=visitor._replace(sample=(row, *visitor.sample[1:]))) for row in rows]
    wrong.append(changed(offer, visitor=visitor._replace(home="h" * 65)))
    wrong.append(changed(offer, visitor=visitor._replace(home="node-1", rows=8, sample=visitor.sample)))
    return wrong


def test_wrong_visitors_and_numbers_are_declined_and_change_nothing() -> None:
    peer, offer = pair()
    before = kept(peer)
    for wrong in wrong_sides(offer):
        for more in ({}, {"epoch": offer.epoch + 1}, {"birth": offer.birth + 1}):
            answer = answered(peer, msgspec.structs.replace(wrong, **more))
            if more and wrong.side.visitor.home == "node-1":
                continue  # in another epoch it might have other rows
            assert isinstance(answer, wire.Decline), wrong
            assert answer.reason == "visitor"
            assert kept(peer) == before
            assert peer.answers == {}
    for field in ("network", "statistic"):
        answered(peer, msgspec.structs.replace(offer, birth=offer.birth + 10**9, **{field: "another"}))
        assert peer.answers == {}


def test_a_wrong_accept_leaves_the_offer_pending() -> None:
    peer, offer = pair()
    for record in peer.offer("node-0").records:
        peer.apply(record)
    before = kept(peer)
    for wrong in wrong_sides(offer):
        head = (wrong.version, wrong.network, wrong.statistic, wrong.epoch, wrong.birth)
        with pytest.raises(wire.Refusal, match="visitor"):
            list(peer.receive("node-0", wire.encode(wire.Accept(*head, 1, wrong.side))))
        assert kept(peer) == before


def test_answers_that_nobody_waits_for_are_stale() -> None:
    peer, offer = pair()
    head = (offer.version, offer.network, offer.statistic, offer.epoch, offer.birth)
    for answer in (wire.Accept(*head, 1, offer.side), wire.Busy(*head, 1), wire.Decline(*head, 1, "no")):
        with pytest.raises(wire.Refusal, match="stale"):
            list(peer.receive("node-0", wire.encode(answer)))


def test_a_replayed_offer_gets_the_old_answer_or_none() -> None:
    peer, offer = pair()
    (step,) = peer.receive("node-0", wire.encode(offer))
    for record in step.records:
        peer.apply(record)
    for record in peer.offer("node-0").records:
        peer.apply(record)
    after = kept(peer)
    (again,) = peer.receive("node-0", wire.encode(offer))
    assert (again.records, again.sends) == ((), step.sends)
    newer = msgspec.structs.replace(offer, id=offer.id + 5)
    (refused,) = peer.receive("node-0", wire.encode(newer))
    assert isinstance(wire.decode(refused.sends[0][1]), wire.Busy)
    for record in refused.records:
        peer.apply(record)
    for late in (offer, changed(offer, meetings=7), changed(newer, meetings=7)):
        answer = answered(peer, late)
        assert isinstance(answer, wire.Decline)
        assert answer.reason == "stale"
    assert kept(peer) == after


def test_answers_nobody_waits_for_begin_no_epoch() -> None:
    peer, offer = pair()
    before = kept(peer)
    head = (offer.version, offer.network, offer.statistic, offer.epoch + 5, offer.birth + 1)
    for answer in (wire.Accept(*head, 1, offer.side), wire.Busy(*head, 1), wire.Decline(*head, 1, "epoch")):
        with pytest.raises(wire.Refusal, match="stale"):
            list(peer.receive("node-0", wire.encode(answer)))
    assert kept(peer) == before


def test_a_no_of_one_who_computes_something_else_is_a_no() -> None:
    """Otherwise the offer would be pending for ever."""
    peer, offer = pair()
    for record in peer.offer("node-0").records:
        peer.apply(record)
    head = (offer.version, offer.network, "another", offer.epoch, offer.birth)
    (step,) = peer.receive("node-0", wire.encode(wire.Decline(*head, 1, "statistic")))
    assert step.note == "declined: statistic"
    for record in step.records:
        peer.apply(record)
    assert peer.pending is None


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_bytes_break_a_node(data: st.DataObject) -> None:
    """Garbage, and messages with some bytes changed: refused or answered, never an error, never a meeting with NaN."""
    peer, offer = pair()
    raw = bytearray(data.draw(st.one_of(st.just(wire.encode(offer)), st.binary(max_size=300))))
    for _ in range(data.draw(st.integers(0, 4))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        for step in peer.receive("node-0", bytes(raw)):
            for record in step.records:
                peer.apply(record)
    except wire.Refusal as refusal:
        assert str(refusal) in PAGE
    assert all(math.isfinite(number) for state in peer.site.states for number in state)


def test_deeply_nested_arrays_are_garbage() -> None:
    with pytest.raises(wire.Refusal, match="garbage"):
        wire.decode(b"\x91" * 100_000)
