"""Folds of rows, for validation on rows that were not fitted.

Beside the fit to all rows there is one without each fold, in the same rounds, and a last round sums
what a validation needs of the predictions of rows by the fit without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gosta.datasets.data import Data
from gosta.models.showing import PREDICTIONS
from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.definition import Features

if TYPE_CHECKING:
    from gosta.sketches.layout import Layout

MOST_FOLDS = 20
STEP = np.uint64(0x9E3779B97F4A7C15)  # an odd number near 2^64 / 1.618, as hash functions take it


def fold_of(rows: Floats, folds: int) -> Integers:
    """Return the fold of each encoded row, which follows from the row alone.

    >>> fold_of(np.array([[0.1, 1.0], [0.2, 0.0], [0.1, 1.0], [0.3, 0.0]]), 5).tolist()
    [4, 3, 4, 0]
    """
    found = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        words = np.floor(column * 2.0**32 + 0.5).astype(np.int64).view(np.uint64)
        found = (found ^ words) * STEP
        found ^= found >> np.uint64(29)
    return ((found >> np.uint64(33)) % np.uint64(folds)).astype(np.int64)


def features(layout: Layout, columns: dict[str, Floats]) -> Features:
    """Return the features of rows with predictions and outcomes."""
    if not len(columns[PREDICTIONS[0]]):
        shape = 0, layout.features_per_row
        return Features(np.zeros(shape, dtype=np.int64), np.zeros(shape))
    return layout.features(layout.encode(Data("predictions", columns, is_partial=True)))
