"""Outcomes that contradict times and events: a wrong unit, or yes and no exchanged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gosta.runtime.arrays import Booleans, Floats

MOST = 0.9  # of the rows with one outcome that could contradict their events
FEWEST = 0.05  # of all rows


class Contradictions(NamedTuple):
    """Rows whose outcome is not that of an event before a horizon."""

    rows: Booleans
    sides: tuple[Booleans, Booleans]  # of positive and of negative rows that could contradict

    def are_nearly_all(self, fewest: float = 0.0) -> bool:
        """Return whether nearly all rows contradict that could, and they are not few."""
        fewest = max(fewest, FEWEST * len(self.rows), 1.0)
        return any(side.sum() >= fewest and side.mean() > MOST for side in self.sides if len(side))


def contradictions(
    outcome: Floats, times: Floats, events: Floats, horizon: float
) -> Contradictions:
    """Return which outcomes (1 or 0; NaN if unknown) contradict times and events.

    Examples
    --------
    >>> days = np.array([20.0, 20.0, 500.0])
    >>> contradictions(np.array([1, 0, 0]), days, np.array([1, 1, 1]), 365).rows.tolist()
    [False, True, False]
    """
    is_positive, has_event = outcome == 1, events > 0
    could = (is_positive | has_event) & ~np.isnan(outcome + times + events)
    found = could & np.where(
        is_positive, (times > horizon) | (events == 0), has_event & (times < horizon)
    )
    return Contradictions(found, (found[could & is_positive], found[could & ~is_positive]))
