"""Nodes that compute: every statistic and both protocols, in virtual time, against the value over all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_faults import replays
from world import World

import gosta
from gosta.problem import Problem, settle

RNG = np.random.default_rng(3)
N = 60
SCORES = RNG.normal(size=N)
PATIENTS = {
    "score": SCORES,
    "label": np.arange(N) % 3 == 0,
    "second": np.exp(0.7 * SCORES + 0.5 * RNG.normal(size=N)),
}
CASES: dict[str, dict[str, Any]] = {
    "auc": {"interval": 0.95},
    "mann-whitney": {},
    "kendall-tau": {"columns": ["score", "second"], "interval": 0.9},
    "gini-mean-difference": {"columns": "second"},
    "spearman-rho": {"columns": ["score", "second"]},
    "distance-correlation": {"columns": ["score", "second"]},
    "variance": {"columns": "second"},
    "within-cluster-scatter": {"columns": ["score", "second"]},
}
EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (1, 3)]


def network(statistic: str, protocol: str = "tracking", **more: Any) -> tuple[World, Problem]:
    interval = more.pop("interval", None)
    problem = settle(protocol, PATIENTS, statistic, "complete", 0, {}, nodes=4, interval=interval, **more).problem
    parts = np.split(problem.x, np.cumsum(problem.rows)[:-1])
    return World(parts, EDGES, statistic=statistic, protocol=protocol, interval=interval, rate=20.0), problem


@pytest.mark.parametrize("statistic", CASES)
def test_all_nodes_find_the_value_over_all_rows(statistic: str) -> None:
    world, problem = network(statistic, **CASES[statistic])
    world.clock.run(60.0)
    world.check()
    replays(world)
    exact = gosta.exact(PATIENTS, statistic, columns=CASES[statistic].get("columns"))
    np.testing.assert_allclose(world.estimates()[:, 0], exact, rtol=0.02)
    reports = [peer.report() for peer in world.peers.values()]
    assert all(report is not None and report.expected_error is not None for report in reports)
    if "interval" in CASES[statistic]:
        ends = np.array([(report.low, report.high) for report in reports if report is not None])
        np.testing.assert_allclose(ends, np.tile(problem.pooled_interval(), (4, 1)), rtol=0.05)
    assert {peer.site.rows_met for peer in world.peers.values()} == {N}


@pytest.mark.parametrize("statistic", ["auc", "gini-mean-difference"])
def test_gosta_async_too(statistic: str) -> None:
    world, _ = network(statistic, "gosta-async", columns=CASES[statistic].get("columns"))
    world.clock.run(120.0)
    world.check()
    replays(world)
    exact = gosta.exact(PATIENTS, statistic, columns=CASES[statistic].get("columns"))
    np.testing.assert_allclose(world.estimates()[:, 0], exact, rtol=0.05)
