"""Networks of private sums in virtual time: no wrong sum is reported, whatever fails and whoever lies."""

from __future__ import annotations

import os
from random import Random

import numpy as np
import pytest
from sum_network import SumNetwork
from test_faults import GRAPHS
from virtual_network import Fault

SCHEDULES = int(os.environ.get("GOSTA_SCHEDULES", "500")) // 5
RNG = np.random.default_rng(15)
PARTS = [RNG.random((rows, 1)) for rows in (12, 9, 31, 14)]
COMPLETE = GRAPHS["complete"][1]
FAULT_SECONDS, QUIET_SECONDS = 6.0, 40.0


def pooled(*parts: np.ndarray) -> float:
    return float(np.var(np.concatenate(parts), ddof=1))


def make_schedule(seed: int) -> tuple[str, list[Fault]]:
    rng = Random(seed)
    graph = rng.choice(["path", "cycle", "complete"])
    names = [f"node-{k}" for k in range(GRAPHS[graph][0])]
    kinds = ["lose", "repeat", "delay", "crash after message"] * 2
    kinds += ["crash before write", "crash after write", "full write", "partition", "crash"]
    faults = []
    for _ in range(rng.randrange(1, 9)):
        kind = rng.choice(kinds)
        at = rng.uniform(0, FAULT_SECONDS) if kind in ("partition", "crash") else rng.randrange(1, 100)
        if "write" in kind:
            at = rng.randrange(1, 8)
        node = "" if "message" in kind else rng.choice(names)
        faults.append(Fault(kind, at, node, rng.choice([0.02, 0.3, 1.0, 3.0])))
    return graph, faults


@pytest.mark.parametrize("start", range(0, SCHEDULES, 20))
def test_faults(start: int) -> None:
    for seed in range(start, start + 20):
        graph, faults = make_schedule(seed)
        nodes, edges = GRAPHS[graph]
        network = SumNetwork(PARTS[:nodes], edges, faults, seed)
        for second in np.linspace(1.0, FAULT_SECONDS, 4):
            network.clock.run(second)
            network.check()
        network.end_faults()
        network.clock.run(FAULT_SECONDS + QUIET_SECONDS)
        network.check()
        states = {name: (peer.state(), peer.participants) for name, peer in network.sum_peers.items()}
        assert set(states.values()) == {("complete", tuple(network.names))}, f"seed {seed}: {states}"
