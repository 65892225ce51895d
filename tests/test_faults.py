"""Real nodes and journals on a network in virtual time, under thousands of seeded schedules of faults."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from world import HERE, Fault, World

from gosta.errors import InputError
from gosta.experiments.replay import replay
from gosta.net.audit.verify import Journals

SCHEDULES = int(os.environ.get("GOSTA_SCHEDULES", "2000"))
FAULTY, QUIET = 6.0, 6.0  # seconds of virtual time with faults, and then without
RNG = np.random.default_rng(5)
PARTS = [RNG.gamma(2.0, 1.0, (rows, 1)) for rows in (2, 9, 1, 12)]
GRAPHS = {
    "pair": (2, [(0, 1)]),
    "path": (3, [(0, 1), (1, 2)]),
    "cycle": (4, [(0, 1), (1, 2), (2, 3), (3, 0)]),
    "complete": (4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
}


def schedule(seed: int) -> tuple[str, list[Fault]]:
    """A graph and what goes wrong on it."""
    chance = Random(seed)
    graph = chance.choice(list(GRAPHS))
    names = [f"node-{k}" for k in range(GRAPHS[graph][0])]
    faults = []
    for _ in range(chance.randrange(1, 9)):
        kind = chance.choice(
            ["lose", "repeat", "delay", "crash after message"] * 2
            + ["crash before write", "crash after write", "full write", "partition", "crash"]
        )
        at = chance.uniform(0, FAULTY) if kind in ("partition", "crash") else chance.randrange(1, 120)
        node = "" if "message" in kind else chance.choice(names)
        faults.append(Fault(kind, at, node, chance.choice([0.02, 0.3, 1.0, 3.0])))
    return graph, faults


def play(graph: str, faults: list[Fault], seed: int) -> World:
    """Let a schedule happen, and all be well again; looking all the while whether what must hold does."""
    nodes, edges = GRAPHS[graph]
    world = World(PARTS[:nodes], edges, faults, seed)
    for second in np.linspace(1.0, FAULTY, 4):
        world.clock.run(second)
        world.check()
    world.faults.clear()
    for disk in world.disks.values():
        disk.fate = lambda write: ""
    before = {name: peer.site.meetings for name, peer in world.peers.items()}
    world.clock.run(FAULTY + QUIET)
    world.check()
    assert sorted(world.nodes) == world.names
    assert all(node.peer.site.meetings > before[name] for name, node in world.nodes.items()), "somebody is stuck"
    assert {peer.epoch for peer in world.peers.values()} == {1}
    replays(world)
    return world


def replays(world: World) -> None:
    """The simulator, with the same meetings, gets to the same states."""
    records = {name: world.disks[name].epoch()[1] for name in world.names}
    found = replay(Journals(world.task, HERE, world.peers, records))
    assert found.differ == []
    assert found.nodes > 0


def shortest(faults: list[Fault], fails: Callable[[list[Fault]], bool]) -> list[Fault]:
    """As few of the faults as still fail, by leaving out one after the other."""
    left = 0
    while left < len(faults):
        fewer = faults[:left] + faults[left + 1 :]
        if fails(fewer):
            faults = fewer
        else:
            left += 1
    return faults


def failing(graph: str, faults: list[Fault], seed: int) -> Exception | None:
    try:
        play(graph, faults, seed)
    except (AssertionError, InputError) as error:
        return error
    return None


@pytest.mark.parametrize("block", range(20))
def test_nothing_is_lost_or_doubled_whatever_goes_wrong(block: int) -> None:
    """Every visitor exists once at all times, nobody is stuck for good, states are those of the simulator."""
    for seed in range(block * SCHEDULES // 20, (block + 1) * SCHEDULES // 20):
        graph, faults = schedule(seed)
        error = failing(graph, faults, seed)
        if error is not None:
            few = shortest(faults, lambda some: failing(graph, some, seed) is not None)  # noqa: B023
            pytest.fail(f"seed {seed} on {graph}: {error or 'AssertionError'}; shortest schedule: {few}")


@pytest.mark.parametrize("kind", ["crash before write", "crash after write"])
@pytest.mark.parametrize("name", ["node-0", "node-1"])
def test_a_crash_at_every_write(kind: str, name: str) -> None:
    """The end of a path and its middle, at each of their first writes in turn."""
    for write in range(1, 61):
        error = failing("path", [Fault(kind, write, name)], write)
        assert error is None, f"{kind} {write} of {name}: {error}"
