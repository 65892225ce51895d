"""GoSta-async in expectation, approximately.

Node k is drawn with probability p_k and folds in its visitor with weight 1/count. The paper puts 1/(p_k t) for that
weight and treats it as independent of the visitor. Here the weight has its true mean, (1 − (1 − p_k)^t)/(p_k t), and a
node drawn for the first time certainly holds its own observation. The dependence between the count and the estimate of
a node is still neglected.
"""

from __future__ import annotations

import numpy as np

from gosta.errors import InputError
from gosta.graphs.graph import Graph
from gosta.runtime.arrays import Floats, Integers
from gosta.theory.powers import power, power_sum
from gosta.theory.spectrum import Modes, laplacian

MAX_STEPS = 1_000_000  # about a minute
SINGLE_STEPS_PER_NODE = 2  # iterations that are taken one by one
GROWTH = 1.04  # between times at which expected kernel values are computed; linear in between


def gosta_async(kernel: Floats, modes: Modes, times: Integers, graph: Graph) -> Floats:
    """Follow the recursion of E[Z]: one by one at first, then in steps much shorter than any time scale (Heun)."""
    matrix, n, last = laplacian(graph), len(kernel), int(times.max())
    probabilities = matrix.diagonal()
    visitors = _ExpectedVisitors(kernel, modes, last)
    own = kernel.diagonal()
    longest = 0.5 / float(modes.rates[-1])
    if last > MAX_STEPS * longest:
        raise InputError(
            f"times up to {last:,} are too late: the expectation of gosta-async is computed step by step, here up to "
            f"{int(MAX_STEPS * longest):,} iterations"
        )

    def change(t: float, z: Floats) -> Floats:
        first = power(probabilities, t - 1)  # the probability that this is the node's first exchange
        weight = power_sum(probabilities, t) / t
        flow = matrix @ z
        later = (visitors.at(t - 1) - first * own) / np.maximum(1 - first, 1e-300)
        folded = probabilities * (first * own + (weight - first) * np.where(first < 1, later, own))
        return np.asarray(folded - flow / 2 - weight * (probabilities * z - flow / 2))

    z, now, out = np.zeros(n), 0, np.empty((n, len(times)))
    for place in np.argsort(times, kind="stable"):
        stop = int(times[place])
        while now < stop:
            step = 1 if now < SINGLE_STEPS_PER_NODE * n else int(max(1, min(stop - now, now / 200, longest)))
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
