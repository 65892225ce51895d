"""Families of graphs that are not random, generated from their sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from gosta.graphs.edges import (
    Edges,
    cycle_edges,
    grid_edges,
    hypercube_edges,
    path_edges,
    star_edges,
    torus_edges,
    two_cliques_edges,
)
from gosta.graphs.graph import MAX_NODES, Graph, SizeError, check_integer, check_size
from gosta.runtime import machine
from gosta.runtime.arrays import Floats

BYTES_PER_EDGE = 100  # at the peak, the test for connectedness included


def complete(n: int) -> Graph:
    """Generate the complete graph, in which all nodes are neighbours; no edge is stored.

    Parameters
    ----------
    n
        Number of nodes.

    Returns
    -------
    Graph

    Examples
    --------
    >>> complete(1_000_000)
    Graph('complete', 1000000 nodes, 499999500000 edges)
    """
    n = check_size("complete", n, 2)
    return Graph("complete", n, None, spectrum=partial(_complete_spectrum, n))


def torus(rows: int, columns: int) -> Graph:
    """Generate a grid with periodic borders: every node has four neighbours.

    Parameters
    ----------
    rows, columns
        Sides of the rectangle, 3 or more each.

    Returns
    -------
    Graph

    Examples
    --------
    >>> torus(39, 41)
    Graph('torus 39 x 41', 1599 nodes, 3198 edges)
    """
    return _rectangle("torus", rows, columns, 3, torus_edges, _ring_spectrum)


def grid(rows: int, columns: int) -> Graph:
    """Generate a grid with open borders: nodes have two to four neighbours.

    Parameters
    ----------
    rows, columns
        Sides of the rectangle, 1 or more each.

    Returns
    -------
    Graph

    Examples
    --------
    >>> grid(3, 4)
    Graph('grid 3 x 4', 12 nodes, 17 edges)
    """
    return _rectangle("grid", rows, columns, 1, grid_edges, _line_spectrum)


def cycle(n: int) -> Graph:
    """Generate a ring.

    Parameters
    ----------
    n
        Number of nodes, 3 or more.

    Returns
    -------
    Graph

    Examples
    --------
    >>> cycle(5).edges.tolist()
    [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]
    """
    n = _check_room("cycle", n, 3)
    return Graph("cycle", n, cycle_edges(n), spectrum=partial(_ring_spectrum, n))


def path(n: int) -> Graph:
    """Generate a line.

    Parameters
    ----------
    n
        Number of nodes.

    Returns
    -------
    Graph

    Examples
    --------
    >>> path(4).edges.tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    n = _check_room("path", n, 2)
    return Graph("path", n, path_edges(n), spectrum=partial(_line_spectrum, n))


def star(n: int) -> Graph:
    """Generate a star: node 0 is the only neighbour of the n − 1 others.

    Parameters
    ----------
    n
        Number of nodes.

    Returns
    -------
    Graph

    Examples
    --------
    >>> star(4).edges.tolist()
    [[0, 1], [0, 2], [0, 3]]
    """
    n = _check_room("star", n, 2)
    return Graph("star", n, star_edges(n), spectrum=partial(_star_spectrum, n))


def hypercube(dimension: int) -> Graph:
    """Generate a hypercube of 2 to the power of the dimension nodes.

    Neighbours differ in one binary digit.

    Parameters
    ----------
    dimension
        Number of binary digits, and of neighbours of a node.

    Returns
    -------
    Graph

    Examples
    --------
    >>> hypercube(4)
    Graph('hypercube', 16 nodes, 32 edges)
    """
    dimension = check_integer("hypercube", "dimension", dimension, 1)
    n = _check_room("hypercube", 1 << min(dimension, 40), 2, degree=dimension)
    return Graph("hypercube", n, hypercube_edges(n), spectrum=partial(_cube_spectrum, dimension))


