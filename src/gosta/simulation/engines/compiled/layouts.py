"""Layouts of the compiled engine: the arrays in which nodes lie, and which loop works on them.

In all layouts a node is a row of the array "nodes". It begins with its states, its number of
exchanges and, where a protocol needs it, its mean over other nodes' rows; see `Columns`. What
follows is said by the template of each layout's loop.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.estimation import carried
from gosta.estimation.carried import REMEMBERED
from gosta.estimation.estimand import ObjectiveEstimand
from gosta.estimation.exchange import RECENT_HOMES_PER_ROW, max_recent_homes
from gosta.estimation.setting import Setting
from gosta.estimation.visitor import MAX_SAMPLE_ROWS
from gosta.protocols import Protocol
from gosta.protocols.protocol import ALLOWED, COPIES, MEET_INPUTS
from gosta.runtime import compiler, machine
from gosta.runtime.arrays import Floats, Integers
from gosta.simulation.engines.engine import Snapshot
from gosta.statistics import pairs

CACHE_BYTES = 4 << 20  # about the cache that one core can use
CACHE_LINE = 8  # numbers in a line of cache
# Exchanges between prefetching a node and using it: some 300 ns.
PREFETCH_EXCHANGES = 16
# Numbers in an observation up to which the kernel takes less time than a mispredicted branch.
MAX_CHEAP_NUMBERS = 16


class Columns(NamedTuple):
    """First columns of a node's row."""

    exchanges: int  # the number of exchanges, after the states
    others: int  # the mean over other nodes' rows
    weight: int  # what a layout keeps besides

    @classmethod
    def of(cls, setting: Setting) -> Columns:
        """Return the columns for a setting."""
        exchanges = setting.state_count * setting.gossip.fields
        width = setting.estimand.width if setting.gossip.needs_known else 0
        return cls(exchanges, exchanges + 1, exchanges + 1 + width)


class Layout(typing.Protocol):
    """Arrays of a run, and the loop of an exchange that works on them."""

    setting: Setting
    columns: Columns
    template: str
    """File of the loop's template, in this folder."""
    size: int
    """Numbers in a node's row."""
    fixed: tuple[Any, ...]
    """Arrays that exchanges read and never change."""
    constants: Mapping[str, Any]
    """Constants that the template declares, besides those of all templates."""
    functions: Mapping[str, Any]
    """Functions that the template calls, besides those of all templates."""

    def adapters(self) -> str:
        """Return the text of functions that are generated for the kernel."""

    def first_arrays(self) -> Snapshot:
        """Return the arrays of one run at the start."""

    def example(self) -> Snapshot:
        """Return arrays of the same types as those of a run, which can be smaller."""

    def visitor_homes(self, arrays: Snapshot) -> NDArray[Any]:
        """Return the homes of all visitors: runs × nodes × visitors."""


def parents_of(setting: Setting) -> Integers:
    """Return the parent of each node in the spanning tree, or one number where there is no tree."""
    return setting.parents if setting.gossip.uses_tree else np.zeros(1, dtype=np.int64)


def tuple_function(name: str, parameters: str, form: str, count: int) -> str:
    """Return the text of a function that returns a tuple, with c = 0, 1, ... put into a form.

    >>> print(tuple_function("add", "a, b", "a[{c}] + b[{c}]", 2).strip())
    def add(a, b):
        return (a[0] + b[0], a[1] + b[1],)
    """
    values = ", ".join(form.format(c=c) for c in range(count))
    return f"\n\ndef {name}({parameters}):\n    return ({values},)\n"


