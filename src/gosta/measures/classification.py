"""Measures of a score by two classes: the ROC curve, the distance of two distributions.

An encoded row is a score, and +1 for the positive class or −1.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gosta.measures.definition import Measured, measure, numbers_of
from gosta.runtime.arrays import Floats
from gosta.statistics import encode

ROUNDING = 1e-12  # relative, of sums of weights
RATES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@measure(
    encode=encode.scored, bounds=(0.0, 1.0), axes=("false positive rate", "true positive rate")
)
def roc_curve(x: Floats, weights: Floats, rates: Any = RATES) -> Measured:
    """Points of the ROC curve: the highest true positive rate with a false positive rate of at most
    1 %, 5 %, 10 %, ...
    """
    wanted = numbers_of("rates", rates, (0.0, 1.0))
    thresholds = np.concatenate([[np.inf], np.unique(x[:, 0])[::-1]])
    true, false = (1 - share for share in shares_below(x, weights, thresholds, "left"))
    values = np.array([true[false <= rate * (1 + ROUNDING)].max() for rate in wanted])
    labels = tuple(f"false positive rate {rate:g}" for rate in wanted)
    return Measured(values, labels=labels, at=wanted)


@measure(encode=encode.scored, bounds=(0.0, 1.0))
def kolmogorov_smirnov(x: Floats, weights: Floats) -> Measured:
    """Largest difference of the distribution functions of two classes."""
    positive, negative = shares_below(x, weights, x[:, 0], "right")
    return Measured(np.array([np.abs(positive - negative).max()]))


def shares_below(
    x: Floats, weights: Floats, at: Floats, side: Literal["left", "right"]
) -> list[Floats]:
    """Return the shares of positive and negative rows below values, or not above ("right")."""
    shares = []
    for chosen in (x[:, 1] > 0, x[:, 1] < 0):
        order = np.argsort(x[chosen, 0])
        counts = np.concatenate([[0.0], np.cumsum(weights[chosen][order])])
        shares.append(counts[np.searchsorted(x[chosen, 0][order], at, side=side)] / counts[-1])
    return shares
