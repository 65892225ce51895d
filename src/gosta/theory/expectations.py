"""Expected estimates, the mean over infinitely many runs; and the paper's bounds on their errors.

Edges are drawn independently of everything before, so expectations of estimates and of visitors'
places are powers of two matrices with the same eigenvectors φ, ``I - L/2`` and ``I - L`` (see
`spectrum`), in the order of the paper's pseudo-code. With H the kernel of all pairs, a visitor's
expected kernel value at node k after s swaps is Σ_a λ_a^s φ_a(k) (Hφ_a)(k); the formulas below are
geometric sums of such terms.

Bounds are those of the paper's theorems on ‖E[Z(t)] − V1‖, the distance of expected estimates from
the exact value over all nodes. The phantom network is what the paper proves them with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from gosta import graphs
from gosta.errors import InputError
from gosta.estimation.setting import Setting, make_setting
from gosta.graphs.graph import Graph
from gosta.protocols import AnyProtocol
from gosta.runtime.arrays import Floats, Integers
from gosta.statistics import pairs
from gosta.statistics.definition import Options, Statistic
from gosta.theory.spectrum import Modes, decompose, dense_laplacian, laplacian, slowest_rate

NEGLIGIBLE = 1e-17  # powers of an eigenvalue below this change no digit of a sum
ROUNDING = 1e-12  # expected means below this share of the exact mean are rounding errors
MAX_STEPS = 1_000_000  # about a minute
SINGLE_STEPS_PER_NODE = 2  # iterations that are taken one by one
GROWTH = 1.04  # between times at which expected kernel values are computed; linear in between
MAX_PHANTOM_NODES = 40  # of a phantom network, whose matrix has (n + n²)² numbers
LATEST = 2**53  # floats count iterations exactly up to here

Formula = TypeVar("Formula")
Rates: TypeAlias = float | Floats
Times: TypeAlias = float | Floats | Integers


def expectation(
    protocol: str | AnyProtocol,
    data: Any,
    statistic: str | Statistic,
    graph: Any,
    times: ArrayLike,
    *,
    seed: int = 0,
    columns: str | int | Sequence[str | int] | None = None,
    label: Any = None,
    score: Any = None,
    drop_missing: bool = False,
    options: Options | None = None,
) -> Floats:
    """Compute the expected estimate of every node after given numbers of iterations.

    Exact for ``averaging``, ``u1``, ``u2`` and ``gosta-sync``. For ``gosta-async`` an approximation
    that treats a node's count of exchanges and its estimate as independent. A statistic that is a
    ratio of kernel means (AUC, Gini index) is evaluated at their expectations; the expectation of
    the ratio itself differs while a run's noise is large.

    Parameters
    ----------
    protocol, data, statistic, graph, seed, columns, label, score, drop_missing, options
        As for `gosta.simulate`.
    times
        Numbers of iterations, at least 1 each.

    Returns
    -------
    array
        Nodes × times; for a statistic of several numbers, nodes × times × numbers.

    Examples
    --------
    >>> import gosta
    >>> choice = "gosta-sync", [1.0, 2.0, 4.0], "gini-mean-difference", "path"
    >>> gosta.theory.expectation(*choice, [1, 10, 1000]).round(3)
    array([[0.   , 1.605, 1.996],
           [0.   , 1.651, 1.996],
           [0.   , 1.745, 1.997]])
    """
    choice = {"columns": columns, "label": label, "score": score, "drop_missing": drop_missing}
    setting = make_setting(protocol, data, statistic, graph, seed, options or {}, **choice)
    estimates = expected_estimates(setting, validate_times(times))
    return estimates[..., 0] if estimates.shape[2] == 1 else estimates


def expected_estimates(setting: Setting, times: Integers) -> Floats:
    """Return the expected estimates: nodes × times × numbers of the statistic."""
    formula = formula_for(setting.protocol, EXPECTATIONS, "expectation")
    estimand, modes = setting.estimand, decompose(setting.graph)
    means = []
    for column in np.eye(estimand.width):
        kernel = pairs.kernel_matrix(
            estimand.statistic, estimand.x, estimand.kernel_options, column
        )
        means.append(formula(kernel, modes, times, setting.graph))
    by_time = np.stack(means, axis=-1).swapaxes(0, 1)
    # A ratio of rounding errors is not an estimate.
    by_time[np.abs(by_time) < ROUNDING * np.abs(estimand.means)] = 0.0
    return np.stack([setting.values(at) for at in by_time], axis=1)


def expected_averaging(kernel: Floats, modes: Modes, times: Integers, _graph: Graph) -> Floats:
    """Average row means: W₂^t h̄."""
    start = modes.vectors.T @ kernel.mean(axis=1)
    return np.asarray(modes.vectors @ (power(modes.rates[:, None] / 2, times) * start[:, None]))


def expected_u1(kernel: Floats, modes: Modes, times: Integers, _graph: Graph) -> Floats:
    """Average a node's kernel value after 1, 2, ..., t swaps."""
    rates = modes.rates[:, None]
    return modes.visitor_terms(kernel) @ ((1 - rates) * power_sum(rates, times) / times)


