"""Verifying journals: what holds, what does not, and what cannot be checked after records were
deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from virtual_network import VirtualNetwork

from gosta.errors import NetworkError
from gosta.net.audit import consistency
from gosta.net.audit.verify import Journals, replay, verify
from gosta.net.protocol.records import ExchangeAccepted, ExchangeCompleted

PARTS = [np.random.default_rng(k).normal(size=(4 + 6 * k, 2)) for k in range(4)]
RING = [(0, 1), (1, 2), (2, 3), (3, 0)]
EXCHANGES, RECEIPTS = 3, 4  # places among the findings


@pytest.fixture
def journals() -> Journals:
    network = VirtualNetwork(PARTS, RING)
    network.clock.run(20.0)
    records = {name: network.journals[name].load_epoch()[1] for name in network.names}
    return Journals(network.task, Path(), network.peers, records)


def outcomes(journals: Journals) -> list[bool | None]:
    """Return whether each finding holds, and then the one on signatures, which needs no members
    here.
    """
    *head, estimates = verify(journals)
    found = consistency.check_receipts(consistency.find_edges(journals.records, journals.peers))
    return [
        *[finding.holds for finding in head],
        not found.wrong and (None if found.unknown else True),
        estimates.holds,
    ]


def delete_first(journals: Journals, name: str, keep: int) -> None:
    journals.records[name] = journals.records[name][len(journals.records[name]) - keep :]


def test_everything_holds(journals: Journals) -> None:
    assert outcomes(journals) == [True] * 6
    found = consistency.check_receipts(consistency.find_edges(journals.records, journals.peers))
    assert found.signatures == 8
    assert 0 < found.signed <= found.exchanges


def test_deleted_exchanges_are_not_said_to_be_checked(journals: Journals) -> None:
    delete_first(journals, "node-1", 60)
    assert outcomes(journals) == [True, True, True, None, True, True]
    evidence = verify(journals)[EXCHANGES].evidence
    assert "that both sides still have are the same at both; not checked: " in evidence
    assert evidence.endswith("node-1 deleted the first ones (keep_exchanges in node.toml)")
    with pytest.raises(
        NetworkError, match="node-1 no longer has the first exchanges of this epoch"
    ):
        replay(journals)
    delete_first(journals, "node-1", 0)
    assert outcomes(journals) == [True, True, True, None, None, True]


def change_last(journals: Journals, name: str, kind: type, change: Callable[..., object]) -> None:
    own = journals.records[name]
    place = max(k for k, record in enumerate(own) if isinstance(record, kind))
    own[place] = change(own[place])  # type: ignore[call-overload]


def test_what_is_left_is_checked(journals: Journals) -> None:
    delete_first(journals, "node-3", 60)
    change_last(
        journals,
        "node-1",
        ExchangeCompleted,
        lambda record: msgspec.structs.replace(record, id=record.id + 1),
    )
    assert outcomes(journals)[EXCHANGES] is False


def test_other_counts_and_other_numbers_are_found(journals: Journals) -> None:
    peer = journals.peers["node-2"]
    old = peer.transcripts["node-1"]
    peer.transcripts["node-1"] = old._replace(digest=b"other")
    assert outcomes(journals)[2] is False
    peer.transcripts["node-1"] = old._replace(exchanges=old.exchanges + 1)
    finding = verify(journals)[2]
    assert not finding.holds
    assert "node-1 counts" in finding.evidence


def test_signatures_over_other_exchanges_are_found(journals: Journals) -> None:
    """A changed number in a record after the signature, and another signature."""
    edge, other = journals.peers["node-0"], journals.peers["node-1"]
    receipt, transcript = edge.receipts["node-1"], edge.transcripts["node-1"]
    assert receipt.exchanges < transcript.exchanges
    edge.receipts["node-1"] = receipt._replace(digest=b"other")
    assert outcomes(journals)[RECEIPTS] is False
    edge.receipts["node-1"] = receipt
    assert outcomes(journals)[RECEIPTS] is True
    for name, kind in (("node-0", ExchangeAccepted), ("node-0", ExchangeCompleted)):
        change_last(
            journals,
            name,
            kind,
            lambda r: msgspec.structs.replace(r, theirs=r.theirs._replace(rows=77)),
        )
    assert outcomes(journals)[RECEIPTS] is False
    assert other.epoch == edge.epoch
