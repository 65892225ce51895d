"""Statuses as text: differences between the strata of private sums."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
from statuses import RUNNING, SUPPRESSED

import gosta
from gosta.net.node import status_text
from gosta.net.node.status import Status
from gosta.net.watch import overview

TWO = "auc,kaplan-meier:days+died"
MANY = (
    "table-one:risk,auc,kaplan-meier:days+died,roc-curve,mann-whitney,average-precision,"
    "sensitivity,specificity,f1-score"
)


def make_status(strata: dict[str, tuple[str, ...]], statistics: str = TWO) -> Status:
    """Return a status with the results of a release, as it is read by `gosta status`."""
    rng = np.random.default_rng(0)
    died = rng.integers(0, 2, 400)
    table = {"risk": rng.normal(size=400) + died, "died": died, "sex": rng.choice(["f", "m"], 400)}
    table["days"] = rng.integers(1, 900, 400)
    release = gosta.private.release(
        [table],
        statistics,
        score="risk",
        label="died",
        classes=(0, 1),
        ranges={"risk": (-4.0, 5.0), "days": (0.0, 900.0)},
        strata=strata,
    )
    assert SUPPRESSED.sums is not None
    sums = msgspec.structs.replace(SUPPRESSED.sums, results=release.results)
    status = msgspec.structs.replace(RUNNING, sums=sums)
    return msgspec.json.decode(msgspec.json.encode(status), type=Status)


def test_differences_between_strata_have_a_table() -> None:
    status = make_status({"sex": ("f", "m")})
    heading, line = status_text.differences(status)
    assert heading == ("difference", "between", "value", "95 % interval", "p")
    assert line[:2] in (("auc", "f less m"), ("auc", "m less f"))
    assert " to " in line[3]
    assert 0 < float(line[4]) < 1
    assert [heading, line] in status_text.tables(status)


def test_without_strata_there_are_no_differences() -> None:
    assert status_text.differences(make_status({})) == []
    assert status_text.differences(RUNNING) == []


def test_of_many_statistics_curves_and_strata_are_shown_on_demand(tmp_path: Path) -> None:
    status = make_status({"sex": ("f", "m")}, MANY)
    lines = overview.node_text(status, tmp_path).splitlines()
    assert len(lines) < 45
    assert not any("sex = f" in line or "below" in line for line in lines)
    of_curve = [line for line in lines if line.strip().startswith("kaplan-meier")]
    assert len(of_curve) == 1
    assert "10 values" in of_curve[0]
    table = status_text.results(status, is_brief=True)
    assert table[-1][0] == "table-one:risk"
    assert any(line.endswith("--all") for line in lines)
    whole = overview.node_text(status, tmp_path, has_all=True)
    assert "sex = f" in whole
    assert "10 values, below" in whole
    few = overview.node_text(make_status({"sex": ("f", "m")}), tmp_path)
    assert "sex = f" in few
    assert "--all" not in few
