"""Values far from zero, very large or very small: no digits cancel, and what cannot be computed is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_faults import check_replay
from virtual_network import VirtualNetwork

import gosta
from gosta.runtime.arrays import Floats

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
