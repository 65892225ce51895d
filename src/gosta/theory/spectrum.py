"""Spectra of networks: eigenvalues of the Laplacian, per exchange.

An edge is drawn with a probability proportional to its weight, so one exchange multiplies a
visitor's expected place by ``I - L`` and expected estimates by ``I - L/2``, where ``L`` is the
Laplacian whose weights sum to one. An eigenvalue of ``L`` is called a *rate* here: the paper's W_α
has eigenvalues 1 − rate/α.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gosta import graphs
from gosta.errors import InputError, NumericalError
from gosta.graphs.graph import Graph
from gosta.runtime import machine, progress
from gosta.runtime.arrays import Floats
from gosta.runtime.extras import require

# Up to here all eigenvalues are computed where they are needed: below half a second.
MAX_DENSE_NODES = 2000
MAX_SMALL_NODES = 500  # up to which all are computed even where the smallest is enough
# Up to here a sparse graph is factored, which finds the slowest mode everywhere.
MAX_FACTORED_NODES = 10_000
MAX_BLOCK_NODES = 200_000  # beyond which fewer vectors are solved for at once, for memory and time
MAX_PROJECTION_ROUNDS = 2000  # of inverse iteration, where there are several slowest modes
PROJECTED = 1e-11  # relative change in a round below which inverse iteration has converged
LANCZOS_STEPS = 80  # for the density of eigenvalues of large graphs
MAX_SOLVER_ROUNDS = 60  # of ten iterations each
LEAST_WEIGHT = 1e-100  # relative to the largest: smaller weights are lost in rounding
CLOSE = 0.01  # rates whose ratio differs by less from 1 are merged
SAME = 1e-9  # rates whose ratio differs by less from 1 are one rate with several eigenvectors
CLEAR = 0.1  # of the largest number of its kind: from here on a number is clearly not zero


def scipy_module(name: str) -> Any:
    """Import a module of scipy, which is an optional dependency."""
    return require(f"scipy.{name}", "theory", "theory of networks")


class Modes(NamedTuple):
    """All rates of a network and their eigenvectors."""

    rates: Floats  # smallest first
    vectors: Floats  # one column for each rate

    def visitor_terms(self, kernel: Floats) -> Floats:
        """Return φ_a(k) (Hφ_a)(k), nodes × modes: a mode's part of kernels with visitors."""
        return self.vectors * (kernel @ self.vectors)


