"""The compiled engine: loops over exchanges, specialised and compiled for a protocol and a kernel.

`*_loop.py` are templates of the loops; they are compiled from their text, not imported.
"""

from __future__ import annotations

from typing import Any

from gosta.estimation.setting import Setting
from gosta.protocols import CollectingProtocol
from gosta.simulation.engines.collecting import CollectingEngine
from gosta.simulation.engines.compiled.engine import CompiledEngine
from gosta.simulation.engines.compiled.layouts import (
    CarriedLayout,
    Layout,
    OneRowLayout,
    TableLayout,
)
from gosta.simulation.engines.engine import Engine


def make(setting: Setting, seed: int) -> Engine[Any]:
    """Return the engine for a setting."""
    if isinstance(setting.protocol, CollectingProtocol):
        return CollectingEngine(setting, seed, is_compiled=True)
    return CompiledEngine(setting, seed, choose_layout(setting))


def choose_layout(setting: Setting) -> Layout:
    """Return the layout for a setting: nodes that keep means of each row need that of tables."""
    if setting.placement.has_tables or setting.estimand.tracked.local is not None:
        return TableLayout(setting)
    return CarriedLayout(setting) if setting.gossip.carries_means else OneRowLayout(setting)
