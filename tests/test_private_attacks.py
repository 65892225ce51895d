"""Attacks by members of a network of private sums: what they know in the end is what the policies allow.

The spy is a member with a valid key. It keeps everything that it is sent, and adds up every total that it can open,
whether or not the others ever see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import msgspec
import numpy as np
import pytest
from sum_network import SumNetwork
from test_private_sums import STRICT, strict
from virtual_network import START_TIME

from gosta.net.protocol import site, statements
from gosta.net.protocol.epochs import Moment, Step
from gosta.net.protocol.statements import Opening, Part, Refusal, Roster, Slot
from gosta.net.protocol.sum_epoch import Round
from gosta.net.protocol.sum_reasons import explain
from gosta.net.protocol.sums import FALSE_MASKS, SumPeer, Verdict
from gosta.private import deviations, groups
from gosta.private.noise import NO_NOISE, draw
from gosta.private.policy import MODES, Policy
from gosta.private.settings import PrivateSettings
from gosta.private.snapshots import RowSnapshot

RNG = np.random.default_rng(29)
SPY = "node-1"
Words = np.ndarray[Any, Any]
Prepare = Callable[[SumPeer], None]
NOISY = PrivateSettings(bins=8, ranges={"": (0.0, 1.0)}, epsilon=1.0, deadline_seconds=2.0)
AUC: dict[str, Any] = {"statistic": "auc", "score": "score", "label": "label", "classes": (0, 1)}


def complete(nodes: int) -> list[tuple[int, int]]:
    return list(combinations(range(nodes), 2))


def scores(rows: int) -> Words:
    return np.column_stack([RNG.random(rows).round(3), np.arange(rows) % 2])


class Spy:
    """All totals that a member can open."""

    def __init__(self, network: SumNetwork, name: str = SPY) -> None:
        self.network, self.name = network, name
        self.totals: dict[tuple[int, str, int], tuple[Words, str, tuple[str, ...]]] = {}

    def run(self, until: float) -> None:
        """Let time pass; add up what can be added up."""
        while self.network.clock.now < until:
            self.network.clock.run(min(until, self.network.clock.now + 0.02))
            peer = self.network.sum_peers[self.name]
            for number, current in peer.current._rounds.items():
                self._add_up(peer, current, number)

    def _add_up(self, peer: SumPeer, current: Round, number: int) -> None:
        held = {name: peer.slots.get(Slot("part", name, number)) for name in peer.current.participants}
        parts = {name: one[1] for name, one in held.items() if one is not None and isinstance(one[1], Part)}
        vectors = {name: statements.unpack(part.vector) for name, part in parts.items()}
        if number in peer.current._parts:
            vectors[self.name] = peer.current._parts[number]
        if set(vectors) == set(peer.current.participants):
            total: Words = np.array(list(vectors.values())).sum(axis=0, dtype=np.uint64)[: current.layout.size]
            self.totals[(*peer.current.id, number)] = total, current.layout.fingerprint, peer.current.participants

    def differences(self) -> Iterator[Words]:
        """Yield the differences of all pairs of totals of the same sums."""
        for (first, layout, _), (second, other, _) in combinations(self.totals.values(), 2):
            if layout == other:
                yield (first - second).view(np.int64) / 2.0**24


def make_part(peer: SumPeer, current: Round) -> Words:
    assert peer.rows is not None
    return peer.current.part(current, peer.rows, peer.memory.secret)


def change_parts(peer: SumPeer, change: Callable[[Words], Words]) -> None:
    """Contribute something else, and commit to that."""
    honest = peer._part

    def part(current: Round, rows: RowSnapshot) -> bytes:
        if current.number not in peer.current._parts:
            honest(current, rows)
            peer.current._parts[current.number] = change(peer.current._parts[current.number].copy())
        return honest(current, rows)

    peer._part = part  # type: ignore


def keep_part(peer: SumPeer) -> None:
    """Take part, and keep the own contribution back."""

    def show(current: Round, _now: Moment, _connected: object) -> Step:
        make_part(peer, current)
        return Step()

    peer._show_part = show  # type: ignore


def refuse_late(peer: SumPeer) -> None:
    """Take part, wait for the contributions of all others, and refuse."""

    def show(current: Round, _now: Moment, _connected: object) -> Step:
        make_part(peer, current)
        if peer.current.lacking(Slot("part", "", current.number)) == [peer.name]:
            return peer._say(Refusal(*peer.current.id, peer.name, peer.current.roster_id, ()))
        return Step()

    peer._show_part = show  # type: ignore


@pytest.mark.parametrize("find_edges", [False, True])
@pytest.mark.parametrize("column", [0, 1])
def test_one_corrected_row_shows_in_no_difference(find_edges: bool, column: int) -> None:
    """A score or a label of one row is corrected, then those of more rows, and epochs are started again and again."""
    parts = [scores(60) for _ in range(5)]
    settings = PrivateSettings(bins=16, ranges={"": (0.0, 1.0)}, find_edges=find_edges, deadline_seconds=2.0)
    network = strict(parts, complete(5), settings=settings, **AUC)
    spy = Spy(network)
    spy.run(5.0)
    changed = parts[0].copy()
    for k in range(9):
        changed[2 * k, column] = 1
        network.change("node-0", changed.copy())
        network.nodes[SPY].request_epoch()
        spy.run(network.clock.now + 12.0)
    assert len(spy.totals) >= 8
    assert all(not difference.any() for difference in spy.differences())
    assert {peer.state() for peer in network.sum_peers.values()} == {"complete"}
    changed[18:40:2, column] = 1
    network.change("node-0", changed)
    spy.run(network.clock.now + 12.0)
    assert max(np.abs(difference).sum() for difference in spy.differences()) >= 10


def test_few_people_in_any_block_of_sums_do_not_hide_behind_many_in_another() -> None:
    """All scores change a little, so that every row of the file is another one; one label changes, too."""
    parts = [scores(60) for _ in range(4)]
    network = strict(parts, complete(4), **AUC)
    spy = Spy(network)
    spy.run(5.0)
    changed = parts[0].copy()
    changed[:, 0] += 1e-6
    changed[0, 1] = 1 - changed[0, 1]
    network.change("node-0", changed)
    network.nodes[SPY].request_epoch()
    spy.run(20.0)
    assert all(not difference.any() for difference in spy.differences())


def test_a_file_that_goes_back_is_compared_with_all_earlier_contributions() -> None:
    """Twelve rows change, and then all but one of them change back: that one must not show."""
    parts = [scores(60) for _ in range(4)]
    network = strict(parts, complete(4), **AUC)
    spy = Spy(network)
    spy.run(5.0)
    changed = parts[0].copy()
    changed[:12, 1] = 1 - changed[:12, 1]
    network.change("node-0", changed)
    spy.run(20.0)
    back = parts[0].copy()
    back[0, 1] = 1 - back[0, 1]
    network.change("node-0", back)
    network.nodes[SPY].request_epoch()
    spy.run(40.0)
    for difference in spy.differences():
        assert not difference.any() or np.abs(difference).sum() == 24


@pytest.mark.parametrize("prepare", [keep_part, refuse_late])
@pytest.mark.parametrize("end", ["leaves", "is removed", "crashes"])
def test_the_sums_of_a_site_that_goes_stay_unknown(prepare: Prepare, end: str) -> None:
    """The spy opens totals alone; then a site goes, and the spy does so again."""
    network = strict([scores(40) for _ in range(5)], complete(5), **AUC)
    gone = network.plain_sums(["node-4"]).view(np.int64) / 2.0**24
    spy = Spy(network)
    prepare(network.sum_peers[SPY])
    spy.run(6.0)
    assert spy.totals, "the attack takes place"
    if end == "is removed":
        network.remove_member("node-4")
    elif end == "crashes":
        network.crash("node-4", float("inf"))
    else:
        network.policies["node-4"] = Policy(modes=MODES, statistics=("none",))
        network.change("node-4")
    for second in (20.0, 35.0, 50.0):
        spy.run(second)
        network.nodes[SPY].request_epoch()
    assert not any(np.array_equal(np.abs(difference), gone) for difference in spy.differences())
    assert all(not difference.any() for difference in spy.differences())
    assert "gosta network agree FOLDER node-4" in explain(network.sum_peers["node-0"])


def test_a_network_goes_on_without_a_site_when_all_agree() -> None:
    network = strict([scores(40) for _ in range(5)], complete(5), **AUC)
    network.clock.run(5.0)
    network.remove_member("node-4")
    network.clock.run(15.0)
    assert {peer.state() for peer in network.sum_peers.values()} == {"suppressed"}
    assert network.sum_peers["node-0"].needed_agreements == ("node-4",)
    for name in network.names:
        network.agree(name, "node-4")
    network.clock.run(45.0)
    network.check()
    assert {peer.current.participants for peer in network.sum_peers.values()} == {tuple(network.names)}
    assert {peer.state() for peer in network.sum_peers.values()} == {"complete"}


def test_a_site_that_leaves_by_its_own_word_holds_nobody_up() -> None:
    network = strict([scores(40) for _ in range(5)], complete(5), **AUC)
    network.clock.run(5.0)
    network.agree("node-4", "node-4", leaves=True)
    network.clock.run(15.0)
    network.crash("node-4", float("inf"))
    network.nodes["node-0"].request_epoch()
    network.clock.run(30.0)
    others = network.names[:4]
    assert {network.sum_peers[name].current.participants for name in others} == {tuple(others)}
    assert {network.sum_peers[name].state() for name in others} == {"complete"}


def test_chosen_rosters_do_not_solve_for_a_site() -> None:
    """Seven totals over four of seven sites each, of which any two differ in four: all sums would follow from them."""
    fano = [(0, 1, 2), (0, 3, 4), (0, 5, 6), (1, 3, 5), (1, 4, 6), (2, 3, 6), (2, 4, 5)]
    names = [f"node-{k}" for k in range(7)]
    rosters = [tuple(name for k, name in enumerate(names) if k not in line) for line in fano]
    matrix = np.array([[name in roster for name in names] for roster in rosters], dtype=float)
    assert np.linalg.matrix_rank(matrix) == 7
    assert all(len(set(a) ^ set(b)) >= 3 for a, b in combinations(rosters, 2)), "a rule for pairs would allow them"
    made: groups.Groups = ()
    for k, roster in enumerate(rosters):
        made = groups.refine(made, roster)
        assert bool(groups.exposed(made, 3)) == (k > 0)


def choose_rosters(peer: SumPeer) -> list[tuple[str, ...]]:
    """Let a spy choose the participants of epochs that it starts: the last ones of the list, with itself."""
    wanted: list[tuple[str, ...]] = []
    made = peer._next_roster

    def choose(now: Moment) -> Roster | None:
        roster = made(now)
        if roster is None or not wanted:
            return roster
        names = sorted({peer.name, *wanted[-1]})
        chosen = tuple((name, peer.slots[Slot("join", name)][0]) for name in names)
        return Roster(*peer.current.id, peer.name, chosen)

    peer.missing_agreements = lambda _names: ()  # type: ignore
    peer._next_roster = choose  # type: ignore
    return wanted


@pytest.mark.parametrize("min_share", [0.5, 0.66])
def test_rosters_that_a_spy_chooses(min_share: float) -> None:
    """All - (spy, 2, 3) - (spy, 4, 5) are the sums of node-0; each of the totals may be one that it has no part in."""
    policy = msgspec.structs.replace(STRICT, min_share=min_share)
    names = [f"node-{k}" for k in range(6)]
    network = SumNetwork([scores(40) for _ in names], complete(6), policies=dict.fromkeys(names, policy), **AUC)
    spy, wanted = Spy(network), choose_rosters(network.sum_peers[SPY])
    spy.run(3.0)
    for chosen in (("node-2", "node-3"), ("node-4", "node-5"), ("node-2", "node-3", "node-4")):
        wanted.append(chosen)
        network.nodes[SPY].request_epoch()
        spy.run(network.clock.now + 3.0)
    opened = sorted({roster for *_, roster in spy.totals.values()}, key=len)
    matrix = np.array([[name in roster for name in names] for roster in opened], dtype=float)
    for k, name in enumerate(names):
        if name != SPY:
            others = np.delete(matrix, [k, names.index(SPY)], axis=1)
            assert np.linalg.matrix_rank(others) == np.linalg.matrix_rank(np.delete(matrix, 1, axis=1)), name


@pytest.mark.parametrize("stop", ["forbid", "leave", "withdraw", "conflict"])
@pytest.mark.parametrize("is_noisy", [False, True])
def test_a_site_that_stops_between_commitment_and_contribution_sends_nothing(stop: str, is_noisy: bool) -> None:
    more = AUC | ({"settings": NOISY} if is_noisy else {})
    network = SumNetwork([scores(40) for _ in range(5)], complete(5), **more)
    spy, peer = network.sum_peers[SPY], network.sum_peers["node-0"]
    commit = spy._commit_or_refuse
    spy._commit_or_refuse = lambda *now: commit(*now) if network.clock.now > 1.7 else Step()  # type: ignore
    network.clock.run(1.5)
    assert Slot("commit", "node-0", 1) in peer.slots
    if stop == "forbid":
        network.policies["node-0"] = Policy(modes=MODES, statistics=("none",))
        network.change("node-0")
    elif stop == "leave":
        network.agree("node-0", "node-0", leaves=True)
    elif stop == "withdraw":
        network.nodes["node-0"].withdraw()
    else:
        network.nodes["node-0"]._find_conflict = lambda: "two lists"  # type: ignore
        peer.conflict = "two lists"
    network.clock.run(10.0)
    assert "contribution" not in [one.event for one in peer.log]


def test_no_contribution_is_forgotten_because_of_others() -> None:
    """Rows that were contributed again count as the last ones, and edges that a spy moves make none forgotten."""
    settings = PrivateSettings(bins=64, ranges={"": (0.0, 1.0)}, deadline_seconds=2.0)
    network = strict([scores(40) for _ in range(3)], complete(3), settings=settings, **AUC)
    spy, first = Spy(network), network.parts["node-0"]
    spy.run(5.0)
    for rows in [*(scores(40) for _ in range(15)), first.copy(), scores(40)]:
        network.change("node-0", rows)
        spy.run(network.clock.now + 13.0)
    corrected = first.copy()
    corrected[0, 1] = 1 - corrected[0, 1]
    network.change("node-0", corrected)
    network.nodes[SPY].request_epoch()
    spy.run(network.clock.now + 13.0)
    assert len(spy.totals) >= 18
    assert all(not found.any() or np.abs(found).sum() >= 10 for found in spy.differences())


def test_edges_that_a_spy_moves_do_not_make_rows_forgotten() -> None:
    settings = PrivateSettings(bins=8, ranges={"": (0.0, 1.0)}, find_edges=True, deadline_seconds=2.0)
    network = strict([scores(60) for _ in range(4)], complete(4), settings=settings, **AUC)
    peer, first, count = network.sum_peers[SPY], network.parts["node-0"], iter(range(1, 100))

    def move_edges(vector: Words) -> Words:
        if peer.current.implausible is None and not peer.current.totals:
            vector[200] += np.uint64((20_000 + next(count)) << 24)
        return vector

    change_parts(peer, move_edges)
    network.clock.run(5.0)
    for _ in range(18):
        network.nodes[SPY].request_epoch()
        network.clock.run(network.clock.now + 10.5)
    corrected = first.copy()
    corrected[0, 1] = 1 - corrected[0, 1]
    network.change("node-0", corrected)
    victim = network.sum_peers["node-0"]
    assert len(victim.memory.contributed) == 17, "of one first round, and of sixteen second ones"
    chosen = victim.chosen_rows()
    assert chosen is not None
    assert chosen.digest != victim.source.file_rows.digest


@pytest.mark.parametrize("sites", range(3, 9))
def test_no_combination_of_totals_tells_fewer_sites_than_a_group_has(sites: int) -> None:
    """Whatever rosters are allowed, no combination of their totals has factors other than 0 for one or two sites."""
    rng = np.random.default_rng(sites)
    names = [f"node-{k}" for k in range(sites)]
    for _ in range(60):
        made: groups.Groups = ()
        allowed = []
        for _ in range(8):
            roster = [name for name in names if rng.random() < 0.7]
            new = groups.refine(made, roster)
            if len(roster) >= 3 and not groups.exposed(new, 3):
                made = new
                allowed.append([name in roster for name in names])
        if allowed:
            matrix = np.array(allowed, dtype=float)
            rank = np.linalg.matrix_rank(matrix)
            for k in (1, 2):
                for chosen in combinations(range(sites), k):
                    rest = np.delete(matrix, chosen, axis=1)
                    assert np.linalg.matrix_rank(rest) == rank, "a combination is zero everywhere else"


def spent(network: SumNetwork, name: str) -> float:
    return sum(one.spent.epsilon for one in network.sum_peers[name].history() if one.spent is not None)


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


def test_noise_of_all_sites_is_new_when_the_rows_of_one_change() -> None:
    """Noise that followed from a site's own rows would leave only one site's noise in the difference of two totals."""
    settings = PrivateSettings(bins=512, ranges={"": (0.0, 1.0)}, epsilon=1.0, colluding=0, deadline_seconds=2.0)
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
    # Of 1,024 numbers the variance is within a quarter of 2 σ² but once in 10^5; of two shares it would be σ²/4.
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
    assert {peer.current.participants for peer in others} == {("node-0", "node-2", "node-3", "node-4")}
    assert all(peer.report is not None and peer.report.results[0].has_value for peer in others)
    assert "asks for cells of 9,007,199,254,740,991 rows" in others[0].left_out_reasons()[SPY]


def a_million_rows(vector: Words) -> Words:
    vector[0] += np.uint64(10**6 << 24)
    return vector


def rows_that_are_taken_away(vector: Words) -> Words:
    vector[1] -= np.uint64(10**6 << 24)
    return vector


def random_numbers(vector: Words) -> Words:
    return RNG.integers(0, 2**64, len(vector), np.uint64)


def false_masks(vector: Words) -> Words:
    vector[: len(vector) // 2] ^= np.uint64(2**63)
    return vector


CHANGES = [a_million_rows, rows_that_are_taken_away, random_numbers, false_masks]


@pytest.mark.parametrize(
    ("change", "sites"), [*((change, sites) for change in CHANGES for sites in (3, 5)), (random_numbers, 53)]
)
def test_who_deviates_is_named(change: Callable[[Words], Words], sites: int) -> None:
    """Also among more than 51 sites, whose partners follow from a beacon."""
    network = SumNetwork([scores(20) for _ in range(sites)], complete(sites) if sites < 9 else ring(sites), **AUC)
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


def ring(sites: int) -> list[tuple[int, int]]:
    return [(k, (k + step) % sites) for k in range(sites) for step in (1, 7)]


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
            too_much = peer.current._halves(peer.current.implausible)[:, 0] * np.uint64(10**6 << 24)
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
            assert (found.state(), found.current.suspects, found.report) == ("implausible", (("node-0", SPY),), None)
            assert f"node-0 or {SPY} deviates" in explain(found)
        else:
            assert {who: one.has_no_secret for who, one in found.memory.deviating.items()} == {SPY: False}
            assert found.state() == "complete"


def test_two_members_that_frame_a_third_do_not_get_its_sums() -> None:
    """After a total over all four, two say that a third opened other masks: no total without it tells its sums."""
    network = strict([scores(40) for _ in range(4)], complete(4), **AUC)
    network.clock.run(5.0)
    for name in network.names:
        peer = network.sum_peers[name]
        peer._note_deviation("node-3", FALSE_MASKS, is_false=False)
    network.nodes[SPY].request_epoch()
    network.clock.run(40.0)
    reports = [network.sum_peers[name].report for name in network.names]
    assert all(report is not None and len(report.participants) == 4 for report in reports)
    assert "node-3" in explain(network.sum_peers["node-0"])


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_an_opening_is_as_private_as_it_is_charged(law: str) -> None:
    """Of 20,000 openings the likelier ones beside a neighbouring table are so by no more than the charge allows."""
    opening = deviations.pad_noise(NO_NOISE._replace(law=law, bits=0), features=1)
    sums, other = np.array([9, 0, 4, 7], dtype=np.uint64), np.array([8, 1, 4, 7], dtype=np.uint64)
    halves = np.hstack([np.tile([True, False, True, False], (8, 1)), np.eye(8, dtype=bool)])  # as telling as can be
    draws, opened = 20_000, []
    for vector in (sums, other):
        pads = draw(opening, 8 * draws, np.random.default_rng(3).bytes).reshape(-1, 8)
        shown = [deviations.add_up(np.concatenate([vector, pad]), halves).view(np.int64) for pad in pads]
        opened.append(np.sum(np.array(shown) > 12, axis=1) > 4)
    p, q = (float(np.mean(likely)) for likely in opened)
    # Both shares have standard errors of 0.0035; the bound is broken by five of them but once in 10^6.
    assert p > q
    assert p <= np.exp(opening.epsilon) * q + opening.delta + 5 * 0.0035 * 2


def test_masks_are_opened_few_times() -> None:
    """A member takes fifty rows from a bin, too few to be named, again and again: the pads cannot be averaged away."""

    def fifty_fewer(vector: Words) -> Words:
        vector[3] -= np.uint64(50 << 24)
        return vector

    network = SumNetwork([scores(20) for _ in range(4)], complete(4), **AUC)
    peer = network.sum_peers[SPY]
    change_parts(peer, fifty_fewer)
    for second in range(1, 30):
        network.clock.run(2.0 * second)
        network.nodes[SPY].request_epoch()
    for name in (name for name in network.names if name != SPY):
        honest = network.sum_peers[name]
        openings = [one for one in honest.log if one.event == "opening"]
        assert len(openings) == deviations.MAX_OPENINGS
        assert not honest.memory.deviating
        assert len([one for one in site.history_of(honest.log) if one.spent is not None]) == len(openings)
        assert "leave out sites one after the other" in explain(honest)


def test_without_epsilon_no_masks_are_opened() -> None:
    """An opening is charged to the budget."""
    policy = Policy(modes=MODES, min_rows=0, min_sites=0, min_share=0.5, epsilon_budget=1.05)
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
    assert [one.event for one in poor.log] == ["contribution"]
    assert [(one.event, one.epsilon) for one in rich.log] == [("contribution", 1.0), ("opening", 0.16)]
    assert "epsilon 1 spent, 0.16 more would exceed the budget of 1.05" in explain(poor)


def test_nobody_chooses_its_part_by_those_of_others() -> None:
    """A member that has all other parts shows what makes the total what it wants: that is not what it committed to."""
    network = SumNetwork([scores(30) for _ in range(4)], complete(4), **AUC)
    peer = network.sum_peers[SPY]
    wanted = np.zeros(peer.source.layout.size, dtype=np.uint64)
    show = peer._show_part

    def rush(current: Round, now: Moment, connected: Any) -> Step:
        others = [name for name in peer.current.participants if name != SPY]
        held = [peer.slots.get(Slot("part", name, current.number)) for name in others]
        if any(one is None for one in held):
            return Step()
        parts = [statements.unpack(one[1].vector) for one in held if one is not None and isinstance(one[1], Part)]
        vector: Words = np.uint64(0) - np.array(parts).sum(axis=0, dtype=np.uint64)
        vector[: len(wanted)] += wanted
        step = show(current, now, connected)
        (record,) = step.records
        identity = *peer.current.id, SPY, peer.current.roster_id, current.number
        forged = peer._signed(Part(*identity, statements.pack(vector)))
        return step._replace(records=(msgspec.structs.replace(record, signed=forged),))

    peer._show_part = rush  # type: ignore
    network.clock.run(20.0)
    honest = [name for name in network.names if name != SPY]
    for name in honest:
        found = network.sum_peers[name]
        assert found.memory.deviating[SPY].what == "showed another contribution than the one to which it had committed"
        assert found.report is not None
        assert found.report.participants == tuple(honest)


def test_sites_that_gain_one_row_a_day_have_a_result_every_day() -> None:
    parts = [scores(40) for _ in range(5)]
    network = strict(parts, complete(5), **AUC)
    network.clock.run(5.0)
    for day in range(25):
        for name in network.names:
            network.change(name, np.vstack([network.parts[name], scores(1)]))
        network.clock.run(network.clock.now + 12.0)
        network.nodes["node-2"].request_epoch()
        network.clock.run(network.clock.now + 12.0)
        peers = network.sum_peers.values()
        assert {peer.state() for peer in peers} == {"complete"}, f"day {day}"
        assert {peer.report.epoch for peer in peers if peer.report} == {max(peer.epoch for peer in peers)}
    rows = [peer.report.results[0].rows for peer in network.sum_peers.values() if peer.report is not None]
    assert set(rows) == {5 * (40 + 20)}, "rows that wait for ten changes are in the result two days later"


@pytest.mark.parametrize("jump", [-1e6, 1e6])
def test_deadlines_do_not_follow_the_clock_on_the_wall(jump: float) -> None:
    network = SumNetwork([scores(30) for _ in range(4)], complete(4), **AUC)
    network.crash("node-3", float("inf"))
    for node in network.nodes.values():
        node.clock = lambda: START_TIME + network.clock.now + (jump if network.clock.now > 1.0 else 0.0)
    network.clock.run(1.9)
    assert all(peer.current.roster is None for peer in network.sum_peers.values())
    network.clock.run(12.0)
    assert {network.sum_peers[name].state() for name in network.names[:3]} == {"complete"}


def test_a_loss_of_power_exposes_nobody() -> None:
    """A site that lost its journal commits again, in the same epoch: it is left out, which tells nobody its sums."""
    network = strict([scores(40) for _ in range(4)], complete(4), **AUC)
    network.clock.run(4.0)
    spy = Spy(network)
    network.nodes[SPY].request_epoch()
    peer = network.sum_peers["node-2"]
    while peer.epoch < 2 or Slot("commit", "node-2", 1) not in peer.slots:
        spy.run(network.clock.now + 0.005)
    spy.run(network.clock.now + 0.02)
    (count,) = network.journals["node-2"]._db.execute("SELECT count(*) FROM records").fetchone()
    network.lose_power("node-2", count)
    spy.run(60.0)
    assert all(not difference.any() for difference in spy.differences())


def test_totals_that_nobody_can_know_need_no_agreements() -> None:
    """A member starts epochs of a few sites, which refuse, and shows its own contribution: that tells nothing."""
    network = strict([scores(40) for _ in range(6)], complete(6), **AUC)
    peer = network.sum_peers[SPY]
    wanted, honest = choose_rosters(peer), peer._contribute

    def contribute(now: Moment, connected: Any) -> Iterator[Step]:
        yield from honest(now, connected)
        current, mine = peer.current, Slot("part", SPY, 1)
        if wanted and peer.is_origin and current.keys() and mine not in peer.slots:
            made = current.round(1, peer.source)
            if made is not None and mine._replace(kind="commit") in peer.slots:
                yield peer._show_part(made, now, connected)

    peer._contribute = contribute  # type: ignore
    peer._verdict = lambda *_: Verdict()  # type: ignore
    network.clock.run(3.0)
    for chosen in (("node-0", "node-2"), ("node-0", "node-3")):
        wanted.append(chosen)
        network.nodes[SPY].request_epoch()
        network.clock.run(network.clock.now + 3.0)
    wanted.clear()
    network.nodes["node-5"].request_epoch()
    network.clock.run(60.0)
    others = [network.sum_peers[name] for name in network.names if name != SPY]
    assert {other.memory.groups for other in others} == {(tuple(network.names),)}
    assert {peer.state() for peer in network.sum_peers.values()} == {"complete"}


@pytest.mark.parametrize("after", ["more bins", "no strata"])
@pytest.mark.parametrize("column", [0, 1])
def test_a_correction_does_not_show_in_other_sums_of_the_same_columns(after: str, column: int) -> None:
    """All sites accept a list with other bins or strata, whose totals can be added up to those of the one before."""
    before = PrivateSettings(bins=8, ranges={"": (0.0, 1.0)}, deadline_seconds=2.0)
    parts = [scores(60) for _ in range(4)]
    if after == "no strata":
        before = msgspec.structs.replace(before, strata={"ward": (0, 1)})
        parts = [np.column_stack([part, np.arange(60) // 30]) for part in parts]
    network = strict(parts, complete(4), settings=before, **AUC)
    spy = Spy(network)
    spy.run(5.0)
    corrected = parts[0].copy()
    corrected[0, column] = 1 - corrected[0, column]
    network.parts["node-0"] = corrected
    settings = PrivateSettings(bins=16 if after == "more bins" else 8, ranges={"": (0.0, 1.0)}, deadline_seconds=2.0)
    network.task = msgspec.structs.replace(network.task, private=settings)
    for name in network.names:
        network.change(name, network.parts[name][:, :2])
    network.nodes[SPY].request_epoch()
    spy.run(40.0)
    (first, *_), *rest = spy.totals.values()
    if after == "no strata":
        assert not rest, "the rows of the first contribution have other encodings"
        assert "too few rows changed" in network.sum_peers["node-0"].current.suppressed
        return
    assert rest, "with the rows of the first contribution"
    for total, layout, _ in rest:
        assert layout == network.layout.fingerprint
        assert np.array_equal(total.reshape(len(first), -1).sum(axis=1, dtype=np.uint64), first)
