"""Pairwise statistics of data that nobody may collect in one place.

Names are imported on first use, so that ``import gosta`` and the command line start at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gosta import datasets as datasets
    from gosta import graphs as graphs
    from gosta import statistics as statistics
    from gosta import theory as theory
    from gosta.errors import InputError as InputError
    from gosta.simulation.simulate import resume as resume
    from gosta.simulation.simulate import simulate as simulate
    from gosta.simulation.trace import Trace as Trace
    from gosta.statistics.definition import statistic as statistic
    from gosta.statistics.exact import Estimate as Estimate
    from gosta.statistics.exact import exact as exact

_HOME = {
    "Estimate": "gosta.statistics.exact",
    "InputError": "gosta.errors",
    "Trace": "gosta.simulation.trace",
    "datasets": "",
    "exact": "gosta.statistics.exact",
    "graphs": "",
    "resume": "gosta.simulation.simulate",
    "simulate": "gosta.simulation.simulate",
    "statistic": "gosta.statistics.definition",
    "statistics": "",
    "theory": "",
}
__all__ = [
    "Estimate",
    "InputError",
    "Trace",
    "datasets",
    "exact",
    "graphs",
    "resume",
    "simulate",
    "statistic",
    "statistics",
    "theory",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("gosta")
    if name not in _HOME:
        raise AttributeError(f"module 'gosta' has no attribute {name!r}")
    home = _HOME[name]
    value = getattr(importlib.import_module(home), name) if home else importlib.import_module(f"gosta.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
