"""Graphs given by users: files of edges, arrays, networkx graphs, sparse matrices."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gosta.errors import InputError
from gosta.graphs.graph import MAX_NODES, Graph, check_integer
from gosta.runtime import machine
from gosta.runtime.arrays import Floats, Integers
from gosta.runtime.extras import require

SUFFIXES = (".csv", ".tsv", ".txt", ".edges")
# Words in the first line of a file that are not taken for nodes.
HEADINGS = {"source", "target", "from", "to", "src", "dst", "node1", "node2"}


def read(path: str | Path) -> Graph:
    """Read a graph from a text file: one edge per line, optionally with a weight.

    A line has two nodes, separated by comma, semicolon, tab or blanks; a third number is the
    weight, the rate at which the edge fires. '#' begins a comment, and the first line can hold
    headings. Nodes are the numbers 0 to n − 1, or names, which are numbered in the order they first
    occur; with `by`, rows of a site are at the node of its name.

    Parameters
    ----------
    path
        The file: .csv, .tsv, .txt or .edges.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "friends.csv"
    ...     _ = file.write_text("ann,bob")
    ...     read(file).edges.tolist()
    [[0, 1]]
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path} is not a file" if path.exists() else f"no such file: {path}")
    machine.require_memory(20 * path.stat().st_size, f"reading {path}")
    try:
        parsed = _parse(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {path}: it is not text in UTF-8") from error
    number = _node_numbers(parsed, path)
    edges = number[np.frombuffer(parsed.ends, dtype=np.int32)].astype(np.int32).reshape(-1, 2)
    weights = np.frombuffer(parsed.weights) if parsed.weights else None
    has_names = any(_number(label) is None for label in parsed.labels)
    labels = tuple(parsed.labels) if has_names else ()
    graph = Graph(str(path), int(number.max()) + 1, edges, weights, labels=labels)
    return graph.check(lambda k: f"{path}, line {parsed.lines[k]}")


def from_edges(
    edges: ArrayLike, n: int | None = None, weights: ArrayLike | None = None, *, name: str = "edges"
) -> Graph:
    """Return a graph from an array of edges: m × 2 node numbers, each edge once.

    Parameters
    ----------
    edges
        Node numbers, m × 2.
    n
        Number of nodes; by default one more than the largest number in `edges`.
    weights
        Rates at which the edges fire, positive, one for each edge; by default all are equal.
    name
        Name of the graph, for messages.

    Returns
    -------
    Graph

    Examples
    --------
    >>> from_edges([[0, 1], [1, 2], [2, 3]], weights=[1, 1, 5])
    Graph('edges', 4 nodes, 3 edges, weighted)
    """
    ends = _array(edges, name)
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise InputError(f"{name}: an array of shape {ends.shape}; m × 2 node numbers are needed")
    if not len(ends):
        raise InputError(f"{name}: there are no edges")
    if ends.dtype.kind not in "iuf" or (
        ends.dtype.kind == "f" and not (ends == np.floor(ends)).all()
    ):
        raise InputError(f"{name}: node numbers must be whole numbers from 0")
    if ends.min() < 0 or ends.max() > MAX_NODES - 1:
        raise InputError(
            f"{name}: node numbers run from {ends.min():g} to {ends.max():g}; they must be 0 to n "
            "- 1"
        )
    size = int(ends.max()) + 1 if n is None else check_integer(name, "n", n, 2)
    return Graph(
        name, size, ends.astype(np.int32), None if weights is None else _rates(weights, name)
    ).check()


def from_networkx(graph: Any) -> Graph:
    """Return a graph from a networkx graph: nodes are numbered in its own order.

    Nodes that are names keep them as `labels`: with `by`, rows of a site are at the node of its
    name. Where edges carry a ``weight``, it is the rate at which they fire.

    Parameters
    ----------
    graph
        An undirected `networkx.Graph`.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import networkx
    >>> from_networkx(networkx.petersen_graph())
    Graph('Petersen Graph', 10 nodes, 15 edges)
    """
    if graph.is_directed() or graph.is_multigraph():
        kind = "directed" if graph.is_directed() else "a multigraph"
        raise InputError(
            f"the networkx graph is {kind}; networkx.Graph(g) makes an undirected, simple one of it"
        )
    number = {node: k for k, node in enumerate(graph.nodes)}
    triples = list(graph.edges(data="weight"))
    edges = np.array([[number[u], number[v]] for u, v, _ in triples], dtype=np.int32).reshape(-1, 2)
    without = [(u, v) for u, v, weight in triples if weight is None]
    if without and len(without) < len(triples):
        raise InputError(
            f"the networkx graph has edges without a weight, such as {without[0]}; give it to all "
            "or none"
        )
    name = str(graph.name or "networkx graph")
    weights = None if without or not triples else _rates([weight for *_, weight in triples], name)
    has_names = list(number) != list(range(len(number))) and all(
        isinstance(node, str | int | np.integer) for node in number
    )
    made = Graph(
        name, len(number), edges, weights, labels=tuple(map(str, number)) if has_names else ()
    )
    return made.check(lambda k: f"{name}, edge {triples[k][0]!r} - {triples[k][1]!r}")


def from_scipy(matrix: Any) -> Graph:
    """Return a graph from a symmetric sparse matrix, with an edge for each value that is not zero.

    The values are the rates at which the edges fire, unless they are all equal.

    Parameters
    ----------
    matrix
        A symmetric sparse matrix, n × n, with zeros on its diagonal.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import scipy.sparse
    >>> from_scipy(scipy.sparse.csr_array([[0, 1, 0], [1, 0, 2], [0, 2, 0]]))
    Graph('matrix', 3 nodes, 2 edges, weighted)
    """
    sparse = require("scipy.sparse", "sim", "a graph from a sparse matrix")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"the matrix has shape {matrix.shape}; a graph needs as many rows as columns"
        )
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"the matrix holds {matrix.dtype}; edges need real numbers")
    both = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    both.sum_duplicates()
    both.eliminate_zeros()
    if (both != both.T).nnz:
        raise InputError(
            "the matrix is not symmetric; a graph is not directed, so give a[i, j] = a[j, i]"
        )
    loops = np.flatnonzero(both.diagonal())
    if len(loops):
        i = loops[0]
        raise InputError(
            f"the matrix has {both.diagonal()[i]:g} at [{i}, {i}]; leave self-loops out"
        )
    upper = sparse.triu(both, k=1).tocoo()
    equal = not upper.nnz or (upper.data == upper.data[0]).all()
    graph = Graph("matrix", both.shape[0], np.column_stack([upper.row, upper.col]), upper.data)
    # Equal values are not weights, but a negative one is still an error.
    graph.check(lambda k: f"matrix[{upper.row[k]}, {upper.col[k]}]")
    return Graph(graph.name, graph.n, graph.edges) if equal else graph


