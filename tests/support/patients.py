"""A table of patients, and networks of four nodes over it, in virtual time."""

from __future__ import annotations

from typing import Any

import numpy as np
from virtual_network import VirtualNetwork

from gosta.estimation.estimand import Estimand
from gosta.estimation.setting import make_setting

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


def make_network(
    statistic: str, protocol: str = "tracking", **more: Any
) -> tuple[VirtualNetwork, Estimand]:
    interval = more.pop("interval", None)
    setting = make_setting(
        protocol, PATIENTS, statistic, "complete", 0, {}, nodes=4, interval=interval, **more
    )
    parts = setting.placement.split(setting.estimand.x)
    return VirtualNetwork(
        parts,
        EDGES,
        statistic=statistic,
        protocol=protocol,
        confidence_level=interval,
        exchanges_per_second=20.0,
    ), setting.estimand
