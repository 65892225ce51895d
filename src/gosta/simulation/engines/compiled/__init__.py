"""The compiled engine: loops over exchanges, specialised and compiled for a protocol and a kernel.

`*_loop.py` are templates of the loops; they are compiled from their text, not imported.
"""

from __future__ import annotations

from typing import Any

from gosta.estimation.setting import Setting
from gosta.protocols import CollectingProtocol
from gosta.simulation.engines.collecting import CollectingEngine
from gosta.simulation.engines.compiled.carried import CarriedEngine
from gosta.simulation.engines.compiled.one_row import OneRowEngine
from gosta.simulation.engines.compiled.tables import TableEngine
from gosta.simulation.engines.engine import Engine


def make(setting: Setting, seed: int) -> Engine[Any]:
    """Return the engine for a setting: nodes that keep means of each row need the engine for tables."""
    if isinstance(setting.protocol, CollectingProtocol):
        return CollectingEngine(setting, seed, is_compiled=True)
    if setting.placement.has_tables or setting.estimand.tracked.local is not None:
        return TableEngine(setting, seed)
    return (
        CarriedEngine(setting, seed)
        if setting.protocol.carries_means
        else OneRowEngine(setting, seed)
    )