class OneRowLayout:
    """Nodes that hold one row each.

    There are two ways to lay them out. Where everything fits into the cache, visitors are numbers
    of rows. Where it does not, each node's states, own observation and visitors lie side by side
    ("inline"): an exchange touches two places in memory instead of ten, and since these are known
    from the edge alone, they are prefetched some exchanges ahead.
    """

    template = "one_row_loop.py"

    def __init__(self, setting: Setting, is_inline: bool | None = None) -> None:
        protocol, estimand = setting.gossip, setting.estimand
        self.setting, self.columns = setting, Columns.of(setting)
        self.functions: Mapping[str, Any] = {}
        self.x, width, visitors = estimand.x, estimand.width, protocol.visitors
        n, d = self.x.shape
        if is_inline is None:
            is_inline = n * 8 * (d + width * protocol.fields) > CACHE_BYTES
        self.is_inline = is_inline
        # Recent homes take half a number each; the last of two more has room for one that is not
        # kept.
        self.own = self.columns.weight
        self.own += 2 + RECENT_HOMES_PER_ROW // 2 if protocol.needs_known else 0
        self.visitor = self.own + (d if visitors == 1 else 0)
        self.size = self.own
        if is_inline:  # whole lines of cache, unless half a line is enough
            size = self.visitor + visitors * (d + 1)
            self.size = size if size <= CACHE_LINE // 2 else -(-size // CACHE_LINE) * CACHE_LINE
        has_diagonal = protocol.needs_known and bool(estimand.diagonal.any())
        diagonal = estimand.diagonal if has_diagonal else np.zeros((1, width))
        self.fixed = self.x, diagonal, parents_of(setting)
        self.constants: Mapping[str, Any] = {
            "NUMBERS": d,
            "RECENT": self.columns.weight + 1,
            "RECENT_SIZE": RECENT_HOMES_PER_ROW,
            "IS_CHEAP": d <= MAX_CHEAP_NUMBERS and estimand.statistic.is_built_in,
            "VISITOR": self.visitor,
            "OWN": self.own if is_inline else 0,
            "GUEST": self.visitor + 1 if is_inline else 0,
            "SECOND_GUEST": self.visitor + d + 2 if is_inline else 0,
            "INLINE": is_inline,
            "HAS_DIAGONAL": has_diagonal,
            "PREFETCHES": is_inline,
        }

    def adapters(self) -> str:
        return ""

    def first_arrays(self) -> Snapshot:
        states = self.setting.first_states().reshape(len(self.x), self.columns.exchanges)
        return self._arrays(states, self.x)

    def example(self) -> Snapshot:
        return self._arrays(np.zeros((1, self.columns.exchanges)), self.x[:1])

    def visitor_homes(self, arrays: Snapshot) -> NDArray[Any]:
        if not self.is_inline:
            return arrays["visitors"]
        visitors = self.setting.gossip.visitors
        columns = [self.visitor + k * (self.x.shape[1] + 1) for k in range(visitors)]
        return arrays["nodes"][..., columns]

    def _arrays(self, states: Floats, x: Floats) -> Snapshot:
        visitors, homes = self.setting.gossip.visitors, np.arange(len(x))[:, None]
        nodes = np.zeros((len(x), self.size))
        nodes[:, : self.columns.exchanges] = states
        # A node's own home is never looked for.
        nodes[:, self.columns.weight + 1 : self.own] = (homes << 32 | homes).view(np.float64)
        if not self.is_inline:
            return {"nodes": nodes, "visitors": np.repeat(homes, visitors, axis=1).astype(np.int32)}
        inline = np.column_stack([x[:, : self.visitor - self.own], *([homes, x] * visitors)])
        nodes[:, self.own : self.own + inline.shape[1]] = inline
        return {"nodes": nodes, "visitors": np.zeros((1, 1), dtype=np.int32)}


