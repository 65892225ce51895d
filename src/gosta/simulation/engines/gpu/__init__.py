"""The engine on a GPU: the exchanges of the compiled engine by numba-cuda, with the same numbers.

A kernel that calls exp, log or a power may differ in the last digit, since a GPU computes these in
its own way. `exchange_loop.py` and `edge_loop.py` are templates of the loops; they are compiled
from their text, not imported. Nothing of numba-cuda is imported before a simulation asks for this
engine.
"""

from __future__ import annotations

from typing import Any

from gosta.errors import UnsupportedError
from gosta.estimation.setting import Setting
from gosta.protocols import CollectingProtocol
from gosta.simulation.engines.engine import Engine


def check_available() -> None:
    """Raise an error that says what is missing unless there is a GPU that can be used."""
    from gosta.simulation.engines.gpu import device

    device.require_gpu()


def make(setting: Setting, seed: int) -> Engine[Any]:
    """Return the engine for a setting."""
    check_available()
    from gosta.simulation.engines.gpu import device
    from gosta.simulation.engines.gpu.engine import GpuEngine, choose_layout

    estimand, placement, protocol = setting.estimand, setting.placement, setting.protocol
    for is_asked, what in (
        (isinstance(protocol, CollectingProtocol), f"protocol {protocol.name}"),
        (placement.has_tables, "nodes with several rows"),
        (estimand.level is not None, "intervals"),
        (bool(setting.faults), "faults"),
        (setting.changing is not None, "graphs that change"),
        (
            estimand.tracked.local is not None,
            f"{estimand.statistic.name}, which needs the mean of each row",
        ),
    ):
        if is_asked:
            raise UnsupportedError(f"engine 'gpu' does not support {what}; {device.OTHERWISE}")
    return GpuEngine(setting, seed, choose_layout(setting))