def expected_gosta_sync(kernel: Floats, modes: Modes, times: Integers, _graph: Graph) -> Floats:
    """Sum S(t) = W₂ (S(t−1) + h(t−1)), with h the kernel value before the swap; Z = S/t."""
    within = modes.vectors.T @ modes.visitor_terms(kernel)
    mean, swap = modes.rates[:, None] / 2, modes.rates[None, :]
    sums = [((1 - mean) * within * power_quotient(mean, swap, int(t))).sum(axis=1) for t in times]
    return modes.vectors @ (np.stack(sums, axis=1) / times)


def expected_u2(kernel: Floats, modes: Modes, times: Integers, _graph: Graph) -> Floats:
    """Average visitor × visitor after 0, 1, ..., t − 1 swaps of each.

    The sum is Σ_ab φ_a φ_b (φ_aᵀHφ_b) Σ_s (λ_a λ_b)^s.

    The remainder of a geometric sum after t terms, (λ_a λ_b)^t/(1 − λ_a λ_b), has fewer modes the
    larger t.
    """
    rates, vectors = modes
    both = rates[:, None] + rates[None, :] - np.outer(rates, rates)  # 1 − λ_a λ_b
    parts = vectors.T @ kernel @ vectors
    stays = np.abs(both) < 1e-14  # the constant mode; of two nodes also the other
    forever, parts = (
        np.where(stays, parts, 0.0),
        np.where(stays, 0.0, parts) / np.where(stays, 1.0, both),
    )
    mean, limit = (((vectors @ some) * vectors).sum(axis=1) for some in (forever, parts))
    columns = []
    for t in times:
        left = power(rates, int(t))
        slow = np.abs(left) > NEGLIGIBLE
        some = vectors[:, slow] * left[slow]
        columns.append(mean + (limit - ((some @ parts[np.ix_(slow, slow)]) * some).sum(axis=1)) / t)
    return np.stack(columns, axis=1)


