"""Permutation tests: how often a statistic is as large if what it compares is shuffled.

With b of m shuffles at least as large as the statistic itself, the p-value is (b + 1)/(m + 1):
never 0, and never too small, however few shuffles there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from gosta.datasets.data import Data
from gosta.runtime import progress
from gosta.runtime.arrays import Floats, Integers
from gosta.significance.definition import HypothesisTest, Settings, hypothesis_test
from gosta.statistics import Statistic, find
from gosta.statistics.exact import value_of_rows
from gosta.statistics.pairs import kernel_matrix

BATCH = 64  # permutations that are computed at once
# relative difference up to which two values are taken for the same, rounded differently
EQUAL = 1e-10


@hypothesis_test("energy-distance", "mmd")
def two_samples(data: Data, settings: Settings, name: str) -> HypothesisTest:
    """Test whether two samples have one distribution, by shuffling the samples of rows."""
    statistic = find(name)
    x = statistic.encode_rows(data, settings.options)
    if statistic.fast is not None and statistic.fast(x) is not None:

        def shuffled(order: Integers) -> Floats:
            return np.column_stack([x[:, :-1], x[order, -1]])

        return _test(
            statistic, x, settings, lambda orders: _values(statistic, map(shuffled, orders))
        )
    plus, values_of = x[:, -1] > 0, _matrix_values(statistic, x)
    return _test(
        statistic,
        x,
        settings,
        lambda orders: values_of(np.array([plus[order] for order in orders]).T),
    )


@hypothesis_test("distance-correlation")
def distance_correlation(data: Data, settings: Settings, name: str) -> HypothesisTest:
    """Test whether two parts of the columns are independent, by shuffling the second one."""
    statistic = find(name)
    x, split = statistic.encode_rows(data, settings.options), int(settings.options.get("split", 1))

    def shuffled(order: Integers) -> Floats:
        return np.column_stack([x[:, :split], x[order, split:]])

    return _test(
        statistic,
        x,
        settings,
        lambda orders: _values(statistic, map(shuffled, orders), {"split": split}),
    )


def _test(
    statistic: Statistic,
    x: Floats,
    settings: Settings,
    values_of: Callable[[list[Integers]], Floats],
) -> HypothesisTest:
    settings.require_two_sided(statistic.name)
    n, wanted = len(x), settings.permutations
    rng = np.random.default_rng(settings.seed)
    observed = float(values_of([np.arange(n)])[0])
    as_large = 0
    with (
        progress.bar(f"{statistic.name}, {wanted:,} permutations", wanted) as advance,
        progress.silent(),
    ):
        for start in range(0, wanted, BATCH):
            values = values_of([rng.permutation(n) for _ in range(min(BATCH, wanted - start))])
            as_large += int(
                (values >= observed - EQUAL * np.maximum(abs(observed), np.abs(values))).sum()
            )
            advance(len(values))
    method = f"permutation test, {wanted:,} permutations, seed {settings.seed}"
    return HypothesisTest(statistic.name, observed, (as_large + 1) / (wanted + 1), n, method, {})


def _values(
    statistic: Statistic, samples: Iterable[Floats], options: dict[str, int] | None = None
) -> Floats:
    return np.array([value_of_rows(statistic, x, options or {}) for x in samples])


def _matrix_values(statistic: Statistic, x: Floats) -> Callable[[Floats], Floats]:
    """Return a function from columns of samples, n × m, to statistics, from one matrix of pairs."""
    n = len(x)
    # one is not 0 in each pair
    matrix = kernel_matrix(statistic, x, {}, np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]))
    if statistic.normalisation == "U":
        np.fill_diagonal(matrix, 0.0)
    row_totals = matrix.sum(axis=1)
    total = float(row_totals.sum())
    own = 1 if statistic.normalisation == "U" else 0

    def values_of(samples: Floats) -> Floats:
        chosen = samples.astype(np.float64)
        plus = chosen.sum(axis=0)
        first = (chosen * (matrix @ chosen)).sum(axis=0)
        across = row_totals @ chosen - first  # each pair once
        second = total - first - 2 * across
        counts = plus * (n - plus), plus * (plus - own), (n - plus) * (n - plus - own)
        assert statistic.final is not None
        return np.asarray(statistic.final((across, first, second, *counts)))

    return values_of
