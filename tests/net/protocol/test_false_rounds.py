"""A member that falsifies, repeats or skips rounds of a model's fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from spies import SPY, complete
from sum_network import SumNetwork

from gosta.net.limits import MAX_ROUNDS
from gosta.net.node.status import explain
from gosta.net.protocol import statements
from gosta.net.protocol.statements import Commit, Part, Slot
from gosta.net.protocol.sum_decisions import Verdict
from gosta.net.protocol.sum_epoch import Round
from gosta.net.protocol.sums import FALSE_SUMS
from gosta.private.settings import FitSettings, PrivateSettings
from gosta.private.snapshots import RowSnapshot

Floats = np.ndarray[Any, np.dtype[np.float64]]
COLUMNS = ("a", "b", "died")
RANGES = {"a": (-6.0, 6.0), "b": (-6.0, 6.0)}
OPTIONS: dict[str, Any] = {"outcome": "died", "classes": (0, 1)}
HONEST = [name for name in ("node-0", "node-1", "node-2", "node-3") if name != SPY]


def patients(n: int, steepness: float, boundary: float, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(size=(n, 2)), -6, 6)
    risks = 1 / (1 + np.exp(-steepness * (x @ [1.0, 0.5] - boundary)))
    return np.column_stack([x, rng.random(n) < risks])


def network() -> SumNetwork:
    return SumNetwork(
        [patients(200, 1.0, 0.5, seed) for seed in range(4)],
        complete(4),
        statistic="logistic",
        settings=PrivateSettings(ranges=RANGES, deadline_seconds=2.0),
        options=OPTIONS,
        fit=FitSettings(COLUMNS[:2]),
        file_columns=COLUMNS,
    )


def change_rounds(net: SumNetwork, change: Callable[[Round, Any], Any]) -> None:
    """Let the spy contribute something else in each round, commit to that, and refuse nothing."""
    peer = net.sum_peers[SPY]
    honest, made = peer._part, dict[tuple[int, int], bytes]()

    def part(round_: Round, rows: RowSnapshot) -> bytes:
        about = peer.epoch, round_.number
        if about not in made:
            vector = statements.unpack(honest(round_, rows)).copy()
            made[about] = statements.pack(change(round_, vector))
        return made[about]

    peer._part = part  # type: ignore
    peer._verdict = lambda *_: Verdict()  # type: ignore


def test_a_site_refuses_a_round_in_which_few_of_its_rows_have_the_weight() -> None:
    """The spy, which even knows all other sums, makes the totals those of rows at an edge."""
    net, wanted = network(), patients(800, 6.0, 2.6, 9)
    encoded = net.layout.encode(net.table(SPY, {SPY: wanted}))
    rows = np.concatenate([net.layout.encode(net.table(name)) for name in net.names])

    def lie(round_: Round, vector: Any) -> Any:
        sums, size = round_.layout.sums, round_.layout.size
        vector[:size] += sums(encoded, round_.noise.bits) - sums(rows, round_.noise.bits)
        return vector

    change_rounds(net, lie)
    net.clock.run(4.0)
    refusing = [name for name in HONEST if net.sum_peers[name].current.suppressed]
    assert refusing
    for name in HONEST:
        peer = net.sum_peers[name]
        assert peer.report is None
        assert len(peer.current.totals) >= 2, "false totals are no reason before"
        said = explain(peer)
        expected = "by their weights, sums of round" if name in refusing else "declined by"
        assert expected in said
    for name in refusing:
        peer = net.sum_peers[name]
        last = max(entry.round for entry in peer.log if entry.event == "contribution")
        refused = [entry for entry in peer.log if entry.event == "suppressed"]
        assert [entry.epoch for entry in refused] == [1]
        assert f"sums of round {last + 1} would be of" in refused[0].reason
        assert "of its 200 rows, 6.7 needed" in refused[0].reason


def test_a_part_of_another_round_is_a_false_one() -> None:
    """Masks are of one round, and the next one follows from totals, of which all have the same."""
    net, seen = network(), dict[int, Any]()

    def repeat(round_: Round, vector: Any) -> Any:
        seen[round_.number] = vector.copy()
        return seen[2] if round_.number == 3 else vector

    change_rounds(net, repeat)
    net.clock.run(40.0)
    for name in HONEST:
        peer = net.sum_peers[name]
        assert peer.memory.deviating[SPY].what == FALSE_SUMS
        assert peer.report is not None
        assert peer.report.participants == tuple(HONEST)


@pytest.mark.parametrize("number", [4, MAX_ROUNDS])
def test_rounds_cannot_be_skipped(number: int) -> None:
    """Statements of later rounds wait until these come; a false one spoils its epoch only."""
    net, fine = network(), network()
    fine.clock.run(4.0)
    while Slot("part", SPY, 2) not in net.sum_peers[SPY].slots:
        net.clock.run(net.clock.now + 0.002)
    spy = net.sum_peers[SPY].current
    for statement in (
        Commit(*spy.head, number, bytes(32)),
        Part(*spy.head, number, bytes(16), bytes(80)),
    ):
        spy.insert(net.sum_peers[SPY]._signed(statement))
    net.clock.run(4.0)
    for name in HONEST:
        expected, found = fine.sum_peers[name].report, net.sum_peers[name].report
        assert expected is not None
        assert len(expected.earlier_totals) + 1 < MAX_ROUNDS
        assert found is not None
        assert found.epoch == (1 if number == MAX_ROUNDS else 2), "spoiled by a false commitment"
        assert found.results == expected.results
        assert found.earlier_totals == expected.earlier_totals