def expected_gosta_async(kernel: Floats, modes: Modes, times: Integers, graph: Graph) -> Floats:
    """Follow the recursion of E[Z].

    Iterations are taken one by one at first, then in steps much shorter than any time scale (Heun).

    Node k is drawn with probability p_k and folds in its visitor with weight 1/count. The paper
    puts 1/(p_k t) for that weight and treats it as independent of the visitor. Here the weight has
    its true mean, (1 − (1 − p_k)^t)/(p_k t), and a node drawn for the first time certainly holds
    its own observation. The dependence between the count and the estimate of a node is still
    neglected.
    """
    matrix = laplacian(graph)
    n, last = len(kernel), int(times.max())
    probabilities = matrix.diagonal()
    visitors, own_values = _ExpectedVisitors(kernel, modes, last), kernel.diagonal()
    longest = 0.5 / float(modes.rates[-1])
    if last > MAX_STEPS * longest:
        steps = f"step by step, here up to {int(MAX_STEPS * longest):,} iterations"
        raise InputError(
            f"times up to {last:,} are too late: the expectation of gosta-async is computed {steps}"
        )

    def change(t: float, z: Floats) -> Floats:
        # The probability that this is the node's first exchange.
        first = power(probabilities, t - 1)
        weight = power_sum(probabilities, t) / t
        flow = matrix @ z
        later = (visitors.at(t - 1) - first * own_values) / np.maximum(1 - first, 1e-300)
        folded = probabilities * (
            first * own_values + (weight - first) * np.where(first < 1, later, own_values)
        )
        return np.asarray(folded - flow / 2 - weight * (probabilities * z - flow / 2))

    z, out = np.zeros(n), np.empty((n, len(times)))
    now = 0
    for place in np.argsort(times, kind="stable"):
        stop = int(times[place])
        while now < stop:
            step = (
                1
                if now < SINGLE_STEPS_PER_NODE * n
                else int(max(1, min(stop - now, now / 200, longest)))
            )
            slope = change(now + 1, z)
            if step > 1:
                slope = (slope + change(now + step, z + (step - 1) * slope)) / 2
            z, now = z + step * slope, now + step
        out[:, place] = z
    return out


class _ExpectedVisitors:
    """Expected kernel values of nodes with visitors, interpolated in equal ratios of time."""

    def __init__(self, kernel: Floats, modes: Modes, last: int) -> None:
        grid = np.unique(np.ceil(GROWTH ** np.arange(np.log(last + 2) / np.log(GROWTH) + 1)))
        self.times = np.append(0.0, grid)
        self.values = (modes.visitor_terms(kernel) @ power(modes.rates[:, None], self.times)).T

    def at(self, t: float) -> Floats:
        right = min(int(np.searchsorted(self.times, t, side="right")), len(self.times) - 1)
        start, end = self.times[right - 1], self.times[right]
        share = (t - start) / (end - start)
        return np.asarray(self.values[right - 1] * (1 - share) + self.values[right] * share)


EXPECTATIONS = {
    "averaging": expected_averaging,
    "u1": expected_u1,
    "u2": expected_u2,
    "gosta-sync": expected_gosta_sync,
    "gosta-async": expected_gosta_async,
}
APPROXIMATE = {"gosta-async"}


class DataTerms(NamedTuple):
    """Two distances of the kernel from a constant, by which all bounds depend on the data."""

    rows: float  # ‖h̄ − V1‖, of row means
    pairs: float  # ‖H − h̄1ᵀ‖ (Frobenius), of kernel values within rows
    n: int  # number of rows


def bound(
    protocol: str | AnyProtocol,
    data: Any,
    statistic: str | Statistic,
    graph: Any,
    times: ArrayLike,
    *,
    seed: int = 0,
    columns: str | int | Sequence[str | int] | None = None,
    label: Any = None,
    score: Any = None,
    drop_missing: bool = False,
    options: Options | None = None,
) -> Floats:
    """Bound the distance of expected estimates from the exact value, ‖E[Z(t)] − V1‖ over all nodes.

    For ``averaging``, ``u1``, ``u2`` and ``gosta-sync``; the paper's theorem for ``gosta-async``
    has a constant that it does not give. The bound is in the statistic's own unit; for ratios such
    as the AUC it is right to first order. All pairs are evaluated once, and none is stored.

    Parameters
    ----------
    protocol, data, statistic, graph, times, seed, columns, label, score, drop_missing, options
        As for `expectation`.

    Returns
    -------
    array
        One number for each time.

    Examples
    --------
    >>> import gosta
    >>> choice = "gosta-sync", [1.0, 2.0, 4.0], "gini-mean-difference", "path"
    >>> gosta.theory.bound(*choice, [10, 1000]).round(3)
    array([4.737, 0.043])
    """
    choice = {"columns": columns, "label": label, "score": score, "drop_missing": drop_missing}
    return bounds(
        make_setting(protocol, data, statistic, graph, seed, options or {}, **choice),
        validate_times(times),
    )


