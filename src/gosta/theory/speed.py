"""How fast gossip is on a network, with the default protocol and a typical kernel."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gosta.graphs.graph import Graph
from gosta.protocols import DEFAULT
from gosta.theory.bottleneck import bottleneck
from gosta.theory.prediction import Prediction, predict
from gosta.theory.spectrum import mixing_time, spectral_gap
from gosta.views import numbers

ACCURACIES = (0.1, 0.01, 0.001)  # mean relative errors that exchanges are predicted for
MAX_BOTTLENECK_NODES = 2_000_000  # beyond, finding the bottleneck takes many minutes


class Speed(NamedTuple):
    """How fast gossip is on a graph, with the default protocol and a typical kernel."""

    spectral_gap: float
    mixing_time: float  # exchanges until a visitor can be anywhere; infinite if it never can
    predictions: dict[float, Prediction]  # by accuracy
    bottleneck: str | None  # in words; None if the graph is too large to find it

    def to_dict(self) -> dict[str, Any]:
        """Return values that JSON can store; what is infinite is None."""
        exchanges = {str(at): _whole(each.exchanges) for at, each in self.predictions.items()}
        per_node = {str(at): _whole(each.per_node) for at, each in self.predictions.items()}
        return {
            "spectral_gap": self.spectral_gap,
            "mixing_time": self.mixing_time if math.isfinite(self.mixing_time) else None,
            "protocol": DEFAULT,
            "exchanges": exchanges,
            "exchanges_per_node": per_node,
            "bottleneck": self.bottleneck,
        }

    def rows(self) -> dict[str, str]:
        """Return what is known in words, by a name for each."""
        gap, mixing = self.spectral_gap, self.mixing_time
        time = numbers.count(1 / gap if gap else math.inf, "exchange")
        mixes = f"{numbers.count(mixing, 'exchange')} until a visitor can be anywhere"
        rows = {
            "spectral gap": f"{gap:.3g}: differences shrink by e in {time}",
            "mixing time": mixes if math.isfinite(mixing) else "visitors never mix",
        }
        for accuracy, each in self.predictions.items():
            total = numbers.count(_rounded(each.exchanges))
            per_node = numbers.count(_rounded(each.per_node))
            rows[f"to {numbers.percent(accuracy)}"] = f"{total} exchanges, {per_node} a node"
        too_large = f"not computed above {MAX_BOTTLENECK_NODES:,} nodes; use a smaller graph"
        return rows | {"bottleneck": self.bottleneck or too_large}


def _whole(value: float) -> int | None:
    return round(value) if math.isfinite(value) else None


def _rounded(value: float) -> float:
    return _whole(value) or math.inf


def speed(graph: Graph) -> Speed:
    """Compute how fast gossip is on a graph."""
    return Speed(
        spectral_gap(graph),
        mixing_time(graph),
        {accuracy: predict(graph, accuracy=accuracy) for accuracy in ACCURACIES},
        bottleneck(graph).description if graph.n <= MAX_BOTTLENECK_NODES else None,
    )
