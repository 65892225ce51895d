"""Attacks by members of a network of private sums: on its noise, on its results, and by
contributing something else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from private_schedules import STRICT
from spies import (
    AUC,
    NOISY,
    RNG,
    SPY,
    Prepare,
    Spy,
    Words,
    change_parts,
    complete,
    keep_part,
    refuse_late,
    ring,
    scores,
)
from sum_network import SumNetwork
from virtual_network import START_TIME, MemoryJournal

from gosta.net.node.status import explain
from gosta.net.node.sum_node import SumNode
from gosta.net.protocol import messages as wire
from gosta.net.protocol import statements
from gosta.net.protocol.epochs import Moment, Step
from gosta.net.protocol.statements import Nonce, Opening, Part, Slot
from gosta.net.protocol.sum_epoch import Round
from gosta.net.protocol.sums import SumPeer
from gosta.private import deviations
from gosta.private.log import history_of
from gosta.private.noise import draw
from gosta.private.policy import MODES, Policy
from gosta.private.settings import PrivateSettings


def committed(is_noisy: bool = False) -> SumNetwork:
    """Return a network of which all sites but the spy have committed to their contributions."""
    more = AUC | ({"settings": NOISY} if is_noisy else {})
    network = SumNetwork([scores(40) for _ in range(5)], complete(5), **more)
    spy = network.sum_peers[SPY]
    commit = spy._commit_or_refuse
    spy._commit_or_refuse = lambda *now: commit(*now) if network.clock.now > 1.7 else Step()  # type: ignore
    network.clock.run(1.5)
    assert Slot("commit", "node-0", 1) in network.sum_peers["node-0"].slots
    return network


def stop_site(network: SumNetwork, how: str) -> None:
    if how == "forbid":
        network.policies["node-0"] = Policy(modes=MODES, statistics=("none",))
        network.change("node-0")
    elif how == "leave":
        network.agree("node-0", "node-0", leaves=True)
    elif how == "withdraw":
        network.nodes["node-0"].withdraw()
    else:
        network.nodes["node-0"]._find_conflict = lambda: "two lists"  # type: ignore
        network.sum_peers["node-0"].conflict = "two lists"


@pytest.mark.parametrize("stop", ["forbid", "leave", "withdraw", "conflict"])
@pytest.mark.parametrize("is_noisy", [False, True])
def test_a_site_that_stops_between_commitment_and_contribution_sends_nothing(
    stop: str, is_noisy: bool
) -> None:
    network = committed(is_noisy)
    stop_site(network, stop)
    network.clock.run(10.0)
    assert "contribution" not in [one.event for one in network.sum_peers["node-0"].log]


def test_a_list_that_changes_between_commitment_and_contribution() -> None:
    """The name of a participant has another key after the others committed.

    The total would be of the former one.
    """
    network = committed()
    network.keys["node-4"] = Ed25519PrivateKey.generate()
    network.accept(network.names, 2)
    network.change("node-0")
    network.clock.run(10.0)
    peer = network.sum_peers["node-0"]
    made = [one.participants for one in peer.log if one.event == "contribution"]
    assert not [names for names in made if "node-4" in names], "only totals without the former site"


def test_a_nonce_is_the_one_to_which_its_site_committed() -> None:
    """Otherwise the last one to show a nonce would choose who shares masks with whom."""
    network = committed()
    epoch, other = (network.sum_peers[name].current for name in ("node-0", "node-2"))
    nonce = Nonce(*other.head, other.nonce())
    assert epoch.is_due(nonce)
    assert not epoch.is_due(msgspec.structs.replace(nonce, value=bytes(32)))


@pytest.mark.parametrize("stop", ["forbid", "withdraw", "conflict"])
def test_a_site_that_stops_opens_no_masks(stop: str) -> None:
    """The spy shows a part that no rows have, after the site that it is interested in has
    stopped.
    """
    network = SumNetwork([scores(100) for _ in range(5)], complete(5), settings=NOISY, **AUC)
    spy, peer = network.sum_peers[SPY], network.sum_peers["node-0"]
    change_parts(spy, a_million_rows)
    show = spy._show_part
    spy._show_part = lambda *given: show(*given) if network.clock.now > 2.0 else Step()  # type: ignore
    network.clock.run(2.0)
    assert Slot("part", "node-0", 1) in peer.slots
    stop_site(network, stop)
    network.clock.run(8.0)
    assert "opening" not in [one.event for one in peer.log]
    assert Slot("opening", "node-0", 1) not in spy.slots


def test_who_starts_the_next_epoch_early_does_not_waste_epsilon() -> None:
    """The spy commits last, and starts another epoch when all have its part, and before they have
    the total.
    """
    network = SumNetwork([scores(100) for _ in range(5)], complete(5), settings=NOISY, **AUC)
    others, spy = (
        [network.sum_peers[name] for name in network.names if name != SPY],
        network.sum_peers[SPY],
    )
    commit, due = spy._commit_or_refuse, Slot("commit", "", 1)
    spy._commit_or_refuse = lambda *given: (  # type: ignore
        commit(*given) if spy.current.lacking(due) == [SPY] else Step()
    )
    while not all(
        Slot("part", name, 1) in peer.slots for peer in others for name in (SPY, peer.name)
    ):
        network.clock.run(network.clock.now + 0.001)
    assert not any(peer.is_complete for peer in others)
    network.nodes[SPY]._execute(spy.start_epoch("a lie"))
    network.clock.run(3.0)
    for peer in others:
        assert [one.event for one in peer.log if one.epoch == 1] == ["contribution", "release"]


def test_a_total_that_is_paid_does_not_make_waste_forgotten() -> None:
    """The spy joins with other rows and keeps its part, twice.

    Then with its own rows, which cost nobody anything.
    """
    network = SumNetwork([scores(40) for _ in range(5)], complete(5), settings=NOISY, **AUC)
    network.clock.run(4.0)
    spy, peer = network.sum_peers[SPY], network.sum_peers["node-0"]
    honest, show = spy.snapshot_tag(), spy._show_part
    is_bad, tags = [True], dict[int, bytes]()
    spy._verdict_on_rows = lambda *_: ""  # type: ignore
    spy.snapshot_tag = lambda: tags.setdefault(spy.epoch, RNG.bytes(16)) if is_bad[0] else honest  # type: ignore
    spy._show_part = lambda *given: Step() if is_bad[0] else show(*given)  # type: ignore
    for wanted in (1, 2):
        network.nodes[SPY].request_epoch()
        while peer.memory.wasted.get(SPY) != wanted:
            network.clock.run(network.clock.now + 0.5)
            assert network.clock.now < 60.0
    is_bad[0] = False
    network.clock.run(network.clock.now + 90.0)
    assert peer.memory.wasted == {SPY: 2}


def test_parts_without_a_commitment_do_not_fill_the_memory() -> None:
    network = SumNetwork([scores(40) for _ in range(4)], complete(4), **AUC)
    peer, node = network.sum_peers[SPY], network.nodes[SPY]
    peer._show_part = lambda *_: Step()  # type: ignore
    network.clock.run(2.0)
    size = network.layout.size + deviations.CHECKS
    for k in range(50):
        vector = statements.pack(np.full(size, k, np.uint64))
        part = Part(
            *peer.current.id, SPY, peer.current.roster_id, 1, peer.current.commits(1), vector
        )
        link = node.contacts["node-0"].link
        assert link is not None
        link.send(wire.encode(wire.Give(peer._signed(part))))
    network.clock.run(2.2)
    kept = [slot for slot in network.sum_peers["node-0"].slots if slot.kind == "evidence"]
    assert len(kept) <= 1
    assert network.nodes["node-0"].counters["rejected: statement"]


def test_a_name_with_another_key_gets_other_noise() -> None:
    """The coordinator gives a name to a key of its own, which repeats what the former site said of
    its rows.
    """
    network = SumNetwork([scores(100) for _ in range(8)], complete(8), settings=NOISY, **AUC)
    network.clock.run(6.0)
    victim = "node-6"
    tag = network.sum_peers[SPY].current.joins[victim].snapshot
    network.crash(victim, float("inf"))
    network.keys[victim] = Ed25519PrivateKey.generate()
    network.accept(network.names, 2)
    network.journals[victim] = MemoryJournal(**network.journal_options)
    for name in network.names:
        network.change(name)
    network.start(victim)
    network.sum_peers[victim].snapshot_tag = lambda: tag  # type: ignore
    network.sum_peers[victim]._verdict_on_rows = lambda *_: ""  # type: ignore
    network.clock.run(30.0)
    assert victim in network.sum_peers["node-0"].current.participants
    noise = [one.noise for one in network.sum_peers["node-0"].log if one.event == "contribution"]
    assert len(set(noise)) == len(noise) > 1
    assert len(network.sum_peers["node-0"].history()) == len(noise), "the new noise is paid"


def spent(network: SumNetwork, name: str) -> float:
    return sum(
        one.spent.epsilon for one in network.sum_peers[name].history() if one.spent is not None
    )


@pytest.mark.parametrize("prepare", [keep_part, refuse_late])
@pytest.mark.parametrize("seconds", [100.0])
def test_noise_cannot_be_averaged_away(prepare: Prepare, seconds: float) -> None:
    network = SumNetwork([scores(40) for _ in range(5)], complete(5), settings=NOISY, **AUC)
    spy = Spy(network)
    prepare(network.sum_peers[SPY])
    while network.clock.now < seconds:
        network.nodes[SPY].request_epoch()
        spy.run(network.clock.now + 1.0)
    of_all = {total.tobytes() for total, _, names in spy.totals.values() if len(names) == 5}
    assert len(spy.totals) > 3
    assert len(of_all) == 1, "the same rows have the same noise"
    assert max(spent(network, name) for name in network.names if name != SPY) <= 2.0
    others = [network.sum_peers[name] for name in network.names if name != SPY]
    assert all(peer.report is not None for peer in others), "the others have a result without it"


def test_a_member_that_claims_other_rows_each_time_wastes_two_releases_at_most() -> None:
    network = SumNetwork([scores(40) for _ in range(5)], complete(5), settings=NOISY, **AUC)
    spy, peer = Spy(network), network.sum_peers[SPY]
    keep_part(peer)
    peer.snapshot_tag = lambda: RNG.bytes(16)  # type: ignore
    peer._verdict_on_rows = lambda *_: ""  # type: ignore
    while network.clock.now < 150.0:
        network.nodes[SPY].request_epoch()
        spy.run(network.clock.now + 1.0)
    assert len({total.tobytes() for total, *_ in spy.totals.values()}) <= 4
    assert max(spent(network, name) for name in network.names if name != SPY) <= 3.0
    assert network.sum_peers["node-0"].memory.wasted[SPY] == 2


def claim_other_rows(peer: SumPeer) -> None:
    """Say in each epoch that the own rows are others than before, so that all noise is new."""
    tags: dict[int, bytes] = {}
    peer.snapshot_tag = lambda: tags.setdefault(peer.epoch, RNG.bytes(16))  # type: ignore
    peer._verdict_on_rows = lambda *_: ""  # type: ignore


def join_twice(network: SumNetwork) -> None:
    """Wait for the contributions of all others, and then sign another word on joining."""
    peer, node = network.sum_peers[SPY], network.nodes[SPY]
    assert isinstance(node, SumNode)
    current, slot = peer.current, Slot("second join", SPY)
    if (
        SPY in current.participants
        and slot not in peer.slots
        and current.lacking(Slot("part", "", 1)) == [SPY]
    ):
        own = current.joins[SPY]
        second = statements.sign(
            msgspec.structs.replace(own, min_cell=own.min_cell + 1),
            network.task.id,
            network.trusts[SPY],
        )
        current.pool.insert(second, slot)
        node._tell()


def test_who_joins_twice_wastes_two_releases_at_most() -> None:
    network = SumNetwork([scores(40) for _ in range(5)], complete(5), settings=NOISY, **AUC)
    peer = network.sum_peers[SPY]
    keep_part(peer)
    claim_other_rows(peer)
    while network.clock.now < 150.0:
        network.nodes["node-0"].request_epoch()
        for _ in range(40):
            network.clock.run(network.clock.now + 0.05)
            join_twice(network)
    assert max(spent(network, name) for name in network.names if name != SPY) <= 3.0
    assert network.sum_peers["node-0"].memory.wasted[SPY] == 2


def test_who_contributes_to_first_rounds_only_wastes_two_releases_at_most() -> None:
    settings = msgspec.structs.replace(NOISY, find_edges=True)
    network = SumNetwork([scores(40) for _ in range(5)], complete(5), settings=settings, **AUC)
    peer = network.sum_peers[SPY]
    claim_other_rows(peer)
    honest = peer._commit_or_refuse
    peer._commit_or_refuse = lambda current, now: (  # type: ignore
        honest(current, now) if current.number == 1 else Step()
    )
    while network.clock.now < 150.0:
        network.nodes[SPY].request_epoch()
        network.clock.run(network.clock.now + 2.0)
    assert max(spent(network, name) for name in network.names if name != SPY) <= 3.0
    assert network.sum_peers["node-0"].memory.wasted[SPY] == 2


def test_edges_that_a_member_moves_are_releases_of_the_day() -> None:
    """The first round has the noise of the one before, and is paid.

    The second one has new edges, and new noise.
    """
    policy = Policy(
        modes=MODES, min_rows=0, min_share=0.66, epsilon_budget=30.0, releases_per_day=3
    )
    settings, names = (
        msgspec.structs.replace(NOISY, find_edges=True),
        [f"node-{k}" for k in range(5)],
    )
    network = SumNetwork(
        [scores(60) for _ in names],
        complete(5),
        settings=settings,
        policies=dict.fromkeys(names, policy),
        **AUC,
    )
    peer, moved = network.sum_peers[SPY], iter(range(1, 100))

    def move(vector: Words) -> Words:
        if not peer.current.totals:
            place = next(moved)
            vector[(37 * place) % 256] += np.uint64(30 + 3 * place)
        return vector

    change_parts(peer, move)
    network.clock.run(5.0)
    for _ in range(10):
        network.nodes[SPY].request_epoch()
        network.clock.run(network.clock.now + 10.5)
    assert 1.5 <= spent(network, "node-0") <= 3.0


def test_noise_of_all_sites_is_new_when_the_rows_of_one_change() -> None:
    """Noise that followed from a site's own rows would leave only one site's noise in the
    difference of two totals.
    """
    settings = PrivateSettings(
        bins=512, ranges={"": (0.0, 1.0)}, epsilon=1.0, colluding=0, deadline_seconds=2.0
    )
    network = SumNetwork([scores(40) for _ in range(8)], complete(8), settings=settings, **AUC)
    spy = Spy(network)
    spy.run(5.0)
    before = network.plain_sums(network.names)
    network.change("node-0", scores(40))
    spy.run(20.0)
    change = (network.plain_sums(network.names) - before).view(np.int64) / 2.0**24
    first, second = (total.view(np.int64) for total, *_ in list(spy.totals.values())[:2])
    noise = second - first - change
    peer = network.sum_peers["node-0"]
    one_total = next(iter(peer.current._rounds.values())).noise.variance
    # Of 1,024 numbers the variance is within a quarter of 2 σ² but once in 10^5; of two shares it
    # would be σ²/4.
    assert abs(np.var(noise) / (2 * one_total) - 1) < 0.25


def test_a_member_that_asks_for_large_cells_is_left_out() -> None:
    policies = {SPY: msgspec.structs.replace(STRICT, min_cell=2**53 - 1, max_min_cell=2**53)}
    network = SumNetwork(
        [scores(40) for _ in range(5)],
        complete(5),
        policies={f"node-{k}": STRICT for k in range(5)} | policies,
        **AUC,
    )
    network.clock.run(20.0)
    others = [network.sum_peers[name] for name in network.names if name != SPY]
    assert {peer.state() for peer in others} == {"complete"}
    assert {peer.current.participants for peer in others} == {
        ("node-0", "node-2", "node-3", "node-4")
    }
    assert all(peer.report is not None and peer.report.results[0].has_value for peer in others)
    assert "asks for cells of 9,007,199,254,740,991 rows" in others[0].left_out_reasons()[SPY]


def a_million_rows(vector: Words) -> Words:
    vector[:4] += np.uint64(10**6 << 24)  # missed by all halves but once in 2^32
    return vector


def rows_that_are_taken_away(vector: Words) -> Words:
    vector[4:8] -= np.uint64(10**6 << 24)
    return vector


def random_numbers(vector: Words) -> Words:
    return RNG.integers(0, 2**64, len(vector), np.uint64)


def false_masks(vector: Words) -> Words:
    vector[: len(vector) // 2] ^= np.uint64(2**63)
    return vector


CHANGES = [a_million_rows, rows_that_are_taken_away, random_numbers, false_masks]


@pytest.mark.parametrize(
    ("change", "sites"),
    [*((change, sites) for change in CHANGES for sites in (3, 5)), (random_numbers, 53)],
)
def test_who_deviates_is_named(change: Callable[[Words], Words], sites: int) -> None:
    """Also among more than 51 sites, whose partners follow from a beacon."""
    network = SumNetwork(
        [scores(20) for _ in range(sites)], complete(sites) if sites < 9 else ring(sites), **AUC
    )
    peer = network.sum_peers[SPY]
    change_parts(peer, change)
    honest = [name for name in network.names if name != SPY]
    while network.clock.now < 30.0 and not all(network.sum_peers[name].report for name in honest):
        network.clock.run(network.clock.now + 0.5)
    for name in honest:
        found = network.sum_peers[name]
        assert set(found.memory.deviating) == {SPY}
        assert found.report is not None
        assert found.report.participants == tuple(sorted(honest))
        assert found.report.vector == statements.pack(network.plain_sums(honest))


@pytest.mark.parametrize(("lies_to", "named"), [(1, "pair"), (4, "alone")])
def test_who_opens_false_masks_is_named_beside_the_other_one(lies_to: int, named: str) -> None:
    """It contributes a million rows, and opens masks that make its sum look right."""
    network = SumNetwork([scores(20) for _ in range(5)], complete(5), **AUC)
    peer = network.sum_peers[SPY]
    change_parts(peer, a_million_rows)
    say = peer._say

    def lie(statement: Any, *others: Any, **entries: Any) -> Step:
        if isinstance(statement, Opening):
            assert peer.current.implausible is not None
            words = statements.unpack(statement.words).reshape(4, -1).copy()
            halves = peer.current._halves(peer.current.implausible)
            too_much = halves[:, :4].sum(axis=1, dtype=np.uint64) * np.uint64(10**6 << 24)
            words[0] += too_much
            for k in range(1, lies_to):
                words[k] += np.uint64(k)
            statement = msgspec.structs.replace(statement, words=statements.pack(words))
        return say(statement, *others, **entries)

    peer._say = lie  # type: ignore
    network.clock.run(30.0)
    for name in (name for name in network.names if name != SPY):
        found = network.sum_peers[name]
        if named == "pair":
            assert (found.state(), found.current.suspects, found.report) == (
                "implausible",
                (("node-0", SPY),),
                None,
            )
            assert f"node-0 or {SPY} deviates" in explain(found)
        else:
            assert set(found.memory.deviating) == {SPY}
            assert found.state() == "complete"


def test_an_opening_is_as_private_as_it_is_charged() -> None:
    """Of 20,000 openings the likelier ones beside a neighbouring table are so by no more than the
    charge allows.
    """
    opening = deviations.pad_noise(bits=0, features=1, rows=deviations.LEAST_ROWS)
    sums, other = np.array([9, 0, 4, 7], dtype=np.uint64), np.array([8, 1, 4, 7], dtype=np.uint64)
    # as telling as can be
    halves = np.hstack([np.tile([True, False, True, False], (8, 1)), np.eye(8, dtype=bool)])
    draws, opened = 20_000, []
    for vector in (sums, other):
        pads = draw(opening, 8 * draws, np.random.default_rng(3).bytes).reshape(-1, 8)
        shown = [
            deviations.add_up(np.concatenate([vector, pad]), halves).view(np.int64) for pad in pads
        ]
        opened.append(np.sum(np.array(shown) > 12, axis=1) > 4)
    p, q = (float(np.mean(likely)) for likely in opened)
    # Both shares have standard errors of 0.0035; the bound is broken by five of them but once in
    # 10^6.
    assert p > q
    assert p <= np.exp(opening.epsilon) * q + opening.delta + 5 * 0.0035 * 2


def test_openings_tell_little_of_the_sums_of_a_site() -> None:
    """Three openings are 24 equations for 16 sums: what a member solves for is farther off than it
    could guess.
    """
    network = SumNetwork([scores(900) for _ in range(4)], complete(4), **AUC)
    peer = network.sum_peers[SPY]
    change_parts(peer, fewer_than_none)
    equations, seen, epochs = [], [], set()
    while network.clock.now < 40.0:
        network.clock.run(network.clock.now + 0.05)
        current, round_ = peer.current, peer.current.implausible
        if round_ is None or current.lacking(Slot("opening", "", 1)) or current.id in epochs:
            continue
        epochs.add(current.id)
        halves, opening = current._halves(round_), peer.slots[Slot("opening", "node-0", 1)][1]
        assert isinstance(opening, Opening)
        opened = (
            statements.unpack(opening.words)
            .reshape(-1, deviations.CHECKS)
            .sum(axis=0, dtype=np.uint64)
        )
        left = deviations.add_up(current.vectors(round_)["node-0"], halves) - opened
        equations.append(halves[:, : round_.layout.size].astype(float))
        seen.append(left.view(np.int64) / 2.0**24)
        network.nodes[SPY].request_epoch()
    assert len(epochs) == deviations.MAX_OPENINGS
    truth = network.plain_sums(["node-0"]).view(np.int64) / 2.0**24
    solved = np.linalg.lstsq(np.vstack(equations), np.concatenate(seen), rcond=None)[0]
    guess = np.full(len(truth), network.declared / len(truth))
    assert np.linalg.norm(solved - truth) > 3 * np.linalg.norm(guess - truth)


def fewer_than_none(vector: Words) -> Words:
    """Take away more rows from a bin than all sites have there, and too few to be named."""
    vector[3] -= np.uint64(400 << 24)
    return vector


def test_masks_are_opened_few_times() -> None:
    """A member deviates again and again, by too little to be named: the pads cannot be averaged
    away.
    """
    network = SumNetwork([scores(20) for _ in range(4)], complete(4), **AUC)
    peer = network.sum_peers[SPY]
    change_parts(peer, fewer_than_none)
    for second in range(1, 30):
        network.clock.run(2.0 * second)
        network.nodes[SPY].request_epoch()
    for name in (name for name in network.names if name != SPY):
        honest = network.sum_peers[name]
        openings = [one for one in honest.log if one.event == "opening"]
        assert len(openings) == deviations.MAX_OPENINGS
        assert not honest.memory.deviating
        assert len([one for one in history_of(honest.log) if one.spent is not None]) == len(
            openings
        )
        assert "leave out sites one after the other" in explain(honest)


def test_without_epsilon_no_masks_are_opened() -> None:
    """An opening is charged to the budget."""
    policy = Policy(modes=MODES, min_rows=0, min_sites=0, min_share=0.5, epsilon_budget=1.005)
    settings = msgspec.structs.replace(NOISY, delta=0.0)
    network = SumNetwork(
        [scores(20) for _ in range(4)],
        complete(4),
        settings=settings,
        policies={"node-0": policy},
        **AUC,
    )
    change_parts(network.sum_peers[SPY], random_numbers)
    network.clock.run(1.9)
    poor, rich = network.sum_peers["node-0"], network.sum_peers["node-2"]
    opening = deviations.pad_noise(bits=0, features=1, rows=network.declared).epsilon
    assert [one.event for one in poor.log] == ["contribution"]
    assert [(one.event, one.epsilon) for one in rich.log] == [
        ("contribution", 1.0),
        ("opening", opening),
    ]
    assert "epsilon 1 spent, 0.00972 more would exceed the budget of 1.005" in explain(poor)


def test_nobody_chooses_its_part_by_those_of_others() -> None:
    """A member that has all other parts shows what makes the total what it wants: that is not what
    it committed to.
    """
    network = SumNetwork([scores(30) for _ in range(4)], complete(4), **AUC)
    peer = network.sum_peers[SPY]
    wanted = np.zeros(peer.source.layout.size, dtype=np.uint64)
    show = peer._show_part

    def rush(current: Round, now: Moment, connected: Any) -> Step:
        others = [name for name in peer.current.participants if name != SPY]
        held = [peer.slots.get(Slot("part", name, current.number)) for name in others]
        if any(one is None for one in held):
            return Step()
        parts = [
            statements.unpack(one[1].vector)
            for one in held
            if one is not None and isinstance(one[1], Part)
        ]
        vector: Words = np.uint64(0) - np.array(parts).sum(axis=0, dtype=np.uint64)
        vector[: len(wanted)] += wanted
        step = show(current, now, connected)
        (record,) = step.records
        identity = (
            *peer.current.id,
            SPY,
            peer.current.roster_id,
            current.number,
            peer.current.commits(current.number),
        )
        forged = peer._signed(Part(*identity, statements.pack(vector)))
        return step._replace(records=(msgspec.structs.replace(record, signed=forged),))

    peer._show_part = rush  # type: ignore
    network.clock.run(20.0)
    honest = [name for name in network.names if name != SPY]
    for name in honest:
        found = network.sum_peers[name]
        assert (
            found.memory.deviating[SPY].what
            == "showed another contribution than the one to which it had committed"
        )
        assert found.report is not None
        assert found.report.participants == tuple(honest)


@pytest.mark.parametrize("jump", [-1e6, 1e6])
@pytest.mark.parametrize("is_late_to", ["join", "contribute"])
def test_deadlines_do_not_follow_the_clock_on_the_wall(is_late_to: str, jump: float) -> None:
    network = SumNetwork([scores(30) for _ in range(4)], complete(4), **AUC)
    if is_late_to == "join":
        network.crash("node-3", float("inf"))
    else:
        network.sum_peers["node-3"]._contribute = lambda *_: iter(())  # type: ignore
    for node in network.nodes.values():
        node.clock = lambda: (
            START_TIME + network.clock.now + (jump if network.clock.now > 1.0 else 0.0)
        )
    network.clock.run(1.9)
    rosters = {peer.current.roster is None for peer in network.sum_peers.values()}
    assert rosters == {is_late_to == "join"}
    assert max(peer.epoch for peer in network.sum_peers.values()) == 1
    network.clock.run(12.0)
    assert {network.sum_peers[name].state() for name in network.names[:3]} == {"complete"}
