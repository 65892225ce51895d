"""Which sites' sums follow from totals with and without them: only those of sites that agreed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import permutations

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from private_schedules import STRICT, strict
from spies import AUC, SPY, Prepare, Spy, choose_rosters, complete, keep_part, refuse_late, scores
from sum_network import SumNetwork
from virtual_network import MemoryJournal

from gosta.net.members import Keyring
from gosta.net.node.status import explain
from gosta.net.node.sum_node import SumNode
from gosta.net.protocol import messages as wire
from gosta.net.protocol import statements
from gosta.net.protocol.epochs import Moment, Step
from gosta.net.protocol.statements import Commit, Part, Roster, Slot
from gosta.net.protocol.sum_decisions import Verdict
from gosta.net.protocol.sum_epoch import Round
from gosta.net.protocol.sums import FALSE_MASKS, TWO_STATEMENTS
from gosta.private import companions
from gosta.private.policy import MODES, Policy


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
    assert {peer.current.participants for peer in network.sum_peers.values()} == {
        tuple(network.names)
    }
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


@pytest.mark.parametrize("min_share", [0.5, 0.66])
def test_rosters_that_a_spy_chooses(min_share: float) -> None:
    """All - (spy, 2, 3) - (spy, 4, 5) are the sums of node-0.

    Each of the totals may be one that it has no part in.
    """
    policy = msgspec.structs.replace(STRICT, min_share=min_share)
    names = [f"node-{k}" for k in range(6)]
    network = SumNetwork(
        [scores(40) for _ in names], complete(6), policies=dict.fromkeys(names, policy), **AUC
    )
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
            assert np.linalg.matrix_rank(others) == np.linalg.matrix_rank(
                np.delete(matrix, 1, axis=1)
            ), name


@pytest.mark.parametrize("sites", range(3, 10))
def test_no_combination_of_totals_separates_honest_sites(sites: int) -> None:
    """Members collude: they choose who takes part, and take part in everything.

    Each site knows its own totals only.
    """
    rng = np.random.default_rng(sites)
    names = [f"node-{k}" for k in range(sites)]
    keys = {name: name.encode() for name in names}
    for _ in range(60):
        liars = {name for name in names if rng.random() < 0.3}
        known: dict[str, companions.Companions] = {name: {} for name in names}
        allowed = []
        for _ in range(12):
            some = {name for name in names if rng.random() < 0.7}
            roster = {keys[name]: name for name in sorted(some | liars)}
            honest = [name for name in roster.values() if name not in liars]
            if all(not companions.separated(known[name], roster, 3) for name in honest):
                known |= {name: companions.add_total(known[name], roster, 0.0) for name in honest}
                allowed.append([key in roster for key in keys.values()])
        for name in set(names) - liars:
            mine = [total for total in allowed if total[names.index(name)]]
            others = [one.name for one in known[name].values() if one.name not in liars]
            for other in others:
                assert all(total[names.index(other)] for total in mine), (
                    "the same factor in every combination"
                )
                assert sum(total[names.index(other)] for total in allowed) == len(mine)


def test_two_members_that_frame_a_third_do_not_get_its_sums() -> None:
    """After a total over all four, two say that a third opened other masks: no total without it
    tells its sums.
    """
    network = strict([scores(40) for _ in range(4)], complete(4), **AUC)
    network.clock.run(5.0)
    for name in network.names:
        peer = network.sum_peers[name]
        peer._note_deviation("node-3", FALSE_MASKS)
    network.nodes[SPY].request_epoch()
    network.clock.run(40.0)
    reports = [network.sum_peers[name].report for name in network.names]
    assert all(report is not None and len(report.participants) == 4 for report in reports)
    assert "node-3" in explain(network.sum_peers["node-0"])


def test_a_loss_of_power_exposes_nobody() -> None:
    """A site that lost its journal commits again, in the same epoch: it is left out, which tells
    nobody its sums.
    """
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


def origin_of(network: SumNetwork, name: str, participants: Sequence[str]) -> None:
    """Let a member start an epoch of these sites, once all members have joined."""
    peer = network.sum_peers[name]

    def roster(_now: Moment) -> Roster | None:
        if set(peer.current.joins) < set(network.names):
            return None
        joined = [(one, peer.slots[Slot("join", one)][0]) for one in sorted(participants)]
        return Roster(*peer.current.id, name, tuple(joined))

    peer._next_roster, honest = roster, peer._next_roster  # type: ignore
    network.nodes[name].request_epoch()
    network.clock.run(network.clock.now + 3.0)
    peer._next_roster = honest  # type: ignore


def has_exact_sums(spy: Spy, site: str) -> bool:
    """Return whether a site's sums are the difference of two totals, maybe without the spy's
    own.
    """
    wanted, own = spy.network.plain_sums([site]), spy.network.plain_sums([spy.name])
    found = [first - second for (first, *_), (second, *_) in permutations(spy.totals.values(), 2)]
    return any(
        np.array_equal(one, other)
        for one in found
        for other in (wanted, wanted - own, wanted + own)
    )


def test_a_total_of_two_members_changes_nothing_for_others() -> None:
    network = strict([scores(40) for _ in range(6)], complete(6), **AUC)
    network.clock.run(3.0)
    pair = ("node-1", "node-2")
    for name in pair:
        network.sum_peers[name]._verdict = lambda *_: Verdict()  # type: ignore
    origin_of(network, SPY, pair)
    report = network.sum_peers[SPY].report
    assert report is not None
    assert report.participants == pair
    network.nodes["node-5"].request_epoch()
    network.clock.run(60.0)
    assert {peer.report.participants for peer in network.sum_peers.values() if peer.report} == {
        tuple(network.names)
    }


def test_members_that_collude_do_not_hide_among_those_who_go() -> None:
    """A total over all, then one without a site and the two that know their own sums."""
    network = strict([scores(40) for _ in range(9)], complete(9), **AUC)
    spy = Spy(network)
    for name in ("node-1", "node-2"):
        network.agree(name, name)
    spy.run(4.0)
    others = [name for name in network.names if name not in ("node-1", "node-2", "node-8")]
    origin_of(network, SPY, others)
    spy.run(20.0)
    assert {len(names) for *_, names in spy.totals.values()} == {9}


def test_a_second_commitment_shows_nothing_and_names_its_author() -> None:
    """One contribution for a site, another one for the others: then its opening would be taken for
    a false one.
    """
    network = strict([scores(40) for _ in range(5)], complete(5), **AUC)
    peer, node = network.sum_peers[SPY], network.nodes[SPY]
    honest = peer._commit_or_refuse

    def commit(current: Round, now: Moment) -> Step:
        if peer.epoch > 1:
            return honest(current, now)
        if (
            peer.current.lacking(Slot("commit", "", 1)) != [SPY]
            or Slot("commit", SPY, 1) in peer.slots
        ):
            return Step()
        identity = *peer.current.id, SPY, peer.current.roster_id, 1
        rows = peer.chosen_rows()
        assert rows is not None
        for name, extra in (("node-0", 1), *((other, 2) for other in network.names[2:])):
            vector = peer.current.part(current, rows, peer.memory.secret, peer.trust).copy()
            vector[0] += np.uint64(extra * 10**6 << 24)
            said = peer._signed(Commit(*identity, hashlib.sha256(statements.pack(vector)).digest()))
            shown = peer._signed(Part(*identity, peer.current.roster_id, statements.pack(vector)))
            for signed in (said, shown):
                link = node.contacts[name].link
                assert link is not None
                link.send(wire.encode(wire.Give(signed)))
        peer.current.insert(said)
        return Step()

    peer._commit_or_refuse = commit  # type: ignore
    spy = Spy(network)
    spy.run(60.0)
    for name in (name for name in network.names if name != SPY):
        assert {who: one.what for who, one in network.sum_peers[name].memory.deviating.items()} == {
            SPY: TWO_STATEMENTS
        }
        assert not [one for one in network.sum_peers[name].log if one.event == "opening"]
    assert not has_exact_sums(spy, "node-0")


def test_a_contribution_for_other_commitments_is_not_used() -> None:
    """Otherwise two sites could report totals of different contributions."""
    network = strict([scores(40) for _ in range(4)], complete(4), **AUC)
    network.clock.run(4.0)
    epoch = network.sum_peers["node-0"].current
    part = epoch.said(Part, "node-2", 1)
    assert part is not None
    assert epoch.is_due(part)
    assert not epoch.is_due(msgspec.structs.replace(part, commits=bytes(16)))


def test_a_name_that_another_site_has_now() -> None:
    """The coordinator gives the name of a site to the key of a member.

    The others accept its list.
    """
    network = strict([scores(40) for _ in range(5)], complete(5), **AUC)
    spy = Spy(network)
    spy.run(4.0)
    before = network.plain_sums(["node-4"])
    network.crash("node-4", float("inf"))
    network.keys["node-4"] = Ed25519PrivateKey.generate()
    network.accept(network.names, 2)
    network.parts["node-4"] = scores(40)
    network.journals["node-4"] = MemoryJournal(**network.journal_options)
    for name in network.names[:4]:
        network.change(name)
    network.start("node-4")
    network.agree("node-4", "node-4")
    spy.run(40.0)
    new = network.plain_sums(["node-4"])
    assert not any(
        np.array_equal(a - b + new, before)
        for (a, *_), (b, *_) in permutations(spy.totals.values(), 2)
    )
    assert network.sum_peers["node-0"].needed_agreements == ("node-4",)
    assert "has another key than in earlier totals" in explain(network.sum_peers["node-0"])


def test_lists_of_different_members_at_different_sites() -> None:
    """Each half of the sites accepts a list of itself and the spy: all - one half - the other half
    is one site.
    """
    network = strict([scores(40) for _ in range(8)], complete(8), **AUC)
    spy = Spy(network)
    spy.run(4.0)
    halves = [["node-0", "node-2", "node-3"], ["node-4", "node-5", "node-6"]]
    for serial, half in enumerate(halves, 2):
        network.accept([SPY, *half], serial)
        for name in network.names:
            network.neighbours[name] = {
                other: place
                for other, place in network.neighbours[name].items()
                if (name in half) == (other in half)
            }
        for name in (SPY, *half):
            network.change(name)
        network.nodes[SPY].request_epoch()
        spy.run(network.clock.now + 15.0)
    assert {names for *_, names in spy.totals.values()} == {tuple(network.names)}


class Resigner(SumNode):
    """Signs what a site says again, with a key that the coordinator has given to its name at all
    other sites.
    """

    key = Ed25519PrivateKey.from_private_bytes(b"the coordinator's".ljust(32))

    def _execute(self, step: Step) -> bool:
        messages = []
        for to, content in step.messages:
            message = wire.decode(content)
            if isinstance(message, wire.Give) and to != "node-5":
                said, trust = (
                    statements.read(message.signed),
                    Keyring(self.key, self.peer.trust.list),  # type: ignore
                )
                if said.home == "node-5":
                    content = wire.encode(
                        wire.Give(statements.sign(said, self.peer.identity.network, trust))
                    )
            messages.append((to, content))
        return super()._execute(step._replace(messages=tuple(messages)))


def test_statements_that_are_signed_again_with_another_key() -> None:
    """All have accepted a list with another key of node-5, but node-5 itself.

    A spy stands between the two.
    """

    class Lists(SumNetwork):
        def start(self, name: str) -> None:
            if self.trusts["node-0"].serial == 1:
                own = self.trusts["node-5"]
                self.keys["node-5"] = Resigner.key
                self.accept(self.names, 2)
                self.trusts |= {"node-5": own, SPY: Keyring(self.keys[SPY], own.list)}  # type: ignore[attr-defined]
            super().start(name)

    names = [f"node-{k}" for k in range(6)]
    edges = [edge for edge in complete(6) if 5 not in edge] + [(1, 5)]
    parts = [scores(40) for _ in names]
    network = Lists(
        parts, edges, policies=dict.fromkeys(names, STRICT), hostile={SPY: Resigner}, **AUC
    )
    spy = Spy(network)
    spy.run(20.0)
    honest = [network.sum_peers[name] for name in names if name != SPY]
    assert not spy.totals
    assert not any(peer.memory.companions for peer in honest)
    assert "node-1 has list 1" in explain(network.sum_peers["node-0"])


def test_no_member_locks_another_one_out_of_the_first_total() -> None:
    """The spy makes a site refuse its rosters, twice, so that it seems to let epochs fail."""
    network = strict([scores(40) for _ in range(6)], complete(6), **AUC)
    node, peer, done = network.nodes[SPY], network.sum_peers[SPY], set[int]()
    honest, others = peer.advance, [name for name in network.names if name != SPY]

    def advance(now: Moment, connected: Sequence[str] = ()) -> Iterator[Step]:
        """Join for the victim only, and make a roster without the spy, which the victim refuses."""
        if network.clock.now > 6.0:
            yield from honest(now, connected)
        elif peer.is_origin and peer.epoch not in done and set(others) <= peer.current.joins.keys():
            done.add(peer.epoch)
            (join,) = peer._join(now).records
            ids = tuple((name, peer.slots[Slot("join", name)][0]) for name in others)
            roster = peer._signed(Roster(*peer.current.id, SPY, ids))
            for name in others:
                link = node.contacts[name].link
                assert link is not None
                for signed in (join.signed, roster) if name == "node-5" else (roster,):  # type: ignore
                    link.send(wire.encode(wire.Give(signed)))

    peer.advance = advance  # type: ignore
    network.clock.run(0.4)
    for _ in range(2):
        node.request_epoch()
        network.clock.run(network.clock.now + 2.0)
    assert len(done) == 2
    network.clock.run(300.0)
    assert {one.report.participants for one in network.sum_peers.values() if one.report} == {
        tuple(network.names)
    }


def test_a_claim_that_an_agreement_is_missing_is_shown_as_a_claim() -> None:
    network = strict([scores(40) for _ in range(6)], complete(6), **AUC)
    network.clock.run(4.0)
    network.sum_peers[SPY]._verdict = lambda *_: Verdict("a lie", ("node-5",))  # type: ignore
    network.nodes[SPY].request_epoch()
    network.clock.run(8.0)
    for name in ("node-0", "node-5"):
        said = explain(network.sum_peers[name])
        assert (
            said
            == "node-1 waits for an agreement about node-5, and this site finds no reason for that"
        )


def test_a_site_that_joined_is_not_left_out_of_the_first_total() -> None:
    """Later it could not take part without giving its sums away."""
    network = strict([scores(40) for _ in range(7)], complete(7), **AUC)
    network.nodes[SPY]._may_start_first_epoch = lambda: True  # type: ignore
    peer = network.sum_peers[SPY]
    wanted = choose_rosters(peer)
    wanted.append(tuple(name for name in network.names if name != "node-6"))
    network.clock.run(0.5)
    network.nodes[SPY].request_epoch()
    network.clock.run(3.0)
    assert not [one for one in network.sum_peers["node-0"].log if one.event == "contribution"]
    wanted.clear()
    network.clock.run(60.0)
    assert {peer.report.participants for peer in network.sum_peers.values() if peer.report} == {
        tuple(network.names)
    }


def away(network: SumNetwork, spy: Spy) -> None:
    """Let a site be away for a while, in which the operators of the others agree to go on without
    it.
    """
    spy.run(4.0)
    network.crash("node-4", 12.0)
    for name in network.names[:4]:
        network.agree(name, "node-4")
    spy.run(20.0)


def test_who_is_there_speaks_for_itself() -> None:
    """The spy leaves out a site about which the others have agreed, and which is back."""
    network = strict([scores(40) for _ in range(5)], complete(5), **AUC)
    spy = Spy(network)
    away(network, spy)
    origin_of(network, SPY, network.names[:4])
    spy.run(60.0)
    assert not has_exact_sums(spy, "node-4")


def test_an_agreement_is_over_once_the_site_was_back() -> None:
    network = strict([scores(40) for _ in range(5)], complete(5), **AUC)
    spy = Spy(network)
    away(network, spy)
    network.nodes["node-0"].request_epoch()
    spy.run(40.0)
    network.crash("node-4", float("inf"))
    network.nodes["node-0"].request_epoch()
    spy.run(70.0)
    assert not has_exact_sums(spy, "node-4")
    assert network.sum_peers["node-0"].needed_agreements == ("node-4",)
    for name in network.names[:4]:
        network.agree(name, "node-4")
    spy.run(100.0)
    assert has_exact_sums(spy, "node-4"), "now they have agreed again"
