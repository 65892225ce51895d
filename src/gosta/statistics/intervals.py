"""What a network has to estimate for an interval: besides row means their products, two at a time.

A statistic that is a function of mean kernel values varies, from one sample of rows to another, with 4/n times the
variance over rows of (slopes of the function) · (row means): for the AUC that is DeLong's variance, but for a share of
1/(rows in the smaller class).
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.statistics.definition import Statistic, as_tuple


def with_mean_products(statistic: Statistic, width: int) -> Statistic:
    """The same statistic, for which the products of each two of a row's means are averaged too."""
    if statistic.local is not None:
        raise InputError(
            f"{statistic.name}: nodes cannot tell its interval, since a row's own mean is not all that counts there; "
            "gosta.exact gives it over rows in one place"
        )
    pairs = combinations_with_replacement(range(width), 2)
    parts = [f"h[{c}]" for c in range(width)] + [f"h[{a}] * h[{b}]" for a, b in pairs]
    local = eval(f"lambda h: ({', '.join(parts)},)")  # written out, as compiled code needs it
    return replace(statistic, local=local, moments=None, final=_of_first(statistic, width))


def _of_first(statistic: Statistic, width: int) -> Any:
    """The final of a statistic, of the first means only."""
    given = statistic.final

    def final(m: Any, **options: Any) -> Any:
        means = tuple(m[:width])
        return as_tuple(means if given is None else given(means, **options))

    if given is not None:
        final.__signature__ = inspect.signature(given)  # type: ignore[attr-defined]
    else:
        final.__signature__ = inspect.signature(lambda m: m)  # type: ignore[attr-defined]
    return final


def standard_errors(means: Floats, slopes: Floats, n: int) -> Floats:
    """From means and products at each node (nodes × m) and the value's slopes there, by the jackknife's formula.

    Infinite where a node has no value yet.
    """
    variance, width = np.zeros(len(means)), slopes.shape[1]
    with np.errstate(all="ignore"):
        for at, (a, b) in enumerate(combinations_with_replacement(range(width), 2), width):
            covariance = means[:, at] - means[:, a] * means[:, b]
            variance += (1 if a == b else 2) * slopes[:, a] * slopes[:, b] * covariance
    variance = np.where(np.isfinite(variance), np.maximum(variance, 0.0), np.inf)
    errors: Floats = np.sqrt(variance * 4 * (n - 1) / (n - 2) ** 2)
    return errors
