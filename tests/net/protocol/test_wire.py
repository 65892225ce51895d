"""The wire format: its test vectors, what is rejected, and messages that come again, late or in
another order.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hostile import HostileNetwork
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_states import NOW, offer_of, receive, replace, state_of

from gosta.net.config import Task
from gosta.net.members import Keyring, Member, MemberList
from gosta.net.node.source import fingerprint
from gosta.net.protocol import messages as wire
from gosta.net.protocol.epochs import Moment
from gosta.net.protocol.messages import Rejected
from gosta.net.protocol.peer import EMPTY, Peer
from gosta.net.protocol.records import EpochStarted
from gosta.net.transport.base import Greeting

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "wire.md").read_text(encoding="utf-8")
VECTORS = re.findall(r"```text\n(\[.+)\n([0-9a-f]+)\n```", PAGE)
NETWORK = "0123456789abcdef"


def readable(value: Any) -> Any:
    """Return decoded MessagePack as it is written in the documentation."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return [readable(one) for one in value] if isinstance(value, list) else value


def vector(kind: str) -> Any:
    (raw,) = [bytes.fromhex(digits) for text, digits in VECTORS if json.loads(text)[0] == kind]
    return wire.decode(raw)


def test_vectors_in_the_documentation() -> None:
    kinds = [json.loads(text)[0] for text, _ in VECTORS]
    assert kinds == [one.__struct_config__.tag for one in wire.AnyMessage.__args__]
    for text, digits in VECTORS:
        raw = bytes.fromhex(digits)
        assert wire.encode(wire.decode(raw)) == raw
        assert readable(msgspec.msgpack.decode(raw)) == json.loads(text)
    assert fingerprint(Task(NETWORK, "auc"), Path()) in PAGE
    assert fingerprint(Task(NETWORK, "gini-mean-difference", "carried-means"), Path()) in PAGE
    assert Greeting("node-3", NETWORK, "13a92c522d1add35").encode().decode() in PAGE
    assert all(f"`{reason}`" in PAGE for reason in wire.REASONS)


def test_signatures_in_the_documentation() -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    members = MemberList(
        NETWORK, 1, "0" * 16, {}, (Member("node-1", key.public_key().public_bytes_raw().hex()),)
    )
    ring = Keyring(key, members)
    offer, accept, ping = vector("offer"), vector("accept"), vector("ping")
    visitor, (epoch, origin, reason, signature) = offer.contribution.visitor, ping.announcement
    assert ring.verify("node-1", wire.signed_visitor(NETWORK, 2, visitor), offer.seal.signature)
    assert not ring.verify("node-1", wire.signed_visitor(NETWORK, 3, visitor), offer.seal.signature)
    assert not ring.verify("node-2", wire.signed_visitor(NETWORK, 2, visitor), offer.seal.signature)
    assert ring.verify(
        "node-1", wire.signed_announcement(NETWORK, epoch, origin, reason), signature
    )
    receipt = ping.receipt
    assert ring.verify(
        "node-1", wire.signed_receipt(NETWORK, "node-1", "node-2", receipt), receipt.signature
    )
    digest = EMPTY.extended(offer.id, offer.contribution, accept.contribution).digest
    assert f"`{digest.hex()}`" in PAGE
    by_hand = b"gosta node\0" + msgspec.msgpack.encode(
        ["gosta epoch", NETWORK, epoch, origin, reason]
    )
    key.public_key().verify(signature, by_hand)


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
    assert fingerprint(
        Task("1" * 16, "auc", columns=("a",), encoded_columns=2), Path()
    ) == fingerprint(tasks[0], Path())


def pair() -> tuple[Peer, Peer]:
    """Return two peers in the same epoch, after some exchanges."""
    network = HostileNetwork(3, [(0, 1), (1, 2)], attacker=2, exchanges_per_second=5.0)
    network.run(3.0)
    for node in network.nodes.values():
        node.pause()
    network.run(5.0)
    first, second = network.peers["node-0"], network.peers["node-1"]
    assert first.exchanges_with("node-1") == second.exchanges_with("node-0") > 0
    return first, second


