"""The compiled engine where each node holds one row.

There are two ways to lay out nodes. Where everything fits into the cache, visitors are numbers of rows. Where it does
not, each node's states, own observation and visitors lie side by side ("carried"): an exchange touches two places in
memory instead of ten, and since these are known from the edge alone, they are prefetched some exchanges ahead.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from gosta.estimation.exchange import RECENT_HOMES_PER_ROW
from gosta.estimation.setting import Setting
from gosta.protocols import Protocol
from gosta.runtime.arrays import Floats, Integers
from gosta.schedule import Schedule
from gosta.simulation.engines.compiled.adapters import Columns, protocol_constants, specialise, tuple_of
from gosta.simulation.engines.engine import ArrayEngine, Batch, Snapshot

CACHE_BYTES = 4 << 20  # about the cache that one core can use
CACHE_LINE = 8  # numbers in a line of cache
PREFETCH_EXCHANGES = 16  # exchanges between prefetching a node and using it: some 300 ns
EQUAL_SHARES: Floats = np.ones(1)


class OneRowEngine(ArrayEngine):
    """Nodes are rows of one array."""

    def __init__(self, setting: Setting, seed: int, is_carried: bool | None = None) -> None:
        super().__init__(setting, seed)
        assert isinstance(setting.protocol, Protocol)
        self.protocol, estimand = setting.protocol, setting.estimand
        self.x, self.options = estimand.x, tuple(estimand.kernel_options.values())
        n, d = self.x.shape
        recent = 1 + RECENT_HOMES_PER_ROW if self.protocol.needs_known else 0
        self.columns = Columns(self.protocol, setting.mean_count, estimand.width, recent)
        if is_carried is None:
            is_carried = n * 8 * (d + estimand.width * self.protocol.fields) > CACHE_BYTES
        self.is_carried = is_carried
        self.own = self.columns.size
        self.visitor = self.own + (d if self.protocol.visitors == 1 else 0)
        self.size = self._padded(self.visitor + self.protocol.visitors * (d + 1)) if is_carried else self.columns.size
        diagonal = estimand.diagonal if self.protocol.needs_known else np.zeros((1, estimand.width))
        self.diagonal = diagonal if diagonal.any() else np.zeros((1, estimand.width))
        self.loop = specialise("one_row_loop.py", setting, self._constants(), self._adapters(), self._trial).advance

    @staticmethod
    def _padded(size: int) -> int:
        """Round up to whole lines of cache, unless half a line is enough."""
        return size if size <= CACHE_LINE // 2 else -(-size // CACHE_LINE) * CACHE_LINE

    def _constants(self) -> dict[str, object]:
        return protocol_constants(self.setting) | {
            "DRAWS": self.protocol.draws,
            "VISITORS": self.protocol.visitors,
            "NUMBERS": self.x.shape[1],
            "NODE_SIZE": self.size,
            "EXCHANGES": self.columns.exchanges,
            "OTHERS": self.columns.others,
            "RECENT": self.columns.weight,
            "RECENT_SIZE": RECENT_HOMES_PER_ROW,
            "OWN": self.own,
            "VISITOR": self.visitor,
            "CARRIED": self.is_carried,
            "HAS_DIAGONAL": len(self.diagonal) > 1,
            "AHEAD": PREFETCH_EXCHANGES * self.protocol.draws,
            "CACHE_LINE": CACHE_LINE,
        }

    def _adapters(self) -> str:
        mean = "own_share * load(own_mean, {c}) + (1.0 - own_share) * load(cells, OTHERS + {c})"
        known = tuple_of(mean, self.setting.estimand.width)
        return f"\n\ndef known_values(own_mean, cells, own_share):\n    return {known}\n"

    def _trial(self, module: ModuleType) -> None:
        arrays, edges = self._arrays(np.zeros((1, self.columns.states)), self.x[:1]), np.zeros((0, 2), dtype=np.int32)
        nodes, visitors = arrays["nodes"], arrays["visitors"]
        module.advance(nodes, self.x, visitors, self.diagonal, edges, EQUAL_SHARES, 0, self.options)

    def first_arrays(self) -> Snapshot:
        states = self.setting.first_states().reshape(len(self.x), self.columns.states)
        return self._arrays(states, self.x)

    def _arrays(self, states: Floats, x: Floats) -> Snapshot:
        n, visitors = len(x), self.protocol.visitors
        homes = np.arange(n)[:, None]
        nodes = np.zeros((n, self.size))
        nodes[:, : self.columns.states] = states
        if self.protocol.needs_known:
            nodes[:, self.columns.weight + 1 : self.columns.size] = -1.0
        if not self.is_carried:
            return {"nodes": nodes, "visitors": np.repeat(homes, visitors, axis=1).astype(np.int32)}
        carried = np.column_stack([x[:, : self.visitor - self.own], *([homes, x] * visitors)])
        nodes[:, self.own : self.own + carried.shape[1]] = carried
        return {"nodes": nodes, "visitors": np.zeros((1, 1), dtype=np.int32)}

    def advance_run(self, batch: Batch[Snapshot], position: int, schedule: Schedule, first: int, last: int) -> None:
        drawn = first * self.protocol.draws, last * self.protocol.draws
        shares = schedule.edge_shares(*drawn) if self.protocol.needs_edge_share else EQUAL_SHARES
        nodes, visitors = batch.state["nodes"][position], batch.state["visitors"][position]
        edges = schedule.edges(*drawn)
        self.loop(nodes, self.x, visitors, self.diagonal, edges, shares, first, self.options)

    def estimates(self, batch: Batch[Snapshot]) -> Floats:
        return self.columns.estimates(batch.state["nodes"], batch.iteration)

    def visitors(self, batch: Batch[Snapshot]) -> Integers:
        """Return the number of each visitor's row: runs × nodes × visitors."""
        if not self.is_carried:
            return batch.state["visitors"].astype(np.int64)
        columns = [self.visitor + slot * (self.x.shape[1] + 1) for slot in range(self.protocol.visitors)]
        return batch.state["nodes"][..., columns].astype(np.int64)
