"""Measures of how one column is distributed: the Lorenz curve, quantiles."""

from __future__ import annotations

import numpy as np

from gosta.measures.definition import Measured, measure
from gosta.runtime.arrays import Floats
from gosta.statistics import encode

WEIGHT_ROUNDING = 1e-12  # relative error of sums of weights, which are floats


@measure(
    encode=encode.positive_value, bounds=(0.0, 1.0), axes=("share of rows", "share of the total")
)
def lorenz_curve(x: Floats, weights: Floats, parts: int = 10) -> Measured:
    """Points of the Lorenz curve: the share of the total that the lowest 10 %, 20 %, ... of the
    rows have.
    """
    order = np.argsort(x[:, 0])
    rows = np.concatenate([[0.0], np.cumsum(weights[order])])
    sums = np.concatenate([[0.0], np.cumsum(weights[order] * x[order, 0])])
    shares = np.arange(1, int(parts)) / int(parts)
    labels = tuple(f"lowest {100 * share:g} %" for share in shares)
    values = np.interp(shares * rows[-1], rows, sums) / sums[-1]
    return Measured(values, labels=labels, at=shares)


@measure(encode=encode.value, axes=("share of rows", "value"))
def quantiles(x: Floats, weights: Floats, parts: int = 10) -> Measured:
    """Values below which 10 %, 20 %, ... of the rows are.

    The quantile k/m is the smallest value that at least that share of the rows does not exceed.
    """
    shares = np.arange(1, int(parts)) / int(parts)
    labels = tuple(f"{100 * share:g} %" for share in shares)
    return Measured(weighted_quantiles(x[:, 0], weights, shares), labels=labels, at=shares)


def weighted_quantiles(values: Floats, weights: Floats, shares: Floats) -> Floats:
    """Return the smallest value that at least a share of the rows does not exceed, for shares."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    places = np.searchsorted(below, below[-1] * shares * (1 - WEIGHT_ROUNDING))
    return np.asarray(values[order[places]])
