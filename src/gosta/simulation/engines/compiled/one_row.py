"""The compiled engine where each node holds one row.

There are two ways to lay out nodes. Where everything fits into the cache, visitors are numbers of rows. Where it does
not, each node's states, own observation and visitors lie side by side ("inline"): an exchange touches two places in
memory instead of ten, and since these are known from the edge alone, they are prefetched some exchanges ahead.
"""

from __future__ import annotations

import numpy as np

from gosta.estimation.exchange import RECENT_HOMES_PER_ROW
from gosta.estimation.setting import Setting
from gosta.runtime.arrays import Floats, Integers
from gosta.simulation.engines.compiled.adapters import CACHE_BYTES, CACHE_LINE, LoopEngine
from gosta.simulation.engines.engine import Snapshot

MAX_CHEAP_NUMBERS = 16  # in an observation, whose kernel takes less time than a mispredicted branch


class OneRowEngine(LoopEngine):
    """Nodes are rows of one array."""

    def __init__(self, setting: Setting, seed: int, is_inline: bool | None = None) -> None:
        super().__init__(
            setting,
            seed,
            weights=2 + RECENT_HOMES_PER_ROW // 2 if setting.gossip.needs_known else 0,
        )
        self.x, width, visitors = setting.estimand.x, setting.estimand.width, self.protocol.visitors
        n, d = self.x.shape
        if is_inline is None:
            is_inline = n * 8 * (d + width * self.protocol.fields) > CACHE_BYTES
        self.is_inline, self.own = is_inline, self.size
        self.visitor = self.own + (d if visitors == 1 else 0)
        if is_inline:  # whole lines of cache, unless half a line is enough
            size = self.visitor + visitors * (d + 1)
            self.size = size if size <= CACHE_LINE // 2 else -(-size // CACHE_LINE) * CACHE_LINE
        has_diagonal = self.protocol.needs_known and bool(setting.estimand.diagonal.any())
        diagonal = setting.estimand.diagonal if has_diagonal else np.zeros((1, width))
        self.fixed = self.x, diagonal, self.parents
        constants = {
            "NUMBERS": d,
            "RECENT": self.weight + 1,
            "RECENT_SIZE": RECENT_HOMES_PER_ROW,
            "IS_CHEAP": d <= MAX_CHEAP_NUMBERS and setting.estimand.statistic.is_built_in,
            "VISITOR": self.visitor,
            "OWN": self.own if is_inline else 0,
            "GUEST": self.visitor + 1 if is_inline else 0,
            "SECOND_GUEST": self.visitor + d + 2 if is_inline else 0,
            "INLINE": is_inline,
            "HAS_DIAGONAL": has_diagonal,
            "PREFETCHES": is_inline,
        }
        self.compile_loop(
            "one_row_loop.py",
            constants,
            "",
            self._arrays(np.zeros((1, self.exchanges)), self.x[:1]),
        )

    def first_arrays(self) -> Snapshot:
        return self._arrays(
            self.setting.first_states().reshape(len(self.x), self.exchanges), self.x
        )

    def homes_of(self, arrays: Snapshot) -> Integers:
        if not self.is_inline:
            return arrays["visitors"]
        columns = [self.visitor + k * (self.x.shape[1] + 1) for k in range(self.protocol.visitors)]
        homes: Integers = arrays["nodes"][..., columns]
        return homes

    def _arrays(self, states: Floats, x: Floats) -> Snapshot:
        visitors, homes = self.protocol.visitors, np.arange(len(x))[:, None]
        nodes = np.zeros((len(x), self.size))
        nodes[:, : self.exchanges] = states
        # its own is never looked for
        nodes[:, self.weight + 1 : self.own] = (homes << 32 | homes).view(np.float64)
        if not self.is_inline:
            return {"nodes": nodes, "visitors": np.repeat(homes, visitors, axis=1).astype(np.int32)}
        inline = np.column_stack([x[:, : self.visitor - self.own], *([homes, x] * visitors)])
        nodes[:, self.own : self.own + inline.shape[1]] = inline
        return {"nodes": nodes, "visitors": np.zeros((1, 1), dtype=np.int32)}
