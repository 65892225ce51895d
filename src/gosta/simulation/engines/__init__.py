"""Engines: what carries out the exchanges of a simulation. All of them give the same numbers."""

from __future__ import annotations

from gosta.errors import unknown
from gosta.simulation.engines import reference
from gosta.simulation.engines.compiled import engine as compiled
from gosta.simulation.engines.engine import Batch, Engine, EngineFactory, Readings, read
from gosta.simulation.engines.engine import failures_of as failures_of
from gosta.simulation.engines.gpu import engine as gpu

__all__ = ["ENGINES", "Batch", "Engine", "Readings", "find", "read"]

ENGINES: dict[str, EngineFactory] = {
    "compiled": compiled.make,
    "gpu": gpu.make,
    "reference": reference.make,
}


def find(name: str) -> EngineFactory:
    """Return the function that makes an engine from a setting and a seed, by the engine's name.

    Parameters
    ----------
    name
        "compiled", "gpu" or "reference".

    Returns
    -------
    EngineFactory
        A function of a setting and a seed.

    Examples
    --------
    >>> find("compiled") is ENGINES["compiled"]
    True
    """
    if name not in ENGINES:
        raise unknown("engine", str(name), ENGINES)
    return ENGINES[name]
