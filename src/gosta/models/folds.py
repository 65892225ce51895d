"""Folds of rows, for validation on rows that were not fitted.

Beside the fit to all rows there is one without each fold, in the same rounds, and a last round sums
what a validation needs of the predictions of rows by the fit without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gosta.datasets.data import Data
from gosta.models.showing import PREDICTIONS
from gosta.runtime.arrays import Floats, Integers, Words
from gosta.sketches.definition import Features

if TYPE_CHECKING:
    from gosta.sketches.layout import Layout

MOST_FOLDS = 20
# Odd numbers of the hash function splitmix64.
STEPS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def folds_of(rows: Floats, folds: int) -> Integers:
    """Return the fold of each encoded row of a site, which follows from what the rows hold.

    Rows that are the same are in folds of their own: together in one, none of their kind would be
    fitted where they are predicted.

    >>> folds_of(np.array([[0.1, 1.0], [0.2, 0.0], [0.1, 1.0], [0.3, 0.0]]), 5).tolist()
    [3, 4, 4, 4]
    """
    found = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        found = _mixed(found, np.floor(column * 2.0**32 + 0.5).astype(np.int64))
    _, kinds, counts = np.unique(found, return_inverse=True, return_counts=True)
    order = np.argsort(kinds, kind="stable")
    before = np.empty(len(rows), dtype=np.int64)  # rows of its kind before each
    before[order] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = _mixed(found, before)
    return ((found >> np.uint64(33)) % np.uint64(folds)).astype(np.int64)


def _mixed(found: Words, numbers: Integers) -> Words:
    """Return hash values of what they are of so far, and of further numbers."""
    found = found ^ numbers.view(np.uint64)
    for step in STEPS:
        found = found * step
        found = found ^ (found >> np.uint64(31))
    return found


def features(layout: Layout, columns: dict[str, Floats]) -> Features:
    """Return the features of rows with predictions and outcomes."""
    if not len(columns[PREDICTIONS[0]]):
        shape = 0, layout.features_per_row
        return Features(np.zeros(shape, dtype=np.int64), np.zeros(shape))
    return layout.features(layout.encode(Data("predictions", columns, is_partial=True)))