def test_an_exchange() -> None:
    first, second = pair()
    before = first.exchanges_with("node-1")
    (accept,) = receive(second, "node-0", offer_of(first, "node-1", 7))
    assert isinstance(accept, wire.Accept)
    (confirm,) = receive(first, "node-1", accept)
    assert isinstance(confirm, wire.Confirm)
    assert receive(second, "node-0", confirm) == []
    assert first.exchanges_with("node-1") == second.exchanges_with("node-0") == before + 1
    assert first.transcripts["node-1"] == second.transcripts["node-0"]


def test_repeated_messages_get_the_same_answer() -> None:
    """Every message of an exchange three times, and then all of them once more in any order."""
    first, second = pair()
    offer = offer_of(first, "node-1", 7)
    accepts = [receive(second, "node-0", offer)[0] for _ in range(3)]
    assert accepts[0] == accepts[1] == accepts[2]
    confirms = [receive(first, "node-1", accepts[0])[0] for _ in range(3)]
    assert confirms == [wire.Confirm(first.completed["node-1"])] * 3
    for _ in range(3):
        receive(second, "node-0", confirms[0])
    after, rng = (state_of(first), state_of(second)), Random(0)
    for _ in range(20):
        receive(first, "node-1", accepts[0])
        receive(
            second,
            "node-0",
            rng.choice([confirms[0], wire.Abort(offer.id), wire.Busy(3), wire.Decline(3, "late")]),
        )
        with pytest.raises(Rejected, match="late"):
            receive(second, "node-0", offer)
    assert (state_of(first), state_of(second)) == after


def test_an_acceptance_of_a_withdrawn_offer_is_aborted() -> None:
    first, second = pair()
    (accept,) = receive(second, "node-0", offer_of(first, "node-1", 7))
    before = first.estimator.snapshot(), second.estimator.snapshot()
    abort = wire.decode(first.withdraw_offer().messages[0][1])
    assert receive(first, "node-1", accept) == [abort] == [wire.Abort(accept.id)]  # type: ignore[union-attr]
    receive(second, "node-0", abort)
    receive(second, "node-0", wire.Confirm(accept.id))  # type: ignore[union-attr]
    assert second.accepted is None
    assert (first.estimator.snapshot(), second.estimator.snapshot()) == before


@pytest.mark.parametrize(
    "answer", [wire.Busy, lambda id: wire.Decline(id, "late"), lambda id: wire.Decline(id, "\x1b")]
)
def test_a_rejected_offer_is_withdrawn_and_late_answers_change_nothing(answer: Any) -> None:
    first, second = pair()
    offer = offer_of(first, "node-1", 7)
    before = first.estimator.snapshot()
    (accept,) = receive(second, "node-0", offer)
    receive(first, "node-1", answer(offer.id + 1))
    assert first.pending is not None
    receive(first, "node-2", answer(offer.id))
    assert first.pending is not None
    receive(first, "node-1", answer(offer.id))
    assert first.pending is None
    assert receive(first, "node-1", accept) == [wire.Abort(offer.id)]
    assert first.estimator.snapshot() == before


def test_of_two_simultaneous_offers_that_of_the_lower_name_counts() -> None:
    first, second = pair()
    low, high = offer_of(first, "node-1", 7), offer_of(second, "node-0", 7)
    assert receive(first, "node-1", high) == []
    assert first.pending is not None
    accept, withdrawn = receive(second, "node-0", low)
    assert isinstance(accept, wire.Accept)
    assert withdrawn == wire.Abort(high.id)
    assert second.pending is None
    (confirm,) = receive(first, "node-1", accept)
    assert confirm == wire.Confirm(low.id)


def test_a_node_in_an_exchange_is_busy_for_others() -> None:
    first, second = pair()
    receive(second, "node-0", offer_of(first, "node-1", 7))
    other = replace(offer_of(first, "node-1", 8), id=99)
    assert receive(second, "node-2", other) == [wire.Busy(99)]


