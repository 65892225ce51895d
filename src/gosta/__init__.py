"""Pairwise statistics of data that cannot be collected in one place, computed by gossip.

Names are imported on first use, so that ``import gosta`` and the command line start at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gosta import datasets as datasets
    from gosta import graphs as graphs
    from gosta import models as models
    from gosta import net as net
    from gosta import private as private
    from gosta import protocols as protocols
    from gosta import statistics as statistics
    from gosta import theory as theory
    from gosta.analysis.exact import exact as exact
    from gosta.datasets.data import Data as Data
    from gosta.errors import ClusterError as ClusterError
    from gosta.errors import DataError as DataError
    from gosta.errors import GostaError as GostaError
    from gosta.errors import InputError as InputError
    from gosta.errors import MissingExtraError as MissingExtraError
    from gosta.errors import NetworkError as NetworkError
    from gosta.errors import NumericalError as NumericalError
    from gosta.errors import UnsupportedError as UnsupportedError
    from gosta.experiments.sweep import SweepResult as SweepResult
    from gosta.experiments.sweep import sweep as sweep
    from gosta.graphs.graph import Graph as Graph
    from gosta.models.fit import Fit as Fit
    from gosta.models.fitting import fit as fit
    from gosta.protocols.protocol import Protocol as Protocol
    from gosta.significance.definition import HypothesisTest as HypothesisTest
    from gosta.significance.test import test as test
    from gosta.simulation import engines as engines
    from gosta.simulation.runner import Interrupted as Interrupted
    from gosta.simulation.simulate import resume as resume
    from gosta.simulation.simulate import simulate as simulate
    from gosta.simulation.trace import Trace as Trace
    from gosta.statistics.definition import Statistic as Statistic
    from gosta.statistics.definition import statistic as statistic
    from gosta.statistics.estimate import Estimate as Estimate

    __version__: str

_ERRORS = (
    "ClusterError DataError GostaError InputError MissingExtraError NetworkError NumericalError "
    "UnsupportedError"
)
_MODULES = [
    "datasets",
    "engines",
    "graphs",
    "models",
    "net",
    "private",
    "protocols",
    "statistics",
    "theory",
]
# The module that defines each other public name.
_HOME = dict.fromkeys(_ERRORS.split(), "errors") | {
    "Data": "datasets.data",
    "Estimate": "statistics.estimate",
    "Fit": "models.fit",
    "Graph": "graphs.graph",
    "HypothesisTest": "significance.definition",
    "Interrupted": "simulation.runner",
    "Protocol": "protocols.protocol",
    "Statistic": "statistics.definition",
    "SweepResult": "experiments.sweep",
    "Trace": "simulation.trace",
    "exact": "analysis.exact",
    "fit": "models.fitting",
    "resume": "simulation.simulate",
    "simulate": "simulation.simulate",
    "statistic": "statistics.definition",
    "sweep": "experiments.sweep",
    "test": "significance.test",
}
__all__ = sorted([*_HOME, *_MODULES])


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("gosta")
    if name not in __all__:
        raise AttributeError(f"module 'gosta' has no attribute {name!r}")
    if name in _HOME:
        value: object = getattr(importlib.import_module(f"gosta.{_HOME[name]}"), name)
    else:
        value = importlib.import_module(
            "gosta.simulation.engines" if name == "engines" else f"gosta.{name}"
        )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
