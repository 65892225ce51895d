"""The oracle for tables at nodes: sites in plain Python, one meeting at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from gosta.datasets.data import Floats
from gosta.problem import Problem
from gosta.protocols import Protocol
from gosta.simulation.reference import ALIKE, Arrays
from gosta.site import Site, Table


class Sites:
    """Nodes as they are on a network, called by their numbers; whether they know how many rows there are in all."""

    def __init__(self, problem: Problem, protocol: Protocol, counted: bool = True) -> None:
        self.problem, self.protocol = problem, protocol
        self.population = problem.n if counted else None
        self.tables = [Table(own) for own in problem.at_nodes]

    def start(self) -> Arrays:
        """All nodes at the beginning: every visitor is at home."""
        first = self.problem.first_states(self.protocol)
        made = enumerate(zip(self.tables, first, strict=True))
        return {"sites": [Site(str(k), self.protocol, table, state, self.population) for k, (table, state) in made]}

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