class TableLayout:
    """Nodes that hold tables of rows, or keep each row's own mean.

    The rows of all nodes lie one after the other in x.
    """

    template = "tables_loop.py"

    def __init__(self, setting: Setting) -> None:
        protocol, estimand, placement = setting.gossip, setting.estimand, setting.placement
        self.setting, self.columns = setting, Columns.of(setting)
        self.functions: Mapping[str, Any] = {}
        self.size = self.columns.weight + 2  # two weights
        self.has_local = estimand.tracked.local is not None
        has_recent = protocol.needs_known and not self.has_local
        capacities = [
            has_recent * min(max_recent_homes(rows), placement.nodes)
            for rows in placement.rows.tolist()
        ]
        self.recent_offsets = np.concatenate([[0], np.cumsum(capacities)])
        estimands = (
            [estimand.over(x) for x in placement.split(estimand.x)] if protocol.visitors else []
        )
        empty = np.zeros((1, estimand.width))
        own_means = np.array([node.own_mean for node in estimands]) if estimands else empty
        own_row_means = (
            np.concatenate([node.own_row_means for node in estimands])
            if estimands and self.has_local
            else empty
        )
        means = (
            own_means,
            own_row_means,
            *(estimand.row_scale(estimand.n) if self.has_local else (empty, empty)),
        )
        sample_sizes = np.minimum(placement.rows, MAX_SAMPLE_ROWS)
        table = estimand.x, placement.offsets, self.recent_offsets, sample_sizes
        self.fixed = table, means, parents_of(setting)
        self.constants: Mapping[str, Any] = {"HAS_LOCAL": self.has_local}

    def adapters(self) -> str:
        values = self.setting.estimand.width
        means = self.setting.mean_count
        local = self.setting.estimand.tracked.local
        text = tuple_function("divide_values", "a, count", "a[{c}] / count", values)
        corrected = "total[{c}] / rows + load(correction, {c})"
        text += tuple_function("corrected", "total, rows, correction", corrected, values)
        text += tuple_function("add_means", "a, b", "a[{c}] + b[{c}]", means)
        text += tuple_function("divide_means", "a, count", "a[{c}] / count", means)
        if local is None:
            return text
        mean = (
            "load(scale, {c}) * (own_share * load(own_mean, {c}) + (1.0 - own_share) * m[{c}]) - "
            "load(shift, {c})"
        )
        text += tuple_function("load_values", "cells, start", "load(cells, start + {c})", values)
        text += tuple_function(
            "pooled", "a, b, b_share", "a[{c}] + b_share * (b[{c}] - a[{c}])", values
        )
        text += tuple_function("row_values", "m, own_mean, shift, scale, own_share", mean, values)
        text += tuple_function(
            "unbiased", "a, b, both", "2.0 * both[{c}] - 0.5 * (a[{c}] + b[{c}])", means
        )
        return text + pairs.values_text(local((1.0,) * values), "local", "local_values", "h")

    def visitor_homes(self, arrays: Snapshot) -> NDArray[Any]:
        return arrays["visitors"][..., None][..., : self.setting.gossip.visitors]

    def example(self) -> Snapshot:
        return self.first_arrays()

    def first_arrays(self) -> Snapshot:
        nodes, estimand = self.setting.placement.nodes, self.setting.estimand
        width, recent = estimand.width, int(self.recent_offsets[-1])
        purpose = f"keeping the visitors of {nodes} nodes apart"
        machine.require_memory(8 * recent * (2 + width), purpose, "use fewer nodes")
        cells = np.zeros((nodes, self.size))
        exchanges = self.columns.exchanges
        cells[:, :exchanges] = self.setting.first_states().reshape(nodes, exchanges)
        return {
            "nodes": cells,
            "visitors": np.arange(nodes),
            "positions": np.zeros(nodes, dtype=np.int64),
            "corrections": np.zeros((nodes, width)),
            "halves": np.zeros((estimand.n if self.has_local else 1, 2 * width)),
            "recent": np.zeros((max(1, recent), 2 + width)),
            "recent_counts": np.zeros(nodes, dtype=np.int64),
        }


