"""How much one row changes the sums, by brute force: never more than noise is made for.

Neighbouring tables differ in one row, which is replaced by another one. Laplace noise is made for
twice the features of a row, Gaussian noise for `squared_change`. Rows are taken from what is worst:
ends of ranges and of bins, the next floats on both sides, numbers far beyond, the other class,
event and stratum.
"""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from sketch_cases import OPTIONS, STRATA, Case, encode, make_table, rounds_of, sums_of, take

from gosta.datasets import Data
from gosta.private.accounting import gaussian_mu
from gosta.private.noise import Noise, choose_noise
from gosta.private.settings import PrivateSettings
from gosta.sketches import SKETCHES, Bins, Layout, make_layout
from gosta.sketches.layout import ROWS_PER_CHUNK

SEVERAL = (
    "auc,gini-index:value,variance:value,quantiles:value,kendall-tau:first+second,"
    "covariance:first+second"
)
BINNED = [name for name, made in SKETCHES.items() if made.is_binned]
CENTROIDS = np.array([[1.0, 0.0], [3.0, 1.0], [9.0, 9.0]])
NARROW_EDGES = {"value": (0.1, 0.1 + 1e-15, 3.9)}
CASES = [
    *(Case(name, name) for name in SKETCHES),
    *(Case(f"{name} in strata", name, {"strata": STRATA}) for name in SKETCHES),
    *(Case(f"{name} in one bin", name, {"bins": 1}) for name in BINNED),
    *(Case(f"{name} finds edges", name, {"find_edges": True})
      for name in BINNED if SKETCHES[name].finds_edges),
    *(Case(f"{name} of three columns", name, {"columns": ("first", "second", "time")})
      for name, made in SKETCHES.items() if not made.roles),
    Case("energy-distance of one column", "energy-distance", {"columns": ("value",)}),
    Case("centroids", "squared-scatter", {"options": {"centroids": CENTROIDS}}),
    Case("several", SEVERAL),
    Case("several in strata", SEVERAL, {"strata": STRATA}),
    Case("counts", "auc,roc-curve,quantiles:value,kendall-tau:first+second,log-rank"),
    Case("counts in strata", "auc,quantiles:value,kendall-tau:first+second",
         {"strata": STRATA, "find_edges": True}),
    Case("several find edges", SEVERAL, {"strata": STRATA, "find_edges": True}),
    Case("declared edges", "gini-index,lorenz-curve,variance:value", {"edges": NARROW_EDGES}),
]  # fmt: skip
every = pytest.mark.parametrize("case", CASES, ids=[case.title.replace(" ", "-") for case in CASES])


def noises_of(layout: Layout, find_edges: bool) -> list[Noise]:
    """Return the noise of several settings: of both laws, on coarse and on fine grids."""
    choices = [(1.0, 0.0, 3)] if layout.are_counts else []
    choices += [(0.5, 1e-6, 2), (1.0, 1e-9, 1000), (20.0, 1e-3, 5), (100.0, 0.1, 100_000)]
    settings = (
        (PrivateSettings(epsilon=epsilon, delta=delta, find_edges=find_edges), n)
        for epsilon, delta, n in choices
    )
    return [choose_noise(one, layout, n) for one, n in settings]


@every
def test_a_row_changes_sums_by_no_more_than_noise_is_made_for(case: Case) -> None:
    layouts = rounds_of(case)
    for layout in layouts:
        noises = noises_of(layout, len(layouts) > 1)
        x = encode(layout, make_table(150, 4))
        for bits in {noise.bits for noise in noises} | {24, 30}:
            rows = np.array([sums_of(layout, row[None], bits) for row in x])
            assert rows.min() >= 0
            by_sum, squared = 0, 0.0
            for row in rows:
                by_sum = max(by_sum, int(np.abs(rows - row).sum(axis=1).max()))
                squared = max(squared, float((((rows - row) / 2.0**bits) ** 2).sum(axis=1).max()))
            assert by_sum <= 2 * layout.features_per_row << bits
            assert squared <= layout.squared_change * (1 + 1e-12)
            if (
                layout.are_counts and case.changes.get("bins") != 1
            ):  # so the search finds the worst case
                assert by_sum == 2 * layout.features_per_row << bits
            for noise in noises:
                if noise.bits == bits and noise.law == "laplace":
                    assert by_sum / 2**bits <= noise.scale * noise.epsilon * (1 + 1e-12)
                elif noise.bits == bits:
                    reach = noise.scale * gaussian_mu(noise.epsilon, noise.delta)
                    assert np.sqrt(squared) <= reach
        assert {noise.law for noise in noises} >= {"gaussian"} or layout.are_counts