def spectral_gap(graph: Any, n: int | None = None, seed: int = 0) -> float:
    """Compute the spectral gap c = 1 − λ₂(2) = β/(2m).

    Here β is the second smallest eigenvalue of the Laplacian.

    Differences between estimates shrink like exp(−ct) and visitors mix like exp(−2ct) after t
    exchanges.

    Parameters
    ----------
    graph, n, seed
        As for `gosta.graphs.load`. Edge weights are taken into account.

    Returns
    -------
    float
        The gap, per exchange.

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
    """Compute the exchanges after which a visitor can be at any node, wherever it came from.

    The distribution of its place is then within 1/4 of uniform in total variation, as √n·λ₂(1)^t/2
    bounds that distance.

    Parameters
    ----------
    graph, n, seed
        As for `gosta.graphs.load`.

    Returns
    -------
    float
        A number of exchanges of all nodes together; infinite for two nodes.

    Examples
    --------
    >>> import gosta
    >>> round(gosta.theory.mixing_time("complete", n=1000))
    2069
    """
    graph = graphs.load(graph, n, seed)
    rate = slowest_rate(graph)
    # The rate is 0 where weights are too small to compute with; two visitors swap forever.
    if rate <= 0 or graph.n == 2:
        return math.inf
    return math.log(2 * math.sqrt(graph.n)) / -math.log1p(-rate) if rate < 1 - 1e-9 else 1.0


def slowest_rate(graph: Graph) -> float:
    """Return the smallest rate above zero."""
    if graph.edges is None:
        return graph.n / graph.m
    if graph.n > MAX_SMALL_NODES and not _has_formula(graph):
        return slowest_mode(graph)[0]
    rates = _all_rates(graph)
    assert rates is not None
    return float(np.partition(rates, 1)[1])


def slowest_mode(graph: Graph) -> tuple[float, Floats]:
    """Return the smallest rate above zero and its eigenvector, Fiedler's.

    Along it the network mixes last.

    Which one linear algebra finds, if there are several, and its sign depend on the processor. So
    of several (in a cycle, say) it is the one along which the ends of an edge differ most: of the
    first edge whose ends clearly differ along any of them. And the first number of the vector that
    is clearly not zero, a tenth of the largest or more, is positive. Beyond 10,000 nodes the vector
    is an approximation, and only its sign is certain if there are several.
    """
    rate, vectors = slowest_modes(graph)
    vector = vectors[:, 0]
    if vectors.shape[1] > 1:
        i, j = _first_edge(graph, vectors)
        vector = vectors @ (vectors[i] - vectors[j])
    vector = vector / np.linalg.norm(vector)
    sizes = np.abs(vector)
    return rate, vector * np.sign(vector[np.argmax(sizes >= CLEAR * sizes.max())])


@functools.lru_cache(maxsize=4)
def slowest_modes(graph: Graph) -> tuple[float, Floats]:
    """Return the smallest rate above zero and its eigenvectors; one column for large graphs."""
    if graph.n > MAX_SMALL_NODES and graph.edges is not None:
        can_factor = graph.n <= MAX_FACTORED_NODES and graph.m <= 20 * graph.n
        rate, vector = (_solve_by_factoring if can_factor else _solve_by_multigrid)(graph.check())
        return rate, vector[:, None]
    modes = decompose(graph)
    rate = float(modes.rates[1])
    # Closer ones are mixed by the rounding of floats.
    room = SAME * rate + 4 * graph.n * np.finfo(np.float64).eps * float(modes.rates[-1])
    return rate, modes.vectors[:, 1 : np.searchsorted(modes.rates, rate + room, side="right")]


def _first_edge(graph: Graph, vectors: Floats) -> tuple[int, int]:
    """Return the first edge whose ends clearly differ along any of some eigenvectors."""
    if graph.edges is None:
        return 0, 1
    products = vectors @ vectors.T  # any other eigenvectors of the space have the same
    (i, j), squares = graph.edges.T, products.diagonal()
    distances = squares[i] + squares[j] - 2 * products[i, j]
    first = int(np.argmax(distances >= CLEAR**2 * distances.max()))
    return int(i[first]), int(j[first])


def decompose(graph: Graph) -> Modes:
    """Compute all rates and eigenvectors, in O(n³) time and O(n²) memory."""
    graph.check()
    machine.require_memory(
        72 * graph.n**2, f"all eigenvectors of {graph.name} on {graph.n} nodes", "take fewer nodes"
    )
    rates, vectors = np.linalg.eigh(dense_laplacian(graph))
    rates[0], vectors[:, 0] = 0.0, graph.n**-0.5
    return Modes(rates, vectors)


@functools.lru_cache(maxsize=4)
def density(graph: Graph) -> tuple[Floats, Floats]:
    """Return the rates above zero, close ones merged, and counts; estimates for large graphs."""
    if graph.edges is None:
        return np.array([graph.n / graph.m]), np.array([graph.n - 1.0])
    all_rates = _all_rates(graph)
    if all_rates is None:
        rates, counts = _sample_rates(graph)
    else:
        rates, counts = np.sort(all_rates)[1:], np.ones(graph.n - 1)
    return merge_close(rates, counts, CLOSE)


def merge_close(rates: Floats, counts: Floats, width: float) -> tuple[Floats, Floats]:
    """Merge rates whose logarithms differ by less than about `width`; return them and counts."""
    _, group = np.unique(np.round(np.log(rates) / width), return_inverse=True)
    total: Floats = np.bincount(group, counts).astype(np.float64)
    return np.bincount(group, counts * rates) / total, total


def laplacian(graph: Graph) -> Any:
    """Return the Laplacian whose weights sum to one: dense if complete, sparse otherwise."""
    n = graph.n
    if graph.edges is None:
        return (np.eye(n) * n - 1) / graph.m
    weights = graph.rates
    if weights.min() < LEAST_WEIGHT * weights.max():
        extremes = f"from {weights.min():g} to {weights.max():g}"
        raise InputError(f"{graph.name}: weights {extremes} differ too much to compute a spectrum")
    i, j = graph.edges.T
    machine.require_memory(100 * graph.m, f"the Laplacian of {graph.name}")
    sparse = scipy_module("sparse")
    adjacency = sparse.coo_array((weights / weights.sum(), (i, j)), shape=(n, n)).tocsr()
    adjacency = adjacency + adjacency.T
    return (sparse.diags_array(adjacency.sum(axis=1)) - adjacency).tocsr()


def dense_laplacian(graph: Graph) -> Floats:
    """Return the Laplacian whose edge weights sum to one as a dense array."""
    matrix = laplacian(graph)
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())


def _has_formula(graph: Graph) -> bool:
    return graph.spectrum is not None and graph.weights is None


@functools.lru_cache(maxsize=4)
def _all_rates(graph: Graph) -> Floats | None:
    """Return all rates of a graph that has a formula or is small; otherwise None."""
    if _has_formula(graph):
        assert graph.spectrum is not None
        return graph.spectrum() / graph.m
    if graph.n > MAX_DENSE_NODES:
        return None
    return np.asarray(np.linalg.eigvalsh(dense_laplacian(graph.check())), dtype=np.float64)


def _solve_by_factoring(graph: Graph) -> tuple[float, Floats]:
    """Find the slowest mode by Lanczos on the inverse, factored without one node's row."""
    linalg = scipy_module("sparse.linalg")
    assert graph.edges is not None
    n, matrix = graph.n, laplacian(graph).tocsc() * graph.n
    factors = linalg.splu(
        matrix[1:, 1:].tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}
    )

    def invert(vector: Floats) -> Floats:
        out = np.zeros(n)
        out[1:] = factors.solve((vector - vector.mean()).ravel()[1:])
        return np.asarray(out - out.mean())

    start = np.random.default_rng(0).standard_normal(n)
    operator = linalg.LinearOperator((n, n), invert, dtype=np.float64)
    values, vectors = linalg.eigsh(operator, k=1, which="LM", v0=start - start.mean())
    value, vector = float(values[0]), vectors[:, 0]
    if _has_other_modes(invert, value, vector):
        # Of several modes, Lanczos finds what rounding errors choose.
        differences = np.abs(np.diff(_project(invert, value, start)[graph.edges], axis=1)[:, 0])
        i, j = graph.edges[np.argmax(differences >= CLEAR * differences.max())]
        along_edge = np.zeros(n)
        along_edge[i], along_edge[j] = 1.0, -1.0
        vector = _project(invert, value, along_edge)
    return 1 / value / n, vector


