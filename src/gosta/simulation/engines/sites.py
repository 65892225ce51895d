"""The oracle for tables at nodes: sites in plain Python, one meeting at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gosta.estimation.exchange import Site, Table
from gosta.estimation.problem import Problem
from gosta.protocols import Protocol
from gosta.runtime.arrays import Floats
from gosta.simulation.engines.reference import ALIKE, Arrays


class Sites:
    """Nodes as they are on a network. Without names of their own they know how many rows there are in all."""

    def __init__(self, problem: Problem, protocol: Protocol, names: Sequence[str] | None = None) -> None:
        self.problem, self.protocol = problem, protocol
        self.names = [str(k) for k in range(problem.nodes)] if names is None else names
        self.population = problem.n if names is None else None
        self.tables = [Table(own) for own in problem.at_nodes]

    def start(self) -> Arrays:
        """All nodes at the beginning: every visitor is at home."""
        first = self.problem.first_states(self.protocol)
        made = zip(self.names, self.tables, first, strict=True)
        return {"sites": [Site(name, self.protocol, table, state, self.population) for name, table, state in made]}

    def advance(self, arrays: Arrays, edges: Any, start: int, paces: Floats = ALIKE) -> None:
        """Let the pairs meet, from tick start + 1 on."""
        for t, ends in enumerate(edges.tolist()):
            now, pace = float(start + t + 1), float(paces[min(t, len(paces) - 1)])
            pair = [arrays["sites"][k] for k in ends]
            sides = [site.side(pace, now) for site in pair]
            for site, theirs in zip(pair, reversed(sides), strict=True):
                site.meet(theirs, pace, now)

    def means(self, arrays: Arrays, now: int) -> Floats:
        """Each node's estimates of the means."""
        return np.array([site.estimates(float(now)) for site in arrays["sites"]])
