"""What faults cost each protocol in simulations, and whether real nodes do the same.

The first table is simulated: the AUC of 569 patients, one per node, after 100 iterations a node;
patients are placed at random but for the last line. The second compares real nodes and journals in
virtual time with simulations of the same network: sixteen hospitals, each with tumours of about one
size; messages are lost, or one node is down at any time.

Run with: python benchmarks/simulated_faults.py [--smoke]
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import common
import numpy as np
from virtual_network import Fault, VirtualNetwork

import gosta
from gosta.estimation.setting import make_setting
from gosta.runtime.arrays import Floats
from gosta.views import numbers, terminal

PROTOCOLS = ("carried-means", "tracking", "gosta-async", "gosta-sync", "u2", "flooding")
BY = "mean radius"
CONDITIONS: dict[str, dict[str, Any]] = {
    "no faults": {},
    "10 % of messages lost": {"loss": 0.1},
    "30 % of messages lost": {"loss": 0.3},
    "20 % of nodes away, for 10 exchanges": {"away": 0.2, "away_for": 10},
    "20 % of nodes away, for 100 exchanges": {"away": 0.2, "away_for": 100},
    "separated halves, half of the time": {"partition": (0.25, 0.75)},  # shares of all iterations
    "ring and random graph in turn": {"graph": "cycle,random-regular@{n},repeat@{2n}"},
    "neighbours alike (homophily 1)": {"by": BY, "homophily": 1.0},
}

NODES = 16
# Share of the messages that are lost.
LOSS = 0.1
# How long a node that crashes stays away.
DOWN_SECONDS = 3.0
NODE_RATE = 4.0  # exchanges that a real node starts in a second, if nothing is in the way
# Relative error to reach.
GOAL = 0.01
# Exchanges between two readings of the error.
STEP = 5
# between the exchanges of real and of simulated nodes until they are within the goal
MOST_FACTOR = 1.5


def simulated_table(patients: int | None, runs: int) -> None:
    """Print the error of each protocol under each condition."""
    rows = gosta.datasets.load("breast-cancer").shuffle(0)
    rows = rows if patients is None else rows.head(patients)
    n = len(rows)
    print(f"error of the AUC after {100 * n:,} iterations, {n} nodes, watts-strogatz, {runs} runs:")
    table: list[tuple[str, ...]] = [("", *PROTOCOLS)]
    for name, condition in CONDITIONS.items():
        settings = {"graph": "watts-strogatz", **condition}
        settings["graph"] = settings["graph"].replace("{n}", str(n)).replace("{2n}", str(2 * n))
        if "partition" in settings:
            settings["partition"] = tuple(int(100 * n * share) for share in settings["partition"])
        found = [
            gosta.simulate(
                rows, "auc", protocol=protocol, runs=runs, checkpoints=1, **settings
            ).error()["mean"][-1]
            for protocol in PROTOCOLS
        ]
        table.append((name, *(numbers.error(float(error)) for error in found)))
    print(terminal.columns(table, right=range(1, len(table[0]))), flush=True)


class Curve(NamedTuple):
    """Errors of one network, as its exchanges take place."""

    exchanges: Floats
    """Exchanges that took place so far, by run and reading."""
    errors: Floats
    """Relative errors, means over nodes."""

    def exchanges_until(self, goal: float) -> float:
        """Return after how many exchanges the error, a mean over runs, stays below a goal; infinite
        if it does not.
        """
        grid = np.arange(STEP, int(self.exchanges[:, -1].min()) + 1, STEP)
        mean = np.mean([np.interp(grid, *run) for run in zip(*self, strict=True)], axis=0)
        return float(np.append(grid, np.inf)[np.flatnonzero(np.append(True, mean >= goal))[-1]])


SETTINGS: dict[str, Any] = {"graph": "watts-strogatz", "nodes": NODES, "by": BY}


def real(loss: float, has_crashes: bool, runs: int, seconds: int) -> Curve:
    """Run real nodes in virtual time, and check their journals at the end."""
    setting = make_setting(
        "tracking", "breast-cancer", "auc", SETTINGS["graph"], 0, {}, nodes=NODES, by=BY
    )
    assert setting.graph.edges is not None
    parts, edges = (
        setting.placement.split(setting.estimand.x),
        [(int(i), int(j)) for i, j in setting.graph.edges],
    )
    exact, found = float(setting.target[0, 0]), []
    for seed in range(runs):
        turns = range(int(seconds / DOWN_SECONDS) if has_crashes else 0)
        faults = [
            Fault("crash", k * DOWN_SECONDS, f"node-{(k + seed) % NODES}", DOWN_SECONDS)
            for k in turns
        ]
        network = VirtualNetwork(
            parts, edges, faults, seed, "auc", loss=loss, exchanges_per_second=NODE_RATE
        )
        curve, total, before = [], 0.0, 0.0
        for quarter in range(1, 4 * seconds + 1):
            network.clock.run(quarter / 4)
            peers = list(network.peers.values())
            values = [
                0.0 if report is None else report.value[0]
                for report in (peer.report() for peer in peers)
            ]
            error = np.abs(np.array(values) / exact - 1).mean()
            now = sum(peer.estimator.exchanges for peer in peers) / 2
            # a new epoch counts from 0
            total, before = (total + (now - before if now >= before else now), now)
            curve.append((total, error))
        network.check()
        found.append(curve)
    exchanges, errors = np.moveaxis(np.array(found), 2, 0)
    return Curve(exchanges, errors)


def simulated(
    loss: float, has_crashes: bool, runs: int, iterations: int, exchanges_per_second: float
) -> Curve:
    """Simulate the same network; a node is away for as many exchanges as the real one misses."""
    up = 1 - 1 / NODES if has_crashes else 1.0
    drawn_per_node = 2 * exchanges_per_second / NODES / ((1 - loss) * up) ** 2
    away = {"away": 1 - up, "away_for": DOWN_SECONDS * drawn_per_node} if has_crashes else {}
    settings = {
        **SETTINGS,
        **away,
        "loss": loss,
        "protocol": "tracking",
        "runs": runs,
        "checkpoints": 150,
    }
    trace = gosta.simulate("breast-cancer", "auc", iterations=iterations, **settings)
    failed = (
        trace.data["failed"].sum("fault").values if "failed" in trace.data else np.zeros((runs, 1))
    )
    return Curve(trace.iterations - failed, trace.data["mean"].values)


def main() -> None:
    arguments = common.parser(__doc__).parse_args()
    smoke = arguments.smoke
    common.print_machine("msgspec", "numba")
    start = time.perf_counter()
    simulated_table(60 if smoke else None, 2 if smoke else 20)
    runs, seconds = (1, 4) if smoke else (20, 20)
    print(
        f"\nexchanges until the AUC is within {numbers.percent(GOAL, 'g')}, {NODES} nodes, "
        "tracking:"
    )
    table, factors = [("", "real nodes", "simulated", "ratio")], []
    for name, loss, has_crashes in (
        ("no faults", 0.0, False),
        (f"{numbers.percent(LOSS, 'g')} of messages lost", LOSS, False),
        ("one node down at any time", 0.0, True),
        ("both", LOSS, True),
    ):
        curve = real(loss, has_crashes, runs, seconds)
        rate = float(curve.exchanges[:, -1].mean()) / seconds
        ours = simulated(loss, has_crashes, 10 * runs, 1500, rate)
        one, two = curve.exchanges_until(GOAL), ours.exchanges_until(GOAL)
        factors.append(one / two)
        table.append((name, f"{one:,.0f}", f"{two:,.0f}", f"{one / two:.2f}"))
    print(terminal.columns(table, right=range(1, 4)))
    print(f"{time.perf_counter() - start:.0f} s")
    if not smoke:
        assert all(1 / MOST_FACTOR < factor < MOST_FACTOR for factor in factors), factors


if __name__ == "__main__":
    main()