def bounds(setting: Setting, times: Integers) -> Floats:
    """Return the bound at each time; for several numbers, on the length of their vector."""
    formula = formula_for(setting.protocol, BOUNDS, "bound")
    c = slowest_rate(setting.graph) / 2
    each = [formula(terms, c, times.astype(np.float64)) for terms in data_terms(setting)]
    return np.asarray(np.linalg.norm(each, axis=0))


def data_terms(setting: Setting) -> list[DataTerms]:
    """Return the data terms of each number of the statistic."""
    estimand, terms = setting.estimand, []
    for slopes in setting.slopes:
        row_means = estimand.row_means @ slopes
        between = float(np.linalg.norm(row_means - row_means.mean()))
        within = max(0.0, estimand.n**2 * estimand.scatter(slopes) - estimand.n * between**2)
        terms.append(DataTerms(between, within**0.5, estimand.n))
    return terms


def bound_of_averaging(data: DataTerms, c: float, t: Floats) -> Floats:
    """Return e^(−ct) ‖h̄ − V1‖."""
    return np.exp(-c * t) * data.rows


def bound_of_u1(data: DataTerms, c: float, t: Floats) -> Floats:
    """Return ‖H − h̄1ᵀ‖/(2ct), over all nodes.

    The paper has ‖h_k‖ for node k; the mean of h_k cancels in its proof, and therefore in the
    bound.
    """
    gap = _swap_gap(c)
    return data.pairs / (gap * t) if gap else np.full_like(t, np.inf)


def bound_of_u2(data: DataTerms, c: float, t: Floats) -> Floats:
    """Return (√n/t) (2/(1 − λ) ‖h̄ − V1‖ + 1/(1 − λ²) ‖H − h̄1ᵀ‖) with 1 − λ = 2c."""
    gap = _swap_gap(c)
    if not gap:
        return np.full_like(t, np.inf)
    size: float = (2 / gap * data.rows + data.pairs / (gap * (2 - gap))) * math.sqrt(data.n)
    return size / t


def bound_of_gosta_sync(data: DataTerms, c: float, t: Floats) -> Floats:
    """Return ‖h̄ − V1‖/(ct) + (2/(ct) + e^(−ct)) ‖H − h̄1ᵀ‖."""
    return data.rows / (c * t) + (2 / (c * t) + np.exp(-c * t)) * data.pairs


def _swap_gap(c: float) -> float:
    """Return 1 − |λ₂(1)|: 2c, but 0 for two nodes, whose visitors swap forever and never mix."""
    return 2 * c if c < 0.9 else 0.0  # c is at most 1/2 on more than two nodes


BOUNDS = {
    "averaging": bound_of_averaging,
    "u1": bound_of_u1,
    "u2": bound_of_u2,
    "gosta-sync": bound_of_gosta_sync,
}


