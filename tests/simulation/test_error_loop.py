"""Compiled summaries of nodes' errors against numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from gosta.estimation.estimand import relative_errors
from gosta.runtime.arrays import Floats
from gosta.simulation.runner import ErrorSummary


def by_numpy(values: Floats, target: Floats, places: list[slice]) -> Floats:
    errors = np.max([relative_errors(values[..., one], target[..., one]) for one in places], axis=0)
    return np.stack(
        [errors.mean(axis=-1), errors.std(axis=-1), np.sort(errors)[..., errors.shape[-1] // 2]],
        axis=-1,
    )


@pytest.mark.parametrize("nodes", [*range(2, 20), 127, 128, 129, 255, 257, 1000, 1599, 4001])
def test_one_value_is_numpys_to_the_last_bit(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    values, target = rng.lognormal(size=(3, 2, nodes, 1)), np.array([[1.7]])
    np.testing.assert_array_equal(
        ErrorSummary(target, [slice(None)]).of(values), by_numpy(values, target, [slice(None)])
    )


@pytest.mark.parametrize("count", [2, 3, 7, 8, 9, 20])
@pytest.mark.parametrize("has_own_targets", [False, True])
def test_several_values(count: int, has_own_targets: bool) -> None:
    rng = np.random.default_rng(count)
    values, target = (
        rng.normal(size=(4, 1, 300, count)),
        rng.normal(size=(300 if has_own_targets else 1, count)),
    )
    for places in ([slice(None)], [slice(0, 1), slice(1, count)]):
        np.testing.assert_array_equal(
            ErrorSummary(target, places).of(values), by_numpy(values, target, places)
        )


def test_values_that_are_equal_zero_or_huge() -> None:
    target, places = np.array([[0.0]]), [slice(None)]
    for values in (
        np.zeros((1, 1, 500, 1)),
        np.ones((1, 1, 500, 1)),
        np.full((1, 1, 500, 1), 1e308),
    ):
        with np.errstate(over="ignore", invalid="ignore"):
            wanted = by_numpy(values, target, places)
        np.testing.assert_array_equal(ErrorSummary(target, places).of(values), wanted)
