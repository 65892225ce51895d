"""Graphs by name, from files, or from objects in memory, checked once here.

>>> import gosta.graphs
>>> gosta.graphs.torus(39, 41)
Graph('torus 39 x 41', 1599 nodes, 3198 edges)
>>> gosta.graphs.make("hypercube", 1024)
Graph('hypercube', 1024 nodes, 5120 edges)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from gosta.errors import InputError, unknown
from gosta.graphs import families
from gosta.graphs.families import (
    barabasi_albert,
    complete,
    cycle,
    erdos_renyi,
    geometric,
    grid,
    hypercube,
    path,
    random_regular,
    star,
    torus,
    two_cliques,
    watts_strogatz,
)
from gosta.graphs.graph import Graph
from gosta.graphs.read import ENDINGS, from_edges, from_networkx, from_object, from_scipy, read

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
    "random_regular",
    "read",
    "star",
    "torus",
    "two_cliques",
    "watts_strogatz",
]


class Family(NamedTuple):
    """A kind of graph that has a name: what it is, and how it is made from a number of nodes and a seed."""

    summary: str
    make: Callable[[int, int], Graph]


def _unseeded(family: Callable[[int], Graph]) -> Callable[[int, int], Graph]:
    return lambda n, _seed: family(n)


def _seeded(family: Callable[..., Graph]) -> Callable[[int, int], Graph]:
    return lambda n, seed: family(n, seed=seed)


GRAPHS = {
    "complete": Family("Everybody may meet everybody; not stored.", _unseeded(complete)),
    "torus": Family("A grid with its borders glued, the paper's: four neighbours.", _unseeded(families.torus_of)),
    "grid": Family("A grid with open borders: two to four neighbours.", _unseeded(families.grid_of)),
    "cycle": Family("A ring.", _unseeded(cycle)),
    "path": Family("A line.", _unseeded(path)),
    "star": Family("One in the middle, the others around.", _unseeded(star)),
    "hypercube": Family("The corners of a cube of many dimensions.", _unseeded(families.hypercube_of)),
    "watts-strogatz": Family("A ring of four neighbours, 30 % of the edges led astray.", _seeded(watts_strogatz)),
    "erdos-renyi": Family("Pairs joined by chance, 2 ln(n) neighbours on average.", _seeded(erdos_renyi)),
    "random-regular": Family("Four neighbours each, drawn by chance.", _seeded(random_regular)),
    "barabasi-albert": Family("Newcomers join two nodes, rather the well-known ones.", _seeded(barabasi_albert)),
    "geometric": Family("Points on a square, joined when near.", _seeded(geometric)),
    "two-cliques": Family("Two complete halves joined by one edge: a bottleneck.", _unseeded(two_cliques)),
}


def make(name: str, n: int, seed: int = 0) -> Graph:
    """Make the graph of a family that has n nodes.

    >>> make("torus", 1260)
    Graph('torus 35 x 36', 1260 nodes, 2520 edges)
    """
    if name not in GRAPHS:
        raise unknown("graph", name, GRAPHS)
    return GRAPHS[name].make(n, seed)


def load(source: Any, n: int | None = None, seed: int = 0) -> Graph:
    """Get a graph by name, from a file, or from what is in memory.

    Parameters
    ----------
    source
        The name of a family; the path of a file of edges; a ``Graph``; a networkx graph; a symmetric scipy sparse
        matrix; or an array of edges, m × 2, with weights m × 3.
    n
        Number of nodes: needed for a family; others must have that many.
    seed
        For the random families.

    Examples
    --------
    >>> load("torus", 1599)
    Graph('torus 39 x 41', 1599 nodes, 3198 edges)
    >>> load([[0, 1], [1, 2]])
    Graph('edges', 3 nodes, 2 edges)
    """
    if isinstance(source, str) and source not in GRAPHS and not _is_file(source):
        raise unknown("graph or file", source, GRAPHS)
    if isinstance(source, str) and source in GRAPHS:
        if n is None:
            raise InputError(f"graph {source!r} needs a number of nodes; give n")
        return make(source, n, seed)
    graph = read(source) if isinstance(source, str | Path) else from_object(source)
    if n is not None and graph.n != n:
        raise InputError(f"{graph.name} has {graph.n} nodes where {n} are needed, one for each row")
    return graph


def _is_file(source: str) -> bool:
    return source.endswith(ENDINGS) or Path(source).is_file()
