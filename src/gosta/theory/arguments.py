"""Validation of arguments that several parts of theory share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from gosta.errors import InputError
from gosta.protocols import AnyProtocol
from gosta.runtime.arrays import Integers

Formula = TypeVar("Formula")
LATEST = 2**53  # floats count iterations exactly up to here


def validate_times(times: ArrayLike) -> Integers:
    """Return numbers of iterations as an array, or raise an error if they are not such numbers."""
    array = np.atleast_1d(np.asarray(times))
    if (
        array.ndim != 1
        or array.dtype.kind not in "iu"
        or not array.size
        or array.min() < 1
        or array.max() > LATEST
    ):
        raise InputError(f"times = {times!r} must be whole numbers from 1 to 2**53")
    return array.astype(np.int64)


def formula_for(protocol: AnyProtocol, formulas: Mapping[str, Formula], kind: str) -> Formula:
    """Return the formula of a protocol, or raise an error that names the protocols that have one."""
    if protocol.name not in formulas:
        raise InputError(
            f"there is no {kind} for {protocol.name}; there is one for {', '.join(formulas)}"
        )
    return formulas[protocol.name]
