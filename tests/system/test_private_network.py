"""Private sums of real processes over mutual TLS, each with a file of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import ports
import pytest
from processes import Processes
from processes import gosta as run

import gosta
from gosta.net.node.status import Status

NAMES = [f"node-{k}" for k in range(5)]
RNG = np.random.default_rng(8)


class Sites(Processes):
    """Processes of nodes, and the rows in their files."""

    def __init__(self, folder: Path) -> None:
        super().__init__(*(folder / name for name in NAMES))
        self.rows: dict[str, np.ndarray[Any, Any]] = {}

    def write(self, *names: str, rows: int) -> None:
        for name in names:
            died = RNG.integers(0, 2, rows)
            risk = np.clip(RNG.normal(0.3 + 0.1 * NAMES.index(name) + 0.2 * died, 0.2), 0, 1)
            self.rows[name] = np.column_stack([risk, died])
            lines = [f"{r!r},{d:.0f}" for r, d in self.rows[name].tolist()]
            (self.folders[name] / "data.csv").write_text("risk,died\n" + "\n".join(lines) + "\n")

    def is_complete(self, found: list[Status]) -> bool:
        """Return whether all sites have the result of one epoch, over the rows in their files."""
        results = [
            one.rows for status in found if status.sums is not None for one in status.sums.results
        ]
        return (
            {status.state for status in found} == {"complete"}
            and len({status.epoch for status in found}) == 1
            and results == [sum(map(len, self.rows.values()))] * len(NAMES)
        )

    def exact(self) -> float:
        rows = np.concatenate(list(self.rows.values()))
        return float(
            gosta.exact(
                {"risk": rows[:, 0], "died": rows[:, 1]}, "auc", columns="risk", label="died"
            )
        )


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Processes of five sites that have a result."""
    folder, task = (
        tmp_path_factory.mktemp("private") / "net",
        ["--statistic", "auc", "--score", "risk"],
    )
    task += [
        "--label",
        "died",
        "--classes",
        "0,1",
        "--range",
        "risk=0:1",
        "--bins",
        "256",
        "--nodes",
        str(len(NAMES)),
    ]
    made = run("network", "init", folder, "--private", *task, "--port", ports.free())
    assert made.returncode == 0, made.stderr
    with Sites(folder) as processes:
        processes.write(*NAMES, rows=40)
        processes.start(*NAMES)
        processes.wait(processes.is_complete)
        yield processes


def test_five_sites(sites: Sites, gosta_: Any) -> None:
    def check_results(found: list[Status]) -> None:
        (results,) = {status.sums.results for status in found if status.sums is not None}
        assert results[0].low[0] <= sites.exact() <= results[0].high[0]

    first = sites.statuses()
    check_results(first)
    sites.kill("node-3")
    others = [name for name in NAMES if name != "node-3"]
    sites.write(*others, rows=50)
    sites.wait(lambda found: max(one.epoch for one in found) > first[0].epoch, others)
    sites.write("node-3", rows=50)
    sites.start("node-3")
    check_results(sites.wait(sites.is_complete))
    code, text, _ = gosta_("audit", sites.folders["node-2"], "--json")
    assert code == 0
    entries = [
        json.loads(line)["entry"] for line in text.splitlines() if "entry" in json.loads(line)
    ]
    assert {entry["event"] for entry in entries} >= {"contribution", "release"}


def test_a_killed_node_continues_with_its_release(sites: Sites, gosta_: Any) -> None:
    first = sites.statuses()[0]
    sites.kill(*NAMES)
    code, text, _ = gosta_("status", sites.folders["node-1"])
    assert code == 0
    assert "stopped" in text
    sites.start(*NAMES)
    again = sites.wait(sites.is_complete)
    assert {status.estimate for status in again} == {first.estimate}
    assert {status.epoch for status in again} == {first.epoch}, (
        "no new epoch, and so no new contribution"
    )
    sites.stop()
    code, text, _ = gosta_("network", "verify", sites.folders["node-0"].parent)
    assert code == 0, text
    assert "bit for bit" in text
