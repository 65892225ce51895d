"""Users' own graphs: files of edges, arrays, networkx graphs, sparse matrices."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.graphs.graph import MAX_NODES, Graph, check_integer
from gosta.runtime import machine
from gosta.runtime.arrays import Floats, Integers

ENDINGS = (".csv", ".tsv", ".txt", ".edges")
HEADINGS = {"source", "target", "from", "to", "src", "dst", "node1", "node2"}  # no file's nodes are called that


def read(path: str | Path) -> Graph:
    """Read a graph from a text file: one edge a line, with a weight if you like.

    Two nodes stand on a line, separated by comma, semicolon, tab or blanks; a third number is the weight, the rate at
    which the edge fires. '#' begins a comment, and the first line may hold headings. Nodes are the numbers 0 to n − 1,
    or names, which are numbered as they first appear.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"no such file: {path}")
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    machine.require_memory(20 * path.stat().st_size, f"reading {path}")
    try:
        table = _parsed(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {path}: it is not text in UTF-8") from error

    def where(k: int) -> str:
        return f"{path}, line {table.lines[k]}"

    number = _numbered(table, path)
    edges = number[np.frombuffer(table.ends, dtype=np.int32)].astype(np.int32).reshape(-1, 2)
    weights = np.frombuffer(table.weights) if table.weights else None
    return Graph(str(path), int(number.max()) + 1, edges, weights).check(where)


def from_edges(edges: Any, n: int | None = None, weights: Any = None, *, name: str = "edges") -> Graph:
    """Make a graph from an array of edges: m × 2 node numbers, each edge once.

    Parameters
    ----------
    edges
        The two ends of each edge, whole numbers from 0.
    n
        Number of nodes; by default one more than the largest number.
    weights
        Rates at which the edges fire, positive.
    name
        What to call it.

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
    if ends.dtype.kind not in "iuf" or (ends.dtype.kind == "f" and not (ends == np.floor(ends)).all()):
        raise InputError(f"{name}: node numbers must be whole numbers from 0")
    if ends.min() < 0 or ends.max() > MAX_NODES - 1:
        raise InputError(f"{name}: node numbers run from {ends.min():g} to {ends.max():g}; they must be 0 to n - 1")
    size = int(ends.max()) + 1 if n is None else check_integer(name, "n", n, 2)
    return Graph(name, size, ends.astype(np.int32), None if weights is None else _rates(weights, name)).check()


def from_networkx(graph: Any) -> Graph:
    """Make a graph from a networkx graph: nodes are numbered in its own order.

    Where edges carry a ``weight``, it is the rate at which they fire.
    """
    if graph.is_directed() or graph.is_multigraph():
        kind = "directed" if graph.is_directed() else "a multigraph"
        raise InputError(f"the networkx graph is {kind}; networkx.Graph(g) makes an undirected, simple one of it")
    number = {node: k for k, node in enumerate(graph.nodes)}
    triples = list(graph.edges(data="weight"))
    edges = np.array([[number[u], number[v]] for u, v, _ in triples], dtype=np.int32).reshape(-1, 2)
    without = [(u, v) for u, v, weight in triples if weight is None]
    if without and len(without) < len(triples):
        raise InputError(f"the networkx graph has edges without a weight, such as {without[0]}; give it to all or none")
    name = str(graph.name or "networkx graph")
    weights = None if without or not triples else _rates([weight for *_, weight in triples], name)

    def where(k: int) -> str:
        return f"{name}, edge {triples[k][0]!r} - {triples[k][1]!r}"

    return Graph(name, len(number), edges, weights).check(where)


def from_scipy(matrix: Any) -> Graph:
    """Make a graph from a symmetric sparse matrix: an edge where it is not zero.

    The values are the rates at which the edges fire, unless they are all equal.
    """
    from scipy import sparse

    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"the matrix has shape {matrix.shape}; a graph needs as many rows as columns")
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"the matrix holds {matrix.dtype}; edges need real numbers")
    both = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    both.sum_duplicates()
    both.eliminate_zeros()
    if (both != both.T).nnz:
        raise InputError("the matrix is not symmetric; a graph is not directed, so give a[i, j] = a[j, i]")
    loops = np.flatnonzero(both.diagonal())
    if len(loops):
        raise InputError(
            f"the matrix has {both.diagonal()[loops[0]]:g} at [{loops[0]}, {loops[0]}]; leave self-loops out"
        )
    upper = sparse.triu(both, k=1).tocoo()
    equal = not upper.nnz or (upper.data == upper.data[0]).all()

    def where(k: int) -> str:
        return f"matrix[{upper.row[k]}, {upper.col[k]}]"

    edges = np.column_stack([upper.row, upper.col])
    # Equal values are no weights, but a negative one is still no edge.
    checked = Graph("matrix", both.shape[0], edges, upper.data).check(where)
    return Graph(checked.name, checked.n, checked.edges) if equal else checked


def from_object(source: Any) -> Graph:
    """Whatever stands for a graph in memory."""
    if isinstance(source, Graph):
        return source
    if hasattr(source, "is_multigraph"):
        return from_networkx(source)
    if hasattr(source, "tocsr"):
        return from_scipy(source)
    table = _array(source, "edges")
    if table.ndim != 2 or table.shape[1] not in (2, 3):
        raise InputError(
            f"graph: {type(source).__name__} of shape {table.shape} is none; give a name, a file, m × 2 or m × 3 "
            "edges, a networkx graph or a scipy sparse matrix"
        )
    return from_edges(table[:, :2], weights=table[:, 2] if table.shape[1] == 3 else None)


def _array(values: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(
            f"{name}: rows of different lengths; give two node numbers an edge, with a weight or without"
        ) from None


def _rates(weights: Any, name: str) -> Floats:
    try:
        return np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name}: the weights are not all numbers") from None


class _Table(NamedTuple):
    """A file as read: labels as they first appear, and by line the places of two labels and a weight."""

    labels: list[str]
    ends: array[int]
    weights: array[float]
    lines: array[int]


def _parsed(path: Path) -> _Table:
    place: dict[str, int] = {}
    table = _Table([], array("i"), array("d"), array("q"))
    width = 0
    for line, fields in _rows(path):
        width = width or len(fields)
        if width not in (2, 3):
            raise InputError(f"{path}, line {line}: {width} values; an edge is two nodes and perhaps a weight")
        if len(fields) != width or not all(fields):
            raise InputError(f"{path}, line {line}: {len([*filter(None, fields)])} values where {width} are expected")
        table.lines.append(line)
        table.ends.append(place.setdefault(fields[0], len(place)))
        table.ends.append(place.setdefault(fields[1], len(place)))
        if width == 3:
            weight = _number(fields[2])
            if weight is None:
                raise InputError(f"{path}, line {line}: weight {fields[2]!r} is not a number")
            table.weights.append(weight)
    if not table.lines:
        raise InputError(f"{path} has no edges")
    table.labels.extend(place)
    return table


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Numbered lines that hold something, split; a line of headings is left out."""
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
    """Words known to be headings, or two words over two numbers, or three words with a number under the third."""
    if {field.lower() for field in first[:2]} <= HEADINGS:
        return True
    if len(first) != len(second) or not all(_number(field) is None for field in first):
        return False
    return _number(second[-1]) is not None and (len(first) == 3 or _number(second[0]) is not None)


def _numbered(table: _Table, path: Path) -> Integers:
    """The node number of each label: the label itself if all are whole numbers, otherwise its place."""
    values = [_number(label) for label in table.labels]
    if any(value is None or not value.is_integer() for value in values):
        return np.arange(len(values))
    number = np.array(values, dtype=np.float64)
    if number.min() < 0 or number.max() >= MAX_NODES:
        raise InputError(f"{path}: node numbers run from {number.min():g} to {number.max():g}; they must be 0 to n - 1")
    nodes = number.astype(np.int64)
    known = np.unique(nodes)
    if len(known) <= known[-1]:
        missing = int(np.flatnonzero(known != np.arange(len(known)))[0])
        raise InputError(
            f"{path}: node {missing} has no edge though node {known[-1]} has; number the nodes 0 to n - 1, or name them"
        )
    return nodes


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
