"""Real nodes that run carried-means: one row each, two visitors of each row, which carry the means
of the row.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from attack_runs import attack_network, check_recovery
from attacks import altered, kept
from fault_schedules import check_replay, make_schedule, run_schedule
from hostile import Attack, HostileNetwork, HostileNode
from ports import free
from processes import gosta
from statistic_data import BUILT_IN, make_data
from virtual_network import HERE, VirtualNetwork
from wire_states import offer_of, receive, replace, state_of

import gosta as package
from gosta import protocols
from gosta.errors import DataError, InputError
from gosta.estimation.carried import MAX_COMPARED
from gosta.estimation.estimand import Estimand, payload_bounds
from gosta.estimation.exchange import Estimator, LocalRows, exchange, first_state
from gosta.net.audit import consistency
from gosta.net.config import check_protocol, protocol_of_nodes
from gosta.net.node.rows import read_rows
from gosta.net.node.source import estimand_of
from gosta.net.protocol import messages as wire
from gosta.net.protocol.checks import Checks
from gosta.net.protocol.epochs import Moment
from gosta.net.protocol.messages import Rejected, Seal
from gosta.net.protocol.peer import Peer
from gosta.protocols import Protocol
from gosta.statistics import STATISTICS

RNG = np.random.default_rng(11)
NODES = 6
SCORES = RNG.normal(size=NODES)
ROWS = {
    "gini-mean-difference": np.exp(SCORES)[:, None],
    "kendall-tau": np.column_stack([SCORES, SCORES + RNG.normal(size=NODES)]),
    "auc": np.column_stack([SCORES, np.arange(NODES) % 2 * 2.0 - 1.0]),
    "within-cluster-scatter": np.column_stack([RNG.normal(size=(NODES, 2)), np.arange(NODES) % 2]),
    "gini-mean-difference,gini-index": np.exp(SCORES)[:, None],  # two statistics
    "variance": SCORES[:, None],  # by averaging moments, without visitors
}
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4)]


def carried_means() -> Protocol:
    rule = protocols.find("carried-means")
    assert isinstance(rule, Protocol)
    return rule


def make_network(
    statistic: str = "gini-mean-difference", scale: float = 1.0, **more: Any
) -> VirtualNetwork:
    rows = scale * ROWS[statistic]
    if "," in statistic:
        more |= {"encoded_columns": (1, 1)}
        rows = np.column_stack([rows, rows])
    options: dict[str, Any] = {
        "statistic": statistic,
        "protocol": "carried-means",
        "exchanges_per_second": 20.0,
    } | more
    return VirtualNetwork(np.split(rows, NODES), EDGES, **options)


@pytest.mark.parametrize("statistic", ROWS)
def test_all_nodes_find_the_exact_value(statistic: str) -> None:
    """The states after all exchanges are those that the definition of the exchange computes, bit
    for bit.
    """
    network = make_network(statistic)
    network.clock.run(8.0)
    network.check()
    check_replay(network)
    exact = estimand_of(network.task, np.concatenate(list(network.parts.values())), HERE).value
    np.testing.assert_allclose(network.estimates(), np.tile(exact, (NODES, 1)), rtol=0.05)
    assert not network.events["rejected"]
    assert {peer.epoch for peer in network.peers.values()} == {1}
    for node in network.nodes.values():
        assert node.status().max_difference == pytest.approx(0.0, abs=0.05)


def test_values_of_any_size_are_not_rejected() -> None:
    for scale in (1e-40, 1e48):
        network = make_network(scale=scale)
        network.clock.run(5.0)
        assert not network.events["rejected"]
        exact = float(package.exact(scale * ROWS["gini-mean-difference"], "gini-mean-difference"))
        np.testing.assert_allclose(network.estimates(), exact, rtol=0.15)


def test_a_network_estimates_what_a_simulation_of_its_exchanges_does() -> None:
    """In a simulation, nodes know how many rows there are.

    On a network they learn that from the first visitors.
    """
    network = make_network()
    network.clock.run(8.0)
    network.check()
    records = {name: network.journals[name].load_epoch()[1] for name in network.names}
    rule, nodes = carried_means(), {}
    for name, peer in network.peers.items():
        rows = LocalRows(peer.estimator.rows.estimand)
        nodes[name] = Estimator(name, rule, rows, first_state(rows, rule), NODES)
    for one in consistency.order_exchanges(records, network.peers):
        exchange(nodes[one.initiator], nodes[one.responder], one.edge_share)
    found = [peer.estimator.estimates() for peer in network.peers.values()]
    np.testing.assert_allclose(found, [node.estimates() for node in nodes.values()], rtol=1e-3)


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_lost_or_duplicated_under_faults(seed: int) -> None:
    run_schedule(*make_schedule(1000 + seed), seed, "carried-means")


def test_nodes_restart_from_their_journals() -> None:
    """From records alone, and from a snapshot and the records after it."""
    network = make_network()
    for _ in range(2):
        network.clock.run(network.clock.now + 2.0)
        network.check()
        for name, node in network.nodes.items():
            restored = network.restore_peer(name)
            assert restored.snapshot() == node.peer.snapshot()
            assert restored.trips == node.peer.trips
            network.journals[name].save_snapshot(node.peer.snapshot())
    for name in network.names:
        network.crash(name, 1.0)
    network.clock.run(network.clock.now + 4.0)
    network.check()
    check_replay(network)
    assert {peer.epoch for peer in network.peers.values()} == {1}


def test_snapshots_of_an_earlier_version_are_read() -> None:
    """In which nodes held one visitor, and its seal was absent if it was at home."""
    parts = np.split(np.exp(SCORES)[:, None], [2, 4])
    network = VirtualNetwork(parts, [(0, 1), (1, 2)])
    homes = set()
    for _ in range(5):
        network.clock.run(network.clock.now + 1.0)
        for name, node in network.nodes.items():
            peer = node.peer
            fields = msgspec.msgpack.decode(peer.snapshot())
            (seal,), trips = fields[7:9]
            is_home = peer.estimator.visitors[0].home == name
            fields[7:9] = [
                None if is_home else seal,
                {home: last for home, (last,) in trips.items()},
            ]
            fields[-1] = fields[-1][:-1]  # no host
            restored = Peer(peer.identity, peer.source, peer.neighbours, peer.trust)
            restored.restore(msgspec.msgpack.encode(fields), [])
            assert restored.estimator.snapshot() == peer.estimator.snapshot()
            assert restored.trips == peer.trips
            neighbour = next(iter(peer.neighbours))
            assert restored._departing_seal(neighbour) == peer._departing_seal(neighbour)
            homes.add(is_home)
    assert homes == {True, False}


def test_numbers_that_nodes_send_stay_within_the_bounds_that_receivers_check() -> None:
    """Also where an edge is used many times in a row; clipping would make a replay differ."""
    rng, rule = np.random.default_rng(8), carried_means()
    for name in ("kendall-tau", "auc"):
        x = ROWS[name][np.argsort(SCORES)]
        tables = [LocalRows(Estimand(STATISTICS[name], row[None])) for row in x]
        nodes = [
            Estimator(str(k), rule, rows, first_state(rows, rule)) for k, rows in enumerate(tables)
        ]
        low, high = payload_bounds(tables[0].estimand, rule).T
        for _ in range(60):
            k = int(rng.integers(NODES - 1))
            for _ in range(int(rng.geometric(0.05))):
                exchange(nodes[k], nodes[k + 1], edge_share=0.5)
                for node in nodes[k : k + 2]:
                    sent = np.array(node.contribution("", 0.5).payload)
                    assert (low <= sent).all()
                    assert (sent <= high).all()


def test_kernel_values_are_within_the_ranges_that_are_declared() -> None:
    """The means that visitors carry are means of some kernel values, not of all of them."""
    data = make_data([(*RNG.exponential(size=2), k % 2, k % 3) for k in range(30)])
    for statistic in BUILT_IN:
        if statistic.mean_ranges and statistic.local is None:
            rows = LocalRows(Estimand(statistic, statistic.encode_rows(data, {})))
            values = np.array([rows.kernel(a, b) for a in rows.rows for b in rows.rows])
            low, high = np.array(statistic.mean_ranges).T
            assert (low <= values).all(), statistic.name
            assert (values <= high).all(), statistic.name


def pair(statistic: str) -> tuple[Peer, Peer]:
    """Return two peers with keys, after some exchanges."""
    network = hostile_network(3, [(0, 1), (1, 2)], 2, statistic=statistic)
    network.run(3.0)
    for node in network.nodes.values():
        node.pause()
    network.run(5.0)
    return network.peers["node-0"], network.peers["node-1"]


def hostile_network(
    nodes: int, edges: list[tuple[int, int]], attacker: int, seed: int = 0, **more: Any
) -> Any:
    more = {"statistic": "gini-mean-difference", "exchanges_per_second": 6.0} | more
    return HostileNetwork(
        nodes, edges, attacker, seed, sizes=[1] * nodes, protocol="carried-means", **more
    )


def luggage(*changes: tuple[int, float]) -> Callable[[tuple[float, ...]], tuple[float, ...]]:
    """Replace some of the last three numbers: rows compared with, mean, smoothed mean."""

    def change(payload: tuple[float, ...]) -> tuple[float, ...]:
        numbers = list(payload)
        for place, value in changes:
            numbers[place] = value
        return tuple(numbers)

    return change


HOSTILE: list[tuple[Callable[[tuple[float, ...]], tuple[float, ...]], str, str]] = [
    (luggage((-3, math.nan)), "malformed", ""),
    (luggage((-2, math.inf)), "malformed", ""),
    (luggage((-1, -1e251)), "malformed", ""),
    (lambda payload: payload[:-1], "malformed", ""),
    (lambda payload: (*payload, 0.0), "malformed", ""),
    (lambda payload: payload[:-3], "malformed", ""),
    (luggage((-3, -1.0)), "values", "its visitor carries -1, which the statistic cannot have"),
    (
        luggage((-3, 2 * MAX_COMPARED)),
        "values",
        "its visitor carries 1.8e+16, which the statistic cannot have",
    ),
    (luggage((-2, 1e30)), "values", "its visitor carries 1e+30, which the statistic cannot have"),
    (luggage((-1, -1e30)), "values", "its visitor carries -1e+30, which the statistic cannot have"),
    (
        luggage((-4, 20.0)),
        "values",
        "it tells a mean of 20, which the statistic cannot have",
    ),  # share of rows counted
]


@pytest.mark.parametrize(("change", "reason", "detail"), HOSTILE)
def test_hostile_luggage_is_declined_and_changes_nothing(
    change: Any, reason: str, detail: str
) -> None:
    first, second = PAIR
    first.pending = None
    offer, before = offer_of(first, "node-1", 7), state_of(second)
    changed = replace(
        offer, contribution=offer.contribution._replace(payload=change(offer.contribution.payload))
    )
    steps = second.handle("node-0", wire.decode(wire.encode(changed)), Moment(1.8e9, 1.8e9))
    assert wire.decode(next(steps).messages[0][1]) == wire.Decline(offer.id, reason)
    with pytest.raises(Rejected, match=reason) as rejected:
        list(steps)
    assert rejected.value.detail == detail or not detail
    assert state_of(second) == before


PAIR = pair("gini-mean-difference")


def test_means_beyond_the_range_of_a_statistic_are_rejected() -> None:
    rows = [
        LocalRows(Estimand(STATISTICS["kendall-tau"], row[None])) for row in ROWS["kendall-tau"]
    ]
    rule = carried_means()
    nodes = [Estimator(str(k), rule, own, first_state(own, rule)) for k, own in enumerate(rows)]
    for k in (0, 1, 0, 2):
        exchange(nodes[k], nodes[k + 1], 0.5)
    network = make_network("kendall-tau")
    trust, checks = network.trusts["node-0"], Checks(nodes[0])
    theirs = nodes[1].contribution("0", 0.5)
    checks.check("1", theirs, Seal(2, b""), trust, "", 1)
    for place, value in ((-6, 1.1), (-5, -0.1), (-4, 1.1), (-3, -1.1), (-2, 1.1), (-1, -0.1)):
        bad = theirs._replace(payload=luggage((place, value))(theirs.payload))
        with pytest.raises(Rejected, match="values") as rejected:
            checks.check("1", bad, Seal(2, b""), trust, "", 1)
        assert rejected.value.is_blamed


def test_several_rows_are_rejected() -> None:
    first, second = PAIR
    first.pending = None
    offer = offer_of(first, "node-1", 7)
    for fields in ({"rows": 2}, {"visitor": offer.contribution.visitor._replace(rows=2)}):
        with pytest.raises(Rejected, match="rows") as rejected:
            receive(
                second, "node-0", replace(offer, contribution=offer.contribution._replace(**fields))
            )
        assert "one row at each node" in rejected.value.detail


def test_a_visitor_whose_kernel_with_a_remembered_row_is_not_finite_is_rejected() -> None:
    """Nobody is blamed: neither the sender nor the two homes need to know of each other."""

    def product(x: Any, y: Any) -> Any:
        if x[0] == 5.0 and y[0] == 3.0:
            raise ZeroDivisionError
        return math.inf if x[0] == 5.0 and y[0] == 2.0 else x[0] * y[0]

    statistic, rule = package.statistic(name="product")(product), carried_means()
    for other in (2.0, 3.0):
        rows = [LocalRows(Estimand(statistic, np.array([[value]]))) for value in (1.0, other, 5.0)]
        nodes = [Estimator(str(k), rule, own, first_state(own, rule)) for k, own in enumerate(rows)]
        exchange(nodes[0], nodes[1], 0.5)
        trust, checks = make_network().trusts["node-0"], Checks(nodes[0])
        with pytest.raises(Rejected, match="visitor") as rejected:
            checks.check("2", nodes[2].contribution("0", 0.5), Seal(2, b""), trust, "", 1)
        assert not rejected.value.is_blamed


def highest_luggage(node: HostileNode, one: Any) -> dict[str, Any]:
    """The highest numbers that are accepted, or the lowest ones.

    Rows compared with from none to the highest number.
    """
    largest = 0.9 * node.peer.checks._widest_kernel
    compared, sign = node.rng.choice([0.0, 1.0, MAX_COMPARED]), node.rng.choice([-1.0, 1.0])
    return {"payload": (*one.contribution.payload[:-3], compared, sign * largest, -sign * largest)}


LIES: dict[str, tuple[Attack, str]] = {
    "a mean of 1e200": (
        altered(lambda _, one: {"payload": luggage((-2, 1e200))(one.contribution.payload)}),
        "values",
    ),
    "the highest luggage that is accepted": (altered(highest_luggage), ""),
    "a visitor of another node for everybody": (kept, ""),
}


@pytest.mark.parametrize("name", LIES)
def test_a_hostile_neighbour(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("test_hostile.HostileNetwork", hostile_network)
    attack, reason = LIES[name]
    network = attack_network(attack, nodes=4, seconds=8.0)
    found = {
        (one.neighbour, one.reason)
        for node in network.honest.values()
        for one in node.status().rejections
    }
    assert not reason or (network.attacker, reason) in found
    reasons = {fields["reason"] for _, event, fields in network.lines if event == "epoch started"}
    if attack is kept:
        assert any("second visitor" in one or "came back" in one for one in reasons)
    check_recovery(network)


def test_a_third_visitor_of_a_home_is_found() -> None:
    """Both visitors of a home can be at one node, but not one of them twice."""
    network = make_network()
    network.clock.run(5.0)
    for peer in network.peers.values():
        held = list(zip(peer.estimator.visitors, peer.seals, strict=True))
        for visitor, seal in held:
            assert "second visitor" in peer._find_second(visitor, seal)
            assert "second visitor" in peer._find_second(visitor, seal._replace(trip=seal.trip + 2))
        visitor, seal = held[0]
        if visitor.home not in (held[1][0].home, peer.name):
            assert (
                peer._find_second(
                    visitor, seal._replace(trip=peer.trips[visitor.home][1 - seal.trip % 2] + 2)
                )
                == ""
            )
    copies = consistency.locate_visitors(network.peers)
    assert sorted(copies) == [(name, copy) for name in network.names for copy in (0, 1)]
    lost = network.peers["node-0"]
    lost.estimator.visitors[0], lost.seals[0] = lost.estimator.visitors[1], lost.seals[1]
    assert len(consistency.find_lost_or_duplicated(network.peers)) == 2


def test_a_node_whose_row_was_sent_often_enough_still_passes_on_those_of_others() -> None:
    network = make_network(exchanges_per_second=4.0)
    limited = network.nodes["node-0"]
    settings = msgspec.structs.replace(limited.config.node, max_disclosures=2)
    limited.config = msgspec.structs.replace(limited.config, node=settings)
    network.clock.run(20.0)
    network.check()
    assert limited._disclosures[0] <= 2
    assert limited.peer.estimator.exchanges > 2


def test_one_row_at_each_node_is_required(tmp_path: Path) -> None:
    network = make_network()
    file = tmp_path / "data.csv"
    file.write_text("x1\n1.5\n")
    assert read_rows(network.task, file).tolist() == [[1.5]]
    file.write_text("x1\n1.5\n2.5\n")
    with pytest.raises(
        DataError,
        match=r"data.csv has 2 rows, and protocol = 'carried-means' is for exactly one row",
    ):
        read_rows(network.task, file)


def test_what_a_network_does_not_replace() -> None:
    for statistic, has_interval, message in (
        ("auc", True, "protocol = 'carried-means' has no intervals"),
        ("spearman-rho", False, "protocol = 'carried-means' does not estimate spearman-rho"),
    ):
        with pytest.raises(InputError, match=f"{message}.*each row's own mean; .*use tracking"):
            protocol_of_nodes("carried-means", STATISTICS[statistic], has_interval)
    assert (
        protocol_of_nodes("carried-means", STATISTICS["auc"], has_interval=False) is carried_means()
    )
    with pytest.raises(
        InputError, match="nodes of a network run tracking, relay, gosta-async, or carried-means"
    ):
        check_protocol("gosta-sync")


def test_a_network_of_processes(tmp_path: Path, gosta_: Any) -> None:
    """From `init` to a verified and replayed network.

    Then a second row at one node, which is refused.
    """
    data, folder = tmp_path / "rows.csv", tmp_path / "network"
    data.write_text("a,b\n1,2\n2,1\n3,5\n4,3\n")
    common = (
        "network",
        "init",
        folder,
        "--data",
        data,
        "--statistic",
        "kendall-tau",
        "--port",
        free(8),
    )
    code, _, err = gosta_(*common, "--protocol", "carried-means", "--nodes", 2)
    assert (code, err.count("\n")) == (2, 1)
    assert (
        "nodes = 2: protocol = 'carried-means' is for "
        "exactly one row at each node, and there are 4 rows" in err
    )
    assert "--nodes 4" in err
    code, _, err = gosta_(*common, "--protocol", "carried-means", "--nodes", 4, "--interval", "95%")
    assert code == 2
    assert "has no intervals" in err
    made = gosta_(
        *common, "--protocol", "carried-means", "--nodes", 4, "--exchanges-per-second", 60
    )
    assert made[0] == 0, made[2]
    assert "interval   none: protocol = 'carried-means' has no intervals" in made[1]
    run = gosta("network", "up", folder, "--until", "40%", "--json")
    assert run.returncode == 0, run.stderr
    exact = float(package.exact(str(data), "kendall-tau", columns=["a", "b"]))
    for line in run.stdout.splitlines():
        assert json.loads(line)["estimate"][0] == pytest.approx(exact, rel=0.4)
    code, out, err = gosta_("network", "verify", folder)
    assert code == 0, out + err
    assert "4 of 4 nodes, 2 each" in out
    assert json.loads(gosta_("replay", folder, "--json")[1])["differing"] == []
    assert "1 of 1" in gosta_("audit", folder / "node-0")[1]
    file = folder / "node-0" / "data.csv"
    file.write_text(file.read_text() + "7.0,8.0\n")
    for command in (
        ("node", folder / "node-0"),
        ("check", folder / "node-0"),
        ("network", "verify", folder),
    ):
        code, out, err = gosta_(*command)
        assert code == 2 or "check" in command
        assert (
            "has 2 rows, and protocol = 'carried-means' is for exactly one row at each node"
            in out + err
        )
    settings = folder / "node-1" / "node.toml"
    settings.write_text(
        settings.read_text().replace("\n[network]\n", "\n[network]\nconfidence_level = 0.95\n")
    )
    code, _, err = gosta_("node", folder / "node-1")
    assert code == 2
    assert "network.confidence_level = 0.95: protocol = 'carried-means' has no intervals" in err
    settings = folder / "node-2" / "node.toml"
    settings.write_text(settings.read_text().replace("max_disclosures = 0", "max_disclosures = 1"))
    code, _, err = gosta_("node", folder / "node-2")
    assert code == 2
    assert (
        "node.max_disclosures = 1: protocol = 'carried-means' sends two visitors of its row" in err
    )
