"""How fast a network forgets: eigenvalues of its Laplacian, in exchanges.

An edge fires with the probability of its weight, so after one exchange a visitor's expected place is multiplied by
``I - L`` and expected estimates by ``I - L/2``, where ``L`` is the Laplacian whose weights sum to one. An eigenvalue of
``L`` is called a *rate* here: the paper's W_α has eigenvalues 1 − rate/α.
"""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any, NamedTuple

import numpy as np

from gosta import graphs
from gosta.errors import InputError
from gosta.graphs.graph import Graph
from gosta.runtime import machine, progress
from gosta.runtime.arrays import Floats

DENSE = 2000  # nodes up to which all eigenvalues are computed where they are needed: below half a second
SMALL = 500  # nodes up to which all are computed even where the smallest is enough
STEPS = 80  # of Lanczos, which finds the density of eigenvalues of large graphs
ROUNDS = 60  # of the eigen-solver, ten iterations each, at most
FACTORED = 10_000  # nodes up to which a sparse graph is factored, which finds the slowest mode wherever it hides
FAINT = 1e-100  # of the largest weight: what lies below is lost in rounding
LARGE = 200_000  # nodes from which on fewer vectors are sought at once, for memory and time
CLOSE = 0.01  # rates that differ by less, as a share, are taken together


class Modes(NamedTuple):
    """All rates of a network, smallest first, and their eigenvectors as columns."""

    rates: Floats
    vectors: Floats

    def seen(self, kernel: Floats) -> Floats:
        """φ_a(k) (Hφ_a)(k), nodes × modes: what each mode adds to a node's kernel value with its visitor."""
        return self.vectors * (kernel @ self.vectors)


def spectral_gap(graph: Any, n: int | None = None, seed: int = 0) -> float:
    """How well a network mixes: c = 1 − λ₂(2) = β/(2m), with β the second smallest eigenvalue of the Laplacian.

    Estimates approach each other like exp(−ct), visitors mix like exp(−2ct), t counting exchanges.

    Parameters
    ----------
    graph, n, seed
        As for `gosta.graphs.load`. Edge weights count.

    Examples
    --------
    >>> import gosta
    >>> f"{gosta.theory.spectral_gap(gosta.graphs.torus(39, 41)):.3g}"
    '3.66e-06'
    >>> 1 / gosta.theory.spectral_gap("complete", n=1599)
    1598.0
    """
    return slowest_rate(graphs.load(graph, n, seed)) / 2


def mixing_time(graph: Any, n: int | None = None, seed: int = 0) -> float:
    """Exchanges after which a visitor may be anywhere, wherever it came from.

    Its chances to be at each node then differ from equal ones by at most 1/4 in total variation, as √n·λ₂(1)^t/2
    bounds that distance.

    Examples
    --------
    >>> import gosta
    >>> round(gosta.theory.mixing_time("complete", n=1000))
    2069
    """
    graph = graphs.load(graph, n, seed)
    rate = slowest_rate(graph)
    if rate <= 0 or graph.n == 2:  # joined by less than can be told from nothing; or by one edge, swapping for ever
        return math.inf
    return math.log(2 * math.sqrt(graph.n)) / -math.log1p(-rate) if rate < 1 - 1e-9 else 1.0


def slowest_rate(graph: Graph) -> float:
    """The smallest rate above zero."""
    if graph.edges is None:
        return graph.n / graph.m
    if graph.n > SMALL and not _has_formula(graph):
        return slowest(graph)[0]
    known = _all_rates(graph)
    assert known is not None
    return float(np.partition(known, 1)[1])


@functools.lru_cache(maxsize=4)
def slowest(graph: Graph) -> tuple[float, Floats]:
    """The smallest rate above zero and its eigenvector, Fiedler's: the direction in which a network mixes last."""
    if graph.n > SMALL and graph.edges is not None:
        few = graph.n <= FACTORED and graph.m <= 20 * graph.n
        return (_factored if few else _solved)(graph.check())
    modes = decompose(graph)
    return float(modes.rates[1]), modes.vectors[:, 1]


def decompose(graph: Graph) -> Modes:
    """All rates and eigenvectors, in O(n³) time and O(n²) memory."""
    graph.check()
    machine.require_memory(72 * graph.n**2, f"all eigenvectors of {graph.name} on {graph.n} nodes", "take fewer nodes")
    rates, vectors = np.linalg.eigh(dense_laplacian(graph))
    rates[0], vectors[:, 0] = 0.0, graph.n**-0.5
    return Modes(rates, vectors)


@functools.lru_cache(maxsize=4)
def density(graph: Graph) -> tuple[Floats, Floats]:
    """Rates above zero and how many of each there are, close ones taken together; estimated for large graphs."""
    if graph.edges is None:
        return np.array([graph.n / graph.m]), np.array([graph.n - 1.0])
    known = _all_rates(graph)
    if known is not None:
        rates = np.sort(known)[1:]
        counts = np.ones(len(rates))
    else:
        rates, counts = _lanczos(graph)
    group = np.round(np.log(rates) / CLOSE).astype(np.int64)
    _, group = np.unique(group, return_inverse=True)
    total: Floats = np.bincount(group, counts).astype(np.float64)
    return np.bincount(group, counts * rates) / total, total


def laplacian(graph: Graph) -> Any:
    """The Laplacian whose edge weights sum to one: dense for the complete graph, sparse otherwise."""
    n = graph.n
    if graph.edges is None:
        return (np.eye(n) * n - 1) / graph.m
    from scipy import sparse

    weights = graph.rates
    if weights.min() < FAINT * weights.max():
        raise InputError(
            f"{graph.name}: weights from {weights.min():g} to {weights.max():g} are too far apart for theory"
        )
    i, j = graph.edges.T
    machine.require_memory(100 * graph.m, f"the Laplacian of {graph.name}")
    adjacency = sparse.coo_array((weights / weights.sum(), (i, j)), shape=(n, n)).tocsr()
    adjacency = adjacency + adjacency.T
    return (sparse.diags_array(adjacency.sum(axis=1)) - adjacency).tocsr()


