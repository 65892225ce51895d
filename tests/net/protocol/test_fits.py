"""Models that are fitted by private sums: rounds on nodes that fail, change and refuse."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fault_schedules import GRAPHS
from private_schedules import STRICT
from spies import SPY, Words
from sum_network import OPEN_POLICY, SumNetwork

from gosta.models import make_design, make_model
from gosta.models.layout import FitLayout
from gosta.net.audit import verify_sums
from gosta.net.protocol.statements import Slot
from gosta.net.protocol.sum_epoch import Round, Total
from gosta.private.accounting import total_epsilon
from gosta.private.policy import Policy
from gosta.private.settings import FitSettings, PrivateSettings
from gosta.private.snapshots import RowSnapshot

RNG = np.random.default_rng(32)
RANGES = {"age": (0.0, 120.0), "dose": (-5.0, 5.0)}
OPTIONS: dict[str, Any] = {"outcome": "died", "classes": (0, 1)}
COLUMNS = ("age", "dose", "died")
SIZES = (30, 200, 90)


def make_parts() -> list[np.ndarray[Any, Any]]:
    """Return the rows of three sites; at the first, nobody has died."""
    parts = []
    for k, size in enumerate(SIZES):
        age, dose = RNG.uniform(30 + 10 * k, 80, size), RNG.normal(size=size).clip(-5, 5)
        risk = 1 / (1 + np.exp(3.0 - 0.05 * age - 0.4 * dose))
        died = (RNG.random(size) < risk) & (k > 0)
        parts.append(np.column_stack([age, dose, died]))
    return parts


def network(parts: list[np.ndarray[Any, Any]], **others: Any) -> SumNetwork:
    noise, seconds = others.pop("noise", {}), others.pop("deadline_seconds", 2.0)
    settings = PrivateSettings(ranges=RANGES, deadline_seconds=seconds, **noise)
    return SumNetwork(
        parts,
        GRAPHS["complete"][1][:3] if len(parts) == 4 else [(0, 1), (1, 2)],
        statistic="logistic",
        settings=settings,
        options=others.pop("options", OPTIONS),
        fit=FitSettings(COLUMNS[:2]),
        file_columns=COLUMNS,
        **others,
    )


def in_one_place(parts: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    made = make_model("logistic", make_design(COLUMNS[:2], ranges=RANGES), **OPTIONS)
    x = np.concatenate(parts) / (120.0, 10.0, 1.0) + (0.0, 0.5, 0.0)
    return made.fit_rows(x).coefficients


def coefficients(net: SumNetwork) -> dict[str, np.ndarray[Any, Any]]:
    return {
        name: np.array(peer.report.results[0].value, dtype=float)
        for name, peer in net.sum_peers.items()
        if peer.report is not None
    }


def states(net: SumNetwork) -> set[str]:
    return {peer.state() for peer in net.sum_peers.values()}


def test_all_nodes_have_the_coefficients_of_one_place_to_the_last_bit() -> None:
    parts = make_parts()
    net = network(parts)
    net.clock.run(8.0)
    assert states(net) == {"complete"}
    found = list(coefficients(net).values())
    assert len(found) == 3
    assert all(np.array_equal(one, found[0]) for one in found)
    assert np.abs(found[0] - in_one_place(parts)).max() < 1e-8
    for peer in net.sum_peers.values():
        made = [entry for entry in peer.log if entry.event == "contribution"]
        assert [entry.round for entry in made] == list(range(1, len(made) + 1))
        assert len(made) == 1 + len(peer.report.earlier_totals) <= 12  # type: ignore[union-attr]
        assert len(peer.memory.contributed) == 1, "all rounds show the same rows"
        assert len(peer.history()) == len(made)
        assert sum(past.time > 0 for past in peer.history()) == 1, "a fit is one release"
        assert "over all rows" in made[0].shown
        assert f"over {sum(SIZES)} rows" in made[1].shown


def test_a_fit_with_noise_is_one_release_of_the_declared_epsilon() -> None:
    parts = [np.repeat(part, 5, axis=0) for part in make_parts()]
    net = network(parts, noise={"epsilon": 4.0, "delta": 1e-6})
    net.clock.run(8.0)
    assert states(net) == {"complete"}
    first, *others = coefficients(net).values()
    assert all(np.array_equal(first, one) for one in others)
    for peer in net.sum_peers.values():
        assert peer.report is not None
        errors = np.array(peer.report.results[0].standard_errors, dtype=float)
        assert np.abs((first - in_one_place(parts)) / errors).max() < 4
        history = peer.history()
        assert sum(past.time > 0 for past in history) == 1, "a fit is one release"
        spent = [past.spent for past in history if past.spent is not None]
        assert len(spent) == 4
        assert total_epsilon(spent, 1e-6) == pytest.approx(4.0, rel=1e-9)
        assert "noisy moments" in peer.log[0].shown
    findings = verify_sums.check_release(net.sum_peers, dict.fromkeys(net.sum_peers, ""))
    assert {one.holds for one in findings} <= {True, None}, findings
    assert True in {one.holds for one in findings}


def test_a_validation_by_folds_takes_one_round_more() -> None:
    parts = make_parts()
    alone, net = network(parts), network(parts, options={**OPTIONS, "folds": 4})
    for one in (alone, net):
        one.clock.run(8.0)
        assert states(one) == {"complete"}
    for name, found in coefficients(net).items():
        assert np.abs(found - coefficients(alone)[name]).max() < 1e-8
    peer = net.sum_peers["node-1"]
    assert peer.report is not None
    names = [result.statistic for result in peer.report.results]
    assert names[:3] == ["fit-logistic", "auc:validated", "auc:apparent"]
    auc = peer.report.results[1]
    assert 0.5 < auc.value[0] < 0.8
    shown = [entry.shown for entry in peer.log if entry.event == "contribution"]
    assert shown[0].endswith("; the same without each of 4 folds")
    assert shown[-1].startswith("sums of predictions by the fits without each fold")
    findings = verify_sums.check_release(net.sum_peers, dict.fromkeys(net.sum_peers, ""))
    assert {one.holds for one in findings} == {True}, findings


@pytest.mark.parametrize("number", [1, 2, 4])
def test_a_node_that_is_killed_between_rounds_comes_back(number: int) -> None:
    parts = make_parts()
    net = network(parts)
    while Slot("part", "node-1", number) not in net.sum_peers["node-1"].slots:
        net.clock.run(net.clock.now + 0.002)
    net.crash("node-1", 0.5)
    net.clock.run(30.0)
    assert states(net) == {"complete"}
    for found in coefficients(net).values():
        assert np.abs(found - in_one_place(parts)).max() < 1e-8
    net.check()


def test_after_a_node_is_gone_the_others_start_anew() -> None:
    parts = [*make_parts(), make_parts()[1]]
    net = network(parts)
    while Slot("part", "node-3", 3) not in net.sum_peers["node-0"].slots:
        net.clock.run(net.clock.now + 0.002)
    net.crash("node-3", float("inf"))
    net.clock.run(40.0)
    found = coefficients(net)
    assert set(found) == {"node-0", "node-1", "node-2"}
    for one in found.values():
        assert np.abs(one - in_one_place(parts[:3])).max() < 1e-8


def test_rows_that_change_between_rounds_are_in_none_of_them() -> None:
    parts = make_parts()
    net = network(parts)
    peer = net.sum_peers["node-1"]
    while Slot("part", "node-1", 2) not in peer.slots:
        net.clock.run(net.clock.now + 0.002)
    assert peer.rows is not None
    before = peer.rows.digest
    peer.source = dataclasses.replace(peer.source, data=net.table("node-2"))  # type: ignore[type-var]
    rounds: dict[int, Total] = {}
    while peer.epoch == 1 and not peer.is_complete:
        net.clock.run(net.clock.now + 0.002)
        if peer.epoch == 1:
            assert peer.rows.digest == before
            rounds |= {total.round.number: total for total in peer.current.totals}
    assert len(rounds) > 2
    for number, total in rounds.items():
        vectors = [
            total.round.layout.sums(net.layout.encode(net.table(name)), total.round.layout.bits)
            for name in net.names
        ]
        assert np.array_equal(total.vector, np.sum(vectors, axis=0, dtype=np.uint64)), number


def test_a_corrected_row_is_not_fitted_again() -> None:
    """Every other number of the rows changes a little, and one label: it must not show."""
    parts = make_parts()
    net = network(parts, policies=dict.fromkeys(("node-0", "node-1", "node-2"), STRICT))
    net.clock.run(8.0)
    before = net.sum_peers["node-1"].report
    assert before is not None
    changed = parts[1].copy()
    changed[:, 0] += 1e-3
    changed[0, 2] = 1 - changed[0, 2]
    net.change("node-1", changed)
    net.nodes["node-0"].request_epoch()
    net.clock.run(30.0)
    after = net.sum_peers["node-1"].report
    assert after is not None
    assert after.epoch > before.epoch
    assert after.earlier_totals == before.earlier_totals


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (Policy(statistics=("auc",), min_rows=0), "the statistic fit-logistic is not allowed"),
        (Policy(columns=("age", "died"), min_rows=0), "column dose is not allowed"),
        (Policy(min_rows_per_column=20, min_rows=0), "10 rows for each column of the model, 20"),
    ],
)
def test_a_policy_covers_models(policy: Policy, reason: str) -> None:
    net = network(make_parts(), policies={"node-2": policy})
    net.clock.run(6.0)
    log = net.sum_peers["node-2"].log
    assert log[0].event == "suppressed"
    assert not any(entry.event == "contribution" for entry in log)
    assert reason in log[0].reason


def test_too_few_rows_for_the_columns_end_the_fit_after_the_moments() -> None:
    parts = [part[:6] for part in make_parts()]
    net = network(parts, policies={"node-0": OPEN_POLICY})
    net.clock.run(8.0)
    report = net.sum_peers["node-0"].report
    assert report is not None
    assert not report.earlier_totals
    assert "18 rows for 2 columns are fewer than 10 for each" in report.results[0].why


def test_totals_of_wrong_masks_are_no_totals() -> None:
    layout = net_layout()
    words = RNG.integers(0, 2**64, (200, layout.size), dtype=np.uint64).view(np.int64)
    assert not any(layout.is_plausible(one / 2.0**layout.bits, 0.0, 1e5) for one in words)


def net_layout() -> FitLayout:
    made = make_model("logistic", make_design(COLUMNS[:2], ranges=RANGES), **OPTIONS)
    return FitLayout.first(made)


def change_round(net: SumNetwork, number: int, change: Callable[[Words, Round], None]) -> None:
    """Let a member contribute something else in one round of the first epoch."""
    peer = net.sum_peers[SPY]
    honest = peer._part

    def part(current: Round, rows: RowSnapshot) -> bytes:
        if (peer.epoch, current.number) == (1, number) and number not in peer.current._parts:
            honest(current, rows)
            made = peer.current._parts[number].copy()
            change(made, current)
            peer.current._parts[number] = made
        return honest(current, rows)

    peer._part = part  # type: ignore


def add_a_million_rows(vector: Words, current: Round) -> None:
    vector[: current.layout.size] += np.uint64(10**6 << current.noise.bits)


def repeat_another_vector(vector: Words, _: Round) -> None:
    """Masks are new in each round, so what was sent in another one is random here."""
    vector[:] = RNG.integers(0, 2**64, len(vector), dtype=np.uint64)


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("change", [add_a_million_rows, repeat_another_vector])
def test_a_member_whose_sums_no_rows_can_have_is_named_in_any_round(
    number: int, change: Callable[[Words, Round], None]
) -> None:
    parts = make_parts()
    net = network(parts)
    change_round(net, number, change)
    net.clock.run(30.0)
    for name in ("node-0", "node-2"):
        peer = net.sum_peers[name]
        assert set(peer.memory.deviating) == {SPY}
        assert peer.report is not None
        assert peer.report.participants == ("node-0", "node-2")
        assert np.abs(coefficients(net)[name] - in_one_place([parts[0], parts[2]])).max() < 1e-8


def test_sums_at_other_coefficients_in_one_round_end_the_fit_at_all_nodes_alike() -> None:
    """No later loss is as low as that of the lie, so steps get shorter until rounds are used up."""
    parts = make_parts()
    net = network(parts)

    def change(vector: Words, current: Round) -> None:
        layout, rows = current.layout, net.layout.encode(net.table(SPY))
        assert isinstance(layout, FitLayout)
        state = layout.state
        moved = tuple(one + 0.3 for one in state.coefficients)
        other = FitLayout(layout.model, dataclasses.replace(state, coefficients=moved))
        bits = current.noise.bits
        vector[: layout.size] += other.sums(rows, bits) - layout.sums(rows, bits)

    change_round(net, 3, change)
    net.clock.run(12.0)
    reports = [peer.report for peer in net.sum_peers.values()]
    assert all(one is not None and "no best fit was found" in one.results[0].why for one in reports)


def test_a_member_that_invents_deaths_moves_the_coefficients_and_is_not_found() -> None:
    """No total tells its rows from others: the page of models says so."""
    parts = make_parts()
    net = network(parts)

    def change(vector: Words, current: Round) -> None:
        rows, bits = net.layout.encode(net.table(SPY)), current.noise.bits
        before = net.layout.sums(rows, bits)
        rows[:40, 2] = 1.0
        vector[: net.layout.size] += net.layout.sums(rows, bits) - before

    change_round(net, 1, change)
    net.clock.run(12.0)
    found = coefficients(net)
    assert set(found) == set(net.names)
    assert all(np.array_equal(one, found[SPY]) for one in found.values())
    assert np.abs(found[SPY] - in_one_place(parts)).max() > 0.05
    assert not net.sum_peers["node-0"].memory.deviating


def test_the_deadline_is_that_of_each_round() -> None:
    net = network(make_parts(), deadline_seconds=5.0)
    for number in (1, 2, 3):
        while Slot("part", "node-1", number) not in net.sum_peers["node-1"].slots:
            net.clock.run(net.clock.now + 0.002)
        net.crash("node-1", 1.0)
    net.clock.run(30.0)
    assert states(net) == {"complete"}
    assert {peer.epoch for peer in net.sum_peers.values()} == {1}
    times = [entry.time for entry in net.sum_peers["node-0"].log if entry.event == "contribution"]
    assert times[-1] - times[0] > 5.0
