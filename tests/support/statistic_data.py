"""Built-in statistics, and data that every one of them can use."""

from __future__ import annotations

import numpy as np

from gosta.datasets import Data
from gosta.statistics import STATISTICS

ALL = [s for s in STATISTICS.values() if s.kernel.__module__.startswith("gosta.")]


# Functions of means over pairs; the others, medians over pairs and ranks of rows, are in
# test_pair_medians.py.
BUILT_IN = [s for s in ALL if s.median is None and not s.is_per_row]


def make_data(rows: list[tuple[float, ...]]) -> Data:
    """Make data that every statistic can use: two non-negative columns, classes, and an event
    column.
    """
    x = np.array(rows, dtype=float)
    columns = {"first": x[:, 0], "second": x[:, 1], "label": x[:, 2] > 0, "event": x[:, 3] > 0}
    columns |= {"value": x[:, 0], "time": x[:, 0], "score": x[:, 1]}
    return Data("rows", columns, label="label", score="score", features=("first", "second"))
