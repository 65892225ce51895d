"""Schedules of faults for networks of private sums in virtual time, and networks with a strict
policy.
"""

from __future__ import annotations

from random import Random

import numpy as np
from fault_schedules import GRAPHS
from sum_network import SumNetwork
from virtual_network import Fault

from gosta.private.policy import MODES, Policy

RNG = np.random.default_rng(15)


PARTS = [RNG.random((rows, 1)) for rows in (12, 9, 31, 14)]


COMPLETE = GRAPHS["complete"][1]


# Virtual time with faults, and then without.
FAULT_SECONDS = 6.0
QUIET_SECONDS = 40.0


def make_schedule(seed: int) -> tuple[str, list[Fault]]:
    rng = Random(seed)
    graph = rng.choice(["path", "cycle", "complete"])
    names = [f"node-{k}" for k in range(GRAPHS[graph][0])]
    kinds = ["lose", "repeat", "delay", "crash after message"] * 2
    kinds += ["crash before write", "crash after write", "full write", "partition", "crash"]
    faults = []
    for _ in range(rng.randrange(1, 9)):
        kind = rng.choice(kinds)
        at = (
            rng.uniform(0, FAULT_SECONDS)
            if kind in ("partition", "crash")
            else rng.randrange(1, 100)
        )
        if "write" in kind:
            at = rng.randrange(1, 8)
        node = "" if "message" in kind else rng.choice(names)
        faults.append(Fault(kind, at, node, rng.choice([0.02, 0.3, 1.0, 3.0])))
    return graph, faults


STRICT = Policy(modes=MODES, min_rows=10, min_sites=3, min_cell=5, min_change=10)


def strict(parts: list[np.ndarray], edges: object = COMPLETE, **others: object) -> SumNetwork:
    names = [f"node-{k}" for k in range(len(parts))]
    return SumNetwork(parts, edges, policies=dict.fromkeys(names, STRICT), **others)  # type: ignore[arg-type]
