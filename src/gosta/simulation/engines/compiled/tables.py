"""The compiled engine where nodes hold tables of rows, and for statistics that need each row's own mean."""

from __future__ import annotations

import numpy as np

from gosta.estimation.exchange import MAX_SAMPLE_ROWS, max_recent_homes
from gosta.estimation.setting import Setting
from gosta.runtime import machine
from gosta.runtime.arrays import Integers
from gosta.simulation.engines.compiled.adapters import LoopEngine, tuple_function
from gosta.simulation.engines.engine import Snapshot
from gosta.statistics import pairs


class TableEngine(LoopEngine):
    """Nodes are rows of an array; their own rows lie one after the other in x."""

    def __init__(self, setting: Setting, seed: int) -> None:
        super().__init__(setting, seed, weights=2)
        estimand, placement = setting.estimand, setting.placement
        self.has_local = estimand.tracked.local is not None
        has_recent = self.protocol.needs_known and not self.has_local
        capacities = [
            has_recent * min(max_recent_homes(rows), placement.nodes)
            for rows in placement.rows.tolist()
        ]
        self.recent_offsets = np.concatenate([[0], np.cumsum(capacities)])
        own = (
            [estimand.over(x) for x in placement.split(estimand.x)]
            if self.protocol.visitors
            else []
        )
        empty = np.zeros((1, estimand.width))
        own_means = np.array([node.own_mean for node in own]) if own else empty
        own_row_means = (
            np.concatenate([node.own_row_means for node in own])
            if own and self.has_local
            else empty
        )
        means = (
            own_means,
            own_row_means,
            *(estimand.row_scale(estimand.n) if self.has_local else (empty, empty)),
        )
        sample_sizes = np.minimum(placement.rows, MAX_SAMPLE_ROWS)
        table = estimand.x, placement.offsets, self.recent_offsets, sample_sizes
        self.fixed = table, means, self.parents
        self.compile_loop(
            "tables_loop.py", {"HAS_LOCAL": self.has_local}, self._adapters(), self.first_arrays()
        )

    def _adapters(self) -> str:
        values, means, local = (
            self.setting.estimand.width,
            self.setting.mean_count,
            self.setting.estimand.tracked.local,
        )
        text = tuple_function("divide_values", "a, count", "a[{c}] / count", values)
        corrected = "total[{c}] / rows + load(correction, {c})"
        text += tuple_function("corrected", "total, rows, correction", corrected, values)
        text += tuple_function("add_means", "a, b", "a[{c}] + b[{c}]", means)
        text += tuple_function("divide_means", "a, count", "a[{c}] / count", means)
        if local is None:
            return text
        mean = "load(scale, {c}) * (own_share * load(own_mean, {c}) + (1.0 - own_share) * m[{c}]) - load(shift, {c})"
        text += tuple_function("load_values", "cells, start", "load(cells, start + {c})", values)
        text += tuple_function(
            "pooled", "a, b, b_share", "a[{c}] + b_share * (b[{c}] - a[{c}])", values
        )
        text += tuple_function("row_values", "m, own_mean, shift, scale, own_share", mean, values)
        text += tuple_function(
            "unbiased", "a, b, both", "2.0 * both[{c}] - 0.5 * (a[{c}] + b[{c}])", means
        )
        return text + pairs.values_text(local((1.0,) * values), "local", "local_values", "h")

    def homes_of(self, arrays: Snapshot) -> Integers:
        homes: Integers = arrays["visitors"][..., None][..., : self.protocol.visitors]
        return homes

    def first_arrays(self) -> Snapshot:
        nodes, estimand = self.setting.placement.nodes, self.setting.estimand
        width, recent = estimand.width, int(self.recent_offsets[-1])
        purpose = f"keeping the visitors of {nodes} nodes apart"
        machine.require_memory(8 * recent * (2 + width), purpose, "use fewer nodes")
        cells = np.zeros((nodes, self.size))
        cells[:, : self.exchanges] = self.setting.first_states().reshape(nodes, self.exchanges)
        return {
            "nodes": cells,
            "visitors": np.arange(nodes),
            "positions": np.zeros(nodes, dtype=np.int64),
            "corrections": np.zeros((nodes, width)),
            "halves": np.zeros((estimand.n if self.has_local else 1, 2 * width)),
            "recent": np.zeros((max(1, recent), 2 + width)),
            "recent_counts": np.zeros(nodes, dtype=np.int64),
        }