def _has_other_modes(invert: Callable[[Floats], Floats], value: float, vector: Floats) -> bool:
    """Return whether an operator has its largest eigenvalue for other vectors than one, too."""
    linalg, n = scipy_module("sparse.linalg"), len(vector)

    def invert_others(x: Floats) -> Floats:
        out = invert(x - vector * (vector @ x.ravel()))
        return np.asarray(out - vector * (vector @ out))

    operator = linalg.LinearOperator((n, n), invert_others, dtype=np.float64)
    start = np.random.default_rng(1).standard_normal(n)
    for tolerance, least_gap in ((1e-3, 1e-2), (0.0, 1e-7)):  # the first is enough for most graphs
        (other,) = linalg.eigsh(operator, k=1, v0=start, tol=tolerance, return_eigenvectors=False)
        if other < (1 - least_gap) * value:
            return False
    return True


def _project(invert: Callable[[Floats], Floats], value: float, vector: Floats) -> Floats:
    """Return the part of a vector that lies along the eigenvectors of the largest eigenvalue.

    Rounding errors do not grow in these rounds, as they do in the method of Lanczos.
    """
    for _ in range(MAX_PROJECTION_ROUNDS):
        before, vector = vector, invert(vector) / value
        if np.linalg.norm(vector - before) < PROJECTED * np.linalg.norm(vector):
            break
    return vector