CHANGES: list[tuple[str, Any, str]] = [
    ("payload", (0.5,), "malformed"),
    ("payload", (0.5, math.nan), "malformed"),
    ("payload", (0.5, -math.inf), "malformed"),
    ("payload", (0.5, 1e251), "malformed"),
    ("payload", (0.5, 100.0), "values"),
    ("exchanges", -1, "malformed"),
    ("exchanges", 2**53, "malformed"),
    ("edge_exchanges", 1000, "malformed"),
    ("edge_share", 0.0, "malformed"),
    ("edge_share", 1.5, "malformed"),
    ("edge_share", math.nan, "malformed"),
    ("rows", 0, "malformed"),
    ("rows", 2**40, "malformed"),
    ("rows", 9, "rows"),
]


@pytest.mark.parametrize(("field", "value", "reason"), CHANGES)
def test_contributions_out_of_bounds_are_declined_and_change_nothing(
    field: str, value: Any, reason: str
) -> None:
    first, second = pair()
    offer, before = offer_of(first, "node-1", 7), state_of(second)
    message = wire.decode(
        wire.encode(replace(offer, contribution=offer.contribution._replace(**{field: value})))
    )
    steps = second.handle("node-0", message, Moment(NOW, NOW))
    assert wire.decode(next(steps).messages[0][1]) == wire.Decline(offer.id, reason)
    with pytest.raises(Rejected, match=reason):
        list(steps)
    assert state_of(second) == before


@pytest.mark.parametrize("field", ["home", "rows", "sample", "correction", "diagonal"])
def test_visitors_of_the_wrong_length_are_malformed(field: str) -> None:
    first, second = pair()
    offer, before = offer_of(first, "node-1", 7), state_of(second)
    value: dict[str, Any] = {
        "home": "a b",
        "rows": 0,
        "sample": ((0.5,),),
        "correction": (),
        "diagonal": (0.0,) * 9,
    }
    visitor = offer.contribution.visitor._replace(**{field: value[field]})
    changed = replace(offer, contribution=offer.contribution._replace(visitor=visitor))
    with pytest.raises(Rejected, match="malformed"):
        receive(second, "node-0", changed)
    assert state_of(second) == before


BROKEN: list[Any] = [
    ["offer"],
    ["none", 1],
    {},
    7,
    ["confirm", "7"],
    ["confirm", 2**53 + 1],
    ["decline", 7, "x" * 201],
    ["ping", 1],
    ["ping", -1, [1, "a", "b", b""], None, 0],
    ["ping", 1, [1, "", "", b""], None, 0],
    ["ping", 1, [1, "a", "", b"x" * 65], None, 0],
]


@pytest.mark.parametrize("message", BROKEN)
def test_messages_that_cannot_be_decoded_are_malformed(message: Any) -> None:
    with pytest.raises(Rejected, match="malformed"):
        wire.decode(msgspec.msgpack.encode(message))


def test_truncated_messages_are_malformed() -> None:
    for _, digits in VECTORS:
        raw = bytes.fromhex(digits)
        for length in range(len(raw)):
            with pytest.raises(Rejected, match="malformed"):
                wire.decode(raw[:length])


def test_deeply_nested_arrays_are_malformed() -> None:
    with pytest.raises(Rejected, match="malformed"):
        wire.decode(b"\x91" * 100_000)


PEERS = pair()
OFFER = offer_of(PEERS[0], "node-1", 7)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_bytes_cause_an_error(data: st.DataObject) -> None:
    """Random bytes, and messages with changed bytes: rejected or answered, never an error, never a
    state with NaN.
    """
    peer = PEERS[1]
    examples = [wire.encode(OFFER), *(bytes.fromhex(digits) for _, digits in VECTORS)]
    raw = bytearray(data.draw(st.one_of(st.sampled_from(examples), st.binary(max_size=300))))
    for _ in range(data.draw(st.integers(0, 4))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        for step in peer.handle("node-0", wire.decode(bytes(raw)), Moment(NOW, NOW)):
            assert not any(isinstance(record, EpochStarted) for record in step.records)
    except Rejected as rejected:
        assert rejected.reason in wire.REASONS
    assert all(math.isfinite(number) for state in peer.estimator.states for number in state)