def two_cliques(n: int) -> Graph:
    """Generate two complete halves joined by one edge: a bottleneck.

    Parameters
    ----------
    n
        Number of nodes, even.

    Returns
    -------
    Graph

    Examples
    --------
    >>> two_cliques(100)
    Graph('two-cliques', 100 nodes, 2451 edges)
    """
    n = check_size("two-cliques", n, 2)
    if n % 2:
        raise size_error(
            "two-cliques", n, "cannot form two equal halves", lambda size: size % 2 == 0
        )
    edges = n * (n - 2) // 4
    machine.require_memory(BYTES_PER_EDGE * edges, f"two-cliques on {n} nodes")
    return Graph("two-cliques", n, two_cliques_edges(n))


def dimension(n: int) -> int:
    """Return the dimension of the hypercube of n nodes."""
    n = check_size("hypercube", n, 2)
    if n & (n - 1):
        raise size_error(
            "hypercube", n, "are not a power of two", lambda size: size & (size - 1) == 0
        )
    return n.bit_length() - 1


def sides(name: str, n: int, least: int) -> tuple[int, int]:
    """Return the sides of the rectangle of n nodes that is most nearly square."""
    n = check_size(name, n, 2)
    rectangle = _square(n, least)
    if rectangle is None:
        why = f"do not fill a rectangle with both sides above {least - 1}"
        raise size_error(name, n, why, lambda size: _is_wide(_square(size, least)))
    return rectangle


def size_error(name: str, n: int, why: str, fits: Callable[[int], bool]) -> SizeError:
    """Return the error for a size that a family does not have, with the nearest sizes."""
    below = next((size for size in range(n - 1, 1, -1) if fits(size)), None)
    above = next(size for size in range(n + 1, 2 * MAX_NODES) if fits(size))
    return SizeError.of(
        f"{name}: {n} nodes {why}", [size for size in (below, above) if size is not None]
    )


def _square(n: int, least: int) -> tuple[int, int] | None:
    """Return the two factors of n that are nearest to each other."""
    return next(
        ((side, n // side) for side in range(math.isqrt(n), least - 1, -1) if n % side == 0), None
    )


def _is_wide(rectangle: tuple[int, int] | None) -> bool:
    """Return whether there is a rectangle that is no thin strip, on which gossip is slow."""
    return rectangle is not None and rectangle[1] <= 2 * rectangle[0]


def _check_room(name: str, n: int, least: int, degree: int = 2) -> int:
    """Return a number of nodes if it is one, and if there is memory for the edges."""
    n = check_size(name, n, least)
    machine.require_memory(40 * n * degree, f"{name} on {n} nodes")
    return n


def _rectangle(
    family: str,
    rows: int,
    columns: int,
    least: int,
    edges: Callable[[int, int], Edges],
    spectrum: Callable[[int], Floats],
) -> Graph:
    """Return the product of two rings or lines, whose eigenvalues are the sums of theirs."""
    rows = check_integer(family, "rows", rows, least)
    columns = check_integer(family, "columns", columns, least)
    n = _check_room(family, rows * columns, 2, degree=4)
    rates = partial(_product_spectrum, spectrum, rows, columns)
    return Graph(f"{family} {rows} x {columns}", n, edges(rows, columns), spectrum=rates)


# Spectra are functions of the module with their sizes filled in, not closures, so that graphs can
# be pickled.


def _complete_spectrum(n: int) -> Floats:
    return np.append(0.0, np.full(n - 1, float(n)))


def _star_spectrum(n: int) -> Floats:
    return np.concatenate([[0.0], np.ones(n - 2), [float(n)]])


def _cube_spectrum(dimension: int) -> Floats:
    multiplicity = [math.comb(dimension, k) for k in range(dimension + 1)]
    return np.repeat(2.0 * np.arange(dimension + 1), multiplicity)


def _product_spectrum(spectrum: Callable[[int], Floats], rows: int, columns: int) -> Floats:
    return np.asarray(np.add.outer(spectrum(rows), spectrum(columns)).ravel())


def _ring_spectrum(n: int) -> Floats:
    """Return the eigenvalues of a cycle, 2 − 2 cos(2πk/n), accurate for the small ones, too."""
    return 4 * np.sin(np.pi * np.arange(n) / n) ** 2


def _line_spectrum(n: int) -> Floats:
    """Return the Laplacian eigenvalues of a path, 2 − 2 cos(πk/n)."""
    return 4 * np.sin(np.pi * np.arange(n) / (2 * n)) ** 2