def dense_laplacian(graph: Graph) -> Floats:
    """The same, as an array."""
    matrix = laplacian(graph)
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())


def _has_formula(graph: Graph) -> bool:
    return graph.spectrum is not None and graph.weights is None


@functools.lru_cache(maxsize=4)
def _all_rates(graph: Graph) -> Floats | None:
    """All rates, by a formula or of a small graph."""
    if _has_formula(graph):
        assert graph.spectrum is not None
        return graph.spectrum() / graph.m
    if graph.n > DENSE:
        return None
    return np.asarray(np.linalg.eigvalsh(dense_laplacian(graph.check())), dtype=np.float64)


def _factored(graph: Graph) -> tuple[float, Floats]:
    """By Lanczos on the inverse, from a factorisation with one node's row and column left out."""
    from scipy.sparse.linalg import LinearOperator, eigsh, splu

    n, matrix = graph.n, laplacian(graph).tocsc() * graph.n
    factors = splu(matrix[1:, 1:].tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})

    def invert(vector: Floats) -> Floats:
        out = np.zeros(n)
        out[1:] = factors.solve((vector - vector.mean()).ravel()[1:])
        return np.asarray(out - out.mean())

    start = np.random.default_rng(0).standard_normal(n)
    values, vectors = eigsh(LinearOperator((n, n), invert, dtype=np.float64), k=1, which="LM", v0=start - start.mean())
    return float(1 / values[0] / n), vectors[:, 0]


def _solved(graph: Graph) -> tuple[float, Floats]:
    """By LOBPCG with an algebraic multigrid preconditioner.

    Plain aggregation with W-cycles stays cheap on expanders and hubs, where smoothed aggregation fills in, and still
    handles long thin graphs, where Lanczos needs hours.
    """
    import pyamg
    from scipy.sparse.linalg import lobpcg

    n = graph.n
    matrix = laplacian(graph)
    matrix *= n  # of order one
    machine.require_memory(600 * n + 60 * matrix.nnz, f"the spectral gap of {graph.name}", "take a smaller graph")
    constant = np.ones((n, 1))
    # More vectors than the one wanted, half of them nodes that are met least: weights may hide the slowest mode in a
    # corner, where a random start hardly reaches.
    half = 4 if n <= LARGE else 1
    vectors = np.random.default_rng(0).standard_normal((n, 2 * half))
    vectors[:, half:] = 0.0
    vectors[np.argpartition(matrix.diagonal(), half)[:half], np.arange(half, 2 * half)] = 1.0
    value = np.inf
    with warnings.catch_warnings(), progress.bar(f"spectral gap of {graph.name}", None) as advance:
        warnings.simplefilter("ignore")  # that ten iterations were not enough
        levels = pyamg.smoothed_aggregation_solver(matrix, smooth=None, max_coarse=500)
        condition = levels.aspreconditioner(cycle="W")
        advance(0)
        for _ in range(ROUNDS):
            values, vectors = lobpcg(matrix, vectors, M=condition, Y=constant, largest=False, tol=1e-14, maxiter=10)
            before, value = value, float(values.min())
            vector = vectors[:, values.argmin()]
            advance(1)
            # The value's error is the square of the vector's, so it has settled long before.
            if np.linalg.norm(matrix @ vector - value * vector) < 1e-3 * value or abs(before - value) < 1e-6 * value:
                return value / n, vector
    raise InputError(f"the spectral gap of {graph.name} was not found in {ROUNDS} rounds; take a smaller graph")


def _lanczos(graph: Graph, starts: int = 4) -> tuple[Floats, Floats]:
    """Stochastic Lanczos quadrature: rates and counts with which sums over all eigenvalues come out about right.

    The slowest rate is solved for and its direction left out of the quadrature, which would not see it.
    """
    rate, vector = slowest(graph)
    n, matrix = graph.n, laplacian(graph)
    rng = np.random.default_rng(0)
    rates, counts = [np.array([rate])], [np.array([1.0])]
    fixed = np.column_stack([np.full(n, n**-0.5), vector / np.linalg.norm(vector)])
    for _ in range(starts):
        start = rng.standard_normal(n)
        values, weights = _quadrature(matrix, start - fixed @ (fixed.T @ start), fixed)
        inside = (values > rate) & (weights > 0)
        rates.append(values[inside])
        counts.append(weights[inside] / weights[inside].sum() * (n - 2) / starts)
    return np.concatenate(rates), np.concatenate(counts)


def _quadrature(matrix: Any, start: Floats, fixed: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues that a vector is made of and their shares, after some steps of Lanczos."""
    from scipy.linalg import eigh_tridiagonal

    steps = min(STEPS, len(start) - 2)
    along, across = np.zeros(steps), np.zeros(steps - 1)
    before, now = np.zeros_like(start), start / np.linalg.norm(start)
    for k in range(steps):
        new = matrix @ now - (across[k - 1] * before if k else 0)
        along[k] = now @ new
        new -= along[k] * now
        new -= fixed @ (fixed.T @ new)
        if k < steps - 1:
            across[k] = np.linalg.norm(new)
            if across[k] < 1e-12 * along.max():  # the vector is made of so few eigenvectors
                along, across = along[: k + 1], across[:k]
                break
            before, now = now, new / across[k]
    values, vectors = eigh_tridiagonal(along, across)
    return values, vectors[0] ** 2
