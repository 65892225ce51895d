"""Engines: what carries out the exchanges of a simulation. All of them give the same numbers."""

from __future__ import annotations

from gosta.errors import unknown
from gosta.simulation.engines.compiled.engine import make as make_compiled
from gosta.simulation.engines.engine import Batch, Engine, EngineFactory, Readings, read
from gosta.simulation.engines.gpu.engine import make as make_gpu
from gosta.simulation.engines.reference import make as make_reference

__all__ = ["ENGINES", "Batch", "Engine", "Readings", "find", "read"]

ENGINES: dict[str, EngineFactory] = {
    "compiled": make_compiled,
    "gpu": make_gpu,
    "reference": make_reference,
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
