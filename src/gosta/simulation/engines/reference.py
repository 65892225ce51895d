"""The reference engine: the definition of the exchange in plain Python, one exchange at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gosta.errors import InputError
from gosta.estimation.exchange import Estimator, LocalRows, exchange
from gosta.estimation.setting import Setting
from gosta.protocols import CollectingProtocol
from gosta.runtime.arrays import Floats, Integers
from gosta.schedule import Schedule
from gosta.simulation.engines.collecting import CollectingEngine
from gosta.simulation.engines.engine import (
    NO_STOPS,
    Batch,
    Engine,
    Readings,
    ScheduledRuns,
    Snapshot,
)

Runs = list[list[Estimator]]


class ReferenceEngine:
    """All nodes of a run as estimators, in a list."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting = setting
        self._scheduled = ScheduledRuns(setting, seed, self.advance_run, self.read_run)
        self.rows = [
            LocalRows(setting.estimand.over(x)) for x in setting.placement.split(setting.estimand.x)
        ]

    def bytes_per_run(self) -> int:
        return 2000 * len(self.rows)

    def start(self, runs: Sequence[int]) -> Batch[Runs]:
        states, population = self.setting.first_states(), self.setting.estimand.n
        rule, rows = self.setting.gossip, list(enumerate(self.rows))
        known = population, self.setting.offset
        nodes = [
            [Estimator(str(k), rule, own_rows, states[k], *known) for k, own_rows in rows]
            for _ in runs
        ]
        for run in nodes:
            for child, parent in enumerate(self.setting.parents.tolist()):
                if parent >= 0:
                    run[child].parent = str(parent)
                    run[parent].children |= {str(child)}
        return Batch(tuple(runs), 0, np.ones(len(runs), dtype=np.bool_), nodes)

    def advance(self, batch: Batch[Runs], iteration: int, stops: Integers = NO_STOPS) -> Readings:
        return self._scheduled.advance(batch, iteration, stops)

    def advance_run(
        self, batch: Batch[Runs], position: int, schedule: Schedule, first: int, last: int
    ) -> None:
        """Carry out the exchanges of a run between two iterations."""
        nodes, draws = batch.state[position], self.setting.protocol.draws
        edges = schedule.edges(first * draws, last * draws)
        shares = schedule.edge_shares(first * draws, last * draws)
        for t, (i, j) in enumerate(edges.tolist()):
            if i < 0:  # an exchange that does not take place
                continue
            share = float(shares[min(t, len(shares) - 1)])
            tick = float(first + t // draws + 1)
            exchange(nodes[i], nodes[j], share, tick=tick, slot=t % draws)
            if self.setting.gossip.every_node:
                for k, node in enumerate(nodes):
                    if k not in (i, j):  # it meets itself
                        node.exchange(node.name, node.contribution(node.name, 1.0), 1.0, tick)

    def read_run(self, batch: Batch[Runs], position: int, iteration: int) -> Floats:
        """Return what the nodes of a run read from their states."""
        read, tick = self.setting.gossip.read, float(iteration)
        return np.array(
            [[read(state, tick) for state in node.states] for node in batch.state[position]]
        )

    def visitors(self, batch: Batch[Runs]) -> Integers:
        count = self.setting.gossip.held_visitors if self.setting.gossip.visitors else 0
        held = [
            [[int(visitor.home) for visitor in node.visitors[:count]] for node in run]
            for run in batch.state
        ]
        return np.array(held, dtype=np.int64).reshape(len(held), len(self.rows), count)

    def snapshot(self, batch: Batch[Runs]) -> Snapshot:  # noqa: ARG002
        return {}

    def restore(self, *_: object) -> Batch[Runs]:
        raise InputError("engine 'reference' cannot continue a saved run; use engine='compiled'")

    def close(self) -> None:
        self._scheduled.close()


def make(setting: Setting, seed: int) -> Engine[Any]:
    """Return the engine for a setting."""
    if isinstance(setting.protocol, CollectingProtocol):
        return CollectingEngine(setting, seed, is_compiled=False)
    return ReferenceEngine(setting, seed)
