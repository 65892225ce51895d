"""Values far from zero, very large or very small: no digits cancel, and what cannot be computed is
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from fault_schedules import check_replay
from virtual_network import VirtualNetwork

import gosta
from gosta.datasets import Data
from gosta.runtime.arrays import Floats
from gosta.sketches import SKETCHES, Bins, Layout, make_layout
from gosta.sketches.layout import BITS
from gosta.statistics import STATISTICS

Exact = Sequence[Fraction]
RATIOS = [1.0, 1e7, 1e9, 1e12]  # of mean and standard deviation


def moment_rows(ratio: float, n: int) -> tuple[Floats, float, float]:
    """Two columns with means far from zero, the variance of the first and the covariance, from
    centred values.
    """
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, 2))
    x[:, 1] += x[:, 0]
    x += [ratio, -3 * ratio]
    centred = x - x[0]
    centred -= centred.mean(axis=0)
    products: Floats = centred.T @ centred / (n - 1)
    return x, float(products[0, 0]), float(products[0, 1])


@pytest.mark.parametrize("ratio", RATIOS)
def test_variance_and_covariance_in_simulations(ratio: float) -> None:
    x, variance, covariance = moment_rows(ratio, 60)
    settings: dict[str, Any] = {
        "graph": "complete",
        "iterations": 60 * 150,
        "runs": 1,
        "checkpoints": 1,
    }
    for nodes in (None, 6):
        first = gosta.simulate(x[:, 0], "variance", nodes=nodes, **settings)
        second = gosta.simulate(x, "covariance", nodes=nodes, **settings)
        assert first.setting.protocol.averages_moments
        np.testing.assert_allclose(first.estimates.values[0, -1], variance, rtol=1e-7)
        np.testing.assert_allclose(second.estimates.values[0, -1], covariance, rtol=1e-7)
        plain = gosta.simulate(x, "covariance", nodes=nodes, engine="reference", **settings)
        assert (plain.estimates.values == second.estimates.values).all()


@pytest.mark.parametrize("ratio", RATIOS)
def test_variance_and_covariance_at_real_nodes(ratio: float) -> None:
    """Six sites, among them one with a single row; their journals replay to the last bit."""
    x, variance, covariance = moment_rows(ratio, 80)
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4)]
    for statistic, rows, exact in (("variance", x[:, :1], variance), ("covariance", x, covariance)):
        parts = np.split(rows, [1, 12, 30, 45, 60])
        network = VirtualNetwork(parts, edges, statistic=statistic, exchanges_per_second=20.0)
        network.clock.run(25.0)
        network.check()
        check_replay(network)
        np.testing.assert_allclose(network.estimates()[:, 0], exact, rtol=1e-6)
        assert len({peer.estimator.offset for peer in network.peers.values()}) == 1
        assert all(peer.report() is not None for peer in network.peers.values())


def test_mmd_far_from_zero() -> None:
    rng = np.random.default_rng(2)
    label = np.arange(80) % 2
    # differences that floats near 10¹⁵ have exactly
    x = np.round(8 * (rng.normal(size=80) + label)) * 4.0
    near, far = (gosta.exact({"x": x + offset, "label": label}, "mmd") for offset in (0.0, 1e15))
    assert far == pytest.approx(near, rel=1e-10)


def test_a_site_refuses_values_that_lose_their_digits_in_units_of_the_bandwidth() -> None:
    rows = {"x": 1e15 + np.arange(6.0), "label": [0, 1, 0, 1, 0, 1]}
    site = replace(gosta.datasets.load(rows), is_partial=True, declared_classes=("0", "1"))
    with pytest.raises(gosta.GostaError, match="subtract one number"):
        STATISTICS["mmd"].encode_rows(site, {"bandwidth": 2.0})


@pytest.mark.parametrize("size", [1e150, 1e-100])
def test_distance_correlation_of_large_and_small_values(size: float) -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=50)
    columns = np.column_stack([x, x + 0.1 * rng.normal(size=50)])
    exact = gosta.exact(columns, "distance-correlation")
    assert gosta.exact(size * columns, "distance-correlation") == pytest.approx(exact, rel=1e-9)
    wide = np.column_stack([columns, columns[:, 1]])  # several numbers in a part: no fast form
    options: dict[str, Any] = {"columns": [0, 1, 2], "split": 1}
    exact = gosta.exact(wide, "distance-correlation", **options)
    assert gosta.exact(size * wide, "distance-correlation", **options) == pytest.approx(
        exact, rel=1e-9
    )


def test_distance_correlation_of_values_whose_squares_vanish_is_refused() -> None:
    columns = 1e-200 * np.random.default_rng(4).normal(size=(20, 2))
    with pytest.raises(gosta.NumericalError, match="too small; use smaller units"):
        gosta.exact(columns, "distance-correlation")


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_distances_of_large_and_small_values(size: float) -> None:
    rows = np.random.default_rng(6).normal(size=(30, 3))
    for statistic in ("mean-pairwise-distance", "energy-distance"):
        data = {f"c{k}": rows[:, k] for k in range(3)} | {"label": np.arange(30) % 2}
        large = {
            name: size * column if name != "label" else column for name, column in data.items()
        }
        columns = ["c0", "c1", "c2"]
        exact = gosta.exact(data, statistic, columns=columns)
        assert gosta.exact(large, statistic, columns=columns) == pytest.approx(
            size * float(exact), rel=1e-12
        )


def test_gini_near_the_largest_float() -> None:
    x = np.random.default_rng(7).uniform(0.5, 1.0, size=100_000)
    for statistic, scale in (("gini-mean-difference", 1e300), ("gini-index", 1.0)):
        exact = float(gosta.exact(x, statistic))
        assert gosta.exact(1e300 * x, statistic) == pytest.approx(scale * exact, rel=1e-9)


def test_whole_numbers_that_overflow_when_compiled_are_refused() -> None:
    def cubed(x: Any, y: Any) -> Any:
        return (int(x[0]) * int(y[0])) ** 3

    def cubed_floats(x: Any, y: Any) -> Any:
        return (x[0] * y[0]) ** 3

    rows = np.random.default_rng(0).integers(10_000, 100_000, size=300).astype(float)
    with pytest.raises(gosta.InputError, match=r"compiled and .* in Python.*overflow"):
        gosta.exact(rows, gosta.statistic(name="cubed")(cubed))
    assert gosta.exact(rows, gosta.statistic(name="cubed-floats")(cubed_floats)) > 1e24


def test_whole_numbers_that_floats_round_are_refused() -> None:
    large = 2**53 + 1
    for column in (
        np.array([1, large, 3]),
        np.array([1, large, 3], dtype=object),
        ["1", str(large), "3"],
    ):
        with pytest.raises(gosta.DataError, match="in row 2: floats round whole numbers"):
            gosta.exact({"x": column}, "variance")
    assert gosta.exact({"x": np.array([1, 2**53 - 1, 3])}, "gini-mean-difference") > 1e15
    assert gosta.exact({"x": ["1", "1e17", "3"]}, "gini-mean-difference") > 1e15
    # names of classes are no numbers
    classes = {"x": [1.0, 2.0, 3.0, 4.0], "label": [large, large, 5, 5]}
    assert gosta.exact(classes, "auc") in (0.0, 1.0)


@pytest.mark.parametrize(
    ("statistic", "scale"), [("variance", 6e4), ("variance", 1e25), ("gini-mean-difference", 1e48)]
)
def test_intervals_at_real_nodes_of_large_values(statistic: str, scale: float) -> None:
    """Nodes also tell means of products of four kernel values, which is no reason to reject an
    honest neighbour.
    """
    rows = scale * np.random.default_rng(3).lognormal(0.0, 0.7, (40, 1))
    parts, triangle = np.split(rows, [10, 25]), [(0, 1), (1, 2), (0, 2)]
    network = VirtualNetwork(
        parts, triangle, statistic=statistic, confidence_level=0.95, exchanges_per_second=20.0
    )
    network.clock.run(30.0)
    network.check()
    assert not network.events["rejected"]
    exact = float(gosta.exact(rows, statistic))
    for peer in network.peers.values():
        report = peer.report()
        assert report is not None
        assert report.value[0] == pytest.approx(exact, rel=0.05)
        assert report.low is not None
        assert report.low < exact


def test_rows_of_real_nodes_whose_products_overflow_are_refused() -> None:
    rows = 1e40 * np.arange(1.0, 31.0)[:, None]
    with pytest.raises(
        gosta.DataError, match=r"variance: kernel values of .* are too large; use larger units"
    ):
        VirtualNetwork(
            np.split(rows, 3), [(0, 1), (1, 2)], statistic="variance", confidence_level=0.95
        )
    ordinary = [np.arange(1.0, 11.0)[:, None], np.arange(1.0, 11.0)[:, None]]
    large = np.array([[1e40]] * 5)  # equal rows: only those with others are too large
    network = VirtualNetwork(
        [*ordinary, large], [(0, 1), (1, 2)], statistic="variance", confidence_level=0.95
    )
    network.clock.run(20.0)
    assert network.events["rejected"] > 0
    assert not network.events["suspended"]
    for name in ("node-0", "node-1"):
        report = network.peers[name].report()
        assert report is not None
        assert np.isfinite(report.value).all()


def differences(x: Exact, y: Exact) -> Fraction:
    """Add up |x − y| over all pairs of a number of x and one of y."""
    return sum((abs(a - b) for a in x for b in y), Fraction(0))


def covariance(x: Exact, y: Exact) -> Fraction:
    n, (first, second) = len(x), (sum(part, Fraction(0)) for part in (x, y))
    return (sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0)) - first * second / n) / (
        n - 1
    )


def energy(x: Exact, signs: Floats) -> Fraction:
    first, second = (
        [a for a, sign in zip(x, signs, strict=True) if sign == side] for side in (1, -1)
    )
    m, n = len(first), len(second)
    within = differences(first, first) / m**2 + differences(second, second) / n**2
    return 2 * differences(first, second) / (m * n) - within


def scatter(x: Sequence[Exact], clusters: Floats) -> Fraction:
    points = list(zip(zip(*x, strict=True), clusters, strict=True))
    pairs = [(p, q) for p, one in points for q, other in points if one == other]
    total = sum(((a - b) ** 2 for p, q in pairs for a, b in zip(p, q, strict=True)), Fraction(0))
    return total / (len(points) * (len(points) - 1))


def lorenz(x: Exact) -> list[Fraction]:
    ordered, shares = sorted(x), []
    sums = [Fraction(0), *accumulate(ordered), sum(x)]
    for k in range(1, 10):
        whole, rest = divmod(k * len(x), 10)
        shares.append((sums[whole] + Fraction(rest, 10) * (sums[whole + 1] - sums[whole])) / sum(x))
    return shares


# What brackets must hold: values over rows in which every number is clipped to its range, without
# any rounding.
EXACT: dict[str, Callable[[Sequence[Exact], Floats], list[Fraction]]] = {
    "gini-mean-difference": lambda x, _: [differences(x[0], x[0]) / (len(x[0]) * (len(x[0]) - 1))],
    "gini-index": lambda x, _: [differences(x[0], x[0]) / (2 * len(x[0]) * sum(x[0]))],
    "lorenz-curve": lambda x, _: lorenz(x[0]),
    "quantiles": lambda x, _: [
        sorted(x[0])[max(1, -(-k * len(x[0]) // 10)) - 1] for k in range(1, 10)
    ],
    "variance": lambda x, _: [covariance(x[0], x[0])],
    "covariance": lambda x, _: [covariance(*x)],
    "mean-pairwise-distance": lambda x, _: [
        differences(x[0], x[0]) / (len(x[0]) * (len(x[0]) - 1))
    ],
    "energy-distance": lambda x, signs: [energy(x[0], signs)],
    "squared-scatter": lambda x, clusters: [scatter(x, clusters)],
}


def test_every_sketch_of_values_is_compared_with_exact_ones() -> None:
    alike = {"table-one"}  # has the sums of quantiles, and of powers as variance
    assert {name for name, made in SKETCHES.items() if made.needs_range} == set(EXACT) | alike


def check_bracket(layout: Layout, table: dict[str, Floats]) -> None:
    """Check that a bracket holds the value, in fractions, of rows clipped to their ranges."""
    (part,) = layout.parts
    x = layout.encode(Data("rows", table, label="label", features=part.columns, is_partial=True))
    axes = enumerate(part.sketch.axes)
    clipped = [
        [Fraction(v) for v in np.clip(x[:, k], axis.low, axis.high).tolist()] for k, axis in axes
    ]
    if part.sketch.name in ("gini-index", "lorenz-curve") and not any(clipped[0]):
        return
    (result,) = layout.results(layout.sums(x) / 2.0**BITS)
    assert result.has_value
    for value, low, high in zip(
        EXACT[part.sketch.name](clipped, x[:, -1]), result.low, result.high, strict=True
    ):
        assert Fraction(low) <= value <= Fraction(high), (part.sketch.name, float(value), low, high)


def some_column(rng: np.random.Generator, n: int) -> Floats:
    """Return numbers, most of them from 0 to 1: constant, with ties or heavy tails, close together,
    or none of it.
    """
    kind = rng.integers(6)
    if kind == 0:
        return np.full(n, rng.integers(0, 5) / 4.0)
    if kind == 1:
        return rng.integers(0, 9, n) / 8
    if kind == 2:
        return rng.standard_cauchy(n)
    if kind == 3:
        return rng.integers(0, 2, n).astype(np.float64)
    return 0.5 + 1e-3 * rng.normal(size=n) if kind == 4 else rng.random(n)


@pytest.mark.parametrize("mean", [0.0, 1e3, 1e6, 1e9, 1e12, 1e14])
@pytest.mark.parametrize("name", EXACT)
def test_brackets_are_certain_wherever_rows_lie(name: str, mean: float) -> None:
    """Of 150 data sets none has a bracket beside the value, whose ranges begin and end anywhere."""
    made, rng = SKETCHES[name], np.random.default_rng([int(np.log10(mean + 1)), 8])
    for seed in range(150):
        n = int(rng.choice([2, 3, 5, 12, 25]))
        label = rng.integers(0, 2, n)
        label[:2] = 0, 1
        table: dict[str, Any] = {"label": label}
        ranges: dict[str, tuple[float, float]] = {}
        names = made.roles or (("first", "second") if name == "squared-scatter" else ("first",))
        for column, sign in zip(names, (1, -1), strict=False):
            width = float(
                rng.choice(
                    [4.0, 0.1, 10 * rng.random(), 1e3 * rng.random(), max(1.0, mean * rng.random())]
                )
            )
            low = sign * mean * float(rng.choice([1.0, 0.9 + 0.1 * rng.random()])) + width * float(
                rng.random()
            )
            ranges[column] = (low, max(low + width, float(np.nextafter(low, np.inf))))
            table[column] = low + width * some_column(rng, n)
            if name in ("gini-index", "lorenz-curve"):
                table[column] = np.abs(table[column])
        layout = make_layout(
            name,
            Bins([1, 2, 8, 40][seed % 4], ranges),
            columns=() if made.roles else names,
            label="label",
            classes=(0, 1),
        )
        check_bracket(layout, table)


@pytest.mark.parametrize(
    "name", ["gini-mean-difference", "gini-index", "lorenz-curve", "quantiles"]
)
def test_brackets_are_certain_with_bins_much_narrower_than_the_range(name: str) -> None:
    rng = np.random.default_rng(4)
    for _ in range(300):
        n, high = int(rng.choice([2, 3, 5, 12, 25])), float(10.0 ** rng.integers(0, 15))
        low = 0.0 if name in ("gini-index", "lorenz-curve") else -high * float(rng.random())
        start, width = low + (high - low) * rng.random(), high * 10.0 ** -rng.integers(3, 16)
        values = start + width * rng.random(n)
        if rng.random() < 0.3:
            values[: rng.integers(n)] = low + (high - low) * rng.random()
        edges = np.unique(start + width * np.linspace(-0.1, 1.1, int(rng.choice([2, 4, 9]))))
        edges = edges[(edges > low) & (edges < high)]
        if len(edges):
            bins = Bins(ranges={"value": (low, high)}, edges={"value": tuple(edges.tolist())})
            check_bracket(make_layout(name, bins, columns=("value",)), {"value": values})


def counted_layout(name: str, bins: int) -> Layout:
    """Return a layout whose bins hold one whole number each, from 0 on."""
    edges = tuple((np.arange(1, bins) - 0.5).tolist())
    settings = Bins(ranges={"": (-1.0, bins + 1.0)}, edges={"time": edges, "score": edges})
    return make_layout(name, settings, score="score", label="label", classes=(0, 1))


def check_counts(name: str, counts: Any, value: Fraction) -> None:
    """Check the bracket that follows from counts of many rows, of a curve at its first point."""
    (result,) = counted_layout(name, counts.shape[1]).results(counts.ravel().astype(np.float64))
    assert Fraction(result.low[0]) <= value <= Fraction(result.high[0]), (float(value), result)


def test_brackets_of_shares_are_certain_where_differences_of_large_counts_are_small() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        died, left = int(10 ** rng.uniform(2, 6)), int(rng.integers(2, 6))
        check_counts("kaplan-meier", np.array([[0, 0], [died, left]]), Fraction(left, died + left))
    for _ in range(30):
        counts = np.full((2, int(rng.choice([1000, 4000]))), int(rng.integers(1, 4)))
        counts[rng.integers(2), rng.integers(counts.shape[1])] += 1
        positive, negative = (list(accumulate(part)) for part in counts.tolist())
        m, n = positive[-1], negative[-1]
        gap = max(abs(a * n - b * m) for a, b in zip(positive, negative, strict=True))
        check_counts("kolmogorov-smirnov", counts, Fraction(gap, m * n))
    for _ in range(300):
        # censored and events, of both classes
        counts = np.zeros((4, int(rng.choice([4, 20, 60]))), dtype=np.int64)
        counts[rng.choice([1, 3], counts.shape[1] - 1), np.arange(counts.shape[1] - 1)] = 1
        counts[[0, 2], -1] = int(10 ** rng.uniform(2, 6.5)), rng.integers(1, 3)
        check_counts("log-rank", counts, log_rank(counts.tolist()))


def log_rank(counts: list[list[int]]) -> Fraction:
    """Return the statistic of counts in bins with one event at most: that of one time each, so
    without ties.
    """
    first, second, gap, variance = (
        sum(counts[0] + counts[1]),
        sum(counts[2] + counts[3]),
        Fraction(0),
        Fraction(0),
    )
    for lost, died, other_lost, other_died in zip(*counts, strict=True):
        n, events = first + second, died + other_died
        gap += died - events * Fraction(first, n)
        variance += events * Fraction(first * second, n**2)
        first, second = first - lost - died, second - other_lost - other_died
    return gap**2 / variance
