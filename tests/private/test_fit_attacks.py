"""What a member computes of rows from the totals of a fit's rounds: less the more rows there are.

The page of models tells these numbers, which `python benchmarks/models.py` prints.
"""

from __future__ import annotations

import numpy as np
from row_attacks import Shares, attack_cox, attack_logistic

DRAWS = 4


def mean(found: list[Shares]) -> Shares:
    return Shares(*np.mean(found, axis=0).tolist())


def logistic(n: int) -> Shares:
    return mean([attack_logistic(n, np.random.default_rng(seed)) for seed in range(DRAWS)])


def cox(min_cell: int) -> Shares:
    return mean([attack_cox(400, min_cell, np.random.default_rng(seed)) for seed in range(2)])


def test_few_rows_of_a_logistic_model_are_computed_from_its_totals() -> None:
    """With 6 rows for each of two columns, which the rule refuses, and with the 10 that it asks."""
    assert attack_logistic(12, np.random.default_rng(1)).computed == 1
    assert logistic(20).computed > 0.5


def test_forty_rows_for_each_column_hide_them_from_that() -> None:
    found = logistic(80)
    assert found.computed <= found.by_chance


def test_rows_in_small_bins_of_time_are_computed_and_in_large_ones_are_not() -> None:
    assert cox(5).computed > 0.5
    large = cox(40)
    assert large.computed <= large.by_chance
