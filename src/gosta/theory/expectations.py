"""Expected estimates: the mean over infinitely many runs.

Edges are drawn independently of everything before, so expectations of estimates and of visitors' places are powers of
two matrices with the same eigenvectors φ, ``I - L/2`` and ``I - L`` (see `spectrum`), in the order of the paper's
pseudo-code. With H the kernel of all pairs, a visitor's expected kernel value at node k after s swaps is
Σ_a λ_a^s φ_a(k) (Hφ_a)(k); the formulas below are geometric sums of such terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gosta.errors import InputError
from gosta.estimation.setting import Setting, make_setting
from gosta.graphs.graph import Graph
from gosta.protocols import AnyProtocol
from gosta.runtime.arrays import Floats, Integers
from gosta.statistics import pairs
from gosta.statistics.definition import Options, Statistic
from gosta.theory.arguments import formula_for, validate_times
from gosta.theory.powers import power, power_quotient, power_sum
from gosta.theory.spectrum import Modes, decompose, laplacian

NEGLIGIBLE = 1e-17  # powers of an eigenvalue below this change no digit of a sum
ROUNDING = 1e-12  # expected means below this share of the exact mean are rounding errors
MAX_STEPS = 1_000_000  # about a minute
SINGLE_STEPS_PER_NODE = 2  # iterations that are taken one by one
GROWTH = 1.04  # between times at which expected kernel values are computed; linear in between


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

    Exact for ``averaging``, ``u1``, ``u2`` and ``gosta-sync``. For ``gosta-async`` an approximation that treats a
    node's count of exchanges and its estimate as independent. A statistic that is a ratio of kernel means (AUC, Gini
    index) is evaluated at their expectations; the expectation of the ratio itself differs while a run's noise is large.

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
    >>> gosta.theory.expectation("gosta-sync", [1.0, 2.0, 4.0], "gini-mean-difference", "path", [1, 10, 1000]).round(3)
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
    # a ratio of rounding errors is no estimate
    by_time[np.abs(by_time) < ROUNDING * np.abs(estimand.means)] = 0.0
    return np.stack([setting.values(at) for at in by_time], axis=1)


def averaging(kernel: Floats, modes: Modes, times: Integers, _graph: Graph) -> Floats:
    """Average row means: W₂^t h̄."""
    start = modes.vectors.T @ kernel.mean(axis=1)
    return np.asarray(modes.vectors @ (power(modes.rates[:, None] / 2, times) * start[:, None]))


def u1(kernel: Floats, modes: Modes, times: Integers, _graph: Graph) -> Floats:
    """Average a node's kernel value after 1, 2, ..., t swaps."""
    rates = modes.rates[:, None]
    return modes.visitor_terms(kernel) @ ((1 - rates) * power_sum(rates, times) / times)


def gosta_sync(kernel: Floats, modes: Modes, times: Integers, _graph: Graph) -> Floats:
    """Sum S(t) = W₂ (S(t−1) + h(t−1)), with h the kernel value before the swap; Z = S/t."""
    within = modes.vectors.T @ modes.visitor_terms(kernel)
    mean, swap = modes.rates[:, None] / 2, modes.rates[None, :]
    sums = [((1 - mean) * within * power_quotient(mean, swap, int(t))).sum(axis=1) for t in times]
    return modes.vectors @ (np.stack(sums, axis=1) / times)


def u2(kernel: Floats, modes: Modes, times: Integers, _graph: Graph) -> Floats:
    """Average visitor × visitor after 0, 1, ..., t − 1 swaps of each: Σ_ab φ_a φ_b (φ_aᵀHφ_b) Σ_s (λ_a λ_b)^s.

    The remainder of a geometric sum after t terms, (λ_a λ_b)^t/(1 − λ_a λ_b), has fewer modes the larger t.
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


def gosta_async(kernel: Floats, modes: Modes, times: Integers, graph: Graph) -> Floats:
    """Follow the recursion of E[Z]: one by one at first, then in steps much shorter than any time scale (Heun).

    Node k is drawn with probability p_k and folds in its visitor with weight 1/count. The paper puts 1/(p_k t) for that
    weight and treats it as independent of the visitor. Here the weight has its true mean, (1 − (1 − p_k)^t)/(p_k t),
    and a node drawn for the first time certainly holds its own observation. The dependence between the count and the
    estimate of a node is still neglected.
    """
    matrix, n, last = laplacian(graph), len(kernel), int(times.max())
    probabilities = matrix.diagonal()
    visitors, own = _ExpectedVisitors(kernel, modes, last), kernel.diagonal()
    longest = 0.5 / float(modes.rates[-1])
    if last > MAX_STEPS * longest:
        steps = f"step by step, here up to {int(MAX_STEPS * longest):,} iterations"
        raise InputError(
            f"times up to {last:,} are too late: the expectation of gosta-async is computed {steps}"
        )

    def change(t: float, z: Floats) -> Floats:
        # the probability that this is the node's first exchange
        first = power(probabilities, t - 1)
        weight = power_sum(probabilities, t) / t
        flow = matrix @ z
        later = (visitors.at(t - 1) - first * own) / np.maximum(1 - first, 1e-300)
        folded = probabilities * (first * own + (weight - first) * np.where(first < 1, later, own))
        return np.asarray(folded - flow / 2 - weight * (probabilities * z - flow / 2))

    z, now, out = np.zeros(n), 0, np.empty((n, len(times)))
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
    """Expected kernel values of nodes with their visitors, interpolated between times in equal ratios."""

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
    "averaging": averaging,
    "u1": u1,
    "u2": u2,
    "gosta-sync": gosta_sync,
    "gosta-async": gosta_async,
}
APPROXIMATE = {"gosta-async"}