@every
def test_tables_that_differ_in_one_row_differ_by_that_row_wherever_it_is(case: Case) -> None:
    """To the last bit: also where other rows move, as one is inserted and another one removed."""
    rng = np.random.default_rng(6)
    for layout in rounds_of(case):
        pool = make_table(220, 5)
        x = encode(layout, pool)
        grids = (
            {noise.bits for noise in noises_of(layout, False)}
            | {24}
            | ({0, 5, 9} if layout.are_counts else {9})
        )
        for bits in grids:
            own = {k: sums_of(layout, x[[k]], bits) for k in range(len(x))}
            for _ in range(4):
                n = int(rng.integers(2, 40))
                rows, new = rng.integers(0, len(x), n), int(rng.integers(len(x)))
                at, last = int(rng.integers(n)), rows[-1]
                replaced = rows.copy()
                replaced[at] = new
                moved = np.insert(rows[:-1], rng.integers(n), new)
                before, in_place, elsewhere, shuffled = (
                    sums_of(layout, encode(layout, take(pool, chosen)), bits)
                    for chosen in (rows, replaced, moved, rng.permutation(moved))
                )
                np.testing.assert_array_equal(in_place - before, own[new] - own[int(rows[at])])
                np.testing.assert_array_equal(elsewhere - before, own[new] - own[int(last)])
                np.testing.assert_array_equal(shuffled, elsewhere)


@pytest.mark.parametrize("name", SKETCHES)
@pytest.mark.parametrize("bits", [3, 24])
def test_many_rows_in_any_order_have_the_same_sums(name: str, bits: int) -> None:
    """Also in other chunks, and with features that are not on the grid."""
    layout = Case(name, name).layout()
    x = encode(layout, make_table(ROWS_PER_CHUNK + 37, 7))
    first = sums_of(layout, x, bits)
    order = np.random.default_rng(1).permutation(len(x))
    for rows in (order, np.roll(np.arange(len(x)), 1), np.arange(len(x))[::-1]):
        np.testing.assert_array_equal(sums_of(layout, x[rows], bits), first)
    parts = np.split(np.arange(len(x)), [1, 2, 3, 5, 8, 13, 100, 1001, ROWS_PER_CHUNK - 1])
    np.testing.assert_array_equal(
        np.sum([sums_of(layout, x[part], bits) for part in parts], axis=0), first
    )


def test_features_of_many_columns_do_not_depend_on_where_a_row_is() -> None:
    """Linear algebra rounds rows of a block otherwise than single rows: here nothing does."""
    columns = tuple(f"c{k}" for k in range(13))
    rng = np.random.default_rng(2)
    table = {name: rng.normal(size=301) for name in columns} | {"label": rng.integers(0, 2, 301)}
    settings = Bins(5, {"": (-2.0, 2.5)})
    for name in ("squared-scatter", "mean-pairwise-distance", "energy-distance", "mmd"):
        options = OPTIONS.get(name, {})
        layout = make_layout(
            name, settings, columns=columns, label="label", classes=(0, 1), options=options
        )
        x = layout.encode(
            Data("rows", dict(table), label="label", features=columns, is_partial=True)
        )
        (sketch,) = layout.sketches
        whole, last = sketch.features(x), sketch.features(x[1:])
        single = [sketch.features(row[None]) for row in x]
        for k in (0, 1):
            np.testing.assert_array_equal(whole[k][1:], last[k])
            np.testing.assert_array_equal(whole[k], np.concatenate([one[k] for one in single]))


def test_every_sketch_is_checked_alone_and_in_strata() -> None:
    checked = list(chain.from_iterable(case.statistics.split(",") for case in CASES))
    assert all(checked.count(name) >= 2 for name in SKETCHES)