class PhantomNetwork:
    """Expected estimates of GoSta-sync and the expected numbers of the copies.

    Parameters
    ----------
    kernel
        H, n × n: the kernel of all pairs of observations.
    graph
        As for `gosta.graphs.load`, n ≤ 40.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([1.0, 2.0, 4.0])
    >>> network = PhantomNetwork(np.abs(x[:, None] - x), "path")
    >>> network.transition(1).shape
    (12, 12)
    >>> network.expectation([1, 10, 1000]).round(3)  # V = 4/3; gini-mean-difference is 3/2 of it
    array([[0.   , 1.07 , 1.331],
           [0.   , 1.1  , 1.331],
           [0.   , 1.163, 1.332]])
    """

    def __init__(self, kernel: ArrayLike, graph: Any) -> None:
        try:
            self.kernel = np.atleast_2d(np.asarray(kernel, dtype=np.float64))
        except (TypeError, ValueError):
            raise InputError(
                "kernel must be an array of n x n numbers, the kernel of all pairs"
            ) from None
        self.n = n = len(self.kernel)
        if self.kernel.shape != (n, n) or not np.isfinite(self.kernel).all():
            shape = self.kernel.shape
            raise InputError(
                f"kernel of shape {shape} must be n x n finite numbers, the kernel of all pairs"
            )
        if n > MAX_PHANTOM_NODES:
            raise InputError(
                f"a phantom network of {n} nodes has {n + n * n:,} states; take at most "
                f"{MAX_PHANTOM_NODES} nodes"
            )
        matrix = dense_laplacian(graphs.load(graph, n).check())
        self.average, self.swap = np.eye(n) - matrix / 2, np.eye(n) - matrix

    def start(self) -> Floats:
        """Return the first state: estimates of 0, and the kernel in every copy."""
        return np.concatenate([np.zeros(self.n), self.kernel.ravel()])

    def transition(self, t: int) -> Floats:
        """Return the matrix of iteration t for expected states: update, average, swap."""
        validate_times(t)
        n = self.n
        own_place = np.zeros((n, n * n))
        own_place[np.arange(n), np.arange(n) * (n + 1)] = 1.0  # node k reads place k of copy k
        upper = np.hstack([(t - 1) / t * self.average, self.average @ own_place / t])
        lower = np.hstack([np.zeros((n * n, n)), np.kron(np.eye(n), self.swap)])
        return np.vstack([upper, lower])

    def expectation(self, times: ArrayLike) -> Floats:
        """Return expected estimates, nodes × times, by multiplying all matrices out."""
        iterations = validate_times(times)
        state, out = self.start(), np.empty((self.n, len(iterations)))
        for t in range(1, int(iterations.max()) + 1):
            state = self.transition(t) @ state
            out[:, iterations == t] = state[: self.n, None]
        return out


def validate_times(times: ArrayLike) -> Integers:
    """Return numbers of iterations as an array, or raise an error if they are not such numbers."""
    array = np.atleast_1d(np.asarray(times))
    if (
        array.ndim != 1
        or array.dtype.kind not in "iu"
        or not array.size
        or array.min() < 1
        or array.max() > LATEST
    ):
        raise InputError(f"times = {times!r} must be whole numbers from 1 to 2**53")
    return array.astype(np.int64)


def formula_for(protocol: AnyProtocol, formulas: Mapping[str, Formula], kind: str) -> Formula:
    """Return the formula of a protocol, or raise an error that names protocols with one."""
    if protocol.name not in formulas:
        raise InputError(
            f"there is no {kind} for {protocol.name}; there is one for {', '.join(formulas)}"
        )
    return formulas[protocol.name]


def power(rate: Rates, t: Times) -> Floats:
    """Return (1 − rate)^t."""
    near = np.minimum(rate, 0.5)
    return np.asarray(np.where(rate < 0.5, np.exp(t * np.log1p(-near)), np.power(1.0 - rate, t)))


def power_sum(rate: Rates, t: Times) -> Floats:
    """Return 1 + x + ... + x^(t−1) for x = 1 − rate."""
    near = np.minimum(rate, 0.5)
    lost = np.where(rate < 0.5, -np.expm1(t * np.log1p(-near)), 1 - np.power(1.0 - rate, t))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(np.abs(rate) < 1e-300, t, lost / rate))


def power_quotient(first: Floats, second: Floats, t: int) -> Floats:
    """Return (x^t − y^t)/(x − y) for x = 1 − first and y = 1 − second."""
    gap = second - first
    with np.errstate(divide="ignore", invalid="ignore"):
        out: Floats = (power(first, t) - power(second, t)) / gap
    # Where the two are too near for a difference, its slope at the middle; either way ten digits
    # are left.
    near = t * np.abs(gap) < 1e-5 * np.abs(1 - first)
    out[near] = t * power((first + second)[near] / 2, t - 1)
    return out
