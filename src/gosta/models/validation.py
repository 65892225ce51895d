"""Validation of a model on rows that were not fitted: which rows, and sums of their predictions.

Rows are in folds. Beside the fit to all rows there is one without each fold, in the same rounds,
and a last round sums what a validation needs of the predictions of rows by the fit without them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gosta import datasets
from gosta.runtime.arrays import Floats, Integers
from gosta.sketches.definition import Features
from gosta.sketches.layout import Layout
from gosta.sketches.layout_builder import Bins, make_layout

MOST_FOLDS = 20
RISK_BINS = 128
SCORE_BINS = TIME_BINS = 48  # of a table of both
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


def class_layout(statistics: str) -> Layout:
    """Return the sums for predictions from 0 to 1 of two classes."""
    settings = Bins(bins=RISK_BINS, ranges={"prediction": (0.0, 1.0)})
    return make_layout(
        statistics, settings, score="prediction", label="outcome", classes=(0.0, 1.0)
    )


def time_layout(statistics: str, starts: tuple[int, ...], count: int) -> Layout:
    """Return the sums for scores from 0 to 1 and times by their place among declared ones.

    Bins of time begin at some of these places.
    """
    settings = Bins(
        bins=SCORE_BINS,
        ranges={"prediction": (0.0, 1.0), "time": (-1.0, float(count))},
        edges={"time": tuple(start - 0.5 for start in starts)},
    )
    return make_layout(statistics, settings, score="prediction", time="time", event="event")


def features(layout: Layout, columns: dict[str, Floats]) -> Features:
    """Return the features of rows with predictions and outcomes."""
    if not len(columns["prediction"]):
        shape = 0, layout.features_per_row
        return Features(np.zeros(shape, dtype=np.int64), np.zeros(shape))
    data = replace(datasets.load(columns), is_partial=True)
    return layout.features(layout.encode(data))
