"""What a user may give to a piece of theory, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gosta.errors import InputError
from gosta.protocols import Collecting, Protocol

Ticks = NDArray[np.int64]
Part = TypeVar("Part")
LATEST = 2**53


def whole_times(times: Any) -> Ticks:
    """Iterations at which something is wanted, as an array."""
    ticks = np.atleast_1d(np.asarray(times))
    if ticks.ndim != 1 or ticks.dtype.kind not in "iu" or not ticks.size or ticks.min() < 1 or ticks.max() > LATEST:
        raise InputError(f"times = {times!r} must be whole numbers from 1 to 2**53")
    return ticks.astype(np.int64)


def choose(table: Mapping[str, Part], what: str, protocol: Protocol | Collecting) -> Part:
    """The row of a table of theory that belongs to a protocol."""
    if protocol.name not in table:
        raise InputError(f"there is no {what} for {protocol.name}; there is one for {', '.join(table)}")
    return table[protocol.name]
