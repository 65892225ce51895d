"""Common part of compiled engines: a loop's template, its constants, and small functions generated for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.estimation import carried
from gosta.estimation.setting import Setting
from gosta.graphs.edges import Edges
from gosta.protocols import Protocol
from gosta.protocols.protocol import MEET_INPUTS
from gosta.protocols.trial import ALLOWED
from gosta.runtime import compiler
from gosta.runtime.arrays import Floats, Integers
from gosta.simulation.edges import STREAM_SIZE, EdgeDrawer
from gosta.simulation.engines.engine import ArrayEngine, Batch, Snapshot, failures_of
from gosta.statistics import pairs

DRAWS_AT_ONCE = 1 << 17  # by a thread; their edges, a MiB, stay in its cache
CACHE_BYTES = 4 << 20  # about the cache that one core can use
CACHE_LINE = 8  # numbers in a line of cache
PREFETCH_EXCHANGES = 16  # exchanges between prefetching a node and using it: some 300 ns


class LoopEngine(ArrayEngine):
    """Engine that runs a template of this folder.

    A node is a row of the array "nodes": its states, number of exchanges, mean over other nodes' rows, its weights.
    """

    def __init__(self, setting: Setting, seed: int, weights: int) -> None:
        super().__init__(setting, seed)
        self.protocol, self.options = (
            setting.gossip,
            tuple(setting.estimand.kernel_options.values()),
        )
        self.exchanges = (
            setting.state_count * self.protocol.fields
        )  # column of the number of exchanges
        self.others = self.exchanges + 1
        self.weight = self.others + (setting.estimand.width if self.protocol.needs_known else 0)
        self.size = self.weight + weights
        self.parents = setting.parents if self.protocol.uses_tree else np.zeros(1, dtype=np.int64)
        self.fixed: tuple[Any, ...] = ()  # arrays that exchanges read and never change

    def compile_loop(
        self, template: str, constants: Mapping[str, Any], adapters: str, example: Snapshot
    ) -> None:
        """Compile a template with its constants and adapters, for arrays of the same types as an example."""
        setting, protocol, statistic = self.setting, self.protocol, self.setting.estimand.tracked
        constants = {
            "VALUES": setting.estimand.width,
            "STATES": setting.state_count,
            "VISITORS": protocol.visitors,
            "EXCHANGES": self.exchanges,
            "OTHERS": self.others,
            "WEIGHT": self.weight,
            "DRAWS": protocol.draws,
            "NODE_SIZE": self.size,
            "PREFETCHES": False,
            "HAS_FAULTS": bool(setting.faults),
            "AHEAD": PREFETCH_EXCHANGES * protocol.draws,
            "CACHE_LINE": CACHE_LINE,
            "ZEROS": (0.0,) * setting.estimand.width,
            "NO_SAMPLE": (0.0,) * setting.state_count,
            "NO_MEANS": (0.0,) * setting.mean_count,
            **{f"NEEDS_{name.upper()}": name in protocol.inputs for name in MEET_INPUTS},
            **constants,
        }
        functions: dict[str, Any] = {"kernel": statistic.kernel, "local": statistic.local}
        functions |= {
            "State": protocol.state,
            "meet": protocol.meet,
            "tell": protocol.tell,
            "read": protocol.read,
        }
        functions |= (
            {"weight_of": carried.weight_of, "rate_of": carried.rate_of}
            if protocol.carries_means
            else {}
        )
        text = _template(template) + _template("runs_loop.py").replace(
            "from __future__ import annotations\n", ""
        )
        text += "".join(f"{name} = {value!r}\n" for name, value in constants.items())
        text += pairs.values_text(setting.estimand.example) + _rule(protocol) + adapters
        text += tuple_function("of_run", "arrays, k", "arrays[{c}][k]", len(example))
        known = "own_share * load(own_mean, {c}) + (1.0 - own_share) * load(cells, OTHERS + {c})"
        text += tuple_function(
            "known_values", "own_mean, cells, own_share", known, setting.estimand.width
        )
        text += tuple_function("add_values", "a, b", "a[{c}] + b[{c}]", setting.estimand.width)
        text += (
            f"\n\ndef with_count(a):\n    return {'(*a, 1.0)' if protocol.counts_rows else 'a'}\n"
        )
        self.compile(text, functions, example)

    def compile(self, text: str, functions: Mapping[str, Any], example: Snapshot) -> None:
        """Compile the text of a loop, and what draws the edges."""
        has_shares = "edge_share" in self.protocol.inputs
        self.drawer = EdgeDrawer(
            self.setting.drawn, self.seed, has_shares, failures_of(self.setting, self.seed)
        )

        def trial(module: ModuleType) -> None:
            self.module = module
            batch = self.restore([0], 0, {name: array[None] for name, array in example.items()})
            self.advance_runs(
                batch,
                np.zeros(1, dtype=np.int64),
                0,
                np.zeros(0, dtype=np.int64),
                np.zeros((1, 0, 1, 1)),
            )

        try:
            compiler.specialise(text, functions, trial, is_unchecked=True)
        except Exception as error:  # numba raises several kinds
            raise self.compiler_error(error) from error

    def compiler_error(self, error: Exception) -> InputError:
        """Return the error for a protocol or a kernel that numba cannot compile."""
        protocol, statistic, reason = (
            self.protocol,
            self.setting.estimand.tracked,
            pairs.compiler_reason(str(error)),
        )
        named = (
            name
            for name in ("tell", "meet", "read")
            if compiler.is_named(getattr(protocol, name), str(error))
        )
        function = "".join(f"its function {name}: " for name in named)
        what = f"protocol {protocol.name} cannot be compiled for {statistic.name}"
        return InputError(f"{what}: {function}{reason}; {ALLOWED}")

    def restore(
        self, runs: Sequence[int], iteration: int, snapshot: Mapping[str, NDArray[Any]]
    ) -> Batch[Snapshot]:
        batch = super().restore(runs, iteration, snapshot)
        batch.streams = np.zeros((len(runs), STREAM_SIZE), dtype=np.uint64)
        return batch

    def advance_runs(
        self,
        batch: Batch[Snapshot],
        positions: Integers,
        iteration: int,
        stops: Integers,
        out: Floats,
    ) -> None:
        draws, runs = self.protocol.draws, np.array(batch.runs)
        length, size = (
            DRAWS_AT_ONCE // draws,
            DRAWS_AT_ONCE // max(1, (iteration - batch.iteration) * draws),
        )
        for k in range(0, len(positions), max(1, size)):
            chosen = positions[k : k + max(1, size)]
            streams, arrays, read = batch.streams[chosen], tuple(batch.state.values()), 0
            for first in range(batch.iteration, iteration, length) or [iteration]:
                last = min(iteration, first + length)
                edges, shares = self.drawer.draw(streams, runs[chosen], first * draws, last * draws)
                here = stops[read : np.searchsorted(stops, last, side="right")]
                self.module.advance_runs(
                    arrays,
                    self.fixed,
                    chosen,
                    edges,
                    shares,
                    first,
                    here,
                    self.options,
                    out[k : k + len(chosen)],
                    read,
                )
                read += len(here)
            batch.streams[chosen] = streams

    def advance_edges(
        self, batch: Batch[Snapshot], position: int, edges: Edges, shares: Floats
    ) -> None:
        """Carry out the exchanges of given edges in a run, instead of those drawn."""
        state = tuple(array[position] for array in batch.state.values())
        self.module.advance(state, self.fixed, edges, shares, batch.iteration, self.options)


def _template(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _rule(protocol: Protocol) -> str:
    """Return the text of functions that load a state, store it, and apply the protocol's rule."""
    fields = range(protocol.fields)
    loaded = ", ".join(f"load(cells, c * {len(fields)} + {f})" for f in fields)
    stored = "\n    ".join(
        f"store(cells, c * {len(fields)} + {f}, 1.0 * state[{f}])" for f in fields
    )
    return f"""

def load_state(cells, c):
    return State({loaded})


def store_state(cells, c, state):
    {stored}


def rule(me, you, samples, exchanges, fewer_exchanges, weight, edge_share, row_share, rows, tree, tick):
    held, fresh, known, change = samples
    return meet(me, tell(you, tick{", -tree" * protocol.uses_tree}), {", ".join(protocol.inputs)})
"""


def tuple_function(name: str, parameters: str, form: str, count: int) -> str:
    """Return the text of a function that returns a tuple, with c = 0, 1, ... put into a form.

    >>> print(tuple_function("add", "a, b", "a[{c}] + b[{c}]", 2).strip())
    def add(a, b):
        return (a[0] + b[0], a[1] + b[1],)
    """
    values = ", ".join(form.format(c=c) for c in range(count))
    return f"\n\ndef {name}({parameters}):\n    return ({values},)\n"
