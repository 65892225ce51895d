"""The generated parts of compiled loops: constants, and small functions that fit a protocol and a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gosta.estimation.setting import Setting
from gosta.protocols import Protocol
from gosta.runtime import compiler
from gosta.runtime.arrays import Floats
from gosta.statistics import pairs

FUTURE = "from __future__ import annotations\n"


class Columns:
    """Columns of a node in the array of nodes: states, number of exchanges, mean over other nodes' rows, its weight."""

    def __init__(self, protocol: Protocol, means: int, values: int, weights: int) -> None:
        self.protocol, self.states = protocol, means * protocol.fields
        self.exchanges = self.states
        self.others = self.states + 1
        self.weight = self.others + (values if protocol.needs_known else 0)
        self.size = self.weight + weights

    def estimates(self, nodes: Floats, tick: int) -> Floats:
        """Return the estimates of all nodes: ... × nodes × means."""
        fields, columns = self.protocol.fields, np.moveaxis(nodes, -1, 0)
        states = [self.protocol.state(*columns[k : k + fields]) for k in range(0, self.states, fields)]
        return np.stack([self.protocol.read(state, float(tick)) for state in states], axis=-1)


def specialise(
    loop: str, setting: Setting, constants: Mapping[str, Any], adapters: str, trial: Callable[[ModuleType], object]
) -> ModuleType:
    """Compile a template of this folder with its constants and adapters."""
    protocol, statistic = setting.protocol, setting.estimand.tracked
    assert isinstance(protocol, Protocol)
    functions: dict[str, Any] = {"kernel": statistic.kernel, "meet": protocol.meet, "tell": protocol.tell}
    functions["State"] = protocol.state
    if statistic.local is not None:
        functions["local"] = statistic.local
    docstring, _, body = Path(__file__).with_name(loop).read_text(encoding="utf-8").partition(FUTURE)
    header = "".join(f"{name} = {value!r}\n" for name, value in constants.items())
    text = docstring + FUTURE + body + header + pairs.values_text(setting.estimand.example) + _rule(protocol) + adapters
    return compiler.specialise(text, functions, trial)


def protocol_constants(setting: Setting) -> dict[str, Any]:
    """Return the constants that all templates share."""
    protocol, width = setting.protocol, setting.estimand.width
    assert isinstance(protocol, Protocol)
    return {
        "VALUES": width,
        "MEANS": setting.mean_count,
        "NEEDS_HELD": protocol.needs_held,
        "NEEDS_FRESH": protocol.needs_fresh,
        "NEEDS_KNOWN": protocol.needs_known,
        "NEEDS_EDGE_SHARE": protocol.needs_edge_share,
        "ZEROS": (0.0,) * width,
        "NO_SAMPLE": (0.0,) * setting.mean_count,
    }


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


def rule(me, you, samples, exchanges, fewer_exchanges, weight, edge_share, row_share, tick):
    held, fresh, known = samples
    return meet(me, tell(you, tick), {", ".join(protocol.inputs)})
"""


def tuple_of(form: str, count: int) -> str:
    """Return the text of a tuple, with c = 0, 1, ... put into a form.

    >>> tuple_of("h[{c}]", 2)
    '(h[0], h[1],)'
    """
    return "(" + ", ".join(form.format(c=c) for c in range(count)) + ",)"
