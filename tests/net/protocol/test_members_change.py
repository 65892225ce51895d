"""Sites that accept a member list at different times, take their rows back, or limit how often they
are sent.
"""

from __future__ import annotations

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hostile import make_trusts
from virtual_network import VirtualNetwork

import gosta

RNG = np.random.default_rng(4)
PARTS = [RNG.gamma(2.0, 1.0, (rows, 1)) for rows in (12, 19, 7, 15)]
NAMES = [f"node-{k}" for k in range(4)]
ROWS = {name: len(part) for name, part in zip(NAMES, PARTS, strict=True)}
KEYS = {name: Ed25519PrivateKey.generate() for name in NAMES}
COMPLETE = [(i, j) for i in range(4) for j in range(i)]


def test_a_site_with_an_older_list_goes_on_with_members_that_it_knows() -> None:
    """It rejects rows of the new member, without suspending those who pass them on.

    When it accepts, all is right.
    """
    fewer = {name: rows for name, rows in ROWS.items() if name != "node-3"}
    trusts = make_trusts(ROWS, KEYS) | {"node-0": make_trusts(fewer, KEYS)["node-0"]}
    network = VirtualNetwork(PARTS, COMPLETE, trusts=trusts)
    network.clock.run(30.0)
    old = network.nodes["node-0"]
    assert old.counters["rejected: member"] > 0
    assert network.events["suspended"] == 0
    assert old.peer.exchanges_with("node-1") > 0
    assert old.status().sites == 3
    network.trusts["node-0"] = make_trusts(ROWS, KEYS)["node-0"]
    network.change("node-0")
    network.clock.run(90.0)
    exact = gosta.exact(np.concatenate(PARTS), "gini-mean-difference")
    np.testing.assert_allclose(network.estimates()[:, 0], exact, rtol=0.02)
    assert all(node.status().missing == () for node in network.nodes.values())


def test_rows_that_were_withdrawn_are_in_no_report() -> None:
    network = VirtualNetwork(PARTS[:2], [(0, 1)], trusts=make_trusts(ROWS, KEYS))
    network.clock.run(20.0)
    assert network.peers["node-0"].report() is not None
    network.lives["node-1"].call(network.nodes["node-1"].withdraw)
    network.clock.run(30.0)
    offers = network.nodes["node-0"].counters["offers"]
    assert [peer.report() for peer in network.peers.values()] == [None, None]
    assert "node-1" in network.nodes["node-0"].status().missing
    network.clock.run(50.0)
    assert (
        network.nodes["node-0"].counters["offers"] <= offers + 1
    )  # rows are not sent to a site that takes none


def test_no_row_is_sent_more_often_than_it_may_be() -> None:
    network = VirtualNetwork(PARTS, COMPLETE, trusts=make_trusts(ROWS, KEYS))
    for node in network.nodes.values():
        settings = msgspec.structs.replace(node.config.node, max_disclosures=2)
        node.config = msgspec.structs.replace(node.config, node=settings)
    network.clock.run(60.0)
    for name, journal in network.journals.items():
        times = journal.disclosures(network.source(name).data_digest)
        assert max(times.values()) == 2
    assert "row limit reached" in {node.status().state for node in network.nodes.values()}
