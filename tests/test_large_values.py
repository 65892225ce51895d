"""Values far from zero, very large or very small: no digits cancel, and what cannot be computed is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_faults import check_replay
from virtual_network import VirtualNetwork

import gosta
from gosta.runtime.arrays import Floats
from gosta.statistics import STATISTICS

RATIOS = [1.0, 1e7, 1e9, 1e12]  # of mean and standard deviation


def moment_rows(ratio: float, n: int) -> tuple[Floats, float, float]:
    """Two columns with means far from zero, the variance of the first and the covariance, from centred values."""
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
    settings: dict[str, Any] = {"graph": "complete", "iterations": 60 * 150, "runs": 1, "checkpoints": 1}
    for nodes in (None, 6):
        first = gosta.simulate(x[:, 0], "variance", nodes=nodes, **settings)
        second = gosta.simulate(x, "covariance", nodes=nodes, **settings)
        assert first.info.averages_moments
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
    x = np.round(8 * (rng.normal(size=80) + label)) * 4.0  # differences that floats near 10¹⁵ have exactly
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
    assert gosta.exact(size * wide, "distance-correlation", **options) == pytest.approx(exact, rel=1e-9)


def test_distance_correlation_of_values_whose_squares_vanish_is_refused() -> None:
    columns = 1e-200 * np.random.default_rng(4).normal(size=(20, 2))
    with pytest.raises(gosta.NumericalError, match="too small; use smaller units"):
        gosta.exact(columns, "distance-correlation")


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_distances_of_large_and_small_values(size: float) -> None:
    rows = np.random.default_rng(6).normal(size=(30, 3))
    for statistic in ("mean-pairwise-distance", "energy-distance"):
        data = {f"c{k}": rows[:, k] for k in range(3)} | {"label": np.arange(30) % 2}
        large = {name: size * column if name != "label" else column for name, column in data.items()}
        columns = ["c0", "c1", "c2"]
        exact = gosta.exact(data, statistic, columns=columns)
        assert gosta.exact(large, statistic, columns=columns) == pytest.approx(size * float(exact), rel=1e-12)


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
    for column in (np.array([1, large, 3]), np.array([1, large, 3], dtype=object), ["1", str(large), "3"]):
        with pytest.raises(gosta.DataError, match="in row 2: floats round whole numbers"):
            gosta.exact({"x": column}, "variance")
    assert gosta.exact({"x": np.array([1, 2**53 - 1, 3])}, "gini-mean-difference") > 1e15
    assert gosta.exact({"x": ["1", "1e17", "3"]}, "gini-mean-difference") > 1e15
    classes = {"x": [1.0, 2.0, 3.0, 4.0], "label": [large, large, 5, 5]}  # names of classes are no numbers
    assert gosta.exact(classes, "auc") in (0.0, 1.0)


@pytest.mark.parametrize(
    ("statistic", "scale"), [("variance", 6e4), ("variance", 1e25), ("gini-mean-difference", 1e48)]
)
def test_intervals_at_real_nodes_of_large_values(statistic: str, scale: float) -> None:
    """Nodes also tell means of products of four kernel values, which is no reason to reject an honest neighbour."""
    rows = scale * np.random.default_rng(3).lognormal(0.0, 0.7, (40, 1))
    parts, triangle = np.split(rows, [10, 25]), [(0, 1), (1, 2), (0, 2)]
    network = VirtualNetwork(parts, triangle, statistic=statistic, confidence_level=0.95, exchanges_per_second=20.0)
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
    with pytest.raises(gosta.DataError, match=r"variance: kernel values of .* are too large; use larger units"):
        VirtualNetwork(np.split(rows, 3), [(0, 1), (1, 2)], statistic="variance", confidence_level=0.95)
    ordinary = [np.arange(1.0, 11.0)[:, None], np.arange(1.0, 11.0)[:, None]]
    large = np.array([[1e40]] * 5)  # equal rows: only those with others are too large
    network = VirtualNetwork([*ordinary, large], [(0, 1), (1, 2)], statistic="variance", confidence_level=0.95)
    network.clock.run(20.0)
    assert network.events["rejected"] > 0
    assert not network.events["suspended"]
    for name in ("node-0", "node-1"):
        report = network.peers[name].report()
        assert report is not None
        assert np.isfinite(report.value).all()
