"""The bound on how far dual averaging by gossip is above the minimum (Colin et al. 2016).

After T ticks of `dual-averaging-sync` with steps γ(t) = S/√t, the expected objective at the mean
point of a node exceeds the minimum, at w*, by at most

    |w*|² / (2 T γ(T)) + L² Σγ / (2 T)     (data: as if one place did it, on other pairs each time)
    + 3 L² Σγ / (T (1 − √λ₂))              (network: nodes disagree)
    + a bias, because visitors of a node are alike for as long as they take to mix,

with Σγ over t < T, L the greatest length of the gradient of a pair, and 1 − λ₂ the spectral gap.
The bias depends on the way that points take, and has no closed form.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gosta.errors import InputError
from gosta.estimation.estimand import ObjectiveEstimand
from gosta.estimation.setting import make_setting
from gosta.protocols.dual_averaging import STEP
from gosta.protocols.dual_averaging_sync import protocol
from gosta.statistics.objectives import LOSSES
from gosta.theory.spectrum import spectral_gap


class DualAveragingBound(NamedTuple):
    """Terms of the bound on the objective above its minimum, without that of the bias.

    Examples
    --------
    >>> import gosta
    >>> data = gosta.datasets.load("two-gaussians", n=30)
    >>> terms = gosta.theory.dual_averaging_bound(data, "pairwise-logistic", "cycle", 10**8)
    >>> terms.data < terms.network
    True
    """

    data: float  # what dual averaging in one place has, too
    network: float  # disagreement of nodes, which the spectral gap decides


def dual_averaging_bound(
    data: Any, objective: str, graph: Any, iterations: int, *, seed: int = 0, **options: Any
) -> DualAveragingBound:
    """Return terms of the bound on what `dual-averaging-sync` is above the minimum.

    Parameters
    ----------
    data, objective, graph, seed, **options
        As for `gosta.simulate`.
    iterations
        Number of ticks.

    Returns
    -------
    DualAveragingBound
        The terms, in units of the objective.

    Examples
    --------
    >>> import gosta
    >>> data = gosta.datasets.load("two-gaussians", n=30)
    >>> near, far = (
    ...     gosta.theory.dual_averaging_bound(data, "pairwise-hinge", graph, 1000).network
    ...     for graph in ("complete", "cycle")
    ... )
    >>> near < far
    True
    """
    setting = make_setting(protocol, data, objective, graph, seed, options)
    estimand = setting.estimand
    assert isinstance(estimand, ObjectiveEstimand)
    if estimand.objective.loss is LOSSES["squared"]:
        raise InputError(f"{objective}: gradients of its loss have no bound")
    steps = estimand.pace * STEP / np.sqrt(np.arange(1, iterations + 1))
    gradient = float((estimand.pairs.features**2).sum(axis=1).max())  # slopes are at most 1
    gap = spectral_gap(setting.graph)
    total = gradient * float(steps[:-1].sum()) / iterations
    length = float((estimand.means[0] ** 2).sum())
    return DualAveragingBound(
        length / (2 * iterations * float(steps[-1])) + total / 2,
        3 * total / (1 - math.sqrt(1 - gap)),
    )