def from_object(source: object) -> Graph:
    """Return a graph from an object in memory of any kind that is supported."""
    if isinstance(source, Graph):
        return source
    if hasattr(source, "is_multigraph"):
        return from_networkx(source)
    if hasattr(source, "tocsr"):
        return from_scipy(source)
    array = _array(source, "edges")
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        remedy = (
            "give a name, a file, m × 2 or m × 3 edges, a networkx graph or a scipy sparse matrix"
        )
        raise InputError(
            f"graph: {type(source).__name__} of shape {array.shape} is not a graph; {remedy}"
        )
    return from_edges(array[:, :2], weights=array[:, 2] if array.shape[1] == 3 else None)


def _array(values: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        remedy = "give two node numbers per edge, with a weight or without"
        raise InputError(f"{name}: rows of different lengths; {remedy}") from None


def _rates(weights: Any, name: str) -> Floats:
    try:
        return np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name}: the weights are not all numbers") from None


class _Parsed(NamedTuple):
    labels: list[str]  # of nodes, in the order they first occur
    ends: array[int]  # positions in labels of the two ends of each edge
    weights: array[float]
    lines: array[int]  # line number of each edge


def _parse(path: Path) -> _Parsed:
    position: dict[str, int] = {}
    parsed = _Parsed([], array("i"), array("d"), array("q"))
    width = 0
    for line, fields in _rows(path):
        width = width or len(fields)
        if width not in (2, 3):
            raise InputError(
                f"{path}, line {line}: {width} values; an edge is two nodes and perhaps a weight"
            )
        if len(fields) != width or not all(fields):
            raise InputError(
                f"{path}, line {line}: {len([*filter(None, fields)])} values where {width} are "
                "expected"
            )
        parsed.lines.append(line)
        parsed.ends.append(position.setdefault(fields[0], len(position)))
        parsed.ends.append(position.setdefault(fields[1], len(position)))
        if width == 3:
            weight = _number(fields[2])
            if weight is None:
                raise InputError(f"{path}, line {line}: weight {fields[2]!r} is not a number")
            parsed.weights.append(weight)
    if not parsed.lines:
        raise InputError(f"{path} has no edges")
    parsed.labels.extend(position)
    return parsed


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields of each line, without blank lines and headings."""
    with path.open(encoding="utf-8-sig") as file:
        split = ((k, _split(line)) for k, line in enumerate(file, start=1))
        rows = ((k, fields) for k, fields in split if fields)
        first, second = next(rows, None), next(rows, None)
        if first and not _is_heading(first[1], second[1] if second else first[1]):
            yield first
        if second:
            yield second
        yield from rows


def _split(line: str) -> list[str]:
    line = line.partition("#")[0].strip()
    for separator in ";,\t":
        if separator in line:
            return [field.strip() for field in line.split(separator)]
    return line.split()


def _is_heading(first: list[str], second: list[str]) -> bool:
    """Return whether a line holds headings: known ones, or words above numbers."""
    if {field.lower() for field in first[:2]} <= HEADINGS:
        return True
    if len(first) != len(second) or not all(_number(field) is None for field in first):
        return False
    return _number(second[-1]) is not None and (len(first) == 3 or _number(second[0]) is not None)


def _node_numbers(parsed: _Parsed, path: Path) -> Integers:
    """Return the node number of each label: itself if all are integers, else its position."""
    values = [_number(label) for label in parsed.labels]
    if any(value is None or not value.is_integer() for value in values):
        return np.arange(len(values))
    number = np.array(values, dtype=np.float64)
    if number.min() < 0 or number.max() >= MAX_NODES:
        raise InputError(
            f"{path}: node numbers run from {number.min():g} to {number.max():g}; they must be 0 "
            "to n - 1"
        )
    nodes = number.astype(np.int64)
    known = np.unique(nodes)
    if len(known) <= known[-1]:
        missing = int(np.flatnonzero(known != np.arange(len(known)))[0])
        remedy = "number the nodes 0 to n - 1, or name them"
        raise InputError(
            f"{path}: node {missing} has no edge though node {known[-1]} has; {remedy}"
        )
    return nodes


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
