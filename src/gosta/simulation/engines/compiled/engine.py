"""The compiled engine: a loop over exchanges, compiled for a protocol, a kernel and a layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.estimation.setting import Setting
from gosta.graphs.edges import Edges
from gosta.protocols import Protocol
from gosta.protocols.protocol import ALLOWED, MEET_INPUTS
from gosta.runtime import compiler
from gosta.runtime.arrays import Floats, Integers
from gosta.simulation.edges import STREAM_SIZE, EdgeDrawer
from gosta.simulation.engines.compiled.layouts import CACHE_LINE, Layout, tuple_function
from gosta.simulation.engines.engine import (
    NO_STOPS,
    Batch,
    Readings,
    RunThreads,
    Snapshot,
    batch_of_arrays,
    failures_of,
    repeat_arrays,
)
from gosta.statistics import pairs

# Edges drawn by a thread at once: a MiB, which stays in its cache.
DRAWS_AT_ONCE = 1 << 17
# Exchanges between prefetching a node and using it: some 300 ns.
PREFETCH_EXCHANGES = 16


class CompiledEngine:
    """Carries out the exchanges of runs whose nodes have a layout."""

    def __init__(self, setting: Setting, seed: int, layout: Layout) -> None:
        self.setting, self.layout = setting, layout
        self._options = tuple(setting.estimand.kernel_options.values())
        self._threads = RunThreads(setting, self.advance_runs)
        failures = failures_of(setting, seed)
        has_shares = "edge_share" in setting.gossip.inputs
        self._drawer = EdgeDrawer(setting.drawn, seed, has_shares, failures)
        self._example = layout.example()
        text, functions = loop_text(layout, len(self._example))
        try:
            compiler.specialise(text, functions, self._trial, is_unchecked=True)
        except Exception as error:  # numba raises several kinds
            raise compiler_error(setting, error) from error

    def _trial(self, module: ModuleType) -> None:
        """Compile a loop by advancing a run by nothing."""
        self._module = module
        batch = self.restore([0], 0, repeat_arrays(self._example, 1))
        self.advance_runs(batch, np.zeros(1, dtype=np.int64), 0, NO_STOPS, np.zeros((1, 0, 1, 1)))

    def bytes_per_run(self) -> int:
        return sum(array.nbytes for array in self.layout.first_arrays().values())

    def start(self, runs: Sequence[int]) -> Batch[Snapshot]:
        return self.restore(runs, 0, repeat_arrays(self.layout.first_arrays(), len(runs)))

    def snapshot(self, batch: Batch[Snapshot]) -> Snapshot:
        return batch.state

    def restore(
        self, runs: Sequence[int], iteration: int, snapshot: Mapping[str, NDArray[Any]]
    ) -> Batch[Snapshot]:
        batch = batch_of_arrays(runs, iteration, snapshot)
        batch.streams = np.zeros((len(runs), STREAM_SIZE), dtype=np.uint64)
        return batch

    def visitors(self, batch: Batch[Snapshot]) -> Integers:
        return self.layout.visitor_homes(self.snapshot(batch)).astype(np.int64)

    def advance(
        self, batch: Batch[Snapshot], iteration: int, stops: Integers = NO_STOPS
    ) -> Readings:
        return self._threads.advance(batch, iteration, stops)

    def close(self) -> None:
        self._threads.close()

    def advance_runs(
        self,
        batch: Batch[Snapshot],
        positions: Integers,
        iteration: int,
        stops: Integers,
        out: Floats,
    ) -> None:
        """Advance the runs at some positions of a batch, as `RunThreads` asks for it."""
        draws, runs = self.setting.protocol.draws, np.array(batch.runs)
        length = DRAWS_AT_ONCE // draws
        size = DRAWS_AT_ONCE // max(1, (iteration - batch.iteration) * draws)
        for k in range(0, len(positions), max(1, size)):
            chosen = positions[k : k + max(1, size)]
            streams, arrays, read = batch.streams[chosen], tuple(batch.state.values()), 0
            for first in range(batch.iteration, iteration, length) or [iteration]:
                last = min(iteration, first + length)
                edges, shares = self._drawer.draw(
                    streams, runs[chosen], first * draws, last * draws
                )
                here = stops[read : np.searchsorted(stops, last, side="right")]
                self._module.advance_runs(
                    arrays,
                    self.layout.fixed,
                    chosen,
                    edges,
                    shares,
                    first,
                    here,
                    self._options,
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
        self._module.advance(
            state, self.layout.fixed, edges, shares, batch.iteration, self._options
        )


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
    return f"""

def load_state(cells, c):
    return State({loaded})


def store_state(cells, c, state):
    {stored}


def rule(
    me, you, samples, exchanges, fewer_exchanges, weight, edge_share, row_share, rows, tree, tick
):
    held, fresh, known, change = samples
    return meet(me, tell(you, tick{", -tree" * protocol.uses_tree}), {", ".join(protocol.inputs)})
"""
