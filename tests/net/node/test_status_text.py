"""Statuses as text: differences between the strata of private sums."""

from __future__ import annotations

import msgspec
import numpy as np
from statuses import RUNNING, SUPPRESSED

import gosta
from gosta.net.node import status_text
from gosta.net.node.status import Status


def make_status(strata: dict[str, tuple[str, ...]]) -> Status:
    """Return a status with the results of a release, as it is read by `gosta status`."""
    rng = np.random.default_rng(0)
    died = rng.integers(0, 2, 400)
    table = {"risk": rng.normal(size=400) + died, "died": died, "sex": rng.choice(["f", "m"], 400)}
    release = gosta.private.release(
        [table],
        "auc,kaplan-meier:risk+died",
        score="risk",
        label="died",
        classes=(0, 1),
        ranges={"risk": (-4.0, 5.0)},
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
