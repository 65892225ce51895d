"""Synthetic data with known properties, drawn from a seed."""

from __future__ import annotations

import numpy as np

from gosta.datasets.data import Data
from gosta.runtime.arrays import Floats, Integers


def two_gaussians(n: int, seed: int) -> Data:
    """Draw half the rows around 0, half around 1 in each of two dimensions: AUC Φ(1) ≈ 0.841 along the diagonal."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 2
    return _plane("two-gaussians", rng.normal(size=(n, 2)) + label[:, None], label)


def clusters(n: int, seed: int) -> Data:
    """Draw five round clouds of unit width with centres drawn over a 20 × 20 square."""
    rng = np.random.default_rng(seed)
    centres, label = rng.uniform(0, 20, size=(5, 2)), rng.integers(0, 5, n)
    return _plane("clusters", rng.normal(size=(n, 2)) + centres[label], label)


def lognormal(n: int, seed: int) -> Data:
    """Draw incomes: exp of a standard normal number, Gini index erf(1/2) ≈ 0.5205."""
    return Data("lognormal", {"income": np.random.default_rng(seed).lognormal(size=n)})


def survival(n: int, seed: int) -> Data:
    """Draw exponential lifetimes at rate exp(score), censored at exponential times of rate one half."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n)
    life, end = rng.exponential(np.exp(-score)), rng.exponential(2.0, size=n)
    columns = {"time": np.minimum(life, end), "event": (life <= end).astype(int), "score": score}
    return Data("survival", columns, score="score", default_columns=("time", "score"))


def _plane(name: str, x: Floats, label: Integers) -> Data:
    return Data(
        name,
        {"x": x[:, 0], "y": x[:, 1], "label": label},
        label="label",
        default_columns=("x", "y"),
    )
