"""Bounds of the paper's theorems on ‖E[Z(t)] − V1‖, the distance of expected estimates over all nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gosta.estimation.setting import Setting, make_setting
from gosta.protocols import AnyProtocol
from gosta.runtime.arrays import Floats, Integers
from gosta.statistics.definition import Options, Statistic
from gosta.theory.arguments import formula_for, validate_times
from gosta.theory.spectrum import slowest_rate


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

    For ``averaging``, ``u1``, ``u2`` and ``gosta-sync``; the paper's theorem for ``gosta-async`` has a constant that it
    does not give. The bound is in the statistic's own unit; for ratios such as the AUC it is right to first order.
    All pairs are evaluated once, and none is stored.

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
    >>> gosta.theory.bound("gosta-sync", [1.0, 2.0, 4.0], "gini-mean-difference", "path", [10, 1000]).round(3)
    array([4.737, 0.043])
    """
    choice = {"columns": columns, "label": label, "score": score, "drop_missing": drop_missing}
    return bounds(
        make_setting(protocol, data, statistic, graph, seed, options or {}, **choice),
        validate_times(times),
    )


def bounds(setting: Setting, times: Integers) -> Floats:
    """Return the bound at each time; for a statistic of several numbers, on the root of the sum of their squares."""
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


def averaging(data: DataTerms, c: float, t: Floats) -> Floats:
    """Return e^(−ct) ‖h̄ − V1‖."""
    return np.exp(-c * t) * data.rows


def u1(data: DataTerms, c: float, t: Floats) -> Floats:
    """Return ‖H − h̄1ᵀ‖/(2ct), over all nodes.

    The paper has ‖h_k‖ for node k; the mean of h_k cancels in its proof, and therefore in the bound.
    """
    gap = _swap_gap(c)
    return data.pairs / (gap * t) if gap else np.full_like(t, np.inf)


def u2(data: DataTerms, c: float, t: Floats) -> Floats:
    """Return (√n/t) (2/(1 − λ) ‖h̄ − V1‖ + 1/(1 − λ²) ‖H − h̄1ᵀ‖) with 1 − λ = 2c."""
    gap = _swap_gap(c)
    if not gap:
        return np.full_like(t, np.inf)
    size: float = (2 / gap * data.rows + data.pairs / (gap * (2 - gap))) * math.sqrt(data.n)
    return size / t


def gosta_sync(data: DataTerms, c: float, t: Floats) -> Floats:
    """Return ‖h̄ − V1‖/(ct) + (2/(ct) + e^(−ct)) ‖H − h̄1ᵀ‖."""
    return data.rows / (c * t) + (2 / (c * t) + np.exp(-c * t)) * data.pairs


def _swap_gap(c: float) -> float:
    """Return 1 − |λ₂(1)|: 2c, but 0 for two nodes, whose visitors swap back and forth forever and never mix."""
    return 2 * c if c < 0.9 else 0.0  # c is at most 1/2 on more than two nodes


BOUNDS = {"averaging": averaging, "u1": u1, "u2": u2, "gosta-sync": gosta_sync}