def _solve_by_multigrid(graph: Graph) -> tuple[float, Floats]:
    """Find the slowest mode by LOBPCG with an algebraic multigrid preconditioner.

    Plain aggregation with W-cycles stays cheap on expanders and hubs, where smoothed aggregation
    fills in, and still handles long thin graphs, where Lanczos needs hours.
    """
    lobpcg = scipy_module("sparse.linalg").lobpcg
    pyamg = require("pyamg", "theory", "the spectral gap of a large graph")
    n, matrix = graph.n, laplacian(graph)
    matrix *= n  # of order one
    machine.require_memory(
        600 * n + 60 * matrix.nnz, f"the spectral gap of {graph.name}", "take a smaller graph"
    )
    constant = np.ones((n, 1))
    # More vectors than needed, half of them nodes that are drawn least: weights can confine the
    # slowest mode to a corner, where a random start is almost zero.
    half = 4 if n <= MAX_BLOCK_NODES else 1
    vectors = np.random.default_rng(0).standard_normal((n, 2 * half))
    vectors[:, half:] = 0.0
    vectors[np.argpartition(matrix.diagonal(), half)[:half], np.arange(half, 2 * half)] = 1.0
    value = np.inf
    with warnings.catch_warnings(), progress.bar(f"spectral gap of {graph.name}", None) as advance:
        warnings.simplefilter("ignore")  # ten iterations are rarely enough
        levels = pyamg.smoothed_aggregation_solver(matrix, smooth=None, max_coarse=500)
        condition = levels.aspreconditioner(cycle="W")
        advance(0)
        for _ in range(MAX_SOLVER_ROUNDS):
            values, vectors = lobpcg(
                matrix, vectors, M=condition, Y=constant, largest=False, tol=1e-14, maxiter=10
            )
            before, value = value, float(values.min())
            vector = vectors[:, values.argmin()]
            advance(1)
            # The value's error is the square of the vector's, so it converges long before.
            if (
                np.linalg.norm(matrix @ vector - value * vector) < 1e-3 * value
                or abs(before - value) < 1e-6 * value
            ):
                return value / n, vector
    rounds = f"{MAX_SOLVER_ROUNDS} rounds"
    raise NumericalError(
        f"the spectral gap of {graph.name} did not converge in {rounds}; take a smaller graph"
    )


def _sample_rates(graph: Graph, starts: int = 4) -> tuple[Floats, Floats]:
    """Return rates and counts by stochastic Lanczos quadrature.

    Sums over them approximate sums over all eigenvalues.

    The slowest rate, which the quadrature would miss, is solved for and its direction excluded.
    """
    rate, vector = slowest_mode(graph)
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
    """Return the eigenvalues that a vector consists of and their shares, by Lanczos."""
    steps = min(LANCZOS_STEPS, len(start) - 2)
    along, across = np.zeros(steps), np.zeros(steps - 1)
    before, now = np.zeros_like(start), start / np.linalg.norm(start)
    for k in range(steps):
        new = matrix @ now - (across[k - 1] * before if k else 0)
        along[k] = now @ new
        new -= along[k] * now
        new -= fixed @ (fixed.T @ new)
        if k < steps - 1:
            across[k] = np.linalg.norm(new)
            if across[k] < 1e-12 * along.max():  # the vector consists of few eigenvectors
                along, across = along[: k + 1], across[:k]
                break
            before, now = now, new / across[k]
    values, vectors = scipy_module("linalg").eigh_tridiagonal(along, across)
    return values, vectors[0] ** 2
