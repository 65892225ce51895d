"""Differences between groups of rows, which have no row in common.

Squares of standard errors add up. An interval reaches as far as the groups' own intervals do: by
√((v − l)² + (u′ − v′)²) below the difference and by √((u − v)² + (v′ − l′)²) above it (Zou and
Donner 2008; of shares that is Newcombe's interval). So it ends within the differences that are
possible, and is known where a standard error is 0. The p-value is that of this interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gosta.statistics.estimate import Estimate


def differences(groups: Sequence[Estimate]) -> tuple[Estimate, ...]:
    """Return the value of each group less that of the largest one, the first of several."""
    known = [group for group in groups if group.value is not None and _has_error(group)]
    if len(known) < 2:
        return ()
    reference = max(known, key=lambda group: group.n)
    return tuple(
        _difference(group, reference)
        for group in known
        if group is not reference and _is_comparable(group, reference)
    )


def _has_error(group: Estimate) -> bool:
    return bool(np.isfinite(group.standard_error).any())


def _is_comparable(group: Estimate, reference: Estimate) -> bool:
    """Return whether values of two groups are those of the same points."""
    has_points = group.labels == reference.labels and np.array_equal(group.at, reference.at)
    return has_points and np.shape(group.value) == np.shape(reference.value)


def _difference(group: Estimate, reference: Estimate) -> Estimate:
    gap = np.subtract(group.value, reference.value)
    below = np.hypot(group.value - group.low, reference.high - reference.value)
    above = np.hypot(group.high - group.value, reference.value - reference.low)
    variances = np.square([group.standard_error, reference.standard_error])
    bracket = None
    if group.bracket is not None and reference.bracket is not None:
        pairs = (group.bracket, reference.bracket[::-1])
        bracket = tuple(_plain(np.subtract(*ends)) for ends in zip(*pairs, strict=True))
    return group._replace(
        value=_plain(gap),
        low=_plain(gap - below),
        high=_plain(gap + above),
        standard_error=_plain(np.sqrt(variances.sum(axis=0))),
        bracket=bracket,
        group=f"{group.group} less {reference.group}",
        n=group.n + reference.n,
        reason="",
        remedy="",
        null_value=0.0,
        counts=None,
    )


def _plain(values: Any) -> Any:
    return float(values) if np.ndim(values) == 0 else values
