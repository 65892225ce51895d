"""Common part of compiled engines: a loop's template, its constants, and small functions generated for it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.estimation import carried
from gosta.estimation.setting import Setting
from gosta.protocols import Protocol
from gosta.protocols.protocol import MEET_INPUTS
from gosta.runtime import compiler
from gosta.runtime.arrays import Floats
from gosta.schedule import Schedule
from gosta.simulation.engines.engine import ArrayEngine, Batch, Snapshot
from gosta.statistics import pairs

EQUAL_SHARES: Floats = np.ones(1)


class LoopEngine(ArrayEngine):
    """Engine that runs a template of this folder.

    A node is a row of the array "nodes": its states, number of exchanges, mean over other nodes' rows, its weights.
    """

    def __init__(self, setting: Setting, seed: int, weights: int) -> None:
        super().__init__(setting, seed)
        self.protocol, self.options = setting.rule, tuple(setting.estimand.kernel_options.values())
        self.exchanges = setting.state_count * self.protocol.fields  # column of the number of exchanges
        self.others = self.exchanges + 1
        self.weight = self.others + (setting.estimand.width if self.protocol.needs_known else 0)
        self.size = self.weight + weights
        self.parents = setting.parents if self.protocol.uses_tree else np.zeros(1, dtype=np.int64)

    @abstractmethod
    def run_loop(self, arrays: Snapshot, edges: NDArray[np.int32], shares: Floats, first: int) -> None:
        """Call the loop for the edges drawn from iteration `first` on, over the arrays of a run."""

    def compile_loop(self, template: str, constants: Mapping[str, Any], adapters: str, example: Snapshot) -> None:
        """Compile a template with its constants and adapters, for arrays of the same types as an example."""
        setting, protocol, statistic = self.setting, self.protocol, self.setting.estimand.tracked
        constants = {
            "VALUES": setting.estimand.width,
            "STATES": setting.state_count,
            "VISITORS": protocol.visitors,
            "EXCHANGES": self.exchanges,
            "OTHERS": self.others,
            "WEIGHT": self.weight,
            "ZEROS": (0.0,) * setting.estimand.width,
            "NO_SAMPLE": (0.0,) * setting.state_count,
            "NO_MEANS": (0.0,) * setting.mean_count,
            **{f"NEEDS_{name.upper()}": name in protocol.inputs for name in MEET_INPUTS},
            **constants,
        }
        functions: dict[str, Any] = {"kernel": statistic.kernel, "local": statistic.local}
        functions |= {"State": protocol.state, "meet": protocol.meet, "tell": protocol.tell}
        functions |= {"weight_of": carried.weight_of, "rate_of": carried.rate_of} if protocol.carries_means else {}
        text = Path(__file__).with_name(template).read_text(encoding="utf-8")
        text += "".join(f"{name} = {value!r}\n" for name, value in constants.items())
        text += pairs.values_text(setting.estimand.example) + _rule(protocol) + adapters
        known = "own_share * load(own_mean, {c}) + (1.0 - own_share) * load(cells, OTHERS + {c})"
        text += tuple_function("known_values", "own_mean, cells, own_share", known, setting.estimand.width)
        text += tuple_function("add_values", "a, b", "a[{c}] + b[{c}]", setting.estimand.width)
        text += f"\n\ndef with_count(a):\n    return {'(*a, 1.0)' if protocol.counts_rows else 'a'}\n"

        def trial(module: ModuleType) -> None:
            self.loop = module.advance
            self.run_loop(example, np.zeros((0, 2), dtype=np.int32), EQUAL_SHARES, 0)

        try:
            compiler.specialise(text, functions, trial)
        except Exception as error:  # numba raises several kinds
            reason = pairs.compiler_reason(str(error))
            raise InputError(f"protocol {protocol.name} cannot be compiled for {statistic.name}: {reason}") from error

    def advance_run(self, batch: Batch[Snapshot], position: int, schedule: Schedule, first: int, last: int) -> None:
        drawn = first * self.protocol.draws, last * self.protocol.draws
        shares = schedule.edge_shares(*drawn) if "edge_share" in self.protocol.inputs else EQUAL_SHARES
        arrays = {name: array[position] for name, array in batch.state.items()}
        self.run_loop(arrays, schedule.edges(*drawn), shares, first)

    def estimates(self, batch: Batch[Snapshot]) -> Floats:
        found = self._numbers(batch)
        return carried.means_of(found) if self.protocol.counts_rows else found

    def counts(self, batch: Batch[Snapshot]) -> Floats | None:
        return self._numbers(batch)[..., -1] if self.protocol.uses_tree else None

    def _numbers(self, batch: Batch[Snapshot]) -> Floats:
        """Return what is read from each state: runs × nodes × states."""
        fields, columns = self.protocol.fields, np.moveaxis(batch.state["nodes"], -1, 0)
        states = [self.protocol.state(*columns[k : k + fields]) for k in range(0, self.exchanges, fields)]
        return np.stack([self.protocol.read(state, float(batch.iteration)) for state in states], axis=-1)


def _rule(protocol: Protocol) -> str:
    """Return the text of functions that load a state, store it, and apply the protocol's rule."""
    fields = range(protocol.fields)
    loaded = ", ".join(f"load(cells, c * {len(fields)} + {f})" for f in fields)
    stored = "\n    ".join(f"store(cells, c * {len(fields)} + {f}, 1.0 * state[{f}])" for f in fields)
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
