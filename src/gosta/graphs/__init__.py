"""Graphs by name, from files, or from objects in memory; all input is validated here.

>>> import gosta.graphs
>>> gosta.graphs.torus(39, 41)
Graph('torus 39 x 41', 1599 nodes, 3198 edges)
>>> gosta.graphs.make("hypercube", 1024)
Graph('hypercube', 1024 nodes, 5120 edges)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

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
    "random_regular",
    "read",
    "star",
    "torus",
    "two_cliques",
    "watts_strogatz",
]


class Family(NamedTuple):
    """A family of graphs: one line that describes it, and its generator from a number of nodes and a seed."""

    summary: str
    make: Callable[[int, int], Graph]


def _unseeded(family: Callable[[int], Graph]) -> Callable[[int, int], Graph]:
    return lambda n, _seed: family(n)


def _seeded(family: Callable[..., Graph]) -> Callable[[int, int], Graph]:
    return lambda n, seed: family(n, seed=seed)


GRAPHS = {
    "complete": Family("All nodes are neighbours; not stored.", _unseeded(complete)),
    "torus": Family("A grid with periodic borders (the paper's), four neighbours.", _unseeded(families.square_torus)),
    "grid": Family("A grid with open borders: two to four neighbours.", _unseeded(families.square_grid)),
    "cycle": Family("A ring.", _unseeded(cycle)),
    "path": Family("A line.", _unseeded(path)),
    "star": Family("One node in the middle, the only neighbour of all others.", _unseeded(star)),
    "hypercube": Family("The corners of a cube of log2(n) dimensions.", _unseeded(families.hypercube_of_size)),
    "watts-strogatz": Family("A ring of four neighbours, 30 % of the edges rewired.", _seeded(watts_strogatz)),
    "erdos-renyi": Family("Pairs joined at random, 2 ln(n) neighbours on average.", _seeded(erdos_renyi)),
    "random-regular": Family("Four neighbours each, drawn at random.", _seeded(random_regular)),
    "barabasi-albert": Family("New nodes join two others, preferably those of high degree.", _seeded(barabasi_albert)),
    "geometric": Family("Points on a square, joined when near.", _seeded(geometric)),
    "two-cliques": Family("Two complete halves joined by one edge: a bottleneck.", _unseeded(two_cliques)),
}


def make(name: str, n: int, seed: int = 0) -> Graph:
    """Generate a graph of a family with n nodes.

    >>> make("torus", 1260)
    Graph('torus 35 x 36', 1260 nodes, 2520 edges)
    """
    if name not in GRAPHS:
        raise unknown("graph", name, GRAPHS)
    return GRAPHS[name].make(n, seed)


def load(source: object, n: int | None = None, seed: int = 0) -> Graph:
    """Return a graph by name, from a file, or from an object in memory.

    Parameters
    ----------
    source
        The name of a family; the path of a file of edges; a ``Graph``; a networkx graph; a symmetric scipy sparse
        matrix; or an array of edges, m × 2, with weights m × 3.
    n
        Number of nodes: required for a family; any other graph must have that many.
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
    return source.endswith(SUFFIXES) or Path(source).is_file()
