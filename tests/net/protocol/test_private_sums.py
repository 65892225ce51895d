"""Networks of private sums in virtual time: no wrong sum is reported, whatever fails and whoever
lies.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fault_schedules import GRAPHS
from private_schedules import (
    COMPLETE,
    FAULT_SECONDS,
    PARTS,
    QUIET_SECONDS,
    RNG,
    STRICT,
    make_schedule,
    strict,
)
from sum_network import OPEN_POLICY, SumNetwork

import gosta
from gosta.net.node.status import explain
from gosta.net.protocol import messages as wire
from gosta.net.protocol import statements
from gosta.net.protocol.statements import Part, Slot
from gosta.private.policy import MODES, Policy
from gosta.private.settings import PrivateSettings

SCHEDULES = int(os.environ.get("GOSTA_SCHEDULES", "200")) // 2


def pooled(*parts: np.ndarray) -> float:
    return float(np.var(np.concatenate(parts), ddof=1))


@pytest.mark.parametrize("start", range(0, SCHEDULES, 20))
def test_faults(start: int) -> None:
    for seed in range(start, start + 20):
        graph, faults = make_schedule(seed)
        nodes, edges = GRAPHS[graph]
        network = SumNetwork(PARTS[:nodes], edges, faults, seed)
        for second in np.linspace(1.0, FAULT_SECONDS, 4):
            network.clock.run(second)
            network.check()
        network.end_faults()
        network.clock.run(FAULT_SECONDS + QUIET_SECONDS)
        network.check()
        states = {
            name: (peer.state(), peer.current.participants)
            for name, peer in network.sum_peers.items()
        }
        assert set(states.values()) == {("complete", tuple(network.names))}, (
            f"seed {seed}: {states}"
        )


def run(
    seconds: float,
    parts: list[np.ndarray] | None = None,
    edges: object = COMPLETE,
    **others: object,
) -> SumNetwork:
    network = SumNetwork(parts or PARTS, edges, **others)  # type: ignore[arg-type]
    network.clock.run(seconds)
    network.check()
    return network


def states(network: SumNetwork) -> set[str]:
    return {peer.state() for peer in network.sum_peers.values()}


def values(network: SumNetwork) -> set[float]:
    return {
        peer.report.results[0].value[0]
        for peer in network.sum_peers.values()
        if peer.report is not None
    }


def test_every_node_reports_the_value_over_all_rows() -> None:
    network = run(5.0, edges=GRAPHS["path"][1] + [(2, 3)])
    for peer in network.sum_peers.values():
        assert peer.report is not None
        (result,) = peer.report.results
        assert result.low[0] <= pooled(*PARTS) <= result.high[0]
        assert result.value[0] == pytest.approx(pooled(*PARTS), abs=1e-6)
        assert peer.report.participants == tuple(network.names)


def test_two_rounds_find_edges() -> None:
    parts = [np.column_stack([RNG.random(40) ** 3, RNG.random(40)]) for _ in range(3)]
    settings = PrivateSettings(
        bins=8, ranges={"": (0.0, 1.0)}, find_edges=True, deadline_seconds=2.0
    )
    network = SumNetwork(
        parts, GRAPHS["path"][1], statistic="kendall-tau:first+second", settings=settings
    )
    network.clock.run(6.0)
    rows = np.concatenate(parts)
    exact = float(gosta.exact({"a": rows[:, 0], "b": rows[:, 1]}, "kendall-tau"))
    for peer in network.sum_peers.values():
        assert peer.report is not None
        assert len(peer.current.totals) == 2
        (result,) = peer.report.results
        assert result.low[0] <= exact <= result.high[0]
        assert [one.round for one in peer.log if one.event == "contribution"] == [1, 2]


def test_a_site_that_never_comes_is_left_out() -> None:
    network = SumNetwork(PARTS, COMPLETE)
    network.crash("node-3", float("inf"))
    network.clock.run(2.5)
    assert all(peer.report is None for peer in network.sum_peers.values())
    network.clock.run(12.0)
    network.check()
    for name in ("node-0", "node-1", "node-2"):
        report = network.sum_peers[name].report
        assert report is not None
        assert (report.participants, report.left_out) == (
            ("node-0", "node-1", "node-2"),
            ("node-3",),
        )
        assert report.results[0].value[0] == pytest.approx(pooled(*PARTS[:3]), abs=1e-6)
        sent = [one for one in network.sum_peers[name].log if one.event == "contribution"]
        others = {"node-0", "node-1", "node-2"} - {name}
        assert {frozenset(one.sent_to) for one in sent} == {frozenset(others)}, "node-3 was down"


def test_a_site_that_vanishes_after_it_joined_is_left_out_by_a_new_epoch() -> None:
    network = SumNetwork(PARTS, COMPLETE)
    contribute = network.nodes["node-3"]._continue
    network.nodes["node-3"]._continue = lambda: (  # type: ignore[method-assign]
        None if network.sum_peers["node-3"].current.roster else contribute()
    )
    network.clock.run(30.0)
    network.check()
    reports = [network.sum_peers[name].report for name in network.names[:3]]
    assert {report and report.participants for report in reports} == {
        ("node-0", "node-1", "node-2")
    }
    assert {peer.announcement.reason for peer in network.sum_peers.values()} == {
        "no contribution of node-3"
    }


def test_a_site_that_comes_late_starts_an_epoch_with_all() -> None:
    network = SumNetwork(PARTS, COMPLETE)
    network.crash("node-3", 8.0)
    network.clock.run(60.0)
    network.check()
    assert states(network) == {"complete"}
    assert {peer.current.participants for peer in network.sum_peers.values()} == {
        tuple(network.names)
    }


def test_a_total_that_differs_by_one_site_needs_its_agreement() -> None:
    parts = [RNG.random((20, 1)) for _ in range(4)]
    network = strict(parts)
    network.crash("node-3", 8.0)
    network.clock.run(60.0)
    network.check()
    peers = network.sum_peers
    assert states(network) == {"complete"}
    assert {peer.current.participants for peer in peers.values()} == {
        ("node-0", "node-1", "node-2")
    }
    (value,) = values(network)
    assert value == pytest.approx(pooled(*parts[:3]), abs=1e-6)
    assert "gosta network agree FOLDER node-3" in explain(peers["node-3"])
    epochs = {peer.epoch for peer in peers.values()}
    network.clock.run(200.0)
    assert {peer.epoch for peer in peers.values()} == epochs, (
        "a site that is left out does not start epochs for ever"
    )
    network.agree("node-3", "node-3")
    network.clock.run(230.0)
    network.check()
    assert {peer.current.participants for peer in peers.values()} == {tuple(network.names)}
    assert ("agreement", "node-3") in [(one.event, one.reason) for one in peers["node-3"].log]


def test_a_file_with_few_changed_rows_is_not_contributed() -> None:
    parts = [RNG.random((20, 1)) for _ in range(3)]
    network = strict(parts, GRAPHS["path"][1])
    network.clock.run(5.0)
    network.check()
    peer = network.sum_peers["node-1"]
    epoch, before = peer.epoch, dict(network.parts)
    network.change("node-1", np.concatenate([parts[1][3:], RNG.random((3, 1))]))
    network.clock.run(30.0)
    assert (peer.epoch, peer.state(), explain(peer)) == (epoch, "complete", "")
    network.nodes["node-0"].request_epoch()
    network.clock.run(40.0)
    assert (peer.epoch, states(network)) == (epoch + 1, {"complete"}), (
        "it does not block the others"
    )
    assert peer.report is not None
    assert peer.report.vector == statements.pack(network.plain_sums(network.names, before))
    network.change("node-1", np.concatenate([parts[1][10:], RNG.random((10, 1))]))
    network.clock.run(60.0)
    network.check()
    assert peer.epoch == epoch + 2, "with ten changed rows it is"


@pytest.mark.parametrize("rows", [3, 9])
def test_a_site_with_few_rows_takes_no_part_and_tells_nobody_why(rows: int) -> None:
    parts = [*PARTS[2:], PARTS[0], RNG.random((rows, 1))]
    network = SumNetwork(parts, COMPLETE, policies={"node-3": STRICT})
    network.clock.run(5.0)
    network.check()
    peer = network.sum_peers["node-3"]
    assert explain(peer) == f"declined by this site: {rows} rows, 10 needed"
    seen = network.sum_peers["node-0"]
    join = seen.current.joins["node-3"]
    assert (join.key, join.min_cell) == (b"", 5), (
        "the statement is the same, however many rows there are"
    )
    assert seen.report is not None
    assert seen.report.left_out == ("node-3",)
    (entry,) = peer.log[:1]
    assert (entry.event, entry.reason) == ("suppressed", f"{rows} rows, 10 needed")


def test_a_budget_is_spent_and_enforced() -> None:
    settings = PrivateSettings(
        bins=8, ranges={"": (0.0, 1.0)}, epsilon=1.0, delta=1e-6, deadline_seconds=2.0
    )
    limited = Policy(modes=MODES, min_rows=0, min_sites=0, epsilon_budget=1.2, delta_budget=1e-5)
    network = SumNetwork(PARTS, COMPLETE, settings=settings, policies={"node-1": limited})
    network.clock.run(5.0)
    network.check()
    assert states(network) == {"complete"}
    network.change("node-0", RNG.random((30, 1)))
    network.clock.run(30.0)
    network.check()
    peers = network.sum_peers
    assert peers["node-1"].state() == "suppressed"
    assert "more would exceed the budget of 1.2" in explain(peers["node-1"])
    assert peers["node-0"].current.participants == ("node-0", "node-2", "node-3")
    spent = [one.event for one in peers["node-1"].log].count("contribution")
    assert spent == 1


def test_a_key_is_not_kept_after_the_release() -> None:
    network = SumNetwork(PARTS, COMPLETE)
    keys = set()
    while network.clock.now < 5.0:
        network.clock.run(network.clock.now + 0.005)
        keys |= {node.peer.current.key for node in network.nodes.values()}  # type: ignore[attr-defined]
    assert len(keys) == 5, "four keys, and none before and after"
    for journal in network.journals.values():
        content = b"".join(bytes(str(row), "latin-1") for row in journal._db.iterdump())
        snapshots = b"".join(
            row[0]
            for row in journal._db.execute(
                "SELECT body FROM snapshot UNION SELECT body FROM records"
            )
        )
        assert not [key for key in keys - {b""} if key in content or key in snapshots]


@pytest.mark.parametrize("records", [1, 2, 3])
def test_a_backup_of_a_journal_makes_the_same_contribution_again(records: int) -> None:
    settings = PrivateSettings(
        bins=8, ranges={"": (0.0, 1.0)}, epsilon=1.0, delta=1e-6, deadline_seconds=2.0
    )
    network = SumNetwork(PARTS, COMPLETE, settings=settings)
    while not network.sum_peers["node-2"].current.participants:
        network.clock.run(network.clock.now + 0.005)
    network.clock.run(network.clock.now + 0.02)
    seen = {
        peer.slots[slot][0]
        for peer in network.sum_peers.values()
        for slot in peer.slots
        if slot[:2] == ("part", "node-2")
    }
    number = network.journals["node-2"].last_number
    if number > records:
        network.restore_backup("node-2", min(records, number - 1))
    network.clock.run(60.0)
    network.check()
    again = {
        peer.slots[slot][0]
        for peer in network.sum_peers.values()
        for slot in peer.slots
        if slot[:2] == ("part", "node-2") and peer.epoch == 1
    }
    assert len(seen | again) <= 1, "two contributions with the same masks"
    assert states(network) == {"complete"}


def test_a_policy_that_forbids_stops_one_site_and_starts_nothing() -> None:
    network = SumNetwork(PARTS, COMPLETE)
    network.clock.run(5.0)
    epochs = {peer.epoch for peer in network.sum_peers.values()}
    network.policies["node-0"] = Policy(modes=MODES, statistics=("none",))
    network.change("node-0")
    network.clock.run(60.0)
    assert {peer.epoch for peer in network.sum_peers.values()} == epochs
    network.change("node-1", RNG.random((20, 1)))  # the next epoch is without it, and the last one
    network.clock.run(120.0)
    network.check()
    assert {peer.epoch for peer in network.sum_peers.values()} == {epoch + 1 for epoch in epochs}
    assert network.sum_peers["node-1"].current.participants == ("node-1", "node-2", "node-3")
    assert (
        explain(network.sum_peers["node-0"])
        == "declined by this site: the statistic variance is not allowed"
    )
    network.policies["node-0"] = OPEN_POLICY
    network.change("node-0")
    network.clock.run(180.0)
    network.check()
    assert {peer.current.participants for peer in network.sum_peers.values()} == {
        tuple(network.names)
    }


def test_a_policy_is_read_before_the_contribution() -> None:
    network = SumNetwork(PARTS, COMPLETE)
    while Slot("join", "node-2") not in network.sum_peers["node-2"].slots:
        network.clock.run(network.clock.now + 0.005)
    network.sum_peers["node-2"].source = dataclasses.replace(
        network.source("node-2"), policy=Policy(modes=MODES, statistics=("none",))
    )
    network.clock.run(4.0)
    assert [one.event for one in network.sum_peers["node-2"].log] == ["suppressed"]
    assert states(network) == {"suppressed"}
    network.clock.run(30.0)
    others = [network.sum_peers[name] for name in network.names if name != "node-2"]
    assert {peer.state() for peer in others} == {"complete"}, "the others go on without it"


def test_rows_that_change_between_two_rounds_are_not_in_the_second() -> None:
    parts = [RNG.random((40, 1)) for _ in range(3)]
    settings = PrivateSettings(
        bins=8, ranges={"": (0.0, 1.0)}, find_edges=True, deadline_seconds=2.0
    )
    network = SumNetwork(parts, GRAPHS["path"][1], statistic="quantiles:value", settings=settings)
    peer = network.sum_peers["node-1"]
    while Slot("part", "node-1", 1) not in peer.slots:
        network.clock.run(network.clock.now + 0.002)
    assert Slot("part", "node-1", 2) not in peer.slots
    assert peer.rows is not None
    before = peer.rows.digest
    peer.source = dataclasses.replace(peer.source, data=network.table("node-0"))  # type: ignore[type-var]
    network.clock.run(network.clock.now + 0.5)
    assert peer.current.totals[0].round.layout is not peer.current.totals[1].round.layout
    assert peer.rows.digest == before
    vectors = [
        peer.current.totals[1].round.layout.sums(network.source(name).file_rows.x)
        for name in network.names
    ]
    assert np.array_equal(peer.current.totals[1].vector, np.sum(vectors, axis=0, dtype=np.uint64))


def test_a_member_that_never_contributes_does_no_lasting_harm() -> None:
    parts = [RNG.random((20, 1)) for _ in range(4)]
    network = strict(parts)
    contribute = network.nodes["node-3"]._continue
    network.nodes["node-3"]._continue = lambda: (  # type: ignore[method-assign]
        None if network.sum_peers["node-3"].current.roster else contribute()
    )
    network.clock.run(30.0)
    others = [network.sum_peers[name] for name in network.names[:3]]
    assert not any(peer.report for peer in others), (
        "a site that joins is not left out of the first total"
    )
    assert {tuple(peer.missing()) for peer in others if peer.current.roster} == {("node-3",)}
    network.remove_member("node-3")
    network.clock.run(60.0)
    network.check()
    assert states(network) == {"complete"}
    assert network.sum_peers["node-0"].current.participants == ("node-0", "node-1", "node-2")


def test_few_changed_rows_start_no_epoch_with_noise_either() -> None:
    settings = PrivateSettings(
        bins=8, ranges={"": (0.0, 1.0)}, epsilon=1.0, delta=1e-6, deadline_seconds=2.0
    )
    network = SumNetwork(PARTS, COMPLETE, settings=settings, policies={"node-0": STRICT})
    network.clock.run(5.0)
    epoch = network.sum_peers["node-0"].epoch
    network.change("node-0", np.concatenate([PARTS[0][1:], RNG.random((1, 1))]))
    network.clock.run(40.0)
    assert network.sum_peers["node-0"].epoch == epoch


def test_what_neighbours_send_does_not_fill_the_memory() -> None:
    network = SumNetwork(PARTS, COMPLETE)
    network.clock.run(5.0)
    peer, link = network.sum_peers["node-0"], network.nodes["node-0"].links["node-1"]
    for k in range(50):
        ids = tuple(RNG.bytes(16) for _ in range(100))
        network.nodes["node-0"].on_message(link, wire.encode(wire.Want(ids)))
        part = Part(*peer.current.id, "node-1", bytes(16), 2, bytes(16), bytes(8 * k))
        signed = statements.sign(part, network.task.id, network.trusts["node-1"])
        network.nodes["node-0"].on_message(link, wire.encode(wire.Give(signed)))
    assert len(peer.current.pool.given) < 50
    assert len(peer.current.early) == 1


def test_where_the_log_ends_cannot_be_written(tmp_path: Path) -> None:
    """Nothing is contributed then, nor written to the journal, until it can be."""
    network = SumNetwork(PARTS, COMPLETE)
    node, head = network.nodes["node-0"], tmp_path / "contributions.json"
    head.mkdir()
    (head / "in the way").touch()
    node.head = head  # type: ignore
    network.clock.run(6.0)
    assert "Is a directory" in node.disk_error
    assert network.journals["node-0"].contributions() == []
    (head / "in the way").unlink()
    head.rmdir()
    network.clock.run(60.0)
    network.check()
    assert states(network) == {"complete"}


def test_an_origin_that_refused_restarts() -> None:
    """It knows its roster then, and not yet what the others said when they joined."""
    network = SumNetwork(PARTS, COMPLETE)
    peer = network.sum_peers["node-0"]
    commit = peer._commit_or_refuse

    def refuse(*arguments: Any) -> Any:
        peer.source = dataclasses.replace(
            network.source("node-0"), policy=Policy(modes=MODES, statistics=("none",))
        )
        return commit(*arguments)

    peer._commit_or_refuse = refuse  # type: ignore
    network.clock.run(1.0)
    assert set(peer.current.refusals) == {"node-0"}
    network.crash("node-0", 0.5)
    network.clock.run(60.0)
    network.check()
    assert states(network) == {"complete"}
