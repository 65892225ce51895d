"""The compiled engine where visitors carry means; each node holds one row."""

from __future__ import annotations

import numpy as np

from gosta.estimation.carried import REMEMBERED
from gosta.estimation.setting import Setting
from gosta.protocols.protocol import COPIES
from gosta.runtime.arrays import Floats, Integers
from gosta.simulation.engines.compiled.adapters import (
    CACHE_BYTES,
    CACHE_LINE,
    LoopEngine,
    tuple_function,
)
from gosta.simulation.engines.engine import Snapshot


class CarriedEngine(LoopEngine):
    """Nodes are rows of one array, with all that they hold, also the observations that they remember."""

    def __init__(self, setting: Setting, seed: int) -> None:
        super().__init__(setting, seed, weights=0)
        self.x, self.width = setting.estimand.x, setting.estimand.width
        d = self.x.shape[1]
        self.latest = self.exchanges + 1
        self.homes = self.latest + 3
        self.visitor, self.visitor_size = self.homes + REMEMBERED, 3 + 2 * self.width + d
        self.rows = self.visitor + COPIES * self.visitor_size
        self.size = -(-(self.rows + REMEMBERED * d) // CACHE_LINE) * CACHE_LINE
        has_diagonal = bool(setting.estimand.diagonal.any())
        diagonal = setting.estimand.diagonal if has_diagonal else np.zeros((1, self.width))
        self.fixed = diagonal, self.parents
        constants = {
            "NUMBERS": d,
            "COPIES": COPIES,
            "LATEST": self.latest,
            "SIZE": self.latest + 1,
            "ORDER": self.latest + 2,
            "HOMES": self.homes,
            "REMEMBERED": REMEMBERED,
            "VISITOR": self.visitor,
            "VISITOR_SIZE": self.visitor_size,
            "ROWS": self.rows,
            "SMOOTH": 3 + self.width,
            "GUEST": 3 + 2 * self.width,
            "PREFETCHES": 8 * len(self.x) * self.size > CACHE_BYTES,
            "HAS_DIAGONAL": has_diagonal,
        }
        self.compile_loop("carried_loop.py", constants, self._adapters(), self._arrays(self.x[:1]))

    def _adapters(self) -> str:
        mean = (
            "load(visitor, MEAN + {c}) + weight * (total[{c}] / count - load(visitor, MEAN + {c}))"
        )
        known = "(own_share * load(diagonal, {c}) + (1.0 - own_share) * means[{c}])"
        text = tuple_function("new_means", "visitor, total, count, weight", mean, self.width)
        change = f"rate * ({known} - load(visitor, SMOOTH + {{c}}))"
        text += tuple_function(
            "changes_of", "visitor, means, diagonal, own_share, rate", change, self.width
        )
        shares = ", ".join(f"changes[{c}] / COPIES" for c in range(self.width))
        return (
            f"{text}\n\ndef shares_of(changes, counted):\n    return ({shares}, counted / COPIES)\n"
        )

    def first_arrays(self) -> Snapshot:
        return self._arrays(self.x)

    def homes_of(self, arrays: Snapshot) -> Integers:
        homes: Integers = arrays["nodes"][..., self.visitor + 1 : self.rows : self.visitor_size]
        return homes

    def _arrays(self, x: Floats) -> Snapshot:
        nodes, homes = np.zeros((len(x), self.size)), np.arange(len(x))
        nodes[:, self.latest] = COPIES - 1
        nodes[:, self.latest + 1] = 1  # each remembers its own row
        nodes[:, self.homes] = homes
        for start in range(self.visitor, self.rows, self.visitor_size):
            nodes[:, start], nodes[:, start + 1] = -1, homes
            nodes[:, start + self.visitor_size - x.shape[1] : start + self.visitor_size] = x
        nodes[:, self.rows : self.rows + x.shape[1]] = x
        return {"nodes": nodes}