class CarriedLayout:
    """Nodes that hold one row each and visitors that carry means.

    Their rows have all that they hold, also the observations that they remember.
    """

    template = "carried_loop.py"

    def __init__(self, setting: Setting) -> None:
        self.setting, self.columns = setting, Columns.of(setting)
        self.functions: Mapping[str, Any] = {
            "weight_of": carried.weight_of,
            "rate_of": carried.rate_of,
        }
        self.x, self.width = setting.estimand.x, setting.estimand.width
        d = self.x.shape[1]
        self.latest = self.columns.exchanges + 1
        self.homes = self.latest + 3
        self.visitor, self.visitor_size = self.homes + REMEMBERED, 3 + 2 * self.width + d
        self.rows = self.visitor + COPIES * self.visitor_size
        self.size = -(-(self.rows + REMEMBERED * d) // CACHE_LINE) * CACHE_LINE
        has_diagonal = bool(setting.estimand.diagonal.any())
        diagonal = setting.estimand.diagonal if has_diagonal else np.zeros((1, self.width))
        self.fixed = diagonal, parents_of(setting)
        self.constants: Mapping[str, Any] = {
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

    def adapters(self) -> str:
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

    def example(self) -> Snapshot:
        return self._arrays(self.x[:1])

    def visitor_homes(self, arrays: Snapshot) -> NDArray[Any]:
        return arrays["nodes"][..., self.visitor + 1 : self.rows : self.visitor_size]

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


class ObjectiveLayout:
    """Nodes that hold one row each and minimise an objective."""

    template = "objective_loop.py"

    def __init__(self, setting: Setting) -> None:
        protocol, estimand = setting.gossip, setting.estimand
        assert isinstance(estimand, ObjectiveEstimand)
        self.setting, self.columns = setting, Columns.of(setting)
        self.functions: Mapping[str, Any] = {
            "feature": estimand.objective.pairs.feature,
            "slope": estimand.objective.loss.slope,
        }
        self.size = self.columns.exchanges + 1 + setting.state_count
        self.fixed = (estimand.x,)
        self.constants: Mapping[str, Any] = {
            "NUMBERS": estimand.x.shape[1],
            "GRADIENT": self.columns.exchanges + 1,
            "FIELDS": protocol.fields,
            "POINT": protocol.state._fields.index("point"),  # type: ignore[attr-defined]
            "PASSES_ROWS": protocol.passes_rows,
            "EVERY_NODE": protocol.every_node,
            "PENALTY": estimand.penalty,
            "PACE": estimand.pace,
        }

    def adapters(self) -> str:
        return ""

    def first_arrays(self) -> Snapshot:
        return self._arrays(self.setting.first_states())

    def example(self) -> Snapshot:
        return self._arrays(self.setting.first_states()[:1])

    def visitor_homes(self, arrays: Snapshot) -> NDArray[Any]:
        return arrays["visitors"]

    def _arrays(self, states: Floats) -> Snapshot:
        count, homes = len(states), np.arange(len(states))[:, None]
        nodes = np.zeros((count, self.size))
        nodes[:, : self.columns.exchanges] = states.reshape(count, -1)
        rows = self.setting.placement.nodes if self.setting.gossip.passes_rows else 1
        known = np.repeat(homes, rows, axis=1).astype(np.int32)
        return {
            "nodes": nodes,
            "visitors": homes.copy(),
            "known": known,
            "counts": np.ones(count, dtype=np.int64),
            "came_from": np.full_like(known, -1),
            "sent": np.zeros_like(known),
        }


def loop_text(layout: Layout, array_count: int) -> tuple[str, dict[str, Any]]:
    """Return the text of the loop of a layout with some arrays, and the functions that it calls.

    It has the layout's template, that of the loop over runs, their constants, and small functions
    that are generated for the protocol and the kernel.
    """
    setting, columns = layout.setting, layout.columns
    protocol, estimand = setting.gossip, setting.estimand
    constants = {
        "VALUES": estimand.width,
        "STATES": setting.state_count,
        "VISITORS": protocol.visitors,
        "EXCHANGES": columns.exchanges,
        "OTHERS": columns.others,
        "WEIGHT": columns.weight,
        "DRAWS": protocol.draws,
        "NODE_SIZE": layout.size,
        "PREFETCHES": False,
        "HAS_FAULTS": bool(setting.faults),
        "AHEAD": PREFETCH_EXCHANGES * protocol.draws,
        "CACHE_LINE": CACHE_LINE,
        "ZEROS": (0.0,) * estimand.width,
        "NO_SAMPLE": (0.0,) * setting.state_count,
        "NO_MEANS": (0.0,) * setting.mean_count,
        **{f"NEEDS_{name.upper()}": name in protocol.inputs for name in MEET_INPUTS},
        **layout.constants,
    }
    functions = {
        "kernel": estimand.tracked.kernel,
        "local": estimand.tracked.local,
        "State": protocol.state,
        "meet": protocol.meet,
        "tell": protocol.tell,
        "read": protocol.read,
        **layout.functions,
    }
    text = _template(layout.template)
    text += _template("runs_loop.py").replace("from __future__ import annotations\n", "")
    text += "".join(f"{name} = {value!r}\n" for name, value in constants.items())
    text += pairs.values_text(estimand.example) + _rule(protocol) + layout.adapters()
    text += tuple_function("of_run", "arrays, k", "arrays[{c}][k]", array_count)
    known = "own_share * load(own_mean, {c}) + (1.0 - own_share) * load(cells, OTHERS + {c})"
    text += tuple_function("known_values", "own_mean, cells, own_share", known, estimand.width)
    text += tuple_function("add_values", "a, b", "a[{c}] + b[{c}]", estimand.width)
    counted = "(*a, 1.0)" if protocol.counts_rows else "a"
    return f"{text}\n\ndef with_count(a):\n    return {counted}\n", functions


def compiler_error(setting: Setting, error: Exception) -> InputError:
    """Return the error for a protocol or a kernel that numba cannot compile."""
    protocol, reason = setting.gossip, pairs.compiler_reason(str(error))
    named = (
        name
        for name in ("tell", "meet", "read")
        if compiler.is_named(getattr(protocol, name), str(error))
    )
    function = "".join(f"its function {name}: " for name in named)
    what = f"protocol {protocol.name} cannot be compiled for {setting.estimand.tracked.name}"
    return InputError(f"{what}: {function}{reason}; {ALLOWED}")


def _template(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _rule(protocol: Protocol) -> str:
    """Return the text of functions that load a state, store it, and apply the protocol's rule."""
    fields = range(protocol.fields)
    loaded = ", ".join(f"load(cells, c * {len(fields)} + {f})" for f in fields)
    stored = "\n    ".join(
        f"store(cells, c * {len(fields)} + {f}, 1.0 * state[{f}])" for f in fields
    )
    samples = "gradient, penalty, pace" if protocol.minimises else "held, fresh, known, change"
    return f"""

def load_state(cells, c):
    return State({loaded})


def store_state(cells, c, state):
    {stored}


def rule(
    me, you, samples, exchanges, fewer_exchanges, weight, edge_share, row_share, rows, tree, tick
):
    {samples} = samples
    return meet(me, tell(you, tick{", -tree" * protocol.uses_tree}), {", ".join(protocol.inputs)})
"""
