"""Faults of a simulated network: lost messages, nodes that go and come back, and a partition.

Real nodes take part in an exchange on both sides or on neither. So a fault does one thing to a simulation: exchanges
that are drawn do not take place. `gosta.schedule` says which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gosta.errors import InputError

# why an exchange did not take place; the order in which they are counted
NAMES = ("loss", "away", "partition")
AWAY_FOR = 10.0  # exchanges, unless another length is given


@dataclass(frozen=True)
class Faults:
    """What keeps exchanges of a simulation from taking place; by default nothing does."""

    loss: float = 0.0
    """Probability that a message is lost; an exchange takes one in each direction."""
    away: float = 0.0
    """Share of the nodes that are away at any time; they come back as they were."""
    away_for: float = AWAY_FOR
    """How long a node is away, on average: the exchanges that an average node has meanwhile."""
    partition: tuple[int, int] | None = None
    """Iterations from and up to which the first half of the nodes is separated from the others."""

    def __bool__(self) -> bool:
        return self.loss > 0 or self.away > 0 or self.partition is not None

    @property
    def lost_share(self) -> float:
        """Probability that an exchange is lost, because one of its two messages is."""
        return 1.0 - (1.0 - self.loss) ** 2


NO_FAULTS = Faults()


def check_faults(
    loss: Any = None, away: Any = None, away_for: Any = None, partition: Any = None
) -> Faults:
    """Return the faults that arguments of `gosta.simulate` describe; raise `InputError` where they are not valid."""
    for name, value in (("loss", loss), ("away", away)):
        if value is not None and (not _is_number(value) or not 0 <= value < 1):
            raise InputError(
                f"{name} = {value!r} must be a number from 0 to less than 1, such as 0.1"
            )
    if away_for is not None and (not _is_number(away_for) or not 1 <= away_for < math.inf):
        raise InputError(f"away_for = {away_for!r} must be a number of exchanges, 1 or more")
    if away_for is not None and away is None:
        raise InputError(
            f"away_for = {away_for!r} requires away, the share of the nodes that are away, such as 0.05"
        )
    period = None
    if partition is not None:
        if not _is_pair(partition) or not 0 <= partition[0] < partition[1]:
            raise InputError(
                f"partition = {partition!r} must be two iterations, its start and its end: (5000, 15000)"
            )
        period = int(partition[0]), int(partition[1])
    return Faults(
        float(loss or 0.0),
        float(away or 0.0),
        AWAY_FOR if away_for is None else float(away_for),
        period,
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list) and [
        isinstance(one, int | np.integer) for one in value
    ] == [True, True]
