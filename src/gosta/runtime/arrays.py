"""Types of numpy arrays, and scalar products that are the same on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Words = NDArray[np.uint64]


def project(x: Floats, directions: Floats) -> Floats:
    """Return the scalar products of rows with directions, rows × directions.

    That of one row depends on nothing but this row. Linear algebra adds in an order that depends on
    the processor and on where in a block a row is, so that equal rows could differ in the last
    digit.
    """
    products = np.zeros((len(x), len(directions)))
    for column, weights in zip(x.T, directions.T, strict=True):
        products += column[:, None] * weights
    return products
