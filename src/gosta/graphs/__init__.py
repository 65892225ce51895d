"""Graphs by name, from files, or from objects in memory; all input is validated here.

>>> import gosta.graphs
>>> gosta.graphs.torus(39, 41)
Graph('torus 39 x 41', 1599 nodes, 3198 edges)
>>> gosta.graphs.make("hypercube", 1024)
Graph('hypercube', 1024 nodes, 5120 edges)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gosta.errors import InputError, shorten, unknown
from gosta.graphs.changing import FORM, REPEAT, ChangingGraph, parse_changing, require_one
from gosta.graphs.families import (
    complete,
    cycle,
    dimension,
    grid,
    hypercube,
    path,
    sides,
    star,
    torus,
    two_cliques,
)
from gosta.graphs.graph import Graph, SizeError
from gosta.graphs.pictures import positions
from gosta.graphs.random_families import (
    barabasi_albert,
    erdos_renyi,
    geometric,
    random_regular,
    watts_strogatz,
)
from gosta.graphs.read import SUFFIXES, from_edges, from_networkx, from_object, from_scipy, read

__all__ = [
    "GRAPHS",
    "Family",
    "Graph",
    "barabasi_albert",
    "complete",
    "cycle",
    "erdos_renyi",
    "from_edges",
    "from_networkx",
    "from_scipy",
    "geometric",
    "grid",
    "hypercube",
    "load",
    "make",
    "path",
    "positions",
    "random_regular",
    "read",
    "star",
    "torus",
    "two_cliques",
    "watts_strogatz",
]


class Family(NamedTuple):
    """A family of graphs: one line that describes it, and its generator from a number of nodes.

    Examples
    --------
    >>> GRAPHS["torus"].is_random
    False
    >>> GRAPHS["torus"].make(16)
    Graph('torus 4 x 4', 16 nodes, 32 edges)
    """

    summary: str  # one line that describes it
    make: Callable[..., Graph]  # from a number of nodes, and a seed if it is random
    is_random: bool = False  # whether `make` has a parameter `seed`

    @property
    def parameters(self) -> dict[str, type[int] | type[float]]:
        """Types of the parameters besides the number of nodes and the seed, by name."""
        known = inspect.signature(self.make).parameters.values()
        return {
            p.name: int if p.annotation == "int" else float
            for p in known
            if p.name not in ("n", "seed")
        }


GRAPHS = {
    "complete": Family("All nodes are neighbours; not stored.", complete),
    "torus": Family(
        "A grid with periodic borders (the paper's), four neighbours.",
        lambda n: torus(*sides("torus", n, 3)),
    ),
    "grid": Family(
        "A grid with open borders: two to four neighbours.", lambda n: grid(*sides("grid", n, 2))
    ),
    "cycle": Family("A ring.", cycle),
    "path": Family("A line.", path),
    "star": Family("One node in the middle, the only neighbour of all others.", star),
    "hypercube": Family(
        "The corners of a cube of log2(n) dimensions.", lambda n: hypercube(dimension(n))
    ),
    "watts-strogatz": Family(
        "A ring of four neighbours, 30 % of the edges rewired.", watts_strogatz, is_random=True
    ),
    "erdos-renyi": Family(
        "Pairs joined at random, 2 ln(n) neighbours on average.", erdos_renyi, is_random=True
    ),
    "random-regular": Family(
        "Four neighbours each, drawn at random.", random_regular, is_random=True
    ),
    "barabasi-albert": Family(
        "New nodes join two others, preferably of high degree.", barabasi_albert, is_random=True
    ),
    "geometric": Family("Points on a square, joined when near.", geometric, is_random=True),
    "two-cliques": Family("Two complete halves joined by one edge: a bottleneck.", two_cliques),
}


LEAST_WATTS_STROGATZ = 6  # nodes; a ring of fewer with four neighbours each is about complete


def make(name: str, n: int, seed: int = 0) -> Graph:
    """Generate a graph of a family with n nodes.

    Parameters
    ----------
    name
        A name from `gosta.graphs.GRAPHS`, with parameters if they are not to be the default ones:
        "watts-strogatz:k=8,p=0.1".
    n
        Number of nodes.
    seed
        Seed of the random families; others do not depend on it.

    Returns
    -------
    Graph
        The graph; its name has the parameters that were given.

    Examples
    --------
    >>> make("torus", 1260)
    Graph('torus 35 x 36', 1260 nodes, 2520 edges)
    >>> make("watts-strogatz:k=8,p=0.1", 100)
    Graph('watts-strogatz:k=8,p=0.1', 100 nodes, 400 edges)
    """
    if not is_family(name):
        raise unknown("graph", name.partition(":")[0], GRAPHS)
    chosen, parameters = parse_family(name)
    family = GRAPHS[chosen]
    graph = family.make(n, **parameters, **({"seed": seed} if family.is_random else {}))
    return replace(graph, name=name) if parameters else graph


def is_family(source: object) -> bool:
    """Return whether a text is the name of a family, with right or wrong parameters or without."""
    return isinstance(source, str) and source.partition(":")[0] in GRAPHS


def parse_family(name: str) -> tuple[str, dict[str, float]]:
    """Return the family and the parameters of a name, or raise an error if they are wrong.

    >>> parse_family("watts-strogatz:k=8,p=0.1")
    ('watts-strogatz', {'k': 8, 'p': 0.1})
    """
    family, colon, text = name.partition(":")
    known, parameters = GRAPHS[family].parameters, dict[str, float]()
    for part in text.split(",") if colon else []:
        parameter, _, value = part.partition("=")
        if parameter not in known:
            others = (
                f"the parameters of {family} are {' and '.join(known)}"
                if known
                else f"{family} has none"
            )
            raise InputError(f"graph = {name!r}: unknown parameter {parameter!r}; {others}")
        try:
            parameters[parameter] = known[parameter](value)
        except ValueError:
            kind = "a whole number" if known[parameter] is int else "a number"
            raise InputError(f"graph = {name!r}: {parameter} = {value!r} must be {kind}") from None
    return family, parameters


def load(source: object, n: int | None = None, seed: int = 0) -> Graph:
    """Return a graph by name, from a file, or from an object in memory.

    Parameters
    ----------
    source
        The name of a family, such as "torus" or "watts-strogatz:k=8,p=0.1"; the path of a file of
        edges; a ``Graph``; a networkx graph; a symmetric scipy sparse matrix; or an array of edges,
        m × 2, with weights m × 3. None: "watts-strogatz", "complete" for fewer than 6 nodes.
    n
        Number of nodes: required for a family; any other graph must have that many.
    seed
        For the random families.

    Returns
    -------
    Graph

    Examples
    --------
    >>> load("torus", 1599)
    Graph('torus 39 x 41', 1599 nodes, 3198 edges)
    >>> load([[0, 1], [1, 2]])
    Graph('edges', 3 nodes, 2 edges)
    """
    require_one(source)
    if source is None and n is not None:
        source = "complete" if n < LEAST_WATTS_STROGATZ else "watts-strogatz"
    if isinstance(source, str) and is_family(source):
        if n is None:
            raise InputError(f"graph {source!r} needs a number of nodes; give n")
        return make(source, n, seed)
    if isinstance(source, str) and not source.endswith(SUFFIXES) and not Path(source).is_file():
        raise unknown("graph or file", source.partition(":")[0], GRAPHS)
    graph = read(source) if isinstance(source, str | Path) else from_object(source)
    if n is not None and graph.n != n:
        names = f" ({shorten(graph.labels)})" if graph.labels else ""
        raise SizeError.of(
            f"{graph.name} has {graph.n} nodes{names} where {n} are needed", [graph.n]
        )
    return graph


def load_changing(source: Any, n: int, seed: int = 0) -> ChangingGraph:
    """Return graphs that change, from a text or from pairs of a graph and an iteration.

    >>> load_changing("cycle,complete@20000", n=9).starts
    (0, 20000)
    """
    pairs: list[tuple[Any, int]] = list(
        parse_changing(source) if isinstance(source, str) else source
    )
    period = None
    if isinstance(pairs[-1][0], str) and pairs[-1][0] == REPEAT:
        period = pairs.pop()[1]
    starts = [start for _, start in pairs]
    ends = starts if period is None else [*starts, period]
    if (
        any(not isinstance(end, int) for end in ends)
        or starts[:1] != [0]
        or ends != sorted(set(ends))
    ):
        shown = ", ".join(map(str, ends))
        raise InputError(
            f"graph: graphs change at {shown}; give iterations that begin with 0 and increase, "
            f"{FORM}"
        )
    return ChangingGraph(
        tuple(starts), tuple(load(graph, n, seed).check() for graph, _ in pairs), period
    )
