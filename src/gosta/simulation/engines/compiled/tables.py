"""The compiled engine where nodes hold tables of rows, and for statistics that need each row's own mean."""

from __future__ import annotations

from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from gosta.estimation.exchange import MAX_SAMPLE_ROWS, RECENT_HOMES_PER_ROW
from gosta.estimation.setting import Setting
from gosta.protocols import Protocol
from gosta.runtime import machine
from gosta.runtime.arrays import Floats
from gosta.schedule import Schedule
from gosta.simulation.engines.compiled.adapters import Columns, protocol_constants, specialise, tuple_of
from gosta.simulation.engines.compiled.one_row import EQUAL_SHARES
from gosta.simulation.engines.engine import ArrayEngine, Batch, Snapshot
from gosta.statistics import pairs


class TableEngine(ArrayEngine):
    """Nodes are rows of an array; their own rows lie one after the other in x."""

    def __init__(self, setting: Setting, seed: int) -> None:
        super().__init__(setting, seed)
        assert isinstance(setting.protocol, Protocol)
        self.protocol, estimand, placement = setting.protocol, setting.estimand, setting.placement
        self.columns = Columns(self.protocol, setting.mean_count, estimand.width, weights=2)
        self.has_local = estimand.tracked.local is not None
        has_recent = self.protocol.needs_known and not self.has_local
        capacities = np.minimum(RECENT_HOMES_PER_ROW * placement.rows, placement.nodes - 1) * has_recent
        self.recent_offsets = np.concatenate([[0], np.cumsum(capacities)])
        own = [estimand.over(x) for x in placement.split(estimand.x)] if self.protocol.visitors else []
        empty = np.zeros((1, estimand.width))
        own_means = np.array([node.own_mean for node in own]) if own else empty
        own_row_means = np.concatenate([node.own_row_means for node in own]) if own and self.has_local else empty
        self.own = own_means, own_row_means, *(estimand.row_scale if self.has_local else (1.0, empty))
        sample_sizes = np.minimum(placement.rows, MAX_SAMPLE_ROWS)
        self.table = estimand.x, placement.offsets, self.recent_offsets, sample_sizes
        self.options = tuple(estimand.kernel_options.values())
        constants = protocol_constants(setting) | {
            "EXCHANGES": self.columns.exchanges,
            "OTHERS": self.columns.others,
            "WEIGHT": self.columns.weight,
            "SWAPS": self.protocol.visitors > 0,
            "HAS_LOCAL": self.has_local,
        }
        self.loop = specialise("tables_loop.py", setting, constants, self._adapters(), self._trial).advance

    def _adapters(self) -> str:
        values, means = self.setting.estimand.width, self.setting.mean_count
        known = "own_share * load(own_mean, {c}) + (1.0 - own_share) * load(cells, OTHERS + {c})"
        text = f"""

def add_values(a, b):
    return {tuple_of("a[{c}] + b[{c}]", values)}


def divide_values(a, count):
    return {tuple_of("a[{c}] / count", values)}


def corrected(total, rows, correction):
    return {tuple_of("total[{c}] / rows + load(correction, {c})", values)}


def known_values(own_mean, cells, own_share):
    return {tuple_of(known, values)}


def add_means(a, b):
    return {tuple_of("a[{c}] + b[{c}]", means)}


def divide_means(a, count):
    return {tuple_of("a[{c}] / count", means)}
"""
        local = self.setting.estimand.tracked.local
        if local is None:
            return text
        mean = "scale * (own_share * load(own_mean, {c}) + (1.0 - own_share) * m[{c}]) - load(shift, {c})"
        unbiased = "2.0 * both[{c}] - 0.5 * (a[{c}] + b[{c}])"
        pooled = "first[{c}] + second_share * (second[{c}] - first[{c}])"
        text += pairs.values_text(local((1.0,) * values), "local", "local_values", "h")
        return (
            text
            + f"""

def local_of_means(m, own_mean, shift, scale, own_share):
    return local_values({tuple_of(mean, values)})


def local_of_row(halves, own_mean, shift, scale, own_share, second_share):
    first, second = {tuple_of("load(halves, {c})", values)}, {tuple_of("load(halves, VALUES + {c})", values)}
    a = local_of_means(first, own_mean, shift, scale, own_share)
    if second_share == 0.0:
        return a
    b = local_of_means(second, own_mean, shift, scale, own_share)
    both = local_of_means({tuple_of(pooled, values)}, own_mean, shift, scale, own_share)
    return {tuple_of(unbiased, means)}
"""
        )

    def _trial(self, module: ModuleType) -> None:
        self.loop = module.advance
        self._run(self.first_arrays(), np.zeros((0, 2), np.int32), EQUAL_SHARES, 0)

    def _run(self, arrays: Snapshot, edges: NDArray[np.int32], edge_shares: Floats, start: int) -> None:
        travel = arrays["visitors"], arrays["positions"], arrays["corrections"]
        memory = arrays["recent"], arrays["recent_counts"]
        nodes, halves = arrays["nodes"], arrays["halves"]
        self.loop(nodes, travel, memory, halves, self.table, self.own, edges, edge_shares, start, self.options)

    def first_arrays(self) -> Snapshot:
        nodes, estimand = self.setting.placement.nodes, self.setting.estimand
        width, recent = estimand.width, int(self.recent_offsets[-1])
        machine.require_memory(
            8 * recent * (2 + width), f"keeping the visitors of {nodes} nodes apart", "use fewer nodes"
        )
        cells = np.zeros((nodes, self.columns.size))
        cells[:, : self.columns.states] = self.setting.first_states().reshape(nodes, self.columns.states)
        return {
            "nodes": cells,
            "visitors": np.arange(nodes),
            "positions": np.zeros(nodes, dtype=np.int64),
            "corrections": np.zeros((nodes, width)),
            "halves": np.zeros((estimand.n if self.has_local else 1, 2 * width)),
            "recent": np.zeros((max(1, recent), 2 + width)),
            "recent_counts": np.zeros(nodes, dtype=np.int64),
        }

    def advance_run(self, batch: Batch[Snapshot], position: int, schedule: Schedule, first: int, last: int) -> None:
        arrays = {name: array[position] for name, array in batch.state.items()}
        shares = schedule.edge_shares(first, last) if self.protocol.needs_edge_share else EQUAL_SHARES
        self._run(arrays, schedule.edges(first, last), shares, first)

    def estimates(self, batch: Batch[Snapshot]) -> Floats:
        return self.columns.estimates(batch.state["nodes"], batch.iteration)
