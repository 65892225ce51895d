"""Which changes of a site's rows show in private sums: none of fewer than `min_change` people."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest
from private_schedules import STRICT, strict
from spies import AUC, NOISY, RNG, SPY, Spy, Words, change_parts, complete, scores
from sum_network import SumNetwork

from gosta.net.node.source import SumSource
from gosta.private.settings import PrivateSettings

PRIVATE = PrivateSettings(bins=8, ranges={"": (0.0, 1.0)}, deadline_seconds=2.0)
NAMES = [f"node-{k}" for k in range(5)]


@pytest.mark.parametrize("find_edges", [False, True])
@pytest.mark.parametrize("column", [0, 1])
def test_one_corrected_row_shows_in_no_difference(find_edges: bool, column: int) -> None:
    """A score or a label of one row is corrected, then those of more rows, and epochs are started
    again and again.
    """
    parts = [scores(60) for _ in range(5)]
    settings = PrivateSettings(
        bins=16, ranges={"": (0.0, 1.0)}, find_edges=find_edges, deadline_seconds=2.0
    )
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
    """All scores change a little, so that every row of the file is another one.

    One label changes, too.
    """
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


def test_no_contribution_is_forgotten_because_of_others() -> None:
    """Rows that were contributed again count as the last ones, and edges that a spy moves make none
    forgotten.
    """
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
    settings = PrivateSettings(
        bins=8, ranges={"": (0.0, 1.0)}, find_edges=True, deadline_seconds=2.0
    )
    network = strict(
        [scores(60) for _ in range(4)], complete(4), settings=settings, declared=100_000, **AUC
    )
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
        assert {peer.report.epoch for peer in peers if peer.report} == {
            max(peer.epoch for peer in peers)
        }
    rows = [
        peer.report.results[0].rows
        for peer in network.sum_peers.values()
        if peer.report is not None
    ]
    assert set(rows) == {5 * (40 + 20)}, (
        "rows that wait for ten changes are in the result two days later"
    )


@pytest.mark.parametrize("after", ["more bins", "no strata"])
@pytest.mark.parametrize("column", [0, 1])
def test_a_correction_does_not_show_in_other_sums_of_the_same_columns(
    after: str, column: int
) -> None:
    """All sites accept a list with other bins or strata, whose totals can be added up to those of
    the one before.
    """
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
    settings = PrivateSettings(
        bins=16 if after == "more bins" else 8, ranges={"": (0.0, 1.0)}, deadline_seconds=2.0
    )
    network.task = msgspec.structs.replace(network.task, private=settings)
    for name in network.names:
        network.change(name, network.parts[name][:, :2])
    network.nodes[SPY].request_epoch()
    spy.run(40.0)
    (first, *_), *rest = spy.totals.values()
    if after == "no strata":
        assert not rest, "the rows of the first contribution have other encodings"
        assert "unknown column of node-0 'ward'" in network.sum_peers["node-0"].current.suppressed
        return
    assert rest, "with the rows of the first contribution"
    for total, layout, _ in rest:
        assert layout == network.layout.fingerprint
        assert np.array_equal(total.reshape(len(first), -1).sum(axis=1, dtype=np.uint64), first)


class DropsMissing(SumNetwork):
    """A network whose sites leave out rows in which a value is missing."""

    def table(self, name: str, parts: Any = None) -> Any:
        return dataclasses.replace(super().table(name, parts), drop_missing=True)


@pytest.mark.parametrize(
    ("missing", "changed", "is_allowed"),
    [(1, 0, False), (9, 0, False), (12, 0, True), (12, 1, False), (12, 12, False)],
)
@pytest.mark.parametrize(
    ("first", "second"),
    [("variance:a", "variance:a,variance:b"), ("variance:a,variance:b", "variance:a")],
)
def test_rows_that_only_some_settings_count(
    first: str, second: str, missing: int, changed: int, is_allowed: bool
) -> None:
    """Some patients have no value of a column that only the first or only the second statistic
    needs.
    """
    parts = [RNG.random((60, 2)).round(3) for _ in range(5)]
    parts[0][:missing, 1] = np.nan
    network = DropsMissing(
        parts, complete(5), statistic=first, settings=PRIVATE,
        policies=dict.fromkeys(NAMES, STRICT),
        file_columns=("a", "b"), drop_missing=True,
    )  # fmt: skip
    spy = Spy(network)
    spy.run(5.0)
    network.task = msgspec.structs.replace(network.task, statistic=second)
    parts[0][20 : 20 + changed, 0] = 0.5
    for name in network.names:
        network.change(name)
    network.nodes["node-2"].request_epoch()
    spy.run(30.0)
    assert (len(spy.totals) > 1) is is_allowed
    assert bool(network.sum_peers["node-0"].choice().reason) is not is_allowed


class People(SumNetwork):
    """A network whose sites know whose row each one is."""

    people: ClassVar[dict[str, Any]] = {}

    def source(self, name: str) -> SumSource:  # type: ignore[override]
        return dataclasses.replace(super().source(name), persons=self.people.get(name))


def names_of(prefix: str, shift: int = 0, each: int = 1) -> Any:
    return np.array([f"{prefix}{(k + shift) // each}" for k in range(60)], dtype=object)


def test_many_rows_of_few_people_do_not_show() -> None:
    """Ten rows are corrected, which are those of four people."""
    parts = [scores(60) for _ in range(4)]
    network = People(parts, complete(4), policies={f"node-{k}": STRICT for k in range(4)}, **AUC)
    network.people = {"node-0": names_of("p", 0, 5)}  # type: ignore[misc]
    network.change("node-0")
    spy = Spy(network)
    spy.run(5.0)
    corrected = parts[0].copy()
    corrected[:20, 1] = 1  # of which ten are new
    network.change("node-0", corrected)
    network.nodes[SPY].request_epoch()
    spy.run(30.0)
    assert len(spy.totals) > 1
    assert all(not difference.any() for difference in spy.differences())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (names_of("first-"), names_of("second-")),  # an export with new pseudonyms
        (names_of("p", 0, 2), names_of("p", 1, 2)),  # rows of other people
        (None, names_of("p")),  # policy.toml names a column of persons from now on
        (names_of("p"), None),
    ],
)
def test_a_correction_does_not_hide_behind_other_names(before: Any, after: Any) -> None:
    parts = [scores(60) for _ in range(4)]
    network = People(parts, complete(4), policies={f"node-{k}": STRICT for k in range(4)}, **AUC)
    network.people = {"node-0": before}  # type: ignore[misc]
    network.change("node-0")
    spy = Spy(network)
    spy.run(5.0)
    corrected = parts[0].copy()
    corrected[7, 1] = 1 - corrected[7, 1]
    network.people = {"node-0": after}  # type: ignore[misc]
    network.change("node-0", corrected)
    network.nodes[SPY].request_epoch()
    spy.run(30.0)
    assert all(not difference.any() for difference in spy.differences())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("variance:a", "covariance:a+b"),
        ("covariance:a+b", "variance:a"),
        ("gini-mean-difference:a", "variance:a"),
        ("kendall-tau:a+b", "spearman-rho:a+b"),
        ("variance:a,gini-index:b", "gini-mean-difference:a"),
    ],
)
def test_a_correction_does_not_show_beside_other_statistics(first: str, second: str) -> None:
    """All sites accept a list with another statistic, whose sums contain some of the earlier
    ones.
    """
    parts = [RNG.random((60, 2)).round(3) for _ in range(4)]
    network = strict(parts, complete(4), statistic=first, file_columns=("a", "b"))
    network.clock.run(5.0)
    victim = network.sum_peers["node-0"]
    earlier = victim.rows
    corrected = parts[0].copy()
    corrected[7, 0] = 1 - corrected[7, 0]
    network.task = msgspec.structs.replace(network.task, statistic=second)
    network.parts["node-0"] = corrected
    for name in network.names:
        network.change(name, network.parts[name])
    network.clock.run(20.0)
    chosen, reason = victim.choice()
    assert chosen in (None, earlier), "these have the same encoding for some statistics"
    assert "too few rows changed since an earlier contribution" in reason
    network.change("node-0", parts[0])
    network.clock.run(60.0)
    assert {peer.state() for peer in network.sum_peers.values()} == {"complete"}


def test_a_correction_among_scores_that_were_computed_again() -> None:
    """All scores have other last digits, one label is corrected, and there are twice as many
    bins.
    """
    parts = [scores(60) for _ in range(4)]
    network = strict(parts, complete(4), **AUC)
    network.clock.run(5.0)
    corrected = parts[0].copy()
    corrected[:, 0] = np.clip(corrected[:, 0] + 1e-9, 0, 1)
    corrected[7, 1] = 1 - corrected[7, 1]
    settings = PrivateSettings(bins=16, ranges={"": (0.0, 1.0)}, deadline_seconds=2.0)
    network.task = msgspec.structs.replace(network.task, private=settings)
    network.parts["node-0"] = corrected
    for name in network.names:
        network.change(name, network.parts[name])
    network.clock.run(20.0)
    victim = network.sum_peers["node-0"]
    assert victim.rows is not None
    others = network.sum_peers["node-1"].rows
    assert others is not None
    assert victim.rows.time == others.time, "those of the first contribution"
    assert "too few rows changed" in victim.choice().reason


def test_a_site_that_may_contribute_fewer_rows_now_contributes_none() -> None:
    """Otherwise all would open masks to find out who contributes too many."""
    network = strict([scores(200) for _ in range(4)], complete(4), **AUC)
    network.clock.run(5.0)
    network.accept(network.names, 2, dict.fromkeys(network.names, 100))
    for name in network.names:
        network.change(name)
    network.nodes[SPY].request_epoch()
    network.clock.run(30.0)
    for peer in network.sum_peers.values():
        assert "200 rows, and the member list allows 100" in peer.current.suppressed
        assert not [one for one in peer.log if one.event == "opening"]


def test_rows_in_another_order_are_the_same_and_cost_nothing() -> None:
    network = SumNetwork([scores(60) for _ in range(4)], complete(4), settings=NOISY, **AUC)
    network.clock.run(5.0)
    network.change("node-0", RNG.permutation(network.parts["node-0"]))
    network.nodes[SPY].request_epoch()
    network.clock.run(20.0)
    assert {
        sum(one.spent is not None for one in peer.history()) for peer in network.sum_peers.values()
    } == {1}
