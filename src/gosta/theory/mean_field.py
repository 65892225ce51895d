"""GoSta-async in expectation, approximately.

Node k is drawn with probability p_k and folds in its visitor with weight 1/count. The paper puts 1/(p_k t) for that
weight and lets it be independent of the visitor. Here the weight has its true mean, (1 − (1 − p_k)^t)/(p_k t), and a
node drawn for the first time surely holds its own observation. What stays neglected is that the count and the estimate
of a node hang together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.theory.arguments import Ticks
from gosta.theory.powers import power, power_sum
from gosta.theory.spectrum import Modes, laplacian

MOST_STEPS = 1_000_000  # a minute or so
EACH = 2  # ticks a node that are taken one by one
GROWTH = 1.04  # between times at which expected kernel values are computed; linear between


def gosta_async(kernel: Floats, modes: Modes, ticks: Ticks, graph: Any) -> Floats:
    """The recursion for E[Z], tick by tick at first, then in steps short against all that changes (Heun)."""
    matrix, n, last = laplacian(graph), len(kernel), int(ticks.max())
    chances = matrix.diagonal()
    seen = _Visitors(kernel, modes, last)
    own = kernel.diagonal()
    longest = 0.5 / float(modes.rates[-1])
    if last > MOST_STEPS * longest:
        raise InputError(
            f"times up to {last:,}: the expectation of gosta-async is found step by step, here up to "
            f"{int(MOST_STEPS * longest):,} iterations"
        )

    def change(t: float, z: Floats) -> Floats:
        first = power(chances, t - 1)  # the chance that this is the first meeting
        weight = power_sum(chances, t) / t
        flow = matrix @ z
        met = np.where(first < 1, (seen.at(t - 1) - first * own) / np.maximum(1 - first, 1e-300), own)
        folded = chances * (first * own + (weight - first) * met)
        return np.asarray(folded - flow / 2 - weight * (chances * z - flow / 2))

    z, now, out = np.zeros(n), 0, np.empty((n, len(ticks)))
    for place in np.argsort(ticks, kind="stable"):
        stop = int(ticks[place])
        while now < stop:
            step = 1 if now < EACH * n else int(max(1, min(stop - now, now / 200, longest)))
            slope = change(now + 1, z)
            if step > 1:
                slope = (slope + change(now + step, z + (step - 1) * slope)) / 2
            z, now = z + step * slope, now + step
        out[:, place] = z
    return out


class _Visitors:
    """Expected kernel values of nodes with their visitors, at any time."""

    def __init__(self, kernel: Floats, modes: Modes, last: int) -> None:
        some = np.unique(np.ceil(GROWTH ** np.arange(np.log(last + 2) / np.log(GROWTH) + 1)))
        self.times = np.append(0.0, some)
        self.values = (modes.seen(kernel) @ power(modes.rates[:, None], self.times)).T

    def at(self, t: float) -> Floats:
        right = min(int(np.searchsorted(self.times, t, side="right")), len(self.times) - 1)
        start, end = self.times[right - 1], self.times[right]
        share = (t - start) / (end - start)
        return np.asarray(self.values[right - 1] * (1 - share) + self.values[right] * share)
